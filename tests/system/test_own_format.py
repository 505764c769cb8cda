"""What `cut` and `merge` write in the format of their input has the entries that they write as csv."""

import csv
import random

import harness
from harness import BUSCAP, equal, need, run

FORMATS = ("segment", "bcp1", "raw6", "byu", "byu16", "byu24", "byu-be", "laplace", "laplace-text", "din", "xdin")
SELECTORS = {
    "": [[]],
    "type": [["--type", "read"], ["--type", "write"], ["--type", "fetch,write"]],
    "addr": [["--addr", "1000-17ff"], ["--addr", "1008-100f"], ["--addr", "-80000000"]],
    "proc": [["--proc", "0"], ["--proc", "1-3"]],
    "records": [["--records", "20-"], ["--records", "35-90"]],
    "time": [["--from", "@40"], ["--from", "@30", "--to", "@120"]],
}


def rows(data):
    """The entries, without what may differ: where they are, the time before the first, and their line."""
    return [{k: v for k, v in row.items() if k not in ("number", "delta", "line")} for row in csv.DictReader(data.decode().splitlines())]


def buscap(*argv):
    done = run(need(BUSCAP), *argv)
    equal(done.returncode, 0, f"{argv}: {done.stderr.decode()}")
    return done.stdout


def check(command, name, tmp, *argv):
    (tmp / "own").unlink(missing_ok=True)
    buscap(command, *argv, "-O", name, "-o", tmp / "own")
    if (tmp / "own").stat().st_size == 0:  # no entries: of no format
        equal(rows(buscap(command, *argv, "-O", "csv")), [], argv)
    else:
        equal(rows(buscap("convert", "-I", name, "-O", "csv", tmp / "own")), rows(buscap(command, *argv, "-O", "csv")), argv)


def tarmac(rng, units, names):
    """Lines that leave out what the lines before have: a time, the kind, the number of a processor."""
    tick, lines = 0, [f"0 {units[0]} {name}CADI" for name in names]
    for _ in range(120):
        tick += rng.randrange(5)
        unit = rng.choice(units)
        text = f"{tick // 1000}.{tick % 1000:03} us" if unit == "us" else f"{1000 * tick if unit == 'ps' else tick} {unit}"
        time = rng.choice((text + " ", text + " ", "")) + rng.choice(names)
        addr = 0x1000 + 8 * rng.randrange(512)
        row = " ".join(rng.choice(("........", f"{rng.getrandbits(32):08x}")) for _ in range(4))
        lines += rng.choice((
            [f"{time}M{rng.choice('RW')}4 {addr:08x} {rng.getrandbits(32):08x}"],
            [f"{time}M{rng.choice('RW')}8 {addr:08x} {rng.getrandbits(64):016x} remark"],
            [f"{time}IT ({len(lines)}) {addr:08x} 0000bf00 T thrd_s : NOP"], [f"{time}R r{rng.randrange(9)} {addr:08x}"],
            [f"{time}CADI"],
            [f"{time}{rng.choice(('LD', 'ST'))} {addr & ~15:08x} {row}"]
            + [f"   {addr + 16 * i & ~15:08x} {row}" for i in range(rng.randrange(3))]))
    return "\n".join(lines) + "\n"


def test_cut_and_merge_write_their_own_format(tmp):
    buscap("sim", "-n", "400", "--agents", "3", "-o", tmp / "sim.bcp1")
    for name in FORMATS:
        buscap("convert", "-O", name, "-o", tmp / "in", tmp / "sim.bcp1")
        for kind, choices in SELECTORS.items():
            for options in choices:
                if kind not in ("proc", "time") or name in ("segment", "bcp1", "byu", "byu16", "byu24", "byu-be"):
                    check("cut", name, tmp, "-I", name, *options, tmp / "in")
        (tmp / "in").unlink()


def test_lines_of_tarmac_that_depend_on_others(tmp):
    names = (("",), ("cpu0 ", "cpu1 "), ("cluster0.cpu0 ", "cluster1.cpu0 ", "css.rse.cpu "))
    for seed in range(12):
        rng = random.Random(seed)
        for path in tmp / "a", tmp / "b":
            path.write_text(tarmac(rng, (("clk",), ("ns",), ("ns", "us"), ("us", "ps"))[seed % 4], names[seed % 3]))
        original = ["-I", "tarmac", tmp / "a"]
        equal(buscap("convert", "-O", "tarmac", *original), (tmp / "a").read_bytes(), "all lines")
        for options in rng.sample([options for choices in SELECTORS.values() for options in choices], 7):
            if options[:1] != ["--proc"] or seed % 3:
                check("cut", "tarmac", tmp, *options, *original)
        check("merge", "tarmac", tmp, *original, tmp / "b")
