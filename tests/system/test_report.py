"""buscap report: every cell, total, gap and mark of an overview, compared with a count of the records."""

import collections
import errno
import json
import os
import pathlib
import random
import re
import shutil
import struct

import pytest

import harness
import page_reference
import reference
from cut_model import buscap, utc
from harness import BUSCAP, BUSCAPD, equal, need, run
from overview_reference import Recordings


def record(directory, data, suffix="bcp1", options=(), clock_hz=66000000):
    """Records a stream into a directory."""
    stream = pathlib.Path(directory, "stream")
    stream.write_bytes(data)
    clock = f",clock_hz={clock_hz}" if clock_hz else ""
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{stream},format={suffix}{clock}", "-o",
               directory, *options)
    assert done.returncode in (0, 3, 4), done.stderr.decode()
    stream.unlink()


def many_chunks(chunks, seed=1, samples=150, small=(), procs_of=lambda sequence: [0]):
    """A stream of many chunks: each frame is an epoch, and its records don't compress. `small` ones have a tenth of the samples.
    `procs_of` returns the processors of a frame."""
    rng = random.Random(seed)
    stream = b""
    for sequence in range(chunks):
        pages = [rng.randrange(1 << 20) << 12 for _ in range(6)]
        frame = [(rng.choice(pages) | rng.randrange(4096) & ~7, rng.randrange(256), rng.choice((8, 9, 12, 13, 14, 15)) << 4,
                  rng.randrange(60000)) for _ in range(samples // 10 if sequence in small else samples)]
        if sequence % 7 == 0:
            frame[0] = (0x3F8, 0xFE, 5 << 4, 5)
        lost = rng.randrange(1, 99) if sequence % 11 == 5 else 0
        procs = procs_of(sequence)
        if len(procs) > 1:
            frame = [(addr, enables, control | rng.choice(procs), time) for addr, enables, control, time in frame]
        flags = (reference.LOSS if lost else 0) | (reference.AGENT if len(procs) > 1 else 0)
        header = reference.encode_header(flags, procs[0], sequence, len(frame), 1000, lost)
        stream += header + reference.encode_payload(frame)
    return stream


def report(*argv, code=0):
    done = run(need(BUSCAP), "report", "--json", *argv)
    equal(done.returncode, code, done.stderr.decode())
    return json.loads(done.stdout)


def check(recordings, directory, *argv):
    made = report(*argv, directory)
    recordings.check(made)
    return made["overview"]


def small_chunks(seed):
    """BYU records of some chunks, which are small because of their unknown times."""
    return reference.make_byu(random.Random(seed), 3000, no_delta=0.3)[0]


@pytest.fixture(scope="module")
def large():
    """A recording in several segments, and what is in it. It has too many chunks to be drawn from its records."""
    directory = harness.shared("report", lambda new: record(new, many_chunks(1100, samples=90), options=("-b", "filesize:200K")))
    paths = harness.segments(directory)
    assert len(paths) >= 3, paths
    return directory, Recordings(paths)


@pytest.mark.parametrize("columns, unit", [(512, "chunks"), (300, "chunks"), (100, "summary"), (20, "summary"),
                                           (2, "segments")])
def test_the_whole_picture_is_exact_in_every_unit(large, columns, unit):
    directory, recordings = large
    for rows in harness.some((1024, 200, 2), 2):
        overview = check(recordings, directory, "--columns", columns, "--rows", rows)
        equal(overview["unit"], unit)
        assert len(overview["rows"]) <= rows and len(overview["columns"]) <= columns
        equal(sum(c["records"] for c in overview["columns"]), overview["recordings"][0]["records"], "records")
        equal(sum(c["lost"] for c in overview["columns"]), overview["recordings"][0]["lost"], "lost")


def test_a_part_is_exact_down_to_single_records(large):
    directory, recordings = large
    chunks = next(iter(recordings.by_id.values()))
    rng = random.Random(5)
    units = set()
    for span, widths in ((1050, (300, 7)), (1020, (20,)), (1, (300,))):
        first = rng.randrange(len(chunks) - span + 1)
        times = chunks[first].wall, chunks[first + span - 1].end + 1
        for columns in widths:
            overview = check(recordings, directory, "--columns", columns, "--from", utc(times[0]), "--to", utc(times[1]))
            units.add(overview["unit"])
    assert {"chunks", "summary"} <= units, units
    first = chunks[0].wall  # the times of later chunks overlap
    equal(check(recordings, directory, "--from", utc(first), "--to", utc(first + 1))["unit"], "records")


# ---- rows


def shifts_of_all(chunks, start, end, rows):
    """Returns the shifts of a picture of the records between two times: docs/report.md, Rows."""
    touched = {key[0] for chunk in chunks for ns, key in zip(chunk.times, chunk.keys) if start <= ns <= end}
    pages, ports = ({place for place in touched if (place < page_reference.PORT_0) == is_page} for is_page in (True, False))
    share = max(1, rows // 4)

    def fit(places, most):
        return next(shift for shift in range(21) if len({place >> shift for place in places}) <= most)

    return fit(pages, rows - min(len(ports), share)), fit(ports, rows - min(len(pages), rows - share))


def rotated(trace, clock_hz, duration):
    """Options that record a trace in segments of a duration, each of which ends with a small chunk."""
    return lambda tmp: record(tmp, trace, "byu", options=("-b", f"duration:{duration}"), clock_hz=clock_hz)


def small(tmp):
    """Chunks that are too small to have page counts, as a slow bus makes."""
    record(tmp, reference.make_byu(random.Random(4), 4000, no_delta=0.3)[0], "byu", clock_hz=66_000_000)


COARSE = {
    "a small chunk among others": lambda tmp: record(tmp, many_chunks(70, samples=500, small=(9, 39, 69))),
    "segments of a duration": rotated(harness.sim_records(30_000), 100_000, "100ms"),
    "many tiny segments": rotated(harness.sim_records(3_000), 100_000, "3ms"),
    "small chunks": small,
    "frames of few samples": lambda tmp: record(tmp, many_chunks(200, samples=12)),
}


@pytest.mark.parametrize("name", COARSE)
def test_rows_are_those_of_all_records_and_zooming_in_never_makes_them_larger(tmp, name):
    COARSE[name](tmp)
    recordings = Recordings(harness.segments(tmp))
    (chunks,) = recordings.by_id.values()
    assert len(chunks) > 3
    start, end = chunks[0].wall, max(chunk.end for chunk in chunks)
    rng = random.Random(name)
    before = None
    for _ in range(4):
        overview = check(recordings, tmp, "--columns", 50, "--rows", 100, "--from", utc(start), "--to", utc(end + 1))
        got = overview["page_shift"], overview["port_shift"]
        equal(got, shifts_of_all(chunks, start, end, 100), f"{name}, {end - start} ns")
        assert before is None or (got[0] <= before[0] and got[1] <= before[1]), (before, got)
        before, span = got, end - start
        start, end = start + rng.randrange(span // 3), end - rng.randrange(span // 3)


# ---- processors


@pytest.fixture(scope="module")
def mixed():
    """Segments of processor 0 and of 200, and one with chunks of one processor and of twelve."""
    stream = many_chunks(1100, samples=40, procs_of=lambda at: range(12) if 500 <= at < 510 else [0 if at < 800 else 200])
    directory = harness.shared("report-mixed", lambda new: record(new, stream, options=("-b", "filesize:200K")))
    paths = harness.segments(directory)
    return directory, paths, Recordings(paths)


@pytest.mark.parametrize("columns, unit", [(300, "chunks"), (50, "summary"), (2, "segments")])
def test_processors_are_counted_apart(mixed, columns, unit):
    """Page counts don't have them, so chunks of several are decoded. Of more than eight, the last ones are grouped."""
    directory, paths, recordings = mixed
    overview = check(recordings, directory, "--columns", columns)
    equal((overview["unit"], overview["by_processor"]), (unit, True))
    equal(overview["processors"], [[0], [1], [2], [3], [4], [5], [6], [7, 8, 9, 10, 11, 200]])
    for track, procs in enumerate(overview["processors"]):
        stats, = lines("stats", "--json", "--full", "--proc", ",".join(map(str, procs)), *paths)
        equal(sum(n for column in overview["columns"] for i, n in enumerate(column["cells_by_processor"][track]) if i % 5),
              stats["references"], f"processors {procs}")


def test_a_damaged_chunk_of_several_processors_is_counted_but_in_no_track(mixed, tmp):
    _, paths, _ = mixed
    several = []
    for path in paths:
        data = bytearray(path.read_bytes())
        several += [chunk for chunk in reference.read_segment(path).chunks if len(set(chunk.records[7::12])) > 1][: not several]
        if several and several[0].info["segment"] == reference.read_segment(path).header["segment"]:
            data[several[0].offset + several[0].header_bytes + 40] ^= 1
        (tmp / path.name).write_bytes(data)
    (chunk,) = several
    made = report("--columns", 300, tmp, code=3)["overview"]

    def total(cells):
        return sum(n for i, n in enumerate(cells) if i % 5)

    equal((made["unit"], made["by_processor"], len(made["damage"])), ("chunks", True, 1))
    equal((sum(c["uncounted"] for c in made["columns"]), sum(total(c["cells"]) for c in made["columns"])),
          (0, made["recordings"][0]["records"]))
    equal(sum(total(c["cells"]) - sum(map(total, c["cells_by_processor"])) for c in made["columns"]), chunk.info["records"])


def test_processors_of_too_many_records_are_not_told_apart(tmp):
    """Each chunk counts as 4,096 records."""
    record(tmp, many_chunks(4097, samples=2, procs_of=lambda at: [at % 2]))
    overview = report(tmp)["overview"]
    equal((overview["processors"], overview["by_processor"]), ([[0], [1]], False))
    equal(sum(len(column["cells_by_processor"]) for column in overview["columns"]), 0)
    origin, half = int(overview["origin_ns"]), overview["to"] // 2
    equal(report("--to", utc(origin + half), tmp)["overview"]["by_processor"], True)


# ---- totals


def lines(*argv):
    done = run(need(BUSCAP), *argv)
    assert done.returncode in (0, 3), done.stderr.decode()
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def test_totals_and_events_are_those_of_info_stats_and_marks(large):
    directory, _ = large
    paths = harness.segments(directory)
    made = report(directory)
    recording, = made["overview"]["recordings"]
    infos = lines("info", "--json", *paths)
    equal(recording["segments"], len(infos))
    for name in ("records", "bytes"):
        equal(recording[name], sum(info[name] for info in infos), name)
    equal(recording["gaps"], sum(info["gaps"] for info in infos), "gaps")
    equal(recording["lost"], sum(info["lost"] for info in infos), "lost")
    stats, = lines("stats", "--json", "--full", *paths)
    classes = [0] * 4
    for row in stats["types"]:
        classes[page_reference.class_of(row["type"])] += row["references"]
    counts = [sum(c["counts"][i] for c in made["overview"]["columns"]) for i in range(4)]
    equal(counts, classes, "classes")
    origin = int(made["overview"]["origin_ns"])
    marks = lines("marks", "--json", directory)
    equal([(e["kind"], e["record"], utc(e["time"] + origin), e["lost"], e["cause"], e["exact"]) for e in
           made["events"]["events"]],
          [(m["kind"], m["number"], m["time"], m["lost"], m["cause"], m["exact"]) for m in marks], "events")


def test_a_clock_that_is_unknown_gives_the_times_of_chunks(tmp):
    record(tmp, small_chunks(1), "byu", clock_hz=None)
    recordings = Recordings(harness.segments(tmp))
    assert len(next(iter(recordings.by_id.values()))) > 2
    overview = check(recordings, tmp)
    equal(overview["recordings"][0]["clock_hz"], 0)


LEAST, MOST = -(1 << 63), (1 << 63) - 1


@pytest.mark.parametrize("walls", [(LEAST, MOST), (MOST, LEAST), (LEAST, LEAST), (MOST, MOST), (0, MOST), (-1, 1), (LEAST, LEAST + 1)])
def test_impossible_times_end_in_a_report(tmp, walls):
    (tmp / "out").mkdir()
    record(tmp / "out", small_chunks(2), "byu", clock_hz=66_000_000)
    (segment,) = harness.segments(tmp / "out")
    changes = [(number, "<q", 64, wall) for number, wall in enumerate(walls)]
    (tmp / "x.byu.lz4").write_bytes(reference.forged(segment, changes))
    for argv in ((), ("--columns", "512")):
        done = run(need(BUSCAP), "report", "--json", *argv, tmp / "x.byu.lz4")
        assert done.returncode in (0, 3), (argv, done.returncode, done.stderr[-300:])


def test_deltas_beyond_the_end_of_their_chunk_stay_in_the_picture(tmp):
    """The header of each chunk of the first recording says that its last tick is its first."""
    for name, seed in (("a", 3), ("b", 4)):
        (tmp / name).mkdir()
        record(tmp / name, small_chunks(seed), "byu", clock_hz=66_000_000)
    (segment,) = harness.segments(tmp / "a")
    chunks = reference.read_segment(segment).chunks
    changes = [(number, "<Q", 56, chunk.info["first_tick"]) for number, chunk in enumerate(chunks)]
    (tmp / "x.byu.lz4").write_bytes(reference.forged(segment, changes))
    for columns in (2, 3, 511, 512):
        done = run(need(BUSCAP), "report", "--json", "--columns", columns, tmp / "x.byu.lz4", *harness.segments(tmp / "b"))
        assert done.returncode in (0, 3), (done.returncode, done.stderr[-300:])
        assert len(json.loads(done.stdout)["overview"]["columns"]) <= columns


# ---- kinds of reports

HOSTILE = "</script><svg/onload=x>&\"'\x1b[31m\u202e]]>"


def hostile(tmp):
    """A recording with hostile metadata, mark, and names."""
    socket = tmp / "s"
    with harness.Daemon("--source", "sim:rate=100k", "-o", tmp, "--socket", socket, socket=socket) as daemon:
        daemon.wait_ready()
        done = run(need(BUSCAP), "mark", "--socket", socket, HOSTILE)
        equal(done.returncode, 0, done.stderr.decode())
        daemon.stop()
    names = tmp / "map"
    names.write_text("0-ffffffff <b>&\"names'</b>\n")
    return names


def test_hostile_text_is_in_the_data_as_it_is(tmp):
    names = hostile(tmp)
    made = report("--map", names, tmp)
    assert HOSTILE in [e["text"] for e in made["events"]["events"]], made["events"]
    assert "<b>&\"names'</b>" in [row["name"] for row in made["overview"]["rows"]]


def says_reduced(path):
    """Whether a report says that it was reduced."""
    text = path.read_text()
    if path.suffix == ".html":
        text = json.loads(re.search(r'id="report">(.*?)</script>', text, re.DOTALL).group(1))["reduced"] or ""
    return "Reduced to at most" in text


@pytest.mark.parametrize("name", ["x.json", "x.html"])
def test_a_report_fits_in_its_size_and_says_so(large, tmp, name):
    directory, recordings = large

    def size(*argv):
        done = run(need(BUSCAP), "report", "-o", tmp / name, *argv, directory)
        equal((done.returncode, done.stderr), (0, b""))
        return (tmp / name).stat().st_size

    most = ("--columns", "512", "--rows", "1024")
    whole, least = size(*most), size("--columns", "16", "--rows", "8")
    assert not says_reduced(tmp / name)
    for limit in ((whole + least) // 2, (whole + 7 * least) // 8):
        assert size("--max-size", limit, *most) <= limit
        assert says_reduced(tmp / name)
        if name == "x.json":
            made = json.loads((tmp / name).read_text())
            recordings.check({**made, "events": report("--columns", "512", directory)["events"]})
    (tmp / name).unlink()
    done = run(need(BUSCAP), "report", "-o", tmp / name, "--max-size", "10", directory)
    equal(done.returncode, 1)
    assert b"--max-size: too small for this report" in done.stderr and not list(tmp.iterdir())


def test_only_events_are_left_out_at_the_minimum_resolution(large):
    directory, _ = large
    small = ("--columns", "16", "--rows", "8")
    whole = report(*small, directory)
    limit = len(run(need(BUSCAP), "report", "--json", *small, directory).stdout) - 500
    made = report("--max-size", limit, *small, directory)
    equal(made["overview"], whole["overview"])
    kept = made["events"]["events"]
    assert made["events"]["cut_off"] and 0 < len(kept) < len(whole["events"]["events"])
    equal(kept, whole["events"]["events"][: len(kept)])
    assert f"{len(kept)} events" in made["reduced"], made["reduced"]


def test_losses_are_those_of_the_drawn_part(tmp):
    frame = reference.encode_payload([(0x100000, 0xFF, 8 << 4, 1000)] * 10)
    record(tmp, b"".join(reference.encode_header(reference.LOSS if lost else 0, 0, i, 10, 1_000_000 * i, lost) + frame
                         for i, lost in enumerate((0, 3185, 0, 7))))
    for argv, *facts in (([], 40, 2, 3192),
                         (["--from", "+20ms"], 20, 1, 7),
                         (["--to", "+40ms"], 30, 1, 3185),
                         (["--from", "+20ms", "--to", "+40ms"], 10, 0, 0)):
        made = report(*argv, tmp)
        (recording,), columns = made["overview"]["recordings"], made["overview"]["columns"]
        equal((recording["records"], recording["gaps"], recording["lost"]), (40, 2, 3192))
        equal([sum(c["records"] for c in columns), len(made["events"]["events"]), sum(c["lost"] for c in columns)], facts, argv)


def test_a_segment_that_was_not_recorded_needs_no_end(tmp):
    (tmp / "in").write_bytes(harness.sim_records(10))
    for kind, options in (("cut", ("--records", "0-5")), ("convert", ())):
        out = tmp / f"{kind}.byu.lz4"
        argv = (kind, "-I", "byu", "-O", "segment:clock_hz=1000", *options, "-o", out, tmp / "in")
        equal(run(need(BUSCAP), *argv).returncode, 0, kind)
        equal([one["state"] for one in report(out)["overview"]["recordings"]], ["sealed"], kind)


def test_a_loss_of_unknown_size_is_not_exact(tmp):
    frame = reference.encode_payload([(0x100000, 0xFF, 8 << 4, 1000)] * 10)
    record(tmp, b"".join(reference.encode_header(0, 0, i, 10, 1_000_000 * i, 0) + frame for i in (0, 2)))
    made = report(tmp)
    equal([(e["kind"], e["lost"], e["exact"]) for e in made["events"]["events"]], [("gap", 0, False)])
    equal([(one["gaps"], one["lost"]) for one in made["overview"]["recordings"]], [(1, 0)])


def test_damage_is_reported_and_the_rest_is_drawn(large, tmp):
    directory, _ = large
    segment = harness.segments(directory)[0]
    copy = tmp / segment.name
    data = bytearray(segment.read_bytes())
    chunk = reference.read_segment(segment).chunks[3]
    data[chunk.offset + chunk.header_bytes + 40] ^= 1
    copy.write_bytes(data)
    ns = chunk.info["wall_ns"]
    done = run(need(BUSCAP), "report", "--json", "--from", utc(ns), "--to", utc(ns + 1), tmp)
    made = json.loads(done.stdout)
    equal((done.returncode, made["overview"]["unit"]), (3, "records"))
    assert b"chunk 3" in done.stderr and b"is damaged" in done.stderr
    equal(made["overview"]["damage"][0]["offset"], chunk.offset)
    data[chunk.offset + chunk.header_bytes + 40] ^= 1
    data[chunk.offset + 100] ^= 1  # its header
    data[-5] ^= 1  # and the trailer, so that headers are read
    copy.write_bytes(data)
    made = report("--columns", "512", tmp, code=3)
    assert made["overview"]["damage"], made["overview"]
    equal(sum(c["records"] for c in made["overview"]["columns"]), made["overview"]["recordings"][0]["records"])
    assert sum(c["uncounted"] for c in made["overview"]["columns"]) == 0


def test_files_that_cannot_be_read_are_listed_and_the_rest_is_drawn(large, tmp):
    directory, _ = large
    first, second, third = harness.segments(directory)[:3]
    shutil.copy(first, tmp)
    (tmp / second.name).mkdir()
    (tmp / third.name).symlink_to(third.name)
    done = run(need(BUSCAP), "report", "--json", tmp)
    equal(done.returncode, 3)
    assert b"can't open" in done.stderr
    overview = json.loads(done.stdout)["overview"]
    equal(overview["recordings"][0]["segments"], 1)
    equal([(pathlib.Path(one["file"]).name, one["bytes"], one["what"]) for one in overview["damage"]],
          [(second.name, 0, "not a segment"), (third.name, 0, os.strerror(errno.ELOOP))])


# ---- page counts


RECORDS = 100_000  # two chunks


def _byu(record):
    if record == "random":
        data = bytearray(random.Random(4).randbytes(12 * RECORDS))
        for at, below in ((5, 64), (6, 1), (7, 4), (8, 100), (9, 1), (10, 1), (11, 1)):
            data[at::12] = bytes(byte % below for byte in data[at::12])
        return bytes(data)
    return b"".join(struct.pack("<I4BI", *record(i)) for i in range(RECORDS))


def _program(i, dice=random.Random(3)):
    """Code that runs through a page, a stack, and data all over memory."""
    if i % 3:
        return 0x8048000 + i * 4 % 4096, 0, 4, 0, 0, 1
    return (0xBFFF0000 + dice.randrange(8192) if dice.random() < 0.7 else dice.getrandbits(28)), 1 + i % 2 * 2, 4, 0, 0, 1


WORKLOADS = {
    "the simulated bus": None,
    "a program": _program,
    "the same record": lambda i: (0x1000, 1, 4, 0, 0, 5),
    "the next page each time": lambda i: (i << 12 & 0xFFFFFFFF, 1, 4, 0, 0, 5),
    "the next port each time": lambda i: (i % 65536, 0x10 + i % 2, 1, 0, 0, 5),
    "random records": "random",
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_page_counts_take_at_most_one_percent_and_the_summary_a_part_of_256(tmp, name):
    source = f"sim:rate=max,count={RECORDS},agents=2"
    if WORKLOADS[name]:
        (tmp / "trace.byu").write_bytes(_byu(WORKLOADS[name]))
        source = f"file:{tmp}/trace.byu,format=byu,clock_hz=1000"
    out = tmp / "rec"
    out.mkdir()
    equal(run(need(BUSCAPD), "--once", "--no-socket", "--source", source, "-o", out).returncode, 0)
    paths = harness.segments(out)
    (segment,) = reference.read_segments(paths).segments  # checks each chunk
    assert len(segment.chunks) >= 2 and all(chunk.pages for chunk in segment.chunks), name
    nodes = sum(map(len, segment.nodes))
    assert nodes, "there is a summary"
    share = (sum(len(chunk.pages) for chunk in segment.chunks) + nodes) / paths[0].stat().st_size
    assert share <= 0.01 + 1 / 256, f"{name}: {100 * share:.2f} % of the file"
    if name == "the simulated bus":
        equal([page_reference.parse(chunk.pages)[:2] for chunk in segment.chunks[:1]], [(0, 0)], "single pages and ports")


def test_a_search_of_a_damaged_segment_finds_what_can_be_read(tmp):
    """Each byte of the headers, the page counts, the page summary and the index is damaged in turn. The search must not
    trust them: it finds what reading the whole file finds."""
    trace = tmp / "trace.byu"
    trace.write_bytes(b"".join(struct.pack("<I4BI", 0x1000 * (i // 200), 3, 4, 0, 0, 5) for i in range(600)))
    out = tmp / "rec"
    out.mkdir()
    equal(run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{trace},format=byu,clock_hz=1000", "-o", out)
          .returncode, 0)
    (path,) = harness.segments(out)
    data = path.read_bytes()
    lost = 0
    for at in harness.some(range(len(data)), 36):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1:])
        rows = buscap("convert", "-O", "csv", path, code=None)[0].decode().splitlines()
        addr = rows[0].split(",").index("addr") if rows else 0
        pages = collections.Counter(int(row.split(",")[addr], 16) >> 12 for row in rows if row.startswith("reference,"))
        lost += pages.total() != 600
        for page in (at % 3, 3):
            found = int(buscap("find", "--count", f"{page:x}000-{page:x}fff", path, code=None)[0] or b"0")
            equal(found, pages[page], f"page {page}, byte {at} of {len(data)}")
    assert lost, "records are damaged, too"


# ---- two runs


@pytest.fixture
def runs(tmp):
    """Two recordings, with marks where I/O ports are read."""
    (tmp / "marks").write_text("[trigger disk]\nwhen = type=ioread\naction = mark\n")
    dirs = [tmp / "a", tmp / "b"]
    for seed, path in enumerate(dirs, 3):
        path.mkdir()
        data = run(need(BUSCAP), "sim", "-O", "bcp1", "--seed", str(seed), "--count", str(10000 * seed)).stdout
        record(path, data, options=("-c", tmp / "marks"))
    return dirs


def check_runs(runs, zeros, *options, more=()):
    """Each run is drawn as if it were alone; its time starts at its zero."""
    made = report("--compare", *options, *more, *runs)
    for path, zero, found in zip(runs, zeros, (made, made["compared"])):
        alone = report(*options, path)
        equal([found["overview"], found["events"]], [alone["overview"], alone["events"]], path)
        equal(found["zero"], zero, path)


def test_two_runs_are_drawn_from_their_starts_or_from_a_mark(runs):
    check_runs(runs, (0, 0))
    check_runs(runs, (0, 0), "--from", "+1ms", "--to", "+5ms", "--columns", "20", "--rows", "10")
    first = [next(event["time"] for event in report(path)["events"]["events"] if event["text"] == "disk") for path in runs]
    assert first[0] != first[1], first
    check_runs(runs, first, more=("--align", "mark=disk"))


def test_two_runs_need_an_axis_and_a_mark_that_both_have(runs, tmp):
    for code, options, text in (
            (1, ("--compare", "--align", "mark=nothing", *runs), "a: no mark or trigger with this text: nothing"),
            (2, ("--compare", "--align", "nothing", *runs), "--align nothing: must be mark=NAME"),
            (2, ("--align", "mark=disk", *runs), "--align needs --compare"),
            (2, ("--compare", runs[0]), "--compare needs two operands")):
        done = run(need(BUSCAP), "report", "--json", *options)
        equal((done.returncode, done.stdout), (code, b""), done.stderr)
        assert text in done.stderr.decode(), done.stderr
    trace = tmp / "trace.byu"
    trace.write_bytes(reference.make_byu(random.Random(1), 10)[0])
    done = run(need(BUSCAP), "report", "--json", "--compare", "-I", "byu", runs[0], trace)
    equal(done.returncode, 1)
    assert b"draw them separately" in done.stderr, done.stderr
    # The second run is an input too.
    name = tmp / "trace.json"
    shutil.copy(trace, name)
    done = run(need(BUSCAP), "report", "--compare", "-I", "byu", "-o", name, trace, name)
    equal((done.returncode, name.read_bytes()), (1, reference.make_byu(random.Random(1), 10)[0]), done.stderr)
