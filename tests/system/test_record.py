"""Recording from end to end: the output of `buscapd --once` compared with tests/support/reference.py."""

import dataclasses
import json
import lzma
import pathlib
import random
import re
import struct
import sys
import tempfile
import time

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, ROOT, equal, run, verify

pytestmark = pytest.mark.threads

_NONE = type(None)
# Names and types of status members, on which scripts depend.
STATUS = {
    "version": str, "state": str, "directory": str, "clients": int, "uptime_seconds": (int, float),
    "source.kind": str, "source.name": str, "source.clock_hz": (int, _NONE), "source.board": (dict, _NONE),
    "recording.id": (str, _NONE), "recording.label": (str, _NONE), "recording.started": (str, _NONE),
    "recording.segment": (int, _NONE), "recording.path": (str, _NONE), "recording.records": (int, _NONE),
    "recording.bytes": (int, _NONE),
    **{f"counts.{name}": int for name in (
        "received", "written", "durable", "in_flight", "skipped_bytes", "gaps", "inexact_gaps", "deleted_records",
        "dropped.buffer", "dropped.disk", "dropped.invalid", "dropped.filtered", "dropped.idle")},
    **{f"rates.{name}_per_second": (int, float, _NONE) for name in ("samples", "record_bytes", "written_bytes")},
    "buffer.chunks": int, "buffer.free_chunks": int, "buffer.min_free_chunks": int, "buffer.time_left_seconds": (int, float, _NONE),
    "disk.free_bytes": (int, _NONE), "disk.time_left_seconds": (int, float, _NONE), "disk.last_error": (str, _NONE),
}


@dataclasses.dataclass
class Result:
    code: int
    status: dict
    err: str
    directory: pathlib.Path

    @property
    def counts(self):
        return self.status["counts"]

    @property
    def segments(self):
        return harness.segments(self.directory)

    def read(self):
        return reference.read_segments(self.segments)


def finished(argv, code, out, err, directory):
    """The result of a run, after checking the invariants of its status."""
    what = f"{' '.join(map(str, argv))}: exit {code}\n{err.decode(errors='replace')}"
    assert out.count(b"\n") == 1 and out.endswith(b"\n"), f"the status is not one line: {out!r}; {what}"
    status = json.loads(out)
    for path, kind in STATUS.items():
        value = status
        for name in path.split("."):
            assert value is None or name in value, f"{path} is not in the status; {status}"
            value = value and value[name]
        assert isinstance(value, kind), f"{path} is {value!r}; {status}"
    counts = status["counts"]
    equal(counts["received"], counts["written"] + counts["in_flight"] + sum(counts["dropped"].values()),
          f"the identity of the counts; {counts}")
    equal(counts["in_flight"], 0, "in_flight at the end")
    equal(counts["durable"], counts["written"], "durable at the end")
    assert not list(directory.glob("*.partial")), "a segment is not sealed"
    return Result(code, status, err.decode(errors="replace"), directory)


COMPRESSIONS = ((), ("--set", "output.compression=zstd"))


def record(directory, source, *options, stdin=None):
    """Runs buscapd --once into a new subdirectory of `directory`. `source` is a SPEC, or the bytes of a file."""
    out = pathlib.Path(tempfile.mkdtemp(prefix="out", dir=directory))
    argv = [BUSCAPD, "--once", "--no-socket", "--source", source, "-o", out, *options]
    done = run(*argv, data=stdin)
    return finished(argv, done.returncode, done.stdout, done.stderr, out)


def record_bytes(directory, data, format_name, *options):
    path = directory / "in"
    path.write_bytes(data)
    spec = f"file:{path}" + (f",format={format_name}" if format_name else "")
    result = record(directory, spec, *options)
    path.unlink()
    return result


def exit_code_of(expected):
    """Invalid bytes and missing frames are damage of the input; the board's losses are not."""
    if expected.skipped_bytes or any(cause == "sequence" for _, cause, _, _ in expected.gaps):
        return 3
    return 4 if expected.board_lost else 0


