"""Times of day of live recordings: within an epoch they go on with the bus, as exactly as arrivals can tell."""

import json
import time

import pytest

import harness
import reference
from harness import BUSCAP, Daemon, equal, run

pytestmark = pytest.mark.threads

EXACT_S = 1e-3
PAUSE_TICKS = 700_000  # the simulated bus is never silent for longer
RATE = harness.rate(400_000)


def lines(*argv):
    done = run(BUSCAP, *argv)
    assert done.returncode in (0, 1), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def chunks(out):
    """The headers of the chunks with records."""
    found = [chunk.info for path in harness.segments(out) for chunk in reference.read_segment(path).chunks]
    return [info for info in found if info["records"]]


def steps(infos, clock_hz):
    """By how much time steps from each chunk to the next, beyond the ticks."""
    return [(after["wall_ns"] - before["wall_ns"]) * 1e-9 - (after["first_tick"] - before["first_tick"]) / clock_hz
            for before, after in zip(infos, infos[1:])]


def record_with_marks(out, marks):
    with Daemon("--source", f"sim:rate={RATE},seed=4", "-o", out, "--set", "pipeline.flush=50ms", socket=out.parent / "s") as daemon:
        daemon.wait_ready()
        for n in range(marks + 1):
            written = daemon.status()["counts"]["written"]
            harness.wait_until(lambda: daemon.status()["counts"]["written"] > written + RATE // 5, "records")
            if n < marks:
                equal(run(BUSCAP, "mark", "--socket", daemon.socket, f"m{n}").returncode, 0)
        daemon.wait_uptime(3)
        clock_hz = daemon.status()["source"]["clock_hz"]
        equal(daemon.stop(), 0, daemon.err)
    return clock_hz


def test_a_printed_time_leads_back_to_its_place(tmp):
    out = tmp / "out"
    clock_hz = record_with_marks(out, 6)
    infos = chunks(out)
    assert len(infos) > 6
    worst = min(steps(infos, clock_hz))
    assert worst > -EXACT_S, f"a step back of {-worst} s"
    for mark in lines("marks", "--kind", "mark", "--json", out):
        (found,) = lines("find", "--from", mark["time"], "--first", "1", "--json", "0-", out)
        assert 0 <= mark["tick"] - found["tick"] <= EXACT_S * clock_hz or found["number"] == mark["number"], (mark, found)
    # A second has a second, but for a pause of the bus at either end.
    begin = infos[1]["wall_ns"] + 300_000
    part = tmp / "part.byu.lz4"
    text = [f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(ns // 10**9))}.{ns % 10**9:09}Z" for ns in (begin, begin + 10**9)]
    equal(run(BUSCAP, "cut", "--from", text[0], "--to", text[1], "-o", part, out).returncode, 0)
    cut = [chunk.info for chunk in reference.read_segment(part).chunks if chunk.info["records"]]
    seconds = (cut[-1]["last_tick"] - cut[0]["first_tick"]) / clock_hz
    assert 1 - 2 * PAUSE_TICKS / clock_hz < seconds <= 1 + EXACT_S, seconds


def test_a_clock_that_is_set_is_told_and_moves_later_times(tmp):
    out = tmp / "out"
    clock = harness.MovedClock(tmp)
    with Daemon("--source", f"sim:rate={RATE}", "-o", out, "--set", "pipeline.flush=50ms", socket=tmp / "s", env=clock.env) as daemon:
        daemon.wait_ready()
        with open(tmp / "events", "wb") as out_file, \
                harness.popen([BUSCAP, "events", "--json", "--socket", daemon.socket], stdout=out_file) as reader:
            harness.wait_until(lambda: daemon.status()["streams"]["events"] == 1, "events are read")
            harness.wait_until(lambda: daemon.status()["counts"]["written"] > RATE // 2, "records")
            clock.move(3600)
            (event,) = harness.wait_until(lambda: [json.loads(line) for line in (tmp / "events").read_text().splitlines()
                                                   if '"clock"' in line and line.endswith("}")], "the event")
            reader.terminate()
        written = daemon.status()["counts"]["written"]
        harness.wait_until(lambda: daemon.status()["counts"]["written"] > written + RATE // 5, "more records")
        clock_hz = daemon.status()["source"]["clock_hz"]
        equal(daemon.stop(), 0, daemon.err)
    equal(event["reason"], "set")
    assert abs(event["moved_seconds"] - 3600) < 1, event
    assert b"warning: the time of day moved by +3600.0" in daemon.err, daemon.err
    large = [step for step in steps(chunks(out), clock_hz) if abs(step) > EXACT_S]
    assert len(large) == 1 and abs(large[0] - 3600) < 1, large


def test_recordings_of_one_host_are_merged_in_order_of_time(tmp):
    with Daemon("--source", f"sim:rate={RATE}", "-o", tmp / "a", socket=tmp / "a.s") as a, \
            Daemon("--source", f"sim:rate={RATE},seed=2", "-o", tmp / "b", socket=tmp / "b.s") as b:
        for daemon in (a, b):
            daemon.wait_ready()
        for daemon in (a, b):
            harness.wait_until(lambda: daemon.status()["counts"]["received"] > RATE, "a second of the bus")
        for daemon in (a, b):
            equal(daemon.stop(), 0, daemon.err)
    merged = tmp / "merged.byu.lz4"
    paths = [path for name in "ab" for path in harness.segments(tmp / name)]
    done = run(BUSCAP, "merge", "--by", "wall", "-o", merged, *paths)
    text = done.stderr.decode()
    equal(done.returncode, 0, text)
    if "out of order" in text:
        assert float(text.split("out of order by at most ")[1].split(" ms")[0]) <= EXACT_S * 1e3, text


def test_the_flight_recorder_keeps_its_records_when_the_clock_is_set(tmp):
    clock = harness.MovedClock(tmp)
    with Daemon("--source", f"sim:rate={RATE}", "-o", tmp / "out", "--set", "recording.record=flight", socket=tmp / "s",
                env=clock.env) as daemon:
        daemon.wait_ready()
        for step in (3600, -3600):
            harness.wait_until(lambda: (daemon.status()["flight"] or {"records": 0})["records"] > RATE, "a second is held")
            clock.move(step)
            code, answer = harness.http(daemon.socket, "/v1/snapshot", "POST", json.dumps({"pre": "900ms"}))
            records = json.loads(answer)["recording"]["records"]
            assert RATE // 4 < records < 2 * RATE, (code, answer)
        equal(daemon.stop(), 0, daemon.err)
