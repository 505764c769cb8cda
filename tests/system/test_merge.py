"""buscap merge, compared with a sort of the records read by tests/support/cut_model.py."""

import collections
import random
import struct

import harness
import reference
from cut_model import buscap, read, record_file
from harness import equal
from test_cut import rich_stream


def stable(inputs, keys):
    """Merges the records of several inputs by their keys. A key lower than its predecessor is raised to it."""
    rows = []
    for i, (records, of) in enumerate(zip(inputs, keys)):
        last = None
        for n, (record, key) in enumerate(zip(records, of)):
            last = key if last is None or key > last else last
            rows.append((last, i, n, record))
    rows.sort(key=lambda row: row[:3])
    return rows


def walls(recording, clock_hz=None):
    """Times of day in ns, as whole numbers."""
    return [r.wall_hz // recording.clock_hz for r in recording.records]


def merge(tmp, *argv, name="out.byu.lz4", code=0):
    _, err = buscap("merge", *argv, "-o", tmp / name, code=code)
    buscap("verify", tmp / name)
    return read(tmp / name), err


def lost_by_cause(recordings):
    lost = collections.Counter()
    for recording in recordings:
        for gap in recording.gaps:
            lost[gap.cause] += gap.lost
    return lost


def test_by_tick_is_a_stable_sort_by_epoch_and_tick(tmp):
    for seed in harness.some(range(4), 2):
        paths = [record_file(tmp, rich_stream(10 * seed + i, 700 * (i + 1)), clock_hz=1000) for i in range(3)]
        inputs = [read(path) for path in paths]
        got, err = merge(tmp, "--by", "tick", *paths, name=f"{seed}.byu.lz4")
        equal(err, "", "messages")
        wanted = stable([r.records for r in inputs], [[(r.epoch, r.tick) for r in x.records] for x in inputs])
        equal([r[1:8] for r in got.records], [row[3][1:8] for row in wanted], "records")
        equal(lost_by_cause([got]), lost_by_cause(inputs), "gaps")
        equal(got.header["metadata"], {"merged_from": " ".join(r.header["recording"] for r in inputs)}, "metadata")
        equal(got.clock_hz, 1000, "clock_hz")


def test_by_time_of_day_is_a_stable_sort_and_ticks_are_ns(tmp):
    for seed in harness.some(range(4), 2):
        clocks = (66000000, 10**9, 33333333)
        paths = [record_file(tmp, rich_stream(50 + 10 * seed + i, 800), clock_hz=clock)
                 for i, clock in enumerate(clocks)]
        inputs = [read(path) for path in paths]
        got, err = merge(tmp, *paths, name=f"{seed}.byu.lz4")
        times = [walls(recording) for recording in inputs]
        base = min(t[0] for t in times)
        wanted = stable([r.records for r in inputs], times)
        equal([(r.addr, r.type, r.size, r.attr, r.proc, r.tick) for r in got.records],
              [(r.addr, r.type, r.size, r.attr, r.proc, key - base) for key, _, _, r in wanted], "records")
        equal({r.epoch for r in got.records}, {0}, "epochs")
        equal(walls(got), [key for key, *_ in wanted], "times of day")
        equal(got.clock_hz, 10**9, "clock_hz")
        equal(lost_by_cause([got]), lost_by_cause(inputs), "gaps")
        # Entries that are out of order within an input are counted.
        disorders = 0
        for of in times:
            high = of[0]
            for time in of[1:]:
                disorders += time < high
                high = max(high, time)
        reported = sum(int(line.split(": ")[2].split()[0]) for line in err.splitlines() if "out of order" in line)
        equal(reported, disorders, err)


def test_by_time_of_day_needs_a_clock_rate(tmp):
    paths = [record_file(tmp, rich_stream(i, 300)) for i in range(2)]
    got, _ = merge(tmp, "--clock-hz", "66000000", *paths)
    equal(len(got.records), sum(len(read(path).records) for path in paths), "records")


def test_renumber_separates_processors(tmp):
    paths = [record_file(tmp, reference.make_byu(random.Random(i), 500)[0], "byu", clock_hz=9) for i in range(3)]
    got, _ = merge(tmp, "--by", "tick", "--renumber", "4", *paths)
    inputs = [read(path) for path in paths]
    wanted = stable([r.records for r in inputs], [[(r.epoch, r.tick) for r in x.records] for x in inputs])
    equal([r.proc for r in got.records], [r.proc + 4 * i for _, i, _, r in wanted], "processors")
    _, err = buscap("merge", "--by", "tick", "--renumber", "2", *paths, "-o", tmp / "y.byu.lz4", code=1)
    assert "too high for --renumber 2" in err, err
    _, err = buscap("merge", "--by", "tick", "--renumber", "100", *paths, "-o", tmp / "z.byu.lz4", code=None)
    equal(max(r.proc for r in read(tmp / "z.byu.lz4").records) >= 200, True, "processors up to 203")


def test_each_input_may_have_its_own_format(tmp):
    references, events = tmp / "refs", tmp / "events"
    references.write_bytes(b"".join(struct.pack("<cQBII", b"r", 10 * i, 4, 1, i) for i in range(5)))
    events.write_text("F 14 100 77\nM 1f 1 2\n")
    out, _ = buscap("merge", "-I", "laplace", "-I", "laplace-events", references, events)
    equal(out.decode().splitlines(), ["r 0 4 1 0", "r a 4 1 1", "r 14 4 1 2", "F 14 100 77", "r 1e 4 1 3", "M 1f 1 2",
                                      "r 28 4 1 4"], "the merged text")
