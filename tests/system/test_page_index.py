"""The size of the page index of recordings. tests/support/page_reference.py compares it with the records of
every segment that a test reads."""

import collections
import random
import struct

import pytest

import harness
import page_reference
import reference
from cut_model import buscap
from harness import BUSCAPD, equal, need, run

RECORDS = 100_000  # two chunks


def _byu(record):
    if record == "random":
        data = bytearray(random.Random(4).randbytes(12 * RECORDS))
        for at, below in ((5, 64), (6, 1), (7, 4), (8, 100), (9, 1), (10, 1), (11, 1)):
            data[at::12] = bytes(byte % below for byte in data[at::12])
        return bytes(data)
    return b"".join(struct.pack("<I4BI", *record(i)) for i in range(RECORDS))


def _program(i, dice=random.Random(3)):
    """Code that runs through a page, a stack, and data all over memory."""
    if i % 3:
        return 0x8048000 + i * 4 % 4096, 0, 4, 0, 0, 1
    return (0xBFFF0000 + dice.randrange(8192) if dice.random() < 0.7 else dice.getrandbits(28)), 1 + i % 2 * 2, 4, 0, 0, 1


WORKLOADS = {
    "the simulated bus": None,
    "a program": _program,
    "the same record": lambda i: (0x1000, 1, 4, 0, 0, 5),
    "the next page each time": lambda i: (i << 12 & 0xFFFFFFFF, 1, 4, 0, 0, 5),
    "the next port each time": lambda i: (i % 65536, 0x10 + i % 2, 1, 0, 0, 5),
    "random records": "random",
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
    assert len(segment.chunks) >= 2 and all(chunk.pages for chunk in segment.chunks), name
    nodes = sum(map(len, segment.nodes))
    assert nodes, "there is a summary"
    share = (sum(len(chunk.pages) for chunk in segment.chunks) + nodes) / paths[0].stat().st_size
    assert share <= 0.01 + 1 / 256, f"{name}: {100 * share:.2f} % of the file"
    if name == "the simulated bus":
        equal([page_reference.parse(chunk.pages)[:2] for chunk in segment.chunks[:1]], [(0, 0)], "single pages and ports")


def test_a_search_of_a_damaged_segment_finds_what_can_be_read(tmp):
    """Each byte of the headers, the page counts, the page summary and the index is damaged in turn. The search must not
    trust them: it finds what reading the whole file finds."""
    trace = tmp / "trace.byu"
    trace.write_bytes(b"".join(struct.pack("<I4BI", 0x1000 * (i // 200), 3, 4, 0, 0, 5) for i in range(600)))
    out = tmp / "rec"
    out.mkdir()
    equal(run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{trace},format=byu,clock_hz=1000", "-o", out)
          .returncode, 0)
    (path,) = harness.segments(out)
    data = path.read_bytes()
    lost = 0
    for at in harness.some(range(len(data)), 36):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1:])
        rows = buscap("convert", "-O", "csv", path, code=None)[0].decode().splitlines()
        addr = rows[0].split(",").index("addr") if rows else 0
        pages = collections.Counter(int(row.split(",")[addr], 16) >> 12 for row in rows if row.startswith("reference,"))
        lost += pages.total() != 600
        for page in (at % 3, 3):
            found = int(buscap("find", "--count", f"{page:x}000-{page:x}fff", path, code=None)[0] or b"0")
            equal(found, pages[page], f"page {page}, byte {at} of {len(data)}")
    assert lost, "records are damaged, too"
