"""buscap cut and dump, and writing segments, compared with tests/support/cut_model.py."""

import csv
import datetime
import json
import os
import random
import struct
import subprocess

import pytest

import harness
import reference
from cut_model import (READS, SELECTORS, Selection, buscap, can_write, fields, gaps_among, own_gaps, read, record_file,
                       rich_stream, utc)
from harness import BUSCAP, BUSCAPD, equal, run, segments

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
            assert f"{out}.partial: ignored: another program is writing it" in done.stderr.decode(), done.stderr
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


def test_a_cut_is_a_new_recording_with_its_origin_in_the_metadata(tmp):
    path = record_file(tmp, rich_stream(11), clock_hz=66000000)
    source = read(path)
    got, _ = cut(path, tmp / "x.byu.lz4", "--type", "read", "--records", "10-500", "--addr", "0-")
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


def test_times_of_day_have_many_forms(tmp, monkeypatch):
    """Those of the tools and the page among them; without a zone, they are UTC everywhere on earth."""
    monkeypatch.setenv("TZ", "XXX-13")
    path = record_file(tmp, rich_stream(12), clock_hz=1000000)
    source = read(path)
    begin = source.records[0].wall_hz // 1000000
    third = source.records[len(source.records) // 3].wall_hz // 1000000
    moment = datetime.datetime.fromtimestamp(third // 10**9, datetime.timezone.utc)
    part = ".%09d" % (third % 10**9)
    east = moment.astimezone(datetime.timezone(datetime.timedelta(hours=5, minutes=30)))
    words = [moment.strftime("%Y-%m-%dT%H:%M:%S") + part + "Z", moment.strftime("%Y-%m-%d %H:%M:%S") + part + "z",
             east.strftime("%Y-%m-%dT%H:%M:%S") + part + "+05:30",
             moment.strftime("%Y-%m-%d %H:%M:%S") + part, moment.strftime("%Y-%m-%d %H:%M:%S") + part + " UTC",
             *(f"{moment:%Y-%m-%d %H:%M:%S}{part[:4]}{thin}{part[4:7]}{thin}{part[7:]} UTC " for thin in "\u2009\u202f"),
             f"{moment:%Y-%m-%d %H:%M:%S}{part[:4]} {part[4:7]} {part[7:]}", f"{moment:%Y-%m-%d %H:%M:%S}{part[:4]} {part[4:7]} {part[7:]} UTC",
             east.strftime("%Y-%m-%dT%H:%M:%S") + part + "+0530", east.strftime("%Y-%m-%d %H:%M:%S") + part + " +05:30",
             "%d.%09d" % divmod(third, 10**9), "+%dns" % (third - begin), "+%d.%09ds" % divmod(third - begin, 10**9),
             "+%d.%09d" % divmod(third - begin, 10**9)]
    wanted = fields(r for r in source.records if r.wall_hz >= third * 1000000)
    for i, word in enumerate(words):
        got, _ = cut(path, tmp / f"{i}.byu.lz4", "--from", word)
        equal(fields(got.records), wanted, word)
        rest, _ = cut(path, tmp / f"r{i}.byu.lz4", "--to", word)
        equal(len(rest.records) + len(wanted), len(source.records), f"--to {word}")
    day = f"{moment:%Y-%m-%d}"
    equal(len(cut(path, tmp / "day.byu.lz4", "--to", day + " UTC")[0].records),
          len(cut(path, tmp / "utc.byu.lz4", "--to", day)[0].records), "the date alone")


def test_a_time_is_the_same_in_each_form_at_any_moment(tmp):
    path = record_file(tmp, rich_stream(12), clock_hz=1000000)
    rng = random.Random(48)
    for _ in range(40 if harness.NIGHTLY else 10):
        ns = rng.randrange(10**18, 2 * 10**18) // (step := 10 ** rng.randrange(7)) * step
        moment = datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc)
        zone = datetime.timedelta(minutes=rng.randrange(-23 * 60, 23 * 60))
        local = moment.astimezone(datetime.timezone(zone))
        part = f"{ns % 10**9:09}"
        words = [f"{local:%Y-%m-%dT%H:%M:%S}.{part}{local:%z}", f"{local:%Y-%m-%d %H:%M:%S}.{part} {str(local)[-6:]}",
                 f"{moment:%Y-%m-%d %H:%M:%S}.{part[:3]} {part[3:6]} {part[6:]}", f"{ns // 10**9}.{part}"]
        wanted = utc(ns)
        for word in words:
            done = run(BUSCAP, "cut", "--to", word, "--from", word, path, "-o", tmp / "x.byu.lz4")
            equal(done.returncode, 0, done.stderr.decode())
            equal(read(tmp / "x.byu.lz4").header["metadata"]["cut"], f"to={wanted} from={wanted}", word)
            (tmp / "x.byu.lz4").unlink()


def test_the_first_records_are_those_of_the_whole_cut(tmp):
    data = rich_stream(14)
    path = record_file(tmp, data)
    (tmp / "x.bcp1").write_bytes(data)
    run(BUSCAP, "convert", "-O", "byu", "-o", tmp / "x.tr", path)
    equal((tmp / "x.tr").stat().st_size, 12 * len(read(path).records), "the name x.tr is BYU's")
    rng = random.Random(49)
    for _ in range(20 if harness.NIGHTLY else 5):
        options = rng.choice(([], ["--type", "read"], ["--records", "10-"], ["--addr", "0-7fffffff", "--type", "fetch,write"]))
        for source in (path, tmp / "x.bcp1", tmp / "x.tr"):
            rows = [json.loads(row) for row in buscap("cut", *options, "-O", "ndjson", source, code=None)[0].splitlines()]
            rows = [row for row in rows if row["kind"] == "reference"]
            n = rng.choice((1, rng.randrange(1, len(rows)), len(rows), len(rows) + 1))
            first = [json.loads(row) for row in buscap("cut", *options, "-n", n, "-O", "ndjson", source, code=None)[0].splitlines()]
            equal([row for row in first if row["kind"] == "reference"], rows[:n], (options, n, source.name))


def test_without_a_clock_rate_times_of_day_select_chunks(tmp):
    path = record_file(tmp, rich_stream(13))
    source = read(path)
    got, err = cut(path, tmp / "x.byu.lz4", "--from", "+0s")
    assert "clock rate unknown" in err and err.count("\n") == 1, err
    equal(fields(got.records), fields(source.records), "all")


# ---- other formats


def xdin(count, seed=1):
    rng = random.Random(seed)
    return [(rng.choice("rwi"), rng.randrange(1 << 16), rng.choice((1, 2, 4, 8, 64))) for _ in range(count)]


def test_cutting_everything_gives_the_same_bytes(tmp):
    can_write("byu")
    data, _ = reference.make_byu(random.Random(8), 3000, no_delta=0.01)
    path = tmp / "x.byu"
    path.write_bytes(data)
    equal(buscap("cut", "-I", "byu", path)[0], data, "byu")
    for dialect in ("byu16", "byu24", "byu-be"):
        data, _ = reference.make_byu(random.Random(8), 3000, dialect)
        equal(buscap("cut", "-I", dialect, data=data)[0], data, dialect)


def cut_plain(files, is_kept):
    """A model: the records that are kept, with the ticks since the one kept before. A delta is unknown if a record
    without one was dropped; the first record of a file needs none."""
    for data in files:
        tick = last = 0
        is_lost = False
        for i, (addr, *fields, time) in enumerate(struct.iter_unpack("<I4BI", data)):
            tick += time if time != NO_DELTA else 0
            if is_kept(i, addr):
                yield struct.pack("<I4BI", addr, *fields, time if time == NO_DELTA else NO_DELTA if is_lost else tick - last)
                last, is_lost = tick, False
            elif time == NO_DELTA and i != 0:
                is_lost = True


def test_dropped_plain_records_leave_their_ticks_to_the_next_one(tmp):
    can_write("byu")
    files = [reference.make_byu(random.Random(seed), 3000, no_delta=share)[0] for seed, share in ((8, 0.01), (9, 0.001))]
    for i, data in enumerate(files):
        (tmp / str(i)).write_bytes(data)
    for options, is_kept in ((("--addr", "80000-81fff"), lambda _, addr: 0x80000 <= addr < 0x82000),
                             (("--addr", "80000-fffff"), lambda _, addr: 0x80000 <= addr < 0x100000),
                             (("--records", "5-700"), lambda i, _: 5 <= i <= 700)):
        out, _ = buscap("cut", "-I", "byu", *options, tmp / "0", tmp / "1")
        wanted = list(cut_plain(files, is_kept))
        assert len(wanted) > 10, options
        equal([out[at : at + 12] for at in range(0, len(out), 12)], wanted, options)


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


def test_recordings_with_different_clock_rates_are_not_joined(tmp):
    data = b"".join(record_at(tmp, 70, clock_hz).read_bytes() for clock_hz in (1000, 5000))
    for name, options in (("convert", ["-O", "segment"]), ("cut", ["--type", "write"])):
        out = tmp / f"{name}.byu.lz4"
        _, err = buscap(name, *options, "-o", out, data=data, code=1)
        assert "clock rate changes from 1000 to 5000 Hz" in err, err
        assert not out.exists()


def test_a_segment_never_replaces_a_file_or_goes_to_standard_output(tmp):
    path = record_file(tmp, rich_stream(23))
    out = tmp / "x.byu.lz4"
    for taken in (out, tmp / "x.byu.lz4.partial"):
        taken.write_bytes(b"mine")
        for words in (["convert", "-O", "segment"], ["cut"]):
            _, err = buscap(*words, path, "-o", out, code=1)
            harness.one_line(err, f"{out}: not created: {'it' if taken == out else taken.name} already exists")
        equal(taken.read_bytes(), b"mine", "the existing file")
        taken.unlink()
    equal(sorted(p.name for p in tmp.iterdir() if p.is_file()), [], "no file is left")


def test_the_name_of_the_output_tells_its_format(tmp):
    path = record_file(tmp, rich_stream(25))
    for words in (["cut", "--records", "0-99", path], ["merge", path, path], ["convert", path]):
        code = 3 if words[0] == "merge" else 0  # duplicates
        for name, form in (("x.csv", "csv"), ("x.ndjson", "ndjson"), ("x.byu", "byu"), ("x.din", "din"), ("x.byu.lz4", "segment")):
            buscap(*words, "-o", tmp / name, code=code)
            buscap(*words, "-O", form, "-o", tmp / "y", code=code)
            if form == "segment":
                equal(fields(read(tmp / name).records), fields(read(tmp / "y").records), name)
            else:
                equal((tmp / name).read_bytes(), (tmp / "y").read_bytes(), name)
            (tmp / name).unlink()
            (tmp / "y").unlink()
    buscap("cut", path, "-O", "ndjson", "-o", tmp / "x.csv")
    assert (tmp / "x.csv").read_bytes().startswith(b"{"), "-O first"
    buscap("cut", path, "-o", tmp / "x.y")
    read(tmp / "x.y")
    _, err = buscap("convert", path, "-o", tmp / "x.z", code=2)
    harness.one_line(err, "no output format given")


def test_a_directory_is_not_replaced(tmp):
    path = record_file(tmp, rich_stream(26))
    _, err = buscap("cut", path, "-o", tmp, code=1)
    harness.one_line(err, "this is a directory")


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


def test_an_empty_selection_gives_an_empty_sealed_segment(tmp):
    path = record_file(tmp, rich_stream(24))
    _, err = buscap("cut", "--records", "999999-", path, "-o", tmp / "x.byu.lz4")
    harness.one_line(err, "no record matches, the output is empty; the input has records 0 to ")
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
    out, err = buscap("cut", "-I", "xdin", "--records", "1-3", data=b"r 10 4\nr 1g 4\nw 20 4\n", code=3)
    equal(out, b"r 10 4\nw 20 4\n", "lines")
    assert "line 2, column 4" in err, err


def test_an_input_is_not_overwritten(tmp):
    trace = tmp / "x.xdin"
    trace.write_bytes(b"r 10 4\nw 10 4\n")
    for name in (trace, tmp / "link"):
        if name != trace:
            name.symlink_to(trace)
        _, err = buscap("cut", "-I", "xdin", "--type", "write", trace, "-o", name, code=1)
        assert "is also an input" in err, err
        equal(trace.read_bytes(), b"r 10 4\nw 10 4\n", "the input")


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


def test_a_gap_at_the_end_belongs_to_the_last_record(tmp):
    data = bytearray(rich_stream(27))
    data[-40] ^= 4  # the last frame
    path = record_file(tmp, bytes(data))
    source = read(path)
    last = source.records[-1].number
    equal(source.gaps[-1].number, last + 1, "the last gap")
    for i, (numbers, is_there) in enumerate(((f"{last}-", True), (f"0-{last}", True), (f"0-{last - 1}", False))):
        got, _ = cut(path, tmp / f"{i}.byu.lz4", "--records", numbers)
        equal(bool(got.gaps) and got.gaps[-1].number == len(got.records), is_there, numbers)


def test_the_first_record_has_the_ticks_since_the_start_wherever_a_cut_begins(tmp):
    """Also at the first record of a chunk, from which on all records are kept."""
    run(BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=100000", "-o", tmp / "rec")
    (path,) = segments(tmp / "rec")

    def times(first, last=""):
        data, _ = buscap("cut", "--records", f"{first}-{last}", "-O", "byu", path)
        return [record[-1] for record in struct.iter_unpack("<I4BI", data)]

    for first in range(reference.CHUNK_RECORDS - 2, reference.CHUNK_RECORDS + 1):
        for last in ("", first + 1):
            equal(times(first + 1, last)[0], sum(times(first)[:2]), f"the tick of record {first + 1}")


def test_an_event_has_the_tick_of_the_next_record_in_every_output(tmp):
    path = record_file(tmp, rich_stream(3), clock_hz=66000000)
    wanted = [(mark["kind"], mark["number"], mark["tick"]) for mark in marks_of(path)]
    text, _ = buscap("convert", "-O", "ndjson", path)
    entries = [json.loads(line) for line in text.splitlines()]
    got = [(e["kind"], e["number"], e["tick"]) for e in entries if e["kind"] in ("gap", "mark", "trigger")]
    equal(got, wanted, "events")
    assert len(wanted) > 10, wanted


# ---- dump: the same selections


def dump(*argv, code=0):
    out, err = buscap("dump", *argv, code=code)
    return out.decode().splitlines(), err


def of_kind(lines, kind):
    return [line for line in lines if line.startswith(kind)]


def appended(form, recording, r):
    """What follows a record's line."""
    ns, start = (at.wall_hz // recording.clock_hz for at in (r, recording.records[0]))
    since = abs(ns - start)
    return {"delta": "", "tick": f"\t{r.tick}", "wall": "\t" + utc(ns),
            "relative": f"\t{'-' if ns < start else ''}{since // 10**9}.{since % 10**9:09}"}[form]


def test_segments_by_every_selector_and_form_of_time(tmp):
    selected = 0
    seeds = harness.some(range(3), 3)
    for seed in seeds:
        path = record_file(tmp, rich_stream(seed), clock_hz=66000000)
        source = read(path)
        plain, _ = dump("--plain", path)
        equal(len(plain), len(source.records), "lines")
        rng = random.Random(seed)
        for which in [(name,) for name in SELECTORS] + [tuple(rng.sample(SELECTORS, rng.randrange(0, 5))) for _ in range(14)]:
            wanted = Selection(rng, source, which)
            form = rng.choice(("delta", "tick", "relative", "wall"))
            expected = [plain[r.number] + appended(form, source, r) for r in source.records if wanted.matches(r)]
            got, err = dump("--plain", "--time", form, *wanted.options, path)
            equal((got, "no record matches" in err), (expected, not expected), f"{wanted.options} as {form}: {err}")
            # Gaps don't depend on the records' fields.
            lines, _ = dump("-t", form, *wanted.options, path)
            equal([line for line in lines if not line.startswith("#")], expected, f"{wanted.options}, not plain")
            if which and not {"addr", "types", "procs"} & set(which):
                gaps = sum(wanted.is_in_range(source.records[g.record]) for g in source.gaps)
                equal(len(of_kind(lines, "# gap")), gaps, f"gaps by {wanted.options}")
            selected += len(expected)
    assert 3 * selected > 10000 * len(seeds), selected


def test_segments_without_a_sealed_index_or_through_a_pipe(tmp):
    path = record_file(tmp, rich_stream(5), clock_hz=66000000)
    data = path.read_bytes()
    source = read(path)
    torn = tmp / "torn.byu.lz4.partial"
    torn.write_bytes(data[:-100])
    rng = random.Random(5)
    for which in (("ticks", "types"), ("wall", "addr"), ("numbers", "procs"), ("epochs",)):
        wanted = Selection(rng, source, which)
        options = ["--time", "wall", *wanted.options]
        expected, _ = dump(*options, path)
        got = harness.run(harness.BUSCAP, "dump", *options, "-", data=data)
        equal((got.stdout.decode().splitlines(), got.returncode), (expected, 0), f"{options} through a pipe")
        equal(dump(*options, torn, code=None)[0], expected, f"{options} without an index")


def test_other_formats_by_every_selector_they_have(tmp):
    """As cut selects, which tests/system/test_cut.py compares with a model."""
    segment = record_file(tmp, rich_stream(8), clock_hz=66000000)
    source = read(segment)
    stream = tmp / "x.bcp1"
    stream.write_bytes(rich_stream(8))
    rng = random.Random(8)
    files = {"bcp1": stream}
    for kind in ("byu", "raw6", "byu16", "byu24", "din", "laplace"):
        files[kind] = tmp / f"x.{kind}"
        buscap("convert", "-O", kind, "-o", files[kind], stream, code=None)
    for kind, path in files.items():
        lines = [line for line in dump("-I", kind, path, code=None)[0] if not line.startswith("#")]
        has = [name for name in SELECTORS if name != "wall"
               and not (name in ("procs", "ticks", "epochs") and kind in ("din", "raw6"))
               and not (name == "epochs" and kind != "bcp1")]
        first = 1 if kind == "din" else 0
        for which in harness.some([(name,) for name in has] + [tuple(rng.sample(has, 2)) for _ in range(4)], 3):
            options = Selection(rng, source, which).options
            out, _ = buscap("cut", "-I", kind, *options, "-O", "csv", path, code=None)
            kept = {int(row["number"]) for row in csv.DictReader(out.decode().splitlines()) if row.get("kind", "reference") == "reference"}
            got = [line for line in dump("-I", kind, *options, path, code=None)[0] if not line.startswith("#")]
            equal(got, [line for number, line in enumerate(lines, first) if number in kept], f"{kind} by {options}")


def test_times_that_a_file_does_not_have(tmp):
    path = record_file(tmp, rich_stream(10))
    lines, _ = dump("--plain", "--time", "wall", path)
    equal({line.rsplit("\t", 1)[1] for line in lines}, {"-"}, "without a clock rate")
