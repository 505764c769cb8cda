"""buscap archive and output.archive_after: segments get smaller, and nothing else changes, whatever happens."""

import collections
import functools
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import pytest

import harness
import reference
import test_manifest
from cut_model import record_file
from harness import BUSCAP, BUSCAPD, Daemon, Faults, each, equal, lz4_dc, need, run, segments, verify
from test_cut import rich_stream

SAMPLES = 4000
CALLS = ("openat", "pwrite", "fdatasync", "fsync", "renameat2", "ftruncate", "read", "pread", "unlinkat")


def record(out, samples=SAMPLES, *options):
    """Records the simulated bus into several segments. Returns their paths."""
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"sim:seed=3,rate=max,count={samples}", "-o", out,
               "-b", "filesize:1", "--set", "output.compression=lz4", *options)
    equal(done.returncode, 0, done.stderr.decode())
    return segments(out)


def record_epochs(out):
    """Records four segments, one for each epoch. Returns their paths."""
    epoch = run(need(BUSCAP), "sim", "-n", 10_000, "-O", "bcp1").stdout
    done = run(BUSCAPD, "--once", "--no-socket", "--source", "file:-", "-o", out, "-b", "filesize:1", "--set",
               "output.compression=lz4", data=4 * epoch)
    equal(done.returncode, 0, done.stderr.decode())
    equal(len(segments(out)), 4, "segments")
    return segments(out)


def archive(*argv, code=0, env=None):
    """Returns the lines printed, and the errors."""
    done = run(BUSCAP, "archive", *argv, env={**os.environ, **(env or {})})
    equal(done.returncode, code, done.stderr.decode())
    return done.stdout.decode().splitlines(), done.stderr.decode()


def contents(paths):
    """Everything in segments that archiving must keep, after checking it against the document."""
    recorded = reference.read_segments(paths)
    headers = [{k: v for k, v in segment.header.items() if k != "compression"} for segment in recorded.segments]
    chunks = [({k: v for k, v in chunk.info.items() if k != "frame_bytes"}, chunk.records, chunk.events)
              for chunk in recorded.chunks]
    return headers, chunks, recorded.ticks


def levels(paths):
    return [segment.header.get("compression") for segment in reference.read_segments(paths).segments]


def attributes(path):
    st = path.stat()
    return st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns


def check_clean(directory):
    """Checks the manifest, and that nothing else was left behind."""
    test_manifest.check(directory)
    left = [path.name for path in directory.iterdir() if "archiving" in path.name]
    equal(left, [], "files left behind")


@pytest.mark.asan
def test_segments_get_smaller_and_nothing_else_changes(tmp):
    paths = record_epochs(tmp)
    before, plain = contents(paths), lz4_dc(paths)
    old = [(attributes(path), path.stat().st_size) for path in paths]
    equal(set(levels(paths)), {"lz4"}, "levels as recorded")
    lines, err = archive(tmp)
    equal(err, "")
    equal(len(lines), len(paths) + 1, f"{lines}")
    for path, line, (kept, size) in zip(paths, lines, old):
        assert line.startswith(f"{path}: ") and line.endswith(" x)"), line
        equal(attributes(path), kept, "mode, owner and time")
        assert path.stat().st_size < size, line
    assert lines[-1].startswith("total: "), lines
    equal(contents(paths), before)
    equal(lz4_dc(paths), plain)
    equal(set(levels(paths)), {"archive"}, "levels")
    verify(paths)
    check_clean(tmp)
    # There is nothing left to do.
    inodes = [path.stat().st_ino for path in paths]
    equal(archive(tmp, *paths), ([f"{len(paths)} segments archived before"], ""))
    equal([path.stat().st_ino for path in paths], inodes, "files")


def test_gaps_marks_and_epochs_stay(tmp):
    for seed in range(3):
        path = record_file(tmp, rich_stream(seed), clock_hz=66000000)
        before = contents([path])
        assert any(event.kind == "gap" for _, _, events in before[1] for event in events)
        archive(path)
        equal(contents([path]), before)
        check_clean(path.parent)


