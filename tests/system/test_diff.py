"""buscap diff: the differences found, their positions, and exit codes; as few lines as GNU diff."""

import itertools
import json
import math
import os
import pty
import random
import struct
import subprocess

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, equal, need, run



def diff(*argv, code=None, data=None):
    """Returns (stdout, stderr)."""
    done = run(need(BUSCAP), "diff", *argv, data=data)
    if code is not None:
        equal(done.returncode, code, f"diff {' '.join(map(str, argv))}: {done.stderr.decode()}{done.stdout.decode()}")
    return done.stdout.decode(), done.stderr.decode()


def found(*argv, code=1, **options):
    """Returns the differences and the summary."""
    text, _ = diff("--json", *argv, code=code, **options)
    objects = [json.loads(line) for line in text.splitlines()]
    last = objects.pop()
    equal(last["differences"], len(objects), "differences counted and listed")
    equal([o["difference"] for o in objects], list(range(1, len(objects) + 1)), "their numbers")
    for side in "ab":
        counted = last["same"] + last["reordered"] + last["changed"] + last["only_" + side]
        equal(last[side]["entries"], counted, f"each entry of {side} counted once")
    return objects, last


def simulate(path, out_format="byu", count="20k", seed=1):
    done = run(need(BUSCAP), "sim", "-O", out_format, "--count", count, "--seed", str(seed))
    equal(done.returncode, 0, done.stderr.decode())
    path.write_bytes(done.stdout)
    return path


def write_file(path, content):
    path.write_bytes(content if isinstance(content, bytes) else "".join(content).encode())
    return path


def convert(source, target, out_format, *more):
    done = run(need(BUSCAP), "convert", "-O", out_format, "-o", target, *more, source)
    assert done.returncode in (0, 3), done.stderr.decode()
    return target


def tarmac_lines(count, seed=6):
    """Returns lines of a program that loops: instructions, some of them skipped, registers and accesses."""
    dice = random.Random(seed)
    lines = []
    while len(lines) < count:
        n, pc, kind = len(lines), 0x8000 + 4 * (len(lines) % 700), dice.choice(("IT", "IT", "IS", "R", "MR4", "MW4"))
        text = {"R": f"R X{dice.randrange(9)} {dice.getrandbits(64):016x}",
                "MR4": f"MR4 {0x10000 + 4 * dice.randrange(999):08x} {dice.getrandbits(32):08x}",
                "MW4": f"MW4 {0x10000 + 4 * dice.randrange(999):08x} {dice.getrandbits(32):08x}"}.get(
            kind if n else "IT", f"{kind if n else 'IT'} ({n}) {pc:08x} {dice.getrandbits(32):08x} O EL3h_s : ADD      X1,X2")
        lines.append(f"{10 * n} clk {text}\n")
    return lines


def record(directory, bcp1):
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{bcp1}", "-o", directory)
    assert done.returncode in (0, 3, 4), done.stderr.decode()
    return harness.segments(directory)


# ---- the bus


def test_a_trace_is_the_same_in_all_bus_formats(tmp):
    byu = simulate(tmp / "a.byu")
    bcp1 = simulate(tmp / "a.bcp1", "bcp1")
    raw6 = simulate(tmp / "a.raw6", "raw6")
    out = tmp / "out"
    out.mkdir()
    (segment,) = record(out, bcp1)
    files = [byu, bcp1, raw6, segment]
    for a in files:
        for b in files:
            differences, last = found(*[x for f, n in ((a, "a"), (b, "b")) if f == raw6
                                        for x in (f"--format-{n}", "raw6")], a, b, code=0)
            equal(differences, [], f"{a.name} and {b.name}")
            assert last["same"] > 19900 and last["is_whole"], last
            equal("time" in last["fields"], raw6 not in (a, b), "times compared")


