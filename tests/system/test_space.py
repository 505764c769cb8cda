"""Which files the space rules delete: only buscapd's, and no more than needed, whatever the file system says; and directories
with many recordings."""

import contextlib
import json
import os
import re
import shutil
import subprocess

import pytest

import harness
import many_files
from harness import (BUSCAP, BUSCAPD, Daemon, Faults, MovedClock, equal, http, info, run, segments, status, verify,
                     wait_until)

pytestmark = pytest.mark.threads

MIB = 1 << 20
OLD = 40 * 86400


def record(out, source, *argv, env=None):
    """Records until the source ends. Returns the log."""
    done = run(BUSCAPD, "--once", "--no-socket", "--source", source, "-o", out, *argv, env=env)
    equal(done.returncode, 0, done.stderr.decode())
    return done.stderr.decode()


def make_old(out, size="200K", samples="300k"):
    """Records some segments."""
    record(out, f"sim:rate=max,count={samples},seed=3", "-b", f"filesize:{size}")
    return harness.segments(out)


def copy_old(out):
    """Copies some segments of 1 MB, which are recorded once in a run."""
    made = harness.shared("old", lambda directory: make_old(directory, "1M", "5M"))
    shutil.copytree(made, out, dirs_exist_ok=True)
    return harness.segments(out)


def files(out):
    return {path.name: path.read_bytes() for path in out.iterdir() if not path.name.startswith(".reserve")}


# ---- foreign files


def put_foreign(out, like):
    """Puts files next to recordings whose names end like theirs: what users and other programs leave."""
    (out / "notes-20260.byu.lz4").write_text("shopping list")
    (out / "zz-99999.byu.lz4").write_text("zz")
    (out / "todo-20261.byu.lz4.partial").write_text("call the dentist")
    (out / "empty-00000.byu.lz4.partial").write_bytes(b"")
    (out / f"._{like.name}").write_bytes(b"\0\5\26\7\0\2\0\0Mac OS X        ")
    (out / "lost-00000.byu.lz4.damaged").write_bytes(b"")
    shutil.copy(like, out / f"KEEP-{like.name}")
    shutil.copy(like, out / "20990101T000000Z-ffffff-00000.byu.lz4")
    shutil.copy(like, out / "20010101T000000Z-000000-00007.byu.lz4.partial")
    with (out / "export-00000.byu.lz4").open("wb") as export:
        subprocess.run(("lz4", "-dc", like), stdout=subprocess.PIPE, check=True)
        export.write(run("lz4", "-c", "/etc/passwd").stdout)
    # Its header has the name of a new recording, and that of the program which made it.
    run(BUSCAP, "cut", "--records", "0-99", like, "-o", out / "cut.byu.lz4")
    recording = info([out / "cut.byu.lz4"])[0]["recording"]
    (out / "cut.byu.lz4").rename(out / f"{recording}-00000.byu.lz4")
    foreign = {name: data for name, data in files(out).items()
               if name.startswith(("notes", "zz", "todo", "empty", "._", "lost", "KEEP", "2099", "2001", "export",
                                   recording))}
    equal(len(foreign), 11, "foreign files")
    for name in foreign:
        os.utime(out / name, (1_700_000_000 - OLD,) * 2)
    return foreign


def check_foreign(out, foreign, err):
    left = files(out)
    for name, data in foreign.items():
        assert left.get(name) == data, f"{name} was deleted, renamed or changed; {err}"