def check(result, expected, what):
    """Checks a recording's bytes, ticks, events, counts and exit code."""
    try:
        plain = harness.lz4_dc(result.segments)
        equal(plain, bytes(expected.records), "lz4 -dc of the segments")
        recorded = result.read()
        equal(recorded.records, bytes(expected.records), "the chunks' records")
        equal(list(recorded.ticks), list(expected.ticks), "absolute ticks")
        equal(recorded.inexact, expected.inexact, "records without a known tick")
        equal(recorded.gaps, expected.gaps, "gaps")
        equal(sorted(recorded.epochs.values()), sorted(expected.epochs.values()), "first ticks of epochs")
        equal(recorded.triggers, expected.triggers, "triggers")
        counts = result.counts
        got = {name: counts[name] for name in ("received", "written", "lost", "skipped_bytes", "gaps")}
        got["invalid"] = counts["dropped"]["invalid"]
        wanted = {
            "received": expected.received, "written": len(expected), "lost": lost_by_cause(recorded),
            "skipped_bytes": expected.skipped_bytes, "gaps": recorded.gap_events, "invalid": expected.invalid,
        }
        # An epoch without records can split the gaps at one place, because it has a chunk to itself.
        if expected.epoch_count == 1:
            equal(recorded.gap_events, len(expected.gaps), "gap events, one for each place and cause")
        equal(got, wanted, "counts")
        equal(result.code, exit_code_of(expected), "exit code")
    except AssertionError as why:
        raise AssertionError(f"{what}: {why}\n{result.err}") from why
    return recorded


def lost_by_cause(recorded):
    """The samples that the gaps of a recording count, by cause, as in the status."""
    lost = dict.fromkeys(reference.GAPS.values(), 0)
    for _, cause, n, _ in recorded.gaps:
        lost[cause] += n
    return lost


def accepted_by_the_tools(segments):
    for segment in segments:
        done = run("file", "--brief", segment)
        assert b"LZ4 compressed data" in done.stdout, done.stdout
        done = run("lz4", "-t", segment)
        equal(done.returncode, 0, f"lz4 -t {segment.name}: {done.stderr.decode()}")


# ---- the documents themselves


def hex_blocks(name):
    text = (ROOT / "docs" / name).read_text()
    return [bytes.fromhex(block) for block in re.findall(r"```hex\n(.*?)```", text, re.S)]


def test_the_frames_in_the_board_document_are_valid():
    frame, records, last = hex_blocks("board-protocol.md")
    equal(reference.decode_header(frame, 0), (3, 0, 0x102, 3, 0x123456789A, 5))
    expected = reference.decode_bcp1(frame + last)
    equal(bytes(expected.records), records)
    equal(expected.gaps, [(0, "board", 5, True)])
    equal(expected.skipped_bytes, 0)
    equal(reference.decode_header(last, 0), (8, 0, 0x103, 0, 0x1234580000, 0))


def test_the_reader_in_the_segment_document_works(tmp):
    text = (ROOT / "docs/segment-format.md").read_text()
    script = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    assert script.count("\n") <= 40, "the example is too long"
    data, expected = reference.make_bcp1(
        random.Random(5), reference.Features(samples=500, p_loss=0.1, p_epoch=0.1, p_pause=0.02))
    for options in COMPRESSIONS:
        (segment,) = record_bytes(tmp, data, None, *options).segments
        done = run(sys.executable, "-c", script, segment)
        equal(done.returncode, 0, done.stderr.decode())
        lines = done.stdout.decode().splitlines()
        ticks = [int(line.split()[0]) for line in lines if re.fullmatch(r"\d+ [0-9a-f]{8} .*", line)]
        equal(ticks, list(expected.ticks))
        equal(sum(" gap " in line for line in lines), len(expected.gaps))


@pytest.mark.documents
def test_generator_and_decoder_agree():
    reference.self_check(harness.some(range(60), 3))


# ---- bcp1


def test_random_streams_become_the_expected_records(tmp):
    damaged = 0
    seeds = harness.some(range(100), 10)
    for seed in seeds:
        rng = random.Random(seed)
        features = reference.random_features(rng, rng.choice((1, 30, 1000, 3000)))
        data, expected = reference.make_bcp1(rng, features)
        result = record_bytes(tmp, data, "bcp1", *COMPRESSIONS[seed % 2])
        check(result, expected, f"seed {seed}, {features}")
        damaged += expected.skipped_bytes != 0
    harness.note(f"{len(seeds)} streams of bcp1, {damaged} of them damaged")
    assert len(seeds) // 5 < damaged < len(seeds)


