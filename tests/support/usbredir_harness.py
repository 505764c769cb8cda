"""Runs the software board for virtual machines (tests/board/usbredir_board.c) and sends it commands."""

import json
import os
import select
import subprocess

import harness
from harness import BUILD, TIMEOUT_S, check_sound, equal, need

PROGRAM = BUILD / "tests/usbredir_board"


class Board:
    """A running usbredir_board. QEMU or a test connects to the socket at .path."""

    def __init__(self, tmp, board):
        """An unplugged board, as board_new_of() makes it; it keeps its streams in tmp/kept.1, ..."""
        self.path = tmp / "board.sock"
        self.argv = [str(need(PROGRAM)), board, str(self.path), str(tmp / "kept")]

    def __enter__(self):
        self.process = harness.popen(
            self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._answers = b""
        self.command("unplug")
        return self

    def __exit__(self, *exception):
        code = self.end() if exception[0] is None and self.process.poll() is None else None
        if self.process.poll() is None:
            self.process.kill()
        self.out, self.err = self.process.communicate()
        if exception[0] is None:
            check_sound(self.err)
            equal(code in (None, 0), True, f"exit code {code}; {self.err.decode()}")
        else:
            print(f"{' '.join(self.argv)}: exit {self.process.returncode}\n{self.err.decode(errors='replace')}")

    def write(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def read_answer(self):
        while b"\n" not in self._answers:
            assert select.select([self.process.stdout], [], [], TIMEOUT_S)[0], "no answer from usbredir_board"
            piece = os.read(self.process.stdout.fileno(), 65536)
            assert piece, "usbredir_board ended"
            self._answers += piece
        line, _, self._answers = self._answers.partition(b"\n")
        return line.decode()

    def query(self, command):
        self.write(command + "\n")
        return self.read_answer()

    def command(self, *commands):
        for command in commands:
            equal(self.query(command), "ok", command)

    def sent(self):
        return json.loads(self.query("sent"))

    def end(self):
        """Closes its standard input, which ends it. Returns the exit code."""
        self.process.stdin.close()
        self.process.stdin = None  # otherwise communicate() fails
        return self.process.wait(TIMEOUT_S)
