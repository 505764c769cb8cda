"""The daemon as a service: notifications, the watchdog and socket activation."""

import contextlib
import json
import os
import signal
import socket
import stat
import struct
import sys
import threading
import time

import pytest

import harness
from api_harness import Stream
from harness import BUSCAPD, Daemon, Faults, equal, run, verify

pytestmark = pytest.mark.threads

SIM = ("--source", "sim:rate=20k")
WATCHDOG_US = 1_000_000


SO_TIMESTAMPNS = 35  # of <asm/socket.h>


class Manager:
    """A service manager. `heard` has the notifications: (time sent, [lines])."""

    MARK = "X-MARK=1"

    def __init__(self, directory, watchdog_us=None, abstract=False):
        self.heard = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._has_caught_up = threading.Event()
        name = f"{directory}/notify"
        self._socket.bind("\0" + name[1:] if abstract else name)
        self.env = {"NOTIFY_SOCKET": "@" + name[1:] if abstract else name}
        if watchdog_us:
            self.env["WATCHDOG_USEC"] = str(watchdog_us)
        self._thread = threading.Thread(target=self._run)
        self._ended = False

    def _run(self):
        self._socket.settimeout(0.05)
        while not self._ended:
            with contextlib.suppress(TimeoutError):
                self._receive()

    def _receive(self):
        text, ancillary, _, _ = self._socket.recvmsg(65536, 64)
        lines = text.decode().split("\n")
        if lines == [self.MARK]:
            self._has_caught_up.set()
            return
        (when,) = [struct.unpack("ll", data) for level, kind, data in ancillary if kind == SO_TIMESTAMPNS]
        self.heard.append((when[0] + when[1] * 1e-9, lines))

    def catch_up(self):
        """Waits for everything sent so far, using a mark sent after it."""
        self._has_caught_up.clear()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
            own.sendto(self.MARK.encode(), self._socket.getsockname())
        assert self._has_caught_up.wait(harness.TIMEOUT_S), "no notification"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._ended = True
        self._thread.join()
        self._socket.close()

    def lines(self, start=""):
        return [line for _, lines in list(self.heard) for line in lines if line.startswith(start)]

    def states(self):
        self.catch_up()
        return [line for line in self.lines() if line in ("READY=1", "RELOADING=1", "STOPPING=1")]

    def wait_for(self, line, count=1):
        harness.wait_until(lambda: len(self.lines(line)) >= count, f"{line} received {count} times; {self.lines()}")


def service(tmp, manager, *argv, env=None, **options):
    return Daemon("-o", tmp / "out", *argv, socket=tmp / "socket", env={**manager.env, **(env or {})}, **options)


# ---- the states


def test_ready_and_stopping_are_sent(tmp):
    for abstract in (False, True):
        with Manager(tmp, abstract=abstract) as manager:
            with service(tmp, manager, *SIM) as daemon:
                manager.wait_for("READY=1")
                equal(daemon.status()["state"], "recording", "the current state")
                manager.wait_for("STATUS=recording 20", 2)
                equal(daemon.stop(), 0, daemon.err)
            # Nothing follows: the socket is closed.
            equal(manager.states(), ["READY=1", "STOPPING=1"], "states")
            equal(manager.heard[0][1], ["READY=1"], "the first notification")
            at = manager.lines().index("STOPPING=1")
            assert "EXTEND_TIMEOUT_USEC=60000000" in manager.lines()[at:], manager.lines()
            equal(manager.lines("WATCHDOG"), [], "with no watchdog")
            status = manager.lines("STATUS=recording")[-1]
            assert ", 0 samples lost, buffer " in status and "samples/s" in status and " records, " in status, status


def fed(manager):
    return len(manager.lines("WATCHDOG=1"))


def test_a_failed_start_sends_the_error_and_no_ready(tmp):
    (tmp / "plain").write_text("")
    with Manager(tmp) as manager, socket.create_server(("127.0.0.1", 0)) as busy:
        address = "127.0.0.1:%d" % busy.getsockname()[1]
        for argv, number, words in [
            (["-o", tmp / "plain", *SIM], 20, f"{tmp}/plain: "),
            (["-o", tmp / "out", "--source", f"file:{tmp}/none"], 2, f"file:{tmp}/none: "),
            (["-o", tmp / "out", *SIM, "--socket", tmp / "none/socket"], 2, f"{tmp}/none/socket: "),
            (["-o", tmp / "out", *SIM, "--socket", tmp / "s", "--set", f"socket.metrics_listen={address}"], 98, f"{address}: "),
        ]:
            manager.heard.clear()
            done = run(BUSCAPD, *argv, env={**os.environ, **manager.env})
            equal(done.returncode, 1, done.stderr)
            manager.wait_for("ERRNO=")
            equal(manager.lines("ERRNO="), [f"ERRNO={number}"], argv)
            status = manager.lines("STATUS=")[0]  # "stopping" may follow
            assert words in status and status[len("STATUS="):] in done.stderr.decode(), (status, done.stderr)
            assert "READY=1" not in manager.states(), manager.states()


