"""Clients cannot harm the capture: bad clients of a recording daemon, and permissions on the socket."""

import contextlib
import errno
import grp
import json
import os
import socket
import subprocess
import time

import pytest

import crowd
import harness
from crowd import PYTHON
from harness import Daemon, Watch, ask, check_counts, equal, run

pytestmark = pytest.mark.threads

KIB = 1 << 10
MIB = 1 << 20
CONNECTIONS = 64 + 168 + 32 + 64  # of others, of the owner, being refused, being closed
# As in server.h, event_broadcast.h and tap.h. All other responses here are statuses of less than 8 KiB.
LIMIT = CONNECTIONS * 44 * KIB + 4 * MIB + MIB + 8 * 280 * KIB + 8 * MIB
# At night longer than any timeout of the server, as in torture-clients.
SECONDS = 12 if harness.NIGHTLY else 1
MANY = 1000 if harness.NIGHTLY else 150
RATE = 250_000
BUFFER = 128 * MIB  # for forty seconds, in case the disk stalls
FEW = 20  # the least number of status responses


def recording(tmp, *options):
    return Daemon("--source", f"sim:rate={harness.rate(RATE)},count={3600 * RATE}", "-o", tmp / "out", "-b", "filesize:16M",
                  "-b", "files:2", "--set", f"pipeline.buffer={BUFFER}", *options, socket=tmp / "socket")


def record_for_a_while(tmp, bad_clients):
    """Records with or without bad clients. Returns the dropped samples, the memory without chunks, status samples, and
    the crowd's output."""
    with recording(tmp) as daemon:
        daemon.wait_ready()
        with contextlib.ExitStack() as stack:
            watch = stack.enter_context(Watch(daemon.socket))
            if bad_clients:
                bad = stack.enter_context(crowd.Running(daemon.socket, bad_clients))
                harness.wait_until(lambda: watch.check() or watch.last["clients"] > MANY // 10, "the clients have arrived")
            time.sleep(SECONDS if bad_clients else min(SECONDS, 2))
            harness.wait_until(lambda: watch.samples >= FEW, "enough status responses")
            watch.finish()
        status = daemon.status()
        dropped = check_counts(status)["dropped"]
        equal(status["state"], "recording")
        # Chunks that were never filled use no memory.
        buffer = status["buffer"]
        in_chunks = (buffer["chunks"] - buffer["min_free_chunks"]) * BUFFER // buffer["chunks"]
        used = KIB * harness.memory_kib(daemon.process.pid) - in_chunks
        equal(daemon.stop(), 0 if not dropped["buffer"] else 4, daemon.err)
    return dropped["buffer"] + dropped["disk"], used, watch, bad.said if bad_clients else None


def test_many_bad_clients_cost_no_samples_and_limited_memory(tmp):
    for name in ("without", "with"):
        (tmp / name).mkdir()
    normal, before, _, _ = record_for_a_while(tmp / "without", 0)
    dropped, used, watch, said = record_for_a_while(tmp / "with", MANY)
    harness.note(f"{sum(said['connected'].values())} bad connections; {watch.samples} status responses, "
                 f"{watch.slowest * 1e3:.0f} ms at most; {used / MIB:.1f} MiB, {before / MIB:.1f} MiB without them")
    assert dropped <= normal, f"{dropped} samples dropped, {normal} without the clients"
    if not harness.is_sanitized():
        assert used <= before + LIMIT, f"{used - before} bytes; the limit is {LIMIT}"
    for kind in crowd.KINDS:
        assert said["connected"].get(kind), f"no {kind} client got through: {said}"


def lines_of(client):
    """Yields the objects of a stream as they arrive, after its head."""
    client.settimeout(harness.TIMEOUT_S)
    got = b""
    while b"\r\n\r\n" not in got:
        got += client.recv(1 << 16)
    head, _, got = got.partition(b"\r\n\r\n")
    assert b" 200 " in head, head
    while True:
        *lines, got = got.split(b"\n")
        yield from map(json.loads, lines)
        piece = client.recv(1 << 16)
        assert piece, "the stream has ended"
        got += piece


def test_a_slow_reader_of_live_records_gets_the_exact_number_of_skipped_records(tmp):
    with recording(tmp) as daemon:
        daemon.wait_ready()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(daemon.socket))
            client.sendall(b"GET /v1/records HTTP/1.0\r\n\r\n")
            time.sleep(2)
            following, records, skipped = None, 0, 0
            for line in lines_of(client):
                if "skipped" in line:
                    equal(line["skipped"]["events"], 0, line)
                    skipped += line["skipped"]["records"]
                    following = following + line["skipped"]["records"] if following is not None else None
                elif "number" in line:
                    equal(line["number"], following if following is not None else line["number"], f"after {records} records")
                    following = line["number"] + 1
                    records += 1
                if records > 5000 and skipped > 1000:
                    break
                if records % 5000 == 4999:
                    time.sleep(1)  # slow again, until records are skipped
        check_counts(daemon.status())
        equal(daemon.stop(), 0, daemon.err)


