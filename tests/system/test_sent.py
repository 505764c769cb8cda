"""tests/machine/sent.py, with which `make test-machine` checks recordings: it accepts a correct recording of the sent
stream and nothing else. Streams are small, so that every bit, record, frame and gap can be tested."""

import dataclasses
import pathlib
import random
import sys
import types

from harness import ROOT, equal
from reference import MANY, Features, decode_header, make_bcp1

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


@dataclasses.dataclass
class Case:
    """Two connections with an unplug between them."""

    frames: list
    records: bytes
    ticks: list
    gaps: list

    def recording(self, **changed):
        return describe(**{"records": self.records, "ticks": self.ticks, "gaps": self.gaps, **changed})


def make_case(tmp):
    (first, one), (second, two) = make_stream(1), make_stream(2)
    for number, data in enumerate((first, second), 1):
        (tmp / f"kept.{number}").write_bytes(data)
    n = len(one)
    gaps = one.gaps + [(n, "unplugged", 0, False)] + [(n + at, *rest) for at, *rest in two.gaps]
    return Case(sent.read_streams([tmp / "kept.1", tmp / "kept.2"]), bytes(one.records + two.records),
                [*one.ticks, *two.ticks], gaps)


def is_noticed(recording, frames, start=0):
    try:
        sent.compare(recording, frames, start)
    except AssertionError:
        return True
    return False


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
