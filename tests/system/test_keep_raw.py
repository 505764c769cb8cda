"""keep_raw: the bytes of a live source are saved unchanged, and their replay equals the recording."""

import concurrent.futures
import functools
import json
import os
import re
import struct
import time

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, Daemon, Faults, Watch, check_counts, equal, info, run, verify

pytestmark = pytest.mark.threads

MIB = 1 << 20
KEEP = ("--set", "output.keep_raw=yes")

# The smallest buffer possible with raw bytes, which overflows soonest.
SMALL = ("--set", "pipeline.workers=1", "--set", "pipeline.buffer=11M")
FAULTY = "loss=0.01,corrupt=0.01,agents=3"


def raw_files(directory, prefix=""):
    return harness.segments(directory, ".bcp1.lz4", prefix)


def record(directory, source, *options, code=0):
    """Records once. Returns the status at the end."""
    done = run(BUSCAPD, "--once", "--source", source, "-o", directory, *KEEP, *options)
    equal(done.returncode, code, done.stderr.decode())
    return json.loads(done.stdout)


def replay(directory, *options, data=None, source="file:-", codes=(0, 3)):
    done = run(BUSCAPD, "--once", "--source", source, "-o", directory, *options, data=data)
    assert done.returncode in codes, f"{done.returncode}: {done.stderr.decode()}"
    return json.loads(done.stdout), done.stderr.decode()


def gaps(directory, prefix=""):
    """The gaps of a recording: [(record, cause, samples, exact)]."""
    found = []
    for path in harness.segments(directory, prefix=prefix):
        for chunk in reference.read_segment(path).chunks:
            found += [(chunk.info["first_record"] + event.position, event.cause, event.value, event.exact)
                      for event in chunk.events if event.kind == "gap"]
    return sorted(found)


def joined(paths):
    return b"".join(path.read_bytes() for path in paths)


def check_replay(recorded, directory, prefix=""):
    """A replay of the raw captures of a recording yields its records and gaps."""
    replay(directory, data=joined(raw_files(recorded, prefix)))
    equal(harness.lz4_dc(harness.segments(directory)), harness.lz4_dc(harness.segments(recorded, prefix=prefix)),
          "records of the replay")
    equal(gaps(directory), gaps(recorded, prefix), "gaps of the replay")


def numbers(paths):
    return [path.name.split(".")[0].rpartition("-")[2] for path in paths]


def sent(count, *options):
    done = run(BUSCAP, "sim", "-n", count, "-O", "bcp1", *options)
    equal(done.returncode, 0, done.stderr)
    return done.stdout


# ---- contents


def test_the_stream_is_kept_to_the_last_byte(tmp):
    status = record(tmp / "out", f"sim:rate=max,count=1000000,{FAULTY}", code=4)
    equal(status["counts"]["raw_dropped_bytes"], 0, "dropped")
    stream = sent(1000000, "-a", 3, "--loss", 0.01, "--corrupt", 0.01)
    equal(harness.lz4_dc(raw_files(tmp / "out")), stream, "the stream")
    verify(raw_files(tmp / "out"))


def test_a_replay_gives_the_same_records_and_gaps(tmp):
    for number, source in enumerate((f"sim:rate=max,count=800000,{FAULTY}",
                                     f"sim:rate={harness.rate(2_000_000)},count=600000,seed=5,{FAULTY}")):
        out, again = tmp / f"out{number}", tmp / f"again{number}"
        record(out, source, code=4)
        assert len(gaps(out)) > 5
        check_replay(out, again)


def test_a_replay_needs_no_pipe_for_one_file(tmp):
    record(tmp / "out", "sim:rate=max,count=200000")
    (raw,) = raw_files(tmp / "out")
    status, _ = replay(tmp / "again", source=f"file:{raw}", codes=(0,))
    equal(status["source"]["clock_hz"], 66_000_000, "the clock from the capture")
    equal(harness.lz4_dc(harness.segments(tmp / "again")), harness.lz4_dc(harness.segments(tmp / "out")), "records")
    status, _ = replay(tmp / "named", source=f"file:{raw},clock_hz=1000", codes=(0,))
    equal(status["source"]["clock_hz"], 1000, "the clock from the user")


