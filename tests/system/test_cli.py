"""buscap: output compared with tests/support/reference.py, exit codes and messages."""

import gzip
import json
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import zlib

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, equal, need, one_line, run


# Names as printed in the specifications of the formats.
CYCLES = ("INVALID INT_ACK INVALID SPECIAL INVALID IO_READ INVALID IO_WRITE I_FETCH NC_I_FETCH INVALID INVALID "
          "D_READ NC_D_READ WRITE_BACK D_WRITE").split()
TYPES = {0: "FETCH", 1: "MEMREAD", 2: "MEMREADINV", 3: "MEMWRITE", 0x10: "IOREAD", 0x11: "IOWRITE", 0x20: "DEFERREPLY",
         0x21: "INTA", 0x22: "CNTRLAGNTRES", 0x23: "BRTRACEREC", 0x31: "SHUTDOWN", 0x32: "FLUSH", 0x33: "HALT",
         0x34: "SYNC", 0x35: "FLUSHACK", 0x36: "STOPCLKACK", 0x37: "SMIACK"}
CAUSES = {name: number for number, name in reference.GAPS.items()}


def buscap(*argv, code=0, **options):
    """Runs buscap, checks the exit code, and returns (stdout, stderr) as text."""
    done = run(need(BUSCAP), *argv, **options)
    err = done.stderr.decode(errors="replace")
    if code is not None:
        equal(done.returncode, code, f"exit code of {' '.join(map(str, argv))}: {err}")
    return done.stdout.decode(errors="replace"), err


NAMES = [TYPES.get(reqtype, "%02x" % reqtype) for reqtype in range(256)]


def byu_line(record, *more):
    addr, reqtype, size, attr, proc, time = struct.unpack("<I4BI", record)
    return "\t".join(["%08x\t%s\t%2d\t%02x\t%1d\t%08x" % (addr, NAMES[reqtype], size, attr, proc, time), *more]) + "\n"


