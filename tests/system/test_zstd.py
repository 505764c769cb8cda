"""Segments of zstd frames, and recordings that have both kinds."""

import json
import os
import shutil
import signal
import struct

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, Daemon, equal, run
from recovered import compressed, start_again

RECORDS = 400_000


def record(out, *options):
    done = run(BUSCAPD, "--once", "--no-socket", "--source", f"sim:rate=max,count={RECORDS},loss=0.001", "-o", out,
               "-b", "filesize:250K", *options)
    assert done.returncode in (0, 4), done.stderr.decode()
    return harness.segments(out)


def repack(path, directory):
    """Writes a sealed segment of LZ4 frames with zstd frames instead, under its own name but for the suffix."""
    segment = reference.read_segment(path)
    data = path.read_bytes()
    text = json.dumps({**segment.header, "compression": "zstd"}).encode()
    header = struct.pack("<II", 0x184D2A50, len(text) + 8) + text
    out = reference.EMPTY_ZSTD + header + struct.pack("<Q", reference.hash_of(header))
    for chunk in segment.chunks:
        packed = run("zstd", "-1", "-c", "-q", "--no-check", data=chunk.records).stdout
        start = bytearray(data[chunk.offset : chunk.offset + chunk.header_bytes - 8])
        struct.pack_into("<I", start, 24, len(packed))
        out += start + struct.pack("<Q", reference.hash_of(start)) + packed
    name = path.name.replace(".byu.lz4", ".byu.zst")
    torn = directory / f"{name}.partial"
    torn.write_bytes(out)
    done = run(BUSCAP, "recover", torn, "-o", directory / name)  # adds the index
    equal(done.returncode, 0, done.stderr.decode())
    torn.unlink()
    return directory / name


@pytest.fixture
def both(tmp):
    """A recording, and the same one with zstd frames in every second segment."""
    paths = record(tmp / "lz4")
    (tmp / "both").mkdir()
    for path in paths[::2]:
        shutil.copy(path, tmp / "both")
    for path in paths[1:-1:2]:
        repack(path, tmp / "both")  # not the last one: its recovery would add that it was killed
    if len(paths) % 2 == 0:
        shutil.copy(paths[-1], tmp / "both")
    assert len(paths) > 2, paths
    return paths, harness.segments(tmp / "both")


def output(*argv):
    done = run(BUSCAP, *argv)
    assert done.returncode in (0, 4), done.stderr.decode()
    return done.stdout


def test_every_command_reads_across_both_kinds(both):
    lz4, mixed = both
    directory = mixed[0].parent
    equal([path.suffix for path in mixed[:3]], [".lz4", ".zst", ".lz4"])
    assert b"damage" not in output("verify", *mixed), "verify"
    for command in (("dump",), ("find", "--count", "0-ffffffff"), ("marks",), ("stats", "--json"),
                    ("cut", "-O", "byu"), ("convert", "-O", "csv")):
        wanted = output(*command, *lz4).replace(str(lz4[0].parent).encode(), b"").replace(b".lz4", b"")
        got = output(*command, *mixed).replace(str(directory).encode(), b"").replace(b".lz4", b"").replace(b".zst", b"")
        assert got == wanted, command
        # The directory is the same recording.
        of_directory = output(*command, directory).replace(str(directory).encode(), b"")
        assert of_directory.replace(b".lz4", b"").replace(b".zst", b"") == wanted, command
    equal(run(BUSCAP, "diff", lz4[0].parent, directory).returncode, 0, "diff")


def test_a_copy_with_other_frames_is_read_once(both):
    lz4, mixed = both
    directory = mixed[0].parent
    shutil.copy(lz4[1], directory)  # beside its .byu.zst
    records = sum(row["records"] for row in harness.info(lz4))
    equal(len(output("convert", "-O", "byu", directory)), 12 * records, "of the directory")
    done = run(BUSCAP, "convert", "-O", "byu", *harness.segments(directory))
    equal((done.returncode, len(done.stdout)), (3, 12 * records), done.stderr.decode())