def test_a_stopped_recording_is_kept_to_its_last_frame(tmp):
    out = tmp / "out"
    with Daemon("--once", "--source", f"sim:rate={harness.rate(200_000)},count=20M", "-o", out, *KEEP,
                socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        with Watch(daemon.socket) as watch:
            harness.wait_until(lambda: watch.last and watch.last["counts"]["written"] > 100_000, "records are written")
            watch.finish()
        equal(daemon.stop(), 0, daemon.err.decode())
    check_replay(out, tmp / "again")
    (found,) = info(raw_files(out))
    equal((found["format"], found["is_capture"], found["breaks"], found["holes"]), ("bcp1", True, 0, 0), "info")


def test_a_file_is_not_saved_again(tmp):
    (tmp / "trace.bcp1").write_bytes(sent(1000))
    _, err = replay(tmp / "out", *KEEP, source=f"file:{tmp / 'trace.bcp1'}")
    equal(err.count("keep_raw: ignored: the source is a file"), 1, err)
    equal(raw_files(tmp / "out"), [], "raw captures")


def test_without_keep_raw_nothing_is_kept(tmp):
    done = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=1000", "-o", tmp / "out")
    equal(done.returncode, 0, done.stderr)
    equal([path.suffixes[-2] for path in (tmp / "out").glob("*.lz4")], [".byu"], "files")


# ---- an idle bus


def test_a_bus_without_a_record_is_kept(tmp):
    """Every frame is damaged: there are no records, but the bytes are kept."""
    status = record(tmp / "out", "sim:rate=max,count=100000,corrupt=1", code=4)
    equal(status["counts"]["written"], 0, "records")
    equal(harness.lz4_dc(raw_files(tmp / "out")), sent(100000, "--corrupt", 1), "the stream")


def test_waiting_bytes_are_written_after_the_flush_time(tmp):
    out = tmp / "out"
    with Daemon("--source", "sim:rate=20", "-o", out, *KEEP, "--set", "pipeline.flush=50ms",
                socket=tmp / "socket") as daemon:
        daemon.wait_ready()

        def kept():
            open_files = [path for path in harness.segments(out, ".bcp1.lz4.partial") if path.stat().st_size]
            return open_files and info(open_files)[0]["blocks"] >= 5

        harness.wait_until(kept, "blocks are written at a low rate")
        equal(daemon.stop(), 0, daemon.err.decode())
    check_replay(out, tmp / "again")


# ---- rotation and space


def test_raw_captures_end_with_their_segments(tmp):
    for number, rule in enumerate(("filesize:500K", "duration:150ms")):
        out = tmp / f"out{number}"
        rate = "max" if "filesize" in rule else harness.rate(1_000_000)
        record(out, f"sim:rate={rate},count=600000,{FAULTY}", "-b", rule, code=4)
        segments, raw = harness.segments(out), raw_files(out)
        assert len(segments) > 2, segments
        # Bytes after the last record may be in a separate capture without a segment.
        surplus = raw[len(segments):] if "duration" in rule else []
        equal(numbers(raw), numbers(segments) + [f"{len(segments):05}" for _ in surplus], "numbers")
        assert len(surplus) <= 1, surplus
        if surplus:
            status, _ = replay(tmp / f"surplus{number}", data=joined(surplus), codes=(0, 3, 4))
            equal(status["counts"]["written"], 0, "records after the last")
        equal(list(out.glob("*.partial")), [], "left open")
        verify(segments)
        verify(raw)
        check_replay(out, tmp / f"again{number}")
        if "filesize" in rule:
            # Each file exceeds the limit by at most one chunk.
            assert max(path.stat().st_size for path in segments + raw) < 500 * 1024 + 1.1 * MIB


def test_files_deletes_both(tmp):
    out = tmp / "out"
    record(out, "sim:rate=max,count=1500000", "-b", "filesize:500K", "-b", "files:3")
    segments, raw = harness.segments(out), raw_files(out)
    equal(len(segments), 3, "segments")
    equal(numbers(raw), numbers(segments), "numbers")
    # The remaining files start in the middle of the stream.
    replay(tmp / "again", data=joined(raw))
    recorded = harness.lz4_dc(segments)
    again = harness.lz4_dc(harness.segments(tmp / "again"))
    least = len(recorded) - 12 * 5000
    equal(again[-least:], recorded[-least:], "the records of the remaining files")


def test_raw_captures_count_as_space_used(tmp):
    out = tmp / "out"
    record(out, "sim:rate=max,count=1500000", "-b", "filesize:500K", "--set", "space.max_use=6M")
    total = sum(path.stat().st_size for path in out.glob("*.lz4"))
    assert 3 * MIB < total <= 6 * MIB, total
    equal(numbers(raw_files(out)), numbers(harness.segments(out)), "numbers")


@pytest.mark.tsan
def test_an_orphan_is_deleted_in_order(tmp):
    out = tmp / "out"
    record(out, "sim:rate=max,count=1000000", "-b", "filesize:500K")
    segments, raw = harness.segments(out), raw_files(out)
    segments[0].unlink()
    record(out, "sim:rate=max,count=1000", "-b", "filesize:500K", "-b", f"files:{len(segments) - 1}")
    there = sorted(path.name for path in out.iterdir())
    assert not raw[0].exists() and not raw[1].exists() and not segments[1].exists(), there
    assert raw[2].exists() and segments[2].exists(), there


# ---- a disk that is full, fails, or is held up


@pytest.mark.root
def test_a_full_disk_loses_nothing_from_a_source_that_can_wait(tmp):
    """It waits; nothing is written twice or missing."""
    with harness.SmallDisk(tmp, "16M") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(12 * MIB))
        out = disk / "out"
        argv = ("--once", "--source", f"sim:rate=max,count=1200000,{FAULTY}", "-o", out, "-b", "filesize:700K", *KEEP,
                *SMALL)
        with Daemon(*argv, socket=tmp / "socket") as daemon:
            daemon.wait_ready()
            with Watch(daemon.socket) as watch:
                harness.wait_until(lambda: watch.last and watch.last["disk"]["last_error"], "the disk is full")
                time.sleep(1.2)
                watch.finish()
            ballast.unlink()
            equal(daemon.wait(), 4, daemon.err.decode())
        counts = check_counts(json.loads(daemon.out))
        equal((counts["dropped"]["disk"], counts["dropped"]["buffer"], counts["raw_dropped_bytes"]), (0, 0, 0), counts)
        assert "writing again" in daemon.err.decode(), daemon.err.decode()
        verify(harness.segments(out))
        verify(raw_files(out))
        check_replay(out, tmp / "again")