def test_the_mapping_of_the_configuration_is_used(tmp):
    config = tmp / "mapping.conf"
    config.write_text("[mapping]\nsize = v1.0\nattr.D_READ = 7\n")
    options = reference.Options(size_v1_0=True, attr={12: 7})
    data, expected = reference.make_bcp1(random.Random(3), reference.Features(samples=1000), options)
    result = record_bytes(tmp, data, None, "-c", config)
    recorded = check(result, expected, "size and attr")
    mapping = recorded.segments[0].header["mapping"]
    equal((mapping["size"], mapping["attr"][12], mapping["attr"][8]), ("v1.0", 7, 3))


def frames(samples, size=2000, flags=reference.AGENT):
    """A plain bcp1 stream and its expected records."""
    out = bytearray()
    expected = reference.Expected()
    tick = 1000
    for number, at in enumerate(range(0, len(samples), size)):
        some = samples[at : at + size]
        out += reference.encode_header(flags, 0, number, len(some), tick, 0) + reference.encode_payload(some)
        expected.header(flags, number, tick, 0)
        expected.samples(flags, 0, tick, some)
        tick += sum(s[3] for s in some[1:]) + 7
    return bytes(out), expected


def many_samples(n, seed=1):
    rng = random.Random(seed)
    features = reference.Features()
    return [(*reference.random_sample(rng, features, rng.randrange(4)), rng.randrange(40)) for _ in range(n)]


def small_chunks(n):
    """A stream that is recorded as n chunks, small because of their triggers, and its expected records."""
    return frames(many_samples(3 * 256 * n - 100), 3, reference.AGENT | reference.TRIGGER)


