"""The trace of a real program: traced with valgrind's lackey, converted to a board's stream, recorded by buscapd,
dumped, and compared with the result computed here from lackey's lines."""


import pytest

import harness
from harness import BUSCAP, BUSCAPD, equal, need, run

PROGRAM = """
static volatile int numbers[4096];
static volatile char text[100];

int main(void)
{
	for (int i = 0; i < 4096; i += 16)
		numbers[i] += i;
	for (int i = 0; i < 92; i += 3)
		*(volatile long *)(text + i) = i; /* over the bus's eight bytes, often */
	return 0;
}
"""

M64 = (1 << 64) - 1


class Pages:
    """Virtual pages to frames, from the text of formats/bus/page_map.h."""

    def __init__(self, seed):
        self.keys = [self._mix((seed + (r + 1) * 0x9E3779B97F4A7C15) & M64) >> 32 for r in range(4)]
        self.frames = {}

    @staticmethod
    def _mix(x):
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M64
        x = (x ^ x >> 27) * 0x94D049BB133111EB & M64
        return x ^ x >> 31

    def _frame(self, k):
        left, right = k >> 10, k & 1023
        for key in self.keys:
            left, right = right, left ^ ((right ^ key) * 0x9E3779B1 & 0xFFFFFFFF) >> 22
        return left << 10 | right

    def physical(self, address):
        page = address >> 12
        if page not in self.frames:
            self.frames[page] = self._frame(len(self.frames))
        return self.frames[page] << 12 | address & 0xFFF


# Bus cycles for each lackey letter: (name, attr).
TYPES = {"I": [("FETCH", 0)], "L": [("MEMREAD", 0)], "S": [("MEMWRITE", 1)], "M": [("MEMREAD", 0), ("MEMWRITE", 1)]}


def expected(lines, physical):
    """The output of `buscap dump --plain` for the recording."""
    out = []
    for line in lines:
        if not line.strip() or line.startswith("=="):
            continue
        letter, place = line.split()
        address, size = place.split(",")
        address, size = int(address, 16), int(size)
        for name, attr in TYPES[letter]:
            at = address
            while at < address + size:
                end = min((at & ~7) + 8, address + size)
                time = 1 if out else 0xFFFFFFFF
                out.append(f"{physical(at):08x}\t{name}\t{end - at:2}\t{attr:02x}\t0\t{time:08x}\n")
                at = end
    return out


def record(directory, trace):
    """Records a board's stream from standard input. Returns the dump."""
    segments = directory / "segments"
    done = run(need(BUSCAPD), "--once", "--source", "file:-", "-o", segments, data=trace)
    equal(done.returncode, 0, done.stderr.decode())
    paths = harness.segments(segments)
    harness.verify(paths)
    done = run(BUSCAP, "dump", "--plain", *paths)
    equal(done.returncode, 0, done.stderr.decode())
    return done.stdout.decode().splitlines(keepends=True)


def convert(lackey, target, code=0):
    """Returns (stdout, stderr)."""
    done = run(need(BUSCAP), "convert", "-I", "lackey", "-O", target, data=lackey)
    equal(done.returncode, code, done.stderr.decode())
    return done.stdout, done.stderr.decode()


def lackey_of(directory):
    """Returns lackey's output for a small program and its loader."""
    need("valgrind")
    source = directory / "program.c"
    source.write_text(PROGRAM)
    program = directory / "program"
    done = run("cc", "-O1", "-o", program, source)
    equal(done.returncode, 0, done.stderr.decode())
    log = directory / "lackey"
    done = run("valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-file={log}", program)
    equal(done.returncode, 0, done.stderr.decode())
    return log.read_bytes()


@pytest.mark.ci
def test_the_trace_of_a_real_program_is_recorded_unchanged(tmp):
    lackey = lackey_of(tmp)
    lines = lackey.decode().splitlines()
    letters = [line.split()[0] for line in lines if line.strip() and not line.startswith("==")]
    assert len(letters) > 20000 and set(letters) == {"I", "L", "S", "M"}, set(letters)
    bcp1, err = convert(lackey, "bcp1:map=pages,seed=1")
    got = record(tmp, bcp1)
    pages = Pages(1)
    equal(got, expected(lines, pages.physical), "the dump")
    assert len(pages.frames) > 50, len(pages.frames)
    # A modify is a read and a write on a bus, which is reported.
    assert f"{letters.count('M'):,}" in err, err
    crossing = 0
    for letter, address, size in (line.replace(",", " ").split() for line in lines if line[:2] in ("I ", " L", " S", " M")):
        crossing += len(TYPES[letter]) * (int(address, 16) // 8 != (int(address, 16) + int(size) - 1) // 8)
    assert crossing > 1000 and f"{crossing:,} references were split" in err, (crossing, err)
    harness.note(f"{len(letters)} references, {len(got)} bus cycles, {len(pages.frames)} pages")
