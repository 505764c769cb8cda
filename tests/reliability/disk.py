"""Failing disks: makes each file call of a run fail in turn with ENOSPC, EIO, EDQUOT and EROFS, and each write and read
short: once, until switched off, and for good. Runs record, rotate, delete by rule, and recover what
an earlier run left. Also fills a small file system whose size shrinks and grows (as root), and quotas that come and go.

The daemon must end by itself or when asked, its counts must add up at every moment, earlier files must stay whole, every
written record must be readable after the next start, and every loss must be in the files, at its place.

A round is a run with a fault, chosen among all combinations; the long form makes all of them."""

import contextlib
import json
import os
import signal
import subprocess
import time

import torture  # first: it sets the paths of the modules

import pytest  # noqa: E402

import harness  # noqa: E402
import test_disk  # noqa: E402
from harness import Daemon, Faults, Watch, check_counts, equal, info  # noqa: E402
from recovered import SMALL, all_segments, check_places, compressed, left_open, start_again  # noqa: E402

ERRORS = ("ENOSPC", "EIO", "EDQUOT", "EROFS")
KINDS = ("openat", "pwrite", "fdatasync", "fsync", "renameat2", "unlinkat", "ftruncate", "read", "pread", "fallocate",
         "fstatvfs")
MODES = ("once", "until switched off", "for good")
SAMPLES = 200_000
BASE = ("--once", "--source", f"sim:rate=max,count={SAMPLES}", *SMALL, "--set", "pipeline.flush=1h")
SCENARIOS = {
    "rotation": ("-b", "filesize:200K"),
    "ring": ("-b", "filesize:200K", "-b", "files:2"),
    "recovery": ("-b", "filesize:200K"),
}


class Left:
    """The files of a killed daemon, with a segment left open."""

    def __init__(self, directory, number):
        out = directory / "left"
        out.mkdir()
        argv = ("--source", "sim:rate=1M,count=4M", "-o", out, "-b", "filesize:200K", *SMALL,
                *compressed(number), "--set", "pipeline.flush=20ms")
        with Daemon(*argv, socket=directory / "left.socket") as daemon:
            self.recording = daemon.wait_ready()["recording"]["id"]
            harness.wait_until(lambda: harness.segments(out), "a segment is sealed")
            self.written = daemon.status()["counts"]["written"]
            daemon.process.kill()
            daemon.wait()
        self.files = {path.name: path.read_bytes() for path in out.iterdir() if ".byu." in path.name}

    def put(self, out):
        for name, data in self.files.items():
            (out / name).write_bytes(data)

    def check(self, out, err):
        segments = all_segments(out, self.recording)
        recorded = harness.compare_with_sim(segments)
        assert recorded >= self.written, f"{recorded} of {self.written} records of the earlier run; {err}"


def prepare(directory, scenario, left):
    out = directory / "out"
    out.mkdir()
    if scenario == "recovery":
        left.put(out)
    return out


def has_failed(faults):
    return any(call[2] != "ok" for call in faults.calls())


def calls_of(directory, scenario, left):
    """Returns [(kind, number)] of the calls of a run without faults."""
    directory = directory / scenario
    directory.mkdir()
    out = prepare(directory, scenario, left)
    faults = Faults(directory, out)
    done = harness.run(harness.BUSCAPD, *BASE, *SCENARIOS[scenario], "--no-socket", "-o", out,
                       env={**os.environ, **faults.env})
    equal(done.returncode, 0, done.stderr.decode())
    made = {}
    for kind, *_ in faults.calls():
        made[kind] = made.get(kind, 0) + 1
    return [(kind, number) for kind in KINDS for number in range(1, made.get(kind, 0) + 1)]


def wait_for_end(daemon, faults, mode):
    """Lets the daemon end, as the mode says. Returns the exit code, and whether the disk refused calls to the end."""
    if mode == "once":
        return daemon.wait(), False
    harness.wait_until(lambda: daemon.process.poll() is not None or has_failed(faults), "a call fails")
    with contextlib.suppress(subprocess.TimeoutExpired):
        return daemon.wait(0.7), True
    with contextlib.suppress(OSError, AssertionError):
        check_counts(daemon.status())  # it does not answer while it exits
    if mode == "until switched off":
        # By now the daemon may be giving up: on a very busy machine, or because the disk is read-only (--once).
        faults.set("")
        has_given_up = "giving up" in daemon.log_so_far()
        code = daemon.wait()
        return code, has_given_up or b"create a" in daemon.err and b"Read-only file system" in daemon.err
    daemon.process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return daemon.wait(1.1), True
    daemon.process.send_signal(signal.SIGINT)  # gives up now instead of in ten seconds
    return daemon.wait(), True


