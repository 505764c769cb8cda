"""Software boards for the real programs, provided by tests/board/umockdev_board.c.

    with Board("serial=A1,rate=2000000,send=0") as board, Recorder(tmp, board) as daemon:
        daemon.take(1000)
        board.unplug()
        board.plug()
        board.command("stall")
        ...
        daemon.take_all(20_000)
        daemon.end()
        daemon.check(board)

A board with "send=0" makes only the samples that a test asks for, so that a slow machine does not have more to check.
Others send without end.

Programs that see the boards must end before the Board does, so their block must be inside its block: umockdev aborts a
program whose testbed is gone. Only one program at a time can listen to udev; a second one would replace it. No such
program may be a session leader without a terminal: a board's node is a pty, which would become its controlling
terminal.

A Recorder is a buscapd that records from the boards. Its status is polled continuously.
"""

import contextlib
import json
import os
import pathlib
import select
import subprocess
import signal
import sys

import pytest

import harness
import reference
from harness import BUILD, Daemon, Watch, equal, info, run, segments, wait_until

UMOCKDEV_BOARD = BUILD / "tests/umockdev_board"
BARE_READER = BUILD / "tests/bare_reader"
PRELOAD_FIX = BUILD / "tests/preload_fix.so"
PRELOAD = "libumockdev-preload.so.0"
# Samples that a board makes beyond those a test waits for, so that what happens next usually happens in mid-stream.
SPARE = 20_000


