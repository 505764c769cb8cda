"""The unit of docs/install.md that passes events to a program: it gets each kind of alert, until the daemon ends."""

import contextlib
import json
import os
import re
import shlex
import subprocess

import pytest

import harness
from harness import BUSCAP, ROOT, Daemon, Faults, equal, need, run
from usb_harness import Board, Recorder

pytestmark = pytest.mark.threads

CURL = """#!/bin/sh
n=$(ls {tmp}/posted | wc -l)
cat >{tmp}/new
mv {tmp}/new {tmp}/posted/$n
"""


def write(path, text):
    path.write_text(text)
    path.chmod(0o755)


@contextlib.contextmanager
def unit(tmp):
    """Runs ExecStart= of the document, with the document's program. Both must end with the daemon."""
    section = re.search(r"^## Alerts\n(.*?)^## ", (ROOT / "docs/install.md").read_text(), re.M | re.S)[1]
    (command,) = re.findall(r"^    ExecStart=sh -c '(.*)'$", section, re.M)
    (tmp / "posted").mkdir()
    (tmp / "bin").mkdir()
    write(tmp / "alert", re.sub("^    ", "", section[section.index("    #!/bin/sh"):].partition("\n\n")[0], flags=re.M))
    write(tmp / "bin/curl", CURL.format(tmp=tmp))
    write(tmp / "bin/systemctl", "#!/bin/sh\n")  # the service is active
    command = command.replace("buscap events", f"{shlex.quote(str(BUSCAP))} events --socket {tmp}/socket")
    command = command.replace("/usr/local/bin/alert", str(tmp / "alert"))
    with harness.popen(["sh", "-c", command], stdin=subprocess.DEVNULL, env={**os.environ, "PATH": f"{tmp}/bin:{os.environ['PATH']}"}) as process:
        try:
            harness.wait_until(lambda: harness.status(tmp / "socket")["streams"]["events"] == 1, "the unit is connected")
            yield
            process.wait(harness.TIMEOUT_S)
        finally:
            process.terminate()


def test_systemd_accepts_the_unit(tmp):
    need("systemd-analyze")
    text = (ROOT / "docs/install.md").read_text()
    unit = re.search(r"^    \[Unit\]\n(    .*\n)+", text[text.index("## Alerts"):], re.M)[0]
    write(tmp / "x.service", re.sub("^    ", "", unit, flags=re.M))
    done = run("systemd-analyze", "--man=no", "verify", tmp / "x.service")
    equal((done.returncode, [line for line in done.stderr.decode().splitlines() if "x.service" in line and "executable" not in line]),
          (0, []))


def alerts(tmp, name):
    """What has been posted, of one event."""
    paths = sorted((tmp / "posted").iterdir(), key=lambda path: int(path.name))
    return [event for event in (json.loads(path.read_text()) for path in paths) if event["event"] == name]


def wait_alert(tmp, name, condition=lambda event: True):
    harness.wait_until(lambda: any(map(condition, alerts(tmp, name))), f"the program gets {name}")
    return next(filter(condition, alerts(tmp, name)))


def test_losses_triggers_and_the_disk_reach_the_program(tmp):
    (tmp / "out").mkdir()
    faults = Faults(tmp, tmp / "out")
    trigger = ("--set", "trigger io.when=type=IOWRITE", "--set", "trigger io.action=mark", "--set", "trigger io.holdoff=1s")
    with Daemon("--source", "sim:rate=20k,loss=0.3", "-o", tmp / "out", "--set", "space.disk_low=100000d", *trigger,
                "--set", "recording.record=on-demand", socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        with unit(tmp):
            equal(run(BUSCAP, "record", "start", "--socket", tmp / "socket").returncode, 0)
            equal(wait_alert(tmp, "disk-low")["low"], True)
            assert 0 < alerts(tmp, "disk-low")[0]["time_left_seconds"] < 100000 * 86400, alerts(tmp, "disk-low")
            equal(wait_alert(tmp, "gap")["cause"], "board")
            equal(wait_alert(tmp, "trigger")["action"], "mark")
            faults.set("pwrite:ENOSPC")
            assert "No space left on device" in wait_alert(tmp, "disk", lambda event: event["stuck"])["error"]
            faults.set("")
            wait_alert(tmp, "disk", lambda event: not event["stuck"])
            faults.set("fdatasync:EIO")
            assert wait_alert(tmp, "disk", lambda event: event["error"] and not event["stuck"])
            faults.set("")
            daemon.stop()
    assert " min at the current rate" in daemon.err.decode(), daemon.err.decode()


def test_each_unplug_reaches_the_program(tmp):
    with Board("serial=A1,rate=20000,send=0") as board, Recorder(tmp, board) as daemon:
        with unit(tmp):
            for number in range(1, 4):
                daemon.take(1000)
                board.unplug()
                wait_alert(tmp, "board", lambda event, number=number: event["unplugs"] == number)
                board.plug()
            daemon.take_all(1000)
            daemon.end(wanted=4)
