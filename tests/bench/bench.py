"""Benchmarks. Each figure is a ratio to another program that runs in turn with ours, because absolute times depend on
the machine. CPU time is the user and system time of a process and its children; the median of all runs is printed."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILD", "build")
RUNS = int(os.environ.get("RUNS", "5"))
SAMPLES = int(os.environ.get("SAMPLES", "12000000"))


def cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command):
    """Runs a command. Returns CPU and wall time in seconds."""
    before, start = cpu(), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return cpu() - before, time.monotonic() - start


def in_turns(*jobs):
    """Runs the jobs in turn, RUNS times after one warm-up. Each job removes its earlier output. Returns the median CPU
    and wall time of each job."""
    times = [[] for _ in jobs]
    for turn in range(RUNS + 1):
        for job, results in zip(jobs, times):
            seconds = job()
            if turn != 0:
                results.append(seconds)
    return [(statistics.median(t[0] for t in took), statistics.median(t[1] for t in took))
            for took in times]


def clear(directory):
    for name in os.listdir(directory):
        os.unlink(os.path.join(directory, name))


def size_of(directory):
    return sum(entry.stat().st_size for entry in os.scandir(directory) if entry.name.endswith(".lz4"))


def record(source, directory, *options):
    def job():
        clear(directory)
        return run([f"{BUILD}/buscapd", "--once", "--source", f"file:{source}", "-o", directory,
                    *options])
    return job


def bytes_read(command):
    """Returns the number of bytes that a command read, as counted by the kernel."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with open(f"/proc/{process.pid}/io") as io:
        count = int(io.read().split("rchar:")[1].split()[0])
    process.wait()
    return count


def cut(segment):
    """Compares cutting out a part of a recording with unpacking all of it."""
    def ours(*options):
        return [f"{BUILD}/buscap", "cut", *options, segment, "-O", "xdin"]

    narrow, unpacked = in_turns(lambda: run(ours("--addr", "1000000-100ffff")),
                                lambda: run(["lz4", "-dc", segment]))
    print(f"  cut of 64 KiB of addresses                {narrow[0]:6.3f} s CPU: "
          f"{narrow[0] / unpacked[0]:.2f} x lz4 -dc of the segment ({unpacked[0]:.3f} s)")
    size, middle = os.path.getsize(segment), SAMPLES // 2
    count = bytes_read(ours("-n", f"{middle}-{middle + 999}"))
    print(f"  cut of 1000 records from the middle: {count / 1e6:.2f} MB read of {size / 1e6:.1f} MB "
          f"({100 * count / size:.1f} %)")


def main():
    with tempfile.TemporaryDirectory(prefix="buscap-bench-") as work:
        bcp1, byu = f"{work}/bus.bcp1", f"{work}/bus.byu"
        out, two = f"{work}/out", f"{work}/two"
        os.mkdir(out)
        os.mkdir(two)
        for path, form in ((bcp1, "bcp1"), (byu, "byu")):
            subprocess.run([f"{BUILD}/buscap", "sim", "--seed", "1", "--count", str(SAMPLES), "-O",
                            form, "-o", path], check=True)
        plain, packed = os.path.getsize(byu), f"{work}/bus.lz4"
        print(f"replay of {SAMPLES} samples of the simulated bus ({plain / 1e6:.0f} MB of records), "
              f"median of {RUNS} runs")

        def lz4(*options):
            return lambda: run(["lz4", "-1", "-f", "-q", *options, byu, packed])

        ours, default, no_crc = in_turns(record(bcp1, out), lz4(), lz4("--no-frame-crc"))
        print(f"  buscapd, bcp1 file to sealed segments  {ours[0]:6.3f} s CPU, "
              f"{size_of(out) / 1e6:7.1f} MB")
        packed_bytes = os.path.getsize(packed)
        for name, peer in (("lz4 -1", default), ("lz4 -1 --no-frame-crc", no_crc)):
            print(f"  {name:30} of its BYU file {peer[0]:6.3f} s: "
                  f"{ours[0] / peer[0]:.2f} x its CPU time, "
                  f"{size_of(out) / packed_bytes:.3f} x its size")

        clear(two)
        record(byu, two)()
        cut(next(entry.path for entry in os.scandir(two) if entry.name.endswith(".lz4")))

        one, both = in_turns(record(bcp1, out, "--set", "pipeline.workers=1"),
                             record(bcp1, two, "--set", "pipeline.workers=2"))
        print(f"  two workers compared with one: {one[1] / both[1]:.2f} x as fast "
              f"({both[1]:.3f} s, {one[1]:.3f} s wall; {os.cpu_count()} cores)")

        whole = [os.path.join(out, name) for name in os.listdir(out) if name.endswith(".lz4")]
        peer, totals, stats = in_turns(
            lambda: run(["lz4", "-dcm", *whole]), lambda: run([f"{BUILD}/buscap", "stats", "--totals", *whole]),
            lambda: run([f"{BUILD}/buscap", "stats", *whole]))
        print(f"  buscap stats of the segments, compared with lz4 -dc ({peer[0]:.3f} s CPU):")
        for name, times in (("--totals", totals), ("with footprint, reuse and time", stats)):
            print(f"    {name:32} {times[0]:6.3f} s: {times[0] / peer[0]:.2f} x its CPU time")
    sys.stdout.flush()
    for name in ("decode", "text", "usb_source", "columns", "taps"):
        subprocess.run([f"{BUILD}/tests/bench/bench_{name}"], check=True)
    subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench_clients.py")],
                   check=True)


if __name__ == "__main__":
    main()
