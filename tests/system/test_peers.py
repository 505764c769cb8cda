"""Nothing waits for a peer that buscapd does not control: terminals, pipes, the journal, the service manager. And no
signal but SIGKILL costs the buffer."""

import contextlib
import fcntl
import json
import os
import signal
import socket as sockets
import subprocess
import termios

import pytest

import harness
from harness import BUSCAPD, equal, popen, status, wait_until

pytestmark = pytest.mark.threads

# Loses nothing within the time limit, however slow the machine is: the buffer has room for more samples, and a chunk is
# cut only by a rotation, of which at most one is under way.
PATIENT = ("--source", "sim:rate=10k", "-b", "files:5", "--set", "pipeline.flush=1h", "--set", "pipeline.buffer=64MiB")


def fill(fd):
    """Fills a pipe or a stopped terminal, through another open file: the daemon's stays blocking."""
    other = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(other, b"x" * 512)
    os.close(other)


@contextlib.contextmanager
def started(tmp, *options, name="one", **popen_options):
    """Starts a daemon whose standard error is the test's, and kills it at the end."""
    argv = [BUSCAPD, "-o", tmp / name, "--socket", tmp / f"{name}.sock", *options]
    with popen(argv, **{"stdin": subprocess.DEVNULL, **popen_options}) as process:
        try:
            yield process
        finally:
            process.kill()


def counted(path, what="written"):
    with contextlib.suppress(AssertionError, OSError):
        return status(path)["counts"][what]
    return 0


def wait_counted(path, more=1, what="written"):
    start = counted(path, what)
    wait_until(lambda: counted(path, what) >= start + more, "it records")


def check_blocked(tmp, process, name="one"):
    """The daemon's standard error accepts nothing any more. It records and answers as before, and ends on SIGTERM."""
    path = tmp / f"{name}.sock"
    sealed = status(path)["sealed"]["segments"]
    for n in range(sealed, sealed + 40):  # more lines than a pipe of one page holds
        wait_counted(path, what="received")
        equal(harness.http(path, "/v1/rotate", "POST")[0], 200)
        wait_until(lambda: status(path)["sealed"]["segments"] > n, "the segment is sealed", pause=0.005)
    process.terminate()
    equal(process.wait(harness.TIMEOUT_S), 0, "exit code")
    equal(list((tmp / name).glob("*.partial")), [], "left open")


def test_a_full_pipe_that_nobody_reads_does_no_harm(tmp):
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    with started(tmp, *PATIENT, stdout=writer, stderr=writer) as process:
        wait_counted(tmp / "one.sock", what="received")
        fill(writer)
        check_blocked(tmp, process)
    os.close(reader)
    os.close(writer)


def test_ctrl_s_in_the_terminal_does_no_harm(tmp):
    master, slave = os.openpty()
    with started(tmp, *PATIENT, stdin=slave, stdout=slave, stderr=slave, start_new_session=True) as process:
        wait_counted(tmp / "one.sock", what="received")
        os.write(master, b"\x13")
        fill(slave)
        check_blocked(tmp, process)
    os.close(master)
    os.close(slave)


def test_a_hanging_journal_does_not_stop_the_watchdog(tmp):
    journal, stderr = sockets.socketpair()
    stderr.setsockopt(sockets.SOL_SOCKET, sockets.SO_SNDBUF, 4608)
    node = os.fstat(stderr.fileno())
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_DGRAM) as manager:
        manager.bind(str(tmp / "notify"))
        manager.settimeout(harness.TIMEOUT_S)
        env = {**os.environ, "NOTIFY_SOCKET": str(tmp / "notify"), "WATCHDOG_USEC": "400000",
               "JOURNAL_STREAM": f"{node.st_dev}:{node.st_ino}"}
        with started(tmp, *PATIENT, stderr=stderr, env=env) as process:
            wait_counted(tmp / "one.sock", what="received")
            with contextlib.suppress(BlockingIOError):
                while True:
                    stderr.send(b"x" * 100, sockets.MSG_DONTWAIT)
            pings = 0
            while pings < 10:
                pings += b"WATCHDOG=1" in manager.recv(4096)
            manager.close()
            check_blocked(tmp, process)
    journal.close()
    stderr.close()


# ---- standard output


def blocked_output():
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    fill(writer)
    return reader, writer


def is_sealed(tmp):
    return list((tmp / "one").glob("*.byu.lz4")) and not list((tmp / "one").glob("*.partial"))


