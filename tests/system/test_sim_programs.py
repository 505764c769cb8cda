"""`buscap sim TRACE...`: the accesses of programs on the simulated bus, compared with a model of the processor's caches
that is written here from the text of capture/sim/sim_bus.h."""

import random
import struct

import pytest

from harness import BUSCAP, equal, need, run
from test_lackey_bus import Pages

FETCH, READ, WRITE = 0, 1, 3
TURN = 100_000


class Cache:
    """8 KiB: 128 sets of two lines of 32 bytes, the most recently used first."""

    def __init__(self):
        self.sets = [[] for _ in range(128)]

    def find(self, address):
        ways = self.sets[address // 32 % 128]
        for way in ways:
            if way[0] == address // 32:
                ways.remove(way)
                ways.insert(0, way)
                return way
        return None

    def insert(self, address):
        """Returns the line that is evicted, or None."""
        ways = self.sets[address // 32 % 128]
        ways.insert(0, [address // 32, False])
        return ways.pop() if len(ways) > 2 else None


class Processor:
    """Its cycles are (address, type, size, attr)."""

    def __init__(self, has_caches):
        self.has_caches = has_caches
        self.code, self.data = Cache(), Cache()
        self.prefetched = None
        self.cycles = []

    def fetch(self, address, _):
        if self.has_caches:
            if self.code.find(address) is None:
                self.code.insert(address)
                self.cycles.append((address & ~7, FETCH, 32, 3))
        elif self.prefetched != address & ~7:
            self.prefetched = address & ~7
            self.cycles.append((address & ~7, FETCH, 8, 0))

    def read(self, address, size):
        if not self.has_caches:
            self.cycles.append((address, READ, size, 0))
        elif self.data.find(address) is None:
            self.cycles.append((address & ~7, READ, 32, 3))
            evicted = self.data.insert(address)
            if evicted is not None and evicted[1]:
                self.cycles.append((evicted[0] * 32, WRITE, 32, 3))

    def write(self, address, size):
        line = self.data.find(address) if self.has_caches else None
        if line is not None:
            line[1] = True
        else:
            self.cycles.append((address, WRITE, size, 1))


def pieces(line):
    """The accesses of a line of lackey, in one page each."""
    letter, place = line.split()
    address, size = place.split(",")
    address, end = int(address, 16), int(address, 16) + int(size)
    for kind in {"I": "I", "L": "L", "S": "S", "M": "LS"}[letter]:
        at = address
        while at < end:
            piece = min((at & ~4095) + 4096, end) - at
            yield kind, at, piece
            at += piece


def model(programs, seed, has_caches):
    """The cycles of one processor that runs these programs in turn."""
    processor, pages = Processor(has_caches), Pages(seed)
    left = [list(p for line in lines for p in pieces(line)) for lines in programs]
    while any(left):
        for process, accesses in enumerate(left):
            for kind, at, size in accesses[:TURN]:
                physical = pages.physical(at | process << 64)
                while size:
                    n = min(8 - physical % 8, size)
                    {"I": processor.fetch, "L": processor.read, "S": processor.write}[kind](physical, n)
                    physical, size = physical + n, size - n
            del accesses[:TURN]
    return processor.cycles


def program(seed, count):
    """Lines of lackey: loops over code and data."""
    rng = random.Random(seed)
    lines = []
    while len(lines) < count:
        code, data = rng.randrange(0x40000, 0x48000), 0x1FFE000000 + rng.randrange(0x10000)
        for _ in range(rng.randrange(1, 5)):
            at = code
            for _ in range(rng.randrange(3, 30)):
                size = rng.randrange(1, 12)
                lines.append(f"I  {at:x},{size}")
                at += size
                if rng.randrange(3):
                    lines.append(f" {rng.choice('LSM')} {data + rng.randrange(500):x},{rng.choice((1, 2, 4, 8, 16, 60))}")
    return lines


def write(path, lines):
    path.write_text("==1== Lackey\n" + "\n".join(lines) + "\n")
    return path


def simulate(*args, code=0):
    done = run(need(BUSCAP), "sim", *args)
    equal(done.returncode, code, done.stderr.decode())
    return done.stdout, done.stderr.decode()


def cycles_of(byu, proc=0):
    return [row[:4] for row in struct.iter_unpack("<IBBBBI", byu) if row[4] == proc]


@pytest.mark.parametrize("options", [[], ["--no-caches"]])
@pytest.mark.parametrize("seed", [1, 9])
def test_the_cycles_of_a_program_are_those_of_its_caches(tmp, options, seed):
    lines = program(seed, 30000)
    out, err = simulate("-O", "byu", "--seed", str(seed), *options, write(tmp / "a.lackey", lines))
    got, wanted = cycles_of(out), model([lines], seed, not options)
    equal(len(got), len(wanted), "cycles")
    equal(got, wanted)
    equal(err, "")
    ticks = [row[5] for row in struct.iter_unpack("<IBBBBI", out)][1:]
    assert 2 <= min(ticks) and max(ticks) < 1000 and len(set(ticks)) > 10, (min(ticks), max(ticks))


def test_programs_take_turns_on_a_processor(tmp):
    programs = [program(1, 3000), program(2, TURN + 1000), program(1, 5000)]
    paths = [write(tmp / f"{i}.lackey", lines) for i, lines in enumerate(programs)]
    out, _ = simulate("-O", "byu", *paths)
    equal(cycles_of(out), model(programs, 1, True))


def test_programs_are_dealt_to_the_processors(tmp):
    programs = [program(seed, 3000) for seed in range(5)]
    paths = [write(tmp / f"{i}.lackey", lines) for i, lines in enumerate(programs)]
    out, _ = simulate("-O", "byu", "-a", "2", "--no-caches", *paths)
    sizes = [sorted(row[1:3] for row in cycles_of(out, proc)) for proc in (0, 1)]
    # The pages depend on who comes first; types and sizes don't.
    equal(sizes, [sorted(row[1:3] for row in model(programs[i::2], 1, False)) for i in (0, 1)])
    # None is cut short when its turn ends, however many there are for a processor.
    fetches = [[f"I  {at:x},1" for at in range(0, 8 * n, 8)] for n in (TURN + 5, TURN + 4, 3)]
    paths = [write(tmp / f"f{i}.lackey", lines) for i, lines in enumerate(fetches)]
    for agents in "1234":
        out, _ = simulate("-O", "raw6", "-a", agents, "--no-caches", *paths)
        valid = [cycle for cycle in struct.iter_unpack(">IBB", out) if cycle[2] >> 4 == 9]
        equal(len(valid), 2 * TURN + 12, f"{agents} processors")
    # More processors than programs: the others do nothing.
    out, _ = simulate("-O", "byu", "-a", "4", tmp / "0.lackey")
    equal(cycles_of(out), model(programs[:1], 1, True))


def test_count_ends_the_stream_early(tmp):
    path = write(tmp / "a.lackey", program(4, 5000))
    whole = simulate("-O", "raw6", path)[0]
    for count in (0, 1, 100):
        equal(simulate("-O", "raw6", "-n", str(count), path)[0], whole[:count * 6], f"{count} samples")
    equal(simulate("-O", "raw6", "-n", "1M", path)[0], whole)


def test_other_references_are_counted(tmp):
    path = tmp / "a.byu"
    path.write_bytes(struct.pack("<IBBBBI", 0x80, 0x11, 1, 0, 0, 1) + struct.pack("<IBBBBI", 0x1000, 0, 8, 0, 0, 1))
    out, err = simulate("-O", "byu", "-I", "byu", "--no-caches", path)
    equal(len(out), 12)
    assert err.startswith("buscap sim: ") and err.endswith(": 1 reference left out: not memory accesses\n"), err
