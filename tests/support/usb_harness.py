"""Software boards below a real daemon: the USB of tests/board/usbfs.h in its process (tests/board/remote.c).

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

What a test does before the program starts is how each program finds the boards; what it does later ends with the
program. They are seen by Board.PROGRAM with Board.env, not by any other program.

A Recorder is a buscapd that records from the boards. Its status is polled continuously.
"""

import json
import pathlib
import signal
import socket
import sys
import tempfile

import harness
import reference
from harness import BUILD, Daemon, Watch, equal, info, segments, wait_until

# Samples that a board makes beyond those a test waits for, so that what happens next usually happens in mid-stream.
SPARE = 20_000


class Board:
    """Boards on the ports of one hub, numbered from 1 and plugged in by default. Each argument describes one board as
    in tests/board/remote.c: "serial=A1,rate=2000000"."""

    PROGRAM = BUILD / "tests/buscapd_usb"

    def __init__(self, *boards, plugged=True):
        self.boards = boards or ("serial=A1",)
        self._is_plugged = plugged
        self._files = None
        self._root = None

    def __enter__(self):
        harness.need(self.PROGRAM)
        self._files = tempfile.TemporaryDirectory(prefix="usb-")
        self._root = pathlib.Path(self._files.name)
        self.env = {"USB_BOARDS": str(self._root)}
        for board in self.boards:
            self._run(f"new {board}")
        for number in range(1, len(self.boards) + 1) if self._is_plugged else ():
            self.plug(number)
        return self

    def __exit__(self, *exception):
        self._files.cleanup()

    def _ask(self, line):
        """Returns the running program's answer to a command, or None if none is running."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(harness.TIMEOUT_S)
            try:
                client.connect(str(self._root / "control"))
                client.sendall(line.encode())
                answer = client.recv(65536).decode()
            except (FileNotFoundError, ConnectionError):
                return None
        assert not answer.startswith("error"), f"{line}: {answer}"
        return answer or None

    def _run(self, line):
        answer = self._ask(line)
        if answer is None:
            with open(self._root / "setup", "a") as setup:
                setup.write(line + "\n")
        return answer

    def _end(self):
        """Returns what the program has left when it ended: a line for each board, and what was left open."""
        end = self._root / "end"
        return [json.loads(line) for line in end.read_text().splitlines()] if end.exists() else None

    def plug(self, number=1):
        self._run(f"plug {number}")

    def unplug(self, number=1):
        self._run(f"unplug {number}")

    def deny(self):
        """Makes boards fail to open (EACCES)."""
        self._run("deny")

    def allow(self):
        self._run("allow")

    def command(self, line, number=1):
        """Sends a command to the board itself; tests/board/board.h lists them."""
        return self._run(f"board {number} {line}")

    def sent(self, number=1):
        """Returns struct board_sent: what left the board, also after the program's end. `plugs` includes its creation."""
        answer = self._ask(f"board {number} sent")
        return json.loads(answer) if answer else self._end()[number - 1]

    def sent_bytes(self):
        """Returns the bytes that left all boards."""
        return sum(self.sent(number)["bytes"] for number in range(1, len(self.boards) + 1))

    def left_open(self):
        """Returns how many descriptors, claims, URBs and udev monitors the program did not release before its end."""
        return self._end()[-1]


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
                         self.directory, *argv, program=board.PROGRAM, socket=tmp / "socket",
                         env={**(env or {}), **board.env})
        self.board_used = board
        self.watch = Watch(self.socket, period)
        self.code = self.final = self.log = None

    def __enter__(self):
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
            return is_idle and status["source"]["board"]["received_bytes"] == self.board_used.sent_bytes()

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
            for cause, gap in segment["causes"].items():
                reported[cause] = reported.get(cause, 0) + gap["gaps"]
        equal(reported, recorded_causes, "gaps reported by buscap info")
        equal(board.left_open(), [0, 0, 0, 0], "resources left open")
        return recorded
