"""A second implementation of the formats, to compare the programs with. It is based only on docs/board-protocol.md and
docs/segment-format.md and shares nothing with the C code.

    make_bcp1(random, features)   makes a random bcp1 stream and the recording expected from it
    decode_bcp1(data)             decodes a bcp1 stream into the expected recording
    make_raw6, make_byu, ...      make other inputs
    read_segments(paths)          reads segment files and checks their consistency

Run as a program, it compares generator and decoder.
"""

import array
import ctypes
import dataclasses
import functools
import itertools
import json
import pathlib
import random
import struct
import subprocess
import sys
import zlib

import page_reference
from harness import Corrupt

CHUNK_RECORDS = 87381
NO_DELTA = 0xFFFFFFFF
MANY = 0xFFFFFFFF
AGENT, LOSS, TRIGGER, LAST = 1, 2, 4, 8
GAPS = dict(enumerate("buffer disk board sequence crc unplugged damaged transfer crash".split(), 1))


# ---- samples and records


def _byte_cycle(reqtype, attr):
    return [(reqtype, 8 - bin(be).count("1"), attr, (~be & -~be).bit_length() - 1 if be != 0xFF else None)
            for be in range(256)]


def _whole_cycle(reqtype, size, attr):
    return [(reqtype, size, attr, None)] * 256


_SPECIAL = {0xFE: 0x31, 0xFD: 0x32, 0xFB: 0x33, 0xF7: 0x34, 0xEF: 0x35, 0xDF: 0x23}
INVALID_CYCLES = (0, 2, 4, 6, 10, 11)

# [cycle type][byte enables]: (reqtype, size, attr, lowest enabled byte; None: the address is unchanged)
_MAPPING = [_byte_cycle(0xF0 + cycle, 0) for cycle in range(16)]
_MAPPING[1] = _byte_cycle(0x21, 0)
_MAPPING[3] = [(_SPECIAL.get(be, 0x22), 0, 0, None) for be in range(256)]
_MAPPING[5] = _byte_cycle(0x10, 0)
_MAPPING[7] = _byte_cycle(0x11, 0)
_MAPPING[8] = _whole_cycle(0x00, 32, 3)
_MAPPING[9] = _byte_cycle(0x00, 0)
_MAPPING[12] = _whole_cycle(0x01, 32, 3)
_MAPPING[13] = _byte_cycle(0x01, 0)
_MAPPING[14] = _whole_cycle(0x03, 32, 3)
_MAPPING[15] = _byte_cycle(0x03, 1)


@dataclasses.dataclass
class Options:
    """Options of the mapping, as in the configuration."""

    keep_invalid: bool = False
    size_v1_0: bool = False
    attr: dict = dataclasses.field(default_factory=dict)


def map_sample(address, be, control, options):
    """Maps a sample to (addr, reqtype, size, attr), or None if it is dropped."""
    cycle = control >> 4
    if cycle in INVALID_CYCLES and not options.keep_invalid:
        return None
    reqtype, size, attr, byte = _MAPPING[cycle][be]
    if cycle == 3 and be == 0xFB and address & 0x10:
        reqtype = 0x36
    if byte is not None:
        address = (address & 0xFFFFFFF8) + byte
    if options.size_v1_0 and size > 8:
        size = 8
    return address, reqtype, size, options.attr.get(cycle, attr)