def fault_jobs():
    for kind, calls in (("pwrite", 12), ("fdatasync", 8), ("openat", 7), ("renameat2", 4)):
        for number in range(2 if kind != "renameat2" else 1, calls):
            for error in ("ENOSPC", "EIO"):
                yield (f"{kind}:{number}:{error}",)
    for number in range(2, 12):
        yield (f"pwrite:{number}:short",)


@functools.cache
def wanted_of_fault():
    """The stream and its records."""
    return sent(300000, "--loss", 0.01), harness.sim_records(300000, loss=0.01)


def one_fault(directory, rules):
    out = directory / "out"
    faults = Faults(directory, out, rules)
    argv = ("--once", "--source", "sim:rate=max,count=300000,loss=0.01", "-b", "filesize:500K", *KEEP)
    done = run(BUSCAPD, *argv, "-o", out, env={**os.environ, **faults.env})
    if not any(call[2] != "ok" for call in faults.calls()):
        raise AssertionError(f"{rules}: no call failed")
    if not done.stdout:
        return
    status = json.loads(done.stdout)
    recording = status["recording"]["id"]
    counts = check_counts(status)
    err = done.stderr.decode()
    left = list(out.glob("*.partial"))
    equal(done.returncode, 1 if left else 4, err)
    assert all(path.stem in err for path in left), f"{left}: {err}"
    equal((counts["dropped"]["disk"], counts["raw_dropped_bytes"]), (0, 0), counts)
    again = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=1", "-o", out)
    equal(list(out.glob("*.partial")), [], again.stderr.decode())
    segments, raw = harness.segments(out, prefix=recording), raw_files(out, recording)
    verify(segments)
    verify(raw)
    stream, records = wanted_of_fault()
    equal(harness.lz4_dc(raw), stream, "the stream")
    equal(harness.lz4_dc(segments), records, "records")


@pytest.mark.tsan
def test_each_call_fails_once_and_nothing_is_lost_or_duplicated(tmp):
    harness.each(one_fault, harness.some(fault_jobs(), 17), workers=4)