def test_members_of_the_header_that_a_later_version_adds_stay(tmp):
    path = record(tmp)[0]
    next(tmp.glob("*.xxh128")).unlink()
    data = path.read_bytes()
    end = 11 + 8 + struct.unpack_from("<I", data, 15)[0] - 8  # of the header's text
    added = b'"future":{"x":[0.1,0.30000000000000004]}'
    # The lengths stay: the index has the offsets of the chunks.
    header = re.sub(rb'"boot_id":"[^"]*"', lambda found: added.ljust(len(found[0])), data[11:end])
    assert added in header and len(header) == end - 11, header
    path.write_bytes(data[:11] + header + struct.pack("<Q", reference.hash_of(header)) + data[end + 8 :])
    before = contents([path])
    equal(before[0][0]["future"], {"x": [0.1, 0.30000000000000004]})
    archive(path)
    equal(levels([path]), ["archive"])
    equal(contents([path]), before)


@pytest.mark.asan
def test_what_is_not_a_whole_sealed_segment_stays_as_it_is(tmp):
    path = record(tmp / "rec")[0]
    whole = path.read_bytes()
    cases = {
        "flipped.byu.lz4": (whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:], 3, "damaged: chunk"),
        "torn.byu.lz4": (whole[:-40], 3, "damaged"),
        "open.byu.lz4": (whole[: whole.rindex(b"\x52\x2a\x4d\x18")], 3, "not sealed"),
        "two.byu.lz4": (whole + whole, 3, "several segments in one file"),
        "text": (b"2 1000\n", 3, "not a segment"),
        "empty": (b"", 3, "not a segment"),
    }
    for name, (data, code, message) in cases.items():
        file = tmp / name
        file.write_bytes(data)
        lines, err = archive(file, code=code)
        equal(lines, [], name)
        assert f"{file}: left as it is: " in err and message in err, err
        equal(file.read_bytes(), data, name)
    link = tmp / "link.byu.lz4"
    link.symlink_to(path)
    assert "a symbolic link" in archive(link, code=1)[1]
    assert "No such file" in archive(tmp / "absent", code=1)[1]
    equal(path.read_bytes(), whole, "the segment")
    # Others are still archived.
    lines, _ = archive(tmp / "flipped.byu.lz4", path, code=3)
    equal(len(lines), 1, f"{lines}")


def test_a_segment_without_its_hash_in_the_manifest_stays_as_it_is(tmp):
    path = record(tmp)[0]
    manifest = next(tmp.glob("*.xxh128"))
    manifest.write_text(("1" if manifest.read_text()[0] == "0" else "0") + manifest.read_text()[1:])
    before = path.read_bytes(), manifest.read_text()
    assert "does not have the hash in its manifest" in archive(tmp, code=3)[1]
    equal((path.read_bytes(), manifest.read_text()), before)
    equal(sorted(p.name for p in tmp.glob("*archiving*")), [], "copies left behind")
    manifest.unlink()
    archive(tmp)
    equal(levels([path]), ["archive"])


def test_a_manifest_that_cannot_be_changed_leaves_no_copy(tmp):
    path = record(tmp)[0]
    manifest = next(tmp.glob("*.xxh128"))
    manifest.rename(tmp / "elsewhere")
    manifest.symlink_to(tmp / "elsewhere")
    whole = path.read_bytes()
    err = archive(tmp, code=1)[1]
    assert "its manifest: Too many levels of symbolic links" in err, err
    equal(path.read_bytes(), whole)
    equal(sorted(p.name for p in tmp.glob("*archiving*")), [], "copies left behind")


def test_copies_that_a_killed_process_left_are_finished_or_deleted_at_the_start(tmp):
    out = tmp / "rec"
    path = record(out)[0]
    before = contents([path])
    faults = Faults(tmp, out, "renameat2:2:kill")
    assert run(BUSCAP, "archive", path, env={**os.environ, **faults.env}).returncode == -signal.SIGKILL
    assert path.with_name(path.name + ".archiving").exists()
    incomplete = path.with_name(path.name + ".archiving.partial")
    incomplete.write_bytes(b"x")
    # These are somebody else's.
    kept = [out / "notes.archiving", out / "a.byu.lz4.archiving.partial"]
    for other in kept:
        other.write_bytes(b"x")
    done = run(BUSCAPD, "--once", "--no-socket", "--source", "sim:count=1000,rate=max", "-o", out)
    equal(done.returncode, 0, done.stderr.decode())
    equal((levels([path]), contents([path])), (["archive"], before))
    archive(out)
    for other in kept:
        equal(other.read_bytes(), b"x", other.name)
        other.unlink()
    check_clean(out)


