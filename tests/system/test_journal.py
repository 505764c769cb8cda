"""The journal: messages have their recording and kind in fields, and none is lost without it."""

import contextlib
import json
import os
import re
import socket as sockets

import pytest

import harness
from harness import BUSCAP, BUSCAPD, ROOT, Daemon, Faults, equal, need, run, wait_until
from usb_harness import Board

pytestmark = pytest.mark.threads

# In a mount namespace with the test's own journal. Standard error is as systemd passes it.
PROGRAM = """#!/bin/sh
export JOURNAL_STREAM="$(stat -Lc %d:%i /proc/self/fd/2)"
exec unshare -rm sh -c '
    mount -t tmpfs none /run && mkdir -p /run/systemd/journal && mount --bind {tmp}/journal /run/systemd/journal &&
    exec {program} "$@"' sh "$@"
"""

# In docs/messages.md: words of a message of each kind.
KINDS = {
    "a recording has started": ": recording started: ",
    "a recording has ended": " records written in ",
    "samples were lost": "samples lost: 5 (board overflow)",
    "the disk failed": "No space left on device; retrying",
    "the disk works again": ": writing again after ",
    "the disk is nearly full": ": full ",
    "the board was unplugged": ": unplugged; ",
    "a board sends samples: at first, and again": ": back after ",
    "data is damaged": "left open by an earlier run; recovered ",
}

GONE = "254e27a29ff64cdaadbc9764bea1d7fa"