@pytest.mark.parametrize("rule", (("-b", "files:3"), ("--set", "space.max_use=2MiB"), ("--set", "space.max_age=30d")))
def test_foreign_files_are_neither_deleted_nor_renamed_nor_counted(tmp, rule):
    out = tmp / "out"
    old = make_old(out)
    foreign = put_foreign(out, old[0])
    before = set(files(out)) - set(foreign)

    def ours():
        return sorted(name for name in set(files(out)) - set(foreign) if name.endswith(".byu.lz4"))

    with Daemon("--source", "sim:rate=max,count=600k", "-o", out, "-b", "filesize:200K", *rule, socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["recording"] is None, "the source has ended")
        # On a busy machine the last check may have ended before it had noticed all changes. Another follows after a second.
        harness.wait_until(lambda: "files" not in rule[-1] or len(ours()) == 3, "the rule holds")
        listed = json.loads(run("curl", "-s", "--unix-socket", daemon.socket, "http://x/v1/recordings").stdout)
        equal(daemon.stop(), 0, daemon.err)
    err = daemon.err.decode()
    check_foreign(out, foreign, err)
    equal(err.count(": ignored: "), 11, f"ten lines and a summary; {err}")
    assert "1 more time in" in err, err
    ids = {row["id"] for row in listed["recordings"]}
    assert ids <= {path.name[:23] for path in harness.segments(out) if path.name not in foreign} | {old[0].name[:23]}, ids
    if "max_age" in rule[-1]:
        assert before <= set(files(out)), err
    elif "files" in rule[-1]:
        equal(len(ours()), 3, f"segments; {err}")
    else:
        assert sum((out / name).stat().st_size for name in ours()) > 1_500_000, f"{ours()}; {err}"


def test_a_slow_deletion_deletes_no_more_than_the_rule_wants(tmp):
    """The writer waits only a quarter of a second for a check. The segment that it creates meanwhile must not count twice."""
    faults = Faults(tmp, tmp / "out", "unlinkat:slow")
    (tmp / "out").mkdir()
    with Daemon("--source", "sim:rate=200k,count=900k", "-o", tmp / "out", "-b", "filesize:200K", "-b", "files:3", socket=tmp / "socket",
                env=faults.env) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["recording"] is None, "the source has ended")
        equal(daemon.stop(), 0, daemon.err)
    equal(len(harness.segments(tmp / "out")), 3, daemon.err.decode())


# ---- the figures of the file system


def test_a_file_system_that_does_not_tell_its_size_loses_no_recording(tmp):
    out = tmp / "out"
    old = make_old(out)
    faults = Faults(tmp, out)
    faults.set("fstatvfs:unknown")
    argv = ("--source", f"sim:rate={harness.rate(100_000)}", "-o", out, "--set", "space.keep_free=100GiB", "--set",
            "pipeline.flush=50ms")
    with Daemon(*argv, socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["written"] > 20_000, "it records")
        disk = daemon.status()["disk"]
        equal((disk["free_bytes"], disk["time_left_seconds"], disk["stuck"], disk["ring"]), (None, None, False, None), disk)
        shown = run(BUSCAP, "status", "--socket", daemon.socket).stdout.decode()
        assert "free space unknown" in shown, shown
        metrics = run("curl", "-s", "--unix-socket", daemon.socket, "http://x/metrics").stdout.decode()
        assert "disk_free_bytes" not in metrics, metrics
        faults.set("")
        equal(daemon.stop(), 0, daemon.err)
    err = daemon.err.decode()
    equal(err.count("rule keep_free is suspended: the file system does not report its free space"), 1, err)
    for path in old:
        assert path.exists(), f"{path.name} was deleted; {err}"
    verify(harness.segments(out))


