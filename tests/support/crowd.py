"""Bad clients of a socket, many at once: crowd.py SOCKET COUNT [KIND]...

Each connection is of one kind, in turn; one that the server ends is opened anew. The crowd stays until its
standard input ends, and then says in JSON how often each kind connected and what it was answered first. It is a
program of its own, so that what it does takes nothing from whoever measures.
"""

import collections
import json
import selectors
import shutil
import socket
import subprocess
import sys
import time

# One that any user may run.
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable

GET = b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"
GARBAGE = bytes((i * 167 + i // 256) % 256 for i in range(2000))


class Client:
    """One connection. tick() is called about ten times a second, readable() when something came."""

    request = b""
    reads = True

    def __init__(self, crowd):
        self.crowd = crowd
        self.socket = None
        self.answer = b""
        self.left = b""
        self.next = 0.0

    def open(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.setblocking(False)
        try:
            self.socket.connect(self.crowd.path)
        except OSError:  # its queue is full: later
            self.socket.close()
            self.socket = None
            return
        self.answer = b""
        self.left = memoryview(self.request)  # what is left of it is no copy
        self.crowd.connected[self.kind] += 1
        if self.reads:
            self.crowd.selector.register(self.socket, selectors.EVENT_READ, self)
        self.tick(time.monotonic())

    def close(self):
        first = self.answer.split(b" ")[1:2]
        self.crowd.answers[self.kind][first[0].decode(errors="replace") if first else "none"] += 1
        if self.reads:
            self.crowd.selector.unregister(self.socket)
        self.socket.close()
        self.socket = None

    def readable(self):
        try:
            piece = self.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        self.answer = self.answer or piece[:100]
        if not piece:
            self.close()

    def tick(self, now):
        while self.left:
            try:
                self.left = self.left[self.socket.send(self.left):]
            except OSError:
                break


class Silent(Client):
    kind = "silent"


class Slow(Client):
    """A byte a second."""

    kind = "slow"
    request = b"GET /v1/status HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 100_000

    def tick(self, now):
        if now >= self.next and self.left:
            self.next = now + 1
            try:
                self.socket.send(self.left[:1])
                self.left = self.left[1:]
            except OSError:
                pass


class Deaf(Client):
    """Asks, and never reads; sees its end by what it can't send."""

    kind = "deaf"
    request = GET * 200
    reads = False

    def tick(self, now):
        try:
            self.left = self.left[self.socket.send(self.left or GET):]
        except BlockingIOError:
            pass
        except OSError:
            self.close()


class DeafStream(Client):
    kind = "deaf-stream"
    request = b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n"
    reads = False


class DeafRecords(Client):
    kind = "deaf-records"
    request = b"GET /v1/records HTTP/1.1\r\nHost: x\r\n\r\n"
    reads = False


class Huge(Client):
    """A megabyte of headers."""

    kind = "huge"
    request = b"GET /v1/status HTTP/1.1\r\n" + (b"X: " + b"y" * 997 + b"\r\n") * 1000 + b"\r\n"


class Body(Client):
    kind = "body"
    request = b"POST /v1/marks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + (
        b"1000\r\n" + b"b" * 4096 + b"\r\n") * 500


class Garbage(Client):
    """Good requests with garbage behind."""

    kind = "garbage"
    request = GET * 3 + GARBAGE + GET * 3


KINDS = {c.kind: c for c in (Silent, Slow, Deaf, DeafStream, DeafRecords, Huge, Body, Garbage)}


class Crowd:
    def __init__(self, path, count, kinds):
        self.path = path
        self.selector = selectors.DefaultSelector()
        self.connected = collections.Counter()
        self.answers = collections.defaultdict(collections.Counter)
        self.clients = [KINDS[kinds[i % len(kinds)]](self) for i in range(count)]

    def run(self, until):
        self.selector.register(until, selectors.EVENT_READ, None)
        ticked = 0.0
        while True:
            for key, _ in self.selector.select(0.05):
                if key.data is None:
                    return
                key.data.readable()
            now = time.monotonic()
            if now - ticked < 0.1:
                continue
            ticked = now
            for client in self.clients:
                if client.socket is None:
                    client.open()
                else:
                    client.tick(now)


class Running:
    """The crowd as a process, for a with-block; `said` is what it told at its end."""

    def __init__(self, path, count, *kinds, **options):
        # By its text: who it runs as may not be allowed to read the file.
        with open(__file__) as text:
            self.argv = [PYTHON, "-c", text.read(), str(path), str(count), *kinds]
        self.options = options
        self.said = None

    def __enter__(self):
        import harness  # not where the text runs by itself

        self.process = harness.popen(
            self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", **self.options)
        return self

    def __exit__(self, *exception):
        out, _ = self.process.communicate(timeout=300)
        if exception[0] is None:
            self.said = json.loads(out)


def main():
    path, count, *kinds = sys.argv[1:]
    crowd = Crowd(path, int(count), kinds or list(KINDS))
    crowd.run(sys.stdin)
    print(json.dumps({"connected": crowd.connected, "answers": crowd.answers}))


if __name__ == "__main__":
    main()