def test_a_manager_that_does_not_read_blocks_nothing(tmp):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filler:
        deaf.bind(str(tmp / "notify"))
        filler.setblocking(False)
        filled = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                filler.sendto(b"X=1", str(tmp / "notify"))
                filled += 1
        env = {"NOTIFY_SOCKET": str(tmp / "notify"), "WATCHDOG_USEC": str(WATCHDOG_US)}
        with Daemon("-o", tmp / "out", *SIM, socket=tmp / "socket", env=env) as daemon:
            daemon.wait_ready()
            harness.wait_until(lambda: daemon.status()["counts"]["written"] > 20_000, "the daemon records")
            deaf.settimeout(harness.TIMEOUT_S)
            for _ in range(filled):
                equal(deaf.recv(100), b"X=1")
            # The pending state is sent as soon as possible.
            heard = [deaf.recv(1000)]
            while heard[-1] != b"READY=1":
                heard.append(deaf.recv(1000))
            equal(daemon.stop(), 0, daemon.err)
        assert b"service manager" not in daemon.err, daemon.err


# ---- long starts and stops


def test_a_long_stop_extends_the_timeout(tmp):
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out)
    argv = ("--source", "sim:rate=2M", "--set", "pipeline.workers=1", "--set", "pipeline.buffer=16MiB")
    with Manager(tmp) as manager:
        with service(tmp, manager, *argv, env=faults.env) as daemon:
            manager.wait_for("READY=1")
            faults.set("pwrite:hold")
            harness.wait_until(lambda: daemon.status()["buffer"]["free_chunks"] == 0, "the buffer is full")
            daemon.process.send_signal(signal.SIGTERM)
            manager.wait_for("STOPPING=1")
            manager.wait_for("EXTEND_TIMEOUT_USEC=60000000")
            time.sleep(1.5)
            manager.catch_up()
            equal(len(manager.lines("EXTEND_")), 1, "while nothing is written")
            faults.set("pwrite:slow")
            manager.wait_for("EXTEND_TIMEOUT_USEC=60000000", 4)
            faults.set("")
            assert daemon.wait() in (0, 4), daemon.err
    verify(harness.segments(out))


# ---- the watchdog


def test_the_watchdog_is_pinged(tmp):
    with Manager(tmp, WATCHDOG_US) as manager:
        with service(tmp, manager, *SIM) as daemon:
            manager.wait_for("WATCHDOG=1", 10)
            equal(daemon.stop(), 0, daemon.err)
        # WATCHDOG_PID names another process.
        manager.catch_up()
        manager.heard.clear()
        with service(tmp, manager, *SIM, env={"WATCHDOG_PID": str(os.getpid())}) as daemon:
            manager.wait_for("STATUS=recording", 3)
            equal(daemon.stop(), 0, daemon.err)
        manager.catch_up()
        equal(fed(manager), 0, "fed")


def hang(directory, rules, ending, who, words, *argv):
    """While a thread hangs, the watchdog is not pinged, and the log names thread and file once."""
    out = directory / "out"
    out.mkdir()
    faults = Faults(directory, out)
    # Longer than a busy machine may pause.
    argv = (*SIM, "--set", "pipeline.stuck=6s", *argv)
    with Manager(directory, WATCHDOG_US) as manager:
        with service(directory, manager, *argv, env={**faults.env, "FAULTFS_ENDING": ending}) as daemon:
            manager.wait_for("READY=1")
            harness.wait_until(lambda: daemon.status()["counts"]["written"], "records are written")
            faults.set(rules)
            harness.wait_until(lambda: f"{who} hangs" in daemon.log_so_far(), "the hang is logged")
            manager.catch_up()
            count = fed(manager)
            time.sleep(1.2)
            manager.catch_up()
            equal(fed(manager), count, f"pings while {who} hangs")
            harness.check_counts(daemon.status())
            faults.set("")
            harness.wait_until(lambda: fed(manager) > count + 3, "the watchdog is pinged again")
            daemon.stop()
    errors = [line for line in daemon.err.decode().splitlines() if who in line]
    equal(len(errors), 2, errors)
    assert f"{who} hangs: " + words.format(out) in errors[0], errors
    assert " s, since 20" in errors[0] and "systemd restarts" in errors[0], errors
    assert f"{who} continues after " in errors[1] and "notified again" in errors[1], errors


