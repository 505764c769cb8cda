"""Killed daemons: the next start recovers everything written."""

import datetime
import json
import os
import shutil
import struct
import time

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, Daemon, Faults, equal, info, run, verify

pytestmark = pytest.mark.threads

CHUNK = struct.pack("<I", 0x184D2A51)  # a chunk header's magic
RATE = harness.rate(2_000_000 if harness.NIGHTLY else 1_000_000)
# Long enough: a daemon is killed within a second, or once it has written 300,000 records.
SOURCE = f"sim:rate={RATE},count={max(3 * RATE, 500_000)}"


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
    # A chunk starts when its first record arrives, on a busy machine late; from there, the bus clock counts.
    assert ended <= killed_at + 1, rows[ids[1]]
    segments = info(harness.segments(out))
    equal([segment["end"] and segment["end"]["reason"] for segment in segments], ["signal", "crash", "signal"], "ends")
    equal([segment["sequence"] for segment in segments], [1, 2, 3], "sequence")
    equal(segments[1]["causes"], {"crash": {"gaps": 1, "lost": torn, "inexact_gaps": 1}}, "gaps")
    text = run(BUSCAP, "info", *harness.segments(out, prefix=ids[1])).stdout
    assert b"reason: crash (recovered)" in text, text


# ---- recovery


def left_open(directory):
    """Kills a daemon and returns the segment that it left open, with nothing torn at its end."""
    while True:
        with Daemon("--source", SOURCE, "-o", directory, socket=directory.parent / "first") as daemon:
            daemon.wait_ready()
            harness.wait_until(lambda: daemon.status()["counts"]["written"] >= 300_000, "several chunks are written")
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
        equal(recovered["causes"], {"crash": {"gaps": 1, "lost": torn, "inexact_gaps": 1}}, f"gaps, {cut} bytes cut")
        assert 0 < harness.compare_with_sim([sealed]) == recovered["records"], cut


def of_later_version(path):
    """Returns a segment without its index, whose header and chunks have the next version, with correct hashes."""
    data = bytearray(path.read_bytes())
    header = len(reference.EMPTY_FRAME)
    size = 8 + struct.unpack_from("<I", data, header + 4)[0]
    data[header : header + size] = data[header : header + size].replace(b'"version":4', b'"version":5')
    chunks = reference.read_segment(path).chunks
    for at, size in ((header, size), *((chunk.offset, chunk.header_bytes) for chunk in chunks)):
        if at != header:
            struct.pack_into("<I", data, at + 8, 5)
        struct.pack_into("<Q", data, at + size - 8, reference.hash_of(data[at : at + size - 8]))
    return bytes(data[: chunks[-1].offset + chunks[-1].header_bytes + chunks[-1].info["frame_bytes"]])


def test_a_file_of_a_later_version_is_refused_and_kept(tmp):
    out = tmp / "out"
    start_again(out)
    (path,) = harness.segments(out)
    later = of_later_version(path)
    path.unlink()
    for name in (path.name, path.name + ".partial"):
        (out / name).write_bytes(later)
        for command in (("info",), ("verify",), ("dump",), ("stats",), ("convert", "-O", "byu", "-o", "/dev/null")):
            done = run(BUSCAP, *command, out / name)
            assert done.returncode in (1, 3) and b"version" in done.stdout + done.stderr, (command, done)
        err = start_again(out)[0] + start_again(out)[0]
        assert later in [kept.read_bytes() for kept in out.iterdir()], err
        assert name == path.name or name in err, err
        shutil.rmtree(out)
        out.mkdir()


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


def test_losses_of_earlier_segments_are_not_found_again_after_a_crash(tmp):
    out = tmp / "out"
    with Daemon("--source", f"sim:rate={harness.rate(400_000)},loss=0.01", "-o", out, "-b", "filesize:500k",
                socket=tmp / "socket") as daemon:
        daemon.wait_ready()

        def is_later():
            status = daemon.status()
            return status["counts"]["lost"]["board"] != 0 and status["recording"]["segment"] >= 2

        harness.wait_until(is_later, "losses, and later segments")
        daemon.process.kill()
        daemon.wait()
    done = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=1", "-o", out)
    equal(done.returncode, 0, done.stderr.decode())
    done = run(BUSCAP, "marks", "-j", out)
    gaps = [json.loads(line) for line in done.stdout.splitlines()]
    lost = [gap for gap in gaps if gap.get("cause") == "board"]
    assert lost and all(gap["exact"] for gap in lost), lost