class Expected:
    """The expected recording of a stream, built in the order of the stream."""

    def __init__(self, options=None):
        self.options = options or Options()
        self.records = bytearray()
        self.ticks = array.array("Q")  # absolute, of each record
        self.epochs = {}  # epoch: number of its first record
        self.inexact = set()  # records whose tick is unknown
        self.triggers = []  # numbers of the records after them
        self.received = 0
        self.invalid = 0
        self.board_lost = 0
        self.skipped_bytes = 0
        self._gaps = {}
        self._tick = 0  # of the last sample, empty frame or header
        self._record_tick = None  # of the last record of the epoch
        self._epoch = 0
        self._sequence = None  # expected in the next header

    def __len__(self):
        return len(self.ticks)

    @property
    def epoch_count(self):
        """The number of epochs, with or without records."""
        return self._epoch + 1

    @property
    def gaps(self):
        """[(number of the record after it, cause, lost, exact)], with gaps of one cause at one position combined."""
        return sorted((at, cause, lost, exact) for (at, cause), (lost, exact) in self._gaps.items())

    def gap(self, cause, lost, exact):
        key = len(self), cause
        old_lost, old_exact = self._gaps.get(key, (0, True))
        self._gaps[key] = old_lost + lost, old_exact and exact

    def header(self, flags, sequence, tick, lost):
        """Adds a valid header, even if its samples are damaged."""
        if self._sequence is not None and sequence != self._sequence:
            self.gap("sequence", 0, False)
        self._sequence = None if flags & LAST else (sequence + 1) & 0xFFFFFFFF
        if flags & LOSS:
            self.board_lost += lost
            self.gap("board", lost, lost != MANY)
        if tick < self._tick:
            self._epoch += 1
            self._record_tick = None
        self._tick = tick
        if flags & TRIGGER:
            self.triggers.append(len(self))

    def samples(self, flags, proc, tick, samples):
        """Adds the samples of a valid frame, (address, be, control, delta), after its header."""
        first = True
        for address, be, control, delta in samples:
            if not first:
                tick += delta
            first = False
            self.sample(address, be, control, control & 15 if flags & AGENT else proc, tick)

    def sample(self, address, be, control, proc, tick):
        self.received += 1
        self._tick = tick
        mapped = map_sample(address, be, control, self.options)
        if mapped is None:
            self.invalid += 1
            return
        before = self._record_tick
        if before is None:
            self.epochs[self._epoch] = len(self)
        time = NO_DELTA if before is None or tick - before >= NO_DELTA else tick - before
        self.records += struct.pack("<I4BI", *mapped, proc, time)
        self.ticks.append(tick)
        self._record_tick = tick

    def damaged(self, n):
        """Adds the samples of a damaged frame."""
        self.gap("crc", n, True)

    def record(self, record):
        """Adds a BYU record."""
        time = struct.unpack_from("<I", record, 8)[0]
        if time == NO_DELTA and self.ticks:
            self.inexact.add(len(self))
        self.received += 1
        self._tick += 0 if time == NO_DELTA else time
        self.epochs.setdefault(0, 0)
        self.records += record
        self.ticks.append(self._tick)


# ---- bcp1


def encode_header(flags, proc, sequence, n, tick, lost, reserved=0):
    head = struct.pack("<4sHBBIIQI", b"BCP1", flags, proc, reserved, sequence, n, tick, lost)
    return head + struct.pack("<I", zlib.crc32(head))


def encode_payload(samples):
    payload = b"".join(struct.pack(">IBB", a, b, c) + struct.pack("<H", d) for a, b, c, d in samples)
    return payload + struct.pack("<I", zlib.crc32(payload)) if payload else b""


def decode_header(data, at):
    """Returns (flags, proc, sequence, n, tick, lost), or None if there is no valid header."""
    if len(data) - at < 32 or data[at : at + 4] != b"BCP1":
        return None
    flags, proc, _, sequence, n, tick, lost, crc = struct.unpack_from("<HBBIIQII", data, at + 4)
    if crc != zlib.crc32(data[at : at + 28]) or n > 65535 or tick >= 1 << 63:
        return None
    return flags, proc, sequence, n, tick, lost


def decode_bcp1(data, options=None):
    """Returns the expected recording of a stream."""
    expected = Expected(options)
    at = 0
    while at < len(data):
        head = decode_header(data, at)
        if head is None:
            after = data.find(b"BCP1", at + 1)
            after = len(data) if after < 0 else after
            expected.skipped_bytes += after - at
            at = after
            continue
        flags, proc, sequence, n, tick, lost = head
        expected.header(flags, sequence, tick, lost)
        payload = data[at + 32 : at + 32 + 8 * n]
        crc = data[at + 32 + 8 * n : at + 36 + 8 * n]
        if n != 0 and (crc != struct.pack("<I", zlib.crc32(payload)) or
                       tick + sum(d for *_, d in struct.iter_unpack("<IHH", payload[8:])) >= 1 << 63):
            expected.damaged(n)
            expected.skipped_bytes += 1
            at += 1
            continue
        expected.samples(flags, proc, tick, [
            (a, b, c, d1 | d2 << 8) for a, b, c, d1, d2 in struct.iter_unpack(">IBBBB", payload)])
        at += 32 + (8 * n + 4 if n else 0)
    return expected


@dataclasses.dataclass
class Features:
    """Features of a random bcp1 stream. p_* are probabilities, per frame unless noted."""

    samples: int = 3000
    frame: int = 100  # maximum number of samples
    agents: int = 1  # 0: the header names the processor
    p_invalid: float = 0.0  # per sample
    p_special: float = 0.02  # per sample
    p_pause: float = 0.001  # per sample; too long for a delta, sometimes over 2^32 ticks
    p_heartbeat: float = 0.0
    p_loss: float = 0.0
    p_many: float = 0.3  # per loss
    p_jump: float = 0.0
    p_bad_samples: float = 0.0
    p_bad_header: float = 0.0
    p_torn: float = 0.0
    p_nested: float = 0.0  # a damaged frame with a valid frame inside
    p_garbage: float = 0.0
    p_epoch: float = 0.0
    p_last: float = 0.0
    p_trigger: float = 0.0
    p_odd: float = 0.0  # reserved fields are not 0
    torn_tail: bool = False
    hostile: bool = False  # any byte enables and control bits, not only those of a bus


