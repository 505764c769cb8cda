"""tests/machine/sent.py, with which `make test-machine` checks recordings: it accepts a correct recording of the sent
stream and nothing else. Streams are small, so that every bit, record, frame and gap can be tested."""

import copy
import dataclasses
import pathlib
import random
import struct
import sys
import types

from harness import BUSCAPD, ROOT, equal, run
from reference import MANY, NO_DELTA, Features, decode_header, make_bcp1

sys.path.insert(0, str(ROOT / "tests/machine"))
import sent  # noqa: E402

FEATURES = Features(samples=70, frame=12, agents=2, p_invalid=0.1, p_pause=0.01, p_heartbeat=0.2, p_loss=0.3)
CHUNK = 9  # records


def make_stream(seed):
    """Returns the bytes of a connection and its expected records."""
    rng = random.Random(seed)
    while True:
        data, expected = make_bcp1(rng, FEATURES)
        exact = {exact for _, _, _, exact in expected.gaps}
        # Losses with and without a known number, none at the end, and a first frame with records.
        if exact == {True, False} and expected.gaps[-1][0] < len(expected) and decode_header(data, 0)[3] > 3:
            return data, expected


def describe(records, ticks, gaps):
    """Returns a Recording with these contents, in chunks."""
    chunks = []
    for first in range(0, len(ticks), CHUNK):
        n = min(CHUNK, len(ticks) - first)
        info = {"number": len(chunks), "first_record": first, "records": n, "first_tick": ticks[first],
                "last_tick": ticks[first + n - 1]}
        chunks.append(types.SimpleNamespace(info=info))
    segment = types.SimpleNamespace(path=pathlib.Path("REC-00000.byu.lz4"), chunks=chunks)
    return sent.Recording("REC", [segment], bytes(records), sorted(gaps))


def timed(records, ticks, fresh):
    """The records with times according to their ticks; those at `fresh` are the first of a connection."""
    records = bytearray(records)
    for i, tick in enumerate(ticks):
        delta = NO_DELTA if i in fresh else tick - ticks[i - 1]
        struct.pack_into("<I", records, 12 * i + 8, min(delta, NO_DELTA))
    return records


@dataclasses.dataclass
class Case:
    """Two connections with an unplug between them."""

    frames: list
    records: bytes
    ticks: list
    gaps: list
    second: int  # number of the second connection's first record

    def recording(self, **changed):
        return describe(**{"records": self.records, "ticks": self.ticks, "gaps": self.gaps, **changed})

    def without(self, first, n):
        """Returns the recording without these records; times and gaps are as if they had never existed."""
        keep = [i for i in range(len(self.ticks)) if not first <= i < first + n]
        ticks = [self.ticks[i] for i in keep]
        records = b"".join(self.records[12 * i : 12 * i + 12] for i in keep)
        second = sum(i < self.second for i in keep)
        gaps = [(sum(i < at for i in keep), *rest) for at, *rest in self.gaps]
        return describe(timed(records, ticks, {0, second}), ticks, gaps)


def make_case(tmp):
    (first, one), (second, two) = make_stream(1), make_stream(2)
    for number, data in enumerate((first, second), 1):
        (tmp / f"kept.{number}").write_bytes(data)
    n = len(one)
    gaps = one.gaps + [(n, "unplugged", 0, False)] + [(n + at, *rest) for at, *rest in two.gaps]
    return Case(sent.read_streams([tmp / "kept.1", tmp / "kept.2"]), bytes(one.records + two.records),
                [*one.ticks, *two.ticks], gaps, n)


def is_noticed(recording, frames, start=0):
    try:
        sent.compare(recording, frames, start)
    except AssertionError:
        return True
    return False


def places(case):
    """(number, first record, records) of each frame."""
    at = 0
    for i, frame in enumerate(case.frames):
        n = len(frame.made.records) // 12
        yield i, at, n
        at += n


def test_a_correct_recording_is_found_whole(tmp):
    case = make_case(tmp)
    found = sent.compare(case.recording(), case.frames, 0)
    equal((found.first, found.end, found.is_cut, found.missing), (0, len(case.frames), False, [0]))
    # Starting at a later frame, it was never sent.
    equal(is_noticed(case.recording(), case.frames, 1), True, "started after its first frame")


