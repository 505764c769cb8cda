"""sealed_command in the daemon: it runs for every sealed file and never delays the recording."""

import json
import os
import pathlib
import subprocess
import time

import pytest

import harness
from api_harness import Api, Stream
from harness import BUSCAPD, Daemon, equal, run

pytestmark = pytest.mark.threads

SAMPLES = 340000
# No partial chunks, on a slow machine too.
SWEEP = ("--source", f"sim:rate=max,count={SAMPLES}", "-b", "filesize:600K", "--set", "pipeline.flush=1h")


def script(tmp, text, name="command"):
    path = tmp / name
    path.write_text(f"#!/bin/sh\nD={tmp}\n{text}\n")
    path.chmod(0o755)
    return "--set", f"output.sealed_command={path}"


def test_every_sealed_file_is_copied_before_the_daemon_exits(tmp):
    (tmp / "copy").mkdir()
    command = script(tmp, 'cp "$1" $D/copy/ && echo "$BUSCAP_HASH  ${1##*/}" >>$D/copy/$BUSCAP_RECORDING.list')
    done = run(BUSCAPD, "--once", *SWEEP, "-o", tmp / "out", *command)
    equal(done.returncode, 0, done.stderr.decode())
    files = sorted(path.name for path in (tmp / "out").glob("*.lz4"))
    equal(sorted(path.name for path in (tmp / "copy").glob("*.lz4")), files, "copied")
    assert len(files) >= 2, files
    for path in (tmp / "copy").glob("*.lz4"):
        equal(path.read_bytes(), (tmp / "out" / path.name).read_bytes(), path.name)
    (hashes,) = (tmp / "copy").glob("*.list")
    equal(run("xxhsum", "--strict", "-c", hashes.name, cwd=tmp / "copy").returncode, 0, "xxhsum")
    equal(json.loads(done.stdout)["sealed"]["commands_failed"], 0, "failed")


def test_after_its_recording_a_run_with_once_starts_no_other(tmp):
    command = script(tmp, "until [ -e $D/go ]; do sleep 0.05; done")
    with harness.Daemon("--once", "--source", "sim:rate=max,count=1000", "-o", tmp / "out", *command,
                        socket=tmp / "socket") as daemon:
        harness.wait_until(lambda: "records written" in daemon.log_so_far(), "the recording is sealed")
        done = run(harness.BUSCAP, "record", "start", "--socket", daemon.socket)
        (tmp / "go").touch()
        equal((done.returncode, daemon.wait()), (1, 0), done.stderr)
    assert b"buscapd is stopping" in done.stderr, done.stderr


def test_a_hanging_command_delays_nothing_and_is_killed_at_the_end(tmp):
    expected = harness.sim_records(SAMPLES)
    command = script(tmp, "trap '' TERM; echo $$ >>$D/pids; while :; do sleep 1; done")
    done = run(BUSCAPD, "--once", *SWEEP, "-o", tmp / "out", *command)
    equal(done.returncode, 0, done.stderr.decode())
    segments = harness.segments(tmp / "out")
    equal(harness.lz4_dc(segments), expected, "records")
    equal(json.loads(done.stdout)["sealed"]["commands_failed"], len(segments), "failed")
    assert ": the daemon is stopping" in done.stderr.decode(), done.stderr.decode()
    for pid in (tmp / "pids").read_text().split():
        assert not os.path.exists(f"/proc/{pid}/stat") or " Z " in open(f"/proc/{pid}/stat").read(), pid


def test_a_signal_while_waiting_for_a_command_does_not_blame_the_disk(tmp):
    command = script(tmp, "trap '' TERM; touch $D/runs; while :; do sleep 1; done")
    with Daemon("--once", "--source", "sim:rate=max,count=1000", "-o", tmp / "out", *command) as daemon:
        harness.wait_until((tmp / "runs").exists, "the command runs")
        time.sleep(0.1)
        equal(daemon.stop(), 0, daemon.err)
    err = daemon.err.decode().replace(str(tmp), "")
    assert "SIGTERM: stopping" in err and "timed out" in err, err
    assert "disk" not in err and "given up" not in err, err


def test_a_failure_is_an_event_and_counted_in_the_status(tmp):
    out, socket = tmp / "out", tmp / "socket"
    with Daemon("--source", "sim:rate=20k", "-o", out, *script(tmp, "exit 9"), socket=socket) as daemon:
        daemon.wait_ready()
        api = Api(socket)
        with Stream(socket, "/v1/events", "Event") as events:
            harness.wait_until(lambda: daemon.status()["counts"]["received"], "samples are received")
            api.good("POST", "/v1/rotate")
            sealed = events.until(lambda event: event["event"] == "segment-sealed")
            failed = events.until(lambda event: event["event"] == "command-failed")
        equal((failed["path"], failed["exit_code"], failed["error"]), (sealed["path"], 9, "exit code 9"), "the event")
        equal(daemon.status()["sealed"]["commands_failed"], 1, "failed")
        equal(daemon.stop(), 0, daemon.err)


def test_many_segments_at_full_speed_with_a_slow_command_lose_nothing(tmp):
    expected = harness.sim_records(SAMPLES)
    command = script(tmp, "echo $1 >>$D/lines; sleep 0.2; yes | head -n 100000")
    done = run(BUSCAPD, "--once", "--source", f"sim:rate=max,count={SAMPLES}", "-b", "filesize:20K", "-o", tmp / "out",
               "--set", "pipeline.flush=1ms", *command)
    equal(done.returncode, 0, done.stderr.decode())
    segments = harness.segments(tmp / "out")
    equal(harness.lz4_dc(segments), expected, "records")
    status = json.loads(done.stdout)
    lines = (tmp / "lines").read_text().split()
    assert len(segments) > 3, segments
    equal(lines, [str(path) for path in segments[: len(lines)]], "in the order of the sealing")
    equal(status["sealed"]["segments"], len(segments), "segments")
    # The command terminated last has already written its line.
    assert 0 <= len(lines) + status["sealed"]["commands_failed"] - len(segments) <= 1, (len(lines), status["sealed"])


# ---- as process 1 of a container: what others leave becomes its child


def children(pid):
    """Returns the states of the children of a process: {pid: letter}."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            child, state, parent = path.parent.name, *path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid:
            found[int(child)] = state
    return found


def no_zombie_stays(pid, names):
    """Waits until what has been left is gone. Processes that still run are not zombies."""
    left = {int(path.read_text()) for path in names if path.read_text().strip()}
    assert left
    harness.wait_until(lambda: not left & children(pid).keys(), "all are reaped")


def test_a_child_of_the_program_that_was_the_process_before_is_reaped(tmp):
    """A script of a container starts something in the background, then becomes the daemon."""
    script = 'sh -c "sleep 0.1; exit 3" & echo $! >"$0"; exec "$@"'
    argv = ["sh", "-c", script, tmp / "child", BUSCAPD, "--source", "sim:rate=20k", "-o", tmp / "out", "--no-socket"]
    with harness.popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        harness.wait_until(lambda: list((tmp / "out").glob("*.partial")), "it records")
        no_zombie_stays(process.pid, [tmp / "child"])
        process.terminate()
        _, err = process.communicate(timeout=harness.TIMEOUT_S)
        equal(process.returncode, 0, err)