def random_features(rng, samples):
    """Returns random features. Most streams have some kinds of damage, none has all."""

    def some(p):
        return rng.choice((0.0, 0.0, p, 3 * p))

    return Features(
        samples=samples, frame=rng.choice((1, 7, 40, 300, 3000)), agents=rng.randrange(5),
        p_invalid=some(0.02), p_pause=rng.choice((0, 0.0005, 0.01)), p_heartbeat=some(0.1), p_loss=some(0.03),
        p_jump=some(0.02), p_bad_samples=some(0.02), p_bad_header=some(0.02), p_torn=some(0.02),
        p_nested=some(0.01), p_garbage=some(0.03), p_epoch=some(0.01), p_last=some(0.01), p_trigger=some(0.02),
        p_odd=some(0.1), torn_tail=rng.random() < 0.3, hostile=rng.random() < 0.5)


_BUS_BE = (0x00, 0xFE, 0xFD, 0xFC, 0xF0, 0x0F, 0xF3, 0xCF, 0x3F, 0x7F, 0xBF, 0xE1, 0xFF, 0x01)


def random_sample(rng, features, agent):
    """Returns (address, be, control)."""
    x = rng.random()
    if x < features.p_invalid:
        cycle = rng.choice(INVALID_CYCLES)
    elif x < features.p_invalid + features.p_special:
        cycle = 3
    else:
        cycle = rng.choice((1, 5, 7, 8, 8, 8, 9, 12, 12, 13, 14, 15))
    if features.hostile:
        be = rng.randrange(256)
        address = rng.choice((rng.getrandbits(32), 0x42435031, 0xFFFFFFFF, 0))
    else:
        be = rng.choice(_BUS_BE) if cycle != 3 else rng.choice((*_SPECIAL, 0xFF))
        address = 0x100000 + rng.randrange(0x8000)
    return address, be, cycle << 4 | agent


