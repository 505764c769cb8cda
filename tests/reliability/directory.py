"""Records into a directory with hundreds of recordings while another program adds files there, deletes, renames and
replaces them: segments, copies under other names, text, damaged and torn ones. A rule limits the number of segments.

Then it deletes most of the old files at once: the rule must not delete what is left. When it is quiet, what the daemon
counts must be what is there; no foreign file may be gone; and no sample lost.

A round is one recording. Control: what is there, counted by names alone, must differ.
"""

import contextlib
import json
import os
import re
import struct
import threading
import time

import torture  # first: it sets the paths of the modules

import harness  # noqa: E402
import many_files  # noqa: E402
import reference  # noqa: E402
from harness import Daemon, equal, http, status  # noqa: E402

SECONDS = 4
OLD = 200
NAME = re.compile(r"(.+)-(?:\d{5}|a\d{6})\.byu\.lz4(\.partial|\.damaged(\.\d+)?)?$")


def is_ours(path):
    """Whether the header says what the name says."""
    data = path.read_bytes()[:70000]
    if len(data) < 19 or data[11:15] != b"\x50\x2a\x4d\x18":
        return False
    (size,) = struct.unpack_from("<I", data, 15)
    text, stored = data[11 : 11 + size], data[11 + size : 19 + size]
    if struct.pack("<Q", reference.hash_of(text)) != stored:
        return False
    header = json.loads(text[8:])
    number = int(re.search(r"-a?(\d+)\.byu", path.name)[1])
    return (header["recording"], header["segment"]) == (NAME.match(path.name)[1], number)


def count(out, knows=is_ours):
    """Returns the segments and the bytes of all files of ours."""
    sizes = {path: path.stat().st_size for path in out.iterdir() if NAME.match(path.name) and knows(path)}
    return sum(".damaged" not in path.name for path in sizes), sum(sizes.values())


class Other(threading.Thread):
    """The other program. It works on recordings of 2020, which the daemon only deletes."""

    def __init__(self, rng, out, template):
        super().__init__()
        self.rng, self.out, self.template = rng, out, template
        self.is_over = threading.Event()
        self.foreign = {}
        self.changes = 0

    def run(self):
        while not self.is_over.is_set():
            self.change()
            self.changes += 1
            time.sleep(self.rng.choice((0, 0, 0.001, 0.02)))

    def change(self):
        rng = self.rng
        number = rng.randrange(3 * OLD)
        path = self.out / f"{many_files.recording_id(number)}-{rng.randrange(2):05}.byu.lz4"
        kind = rng.randrange(6)
        if kind == 0:
            self.template.write(self.out, many_files.recording_id(number), number + 1, rng.randrange(3))
        elif kind == 1:
            path.unlink(missing_ok=True)
        elif kind == 2:
            name = self.out / f"text{number}-00000.byu.lz4"
            self.foreign[name] = os.urandom(rng.randrange(200))
            name.write_bytes(self.foreign[name])
        elif kind == 3:
            harness.run("cp", path, self.out / f"copy{number}-00000.byu.lz4")
        elif kind == 4 and path.exists():
            with contextlib.suppress(FileNotFoundError):  # the daemon was faster
                path.rename(f"{path}{rng.choice(('.damaged', '.damaged.2', '.partial'))}")
        elif kind == 5:
            self.template.write(self.out, many_files.recording_id(number), 0, 0)

    def check(self):
        for path, data in self.foreign.items():
            equal(path.read_bytes(), data, path.name)


def delete_most(out, limit):
    """Deletes from the middle. No other file may be gone, since the rule holds."""
    for path in sorted(out.glob("2020*.lz4"))[10:]:
        path.unlink(missing_ok=True)
    left = set(out.glob("20*.lz4"))
    time.sleep(1)
    now = set(out.glob("20*.lz4"))
    if len(left | now) < limit - 1:
        equal(sorted(path.name for path in left - now), [], f"deleted below the limit of {limit}")


def one_round(directory, options, number):
    rng = options.rng("round", number)
    out = directory / "out"
    other = Other(rng, out, many_files.make(directory, out, OLD))
    limit = OLD + rng.randrange(-50, 100)
    argv = ("--source", "sim:rate=200k", "--set", "recording.record=on-demand", "-b", f"files:{limit}",
            "-b", "filesize:20K", "-o", out)
    with Daemon(*argv, socket=directory / "socket") as daemon:
        daemon.wait_ready()
        equal(http(daemon.socket, "/v1/recordings", "POST", "{}")[0], 201)
        other.start()
        time.sleep(SECONDS)
        other.is_over.set()
        other.join()
        delete_most(out, limit)
        equal(http(daemon.socket, "/v1/recordings/current", "DELETE")[0], 200)

        def is_right():
            ring = status(daemon.socket)["disk"]["ring"]
            with contextlib.suppress(FileNotFoundError):  # the rule still deletes
                return (ring["segments"], ring["bytes"]) == count(out)

        harness.wait_until(is_right, "the daemon knows what is there", timeout=60)
        now = status(daemon.socket)
        is_noticed = count(out, lambda path: True) != (now["disk"]["ring"]["segments"], now["disk"]["ring"]["bytes"])
        equal(sum(now["counts"]["lost"].values()), 0, "lost samples")
        equal(daemon.stop(), 0, daemon.err)
    other.check()
    harness.verify([path for path in harness.segments(out) if not path.name.startswith(("2020", "text", "copy"))])
    return other.changes, len(other.foreign), is_noticed


def run(options):
    rounds = options.each(lambda directory, number: one_round(directory, options, number),
                          [(number,) for number in range(options.rounds)])
    if not all(one[2] for one in rounds):
        options.violation("the control was not noticed")
    return {"recordings": len(rounds), "changes from outside": sum(one[0] for one in rounds),
            "foreign files among them, untouched": sum(one[1] for one in rounds),
            "controls noticed": f"{sum(one[2] for one in rounds)} of {len(rounds)}"}


if __name__ == "__main__":
    torture.main(run, short=6, long=200)