class Board:
    """Boards on the ports of one hub, numbered from 1 and plugged in by default. Each argument describes one board in
    umockdev_board's syntax: "serial=A1,rate=2000000"."""

    def __init__(self, *boards, plugged=True):
        self.argv = [str(UMOCKDEV_BOARD), *(boards or ("serial=A1",))]
        self.plugged = plugged
        self.process = None
        self.root = None
        self._held = b""

    def __enter__(self):
        for path in (UMOCKDEV_BOARD, PRELOAD_FIX):
            harness.need(path)
        # A sanitizer does not understand GLib's locks.
        options = os.environ.get("TSAN_OPTIONS", "") + ":ignore_noninstrumented_modules=1"
        self.process = harness.popen(
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

    def environment(self, **env):
        """Returns the environment in which a program sees the boards; keeps what `env` preloads (Faults)."""
        libraries = [*env.pop("LD_PRELOAD", "").split(), PRELOAD_FIX.resolve(), PRELOAD]
        return {**env, "UMOCKDEV_DIR": self.root, "LD_PRELOAD": " ".join(str(x) for x in libraries)}

    @property
    def env(self):
        return self.environment()

    def _line(self):
        while b"\n" not in self._held:
            if not select.select([self.process.stdout], [], [], harness.TIMEOUT_S)[0]:
                raise AssertionError(f"no answer from umockdev_board within {harness.TIMEOUT_S} s")
            piece = self.process.stdout.read(65536)
            if not piece:
                raise AssertionError("umockdev_board ended")
            self._held += piece
        line, _, self._held = self._held.partition(b"\n")
        return line.decode()

    def _query(self, line):
        """Sends a line to umockdev_board. Returns its answer, which must not be an error."""
        self.process.stdin.write(line.encode() + b"\n")
        answer = self._line()
        if answer == "error: no pty":
            pytest.skip("no pseudo-terminals (/dev/pts) for the boards' nodes")
        assert not answer.startswith("error"), f"{line}: {answer}"
        return answer

    def plug(self, number=1):
        self._query(f"plug {number}")

    def unplug(self, number=1, event_first=False):
        """By default open files fail before udev's event arrives, as in the kernel."""
        self._query(f"unplug {number}{' event-first' if event_first else ''}")

    def sysfs(self, number=1):
        """Returns its sysfs directory, which programs see as /sys/bus/usb/devices/1-NUMBER."""
        return pathlib.Path(self.root, f"sys/bus/usb/devices/1-{number}")

    def deny(self, number=1):
        """Makes its node fail to open (EACCES), even for root. Skips the test where that is impossible."""
        try:
            self._query(f"deny {number}")
        except AssertionError:
            pytest.skip("root can open everything here")

    def allow(self, number=1):
        self._query(f"allow {number}")

    def mute(self):
        """From now on udev's events reach no program, as in a container: removes the sockets that deliver them."""
        for path in pathlib.Path(self.root).glob("event*"):
            path.unlink()

    def driver(self, name, number=1):
        """Binds a kernel driver at the next plug; None: no driver."""
        self._query(f"driver {number} {name or 'none'}")

    def discard_data(self, size):
        """Makes this many bytes of each transfer arrive 2 ms before the rest, so that it can be cancelled with data in
        it. None: no pause."""
        self._query(f"discard-data {size or 'off'}")

    def host(self, kind):
        """"split": a host without scatter-gather, where libusb splits transfers into 16 KiB; "xhci": one with it."""
        self._query(f"host {kind}")

    def memory(self, size):
        """Limits the memory for all transfers (default 16 MiB); None: no limit."""
        self._query(f"memory {size or 'off'}")

    def command(self, line, number=1):
        """Sends a command to the board itself; tests/board/board.h lists them."""
        return self._query(f"board {number} {line}")

    def sent(self, number=1):
        """Returns struct board_sent: what left the board. `plugs` includes its creation."""
        return json.loads(self.command("sent", number))

    def sent_bytes(self):
        """Returns the bytes that left all boards."""
        return sum(self.sent(number)["bytes"] for number in range(1, len(self.argv)))

    def state(self, number=1):
        """Returns the kernel's state of the board: open files, claimed interfaces, pending and completed transfers."""
        return json.loads(self._query(f"state {number}"))

    def read_bare(self, *argv, **env):
        """Runs tests/board/bare_reader.c to its end. Returns its figures."""
        done = run(BARE_READER, *argv, env={**os.environ, **self.environment(**env)})
        harness.equal(done.returncode, 0, f"bare_reader: {done.stderr.decode()}")
        return json.loads(done.stdout)


class Recorder(Daemon):
    """buscapd --once that records from the boards into `directory` and waits for them without limit. Its counts must
    add up in every status. `settings` are settings of usb:; by default it retries immediately.

        with Board("rate=200000,send=0") as board, Recorder(tmp, board, settings="transfers=4") as daemon:
            daemon.take()
            ...
            daemon.take_all()
            daemon.end()
            daemon.check(board, gaps={"transfer": 1})

    end() stores the printed status in `final` and the log in `log`."""

    def __init__(self, tmp, board, *argv, settings="", env=None, once=True, period=0.05):
        self.directory = tmp / "out"
        fast = "usb:wait=0,back_off=1ms,back_off_max=20ms"
        super().__init__(*["--once"] * once, "--source", f"{fast},{settings}" if settings else fast, "-o",
                         self.directory, *argv, socket=tmp / "socket", env=board.environment(**(env or {})))
        self.board_used = board
        self._others_bytes = 0
        self.watch = Watch(self.socket, period)
        self.code = self.final = self.log = None

    def __enter__(self):
        self._others_bytes = self.board_used.sent_bytes()
        super().__enter__()
        try:
            self.wait_ready()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        self.watch.__enter__()
        return self

    def __exit__(self, *exception):
        # A watch that was not entered has no result.
        try:
            if self.watch.samples or exception[0] is None:
                self.watch.__exit__(*exception)
        finally:
            super().__exit__(*exception)

    def status(self):
        """Returns the response of GET /v1/status, as an object."""
        try:
            return json.loads(harness.ask(self.socket).partition(b"\r\n\r\n")[2])
        except (OSError, ValueError) as why:
            raise AssertionError(f"no status: {why}") from why

    @property
    def counts(self):
        return self.status()["counts"]

    @property
    def board(self):
        return self.status()["source"]["board"]

    def wait_for(self, condition, what):
        """Waits until condition(status) is true. Returns the status."""
        latest = {}

        def holds():
            latest.update(self.status())
            return condition(latest)

        try:
            wait_until(holds, what, harness.TIMEOUT_S)
        except AssertionError as why:
            raise AssertionError(f"{why}; {latest}") from why
        return latest

    def wait_streaming(self):
        return self.wait_for(lambda s: s["source"]["board"]["state"] == "streaming", "the board streams")

    def wait_more(self, samples=1):
        """Waits until `samples` more samples have arrived."""
        wanted = self.counts["received"] + samples
        return self.wait_for(lambda s: s["counts"]["received"] >= wanted, f"{samples} more samples")

    def take(self, samples=1, number=1):
        """Lets the board send these samples and some more, and waits until they have arrived. Then the board is in
        mid-stream, unless the machine is slow."""
        wanted = self.counts["received"] + samples
        self.board_used.command(f"send {samples + SPARE}", number)
        return self.wait_for(lambda s: s["counts"]["received"] >= wanted, f"{samples} more samples")

    def take_all(self, samples=1, number=1):
        """Lets the board send these samples, and waits until nothing is left to send and all has arrived: a STOP will
        have nothing to drain."""
        self.board_used.command(f"send {samples}", number)
        return self.wait_idle(number)

    def wait_idle(self, number=1):
        """Waits until the board has nothing left to send and all has arrived."""

        def has_all(status):
            is_idle = self.board_used.sent(number)["idle"]
            arrived = self._others_bytes + status["source"]["board"]["received_bytes"]
            return is_idle and arrived == self.board_used.sent_bytes()

        return self.wait_for(has_all, "everything has arrived")

    def end(self, signal_number=signal.SIGTERM, wanted=None):
        """Sends the signal (None: it ends by itself) and waits for the end. Returns the exit code."""
        self.watch.may_end = True
        if signal_number is not None:
            self.process.send_signal(signal_number)
        self.code = self.wait()
        self.watch.finish()
        self.log = harness.check_sound(self.err)
        if self.out:
            self.final = json.loads(self.out)
        if wanted is not None:
            equal(self.code, wanted, f"exit code; {self.log}")
        return self.code

    def logged(self, *words):
        """Returns whether a line of the log has all these words."""
        return any(all(word in line for word in words) for line in self.log.splitlines())

    def check(self, board, gaps=None, number=1, given_up=0, may_be_torn=False):
        """Compares the printed status and the recorded files with what left the board. `gaps` are the numbers of gaps
        by cause; if the last frame `may_be_torn`, there may be one more. Up to `given_up` samples may be missing
        although they arrived, in frames that a fault interrupted. Returns the result of reference.read_segments()."""
        sent = board.sent(number)
        counts = harness.check_counts(self.final)
        equal(self.final["source"]["board"]["received_bytes"], sent["bytes"], f"bytes\n{self.log}")
        if 0 < sent["samples"] - counts["received"] <= given_up:
            sent["samples"] = counts["received"]
        paths = segments(self.directory)
        recorded = reference.read_segments(paths)
        wanted = {"received": sent["samples"], "written": len(recorded.ticks), "durable": len(recorded.ticks),
                  "in_flight": 0, "lost": sent["lost"], "gaps": recorded.gap_events}
        equal({name: counts["lost"]["board"] if name == "lost" else counts[name] for name in wanted}, wanted, f"counts; {sent}\n{self.log}")
        causes = {}
        for gap in (event for chunk in recorded.chunks for event in chunk.events if event.kind == "gap"):
            causes[gap.cause] = causes.get(gap.cause, 0) + 1
        recorded_causes = dict(causes)
        if gaps is not None:
            if may_be_torn and causes.get("crc") == 1 and "crc" not in gaps:
                del causes["crc"]
            equal(causes, gaps, f"gaps; {sent}\n{self.log}")
        reported = {}
        for segment in info(paths):
            for cause, gap in segment["gaps"]["causes"].items():
                reported[cause] = reported.get(cause, 0) + gap["count"]
        equal(reported, recorded_causes, "gaps reported by buscap info")
        state = board.state(number)
        equal((state["files"], state["memory"]), (0, 0), "resources left open")
        return recorded
