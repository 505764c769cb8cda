"""An HTTP server on a Unix socket that sends the responses given by a test, valid or not.

    with MockDaemon(path, {"GET /v1/status": {"version": "0.1.0"}}) as daemon:
        ...
        daemon.requests     # [("GET", "/v1/status", None), ...], with bodies as objects

A response is an object (status 200), a pair of status and object, a Stream, bytes (sent unchanged, then the connection
is closed), or a function of the request's body that returns one of these. "*" matches all other requests; without it
they get 404.
"""

import json
import pathlib
import socket
import threading


class Stream:
    """A response of lines, each an object or raw bytes. With `is_open` it does not end."""

    def __init__(self, *lines, is_open=False):
        self.lines = lines
        self.is_open = is_open


def response(status, body, content_type="application/json"):
    """A complete response in bytes."""
    head = f"HTTP/1.1 {status} Word\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class MockDaemon:
    def __init__(self, path, answers):
        self.path = pathlib.Path(path)
        self.answers = answers
        self.requests = []
        self._end = threading.Event()
        self._threads = []
        self._sockets = []

    def __enter__(self):
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(16)
        self._start(self._accept)
        return self

    def __exit__(self, *exception):
        self._end.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # ends accept()
        self._threads[0].join()
        for connection in self._sockets:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed
        for thread in self._threads:
            thread.join()
        self._listener.close()
        self.path.unlink()

    def _start(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while not self._end.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                continue
            self._sockets.append(connection)
            self._start(self._serve, connection)

    def _receive(self, connection, got):
        piece = connection.recv(65536)
        return got + piece if piece else None

    def _serve(self, connection):
        got = b""
        with connection:
            try:
                while got is not None:
                    got = self._serve_one(connection, got)
            except OSError:
                pass  # the client has closed the connection

    def _serve_one(self, connection, got):
        """Returns the bytes received after the request, or None at the end."""
        while b"\r\n\r\n" not in got:
            got = self._receive(connection, got)
            if got is None:
                return None
        head, _, body = got.partition(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        headers = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
        length = int(headers.get("content-length", "0"))
        while len(body) < length:
            body = self._receive(connection, body)
            if body is None:
                return None
        requested = json.loads(body[:length]) if length else None
        assert not length or headers["content-type"] == "application/json"
        body = body[length:]
        self.requests.append((method, target, requested))
        answer = self.answers.get(f"{method} {target}", self.answers.get("*", (404, {"error": f"no {target}"})))
        return body if self._respond(connection, answer(requested) if callable(answer) else answer) else None

    def _respond(self, connection, answer):
        """Returns whether the connection stays open."""
        if isinstance(answer, bytes):
            connection.sendall(answer)
            return False
        if isinstance(answer, Stream):
            self._send_stream(connection, answer)
            return False
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        connection.sendall(response(status, json.dumps(body).encode() + b"\n"))
        return True

    def _send_stream(self, connection, stream):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n")
        for line in stream.lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            connection.sendall(b"%x\r\n%s\r\n" % (len(data), data))
        if stream.is_open:
            self._end.wait()
        else:
            connection.sendall(b"0\r\n\r\n")
