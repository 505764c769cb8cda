"""Prints the latency of status requests while the simulated bus is recorded: without other clients
and with a thousand bad ones; as a ratio to that without. Run by `make bench`."""

import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import crowd  # noqa: E402
import harness  # noqa: E402

SECONDS = float(os.environ.get("SECONDS", "5"))
RATE = os.environ.get("RATE", "3M")


def latencies(path):
    """Requests the status every 10 ms. Returns the latencies in milliseconds, sorted."""
    took = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        start = time.monotonic()
        if not harness.ask(path):
            continue
        took.append((time.monotonic() - start) * 1e3)
        time.sleep(0.01)
    return sorted(took)


def row(name, took, base, dropped):
    ratio = statistics.median(took) / statistics.median(base)
    print(f"  {name:36} {ratio:5.2f} x; median {statistics.median(took):7.2f} ms, 99 % {took[len(took) * 99 // 100]:7.2f} ms, "
          f"max {took[-1]:7.2f} ms, {len(took)} requests; {dropped} samples dropped", flush=True)


def dropped(daemon):
    counts = daemon.status()["counts"]["dropped"]
    return counts["buffer"] + counts["disk"]


def main():
    print(f"status requests while recording {RATE} samples/s:")
    with tempfile.TemporaryDirectory(prefix="buscap-bench-") as work:
        path = pathlib.Path(work, "socket")
        with harness.Daemon("--source", f"sim:rate={RATE}", "-o", f"{work}/out", "-b", "filesize:64M", "-b", "files:2",
                            socket=path) as daemon:
            daemon.wait_ready()
            base = latencies(path)
            row("no other clients", base, base, dropped(daemon))
            with crowd.Running(path, 1000):
                time.sleep(1)
                took = latencies(path)
            row("1,000 bad clients of the same user", took, base, dropped(daemon))
            if os.geteuid() == 0:
                os.chmod(work, 0o755)
                os.chmod(path, 0o666)
                with crowd.Running(path, 1000, user=65534, group=65534, extra_groups=[]):
                    time.sleep(1)
                    took = latencies(path)
                row("1,000 bad clients of another user", took, base, dropped(daemon))
            daemon.stop()


if __name__ == "__main__":
    main()