def test_a_segment_that_is_being_sealed_waits(tmp):
    """Its hash is not in the manifest yet."""
    out = tmp / "rec"
    out.mkdir()
    faults = Faults(tmp, out, "openat:1:hold")
    with Daemon("--once", "--source", f"sim:rate=max,count={SAMPLES}", "-o", out, socket=tmp / "s",
                env={**faults.env, "FAULTFS_ENDING": ".xxh128"}) as daemon:
        harness.wait_until(lambda: segments(out), "the segment has its name")
        lines, err = archive(out)
        assert lines == [] and "archiving or sealing" in err, (lines, err)
        faults.set("")
        daemon.wait()
    archive(out)
    check_clean(out)


def recorded():
    """The directory of record(). Copy what you change."""
    return harness.shared("archive", record)


@functools.cache
def recorded_and_archived():
    """Returns the bytes of the segment of recorded(), before and after archiving it."""
    with tempfile.TemporaryDirectory() as directory:
        (path,) = segments(shutil.copytree(recorded(), pathlib.Path(directory, "rec")))
        whole, before = path.read_bytes(), contents([path])
        archive(path)
        equal((levels([path]), contents([path])), (["archive"], before))
        return whole, path.read_bytes()


def one_fault(tmp, rule, is_kill=False):
    out = shutil.copytree(recorded(), tmp / "rec")
    (path,) = segments(out)
    whole, archived = recorded_and_archived()
    faults = Faults(tmp, out, rule)
    done = run(BUSCAP, "archive", "-j", 1, out, env={**os.environ, **faults.env})
    wanted = (0, 1, 3, -signal.SIGKILL) if is_kill else (0, 1, 3)
    assert done.returncode in wanted, (rule, done)
    assert path.read_bytes() in (whole, archived), (rule, done)
    if done.returncode in (1, 3):
        assert "left as it is: " in done.stderr.decode() or path.read_bytes() == archived, done
    archive(out)
    equal(path.read_bytes(), archived, rule)
    check_clean(out)


def calls_of_a_run(tmp):
    """How often each file call is made without faults."""
    out = shutil.copytree(recorded(), tmp / "whole")
    faults = Faults(tmp, out)
    archive("-j", 1, out, env=faults.env)
    made = collections.Counter(kind for kind, *_ in faults.calls())
    assert made["pwrite"] > 3 and made["renameat2"] == 2 and made["fsync"] > 2, made
    return [(kind, number) for kind in CALLS for number in range(1, made[kind] + 1)]


@pytest.mark.asan
def test_a_failing_call_costs_nothing(tmp):
    jobs = [(f"{kind}:{number}:{error}",) for kind, number in calls_of_a_run(tmp) for error in ("ENOSPC", "EIO", "EACCES")]
    each(one_fault, harness.some(jobs, 10))


def test_a_short_call_costs_nothing(tmp):
    jobs = [(f"{kind}:{number}:short",) for kind, number in calls_of_a_run(tmp) if kind in ("pwrite", "read", "pread")]
    each(one_fault, harness.some(jobs, 3))


def test_killed_at_any_call_the_segment_is_whole_and_the_next_run_finishes(tmp):
    jobs = [(f"{kind}:{number}:kill", True) for kind, number in calls_of_a_run(tmp)]
    each(one_fault, harness.some(jobs, 3))


def test_a_copy_that_is_left_is_only_used_if_it_is_equal(tmp):
    other = record(tmp / "other", SAMPLES + 1)[0]
    archive(other)
    archived = recorded_and_archived()[1]
    for number, left in enumerate((other.read_bytes(), b"", b"x" * 100_000)):
        out = shutil.copytree(recorded(), tmp / f"{number}")
        (path,) = segments(out)
        for ending in (".archiving", ".archiving.partial"):
            path.with_name(path.name + ending).write_bytes(left)
        archive(out)
        equal(path.read_bytes(), archived, "the segment")
        check_clean(out)


