"""Compares what a board sent with what was recorded: every record, its tick, and every gap.

    frames = read_streams([kept.1, kept.2])      the frames of each connection, from tests/usbredir_board
    recording = read_recording(paths)            one recording, from its segments
    found = compare(recording, frames, 0)        its place in the stream; AssertionError if it differs

tests/support/reference.py makes the records from the samples; it shares no code with the programs. The board's bus
is a loop, so frames repeat: each is decoded once.
"""

import array
import bisect
import dataclasses
import pathlib
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import reference  # noqa: E402
from reference import AGENT, LAST, LOSS, MANY, NO_DELTA  # noqa: E402


@dataclasses.dataclass
class Made:
    """The expected records of a frame's samples, without the time of the first record."""

    records: bytes
    ticks: array.array  # of each record, relative to the frame's tick


@dataclasses.dataclass
class Frame:
    connection: int
    sequence: int
    samples: int
    tick: int
    lost: object  # None, or the loss that its header reports
    is_last: bool
    made: Made


@dataclasses.dataclass
class Recording:
    id: str
    segments: list
    records: bytes
    gaps: list  # (number of records before it, cause, lost, exact); gaps of one cause at one place are merged

    @property
    def header(self):
        return self.segments[0].header

    def __len__(self):
        return len(self.records) // 12


@dataclasses.dataclass
class Found:
    first: int  # number of its first frame
    end: int  # number after its last frame
    is_cut: bool  # its last frame is incomplete
    missing: list  # for each unplug, samples that were sent but not received


# ---- the stream


def _make(payload, flags, proc):
    expected = reference.Expected()
    expected.samples(flags, proc, 0, [
        (a, b, c, d1 | d2 << 8) for a, b, c, d1, d2 in struct.iter_unpack(">IBBBB", payload)])
    return Made(bytes(expected.records), expected.ticks)


def read_streams(paths):
    """Returns the frames of these connections. All bytes must belong to whole frames, except at the end of a
    connection."""
    known = {}
    frames = []
    for connection, path in enumerate(map(pathlib.Path, paths), 1):
        data = path.read_bytes()
        at = 0
        while at < len(data):
            head = reference.decode_header(data, at)
            end = at + 32 + (8 * head[3] + 4 if head and head[3] else 0)
            if head is None and len(data) - at < 32 or head and end > len(data):
                break  # cut off by an unplug
            assert head is not None, f"{path.name}: no frame at {at}"
            flags, proc, sequence, n, tick, lost = head
            payload = data[at + 32 : at + 32 + 8 * n]
            if n:
                assert struct.pack("<I", zlib.crc32(payload)) == data[end - 4 : end], f"{path.name}: CRC at {at}"
            key = payload, flags & AGENT, proc
            if key not in known:
                known[key] = _make(payload, flags, proc)
            frames.append(Frame(connection, sequence, n, tick, lost if flags & LOSS else None, bool(flags & LAST),
                                known[key]))
            at = end
    return frames


# ---- the recording


def read_recording(paths):
    """Reads all segments of one recording."""
    segments = [reference.read_segment(path) for path in sorted(paths)]
    gaps = {}
    at = 0
    for number, segment in enumerate(segments):
        assert segment.is_sealed, f"{segment.path.name} is not sealed"
        assert segment.header["segment"] == number, f"{segment.path.name}: number {segment.header['segment']}"
        assert segment.header["recording"] == segments[0].header["recording"], segment.path.name
        for chunk in segment.chunks:
            assert chunk.info["first_record"] == at, f"{segment.path.name}: first record {chunk.info}, not {at}"
            for event in chunk.events:
                if event.kind == "gap":
                    key = at + event.position, event.cause
                    lost, exact = gaps.get(key, (0, True))
                    gaps[key] = lost + event.value, exact and event.exact
            at += chunk.info["records"]
    records = b"".join(chunk.records for segment in segments for chunk in segment.chunks)
    gaps = sorted((place, cause, lost, exact) for (place, cause), (lost, exact) in gaps.items())
    return Recording(segments[0].header["recording"], segments, records, gaps)


def read_recordings(directory):
    """Reads all recordings in a directory, in order of their start."""
    by_id = {}
    for path in sorted(pathlib.Path(directory).glob("*.byu.lz4")):
        by_id.setdefault(path.name[: -len("-00000.byu.lz4")], []).append(path)
    return [read_recording(paths) for _, paths in sorted(by_id.items())]


