"""buscap merge, compared with a sort of the records read by tests/support/cut_model.py."""

import collections
import random
import struct

import pytest

import harness
import reference
from cut_model import buscap, can_read, can_write, read, record_file
from harness import BUSCAPD, equal, need, run
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


@pytest.mark.asan
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


def test_by_tick_needs_one_clock_rate(tmp):
    data = reference.make_byu(random.Random(1), 100)[0]
    unknown, slow = (record_file(tmp, data, "byu", clock_hz=hz) for hz in (None, 1000))
    merge(tmp, "--by", "tick", unknown, slow)
    equal(harness.info([tmp / "out.byu.lz4"])[0]["source"]["clock_hz"], 1000, "clock_hz")


def test_segments_of_one_recording_are_one_input(tmp):
    stream = tmp / "stream.bcp1"
    stream.write_bytes(rich_stream(15, 6000))
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{stream},clock_hz=5000", "-o", tmp, "-b",
               "filesize:20K")
    assert done.returncode in (0, 3, 4), done.stderr
    paths = harness.segments(tmp)
    assert len(paths) > 1
    other = record_file(tmp, rich_stream(16, 500), clock_hz=5000)
    got, _ = merge(tmp, "--by", "tick", *reversed(paths), other)
    whole = tmp / "whole.byu.lz4"
    buscap("convert", *paths, "-O", "segment", "-o", whole)
    wanted, _ = merge(tmp, "--by", "tick", whole, other, name="wanted.byu.lz4")
    equal([r[1:8] for r in got.records], [r[1:8] for r in wanted.records], "records")


@pytest.mark.asan
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


def test_plain_records_merge_by_the_sum_of_their_times(tmp):
    can_write("byu")
    data = [reference.make_byu(random.Random(i), 400)[0] for i in range(2)]
    paths = []
    for i, piece in enumerate(data):
        paths.append(tmp / f"{i}.byu")
        paths[-1].write_bytes(piece)
    out, _ = buscap("merge", "-I", "byu", *paths)
    rows = []
    for i, piece in enumerate(data):
        tick = 0
        for at in range(0, len(piece), 12):
            time = struct.unpack_from("<I", piece, at + 8)[0]
            tick += time if time != 0xFFFFFFFF else 0
            rows.append((tick, i, at, piece[at : at + 8]))
    rows.sort()
    equal([out[at : at + 8] for at in range(0, len(out), 12)], [row[3] for row in rows], "records")
    tick = 0
    ticks = []
    for at in range(8, len(out), 12):
        time = struct.unpack_from("<I", out, at)[0]
        tick += time if time != 0xFFFFFFFF else 0
        ticks.append(tick)
    equal(ticks, [row[0] for row in rows], "ticks")


REFERENCES = b"r 123456789abcdef0 4 9f8e7 9a8b7c6d\nw 123456789abcdefa 8 9a8b7 8888ffff3e456a21\n"
EVENTS = b"F 123456789abcdef7 100 77\nM 123456789abcdefe 100 1a2b3c4d 9000 8efa5567 35 5 1029384756afbecd foobar.so\n"


def laplace_files(tmp):
    can_read("laplace-text")
    (tmp / "r.txt").write_bytes(REFERENCES)
    (tmp / "e.txt").write_bytes(EVENTS)
    return tmp / "r.txt", tmp / "e.txt"


def test_references_and_kernel_events_become_one_text_by_time(tmp):
    references, events = laplace_files(tmp)
    r, e = REFERENCES.splitlines(True), EVENTS.splitlines(True)
    for order in ((references, events), (events, references)):
        equal(buscap("merge", *order), (r[0] + e[0] + r[1] + e[1], ""), order)
    buscap("merge", references, events, "-o", tmp / "both.txt")
    equal((tmp / "both.txt").read_bytes(), r[0] + e[0] + r[1] + e[1], "both.txt")
    # Entries with equal times are in the order of the inputs.
    same = b"F 123456789abcdef0 100 77\n"
    (tmp / "e.txt").write_bytes(same)
    equal(buscap("merge", references, events)[0], r[0] + same + r[1], "references first")
    equal(buscap("merge", events, references)[0], same + REFERENCES, "events first")


def test_many_references_and_events_are_sorted(tmp):
    can_read("laplace-text")
    rng = random.Random(4)
    times = sorted(rng.randrange(1 << 40) for _ in range(9000))
    lines = [[], []]
    for time in times:
        kind = rng.random() < 0.1
        lines[kind].append((time, b"F %x %x 77\n" % (time, rng.randrange(999)) if kind else
                            b"%c %x 4 1 %x\n" % (rng.choice(b"rw"), time, rng.randrange(1 << 32))))
    paths = (tmp / "r.txt", tmp / "e.txt")
    for path, rows in zip(paths, lines):
        path.write_bytes(b"".join(line for _, line in rows))
    wanted = sorted([(t, 0, n, line) for n, (t, line) in enumerate(lines[0])]
                    + [(t, 1, n, line) for n, (t, line) in enumerate(lines[1])])
    equal(buscap("merge", *paths)[0], b"".join(row[3] for row in wanted), "text")


@pytest.mark.asan
def test_an_input_out_of_order_keeps_its_order(tmp):
    references, events = laplace_files(tmp)
    lines = [b"r %x 4 1 %x\n" % (time, n) for n, time in enumerate((5, 9, 3, 4, *range(12, 60)))]
    references.write_bytes(b"".join(lines))
    events.write_bytes(b"F 7 1 77\nF a 2 77\n")
    out, err = buscap("merge", references, events)
    equal(out, lines[0] + b"F 7 1 77\n" + b"".join(lines[1:4]) + b"F a 2 77\n" + b"".join(lines[4:]), "text")
    assert "2 entries out of order by at most 6 ticks" in err, err


def test_a_torn_input_gives_the_intact_part(tmp):
    paths = [record_file(tmp, rich_stream(i, 2000), clock_hz=1000) for i in range(2)]
    data = paths[1].read_bytes()
    torn = tmp / "torn.byu.lz4"
    torn.write_bytes(data[: len(data) // 2])
    got, err = merge(tmp, "--by", "tick", paths[0], torn, code=3)
    assert len(got.records) > len(read(paths[0]).records), err


def test_each_input_may_have_its_own_format(tmp):
    references, events = tmp / "refs", tmp / "events"
    references.write_bytes(b"".join(struct.pack("<cQBII", b"r", 10 * i, 4, 1, i) for i in range(5)))
    events.write_text("F 14 100 77\nM 1f 1 2\n")
    out, _ = buscap("merge", "-I", "laplace", "-I", "laplace-events", references, events)
    equal(out.decode().splitlines(), ["r 0 4 1 0", "r a 4 1 1", "r 14 4 1 2", "F 14 100 77", "r 1e 4 1 3", "M 1f 1 2",
                                      "r 28 4 1 4"], "the merged text")
