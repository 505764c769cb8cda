"""Compresses records of every character at every level, and decodes them with LZ4: tests/reliability/encoder.c. A round
is 1,000 inputs of up to 4 KiB and one whole chunk. With SAN=address,undefined, accesses beyond the documented room are
reported."""

import subprocess

import torture

from harness import BUILD

PROGRAM = BUILD / "tests/reliability/encoder"
PART = 50  # rounds per process
LEVELS = 5


def part(_, first, rounds):
    done = subprocess.run([PROGRAM, str(first * 1001), str(rounds * 1000), str(rounds)], capture_output=True, text=True)
    assert done.returncode == 0, f"rounds {first} to {first + rounds - 1}: {done.stdout}{done.stderr[-3000:]}"
    return rounds


def run(options):
    first = options.seed * 1_000_000
    parts = [(first + at, min(PART, options.rounds - at)) for at in range(0, options.rounds, PART)]
    rounds = sum(options.each(part, parts))
    return {"round trips of up to 4 KiB, per level": rounds * 1000, "round trips of whole chunks, per level": rounds,
            "levels": LEVELS}


if __name__ == "__main__":
    torture.main(run, short=100, long=10_000)