def test_a_stop_does_not_wait_for_standard_output(tmp):
    reader, writer = blocked_output()
    with started(tmp, "--once", "--source", "sim:rate=100k", stdout=writer, stderr=subprocess.PIPE) as process:
        wait_counted(tmp / "one.sock")
        process.terminate()
        _, err = process.communicate(timeout=harness.TIMEOUT_S)
        equal(process.returncode, 1, err)
    assert b"can't write the status to standard output: nothing reads it\n" in err, err
    assert is_sealed(tmp)
    assert not (tmp / "one.sock").exists()
    os.close(reader)
    os.close(writer)


def test_the_end_waits_for_standard_output_until_a_signal(tmp):
    reader, writer = blocked_output()
    for is_read in (True, False):
        with started(tmp, "--once", "--source", "sim:rate=max,count=1000", stdout=writer, stderr=subprocess.PIPE) as process:
            wait_until(lambda: is_sealed(tmp) and counted(tmp / "one.sock") == 1000, "all is sealed")
            equal(process.poll(), None, "exit code")
            if is_read:
                text = b""
                while b"}\n" not in text:
                    text += os.read(reader, 65536)
                equal(json.loads(text.lstrip(b"x"))["counts"]["written"], 1000)
            else:
                process.terminate()
            _, err = process.communicate(timeout=harness.TIMEOUT_S)
            equal(process.returncode, 0 if is_read else 1, err)
        fill(writer)
    os.close(reader)
    os.close(writer)


# ---- signals


STOPS = ("SIGTERM", "SIGINT", "SIGQUIT", "SIGPWR", "SIGXCPU")


def check_lossless(daemon, out):
    counts = harness.check_counts(json.loads(daemon.out))
    equal(counts["received"], counts["written"] + counts["dropped"]["invalid"], "samples without a loss")
    segments = harness.segments(out)
    harness.verify(segments)
    equal(sum(one["records"] for one in harness.info(segments)), counts["written"], "records in the files")
    equal(list(out.glob("*.partial")), [], "left open")


@pytest.mark.parametrize("name", STOPS)
def test_every_signal_that_ends_a_program_seals(tmp, name):
    with harness.Daemon("--once", "-o", tmp / "out", "--source", "sim:rate=100k", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        wait_counted(tmp / "socket")
        equal(daemon.stop(signal.Signals[name]), 0, daemon.err)
    assert f"{name}: stopping\n".encode() in daemon.err, daemon.err
    check_lossless(daemon, tmp / "out")


HARMLESS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPIPE,
            signal.SIGXFSZ, signal.SIGSTKFLT, signal.SIGWINCH, signal.SIGURG, signal.SIGCONT, signal.SIGTTOU,
            signal.SIGRTMIN, signal.SIGRTMIN + 7, signal.SIGRTMAX)


def test_other_signals_change_nothing(tmp):
    with harness.Daemon("--once", "-o", tmp / "out", "--source", "sim:rate=100k", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        wait_counted(tmp / "socket")
        for number in HARMLESS:
            if number != signal.SIGTTOU:
                daemon.process.send_signal(number)
        wait_counted(tmp / "socket", 1000)
        equal(daemon.stop(), 0, daemon.err)
    check_lossless(daemon, tmp / "out")


@contextlib.contextmanager
def in_a_terminal(tmp, *options):
    """Starts a daemon in a terminal of its own. Yields it and a function that closes the terminal."""
    master, slave = os.openpty()

    def close():
        os.close(slave)
        os.close(master)

    with started(tmp, "--source", "sim:rate=100k", *options, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                 preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) as process:
        wait_counted(tmp / "one.sock")
        yield process, close


def test_a_lost_terminal_ends_once_and_seals(tmp):
    """The kernel sends SIGHUP, and the terminal accepts nothing any more."""
    with in_a_terminal(tmp, "--once") as (process, close):
        close()
        equal(process.wait(harness.TIMEOUT_S), 0, "exit code")
    assert is_sealed(tmp)
    harness.verify(harness.segments(tmp / "one"))


def test_a_lost_terminal_does_not_end_what_nohup_started(tmp):
    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with started(tmp, "--once", "--source", "sim:rate=100k", stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=ignore) as process:
        wait_counted(tmp / "one.sock")
        process.send_signal(signal.SIGHUP)
        wait_counted(tmp / "one.sock", 1000)
        process.terminate()
        _, err = process.communicate(timeout=harness.TIMEOUT_S)
        equal(process.returncode, 0, err)
    assert b"SIGHUP" not in err, err
