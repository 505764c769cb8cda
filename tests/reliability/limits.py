"""Starts and uses the daemon with every number of threads, descriptors, processes and bytes of memory, from 0 upward.
A round is one limit.

The daemon must either refuse to start, with a message, or work: it answers each request, if only with an error, records
every sample or a gap in its place, and ends with the right exit code. It must never crash, hang or lose samples silently.
Threads (RLIMIT_NPROC) and processes (a pids cgroup) need root.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import time


import torture

import attack
import harness
from attack import request, try_request
from harness import BUSCAPD, Daemon, equal

RATE = 300_000
COUNT = 300 * RATE
USER = 64_000  # and the numbers after it: a user for each case, because the limit is per user
CGROUP = pathlib.Path("/sys/fs/cgroup/pids")
CLIENTS = 80

REQUESTS = [
    request("GET", "/v1/status"), request("GET", "/v1/recordings"), request("GET", "/metrics"), request("GET", "/v1/mix"),
    request("POST", "/v1/marks", {"text": "mark"}), request("POST", "/v1/rotate", {}),
    request("GET", "/v1/recordings/current"), request("GET", "/v1/triggers"),
]


class Limit:
    """A program with a limit. `argv` precedes its own arguments."""

    def __init__(self, kind, value, number):
        self.kind = kind
        self.value = value
        self.number = number
        self.group = None

    def __enter__(self):
        if self.kind == "pids":
            self.group = CGROUP / f"buscap-{os.getpid()}-{self.number}"
            self.group.mkdir()
            (self.group / "pids.max").write_text(str(self.value))
            self.argv = ["sh", "-c", f'echo $$ >{self.group}/cgroup.procs && exec "$@"', "sh"]
        elif self.kind == "threads":
            user = str(USER + self.number)
            self.argv = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "prlimit",
                         f"--nproc={self.value}"]
        else:
            name = {"descriptors": "nofile", "memory": "as"}[self.kind]
            self.argv = ["prlimit", f"--{name}={self.value}"]
        return self

    def __exit__(self, *exception):
        if self.group is not None:
            harness.wait_until(self._remove, f"{self.group} is empty")

    def _remove(self):
        with contextlib.suppress(OSError):
            self.group.rmdir()
            return True
        return False

    def prepare(self, directory):
        """Lets the program use the directory and itself. Returns the program."""
        if self.kind != "threads":
            return BUSCAPD
        directory.chmod(0o755)
        program = directory / "buscapd"
        shutil.copy(BUSCAPD, program)
        program.chmod(0o755)
        os.chown(directory, USER + self.number, USER + self.number)
        return program


def use(daemon, out):
    """Makes requests and connections. Returns how many requests had no answer."""
    silent = sum(try_request(daemon.socket, text) is None for text in REQUESTS)
    clients = []
    with contextlib.ExitStack() as stack:
        for i in range(CLIENTS):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.settimeout(1)
            try:
                client.connect(str(daemon.socket))
                if i % 8 == 0:
                    client.sendall(b"GET /v1/events HTTP/1.0\r\n\r\n" if i % 16 else b"GET /v1/records HTTP/1.0\r\n\r\n")
            except OSError:
                break
            clients.append(client)
        # Segments are opened and sealed meanwhile.
        time.sleep(0.5)
        try_request(daemon.socket, request("POST", "/v1/rotate", {}), 2)
        time.sleep(0.3)
    return silent


def one_limit(options, directory, kind, value, number):
    """Returns "refused", "loader" (the system could not start it) or "worked"."""
    out = directory / "out"
    with Limit(kind, value, number) as limit:
        program = limit.prepare(directory)
        # The system may be unable to load its libraries, or to give it a stack.
        check = [*limit.argv, program, "-c", "/dev/null", "--source", "sim", "--check-config"]
        if subprocess.run(check, capture_output=True).returncode not in (0, 1, 2):
            return "loader"
        argv = [*limit.argv[1:], program, "--once", "--source", f"sim:rate={RATE},count={COUNT}", "-o", out,
                "-b", "filesize:200K", "--set", "pipeline.workers=2", "--set", "pipeline.buffer=9MiB"]
        with Daemon(*argv, program=limit.argv[0], socket=directory / "socket") as daemon:
            is_ready = attack.wait_ready(daemon)
            if is_ready:
                silent = use(daemon, out)
                assert daemon.process.poll() is None, f"it ended while in use: {daemon.process.returncode}"
                code = daemon.stop()
            else:
                code = daemon.wait()
        log = attack.ended_well(daemon, f"{kind}={value}")
        if not is_ready:
            assert code != 0 and "buscapd: " in log, f"exit code {code} without a message: {log}"
            assert not out.exists() or not attack.all_segments(out), f"it refused to start, but left files: {log}"
            return "refused"
    counts = harness.check_counts(json.loads(daemon.out))
    dropped = counts["dropped"]
    lost = dropped["buffer"] + dropped["disk"]
    assert code == (4 if lost else 0) or code == 1 and "error" in log, f"exit code {code}, {counts}: {log}"
    if list(out.glob("*.partial")):
        equal(code, 1, log)
        attack.recover(out)
    harness.verify(harness.segments(out))
    segments = [path for path in attack.all_segments(out) if json.loads(daemon.out)["recording"]["id"] in path.name]
    equal(attack.check_places(segments), counts["received"] - dropped["invalid"], f"records and losses on record; {log}")
    return "worked" if not silent else "silent"


def values(options):
    """The limits of each kind: all small ones, then steps."""
    step = 1 if options.is_long else 4
    kinds = {"descriptors": [*range(0, 300 if options.is_long else 64, step), 100, 256, 512, 1024],
             "memory": [mib << 20 for mib in range(0, 400, 2 if options.is_long else 40)]}
    if os.geteuid() == 0:
        kinds["threads"] = range(0, 16, 1 if options.is_long else 3)
        if os.access(CGROUP, os.W_OK):
            kinds["pids"] = range(0, 16, 1 if options.is_long else 3)
    return kinds


def run(options):
    kinds = values(options)
    cases = [(kind, value) for kind, numbers in kinds.items() for value in numbers]
    cases = [(*case, number) for number, case in enumerate(cases)]
    results = options.each(
        lambda directory, *case: (case[0], case[1], one_limit(options, directory, *case)), cases[: options.rounds])
    figures = {}
    for kind in kinds:
        outcomes = {value: outcome for name, value, outcome in results if name == kind}
        for outcome in ("loader", "refused", "silent", "worked"):
            which = sorted(value for value, what in outcomes.items() if what == outcome)
            if which:
                figures[f"{kind}: {outcome}"] = f"{len(which)} limits, {which[0]} to {which[-1]}"
    if "threads" not in kinds:
        figures["threads"] = "left out: needs root"
    return figures


if __name__ == "__main__":
    torture.main(run, short=1000, long=10_000)
