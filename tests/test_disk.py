"""A disk that is full, failing or stuck, a process that is killed: what must be on record then. tests/faultfs.c
makes the calls fail."""

import array
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import tempfile
import time

import harness
import reference
from harness import BUSCAPD, Daemon, Faults, Watch, check_counts, equal, info, run, verify

LONG = bool(os.environ.get("LONG"))
ROUNDS = int(os.environ.get("ROUNDS", 30))
MIB = 1 << 20

# The least buffer there is: overflows soonest.
SMALL = ("--set", "pipeline.workers=1", "--set", "pipeline.buffer=7M")


def all_segments(directory, recording=""):
    """Sealed or not, in order."""
    return sorted(path for suffix in ("", ".partial") for path in directory.glob(f"{recording}*.byu.lz4{suffix}"))


def recover(directory):
    """Starts once more in a directory: what is left open there is recovered. Returns the log."""
    done = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=1", "-o", directory)
    equal(done.returncode, 0, done.stderr.decode())
    equal(list(directory.glob("*.partial")), [], done.stderr.decode())
    return done.stderr.decode()


def lost_by_cause(segments):
    """What the gaps on record say: {cause: samples}."""
    lost = {}
    for segment in info(segments):
        for cause, gaps in segment["gaps"]["causes"].items():
            assert gaps["exact"], segment
            lost[cause] = lost.get(cause, 0) + gaps["lost"]
    return lost


def check_losses_on_record(segments, dropped):
    lost = lost_by_cause(segments)
    equal({cause: lost.get(cause, 0) for cause in ("buffer", "disk")},
          {cause: dropped[cause] for cause in ("buffer", "disk")}, "losses on record")


def check_places(segments, expected, received):
    """The records are those expected but for what the gaps say is lost, each at its place: nothing lost unsaid,
    nothing twice. `expected` is what a run without loss makes of at least as many samples as `received`."""
    chunks = [chunk for path in segments for chunk in reference._parse_segment(path, reference.Hashes()).chunks]
    gaps = {}
    for chunk in chunks:
        for event in chunk.events:
            if event.kind == "gap":
                at = chunk.info["first_record"] + event.position
                gaps[at] = gaps.get(at, 0) + event.value
    recorded = b"".join(chunk.records for chunk in chunks)
    times = array.array("I", expected)[2::3]
    taken = at = 0  # of the recorded, of the expected
    for place in [*sorted(gaps), len(recorded) // 12]:
        got = recorded[12 * taken : 12 * place]
        wanted = expected[12 * at : 12 * (at + place - taken)]
        if taken in gaps and got:
            # Its delta goes on from the last record before the gap.
            delta = sum(times[at - gaps[taken] : at + 1])
            wanted = wanted[:8] + struct.pack("<I", delta) + wanted[12:]
        assert got == wanted, f"records {taken} to {place} are not those of the source"
        at += place - taken + gaps.get(place, 0)
        taken = place
    return at


def each(function, jobs, workers=6):
    """Runs function(directory, *job) for each job, some at a time: they wait for the daemon's timers mostly."""

    def one(job):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="buscap-job-"))
        try:
            function(directory, *job)
        except Exception as why:
            raise AssertionError(f"{job}: {why}") from why
        finally:
            shutil.rmtree(directory)

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(one, job) for job in jobs]:
            future.result()


# ---- each call fails in turn


# Two segments of two chunks each.
SAMPLES = 340000
SWEEP = ("--source", f"sim:rate=max,count={SAMPLES}", "-b", "filesize:600K")
ERRORS = ("ENOSPC", "EIO")


