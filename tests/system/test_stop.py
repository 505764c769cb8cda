"""How a recording ends, and the lock on its directory. Received samples are recorded or accounted for."""

import array
import fcntl
import json
import os
import shlex
import shutil
import signal
import termios
import time

import pytest

import harness
from harness import BUSCAP, BUSCAPD, Daemon, Faults, equal, info, run

pytestmark = pytest.mark.threads


def unread(fd):
    """The number of unread bytes in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


def fill(fd, data):
    """Writes until the reader has read nothing for a second. Returns the number of bytes written."""
    os.set_blocking(fd, False)
    given, taken_at = 0, time.monotonic()
    while given < len(data) and time.monotonic() - taken_at < 1:
        try:
            given += os.write(fd, data[given : given + 4096])
            taken_at = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    return given


def check_recorded(out, count, read):
    """Compares the records with `read` bytes of `sim --count COUNT`. A frame has 2,048 samples; the last one may be
    torn, and a few cycles are invalid."""
    recorded = harness.lz4_dc(harness.segments(out))
    equal(harness.sim_records(count).startswith(recorded), True, "the records are the first of the stream")
    missing = read // 8 - len(recorded) // 12
    assert 0 <= missing < 2048 + read // 8 // 100, f"{missing} of {read // 8} samples that were read are not recorded"


def test_a_stopped_pipe_has_what_was_read_recorded(tmp):
    out, fifo = tmp / "out", tmp / "fifo"
    out.mkdir()
    os.mkfifo(fifo)
    faults = Faults(tmp, out, "pwrite:hold")
    stream = run(BUSCAP, "sim", "--count", "2M", "-O", "bcp1").stdout
    with Daemon("--once", "--source", f"file:{fifo},format=bcp1", "-o", out, "--set", "pipeline.workers=1", "--set",
                "pipeline.buffer=6MiB", socket=tmp / "socket", env=faults.env) as daemon:
        pipe = os.open(fifo, os.O_WRONLY)
        given = fill(pipe, stream)
        assert given < len(stream), "the buffer did not fill up"
        daemon.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)  # nothing indicates when it has stopped reading
        faults.set("")
        equal(daemon.wait(), 0, daemon.err)
        read = given - unread(pipe)
        os.close(pipe)
    check_recorded(out, 2_000_000, read)


def test_a_pipe_that_is_stopped_before_its_format_is_known_has_what_was_read_recorded(tmp):
    out, fifo = tmp / "out", tmp / "fifo"
    os.mkfifo(fifo)
    stream = run(BUSCAP, "sim", "--count", "5000", "-O", "byu").stdout
    with Daemon("--once", "--source", f"file:{fifo}", "-o", out, socket=tmp / "socket") as daemon:
        with open(fifo, "wb") as pipe:
            pipe.write(stream)
            pipe.flush()
            harness.wait_until(lambda: unread(pipe.fileno()) == 0, "all is read")
            daemon.process.send_signal(signal.SIGTERM)
            equal(daemon.wait(), 0, daemon.err)
    equal(harness.lz4_dc(harness.segments(out)), stream, "records")


def test_a_stopped_pipe_does_not_wait_for_its_pace(tmp):
    out, fifo = tmp / "out", tmp / "fifo"
    os.mkfifo(fifo)
    stream = run(BUSCAP, "sim", "--count", "1M", "-O", "bcp1").stdout
    # What was read ahead would take hours.
    with Daemon("--once", "--source", f"file:{fifo},format=bcp1", "--speed", "0.0000001", "-o", out,
                socket=tmp / "socket") as daemon:
        pipe = os.open(fifo, os.O_WRONLY)
        given = fill(pipe, stream)
        assert given < len(stream), "the source does not wait"
        daemon.process.send_signal(signal.SIGTERM)
        equal(daemon.wait(), 0, daemon.err)
        read = given - unread(pipe)
        os.close(pipe)
    check_recorded(out, 1_000_000, read)


@pytest.mark.parametrize("name", ["SIGXCPU", "SIGPWR", "SIGHUP"])
def test_a_signal_that_the_system_repeats_costs_nothing(tmp, name):
    """Past its limit of CPU time, a process gets one each second."""
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out)
    with Daemon("--once", "--source", "sim:rate=10k", "-o", out, socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["written"], "the daemon records")
        faults.set("pwrite:hold")
        harness.wait_until(lambda: any(done == "hold" for _, _, done, _ in faults.calls()), "the writer is held up")
        daemon.process.send_signal(signal.Signals[name])
        harness.wait_until(lambda: daemon.status()["state"] == "draining", "the state draining")
        daemon.wait_uptime(1)  # an earlier one would be taken for a repetition anyway
        daemon.process.send_signal(signal.Signals[name])
        for _ in range(2):
            daemon.status()
        faults.set("")
        equal(daemon.wait(), 0, daemon.err)
    assert b"giving up" not in daemon.err, daemon.err
    counts = json.loads(daemon.out)["counts"]
    equal((counts["dropped"]["disk"], counts["dropped"]["buffer"], counts["in_flight"]), (0, 0, 0), counts)


def refused(out, pid):
    done = run(BUSCAPD, "--once", "--no-socket", "--source", "sim:count=10", "-o", out)
    equal(done.returncode, 1, done.stderr)
    assert b"in use by " in done.stderr, done.stderr
    if pid is not None:
        assert f"pid {pid};".encode() in done.stderr, done.stderr


def test_a_directory_remains_locked_when_its_files_are_deleted(tmp):
    out = tmp / "out"
    with Daemon("--source", "sim:rate=20k", "-o", out, socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        refused(out, daemon.process.pid)
        (out / ".buscapd.lock").unlink()
        refused(out, None)
        while out.exists():
            shutil.rmtree(out, ignore_errors=True)  # the daemon may create files meanwhile
        out.mkdir()
        harness.wait_until(lambda: list(out.glob("*.partial")), "the recording continues in the new directory")
        refused(out, daemon.process.pid)
        daemon.stop()


def test_a_segment_lasts_from_its_first_record(tmp):
    """At few records per second a chunk reaches the file late, here at its end; its segment's time starts earlier."""
    done = run(BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=1000", "-o", tmp / "out", "-b", "duration:1", "-a",
               "duration:6.5", "--set", "pipeline.flush=1m")
    equal(done.returncode, 0, done.stderr)
    begins = [segment["first_wall_ns"] for segment in info(harness.segments(tmp / "out"))]
    apart = [(after - before) / 1e9 for before, after in zip(begins, begins[1:])]
    # Six on an idle machine.
    assert apart and all(1 <= seconds for seconds in apart), apart


def test_standard_descriptors_may_be_closed(tmp):
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        command = f"{shlex.quote(str(BUSCAPD))} --once --no-socket --source sim:count=1000 -o {tmp}/out {closed}"
        done = run("sh", "-c", command)
        # Without a standard output, /dev/null replaces it.
        equal(done.returncode, 0, f"{closed}: {done.stderr}")
        equal(len(list((tmp / "out").glob("*.partial"))), 0, "left open")
