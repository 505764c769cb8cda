"""Kills the daemon with SIGKILL: while it records, while a write hangs, and while it recovers what an earlier kill left,
at a random time or inside a random file call.

After the next start, every record up to the last `written` that the daemon reported must be there, contiguous, and equal
to the source's, and the recording must end with one gap of a crash. As a control, a daemon whose writes silently do
nothing is killed: the check must notice.

A round is one kill; three in ten hit a recovery."""

import time

import torture  # first: it sets the paths of the modules

import harness
from harness import Daemon, Faults, equal
from recovered import SMALL, Lost, Reader, compressed, left_open, start_again

RATE = harness.rate(500_000)
SAMPLES = 10 * RATE  # a daemon is killed within a second
SOURCE = f"sim:rate={RATE},count={SAMPLES}"
KILLS = 20  # in one directory
SHARE = 0.35  # of kills during recovery
# What a recovery calls, from the first to about the last number; the first calls are those of the lock.
CALLS = (("openat", 3, 5), ("pwrite", 2, 6), ("fdatasync", 1, 2), ("fsync", 1, 2), ("renameat2", 1, 1), ("unlinkat", 1, 2),
         ("read", 1, 3))


def recording_ids(out):
    return {path.name[:23] for path in out.iterdir() if ".byu." in path.name}


class Killer:
    """Kills daemons in one directory, one after another."""

    def __init__(self, directory, rng):
        self.out = directory / "out"
        self.out.mkdir()
        self.socket = directory / "socket"
        self.rng = rng
        self.faults = Faults(directory, self.out)
        self.written = {}  # by recording
        self.in_recovery = self.in_call = 0

    def options(self):
        rng = self.rng
        argv = ["--source", SOURCE, "-o", self.out, "-b", f"filesize:{rng.choice(('60K', '300K', '2M', '1G'))}", *SMALL,
                *compressed(rng.randrange(2)), "--set", "pipeline.buffer=128MiB"]
        if rng.random() < 0.5:
            argv += ["--set", "pipeline.flush=10ms", "--set", "pipeline.sync=3ms"]
        return argv

    def kill_recording(self, rules="pwrite:hold"):
        """Kills a daemon that records."""
        rng = self.rng
        self.faults.set("")
        with Daemon(*self.options(), socket=self.socket, env=self.faults.env) as daemon:
            status = daemon.wait_ready()
            end = time.monotonic() + rng.uniform(0.02, 0.4)
            if rng.random() < 0.4:
                # A hanging write shows whether records are counted before they are written.
                time.sleep(max(0.0, end - 0.1 - time.monotonic()))
                self.faults.set(rules)
            while True:
                if status["recording"] is not None:
                    counts = harness.check_counts(status)
                    equal(sum(counts["dropped"].values()) - counts["dropped"]["invalid"], 0, "lost before the kill")
                    self.written[status["recording"]["id"]] = counts["written"]
                if time.monotonic() > end:
                    break
                status = daemon.status()
            daemon.process.kill()
            daemon.wait()

    def kill_recovery(self):
        """Kills a daemon that recovers the files of an earlier one. Returns whether it was still recovering."""
        rng = self.rng
        self.socket.unlink(missing_ok=True)  # left by the last one
        before = recording_ids(self.out)
        done = len(self.faults.calls())
        kind, first, last = rng.choice(CALLS)
        is_timed = rng.random() < 0.3
        self.faults.set("" if is_timed else f"{kind}:{rng.randrange(first, last + 1)}:hold")
        with Daemon(*self.options(), socket=self.socket, env=self.faults.env) as daemon:
            while not self.socket.exists():
                assert daemon.process.poll() is None, daemon.log_so_far()
                calls = self.faults.calls()[done:]
                if is_timed and len(calls) > 4:
                    time.sleep(rng.uniform(0, 0.01))
                    break
                if any(call[2] == "hold" for call in calls):
                    self.in_call += 1
                    break
                time.sleep(0.001)
            daemon.process.kill()
            daemon.wait()
        # A recovery that has ended is followed by a socket and a new recording.
        self.in_recovery += not self.socket.exists() and not recording_ids(self.out) - before

    def check(self, reader):
        """Starts a daemon that recovers everything, and checks each recording. Returns the numbers of recordings and of
        records."""
        err = start_again(self.out)
        equal(left_open(self.out), [], f"still open; {err}")
        total = 0
        for recording, written in self.written.items():
            found = reader.read(self.out, recording)
            found.require(0, written, f"{recording}; {err}")
            assert len(found.ranges) <= 1, f"{recording}: not contiguous: {found.ranges}"
            if found.ranges:
                last = harness.segments(self.out, prefix=recording)[-1]
                end = harness.info([last])[0]["end"] or {"reason": None}
                equal((found.crashes, end["reason"]), (1, "crash"), f"{last.name}: gaps of the crash, its end; {err}")
            total += sum(end - first for first, end in found.ranges)
        harness.verify(sorted(self.out.glob("*.byu.???")))
        return len(self.written), total


def kills(directory, options, number, records):
    rng = options.rng(number)
    killer = Killer(directory, rng)
    goal = min(KILLS, options.rounds)
    done = 0
    while done < goal and not options.is_over:
        # Several recoveries of the same files may be killed. Some have ended by then.
        if killer.in_recovery < SHARE * done and any(killer.out.glob("*.byu.*.partial")):
            killer.kill_recovery()
        else:
            killer.kill_recording()
        done += 1
    return (done, killer.in_recovery, killer.in_call, *killer.check(Reader(records)))


def control(directory, options, number, records):
    """Writes of a killed daemon silently did nothing. Returns whether the check noticed."""
    killer = Killer(directory, options.rng("control", number))
    killer.rng.random = lambda: 0.3  # always with the rules
    killer.kill_recording("pwrite:skip")
    try:
        killer.check(Reader(records))
    except Lost:
        return (True,)
    except AssertionError:
        return (True,)  # a hole in a segment, for example
    return (False,)


def run(options):
    records = harness.sim_records(SAMPLES)
    runs = max(1, -(-options.rounds // KILLS))
    results = options.each(lambda directory, number: kills(directory, options, number, records),
                           [(number,) for number in range(runs)])
    noticed = options.each(lambda directory, number: control(directory, options, number, records),
                           [(number,) for number in range(3)])
    if not any(result[0] for result in noticed):
        options.violation("control with writes that do nothing: no loss was found: the check is too weak")
    names = ("kills", "of these, during recovery", "of these, inside a chosen file call", "recordings checked",
             "records compared")
    figures = {name: sum(result[i] for result in results) for i, name in enumerate(names)}
    figures["control with writes that do nothing: losses found"] = f"{sum(r[0] for r in noticed)} of {len(noticed)}"
    return figures


if __name__ == "__main__":
    torture.main(run, short=40, long=1000)
