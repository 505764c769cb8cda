"""buscap find, compared with a search through everything that is there."""

import bisect
import collections
import datetime
import fcntl
import heapq
import json
import os
import pty
import random
import re
import shutil
import struct
import subprocess

import pytest

import harness
import reference
from cut_model import Recording, buscap, read, record_file, utc
from harness import BUSCAP, NIGHTLY, equal, need, run
from reference import NO_DELTA

QUERIES = 340 if NIGHTLY else 16  # for each of six traces
SIZE = 10 if NIGHTLY else 1  # of recordings of several chunks
TYPES = {"read": {1, 2}, "write": {3}, "fetch": {0}, "MEMREAD,0x11": {1, 0x11}, "ioread": {0x10},
         "iowrite": {0x11}, "Fetch,io_Write": {0, 0x11}}
PORTS = {0x10, 0x11}
NAMES = {0: "FETCH", 1: "MEMREAD", 2: "MEMREADINV", 3: "MEMWRITE", 0x10: "IOREAD", 0x11: "IOWRITE", 0x20: "DEFERREPLY", 0x21: "INTA"}


SIZE_MAX = 255


def span(record):
    """Returns a record, and the first and last address that it touches."""
    first = record.addr - (record.addr % record.size if record.size in (16, 32) else 0)  # a burst covers its block
    return record, first, first + max(record.size, 1) - 1


def touches(record, low, high):
    _, first, last = span(record)
    return first <= high and last >= low