def test_every_bit_of_every_record_is_checked(tmp):
    case = make_case(tmp)
    assert 80 < len(case.ticks) < 200, len(case.ticks)
    for bit in range(8 * len(case.records)):
        records = bytearray(case.records)
        records[bit // 8] ^= 1 << bit % 8
        assert is_noticed(case.recording(records=records), case.frames), f"bit {bit % 96} of record {bit // 96}"


def test_every_bit_of_every_chunks_ticks_is_checked(tmp):
    case = make_case(tmp)
    good = case.recording()
    for number, chunk in enumerate(good.segments[0].chunks):
        for name in ("first_tick", "last_tick"):
            for bit in range(64):
                bad = copy.deepcopy(good)
                bad.segments[0].chunks[number].info[name] = chunk.info[name] ^ 1 << bit
                assert is_noticed(bad, case.frames), f"bit {bit} of {name} of chunk {number}"


def test_a_record_left_out_is_noticed_or_cuts_the_end(tmp):
    case = make_case(tmp)
    for i in range(len(case.ticks) - 1):
        # A single frame before the unplug may have been in transit.
        is_single = any(n == 1 and at == i == case.second - 1 for _, at, n in places(case))
        assert is_noticed(case.without(i, 1), case.frames) != is_single, f"record {i}"
    found = sent.compare(case.without(len(case.ticks) - 1, 1), case.frames, 0)
    assert found.is_cut or found.end < len(case.frames), found


def test_a_frame_left_out_is_noticed_except_where_the_caller_notices(tmp):
    """Except at the start and end of the recording and before the unplug, where frames may have been in transit."""
    case = make_case(tmp)
    rows = [row for row in places(case) if row[2]]
    last_before = max(i for i, at, n in rows if at + n <= case.second)
    for i, at, n in rows:
        recording = case.without(at, n)
        if i == last_before:
            found = sent.compare(recording, case.frames, 0)
            equal(found.missing, [sum(f.samples for f in case.frames[i:] if f.connection == 1)], "missing")
        elif i == rows[-1][0]:
            if not is_noticed(recording, case.frames):  # a loss reported in it would be noticed
                assert sent.compare(recording, case.frames, 0).end <= i
        elif i == rows[0][0]:
            # With its reported gaps at the start it is a different recording; otherwise it starts after it.
            if not is_noticed(recording, case.frames):
                assert sent.compare(recording, case.frames, 0).first > i
        else:
            assert is_noticed(recording, case.frames), f"frame {i}, records {at} to {at + n}"


def test_place_cause_number_and_exactness_of_each_gap_are_checked(tmp):
    case = make_case(tmp)
    for i, (at, cause, lost, exact) in enumerate(case.gaps):
        rest = case.gaps[:i] + case.gaps[i + 1 :]
        others = {"board", "unplugged", "sequence", "buffer", "disk", "crc"} - {cause}
        for wrong in ([], [(at, cause, lost + 1, exact)], [(at, cause, lost ^ 1 << 31, exact)],
                      [(at, cause, lost, not exact)], [(at + 1, cause, lost, exact)], [(at - 1, cause, lost, exact)],
                      *[[(at, other, lost, exact)] for other in others]):
            if wrong and wrong[0][:2] in [gap[:2] for gap in rest]:
                continue
            assert is_noticed(case.recording(gaps=rest + wrong), case.frames), f"{case.gaps[i]} as {wrong}"
        if lost and lost != MANY:
            assert is_noticed(case.recording(gaps=rest + [(at, cause, lost - 1, exact)]), case.frames), case.gaps[i]


def record(tmp, data, **options):
    (tmp / "sent.1").write_bytes(data)
    words = [word for name, value in options.items() for word in ("-b", f"{name}:{value}")]
    done = run(BUSCAPD, "--once", "--source", f"file:{tmp}/sent.1", "-o", tmp / "out", "--set",
               "pipeline.flush=1h", *words)
    assert done.returncode in (0, 4), done.stderr.decode()
    return sent.read_streams([tmp / "sent.1"])


def test_a_recording_of_buscapd_equals_what_was_sent(tmp):
    data, expected = make_stream(1)
    frames = record(tmp, data)
    (recording,) = sent.read_recordings(tmp / "out")
    equal(recording.gaps, expected.gaps, "gaps")
    equal(len(recording), len(expected), "records")
    equal(sent.compare(recording, frames, 0), sent.Found(0, len(frames), False, []), "found")
