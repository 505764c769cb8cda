"""Where segments and recordings end, and what is deleted to make space."""

import contextlib
import os
import struct
import time

import pytest

import harness
from harness import BUSCAP, BUSCAPD, Daemon, equal, info, run, verify, wait_until

pytestmark = pytest.mark.threads

CHUNK = 87381
MIB = 1 << 20


def record(directory, source, *options, code=0):
    """Runs --once with full chunks even on a slow machine. Returns the segments and the log."""
    done = run(BUSCAPD, "--once", "--source", source, "-o", directory, "--set", "pipeline.flush=1h", *options)
    equal(done.returncode, code, done.stderr.decode())
    equal(list(directory.glob("*.partial")), [], "left open")
    segments = harness.segments(directory)
    verify(segments)
    return segments, done.stderr.decode()


def bus_file(directory, count=600_000):
    """A capture of the simulated bus: a quarter of a second of 66 MHz. Returns its path."""
    path = directory / "bus.bcp1"
    run(BUSCAP, "sim", "-s", "1", "-n", count, "-O", "bcp1", "-o", path)
    return path


def names(segments):
    return [path.name for path in segments]


# ---- rotation


@pytest.mark.single
def test_a_live_recording_is_cut_at_multiples_of_an_interval(tmp):
    interval = 20_000_000
    segments, _ = record(tmp / "out", "sim:rate=200k", "-b", "interval:20ms", "-a", "duration:2.2", "--set",
                         "pipeline.buffer=256MiB")  # a slot for each cut, however slow the disk
    # One each on an idle machine; a cut too early would yield two. In a fifth of a second, it learns how the clocks relate.
    said = info(segments)
    said = [segment for segment in said if segment["first_wall_ns"] > said[0]["first_wall_ns"] + 200_000_000]
    numbers = [segment["first_wall_ns"] // interval for segment in said]
    equal(sorted(set(numbers)), numbers, f"intervals of {[(s['first_wall_ns'], s['records']) for s in said]}")
    # On a busy machine, the simulated bus is late, and a cut waits for a record from after it.
    assert 2 <= len(numbers) <= 112, numbers


@pytest.mark.parametrize("interval, begin, step, first", [
    ("1m", 10, 48, 60),  # NTP sets the clock
    ("1m", 10, 48 - 3600, 60 - 3600),
    ("1d", 43_200, 13 * 3600, 43_200 + 13 * 3600),  # midnight passes while the machine is suspended
])
def test_the_multiples_of_an_interval_follow_a_clock_that_is_set(tmp, interval, begin, step, first):
    day = 1_800_000_000 // 86400 * 86400
    clock = harness.MovedClock(tmp, day + begin - time.time())
    with Daemon("-o", tmp / "out", "--source", "sim:rate=20k", "-b", f"interval:{interval}", socket=tmp / "socket",
                env=clock.env) as daemon:
        daemon.wait_ready()
        wait_until(lambda: daemon.status()["counts"]["written"] > 0, "records")
        clock.move(day + begin + step - time.time())
        wait_until(lambda: len(harness.segments(tmp / "out")) == 1, "the cut")
        equal(daemon.stop(), 0, daemon.err)
    began = info(harness.segments(tmp / "out"))[1]["first_wall_ns"] * 1e-9 - day
    assert first - 1 <= began < first + 20, began  # its first record may have come just before


def test_a_file_is_cut_by_the_bus_time(tmp):
    source = bus_file(tmp)
    clock = 1_000_000
    segments, _ = record(tmp / "duration", f"file:{source},clock_hz={clock}", "-b", "duration:4")
    said = info(segments)
    whole = said[-1]["last_tick"] - said[0]["first_tick"]
    equal(len(said), whole // (4 * clock) + 1, "segments")
    for before, after in zip(said, said[1:]):
        # A segment starts with a record, and the cut is this much bus time later.
        assert after["first_tick"] - before["first_tick"] >= 4 * clock, before
        assert before["last_tick"] - before["first_tick"] < 4 * clock, before
    equal(harness.lz4_dc(segments) == harness.sim_records(600_000), True, "records")

    segments, _ = record(tmp / "interval", f"file:{source},clock_hz={clock}", "-b", "interval:4")
    said = info(segments)
    equal([segment["first_tick"] // (4 * clock) for segment in said[1:]],
          [said[0]["first_tick"] // (4 * clock) + 1 + n for n in range(len(said) - 1)], "intervals")


def test_files_limits_the_sealed_segments_across_restarts(tmp):
    out = tmp / "out"
    first, _ = record(out, "sim:rate=max,count=500k", "-b", "filesize:200K")
    equal(len(first), 6, "segments")
    torn = out / (first[-1].name[:-len("00005.byu.lz4")] + "00099.byu.lz4.partial.backup")
    torn.write_text("not a segment")
    second, err = record(out, "sim:rate=max,count=300k", "-b", "filesize:200K", "-b", "files:6")
    equal(len(second), 6, "segments")
    # For each new one the oldest was deleted, and nothing else.
    equal(names(second)[:2], names(first)[-2:], "segments kept from the first run")
    equal([f"{path.name}: deleted: more than 6 files (rotation.files)" in err for path in first], [True] * 4 + [False] * 2, err)
    assert torn.exists()


def test_max_age_deletes_old_segments(tmp):
    out = tmp / "out"
    first, _ = record(out, "sim:rate=max,count=300k", "-b", "filesize:200K")
    equal(len(first), 4, "segments")
    for path in first[:2]:
        os.utime(path, (time.time() - 3 * 86400,) * 2)
    second, err = record(out, "sim:rate=max,count=1000", "--set", "space.max_age=36h")
    equal(names(second)[:-1], names(first)[2:], "kept")
    equal(err.count("deleted: older than 36h (space.max_age)"), 2, err)


def test_damaged_files_are_never_deleted(tmp):
    out = tmp / "out"
    first, _ = record(out, "sim:rate=max,count=500k", "-b", "filesize:200K")
    # The sealed segment of this name does not have all of its records.
    opened = first[0].with_name(first[0].name + ".partial")
    content = first[0].read_bytes() + first[1].read_bytes()
    opened.write_bytes(content)
    done = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=300k", "-o", out, "-b", "filesize:200K",
               "-b", "files:3", "--set", "space.max_use=2MiB")
    equal(done.returncode, 0, done.stderr)
    equal(first[0].with_name(first[0].name + ".damaged").read_bytes(), content, "the damaged segment")
    equal(len(harness.segments(out)), 3, "sealed segments")


# ---- stop rules


def test_a_recording_ends_exactly_at_its_record_limit(tmp):
    expected = harness.sim_records(400_000)
    for records in (1, 12345, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK):
        for kind in ("sim:rate=max", "sim:rate=5M"):
            out = tmp / f"{records}-{kind[-3:]}"
            segments, _ = record(out, kind, "-a", f"records:{records}")
            equal(harness.lz4_dc(segments) == expected[: 12 * records], True, f"{records} records")


def test_a_recording_ends_after_its_duration(tmp):
    start = time.monotonic()
    segments, _ = record(tmp / "live", "sim:rate=100k", "-a", "duration:2")
    assert time.monotonic() - start >= 2
    assert sum(segment["records"] for segment in info(segments)) > 0
    clock = 1_000_000
    segments, _ = record(tmp / "file", f"file:{bus_file(tmp)},clock_hz={clock}", "-a", "duration:10")
    (segment,) = info(segments)
    expected = harness.sim_records(600_000)
    recorded = harness.lz4_dc(segments)
    equal(recorded == expected[: len(recorded)], True, "records")
    # The next one would have been too late.
    (delta,) = struct.unpack_from("<I", expected, len(recorded) + 8)
    duration = segment["last_tick"] - segment["first_tick"]
    assert duration < 10 * clock <= duration + delta, segment


def test_losses_after_the_end_are_not_those_of_the_recording(tmp):
    done = run(BUSCAPD, "--once", "--source", "sim:rate=20M,loss=0.9", "-a", "filesize:500K", "-o", tmp / "out")
    equal(done.returncode, 4, done.stderr)
    (segment,) = info(harness.segments(tmp / "out"))
    summary = f": samples lost: {segment['lost']:,} (board overflow); {segment['gaps']:,} gap"
    assert summary.encode() in done.stderr, (summary, done.stderr)


# ---- space


def used(directory):
    total = 0
    for path in directory.glob("*.byu.lz4*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


@pytest.mark.single
def test_max_use_holds_at_every_moment(tmp):
    out = tmp / "out"
    argv = ("--source", "sim:rate=max", "-o", out, "--set", "space.max_use=3MiB")
    most = 0
    with Daemon(*argv, socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        while daemon.status()["recording"]["bytes"] < 5 * MIB:
            most = max(most, used(out))
            time.sleep(0.002)
        equal(daemon.stop(), 0, daemon.err)
    assert b"deleted: the segments use more than 3MiB (space.max_use)\n" in daemon.err, daemon.err
    # Space is checked each 1/32 of the limit, and the index of the segment being sealed is added.
    assert 2 * MIB < most < 3 * MIB + 2 * 600_000, most
    segments = harness.segments(out)
    verify(segments)
    assert harness.compare_with_sim(segments, info(segments)[0]["first_record"]) > 0, "the newest are kept"


def extend(file, size):
    """Extends a file as far as space permits. Returns whether it has reached the size."""
    try:
        while file.tell() < size:
            file.write(bytes(MIB // 4))
    except OSError:
        return False
    return True


@pytest.mark.single
@pytest.mark.root
def test_keep_free_leaves_space_to_other_programs(tmp):
    with harness.SmallDisk(tmp, "16M") as disk:
        out = disk / "out"
        source = f"sim:rate={harness.rate(2_000_000)}"
        argv = ("--source", source, "-o", out, "-b", "filesize:1M", "--set", "space.keep_free=6MiB")
        with Daemon(*argv, socket=tmp / "socket") as daemon:
            daemon.wait_ready()
            harness.wait_until(lambda: daemon.status()["recording"]["bytes"] > 12 * MIB, "old segments are deleted")
            free = os.statvfs(disk)
            assert free.f_bavail * free.f_frsize > 5 * MIB, free
            # Another program uses more than can be deleted: recording waits.
            with (disk / "other").open("wb", buffering=0) as other:
                harness.wait_until(lambda: extend(other, 11 * MIB), "segments make room")
            harness.wait_until(lambda: "keep_free" in (daemon.status()["disk"]["last_error"] or ""), "the error is reported")
            equal(harness.segments(out), [], "segments that could be deleted")
            (disk / "other").unlink()
            written = daemon.status()["counts"]["written"]
            harness.wait_until(lambda: daemon.status()["counts"]["written"] > written, "the daemon continues")
            assert daemon.stop() in (0, 4), daemon.err
        assert b"deleted: less than 6MiB or no inode free (space.keep_free)\n" in daemon.err, daemon.err
        verify(harness.segments(out))