# ---- permissions


def a_group():
    """A group that the users in this test do not belong to."""
    for name in ("games", "nogroup", "daemon"):
        with contextlib.suppress(KeyError):
            return name, grp.getgrnam(name).gr_gid
    return pytest.skip("no group available")


NOBODY = 65534


@contextlib.contextmanager
def recording_for_a_group(tmp):
    """Records with a socket for a group. Yields the daemon and the group's id."""
    name, gid = a_group()
    tmp.chmod(0o755)
    with recording(tmp, "--set", f"socket.group={name}") as daemon:
        daemon.wait_ready()
        yield daemon, gid


@contextlib.contextmanager
def holding(daemon, gid, code, line):
    """Runs Python code as another user in the group until the block ends. It first prints this line."""
    holder = harness.popen(
        [PYTHON, "-c", code, str(daemon.socket)], user=NOBODY, group=NOBODY, extra_groups=[gid], cwd="/",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        equal(holder.stdout.readline(), line)
        yield
    finally:
        holder.communicate(timeout=harness.TIMEOUT_S)


def as_nobody(groups, code, *argv):
    """Runs Python code as a user who is only in these groups. Returns its output."""
    done = run(PYTHON, "-c", code, *argv, user=NOBODY, group=NOBODY, extra_groups=groups, cwd="/")
    equal(done.returncode, 0, done.stderr.decode())
    return done.stdout.decode()


TRY = """
import socket, sys
with socket.socket(socket.AF_UNIX) as client:
    client.settimeout(300)
    try:
        client.connect(sys.argv[1])
    except OSError as why:
        print(why.errno)
        sys.exit()
    client.sendall(b"GET /v1/status HTTP/1.0\\r\\n\\r\\n")
    print(client.recv(12).decode())
"""


@pytest.mark.root
def test_a_user_outside_the_group_is_refused_and_one_inside_is_answered(tmp):
    with recording_for_a_group(tmp) as (daemon, gid):
        equal(os.stat(daemon.socket).st_gid, gid, "the socket's group")
        equal(as_nobody([], TRY, daemon.socket).strip(), str(errno.EACCES), "outside of the group")
        equal(as_nobody([gid], TRY, daemon.socket).strip(), "HTTP/1.1 200", "in the group")
        daemon.stop()


@pytest.mark.root
def test_clients_leave_descriptors_for_the_next_segments(tmp):
    """More clients than the limit of open files, and than the daemon accepts because of it."""

    def newest():
        return max((int(path.name.split("-")[2][:5]) for path in harness.segments(tmp / "out")), default=0)

    with Daemon("--nofile=260", harness.BUSCAPD, "--source", f"sim:rate={harness.rate(RATE)}", "-o", tmp / "out", "-b", "filesize:100K",
                "-b", "files:5", "--set", f"pipeline.buffer={BUFFER}", "--set", "socket.connections=1000", program="prlimit", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        tmp.chmod(0o755)
        with contextlib.ExitStack() as stack:
            with harness.being(65534, os.stat(tmp / "socket").st_gid, []):
                for _ in range(400):
                    client = stack.enter_context(socket.socket(socket.AF_UNIX))
                    client.setblocking(False)
                    client.connect(str(daemon.socket))
            before = newest()
            harness.wait_until(lambda: newest() > before + 3, "more segments are sealed")
            for _ in range(20):
                check_counts(json.loads(ask(daemon.socket).partition(b"\r\n\r\n")[2]))
        equal(daemon.stop(), 0, daemon.err)
    assert "because of the limit of open files" in daemon.err.decode(), daemon.err


# As many streams as others may have, and one more of each, which is refused.
HOLD_STREAMS = """
import socket, sys
clients = []
for path, most in (("events", 56), ("records", 6)):
    said = []
    for _ in range(most + 1):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(300)
        client.connect(sys.argv[1])
        client.sendall(b"GET /v1/" + path.encode() + b" HTTP/1.0\\r\\n\\r\\n")
        said.append(client.recv(12).decode())
        clients.append(client)
    assert said == ["HTTP/1.1 200"] * most + ["HTTP/1.1 503"], said
print("all held", flush=True)
sys.stdin.read()
"""


@pytest.mark.root
def test_others_cannot_use_up_the_streams_of_the_owner(tmp):
    with recording_for_a_group(tmp) as (daemon, gid):
        with holding(daemon, gid, HOLD_STREAMS, b"all held\n"):
            for path in ("events", "records"):
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(harness.TIMEOUT_S)
                    client.connect(str(daemon.socket))
                    client.sendall(f"GET /v1/{path} HTTP/1.0\r\n\r\n".encode())
                    equal(client.recv(12), b"HTTP/1.1 200", path)
        assert daemon.stop() in (0, 4), daemon.err