class _Bcp1Maker:
    """Builds a stream and the expected recording, without decoding the bytes."""

    def __init__(self, rng, features, options):
        self.rng = rng
        self.features = features
        self.expected = Expected(options)
        self.out = bytearray()
        self.sequence = rng.choice((0, rng.getrandbits(32), 0xFFFFFFFE))
        self.tick = rng.choice((0, 12345, rng.getrandbits(48)))

    def chance(self, p):
        return p != 0 and self.rng.random() < p

    def skip(self, data):
        self.expected.skipped_bytes += len(data)
        self.out += data

    def garbage(self):
        rng = self.rng
        kind = rng.randrange(6)
        if kind == 0:
            self.skip(rng.randbytes(rng.randrange(1, 200)))
        elif kind == 1:
            self.skip(b"BCP1" + rng.randbytes(rng.randrange(60)))
        elif kind == 2:
            self.skip(b"BBCBCPBCP1"[: rng.randrange(1, 11)])
        elif kind == 3:  # invalid header: too many samples, CRC correct
            self.skip(encode_header(0, 0, self.sequence, rng.randrange(65536, 1 << 32), self.tick, 0))
        elif kind == 4:  # invalid header: tick out of range
            self.skip(encode_header(0, 0, self.sequence, 0, rng.randrange(1 << 63, 1 << 64), 0))
        else:  # partial header
            self.skip(encode_header(LOSS, 0, self.sequence, 1, self.tick, 9)[: rng.randrange(1, 32)])

    def samples(self, n, flags):
        rng, features = self.rng, self.features
        made = []
        for i in range(n):
            if flags & AGENT:
                agent = rng.randrange(features.agents)
            else:
                agent = rng.randrange(16) if self.chance(features.p_odd) else 0
            delta = rng.choice((0, 1, 2, 3, 5, 9, rng.randrange(300)))
            if rng.random() < 0.002:
                delta = rng.choice((65535, 65534, 40000))
            if i == 0:
                delta = rng.randrange(65536) if self.chance(features.p_odd) else 0
            made.append((*random_sample(rng, features, agent), delta))
        return made

    def flip(self, data):
        at = self.rng.randrange(len(data))
        damaged = bytearray(data)
        damaged[at] ^= 1 << self.rng.randrange(8)
        return bytes(damaged)

    def next_sequence(self):
        sequence = self.sequence
        self.sequence = (sequence + 1) & 0xFFFFFFFF
        return sequence

    def nested(self, flags, tick):
        """Adds a damaged frame whose samples contain a valid frame."""
        inner_sequence = self.rng.getrandbits(32)
        sample = (*random_sample(self.rng, self.features, 0), 0)
        inner = encode_header(0, 5, inner_sequence, 1, tick + 3, 0) + encode_payload([sample])
        inner += bytes(-len(inner) % 8)
        before, after = self.rng.randbytes(8), self.rng.randbytes(16)
        payload = before + inner + after
        n = len(payload) // 8
        sequence = self.next_sequence()
        head = encode_header(flags, 0, sequence, n, tick, 0)
        self.out += head + payload + struct.pack("<I", zlib.crc32(payload) ^ 1)
        expected = self.expected
        expected.header(flags, sequence, tick, 0)
        expected.damaged(n)
        expected.header(0, inner_sequence, tick + 3, 0)
        expected.samples(0, 5, tick + 3, [sample])
        expected.skipped_bytes += 32 + len(payload) + 4 - 44

    def frame(self, n):
        rng, features = self.rng, self.features
        flags = AGENT if features.agents else 0
        proc = rng.randrange(256) if not flags or self.chance(features.p_odd) else 0
        if self.chance(features.p_epoch):
            self.tick = rng.randrange(self.tick + 1)
        tick = self.tick
        if self.chance(features.p_nested):
            self.nested(flags, tick)
            self.tick = tick + 10
            return 0
        lost = 0
        if self.chance(features.p_loss):
            flags |= LOSS
            lost = MANY if self.chance(features.p_many) else rng.choice((1, 3, 1000, MANY - 1))
        elif self.chance(features.p_odd):
            lost = rng.getrandbits(32)
        flags |= TRIGGER if self.chance(features.p_trigger) and n else 0
        flags |= LAST if self.chance(features.p_last) else 0
        known = flags
        if self.chance(features.p_odd):
            flags |= rng.getrandbits(12) << 4
        if self.chance(features.p_jump):
            self.sequence = rng.getrandbits(32)
        samples = self.samples(n, flags)
        sequence = self.next_sequence()
        if flags & LAST:
            self.sequence = rng.getrandbits(32)
        head = encode_header(flags, proc, sequence, n, tick, lost, rng.choice((0, 0, 0, 99)) if features.p_odd else 0)
        payload = encode_payload(samples)
        self.tick = tick + sum(s[3] for s in samples[1:])
        if self.chance(features.p_bad_header):
            self.skip(self.flip(head) + payload)
            return 0
        self.expected.header(known, sequence, tick, lost)
        self.out += head
        if n and self.chance(features.p_bad_samples):
            self.expected.damaged(n)
            self.expected.skipped_bytes += 32
            self.skip(self.flip(payload))
            return 0
        if n and self.chance(features.p_torn):
            self.expected.damaged(n)
            self.expected.skipped_bytes += 32
            # Remove at least four bytes, because the first byte of the next frame could complete the CRC.
            self.skip(payload[: rng.randrange(len(payload) - 3)])
            return 0
        self.out += payload
        self.expected.samples(known, proc, tick, samples)
        return n

    def pause(self):
        rng = self.rng
        self.tick += rng.choice((
            65536, 1 << 17, rng.randrange(1 << 20), NO_DELTA - 1, NO_DELTA, NO_DELTA + 1, 1 << 33, 1 << 40))

    def make(self):
        rng, features = self.rng, self.features
        left = features.samples
        while left > 0:
            if self.chance(features.p_garbage):
                self.garbage()
            if self.chance(features.p_heartbeat):
                self.tick += rng.randrange(1000)
                self.frame(0)
            n = rng.randrange(1, min(features.frame, left) + 1)
            if self.chance(1 - (1 - features.p_pause) ** n):
                self.pause()
            self.tick += rng.randrange(20)
            self.frame(n)
            left -= n
        if features.torn_tail:
            n = rng.randrange(1, 50)
            sequence = self.next_sequence()
            head = encode_header(0, 0, sequence, n, self.tick, 0)
            whole = head + encode_payload(self.samples(n, 0))
            cut = rng.randrange(1, len(whole))
            if cut >= 32:
                self.expected.header(0, sequence, self.tick, 0)
                self.expected.damaged(n)
            self.skip(whole[:cut])
        return bytes(self.out), self.expected


def make_bcp1(rng, features, options=None):
    """Returns the bytes of a random stream and the expected recording."""
    return _Bcp1Maker(rng, features, options).make()


# ---- the other inputs


def make_raw6(rng, n, features=None, options=None):
    """Makes n samples of raw6. It has no clock: one tick per sample."""
    features = features or Features()
    expected = Expected(options)
    out = bytearray()
    for i in range(n):
        address, be, control = random_sample(rng, features, rng.randrange(16))
        out += struct.pack(">IBB", address, be, control)
        expected.sample(address, be, control, 0, i + 1)
    return bytes(out), expected


_REQTYPES = (0, 1, 2, 3, 0x10, 0x11, 0x20, 0x21, 0x22, 0x23, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37)