# ---- the comparison


def _find_first(recording, frames, start):
    tick = next(c.info["first_tick"] for s in recording.segments for c in s.chunks if c.info["records"])
    for i in range(start, len(frames)):
        made = frames[i].made
        if made.records and frames[i].tick + made.ticks[0] == tick:
            n = min(len(made.records), len(recording.records))
            if made.records[12:n] == recording.records[12:n]:
                return i
    raise AssertionError(f"{recording.id}: its first record (tick {tick}) was never sent")


def _first_difference(got, expected):
    for at in range(0, len(expected), 12):
        if got[at : at + 12] != expected[at : at + 12]:
            return at // 12, got[at : at + 12].hex(), expected[at : at + 12].hex()
    return None


def _check_ticks(recording, starts, frames):
    """Returns the absolute ticks of each chunk's first and last record."""
    numbers = [number for number, _ in starts]
    for segment in recording.segments:
        for chunk in segment.chunks:
            first, n = chunk.info["first_record"], chunk.info["records"]
            for number, name in ((first, "first_tick"), (first + n - 1, "last_tick")) if n else ():
                at, frame = starts[bisect.bisect_right(numbers, number) - 1]
                tick = frames[frame].tick + frames[frame].made.ticks[number - at]
                assert chunk.info[name] == tick, (
                    f"{segment.path.name}, chunk {chunk.info['number']}: {name} {chunk.info[name]}, the board's {tick}")


def compare(recording, frames, start):
    """Compares a recording with what was sent from frame `start` on. It must consist of consecutive frames, all whole
    except the last. At each recorded unplug, the last frames of that connection may be missing. Its gaps must be
    exactly the losses reported by the board and the unplugs. Returns a Found."""
    first = i = _find_first(recording, frames, start)
    unplugs = {at for at, cause, _, _ in recording.gaps if cause == "unplugged"}
    gaps = []
    missing = []
    starts = []  # (number of a frame's first record, number of the frame)
    at = 0
    before = None  # tick of the previous record in this epoch
    is_cut = False
    while at < len(recording):
        assert i < len(frames), f"{recording.id}: {len(recording) - at} more records than were sent"
        if at in unplugs and frames[i].connection == frames[i - 1].connection and before is not None:
            missing.append(0)
            while frames[i].connection == frames[i - 1].connection:
                assert i + 1 < len(frames), f"{recording.id}: unplug at record {at}, but no further connection"
                missing[-1] += frames[i].samples
                i += 1
        frame = frames[i]
        if i > first and frame.connection != frames[i - 1].connection:
            assert at in unplugs, f"{recording.id}: no gap at record {at}, where the board was unplugged"
            if before is not None and len(missing) < sum(g <= at for g in unplugs):
                missing.append(0)
            gaps.append((at, "unplugged", 0, False))
            before = None
        if frame.lost is not None:
            gaps.append((at, "board", frame.lost, frame.lost != MANY))
        made = frame.made
        if made.records:
            tick = frame.tick + made.ticks[0]
            time = NO_DELTA if before is None or tick - before >= NO_DELTA else tick - before
            expected = made.records[:8] + struct.pack("<I", time) + made.records[12:]
            got = recording.records[12 * at : 12 * at + len(expected)]
            is_cut = len(got) < len(expected)
            assert expected.startswith(got), (
                f"{recording.id}: from record {at}: (number, got, expected) "
                f"{_first_difference(got, expected)} of frame {i}, sequence {frame.sequence}")
            starts.append((at, i))
            at += len(got) // 12
            before = frame.tick + made.ticks[len(got) // 12 - 1]
        i += 1
    _check_ticks(recording, starts, frames)
    while i < len(frames) and not frames[i].samples and frames[i].connection == frames[i - 1].connection and \
            not frames[i - 1].is_last and not is_cut:
        if frames[i].lost is not None:
            gaps.append((at, "board", frames[i].lost, frames[i].lost != MANY))
        i += 1
    assert recording.gaps == sorted(gaps), f"{recording.id}: gaps {recording.gaps}, expected {sorted(gaps)}"
    return Found(first, i, is_cut, missing)
