"""Recordings that start and end within a stream: by trigger, limit and snapshot; filters and sampling. The
simulated bus is deterministic, so the expected records and ticks are known exactly."""

import csv
import functools
import io
import itertools
import json
import re
import signal
import struct
import time
import typing

import pytest

import harness
from api_harness import Fifo
from harness import BUSCAP, BUSCAPD, Daemon, check_counts, equal, run

pytestmark = pytest.mark.threads

COUNT = 150_000
RATE = harness.rate(400_000)
TIME_NONE = 0xFFFFFFFF
CHUNK_RECORDS = 87_381
IO_READ, IO_WRITE = 0x10, 0x11


class Bus:
    """All records of the simulated bus, with their ticks."""

    def __init__(self, count=COUNT, seed=1, **settings):
        self.records = list(struct.iter_unpack("<IBBBBI", harness.sim_records(count, seed, **settings)))
        self.ticks = list(itertools.accumulate(record[5] if record[5] != TIME_NONE else 0 for record in self.records))

    def of_port(self, port):
        """The records that write to an I/O port."""
        return [i for i, (addr, kind, size, *_) in enumerate(self.records)
                if kind == IO_WRITE and addr <= port < addr + max(size, 1)]


def ports(bus):
    """The I/O ports that are written to, the least frequent first."""
    seen = {}
    for addr, kind, size, *_ in bus.records:
        if kind == IO_WRITE and size == 1:
            seen[addr] = seen.get(addr, 0) + 1
    return sorted(seen, key=seen.get)


def recordings(out):
    """Each recording in a directory: the info and all records of its segments."""
    by_id = {}
    for path in harness.segments(out):
        by_id.setdefault(path.name.rsplit("-", 1)[0], []).append(path)
    return [(info, struct.iter_unpack("<IBBBBI", harness.lz4_dc(paths)))
            for info, paths in ((harness.info(paths), paths) for paths in by_id.values())]


def check_slice(bus, info, records, first, last, offset):
    """The recording has the bus's records first to last with their ticks. The first has no delta."""
    records = list(records)
    want = bus.records[first:last + 1]
    equal(len(records), len(want), "records")
    equal(records[0], (*want[0][:5], TIME_NONE), "the first record")
    assert records[1:] == want[1:], "the records after it"
    equal(info[0]["first_tick"], bus.ticks[first] + offset, "its tick")


