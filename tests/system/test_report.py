"""buscap report: every cell, total, gap and mark of an overview, compared with a count of the records."""

import functools
import json
import pathlib
import random
import shutil
import struct
import tempfile

import pytest

import harness
import reference
from cut_model import rich_stream, utc
from harness import BUSCAP, BUSCAPD, ROOT, equal, need, run
from overview_reference import Recordings

REAL_TRACE = ROOT / "../shared/data/byu/pentium2-slice.tr"


def record(directory, data, suffix="bcp1", options=(), clock_hz=66000000):
    """Records a stream into a directory."""
    stream = pathlib.Path(directory, "stream")
    stream.write_bytes(data)
    clock = f",clock_hz={clock_hz}" if clock_hz else ""
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{stream},format={suffix}{clock}", "-o",
               directory, *options)
    assert done.returncode in (0, 3, 4), done.stderr.decode()
    stream.unlink()


def many_chunks(chunks, seed=1, samples=150):
    """A stream of many chunks: each frame is an epoch, and its records don't compress."""
    rng = random.Random(seed)
    stream = b""
    for sequence in range(chunks):
        pages = [rng.randrange(1 << 20) << 12 for _ in range(6)]
        frame = [(rng.choice(pages) | rng.randrange(4096) & ~7, rng.randrange(256), rng.choice((8, 9, 12, 13, 14, 15)) << 4,
                  rng.randrange(60000)) for _ in range(samples)]
        if sequence % 7 == 0:
            frame[0] = (0x3F8, 0xFE, 5 << 4, 5)
        lost = rng.randrange(1, 99) if sequence % 11 == 5 else 0
        header = reference.encode_header(reference.LOSS if lost else 0, 0, sequence, samples, 1000, lost)
        stream += header + reference.encode_payload(frame)
    return stream


def report(*argv, code=0):
    done = run(need(BUSCAP), "report", "--json", *argv)
    equal(done.returncode, code, done.stderr.decode())
    return json.loads(done.stdout)


def check(recordings, directory, *argv):
    made = report(*argv, directory)
    recordings.check(made)
    return made["overview"]


@pytest.fixture(scope="module")
def large():
    """A recording of 700 chunks in several segments, and what is in it."""
    with tempfile.TemporaryDirectory(prefix="buscap-report-") as directory:
        record(directory, many_chunks(700), options=("-b", "filesize:200"))
        paths = harness.segments(pathlib.Path(directory))
        assert len(paths) >= 3, paths
        yield directory, Recordings(paths)


@pytest.mark.parametrize("columns, unit", [(512, "chunks"), (300, "chunks"), (100, "summary"), (20, "summary"),
                                           (2, "segments")])
def test_the_whole_picture_is_exact_in_every_unit(large, columns, unit):
    directory, recordings = large
    for rows in (1024, 200, 2):
        overview = check(recordings, directory, "--columns", columns, "--rows", rows)
        equal(overview["unit"], unit)
        assert len(overview["rows"]) <= rows and len(overview["columns"]) <= columns
        equal(sum(c["records"] for c in overview["columns"]), overview["recordings"][0]["records"], "records")
        equal(sum(c["lost"] for c in overview["columns"]), overview["recordings"][0]["lost"], "lost")


def test_a_part_is_exact_down_to_single_records(large):
    directory, recordings = large
    chunks = next(iter(recordings.by_id.values()))
    rng = random.Random(5)
    units = set()
    for span in (600, 300, 100, 30, 8, 3, 1, 1):
        first = rng.randrange(len(chunks) - span + 1)
        times = chunks[first].wall, chunks[first + span - 1].end + 1
        for columns in (256, 16, 7):
            overview = check(recordings, directory, "--columns", columns, "--from", utc(times[0]), "--to", utc(times[1]))
            units.add(overview["unit"])
    assert {"chunks", "summary"} <= units, units


def test_a_single_record_is_found_by_its_time(tmp):
    record(tmp, rich_stream(3))
    recordings = Recordings(harness.segments(tmp))
    for chunk in next(iter(recordings.by_id.values())):
        for at in sorted({0, 1, chunk.records // 2, chunk.records - 1} & set(range(chunk.records))):
            ns = chunk.times[at]
            overview = check(recordings, tmp, "--from", utc(ns), "--to", utc(ns + 1))
            equal(overview["unit"], "records")
            assert overview["columns"] and overview["from"] == overview["to"]
