"""Benchmarks. Each figure is a ratio to another program that runs in turn with ours, because absolute times depend on
the machine. CPU time is the user and system time of a process and its children; the median of all runs is printed."""

import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILD", "build")
RUNS = int(os.environ.get("RUNS", "5"))
SAMPLES = int(os.environ.get("SAMPLES", "24000000"))
REFERENCES = int(os.environ.get("REFERENCES", "4000000"))  # of each program
# A BYU trace of a real Pentium II.
PENTIUM = os.environ.get("PENTIUM")


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
    return sum(entry.stat().st_size for entry in os.scandir(directory) if ".byu." in entry.name)


def record(source, directory, *options, prefix=()):
    def job():
        clear(directory)
        return run([*prefix, f"{BUILD}/buscapd", "--once", "--source", f"file:{source}", "-o", directory, *options])
    return job


def packed_size(path, *options):
    return len(subprocess.run(["lz4", "-1", "-c", "-q", *options, path], check=True, stdout=subprocess.PIPE).stdout)


def sim(path, *args):
    subprocess.run([f"{BUILD}/buscap", "sim", "-o", path, *map(str, args)], check=True)
    return path


def programs(work):
    """Traces of some installed programs."""
    source = f"{work}/tree.c"
    with open(source, "w") as file:
        file.write("struct n { struct n *l, *r; int k; };\n" + "".join(
            f"int f{i}(struct n *t, int k) {{ while (t && t->k != k) t = k < t->k + {i} ? t->l : t->r; return !!t; }}\n"
            for i in range(60)))
    cc1 = subprocess.run(["cc", "-print-prog-name=cc1"], check=True, capture_output=True, text=True).stdout.strip()
    commands = {
        "gzip": ["gzip", "-c", f"{BUILD}/buscap"],
        "cc1": [cc1, "-quiet", "-O1", source, "-o", "/dev/null"],
        "perl": ["perl", "-e", "for (1..30000) { $h{$_ % 997} .= chr(65 + $_ % 26) } print map { length } values %h"],
        "python3": [sys.executable, "-S", "-c", "print(len({i * 7 % 1009: str(i) for i in range(20000)}))"],
    }
    traces = []
    for name, command in commands.items():
        if not shutil.which(command[0]):
            print(f"  without {name}: it is not installed")
            continue
        path = f"{work}/{name}.lackey"
        # Lackey writes to descriptor 9; head ends the program when there is enough.
        subprocess.run(["bash", "-c", f'valgrind --tool=lackey --trace-mem=yes --log-fd=9 "$@" 9>&1 >/dev/null 2>/dev/null '
                        f'| head -n {REFERENCES} >"$0"', path, *command], check=True)
        traces.append(path)
    return traces


