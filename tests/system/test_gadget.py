"""tests/board/gadget_board.c without a kernel's USB: a terminal stands for ep0, where the test plays the host, and a pipe
for ep1. `make test-machine` runs it behind a real controller."""

import contextlib
import json
import os
import pty
import signal
import struct
import subprocess
import tty

import pytest
import reference

import harness
from harness import BUILD, TIMEOUT_S, Faults, equal, need, run, wait_until

PROGRAM = BUILD / "tests/gadget_board"
# FunctionFS: linux/usb/functionfs.h.
ENABLE, DISABLE, SETUP = 2, 3, 4
INTERFACE = struct.pack("<9B", 9, 4, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0)  # one endpoint, vendor-specific
DESCRIPTORS = struct.pack("<5I", 3, 20 + 2 * (9 + 7), 1 + 2 + 64, 2, 2) + b"".join(
    INTERFACE + struct.pack("<4BHB", 7, 5, 0x81, 2, packet, 0) for packet in (64, 512))
STRINGS = struct.pack("<4I", 2, 16, 0, 0)


class Gadget:
    def __init__(self, tmp, *argv):
        self.host, device = pty.openpty()
        tty.setraw(device)
        (tmp / "ep0").symlink_to(os.ttyname(device))
        os.mkfifo(tmp / "ep1")
        self.stream = os.open(tmp / "ep1", os.O_RDWR | os.O_NONBLOCK)
        (tmp / "aside").mkdir()
        self.faults = Faults(tmp / "aside", tmp)  # of ep1: a terminal is elsewhere
        self.errors = tmp / "aside/errors"
        with open(self.errors, "wb") as errors:
            self.process = harness.popen([need(PROGRAM), *argv, tmp], os.environ | self.faults.env,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                                         bufsize=1)
        self.device = device
        self.data = b""

    def close(self):
        self.process.kill()
        self.process.wait()
        for fd in (self.host, self.device, self.stream):
            os.close(fd)
        self.process.stdout.close()

    def event(self, kind, setup=b""):
        os.write(self.host, struct.pack("<8sB3x", setup, kind))

    def request(self, kind, number, length=0):
        self.event(SETUP, struct.pack("<BBHHH", kind, number, 0, 0, length))

    def answer(self, size):
        got = b""
        while len(got) < size:
            got += os.read(self.host, size - len(got))
        return got

    def command(self, line):
        self.process.stdin.write(line + "\n")
        return self.process.stdout.readline().rstrip("\n")

    def sent(self):
        return json.loads(self.command("sent"))

    def frames(self):
        """Returns (samples, flags) of each whole frame so far."""
        with contextlib.suppress(BlockingIOError):
            self.data += os.read(self.stream, 1 << 20)
        frames, at = [], 0
        while header := reference.decode_header(self.data, at):
            at += 32 + (8 * header[3] + 4 if header[3] else 0)
            if at > len(self.data):
                break
            frames.append((header[3], header[0]))
        return frames

    def end(self):
        return self.process.wait(TIMEOUT_S)


@pytest.fixture
def start(tmp):
    gadgets = []

    def start_one(*argv):
        gadgets.append(Gadget(tmp, *argv))
        equal(gadgets[0].answer(len(DESCRIPTORS + STRINGS)), DESCRIPTORS + STRINGS, "what the kernel is told")
        return gadgets[0]

    yield start_one
    for gadget in gadgets:
        gadget.close()


def test_it_answers_requests_and_streams_while_a_host_has_configured_it(start):
    gadget = start("serial=G1,rate=1000000,send=5000")
    gadget.request(0xC1, 1, 64)  # a stall, which a terminal does not show: no host has configured it
    gadget.event(ENABLE)
    gadget.request(0xC1, 1, 64)
    info = gadget.answer(64)
    equal((info[0], info[16:24], info[32:36]), (1, b"sim-1.0\0", b"G1\0\0"))
    gadget.request(0x41, 2)
    wait_until(lambda: sum(n for n, _ in gadget.frames()) == 5000, "all samples")
    equal((gadget.sent()["samples"], gadget.sent()["starts"]), (5000, 1))
    gadget.event(DISABLE)
    wait_until(lambda: gadget.command("rate 1000") == "ok" and gadget.sent()["captured"] == 0, "no power")
    gadget.event(ENABLE)
    gadget.request(0x41, 2)
    equal(gadget.command("send 7"), "ok")
    wait_until(lambda: sum(n for n, _ in gadget.frames()) == 5007, "it starts again")
    equal(gadget.command("overflow 5"), "error: unknown command", "a fault that only a bus can have")
    gadget.process.stdin.close()
    equal(gadget.end(), 0)
    equal(gadget.frames()[-1], (0, 8), "the last frame, since its standard input has ended")


