"""A simple, slow model of buscap cut and buscap merge, based on segments read by tests/support/reference.py."""

import collections
import datetime
import pathlib
import random
import shutil
import tempfile

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, equal, need, run

Record = collections.namedtuple("Record", "number addr type size attr proc tick epoch wall_hz inexact")
Gap = collections.namedtuple("Gap", "number cause lost exact record")  # record: the one it belongs to


READS, WRITES, FETCHES = {1, 2}, {3}, {0}
SELECTORS = ("numbers", "ticks", "epochs", "wall", "addr", "types", "procs")


def rich_stream(seed, samples=3000):
    """A stream with gaps, epochs, pauses and several agents."""
    features = reference.Features(samples=samples, frame=40, p_loss=0.05, p_bad_samples=0.05, p_epoch=0.01,
                                  p_pause=0.003, p_jump=0.01)
    return reference.make_bcp1(random.Random(seed), features)[0]


class Recording:
    """The records and gaps of a recording. wall_hz: time of day in ns, times clock_hz."""

    def __init__(self, recorded):
        self.header = recorded.segments[0].header
        self.clock_hz = self.header["source"]["clock_hz"]
        self.records = []
        self.gaps = []
        for chunk in recorded.chunks:
            self._add(chunk, recorded)

    def _add(self, chunk, recorded):
        info = chunk.info
        first = info["first_record"]
        for i in range(info["records"]):
            addr, kind, size, attr, proc = reference.struct.unpack_from("<I4B", chunk.records, 12 * i)
            tick = recorded.ticks[first + i]
            wall = info["wall_ns"] * self.clock_hz + (tick - info["first_tick"]) * 10**9
            self.records.append(Record(first + i, addr, kind, size, attr, proc, tick, info["epoch"], wall,
                                       first + i in recorded.inexact))
        for event in chunk.events:
            if event.kind == "gap":
                number = first + event.position
                record = number if event.position < info["records"] else max(number - 1, 0)
                self.gaps.append(Gap(number, event.cause, event.value, event.exact, record))


def read(path):
    """Reads a segment file with any name as a Recording."""
    with tempfile.TemporaryDirectory(prefix="buscap-read-") as directory:
        data = pathlib.Path(path).read_bytes()
        length = int.from_bytes(data[15:19], "little") - 8
        header = reference.json.loads(data[19 : 19 + length])
        copy = pathlib.Path(directory, f"{header['recording']}-{header['segment']:05}.byu.lz4")
        shutil.copy(path, copy)
        return Recording(reference.read_segments([copy]))


def record_file(directory, data, suffix="bcp1", clock_hz=None, options=()):
    """Records a stream. Returns the segment's path."""
    out = pathlib.Path(tempfile.mkdtemp(prefix="rec", dir=directory))
    path = out / f"stream.{suffix}"
    path.write_bytes(data)
    clock = f",clock_hz={clock_hz}" if clock_hz else ""
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{path},format={suffix}{clock}", "-o", out,
               *options)
    assert done.returncode in (0, 3, 4), done.stderr.decode()
    path.unlink()
    found = harness.segments(out)
    equal(len(found), 1, "segments")
    return found[0]


def utc(ns):
    """A time in ns since 1970, as an option's value."""
    moment = datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + ".%09dZ" % (ns % 10**9)


class Selection:
    """Random selectors, as options and as a predicate."""

    def __init__(self, rng, recording, which):
        records = recording.records
        pick = lambda: rng.choice(records)
        self.numbers = self.ticks = self.epochs = self.wall = self.addr = self.types = self.procs = None
        self.options = []
        if "numbers" in which:
            self.numbers = sorted((pick().number, pick().number))
            self.options += ["--records", "%d-%d" % tuple(self.numbers)]
        if "ticks" in which and "wall" not in which:
            self.ticks = sorted((pick().tick, pick().tick))
            self.options += ["--from", f"@{self.ticks[0]}", "--to", f"@{self.ticks[1] + 1}"]
        if "epochs" in which:
            self.epochs = sorted((pick().epoch, pick().epoch))
            self.options += ["--epoch", "%d-%d" % tuple(self.epochs)]
        if "wall" in which:
            self.wall = sorted(pick().wall_hz // recording.clock_hz for _ in range(2))
            self.options += ["--from", utc(self.wall[0]), "--to", utc(self.wall[1])]
        if "addr" in which:
            low = pick().addr + rng.randrange(-8, 40)
            self.addr = (max(low, 0), max(low, 0) + rng.choice((0, 7, 0x1000, 0x4000000)))
            self.options += ["--addr", "%x-%x" % self.addr]
        if "types" in which:
            name, self.types = rng.choice((("read", READS), ("write", WRITES), ("Fetch,memWRITE", FETCHES | WRITES),
                                           ("IOREAD,0x11", {0x10, 0x11})))
            self.options += ["--type", name]
        if "procs" in which:
            procs = sorted({pick().proc, pick().proc})
            self.procs = set(procs)
            self.options += ["--proc", ",".join(map(str, procs))]
        self.clock_hz = recording.clock_hz

    def is_in_range(self, r):
        return ((self.numbers is None or self.numbers[0] <= r.number <= self.numbers[1])
                and (self.ticks is None or self.ticks[0] <= r.tick <= self.ticks[1])
                and (self.epochs is None or self.epochs[0] <= r.epoch <= self.epochs[1])
                and (self.wall is None or self.wall[0] * self.clock_hz <= r.wall_hz < self.wall[1] * self.clock_hz))

    def matches(self, r):
        first = r.addr - (r.addr % r.size if r.size in (16, 32) else 0)  # a burst covers its aligned block
        last = first + max(r.size, 1) - 1
        return (self.is_in_range(r) and (self.addr is None or (first <= self.addr[1] and last >= self.addr[0]))
                and (self.types is None or r.type in self.types) and (self.procs is None or r.proc in self.procs))


def fields(records):
    """Returns the fields of each record that a cut keeps."""
    return [(r.addr, r.type, r.size, r.attr, r.proc, r.tick, r.epoch) for r in records]


def gaps_among(gaps, kept):
    """Returns gaps with their positions among the kept records. Combines gaps of one cause at one position."""
    at = {}
    for gap in gaps:
        position = sum(1 for r in kept if r.number < gap.number)
        lost, exact = at.get((position, gap.cause), (0, True))
        at[position, gap.cause] = lost + gap.lost, exact and gap.exact
    return sorted((position, cause, *rest) for (position, cause), rest in at.items())


def own_gaps(recording):
    return gaps_among(recording.gaps, recording.records)


def buscap(*argv, code=0, **options):
    """Runs buscap and checks the exit code. Returns (output in bytes, errors as text)."""
    done = run(need(BUSCAP), *argv, **options)
    err = done.stderr.decode(errors="replace")
    if code is not None:
        equal(done.returncode, code, f"exit code of {' '.join(map(str, argv))}: {err}")
    return done.stdout, err


def can_write(name):
    """Skips the test if buscap can't write a format."""
    done = run(need(BUSCAP), "convert", "-O", name, "-I", "raw6", data=b"")
    if b"can only be read" in done.stderr:
        pytest.skip(f"{name} can't be written")
