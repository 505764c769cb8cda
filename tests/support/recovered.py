"""Reads what recovery left in a directory, with the second implementation of the format, and compares it with the
simulated bus."""

import bisect
import hashlib
import struct

import harness
import reference

SMALL = ("--set", "pipeline.workers=1", "--set", "pipeline.buffer=16MiB")


def compressed(number):
    """Options of a daemon: every second case records zstd frames."""
    return ("--set", f"output.compression={('default', 'zstd')[number % 2]}")


class Lost(AssertionError):
    """Records that must be there are not."""


def start_again(directory, env=None, code=0):
    """Starts a daemon that recovers the files, records one sample and ends. Returns its log."""
    done = harness.run(harness.BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=1", "-o", directory,
                       *SMALL, env=env)
    harness.equal(done.returncode, code, done.stderr.decode())
    return done.stderr.decode()


def all_segments(directory, recording=""):
    """Sealed and open segments, in order."""
    return sorted(path for suffix in ("", ".partial") for path in directory.glob(f"{recording}*.byu.???{suffix}"))


def left_open(directory, recording=""):
    """The names of the open files that a start had to recover. Not among them is a file that nothing proves to be
    buscapd's: its header did not reach the disk, and it is the only one of its recording."""

    def has_header(data):
        (length,) = struct.unpack_from("<I", data.ljust(19, b"\0"), 15)
        end = 11 + length
        return data[end : end + 8] == struct.pack("<Q", reference.hash_of(data[11:end]))

    def is_ours(path):
        recording = path.name.rsplit("-", 1)[0]
        return any(has_header(file.read_bytes()) for file in directory.glob(f"{recording}-*.byu.*"))

    return [path.name for path in directory.glob(f"{recording}*.partial") if is_ours(path)]


def spans(segments):
    """The contents in order: (samples lost, b"") for a gap, (0, records) for what is between two gaps."""
    for path in segments:
        # One segment at a time: a long recording doesn't fit into memory.
        for chunk in reference.read_segment(path).chunks:
            done = 0
            for event in chunk.events:
                if event.kind == "gap":
                    yield 0, chunk.records[12 * done : 12 * event.position]
                    yield event.value, b""
                    done = event.position
            yield 0, chunk.records[12 * done :]


@reference.of_records
def check_places(segments):
    """Checks that records and gaps together are exactly the simulator's samples. Returns their number."""
    at = lost_ticks = 0
    with harness.SimStream() as expected:
        for lost, records in spans(segments):
            lost_ticks += expected.skip(lost)
            n = len(records) // 12
            at += lost + n
            if n == 0:
                continue
            wanted = expected.read(n)
            # The first delta counts from the last record before the gap.
            delta = lost_ticks + struct.unpack_from("<I", wanted, 8)[0]
            wanted = wanted[:8] + struct.pack("<I", delta) + wanted[12:]
            assert records == wanted, f"the records up to sample {at} differ from the source"
            lost_ticks = 0
    return at


class Ranges:
    """Disjoint ranges of record numbers."""

    def __init__(self):
        self.ranges = []  # (first, end), sorted, not adjacent
        self.crashes = 0  # gaps that a crash caused

    def add(self, first, end):
        if first == end:
            return
        at = bisect.bisect_left(self.ranges, (first, end))
        before = self.ranges[at - 1] if at > 0 else (0, 0)
        after = self.ranges[at] if at < len(self.ranges) else (end, end)
        assert before[1] <= first and end <= after[0], f"records {first} .. {end} are there twice: {self.ranges}"
        self.ranges.insert(at, (first, end))
        merged = []
        for one in self.ranges:
            if merged and merged[-1][1] == one[0]:
                merged[-1] = merged[-1][0], one[1]
            else:
                merged.append(one)
        self.ranges = merged

    def require(self, first, end, what):
        """Raises Lost unless this range is there."""
        if first >= end or any(a <= first and end <= b for a, b in self.ranges):
            return
        raise Lost(f"{what}: records {first} .. {end} are required, there are {self.ranges}")

    def require_all(self, other, what):
        for first, end in other.ranges:
            self.require(first, end, what)


class Reader:
    """Reads the sealed segments of recordings of the simulated bus; `records` are its records. Remembers the segments it
    has read, by content."""

    def __init__(self, records):
        self._records = records
        self._known = {}

    def read(self, directory, recording):
        """Checks every sealed segment of a recording, and compares its records with the simulated bus. Returns the
        Ranges of its records."""
        found = Ranges()
        for path in harness.segments(directory, prefix=recording):
            key = path.name, hashlib.sha1(path.read_bytes()).digest()
            if key not in self._known:
                self._known[key] = self._read_segment(path)
            chunks, crashes = self._known[key]
            for first, end in chunks:
                found.add(first, end)
            found.crashes += crashes
        return found

    def _read_segment(self, path):
        segment = reference.read_segment(path)
        assert segment.is_sealed, f"{path.name}: not sealed"
        expected = segment.header["first"]["record"]
        chunks = []
        crashes = sum(event.cause == "crash" for chunk in segment.chunks for event in chunk.events)
        gap = 0
        for chunk in segment.chunks:
            where = f"{path.name}: chunk {chunk.info['number']}"
            gap += sum(event.value for event in chunk.events if event.kind == "gap" and event.position == 0)
            first = chunk.info["first_record"]
            assert first == expected or first == expected + gap, f"{where}: record {first}, not {expected}, and no gap"
            expected = first + chunk.info["records"]
            same = chunk.records == self._records[12 * first : 12 * expected]
            assert same, f"{where}: records {first} .. {expected} differ from the source"
            gap = sum(event.value for event in chunk.events if event.kind == "gap" and event.position != 0)
            if chunk.info["records"] != 0:
                chunks.append((first, expected))
        return chunks, crashes