def make_byu(rng, n, dialect="byu", strange=0.0, no_delta=0.0, first_has_delta=False):
    """Makes n BYU records in a dialect. `strange`: share of records with arbitrary fields; `no_delta`: share of records
    whose time is 0xFFFFFFFF."""
    expected = Expected()
    out = bytearray()
    for i in range(n):
        if rng.random() < strange:
            record = (rng.getrandbits(32), *rng.randbytes(4), rng.getrandbits(32))
        else:
            record = (0x80000 + rng.randrange(1 << 20), rng.choice(_REQTYPES), rng.choice((0, 1, 2, 4, 8, 16, 32)),
                      rng.randrange(8), rng.randrange(4), rng.randrange(1000))
        if rng.random() < no_delta or (i == 0 and not first_has_delta):
            record = (*record[:5], NO_DELTA)
        expected.record(struct.pack("<I4BI", *record))
        if dialect == "byu16":
            out += struct.pack("<Q4BI", *record)
        elif dialect == "byu24":
            out += struct.pack("<Q4B4xQ", *record)
        elif dialect == "byu-be":
            out += struct.pack(">I4BI", *record)
        else:
            out += struct.pack("<I4BI", *record)
    return bytes(out), expected


# ---- segments


EMPTY_FRAME = bytes.fromhex("04224D1860408200000000")
EMPTY_ZSTD = bytes.fromhex("28B52FFD22000000010000")
ZSTD = EMPTY_ZSTD[:4]
_FIELDS = ("version segment number records frame_bytes epoch events page_bytes event_bytes first_record first_tick "
           "last_tick wall_ns addr_low addr_high types procs records_hash tag lost all_gaps inexact away_ns").split()
_FIXED = struct.Struct("<6I2HI3QqII32s32sQQ80s3Q")
CHUNK_FIXED = 8 + _FIXED.size  # the events follow, then the page counts and a hash


_XXH3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
_XXH3.argtypes, _XXH3.restype = (ctypes.c_char_p, ctypes.c_size_t), ctypes.c_uint64


def of_records(function):
    """For functions that read recordings: what they find wrong is never by chance (flaky.py)."""

    @functools.wraps(function)
    def wrapper(*arguments, **options):
        try:
            return function(*arguments, **options)
        except AssertionError as why:
            raise Corrupt(*why.args) from why

    return wrapper


def check_hash(data, stored, what):
    """Checks XXH3-64 of some bytes."""
    got = hash_of(data)
    assert got == stored, f"{what}: XXH3 is {got:016x}, stored {stored:016x}"


def hash_of(data):
    """Returns XXH3-64 of some bytes."""
    return _XXH3(bytes(data), len(data))


@dataclasses.dataclass
class Event:
    position: int
    kind: str
    cause: str
    exact: bool
    value: int
    duration_ns: int
    text: str


@dataclasses.dataclass
class Chunk:
    info: dict
    events: list
    offset: int
    fixed: bytes
    pages: bytes
    frame: bytes
    records: bytes = b""

    @property
    def header_bytes(self):
        return CHUNK_FIXED + self.info["event_bytes"] + self.info["page_bytes"] + 8


@dataclasses.dataclass
class Segment:
    path: pathlib.Path
    header: dict
    chunks: list
    is_sealed: bool
    summary_at: int = 0
    nodes: list = dataclasses.field(default_factory=list)  # page counts, as in the file


@dataclasses.dataclass
class Recorded:
    """A recording read from segments."""

    segments: list
    records: bytes
    ticks: array.array
    inexact: set
    epochs: dict  # epoch: number of its first record
    gaps: list  # see Expected.gaps
    triggers: list
    marks: list  # (number of the record after it, text)
    gap_events: int = 0

    @property
    def chunks(self):
        return [chunk for segment in self.segments for chunk in segment.chunks]


def _check_frame(frame, records, where):
    if frame[:4] == ZSTD:
        assert frame[4] & 0x1F == 0, f"{where}: a checksum or a dictionary, descriptor {frame[4]:02x}"
        assert len(frame) <= 12 * records + 33 and (records or len(frame) == 12), f"{where}: {len(frame)} bytes"
        return
    assert frame[:6] == bytes.fromhex("04224D186860"), f"{where}: magic, FLG, BD {frame[:6].hex()}"
    assert struct.unpack_from("<Q", frame, 6)[0] == 12 * records, f"{where}: content size"
    if records == 0:
        assert len(frame) == 19 and frame[15:] == bytes(4), f"{where}: not an empty frame"
        return
    block = struct.unpack_from("<I", frame, 15)[0]
    length = block & 0x7FFFFFFF
    assert len(frame) == 15 + 4 + length + 4, f"{where}: not one block"
    assert frame[-4:] == bytes(4), f"{where}: end mark"
    assert length == 12 * records if block >> 31 else length < 12 * records, f"{where}: block of {length}"