def _streaming(start, *argv):
    gadget = start(*argv)
    equal(gadget.command("heartbeat off"), "ok")
    gadget.event(ENABLE)
    gadget.request(0x41, 2)
    return gadget


def test_what_the_kernel_has_no_memory_for_is_sent_later_and_after_other_errors_there_is_a_gap(start):
    gadget = _streaming(start, "rate=1000000,send=0")
    gadget.faults.set("write:ENOMEM")
    equal(gadget.command("send 5000"), "ok")
    error = "gadget_board: ep1: Cannot allocate memory; trying again\n"
    wait_until(lambda: gadget.errors.read_text() == error, "it says so, once")
    wait_until(lambda: len(gadget.faults.calls()) > 2, "it tries again")
    gadget.faults.set("")
    wait_until(lambda: sum(n for n, _ in gadget.frames()) == 5000, "nothing is lost")
    gadget.faults.set("write:EIO")
    equal(gadget.command("send 2048"), "ok")
    error += "gadget_board: ep1: Input/output error; data lost\n"
    wait_until(lambda: gadget.errors.read_text() == error, "it says so")
    gadget.faults.set("")
    equal(gadget.command("send 7"), "ok")
    wait_until(lambda: gadget.frames()[-1][0] == 7, "it continues")
    equal((sum(n for n, _ in gadget.frames()), gadget.sent()["samples"]), (5007, 7055))


def test_it_stalls_when_the_last_packet_has_left_and_says_so_if_it_cannot(start):
    gadget = _streaming(start, "rate=1000000,send=0")
    equal((gadget.command("stall"), gadget.command("send 7")), ("ok", "ok"))
    # An empty pipe has no byte to read, which is what a controller answers that has not sent its last packet.
    wait_until(lambda: gadget.sent()["captured"] == 7 and len(gadget.faults.calls()) > 200, "it tries again and again")
    equal(gadget.frames(), [])
    gadget.event(DISABLE)
    gadget.event(ENABLE)
    gadget.request(0x41, 2)
    wait_until(lambda: gadget.sent()["starts"] == 2, "it has started again")
    equal(gadget.command("send 8"), "ok")
    wait_until(lambda: gadget.frames() == [(8, 0)], "an unplug ends it")
    gadget.faults.set("read:EINVAL")
    equal((gadget.command("stall"), gadget.command("send 9")), ("ok", "ok"))
    wait_until(lambda: sum(n for n, _ in gadget.frames()) == 17, "it continues")
    equal(gadget.errors.read_text(), "gadget_board: ep1: Invalid argument; no stall\n")


def test_as_a_daemon_it_goes_on_when_its_input_ends(start):
    gadget = start("--daemon", "rate=1000000,send=100")
    gadget.process.stdin.close()
    gadget.event(ENABLE)
    gadget.request(0x41, 2)
    wait_until(gadget.frames, "a frame")
    gadget.process.send_signal(signal.SIGTERM)
    equal(gadget.end(), 0)
    equal(gadget.frames()[-1][1], 8, "the last frame")


def test_what_it_cannot_be_is_refused_in_one_line(tmp):
    for board, error in (("serial=A,rat=5", "serial=A,rat=5: no such board; see --help"),
                         ("agents=9", "agents=9: no such board; see --help"),
                         ("serial=A", f"{tmp}/ep0: No such file or directory; mount functionfs there, or use gadget.sh start")):
        done = run(need(PROGRAM), board, tmp)
        equal((done.returncode, done.stdout, done.stderr.decode()), (2, b"", f"gadget_board: {error}\n"))
    done = run(PROGRAM, "--help")
    equal((done.returncode, done.stderr.startswith(b"usage: gadget_board ")), (2, True))