def lost_on_record(segments):
    """Samples lost according to the gaps, and whether a gap is of unknown size."""
    lost = 0
    is_inexact = False
    for segment in info(segments):
        for gaps in segment["causes"].values():
            lost += gaps["lost"]
            is_inexact |= gaps["inexact_gaps"] != 0
    return lost, is_inexact


def check_losses(out, recording, dropped, is_refused, err, err_next):
    """Every loss is in the files. If the disk refused calls to the end, a gap of unknown size is enough, in files written
    by the next start. Returns whether a loss is only in the log, because the disk accepted nothing from the beginning."""
    segments = all_segments(out, recording)
    lost, _ = lost_on_record(segments)
    if lost == dropped:
        return False
    if is_refused and not segments:
        assert "lost" in err, f"{dropped} samples lost, and no file and no message; {err}"
        return True
    has_gap = is_refused and lost_on_record(harness.segments(out))[1]
    assert has_gap, f"{dropped} samples lost, {lost} on record and no gap of unknown size; {err}; next: {err_next}"
    return False


def check_content(out, recording, counts, is_ring, is_refused):
    segments = all_segments(out, recording)
    if is_ring:
        # A segment that could not be sealed stays when a later one is deleted.
        for path, segment in zip(segments, info(segments)):
            harness.verify([path])
            if counts["dropped"]["disk"] == 0:
                harness.compare_with_sim([path], segment["first_record"])
        return
    harness.verify(segments)
    equal(sum(segment["records"] for segment in info(segments)), counts["written"], "records in the files")
    found = check_places(segments)
    if not is_refused:
        equal(found, counts["received"] - counts["dropped"]["invalid"], "records and losses on record")


INDEX_WRITES = 3


def check_syncs(calls):
    """No file is sealed without a sync of its records. After a failed sync, only the index is synced again: the kernel
    has forgotten that the records are not on the disk. What an error left open is sealed later, as a copy."""
    unsynced = {}
    for kind, _, done, name in calls:
        if not name.endswith((".partial", ".recovering")) and kind != "renameat2":
            continue
        writes, has_synced, has_failed = unsynced.get(name, (0, False, False))
        if kind == "pwrite" and done in ("ok", "short"):
            unsynced[name] = writes + 1, has_synced, has_failed
        elif kind == "fdatasync" and done == "ok":
            assert not has_failed, f"{name} is synced again after a failure; {calls}"
            unsynced[name] = 0, True, False
        elif kind == "fdatasync":
            is_index_alone = has_synced and writes > 0 and writes % INDEX_WRITES == 0
            unsynced[name] = writes, has_synced, not is_index_alone
        elif kind == "renameat2" and done == "ok":
            original = unsynced.pop(name + ".partial")
            writes, has_synced, _ = unsynced.pop(name + ".recovering", original)
            assert has_synced and writes == 0, f"{name} is sealed without a sync; {calls}"


def one_fault(directory, left, scenario, kind, number, error, mode):
    """Returns the number of failed calls, and whether a loss is only in the log."""
    out = prepare(directory, scenario, left)
    rules = f"{kind}:{number}{'' if mode == 'once' else '+'}:{error}"
    faults = Faults(directory, out, rules)
    before = {path.name: path.read_bytes() for path in out.iterdir() if not path.name.endswith(".partial")}
    with Daemon(*BASE, *SCENARIOS[scenario], "-o", out, socket=directory / "socket", env=faults.env) as daemon:
        code, is_refused = wait_for_end(daemon, faults, mode)
    failed = sum(call[2] != "ok" for call in faults.calls())
    if scenario == "rotation":
        check_syncs(faults.calls())
    err = daemon.err.decode()
    assert code in (0, 1, 2, 4), f"exit code {code}; {err}"
    for name, data in before.items():
        if scenario != "ring" and name.endswith((".lz4", ".zst")):
            equal((out / name).exists() and (out / name).read_bytes() == data, True, f"{name} is unchanged; {err}")
    status = json.loads(daemon.out) if daemon.out else None
    if status is None:
        assert code != 0 and err.strip(), f"no status, and no message; exit code {code}"
    err_next = start_again(out)
    equal(left_open(out), [], f"still open; {err_next}")
    if scenario == "recovery":
        left.check(out, err + err_next)
    if status is None or status["recording"] is None:
        return failed, False
    counts = check_counts(status)
    equal(counts["in_flight"], 0, "in flight")
    dropped = sum(counts["dropped"][cause] for cause in ("disk", "buffer"))
    assert dropped == 0 or code in (1, 4), f"{dropped} samples lost, exit code {code}"
    recording = status["recording"]["id"]
    check_content(out, recording, counts, scenario == "ring", is_refused)
    is_log_only = scenario != "ring" and check_losses(out, recording, dropped, is_refused, err, err_next)
    return failed, is_log_only


