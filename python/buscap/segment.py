"""A segment file and its chunks: found through the index or, without it, one after the other; read when asked for."""

import os
import struct
from functools import cached_property, lru_cache

import numpy as np

from .layout import (PLACE, PORTS, RECORD, ROW, Damaged, find, is_hashed, merged_counts, opened, parse, parse_chunk,
                     parse_counts, read, unpack, xxh3)

_CLASS = np.array([0, 1, 1, 2, *[3] * 12, 1, 2, *[3] * 238])  # of the page counts, by request type
_kept = lru_cache(4)  # of the chunks that were used last


class Segment:
    """A segment file. It is listed once, when needed: make another Segment to see an open file grow. `is_sealed`: it
    ends with an index. `damage`: a list of Damaged, except for damaged frames. A torn end counts only if the file's
    name says that it is sealed. `whole_chunks`: the chunks that are left in spite of damage."""

    _summary = 0  # offset of the page summary

    def __init__(self, path):
        self.path = os.fspath(path)

    def __reduce__(self):
        return Segment, (self.path,)

    def __getattr__(self, name):
        if name.startswith("__") or "is_sealed" in self.__dict__:
            raise AttributeError(name)
        self._list()
        return getattr(self, name)

    def _list(self):
        """Sets the attributes. `_rows` are those of the index, `_headers` the segment header before each."""
        with opened(self.path) as file:
            trailer = read(file, max(file.seek(0, 2) - 32, 0), 32)
            index, length = struct.unpack_from("<QQ", trailer.ljust(16))
            is_one = length == file.seek(0, 2) and is_hashed(trailer)  # sealed segment
            try:
                self._header, self._rows = parse(file, 11)[1], parse(file, index if is_one else file.seek(0, 2))[1]
                self._headers = [self._header] * len(self._rows)
                self._summary = int.from_bytes(read(file, index + 48, 8), "little")
                self.damage, self.is_sealed = [], True
            except Damaged:
                self._search(file)
        self.whole_chunks = [Chunk(self, number) for number in range(len(self._rows))]

    def _search(self, file):
        """Goes from each structure to the next one and, after damage, to the next one that is whole."""
        rows, self._headers, self.damage, headers, found, at = [], [], [], [None], None, 0
        while at < file.seek(0, 2):
            try:
                at, found = parse(file, at)
            except Damaged as error:
                self.damage.append(error)
                at, found = find(file, at + error.valid), error
            if isinstance(found, dict):
                headers.append(found)
            elif isinstance(found, np.void):
                rows.append(found)
                self._headers.append(headers[-1])
        self._rows, self._header, self.is_sealed = np.array(rows, ROW), headers[:2][-1], isinstance(found, np.ndarray)
        if self.path.endswith((".byu.lz4", ".byu.zst")) and not self.is_sealed:
            self.damage.append(Damaged(self.path, at, "the index is missing"))
        elif isinstance(found, Damaged):  # and nothing whole follows
            self.damage.pop()

    @property
    def header(self):
        """The segment header, as a dictionary. Raises Damaged if it is."""
        if self._header is None:
            raise Damaged(self.path, 11, "the segment header is damaged")
        return self._header

    @property
    def chunks(self):
        """The list of chunks. Raises the first of `damage`."""
        if self.damage:
            raise self.damage[0]
        return self.whole_chunks

    def at(self, *, record=None, tick=None, time=None, epoch=None):
        """Returns (chunk, position) of the record with this number in its recording; or of the first one with this tick
        or a later one, in this epoch (None: the segment's first) or a later one; or of the first one in the file with
        this time, in ns, or a later one. Raises LookupError. Reads no other chunk."""
        for chunk in filter(len, self.chunks):
            n, epoch = len(chunk), chunk.epoch if epoch is None else epoch
            if record is not None and 0 <= record - chunk.first_record < n:
                return chunk, record - chunk.first_record
            if tick is not None and (chunk.epoch, chunk.tick_at(n)) >= (epoch, tick):
                return chunk, int(np.searchsorted(chunk.ticks, tick)) if chunk.epoch == epoch else 0
            if time is not None and chunk.time_at(n) >= time:
                return chunk, int(np.searchsorted(chunk.times, time))
        raise LookupError(f"{self.path}: no such record")

    def page_counts(self):
        """Returns how many records each page of memory and I/O port has, as an array of place, places, fetches, reads,
        writes, others. A row is of `places` places from `place` on; ports begin at buscap.PORTS. From the page summary;
        without a whole one from the page counts of the chunks, and of a chunk without them from its records."""
        try:
            counts = self._read_summary() if self._summary else None
        except Damaged:
            counts = None
        return merged_counts([chunk.page_counts() for chunk in self.chunks]) if counts is None else counts

    def _read_summary(self):
        """Returns the counts of the last node, which covers the segment; or None if they are unknown."""
        at = self._summary
        with opened(self.path) as file:
            parse(file, at)
            length, total = struct.unpack("<4xI16xQ", read(file, at, 32))
            lengths = read(file, at + 40, length - 32 - total)
            last = int.from_bytes(lengths[-12:-8], "little")
            node = read(file, at + 8 + length - last, last)
        if not is_hashed(lengths) or (last and not is_hashed(node)):
            raise Damaged(self.path, at, "the page summary is damaged")
        return parse_counts(node[:-8], self._rows["records"].sum()) if last else None


