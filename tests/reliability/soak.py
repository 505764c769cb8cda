"""Records from a capture board in software as fast as possible, for long, while everything that can happen happens: the
board is unplugged, stalls, loses and damages frames and pauses for more ticks than a record can hold; its sequence
numbers wrap around; the clock jumps; segments rotate and the ring deletes them; the configuration is reloaded;
recordings stop and start; clients come and go. A round is 100,000 samples. The bus is silent most of its time, which
therefore runs ahead of the clock: the long form takes 72 hours of it at least.

What the daemon received must equal what left the board, the sealed segments and their gaps must add up to what was
received, and memory, descriptors and the time to answer a request must stay flat.
"""

import contextlib
import json
import random
import signal
import socket
import statistics
import time

import torture

import attack
import harness
from attack import request
from harness import BUSCAP, MovedClock, equal
from usb_harness import Board, Recorder

MIB = 1 << 20
YEAR = 365.25 * 86400
FILES = 150  # a command looks at each before the ring deletes it
GROWTH = 4 * MIB  # of memory after the first third
CLOCK_HZ = 66_000_000
IDLE = 2**29  # ticks of silence after each 131,072 samples: 8 s after 60 ms
HOURS = 72  # of bus time, in the long form
HOOK = """#!/bin/sh
exec {buscap} info --json "$1" >>{log}
"""


class Soak:
    def __init__(self, options, directory, board, clock, recorder, log):
        self.options = options
        self.rng = options.rng("actions")
        self.board = board
        self.clock = clock
        self.recorder = recorder
        self.config = directory / "buscapd.conf"
        self.log = log
        self.done = {}
        self.usage = []  # (samples, resident bytes, descriptors, seconds until the status was answered)
        self.rested = 0  # ticks
        self.bus_ticks = 0  # of the segments in the first log_bytes bytes of the log
        self.log_bytes = 0
        self.streams = []
        self.recordings = 1

    # ---- what happens

    def replug(self):
        self.board.unplug()
        if self.rng.random() < 0.5:
            time.sleep(self.rng.random() * 0.05)
        self.board.plug()

    def fault(self):
        self.board.command(self.rng.choice(("stall", "protocol-error", "timeout 1000", "overflow 5000", "corrupt", "garbage 999",
                                            "lose 12345", "lose-frames 2", "trigger", "short on", "short off")))

    def rest(self):
        # About as long as the time of a record, which has 32 bits, and much longer.
        ticks = self.rng.choice((2**32 - 3, 2**32 - 1, 2**32, 2**32 + 1, 2**40))
        self.board.command(f"rest {ticks}")
        self.rested += ticks

    def move_clock(self):
        self.clock.move(self.rng.choice((-6, -1, 0, 1, 10, 30)) * YEAR * self.rng.random())

    def rotate(self):
        attack.try_request(self.recorder.socket, request("POST", "/v1/rotate", {}))

    def mark(self):
        attack.try_request(self.recorder.socket, request("POST", "/v1/marks", {"text": "soak"}))

    def reload(self):
        write_config(self.config, self.rng)
        self.recorder.process.send_signal(signal.SIGHUP)

    def stop_and_start(self):
        attack.try_request(self.recorder.socket, request("DELETE", "/v1/recordings/current"), harness.TIMEOUT_S)
        code, body = harness.http(self.recorder.socket, "/v1/recordings", "POST", "{}")
        assert code in (200, 201), body
        self.recordings += 1

    def stream(self):
        for client in self.streams:
            client.close()
        self.streams = []
        for path in (b"events", b"records", b"records"):
            client = socket.socket(socket.AF_UNIX)
            client.connect(str(self.recorder.socket))
            client.sendall(b"GET /v1/" + path + b" HTTP/1.0\r\n\r\n")
            self.streams.append(client)

    def list(self):
        for path in ("recordings", "mix", "status"):
            attack.try_request(self.recorder.socket, request("GET", f"/v1/{path}"), 60)

    def verify(self):
        sealed = harness.segments(self.recorder.directory)
        if len(sealed) > 5:
            path = self.rng.choice(sealed[-5:])
            with contextlib.suppress(FileNotFoundError):
                data = path.read_bytes()
                copy = self.config.with_name("copy-00000.byu.lz4")
                copy.write_bytes(data)
                harness.verify([copy])

    # ---- checks

    @property
    def hours(self):
        """The bus time in the sealed segments, without the rests."""
        with self.log.open("rb") as file:
            file.seek(self.log_bytes)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.bus_ticks += json.loads(line)["duration_ticks"]
                self.log_bytes += len(line)
        return (self.bus_ticks - self.rested) / CLOCK_HZ / 3600

    def measure(self):
        pid = self.recorder.process.pid
        start = time.monotonic()
        self.recorder.status()
        seconds = time.monotonic() - start
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("VmRSS:"):
                self.usage.append((self.received, int(line.split()[1]) << 10,
                                   attack.open_descriptors(self.recorder.process), seconds))

    def settle(self):
        """Waits until everything that left the board has been counted, and compares."""
        self.board.command("freeze")

        def is_settled():
            return self.recorder.counts["received"] == self.board.sent()["samples"]

        try:
            harness.wait_until(is_settled, "what was received is what was sent")
        except AssertionError as why:
            raise AssertionError(f"{why}: {self.recorder.counts}, {self.board.sent()}") from why

    def run(self, samples):
        actions = [self.replug, self.fault, self.fault, self.rest, self.move_clock, self.rotate, self.mark, self.reload,
                   self.stop_and_start, self.stream, self.list, self.verify]
        pause = 0.5 if self.options.is_long else 0.05
        self.received = 0
        while not self.options.is_over and (self.received < samples or (self.options.is_long and self.hours < HOURS)):
            action = self.rng.choice(actions)
            action()
            self.done[action.__name__] = self.done.get(action.__name__, 0) + 1
            time.sleep(pause * self.rng.random())
            self.recorder.watch.check()
            self.received = self.recorder.watch.last["counts"]["received"]
            self.measure()
        self.settle()
        for client in self.streams:
            client.close()

    def flatness(self):
        """Returns the figures of the first, second and last third."""
        thirds = [[], [], []]
        for use in self.usage:
            thirds[min(2, int(3 * use[0] / max(1, self.received)))].append(use)

        def figure(of):
            return ", ".join(f"{of(third):.3g}" for third in thirds if third)

        return {
            "memory (MiB) in each third": figure(lambda uses: max(use[1] for use in uses) / MIB),
            "descriptors": figure(lambda uses: max(use[2] for use in uses)),
            "ms until a status is answered, median": figure(lambda uses: 1000 * statistics.median(use[3] for use in uses)),
        }

    def check_usage(self):
        third = [use for use in self.usage if use[0] <= self.received / 3]
        rest = [use for use in self.usage if use[0] > self.received / 3]
        if not third or not rest:
            return
        grown = max(use[1] for use in rest) - max(use[1] for use in third)
        if not self.options.is_long:
            return  # too short to have used everything in the first third
        assert grown <= GROWTH, f"memory has grown by {grown} bytes after the first third"
        # A client more or less, and a directory being listed.
        descriptors = max(use[2] for use in rest) - max(use[2] for use in third)
        assert descriptors <= 4, f"{descriptors} more descriptors after the first third"
        before, after = (statistics.median(use[3] for use in uses) for uses in (third, rest))
        assert after <= 2 * before + 0.01, f"a status takes {after:.4f} s, {before:.4f} s in the first third"


