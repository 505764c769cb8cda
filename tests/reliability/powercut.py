"""Power cuts: records every file call of a daemon, makes the states that a disk may be in if the power fails (reordered,
torn at 512 bytes, lost renames), and starts the daemon on each. Then cuts the power again during that recovery.

Every record up to the last `durable` that the daemon reported before the cut must be there, with the right content; and
what one recovery finds, an interrupted one followed by another must find, too. As a control, the same states are made as
if the daemon never synced its files, or never its directory: these must lose data.

As root, also cuts the power of a real ext4 on a loop device, with its shutdown ioctl; the control skips every sync.

A round is one state of the disk; each gets a second state during its recovery. One in ten is also an ext4 cut."""

import bisect
import fcntl
import os
import re
import shutil
import struct
import threading
import time

import torture  # first: it sets the paths of the modules

import pytest  # noqa: E402

import disk_states  # noqa: E402
import harness  # noqa: E402
from harness import Daemon, Faults, equal  # noqa: E402
from recovered import SMALL, Lost, Reader, compressed, left_open, start_again  # noqa: E402

CONTROLS = {"has_file_sync": "fdatasync", "has_dir_sync": "directory sync"}
RATE = harness.rate(100_000)
SAMPLES = 30 * RATE  # never all recorded
RUNS, STATES = 4, 50  # at least; states of one run, at most
RECORDS, SYNCS = RATE, 20  # durable at the end of a recorded run, and seen to become durable before
CHUNKS = ("--set", "pipeline.flush=10ms", "--set", "pipeline.sync=20ms", "--set", "pipeline.buffer=128MiB")
VARIANTS = (
    ("-b", "filesize:40K"),
    ("-b", "filesize:25K"),
    ("-b", "filesize:30K", "-b", "files:5"),
    ("-b", "filesize:1G"),
)


class Watched:
    """Asks a daemon in a thread how many records are durable. `seen` has (mark, durable): durable was reported when
    mark() had this value, or earlier."""

    def __init__(self, daemon, mark):
        self.seen = [(0, 0)]
        self._daemon = daemon
        self._mark = mark
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._end.wait(0.001):
            try:
                durable = self._daemon.status()["counts"]["durable"]
            except AssertionError:
                return
            if durable != self.seen[-1][1]:
                self.seen.append((self._mark(), durable))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._end.set()
        self._thread.join()

    def durable_at(self, mark):
        return self.seen[bisect.bisect_right(self.seen, mark, key=lambda pair: pair[0]) - 1][1]


def simulated():
    return harness.sim_records(SAMPLES)


class Run:
    """A recorded run of the daemon."""

    def __init__(self, directory, options):
        out = directory / "recorded"
        out.mkdir()
        log = directory / "log"
        env = {**Faults(directory, out).env, "FAULTFS_RECORD": str(log)}
        argv = ("--source", f"sim:rate={RATE},count={SAMPLES}", "-o", out, *SMALL, *CHUNKS, *options)
        with Daemon(*argv, socket=directory / "socket", env=env) as daemon:
            self.recording = daemon.wait_ready()["recording"]["id"]
            with Watched(daemon, lambda: log.stat().st_size) as watched:
                harness.wait_until(lambda: watched.seen[-1][1] >= RECORDS and len(watched.seen) >= SYNCS, "it records")
            equal(daemon.stop(), 0, daemon.err)
        self.watched = watched
        self.calls = disk_states.read_log(log)
        self.first_records = {}  # of each segment
        for call in self.calls:
            if call.kind == "pwrite" and call.offset == 0 and ".byu." in call.name:
                self.first_records[call.name.partition(".byu")[0]] = int(re.search(rb'"record":(\d+)', call.data)[1])

    def required(self, cut):
        """The range of records that must be there if the power fails after this number of calls."""
        end = self.watched.durable_at(self.calls[cut - 1].end if cut else 0)
        deleted = {call.name.partition(".byu")[0] for call in self.calls[:cut]
                   if call.kind == "unlinkat" and call.name.endswith((".byu.lz4", ".byu.zst"))}
        kept = [first for name, first in self.first_records.items() if name not in deleted]
        return min(kept, default=end), end