def byu_text(data):
    records = struct.iter_unpack("<I4BI", data[: len(data) // 12 * 12])
    return "".join("%08x\t%s\t%2d\t%02x\t%1d\t%08x\n" % (addr, NAMES[reqtype], size, attr, proc, time)
                   for addr, reqtype, size, attr, proc, time in records)


def sample_line(address, be, control):
    return "%08x %02x %s\n" % (address, be, CYCLES[control >> 4])


def gap_line(cause, lost, exact):
    if not exact and lost == 0:
        return f"# gap: an unknown number of samples lost ({cause})\n"
    return f"# gap: {'' if exact else 'at least '}{lost:,} sample{'' if lost == 1 else 's'} lost ({cause})\n"


def gaps_at(gaps, at):
    here = [gap for gap in gaps if gap[0] == at]
    return "".join(gap_line(*gap[1:]) for gap in sorted(here, key=lambda gap: CAUSES[gap[1]]))


def make_segments(directory, data, *options):
    """Records a bcp1 stream. Returns the paths of the segments."""
    out = pathlib.Path(tempfile.mkdtemp(prefix="rec", dir=directory))
    path = directory / "stream.bcp1"
    path.write_bytes(data)
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{path}", "-o", out, *options)
    assert done.returncode in (0, 3, 4), done.stderr.decode()
    return harness.segments(out)


def simulate(*options, out_format="bcp1"):
    done = run(need(BUSCAP), "sim", "-O", out_format, *options)
    equal(done.returncode, 0, done.stderr.decode())
    return done.stdout


# ---- all commands


def test_a_usage_error_ends_the_program():
    """tests/unit/cli/test_messages.c has all others."""
    equal(buscap("dump", "--frobnicate", "x", code=2), ("", "buscap dump: unknown option --frobnicate; see buscap dump --help\n"))
    equal(buscap("dmup", code=2), ("", "buscap: no such command: dmup; did you mean dump? See buscap --help\n"))


def test_an_empty_file_is_damaged(tmp):
    for name in ("x.byu.lz4", "20261120T091500Z-3f9a2c-00000.byu.lz4"):
        path = tmp / name
        path.write_bytes(b"")
        buscap("verify", path, code=3)


def test_without_a_match_the_message_says_what_the_input_has(tmp):
    segment = make_segments(tmp, simulate("--count", "1000"))[0]
    (tmp / "x.byu").write_bytes(b"".join(struct.pack("<IBBBBI", 0x5000 + 0x9000 * (i % 2), 0x77, 4, 0, 0, 1) for i in range(1000)))
    (tmp / "x.raw6").write_bytes(simulate("--count", "1000", out_format="raw6"))
    (tmp / "x.din").write_bytes(b"0 7ffe12\n" * 1000)
    for path, last, has in (
        (segment, 999, "records 0 to 999"),
        (tmp / "x.byu", 999, "records 0 to 999"),
        (tmp / "x.raw6", 999, "records 0 to 999"),
        (tmp / "x.din", 1000, "lines 1 to 1000"),
    ):
        given = ("-I", path.suffix[1:]) if path.suffix in (".byu", ".din") else ()
        one_line(buscap("dump", *given, "--records", "99999999-", path)[1], f"no record matches; the input has {has}")
        text, err = buscap("dump", *given, "-p", "--records", f"{last}-", path)
        equal((text.count("\n"), err), (1, ""), "the last one")
    for options, has in (
        (["--from", "2001-02-03T04:05:06Z", "--to", "2001-02-03T04:05:07Z"], "the input is from 20"),
        (["--epoch", "3"], "the input has only epoch 0"),
        (["--from", "@9223372036854775807"], "the input is from @"),
        (["--proc", "7"], "the input has processors 0"),
        (["--type", "STOPCLKACK"], "the input has types "),
    ):
        err = buscap("dump", *options, segment)[1].splitlines(True)[-1]
        one_line(err, "no record matches", has)
        for first, last in re.findall(r"from (\S+) to (\S+)", err):  # can be pasted; without a clock rate, a chunk has one time
            equal(buscap("dump", "-p", "--from", first, segment)[0].count("\n"), 1000, first)
            equal(buscap("dump", "-p", "--to", last, segment)[0].count("\n"), 999 if last[0] == "@" else 0, last)
    for command, addr, has in (("find", "7000", "pages with references are 00005000 and 0000e000"), ("dump", "f0000000", "addresses 00005000 to ")):
        one_line(buscap(command, "-I", "byu", *(["--addr", addr] if command == "dump" else [addr]), tmp / "x.byu")[1], has)
    one_line(buscap("find", "2000000", segment)[1], "pages with references are ")
    # A pipe can't be read again.
    equal(buscap("dump", "-I", "din", "--records", "5-", data=b"0 7ffe12\n")[1], "buscap dump: no record matches\n")
    (tmp / "short.din").write_bytes(b"0 7ffe12\n")
    text, err = buscap("dump", "-I", "din", "--records", "1000-", tmp / "x.din", tmp / "short.din")
    equal((text.count("\n"), err), (1, ""), "the last one of several files")


def test_formats_as_json_are_those_of_the_list():
    rows = [json.loads(line) for line in buscap("formats", "-j")[0].splitlines()]
    listed = re.findall(r"^([r -])([w -]) (\S+) +(\S.*)$", re.sub(r"^ {18}.*\n", "", buscap("formats")[0], flags=re.M), re.M)
    kinds = [("-", "w") if not r["can_read"] else (" ", " ") if "layout" in r else ("r", "w" if r["can_write"] else "-") for r in rows]
    equal([(*kind, r["name"], r["summary"]) for kind, r in zip(kinds, rows)], [row for row in listed if row[2] != "Layouts"])
    equal(buscap("formats", "pin")[0].rstrip("\n"), next(r["layout"] for r in rows if r["name"] == "pin"))
    equal(next(r["write_options"] for r in rows if r["name"] == "bcp1"), ["map", "seed"])


def test_dump_n_is_the_start_of_what_is_selected(tmp):
    segment = make_segments(tmp, simulate("--count", "1000"))[0]
    (tmp / "x.byu").write_bytes(simulate("--count", "1000", out_format="byu"))
    (tmp / "x.bcp1").write_bytes(simulate("--count", "1000", out_format="bcp1"))
    (tmp / "x.din").write_bytes(b"".join(b"%d 7ffe12\n" % (i % 2) for i in range(1000)))
    for path, given in ((segment, ()), (tmp / "x.byu", ("-I", "byu")), (tmp / "x.bcp1", ()), (tmp / "x.din", ("-I", "din"))):
        for options in ((), ("--type", "write"), ("--records", "100-")):
            whole = buscap("dump", *given, "-p", *options, path)[0].splitlines()
            for n in (1, 7, 100):
                equal(buscap("dump", *given, "-p", *options, "-n", n, path, path)[0].splitlines(), whole[:n], f"{path} {options}")


def test_ctrl_c_names_the_incomplete_file(tmp):
    data = simulate("--count", "300000")
    # A partial segment exists once its first chunk is complete.
    for form, name in (("csv", "x.csv"), ("segment", "x.byu.lz4")):
        out = tmp / name
        left = tmp / f"{name}.partial"
        with harness.popen([BUSCAP, "convert", "-O", form, "-o", out, "-"], stdin=subprocess.PIPE,
                           stderr=subprocess.PIPE) as process:
            process.stdin.write(data)
            process.stdin.flush()
            harness.wait_until(left.exists, "the output is open")
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=harness.TIMEOUT_S)
        equal(process.returncode, -signal.SIGINT, "exit code")
        assert left.exists() and not out.exists()
        equal(err.decode(), f"buscap convert: {out}: interrupted; incomplete data is in {left}\n", "message")
    # A sealed file is not mentioned.
    equal(buscap("convert", "-O", "csv", "-o", tmp / "y.csv", "-", data=data)[1].count("interrupted"), 0)


def test_an_output_that_is_not_whole_does_not_get_its_name(tmp):
    out, left = tmp / "x.byu", tmp / "x.byu.partial"
    record = struct.pack("<I4BI", 0x10, 1, 4, 0, 0, 0xFFFFFFFF)
    (tmp / "source").write_bytes(record)
    for argv, data in ((["convert", "-I", "xdin"], b"r 10 4\nw 123456789 4\n"), (["cut", "-I", "byu", tmp / "source", tmp / "missing"], b"")):
        _, err = buscap(*argv, "-O", "byu", "-o", out, data=data, code=1)
        assert err.endswith(f"{out}: not created; incomplete data (12 bytes) is in {left}\n"), err
        equal((left.read_bytes()[:8], out.exists()), (record[:8], False))


def test_a_full_disk_has_one_message_with_what_was_written(tmp):
    (tmp / "source").write_bytes(simulate("--count", "600000"))
    with harness.SmallDisk(tmp, "1M") as disk:
        for argv, unit in ((["convert", "-O", "csv"], "byte"), (["cut", "-O", "byu"], "byte"), (["merge", "-O", "csv", tmp / "source"], "byte"),
                           (["cut", "-O", "segment"], "record")):
            out, left = disk / "x", disk / "x.partial"
            _, err = buscap(*argv, "-o", out, tmp / "source", code=1)
            written = re.fullmatch(f"buscap {argv[0]}: {out}: write error: No space left on device; "
                                   f"incomplete data \\(([0-9,]+) {unit}s\\) is in {left}\n", err.splitlines(True)[0])
            assert written, err
            equal((err.count(str(out)), out.exists()), (2, False), err)
            got = left.stat().st_size if unit == "byte" else json.loads(buscap("info", "--json", left, code=None)[0])["records"]
            equal(int(written[1].replace(",", "")), got, "what was written")
            left.unlink()


def test_a_closed_pipe_is_not_an_error(tmp):
    path = tmp / "x.raw6"
    path.write_bytes(simulate("--count", "300000", out_format="raw6"))
    for argv in (["dump", path], ["sim", "-O", "bcp1", "--count", "50000000"]):
        process = harness.popen([BUSCAP, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout.read(100)
        process.stdout.close()
        equal(process.wait(harness.TIMEOUT_S), 0, "exit code")
        equal(process.stderr.read(), b"", "messages")
        process.stderr.close()


def test_a_live_pipe_is_printed_at_once_up_to_the_last_number():
    for form in ("bcp1", "raw6", "byu"):
        data = simulate("--count", "1000", out_format=form)
        for options in ((), ("--records", "-9")):
            with harness.popen([BUSCAP, "dump", "-I", form, *options, "-"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE) as process:
                process.stdin.write(data)
                process.stdin.flush()
                assert process.stdout.readline(), form
                if options:
                    equal(process.stdout.read().count(b"\n"), 9, form)
                    equal(process.wait(harness.TIMEOUT_S), 0)


# ---- dump


def test_byu_and_its_dialects_are_printed_like_b2a(tmp):
    for dialect in ("byu", "byu16", "byu24", "byu-be"):
        data, expected = reference.make_byu(random.Random(3), 9000, dialect, strange=0.2, no_delta=0.01)
        path = tmp / dialect
        path.write_bytes(data)
        records = bytes(expected.records)
        equal(buscap("dump", "-I", dialect, path)[0], byu_text(records), dialect)
        text = "".join(byu_line(records[12 * i : 12 * i + 12], str(expected.ticks[i])) for i in range(100, 5001))
        equal(buscap("dump", "-I", dialect, "-t", "tick", "--records", "100-5000", path)[0], text, f"{dialect}, with ticks")
        low, high = expected.ticks[200], expected.ticks[300]
        text = "".join(byu_line(records[12 * i : 12 * i + 12]) for i in range(9000) if low <= expected.ticks[i] <= high)
        equal(buscap("dump", "-I", dialect, "--from", f"@{low}", "--to", f"@{high + 1}", path)[0], text, f"{dialect}, by ticks")


# What b2a prints after the address, from its source.
B2A = {0x00: "FETCH\t\t", 0x01: "MEMREAD\t", 0x02: "MEMREADINV\t", 0x03: "MEMWRITE\t", 0x10: "IOREAD\t\t",
       0x11: "IOWRITE\t", 0x20: "DEFERREPLY\t", 0x21: "INTA\t\t", 0x22: "CNTRLAGNTRES\t", 0x23: "BRTRACEREC\t",
       0x31: "SHUTDOWN\t", 0x32: "FLUSH\t\t", 0x33: "HALT\t\t", 0x34: "SYNC\t\t", 0x35: "FLUSHACK\t",
       0x36: "STOPCLKAK\t", 0x37: "SMIACK\t\t"}


def test_a_time_beyond_2_to_the_64_ticks_is_an_error(tmp):
    path = tmp / "a.byu24"
    times = [5, (1 << 64) - 8, 3, 2, 1, (1 << 64) - 9, 0xFFFFFFFF]
    path.write_bytes(b"".join(struct.pack("<QBBBB4xQ", at, 1, 8, 0, 0, time) for at, time in enumerate(times)))
    text, err = buscap("dump", "-I", "byu24", "-t", "tick", path, code=3)
    equal([line.split("\t")[-1] for line in text.splitlines()],
          ["5", str((1 << 64) - 3), str((1 << 64) - 1), str((1 << 64) - 1)], "ticks")
    wanted = [f"offset {24 * n}, 24 bytes: record {n}: its time leads beyond 2^64 ticks; skipped" for n in (2, 4, 5)]
    equal([line.split(": ", 2)[2] for line in err.splitlines()], wanted, "dump")
    text, err = buscap("convert", "-I", "byu24", "-O", "csv", path, code=3)
    equal(len(text.splitlines()), 1 + 4, "rows")
    equal([line.split(": ", 2)[2] for line in err.splitlines() if "record" in line], wanted, "convert")


def b2a_line(addr, kind, size, attr, proc, time):
    return f"{addr:08x} {B2A.get(kind, '')}{size:2d}\t{attr:02x}\t{proc}\t{time}\n"


def test_b2a_is_reproduced(tmp):
    dice = random.Random(9)
    records = [(dice.randrange(1 << 32), kind, other, other ^ 0x5A, 255 - other, time)
               for time in (0, 1, 9, 10, 0x7FFFFFFF, -0x80000000, -2, -1)
               for kind in range(256) for other in (0, 9, 10, 99, 100, 255)]
    path = tmp / "trace.byu"
    path.write_bytes(b"".join(struct.pack("<IBBBBi", *record) for record in records))
    equal(buscap("dump", "--b2a", "-I", "byu", path)[0], "".join(b2a_line(*r) for r in records), "every type")
    path.write_bytes(struct.pack("<QBBBB4xQ", 0x123456789, 1, 8, 0, 0, 5_000_000_000))
    equal(buscap("dump", "--b2a", "-I", "byu24", path)[0], "123456789 MEMREAD\t 8\t00\t0\t5000000000\n", "64 bits")


def test_a_byte_order_mark_is_not_part_of_the_text(tmp):
    text = "1 clk IT (1) 00008000 fa000000 A svc : NOP\n2 clk R r0 00000001\n"
    for content in (text, "0 1a0\n1 200\n", "I  8000,4\n L 100,4\n"):
        plain, marked = tmp / "plain", tmp / "marked"
        plain.write_text(content)
        marked.write_bytes(b"\xef\xbb\xbf" + content.encode())
        equal(buscap("dump", marked), buscap("dump", plain), "dump")
        first = buscap("convert", "-O", "csv", marked)
        equal(first, buscap("convert", "-O", "csv", plain), "convert")


def test_a_torn_tail_is_reported_and_the_rest_printed(tmp):
    data, expected = reference.make_byu(random.Random(4), 1000)
    path = tmp / "x"
    for over in range(1, 12):
        path.write_bytes(data + data[:over])
        text, err = buscap("dump", path, code=3)
        equal(text, byu_text(expected.records), "the whole records")
        one_line(err, f"{over} byte", "torn: left over after 1000 whole records")
        assert "1,000 whole records" in buscap("verify", path, code=3)[0]
        equal(json.loads(buscap("info", "--json", path, code=3)[0])["torn_bytes"], over, "info's torn_bytes")


def test_a_compressed_trace_is_decompressed_and_checked(tmp):
    data, expected = reference.make_byu(random.Random(5), 20000)
    packed = run("lz4", "-1", "-B4", "-c", data=data).stdout
    path = tmp / "x.lz4"
    path.write_bytes(packed)
    equal(buscap("dump", path)[0], byu_text(expected.records), "whole")
    path.write_bytes(packed[: len(packed) // 2])
    text, err = buscap("dump", path, code=3)
    assert byu_text(expected.records).startswith(text[: text.rfind("\n") + 1]) and len(text) > 100000
    assert "the compressed data is damaged or torn here" in err
    assert "damaged or torn LZ4 data" in buscap("verify", path, code=3)[0]


class Seen(reference.Expected):
    """The dump of a stream, sample by sample."""

    def __init__(self, options=None):
        super().__init__(reference.Options(keep_invalid=True))
        self.lines = []
        self.of_epoch = []

    def sample(self, address, be, control, proc, tick):
        super().sample(address, be, control, proc, tick)
        self.lines.append(sample_line(address, be, control))
        self.of_epoch.append(self._epoch)

    def text(self):
        out = []
        epoch = None
        for i in range(len(self.lines) + 1):
            gaps = gaps_at(self.gaps, i) + "# trigger\n" * self.triggers.count(i)
            now = self.of_epoch[i] if i < len(self.lines) else self._epoch
            if i < len(self.lines) or gaps:
                out.append(f"# epoch {now}\n" if epoch not in (None, now) else "")
                epoch = now
            out.append(gaps)
            out.extend(self.lines[i : i + 1])
        return "".join(out)


def see(data):
    before, reference.Expected = reference.Expected, Seen
    try:
        return reference.decode_bcp1(data)
    finally:
        reference.Expected = before


def test_bcp1_is_printed_with_its_gaps_in_place(tmp):
    path = tmp / "x.bcp1"
    for seed in harness.some(range(60), 3):
        rng = random.Random(seed)
        data, _ = reference.make_bcp1(rng, reference.random_features(rng, rng.choice((0, 1, 300, 2000))))
        if not data:
            continue
        path.write_bytes(data)
        seen = see(data)
        missing = any(cause == "sequence" for _, cause, _, _ in seen.gaps)
        code = 3 if seen.skipped_bytes or missing else 0
        text, err = buscap("dump", "-I", "bcp1", path, code=code)
        equal(text.splitlines(), seen.text().splitlines(), f"seed {seed}")
        equal(err != "", code != 0, "messages")
        equal(buscap("dump", "-I", "bcp1", "--plain", path, code=code)[0], "".join(seen.lines), f"seed {seed}, plain")
        text, err = buscap("verify", "-I", "bcp1", path, code=code)
        assert f" {len(seen.lines):,} sample" in text.splitlines()[-1], text
        skipped = sum(int(n) for n in re.findall(r"offset \d+, (\d+) byte", text))
        equal(skipped, seen.skipped_bytes, f"seed {seed}: bytes in no frame")
        info = json.loads(buscap("info", "-I", "bcp1", "--json", path, code=code)[0])
        equal((info["samples"], info["torn_bytes"], info["gaps"], info["epochs"]),
              (len(seen.lines), seen.skipped_bytes, len(seen.gaps), seen.epoch_count if info["frames"] else 0), "info")


# ---- segments


def recorded_text(recorded):
    """The expected dump of a recording."""
    out = []
    begins = {at: epoch for epoch, at in recorded.epochs.items() if at != 0}
    for i in range(len(recorded.records) // 12 + 1):
        out.append(f"# epoch {begins[i]}\n" if i in begins else "")
        out.append(gaps_at(recorded.gaps, i) + "# trigger\n" * recorded.triggers.count(i))
        if 12 * i < len(recorded.records):
            out.append(byu_line(recorded.records[12 * i : 12 * i + 12]))
    return "".join(out)


def shared_segments(name, make_data, *options):
    """Like make_segments(), but recorded once in a run. Copy what you change."""
    directory = harness.shared(name, lambda new: make_segments(new, make_data(), *options))
    return sorted(directory.glob("rec*/*.byu.lz4"))


def random_epochs():
    """Five epochs of random samples, which become chunks of more than 64 KiB."""
    rng = random.Random(17)
    stream = b""
    for _ in range(5):
        payload = bytearray(rng.randbytes(8 * 16000))
        for field in (0, 1, 4):  # small addresses and all bytes: lz4 stores what it can't make smaller
            payload[field::8] = bytes(16000)
        stream += reference.encode_header(reference.AGENT | reference.LAST, 0, 0, 16000, 0, 0) + payload
        stream += struct.pack("<I", zlib.crc32(payload))
    return stream


def random_segment():
    """A segment of five chunks, each an epoch, as a list."""
    return shared_segments("cli-random", random_epochs)


def chunks_text(chunks):
    """The expected dump of some chunks of random_segment()."""
    return "".join((f"# epoch {chunk.info['epoch']}\n" if chunk.info["epoch"] else "") + byu_text(chunk.records)
                   for chunk in chunks)


def recorded_segments():
    """Segments of several chunks with gaps, a trigger and two epochs."""
    features = reference.Features(samples=16000, frame=200, agents=2, p_loss=0.05, p_jump=0.02, p_epoch=0.05,
                                  p_trigger=0.05, p_pause=0.0001)
    paths = shared_segments("cli-recorded", lambda: reference.make_bcp1(random.Random(11), features)[0], "-b", "filesize:25K")
    assert len(paths) >= 3, paths
    return paths, reference.read_segments(paths)


def test_segments_in_any_order_are_one_recording(tmp):
    paths, recorded = recorded_segments()
    wanted = recorded_text(recorded).splitlines()
    got = buscap("dump", *paths)[0].splitlines()
    # Events at one position can be in a different order: gaps of the previous chunk come first.
    equal([line for line in got if line[0] != "#"], [line for line in wanted if line[0] != "#"], "the records")
    equal(sorted(line for line in got if line[0] == "#"), sorted(line for line in wanted if line[0] == "#"), "the rest")
    records = [recorded.records[at : at + 12] for at in range(0, len(recorded.records), 12)]
    equal(buscap("dump", "--b2a", *paths)[0], "".join(b2a_line(*struct.unpack("<IBBBBi", r)) for r in records), "as b2a")
    shuffled = paths[:]
    random.Random(1).shuffle(shuffled)
    equal(buscap("dump", *shuffled)[0].splitlines(), got, "in another order")
    renamed = []
    for i, path in enumerate(reversed(paths)):
        renamed.append(tmp / f"part{i}")
        renamed[-1].write_bytes(path.read_bytes())
    equal(buscap("dump", *renamed)[0].splitlines(), got, "under other names")
    whole = tmp / "whole"
    whole.write_bytes(b"".join(path.read_bytes() for path in paths))
    equal(buscap("dump", whole)[0].splitlines(), got, "in one file")
    equal(buscap("dump", "-", data=whole.read_bytes())[0].splitlines(), got, "from standard input")
    equal(buscap("dump", "-I", "byu", whole)[0], byu_text(recorded.records), "decompressed by lz4")
    # With a damaged header, the chunks identify the segment.
    hurt = bytearray(renamed[1].read_bytes())
    hurt[40] ^= 1
    renamed[1].write_bytes(hurt)
    text, err = buscap("dump", *renamed, code=3)
    equal(text.splitlines(), got, "with a damaged header")
    one_line(err, "segment header is damaged")


def test_missing_and_repeated_segments_are_reported():
    paths, recorded = recorded_segments()
    whole = buscap("dump", *paths)[0]
    text, err = buscap("dump", *paths, paths[1], code=3)
    equal(text, whole, "a segment given twice")
    chunks = recorded.segments[1].chunks
    one_line(err, f"buscap dump: {paths[1]}: ", f": {len(chunks)} chunks from chunk 0 on "
             f"({sum(chunk.info['records'] for chunk in chunks):,} records) are duplicates; skipped")
    text, err = buscap("dump", data=paths[2].read_bytes() + paths[1].read_bytes(), code=3)
    one, two = ([line for line in out.splitlines() if line[0] != "#"]
                for out in (text, buscap("dump", paths[1], paths[2])[0]))
    equal(sorted(one), sorted(two), "records of segments in reverse")
    equal(err.count(" is out of order: "), len(chunks), err)
    again, err = buscap("dump", data=b"".join(paths[n].read_bytes() for n in (2, 1, 1)), code=3)
    equal(again, text, "segments in reverse, and one of them again")
    equal(err.count("duplicates; skipped"), 1, err)
    text, err = buscap("dump", "--records", "0-99", paths[0], paths[0], code=3)
    equal(text, buscap("dump", "--records", "0-99", paths[0])[0], "a range of a segment given twice")
    one_line(err, "chunk 0 (", "is a duplicate; skipped")
    text, err = buscap("dump", paths[0], paths[2], code=3)
    assert re.search(r"^# gap: [\d,]+ samples? lost \(damaged\)$", text, re.MULTILINE)
    one_line(err, paths[2], " missing: segment 1 is not here")
    # The chunk after the hole may have nothing else to print.
    text, err = buscap("dump", "--addr", "ffffffff", paths[0], paths[2], code=3)
    assert re.search(r"^# gap: [\d,]+ samples? lost \(damaged\)$", text, re.MULTILINE), text
    one_line(err, paths[2], " missing: segment 1 is not here")


def test_verify_reports_a_hole_between_segments(tmp):
    paths, recorded = recorded_segments()
    paths = [pathlib.Path(shutil.copy(path, tmp)) for path in paths]
    counts = [sum(chunk.info["records"] for chunk in segment.chunks) for segment in recorded.segments]
    wanted = f"{paths[2]}: {counts[1]:,} records missing: segment 1 is not here\n"
    for order in ([paths[0], paths[2]], [paths[2], paths[0]], [paths[0], paths[2], paths[0], paths[2]]):
        text, _ = buscap("verify", *order, code=3)
        equal(text.count("is not here"), 1, text)
        assert wanted in text and text.count(": ok: ") == len(order), text
    buscap("verify", *reversed(paths))
    mixed = tmp / "mixed.bcp1"
    mixed.write_bytes(simulate("--count", "10"))
    buscap("verify", paths[0], mixed, paths[2], paths[1])
    buscap("verify", *paths[1:])  # as after the rule files:N
    buscap("verify", paths[1], paths[1])
    # Also with an unrelated file in between, and without the header.
    other = tmp / "other.bcp1"
    other.write_bytes(simulate("--count", "10"))
    assert wanted in buscap("verify", paths[0], other, paths[2], code=3)[0]
    hurt = bytearray(paths[2].read_bytes())
    hurt[40] ^= 1
    paths[2].write_bytes(hurt)
    assert wanted in buscap("verify", paths[0], paths[2], code=3)[0]


def verify_json(*argv, code=0, **options):
    """Runs verify --json. Returns the damages, the results of the files, the totals and the messages."""
    out, err = buscap("verify", "--json", *argv, code=code, **options)
    rows = [json.loads(line) for line in out.splitlines()]
    damages = [row["damage"] for row in rows if "damage" in row]
    results = [row for row in rows if "file" in row]
    equal(rows[-1], {"end": {"files": len(results), "ok": sum(row["ok"] for row in results),
                             "damaged_places": rows[-1]["end"]["damaged_places"]}}, "the totals")
    equal(len(damages) + len(results) + 1, len(rows), out)
    return damages, results, rows[-1]["end"]["damaged_places"], err


def test_verify_as_json_has_the_facts_of_its_text(tmp):
    paths, recorded = recorded_segments()
    paths = [pathlib.Path(shutil.copy(path, tmp)) for path in paths]
    chunks = recorded.segments[0].chunks
    good = {"file": str(paths[0]), "format": "segment", "ok": True, "damaged_places": 0, "sealed": True, "segments": 1,
            "chunks": len(chunks), "records": sum(chunk.info["records"] for chunk in chunks),
            "gaps": sum(event.kind == "gap" for chunk in chunks for event in chunk.events)}
    whole = paths[0].read_bytes()
    equal(verify_json(paths[0]), ([], [good], 0, ""), "a good file")
    equal(verify_json("-", data=whole), ([], [{**good, "file": "standard input"}], 0, ""), "a pipe")
    torn = tmp / "torn.byu.lz4"
    torn.write_bytes(whole[: chunks[-1].offset + 20])
    damages, (result,), count, _ = verify_json(torn, code=3)
    equal([(d["file"], d["offset"], d["bytes"]) for d in damages], [(str(torn), chunks[-1].offset, 20)], "a torn file")
    equal((result["ok"], result["sealed"], result["chunks"], count), (False, False, len(chunks) - 1, 1), result)
    torn.write_bytes(whole[: chunks[-1].offset])
    damages, (result,), _, _ = verify_json(torn, code=3)
    equal((damages, result["ok"], result["sealed"], result["damaged_places"]), ([], False, False, 0), "without an index")
    hurt = bytearray(whole)
    hurt[chunks[1].offset + 300] ^= 1
    torn.write_bytes(hurt)
    damages, (result,), count, _ = verify_json(torn, code=3)
    text = buscap("verify", torn, code=3)[0].splitlines()
    equal([f"{d['file']}: offset {d['offset']}" + (f", {d['bytes']} bytes" if d["bytes"] else "") + f": {d['what']}" for d in damages],
          text[:-1], "the damages")
    equal((result["damaged_places"], count, result["sealed"]), (len(damages), len(damages), True), result)
    # The segment after a hole is whole.
    damages, results, _, _ = verify_json(paths[0], paths[2], code=3)
    missing = f"{sum(chunk.info['records'] for chunk in recorded.segments[1].chunks):,} records missing: segment 1 is not here"
    equal(damages, [{"file": str(paths[2]), "offset": None, "bytes": 0, "what": missing}], "a hole")
    equal([(row["ok"], row["damaged_places"]) for row in results], [(True, 0)] * 2, "its neighbours")


def test_verify_as_json_of_other_formats_and_of_what_is_none(tmp):
    bcp1, byu, din, none, empty = (tmp / name for name in ("x.bcp1", "x.byu", "x.din", "none", "empty"))
    bcp1.write_bytes(simulate("--count", "1000"))
    byu.write_bytes(simulate("--count", "10", out_format="byu") + b"torn")
    din.write_bytes(b"0 7ffe12\n" * 10 + b"0 zebra\n")
    none.write_bytes(b"no trace at all\n")
    empty.write_bytes(b"")
    equal(verify_json(bcp1)[1], [{"file": str(bcp1), "format": "bcp1", "ok": True, "damaged_places": 0, "samples": 1000,
                                  "frames": 2, "gaps": 0, "has_last_frame": True}], "bcp1")
    packed = tmp / "x.gz"
    packed.write_bytes(gzip.compress(bcp1.read_bytes())[:3000])
    damages, (result,), count, _ = verify_json(packed, code=3)
    equal(damages[-1], {"file": str(packed), "offset": None, "bytes": 0, "what": "damaged or torn gzip data"}, "compressed")
    equal((result["ok"], result["damaged_places"], count), (False, len(damages), len(damages)), result)
    damages, (result,), _, _ = verify_json(byu, code=3)
    equal(damages, [{"file": str(byu), "offset": 120, "bytes": 4, "what": "torn record"}], "byu")
    equal(result, {"file": str(byu), "format": "byu", "ok": False, "damaged_places": 1, "records": 10}, "byu")
    damages, (result,), count, err = verify_json("-I", "din", din, code=3)
    equal((damages, count), ([], 1), "what is malformed is an error")
    assert f"{din}: line 11, column " in err, err
    equal(result, {"file": str(din), "format": "din", "ok": False, "damaged_places": 1, "entries": 10, "lines_kept": 0}, "din")
    _, results, _, err = verify_json(bcp1, none, code=1)
    equal(results[1], {"file": str(none), "format": None, "ok": False}, "an unknown format")
    one_line(err, "unknown format")
    equal(verify_json(empty, code=3)[1], [{"file": str(empty), "format": None, "ok": False}], "an empty file")
    _, results, _, err = verify_json(tmp / "missing", bcp1, code=1)
    equal([row["file"] for row in results], [str(bcp1)], "without the missing file")
    one_line(err, "missing: can't open: No such file or directory")


def test_a_segment_without_header_is_recognised(tmp):
    paths = random_segment()
    whole = paths[0].read_bytes()
    segment = reference.read_segments(paths).segments[0]
    records = [chunk.records for chunk in segment.chunks]
    wanted = b"".join(records[1:])
    path = tmp / "hurt"
    out = tmp / "out.byu.lz4"
    assert segment.chunks[1].offset > 65536, "no chunk starts in the part that is probed"
    for hurt in (bytes(2000) + whole[2000:], whole[2000:], random.Random(1).randbytes(2000) + whole[2000:]):
        path.write_bytes(hurt)
        assert f"{path}: segment" in buscap("info", path, code=3)[0]
        assert f"{len(records) - 1:,} good chunks" in buscap("verify", path, code=3)[0]
        equal(buscap("dump", "-p", path, code=3)[0], byu_text(wanted), "dump")
        buscap("recover", path, "-o", out, code=3)
        equal(harness.lz4_dc([out]), wanted, "recovered")
        out.unlink()
    # With a damaged end too, the format is unknown, but recover does not need it.
    path.write_bytes(bytes(70000) + whole[70000:-40])
    one_line(buscap("verify", path, code=1)[1], "unknown format")
    buscap("recover", path, "-o", out, code=3)
    assert wanted.endswith(harness.lz4_dc([out])) and out.stat().st_size > 10000
    # One wrong byte invalidates the trailer.
    path.write_bytes(bytes(2000) + whole[2000:-1] + bytes([whole[-1] ^ 1]))
    one_line(buscap("info", path, code=1)[1], "unknown format")


def test_info_and_verify_describe_a_segment():
    paths, recorded = recorded_segments()
    first = 0
    out = buscap("info", "--json", *paths)[0].splitlines()
    equal(len(out), len(paths), "one line per file")
    for text, path, segment in zip(out, paths, recorded.segments):
        info = json.loads(text)
        records = b"".join(chunk.records for chunk in segment.chunks)
        n = len(records) // 12
        gaps = [event for chunk in segment.chunks for event in chunk.events if event.kind == "gap"]
        wanted = {
            "file": str(path), "format": "segment", "sealed": True, "segments": 1, "damaged_places": 0,
            "recording": segment.header["recording"], "segment": segment.header["segment"],
            "host": segment.header["host"], "source": segment.header["source"], "mapping": segment.header["mapping"],
            "chunks": len(segment.chunks), "records": n, "bytes": path.stat().st_size, "record_bytes": 12 * n,
            "first_record": first, "last_record": first + n - 1, "first_tick": recorded.ticks[first],
            "last_tick": recorded.ticks[first + n - 1],
            "processors": sorted({records[at + 7] for at in range(0, 12 * n, 12)}),
            "types": [TYPES.get(t, "%02x" % t) for t in sorted({records[at + 4] for at in range(0, 12 * n, 12)})],
            "epochs": len({chunk.info["epoch"] for chunk in segment.chunks if chunk.records}),
            "first_wall_ns": segment.chunks[0].info["wall_ns"],
            "triggers": sum(event.kind == "trigger" for chunk in segment.chunks for event in chunk.events),
        }
        equal({name: info[name] for name in wanted}, wanted, "info")
        equal(info["gaps"], len(gaps), "gaps")
        equal(info["lost"], sum(gap.value for gap in gaps), "lost")
        first += n
        plain = buscap("info", path)[0]
        assert f"records     {n:,} (" in plain and segment.header["recording"] in plain, plain
        # The same from a pipe, without the index.
        piped = json.loads(buscap("info", "--json", "-", data=path.read_bytes())[0])
        info["file"] = piped["file"]
        equal(piped, info, "from standard input")
        counts = ", ".join(f"{count:,} {word}{'' if count == 1 else 's'}" for count, word in
                           ((len(segment.chunks), "chunk"), (n, "record"), (len(gaps), "gap")))
        equal(buscap("verify", path), (f"{path}: ok: sealed, {counts}\n", ""), "verify")


def test_info_exits_with_3_if_samples_are_missing(tmp):
    frame = reference.encode_payload([(0x100000, 0xFF, 8 << 4, 1000)] * 10)
    stream = b"".join(reference.encode_header(0, 0, i, 10, 1_000_000 * i, 0) + frame for i in (0, 2))
    text, err = buscap("info", "-", data=stream, code=3)
    assert "1, an unknown number of samples lost" in text, text
    one_line(err, "frames are missing")
    _, err = buscap("dump", "-", data=stream, code=3)
    one_line(err, "frames are missing here")


def test_info_counts_each_chunk_once_and_each_recording_by_its_own_clock(tmp):
    first, second = make_segments(tmp, simulate("--count", "100000"), "-b", "filesize:200K", "--set",
                                  "pipeline.flush=1h")
    (other,) = make_segments(tmp, simulate("--count", "1000"))

    def info(*parts):
        data = b"".join(path.read_bytes() for path in parts)
        joined = json.loads(buscap("info", "--json", "-", data=data)[0])
        return {name: joined[name] for name in ("chunks", "records", "first_record", "last_record", "first_tick",
                                                "last_tick", "epochs", "duration_ticks", "gaps", "first_wall_ns")}

    whole, more = info(first, second), info(other)
    equal((whole["first_record"], whole["last_record"], whole["epochs"]), (0, whole["records"] - 1, 1), "one recording")
    for parts in ((second, first), (first, second, first), (second, first, second)):
        equal(info(*parts), whole, f"segments {[path.name for path in parts]}")
    sums = {name: whole[name] + more[name] for name in ("chunks", "records", "epochs", "duration_ticks")}
    equal(info(first, second, other, other), {**whole, "last_tick": more["last_tick"], **sums}, "two recordings")
    equal(info(other, first, second),
          {**whole, "first_tick": more["first_tick"], "first_wall_ns": more["first_wall_ns"], **sums}, "two recordings")


def test_a_damaged_chunk_is_reported_and_the_others_printed(tmp):
    paths = random_segment()
    segment = reference.read_segments(paths).segments[0]
    chunk = segment.chunks[2]
    hurt = bytearray(paths[0].read_bytes())
    hurt[chunk.offset + chunk.header_bytes + 5000] ^= 4
    path = tmp / "hurt"
    path.write_bytes(hurt)
    n = chunk.info["records"]
    text, err = buscap("verify", path, code=3)
    assert f"{path}: offset {chunk.offset}, " in text and f"chunk 2 ({n:,} records): wrong checksum" in text, text
    assert text.splitlines()[-1].startswith(f"{path}: damaged: sealed, {len(segment.chunks) - 1} good chunks, "), text
    text, err = buscap("dump", path, code=3)
    records = [b.records for b in segment.chunks]
    gap = f"# gap: {n:,} samples lost (damaged)\n"
    wanted = chunks_text(segment.chunks[:2]) + chunks_text(segment.chunks[3:]).replace("\n", f"\n{gap}", 1)
    equal(text.splitlines(), wanted.splitlines(), "dump")
    assert f"offset {chunk.offset}" in err and f"{n:,} records missing from record {segment.chunks[2].info['first_record']} on" in err, err

    out = tmp / "out.byu.lz4"
    _, err = buscap("recover", path, "-o", out, code=3)
    equal(path.read_bytes(), bytes(hurt), "the input")
    assert f"{len(records) - 1} chunks, " in err and f"{n:,} records missing, marked by gaps" in err, err
    buscap("verify", out)
    equal(run("lz4", "-t", out).returncode, 0, "lz4 -t")
    equal(harness.lz4_dc([out]), b"".join(records[:2] + records[3:]), "records")
    assert f"# gap: {n:,} samples lost (damaged)" in buscap("dump", out)[0]
    assert "--mode" in buscap("recover", "--mode", "tail", path, "-o", tmp / "other", code=2)[1]


def test_a_partial_is_read_and_recovered_under_its_final_name(tmp):
    paths = random_segment()
    segment = reference.read_segments(paths).segments[0]
    data = paths[0].read_bytes()
    last = segment.chunks[-1]
    partial = tmp / (paths[0].name + ".partial")
    out = tmp / paths[0].name
    records = [chunk.records for chunk in segment.chunks]

    # Cut between two chunks, the segment is just open; within one, it is torn. Nobody writes it: its end is lost.
    killed = "# gap: an unknown number of samples lost (crash)\n"
    partial.write_bytes(data[: last.offset])
    equal(buscap("dump", partial)[0], chunks_text(segment.chunks[:-1]) + killed, "dump of an open segment")
    equal(buscap("convert", "-O", "csv", partial)[0].count("\n"), len(records) + len(b"".join(records[:-1])) // 12,
          "lines of CSV: the columns, records, new epochs and the gap")
    first, last_epoch = segment.chunks[0].info["epoch"], segment.chunks[-2].info["epoch"]
    assert first != last_epoch, "epochs"
    for epoch in (first, last_epoch):
        cut = buscap("cut", "-e", str(epoch), "-O", "csv", partial)[0]
        equal(cut.count(",crash,"), int(epoch == last_epoch), f"the end is in the last epoch, not in {epoch}")
    assert "not sealed" in buscap("verify", partial, code=3)[0]
    equal(json.loads(buscap("info", "--json", partial)[0])["sealed"], False, "info")
    _, err = buscap("recover", partial, "-o", out)
    equal(harness.lz4_dc([out]), b"".join(records[:-1]), "recovered")
    buscap("verify", out)
    one_line(buscap("recover", partial, "-o", out, code=1)[1], "already exists")
    out.unlink()

    partial.write_bytes(data[: last.offset + 1000])
    text, err = buscap("dump", partial, code=3)
    equal(text, chunks_text(segment.chunks[:-1]) + killed, "dump of a torn segment")
    one_line(err, f"offset {last.offset}, 1000 bytes", "torn")
    _, err = buscap("recover", partial, "-o", out, code=3)
    assert "torn" in err and f"{len(records)} chunks" in err, err  # the last one has the gap
    equal(harness.lz4_dc([out]), b"".join(records[:-1]), "recovered")
    equal(sorted(p.name for p in tmp.glob("*.recovering")), [], "files left")
    cut = tmp / "cut.byu.lz4"
    cut.write_bytes(data[: last.offset])
    one_line(buscap("dump", cut, code=3)[1], "no index")


# ---- sim


def test_sim_writes_one_stream_in_three_formats(tmp):
    for options in (["--count", "0"], ["--count", "1"], ["--seed", "9", "--count", "20000", "--agents", "3"],
                    ["--seed", "3", "--count", "20000", "--loss", "0.2"]):
        bcp1 = simulate(*options)
        raw6 = simulate(*options, out_format="raw6")
        byu = simulate(*options, out_format="byu")
        expected = reference.decode_bcp1(bcp1)
        equal(expected.received, int(options[options.index("--count") + 1]), "samples")
        equal(byu, bytes(expected.records), f"byu of {options}")
        samples = b""
        at = 0
        while at < len(bcp1):
            n = reference.decode_header(bcp1, at)[3]
            samples += b"".join(bcp1[i : i + 6] for i in range(at + 32, at + 32 + 8 * n, 8))
            at += 32 + (8 * n + 4 if n else 0)
        equal(raw6, samples, f"raw6 of {options}")
        out = tmp / "out"
        buscap("sim", "-O", "bcp1", "-o", out, *options)
        equal(out.read_bytes(), bcp1, "output to a file")
        for name, wanted in (("x.bcp1", bcp1), ("x.raw6", raw6), ("x.byu", byu)):
            buscap("sim", "-o", tmp / name, *options)
            equal((tmp / name).read_bytes(), wanted, name)
    equal(simulate(), simulate("--seed", "1", "-n", "1M", "--agents", "1"), "the defaults, and 1M")


def test_counts_have_singular_and_plural(tmp):
    path = tmp / "x.bcp1"
    path.write_bytes(simulate("--count", "1000"))
    text, _ = buscap("info", path)
    assert re.search(r"^  gaps +0$", text, re.MULTILINE) and "lost" not in text, text
    one = bytearray(simulate("--count", "1"))
    one[34] ^= 1
    path.write_bytes(one)
    text, _ = buscap("verify", path, code=3)
    assert "frame 0 (1 sample): " in text, text


def test_dump_names_its_columns_in_a_terminal(tmp):
    records = "# addr  \ttype\tsize\tattr\tproc\tdelta"
    for kind, options, wanted in (("byu", (), records), ("byu", ("-t", "tick", "--map", "pc"), records + "\ttick\tname"),
                                  ("bcp1", ("-t", "tick"), "# addr   be cycle tick"), ("byu", ("-p",), None),
                                  ("byu", ("--b2a",), None), ("byu", ("-j",), None), ("din", (), None)):
        path = tmp / f"a.{kind}"
        path.write_bytes(b"0 1000\n" if kind == "din" else simulate("--count", "5", out_format=kind))
        plain = run(BUSCAP, "dump", "-I", kind, *options, path).stdout.decode()
        equal(harness.in_terminal(BUSCAP, "dump", "-I", kind, *options, path),
              plain if wanted is None else f"{wanted}\n{plain}", f"{kind} {options}")
    # Once for files with the same columns, and not if there are no records.
    text = harness.in_terminal(BUSCAP, "dump", tmp / "a.byu", tmp / "a.byu", tmp / "a.bcp1", tmp / "a.byu")
    equal([line for line in text.splitlines() if line[0] == "#"], [records, "# addr   be cycle", records], "names")
    equal(harness.in_terminal(BUSCAP, "dump", "--proc", "77", tmp / "a.byu"), "", "nothing matches")


@pytest.mark.parametrize("size, nearest", (("1000", "1024"), ("1M", "1048576"), ("3", "4"), ("2P", "")))
def test_a_size_that_must_be_a_power_of_two(size, nearest):
    done = run(need(BUSCAP), "stats", "--page", size, data=b"")
    equal(done.returncode, 2, "exit code")
    one_line(done.stderr.decode(), f"--page {size}: ", nearest)


@pytest.mark.parametrize("command", (["dump"], ["cut"], ["convert", "-O", "csv"], ["stats"]))
def test_without_a_file_a_terminal_is_not_waited_for(command):
    try:
        ours, terminal = pty.openpty()
    except OSError as why:
        pytest.skip(f"no terminal: {why}")
    done = run(need(BUSCAP), *command, stdin=terminal)
    os.close(terminal)
    os.close(ours)
    equal(done.returncode, 2, "exit code")
    one_line(done.stderr.decode(), f"buscap {command[0]}: no file given; see buscap {command[0]} --help")


def test_sim_refuses_to_write_to_a_terminal():
    try:
        main_end, terminal = pty.openpty()
    except OSError as why:
        pytest.skip(f"no terminal: {why}")
    done = run(need(BUSCAP), "sim", "-O", "byu", stdout=terminal)
    equal(done.returncode, 2, "exit code")
    one_line(done.stderr.decode(), "terminal", "-o")
    os.close(terminal)
    os.close(main_end)


def test_progress_is_shown_on_a_terminal_and_erased_for_errors(tmp):
    for command in (["convert", "-O", "csv"], ["merge", "-I", "laplace-text"], ["stats"]):
        try:
            ours, terminal = pty.openpty()
        except OSError as why:
            pytest.skip(f"no terminal: {why}")
        fifo = tmp / f"{command[0]}.fifo"
        os.mkfifo(fifo)
        other = tmp / "other.txt"
        other.write_bytes(b"r ff 4 1000 0\n")
        files = [fifo, other] if command[0] == "merge" else [fifo]
        if command[0] != "merge":
            command += ["-I", "laplace-text"]
        process = harness.popen([need(BUSCAP), *command, *files], stdout=subprocess.DEVNULL, stderr=terminal)
        try:
            os.close(terminal)
            source = open(fifo, "wb")
            tick = 0
            shown = b""
            os.set_blocking(ours, False)

            def feed():
                nonlocal tick, shown
                source.write(b"".join(b"r %x 4 1000 0\n" % (tick + i) for i in range(5000)))
                source.flush()
                tick += 5000
                try:
                    shown += os.read(ours, 65536)
                except BlockingIOError:
                    pass
                return re.search(rb"\r[0-9.]+ [kM]?B, [0-9.]+ [kM]?B/s\x1b\[K", shown)

            harness.wait_until(feed, "the progress line")
            source.write(b"no such line\n")
            source.close()
            os.set_blocking(ours, True)
            while True:
                try:
                    more = os.read(ours, 65536)
                except OSError: # EIO: the other end is closed
                    break
                shown += more
                if not more:
                    break
            equal(process.wait(harness.TIMEOUT_S), 3, "exit code")
            # The progress line is erased before the error message, and at the end.
            assert re.search(rb"\r\x1b\[Kbuscap \w+: [^\n]*: line \d+, column 1: [^\n]*\r\n", shown), shown[-300:]
            assert shown.rfind(b"B/s\x1b[K") < shown.rfind(b"\r\x1b[K"), shown[-300:]
        finally:
            process.kill()
            process.wait()
            os.close(ours)