def write_config(path, rng):
    path.write_text(f"[rotation]\nfilesize = {rng.choice((4, 8, 16))}M\nfiles = {FILES}\n"
                    f"[pipeline]\nsync = {rng.choice((50, 200, 1000))}ms\nflush = {rng.choice((10, 100, 1000))}ms\n"
                    "[space]\nmax_age = 100d\n")


def check_segments(log, counts, directory):
    """Checks that all segments ever sealed add up to the counts."""
    sealed = {segment["file"]: segment for segment in map(json.loads, log.read_text().splitlines())}
    records = sum(segment["records"] for segment in sealed.values())
    equal(records, counts["written"], f"records in {len(sealed)} sealed segments, written")
    lost = {}
    for segment in sealed.values():
        for cause, gap in segment["causes"].items():
            lost[cause] = lost.get(cause, 0) + gap["lost"]
    for cause in ("buffer", "disk"):
        equal(lost.get(cause, 0), counts["dropped"][cause], f"lost because of {cause}: gaps, counts")
    return len(sealed)


def soak(options, directory, samples):
    config = directory / "buscapd.conf"
    write_config(config, random.Random(1))
    log = directory / "sealed"
    log.touch()
    hook = directory / "hook"
    hook.write_text(HOOK.format(buscap=BUSCAP, log=log))
    hook.chmod(0o755)
    clock = MovedClock(directory)
    with Board("serial=A1,rate=0", plugged=False) as board:
        board.command(f"idle {IDLE}")
        board.plug()
        env = dict(clock.env)
        with Recorder(directory, board, "-c", config, "--set", f"output.sealed_command={hook}", "--set", "pipeline.workers=2",
                      "--set", "pipeline.buffer=32MiB", env=env, once=False, period=0.1) as recorder:
            recorder.wait_streaming()
            run = Soak(options, directory, board, clock, recorder, log)
            start = time.monotonic()
            run.run(samples)
            seconds = time.monotonic() - start
            # The counts after the last seal.
            attack.try_request(recorder.socket, request("DELETE", "/v1/recordings/current"), 120)
            counts = harness.check_counts(recorder.status())
            equal(counts["in_flight"], 0, "in flight")
            recorder.wait_for(lambda status: status["sealed"]["commands_waiting"] == 0, "the commands for sealed segments end")
            equal(recorder.status()["sealed"]["commands_failed"], 0, "failed commands for sealed segments")
            code = recorder.end()
        text = attack.ended_well(recorder, "soak")
        assert code in (0, 4), f"exit code {code}: {text}"
        equal(board.left_open(), [0, 0, 0, 0], "resources left open")
        segments = check_segments(log, counts, recorder.directory)
        harness.verify(harness.segments(recorder.directory))
    run.check_usage()
    return {
        "samples": counts["received"],
        "samples per second": int(counts["received"] / seconds),
        "lost because the buffer was full, counted and on record": counts["dropped"]["buffer"],
        "recordings": run.recordings,
        "segments sealed": segments,
        "plugs": board_plugs(run),
        "actions": sum(run.done.values()),
        "hours of bus time": run.hours,
        **run.flatness(),
    }


def board_plugs(run):
    return 1 + run.done.get("replug", 0)


def run(options):
    results = options.each(lambda directory: soak(options, directory, options.rounds * 100_000), [()])
    return results[0] if results else {}


if __name__ == "__main__":
    torture.main(run, short=300, long=100_000)
