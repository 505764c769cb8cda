"""The structures of a segment file, as docs/segment-format.md has them. Each is read whole, and checked."""

import json
import re
import struct
from collections import namedtuple

import lz4.frame
import numpy as np
from xxhash import xxh3_64_intdigest as xxh3

HEADER, CHUNK, INDEX, PAGES = (struct.pack("<I", 0x184D2A50 + kind) for kind in (0, 1, 2, 6))
NAMES = {HEADER: "the segment header", CHUNK: "a chunk's header", INDEX: "the index", PAGES: "the page summary"}
MAGIC = re.compile(rb"[\x50-\x57]\x2a\x4d\x18")
EMPTY = bytes.fromhex("04224D1860408200000000"), bytes.fromhex("28B52FFD22000000010000")
PORTS = 1 << 20  # places: pages of memory, then I/O ports

RECORD = np.dtype([("addr", "<u4"), ("type", "u1"), ("size", "u1"), ("attr", "u1"), ("proc", "u1"), ("delta", "<u4")])
PLACE = np.dtype([(name, "i8") for name in ("place", "places", "fetches", "reads", "writes", "others")])
ROW = np.dtype(list(zip(  # of the index: the offset of a chunk, and bytes 8 .. 263 of its header
    "offset version segment number records frame_bytes epoch events page_bytes event_bytes first_record first_tick "
    "last_tick wall_ns addr_low addr_high types procs records_hash tag lost gaps inexact away_ns".split(),
    "<u8 <u4 <u4 <u4 <u4 <u4 <u4 <u2 <u2 <u4 <u8 <i8 <i8 <i8 <u4 <u4 32u1 32u1 <u8 <u8 10<u8 <u8 <u8 <u8".split())))
KINDS = dict(enumerate("gap anchor mark trigger note end".split(), 1))
CAUSES = dict(enumerate("buffer disk board sequence crc unplugged damaged transfer crash".split(), 1))

# What comes before the record at `position`, or after the last one. `value`: samples lost in a gap, or the tick of an
# anchor. `text`: of a mark or trigger; JSON of a note or end.
Event = namedtuple("Event", "kind position cause exact value duration_ns text")


class Damaged(Exception):
    """A structure at `offset` in `file` is damaged: `what`, in words. Its first `valid` bytes are not."""

    def __init__(self, file, offset, what, valid=1):
        super().__init__(file, offset, what)
        self.file, self.offset, self.what, self.valid = file, offset, what, valid

    def __str__(self):
        return f"{self.file}: offset {self.offset}: {self.what}"


def opened(path):
    """Opens a file, also if it was sealed since it was listed."""
    try:
        return open(path, "rb", buffering=0)
    except FileNotFoundError:
        return open(path.removesuffix(".partial"), "rb", buffering=0)


def read(file, at, n):
    """Returns n bytes at an offset, or as many as the file has."""
    file.seek(at)
    return file.read(n)


def is_hashed(data):
    """True if the last 8 bytes are the hash of the others."""
    return len(data) >= 8 and xxh3(data[:-8]) == int.from_bytes(data[-8:], "little")


def parse_chunk(data, at):
    """Returns the row and the events of a chunk from its header, which is at this offset; or None."""
    if data[:4] != CHUNK or not 272 <= len(data) <= 272 + 256 * 32 + 4096 + 10240 or not is_hashed(data):
        return None
    row = np.frombuffer(at.to_bytes(8, "little") + data[8:264], ROW)[0]
    end, position, events, i = 264 + int(row["event_bytes"]), 0, [], 264
    if (row["version"] != 4 or row["records"] > 87381 or row["events"] > 256 or row["number"] > 65535
            or min(row["first_tick"], row["last_tick"]) < 0 or end + int(row["page_bytes"]) + 8 != len(data)):
        return None
    for _ in range(row["events"]):
        before = position
        kind, flags, cause, position, value, ns, text = struct.unpack_from("<3BxIQQH", data[i:end].ljust(32, b"\xff"))
        i += 32 + text
        if not before <= position <= row["records"] or i > end or (kind == 2 and value >> 63):
            return None
        events.append(Event(KINDS.get(kind, str(kind)), position, CAUSES.get(cause, str(cause)) if kind == 1 else "",
                            bool(flags & 1), value, ns, data[i - text:i].decode(errors="replace")))
    return (row, events) if i == end else None


