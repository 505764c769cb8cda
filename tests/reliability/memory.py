"""Makes every allocation of the daemon fail in turn, those in libraries included (tests/support/faultalloc.c). A round
is one failing allocation.

At the start, the daemon must end with a message, or run. Once it runs, each request must be answered or its connection
closed, the recording must continue, and nothing may be lost: memory for samples is allocated at the start.
"""

import json
import os
import signal
import socket
import time

import torture

import attack
import harness
from attack import request
from harness import BUSCAPD, Daemon, FailingAllocations, equal

RATE = 200_000
START = ("--once", "--no-socket", "--source", "sim:rate=max,count=100k,seed=1", "-b", "filesize:200K",
         "--set", "pipeline.workers=2", "--set", "pipeline.buffer=9MiB")
STREAM_S = 0.1
FEW = 6  # allocations of each operation, in the short form

# What is done while one allocation of the daemon fails.
OPERATIONS = {
    "status": lambda d: ask(d, request("GET", "/v1/status")),
    "metrics": lambda d: ask(d, request("GET", "/metrics")),
    "recordings": lambda d: ask(d, request("GET", "/v1/recordings")),
    "current recording": lambda d: ask(d, request("GET", "/v1/recordings/current")),
    "metadata": lambda d: ask(d, request("PATCH", "/v1/recordings/current", {"metadata": {"run": "7"}})),
    "mark": lambda d: ask(d, request("POST", "/v1/marks", {"text": "a mark"})),
    "rotate": lambda d: ask(d, request("POST", "/v1/rotate", {})),
    "trigger": lambda d: ask(d, request("POST", "/v1/triggers", {"name": "t", "when": "type=IOREAD", "action": "mark"})),
    "disarm": lambda d: ask(d, request("DELETE", "/v1/triggers/t")),
    "mix": lambda d: ask(d, request("GET", "/v1/mix")),
    "events": lambda d: ask(d, request("GET", "/v1/events"), STREAM_S),
    "records": lambda d: ask(d, request("GET", "/v1/records"), STREAM_S),
    "bad request": lambda d: ask(d, b"GARBAGE\r\n\r\n"),
    "reload": lambda d: hang_up(d),
    "stop and start": lambda d: stop_and_start(d),
    "snapshot": lambda d: ask(d, request("POST", "/v1/snapshot", {})),
}


def ask(daemon, text, stream_s=None):
    """Sends a request. Returns the first bytes of the answer; empty if the connection was closed without one."""
    answer = b""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(stream_s or harness.TIMEOUT_S)
        try:
            client.connect(str(daemon.socket))
            client.sendall(text)
            end = time.monotonic() + (stream_s or harness.TIMEOUT_S)
            while (piece := client.recv(65536)) and time.monotonic() < end:
                answer += piece
        except TimeoutError:
            assert stream_s, f"no answer to {text!r}"
        except OSError:
            pass
    return answer


def hang_up(daemon):
    daemon.process.send_signal(signal.SIGHUP)
    return ask(daemon, request("GET", "/v1/status"))


def stop_and_start(daemon):
    ask(daemon, request("DELETE", "/v1/recordings/current"))
    return ask(daemon, request("POST", "/v1/recordings", {"label": "again"}))


# ---- at the start


def count_at_start(directory):
    memory = FailingAllocations(directory)
    done = harness.run(BUSCAPD, *START, "-o", directory / "count", env={**os.environ, **memory.env})
    equal(done.returncode, 0, done.stderr.decode())
    return memory.calls


def fail_at_start(directory, number):
    """Returns "ended" or "recorded"."""
    memory = FailingAllocations(directory)
    memory.fail(number, number)
    out = directory / "out"
    with Daemon(*START, "-o", out, env=memory.env) as daemon:
        code = daemon.wait()
    log = attack.ended_well(daemon, f"allocation {number} at the start")
    if code not in (0, 4):
        assert log.strip(), f"allocation {number} at the start: exit code {code} without a message"
        return "ended"
    status = json.loads(daemon.out)
    counts = harness.check_counts(status)
    equal(attack.recorded(out), counts["received"] - counts["dropped"]["invalid"], f"allocation {number}: {log}")
    return "recorded"


# ---- while it runs


class Running:
    """A daemon that records, with failing allocations."""

    def __init__(self, directory):
        self.out = directory / "out"
        self.memory = FailingAllocations(directory)
        self.daemon = Daemon("--source", f"sim:rate={RATE},count={3600 * RATE}", "-o", self.out, "-b", "filesize:500K",
                             "-b", "files:8", "--set", "pipeline.workers=2", "--set", "pipeline.buffer=64MiB",
                             "--set", "log.level=notice", socket=directory / "socket", env=self.memory.env)

    def check(self, what):
        """The daemon must work as if nothing had happened."""
        self.memory.fail(0, 0)
        assert self.daemon.process.poll() is None, f"{what}: the daemon ended: {self.daemon.log_so_far()}"
        before = harness.check_counts(self.daemon.status())
        harness.wait_until(lambda: self.daemon.status()["counts"]["received"] > before["received"], f"{what}: more samples")
        counts = harness.check_counts(self.daemon.status())
        equal((counts["dropped"]["buffer"], counts["dropped"]["disk"]), (0, 0), f"{what}: lost")

    def restart_recording(self):
        code, _ = harness.http(self.daemon.socket, "/v1/recordings/current")
        if code == 404:
            harness.http(self.daemon.socket, "/v1/recordings", "POST", "{}")


def fail_while_running(options, directory, name):
    """Makes each allocation of an operation fail, or FEW of them. Returns (name, how many failed)."""
    operation = OPERATIONS[name]
    running = Running(directory)
    failed = 0
    with running.daemon as daemon:
        attack.wait_ready(daemon)
        operation(daemon)  # what libraries allocate only once
        running.memory.fail(0, 0)
        operation(daemon)
        calls = running.memory.calls
        step = 1 if options.is_long else 1 + calls // FEW
        number = options.rng(name).randrange(step) + 1
        while number <= 2 * calls + 10 and not options.is_over:
            running.memory.fail(number, number)
            operation(daemon)
            if running.memory.failed == 0 and running.memory.calls < number:
                break
            failed += running.memory.failed
            running.check(f"{name}, allocation {number}")
            running.restart_recording()
            number += step
        # All fail for a moment.
        running.memory.fail(1, 1 << 40)
        operation_until(operation, daemon, 0.3)
        running.check(f"{name}, all allocations")
        running.restart_recording()
        code = daemon.stop()
    log = attack.ended_well(daemon, name)
    equal(code, 0, log)
    harness.verify(harness.segments(running.out))
    return name, failed


def operation_until(operation, daemon, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            operation(daemon)
        except AssertionError:
            break  # not answered while nothing can be allocated


def run(options):
    directory = options.directory / "count"
    directory.mkdir()
    total = count_at_start(directory)
    share = min(options.rounds, total)
    starts = sorted({1 + i * total // share for i in range(share)})
    outcomes = options.each(fail_at_start, [(number,) for number in starts])
    results = options.each(lambda directory, name: fail_while_running(options, directory, name), [(name,) for name in OPERATIONS])
    return {
        "allocations at the start": total,
        "failed at the start": len(outcomes),
        "of these the daemon ended with a message": outcomes.count("ended"),
        "of these the daemon recorded everything": outcomes.count("recorded"),
        "failed while running": sum(failed for _, failed in results),
        "operations": len(OPERATIONS),
    }


if __name__ == "__main__":
    torture.main(run, short=100, long=100_000)
