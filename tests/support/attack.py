"""What the programs in tests/reliability share about a daemon under attack: requests, and checks of its files."""

import json
import os
import signal

import harness
from harness import Daemon, equal
from recovered import all_segments, check_places

CRASHES = ("handles left open", "Assertion", "Sanitizer", "runtime error:", "terminate called", "*** ")


def ended_well(daemon, what):
    """Checks that an ended daemon did not crash. Returns its log."""
    code = daemon.process.returncode
    log = daemon.err.decode(errors="replace")
    assert code >= 0, f"{what}: ended by {signal.Signals(-code).name}: {log}"
    for words in CRASHES:
        assert words not in log, f"{what}: {log}"
    return log


def wait_ready(daemon):
    """Waits until the daemon answers or ends. Returns whether it answers."""

    def answers():
        if daemon.process.poll() is not None:
            return "ended"
        try:
            daemon.status()
            return "ready"
        except AssertionError:
            return None

    return harness.wait_until(answers, "the daemon answers or ends") == "ready"


def try_request(socket_path, request, timeout=10):
    """Sends a request. Returns the status code, or None without a whole answer."""
    try:
        answer = harness.ask(socket_path, request, timeout)
    except OSError:
        return None
    words = answer.split(b" ", 2)
    return int(words[1]) if len(words) == 3 and words[1].isdigit() else None


def request(method, path, body=None):
    """Returns the bytes of a request."""
    text = b"" if body is None else json.dumps(body).encode()
    kind = "Content-Type: application/json\r\n" if body is not None else ""
    return f"{method} {path} HTTP/1.0\r\n{kind}Content-Length: {len(text)}\r\n\r\n".encode() + text


def recorded(directory):
    """Checks that the records and gaps of a recording that started with the simulator are its samples, each once.
    Returns their number."""
    return check_places(all_segments(directory))


def recover(directory):
    """Starts the daemon once more, which recovers open files. Returns its log."""
    with Daemon("--once", "--no-socket", "--source", "sim:rate=max,count=1", "-o", directory) as daemon:
        daemon.wait()
    log = ended_well(daemon, "the next start")
    equal(daemon.process.returncode, 0, log)
    return log


def open_descriptors(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


def peak_memory(process):
    """Returns the peak of the resident memory, in bytes."""
    return harness.memory_kib(process.pid) << 10
