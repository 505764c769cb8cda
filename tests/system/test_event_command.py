"""[events] command in the daemon: it runs for losses, a full disk, a stuck disk, an unplugged board and triggers."""

import json

import pytest

import harness
from harness import BUSCAPD, Daemon, Faults, equal, run
from usb_harness import Board, Recorder

pytestmark = pytest.mark.threads

# Each run writes the object to a file of its own.
SCRIPT = """#!/bin/sh
n=$(ls {tmp}/runs | wc -l)
cat >{tmp}/new
mv {tmp}/new {tmp}/runs/$n-$1
"""


def command(tmp, *more):
    path = tmp / "command"
    path.write_text(SCRIPT.format(tmp=tmp))
    path.chmod(0o755)
    (tmp / "runs").mkdir()
    return [word for setting in (f"command={path}", *more) for word in ("--set", f"events.{setting}")]


def runs(tmp):
    """What the runs so far have read, in order: [(event, object)]."""
    paths = sorted((tmp / "runs").iterdir(), key=lambda path: int(path.name.partition("-")[0]))
    return [(path.name.partition("-")[2], json.loads(path.read_text())) for path in paths]


def wait_run(tmp, event):
    """Waits for the first run for an event. Returns its object."""
    harness.wait_until(lambda: event in dict(runs(tmp)), f"the command runs for {event}")
    return next(found for name, found in runs(tmp) if name == event)


def test_losses_triggers_and_the_disk_run_the_command(tmp):
    (tmp / "out").mkdir()
    faults = Faults(tmp, tmp / "out")
    settings = command(tmp, "disk_low=100000d", "interval=1h")
    trigger = ("--set", "trigger io.when=type=IOWRITE", "--set", "trigger io.action=mark")
    with Daemon("--source", "sim:rate=20k,loss=0.3", "-o", tmp / "out", *settings, *trigger, socket=tmp / "socket",
                env=faults.env) as daemon:
        daemon.wait_ready()
        loss = wait_run(tmp, "loss")
        assert loss["lost"]["board"] > 0 and loss["count"] >= 1, loss
        equal((loss["event"], loss["exact"], loss["status"]["state"]), ("loss", True, "recording"), "loss")
        fired = wait_run(tmp, "trigger")
        equal((fired["name"], fired["action"]), ("io", "mark"), "trigger")
        low = wait_run(tmp, "disk-low")
        assert low["free_bytes"] > 0 and low["time_left_seconds"] < 100000 * 86400, low
        faults.set("pwrite:ENOSPC")
        stuck = wait_run(tmp, "stuck")
        assert "No space left on device" in stuck["error"] and stuck["status"]["disk"]["stuck"], stuck
        # Losses continue ten times per second, but the interval has not passed.
        equal([name for name, _ in runs(tmp)].count("loss"), 1, "runs")
        harness.wait_until(lambda: daemon.status()["counts"]["lost"]["board"] > loss["lost"]["board"], "more is lost")
        faults.set("")
        daemon.stop()
    equal({name for name, _ in runs(tmp)}, {"loss", "trigger", "disk-low", "stuck"}, "events")
    # At the end it runs for what has not been reported.
    losses = [found for name, found in runs(tmp) if name == "loss"]
    equal(len(losses), 2, "runs")
    reported = sum(found["lost"]["board"] for found in losses)
    assert str(reported) in daemon.err.decode(), (reported, daemon.err.decode())
    assert " min at the current rate" in daemon.err.decode(), daemon.err.decode()


@pytest.mark.tsan
def test_an_unplugged_board_runs_the_command(tmp):
    with Board("serial=A1,rate=20000,send=0") as board:
        with Recorder(tmp, board, *command(tmp)) as daemon:
            daemon.take(1000)
            equal(runs(tmp), [], "nothing has happened")
            board.unplug()
            unplug = wait_run(tmp, "unplug")
            equal(unplug["status"]["source"]["board"]["unplugs"], 1, "board")
            daemon.end(wanted=4)


def test_each_unplug_is_reported_however_soon_the_board_is_back(tmp):
    with Board("serial=A1,rate=20000,send=0") as board:
        with Recorder(tmp, board, *command(tmp)) as daemon:
            for number in range(3):
                daemon.take(1000)
                board.unplug()
                daemon.wait_for(lambda status: status["source"]["board"]["unplugs"] > number, "it is unplugged")
                board.plug()
            daemon.take_all(1000)
            daemon.end(wanted=4)
    equal(sum(found["count"] for name, found in runs(tmp) if name == "unplug"), 3, "unplugs")


def test_a_reset_is_not_an_unplug(tmp):
    with Board("serial=A1,rate=20000,send=0") as board:
        with Recorder(tmp, board, *command(tmp), settings="silence=1s,silence_action=restart") as daemon:
            daemon.take(1000)
            board.command("freeze")
            daemon.wait_for(lambda status: status["source"]["board"]["restarts"], "the board is reset")
            board.command("thaw")
            daemon.take_all(1000)
            daemon.end(wanted=4)
    assert "unplug" not in dict(runs(tmp)), runs(tmp)


def test_a_failing_command_is_logged_and_does_no_harm(tmp):
    expected = run(harness.BUSCAP, "sim", "-n", 1000, "-O", "byu").stdout
    done = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=1000", "-o", tmp / "out", "--set",
               "events.command=/bin/false", "--set", "trigger x.when=type=write", "--set", "trigger x.action=mark")
    equal((done.returncode, harness.lz4_dc(harness.segments(tmp / "out"))), (0, expected), "records")
    assert "trigger: /bin/false: exit code 1; not tried again" in done.stderr.decode(), done.stderr.decode()


def test_sighup_changes_the_command(tmp):
    conf = tmp / "conf"
    conf.write_text("")
    settings = command(tmp)
    with Daemon("-c", conf, "--source", "sim:rate=20k,loss=0.3", "-o", tmp / "out", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        conf.write_text(f"[events]\n{settings[1].removeprefix('events.')}\ninterval = 1s\n")
        daemon.process.send_signal(harness.signal.SIGHUP)
        # The second run is not the first of its interval.
        harness.wait_until(lambda: len(runs(tmp)) >= 2, "the command runs for losses")
        daemon.stop()
    equal({name for name, _ in runs(tmp)}, {"loss"}, "events")