def test_losses_on_a_stuck_disk_are_recorded_in_the_capture(tmp):
    rate = harness.rate(2_000_000)
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out)
    argv = ("--once", "--source", f"sim:rate={rate},count={20 * rate}", "-o", out, *KEEP, *SMALL)
    with Daemon(*argv, socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        with Watch(daemon.socket) as watch:
            harness.wait_until(lambda: watch.last and watch.last["counts"]["written"], "the daemon records")
            faults.set("pwrite:hold")
            harness.wait_until(lambda: watch.last["counts"]["raw_dropped_bytes"] > 2 * rate, "bytes are dropped")
            faults.set("")
            # Once more is written than what waited for the disk, the capture has bytes from after the hold, too.
            before = watch.last["counts"]["received"]
            harness.wait_until(lambda: watch.last["counts"]["written"] > before, "the recording continues")
            watch.finish()
        equal(daemon.stop(), 4, daemon.err.decode())
    counts = check_counts(json.loads(daemon.out))
    assert "bytes missing from the raw capture" in daemon.err.decode()
    raw = raw_files(out)
    verify(raw)
    found = info(raw)
    equal(sum(one["dropped_bytes"] for one in found), counts["raw_dropped_bytes"], "dropped according to the capture")
    equal(sum(one["holes"] for one in found), 0, "holes")
    assert found[0]["breaks"] >= 1, found
    # A replay has a gap there; the capture contains nearly all that was recorded.
    status, _ = replay(tmp / "again", data=joined(raw), codes=(3, 4))
    causes = {gap[1] for gap in gaps(tmp / "again")}
    assert causes & {"buffer", "disk", 1, 2}, causes
    assert status["counts"]["received"] > counts["written"] * 9 // 10, (status["counts"], counts)


@pytest.mark.asan
def test_dropped_bytes_are_reported_by_one_recording(tmp):
    """The next recording drops them while the end of the one before waits for the disk."""
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out)
    # The second must start before the buffer is full.
    argv = ("--source", "sim:rate=50k", "-o", out, *KEEP, *SMALL, "--set", "pipeline.flush=50ms")
    with (Daemon(*argv, socket=tmp / "socket", env=faults.env) as daemon,
          concurrent.futures.ThreadPoolExecutor(1) as pool):
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["written"], "the daemon records")
        faults.set("pwrite:hold")
        harness.wait_until(lambda: any(call[2] == "hold" for call in faults.calls()), "a write hangs")
        stopped = pool.submit(harness.http, daemon.socket, "/v1/recordings/current", "DELETE")
        harness.wait_until(lambda: daemon.status()["state"] == "draining", "the first recording has ended")
        equal(harness.http(daemon.socket, "/v1/recordings", "POST")[0], 201, "the start of the second")
        harness.wait_until(lambda: daemon.status()["counts"]["raw_dropped_bytes"], "bytes are dropped")
        faults.set("")
        equal(stopped.result()[0], 200, "the first recording is sealed")
        daemon.stop()
    reported = re.findall(r"bytes missing from the raw capture: (\d+)", daemon.err.decode())
    equal(sum(map(int, reported)), sum(one["dropped_bytes"] for one in info(raw_files(out))), daemon.err.decode())


def test_a_capture_that_cannot_be_sealed_says_why(tmp):
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out, "renameat2:EIO")
    env = {**os.environ, **faults.env, "FAULTFS_ENDING": ".bcp1.lz4"}
    done = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=1000", "-o", out, *KEEP, env=env)
    (left,) = out.glob("*.bcp1.lz4.partial")
    words = f"{left.stem}: can't seal: Input/output error; left as {left.name}; the next start recovers it"
    assert words.encode() in done.stderr, done.stderr