def faults_of(options, left):
    """The cases: every call with some errors and modes in the short form, all in the long form."""
    cases = []
    for scenario in SCENARIOS:
        for kind, number in calls_of(options.directory, scenario, left):
            for error in (*ERRORS, *(("short",) if kind in ("pwrite", "read", "pread") else ())):
                cases += [(scenario, kind, number, error, mode) for mode in MODES]
            if kind == "pwrite":
                # Half is written, the rest fails, and half a chunk cannot be removed.
                cases.append((scenario, kind, number, f"short,pwrite:{number + 1}:EIO,ftruncate:EIO", "once"))
    rng = options.rng("faults")
    if len(cases) > options.rounds:
        cases = rng.sample(cases, options.rounds)
    return cases


# ---- a live source on a disk whose space changes


RATE = harness.rate(1_500_000)


def live(directory, out, env, change, seconds):
    """Records a live source, calls change(fraction of the time) repeatedly, and checks that each loss is on record at its
    place. Returns the samples lost."""
    argv = ("--once", "--source", test_disk.endless(RATE), "-o", out, "-b", "filesize:2M", *test_disk.SMALL)
    with Daemon(*argv, socket=directory / "socket", env=env) as daemon:
        daemon.wait_ready()
        with Watch(daemon.socket) as watch:
            test_disk.wait_written(daemon)
            start = time.monotonic()
            while (now := (time.monotonic() - start) / seconds) < 1:
                change(now)
                time.sleep(0.15)
            change(1)
            test_disk.wait_written(daemon, RATE // 10)
            watch.wait_samples(test_disk.FEW)
            watch.finish()
        code = daemon.stop()
    dropped = test_disk.check_end(out, daemon, watch, code)
    return dropped["disk"] + dropped["buffer"]


def changing_quota(directory, options, number):
    """Writes and creations fail with EDQUOT for random times, and writes are short just before."""
    rng = options.rng("quota", number)
    out = directory / "out"
    out.mkdir()
    faults = Faults(directory, out)

    def change(now):
        faults.set("" if now == 1 else rng.choice(("", "", "pwrite:short", "pwrite:EDQUOT",
                                                   "pwrite:EDQUOT,openat:EDQUOT,renameat2:EDQUOT,ftruncate:EDQUOT")))

    return (live(directory, out, faults.env, change, 3),)


def changing_size(directory, options, number):
    """A small file system grows and shrinks, and something else fills it."""
    rng = options.rng("size", number)
    with harness.SmallDisk(directory, "24M") as disk:
        out = disk / "out"
        out.mkdir()

        def used():
            space = os.statvfs(disk)
            return (space.f_blocks - space.f_bfree) * space.f_frsize

        def change(now):
            # A tmpfs can't be smaller than its content; then it stays as it is.
            size = 400 << 20 if now == 1 else used() + rng.choice((0, 1 << 12, 1 << 16, 1 << 20, 4 << 20))
            harness.run("mount", "-o", f"remount,size={size}", disk)
            if rng.random() < 0.2:
                for path in sorted(disk.glob("ballast*")):
                    path.unlink()
            elif now != 1 and rng.random() < 0.3:
                with contextlib.suppress(OSError):
                    (disk / f"ballast{rng.random()}").write_bytes(bytes(rng.randrange(1 << 20)))

        return (live(directory, out, None, change, 3),)


def run(options):
    left = Left(options.directory, options.seed)
    cases = faults_of(options, left)
    failed = options.each(lambda directory, *case: one_fault(directory, left, *case), cases,
                          per_job=3)
    figures = {"runs with a fault": len(failed), "calls that failed": sum(one[0] for one in failed),
               "runs without any file, whose loss is only in the log": sum(one[1] for one in failed),
               "kinds of calls": len({case[1] for case in cases})}
    count = 2 if not options.is_long else 40
    lost = options.each(lambda directory, number: changing_quota(directory, options, number),
                        [(number,) for number in range(count)])
    figures["runs with a changing quota"] = len(lost)
    figures["samples lost in these, all on record"] = sum(one[0] for one in lost)
    if os.geteuid() != 0:
        figures["runs on a file system of changing size"] = "skipped (needs root)"
        return figures
    try:
        lost = options.each(lambda directory, number: changing_size(directory, options, number),
                            [(number,) for number in range(count)])
    except pytest.skip.Exception as why:
        figures["runs on a file system of changing size"] = f"skipped ({why})"
        return figures
    figures["runs on a file system of changing size"] = len(lost)
    figures["samples lost there, all on record"] = sum(one[0] for one in lost)
    return figures


if __name__ == "__main__":
    torture.main(run, short=60, long=100_000)
