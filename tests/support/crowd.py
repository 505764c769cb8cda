"""Runs many bad clients of a socket: crowd.py SOCKET COUNT [KIND]...

The kinds are assigned in rotation. A client reconnects when the server closes its connection. When standard input
ends, the program prints JSON: the number of connections of each kind, and the status codes of the first responses. It
is a separate process so that it does not disturb measurements.
"""

import collections
import json
import random
import selectors
import shutil
import socket
import subprocess
import sys
import time

# A Python that any user may run.
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable

GET = b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"
GARBAGE = bytes((i * 167 + i // 256) % 256 for i in range(2000))


class Client:
    """A connection. tick() is called about ten times per second, readable() when data has arrived."""

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
        except OSError:  # the queue is full; try again later
            self.socket.close()
            self.socket = None
            return
        self.answer = b""
        self.left = memoryview(self.request)  # slices are not copies
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
    """Sends one byte per second."""

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
    """Sends requests and never reads. Notices the end of the connection when sending fails."""

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
    """Sends a megabyte of headers."""

    kind = "huge"
    request = b"GET /v1/status HTTP/1.1\r\n" + (b"X: " + b"y" * 997 + b"\r\n") * 1000 + b"\r\n"


class Body(Client):
    kind = "body"
    request = b"POST /v1/marks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + (
        b"1000\r\n" + b"b" * 4096 + b"\r\n") * 500


class Garbage(Client):
    """Sends valid requests with garbage in between."""

    kind = "garbage"
    request = GET * 3 + GARBAGE + GET * 3


class Mutant(Client):
    """Sends requests for every path with a few bytes changed, inserted, repeated or left out."""

    kind = "mutant"
    paths = ("status", "events", "records?limit=10", "recordings", "recordings/current", "rotate", "marks", "snapshot",
             "triggers", "triggers/x", "mix")
    rng = random.Random(1)

    def open(self):
        rng = self.rng
        body = rng.choice((b"", b"{}", b'{"text":"x"}', b'{"limits":{"records":1}}', b'{"name":"x","when":"proc=1","action":"mark"}'))
        # Nothing that stops the recording.
        method = rng.choice((b"GET", b"HEAD", b"POST", b"PATCH", b"PUT"))
        text = bytearray(b"%s /v1/%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
            method, rng.choice(self.paths).encode(), len(body), body))
        for _ in range(rng.randrange(4)):
            at, n = rng.randrange(len(text)), rng.randrange(1, 9)
            change = rng.randrange(4)
            if change == 0:
                text[at] = rng.randrange(256)
            elif change == 1:
                text[at:at] = rng.randbytes(n)
            elif change == 2:
                text[at:at] = text[at : at + n] * rng.randrange(1, 200)
            else:
                del text[at : at + n]
        self.request = bytes(text)
        super().open()


KINDS = {c.kind: c for c in (Silent, Slow, Deaf, DeafStream, DeafRecords, Huge, Body, Garbage, Mutant)}


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
    """Runs the crowd as a process for a with block. `said` is its output."""

    def __init__(self, path, count, *kinds, **options):
        # Pass the source text: its user may not be allowed to read the file.
        with open(__file__) as text:
            self.argv = [PYTHON, "-c", text.read(), str(path), str(count), *kinds]
        self.options = options
        self.said = None

    def __enter__(self):
        import harness  # not available in the process of the crowd

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