def workloads(work):
    """Yields (name, bcp1 file or None, the same as BYU records, target: size against lz4 -1)."""
    traces = programs(work) if shutil.which("valgrind") and shutil.which("cc") else []
    if traces:
        # Each program runs several times, so that starting and stopping the daemon does not count; the caches leave
        # about a tenth.
        for name, stem, size, options in (("programs, caches off", "complete", 0.77, ["--no-caches", *2 * traces]),
                                          ("programs, behind caches", "cached", 0.90, 12 * traces)):
            yield (name, sim(f"{work}/{stem}.bcp1", "-O", "bcp1", *options),
                   sim(f"{work}/{stem}.byu", "-O", "byu", *options), size)
    else:
        print("  without programs: needs valgrind and a C compiler")
    if PENTIUM:
        whole = pathlib.Path(PENTIUM).read_bytes()
        path = f"{work}/pentium.byu"
        with open(path, "wb") as out:
            for _ in range(SAMPLES // (len(whole) // 12) + 1):
                out.write(whole[:len(whole) // 12 * 12])
        yield "a real Pentium II", None, path, 0.89
    else:
        print("  without a real Pentium II: set PENTIUM to a BYU trace of one")
    yield ("simulated bus", sim(f"{work}/bus.bcp1", "-O", "bcp1", "-n", SAMPLES),
           sim(f"{work}/bus.byu", "-O", "byu", "-n", SAMPLES), 0.76)
    if traces:
        constant = f"{work}/constant.bcp1"
        subprocess.run([f"{BUILD}/buscap", "convert", "-I", "lackey", "-O", "bcp1:map=pages", "-o", constant, traces[0]],
                       check=True, stderr=subprocess.DEVNULL)
        byu = f"{work}/constant.byu"
        subprocess.run([f"{BUILD}/buscap", "convert", "-O", "byu", "-o", byu, constant], check=True)
        yield "gzip, constant times", constant, byu, 1.02


def compare(name, bcp1, byu, size_target, out, packed):
    """Prints a row of the table."""
    def lz4(*options):
        return lambda: run(["lz4", "-1", "-f", "-q", *options, byu, packed])

    core = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    default, no_crc, ours, one, alone, *samples = in_turns(
        lz4(), lz4("--no-frame-crc"),
        record(byu, out, "--set", "pipeline.workers=2"), record(byu, out, "--set", "pipeline.workers=1"),
        record(byu, out, prefix=core), *([record(bcp1, out, "--set", "pipeline.workers=2")] if bcp1 else []))
    as_bcp1 = f"{samples[0][0] / default[0]:5.2f} x (0.80)" if bcp1 else " " * 14
    print(f"  {name:24} {os.path.getsize(byu) / 12e6:6.1f} M  {ours[0] / default[0]:5.2f} x (0.70)  {as_bcp1}  "
          f"{ours[0] / no_crc[0]:5.2f} x (0.85)  {size_of(out) / packed_size(byu):5.3f} x ({size_target:.2f})  "
          f"{alone[1] / ours[1]:5.2f} x (1.70)  {one[1] / ours[1]:5.2f} x", flush=True)


def compare_zstd(name, byu, out, packed):
    """Prints the CPU time and size of recording with zstd."""
    lz4, zstd, default, ours = in_turns(
        lambda: run(["lz4", "-1", "-f", "-q", byu, packed]),
        lambda: run(["zstd", "-1", "-T1", "-f", "-q", byu, "-o", packed]),
        record(byu, out), record(byu, out, "--set", "output.compression=zstd"))
    size, zstd_size = size_of(out), len(subprocess.run(["zstd", "-1", "-c", "-q", byu], check=True, capture_output=True).stdout)
    record(byu, out)()
    print(f"  {name:24} CPU {ours[0] / lz4[0]:5.2f} x lz4 -1 {ours[0] / zstd[0]:5.2f} x zstd -1 "
          f"{ours[0] / default[0]:5.2f} x default   size {size / packed_size(byu):5.3f} x lz4 -1 "
          f"{size / zstd_size:5.3f} x zstd -1 {size / size_of(out):5.3f} x default", flush=True)


def same_work(byu, out, packed):
    """Compares recording a file with programs that only copy or compress it, one core each."""
    core = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    peers = {name: [*core, *command] for name, command in {
        "cat": ["cat", byu], "lz4 -1": ["lz4", "-1", "-f", "-q", byu, packed],
        "zstd -1": ["zstd", "-1", "-T1", "-f", "-q", byu, "-o", packed], "gzip -1": ["gzip", "-1", "-c", byu],
        "sigrok-cli to .sr": ["sigrok-cli", "-i", byu, "-I", "binary:numchannels=8", "-O", "srzip", "-o", packed],
    }.items() if shutil.which(command[0])}
    print("recording the simulated bus on one core: 1; CPU time of programs that have less to do:")
    ours, *times = in_turns(record(byu, out, prefix=core), *(lambda c=c: run(c) for c in peers.values()))
    for name, (cpu_time, _) in zip(peers, times):
        print(f"  {name:40} {cpu_time / ours[0]:5.2f} x", flush=True)


def bytes_read(command):
    """Returns the number of bytes that a command read, as counted by the kernel."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with open(f"/proc/{process.pid}/io") as io:
        count = int(io.read().split("rchar:")[1].split()[0])
    process.wait()
    return count


def reading(bcp1, work):
    """Compares the commands that read a recording with unpacking it."""
    def recorded(name, *options):
        os.mkdir(f"{work}/{name}")
        record(bcp1, f"{work}/{name}", *options)()
        return sorted(entry.path for entry in os.scandir(f"{work}/{name}") if entry.name.endswith(".lz4"))

    segments, other = recorded("a"), recorded("b", "--set", "output.compression=fast")

    def ours(*command):
        return lambda: run([f"{BUILD}/buscap", *command, *segments])

    def convert(output):
        return ours("convert", "-O", output, "-o", "/dev/null")

    commands = {
        "verify": ours("verify"), "stats": ours("stats"), "stats --full": ours("stats", "--full"),
        "cut of 64 KiB of addresses": ours("cut", "--addr", "1000000-100ffff", "-O", "xdin"),
        "convert to BYU": convert("byu"), "convert to bcp1": convert("bcp1"),
        "convert to csv": convert("csv"), "convert to ndjson": convert("ndjson"),
        "dump": lambda: run([f"{BUILD}/buscap", "dump", segments[0]]),
        "find --count of what each chunk has": ours("find", "--count", "--type", "write", "0-ffffffff"),
        "diff with an equal recording": lambda: run([f"{BUILD}/buscap", "diff", segments[0], other[0]]),
    }
    print("reading those segments, CPU time compared with lz4 -dc of them:")
    peer, *times = in_turns(lambda: run(["lz4", "-dcm", *segments]), *commands.values())
    for name, (cpu_time, wall) in zip(commands, times):
        print(f"  {name:40} {cpu_time / peer[0]:5.2f} x CPU time, {wall / peer[1]:5.2f} x time")
    size, middle = sum(map(os.path.getsize, segments)), SAMPLES // 2
    count = bytes_read([f"{BUILD}/buscap", "cut", "--records", f"{middle}-{middle + 999}", *segments, "-O", "xdin"])
    print(f"  cut of 1000 records from the middle: {count / 1e6:.2f} MB read of {size / 1e6:.1f} MB "
          f"({100 * count / size:.1f} %)")


def main():
    with tempfile.TemporaryDirectory(prefix="buscap-bench-") as work:
        out, packed = f"{work}/out", f"{work}/packed.lz4"
        os.mkdir(out)
        rows = list(workloads(work))
        print(f"recording a file to sealed segments, median of {RUNS} runs; in brackets: the target\n"
              f"  {'':24} {'records':>8}  {'CPU: lz4 -1':>14}  {'of bcp1':>14}  {'--no-frame-crc':>14}  "
              f"{'size: lz4 -1':>14}  {'2 cores : 1':>14}  2 workers : 1")
        for row in rows:
            compare(*row, out, packed)
        print("the same with compression = zstd:")
        for name, _, byu, _ in rows:
            compare_zstd(name, byu, out, packed)
        files = [word for name, _, byu, _ in rows for word in (name, byu)]
        sys.stdout.flush()
        subprocess.run([f"{BUILD}/tests/bench/bench_encoder", *files], check=True)

        same_work(f"{work}/bus.byu", out, packed)
        reading(f"{work}/bus.bcp1", work)
    sys.stdout.flush()
    for name in ("decode", "text", "usb_source"):
        subprocess.run([f"{BUILD}/tests/bench/bench_{name}"], check=True)
    for name in ("latency", "clients"):
        subprocess.run([sys.executable, pathlib.Path(__file__).with_name(f"bench_{name}.py")], check=True)


if __name__ == "__main__":
    main()
