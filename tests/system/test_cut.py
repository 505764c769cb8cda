"""buscap cut, and writing segments, compared with tests/support/cut_model.py."""

import csv
import datetime
import json
import os
import pathlib
import random
import resource
import struct
import subprocess
import time

import pytest

import harness
import reference
from cut_model import (READS, SELECTORS, Recording, Selection, buscap, can_write, fields, gaps_among, own_gaps, read,
                      record_file, rich_stream, utc)
from harness import BUSCAP, BUSCAPD, equal, need, run, segments

NO_DELTA = 0xFFFFFFFF


def cut(source, out, *options, code=0, **more):
    """Cuts to a segment. Returns its contents and the messages."""
    _, err = buscap("cut", *options, source, "-o", out, code=code, **more)
    if run(BUSCAP, "verify", out).returncode != 0:
        raise AssertionError(run(BUSCAP, "verify", out).stdout)
    return read(out), err


def check_cut(source, wanted, got):
    """Checks that the output has the selected records, their times and gaps."""
    kept = [r for r in source.records if wanted.matches(r)]
    equal(fields(got.records), fields(kept), f"records by {wanted.options}")
    gaps = [g for g in source.gaps if source.records and wanted.is_in_range(source.records[g.record])]
    equal(own_gaps(got), gaps_among(gaps, kept), f"gaps by {wanted.options}")
    return kept


def test_every_selector_alone_and_combined(tmp):
    chosen = empty = 0
    seeds = harness.some(range(4), 4)
    for seed in seeds:
        path = record_file(tmp, rich_stream(seed), clock_hz=66000000)
        source = read(path)
        rng = random.Random(seed)
        combinations = [(name,) for name in SELECTORS]
        combinations += [tuple(rng.sample(SELECTORS, rng.randrange(2, 6))) for _ in range(14)]
        for i, which in enumerate(combinations):
            wanted = Selection(rng, source, which)
            got, err = cut(path, tmp / f"{seed}-{i}.byu.lz4", *wanted.options)
            kept = check_cut(source, wanted, got)
            equal("no record matches" in err, not kept, err)
            chosen += bool(kept)
            empty += not kept
    assert 4 * chosen > 30 * len(seeds), (chosen, empty)


@pytest.mark.parametrize("tool", ["cut", "merge"])
def test_a_daemon_that_starts_leaves_the_open_output_alone(tmp, tool):
    run(BUSCAPD, "--once", "--source", "sim:rate=max,count=600k", "-o", tmp / "source")
    path = segments(tmp / "source")[0]
    out = tmp / "rec" / "part-00000.byu.lz4"
    out.parent.mkdir()
    os.mkfifo(tmp / "fifo")
    inputs = [tmp / "fifo"] if tool == "cut" else [path, tmp / "fifo"]
    with subprocess.Popen([BUSCAP, tool, "-o", out, *inputs], stderr=subprocess.PIPE) as process:
        with open(tmp / "fifo", "wb") as fifo:
            fifo.write(path.read_bytes()[:-1000])
            fifo.flush()
            harness.wait_until(lambda: list(out.parent.glob("*.partial")), "the output is open", timeout=20)
            done = run(harness.BUSCAPD, "--once", "--source", "sim:rate=max,count=1000", "-o", out.parent)
            equal(done.returncode, 0, done.stderr.decode())
            assert f"{out}.partial: left alone: another program is writing it" in done.stderr.decode(), done.stderr
            assert "delete it" not in done.stderr.decode(), done.stderr
            fifo.write(path.read_bytes()[-1000:])
        err = process.stderr.read().decode()
    equal((process.returncode, list(out.parent.glob("*.damaged"))), (0, []), err)
    equal(run(BUSCAP, "verify", out).returncode, 0, "the output")


def test_cutting_a_cut_combines_the_selections(tmp):
    path = record_file(tmp, rich_stream(10), clock_hz=1000)
    source = read(path)
    rng = random.Random(1)
    for i in harness.some(range(8), 3):
        first, second = Selection(rng, source, ("types",)), Selection(rng, source, ("ticks", "epochs"))
        one, _ = cut(path, tmp / f"a{i}.byu.lz4", *first.options)
        two, _ = cut(tmp / f"a{i}.byu.lz4", tmp / f"b{i}.byu.lz4", *second.options)
        equal(fields(two.records), fields(r for r in source.records if first.matches(r) and second.matches(r)), "both")
        equal(one.header["metadata"]["cut_from"], source.header["recording"], "cut_from")
        equal(two.header["metadata"]["cut_from"], f"{one.header['recording']} {source.header['recording']}",
              "cut_from of the second")
        equal(two.header["metadata"]["cut"].endswith(one.header["metadata"]["cut"]), True, "cut of the second")


def test_a_cut_without_a_selection_adds_none_to_the_metadata(tmp):
    path = record_file(tmp, rich_stream(10, 100))
    one, _ = cut(path, tmp / "a.byu.lz4")
    assert "cut" not in one.header["metadata"] and "cut_from" in one.header["metadata"], one.header
    cut(path, tmp / "b.byu.lz4", "-n", "0-")
    two, _ = cut(tmp / "b.byu.lz4", tmp / "c.byu.lz4")
    equal(two.header["metadata"]["cut"], "records=0-")


