"""Sets the clock back and ahead by up to decades, while the daemon is stopped and while it records
(tests/support/faultclock.c). A round is one recording.

The records, their gaps and the counts must be as with a steady clock. The ring must delete the oldest recordings, in the
order in which they were made, and max_age nothing that only looks old.
"""

import json
import random
import time

import torture

import attack
import harness
from harness import Daemon, MovedClock, Watch, equal

YEAR = 365.25 * 86400
SECOND = 1.0
DELTAS = (-6 * YEAR, 10 * YEAR, -1 * YEAR, 1 * YEAR, -3600, 3600, -SECOND, SECOND, -30 * YEAR, 60 * YEAR)
MOMENTS = {"1970": 5, "2000": 946684795, "2038": 2**31 - 1, "2106": 2**32 - 1, "2200": 7258118400}
FILES = 6
RATE = 500_000


def record_once(directory, clock, count, *options, code=0):
    """Records the simulator to its end. Returns the printed status and the log."""
    with Daemon("--once", "--no-socket", "--source", f"sim:rate=max,count={count},seed=1", "-o", directory / "out",
                "-b", "filesize:150K", *options, env=clock.env) as daemon:
        equal(daemon.wait(), code, daemon.err.decode())
    attack.ended_well(daemon, "a recording")
    return json.loads(daemon.out), daemon.err.decode()


def segments_of(directory, status):
    return harness.segments(directory / "out", prefix=status["recording"]["id"])


def check_ring(directory, runs):
    """Checks that the FILES segments recorded last are left, and no others. runs: the statuses, in order."""
    kept = [[int(path.name.rpartition("-")[2].partition(".")[0]) for path in segments_of(directory, status)]
            for status in runs]
    left = FILES
    for status, numbers in reversed(list(zip(runs, kept))):
        made = status["recording"]["segment"] + 1
        n = min(left, made)
        equal(numbers, list(range(made - n, made)), f"segments left of a recording of {made}; all: {kept}")
        left -= n
    harness.verify(harness.segments(directory / "out"))


def jump_between_runs(directory, first, deltas):
    """The clock moves between recordings that share a ring."""
    clock = MovedClock(directory, first)
    runs = []
    for i, delta in enumerate((0, *deltas)):
        first += delta
        clock.move(first)
        # A few segments each, so that those of several recordings are in the ring.
        runs.append(record_once(directory, clock, (300_000, 250_000, 900_000)[i % 3], "-b", f"files:{FILES}")[0])
        check_ring(directory, runs)
    return "recordings", len(runs)


def jump_with_max_age(directory, delta):
    """A clock that has jumped must not make files too old."""
    clock = MovedClock(directory)
    status, _ = record_once(directory, clock, 600_000)
    before = segments_of(directory, status)
    clock.move(delta)
    after, log = record_once(directory, clock, 300_000, "--set", "space.max_age=1d")
    equal(segments_of(directory, status), before, f"segments left after a jump of {delta / YEAR:.0f} years; {log}")
    harness.verify(before + segments_of(directory, after))
    return "recordings", 2


def jump_while_recording(directory, seed, seconds, ring):
    """The clock jumps all the time. No file becomes too old by that."""
    rng = random.Random(seed)
    clock = MovedClock(directory)
    out = directory / "out"
    rules = ["-b", f"files:{FILES}"] if ring else []
    rules += ["--set", "space.max_age=30d"] if rng.random() < 0.5 else []
    jumps = 0
    with Daemon("--once", "--source", f"sim:rate={harness.rate(RATE)},count={600 * RATE}", "-o", out, "-b", "filesize:150K",
                "-b", "interval:1", *rules, "--set", "pipeline.buffer=64MiB", socket=directory / "socket", env=clock.env) as daemon:
        daemon.wait_ready()
        end = time.monotonic() + seconds
        with Watch(daemon.socket) as watch:
            while time.monotonic() < end:
                clock.move(rng.choice(DELTAS) * rng.random())
                jumps += 1
                time.sleep(rng.random() * 0.1)
                assert -1 < watch.last["uptime_seconds"] < 10 * seconds + 60, watch.last
            watch.finish()
        code = daemon.stop()
    log = attack.ended_well(daemon, "clock jumps")
    status = json.loads(daemon.out)
    counts = harness.check_counts(status)
    lost = counts["dropped"]["buffer"] + counts["dropped"]["disk"]
    equal(code, 4 if lost else 0, log)
    equal(list(out.glob("*.partial")), [], log)
    if ring:
        check_ring(directory, [status])
    else:
        equal(attack.recorded(out), counts["received"] - counts["dropped"]["invalid"], f"records and losses; {log}")
    return "jumps", jumps


def stop_by_time(directory, seed):
    """A recording of one second lasts one second, whatever the clock does."""
    rng = random.Random(seed)
    clock = MovedClock(directory)
    start = time.monotonic()
    with Daemon("--once", "--source", f"sim:rate={RATE}", "-o", directory / "out", "-a", "duration:1",
                socket=directory / "socket", env=clock.env) as daemon:
        while daemon.process.poll() is None:
            clock.move(rng.choice(DELTAS))
            time.sleep(0.05)
            assert time.monotonic() < start + harness.TIMEOUT_S, "a recording of 1 s does not end"
        assert time.monotonic() - start >= 1, "it ended before its second"
        equal(daemon.wait(), 0, daemon.err.decode())
    counts = harness.check_counts(json.loads(daemon.out))
    assert 0 < counts["received"] <= 2 * RATE, counts  # a slow machine gets fewer samples
    return "recordings", 1


def at_a_moment(directory, seconds_since_epoch):
    """Records while the clock passes a moment."""
    clock = MovedClock(directory, seconds_since_epoch - time.time() - 0.5)
    out = directory / "out"
    with Daemon("--once", "--source", f"sim:rate={RATE}", "-o", out, "-a", "duration:1.5", "-b", "interval:0.2",
                socket=directory / "socket", env=clock.env) as daemon:
        equal(daemon.wait(), 0, daemon.err.decode())
    counts = harness.check_counts(json.loads(daemon.out))
    equal(attack.recorded(out), counts["received"] - counts["dropped"]["invalid"], "records")
    harness.verify(harness.segments(out))
    return "recordings", 1


def run(options):
    rng = options.rng("jumps")
    cases = [("jump_with_max_age", delta) for delta in DELTAS[: 10 if options.is_long else 4]]
    cases += [("at_a_moment", moment) for moment in MOMENTS.values()]
    for i in range(options.rounds):
        cases.append(("jump_between_runs", rng.choice((0, -10 * YEAR, 20 * YEAR)),
                      [rng.choice(DELTAS) for _ in range(5 if options.is_long else 3)]))
        cases.append(("jump_while_recording", options.seed + i, 20 if options.is_long else 2, i % 2 == 1))
        if i % 4 == 0:
            cases.append(("stop_by_time", options.seed + i))
    results = options.each(lambda directory, name, *case: globals()[name](directory, *case), cases)
    return {
        "cases": len(cases),
        "recordings": sum(n for what, n in results if what == "recordings") + sum(what == "jumps" for what, _ in results),
        "jumps while recording": sum(n for what, n in results if what == "jumps"),
    }


if __name__ == "__main__":
    torture.main(run, short=2, long=60)