class Chunk:
    """Up to 87,381 records, and the events between them. `info` is the chunk's row of the index. The
    contents of the few chunks that were used last are kept."""

    def __init__(self, segment, number):
        self.segment, self.number, self.info = segment, number, segment._rows[number]
        self.first_record, self.epoch = int(self.info["first_record"]), int(self.info["epoch"])

    def __reduce__(self):
        return Chunk, (self.segment, self.number)

    def __len__(self):
        return int(self.info["records"])

    @property
    @_kept
    def _header(self):
        """The events, and the page counts as they are stored."""
        at, pages = int(self.info["offset"]), int(self.info["page_bytes"])
        with opened(self.segment.path) as file:
            data = read(file, at, 272 + int(self.info["event_bytes"]) + pages)
            parsed = parse_chunk(data, at) or parse(file, at)
        if not isinstance(parsed[1], list) or parsed[0].tobytes() != self.info.tobytes():
            raise Damaged(self.segment.path, at, "a chunk's header is damaged")
        return parsed[1], data[-8 - pages:-8]

    @property
    def events(self):
        """The events, as a list of Event in the order of their positions."""
        return self._header[0]

    def page_counts(self):
        """Returns the page counts, as Segment.page_counts() does. From the chunk's header; if they are not there, from the
        records."""
        counts = self._header[1]
        if counts and (found := parse_counts(counts, len(self))) is not None:
            return found
        addr, kind = self.records["addr"], self.records["type"]
        place = np.where((kind == 0x10) | (kind == 0x11), PORTS + (addr & 0xFFFF), addr >> 12)
        rows = np.zeros((len(addr), 6), "i8")
        rows[:, :2] = np.column_stack((place, np.ones_like(place)))
        rows[np.arange(len(addr)), 2 + _CLASS[kind]] = 1
        return merged_counts([rows.view(PLACE)[:, 0]])

    @property
    @_kept
    def records(self):
        """The records, as an array of addr, type, size, attr, proc, delta."""
        n, at, data = len(self), int(self.info["offset"]), b"-"  # which is never right
        frame_at = at + 272 + int(self.info["event_bytes"]) + int(self.info["page_bytes"])
        with opened(self.segment.path) as file:
            frame = read(file, frame_at, int(self.info["frame_bytes"]))
        try:
            data = unpack(frame, 12 * n)
        except Exception as error:
            if isinstance(error, (ImportError, MemoryError)):
                raise
        if len(data) != 12 * n or xxh3(data) != self.info["records_hash"]:
            what = f"chunk {self.info['number']} ({n:,} record{'s' * (n != 1)}): wrong checksum"
            raise Damaged(self.segment.path, at, what)
        return np.frombuffer(data, RECORD)

    @property
    @_kept
    def ticks(self):
        """The tick of each record."""
        deltas = self.records["delta"]
        ticks = np.where(deltas == 0xFFFFFFFF, 0, deltas).astype("i8")
        begins = {0: self.info["first_tick"]} | {
            event.position: event.value for event in self.events if event.kind == "anchor"
            and 0 < event.position < len(self) and deltas[event.position] == 0xFFFFFFFF}
        for begin, end in zip(begins, [*begins, len(self)][1:]):
            ticks[begin:begin + 1] = begins[begin]
            np.cumsum(ticks[begin:end], out=ticks[begin:end])
        return ticks

    @cached_property
    def clock_hz(self):
        """Ticks per second; 0 if unknown. If `times` are positions on another axis, a tick is 1 ns."""
        header = self.segment._headers[self.number]
        if not header or (header["segment"], xxh3(header["recording"])) != (self.info["segment"], self.info["tag"]):
            return 0
        source = header["source"]
        return source.get("clock_hz", 0) if source.get("axis") in (None, "", "seconds") else 10**9

    @property
    @_kept
    def times(self):
        """The time of day of each record, in ns since 1970 UTC; the first one's if the clock rate is unknown."""
        hz, passed = self.clock_hz or 1, (self.ticks - self.info["first_tick"]) * (self.clock_hz != 0)
        passed = passed.astype(object) if passed.max(initial=0) > 2**63 // 10**9 else passed  # no overflow
        return (self.info["wall_ns"] + passed * 10**9 // hz).astype("i8")

    def tick_at(self, position):
        """Returns the tick of the record or event at a position; after the last record, that record's."""
        is_inside = 0 < position < len(self) - 1
        return int(self.ticks[position] if is_inside else self.info["first_tick" if position <= 0 else "last_tick"])

    def time_at(self, position):
        """Returns the time of tick_at(), in ns since 1970."""
        passed = self.tick_at(position) - int(self.info["first_tick"])
        return int(self.info["wall_ns"]) + (passed * 10**9 // self.clock_hz if self.clock_hz else 0)
