"""How long the status takes to be answered while the simulated bus is recorded, alone and with a thousand bad
clients. Run by `make bench`; nothing is asserted."""

import os
import pathlib
import statistics
import tempfile
import time

import crowd
import harness

SECONDS = float(os.environ.get("SECONDS", "5"))
RATE = os.environ.get("RATE", "3M")


def latencies(path):
    """Of a status each 10 ms, in milliseconds, sorted."""
    took = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        start = time.monotonic()
        if not harness.ask(path):
            continue
        took.append((time.monotonic() - start) * 1e3)
        time.sleep(0.01)
    return sorted(took)


def row(name, took, dropped):
    print(f"  {name:36} median {statistics.median(took):7.2f} ms, 99 % {took[len(took) * 99 // 100]:7.2f} ms, "
          f"most {took[-1]:7.2f} ms, of {len(took)}; {dropped} samples dropped", flush=True)


def dropped(daemon):
    counts = daemon.status()["counts"]["dropped"]
    return counts["buffer"] + counts["disk"]


def main():
    print(f"the status of a daemon that records {RATE} samples a second:")
    with tempfile.TemporaryDirectory(prefix="buscap-bench-") as work:
        path = pathlib.Path(work, "socket")
        with harness.Daemon("--source", f"sim:rate={RATE}", "-o", f"{work}/out", "-b", "filesize:64M", "-b", "files:2",
                            socket=path) as daemon:
            daemon.wait_ready()
            row("alone", latencies(path), dropped(daemon))
            with crowd.Running(path, 1000):
                time.sleep(1)
                took = latencies(path)
            row("with 1,000 bad clients of its user", took, dropped(daemon))
            if os.geteuid() == 0:
                os.chmod(work, 0o755)
                os.chmod(path, 0o666)
                with crowd.Running(path, 1000, user=65534, group=65534, extra_groups=[]):
                    time.sleep(1)
                    took = latencies(path)
                row("with 1,000 of another user", took, dropped(daemon))
            daemon.stop()


if __name__ == "__main__":
    main()