def test_sizes_around_a_chunk(tmp):
    chunk = reference.CHUNK_RECORDS
    records = harness.sim_records(2 * chunk + 100)
    for n in (0, chunk, 2 * chunk, *harness.some((chunk + 1, 1, chunk - 1, 2 * chunk + 1), 4)):
        result = record_bytes(tmp, records[: 12 * n], "byu", *COMPRESSIONS[n % 2])
        recorded = result.read()
        equal(recorded.records, records[: 12 * n], f"{n} records")
        equal((result.code, result.counts["received"], recorded.gaps), (0, n, []), f"{n} records")
        equal(len(recorded.segments), 1 if n else 0, "segments")
        # A chunk is cut early only when a second has passed since its first record.
        assert len(recorded.chunks) >= -(-n // chunk), f"{n} records in {len(recorded.chunks)} chunks"


def test_several_segments(tmp):
    data, expected = small_chunks(12)
    result = record_bytes(tmp, data, "bcp1", "-b", "filesize:20K")
    recorded = check(result, expected, "some chunks in each segment")
    assert len(recorded.segments) >= 5, f"{len(recorded.segments)} segments"
    assert len(recorded.segments[0].chunks) >= 2, "one chunk in each segment"
    for segment in recorded.segments[:-1]:
        size = segment.path.stat().st_size
        assert size >= 20_000, f"{segment.path.name}: {size} bytes, cut before the chunk that passes filesize"
        without_last = segment.chunks[-1].offset
        assert without_last < 20 * 1024, f"{segment.path.name}: cut late: {without_last} bytes before the last chunk"
    equal({s.header["recording"] for s in recorded.segments}, {recorded.segments[0].header["recording"]})
    accepted_by_the_tools(result.segments)
    together = run("lz4", "-dcm", *result.segments)
    equal(together.stdout, bytes(expected.records), "lz4 -dcm")


def eventful(n):
    """A stream with a gap, an anchor and a trigger for each of its n records, and its expected records: many small
    chunks."""
    out = bytearray()
    expected = reference.Expected()
    for i in range(n):
        flags = 2 | 4
        samples = [(0x1000 + 8 * i, 0, 0xF0, 0)]
        tick = 100 + i * (1 << 33)
        out += reference.encode_header(flags, 3, i, 1, tick, i + 1) + reference.encode_payload(samples)
        expected.header(flags, i, tick, i + 1)
        expected.samples(flags, 3, tick, samples)
    return bytes(out), expected


def test_more_events_than_fit_into_a_chunk(tmp):
    data, expected = eventful(1500)
    recorded = check(record_bytes(tmp, data, None, *COMPRESSIONS[1]), expected,
                     "a gap, an anchor and a trigger for each record")
    assert len(recorded.chunks) >= 18, f"{len(recorded.chunks)} chunks"


# ---- pipes and other formats


def test_a_packed_source_that_needs_much_memory_is_refused(tmp):
    records = harness.sim_records(100)
    # A window of 16 MiB; the length, which would limit it, is unknown.
    for name, packed, why in (("zst", run("zstd", "-c", "--long=24", data=records).stdout, "window"),
                              ("xz", lzma.compress(records, preset=9), "dictionary")):
        (tmp / name).write_bytes(packed)
        done = run(BUSCAPD, "--once", "--source", f"file:{tmp / name},format=byu", "-o", tmp / "out", "--no-socket")
        equal(done.returncode, 1, name)
        assert f"{why} of more than 8 MiB" in done.stderr.decode(), done.stderr


def test_the_header_says_where_the_records_come_from(tmp):
    data, _ = frames(many_samples(10))
    (tmp / "bus").write_bytes(data)
    result = record(tmp, f"file:{tmp}/bus,clock_hz=12345678", "--label", "boot.1")
    (segment,) = result.read().segments
    header = segment.header
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{6}-boot\.1", header["recording"]), header["recording"]
    equal((header["label"], header["continues"], header["metadata"]), ("boot.1", None, {}))
    equal((header["source"]["kind"], header["source"]["clock_hz"]), ("file", 12345678))
    equal(header["source"]["name"], f"{tmp}/bus")
    equal(header["mapping"], {"size": "v1.1", "invalid": "drop",
                              "attr": [0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 3, 1]})
    equal(header["board"], None)
    assert abs(header["first"]["wall_ns"] - time.time_ns()) < 3600e9, header["first"]
    equal(header["first"]["wall"], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(header["first"]["wall_ns"] // 10**9)))
    data, _ = reference.make_byu(random.Random(1), 100)
    (segment,) = record_bytes(tmp, data, "byu").read().segments
    equal(segment.header["mapping"], None, "mapping of BYU records")


def test_a_value_that_does_not_fit_is_an_error_that_names_the_record(tmp):
    for dialect, layout, time in (("byu16", "<Q4BI", 5), ("byu24", "<Q4B4xQ", 5), ("byu24", "<Q4B4xQ", 1 << 33),
                                  ("byu16", "<Q4BI", reference.NO_DELTA)):
        good, expected = reference.make_byu(random.Random(1), 100, dialect, first_has_delta=True)
        bad = struct.pack(layout, 1 << 33, 1, 8, 0, 0, time)
        result = record_bytes(tmp, good + bad + good, dialect)
        equal(result.code, 3, result.err)
        assert re.search(r"\brecord 100\b", result.err), f"the record is not named: {result.err}"
        recorded = result.read()
        # Its time is part of the next record's, unless that becomes too long or is unknown.
        first, = struct.unpack_from("<I", expected.records, 8)
        after = bytearray(expected.records)
        struct.pack_into("<I", after, 8, min(first + time, reference.NO_DELTA))
        equal(recorded.records, bytes(expected.records + after), "the valid records")
        past = expected.ticks[-1] + (time if time != reference.NO_DELTA else 0)
        equal(list(recorded.ticks), [*expected.ticks, *(past + tick for tick in expected.ticks)], "their ticks")
        equal(recorded.inexact, {100} if time == reference.NO_DELTA else set(), "records without a known tick")
        equal(recorded.gaps, [(100, "damaged", 1, True)])


# ---- replayed segments


def same_recording(a, b, what):
    equal(b.records, a.records, f"{what}: records")
    equal(list(b.ticks), list(a.ticks), f"{what}: ticks")
    equal(b.gaps, a.gaps, f"{what}: gaps")
    equal(b.triggers, a.triggers, f"{what}: triggers")
    equal(b.marks, a.marks, f"{what}: marks")
    equal(b.inexact, a.inexact, f"{what}: records without a known tick")
    equal(sorted(b.epochs.values()), sorted(a.epochs.values()), f"{what}: epochs")


def exit_code_of_replay(recorded):
    """The losses of the replayed recording are those of the new one too."""
    return 4 if any(lost_by_cause(recorded).values()) else 0


def test_replay_of_segments(tmp):
    for seed in harness.some(range(6), 3):
        features = reference.Features(
            samples=9_000, frame=300, p_loss=0.1, p_epoch=0.05 * (seed % 2), p_pause=0.001, p_trigger=0.05,
            p_bad_samples=0.05, p_invalid=0.05)
        data, expected = reference.make_bcp1(random.Random(seed), features)
        first = record_bytes(tmp, data, None)
        recorded = check(first, expected, f"seed {seed}")
        again = record(tmp, f"file:{first.segments[0]}")
        equal(again.code, exit_code_of_replay(recorded), f"replay: {again.err}")
        replayed = again.read()
        same_recording(recorded, replayed, "file:SEGMENT")
        equal(replayed.chunks[0].info["wall_ns"], recorded.chunks[0].info["wall_ns"], "wall clock")
        equal(again.counts["received"], len(expected))
        equal(again.counts["written"], len(expected))


def test_a_replayed_recording_with_another_clock_rate_is_reported(tmp):
    path = tmp / "in"
    for rates in ((1000, 5000, 1000), (1000, 5000, 5000), (5000, 5000)):
        parts = []
        for clock_hz in rates:
            path.write_bytes(harness.sim_records(10))
            (part,) = record(tmp, f"file:{path},format=byu,clock_hz={clock_hz}").segments
            parts.append(part.read_bytes())
        path.write_bytes(b"".join(parts))
        again = record(tmp, f"file:{path}")
        wanted = [(str(clock_hz), str(rates[0])) for clock_hz in rates if clock_hz != rates[0]]
        reported = re.findall(r"clock rate is (\d+) Hz, not (\d+) Hz as in the first recording", again.err)
        equal(reported, wanted, again.err)
        equal(again.code, 3 if wanted else 0, again.err)
        equal(harness.info(again.segments)[0]["source"]["clock_hz"], rates[0], rates)
        given = record(tmp, f"file:{path},clock_hz=7000")
        equal((given.code, "clock rate" in given.err), (0, False), "a rate that is given is that of all")


def test_replay_of_long_idle_times_with_time_limits(tmp):
    """Each frame starts 2^34 ticks after the previous one, so its first record has an anchor instead of a delta."""
    data = b""
    for frame in range(4):
        samples = [(0x1000 * frame + 8 * i, 0, 0xD0, 0 if i == 0 else 5) for i in range(3)]
        data += reference.encode_header(0, 0, frame, 3, frame << 34, 0) + reference.encode_payload(samples)
    expected = reference.decode_bcp1(data)
    first = record_bytes(tmp, data, None)
    recorded = check(first, expected, "the recording")
    spec = f"file:{first.segments[0]},clock_hz=1000000000"
    for options in (("-b", "duration:1"), ("-b", "interval:3"), ("-a", "duration:1000"), ("--speed", "1000000")):
        again = record(tmp, spec, *options)
        equal(again.code, 0, f"{options}: {again.err}")
        equal(bytes(again.read().records), bytes(expected.records), f"records, {options}")
        equal(list(again.read().ticks), list(recorded.ticks), f"ticks, {options}")
    for seconds, n in (("1", 3), ("17", 3), ("18", 6), ("35", 9)):  # 2^34 ns are 17.18 s
        again = record(tmp, spec, "-a", f"duration:{seconds}")
        equal(len(harness.lz4_dc(again.segments)) // 12, n, f"records in {seconds} s")


def records_with_ticks(result):
    """Without deltas."""
    out = run(BUSCAP, "dump", "--time", "tick", *result.segments).stdout
    lines = [line.split() for line in out.splitlines() if not line.startswith(b"#")]
    return [fields[:5] + fields[6:] for fields in lines]


def test_a_replay_skips_duplicates_and_reports_what_is_out_of_order(tmp):
    data, _ = small_chunks(5)
    first = record_bytes(tmp, data, None, "-b", "filesize:1K")
    recorded = first.read()
    files = [path.read_bytes() for path in first.segments]
    assert len(files) > 2
    twice = record(tmp, "file:-", stdin=b"".join([files[0], files[1], files[1], *files[2:]]))
    equal(twice.code, 3, f"replay: {twice.err}")
    same_recording(recorded, twice.read(), "one segment twice")
    equal(twice.err.count("is a duplicate; skipped"), len(recorded.segments[1].chunks), twice.err)
    late = record(tmp, "file:-", stdin=b"".join([files[1], files[0], *files[2:]]))
    equal(late.code, 3, f"replay: {late.err}")
    equal(late.err.count("is out of order"), len(recorded.segments[0].chunks), late.err)
    verify(late.segments)
    equal(sorted(records_with_ticks(late)), sorted(records_with_ticks(first)), "records and ticks")


def test_replay_of_a_damaged_segment_reports_the_missing_records(tmp):
    data, expected = small_chunks(3)
    first = record_bytes(tmp, data, None)
    recorded = first.read()
    (segment,) = first.segments
    bad = recorded.chunks[1]
    raw = bytearray(segment.read_bytes())
    raw[bad.offset + bad.header_bytes + 1000] ^= 1
    segment.chmod(0o640)
    segment.write_bytes(raw)
    again = record(tmp, f"file:{segment}")
    equal(again.code, 3, f"replay: {again.err}")
    got = again.read()
    n = bad.info["records"]
    at = bad.info["first_record"]
    wanted = bytes(expected.records[: 12 * at]) + bytes(expected.records[12 * (at + n) :])
    # The delta of the first record after the lost chunk is added to the last record before it.
    time_at = 12 * at + 8
    equal(got.records[:time_at], wanted[:time_at], "records before the damage")
    equal(got.records[time_at + 4 :], wanted[time_at + 4 :], "records after the damage")
    equal(list(got.ticks), list(expected.ticks[:at]) + list(expected.ticks[at + n :]), "ticks")
    equal(got.gaps, [(at, "damaged", n, True)], "gaps")
    equal(got.triggers, [t - n * (t >= at + n) for t in expected.triggers if not at <= t < at + n], "triggers")


# ---- real files, exit codes


def test_exit_codes(tmp):
    sample = [(0x1000, 0, 0xF0, 0)]

    def frame(sequence, flags=0, lost=0):
        return reference.encode_header(flags, 0, sequence, 1, 10 + sequence, lost) + reference.encode_payload(sample)

    good = frame(0) + frame(1)
    cases = {
        "whole": (good, 0),
        "the board lost some": (good + frame(2, 2, 9), 4),
        "damaged": (good + b"garbage", 3),
        "torn": (good[:-1], 3),
        "damaged, and the board lost some": (frame(0) + b"x" + frame(1, 2, 9), 3),
    }
    for name, (data, code) in cases.items():
        result = record_bytes(tmp, data, "bcp1")
        equal(result.code, code, f"{name}: {result.err}")
    for name, bytes_of_record in (("byu", 12), ("byu16", 16), ("raw6", 6)):
        for rest in (0, 1, bytes_of_record - 1):
            result = record_bytes(tmp, bytes(2 * bytes_of_record + rest), name)
            equal(result.code, 3 if rest else 0, f"{name} with {rest} bytes more: {result.err}")


def test_damage_after_the_end_of_a_recording_does_not_matter(tmp):
    run(BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=200000", "--set", "pipeline.flush=1h", "-o",
        tmp / "first")
    (path,) = harness.segments(tmp / "first")
    hurt = bytearray(path.read_bytes())
    hurt[reference.read_segments([path]).segments[0].chunks[1].offset + 5000] ^= 4
    path.write_bytes(hurt)
    for _ in range(5):
        done = run(BUSCAPD, "--once", "--no-socket", "--source", f"file:{path}", "-a", "records:10", "-o", tmp / "out")
        equal((done.returncode, json.loads(done.stdout)["counts"]["damaged_places"]), (0, 0), done.stderr)