def test_a_hanging_thread_is_logged_and_stops_the_pings(tmp):
    harness.each(hang, harness.some([
        ("fdatasync:hold", ".partial", "the sealer", "syncing {}/20"), ("pwrite:hold", ".partial", "the writer", "writing to {}/20"),
        ("renameat2:hold", ".lz4", "the sealer", "sealing {}/20", "-b", "filesize:20K"),
        ("openat:hold", ".partial", "the writer", "creating {}/20", "-b", "filesize:20K"),
        ("fstatvfs:hold", "", "the sealer", "checking the space in {}/."),
    ], 3))


def test_a_hanging_writer_is_reported_without_a_manager(tmp):
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out)
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(Daemon("-o", out, *SIM, "--set", "pipeline.stuck=6s", socket=tmp / "socket", env=faults.env))
        daemon.wait_ready()
        events = stack.enter_context(Stream(tmp / "socket", "/v1/events", "Event"))
        harness.wait_until(lambda: daemon.status()["counts"]["written"], "records are written")
        faults.set("pwrite:hold")
        harness.wait_until(lambda: "the writer hangs" in daemon.log_so_far(), "the hang is logged")
        assert "the writer hangs: writing to 20" in events.until(lambda event: event["event"] == "hang")["error"]
        daemon.wait_uptime(1)  # it is not reported again
        faults.set("")
        equal(events.until(lambda event: event["event"] == "hang")["error"], None)
        daemon.stop()
    lines = [line for line in daemon.err.decode().splitlines() if "the writer" in line]
    equal(len(lines), 2, lines)
    assert f"error: the writer hangs: writing to {out}/20" in lines[0] and "fills up" in lines[0], lines
    assert "watchdog" not in daemon.err.decode(), lines


def refuse(directory, rules):
    out = directory / "out"
    out.mkdir()
    faults = Faults(directory, out)
    with Manager(directory, WATCHDOG_US) as manager:
        with service(directory, manager, *SIM, "--set", "pipeline.stuck=6s", env=faults.env) as daemon:
            manager.wait_for("READY=1")
            harness.wait_until(lambda: daemon.status()["counts"]["written"], "records are written")
            faults.set(rules)
            harness.wait_until(lambda: daemon.status()["disk"]["last_error"], "the disk does not accept data")
            # Longer than the limit; there are four pings a second.
            manager.wait_for("WATCHDOG=1", fed(manager) + 28)
            if rules == "pwrite:ENOSPC":
                assert any("disk not accepting data: " in line for line in manager.lines("STATUS=")), manager.lines()
            faults.set("")
            daemon.stop()
    assert "watchdog" not in daemon.err.decode(), daemon.err


def test_a_full_or_failing_disk_is_not_a_hang(tmp):
    harness.each(refuse, harness.some([("pwrite:ENOSPC",), ("fdatasync:EIO",), ("openat:EACCES,pwrite:EIO",)], 2))


# ---- socket activation