def test_the_segments_of_a_recording_are_one_trace(tmp):
    bcp1 = simulate(tmp / "a.bcp1", "bcp1", count="100k")
    other = simulate(tmp / "b.bcp1", "bcp1", count="1k", seed=2)
    for name, source in (("out", bcp1), ("out2", other)):
        (tmp / name).mkdir()
        done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{source}", "-o", tmp / name,
                   "-b", "filesize:128K")
        assert done.returncode in (0, 3, 4), done.stderr.decode()
    files = harness.segments(tmp / "out")
    (single,) = harness.segments(tmp / "out2")
    assert len(files) > 1, files
    for order in (files, files[::-1]):
        differences, last = found(bcp1, *order, code=0)
        equal((differences, last["b"]["files"]), ([], len(files)), "segments in any order")
    text, _ = diff(bcp1, *files, code=0)
    assert f"and {len(files) - 1} more (" in text, text
    for wrong in ([bcp1, *files, single], [bcp1, *files, bcp1], [bcp1, bcp1, *files], [bcp1, *files, "-"]):
        _, err = diff(*wrong, code=2)
        assert "segments of one recording" in err, err


def test_a_flipped_bit_is_reported_by_field_and_position(tmp):
    byu = simulate(tmp / "a.byu", count="2k")
    data = byu.read_bytes()
    records = len(data) // 12
    fields = ["addr"] * 4 + ["type", "size", "attr", "proc"] + ["time"] * 4
    places = itertools.product((0, 1, 700, records - 2, records - 1), enumerate(fields))
    for number, (byte, field) in harness.some(places, 5):
        bit = 1 if field == "type" else 7 if field != "time" else 3
        torn = bytearray(data)
        torn[number * 12 + byte] ^= 1 << bit
        differences, last = found(byu, write_file(tmp / "b.byu", bytes(torn)))
        equal(len(differences), 1, f"record {number}, byte {byte}")
        equal(differences[0]["fields"], [field], f"record {number}, byte {byte}")
        equal((differences[0]["kind"], differences[0]["a"]["first"], differences[0]["b"]["first"]),
              ("changed", number, number), "its place")
        equal(last["changed"], 1, "changed")
        found("--ignore", field, byu, tmp / "b.byu", code=0)
        only = [f for f in ("addr", "type", "size", "attr", "proc", "time") if f != field]
        found("--fields", ",".join(only), byu, tmp / "b.byu", code=0)
        found("--fields", field, byu, tmp / "b.byu", code=1)


def counts(last):
    return last["changed"], last["only_a"], last["only_b"]


# ---- one recording, its copies and its cuts


def recorded(tmp, count):
    (tmp / "rec").mkdir()
    run(need(BUSCAPD), "--once", "--no-socket", "--source", f"sim:seed=1,rate=max,count={count}", "-o", tmp / "rec", "--set",
        "pipeline.flush=1h")
    (segment,) = harness.segments(tmp / "rec")
    return segment


