#!/usr/bin/env python3
"""How long `buscap find` takes to find the only record in a page, in a recording of GIGABYTES (20) made here: the
simulated bus, with that one record in its middle. Next to it, the same search by `buscap cut` and by
`lz4 -dc`, od and awk, both in one segment only, as if the others took as long per byte.

The recording is made in DIR (default: a temporary directory) and deleted at the end."""

import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
GIGABYTES = float(os.environ.get("GIGABYTES", "20"))
RUNS = int(os.environ.get("RUNS", "5"))
BYTES_PER_RECORD = 3.1  # of the simulated bus, in a segment
PAGE = 0x12345000  # the simulated processors never touch it
SEGMENT = "1G"
SIMULATED = 24_000_000  # records, which are repeated


def make_recording(directory):
    """Records the simulated bus, over and over, with one record in its middle. Returns the number of that record."""
    half = int(GIGABYTES * 1e9 / BYTES_PER_RECORD / 2)
    recorder = subprocess.Popen(
        [BUILD / "buscapd", "--once", "--source", "file:-,format=byu,clock_hz=66000000", "-o", directory,
         "-b", f"filesize:{SEGMENT}", "--no-socket"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    number = 0
    for seed in (1, 2):
        bus = pathlib.Path(directory, "bus.byu")
        subprocess.run([BUILD / "buscap", "sim", "-O", "byu", "-s", str(seed), "-n", str(min(half, SIMULATED)), "-o", bus],
                       check=True, stderr=subprocess.DEVNULL)
        size, left = bus.stat().st_size, half * 12
        with open(bus, "rb") as file:
            while left > 0:
                at = 0
                while at < size:
                    at += os.sendfile(recorder.stdin.fileno(), file.fileno(), at, size - at)
                left -= size
                number += size // 12 if seed == 1 else 0
        bus.unlink()
        if seed == 1:
            recorder.stdin.write(struct.pack("<I4BI", PAGE + 0x123 * 4, 3, 4, 0, 0, 5))
            recorder.stdin.flush()
    recorder.stdin.close()
    if recorder.wait() != 0:
        sys.exit("bench_find: the recorder failed")
    return number


def locate(path):
    """Returns the offsets of a segment's chunks, and for each the length of its header."""
    with open(path, "rb") as file:
        file.seek(-32, os.SEEK_END)
        file.seek(struct.unpack("<Q", file.read(8))[0])
        _, _, _, rows = struct.unpack("<4I", file.read(16))
        file.seek(48, os.SEEK_CUR)
        table = file.read(264 * rows)
    return {at: 272 + pages + events for at, pages, events in struct.iter_unpack("<Q26xHI224x", table)}


def count_reads(argv, segments):
    """Returns how many chunks, and how many headers of other chunks, a search reads, and the bytes of the chunks."""
    headers = {os.path.realpath(path): locate(path) for path in segments}
    with tempfile.NamedTemporaryFile("r") as log:
        subprocess.run(["strace", "-qq", "-f", "-y", "-s", "0", "-e", "trace=read,pread64", "-o", log.name, *argv],
                       check=True, stdout=subprocess.DEVNULL)
        reads = re.findall(r"<([^>]*)>.*, (\d+)\) += (\d+)$", log.read(), re.M)
    sizes = {}
    for path, at, bytes_ in reads:
        length = headers.get(path, {}).get(int(at))
        if length is not None:
            sizes.setdefault((path, at), []).append((int(bytes_), length))
    chunks = {place: max(read) for place, read in sizes.items() if max(read)[0] > max(read)[1]}
    return len(chunks), len(sizes) - len(chunks), sum(bytes_ for bytes_, _ in chunks.values())


def run(*argv):
    """Runs a program. Returns its output, and wall time, CPU time, memory in MiB and what it read in MB."""
    read, write = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.closerange(3, 256)
        os.execv(argv[0], [os.fspath(a) for a in argv])
    os.close(write)
    output = b""
    with os.fdopen(read, "rb") as pipe:
        output = pipe.read()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    taken = time.monotonic() - start
    io = dict(line.split(": ") for line in pathlib.Path(f"/proc/{child}/io").read_text().splitlines())
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"bench_find: {argv[0]} failed")
    return output, taken, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, int(io["rchar"]) / 1e6


def main():
    if shutil.disk_usage(os.environ.get("DIR", tempfile.gettempdir())).free < GIGABYTES * 1.1e9:
        sys.exit(f"bench_find: needs {GIGABYTES * 1.1:.0f} GB of free space; set DIR, or a smaller GIGABYTES")
    with tempfile.TemporaryDirectory(prefix="buscap-find-", dir=os.environ.get("DIR")) as directory:
        number = make_recording(directory)
        segments = sorted(pathlib.Path(directory).glob("*.byu.lz4"))
        size = sum(path.stat().st_size for path in segments)
        print(f"recording: {size / 1e9:.1f} GB in {len(segments)} segments")
        argv = [BUILD / "buscap", "find", "--last", "1", f"{PAGE:x}-{PAGE + 0xFFF:x}", directory]
        results = [run(*argv) for _ in range(RUNS + 1)][1:]
        output, wall, cpu, memory, read = sorted(results, key=lambda r: r[1])[len(results) // 2]
        if output.split()[0] != str(number).encode():
            sys.exit(f"bench_find: found {output!r}, wanted record {number}")
        print(f"find --last 1: {wall:.3f} s, CPU {cpu:.3f} s, {memory:.0f} MiB, {read:.1f} MB read")
        chunks, headers, chunk_bytes = count_reads(argv, segments)
        print(f"  of {sum(map(len, map(locate, segments))):,} chunks it read {chunks} ({chunk_bytes / 1e6:.1f} MB) and "
              f"the headers of {headers} others; the rest are tables")
        one = segments[0]
        share = size / one.stat().st_size
        _, cut, *_ = run(BUILD / "buscap", "cut", "--addr", f"{PAGE:x}-{PAGE + 0xFFF:x}", "-o", "/dev/null", "-O", "byu", one)
        print(f"buscap cut --addr: {cut * share / wall:,.0f} x as long")
        pattern = f"^ {PAGE >> 12:05x}"
        start = time.monotonic()
        subprocess.run(f"lz4 -dcm '{one}' | head -c 240000000 | od -An -v -w12 -tx4 | awk '/{pattern}/'", shell=True,
                       check=True, stdout=subprocess.DEVNULL)
        plain = 12 * number * 2
        print(f"lz4 -dc | od | awk: {(time.monotonic() - start) * plain / 240e6 / wall:,.0f} x as long")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