def test_without_a_header_recovery_goes_by_the_frames(tmp):
    path = record(tmp / "old", *compressed(1))[0]
    data = bytearray(path.read_bytes())
    data[0:60] = bytes(60)
    path.write_bytes(data)
    done = run(BUSCAP, "recover", path, "-o", tmp / "x.byu.zst")
    equal(done.returncode, 3, done.stderr.decode())
    segment = reference.read_segment(tmp / "x.byu.zst")
    equal(segment.header["compression"], "zstd")
    assert len(segment.chunks) > 1, "its chunks are kept"


@pytest.mark.parametrize("level", ["zstd", "zstd-7", "default", "lz4"])
def test_old_files_are_packed_again(tmp, level):
    paths = record(tmp / "old")
    out = tmp / f"x.byu.{'zst' if 'zstd' in level else 'lz4'}"
    equal(output("cut", "-O", f"segment:compression={level}", "-o", out, *paths), b"")
    (row,) = harness.info([out])
    equal(row["compression"], level)
    equal(harness.lz4_dc([out]), harness.lz4_dc(paths), "records")
    harness.verify([out])


def test_the_name_decides_unless_it_contradicts(tmp):
    (tmp / "in.byu").write_bytes(harness.sim_records(1000))
    equal(output("convert", "-I", "byu", "-o", tmp / "a.byu.zst", tmp / "in.byu"), b"")
    equal(harness.lz4_dc([tmp / "a.byu.zst"]), (tmp / "in.byu").read_bytes(), "zstd -dc")
    # As BYU, the records are read as zstd -dc prints them.
    equal(output("convert", "-I", "byu", "-O", "byu", tmp / "a.byu.zst"), (tmp / "in.byu").read_bytes(), "as byu")
    for name, level in (("b.byu.lz4", "zstd"), ("b.byu.zst", "dense"), ("b.byu.zst", "zstd-20")):
        done = run(BUSCAP, "convert", "-I", "byu", "-O", f"segment:compression={level}", "-o", tmp / name, tmp / "in.byu")
        equal((done.returncode, (tmp / name).exists()), (2, False), done.stderr.decode())
    done = run(BUSCAPD, "--check-config", "--set", "output.compression=zstd-3")
    equal(done.returncode, 2, "levels above 1 are for packing")


def is_stopped_in_a_segment(daemon, out):
    """Stops the daemon unless it is between two segments."""
    daemon.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, daemon.process.pid, os.WSTOPPED)
    is_open = any(path.stat().st_size > 100_000 for path in out.glob("*.partial"))
    if not is_open:
        daemon.process.send_signal(signal.SIGCONT)
    return is_open


def test_a_killed_recording_is_completed_and_follows_the_rules_of_space(tmp):
    out = tmp / "out"
    for number in range(3):
        with Daemon("--source", "sim:rate=1M", "-o", out, "-b", "filesize:300K", *compressed(number),
                    socket=tmp / "socket") as daemon:
            daemon.wait_ready()
            harness.wait_until(lambda: daemon.status()["counts"]["written"] >= 200_000, "it records")
            harness.wait_until(lambda: is_stopped_in_a_segment(daemon, out), "a segment is open")
            daemon.process.kill()
            daemon.wait()
    (torn,) = out.glob("*.partial")
    data = torn.read_bytes()
    torn.write_bytes(data[: len(data) - 1000])
    start_again(out)
    assert not list(out.glob("*.partial")) and not list(out.glob("*.damaged")), "all are sealed"
    paths = harness.segments(out)
    for path in paths:
        reference.read_segment(path)
    for recording in {path.name[:23] for path in paths}:
        assert harness.compare_with_sim(harness.segments(out, prefix=recording)) > 0, recording
    equal({path.suffix for path in paths}, {".lz4", ".zst"})
    done = run(BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=10", "-o", out, "-b", "files:2",
               *compressed(1))
    equal(done.returncode, 0, done.stderr.decode())
    equal(harness.segments(out)[0].name, paths[-1].name, "the oldest of both kinds are deleted")
    equal(len(harness.segments(out)), 2)
