"""A simple, slow model of buscap cut and buscap merge, based on segments read by tests/support/reference.py."""

import collections
import datetime
import pathlib
import shutil
import tempfile

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, equal, need, run

Record = collections.namedtuple("Record", "number addr type size attr proc tick epoch wall_hz inexact")
Gap = collections.namedtuple("Gap", "number cause lost exact record")  # record: the one it belongs to


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


def can_read(name):
    done = run(need(BUSCAP), "convert", "-I", name, "-O", "xdin", data=b"")
    if b"can only be written" in done.stderr:
        pytest.skip(f"{name} can't be read")