class Journal:
    def __init__(self, tmp):
        self.entries = []
        (tmp / "journal").mkdir()
        self._socket = sockets.socket(sockets.AF_UNIX, sockets.SOCK_DGRAM)
        self._socket.bind(str(tmp / "journal/socket"))
        self._socket.setblocking(False)

    def read(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                entry = self._socket.recv(4096).decode()
                assert entry.endswith("\n"), entry
                self.entries.append(dict(field.split("=", 1) for field in entry.splitlines()))
        return self.entries

    def fill(self):
        """It accepts nothing until it is read."""
        with contextlib.suppress(BlockingIOError):
            while True:
                with sockets.socket(sockets.AF_UNIX, sockets.SOCK_DGRAM | sockets.SOCK_NONBLOCK) as sender:
                    sender.sendto(b"x", self._socket.getsockname())

    def wait(self, words):
        wait_until(lambda: any(words in entry["MESSAGE"] for entry in self.read()), f"the journal has {words}")


def program_in(tmp, program):
    if run(need("unshare"), "-rm", "mount", "-t", "tmpfs", "none", "/run").returncode != 0:
        pytest.skip("needs a mount namespace")
    path = tmp / "program"
    path.write_text(PROGRAM.format(tmp=tmp, program=program))
    path.chmod(0o755)
    return path


def make_torn(out):
    equal(run(BUSCAPD, "--once", "--source", "sim:rate=max,count=200000", "-o", out).returncode, 0)
    (path,) = harness.segments(out)
    path.write_bytes(path.read_bytes()[:-5000])
    path.rename(f"{path}.partial")


def test_each_kind_of_message_has_its_id_and_each_message_its_recording(tmp):
    make_torn(tmp / "out")
    journal = Journal(tmp)
    faults = Faults(tmp, tmp / "out")
    with Board("serial=A1,rate=20000") as board:
        with Daemon("--source", "usb:back_off=1ms,back_off_max=20ms", "-o", tmp / "out", "--set", "space.disk_low=100000d",
                    program=program_in(tmp, board.PROGRAM), socket=tmp / "socket", env={**board.env, **faults.env}) as daemon:
            daemon.wait_ready()
            journal.wait(KINDS["a recording has started"])
            recording = daemon.status()["recording"]["id"]
            board.command("lose 5")
            journal.wait(KINDS["samples were lost"])
            journal.wait(KINDS["the disk is nearly full"])
            faults.set("pwrite:ENOSPC")
            journal.wait(KINDS["the disk failed"])
            faults.set("")
            journal.wait(KINDS["the disk works again"])
            board.unplug()
            journal.wait(KINDS["the board was unplugged"])
            board.plug()
            journal.wait(KINDS["a board sends samples: at first, and again"])
            equal(run(BUSCAP, "record", "stop", "--socket", tmp / "socket").returncode, 0)
            journal.wait(KINDS["a recording has ended"])
            board.unplug()
            wait_until(lambda: journal.read()[-1].get("MESSAGE_ID") == GONE, "the board is unplugged again")
            equal(daemon.stop(), 4)
    table = re.findall(r"^\| (.*) \| `([0-9a-f]{32})` \|$", (ROOT / "docs/messages.md").read_text(), re.M)
    equal([kind for kind, _ in table], list(KINDS))
    for kind, number in table:
        assert any(KINDS[kind] in entry["MESSAGE"] for entry in journal.read() if entry.get("MESSAGE_ID") == number), kind
    for entry in journal.entries:
        fields = {"PRIORITY", "SYSLOG_IDENTIFIER", "MESSAGE"} | ({"MESSAGE_ID"} & set(entry))
        assert set(entry) in (fields, fields | {"RECORDING"}) and entry["PRIORITY"] in "34567", entry
    at = [KINDS["a recording has started"] in entry["MESSAGE"] for entry in journal.entries].index(True)
    equal({entry.get("RECORDING") for entry in journal.entries[at:-1]}, {recording})
    equal([entry.get("RECORDING") for entry in (journal.entries[0], journal.entries[-1])], [None, None], "before and after")
    # Messages without fields.
    assert re.search(rf"^<6>version \S+: source usb.*, recordings in {tmp}/out", daemon.err.decode()), daemon.err
    catalog = re.findall(r"^-- (\w+)$", (ROOT / "systemd/buscapd.catalog").read_text(), re.M)
    equal(catalog, [number for _, number in table])


@pytest.mark.parametrize("is_there", (False, True))
def test_without_a_journal_messages_are_on_standard_error(tmp, is_there):
    Journal(tmp)._socket.close()
    if not is_there:
        (tmp / "journal/socket").unlink()
    with Daemon("--once", "--source", "sim:rate=max,count=100000", "-o", tmp / "out", program=program_in(tmp, BUSCAPD)) as daemon:
        equal(daemon.wait(), 0)
    (path,) = harness.segments(tmp / "out")
    first, *_, last = daemon.err.decode().splitlines()
    assert re.fullmatch(rf"<6>\S+: recording started: {path}", first), first
    assert re.fullmatch(r"<5>\S+: [\d,]+ records written in 1 segment, .*", last), last


def test_a_journal_that_hangs_does_no_harm(tmp):
    journal = Journal(tmp)
    journal.fill()
    with Daemon("--once", "--source", "sim:rate=max,count=100000", "-o", tmp / "out", program=program_in(tmp, BUSCAPD)) as daemon:
        equal(daemon.wait(), 0)
    equal(len(harness.segments(tmp / "out")), 1)


def test_elsewhere_messages_are_not_sent_to_the_journal(tmp):
    journal = Journal(tmp)
    program = program_in(tmp, BUSCAPD)
    program.write_text(program.read_text().replace("export JOURNAL_STREAM=", "unset JOURNAL_STREAM; own="))
    with Daemon("--once", "--source", "sim:rate=max,count=100000", "-o", tmp / "out", program=program) as daemon:
        equal(daemon.wait(), 0)
    equal(journal.read(), [])
    assert re.search(r"^\S+Z buscapd: \S+: recording started: ", daemon.err.decode()), daemon.err


def test_a_recording_that_ends_after_the_next_has_started_keeps_its_id(tmp):
    journal = Journal(tmp)
    faults = Faults(tmp, tmp / "out")
    ids = []

    def descriptors(daemon):
        return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))

    def start(daemon):
        _, text = harness.http(daemon.socket, "/v1/recordings", "POST", "{}")
        ids.append(json.loads(text)["recording"]["id"])

    with Daemon("--source", "sim:rate=1k", "--set", "recording.record=on-demand", "-o", tmp / "out",
                program=program_in(tmp, BUSCAPD), socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        before = descriptors(daemon)
        start(daemon)
        for _ in range(3):
            journal.wait(f"{ids[-1]}: recording started")
            faults.set("pwrite:hold")
            with sockets.socket(sockets.AF_UNIX) as client:
                client.connect(str(tmp / "socket"))
                client.sendall(b"DELETE /v1/recordings/current HTTP/1.0\r\n\r\n")
                wait_until(lambda: daemon.status()["state"] != "recording", "the stop")
                start(daemon)
                faults.set("")
                wait_until(lambda: sum(" records written in " in entry["MESSAGE"] for entry in journal.read()) == len(ids) - 1, "the end")
        # An entry leaves no socket open: there were three for each recording.
        assert descriptors(daemon) < before + 5, descriptors(daemon)
        equal(daemon.stop(), 0, daemon.err.decode())
    equal([entry["RECORDING"] for entry in journal.read() if " records written in " in entry["MESSAGE"]], ids)
