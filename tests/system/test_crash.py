"""Killed daemons: the next start recovers everything written."""

import datetime
import json
import os
import random
import shutil
import struct
import time

import pytest

import harness
from harness import BUSCAP, BUSCAPD, Daemon, Faults, each, equal, info, run, verify

pytestmark = pytest.mark.threads

CHUNK = struct.pack("<I", 0x184D2A51)  # a chunk header's magic
RATE = harness.rate(2_000_000 if harness.NIGHTLY else 1_000_000)
# Long enough: a daemon is killed within a second, or once it has written 300,000 records.
SOURCE = f"sim:rate={RATE},count={max(3 * RATE, 500_000)}"
ROUNDS = int(os.environ.get("ROUNDS", 30 if harness.NIGHTLY else 3))


def check_killed(out, killed, before):
    """Checks the files of a killed daemon after the next start. Returns the id of the latest recording."""
    recording = killed["recording"]["id"]
    written = killed["counts"]["written"]
    segments = harness.segments(out, prefix=recording)
    # A daemon that was killed before it wrote a header leaves an empty file, which nothing shows to be one of its own.
    equal([path for path in out.glob(f"{recording}*.partial") if path.stat().st_size], [], "left open")
    if not segments:
        equal(written, 0, "records written without a file")
        return before
    verify(segments)
    recorded = harness.compare_with_sim(segments)
    assert recorded >= written, f"{recorded} of {written} written"
    for segment in info(segments):
        equal(segment["continues"], before, "the recording before")
    return recording


def kill_rounds(directory, seed, rounds):
    """Kills daemons in one directory at random times, until enough were killed and one of them had written records."""
    rng = random.Random(seed)
    out = directory / "out"
    out.mkdir()
    faults = Faults(directory, out)
    killed = before = None
    number = 0
    while number <= rounds or before is None:
        number += 1
        argv = ["--source", SOURCE, "-o", out, "-b", f"filesize:{rng.choice(['300K', '2M', '1G'])}"]
        if rng.random() < 0.5:
            argv += ["--set", "pipeline.flush=10ms", "--set", "pipeline.sync=3ms"]
        faults.set("")
        earlier = killed
        with Daemon(*argv, socket=directory / "socket", env=faults.env) as daemon:
            daemon.wait_ready()
            end = time.monotonic() + rng.uniform(0, 0.7)
            if rng.random() < 0.5:
                # A hanging write shows whether records are counted before they are written.
                time.sleep(max(0.0, end - 0.1 - time.monotonic()))
                faults.set("pwrite:hold")
            killed = daemon.status()
            while time.monotonic() < end:
                status = daemon.status()
                killed = status if status["recording"] is not None else killed
            daemon.process.kill()
            daemon.wait()
        # Not earlier: the daemon would still be recording.
        if earlier is not None:
            before = check_killed(out, earlier, before)


