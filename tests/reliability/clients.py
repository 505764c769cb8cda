"""Attacks the socket of a recording daemon with up to 1,000 bad clients: tests/support/crowd.py. A round is one attack of
some seconds, by one kind of client or by all.

The capture must not notice: no more samples may be lost than without the clients, memory stays within the server's
limits, and descriptors are free again afterwards. Every status must be answered and add up.
"""

import os
import time

import torture

import attack
import crowd
import harness
from harness import Daemon, Watch, check_counts, equal
from test_clients import LIMIT, NOBODY, a_group

MIB = 1 << 20
BUFFER = 256 * MIB
ALL = tuple(crowd.KINDS)


class Recording(Daemon):
    """A daemon that records with a ring. `dropped` and `peak` are set at the end."""

    def __init__(self, directory, rate, *options):
        super().__init__("--source", f"sim:rate={rate}", "-o", directory / "out", "-b", "filesize:16M", "-b", "files:2",
                         "--set", f"pipeline.buffer={BUFFER}", *options, socket=directory / "socket")

    def end(self):
        status = self.status()
        self.dropped = check_counts(status)["dropped"]
        buffer = status["buffer"]
        # Chunks that were never filled use no memory.
        unused = (buffer["chunks"] - buffer["min_free_chunks"]) * BUFFER // buffer["chunks"]
        self.peak = attack.peak_memory(self.process) - unused
        code = self.stop()
        log = attack.ended_well(self, "bad clients")
        equal(code, 4 if self.lost else 0, log)

    @property
    def lost(self):
        return self.dropped["buffer"] + self.dropped["disk"]


def undisturbed(directory, rate, seconds):
    """Returns the samples lost and the memory used without bad clients."""
    with Recording(directory, rate) as daemon:
        attack.wait_ready(daemon)
        time.sleep(seconds)
        daemon.end()
    return daemon.lost, daemon.peak


def one_attack(directory, normal, rate, seconds, clients, kinds, is_other):
    lost, peak = normal
    options, who = [], {}
    if is_other:
        name, gid = a_group()
        directory.chmod(0o755)
        options, who = ["--set", f"socket.group={name}"], {"user": NOBODY, "group": NOBODY, "extra_groups": [gid]}
    with Recording(directory, rate, *options) as daemon:
        attack.wait_ready(daemon)
        descriptors = attack.open_descriptors(daemon.process)
        with crowd.Running(daemon.socket, clients, *kinds, **who) as bad, Watch(daemon.socket) as watch:
            time.sleep(seconds)
            watch.wait_samples(5)
            watch.finish()
        harness.wait_until(lambda: attack.open_descriptors(daemon.process) <= descriptors + 1,
                           f"descriptors are free again, at most {descriptors + 1}")
        daemon.end()
    what = f"{clients} clients: {' '.join(kinds)}{' of another user' if is_other else ''}"
    assert daemon.lost <= lost, f"{what}: {daemon.lost} samples lost, {lost} without clients"
    assert daemon.peak <= peak + LIMIT, f"{what}: {daemon.peak - peak} more bytes; the limit is {LIMIT}"
    equal(sum(bad.said["connected"].values()) > 0, True, f"{what}: connected")
    return {"connections": sum(bad.said["connected"].values()), "watched": watch.samples, "slowest": watch.slowest,
            "memory": max(0, daemon.peak - peak)}


def run(options):
    rate = 4_000_000 if options.is_long else 2_000_000
    seconds = 30 if options.is_long else 2
    options.jobs = 1
    normal = options.each(lambda directory: undisturbed(directory, rate, seconds), [()])
    is_root = os.geteuid() == 0
    cases = []
    for i in range(options.rounds):
        kinds = ALL if i % 3 == 0 else (ALL[(options.seed + i) % len(ALL)],)
        cases.append((1000 if len(kinds) > 1 else 300, kinds, is_root and i % 2 == 1))
    results = options.each(
        lambda directory, *case: one_attack(directory, normal[0], rate, seconds, *case), cases) if normal else []
    return {
        "attacks": len(results),
        "samples per second": rate,
        "bad connections": sum(result["connections"] for result in results),
        "status responses meanwhile": sum(result["watched"] for result in results),
        "slowest of them (s)": max((result["slowest"] for result in results), default=0.0),
        "most memory for clients (MiB)": max((result["memory"] for result in results), default=0) / MIB,
        "memory limit (MiB)": LIMIT / MIB,
    }


if __name__ == "__main__":
    torture.main(run, short=3, long=60)