def test_a_damaged_chunk_is_one_difference_that_says_so(tmp):
    segment = recorded(tmp, 500_000)
    data = bytearray(segment.read_bytes())
    data[len(data) // 2:len(data) // 2 + 4] = b"\0\1\2\3"
    copy = write_file(tmp / "copy.byu.lz4", bytes(data))
    for a, b, has, lost in ((segment, copy, "a", "b"), (copy, segment, "b", "a")):
        differences, last = found(a, b)
        equal(len(differences), 1, "differences")
        equal((differences[0]["kind"], differences[0][has]["count"]), (f"only_{has}", 87381), "records of a chunk")
        equal((last["changed"], last["only_" + has], last["only_" + lost]), (0, 87381, 0), "counts")
        assert "gap: 87381 lost (damaged)" in differences[0][lost]["gap"], differences
    text, _ = diff(segment, copy, code=1)
    assert "# here B has a gap: 87381 lost (damaged)" in text, text


def test_a_cut_lacks_what_it_left_out_and_nothing_else(tmp):
    segment = recorded(tmp, 40_000)
    for options, selection in ((["--type", "read"], "type=read"), (["--addr", "0-3ffffff"], "addr=0-3ffffff"),
                               (["--type", "write", "--proc", "0"], "type=write proc=0"),
                               (["--type", "fetch", "--type", "write"], "type=fetch type=write"), (["--port", "0-ffff"], "port=0-ffff")):
        cut = tmp / "cut.byu.lz4"
        done = run(need(BUSCAP), "cut", *options, "-o", cut, segment)
        equal(done.returncode, 0, done.stderr.decode())
        for a, b, whole in ((segment, cut, "a"), (cut, segment, "b")):
            differences, last = found(a, b)
            equal([d["cut"] for d in differences], [selection], "differences")
            equal((last["changed"], last["only_b" if whole == "a" else "only_a"]), (0, 0), "counts")
            equal(last["only_" + whole], differences[0]["filtered"], "entries left out")
            assert last["same"] > (5 if "port" in selection else 300), last
        text, _ = diff(segment, cut, code=1)
        assert f"only in A: B was cut with {selection}" in text, text
        cut.unlink()
    # Also what was cut from a cut, and whatever comes through a pipe.
    cuts = [tmp / "1.byu.lz4", tmp / "2.byu.lz4"]
    for first, second in ((["--type", "read"], ["--addr", "0-3ffffff"]), (["--addr", "0-7ffffff"], ["--addr", "1000000-"])):
        for source, target, options in ((segment, cuts[0], first), (cuts[0], cuts[1], second)):
            target.unlink(missing_ok=True)
            done = run(need(BUSCAP), "cut", *options, "-o", target, source)
            equal(done.returncode, 0, done.stderr.decode())
        for a, options in ((cuts[1], {}), ("-", {"data": cuts[1].read_bytes()})):
            differences, last = found(a, segment, **options)
            equal(len(differences), 1, f"a cut of a cut, {a}")
            equal((last["same"], last["only_a"], last["changed"]), (last["a"]["entries"], 0, 0), "counts")
            assert last["same"] > 1000, last
    # A cut by number says nothing about single records: they are only in the whole recording.
    done = run(need(BUSCAP), "cut", "--records", "1000-30000", "-o", cut, segment)
    equal(done.returncode, 0, done.stderr.decode())
    differences, last = found(segment, cut)
    equal([d["kind"] for d in differences], ["only_a"] * 2, "before and after")
    equal((last["same"], last["changed"], last["only_b"]), (29_001, 0, 0), "counts")
    # With both, the reads outside the range are such differences, and all that are not reads is another.
    cut.unlink()
    done = run(need(BUSCAP), "cut", "--records", "1000-30000", "--type", "read", "-o", cut, segment)
    equal(done.returncode, 0, done.stderr.decode())
    differences, last = found(segment, cut)
    equal(["filtered" in d for d in differences], [False, False, True], "before, after and between")
    equal((last["same"], last["changed"], last["only_b"]), (last["b"]["entries"], 0, 0), "counts")
    for limit in (1, 2, 3):
        equal(found("--limit", str(limit), segment, cut)[0], differences[:limit], "the first ones")


def test_a_gap_without_entries_is_a_difference(tmp):
    segment = recorded(tmp, 300_000)
    data = bytearray(segment.read_bytes())
    data[len(data) * 4 // 10] ^= 0x55  # in the second of four chunks
    damaged = write_file(tmp / "damaged.byu.lz4", bytes(data))
    lines = run(need(BUSCAP), "dump", segment).stdout.split(b"\n")
    chunks = [{line[:8] for line in lines[first : first + 87381]} for first in (0, 87381, 2 * 87381)]
    addr = min(chunks[0] & chunks[2] - chunks[1]).decode()
    for path, name in ((damaged, "a"), (segment, "b")):
        run(need(BUSCAP), "cut", "--addr", addr, "-o", tmp / f"{name}.byu.lz4", path)
    pair = tmp / "a.byu.lz4", tmp / "b.byu.lz4"
    differences, last = found(*pair)
    equal([(d["kind"], d["a"]["count"], d["b"]["count"]) for d in differences], [("gap", 0, 0)], "differences")
    equal((last["same"], counts(last)), (last["b"]["entries"], (0, 0, 0)), "counts")
    text, _ = diff(*pair, code=1)
    assert "@@ 1: a gap: after record" in text and "# here A has a gap: 87381 lost (damaged)" in text, text

def test_traces_on_the_same_clock_are_joined_by_time(tmp):
    dice = random.Random(8)
    lines = [f"{dice.choice('rw')} {100 + 3 * n} 4 1 {dice.randrange(4) * 16:x}\n" for n in range(5000)]
    a = write_file(tmp / "a.lap", lines)
    for every in (2, 3, 10):
        kept = [line for line in lines if dice.randrange(every) == 0]
        b = write_file(tmp / "b.lap", kept)
        for window in (0, 1, 2):
            _, last = found("-I", "laplace-text", "--same-clock", "-w", window, a, b)
            equal((last["same"], counts(last)), (len(kept), (0, len(lines) - len(kept), 0)), f"one of {every} kept")
    other = list(lines)
    other[77] = other[77].replace(" 4 1 ", " 2 1 ")
    differences, last = found("-I", "laplace-text", "--same-clock", a, write_file(tmp / "b.lap", other))
    equal([d["fields"] for d in differences], [["size"]], "a field at the same time")


# ---- equal bytes, which are not parsed


def damaged(dice, data):
    """Some bytes differ, are missing or are there twice."""
    data = bytearray(data)
    for _ in range(dice.choice((0, 1, 1, 3, 20))):
        at, count = dice.randrange(len(data)), dice.choice((1, 12, 1200, 12000))
        edit = dice.choice(("flip", "flip", "none", "delete", "repeat"))
        if edit == "flip":
            data[at] ^= 1 << dice.randrange(8)
        elif edit == "none":
            data[at // 12 * 12 + 8 : at // 12 * 12 + 12] = b"\xff" * 4
        elif edit == "delete":
            del data[at : at + count]
        else:
            data[at:at] = data[max(0, at - count) : at]
    return bytes(data)


def variant(dice, directory, number, trace, kind):
    """A trace with differences and damage, and perhaps other chunks. Returns its files."""
    source = write_file(directory / f"{number}.{kind}", damaged(dice, trace))
    if dice.random() < 0.4:
        return [source]
    out = directory / f"{number}"
    out.mkdir()
    rotation = ["-b", f"filesize:{dice.choice((64, 150, 9999))}K"]
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{source},format={kind}", "-o", out, *rotation)
    assert done.returncode in (0, 3, 4), done.stderr.decode()
    files = harness.segments(out)
    if dice.random() < 0.4:
        hit = dice.choice(files)
        hit.chmod(0o600)
        write_file(hit, damaged(dice, hit.read_bytes()))
    return files


def test_skipping_equal_bytes_changes_nothing(tmp):
    # With so much context, every entry is read (SKIP_CONTEXT_MAX); JSON does not contain it.
    count = "30k" if harness.NIGHTLY else "12k"
    kinds = {kind: simulate(tmp / f"sim.{kind}", kind, count=count).read_bytes() for kind in ("byu", "bcp1")}
    for seed in harness.some(range(100), 10):
        dice = random.Random(seed)
        kind = dice.choice(sorted(kinds))
        directory = tmp / f"{seed}"
        directory.mkdir()
        (a, *_), b = (variant(dice, directory, n, kinds[kind], kind) for n in range(2))
        options = [x for f, n in ((a, "a"), (b[0], "b")) if f.suffix == ".byu" for x in (f"--format-{n}", "byu")]
        for more in ([], ["--ignore", "time"], ["--same-clock", "--window", "0"], ["--relative"]):
            done = [run(need(BUSCAP), "diff", "--json", *options, *more, *context, a, *b) for context in ([], ["-U", "2000"])]
            equal(*[(d.returncode, d.stdout, d.stderr) for d in done], f"seed {seed} {more}")


# ---- moved blocks, long prefixes, parts


def test_counts_have_commas_in_text(tmp):
    data, _ = reference.make_byu(random.Random(3), 2500)
    long, short = write_file(tmp / "a.byu", data), write_file(tmp / "b.byu", data[:12 * 1200])
    text, _ = diff("-I", "byu", long, short, code=1)
    assert "@@ 1: 1,300 entries only in A: record 1200 to 2499 of A, after record 1199 of B\n" in text, text
    assert "... and 1,280 more\n" in text, text
    assert "different in 1 place: 2,500 of A and 1,200 of B compared; 1,200 match, 0 in different order, 0 changed, 1,300 only in A" in text


def test_a_moved_block_differs_at_both_places(tmp):
    byu = simulate(tmp / "a.byu")
    data = byu.read_bytes()
    records = [data[at : at + 12] for at in range(0, len(data), 12)]
    cases = itertools.product(((50, 1000), (50, 100), (200, 1000), (1000, 3000)), (3000, 9000),
                              ([], ["-l", "400"], ["-l", "100000"], ["--ignore", "time"]))
    for (length, distance), at, options in harness.some(cases, 3):
        block, rest = records[at : at + length], records[:at] + records[at + length :]
        other = write_file(tmp / "b.byu", b"".join(rest[: at + distance] + block + rest[at + distance :]))
        _, last = found(*options, byu, other)
        equal(counts(last), (0, length, length), f"{length} by {distance} at {at} {options}")


def test_a_prefix_longer_than_the_look_ahead_is_one_difference(tmp):
    lines = tarmac_lines(2500)
    a = write_file(tmp / "a.tarmac", lines)
    boot = [f"{n} clk IT ({n}) {0x90000 + 4 * n:08x} d503201f O EL3h_s : NOP\n" for n in range(20_000)]
    b = write_file(tmp / "b.tarmac", boot + lines)
    differences, last = found("--relative", "--ignore", "time", a, b)
    equal((len(differences), counts(last)), (1, (0, 0, 20_000)), "boot code")
    differences, last = found("--relative", "--ignore", "time", b, a)
    equal((len(differences), counts(last)), (1, (0, 20_000, 0)), "boot code")
    # A pipe can't be read twice, and the note says so.
    text, _ = diff("--ignore", "time", "-I", "tarmac", a, "-", data=b.read_bytes(), code=1)
    assert "a pipe can't be searched further, a file can" in text, text[-2000:]
    # Or where to begin is known.
    first = next(line.split()[4] for line in lines if " IT " in line)
    _, last = found("--ignore", "time", "--start", first, a, b, code=0)
    assert last["same"] > 2000, last
    text, err = diff("--start", "fff0", a, b, code=1)
    equal(text, "", "output without a start")
    assert "--start: neither trace has an entry with address fff0" in err, err


def test_the_rest_of_the_longer_trace_can_be_ignored(tmp):
    byu = simulate(tmp / "a.byu", count="5k")
    data = byu.read_bytes()
    for end in (12, 1200, len(data) // 24 * 12, len(data) - 12):
        b = write_file(tmp / "b.byu", data[:end])
        for x, y in ((byu, b), (b, byu)):
            found("-I", "byu", "--ignore-rest", x, y, code=0)
            found("-I", "byu", x, y, code=1)
    # The last record of the shorter one differs: only that is reported.
    for length in (20, 2000):
        other = bytearray(data[: length * 12])
        other[-12] ^= 1
        differences, last = found("-I", "byu", "--ignore-rest", byu, write_file(tmp / "b.byu", bytes(other)))
        equal((len(differences), counts(last)), (1, (1, 0, 0)), f"{length} records")
    torn = bytearray(data[: len(data) // 24 * 12])
    torn[4000 * 3] ^= 1
    differences, _ = found("-I", "byu", "--ignore-rest", byu, write_file(tmp / "b.byu", bytes(torn)))
    equal(len(differences), 1, "what differs before the end")


def test_first_and_limit_stop_the_comparison(tmp):
    byu = simulate(tmp / "a.byu")
    data = bytearray(byu.read_bytes())
    for number in range(100, 10100, 1000):
        data[number * 12] ^= 0x40
    b = write_file(tmp / "b.byu", bytes(data))
    equal(len(found(byu, b)[0]), 10, "all")
    for options, n in ((["--first"], 1), (["-1"], 1), (["--limit", "3"], 3), (["-n10"], 10), (["-n11"], 10)):
        differences, last = found(*options, byu, b)
        equal(len(differences), n, str(options))
        equal(last["is_whole"], n == 10 and "-n11" in options, "entries read")
    text, _ = diff("--first", byu, b, code=1)
    assert "record 100 of A, record 100 of B" in text and "record 1100" not in text, text
    assert "stopped" in text and "\033" not in text, text
    text, err = diff("-q", byu, b, code=1)
    equal((text, err), ("", ""), "quiet")
    equal(diff("-q", byu, byu, code=0), ("", ""), "quiet")


def test_context_and_show_set_the_number_of_lines(tmp):
    a = write_file(tmp / "a.din", [f"0 {n:x}\n" for n in range(100)])
    b = write_file(tmp / "b.din", [f"0 {n + 0x1000 * (40 <= n < 70):x}\n" for n in range(100)])
    for context in (0, 1, 3, 7, 50):
        for show in (0, 1, 30, 99):
            text, _ = diff("-I", "din", "-U", context, "--show", show, a, b, code=1)
            lines = text.splitlines()
            around = min(context, 39 + 1) + min(context, 30)
            equal(sum(line.startswith("  ") for line in lines), around, f"context {context}")
            equal(sum(line.startswith("- ") and "more" not in line for line in lines), min(show, 30), f"show {show}")
            equal(sum("more" in line for line in lines), 2 * (show < 30), "the number of unlisted entries")
            assert "30 entries differ in addr: line 41 to 70 of A, line 41 to 70 of B" in text, text


def test_a_terminal_gets_colour_unless_no_color_is_set(tmp):
    a, b = write_file(tmp / "a.din", "0 1\n"), write_file(tmp / "b.din", "0 2\n")
    for no_color, wanted in (("", True), ("1", False)):
        ours, theirs = pty.openpty()
        done = run(need(BUSCAP), "diff", "-I", "din", a, b, stdout=theirs, env={**os.environ, "NO_COLOR": no_color})
        os.close(theirs)
        equal(done.returncode, 1, "exit code")
        text = os.read(ours, 65536)
        os.close(ours)
        equal(b"\033[31m" in text, wanted, f"colour with NO_COLOR={no_color!r}")


def test_exit_codes_distinguish_damage_and_difference(tmp):
    byu = simulate(tmp / "a.byu", count="2k")
    data = byu.read_bytes()
    torn = write_file(tmp / "torn.byu", data + b"12345")
    text, err = diff("-I", "byu", byu, torn, code=3)
    assert "torn" in err and "no difference found" in text, (text, err)
    text, err = diff("-I", "byu", byu, write_file(tmp / "b.byu", data[:-12] + b"12345"), code=1)
    assert "torn" in err and "1 entry only in A" in text, (text, err)
    _, last = found("-I", "byu", byu, torn, code=3)
    equal(last["is_whole"], False, "is_whole")
    din = write_file(tmp / "a.din", "0 1\n1 2\nx\n2 3\n")
    text, err = diff("-I", "din", din, din, code=3)
    assert "line 3, column 1" in err, err


# ---- text formats


def test_kernel_events_differ_in_any_character_of_the_tag(tmp):
    a = write_file(tmp / "a.events", ["FORK 1 x\n", "F 2\n"])
    found("-I", "laplace-events", a, write_file(tmp / "b.events", [" FORK  1 x\n", "F 02\n"]), code=0)
    differences, _ = found("-I", "laplace-events", a, write_file(tmp / "b.events", ["FREE 1 x\n", "F 2\n"]))
    equal(len(differences), 1, "differences")


def test_a_micro_op_is_compared_as_its_references(tmp):
    lines = ["%d %6x %2d %2d %2d %c %c %c %9d %12x %12x %12x %-8s %s" % (
        1, 0x48d1de + 4 * n, n % 40, 5, 45, "-", "-", "-LS"[n % 3], -264, 0x7fff000 + 8 * n if n % 3 else 0, 0x48d1e2 + 4 * n, 0, "CMP",
        ("ADD", "LOAD", "STORE")[n % 3]) for n in range(994)]
    trace = write_file(tmp / "a.trace", "\n".join(lines) + "\n")
    din = convert(trace, tmp / "a.din", "din", "-I", "cis501")
    for only, wanted in (([], 994 + 662), (["--only", "mem"], 662), (["--only", "inst"], 994), (["--only", "inst,mem"], 994 + 662)):
        _, last = found(*only, "--format-a", "cis501", "--format-b", "din", trace, din, code=0)
        equal(last["same"], wanted, only)
    _, last = found("-I", "cis501", "--only", "mem", trace, trace, code=0)
    equal(last["same"], sum(line.split()[7] in "LS" for line in lines), "loads and stores")
    words = lines[100].split()
    words[3] = "17"
    other = write_file(tmp / "b.trace", "\n".join(lines[:100] + [" ".join(words)] + lines[101:]) + "\n")
    differences, _ = found("-I", "cis501", trace, other)
    equal([(d["fields"], d["a"]["first"]) for d in differences], [(["registers"], 101)], "a micro-op")
    found("-I", "cis501", "--only", "mem", trace, other, code=0)


# ---- against GNU diff


SCRIPTS = 1000
GROUPS = 10 if harness.NIGHTLY else 1  # tests, each within its time limit
LONGEST = 50_000


def records(data):
    return [data[at : at + 12] for at in range(0, len(data) // 12 * 12, 12)]


def sources():
    """Returns the entries of traces by kind: lines, or records of 12 bytes."""
    done = run(need(BUSCAP), "sim", "-O", "byu", "--count", "60k", "--seed", "4")
    return {"sim": records(done.stdout), "byu": records(reference.make_byu(random.Random(5), 60_000)[0]), "lackey": loops(),
            "tarmac": [line.rstrip() for line in tarmac_lines(6000)]}


def loops():
    """References of a program with nested loops, in lackey's form. Some last longer than the look-ahead."""
    dice = random.Random(3)
    lines = []
    while len(lines) < 60_000:
        base = dice.randrange(40) * 0x1000
        bodies = [(dice.randrange(3, 60), dice.choice((1, 1, 2, 5))) for _ in range(dice.randrange(1, 4))]
        for _ in range(dice.choice((3, 30, 300))):
            for inner, (body, times) in enumerate(bodies):
                for _ in range(times):
                    lines += [f"I  {base + 0x100 * inner + 4 * n:x},4" for n in range(body)]
                    lines.append(f" L {0x100000 + dice.randrange(4096) * 8:x},8")
    return lines


def size(dice, most):
    return max(1, min(most, int(math.exp(dice.uniform(0, math.log(LONGEST))))))


def others(dice, kind, base, count):
    """Entries from elsewhere in the trace, or that are nowhere in it."""
    if dice.random() < 0.5:
        at = dice.randrange(max(1, len(base) - count))
        return base[at : at + count]
    if kind == "tarmac":
        return [f"{dice.randrange(9999)} clk IT ({dice.randrange(9999)}) {dice.randrange(1 << 30) * 4:08x} "
                f"{dice.randrange(1 << 32):08x} O EL3h_s : NOP" for _ in range(count)]
    if kind == "lackey":
        return [f" S {dice.randrange(1 << 40):x},8" for _ in range(count)]
    return [struct.pack("<I4BI", dice.randrange(1 << 32), 3, 4, 0, 0, dice.randrange(1, 30)) for _ in range(count)]


def edited(dice, kind, base):
    out = list(base)
    for _ in range(dice.choice((1, 1, 2, 3, 5))):
        edit = dice.choice(("insert", "delete", "replace", "move", "loop", "burst", "prefix"))
        count = size(dice, len(out) // 2)
        at = dice.randrange(len(out) - count + 1)
        if edit == "insert":
            out[at:at] = others(dice, kind, base, count)
        elif edit == "delete":
            del out[at : at + count]
        elif edit == "replace":
            out[at : at + count] = others(dice, kind, base, count)
        elif edit == "move":
            block = out[at : at + count]
            del out[at : at + count]
            to = max(0, min(len(out), at + dice.choice((-1, 1)) * size(dice, len(out))))
            out[to:to] = block
        elif edit == "loop":
            count = min(count, 500)
            out[at:at] = out[at : at + count] * dice.randrange(1, 10)
        elif edit == "burst":
            for _ in range(min(count, 300)):
                place = min(len(out) - 1, at + dice.randrange(2000))
                what = dice.choice(("change", "delete", "insert"))
                out[place : place + (what != "insert")] = [] if what == "delete" else others(dice, kind, base, 1)
        else:
            out[:0] = others(dice, kind, base, count)
        if len(out) < 10:
            return list(base)
    return out


def line(kind, entry, has_times):
    """The line of an entry for GNU diff."""
    if isinstance(entry, bytes):
        return entry.hex() if has_times else entry[:8].hex()
    return entry if has_times or kind != "tarmac" else entry.split(None, 2)[2]


def write(path, entries, kind, has_times):
    if isinstance(entries[0], bytes):
        path.write_bytes(b"".join(entries))
    else:
        path.write_text("".join(entry + "\n" for entry in entries))
    lines = path.with_suffix(".lines")
    lines.write_text("".join(line(kind, entry, has_times) + "\n" for entry in entries))
    return lines


def one(tmp, number, traces):
    """Returns how many changed lines buscap and GNU diff report."""
    dice = random.Random(number)
    kind = dice.choice(sorted(traces))
    entries = dice.choice((500, 3000, 20_000, 60_000))
    at = dice.randrange(max(1, len(traces[kind]) - entries))
    base = traces[kind][at : at + entries]
    has_times = dice.random() < 0.5
    texts = [write(tmp / "a.trace", base, kind, has_times),
             write(tmp / "b.trace", edited(dice, kind, base), kind, has_times)]
    gnu = subprocess.run(["diff", *texts], stdout=subprocess.PIPE, timeout=harness.TIMEOUT_S).stdout
    options = ["-I", kind if kind in ("tarmac", "lackey") else "byu"]
    if not has_times and kind != "lackey":
        options += ["--ignore", "time"]
    done = run(BUSCAP, "diff", *options, "--json", tmp / "a.trace", tmp / "b.trace")
    assert done.returncode in (0, 1), done.stderr.decode()
    last = json.loads(done.stdout.splitlines()[-1])
    ours = 2 * last["changed"] + last["only_a"] + last["only_b"]
    theirs = sum(x[:1] in b"<>" for x in gnu.splitlines())
    # Entries of the same time in a different order are not a difference.
    equal(ours + last["reordered"] == 0, theirs == 0, f"whether there are differences, script {number}")
    return ours, theirs


def test_an_edit_in_a_long_loop_is_one_difference(tmp):
    """The end of the look-ahead is not the end of the trace: a missing or additional part is found, though many short
    differences would do for all that is in sight."""
    trace = loops()
    dice = random.Random(7)
    for number in range(3):
        first, last = sorted(dice.sample(range(2000, len(trace) - 2000), 2))
        last = min(last, first + dice.randrange(2000, 8000))
        other = trace[:first] + trace[last:]
        write(tmp / "a.trace", trace, "lackey", False)
        write(tmp / "b.trace", other, "lackey", False)
        for a, b, side in (("a", "b", "only_a"), ("b", "a", "only_b")):
            differences, end = found("-I", "lackey", tmp / f"{a}.trace", tmp / f"{b}.trace")
            lines = 2 * end["changed"] + end["only_a"] + end["only_b"]
            assert lines <= 1.02 * (last - first), f"edit {number}: {lines} lines for {last - first} entries"
            equal(end[side] - end["only_a" if side == "only_b" else "only_b"], last - first, f"edit {number}")


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_edits_are_reported_as_briefly_as_by_gnu_diff(tmp, group):
    traces = sources()
    ratios = []
    for number in harness.some(range(group, SCRIPTS, GROUPS), 100):
        ours, gnu = one(tmp, number, traces)
        ratios.append((ours / gnu if gnu else 1, number))
    ratios.sort()
    assert ratios[-1][0] <= 1.5, f"(changed lines against GNU diff, script): {ratios[-5:]}"
    assert sum(ratio > 1.3 for ratio, _ in ratios) <= len(ratios) // 100, f"(changed lines against GNU diff, script): {ratios[-5:]}"
    assert ratios[len(ratios) // 2][0] <= 1, f"median {ratios[len(ratios) // 2]}"