@pytest.mark.single
@pytest.mark.root
def test_files_that_a_reader_has_open_or_that_have_links_are_not_deleted_in_vain(tmp):
    """Deleting them frees nothing. Four links and the open files of a reader cost no more than is short."""
    # The readers end first: an open file keeps the disk from being unmounted.
    with harness.SmallDisk(tmp, "48M") as disk, contextlib.ExitStack() as readers:
        out = disk / "out"
        old = copy_old(out)
        assert len(old) >= 8, old
        for path in old[:4]:
            os.link(path, disk / path.name)
        for path in old:
            readers.enter_context(path.open("rb"))
        space = os.statvfs(disk)
        free = space.f_bavail * space.f_frsize
        short = 3 * MIB // 2
        argv = ("--source", f"sim:rate={harness.rate(50_000)}", "-o", out, "-b", "filesize:1M", "--set",
                f"space.keep_free={free + short - MIB // 2}", "--set", "pipeline.flush=50ms")
        with Daemon(*argv, socket=tmp / "socket") as daemon:
            daemon.wait_ready()
            written = 0
            for _ in range(4):
                # A check a second.
                harness.wait_until(lambda: daemon.status()["counts"]["written"] > written + 40_000, "the recording goes on")
                written = daemon.status()["counts"]["written"]
            disk_status = daemon.status()["disk"]
            left = [path for path in old if path.exists()]
            readers.close()
            equal(daemon.stop(), 0, daemon.err)
        assert not disk_status["stuck"], disk_status
        equal(left[:4], old[:4], "those with links")
        deleted = len(old) - len(left)
        assert 1 <= deleted <= 3, f"{deleted} of {len(old)} deleted; {daemon.err.decode()}"


@pytest.mark.root
def test_without_a_rule_a_lack_of_inodes_is_named_until_there_are_some(tmp):
    with harness.SmallDisk(tmp, "64M,nr_inodes=20") as disk:
        (disk / "out").mkdir()
        number = 0
        while os.statvfs(disk).f_favail > 1:
            (disk / f"small{number}").touch()
            number += 1
        with Daemon("--source", "sim:rate=10k", "-o", disk / "out", socket=tmp / "socket") as daemon:
            daemon.wait_ready()
            error = harness.wait_until(lambda: daemon.status()["disk"]["last_error_cause"], "a segment can't be created")
            for i in range(number):
                (disk / f"small{i}").unlink()
            harness.wait_until(lambda: not daemon.status()["disk"]["stuck"], "it can")
            equal(daemon.stop(), 0, daemon.err)
        equal(error, "can't create a segment: no free inodes")
        verify(harness.segments(disk / "out"))


@pytest.mark.ci
@pytest.mark.root
@pytest.mark.parametrize("is_kept", (False, True), ids=("late", "in_a_snapshot"))
def test_btrfs_shows_freed_space_late_or_never(tmp, is_kept):
    with harness.LoopDisk(tmp, "btrfs", 400 * MIB) as disk:
        equal(run("btrfs", "subvolume", "create", disk / "out").returncode, 0, "subvolume")
        out = disk / "out"
        old = copy_old(out)
        assert len(old) >= 10, old
        if is_kept:
            equal(run("btrfs", "subvolume", "snapshot", "-r", out, disk / "kept").returncode, 0, "snapshot")
        run("sync", "-f", disk)
        space = os.statvfs(disk)
        free = space.f_bavail * space.f_frsize
        short = 2 * MIB
        argv = ("--source", f"sim:rate={harness.rate(100_000)}", "-o", out, "-b", "filesize:1M", "--set",
                f"space.keep_free={free + short}", "--set", "pipeline.flush=50ms")
        with Daemon(*argv, socket=tmp / "socket") as daemon:
            daemon.wait_ready()
            harness.wait_until(lambda: daemon.status()["counts"]["written"] > harness.rate(100_000) * 5, "five seconds")
            left = [path for path in old if path.exists()]
            stuck = daemon.status()["disk"]["stuck"]
            equal(daemon.stop(), 0, daemon.err)
        assert not stuck
        deleted = len(old) - len(left)
        # What is short, what was recorded meanwhile, and one.
        assert 2 <= deleted <= 5, f"{deleted} of {len(old)} deleted; {daemon.err.decode()}"