def states_of(run, rng, count, fillers, **disk_options):
    """Yields (number of calls, state, how it was chosen): possible states of the disk in a recorded run."""
    disk = disk_states.Disk(fillers=fillers)
    done = 0
    for cut in sorted(rng.randrange(1, len(run.calls) + 1) for _ in range(count)):
        for call in run.calls[done:cut]:
            disk.advance(call, **disk_options)
        done = cut
        yield (cut, *disk.state(rng))


def fresh(directory, name, files):
    out = directory / name
    out.mkdir()
    disk_states.write_files(out, files)
    return out


def remove(*directories):
    for directory in directories:
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()


def check_cut(directory, run, reader, cut, files):
    """Recovers one state. Returns (directory, ranges of records found, calls of the recovery)."""
    out = fresh(directory, "cut", files)
    log = directory / "recovery.log"
    log.unlink(missing_ok=True)
    env = {**os.environ, **Faults(directory, out).env, "FAULTFS_RECORD": str(log)}
    err = start_again(out, env)
    equal(left_open(out, run.recording), [], f"still open; {err}")
    found = reader.read(out, run.recording)
    found.require(*run.required(cut), f"after {cut} calls; {err}")
    return out, found, disk_states.read_log(log)


def cut_again(directory, run, reader, rng, files, calls, found, fillers, **disk_options):
    """Cuts the power during the recovery of `files`, which found the records `found` when it was not interrupted."""
    disk = disk_states.Disk(files, fillers)
    cut = rng.randrange(1, len(calls) + 1)
    for call in calls[:cut]:
        disk.advance(call, **disk_options)
    again, how = disk.state(rng)
    out = fresh(directory, "again", again)
    err = start_again(out)
    try:
        equal(left_open(out, run.recording), [], f"still open; {err}")
        reader.read(out, run.recording).require_all(found, f"after {cut} of {len(calls)} calls of the recovery; {err}")
    except Exception as why:
        raise AssertionError(f"second cut after {cut} of {len(calls)} calls ({how}): {why}") from why
    remove(out)


def clear(directory):
    remove(*(path for name in ("cut", "again") if (path := directory / name).exists()))


def controls_of_one_run(directory, options, run, number, reader, count):
    """Cuts the power of a daemon that never syncs its files, or never its directory; half of them during a recovery that
    does not sync. Returns {kind: [lost, states]}."""
    lost = {}
    for what in CONTROLS:
        lost[what] = [0, 0]
        lost[what, "again"] = [0, 0]
        rng = options.rng(what, number)
        for cut, files, _ in states_of(run, rng, count, ("zeros",), **{what: False}):
            lost[what][1] += 1
            try:
                check_cut(directory, run, reader, cut, files)
            except Exception:  # mostly Lost, but files may also be unreadable
                lost[what][0] += 1
            clear(directory)
        for cut, files, _ in states_of(run, rng, count, ("zeros",)):
            _, found, calls = check_cut(directory, run, reader, cut, files)
            if calls and found.ranges:
                lost[what, "again"][1] += 1
                try:
                    cut_again(directory, run, reader, rng, files, calls, found, ("zeros",), **{what: False})
                except Exception:
                    lost[what, "again"][0] += 1
            clear(directory)
    return lost


