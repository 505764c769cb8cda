"""Boards in software for the real programs: see tests/board/umockdev_board.c.

    with Board("serial=A1,rate=2000000") as board, Daemon("--source", "usb", env=board.env) as daemon:
        board.unplug()
        board.plug()
        board.command("stall")
        ...
        code = daemon.stop()
        equal(received, board.sent()["samples"])

The programs that see the boards must end before the block of the Board does, as they do when theirs is inside it:
without its testbed such a program is aborted. One program at a time listens to udev: a second one would take its
place. And none may be the leader of a session without a terminal: the node of a board is one, and would be taken.
"""

import contextlib
import json
import os
import pathlib
import re
import select
import subprocess
import sys

import harness
from harness import BUILD, run

UMOCKDEV_BOARD = BUILD / "tests/umockdev_board"
BARE_READER = BUILD / "tests/bare_reader"
PRELOAD_FIX = BUILD / "tests/preload_fix.so"
PRELOAD = "libumockdev-preload.so.0"


def sanitizer_of(program):
    """The sanitizer's library of a program, which wants to be loaded before all others; or None."""
    libraries = run("ldd", program).stdout.decode()
    found = re.search(r"lib[at]san\.so\S* => (\S+)", libraries)
    return found and found.group(1)


class Board:
    """Boards behind the ports of one hub, numbered from 1, plugged in unless told otherwise. Each is given as
    umockdev_board takes it: "serial=A1,rate=2000000"."""

    def __init__(self, *boards, plugged=True):
        self.argv = [str(UMOCKDEV_BOARD), *(boards or ("serial=A1",))]
        self.plugged = plugged
        self.process = None
        self.root = None
        self._held = b""

    def __enter__(self):
        for path in (UMOCKDEV_BOARD, PRELOAD_FIX):
            harness.need(path)
        # GLib's threads are no business of a sanitizer that doesn't know its locks.
        options = os.environ.get("TSAN_OPTIONS", "") + ":ignore_noninstrumented_modules=1"
        self.process = subprocess.Popen(
            self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
            env={**os.environ, "TSAN_OPTIONS": options})
        try:
            self.root = self._line().removeprefix("ready ")
            if self.plugged:
                for number in range(1, len(self.argv)):
                    self.plug(number)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *exception):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            code = self.process.wait(harness.TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.process.stdout.close()
        assert code == 0 or exception[0] is not None, f"umockdev_board ended with exit code {code}"

    def below(self, program=harness.BUSCAPD, **env):
        """The environment in which a program sees the boards; what `env` preloads (Faults) is kept."""
        libraries = [sanitizer_of(program), *env.pop("LD_PRELOAD", "").split(), PRELOAD_FIX.resolve(), PRELOAD]
        return {**env, "UMOCKDEV_DIR": self.root, "LD_PRELOAD": " ".join(str(x) for x in libraries if x)}

    @property
    def env(self):
        return self.below()

    def _line(self):
        while b"\n" not in self._held:
            if not select.select([self.process.stdout], [], [], harness.TIMEOUT_S)[0]:
                raise AssertionError(f"umockdev_board is silent for {harness.TIMEOUT_S} s")
            piece = self.process.stdout.read(65536)
            if not piece:
                raise AssertionError("umockdev_board has ended")
            self._held += piece
        line, _, self._held = self._held.partition(b"\n")
        return line.decode()

    def ask(self, line):
        """Gives a line to umockdev_board. Returns its answer, which is no error."""
        self.process.stdin.write(line.encode() + b"\n")
        answer = self._line()
        assert not answer.startswith("error"), f"{line}: {answer}"
        return answer

    def plug(self, number=1):
        self.ask(f"plug {number}")

    def unplug(self, number=1, event_first=False):
        """The open files fail before udev's event comes, as with a kernel, unless told otherwise."""
        self.ask(f"unplug {number}{' event-first' if event_first else ''}")

    def sysfs(self, number=1):
        """Where sysfs has it; what the programs see as /sys/bus/usb/devices/1-NUMBER."""
        return pathlib.Path(self.root, f"sys/bus/usb/devices/1-{number}")

    def deny(self, number=1):
        """Its node can't be opened (EACCES), not even by root. Skips the test where that can't be done."""
        try:
            self.ask(f"deny {number}")
        except AssertionError as why:
            harness.skip(str(why))

    def allow(self, number=1):
        self.ask(f"allow {number}")

    def driver(self, name, number=1):
        """A kernel driver is bound to it when it is plugged in next; None: none."""
        self.ask(f"driver {number} {name or 'none'}")

    def discard_data(self, size):
        """So many bytes of each transfer come 2 ms before the rest: there are data in it when it is cancelled
        meanwhile. None: as usual, all at once."""
        self.ask(f"discard-data {size or 'off'}")

    def host(self, kind):
        """"split": a host without scatter-gather, where libusb splits transfers into 16 KiB; "xhci": one with it."""
        self.ask(f"host {kind}")

    def memory(self, size):
        """The bytes that the kernel has for all transfers (16 MiB from the start); None: any."""
        self.ask(f"memory {size or 'off'}")

    def command(self, line, number=1):
        """A command to the board itself: tests/board/board.h lists them."""
        return self.ask(f"board {number} {line}")

    def sent(self, number=1):
        """What left the board: struct board_sent. `plugs` counts its making, too."""
        return json.loads(self.command("sent", number))

    def state(self, number=1):
        """The kernel's side of it: files open, interfaces claimed, transfers pending and completed."""
        return json.loads(self.ask(f"state {number}"))

    def read_bare(self, *argv, **env):
        """Runs tests/board/bare_reader.c to its end. Returns its figures."""
        done = run(BARE_READER, *argv, env={**os.environ, **self.below(BARE_READER, **env)})
        harness.equal(done.returncode, 0, f"bare_reader: {done.stderr.decode()}")
        return json.loads(done.stdout)
