"""For tests of buscap top: a daemon whose responses the test sets, and a terminal."""

import http.server
import json
import os
import pathlib
import shlex
import socketserver
import threading
import time

import harness


class Bus:
    """The data that a FakeDaemon serves. The daemon appears to have run for `seconds`, at a varying rate."""

    def __init__(self, seconds=3725):
        self.started = time.monotonic() - seconds
        self.lost = 0
        self.state = "recording"
        self.disk_error = None
        self.hours_left = 10.6
        self.label = "night-run"

    def seconds(self):
        return time.monotonic() - self.started

    def rate(self):
        return int(4_000_000 + 1_000_000 * (int(self.seconds()) % 20) / 20)

    def status(self):
        received = int(self.seconds() * 4_500_000)
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
        return {
            "version": "0.1.0", "state": self.state, "mode": "always",
            "source": {
                "kind": "usb", "name": "usb", "clock_hz": 66_666_666,
                "board": {
                    "state": "streaming", "id": "1209:0001", "serial": "BC-0042", "product": "Bus capture board",
                    "port": "1-2", "address": 5, "speed": "high", "endpoint": 129, "packet_bytes": 512, "transfers": 16,
                    "transfer_bytes": 65536, "info": {"firmware": "1.4.2"}, "counters": None, "received_bytes": 1, "plugs": 1,
                    "unplugs": 0, "stalls": 0, "overflows": 0, "errors": 0, "timeouts": 0, "silences": 0, "restarts": 0,
                    "last_error": None}},
            "directory": "/var/lib/buscapd",
            "recording": {
                "id": f"20261120T194302Z-ab12cd-{self.label}", "label": self.label, "started": started, "segment": 3,
                "path": "/var/lib/buscapd/20261120T194302Z-ab12cd-night-run-00003.byu.lz4.partial",
                "records": received - self.lost, "bytes": received * 4},
            "counts": {
                "received": received, "written": received - self.lost - 1000, "durable": received - self.lost - 2000,
                "in_flight": 1000,
                "dropped": {"buffer": self.lost, "disk": 0, "invalid": 0, "filtered": 0, "idle": 0},
                "lost": {"buffer": self.lost}, "skipped_bytes": 0, "gaps": 1 if self.lost else 0, "damaged_places": 0},
            "rates": {"samples_per_second": self.rate(), "record_bytes_per_second": self.rate() * 12,
                      "written_bytes_per_second": self.rate() * 4},
            "buffer": {"chunks": 64, "free_chunks": 60 - int(self.seconds()) % 7, "min_free_chunks": 12,
                       "time_left_seconds": 1.3},
            "disk": {"free_bytes": 812_000_000_000, "time_left_seconds": self.hours_left and int(self.hours_left * 3600), "ring": None,
                     "stuck": bool(self.disk_error), "last_error": self.disk_error and f"/d/REC.byu.lz4: {self.disk_error}",
                     "last_error_cause": self.disk_error},
            "flight": None, "triggers": 2,
            "sealed": {"segments": 3, "commands_waiting": 0, "commands_failed": 0},
            "streams": {"events": 1, "records": 0}, "clients": 1, "uptime_seconds": round(self.seconds(), 1)}

    def history(self):
        """Without losses, and without the interval of a minute ago."""
        n = min(int(self.seconds()), 3600)
        figures = {"received_samples": 4_000_000, "lost_samples": 0, "record_bytes": 48_000_000, "written_bytes": 16_000_000, "used_chunks": 16}
        return {"seconds": {"end": "2026-11-20T20:00:00.000000000Z", "interval_seconds": 1,
                            **{name: [None if i == n - 60 else value for i in range(n)] for name, value in figures.items()}}}

    def mix(self):
        of = int(self.seconds() * 4_500_000)
        sampled = of // 16
        shares = {"MEMREAD": 45, "FETCH": 28, "MEMWRITE": 20, "MEMREADINV": 4, "IOREAD": 2, "IOWRITE": 1}
        memory = 1_000_000
        pages = [{"addr": f"0x{0x1F000 + 0x13000 * i:08x}", "requests": memory // 8 * 3 // (i + 3), "max_error": 0 if i < 20 else 900}
                 for i in range(32)]
        return {"records": of, "sampled_records": sampled, "types": {name: sampled * share // 100 for name, share in shares.items()},
                "procs": {"0": sampled * 55 // 100, "1": sampled * 30 // 100, "2": sampled * 10 // 100,
                          "3": sampled * 5 // 100}, "memory_requests": memory, "pages": pages}


class FakeDaemon:
    """Serves the data of a Bus on a Unix socket. `paths`: the paths it serves; others get 404. `more`: events sent
    after each status."""

    def __init__(self, socket_path, bus, paths=("/v1/status", "/v1/mix", "/v1/history", "/v1/events"), more=()):
        self.path = str(socket_path)
        self.bus = bus
        self.paths = paths
        self.more = more
        self.requests = []
        self._over = threading.Event()

    def __enter__(self):
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def _send_object(self, code, value):
                body = json.dumps(value).encode() + b"\n"
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _send_events(self):
                self.send_response(200)
                self.send_header("Content-Type", "application/x-ndjson")
                self.send_header("Connection", "close")
                self.end_headers()
                while not fake._over.is_set():
                    status = {"event": "status", "seq": 1, "time": "2026-11-20T20:00:00Z", "status": fake.bus.status()}
                    for line in (status, *fake.more):
                        self.wfile.write(json.dumps(line).encode() + b"\n")
                    self.wfile.flush()
                    fake._over.wait(1)
                self.close_connection = True

            def do_GET(self):
                fake.requests.append(self.path)
                if self.path not in fake.paths:
                    self._send_object(404, {"error": f"no {self.path}"})
                elif self.path == "/v1/status":
                    self._send_object(200, fake.bus.status())
                elif self.path == "/v1/mix":
                    self._send_object(200, fake.bus.mix())
                elif self.path == "/v1/history":
                    self._send_object(200, fake.bus.history())
                else:
                    try:
                        self._send_events()
                    except OSError:
                        self.close_connection = True

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

            def get_request(self):
                request, _ = super().get_request()
                return request, ("local", 0)

        self._server = Server(self.path, Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        os.unlink(self.path)


class Terminal:
    """Runs a program in the terminal of a new tmux server for the duration of a with block."""

    def __init__(self, directory, width, height, *argv, env=None):
        self.directory = pathlib.Path(directory)
        self.size = (width, height)
        self.argv = [str(a) for a in argv]
        self.name = f"top{id(self)}"  # an earlier server may still be exiting
        self.env = {"LC_ALL": "C.UTF-8", "TZ": "UTC", **(env or {})}
        harness.need("tmux")

    def tmux(self, *argv):
        env = {k: v for k, v in os.environ.items() if k not in ("TMUX", "NO_COLOR", "LC_ALL")}
        done = harness.run("tmux", "-u", "-f", "/dev/null", "-L", self.name, *argv,
                           env={**env, "TMUX_TMPDIR": str(self.directory)})
        harness.equal(done.returncode, 0, f"tmux {argv}: {done.stderr.decode()}")
        return done.stdout.decode()

    def __enter__(self):
        words = " ".join(f"{k}={v}" for k, v in self.env.items())
        command = shlex.join(self.argv)
        self.tmux("new-session", "-d", "-x", self.size[0], "-y", self.size[1],
                  f"env {words} {command} 2>{self.directory}/err; echo $? >{self.directory}/code")
        return self

    def __exit__(self, *_):
        try:
            self.tmux("kill-server")
        except AssertionError:
            pass  # it has exited with its last window

    def screen(self):
        """Returns the lines without trailing spaces."""
        return [line.rstrip() for line in self.tmux("capture-pane", "-p").split("\n")][:self.size[1]]

    def text(self):
        return "\n".join(self.screen())

    def colours(self):
        """Returns the screen with escape sequences."""
        return self.tmux("capture-pane", "-p", "-e")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def resize(self, width, height):
        self.tmux("resize-window", "-x", width, "-y", height)
        self.size = (width, height)

    def wait_for(self, condition, what):
        """Waits until condition(screen's text) is true. Returns the text."""
        last = ""
        end = time.monotonic() + harness.TIMEOUT_S
        while time.monotonic() < end:
            last = self.text()
            if condition(last):
                return last
            time.sleep(0.1)
        raise AssertionError(f"{what}; the screen is\n{last}")

    def wait_end(self):
        """Returns the program's exit code."""
        code = self.directory / "code"
        harness.wait_until(lambda: code.exists() and code.read_text().strip(), "the program ends")
        return int(code.read_text())