LAUNCHER = """
import os, sys
fds = [int(word) for word in sys.argv[1].split(",")]
os.environ["LISTEN_FDS"] = str(len(fds))
os.environ["LISTEN_PID"] = sys.argv[2] if sys.argv[2] != "own" else str(os.getpid())
os.environ["LISTEN_FDNAMES"] = ":".join(["buscapd.socket"] * len(fds))
high = [os.dup(fd) for fd in fds]
while min(high) < 3 + len(fds):
    high = [os.dup(fd) for fd in high]
for place, fd in enumerate(high):
    os.dup2(fd, 3 + place, inheritable=True)
os.closerange(3 + len(fds), 256)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Activated(Daemon):
    """buscapd with socket activation: the sockets are its descriptors from 3."""

    def __init__(self, sockets, *argv, pid="own", **options):
        super().__init__(*argv, **options)
        self.sockets = sockets
        self.argv = [sys.executable, "-c", LAUNCHER, ",".join(str(s.fileno()) for s in sockets), pid, *self.argv]
        for s in sockets:
            s.set_inheritable(True)

    def __enter__(self):
        self.start(close_fds=False)
        return self


@contextlib.contextmanager
def listening(path, kind=socket.SOCK_STREAM, listens=True):
    with socket.socket(socket.AF_UNIX, kind) as listener:
        listener.bind(str(path))
        if listens:
            listener.listen(128)
        yield listener


def test_a_passed_socket_serves_waiting_clients(tmp):
    path = tmp / "socket"
    with listening(path) as listener, Manager(tmp) as manager:
        path.chmod(0o606)
        node = path.stat()
        for number in range(2):
            # They connect before the daemon starts.
            clients = [socket.socket(socket.AF_UNIX) for _ in range(20)]
            for client in clients:
                client.settimeout(harness.TIMEOUT_S)
                client.connect(str(path))
                client.sendall(b"GET /v1/status HTTP/1.0\r\n\r\n")
            with Activated([listener], "-o", tmp / "out", *SIM, socket=path, env=manager.env) as daemon:
                for client in clients:
                    answer = b""
                    while piece := client.recv(65536):
                        answer += piece
                    assert answer.startswith(b"HTTP/1.1 200"), answer
                    harness.check_counts(json.loads(answer.partition(b"\r\n\r\n")[2]))
                    client.close()
                manager.wait_for("READY=1", number + 1)
                equal(daemon.status()["state"], "recording", "state")
                equal(daemon.stop(), 0, daemon.err)
            now = path.stat()
            equal((now.st_ino, stat.S_IMODE(now.st_mode)), (node.st_ino, 0o606), "the node")
            assert not (tmp / "socket.lock").exists()
        # It is still listening, for the next start.
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


def test_a_passed_socket_may_have_another_path(tmp):
    (tmp / "real").mkdir()
    (tmp / "link").symlink_to(tmp / "real")
    with listening(tmp / "real/socket") as listener:
        with Activated([listener], "-o", tmp / "out", *SIM, socket=tmp / "link/socket") as daemon:
            equal(daemon.wait_ready()["state"], "recording", "state")
            equal(daemon.stop(), 0, daemon.err)
        assert (tmp / "real/socket").is_socket()


@pytest.mark.single
def test_a_wrong_passed_socket_is_an_error(tmp):
    path = tmp / "socket"
    at = ("--socket", path)
    with contextlib.ExitStack() as stack:
        good = stack.enter_context(listening(path))
        other = stack.enter_context(listening(tmp / "other"))
        datagram = stack.enter_context(listening(tmp / "datagram", socket.SOCK_DGRAM, False))
        packets = stack.enter_context(listening(tmp / "packets", socket.SOCK_SEQPACKET))
        silent = stack.enter_context(listening(tmp / "silent", listens=False))
        abstract = stack.enter_context(listening(f"\0{tmp}/abstract"))
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        client = stack.enter_context(socket.socket(socket.AF_UNIX))
        client.connect(str(path))
        file = stack.enter_context(open(tmp / "file", "w"))
        manager = stack.enter_context(Manager(tmp))
        for sockets, argv, words in [
            ([other], at, [f"{tmp}/other", f"socket.path is {path}", "ListenStream="]),
            ([abstract], at, [f"@{tmp}/abstract", f"socket.path is {path}"]),
            ([tcp], at, ["other than a listening Unix stream socket", f"ListenStream={path}"]),
            ([datagram], at, ["other than a listening Unix stream socket"]),
            ([packets], at, ["other than a listening Unix stream socket"]),
            ([silent], at, ["other than a listening Unix stream socket"]),
            ([client], at, ["other than a listening Unix stream socket", "Accept=no"]),
            ([file], at, ["other than a listening Unix stream socket"]),
            ([good, other], at, ["2 sockets", "exactly one ListenStream="]),
            ([good, tcp], at, ["2 sockets"]),
            ([good], ("--no-socket",), [str(path), "socket.path is empty"]),
            ([good], ("--once",), [str(path), "socket.path is empty"]),
        ]:
            manager.heard.clear()
            for s in sockets:
                os.set_inheritable(s.fileno(), True)
            done = run(sys.executable, "-c", LAUNCHER, ",".join(str(s.fileno()) for s in sockets), "own", BUSCAPD,
                       "-o", tmp / "out", *SIM, *argv, env={**os.environ, **manager.env}, close_fds=False)
            err = harness.check_sound(done.stderr)
            equal((done.returncode, err.count("\n")), (2, 1), f"{argv}: {err}")
            for word in words:
                assert word in err, f"{word!r} is not in: {err}"
            manager.wait_for("ERRNO=22")
            equal(manager.states(), [], "states")
        for name in ("socket", "other", "datagram", "silent"):
            assert (tmp / name).is_socket(), name
    assert not (tmp / "out").exists()


def test_commands_get_neither_socket_nor_variables_of_the_manager(tmp):
    path = tmp / "socket"
    seen = tmp / "seen"
    command = tmp / "command"
    command.write_text(f"#!/bin/sh\nenv >{seen}.new\nls -l /proc/self/fd >>{seen}.new\nmv {seen}.new {seen}\n")
    command.chmod(0o755)
    with listening(path) as listener, Manager(tmp, 10_000_000) as manager:
        with Activated([listener], "-o", tmp / "out", *SIM, "--set", f"output.sealed_command={command}",
                       socket=path, env=manager.env) as daemon:
            daemon.wait_ready()
            harness.wait_until(lambda: daemon.status()["counts"]["written"], "records are written")
            equal(daemon.stop(), 0, daemon.err)
    text = seen.read_text()
    assert "BUSCAP_RECORDING=" in text, text
    for word in ("LISTEN_", "NOTIFY_SOCKET", "WATCHDOG_", "socket:["):
        assert word not in text, text