def test_a_deleted_open_capture_is_noticed(tmp):
    out = tmp / "out"
    with Daemon("--source", f"sim:rate={harness.rate(1_000_000)},count=20M", "-o", out, *KEEP, "--set", "pipeline.flush=50ms",
                socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        opened = harness.wait_until(lambda: harness.segments(out, ".bcp1.lz4.partial"), "a capture is open")
        harness.wait_until(lambda: daemon.status()["counts"]["written"], "the daemon records")
        opened[0].unlink()
        harness.wait_until(lambda: harness.segments(out, "-00001.bcp1.lz4.partial"), "another capture is started")
        harness.wait_until(lambda: harness.segments(out, "-00001.byu.lz4.partial"), "another segment is started")
        check_counts(daemon.status())
        equal(daemon.stop(), 4, daemon.err.decode())
    err = daemon.err.decode()
    equal(err.count("deleted while open"), 1, err)
    equal(numbers(harness.segments(out)), ["00000", "00001"], "segments")
    equal(numbers(raw_files(out)), ["00001"], "raw captures")
    verify(harness.segments(out))
    verify(raw_files(out))


# ---- a crash


def test_the_next_start_recovers_the_captures_of_a_killed_daemon(tmp):
    for number in range(3):
        out = tmp / f"out{number}"
        with Daemon("--source", f"sim:rate={harness.rate(1_000_000)},count=10M", "-o", out, *KEEP, "-b", "filesize:1M",
                    "--set", "pipeline.flush=20ms", socket=tmp / "socket") as daemon:
            daemon.wait_ready()
            harness.wait_until(lambda: daemon.status()["counts"]["written"] > 60_000 * (number + 1), "records are written")
            daemon.process.kill()
            daemon.wait()
        # The recovery deletes one without a block, as empty.
        opened = [path for path in harness.segments(out, ".bcp1.lz4.partial") if path.stat().st_size and info([path])[0]["blocks"]]
        # As if the last write had been torn.
        for path in opened:
            torn = path.read_bytes()[: 1000 * number]
            with open(path, "ab") as file:
                file.write(torn)
        err = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=1", "-o", out).stderr.decode()
        for path in opened:
            assert re.search(f"{path.stem}: left open by an earlier run(, torn)?; recovered", err), err
            assert path.with_suffix("").exists() and not path.exists()
        recording = min(harness.segments(out)).name.rpartition("-0")[0]
        raw = raw_files(out, recording)
        verify(raw)
        replay(tmp / f"again{number}", data=joined(raw))
        recorded = harness.lz4_dc(harness.segments(out, prefix=recording))
        again = harness.lz4_dc(harness.segments(tmp / f"again{number}"))
        # A block is written before its chunk, so the capture has at least as much.
        assert len(again) >= len(recorded) > 0
        equal(again[: len(recorded)], recorded, "records")
        harness.compare_with_sim(harness.segments(tmp / f"again{number}"))


# ---- the tools


@pytest.mark.asan
def test_a_damaged_capture_is_replayed_except_for_its_block(tmp):
    out = tmp / "out"
    record(out, "sim:rate=max,count=500000")
    (raw,) = raw_files(out)
    data = bytearray(raw.read_bytes())
    data[len(data) // 2] ^= 0x40
    raw.write_bytes(data)
    done = run(BUSCAP, "verify", raw)
    equal(done.returncode, 3, done.stdout)
    assert b"wrong checksum of a block" in done.stdout, done.stdout
    status, err = replay(tmp / "again", source=f"file:{raw}", codes=(3,))
    assert "wrong checksum of a block" in err, err
    lost = 500000 - status["counts"]["received"]
    assert 0 < lost < 150000, lost
    assert {gap[1] for gap in gaps(tmp / "again")} & {"damaged", 7}, gaps(tmp / "again")


def test_a_capture_cut_between_two_blocks_is_not_sealed(tmp):
    record(tmp / "out", "sim:rate=max,count=500000")
    (raw,) = raw_files(tmp / "out")
    data = raw.read_bytes()
    tables = [match.start() for match in re.finditer(re.escape(struct.pack("<I", 0x184D2A54)), data)]
    assert len(tables) > 1, tables
    verify([raw])
    equal(info([raw])[0]["sealed"], True, "info")
    for cut in (tables[-1], len(data) - 32):
        raw.write_bytes(data[:cut])
        done = run(BUSCAP, "verify", raw)
        equal(done.returncode, 3, done.stdout)
        assert b": not sealed (no end: torn or still open): raw capture" in done.stdout, done.stdout
        equal(info([raw])[0]["sealed"], False, "info")
        _, err = replay(tmp / f"again{cut}", source=f"file:{raw}", codes=(3,))
        assert "the raw capture has no end" in err, err


def test_recover_copies_the_whole_blocks_of_a_capture(tmp):
    record(tmp / "out", "sim:rate=max,count=500000")
    (raw,) = raw_files(tmp / "out")
    data = bytearray(raw.read_bytes())
    data[len(data) // 2] ^= 0x40
    raw.write_bytes(data)
    done = run(BUSCAP, "recover", "--mode", "salvage", raw, "-o", tmp / "whole.bcp1.lz4")
    equal(done.returncode, 3, done.stderr)
    assert b"blocks, " in done.stderr and b"wrong checksum of a block" in done.stderr, done.stderr
    assert b"; parts of the stream are missing" in run(BUSCAP, "verify", tmp / "whole.bcp1.lz4").stdout


def test_a_captures_entries_are_not_read_without_its_tables(tmp):
    """A later raw6 capture may start within a sample, and the stream may break anywhere."""
    record(tmp / "out", "sim:rate=max,count=1000")
    (raw,) = raw_files(tmp / "out")
    for command in (["dump"], ["dump", "-I", "bcp1"], ["stats"], ["cut", "-O", "csv"], ["convert", "-O", "csv"],
                    ["merge", "-O", "csv", raw], ["find", "0-ffffffff"]):
        done = run(BUSCAP, *command, raw)
        equal((done.returncode, done.stdout), (1, b""), command)
        assert b"raw capture: replay it" in done.stderr, done.stderr
    plain = tmp / "plain.bcp1"
    plain.write_bytes(harness.lz4_dc([raw]))
    equal(run(BUSCAP, "dump", plain).returncode, 0, "dump of its bytes")