def test_it_can_be_interrupted(tmp):
    out = tmp / "rec"
    path = record(out)[0]
    whole = path.read_bytes()
    faults = Faults(tmp, out, "pwrite:2:hold")
    process = harness.popen([BUSCAP, "archive", path], env={**os.environ, **faults.env}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    harness.wait_until(lambda: any(done == "hold" for *_, done, _ in faults.calls()), "a call is held")
    process.send_signal(signal.SIGINT)
    faults.set("")
    _, err = process.communicate(timeout=harness.TIMEOUT_S)
    equal(process.returncode, 1, err.decode())
    assert b"left as it is: interrupted" in err, err
    equal(path.read_bytes(), whole, "the segment")
    check_clean(out)


def test_a_segment_that_is_deleted_meanwhile_is_left_out(tmp):
    """As by the retention rules of a daemon."""
    first, *others = record_epochs(tmp / "rec")
    faults = Faults(tmp, tmp / "rec", "pwrite:2:hold")
    process = harness.popen([BUSCAP, "archive", "-j", "1", tmp / "rec"], env={**os.environ, **faults.env},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    harness.wait_until(lambda: any(done == "hold" for *_, done, _ in faults.calls()), "a call is held")
    for path in others:
        path.unlink()
    faults.set("")
    out, err = process.communicate(timeout=harness.TIMEOUT_S)
    equal((process.returncode, err), (0, b""))
    equal(out.count(b"\n"), 1, out)
    equal(levels([first]), ["archive"])


def test_the_directory_of_a_recording_daemon_can_be_archived(tmp):
    out = tmp / "rec"
    with Daemon("--source", f"sim:seed=1,rate={harness.rate(100_000)}", "-o", out, "-b", "filesize:1", "--set",
                "pipeline.flush=100ms", socket=tmp / "s") as daemon:
        daemon.wait_ready()
        for sealed in (2, 4, 6, 8):
            harness.wait_until(lambda: daemon.status()["sealed"]["segments"] >= sealed, "more segments")
            archive(out)
        daemon.stop()
    paths = segments(out)
    verify(paths)
    harness.compare_with_sim(paths)
    check_clean(out)
    assert levels(paths).count("archive") > 3, levels(paths)


def test_the_daemon_archives_old_segments_in_the_background(tmp):
    out = tmp / "rec"
    paths = record_epochs(out)
    before = contents(paths)
    for path in paths[:-1]:
        os.utime(path, (time.time() - 7200,) * 2)
    with Daemon("--source", "sim:rate=1000", "-o", out, "--set", "output.archive_after=1h", "--set",
                "output.archive_rate=100M", socket=tmp / "s") as daemon:
        harness.wait_until(lambda: all(f"{path.name}: archived: " in daemon.log_so_far() for path in paths[:-1]),
                           "the old ones are archived")
        daemon.stop()
    equal(levels(paths), ["archive"] * (len(paths) - 1) + ["lz4"], "levels")
    equal(contents(paths), before)
    check_clean(out)


@pytest.mark.asan
def test_the_daemon_rests_at_once_when_it_stops(tmp):
    out = tmp / "rec"
    paths = record_epochs(out)
    for path in paths:
        os.utime(path, (time.time() - 7200,) * 2)
    with Daemon("--source", "sim:rate=1000", "-o", out, "--set", "output.archive_after=1h", "--set",
                "output.archive_rate=1", socket=tmp / "s") as daemon:
        # The first copy has used up the rate: the archiver waits from then on.
        harness.wait_until(lambda: list(out.glob("*.archiving")), "a copy is complete")
        daemon.stop()
    equal(list(out.glob("*.archiving*")), [], "copies left behind")
    equal(levels(paths), ["lz4"] * len(paths), "levels")
    check_clean(out)


def test_a_link_does_not_keep_the_segment_itself_from_being_archived(tmp):
    (segment,) = record(tmp / "recorded", 10)
    for number in range(2):
        out = tmp / f"out{number}"
        out.mkdir()
        path = out / segment.name
        shutil.copy(segment, path)
        link = out / "00000-link-00000.byu.lz4"
        link.symlink_to(path.name)
        _, err = archive(*([link, path] if number else [out]), code=1)
        assert "it is a symbolic link" in err, err
        equal(levels([path]), ["archive"], "the segment")
