#!/usr/bin/env python3
"""Counts instructions per record with callgrind, which do not depend on the machine or its load.

    instructions.py            compare with instructions.txt; exit code 1 if a count is more than 5 % higher
    instructions.py --write    write instructions.txt

Each program processes N and 2 N records. The difference divided by N excludes the cost of starting.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
COMMITTED = pathlib.Path(__file__).with_suffix(".txt")
RECORDS = 87_381 * 2
GROWTH = 1.05


def run(*argv):
    subprocess.run([str(a) for a in argv], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=900)


def instructions(directory, *argv):
    """Returns the instructions of one run of a program."""
    out = directory / "callgrind"
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *map(str, argv)],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=900)
    return int(re.search(rb"Collected : (\d+)", done.stderr)[1])


def make_inputs(directory, n):
    """Writes the simulated bus in the formats that the programs below read."""
    def sim(kind):
        path = directory / f"{n}.{kind}"
        run(BUILD / "buscap", "sim", "--seed", 1, "--count", n, "-O", kind, "-o", path)
        return path

    files = {kind: sim(kind) for kind in ("bcp1", "byu")}
    run(BUILD / "buscapd", "--once", "--source", f"file:{files['bcp1']}", "-o", directory / f"{n}-segments")
    files["segment"] = next((directory / f"{n}-segments").glob("*.byu.lz4"))
    files["din"] = directory / f"{n}.din"
    run(BUILD / "buscap", "convert", "-O", "din", "-o", files["din"], files["byu"])
    return files


def record(source, out, compression):
    return (BUILD / "buscapd", "--once", "--source", f"file:{source}", "-o", out, "--set",
            f"output.compression={compression}")


# Name: command, from the inputs and an output path.
WORKLOADS = {
    "record bcp1": lambda f, out: record(f["bcp1"], out, "default"),
    "record bcp1, lz4": lambda f, out: record(f["bcp1"], out, "lz4"),
    "record bcp1, fast": lambda f, out: record(f["bcp1"], out, "fast"),
    "record bcp1, dense": lambda f, out: record(f["bcp1"], out, "dense"),
    "record segment": lambda f, out: (BUILD / "buscapd", "--once", "--source", f"file:{f['segment']}", "-o", out),
    "simulate": lambda f, out: (BUILD / "buscap", "sim", "--seed", "1", "--count", f["records"], "-O", "bcp1", "-o", out),
    "read bcp1": lambda f, out: (BUILD / "buscap", "convert", "-O", "byu", "-o", out, f["bcp1"]),
    "read segment": lambda f, out: (BUILD / "buscap", "convert", "-O", "byu", "-o", out, f["segment"]),
    "verify segment": lambda f, out: (BUILD / "buscap", "verify", f["segment"]),
    "stats segment": lambda f, out: (BUILD / "buscap", "stats", "--full", f["segment"]),
    "cut segment": lambda f, out: (BUILD / "buscap", "cut", "--type", "write", "-O", "byu", "-o", out, f["segment"]),
    "dump segment": lambda f, out: (BUILD / "buscap", "dump", f["segment"]),
    "read din": lambda f, out: (BUILD / "buscap", "convert", "-I", "din", "-O", "byu", "-o", out, f["din"]),
    "write csv": lambda f, out: (BUILD / "buscap", "convert", "-O", "csv", "-o", out, f["byu"]),
}


def count():
    counted = {}
    with tempfile.TemporaryDirectory(prefix="buscap-instructions-") as name:
        directory = pathlib.Path(name)
        inputs = {n: {**make_inputs(directory, n), "records": n} for n in (RECORDS, 2 * RECORDS)}
        for what, command in WORKLOADS.items():
            few, many = (
                instructions(directory, *command(files, directory / f"out-{n}-{what.replace(' ', '-').replace(',', '')}"))
                for n, files in inputs.items())
            counted[what] = (many - few) / RECORDS
            print(f"{what:20} {counted[what]:8.1f} instructions per record", flush=True)
    return counted


def main():
    # On one core, no threads decode ahead: whether they start depends on the number of chunks.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    counted = count()
    if "--write" in sys.argv:
        COMMITTED.write_text("".join(f"{what}: {n:.1f}\n" for what, n in counted.items()))
        return 0
    before = {what: float(n) for what, n in (line.split(": ") for line in COMMITTED.read_text().splitlines())}
    grown = [what for what, n in counted.items() if n > GROWTH * before.get(what, n)]
    for what in grown:
        print(f"{what}: {counted[what]:.1f} instructions per record, {before[what]:.1f} before: "
              f"{100 * (counted[what] / before[what] - 1):.0f} % more")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
