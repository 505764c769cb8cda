"""For tests of `buscap web`: the program, and requests to it."""

import contextlib
import http.client
import json
import re
import socket

import harness
from api_harness import Response
from harness import BUSCAP, Daemon, wait_until

REFUSED = b"open the link that buscap web printed\n"


class Web(Daemon):
    """buscap web, from the link on. `host` is how the link names it."""

    def __init__(self, *argv, **options):
        super().__init__("web", *argv, program=BUSCAP, **options)

    def __enter__(self):
        super().__enter__()
        try:
            wait_until(lambda: self.process.poll() is not None or self.out_so_far().endswith("\n"), "the link")
            assert self.process.poll() is None, f"it ended: {self.log_so_far()}"
            found = re.fullmatch(r"http://((\[[0-9a-f:]+\]|[0-9.]+):(\d+))/\?token=([0-9a-f]{32})\n", self.out_so_far())
            assert found, self.out_so_far()
        except BaseException:
            self.__exit__(AssertionError, None, None)
            raise
        self.host, self.address, self.port, self.token = found[1], found[2].strip("[]"), int(found[3]), found[4]
        return self

    def out_so_far(self):
        self._collect()
        return self.out.decode()

    def connect(self):
        """Returns a connected socket."""
        return socket.create_connection((self.address, self.port), harness.TIMEOUT_S)

    def ask(self, data):
        """Sends bytes. Returns everything that arrives until the connection is closed."""
        pieces = []
        with self.connect() as connection:
            # It may be closed before the server has read everything.
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            with contextlib.suppress(ConnectionError):
                while piece := connection.recv(1 << 20):
                    pieces.append(piece)
        return b"".join(pieces)

    def allowed(self, path):
        """Returns the path with the token."""
        return f"{path}{'&' if '?' in path else '?'}token={self.token}"

    def send(self, path, method="GET", **headers):
        """Sends a request with the token on a new connection. A header that is None is left out."""
        return self.send_as_is(self.allowed(path), method, **headers)

    def send_as_is(self, path, method="GET", **headers):
        headers = {"Host": self.host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items() if value is not None),
                 "Connection: close", "", ""]
        return Response.parse(self.ask("\r\n".join(lines).encode()))

    def get(self, path):
        """Returns the JSON of a path."""
        answer = self.send(path)
        assert answer.status == 200, (path, answer.status, answer.body)
        return answer.json()

    def lines(self, path):
        """Returns the lines of JSON of a path."""
        answer = self.send(path)
        assert (answer.status, answer.type()) == (200, "application/x-ndjson"), (path, answer.status, answer.body)
        return [json.loads(line) for line in answer.body.splitlines()]

    def live(self, since=0):
        return self.get(f"/data/live?since={since}")

    def keep_alive(self):
        """Returns an http.client connection."""
        return http.client.HTTPConnection(self.address, self.port, timeout=harness.TIMEOUT_S)
