"""buscap convert with text formats: examples, a real trace, messages and exit codes."""

from harness import BUSCAP, ROOT, equal, need, run

SJENG = ROOT / "../shared/data/cis501/sjeng-1K.trace"
LAPLACE = b"r 123456789abcdef0 4 9f8e7 9a8b7c6d\n"
WIDE = b"r 123456789abcdef0 4 9a8b7 8888ffff3e456a21\n"
EVENTS = b"F 123456789abcdef7 100 77\nM 123456789abcdefe 100 1a2b3c4d 9000 8efa5567 35 5 1029384756afbecd foobar.so\n"
LACKEY = (b"==7== Lackey, an example Valgrind tool\nI  04016930,3\n S 1ffefffd88,8\n L 04222cac,1\n M 0421c7cc,4\n"
          b"==7== \n")


def convert(data, source, target, *more, code=0):
    """Returns stdout and stderr."""
    done = run(need(BUSCAP), "convert", "-I", source, "-O", target, *more, data=data)
    equal(done.returncode, code, f"exit code of {source} to {target}: {done.stderr.decode()}")
    return done.stdout, done.stderr.decode()


def test_a_real_cis501_trace_round_trips():
    trace = need(SJENG).read_bytes()
    equal(convert(trace, "cis501", "cis501"), (trace, ""))
    # So does any part of it: a file can start in the middle of a macro-op.
    lines = trace.splitlines(keepends=True)
    for first in range(0, 20):
        part = b"".join(lines[first:])
        equal(convert(part, "cis501", "cis501"), (part, ""))


def test_cis501_single_spaces_become_columns():
    lines = need(SJENG).read_bytes().splitlines(keepends=True)
    single = b"".join(b" ".join(line.split()) + b"\n" for line in lines)
    equal(convert(single, "cis501", "cis501")[0], b"".join(lines))


def test_laplace_text_and_records_round_trip():
    for order in ("", ":endian=big"):
        records, err = convert(LAPLACE * 3, "laplace-text", "laplace" + order)
        equal((len(records), err), (54, ""))
        equal(convert(records, "laplace" + order, "laplace-text"), (LAPLACE * 3, ""))
    equal(convert(WIDE, "laplace-text", "laplace-text"), (WIDE, ""))


def test_values_that_do_not_fit_a_laplace_record_are_errors():
    out, err = convert(LAPLACE + WIDE + LAPLACE, "laplace-text", "laplace", code=1)
    equal(len(out), 18)
    assert "line 2: address 0x8888ffff3e456a21 doesn't fit in the 32 bits of a Laplace record" in err, err
    out, err = convert(b"r 1 100 0 10\n", "laplace-text", "laplace", code=1)
    assert "line 1: size of 256 bytes doesn't fit in the 8 bits" in err, err


def test_kernel_events_round_trip():
    odd = b"FORK 00aB  x\ty \r\n"
    equal(convert(EVENTS + odd, "laplace-events", "laplace-events"), (EVENTS + odd, ""))


def test_a_laplace_record_without_type_is_skipped_and_reported():
    records = convert(LAPLACE * 3, "laplace-text", "laplace")[0]
    out, err = convert(records[:18] + b"\0" + records[19:] + b"to", "laplace", "laplace-text", code=3)
    equal(out, LAPLACE * 2)
    assert "18" in err and "record 1: expected a type" in err and "torn: 2 bytes left over" in err, err


def test_a_real_programs_references_become_dinero():
    out, err = convert(LACKEY, "lackey", "xdin")
    equal(out, b"i 4016930 3\nw 1ffefffd88 8\nr 4222cac 1\nr 421c7cc 4\nw 421c7cc 4\n")
    assert "xdin has no modify: written differently in 1 entry" in err, err
    equal(convert(LACKEY, "lackey", "xdin", "--strict", code=1)[0][:12], b"i 4016930 3\n")
    equal(convert(LACKEY.replace(b" M 0421c7cc,4\n", b""), "lackey", "laplace-text")[0],
          b"f 1 3 0 4016930\nw 2 8 0 1ffefffd88\nr 3 1 0 4222cac\n")


def test_what_follows_the_address_in_din_is_counted():
    out, err = convert(b"0 10\n1 20 4\n2 30 \r\n0 40\tfetch\n", "din", "din")
    equal(out, b"0 10\n1 20\n2 30\n0 40\n")
    assert "2 lines with more than was read\n" in err, err


def test_superblocks_and_messages_of_lackey_are_counted(tmp):
    path = tmp / "a.lackey"
    path.write_bytes(b"--7-- Reading syms\n" + LACKEY.replace(b"I  ", b"SB 04016930\nI  ") + b"**7** bye\n")
    done = run(need(BUSCAP), "convert", "-O", "xdin", path)
    equal((done.returncode, done.stdout), (0, convert(LACKEY, "lackey", "xdin")[0]))
    assert f"{path}: 3 lines of messages and superblocks skipped\n" in done.stderr.decode(), done.stderr


def test_a_malformed_line_is_reported_and_the_rest_read(tmp):
    path = tmp / "a.din"
    path.write_bytes(b"0 1\n0 x\n1 2\n")
    done = run(need(BUSCAP), "convert", "-I", "din", "-O", "din", path)
    equal((done.returncode, done.stdout), (3, b"0 1\n1 2\n"))
    assert f"{path}: line 2, column 3: " in done.stderr.decode(), done.stderr


def test_sizes_missing_from_a_format_can_be_given():
    equal(convert(b"0 10\n", "din:size=4", "xdin")[0], b"r 10 4\n")
    equal(convert(b"0 10\n", "din", "xdin")[0], b"r 10 0\n")


def test_dump_reads_a_format_with_its_options(tmp):
    for order in ("little", "big"):
        path = tmp / order
        path.write_bytes(convert(LAPLACE * 3, "laplace-text", f"laplace:endian={order}")[0])
        done = run(need(BUSCAP), "dump", "-I", f"laplace:endian={order}", path)
        equal((done.stdout, done.stderr, done.returncode), (LAPLACE * 3, b"", 0), order)