def _parse_events(data, info, where):
    events = []
    at = before = 0
    for _ in range(info["events"]):
        kind, flags, cause, zero, position, value, ns, text, zeros = struct.unpack_from("<4BIQQH6s", data, at)
        assert zero == 0 and zeros == bytes(6) and flags & ~1 == 0, f"{where}: event's reserved bytes"
        assert before <= position <= info["records"], f"{where}: event at {position}"
        before = position
        name = {1: "gap", 2: "anchor", 3: "mark", 4: "trigger", 5: "note", 6: "end"}[kind]
        assert (cause in GAPS) == (name == "gap"), f"{where}: {name} of cause {cause}"
        assert name in ("gap", "anchor") or value == 0, f"{where}: value of a {name}"
        if name == "end":
            # Not returned: it describes the recording.
            end = json.loads(data[at + 32 : at + 32 + text])
            assert position == info["records"] and at + 32 + text == len(data), f"{where}: events after the end"
            assert set(end) == {"reason", "ended", "boot_id"}, f"{where}: {end}"
            return events
        events.append(Event(position, name, GAPS.get(cause, ""), bool(flags & 1), value, ns,
                            data[at + 32 : at + 32 + text].decode()))
        at += 32 + text
    assert at == len(data), f"{where}: {len(data) - at} bytes after the events"
    return events


def _parse_header(data, at, length):
    check_hash(data[at : at + length], struct.unpack_from("<Q", data, at + length)[0], "segment header")
    header = json.loads(data[at + 8 : at + length].decode())
    required = {"format", "version", "recording", "sequence", "label", "segment", "continues", "source", "board", "mapping",
              "host", "program", "first", "metadata"}
    assert required <= set(header), f"segment header lacks {required - set(header)}"
    assert header.get("compression") in ("lz4", "fast", "default", "dense", "zstd", None), header
    assert header["format"] == "buscap-segment" and header["version"] == 4, header
    assert {"kind", "name", "clock_hz"} <= set(header["source"]), header
    assert {"wall", "wall_ns", "tick", "epoch", "record"} <= set(header["first"]), header
    return header


def _parse_index(data, at, length, segment):
    where = f"{segment.path.name}: index"
    _, _, version, rows, records, gaps, inexact, lost, offset, summary, head_hash = struct.unpack_from("<4IQ2I4Q", data, at)
    check_hash(data[at : at + 56], head_hash, where)
    assert (version, summary, offset) == (4, segment.summary_at, at), f"{where}: version {version}, offset {offset}"
    assert rows == len(segment.chunks) and length == 96 + CHUNK_FIXED * rows, f"{where}: {rows} rows"
    assert records == sum(chunk.info["records"] for chunk in segment.chunks), f"{where}: {records} records"
    all_gaps = [e for chunk in segment.chunks for e in chunk.events if e.kind == "gap"]
    assert gaps == len(all_gaps), f"{where}: {gaps} gaps, the chunks have {len(all_gaps)}"
    assert inexact == sum(not e.exact for e in all_gaps), f"{where}: {inexact} inexact gaps"
    assert lost == sum(e.value for e in all_gaps), f"{where}: {lost} lost"
    first = at + 64
    for i, chunk in enumerate(segment.chunks):
        row = data[first + CHUNK_FIXED * i : first + CHUNK_FIXED * (i + 1)]
        assert row == struct.pack("<Q", chunk.offset) + chunk.fixed, f"{where}: row {i}"
    end = first + CHUNK_FIXED * rows
    rows_hash, index_offset, file_bytes, magic, trailer_hash = struct.unpack_from("<QQQ8sQ", data, end)
    check_hash(data[first:end], rows_hash, f"{where}: rows")
    trailer = end + 8
    check_hash(data[trailer : trailer + 24], trailer_hash, f"{where}: trailer")
    assert (index_offset, file_bytes, magic) == (at, len(data), b"BCAPEND1"), f"{where}: trailer"
    assert trailer + 32 == len(data), f"{where}: bytes after the trailer"


def _parse_page_summary(data, at, length, segment):
    where = f"{segment.path.name}: page summary"
    version, chunks, offset, nodes_bytes, head_hash = struct.unpack_from("<IIQQQ", data, at + 8)
    check_hash(data[at : at + 32], head_hash, where)
    assert (version, chunks, offset) == (4, len(segment.chunks), at), f"{where}: {version} {chunks} {offset}"
    nodes = sum(page_reference.levels(chunks))
    lengths = struct.unpack_from(f"<{nodes}I", data, at + 40)
    check_hash(data[at + 40 : at + 40 + 4 * nodes], struct.unpack_from("<Q", data, at + 40 + 4 * nodes)[0], where)
    node = at + 48 + 4 * nodes
    assert sum(lengths) == nodes_bytes and node + nodes_bytes == at + 8 + length, f"{where}: lengths"
    for n in lengths:
        if n:
            check_hash(data[node : node + n - 8], struct.unpack_from("<Q", data, node + n - 8)[0], f"{where}: node")
        segment.nodes.append(data[node : node + max(n - 8, 0)])
        node += n
    segment.summary_at = at


