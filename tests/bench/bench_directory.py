"""What a directory with many files costs a daemon: with none, 10,000 and 100,000 recordings, and with one of 100,000
segments. Prints figures; fails if a sample was lost, or if a search for the last match opened more than 3 files. Run by
`make bench-directory`; FILES=N is the largest number."""

import contextlib
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402
import many_files  # noqa: E402
from harness import Daemon, status  # noqa: E402

FILES = int(os.environ.get("FILES", "100000"))
SECONDS = float(os.environ.get("SECONDS", "20"))


def cpu_time(daemon):
    fields = pathlib.Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak(daemon):
    text = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) / 1024


def first_record(daemon, began):
    """Returns the seconds until a record is in a file."""
    while True:
        with contextlib.suppress(AssertionError):
            if status(daemon.socket)["counts"]["written"] != 0:
                return time.monotonic() - began
        time.sleep(0.005)


def is_listed(daemon, files):
    return (status(daemon.socket)["disk"]["ring"]["segments"] or 0) >= files


def time_of(socket, path):
    took = []
    for _ in range(5):
        began = time.monotonic()
        harness.equal(harness.http(socket, path)[0], 200)
        took.append(time.monotonic() - began)
    return sorted(took)[2]


def record(tmp, out, files):
    began = time.monotonic()
    with Daemon("--source", "sim:rate=3M", "-b", "filesize:20M", "-b", "files:1000000", "-o", out,
                socket=tmp / "socket") as daemon:
        first = first_record(daemon, began)
        harness.wait_until(lambda: is_listed(daemon, files), "the directory is listed")
        listed = time.monotonic() - began
        time.sleep(SECONDS)
        pages = time_of(daemon.socket, "/v1/recordings"), time_of(daemon.socket, "/v1/recordings?limit=100")
        counts = status(daemon.socket)["counts"]
        lost = sum(counts["dropped"][where] for where in ("buffer", "disk"))
        memory = peak(daemon)
        daemon.stop()
    print(f"  first record after {first:.2f} s, all files known after {listed:.2f} s, "
          f"{lost:,} of {counts['received']:,} samples lost in {SECONDS:.0f} s")
    harness.equal(lost, 0, "lost samples")
    print(f"  GET /v1/recordings {pages[0]:.3f} s, with limit=100 {pages[1]:.3f} s; peak {memory:.0f} MiB")


def idle(tmp, out, files):
    with Daemon("--source", "sim:rate=1k", "--set", "recording.record=on-demand", "-b", "files:1000000", "-o", out,
                socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: is_listed(daemon, files), "the directory is listed")
        time.sleep(2)
        before, began = cpu_time(daemon), time.monotonic()
        time.sleep(SECONDS)
        share = (cpu_time(daemon) - before) / (time.monotonic() - began)
        daemon.stop()
    print(f"  idle: {100 * share:.2f} % of a core")


def find_last(tmp, out):
    log = tmp / "strace"
    done = harness.run("strace", "-f", "-e", "trace=openat", "-o", log, harness.BUSCAP, "find", "--last", "1",
                       "0-ffffffff", out)
    opens = sum(".byu.lz4" in line for line in log.read_text().splitlines())
    print(f"  find --last 1: exit code {done.returncode}, {opens} files opened")
    assert opens <= 3, "find --last 1 opens more than 3 files"


def main():
    cases = [("an empty directory", 0, 1), (f"{FILES // 10:,} recordings", FILES // 10, 1),
             (f"{FILES:,} recordings", FILES, 1), (f"a recording of {FILES:,} segments", 1, FILES)]
    for name, recordings, segments in cases:
        with tempfile.TemporaryDirectory(prefix="buscap-bench-") as work:
            tmp = pathlib.Path(work)
            out = tmp / "out"
            many_files.make(tmp, out, recordings, segments)
            print(f"{name}:", flush=True)
            idle(tmp, out, recordings * segments)
            record(tmp, out, recordings * segments)
            find_last(tmp, out)


if __name__ == "__main__":
    main()
