"""Prints how long a sample takes from its arrival until it is durable on the disk, and the peak memory, at several
rates of the simulated bus. BUSCAPD=path measures another program. Run by `make bench`."""

import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import harness  # noqa: E402

SECONDS = float(os.environ.get("SECONDS", "5"))
PROGRAM = os.environ.get("BUSCAPD", harness.BUSCAPD)


def observe(path):
    """Requests the status every 5 ms. Returns (time, records that have arrived, records that are durable)."""
    seen = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        counts = harness.status(path)["counts"]
        seen.append((time.monotonic(), counts["written"] + counts["in_flight"], counts["durable"]))
        time.sleep(0.005)
    return seen


def latencies(seen):
    """Returns the time in seconds until the records of each observation were durable, sorted."""
    took = []
    later = 0
    for when, arrived, _ in seen:
        while later < len(seen) and seen[later][2] < arrived:
            later += 1
        if later == len(seen):
            break
        took.append(seen[later][0] - when)
    return sorted(took)


def measure(rate):
    with tempfile.TemporaryDirectory(prefix="buscap-bench-") as work:
        path = pathlib.Path(work, "socket")
        with harness.Daemon("--source", f"sim:rate={rate}", "-o", f"{work}/out", "-b", "filesize:64M", "-b", "files:2",
                            program=PROGRAM, socket=path) as daemon:
            daemon.wait_ready()
            seen = observe(path)
            took = latencies(seen)
            memory = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
            peak = int(re.search(r"VmHWM:\s+(\d+) kB", memory)[1]) / 1024
            daemon.stop()
        rate_seen = (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])
        print(f"  {rate:>4} samples/s ({rate_seen / 1e6:.3f} M arrived): median {statistics.median(took) * 1e3:6.0f} ms, "
              f"longest {took[-1] * 1e3:6.0f} ms; {peak:.0f} MiB", flush=True)


def main():
    print("from a sample's arrival until it is durable, and peak memory:")
    for rate in ("1k", "1M", "10M"):
        measure(rate)


if __name__ == "__main__":
    main()