def check_sweep(directory, code, status, err, rules):
    """What holds however a call failed: all records are there once, in order, in whole segments."""
    expected = harness.sim_records(SAMPLES)
    out = directory / "out"
    counts = check_counts(status)
    recording = status["recording"]["id"]
    equal(counts["written"], len(expected) // 12, "written")
    equal(counts["in_flight"], 0, "in_flight")
    verify(harness.segments(out))
    left_open = list(out.glob("*.partial"))
    # What is not sealed is not known to be durable, and a run that leaves it has failed.
    equal(code, 1 if left_open else 0, f"exit code, {len(left_open)} left open; {err}")
    equal(counts["durable"] == counts["written"], not left_open, f"all is durable; {counts}")
    if left_open:
        assert all(path.name in err for path in left_open), f"the log names what is left open: {err}"
        if "ftruncate" not in rules:
            equal(harness.lz4_dc(all_segments(out, recording)), expected, "records before recovery")
        recover(out)
    verify(harness.segments(out))
    equal(harness.lz4_dc(all_segments(out, recording)), expected, "records")


def one_failure(directory, rules):
    faults = Faults(directory, directory / "out", rules)
    done = run(BUSCAPD, "--once", *SWEEP, "-o", directory / "out", env={**os.environ, **faults.env})
    done_calls = faults.calls()
    assert any(call[2] != "ok" for call in done_calls), f"{rules}: nothing has failed"
    if not done.stdout:
        # Only where there is not even a directory to begin with.
        equal(rules.partition(":")[0], "openat", done.stderr.decode())
        equal((done.returncode, done.stderr.count(b"\n")), (1, 1), done.stderr.decode())
        equal(done_calls[-1][3], ".buscapd.lock", "what was opened last")
        return
    check_sweep(directory, done.returncode, json.loads(done.stdout), done.stderr.decode(), rules)


def failures_until_switched_off(directory, rules):
    faults = Faults(directory, directory / "out", rules)
    with Daemon("--once", *SWEEP, "-o", directory / "out", socket=directory / "socket", env=faults.env) as daemon:
        end = time.monotonic() + 0.8
        while daemon.process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        is_hopeless = daemon.process.poll() is not None
        if not is_hopeless:
            check_counts(daemon.status())
        faults.set("")
        code = daemon.wait()
    assert any(call[2] != "ok" for call in faults.calls()), f"{rules}: nothing has failed"
    if not daemon.out:
        equal(faults.calls()[-1][3], ".buscapd.lock", "what was opened last")
        return
    check_sweep(directory, code, json.loads(daemon.out), daemon.err.decode(), rules)


def fault_free_calls(directory, *options):
    faults = Faults(directory, directory / "free")
    done = run(BUSCAPD, "--once", *SWEEP, *options, "-o", directory / "free", env={**os.environ, **faults.env})
    equal(done.returncode, 0, done.stderr)
    made = {}
    for kind, *_ in faults.calls():
        made[kind] = made.get(kind, 0) + 1
    return made


def indexes(tmp, *kinds):
    made = fault_free_calls(tmp)
    assert all(made[kind] > 1 for kind in kinds), made
    return [(kind, number) for kind in kinds for number in range(1, made[kind] + 1)]


def test_each_call_fails_once(tmp):
    jobs = [(f"{kind}:{number}:{error}",) for kind, number in indexes(tmp, "pwrite", "fdatasync", "openat", "renameat2")
            for error in ERRORS]
    each(one_failure, jobs)


def test_each_write_is_short(tmp):
    numbers = [number for _, number in indexes(tmp, "pwrite")]
    each(one_failure, [(f"pwrite:{number}{more}:short",) for number in numbers for more in ("", "+")])


def test_each_write_is_short_then_fails_and_can_not_be_undone(tmp):
    jobs = [(f"pwrite:{number}:short,pwrite:{number + 1}:{error},ftruncate:{undone}",)
            for _, number in indexes(tmp, "pwrite") if number > 1
            for error in ERRORS for undone in ("99:EIO", "2+:EIO")]
    each(one_failure, jobs)


def test_each_call_fails_until_switched_off(tmp):
    jobs = [(f"{kind}:{number}+:{error}",)
            for kind, number in indexes(tmp, "pwrite", "fdatasync", "openat", "renameat2") for error in ERRORS]
    each(failures_until_switched_off, jobs, workers=12)


if __name__ == "__main__":
    harness.main(globals())