def parse(file, at):
    """Returns (end, contents) of the structure at an offset: the dictionary of a segment header, the row of a chunk,
    the rows of an index; None of another. Raises Damaged."""
    size, start, found = file.seek(0, 2), read(file, at, 64), None
    if start[:11] in EMPTY:
        return at + 11, None
    length, version, rows = struct.unpack_from("<4x3I", start.ljust(16, b"\0"))
    magic, end, what = start[:4], at + 8 + length, NAMES.get(start[:4])
    is_index = magic == INDEX and is_hashed(start) and version == 4 and length == 96 + 264 * rows
    data = read(file, at, 8 + length) if what and (is_index or length <= 65528) else b""
    if magic == HEADER and is_hashed(data):
        found = json.loads(data[8:-8])
        if found.get("version") != 4:
            raise Damaged(file.name, at, "unknown segment version")
    elif magic == CHUNK and (parsed := parse_chunk(data, at)):
        found = parsed[0]
        end += int(found["frame_bytes"])
        if end > size:
            raise Damaged(file.name, at, f"chunk {found['number']}: torn: the file ends in its records", 8 + length)
    elif magic == PAGES and is_hashed(start[:40]) and end <= size:
        return end, None
    elif is_index and is_hashed(data[64:-32]):
        found, what = np.frombuffer(data, ROW, rows, 64) if is_hashed(data[-32:]) else None, "the trailer"
    if found is None:
        torn = f"torn: the file ends in {'a header' if magic in (HEADER, CHUNK) or len(start) < 8 else what}"
        raise Damaged(file.name, at, "bytes outside any chunk" if not what and len(start) >= 8 else
                      torn if end > size else f"{what} is damaged")
    return end, found


def find(file, at):
    """Returns the offset of the next structure that is whole, or the end."""
    while data := read(file, at, (1 << 20) + 3):
        for match in MAGIC.finditer(data):
            try:
                parse(file, at + match.start())
                return at + match.start()
            except Damaged:
                pass
        at += 1 << 20
    return file.seek(0, 2)


def unpack(frame, size):
    """Returns the bytes of a frame; others, or an exception of its library, unless it has exactly so many."""
    if frame[:4] == EMPTY[1][:4]:
        try:
            import zstandard
        except ImportError:
            raise ImportError("this segment has zstd frames: install python3-zstandard to read it") from None
        fits = zstandard.get_frame_parameters(frame).content_size == size
        return zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False) if fits else b"-"
    decoder = lz4.frame.LZ4FrameDecompressor()
    data = decoder.decompress(frame, max_length=size + 1)
    return data if decoder.eof and not decoder.unused_data else b"-"


def parse_counts(data, records):
    """Returns the page counts, or None if they don't add up to this number of records."""
    numbers, value, shift, rows, total, region = [], 0, 0, [], 0, 0
    for byte in data[2:]:
        value, shift = value | (byte & 127) << shift, shift + 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    m, q, numbers = data[0] & 127, data[1], iter(numbers)
    for head in numbers:
        region += head >> 4
        counts = [next(numbers, 0) if head >> i & 1 else 0 for i in range(4)]
        port = region - (PORTS >> m)
        rows.append((region << m, 1 << m, *counts) if port < 0 else (PORTS + (port << q), 1 << q, *counts))
        total, region = total + sum(counts), region + 1
    return np.array(rows, PLACE) if total == records else None


def merged_counts(arrays):
    """Adds page counts up. Regions of memory, and of ports, get the size of the largest, so that none overlap."""
    rows = np.concatenate([np.zeros(0, PLACE), *arrays])
    for part in (rows["place"] < PORTS, rows["place"] >= PORTS):
        rows["places"][part] = rows["places"][part].max(initial=1)
    rows["place"] &= -rows["places"]
    _, first, group = np.unique(rows["place"], return_index=True, return_inverse=True)
    merged = rows[first]
    for name in PLACE.names[2:]:
        merged[name] = np.bincount(group, rows[name], len(first))
    return merged