class Query:
    """A random search, as arguments and as a predicate."""

    def __init__(self, rng, records, clock_hz):
        near = rng.choice(records).addr
        page = near & ~0xFFF
        self.low = max(0, rng.choice((near, near, near - 8, near + 40, page, page + 0x1000, near & 0xFFFF)))
        self.high = self.low + rng.choice((0, 0, 3, 0xFFF, 0xFFFFFF, 0xFFFFFFFF))
        self.address = f"{self.low:x}" if self.low == self.high else f"{self.low:x}-{self.high:x}"
        self.options, self.tests = [], []
        if rng.random() < 0.25:
            self.low = rng.choice([one.addr for one in records if one.type in PORTS] or [0]) & 0xFFFF
            self.high = min(self.low + rng.choice((0, 7, 0xFFFF)), 0xFFFF)
            self.options, self.address = ["--port", f"{self.low:x}-{self.high:x}"], None
            self.tests.append(lambda r: r.type in PORTS)
        if rng.random() < 0.4:
            word = rng.choice(sorted(word for word in TYPES if self.address or TYPES[word] & PORTS))
            self._add(["--type", word], lambda r: r.type in TYPES[word])
        if rng.random() < 0.3:
            procs = {rng.choice(records).proc for _ in range(2)}
            self._add(["--proc", ",".join(map(str, procs))], lambda r: r.proc in procs)
        if rng.random() < 0.3:
            ticks = sorted(rng.choice(records).tick for _ in range(2))
            self._add(["--from", f"@{ticks[0]}", "--to", f"@{ticks[1]}"], lambda r: ticks[0] <= r.tick < ticks[1])
        elif clock_hz and rng.random() < 0.3:
            wall = sorted(rng.choice(records).wall_hz // clock_hz for _ in range(2))
            self._add(["--from", utc(wall[0]), "--to", utc(wall[1])],
                      lambda r: wall[0] * clock_hz <= r.wall_hz < wall[1] * clock_hz)

    def _add(self, options, test):
        self.options += options
        self.tests.append(test)

    def matches(self, spans, firsts):
        """`spans` are in the order of their first addresses, `firsts`."""
        near = spans[bisect.bisect_left(firsts, self.low - SIZE_MAX) : bisect.bisect_right(firsts, self.high)]
        return sorted((record for record, _, last in near if last >= self.low and all(test(record) for test in self.tests)),
                      key=lambda record: record.number)


NO_MATCH = re.compile(r"buscap find: no reference matches.*\n")


def found(text):
    """Returns (number, tick) of each line."""
    return [(int(line.split()[0]), int(line.rsplit("@", 1)[1])) for line in text.decode().splitlines()]


def check_queries(seed, paths, records, clock_hz, codes=(0,)):
    rng = random.Random(seed)
    spans = sorted(map(span, records), key=lambda one: one[1])
    firsts = [first for _, first, _ in spans]
    hits = 0
    for _ in range(QUERIES):
        query = Query(rng, records, clock_hz)
        wanted = query.matches(spans, firsts)
        hits += len(wanted) != 0
        limit = rng.choice((1, 1, 2, 10, 1000))
        options, part = rng.choice((([], wanted), (["--first", limit], wanted[:limit]),
                                    (["--last", limit], wanted[-limit:]), (["--count"], None)))
        done = run(need(BUSCAP), "find", *query.options, *options, *filter(None, [query.address]), *paths)
        out, err = done.stdout, done.stderr.decode()
        what = f"find {query.options} {options} {query.address}: {err}"
        equal(bool(NO_MATCH.search(err)), part == [], what)
        err = NO_MATCH.sub("", err)
        assert done.returncode in codes and (done.returncode == 0) == (err == ""), (done.returncode, what)
        if part is None:
            equal(int(out), len(wanted), what)
        else:
            equal(found(out), [(r.number, r.tick) for r in part], what)
    assert QUERIES // 4 < hits < QUERIES, hits


def record_segments(directory):
    features = reference.Features(samples=25_000 * SIZE, frame=300 * SIZE, agents=3, p_loss=0.05, p_epoch=0.05,
                                  p_trigger=0.02, p_pause=0.001 / SIZE)
    data, _ = reference.make_bcp1(random.Random(31), features)
    stream = directory / "stream.bcp1"
    stream.write_bytes(data)
    out = directory / "rec"
    out.mkdir()
    source = f"file:{stream},format=bcp1,clock_hz=66000000"
    done = run(need(harness.BUSCAPD), "--once", "--no-socket", "--source", source, "-o", out,
               "-b", f"filesize:{40 * SIZE}")
    assert done.returncode in (0, 3, 4), done.stderr.decode()


def recorded_segments():
    """Several segments with gaps, epochs, and ticks beyond 2^32."""
    out = harness.shared("find", record_segments) / "rec"
    paths = harness.segments(out)
    assert len(paths) >= 3, paths
    recorded = reference.read_segments(paths)
    return paths, recorded, Recording(recorded)


def test_random_queries_on_a_recording():
    paths, _, recording = recorded_segments()
    assert max(r.tick for r in recording.records) > 1 << 32 and max(r.epoch for r in recording.records) > 1
    check_queries(1, [paths[0].parent], recording.records, recording.clock_hz)
    # Listed in any order, and twice.
    query = Query(random.Random(5), recording.records, 0)
    orders = [buscap("find", query.address, *files)[0].replace(b"//", b"/")
              for files in (paths, reversed(paths), paths + paths[:1], paths * 3)]
    equal(orders, orders[:1] * 4, "the order of the files")


def test_random_queries_on_records_across_pages_and_ports(tmp):
    rng = random.Random(12)
    pages = [[rng.randrange(1 << 20) << 12 for _ in range(6)] for _ in range(3)] + [[0, 0xFFFFF000]]
    offsets = [0, 0, 0xFF0, 0xFFF, *(rng.randrange(0x1000) for _ in range(4))]
    sizes = [0, 1, 4, 5, 16, 17, 32, 33, 255]
    anchors = 34 * SIZE  # records from one without a delta to the next; a chunk has at most 256 of them
    chunk = 256 * anchors
    trace = tmp / "trace.byu"
    trace.write_bytes(b"".join(struct.pack(
        "<I4BI", rng.choice(pages[i // chunk]) + rng.choice(offsets), rng.choice((0, 1, 3, 3, 0x10)),
        rng.choice(sizes) if i % chunk > chunk * 11 // 12 else 4, 0, rng.randrange(3),
        rng.randrange(9) if i % anchors else NO_DELTA) for i in range(chunk * 31 // 10)))
    out = tmp / "rec"
    out.mkdir()
    source = f"file:{trace},format=byu,clock_hz=1000"
    equal(run(need(harness.BUSCAPD), "--once", "--no-socket", "--source", source, "-o", out, "-b",
              f"filesize:{30 * SIZE}").returncode, 0)
    paths = harness.segments(out)
    recorded = reference.read_segments(paths)
    equal([one.info["records"] for one in recorded.chunks][:3], [chunk] * 3, "records of chunks")
    assert len(paths) > 2, paths
    recording = Recording(recorded)
    check_queries(6, [out], recording.records, recording.clock_hz)


def test_each_word_selects_the_same_in_all_commands(tmp):
    """And without a match, each says what is at the addresses instead."""
    path = record_file(tmp, run(need(BUSCAP), "sim", "-O", "bcp1", "-n", "20k", "--seed", "5").stdout)
    records = read(path).records
    rng = random.Random(47)
    for word in ("read", "write", "fetch", "ioread", "iowrite", "port"):
        near = [one.addr & 0xFFFF for one in records if one.type in PORTS]
        for low in (0, rng.choice(near)):
            place = ["--port" if word == "port" else "--addr", f"{low:x}-{0xFFFF if low == 0 else low + 3:x}"]
            options = [*place, *(["--type", word] if word != "port" else [])]
            here = [r for r, first, last in map(span, records) if first <= int(place[1].split("-")[1], 16) and last >= low]
            count = sum(one.type in (TYPES[word] if word != "port" else PORTS) for one in here)
            found = ["find", *options] if word == "port" else ["find", *options[2:], place[1]]
            equal(int(buscap(*found, "-c", path)[0]), count, options)
            equal(buscap("dump", "-p", *options, path)[0].count(b"\n"), count, options)
            equal(len(buscap("cut", "-O", "byu", *options, path)[0]), 12 * count, options)
            instead = collections.Counter(one.type for one in here)
            for command in ((found, ["dump", *options], ["cut", "-O", "byu", *options], ["stats", *options]) if not count else ()):
                has = re.search(r"at these addresses, the input has (.*)", buscap(*command, path)[1])
                has = re.findall(r"([\d,]+) ([A-Z]+)", has[1]) if has else []
                equal(sorted(int(n.replace(",", "")) for n, _ in has), sorted(instead.values()), (command, has))
                equal({NAMES[t]: n for t, n in instead.items() if t in NAMES},
                      {name: int(n.replace(",", "")) for n, name in has if name in NAMES.values()}, command)


def test_records_epochs_and_ports_are_selected_as_by_cut(tmp):
    paths, *_ = recorded_segments()
    trace = tmp / "trace.bcp1"
    trace.write_bytes(run(need(BUSCAP), "sim", "-O", "bcp1", "-n", "60k").stdout)
    for source in (paths[0].parent, trace):
        for options in (["--records", "1000-30000"], ["-e", "1-2"], ["--port", "0-ffff"], ["--port", "3f8-3ff", "--records", "9-"]):
            rows = run(BUSCAP, "cut", *options, "-O", "ndjson", source).stdout.splitlines()
            wanted = [row["number"] for row in map(json.loads, rows) if row["kind"] == "reference"]
            address = [] if "--port" in options else ["0-"]
            hits = buscap("find", "--json", *options, *address, source)[0].splitlines()
            equal([json.loads(hit)["number"] for hit in hits], wanted, options)
            equal(int(buscap("find", "-c", *options, *address, source)[0]), len(wanted), options)


@pytest.mark.parametrize("name", ["torn", "damaged"])
def test_random_queries_on_a_recording_that_is(tmp, name):
    paths, recorded, recording = recorded_segments()
    out = shutil.copytree(paths[0].parent, tmp / "rec")
    whole = {r.number: r for r in recording.records}
    victim = out / paths[1].name
    data = victim.read_bytes()
    if name == "torn":
        victim.unlink()
        victim = victim.with_name(victim.name + ".partial")
        victim.write_bytes(data[: len(data) * 2 // 3])
    else:
        chunk = max(recorded.segments[1].chunks, key=lambda one: len(one.frame))
        at = chunk.offset + chunk.header_bytes + len(chunk.frame) // 2
        victim.write_bytes(data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :])
    csv, _ = buscap("convert", "-O", "csv", *sorted(out.glob("*.byu.lz4*")), code=3)
    header, *rows = (line.split(",") for line in csv.decode().splitlines())
    kind, number = header.index("kind"), header.index("number")
    records = [whole[int(row[number])] for row in rows if row[kind] == "reference"]
    assert 0 < len(records) < len(whole), (name, len(records))
    check_queries(4, [out], records, recording.clock_hz, (0, 3))
    if name == "damaged":
        _, err = buscap("find", "--count", "0-", out, code=3)
        assert victim.name in err and f"chunk {chunk.info['number']}" in err, err


def test_context_shows_the_neighbours(tmp):
    features = reference.Features(samples=9000, frame=40, p_loss=1)  # a chunk has at most 256 gaps
    path = record_file(tmp, reference.make_bcp1(random.Random(8), features)[0], clock_hz=1000)
    records = read(path).records
    chunk = reference.read_segment(path).chunks[0].info["records"]
    assert chunk < len(records), "two chunks"
    # The last record of the first chunk, and the first and last of all.
    for at in (0, chunk - 1, len(records) - 1):
        addr = records[at].addr
        ticks = ["--from", f"@{records[at].tick}", "--to", f"@{records[at].tick + 1}"]
        out, _ = buscap("find", *ticks, "-U", 2, f"{addr:x}", path)
        lines = out.decode().splitlines()
        numbers = [int(line[2:].split()[0]) for line in lines if line != "--"]
        near = set(range(max(0, at - 2), min(len(records), at + 3)))
        assert numbers == sorted(set(numbers)) and near <= set(numbers), lines
        assert all((line[0] == ">") == (records[int(line[2:].split()[0])].tick == records[at].tick and
                                        touches(records[int(line[2:].split()[0])], addr, addr))
                   for line in lines if line != "--"), lines
    # Contexts that overlap are printed once; others are divided.
    wanted = [r.number for r in records if r.type == 3][:40]
    out, _ = buscap("find", "--type", "write", "--first", 40, "-U", 1, "0-", path)
    numbers = [line[2:14].strip() for line in out.decode().splitlines()]
    shown = sorted({n for at in wanted for n in (at - 1, at, at + 1) if n >= 0})
    equal([int(n) for n in numbers if n], shown, "numbers")
    equal(numbers.count(""), sum(b - a > 1 for a, b in zip(shown, shown[1:])), "dividing lines")


def test_marks_are_selected_by_kind_and_time(tmp):
    features = reference.Features(samples=9000, frame=40, p_loss=1)
    path = record_file(tmp, reference.make_bcp1(random.Random(8), features)[0], clock_hz=1000)

    def marks(*options):
        return [json.loads(line) for line in buscap("marks", "-j", *options, path)[0].splitlines()]

    whole = marks()
    gaps = [m for m in whole if m["kind"] == "gap"]
    assert len(gaps) > 100, len(gaps)
    equal(marks("--kind", "gap"), gaps)
    equal(marks("--kind", "trigger"), [m for m in whole if m["kind"] == "trigger"])
    equal(marks("--kind", "mark"), [])
    harness.one_line(buscap("marks", "--kind", "mark", path)[1], "no mark\n")
    harness.one_line(buscap("marks", "--to", "@0", path)[1], "no mark, trigger or gap matches\n")
    first, last = gaps[20], gaps[-20]
    equal(marks("--from", f"@{first['tick']}", "--to", f"@{last['tick']}"),
          [m for m in whole if first["tick"] <= m["tick"] < last["tick"]])
    equal(marks("--from", first["time"], "--to", last["time"]), [m for m in whole if first["time"] <= m["time"] < last["time"]])
    _, err = buscap("marks", "--kind", "gaps", path, code=2)
    harness.one_line(err, "--kind gaps: must be gap, mark, missing or trigger")


def test_a_hit_has_the_names_of_ndjson(tmp):
    path = record_file(tmp, reference.make_bcp1(random.Random(8), reference.Features(samples=500))[0], clock_hz=1000)
    hits = [json.loads(line) for line in buscap("find", "-j", "-n", "50", "0-", path)[0].splitlines()]
    rows = [json.loads(line) for line in run(BUSCAP, "convert", "-O", "ndjson", path).stdout.splitlines()]
    rows = [row for row in rows if row["kind"] == "reference"][:50]
    for name in ("number", "tick", "addr", "type", "size", "attr", "proc", "delta"):
        equal([hit[name] for hit in hits], [row.get(name) for row in rows], name)


def test_marks_limit_the_search(tmp):
    out = tmp / "rec"
    out.mkdir()
    with harness.Daemon("--source", "sim:seed=1,rate=200k", "-o", out, socket=tmp / "s") as daemon:
        daemon.wait_ready()
        for text in ("on", "relay clicked", "relay clicked", "off"):
            before = daemon.status()["counts"]["received"]
            harness.wait_until(lambda: daemon.status()["counts"]["received"] > before + 20_000, "20,000 more samples")
            buscap("mark", "--socket", tmp / "s", text)
        equal(daemon.stop(), 0, "exit code")
    total = int(buscap("find", "-c", "0-", out)[0])
    before, after = (int(buscap("find", "-c", option, "relay clicked", "0-", out)[0])
                     for option in ("--before-mark", "--after-mark"))
    assert 0 < before < total and 0 < after < total and before + after > total, (before, after, total)
    both = int(buscap("find", "-c", "--after-mark", "relay clicked", "--before-mark", "relay clicked", "0-", out)[0])
    equal(both, before + after - total, "between the first and the last")
    last, _ = buscap("find", "--last", 1, "--before-mark", "relay clicked", "0-", out)
    equal(len(last.splitlines()), 1, "lines")
    _, err = buscap("find", "-c", "--before-mark", "relay", "0-", out, code=1)
    assert 'no mark or trigger "relay"' in err, err
    # A mark is in the header of its chunk, and is found even if the records are damaged.
    for path in harness.segments(out):
        data = bytearray(path.read_bytes())
        for chunk in reference.read_segment(path).chunks:
            data[chunk.offset + chunk.header_bytes + 40] ^= 1
        path.write_bytes(data)
    found, err = buscap("find", "-c", "--after-mark", "relay clicked", "0-", out, code=3)
    assert (found, "is damaged" in err, "no mark" in err) == (b"0\n", True, False), (found, err)


def test_only_chunks_that_can_match_are_read(tmp):
    paths, _, recording = recorded_segments()
    out = paths[0].parent
    at = recording.records[-1]
    everything = sum(path.stat().st_size for path in out.glob("*.byu.lz4"))

    def bytes_read(*argv):
        log = tmp / "strace"
        run("strace", "-qq", "-f", "-e", "trace=read,pread64", "-o", log, need(BUSCAP), "find", *argv)
        results = (line.rsplit("= ", 1)[1] for line in log.read_text().splitlines())
        return sum(int(result) for result in results if result.isdigit())

    nothing = bytes_read("--count", "--from", "@9223372036854775807", "0-", out)  # headers and indexes
    last, all_chunks = (bytes_read(*argv, out) - nothing for argv in (["--last", "1", f"{at.addr:x}"], ["--count", "0-"]))
    assert last < everything / 2, f"{last} of {everything} bytes"
    assert 0.9 * everything < all_chunks < 1.1 * everything, f"{all_chunks} of {everything} bytes"


@pytest.mark.parametrize("argv", [("find", "--count", "0-"), ("marks",), ("report", "--json"), ("verify",), ("info",), ("stats",), ("dump",),
                                  ("convert", "-o", "/dev/null", "-O", "din"), ("cut", "--records", "0-5", "-O", "byu", "-o", "/dev/null")])
def test_reading_gives_way_to_a_running_recorder(tmp, argv):
    need("strace")
    shutil.copy(recorded_segments()[0][0], tmp)
    paths = [tmp] if argv[0] in ("find", "marks", "report") else list(tmp.glob("*.byu.lz4"))

    def calls():
        done = run("strace", "-f", "-qq", "-e", "trace=setpriority,ioprio_set", "-o", tmp / "calls", need(BUSCAP), *argv, *paths)
        equal(done.returncode, 0, done.stderr.decode())
        return (tmp / "calls").read_text()

    equal(calls(), "")
    directory = os.open(tmp, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)  # as buscapd
        text = calls()
    finally:
        os.close(directory)
    assert "setpriority(PRIO_PROCESS, 0, 19)" in text and "IOPRIO_CLASS_IDLE" in text, text


def test_of_two_copies_of_a_segment_the_whole_one_is_searched(tmp):
    path = record_file(tmp, reference.make_byu(random.Random(3), 10000, no_delta=0.04)[0], "byu")
    assert len(reference.read_segment(path).chunks) == 2
    for name in ("a", "b"):
        (tmp / name).mkdir()
    whole, torn = tmp / "a" / path.name, tmp / "b" / path.name
    data = path.read_bytes()
    whole.write_bytes(data)
    torn.write_bytes(data[: len(data) * 19 // 20])
    for paths in ((whole, torn), (torn, whole)):
        out, err = buscap("find", "--count", "0-", *paths, code=3)
        equal(out, b"10000\n", paths)
        assert f"{torn}: the same segment again; skipped" in err, err


@pytest.mark.parametrize("changed", ["kept", "copied", "lost", "long before"])
def test_the_last_matches_are_the_latest_of_recordings_that_overlap(tmp, changed):
    """The times when the files were changed only save opening some: whatever they are, the answer is the same."""
    out = tmp / "rec"
    out.mkdir()
    # The first one, which has the lower id, ends last; the third lies in the middle of both.
    speed = 100 if changed == "long before" else 1  # a replay of minutes takes no time
    for ticks, count in ((1000, 30), (700, 30), (250, 20)):
        stream = tmp / "stream"
        stream.write_bytes(b"".join(struct.pack("<I4BI", 8 * i, 1, 4, 0, 0, ticks * speed) for i in range(count)))
        equal(run(need(harness.BUSCAPD), "--once", "--no-socket", "--source", f"file:{stream},format=byu,clock_hz=1000", "-o", out,
                  "-b", f"duration:{5 * speed}s").returncode, 0)
    paths = harness.segments(out)
    assert len(paths) > 9, paths
    for path in paths if changed in ("copied", "lost") else ():
        os.utime(path, None if changed == "copied" else (0, 0))
    hits = [json.loads(line) for line in buscap("find", "--json", "0-", out)[0].splitlines()]
    equal(len(hits), 80)
    by_time = sorted(range(80), key=lambda i: (hits[i]["time"], i))
    assert len({hits[i]["recording"] for i in by_time[-10:]}) == 2 and hits[by_time[-1]]["recording"] == hits[0]["recording"]
    for last in (1, 2, 5, 12, 40, 79, 80, 100):
        wanted = [hits[i] for i in sorted(by_time[-last:])]
        found_last = [json.loads(line) for line in buscap("find", "--json", "--last", last, "0-", out)[0].splitlines()]
        equal(found_last, wanted, last)


def started(recording):
    """When a recording started, in ns since 1970: its id has the second, and 4096ths of it."""
    second = datetime.datetime.strptime(recording[:16] + "+0000", "%Y%m%dT%H%M%SZ%z")
    return int(second.timestamp()) * 10**9 + int(recording[17:20], 16) * 10**9 // 4096


def in_order(paths, command, is_from_end=False):
    """What a command says of each recording alone, merged by time; each keeps its own order.

    After its clock was set back, a record has the time of the one before it (from the end: that of the one after it)."""
    lanes = {}
    for path in paths:
        lanes.setdefault(path.name.rsplit("-", 1)[0], []).append(path)
    alone = [[json.loads(line) for line in buscap(*command, *lanes[name])[0].splitlines()] for name in sorted(lanes)]
    for lane, name in zip(alone, sorted(lanes)):
        at = "9" if is_from_end else utc(started(name))
        for one in reversed(lane) if is_from_end else lane:
            one["at"] = at = (min if is_from_end else max)(at, one["time"])
    merged = list(heapq.merge(*alone, key=lambda one: one["at"]))
    for one in merged:
        del one["at"]
    return merged


def overlapping(tmp, dice, recordings=4):
    """Recordings that start in the same second, with random pauses, losses, triggers and rotations."""
    out = tmp / "rec"
    out.mkdir()
    for _ in range(recordings):
        stream = tmp / "stream"
        stream.write_bytes(reference.make_bcp1(dice, reference.Features(samples=dice.randrange(50, 400), frame=10, p_loss=0.3, p_pause=0))[0])
        equal(run(need(harness.BUSCAPD), "--once", "--no-socket", "--source", f"file:{stream},format=bcp1,clock_hz={dice.choice((300, 1000))}",
                  "-o", out, "-b", "duration:2s").returncode in (0, 4), True)
    return out, harness.segments(out)


def test_recordings_that_overlap_are_listed_in_the_order_of_time(tmp):
    dice = random.Random(31)
    out, paths = overlapping(tmp, dice)

    def lines(*argv):
        return [json.loads(line) for line in buscap(*argv)[0].splitlines()]

    wanted = in_order(paths, ("find", "-j", "0-"))
    recordings = [hit["recording"] for hit in wanted]
    assert sum(a != b for a, b in zip(recordings, recordings[1:])) > 20, recordings
    equal(lines("find", "-j", "0-", out), wanted, "find")
    equal(lines("find", "-j", "0-", *dice.sample(paths, len(paths))), wanted, "whatever the order of the operands")
    equal(buscap("find", "--count", "0-", out)[0], b"%d\n" % len(wanted))
    for n in (1, 2, 7, 50, len(wanted) - 1, len(wanted), len(wanted) + 1):
        equal(lines("find", "-j", "--first", n, "0-", out), wanted[:n], f"first {n}")
        equal(lines("find", "-j", "--last", n, "0-", out), wanted[-n:], f"last {n}")
    equal(lines("marks", "-j", out), in_order(paths, ("marks", "-j")), "marks")
    matches = in_order(paths, ("find", "-j", "--type", "write", "0-"))
    for limit in ([], ["--first", 3], ["--last", 3]):
        shown = lines("find", "-j", "--type", "write", "-U", 2, *limit, "0-", out)
        found = [hit for hit in shown if not hit["is_context"]]
        equal(found, matches[:3] if "--first" in limit else matches[-3:] if limit else matches, limit)
        # Each record once, with its neighbours, in the order of its recording.
        by_recording = {}
        for hit in shown:
            by_recording.setdefault(hit["recording"], []).append(hit["number"])
        for recording, numbers in by_recording.items():
            equal(numbers, sorted(set(numbers)), recording)
            whole = {hit["number"]: hit["segment"] for hit in wanted if hit["recording"] == recording}
            near = {at for hit in found if hit["recording"] == recording
                    for at in range(hit["number"] - 2, hit["number"] + 3) if whole.get(at) == hit["segment"]}
            equal(numbers, sorted(near), recording)


def test_recordings_whose_clocks_were_set_back(tmp):
    """Each keeps its order. The latest matches are the latest by the clock as it was set."""
    dice = random.Random(8)
    out, paths = overlapping(tmp, dice, 5)
    seconds = collections.Counter()
    for path in paths:
        recording = path.name[:23]
        seconds[recording] += dice.choice((0, 0, 3, -1, -2, -4))
        walls = [(n, "<q", 64, chunk.info["wall_ns"] + seconds[recording] * 10**9)
                 for n, chunk in enumerate(reference.read_segment(path).chunks)]
        path.write_bytes(reference.forged(path, walls))
        buscap("recover", path, "-o", out / "sealed")
        (out / "sealed").rename(path)

    def lines(*argv, where=(out,)):
        return [json.loads(line) for line in buscap("find", "-j", *argv, *where)[0].splitlines()]

    wanted = in_order(paths, ("find", "-j", "0-"))
    times = [hit["time"] for hit in wanted]
    assert len(set(seconds.values())) > 1 and times != sorted(times), seconds
    equal(lines("0-"), wanted)
    equal(lines("--first", 70, "0-"), wanted[:70])
    from_end = in_order(paths, ("find", "-j", "0-"), is_from_end=True)
    assert [hit["tick"] for hit in from_end] != [hit["tick"] for hit in wanted]

    def place(hit):
        return hit["recording"], hit["number"]

    for n in (1, 2, 7, 50, 200, len(wanted) - 1, len(wanted)):
        last = lines("--last", n, "0-")
        equal(sorted(map(place, last)), sorted(map(place, from_end[-n:])), n)
        for recording in seconds:
            numbers = [hit["number"] for hit in last if hit["recording"] == recording]
            equal(numbers, sorted(numbers), (n, recording))
    for _ in range(200 if NIGHTLY else 5):
        page = int(dice.choice(wanted)["addr"], 16) & ~0xFFF
        found = lines(f"{page:x}-{page + 0xFFF:x}")
        for recording in seconds:
            alone = lines(f"{page:x}-{page + 0xFFF:x}", where=[path for path in paths if path.name.startswith(recording)])
            equal([hit for hit in found if hit["recording"] == recording], alone, (hex(page), recording))


def test_a_mark_limits_recordings_that_overlap_by_its_time(tmp):
    out = tmp / "rec"
    out.mkdir()
    (tmp / "other").mkdir()
    with harness.Daemon("--source", "sim:seed=1,rate=5k", "-o", out, socket=tmp / "s") as daemon, \
            harness.Daemon("--source", "sim:seed=2,rate=5k", "-o", tmp / "other", socket=tmp / "t") as other:
        for one in (daemon, other):
            one.wait_ready()
        for text in ("roi", "end", "past"):
            for one in (daemon, other):
                before = one.status()["counts"]["received"]
                harness.wait_until(lambda one=one, before=before: one.status()["counts"]["received"] > before + 500, "records")
            buscap("mark", "--socket", tmp / "s", text)
        for one in (daemon, other):
            assert one.stop() in (0, 4)
    paths = [*harness.segments(out), *harness.segments(tmp / "other")]
    roi, end = ([m for m in map(json.loads, buscap("marks", "-j", "--kind", "mark", *paths)[0].splitlines()) if m["text"] == text][0]
                for text in ("roi", "end"))
    hits = [json.loads(line) for line in buscap("find", "-j", "0-", *paths)[0].splitlines()]

    def after(hit, mark):
        return hit["number"] >= mark["number"] if hit["recording"] == mark["recording"] else hit["time"] >= mark["time"]

    wanted = [hit for hit in hits if after(hit, roi) and not after(hit, end)]
    assert len({hit["recording"] for hit in wanted}) == 2 and len(wanted) < len(hits)
    found = [json.loads(line) for line in buscap("find", "-j", "--after-mark", "roi", "--before-mark", "end", "0-", *paths)[0].splitlines()]
    equal(found, wanted)


def test_a_count_has_separators_for_people_only():
    paths, *_ = recorded_segments()
    number = int(buscap("find", "-c", "0-", *paths)[0])
    assert number > 1000, number
    ours, theirs = pty.openpty()
    process = subprocess.Popen([need(BUSCAP), "find", "-c", "0-", *paths], stdout=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    equal(os.read(ours, 100).decode().strip(), f"{number:,}")
    os.close(ours)
    equal(process.wait(), 0)
