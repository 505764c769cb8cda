"""Reads page counts and page summaries of segments as docs/segment-format.md describes them, and counts pages itself."""

import collections
import itertools

PORT_0 = 1 << 20  # places: pages of memory, then ports


def levels(chunks):
    """Returns the number of nodes in each level of a page summary."""
    levels = [-(-chunks // 16)]
    while levels[-1] > 1:
        levels.append(-(-levels[-1] // 16))
    return levels


def _varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        shift += 7
        if data[at - 1] < 0x80:
            return value, at


def parse(data):
    """Returns (page shift, port shift, whether a record is crossed, {first place of a region: 4 counts})."""
    page_shift, port_shift, crossed = data[0] & 0x7F, data[1], bool(data[0] & 0x80)
    pages = PORT_0 >> page_shift
    counts = {}
    at, number = 2, 0
    while at < len(data):
        head, at = _varint(data, at)
        number += head >> 4
        assert head & 15, "a region has a count"
        four = [0] * 4
        for i in range(4):
            if head >> i & 1:
                four[i], at = _varint(data, at)
                assert four[i] > 0, "counts are not 0"
        place = number << page_shift if number < pages else PORT_0 + (number - pages << port_shift)
        assert place < PORT_0 + 65536, f"place {place:x}"
        counts[place] = four
        number += 1
    return page_shift, port_shift, crossed, counts


_CLASSES = {0x00: 0, 0x01: 1, 0x02: 1, 0x10: 1, 0x03: 2, 0x11: 2}


def class_of(reqtype):
    """Returns 0 for fetches, 1 for reads, 2 for writes, 3 for others."""
    return _CLASSES.get(reqtype, 3)


_HIGH = bytes(byte >> 4 for byte in range(256))
_IS_LAST = bytes(byte & 15 == 15 for byte in range(256))
_IS_PORT = bytes(byte in (0x10, 0x11) for byte in range(256))


def count(records):
    """Returns (whether a record is crossed, {place: 4 counts}) of BYU records."""
    second, types, sizes = records[1::12], records[4::12], records[5::12]
    counts = {}
    pages = collections.Counter(zip(second.translate(_HIGH), records[2::12], records[3::12], types))
    for (*page, type), n in pages.items():
        if not _IS_PORT[type]:
            counts.setdefault(page[0] | page[1] << 4 | page[2] << 12, [0] * 4)[_CLASSES.get(type, 3)] += n
    crossed = False
    for low, high, type, size in itertools.compress(zip(records[0::12], second, types, sizes), types.translate(_IS_PORT)):
        counts.setdefault(PORT_0 + low + 256 * high, [0] * 4)[_CLASSES[type]] += 1
        crossed = crossed or size > 4
    # No size exceeds 255: only the last 256 bytes of a page matter.
    for low, type, size in itertools.compress(zip(records[0::12], types, sizes), second.translate(_IS_LAST)):
        crossed = crossed or (low + size > 256 and size not in (16, 32) and not _IS_PORT[type])
    return crossed, counts


def _coarsen(counts, page_shift, port_shift):
    coarse = {}
    for place, four in counts.items():
        shift = page_shift if place < PORT_0 else port_shift
        into = coarse.setdefault(place >> shift << shift, [0] * 4)
        for i in range(4):
            into[i] += four[i]
    return coarse


def _check(data, crossed, counts, where):
    page_shift, port_shift, is_crossed, got = parse(data)
    assert is_crossed == crossed, f"{where}: crossed"
    assert got == _coarsen(counts, page_shift, port_shift), f"{where}: page counts"
    assert list(got) == sorted(got), f"{where}: order"


def check_segment(segment):
    """Checks the page counts of all chunks and the page summary against the records."""
    items = []
    for chunk in segment.chunks:
        where = f"{segment.path.name}: chunk {chunk.info['number']}"
        crossed, counts = count(chunk.records)
        bytes_ = chunk.header_bytes + len(chunk.frame)
        if chunk.pages:
            _check(chunk.pages, crossed, counts, where)
        room = max(bytes_ // 100, min(bytes_ // 32, 512))
        assert len(chunk.pages) <= room, f"{where}: {len(chunk.pages)} bytes of page counts, room for {room}"
        items.append((crossed, counts, bytes_))
    nodes = iter(segment.nodes)
    for level, n in enumerate(levels(len(items)) if segment.nodes else []):
        merged = []
        for first in range(0, len(items), 16):
            crossed, counts, bytes_ = False, {}, 0
            for item in items[first : first + 16]:
                crossed, bytes_ = crossed or item[0], bytes_ + item[2]
                for place, four in item[1].items():
                    into = counts.setdefault(place, [0] * 4)
                    for i in range(4):
                        into[i] += four[i]
            merged.append((crossed, counts, bytes_))
            data = next(nodes)
            where = f"{segment.path.name}: node {len(merged) - 1} of level {level}"
            room = min(4096 << 2 * level, max(bytes_ // 256, min(bytes_ // 16, 1024)))
            assert len(data) <= room, f"{where}: {len(data)} bytes, room for {room}"
            if data:
                _check(data, crossed, counts, where)
        assert len(merged) == n
        items = merged