def test_a_cut_is_a_new_recording_with_its_origin_in_the_metadata(tmp):
    path = record_file(tmp, rich_stream(11), clock_hz=66000000)
    source = read(path)
    got, _ = cut(path, tmp / "x.byu.lz4", "--type", "read", "-n", "10-500", "--addr", "0-")
    metadata = got.header["metadata"]
    equal(metadata, {**source.header["metadata"], "cut_from": source.header["recording"],
                     "cut": "type=read records=10-500 addr=0-"}, "metadata")
    assert got.header["recording"] != source.header["recording"]
    for name in ("label", "host", "mapping", "source", "board"):
        equal(got.header[name], source.header[name], name)
    equal((got.header["sequence"], got.header["boot_id"]), (0, None), "not a recording of buscapd")
    equal(got.records[0].number, 0, "numbers restart at 0")
    # The record numbers have no holes: dropped records are not lost.
    out, err = buscap("dump", tmp / "x.byu.lz4")
    equal(err, "", "messages of dump")
    # The time of day of a record is unchanged, to the ns.
    kept = [r for r in source.records if r.type in READS and 10 <= r.number <= 500]
    for a, b in zip(got.records, kept):
        assert abs(a.wall_hz - b.wall_hz) <= 66000000, (a, b)


def test_times_of_day_have_many_forms(tmp):
    path = record_file(tmp, rich_stream(12), clock_hz=1000000)
    source = read(path)
    begin = source.records[0].wall_hz // 1000000
    third = source.records[len(source.records) // 3].wall_hz // 1000000
    moment = datetime.datetime.fromtimestamp(third // 10**9, datetime.timezone.utc)
    part = ".%09d" % (third % 10**9)
    east = moment.astimezone(datetime.timezone(datetime.timedelta(hours=5, minutes=30)))
    words = [moment.strftime("%Y-%m-%dT%H:%M:%S") + part + "Z", moment.strftime("%Y-%m-%d %H:%M:%S") + part + "z",
             east.strftime("%Y-%m-%dT%H:%M:%S") + part + "+05:30",
             datetime.datetime.fromtimestamp(third // 10**9).strftime("%Y-%m-%d %H:%M:%S") + part,
             "+%dns" % (third - begin), "+%d.%09ds" % divmod(third - begin, 10**9),
             "+%d.%09d" % divmod(third - begin, 10**9)]
    wanted = fields(r for r in source.records if r.wall_hz >= third * 1000000)
    for i, word in enumerate(words):
        got, _ = cut(path, tmp / f"{i}.byu.lz4", "--from", word)
        equal(fields(got.records), wanted, word)
        rest, _ = cut(path, tmp / f"r{i}.byu.lz4", "--to", word)
        equal(len(rest.records) + len(wanted), len(source.records), f"--to {word}")


def test_without_a_clock_rate_times_of_day_select_chunks(tmp):
    path = record_file(tmp, rich_stream(13))
    source = read(path)
    got, err = cut(path, tmp / "x.byu.lz4", "--from", "+0s")
    assert "clock rate unknown" in err and err.count("\n") == 1, err
    equal(fields(got.records), fields(source.records), "all")


def test_a_gap_at_the_border_belongs_to_the_next_record(tmp):
    path = record_file(tmp, rich_stream(14))
    source = read(path)
    inner = [g for g in source.gaps if g.number == g.record and 0 < g.record < len(source.records) - 1]
    assert inner
    for i, gap in enumerate(harness.some(inner[:6], 3)):
        here = [g for g in source.gaps if g.record == gap.record]
        for first, last, is_kept in ((gap.record, gap.record, True), (gap.record - 1, gap.record - 1, False),
                                  (gap.record, gap.record + 1, True)):
            got, _ = cut(path, tmp / f"{i}-{first}-{last}.byu.lz4", "-n", f"{first}-{last}")
            equal(any(g.cause == gap.cause and g.number == 0 for g in got.gaps), is_kept, f"{first}-{last}: {here}")


def test_marks_and_triggers_are_kept(tmp):
    features = reference.Features(samples=2000, frame=50, p_trigger=0.3)
    path = record_file(tmp, reference.make_bcp1(random.Random(3), features)[0])
    whole = buscap("dump", path)[0].count(b"# trigger")
    assert whole > 3
    _, err = buscap("cut", "--addr", "0-0", path, "-o", tmp / "x.byu.lz4")
    equal(buscap("dump", tmp / "x.byu.lz4")[0].count(b"# trigger"), whole, "triggers")
    equal(err, "buscap cut: no record matches; only gaps, marks and triggers were written\n")


def bytes_read(*argv):
    """Returns how many bytes a command read."""
    process = harness.popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    err = process.stderr.read().decode()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    try:
        text = pathlib.Path(f"/proc/{process.pid}/io").read_text()
    except OSError:
        pytest.skip("/proc/PID/io can't be read")
    finally:
        process.wait()
    equal(process.returncode, 0, err)
    return int(text.split("rchar:")[1].split()[0])


def long_recording(tmp):
    """Records six chunks of random records, each with its own addresses."""
    rng = random.Random(5)
    data = bytearray()
    for number in range(6):
        chunk = bytearray(struct.pack("<I4BI", number << 28, number == 4, 4, 3, number, 0) * 87381)
        for field in (0, 1, 2, 8):  # of the address and the delta
            chunk[field::12] = rng.randbytes(87381)
        data += chunk
    data[8:12] = struct.pack("<I", NO_DELTA)
    # With this fast clock, the chunks' times of day don't overlap although the file is recorded quickly.
    return record_file(tmp, bytes(data), "byu", clock_hz=10**13, options=("--set", "pipeline.flush=1h"))


def test_only_chunks_that_can_match_are_read(tmp):
    path = long_recording(tmp)
    size = path.stat().st_size
    base = bytes_read(BUSCAP, "cut", "-n", "99999999-", path, "-O", "xdin")
    idle = bytes_read(BUSCAP, "--version")  # what any program reads at startup
    assert base - idle < size / 10, f"{base - idle} of {size} bytes read without a match"
    chunk, number = reference.read_segment(path).chunks[4], 4 * 87381 + 1000
    tick = chunk.info["first_tick"] + sum(memoryview(chunk.records).cast("I")[5 : 3 * 1001 : 3])
    wall_ns = chunk.info["wall_ns"] + (tick - chunk.info["first_tick"]) * 10**9 // 10**13
    for options in (["-n", f"{number}-{number + 9}"], ["--from", f"@{tick}", "--to", f"@{tick + 101}"],
                    ["--proc", "4"], ["--addr", "40000000-4fffffff"], ["--type", "read"],
                    ["--from", utc(wall_ns), "--to", utc(wall_ns + 1)],
                    ["--from", f"@{tick}", "--to", f"@{tick + 1}"]):
        bytes_used = bytes_read(BUSCAP, "cut", *options, path, "-O", "xdin") - base
        # The chunk, and also the first one if it has an anchor, because it has events.
        assert bytes_used < 2.5 * size / 6, f"{options}: {bytes_used} bytes read of {size}"
        assert bytes_used > 0.9 * size / 6, f"{options}: {bytes_used} bytes read of {size}"


def test_a_pipe_and_several_segments_give_the_same(tmp):
    stream = tmp / "stream.bcp1"
    stream.write_bytes(rich_stream(15, 6000))
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{stream}", "-o", tmp, "-b", "filesize:20K")
    assert done.returncode in (0, 3, 4), done.stderr
    paths = harness.segments(tmp)
    data = b"".join(path.read_bytes() for path in paths)
    for options in (["-n", "100-4000"], ["--type", "write"], ["--addr", "0-7fffffff", "--epoch", "0"]):
        out = [tmp / f"{n}.x.lz4" for n in "abc"]
        buscap("cut", *options, "-o", out[0], data=data)
        buscap("cut", *options, "-o", out[1], *reversed(paths))
        one, two = read(out[0]), read(out[1])
        equal(fields(one.records), fields(two.records), options)
        equal(own_gaps(one), own_gaps(two), options)
        for path in out[:2]:
            path.unlink()


@pytest.mark.asan
def test_a_segment_that_is_listed_twice_is_cut_once(tmp):
    path = record_file(tmp, rich_stream(4), clock_hz=1000)
    for options in ([], ["-n", "100-"], ["--type", "read"]):
        once, _ = buscap("cut", *options, "-O", "csv", path)
        twice, err = buscap("cut", *options, "-O", "csv", path, path, path, code=3)
        equal(twice, once, f"{options}")
        assert "is a duplicate; skipped" in err, err


def test_a_missing_segment_is_reported_if_selected_and_becomes_a_gap(tmp):
    run(BUSCAPD, "--once", "--source", "sim:rate=max,count=180000,seed=3", "-o", tmp / "rec", "-b",
        "filesize:200K", "--set", "pipeline.flush=1h")
    first, gone, third = segments(tmp / "rec")
    begin, end = (info["first_record"] for info in harness.info([gone, third]))
    tick = int(buscap("dump", "-p", "-t", "tick", "-n", f"{end + 9}", third)[0].split()[-1])
    for options in (("-n", f"{begin - 5}-{end + 5}"), ("-n", f"{begin - 5}-"), ("--to", f"@{tick + 1}"),
                    ("--type", "fetch"), ("-n", f"{begin + 1}-{begin + 2}")):
        out, err = buscap("cut", *options, first, third, "-O", "csv", code=3)
        assert f"{end - begin:,} records missing: segment 1 is not here" in err, (options, err)
    out, err = buscap("cut", "-n", f"0-{begin - 1}", first, third, "-O", "csv")
    assert err == "", err
    out, err = buscap("cut", "-n", f"{end}-", "--from", f"@{tick}", first, third, "-O", "csv")
    for reader in (["cut", "-n", f"{begin - 5}-{end + 5}"], ["convert"]):
        path = tmp / f"{reader[0]}.byu.lz4"
        buscap(*reader, *(("-O", "segment") if reader[0] == "convert" else ()), first, third, "-o", path, code=3)
        gaps = buscap("info", path)[0]
        assert b"1 damaged" in gaps, gaps
        assert f"{end - begin} sample".encode() in gaps, gaps


def test_a_cut_can_be_replayed(tmp):
    path = record_file(tmp, rich_stream(16), clock_hz=5000)
    got, _ = cut(path, tmp / "x.byu.lz4", "--type", "write")
    again = tmp / "again"
    again.mkdir()
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{tmp / 'x.byu.lz4'}", "-o", again)
    equal(done.returncode, 4, done.stderr.decode())  # its gaps are losses of the new recording, too
    replayed = read(harness.segments(again)[0])
    equal(fields(replayed.records), fields(got.records), "records")
    equal(own_gaps(replayed), own_gaps(got), "gaps")


# ---- other formats


def xdin(count, seed=1):
    rng = random.Random(seed)
    return [(rng.choice("rwi"), rng.randrange(1 << 16), rng.choice((1, 2, 4, 8, 64))) for _ in range(count)]


def xdin_text(rows):
    return "".join("%s %x %x\n" % row for row in rows).encode()


def test_text_is_cut_by_line_address_and_type(tmp):
    rows = xdin(2000)
    for options, matches in (
            (["-n", "100-"], lambda n, row: n >= 100),
            (["--addr", "4000-4fff"], lambda n, row: row[1] <= 0x4FFF and row[1] + row[2] > 0x4000),
            (["--addr", "0x40ff"], lambda n, row: row[1] <= 0x40FF < row[1] + row[2]),
            (["--addr", "-fff", "--type", "write"], lambda n, row: row[1] <= 0xFFF and row[0] == "w"),
            (["--type", "read,FETCH"], lambda n, row: row[0] in "ri")):
        wanted = [row for n, row in enumerate(rows, 1) if matches(n, row)]
        assert wanted
        equal(buscap("cut", "-I", "xdin", *options, data=xdin_text(rows))[0], xdin_text(wanted), options)


def byu_ticks(data):
    tick = 0
    ticks = []
    for at in range(8, len(data), 12):
        time = struct.unpack_from("<I", data, at)[0]
        tick += time if time != NO_DELTA else 0
        ticks.append(tick)
    return ticks


def test_plain_records_keep_their_absolute_ticks(tmp):
    can_write("byu")
    data, _ = reference.make_byu(random.Random(7), 5000)
    ticks = byu_ticks(data)
    path = tmp / "x.byu"
    path.write_bytes(data)
    for options, matches in ((["--type", "write"], lambda n, r: r[1] == 3), (["-n", "700-4000"],
                           lambda n, r: 700 <= n <= 4000), (["--proc", "1-2"], lambda n, r: r[4] in (1, 2)),
                           (["--from", "@10000", "--to", "@20001"], lambda n, r: 10000 <= ticks[n] <= 20000)):
        out, _ = buscap("cut", "-I", "byu", *options, path)
        rows = [(n, struct.unpack_from("<I4BI", data, 12 * n)) for n in range(5000)]
        kept = [n for n, row in rows if matches(n, row)]
        equal([out[at : at + 8] for at in range(0, len(out), 12)], [data[12 * n : 12 * n + 8] for n in kept], options)
        equal(byu_ticks(out), [ticks[n] for n in kept], f"ticks by {options}")


def test_cutting_everything_gives_the_same_bytes(tmp):
    can_write("byu")
    data, _ = reference.make_byu(random.Random(8), 3000, no_delta=0.01)
    path = tmp / "x.byu"
    path.write_bytes(data)
    equal(buscap("cut", "-I", "byu", path)[0], data, "byu")
    for dialect in ("byu16", "byu24", "byu-be"):
        data, _ = reference.make_byu(random.Random(8), 3000, dialect)
        equal(buscap("cut", "-I", dialect, data=data)[0], data, dialect)


def test_an_unknown_delta_stays_unknown(tmp):
    can_write("byu")
    times = [NO_DELTA, 5, NO_DELTA, 7, 9, 11]
    data = b"".join(struct.pack("<I4BI", i, 1 if i in (2, 3) else 3, 4, 0, 0, time) for i, time in enumerate(times))
    out, _ = buscap("cut", "-I", "byu", "--type", "write", data=data)
    equal([struct.unpack_from("<I", out, at)[0] for at in range(8, len(out), 12)], [NO_DELTA, 5, NO_DELTA, 11], "times")


def test_a_delta_too_long_for_its_field_is_reported(tmp):
    can_write("byu")
    times = [0, 0xFFFFFFF0, 0xFFFFFFF0, 3]
    data = b"".join(struct.pack("<I4BI", i, 1 if i == 1 else 3, 4, 0, 0, time) for i, time in enumerate(times))
    out, err = buscap("cut", "-I", "byu", "--type", "write", data=data)
    equal([struct.unpack_from("<I", out, at)[0] for at in range(8, len(out), 12)], [0, NO_DELTA, 3], "times")
    assert "1 delta across dropped records" in err, err
    # A segment uses an anchor instead.
    buscap("cut", "-I", "byu", "--type", "write", "-O", "segment", "-o", tmp / "x.byu.lz4", data=data)
    equal([r.tick for r in read(tmp / "x.byu.lz4").records], [0, 2 * 0xFFFFFFF0, 2 * 0xFFFFFFF0 + 3], "ticks")


def test_bcp1_is_cut_like_its_recording(tmp):
    data = rich_stream(17)
    (tmp / "x.bcp1").write_bytes(data)
    path = record_file(tmp, data)
    for i, options in enumerate((["--type", "write"], ["--proc", "1-3"], ["--addr", "0-3fffffff", "-e", "0-1"])):
        buscap("cut", *options, path, "-o", tmp / f"a{i}.byu.lz4")
        buscap("cut", "-I", "bcp1", *options, tmp / "x.bcp1", "-O", "segment", "-o", tmp / f"b{i}.byu.lz4", code=None)
        equal(fields(read(tmp / f"b{i}.byu.lz4").records), fields(read(tmp / f"a{i}.byu.lz4").records), options)


def record_at(tmp, tick, clock_hz=1000):
    """Records ten reads and writes whose times start at a tick."""
    data = b"".join(struct.pack("<I4BI", i, 1 + i % 2 * 2, 4, 0, 0, 50 if i else tick) for i in range(10))
    return record_file(tmp, data, "byu", clock_hz=clock_hz)


def test_deltas_count_from_tick_0_where_another_recording_starts(tmp):
    low, high = record_at(tmp, 70), record_at(tmp, 90000)
    for order in ((low, high), (high, low)):
        first = [read(path).records[1].tick for path in order]
        wanted = [first[0], *[100] * 4, first[1], *[100] * 4]
        data = b"".join(path.read_bytes() for path in order)
        rows = csv.DictReader(buscap("cut", "--type", "write", "-O", "csv", data=data)[0].decode().splitlines())
        equal([int(row["delta"]) for row in rows], wanted, "deltas")
    for form, layout in (("byu", "8xI"), ("byu24", "16xQ")):
        out, err = buscap("cut", "--type", "write", "-O", form, data=data)
        equal([time for time, in struct.iter_unpack("<" + layout, out)], wanted, f"times in {form}")
        equal(err, "", "messages")


def test_deltas_count_from_tick_0_where_a_late_chunk_starts(tmp):
    run(BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=90000,seed=6", "-o", tmp, "-b", "filesize:4K",
        "--set", "pipeline.flush=1h")
    first, second = segments(tmp)
    recorded = reference.read_segments([first, second])
    begin = recorded.chunks[1].info["first_record"]
    records = Recording(recorded).records
    wanted = []
    for part in (records[begin:], records[:begin]):
        ticks = [r.tick for r in part if r.type == 3]
        wanted += [b - a for a, b in zip([0, *ticks], ticks)]
    for form, layout in (("byu", "8xI"), ("byu24", "16xQ")):
        out, err = buscap("cut", "--type", "write", "-O", form, data=second.read_bytes() + first.read_bytes(), code=3)
        equal([time for time, in struct.iter_unpack("<" + layout, out)], wanted, f"times in {form}")
        assert "out of order" in err and "too long" not in err, err


CIS501 = b"""1 48d1de -1 -1 13 - - -         0            0       48d1e2            0 SET      ADD
1 48d1e2 -1  5 45 - - L      -264  7fffe7ff048       48d1e9            0 CMP      LOAD
2 48d1e2 -1  5 45 - - -      -264            0       48d1e9            0 CMP      CMP
1 48d1f9 -1 -1 -1 - T -        54            0       48d1fb       48d231 JMP      JMP_IMM
1 48d231  3  4 -1 W - S         0      12ff228       48d234            0 MOV      STORE
"""
TARMAC = b"""100 clk cpu0 IT (135) 00008000 d2a00028 O EL3h_s : MOV      x8,#0x10000
100 clk cpu0 R X8 0000000000010000
110 clk cpu1 IT (136) 00008004 f9420100 O EL3h_s : LDR      x0,[x8,#0x400]
110 clk cpu1 MR8 00010400 01234567_89abcdef
120 clk cpu0 MW4 0000ab34 00000000
"""
LAPLACE = b"r a0 4 9f8e7 9a8b7c6d\nw b0 8 1 1000\nx b5 1 1 1001\n"


def test_instructions_are_selected_by_their_references(tmp):
    for form, text, cases in (
            ("cis501", CIS501, ((["--addr", "7fffe7ff048"], [2]), (["--addr", "48d1e0"], [1]),
                                (["--type", "write"], [5]), (["--type", "fetch"], [1, 2, 4, 5]), (["-n", "3-"], [3, 4, 5]))),
            ("tarmac", TARMAC, ((["--addr", "10407"], [4]), (["--addr", "8003-8004"], [1, 3]), (["--proc", "1"], [3, 4]),
                                (["--from", "@111"], [5]), (["--type", "read,write"], [4, 5]), (["-n", "2"], [2]))),
            ("laplace-text", LAPLACE, ((["--addr", "1007"], [2]), (["--from", "@176"], [2, 3]), (["--type", "read"], [1])))):
        lines = text.splitlines(True)
        for options, wanted in cases:
            out, err = buscap("cut", "-I", form, *options, data=text)
            equal(out.split(), b"".join(lines[n - 1] for n in wanted).split(), f"{form} {options}: {err}")


# ---- segments as output


def test_a_segment_converts_to_an_equal_segment(tmp):
    for seed in (20, 21, 22):
        path = record_file(tmp, rich_stream(seed), clock_hz=77)
        out = tmp / f"{seed}.byu.lz4"
        buscap("convert", path, "-O", "segment", "-o", out)
        a, b = read(path), read(out)
        equal([r[1:] for r in b.records], [r[1:] for r in a.records], "records")
        equal(own_gaps(b), own_gaps(a), "gaps")
        equal(buscap("dump", "-t", "tick", out)[0], buscap("dump", "-t", "tick", path)[0], "dump")
        equal(b.header["metadata"], {"converted_from": a.header["recording"]}, "metadata")
        equal(harness.lz4_dc([out]), harness.lz4_dc([path]), "unchanged records")


def test_a_recording_that_follows_another_has_its_own_epoch_and_times_of_day(tmp):
    low, high = record_at(tmp, 70), record_at(tmp, 90000)
    for name, options, types in (("convert", ["-O", "segment"], {1, 3}), ("cut", ["--type", "write"], {3})):
        for order in ((low, high), (high, low)):
            out = tmp / "x.byu.lz4"
            buscap(name, *options, "-o", out, data=b"".join(path.read_bytes() for path in order))
            got = read(out)
            wanted = [(epoch, r) for epoch, path in enumerate(order) for r in read(path).records if r.type in types]
            equal([(r.epoch, r.tick) for r in got.records], [(epoch, r.tick) for epoch, r in wanted], name)
            for a, (_, b) in zip(got.records, wanted):
                assert abs(a.wall_hz - b.wall_hz) <= 1000, (name, a, b)
            out.unlink()
        buscap(name, *options, high, low, "-o", out)  # sorted by name
        equal([r.epoch for r in read(out).records], [epoch for epoch, _ in wanted], "epochs of two files")
        out.unlink()


def test_a_clock_rate_that_is_given_also_sets_the_times_of_day(tmp):
    path = record_file(tmp, reference.make_byu(random.Random(1), 1000)[0], "byu")
    whole, part = tmp / "whole.byu.lz4", tmp / "part.byu.lz4"
    buscap("convert", "-O", "segment:clock_hz=1000", path, "-o", whole)
    buscap("cut", "--records", "700-", "-O", "segment:clock_hz=1000", path, "-o", part)
    for a, b in zip(read(whole).records[700:], read(part).records, strict=True):
        assert abs(a.wall_hz - b.wall_hz) <= 1000, (a, b)


@pytest.mark.asan
def test_recordings_with_different_clock_rates_are_not_joined(tmp):
    data = b"".join(record_at(tmp, 70, clock_hz).read_bytes() for clock_hz in (1000, 5000))
    for name, options in (("convert", ["-O", "segment"]), ("cut", ["--type", "write"])):
        out = tmp / f"{name}.byu.lz4"
        _, err = buscap(name, *options, "-o", out, data=data, code=1)
        assert "clock rate is 5000 Hz, but that of the records before is 1000 Hz" in err, err
        assert not out.exists()


def test_records_without_a_delta_get_inexact_ticks_as_in_a_recording(tmp):
    data, _ = reference.make_byu(random.Random(9), 3000, no_delta=0.02)
    (tmp / "x.byu").write_bytes(data)
    recorded = read(record_file(tmp, data, "byu"))
    buscap("convert", "-I", "byu", tmp / "x.byu", "-O", "segment", "-o", tmp / "x.byu.lz4")
    made = read(tmp / "x.byu.lz4")
    equal(fields(made.records), fields(recorded.records), "records")
    equal([r.inexact for r in made.records], [r.inexact for r in recorded.records], "inexact")
    equal(harness.lz4_dc([tmp / "x.byu.lz4"]), data, "bytes")


@pytest.mark.asan
def test_a_segment_never_replaces_a_file_or_goes_to_standard_output(tmp):
    path = record_file(tmp, rich_stream(23))
    out = tmp / "x.byu.lz4"
    for taken in (out, tmp / "x.byu.lz4.partial"):
        taken.write_bytes(b"mine")
        for words in (["convert", "-O", "segment"], ["cut"]):
            _, err = buscap(*words, path, "-o", out, code=1)
            assert f"{taken.name} already exists" in err and err.count("\n") == 1, err
        equal(taken.read_bytes(), b"mine", "the existing file")
        taken.unlink()
    equal(sorted(p.name for p in tmp.iterdir() if p.is_file()), [], "no file is left")


@pytest.mark.asan
def test_values_that_do_not_fit_a_record_are_errors(tmp):
    text = b"r 10 4\nw 123456789 4\nr 20 4\n"
    _, err = buscap("convert", "-I", "xdin", "-O", "segment", "-o", tmp / "x", code=1, data=text)
    assert "line 2: address 0x123456789 doesn't fit in the 32 bits" in err, err
    _, err = buscap("convert", "-I", "xdin", "-O", "segment", "-o", tmp / "y", code=1, data=b"r 10 100\n")
    assert "line 1: size of 256 bytes" in err, err
    assert not (tmp / "x").exists() and not (tmp / "y").exists()


def test_bus_samples_become_the_same_segment_as_when_recorded(tmp):
    data, _ = reference.make_raw6(random.Random(2), 4000, reference.Features(p_invalid=0.05))
    (tmp / "x.raw6").write_bytes(data)
    recorded = read(record_file(tmp, data, "raw6"))
    buscap("convert", "-I", "raw6", tmp / "x.raw6", "-O", "segment", "-o", tmp / "x.byu.lz4")
    equal(fields(read(tmp / "x.byu.lz4").records), fields(recorded.records), "records")


def test_references_without_time_take_one_tick_each(tmp):
    rows = xdin(300)
    buscap("convert", "-I", "xdin", "-O", "segment:clock_hz=5", "-o", tmp / "x.byu.lz4", data=xdin_text(rows))
    got = read(tmp / "x.byu.lz4")
    equal([(r.addr, r.size) for r in got.records], [row[1:] for row in rows], "references")
    equal([r.tick for r in got.records], list(range(1, 301)), "ticks")
    equal(got.clock_hz, 5, "clock_hz")
    equal(buscap("convert", tmp / "x.byu.lz4", "-O", "xdin", code=None)[0], xdin_text(rows), "converted back")


def test_an_empty_selection_gives_an_empty_sealed_segment(tmp):
    path = record_file(tmp, rich_stream(24))
    _, err = buscap("cut", "-n", "999999-", path, "-o", tmp / "x.byu.lz4")
    equal(err, "buscap cut: no record matches; the output is empty\n")
    equal(harness.lz4_dc([tmp / "x.byu.lz4"]), b"", "records")
    buscap("verify", tmp / "x.byu.lz4")
    buscap("info", tmp / "x.byu.lz4")
    equal(buscap("dump", tmp / "x.byu.lz4"), (b"", ""), "dump")


# ---- errors


def test_torn_and_damaged_inputs_give_the_intact_parts(tmp):
    path = record_file(tmp, rich_stream(25))
    source = read(path)
    torn = tmp / "torn.byu.lz4"
    data = path.read_bytes()
    torn.write_bytes(data[: len(data) * 2 // 3])
    got, _ = cut(torn, tmp / "a.byu.lz4", "--type", "read", code=3)
    n = len(got.records)
    assert n > 10
    equal(fields(got.records), fields(r for r in source.records if r.type in READS)[:n], "the intact records")
    out, err = buscap("cut", "-I", "xdin", "-n", "1-3", data=b"r 10 4\nr 1g 4\nw 20 4\n", code=3)
    equal(out, b"r 10 4\nw 20 4\n", "lines")
    assert "line 2, column 4" in err, err


@pytest.mark.root
def test_a_full_disk_is_reported_and_leaves_a_partial(tmp):
    run(BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=200000", "-o", tmp / "rec")
    (path,) = segments(tmp / "rec")
    with harness.SmallDisk(tmp, "400K") as disk:
        _, err = buscap("cut", "-n", "0-", path, "-o", disk / "x.byu.lz4", code=1)
        assert "No space left" in err and "not sealed" in err, err
        assert not (disk / "x.byu.lz4").exists()
        buscap("recover", disk / "x.byu.lz4.partial", "-o", tmp / "y.byu.lz4", code=None)
        equal(len(reference.read_segment(tmp / "y.byu.lz4").chunks), 1, "chunks")


def test_an_input_is_not_overwritten(tmp):
    trace = tmp / "x.xdin"
    trace.write_bytes(b"r 10 4\nw 10 4\n")
    for name in (trace, tmp / "link"):
        if name != trace:
            name.symlink_to(trace)
        _, err = buscap("cut", "-I", "xdin", "--type", "write", trace, "-o", name, code=1)
        assert "is also an input" in err, err
        equal(trace.read_bytes(), b"r 10 4\nw 10 4\n", "the input")


@pytest.mark.asan
def test_a_redirected_input_is_not_overwritten(tmp):
    trace = tmp / "x.xdin"
    text = b"r 10 4\nw 10 4\n"
    trace.write_bytes(text)
    other = tmp / "y.xdin"
    other.write_bytes(text)
    for argv in (["convert", "-O", "xdin"], ["cut", "--type", "write"]):
        argv = [BUSCAP, *argv, "-I", "xdin"]
        for more, mode in ((["-o", trace], None), (["-o", tmp / "link"], None), ([], "ab"), ([trace], "ab")):
            if not (tmp / "link").exists():
                os.link(trace, tmp / "link")
            with open(trace, "rb") as source, open(trace if mode else os.devnull, mode or "wb") as out:
                done = run(*argv, *more, stdin=source, stdout=out)
            equal(done.returncode, 1, f"exit code of {argv + more}")
            assert b"also an input" in done.stderr and done.stderr.count(b"\n") == 1, done.stderr
            equal(trace.read_bytes(), text, "the input")
    # Appending to another file is fine.
    with open(trace, "rb") as source, open(other, "ab") as out:
        equal(run(*argv, stdin=source, stdout=out).returncode, 0)
    equal(other.read_bytes(), text + b"w 10 4\n", "another file")


def test_a_file_size_limit_is_reported_once(tmp):
    trace = tmp / "x.xdin"
    trace.write_bytes(b"r 10 4\n" * 100000)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    for argv in (["convert", "-O", "csv", trace, "-o", tmp / "x.csv"], ["sim", "-O", "byu", "-o", tmp / "x.byu"]):
        more = ["-I", "xdin"] if argv[0] == "convert" else []
        done = run(BUSCAP, *argv, *more, preexec_fn=limit)
        equal(done.returncode, 1, f"exit code of {argv}")
        start = f"buscap {argv[0]}: {argv[-1]}:"
        equal(done.stderr.decode(), f"{start} write error: File too large; the file is incomplete\n"
              f"{start} not created; incomplete data is in {argv[-1]}.partial\n", "messages")
    # It is not confused with the maximum size of a segment.
    done = run(BUSCAP, "convert", "-I", "xdin", "-O", "segment", trace, "-o", tmp / "x.byu.lz4", preexec_fn=limit)
    equal(done.returncode, 1, "exit code")
    assert b"write error: File too large" in done.stderr and b"65536" not in done.stderr, done.stderr


def test_a_missing_input_is_reported_and_the_output_not_sealed(tmp):
    paths = [record_file(tmp, rich_stream(i, 300), clock_hz=1000) for i in range(2)]
    for command in (["convert", "-O", "segment"], ["cut", "-n", "0-"]):
        out = tmp / f"{command[0]}.byu.lz4"
        _, err = buscap(*command, paths[0], tmp / "missing", paths[1], "-o", out, code=1)
        assert "can't open" in err and "incomplete: part of the input could not be read" in err and "not sealed" in err, err
        assert not out.exists() and out.with_name(out.name + ".partial").exists()
        _, err = buscap(command[0], "-O", "csv", paths[0], tmp / "missing", paths[1], "-o", tmp / "x.csv", code=1)
        assert f"{tmp / 'x.csv'}: incomplete: part of the input could not be read" in err, err
        rows = (tmp / "x.csv.partial").read_text().count("\n")
        assert rows > sum(len(read(path).records) for path in paths), "all readable records are written"


def test_an_unfinished_segment_has_all_records_before_the_error(tmp):
    text = b"r 1000 4\n" * 1000 + b"r 123456789a 4\n"
    _, err = buscap("convert", "-I", "xdin", "-O", "segment", "-o", tmp / "x.byu.lz4", code=1, data=text)
    assert "line 1001: address 0x123456789a" in err, err
    text, _ = buscap("dump", tmp / "x.byu.lz4.partial", code=None)
    equal(text.count(b"\n"), 1000, "records")


def test_a_file_is_replaced_only_by_a_complete_one(tmp):
    out, link = tmp / "x.byu", tmp / "link.xdin"
    out.write_bytes(b"the old file")
    link.symlink_to(out)
    text = b"r 1000 4\nr 123456789a 4\n"
    _, err = buscap("convert", "-I", "xdin", "-O", "byu", "-o", out, code=1, data=text)
    assert "line 2: address 0x123456789a" in err and f"incomplete data is in {out}.partial" in err, err
    equal(out.read_bytes(), b"the old file", "the old file")
    equal(out.with_name("x.byu.partial").stat().st_size, 12, "the record before the error")
    _, err = buscap("convert", "-I", "xdin", "-O", "byu", "--strict", "-o", out, code=1, data=b"c 0 4\n")
    equal(out.read_bytes(), b"the old file", "the old file")
    # Malformed lines are reported, and the output is complete.
    _, err = buscap("convert", "-I", "xdin", "-O", "byu", "-o", out, code=3, data=b"r 1000 4\nx\n")
    equal(out.stat().st_size, 12, "the good record")
    assert not out.with_name("x.byu.partial").exists()
    # A symbolic link is followed.
    buscap("convert", "-I", "xdin", "-O", "xdin", "-o", link, data=b"r 1000 4\n")
    equal(out.read_bytes(), b"r 1000 4\n", "the target of the link")
    assert link.is_symlink()


def test_times_relative_to_now_and_local_ones(tmp):
    harness.wait_until(lambda: f"{datetime.datetime.now():%H:%M}" != "23:59", "midnight has passed")
    before = time.time()
    stream = reference.make_bcp1(random.Random(3), reference.Features(samples=300, p_pause=0))[0]
    path = record_file(tmp, stream, clock_hz=10**9)
    wall = [r.wall_hz / 10**18 for r in read(path).records]
    assert before < wall[0] and wall[-1] < before + 3600, "it has just been recorded"
    local = datetime.datetime.fromtimestamp(before)
    clock = local.replace(hour=0, minute=1, second=0, microsecond=0).timestamp()
    for word, first in (("-1h", before - 3600), ("-1d", before - 86400), ("-0.001s", time.time() + 3600),
                        ("yesterday", before - 86400), ("now", time.time() + 3600), ("00:01", clock),
                        (f"{local:%Y-%m-%d}", clock - 60), (f"{local:%Y-%m-%d} 00:01", clock),
                        (f"{local:%Y-%m-%dT%H:%M:%S}", int(before)), ("@0", 0)):
        rows = buscap("cut", "--from", word, "-O", "csv", path)[0].count(b"reference,")
        equal(rows, sum(at >= first for at in wall), f"from {word}")
    for first, end in ((5, 5), (0, 0), (0, 1), (5, 6)):
        for options in (["--from", f"@{first}", "--to", f"@{end}"], ["--to", f"@{end}", "--from", f"@{first}"]):
            rows = buscap("cut", *options, "-O", "csv", path)[0].count(b"reference,")
            equal(rows, sum(first <= r.tick < end for r in read(path).records), f"{options}")


def marks_of(path):
    return [json.loads(line) for line in run(BUSCAP, "marks", "--json", path).stdout.splitlines()]


def test_a_gap_after_a_full_chunk_belongs_to_the_next_record(tmp):
    argv = ("--once", "--no-socket", "--source", "sim:rate=max,count=180000", "--set", "pipeline.flush=1h")
    equal(run(BUSCAPD, *argv, "-o", tmp / "rec").returncode, 0)
    (path,) = segments(tmp / "rec")
    chunks = reference.read_segments([path]).segments[0].chunks
    first, lost = (chunk.info["records"] for chunk in chunks[:2])
    equal(first, reference.CHUNK_RECORDS, "a full chunk")
    hurt = bytearray(path.read_bytes())
    hurt[chunks[1].offset + 5000] ^= 4
    (tmp / "hurt").write_bytes(hurt)
    buscap("convert", "-O", "segment", tmp / "hurt", "-o", tmp / "converted.byu.lz4", code=3)
    (gap,) = marks_of(tmp / "converted.byu.lz4")
    equal((gap["number"], gap["tick"], gap["lost"]), (first, chunks[2].info["first_tick"], lost), "the gap")
    got, _ = cut(tmp / "converted.byu.lz4", tmp / "rest.byu.lz4", "--records", f"{first}-")
    equal([(g.record, g.lost) for g in got.gaps], [(0, lost)], "of the records after it")


def test_an_event_has_the_tick_of_the_next_record_in_every_output(tmp):
    path = record_file(tmp, rich_stream(3), clock_hz=66000000)
    wanted = [(mark["kind"], mark["number"], mark["tick"]) for mark in marks_of(path)]
    text, _ = buscap("convert", "-O", "ndjson", path)
    entries = [json.loads(line) for line in text.splitlines()]
    got = [(e["kind"], e["number"], e["tick"]) for e in entries if e["kind"] in ("gap", "mark", "trigger")]
    equal(got, wanted, "events")
    assert len(wanted) > 10, wanted


def test_records_without_times_of_day_start_at_the_time_of_conversion(tmp):
    sample = reference.encode_payload([(0x1000, 0xFF, 8 << 4, 10)] * 10)
    days = 30 * 86400 * 1_000_000
    ticks = enumerate((days, 1000, 0, 5_000_000))
    stream = b"".join(reference.encode_header(0, 0, i, 10, tick, 0) + sample for i, tick in ticks)
    (tmp / "stream").write_bytes(stream)
    before = time.time_ns()
    # Without the second epoch, whose records are all before tick 2000.
    new = tmp / "new.byu.lz4"
    buscap("cut", "--from", "@2000", "-I", "bcp1", "-O", "segment:clock_hz=1000000", tmp / "stream", "-o", new)
    after = time.time_ns()
    (segment,) = harness.info([new])
    path = new.rename(tmp / f"{segment['recording']}-00000.byu.lz4")
    walls = [chunk.info["wall_ns"] for chunk in reference.read_segments([path]).segments[0].chunks]
    equal(len(walls), 2, "epochs")
    assert before <= walls[0] <= walls[1] <= after + 10**6, (before, walls, after)