@pytest.mark.ci
@pytest.mark.root
def test_a_restart_on_btrfs_deletes_nothing_twice(tmp):
    """The next run does not know what this one has deleted."""
    with harness.LoopDisk(tmp, "btrfs", 400 * MIB) as disk:
        out = disk / "out"
        old = copy_old(out)
        run("sync", "-f", disk)
        space = os.statvfs(disk)
        argv = ("--once", "--no-socket", "--source", "sim:rate=max,count=1000", "-o", out, "--set",
                f"space.keep_free={space.f_bavail * space.f_frsize + 2 * MIB}")
        for _ in range(4):
            equal(run(BUSCAPD, *argv).returncode, 0, "exit code")
        deleted = [path for path in old if not path.exists()]
        assert 2 <= len(deleted) <= 4, f"{len(deleted)} of {len(old)} deleted"


# ---- directories with many recordings


RECORDINGS = 300


@pytest.fixture
def many(tmp):
    """A directory with many recordings."""
    many_files.make(tmp, tmp / "out", RECORDINGS)
    return tmp / "out"


def is_listed(daemon, count=RECORDINGS):
    return (status(daemon.socket)["disk"]["ring"]["segments"] or 0) >= count


@pytest.mark.ci
def test_no_thread_that_records_lists_the_directory(tmp, many):
    harness.need("strace")
    log = tmp / "strace"
    argv = ("-D", "-f", "--seccomp-bpf", "-e", "trace=getdents64,fdatasync", "-o", log, BUSCAPD, "--source", "sim:rate=1M",
            "-o", many, "-b", "filesize:1M", "-b", "files:100000")
    with Daemon(*argv, program="strace", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        wait_until(lambda: is_listed(daemon, RECORDINGS + 3), "the directory is listed, and three segments are written")
        counts = status(daemon.socket)["counts"]
        equal(sum(counts["lost"][where] for where in ("buffer", "disk")), 0, "lost samples")
        daemon.stop()
    calls = re.findall(r"^(\d+) +(\w+)\(", log.read_text(), re.MULTILINE)
    loop = calls[0][0]  # the start syncs a number
    writers = {thread for thread, call in calls if call == "fdatasync"} - {loop}
    equal(len(writers), 1, "threads that write")
    first = calls.index((*writers, "fdatasync"))
    listers = {thread for thread, call in calls if call == "getdents64"}
    later = {thread for thread, call in calls[first:] if call == "getdents64"}
    assert not listers & writers and loop not in later, f"loop {loop}, writer {writers}, listed by {listers}, later by {later}"
    assert listers - {loop}, "only the start has listed it"


def test_the_pages_are_all_recordings_in_order(tmp, many):
    with Daemon("--source", "sim:rate=1k", "--set", "recording.record=on-demand", "-b", "files:100000", "-o", many,
                socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        wait_until(lambda: is_listed(daemon), "the directory is listed")
        found, before = [], ""
        while True:
            code, body = http(daemon.socket, f"/v1/recordings?limit=70{before}")
            equal(code, 200, body)
            page = json.loads(body)
            ids = [row["id"] for row in page["recordings"]]
            found = ids + found
            if page["omitted"] == 0:
                break
            before = f"&before={ids[0]}"
        daemon.stop()
    wanted = [many_files.recording_id(number) for number in range(RECORDINGS)]
    equal([one for one in found if one.startswith("2020")], wanted)


def test_the_newest_recording_has_the_highest_number_whatever_the_clock_says(tmp, many):
    """Its headers are too many to read before recording begins."""
    numbers = [RECORDINGS]
    for seconds in (0, -20 * 365 * 86400, -20 * 365 * 86400, 0):
        clock = MovedClock(tmp, seconds)
        before = set(segments(many))
        done = run(BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=1000", "-o", many, env=clock.env)
        equal(done.returncode, 0, done.stderr)
        (new,) = set(segments(many)) - before
        text = new.read_bytes()[19:2000]
        numbers.append(int(re.search(rb'"sequence":(\d+)', text)[1]))
    equal(numbers, sorted(set(numbers)), "sequence numbers")