def record(tmp, *settings, count=COUNT, act=None, source="", name="out", rate=RATE):
    """Runs the daemon over the whole stream. Returns the output directory and the last status."""
    out = tmp / name
    argv = ["--source", f"sim:rate={rate},count={count}{source}", "-o", out]
    for setting in settings:
        argv += ["--set", setting]
    with Daemon(*argv, socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        if act:
            act(daemon)
        harness.wait_until(lambda: daemon.status()["counts"]["received"] >= count, "everything is received")
        harness.wait_until(lambda: daemon.status()["state"] == "idle", "the daemon is idle again")
        status = daemon.status()
        check_counts(status)
        equal(daemon.stop(), 0, daemon.err)
    harness.verify(harness.segments(out))
    return out, status


@functools.cache
def tick_offset():
    """The tick at which the simulated bus starts, to be added to sums of deltas."""
    out = harness.shared("tick-offset", lambda new: run(
        harness.BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=1000", "-o", new))
    return harness.info(harness.segments(out))[0]["first_tick"]


def test_one_port_starts_a_recording_and_another_ends_it(tmp):
    bus = Bus()
    on, off = ports(bus)[2:4]
    starts, ends = bus.of_port(on), bus.of_port(off)
    want, at = [], 0
    while True:
        first = next((i for i in starts if i >= at), None)
        last = next((i for i in ends if first is not None and i >= first), None)
        if first is None:
            break
        want.append((first, last if last is not None else len(bus.records) - 1))
        at = want[-1][1] + 1
        if last is None:
            break
    out, status = record(
        tmp, "recording.record=on-demand", f"trigger on.when=port={on:x} type=iowrite", "trigger on.action=start",
        f"trigger off.when=port={off:x} type=iowrite", "trigger off.action=stop")
    got = recordings(out)
    offset = tick_offset()
    harness.note(f"{len(got)} recordings of {sum(b - a + 1 for a, b in want)} records")
    equal(len(got), len(want), f"recordings; ports {on:x}, {off:x}")
    for (info, records), (first, last) in zip(got, want):
        check_slice(bus, info, records, first, last, offset)
    equal(status["counts"]["written"], sum(last - first + 1 for first, last in want), "written")
    equal(status["counts"]["dropped"]["idle"],
          len(bus.records) - status["counts"]["written"], "records outside of recordings")


def check_around_a_port(tmp, before, after, *settings):
    """A trigger `s` on a write to a port records this many records before and after it."""
    bus = Bus()
    port = next(p for p in ports(bus) if bus.of_port(p)[0] > 20_000)
    match = bus.of_port(port)[0]
    out, _ = record(tmp, "recording.record=flight", f"trigger s.when=port={port:x} type=iowrite", "trigger s.holdoff=1h", *settings)
    (info, records), = recordings(out)
    check_slice(bus, info, records, match - before, match + after, tick_offset())


def test_a_snapshot_contains_its_pre_size(tmp):
    check_around_a_port(tmp, 120 * 1024 // 12, 0, "trigger s.action=snapshot", "trigger s.pre=120KiB")


def test_a_recording_started_by_a_trigger_ends_after_its_post_size(tmp):
    check_around_a_port(tmp, 1024, 1200 * 1024 // 12, "trigger s.action=start", "trigger s.pre=12KiB",
                        "trigger s.post=1200KiB")


def in_silence(tmp, action, mode, *settings):
    """A daemon with a trigger `q` on 100 ms of idle time. There is one record per second; the bus is also silent before
    the first."""
    argv = ["--source", "sim:rate=1", "-o", tmp / "out"]
    for setting in (f"recording.record={mode}", "trigger q.when=idle 100ms", f"trigger q.action={action}", *settings):
        argv += ["--set", setting]
    return Daemon(*argv, socket=tmp / "socket")


def trigger_of(daemon):
    """The trigger `q` as the daemon reports it."""
    code, answer = harness.http(daemon.socket, "/v1/triggers/q")
    equal(code, 200, answer)
    return json.loads(answer)["trigger"]


def test_each_silence_is_marked_once_while_it_lasts(tmp):
    with in_silence(tmp, "mark", "always", "trigger q.text=silence") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: trigger_of(daemon)["fired"] >= 3, "three silences")
        check_counts(daemon.status())
        trigger = trigger_of(daemon)
        equal(trigger["missed"], 0, "missed before the first record")
        equal(daemon.stop(), 0, daemon.err)
    infos = harness.info(harness.segments(tmp / "out"))
    marks = [event["record"] for info in infos for event in info["events"] if event["kind"] == "mark"]
    texts = {event["text"] for info in infos for event in info["events"] if event["kind"] == "mark"}
    equal(texts, {"silence"}, "texts")
    assert len(marks) >= trigger["fired"], (marks, trigger)
    equal(marks, sorted(set(marks)), "at most one mark between two records")
    assert 1 <= marks[0] and marks[-1] <= sum(info["records"] for info in infos), marks


def test_a_recording_that_is_started_in_a_silence_waits_for_its_first_record(tmp):
    with Daemon("--source", "sim:rate=1", "-o", tmp / "out", "--set", "recording.record=on-demand",
                socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["received"], "a sample")
        done = run(BUSCAP, "record", "start", "--trigger", "end:stop:idle 100ms", "--socket", daemon.socket)
        equal(done.returncode, 0, done.stderr)
        harness.wait_until(lambda: daemon.status()["sealed"]["segments"], "the end of the recording")
        equal(daemon.stop(), 0, daemon.err)
    (info, _), = recordings(tmp / "out")
    assert sum(segment["records"] for segment in info) >= 1, info


def test_silences_start_and_end_recordings_with_an_event(tmp):
    bus = Bus(1000)
    with in_silence(tmp, "toggle", "on-demand", "pipeline.flush=1h") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["sealed"]["segments"] >= 2, "two recordings are sealed")
        check_counts(daemon.status())
        equal(daemon.stop(), 0, daemon.err)
    offset = tick_offset()
    end = 0
    found = recordings(tmp / "out")
    for number, (info, records) in enumerate(found):
        count = sum(segment["records"] for segment in info)
        if count == 0:
            # Started in the last silence: the daemon was stopped before its first record.
            equal(number, len(found) - 1, "the number of the recording without records")
            continue
        first = bus.ticks.index(info[0]["first_tick"] - offset)
        check_slice(bus, info, records, first, first + count - 1, offset)
        assert first >= end, f"record {first} is recorded twice"
        end = first + count
        events = [(event["record"], event["text"]) for segment in info for event in segment["events"]]
        # The first may start before any data, and the last ends with the daemon.
        if number == 1:
            # If the loop was paused for most of a silence, the record after it ends the recording.
            assert events in ([(0, "q"), (count, "q")], [(0, "q"), (count - 1, "q")]), events


def check_started(recording, before, directory):
    """Checks that a recording started after a moment, and that its files say the same. Returns the time."""
    (segment,) = harness.info(sorted(directory.glob(recording["id"] + "*.lz4")))
    first_ns = segment["first_wall_ns"]
    assert before * 1e9 <= first_ns, (before, first_ns)
    seconds, _, fraction = recording["started"].rstrip("Z").partition(".")
    started = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(first_ns // 10**9))
    equal((seconds, int(fraction.ljust(9, "0"))), (started, first_ns % 10**9), "started")
    equal(recording["id"][:16], started.replace("-", "").replace(":", "") + "Z", "time in the id")
    return first_ns / 1e9


def trimmed_recording(daemon, path, pre):
    """Starts a recording that keeps this many seconds, and ends it. Returns the times before and after, and the
    recording."""
    harness.wait_until(lambda: (daemon.status()["flight"] or {"seconds": 0})["seconds"] > 3 * pre, "enough is held")
    before = time.time()
    code, answer = harness.http(daemon.socket, path, "POST", json.dumps({"pre": f"{round(pre * 1000)}ms"}))
    after = time.time()
    equal(code, 201, answer)
    if path == "/v1/recordings":
        code, answer = harness.http(daemon.socket, "/v1/recordings/current", "DELETE")
    return before, after, json.loads(answer)["recording"]


def test_a_trimmed_recording_starts_at_the_time_of_its_first_record(tmp):
    """The chunks are longer than the time that is kept."""
    out = tmp / "out"
    pre = 0.4
    with Daemon("--source", "sim:rate=100k", "-o", out, "--set", "recording.record=flight", "--set",
                "recording.flight_time=5m", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        for path in ("/v1/snapshot", "/v1/recordings"):
            early = late = None
            for _ in range(50):
                before, after, recording = trimmed_recording(daemon, path, pre)
                if recording["records"] == 0:
                    continue  # the bus was silent all that time
                started = check_started(recording, 0, out)
                early, late = before - pre - 0.01 - started, started - (after - pre)
                if early <= 0 and late <= 0.2:  # else the bus has paused, or stood still on a busy machine
                    break
            assert early is not None and early <= 0 and late <= 0.2, f"{path}: {early} s too early or {late} s too late"
        equal(daemon.stop(), 0, daemon.err)
    harness.verify(harness.segments(out))


def test_a_stop_says_what_the_flight_recorder_held(tmp):
    with Daemon("--source", "sim:rate=20000", "-o", tmp / "out", "--set", "recording.record=flight", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["flight"]["records"] > 1000, "something is held")
        equal(daemon.stop(), 0, daemon.err)
    held = re.search(r"SIGTERM: stopping; the flight recorder's \d+\.\d s \(([\d,]+) records\) are discarded", daemon.err.decode())
    assert held and int(held[1].replace(",", "")) > 1000, daemon.err


def test_a_stop_in_any_state_is_clean(tmp):
    bcp = run(BUSCAP, "sim", "-n", COUNT, "-O", "bcp1").stdout
    live = ("--source", f"sim:rate={RATE}")
    states = ((live, "on-demand", []), (live, "flight", []), (live, "on-demand", [("recordings", "{}")]),
              (live, "flight", [("recordings", '{"pre":"all"}')]), (live, "flight", [("snapshot", '{"post":"1h"}')]),
              (live, "on-demand", [("recordings", "{}"), ("rotate", "{}")]),
              (("--speed", "0.01"), "always", []), (("--speed", "0.01"), "always", [("rotate", "{}")]))
    for number, (source, mode, requests) in enumerate(states):
        out = tmp / f"out{number}"
        out.mkdir()
        with Fifo(out) as fifo, Daemon(*source, *(() if source == live else ("--source", fifo.source)), "-o", out, "--set",
                                       f"recording.record={mode}", socket=tmp / "socket") as daemon:
            daemon.wait_ready()
            if source != live:
                fifo.send(bcp, is_end=False)
            harness.wait_until(lambda: daemon.status()["counts"]["received"] > 0, "data arrives")
            for path, body in requests:
                code, answer = harness.http(daemon.socket, f"/v1/{path}", "POST", body)
                assert code in (200, 201), answer
            check_counts(daemon.status())
            equal(daemon.stop(), 0, daemon.err)
        equal(list(out.glob("*.partial")), [], "left open")
        if harness.segments(out):
            harness.verify(harness.segments(out))


def test_a_limit_below_the_flight_recorders_contents_ends_the_recording_there(tmp):
    with Daemon("--source", f"sim:rate={RATE}", "-o", tmp / "out", "--set", "recording.record=flight",
                socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        for count in (1, 1000, CHUNK_RECORDS, CHUNK_RECORDS + 1):
            harness.wait_until(lambda n=count: daemon.status()["flight"]["records"] > n + 1000, "the flight recorder contains enough")
            body = json.dumps({"label": f"n{count}", "pre": "all", "limits": {"records": count}})
            code, answer = harness.http(daemon.socket, "/v1/recordings", "POST", body)
            equal(code, 201, answer)
            harness.wait_until(lambda: daemon.status()["state"] == "idle", "the recording has ended")
            check_counts(daemon.status())
            equal(harness.info(harness.segments(tmp / "out", f"-n{count}-00000.byu.lz4"))[0]["records"], count, "records")
        equal(daemon.stop(), 0, daemon.err)


def record_until(tmp, bus, post):
    """Records the bus from a file, stopping `post` after a write to one of its ports. Returns that record and the recording."""
    port = next(p for p in ports(bus) if bus.of_port(p)[0] > 20_000)
    settings = tmp / "buscapd.conf"
    settings.write_text(f"[trigger end]\nwhen = port={port:x} type=iowrite\naction = stop\npost = {post}\n")
    with Fifo(tmp) as fifo, Daemon("-c", settings, "--source", fifo.source, "-o", tmp / "out", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        fifo.send(run(BUSCAP, "sim", "-n", COUNT, "-O", "bcp1").stdout)
        harness.wait_until(lambda: daemon.status()["state"] == "idle", "the recording is sealed")
        check_counts(daemon.status())
        equal(daemon.stop(), 0, daemon.err)
    (info, records), = recordings(tmp / "out")
    return bus.of_port(port)[0], info, records


def test_a_recording_from_a_file_ends_some_bus_time_after_its_trigger(tmp):
    bus = Bus()
    match, info, records = record_until(tmp, bus, "3ms")
    end = next(i for i, tick in enumerate(bus.ticks) if tick >= bus.ticks[match] + 66_000 * 3)
    check_slice(bus, info, records, 0, end - 1, tick_offset())


def test_the_flight_recorder_keeps_to_its_size(tmp):
    out = tmp / "out"
    with Daemon("--source", f"sim:rate={RATE}", "-o", out, "--set", "recording.record=flight", "--set",
                "recording.flight_size=3MiB", "--set", "recording.flight_time=1h", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["flight"]["bytes"] >= 3 << 20, "the flight recorder is full")
        for _ in range(10):
            status = daemon.status()
            check_counts(status)
            equal(status["state"], "idle", "the state")
            assert 3 << 20 <= status["flight"]["bytes"] <= (3 << 20) + 2 * CHUNK_RECORDS * 12, status["flight"]
            equal(status["counts"]["in_flight"], status["flight"]["records"], "in flight")
            time.sleep(0.05)
        code, answer = harness.http(daemon.socket, "/v1/snapshot", "POST", "{}")
        equal(code, 201, answer)
        taken = json.loads(answer)["recording"]
        equal(taken["state"], "sealed", answer)
        assert taken["records"] >= (3 << 20) // 12, answer
        equal(daemon.stop(), 0, daemon.err)
    harness.verify(harness.segments(out))
    equal(sum(i["records"] for i in harness.info(harness.segments(out))), taken["records"], "records")


# ---- compared with the same bus recorded without them


# It is sent as fast as it is read, so the trace is the same each time; only the board loses samples.
BUS = "sim:rate=max,count=80000,seed=5,agents=2,loss=0.3,corrupt=0.05"


class Reference(typing.NamedTuple):
    tick: int
    epoch: int
    kind: str
    addr: int
    size: int
    attr: int
    proc: int


def rows_of(paths):
    """The contents of a recording, in order: a Reference, or a tuple for a gap, mark or trigger."""
    done = run(BUSCAP, "convert", "-O", "csv", "-o", "-", *paths)
    equal(done.returncode, 0, done.stderr)
    rows = []
    lines = csv.reader(io.StringIO(done.stdout.decode()))
    header = next(lines)
    tick, epoch, kind, type_, addr, size, attr, proc, cause, lost, exact, text = map(header.index, (
        "tick", "epoch", "kind", "type", "addr", "size", "attr", "proc", "cause", "lost", "exact", "text"))
    for row in lines:
        if row[kind] == "reference":
            rows.append(Reference(int(row[tick]), int(row[epoch]), row[type_], int(row[addr], 16), int(row[size]),
                                  int(row[attr]), int(row[proc])))
        elif row[kind] == "gap":
            rows.append(("gap", row[cause], row[lost], row[exact]))
        elif row[kind] in ("mark", "trigger"):
            rows.append((row[kind], row[text]))
    return rows


def once(directory, *settings, source=BUS):
    """The rows of a recording with these settings, and its counts."""
    argv = [word for setting in settings for word in ("--set", setting)]
    done = run(BUSCAPD, "--once", "--source", source, "-o", directory, *argv)
    assert done.returncode in (0, 3, 4), done.stderr
    harness.check_sound(done.stderr)
    counts = json.loads(done.stdout)["counts"]
    harness.check_counts({"counts": counts})
    paths = harness.segments(directory)
    equal(run(BUSCAP, "verify", *paths).returncode, 0)
    return rows_of(paths), counts


def references(rows):
    return [row for row in rows if isinstance(row, Reference)]


def is_match(row, port):
    return isinstance(row, Reference) and row.kind == "IOWRITE" and row.addr <= port < row.addr + row.size


def test_a_filter_keeps_matching_records_with_their_ticks_and_every_gap(tmp):
    whole, _ = once(tmp / "whole")
    kept, counts = once(tmp / "kept", "filter.keep=type=read,write", "filter.keep.io=type=IO_WRITE",
                        "filter.leave_out=proc=1 addr=0-ffffff")
    wanted = [row for row in whole if not isinstance(row, Reference) or (
        row.kind in ("MEMREAD", "MEMREADINV", "MEMWRITE", "IOWRITE") and not (
            row.proc == 1 and row.addr - (row.addr % row.size if row.size in (16, 32) else 0) <= 0xffffff))]
    equal(kept, wanted)
    equal(counts["dropped"]["filtered"], len(references(whole)) - len(references(kept)))
    assert 0 < len(references(kept)) < len(references(whole))
    assert len(kept) - len(references(kept)) > 5, "the records include gaps"


def losses(rows):
    """The sum of the losses of all gaps of a cause, since adjacent gaps are merged."""
    sums = {}
    for row in rows:
        if not isinstance(row, Reference):
            sums[row[1]] = sums.get(row[1], 0) + int(row[2])
    return sums


def test_sampling_keeps_the_start_of_each_period_of_bus_time(tmp):
    whole, _ = once(tmp / "whole")
    for sampling, width, period in (("1ms/10ms", 66000, 660000), ("0.00001/0.0001", 660, 6600)):
        kept, counts = once(tmp / str(width), f"recording.sampling={sampling}")
        equal(references(kept), [row for row in references(whole) if row.tick % period < width])
        equal(losses(kept), losses(whole))
        equal(counts["dropped"]["filtered"], len(references(whole)) - len(references(kept)))
        assert 0 < len(references(kept)) < len(references(whole)) / 5


def test_a_write_to_a_port_makes_a_mark_before_it(tmp):
    whole, _ = once(tmp / "whole")
    marked, _ = once(tmp / "marked", "trigger roi.when=port=20 type=iowrite", "trigger roi.action=mark",
                     "trigger roi.text=ä \"here\"")
    wanted = []
    for row in whole:
        if is_match(row, 0x20):
            wanted.append(("mark", 'ä "here"'))
        wanted.append(row)
    equal(marked, wanted)
    assert len(marked) - len(whole) > 5


def test_filtered_records_trigger_nothing(tmp):
    kept, _ = once(tmp / "kept", "filter.leave_out=type=IO_WRITE", "trigger roi.when=port=20",
                   "trigger roi.action=mark")
    assert not [row for row in kept if row == ("mark", "roi")]


def test_a_reload_changes_filters_and_triggers_immediately(tmp):
    config = tmp / "c.conf"
    config.write_text("[filter]\nkeep = type=IO_WRITE\n[trigger roi]\nwhen = port=43\naction = mark\n")
    with Daemon("-c", config, "--source", "sim:rate=50k,count=1M,seed=5", "-o", tmp / "live",
                socket=tmp / "s") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["written"] > 0, "records are written")
        config.write_text("[filter]\nkeep = type=read\n[trigger all]\nwhen = proc=0\naction = mark\nholdoff = 1ms\n")
        daemon.process.send_signal(signal.SIGHUP)
        before = daemon.status()["counts"]["received"]
        harness.wait_until(lambda: daemon.status()["counts"]["received"] > before + 20_000, "the daemon continues")
        equal(daemon.status()["triggers"], 1)
        equal(daemon.stop(), 0)
    rows = rows_of(harness.segments(tmp / "live"))
    kinds = [row.kind == "IOWRITE" for row in references(rows)]
    change = kinds.index(False)
    assert all(kinds[:change]) and not any(kinds[change:])
    assert {row.kind for row in references(rows)} == {"IOWRITE", "MEMREAD"}
    assert ("mark", "all") in rows and rows.index(("mark", "all")) >= change
    ticks = [row.tick for row in references(rows)]
    equal(ticks, sorted(ticks))
