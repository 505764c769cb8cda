"""The size of the page index of recordings. tests/support/page_reference.py compares it with the records of
every segment that a test reads."""

import random
import struct

import pytest

import harness
import page_reference
import reference
from harness import BUSCAPD, equal, need, run

RECORDS = 180_000  # three chunks


def _byu(record):
    return b"".join(struct.pack("<I4BI", *record(i)) for i in range(RECORDS))


def _program(i, dice=random.Random(3)):
    """Code that runs through a page, a stack, and data all over memory."""
    if i % 3:
        return 0x8048000 + i * 4 % 4096, 0, 4, 0, 0, 1
    return (0xBFFF0000 + dice.randrange(8192) if dice.random() < 0.7 else dice.getrandbits(28)), 1 + i % 2 * 2, 4, 0, 0, 1


def _random(i, dice=random.Random(4)):
    return dice.getrandbits(32), dice.randrange(256), dice.randrange(64), 0, dice.randrange(4), dice.randrange(100)


WORKLOADS = {
    "the simulated bus": None,
    "a program": _program,
    "the same record": lambda i: (0x1000, 1, 4, 0, 0, 5),
    "the next page each time": lambda i: (i << 12 & 0xFFFFFFFF, 1, 4, 0, 0, 5),
    "the next port each time": lambda i: (i % 65536, 0x10 + i % 2, 1, 0, 0, 5),
    "random records": _random,
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_page_counts_take_at_most_one_percent_and_the_summary_a_part_of_256(tmp, name):
    source = f"sim:rate=max,count={RECORDS},agents=2"
    if WORKLOADS[name]:
        (tmp / "trace.byu").write_bytes(_byu(WORKLOADS[name]))
        source = f"file:{tmp}/trace.byu,format=byu,clock_hz=1000"
    out = tmp / "rec"
    out.mkdir()
    equal(run(need(BUSCAPD), "--once", "--no-socket", "--source", source, "-o", out).returncode, 0)
    paths = harness.segments(out)
    (segment,) = reference.read_segments(paths).segments  # checks each chunk
    assert len(segment.chunks) >= 3 and all(chunk.pages for chunk in segment.chunks), name
    nodes = sum(map(len, segment.nodes))
    assert nodes, "there is a summary"
    share = (sum(len(chunk.pages) for chunk in segment.chunks) + nodes) / paths[0].stat().st_size
    assert share <= 0.01 + 1 / 256, f"{name}: {100 * share:.2f} % of the file"
    if name == "the simulated bus":
        equal([page_reference.parse(chunk.pages)[:2] for chunk in segment.chunks[:2]], [(0, 0)] * 2, "single pages and ports")