@of_records
def read_segment(path):
    """Reads one segment and checks its structure and checksums, but not each record: for large segments."""
    path = pathlib.Path(path)
    data = path.read_bytes()
    is_zstd = ".byu.zst" in path.name
    assert data[:11] == (EMPTY_ZSTD if is_zstd else EMPTY_FRAME), f"{path.name}: starts with {data[:11].hex()}"
    segment = Segment(path, {}, [], False)
    at = 11
    while at < len(data):
        where = f"{path.name}: byte {at}"
        assert not segment.is_sealed, f"{where}: bytes after the index"
        magic, length = struct.unpack_from("<II", data, at)
        if magic == 0x184D2A50:
            assert at == 11, f"{where}: a second header"
            segment.header = _parse_header(data, at, length)
            assert (segment.header.get("compression") == "zstd") == is_zstd, segment.header
        elif magic == 0x184D2A51:
            fixed = data[at + 8 : at + CHUNK_FIXED]
            info = dict(zip(_FIELDS, _FIXED.unpack(fixed)))
            info["lost"] = struct.unpack("<10Q", info["lost"])
            events_end = at + CHUNK_FIXED + info["event_bytes"]
            end = events_end + info["page_bytes"]
            assert info["version"] == 4 and at + length == end, f"{where}: length {length}"
            assert info["page_bytes"] <= 10240, f"{where}: {info['page_bytes']} bytes of page counts"
            assert info["records"] <= CHUNK_RECORDS and info["events"] <= 256, where
            assert info["number"] == len(segment.chunks), f"{where}: chunk number {info['number']}"
            assert info["segment"] == segment.header["segment"], f"{where}: segment number"
            check_hash(data[at:end], struct.unpack_from("<Q", data, end)[0], where)
            check_hash(segment.header["recording"].encode(), info["tag"], f"{where}: tag")
            events = _parse_events(data[at + CHUNK_FIXED : events_end], info, where)
            frame = data[end + 8 : end + 8 + info["frame_bytes"]]
            _check_frame(frame, info["records"], where)
            assert (frame[:4] == ZSTD) == is_zstd, f"{where}: another kind of frame"
            segment.chunks.append(Chunk(info, events, at, fixed, data[events_end:end], frame))
            at += info["frame_bytes"]
        elif magic == 0x184D2A56:
            _parse_page_summary(data, at, length, segment)
        elif magic == 0x184D2A52:
            _parse_index(data, at, length, segment)
            segment.is_sealed = True
        else:
            raise AssertionError(f"{where}: magic {magic:08x}")
        at += 8 + length
    # One run of the program for all frames: it accepts concatenated frames.
    packed = b"".join(chunk.frame for chunk in segment.chunks)
    plain = b""
    if packed:
        plain = subprocess.run(["zstd" if is_zstd else "lz4", "-dc"], input=packed, capture_output=True,
                               check=True).stdout
    done = 0
    for chunk in segment.chunks:
        chunk.records = plain[done : done + 12 * chunk.info["records"]]
        done += 12 * chunk.info["records"]
        check_hash(chunk.records, chunk.info["records_hash"], f"{path.name}: records of a chunk")
    assert done == len(plain), f"{path.name}: {len(plain)} bytes of records, {done} according to the chunk headers"
    return segment


def forged(path, changes):
    """Returns a segment without its index, in whose chunk headers these fields, (chunk, format, offset, value), are changed."""
    data = bytearray(path.read_bytes())
    chunks = read_segment(path).chunks
    for number, form, offset, value in changes:
        chunk = chunks[number]
        struct.pack_into(form, data, chunk.offset + offset, value)
        end = chunk.offset + chunk.header_bytes - 8
        struct.pack_into("<Q", data, end, hash_of(data[chunk.offset : end]))
    return data[: chunks[-1].offset + chunks[-1].header_bytes + chunks[-1].info["frame_bytes"]]