def states_per_run(options):
    return max(1, min(STATES, options.rounds // RUNS))


def cuts_of_one_run(directory, options, number, records):
    """Returns the counts: states, second states, and states of both controls with and without loss."""
    rng = options.rng("states", number)
    run = Run(directory, (*VARIANTS[number % len(VARIANTS)], *compressed(number // len(VARIANTS))))
    reader = Reader(records)
    states = states_per_run(options)
    # Few file systems show old data, and only if they are mounted for speed.
    fillers = disk_states.FILLERS if options.is_long else ("zeros",)
    first = second = 0
    for cut, files, how in states_of(run, rng, states, fillers):
        if options.is_over:
            break
        with options.attempt(f"run {number}, cut after {cut} of {len(run.calls)} calls ({how})"):
            out, found, calls = check_cut(directory, run, reader, cut, files)
            remove(out)
            first += 1
            if calls:
                cut_again(directory, run, reader, rng, files, calls, found, fillers)
                second += 1
        clear(directory)
    return first, second, controls_of_one_run(directory, options, run, number, reader, max(states // 5, 5)), len(run.calls)


# ---- a real file system

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2


class Ext4:
    """An ext4 in a file, mounted at `path`."""

    def __init__(self, directory):
        self._image = directory / "image"
        self.path = directory / "disk"

    def __enter__(self):
        with open(self._image, "wb") as image:
            image.truncate(48 << 20)
        done = harness.run("mkfs.ext4", "-q", "-F", "-m", "0", self._image)
        equal(done.returncode, 0, done.stderr)
        self.path.mkdir()
        self.mount()
        return self

    def mount(self):
        done = harness.run("mount", "-o", "loop", self._image, self.path)
        if done.returncode != 0:
            pytest.skip(f"an ext4 can't be mounted: {done.stderr.decode().strip()}")

    def restore_power(self):
        """Mounts what the disk holds, in a copy: as long as another mount namespace has a copy of the mount, mounting the
        image again would give the file system that was shut down."""
        equal(harness.run("umount", self.path).returncode, 0, "umount")
        shutil.copyfile(self._image, self._image.with_suffix(".copy"))
        self._image = self._image.with_suffix(".copy")
        self.mount()

    def cut_power(self):
        fd = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def __exit__(self, *exception):
        harness.run("umount", "-l", self.path)


def ext4_cut(directory, options, number, records, is_control=False):
    """Cuts the power of a real file system. Returns whether data was lost, which only the control may."""
    rng = options.rng("ext4", number)
    with Ext4(directory) as disk:
        out = disk.path / "out"
        out.mkdir()
        faults = Faults(directory, out, "fdatasync:skip,fsync:skip" if is_control else "")
        size = rng.choice(("40K", "200K", "1G"))
        argv = ("--source", f"sim:rate={RATE},count={SAMPLES}", "-o", out, *SMALL, *CHUNKS, "-b", f"filesize:{size}")
        env = faults.env if is_control else None
        with Daemon(*argv, socket=directory / "socket", env=env) as daemon:
            recording = daemon.wait_ready()["recording"]["id"]
            with Watched(daemon, time.monotonic) as watched:
                harness.wait_until(lambda: watched.seen[-1][1] > RATE // 50, "the first records are durable")
                time.sleep(rng.uniform(0, 0.4))
                durable = watched.seen[-1][1]
                disk.cut_power()
            daemon.process.kill()
            daemon.wait()
        disk.restore_power()
        try:
            if not out.exists():
                raise Lost("the directory is gone")
            err = start_again(out)
            Reader(records).read(out, recording).require(0, durable, err)
            return False
        except Lost:
            if not is_control:
                raise
            return True


def run(options):
    records = simulated()
    runs = -(-options.rounds // states_per_run(options))
    results = options.each(lambda directory, number: cuts_of_one_run(directory, options, number, records),
                           [(number,) for number in range(runs)])
    figures = {
        "runs of the daemon": len(results),
        "file calls recorded": sum(result[3] for result in results),
        "disk states": sum(result[0] for result in results),
        "disk states during recovery": sum(result[1] for result in results),
    }
    for what, name in CONTROLS.items():
        for key, when in ((what, ""), ((what, "again"), " in the recovery")):
            lost, states = (sum(result[2][key][i] for result in results) for i in (0, 1))
            figures[f"control without {name}{when}: states that lost data"] = f"{lost} of {states}"
            if states >= (100 if when else 10) and lost == 0:
                options.violation(f"control without {name}{when}: no state lost data: the states are too easy")
    figures.update(real_cuts(options, records))
    return figures


def real_cuts(options, records):
    if os.geteuid() != 0:
        return {"ext4 power cuts": "skipped (needs root)"}
    cuts = [(number,) for number in range(max(2, options.rounds // 10))]
    controls = [(number,) for number in range(2 if options.rounds < 200 else 10)]
    try:
        with Ext4(options.directory):
            pass
    except (pytest.skip.Exception, OSError, AssertionError) as why:
        return {"ext4 power cuts": f"skipped ({why})"}
    done = options.each(lambda directory, number: (ext4_cut(directory, options, number, records),), cuts)
    lost = options.each(lambda directory, number: (ext4_cut(directory, options, number, records, True),), controls)
    if lost and not any(result[0] for result in lost):
        options.violation("ext4 control without syncs: no cut lost data")
    return {"ext4 power cuts": len(done),
            "ext4 control without syncs: cuts that lost data": f"{sum(r[0] for r in lost)} of {len(lost)}"}


if __name__ == "__main__":
    torture.main(run, short=40, long=2000)