def test_killed_at_any_time_everything_written_is_kept(tmp):
    each(kill_rounds, [(seed, (ROUNDS + 2) // 3) for seed in range(3)], workers=3)


# ---- the end of a recording


def torn_records(data):
    """Returns the records of a last chunk that was not written whole: what its header says, or 0 if that is torn, too."""
    at = data.index(CHUNK)
    while data[at : at + 4] == CHUNK and at + 28 <= len(data):
        length, = struct.unpack_from("<I", data, at + 4)
        records, frame = struct.unpack_from("<II", data, at + 20)
        if at + 8 + length + frame > len(data):
            return records if at + 8 + length <= len(data) else 0
        at += 8 + length + frame
    return 0


def listed(socket):
    """The recordings: the state, the reason and the time of the end, by id."""
    rows = json.loads(harness.http(socket, "/v1/recordings")[1])["recordings"]
    return {row["id"]: row for row in rows}


@pytest.mark.asan
def test_a_killed_recording_is_recovered_and_says_so(tmp):
    out, socket = tmp / "out", tmp / "socket"
    ids = []
    for kill in (False, True, False):
        with Daemon("--source", SOURCE, "-o", out, socket=socket) as daemon:
            ids.append(daemon.wait_ready()["recording"]["id"])
            rows = listed(socket)
            harness.wait_until(lambda: daemon.status()["counts"]["written"], "records are written")
            if kill:
                daemon.process.kill()
                daemon.wait()
                killed_at = time.time()
                (opened,) = out.glob("*.partial")
                torn = torn_records(opened.read_bytes())
            else:
                assert daemon.stop() in (0, 4), daemon.err
    equal([(rows[name]["state"], rows[name]["reason"]) for name in ids],
          [("sealed", "signal"), ("recovered", "crash"), ("recording", None)], "states")
    ended = datetime.datetime.fromisoformat(rows[ids[1]]["ended"][:26] + "+00:00").timestamp()
    assert ended <= killed_at, rows[ids[1]]
    segments = info(harness.segments(out))
    equal([segment["end"] and segment["end"]["reason"] for segment in segments], ["signal", "crash", "signal"], "ends")
    equal([segment["sequence"] for segment in segments], [1, 2, 3], "sequence")
    equal(segments[1]["gaps"]["causes"], {"crash": {"count": 1, "lost": torn, "exact": False}}, "gaps")
    text = run(BUSCAP, "info", *harness.segments(out, prefix=ids[1])).stdout
    assert b"reason: crash (recovered)" in text, text


# ---- recovery


def left_open(directory):
    """Kills a daemon and returns the segment that it left open, with nothing torn at its end."""
    while True:
        with Daemon("--source", SOURCE, "-o", directory, socket=directory.parent / "first") as daemon:
            daemon.wait_ready()
            harness.wait_until(lambda: daemon.status()["counts"]["written"] >= min(300_000, RATE), "enough records are written")
            daemon.process.kill()
            daemon.wait()
        (opened,) = directory.glob("*.partial")
        if run("lz4", "-t", opened).returncode == 0:
            return opened
        shutil.rmtree(directory)  # killed in the middle of a write


def start_again(directory, code=0, env=None):
    """Returns the log of the next start, and the header of its segment."""
    done = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=1", "-o", directory,
               env={**os.environ, **(env or {})})
    equal(done.returncode, code, done.stderr.decode())
    return done.stderr.decode(), info(harness.segments(directory)[-1:])[0] if code == 0 else None


def test_an_interrupted_recovery_is_repeated(tmp):
    out = tmp / "out"
    opened = left_open(out)
    whole = harness.lz4_dc([opened])
    sealed = opened.with_suffix("")
    half = sealed.with_name(sealed.name + ".recovering")
    half.write_bytes(opened.read_bytes()[:100_000])
    err, latest = start_again(out)
    assert f"{sealed.name}: left open by an earlier run; recovered all" in err, err
    equal((half.exists(), opened.exists()), (False, False), "leftovers")
    verify([sealed])
    equal(harness.lz4_dc([sealed]), whole, "records")
    equal(latest["continues"], info([sealed])[0]["recording"], "the recording before")


def test_a_torn_tail_keeps_whole_chunks(tmp):
    out = tmp / "out"
    opened = left_open(out)
    data = opened.read_bytes()
    for cut in (1, 1000, 400_000):
        sealed = opened.with_suffix("")
        sealed.unlink(missing_ok=True)
        opened.write_bytes(data[:-cut] + bytes(cut // 2))
        torn = torn_records(data[:-cut])
        err, _ = start_again(out)
        assert "; torn: lost " in err, err
        verify([sealed])
        (recovered,) = info([sealed])
        equal(recovered["gaps"]["causes"], {"crash": {"count": 1, "lost": torn, "exact": False}}, f"gaps, {cut} bytes cut")
        assert 0 < harness.compare_with_sim([sealed]) == recovered["records"], cut


def test_a_segment_without_a_whole_chunk_is_kept_as_damaged(tmp):
    out = tmp / "out"
    opened = left_open(out)
    garbage = random.Random(1).randbytes(300_000)
    data = opened.read_bytes()
    start = data.index(struct.pack("<I", 0x184D2A50))
    header = data[: start + 8 + struct.unpack_from("<I", data, start + 4)[0]]
    for number, content in enumerate((header + garbage, header + b"\1" * 5000, header), 1):
        opened.write_bytes(content)
        err, latest = start_again(out)
        kept = opened.with_suffix(".damaged" if number == 1 else f".damaged.{number}")
        assert not opened.exists() and not opened.with_suffix("").exists(), number
        equal(latest["continues"], None, f"{number}: the recording before")
        if content == header:
            assert f"{opened.name}: left open by an earlier run; empty, deleted" in err, err
            continue
        assert f"kept as {kept.name}" in err and "to try again: buscap recover " in err, err
        equal(kept.read_bytes(), content, kept.name)


def test_an_open_file_that_nothing_proves_to_be_ours_is_left_alone(tmp):
    """A power cut can leave a file without its header. Another program's file looks like that, too."""
    out = tmp / "out"
    opened = left_open(out)
    foreign = {opened.name: bytes(5000), "todo-20261.byu.lz4.partial": b"call the dentist\n",
               "20260102T000000Z-00000a-00000.byu.lz4.partial": b"", "._notes-00001.byu.lz4.partial": b"\0\5\26\7"}
    for name, content in foreign.items():
        (out / name).write_bytes(content)
    err, latest = start_again(out)
    for name, content in foreign.items():
        equal((out / name).read_bytes(), content, name)
        equal(err.count(f"{name}: left alone and not counted"), 1, err)
    equal(latest["continues"], None, "the recording before")


def test_a_sealed_copy_replaces_its_original(tmp):
    """A crash between sealing the copy and deleting the original leaves both."""
    out = tmp / "out"
    opened = left_open(out)
    whole = harness.lz4_dc([opened])
    before = opened.read_bytes()
    start_again(out)
    sealed = opened.with_suffix("")
    equal(harness.lz4_dc([sealed]), whole, "recovered")
    opened.write_bytes(before)
    err, _ = start_again(out)
    assert f"{opened.name}: already recovered by an earlier run; deleted" in err, err
    assert not opened.exists(), "the original is still there"
    equal(harness.lz4_dc([sealed]), whole, "the recovered segment")


def test_recovery_on_a_full_disk_leaves_the_segment(tmp):
    out = tmp / "out"
    opened = left_open(out)
    before = opened.read_bytes()
    whole = harness.lz4_dc([opened])
    faults = Faults(tmp, out, "pwrite:ENOSPC")
    with Daemon("--source", "sim:rate=100k,count=10M", "-o", out, socket=tmp / "socket", env=faults.env) as daemon:
        status = daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["disk"]["last_error"], "the disk is full")
        equal(opened.read_bytes(), before, "the open segment")
        faults.set("")
        harness.wait_until(lambda: daemon.status()["counts"]["written"], "recording continues")
        equal(daemon.stop(), 0, daemon.err)
    err = daemon.err.decode()
    assert f"{opened.name}: left open by an earlier run; can't recover it now: No space left" in err, err
    equal(list(out.glob("*.recovering")), [], "unfinished copies")
    equal(opened.read_bytes(), before, "the open segment")
    later = [path for path in harness.segments(out) if path.name.startswith(status["recording"]["id"])]
    equal(info(later)[0]["continues"], info([opened])[0]["recording"], "the recording before")
    start_again(out)
    equal(harness.lz4_dc([opened.with_suffix("")]), whole, "records")


def test_a_service_continues_the_newest_recording_and_once_only_a_recovered_one(tmp):
    out = tmp / "out"
    ids = []
    for _ in range(5):
        # Several start within one second.
        with Daemon("--source", "sim:rate=100k,count=10M", "-o", out, socket=tmp / "socket") as daemon:
            ids.append(daemon.wait_ready()["recording"]["id"])
            harness.wait_until(lambda: daemon.status()["counts"]["received"], "samples are received")
            equal(daemon.stop(), 0, daemon.err)
    equal([segment["continues"] for segment in info(harness.segments(out))], [None, *ids[:-1]], "the recordings before")
    equal(ids, sorted(ids), "ids in the order of their starts")
    _, latest = start_again(out)
    equal(latest["continues"], None, "after a sealed one")
    # A recording without records is not continued.
    (out / "29991231T235959Z-ffffff-00000.byu.lz4.partial").write_bytes(b"nothing")
    with Daemon("--source", "sim:rate=100k,count=10M", "-o", out, socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["received"], "samples are received")
        equal(daemon.stop(), 0, daemon.err)
    equal(info(harness.segments(out))[-1]["continues"], latest["recording"], "the recording before")