def _bitmap(values):
    bits = bytearray(32)
    for value in values:
        bits[value // 8] |= 1 << value % 8
    return bytes(bits)


def _check_summary(chunk, where):
    info, records = chunk.info, chunk.records
    addresses = memoryview(records).cast("I")[::3].tolist()
    assert info["addr_low"] <= min(addresses, default=0xFFFFFFFF), f"{where}: lowest address"
    assert info["addr_high"] >= max(addresses, default=0), f"{where}: highest address"
    assert info["types"] == _bitmap(set(records[4::12])), f"{where}: types"
    assert info["procs"] == _bitmap(set(records[7::12])), f"{where}: processors"


def _add_ticks(chunk, last, epoch, recorded, where):
    """Adds the chunk's ticks. `last` and `epoch` are those of the previous chunk."""
    info = chunk.info
    anchors = {event.position: event for event in chunk.events if event.kind == "anchor"}
    times = memoryview(chunk.records).cast("I")[2::3].tolist()
    tick = last if epoch == info["epoch"] else 0
    if not times:
        assert info["first_tick"] == info["last_tick"], where
        assert info["first_tick"] == tick, f"{where}: tick {info['first_tick']} without records, {tick} before"
    else:
        if info["epoch"] not in recorded.epochs:
            recorded.epochs[info["epoch"]] = info["first_record"]
            # The first record of a recording of a BYU file may have a delta.
            assert 0 in anchors or len(recorded.ticks) == 0, f"{where}: epoch without anchor"
        unknown = sorted(anchors)
        assert len(unknown) == times.count(NO_DELTA) and all(times[i : i + 1] == [NO_DELTA] for i in unknown), (
            f"{where}: anchors at {unknown}, {times.count(NO_DELTA)} records without a time")
        for begin, end in zip([0, *unknown], [*unknown, len(times)]):
            run = times[begin:end]
            if begin in anchors and run:
                run = (anchors[begin].value, *run[1:])
                assert run[0] >= tick, f"{where}: tick decreases at {begin}"
                if not anchors[begin].exact:
                    recorded.inexact.add(info["first_record"] + begin)
                tick = 0
            recorded.ticks.extend(itertools.islice(itertools.accumulate(run, initial=tick), 1, None))
            tick = recorded.ticks[-1] if run else tick
        first = recorded.ticks[-len(times)]
        assert first == info["first_tick"], f"{where}: first tick {info['first_tick']}, not {first}"
        assert tick == info["last_tick"], f"{where}: last tick {info['last_tick']}, not {tick}"
    return tick, info["epoch"]


@of_records
def read_segments(paths, is_sealed=True):
    """Reads all segments of a recording and checks everything that the document specifies. Returns a Recorded."""
    recorded = Recorded([], b"", array.array("Q"), set(), {}, [], [], [])
    gaps = {}
    lost = [0] * 10  # by cause
    inexact = away_ns = 0
    last = epoch = 0
    for path in map(pathlib.Path, paths):
        segment = read_segment(path)
        assert segment.is_sealed or not is_sealed, f"{path.name}: not sealed"
        header = segment.header
        assert path.name.startswith(f"{header['recording']}-{header['segment']:05}.byu."), header
        assert header["segment"] == len(recorded.segments), f"{path.name}: segment {header['segment']}"
        first = segment.chunks[0].info if segment.chunks else None
        if first:
            expected = {"tick": first["first_tick"], "epoch": first["epoch"], "record": first["first_record"],
                    "wall_ns": first["wall_ns"]}
            got = {name: header["first"][name] for name in expected}
            assert got == expected, f"{path.name}: header has {got}, first chunk {expected}"
        page_reference.check_segment(segment)
        for chunk in segment.chunks:
            where = f"{path.name}: chunk {chunk.info['number']}"
            assert chunk.info["first_record"] == len(recorded.ticks), f"{where}: first record"
            assert chunk.info["epoch"] >= epoch, f"{where}: epoch decreases"
            _check_summary(chunk, where)
            last, epoch = _add_ticks(chunk, last, epoch, recorded, where)
            for event in chunk.events:
                at = chunk.info["first_record"] + event.position
                if event.kind == "gap":
                    recorded.gap_events += 1
                    before, exact = gaps.get((at, event.cause), (0, True))
                    gaps[at, event.cause] = before + event.value, exact and event.exact
                    number = next(number for number, name in GAPS.items() if name == event.cause)
                    lost[number] = (lost[number] + event.value) % 2**64
                elif event.kind == "trigger":
                    recorded.triggers.append(at)
                elif event.kind == "mark":
                    recorded.marks.append((at, event.text))
                if event.kind == "gap":
                    inexact += not event.exact
                    away_ns += event.duration_ns
            assert list(chunk.info["lost"]) == lost, f"{where}: {chunk.info['lost']} lost, by its gaps {lost}"
            totals = tuple(chunk.info[name] for name in ("all_gaps", "inexact", "away_ns"))
            assert totals == (recorded.gap_events, inexact, away_ns), f"{where}: {totals}"
        recorded.segments.append(segment)
    recorded.records = b"".join(chunk.records for chunk in recorded.chunks)
    recorded.gaps = sorted((at, cause, lost, exact) for (at, cause), (lost, exact) in gaps.items())
    return recorded


# ---- the generator against the decoder


def self_check(seeds):
    for seed in seeds:
        rng = random.Random(seed)
        features = random_features(rng, rng.randrange(1, 4000))
        data, made = make_bcp1(rng, features)
        found = decode_bcp1(data)
        for name in ("records", "ticks", "epochs", "triggers", "received", "invalid", "board_lost", "skipped_bytes",
                     "gaps"):
            a, b = getattr(made, name), getattr(found, name)
            assert a == b, f"seed {seed}, {features}: {name}: made {str(a)[:600]}, found {str(b)[:600]}"


if __name__ == "__main__":
    self_check(range(200))
    print("generator and decoder agree")
    sys.exit(0)
