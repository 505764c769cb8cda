"""Full, failing and hanging disks, simulated by tests/support/faultfs.c: every loss must be recorded."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import time

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, NIGHTLY, Daemon, Faults, Watch, check_counts, each, equal, info, run, verify
from recovered import all_segments, check_places

pytestmark = pytest.mark.threads

MIB = 1 << 20

# The smallest buffer overflows soonest.
SMALL = ("--set", "pipeline.workers=1", "--set", "pipeline.buffer=7MiB")


def endless(rate):
    """A source that outlasts its test, but cannot fill the disk if the test hangs."""
    return f"sim:rate={rate},count={180 * rate}"


def recover(directory):
    """Starts a daemon that recovers the open files. Returns its log."""
    done = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=1", "-o", directory)
    equal(done.returncode, 0, done.stderr.decode())
    equal(list(directory.glob("*.partial")), [], done.stderr.decode())
    return done.stderr.decode()


def lost_by_cause(segments):
    """The losses in the gaps: {cause: samples}."""
    lost = {}
    for segment in info(segments):
        for cause, gaps in segment["causes"].items():
            assert not gaps["inexact_gaps"], segment
            lost[cause] = lost.get(cause, 0) + gaps["lost"]
    return lost


def check_losses_on_record(segments, dropped):
    lost = lost_by_cause(segments)
    equal({cause: lost.get(cause, 0) for cause in ("buffer", "disk")},
          {cause: dropped[cause] for cause in ("buffer", "disk")}, "losses on record")


# ---- a file system that lacks something


def test_segments_are_sealed_without_rename_flags_and_hard_links(tmp):
    out = tmp / "out"
    out.mkdir()
    # Nor can it sync a directory.
    faults = Faults(tmp, out, "renameat2:EINVAL,linkat:EPERM,fsync:EINVAL")

    def do(*argv):
        done = run(*argv, env=faults.env)
        equal(done.returncode, 0, done.stderr.decode())
        assert b"can't add the hash" not in done.stderr, done.stderr.decode()

    do(BUSCAPD, "--once", "--source", "sim:rate=max,count=300k", "-b", "filesize:200K", "--set", "pipeline.flush=10m",
       "-o", out)
    segments = harness.segments(out)
    assert len(segments) > 3, segments
    do(BUSCAP, "cut", "--records", "0-999", "-o", out / "cut-00000.byu.lz4", segments[0])
    # As a killed daemon would leave it.
    torn = segments[-1].rename(out / f"{segments[-1].name}.partial")
    do(BUSCAP, "recover", torn, "-o", out / "copy.byu.lz4")
    do(BUSCAPD, "--once", "--source", "sim:rate=max,count=1", "-o", out)
    equal(list(out.glob("*.partial")), [], "left open")
    verify([*segments, out / "cut-00000.byu.lz4", out / "copy.byu.lz4"])
    equal({call[2] for call in faults.calls() if call[0] == "linkat"}, {"EPERM"}, "hard links")


# ---- live sources


def has_failed(faults):
    return any(call[2] != "ok" for call in faults.calls())


RATE = harness.rate(500_000)


# Status requests during the failure, which must be answered.
FEW = 4


def lost(status):
    """Samples dropped because of buffer or disk."""
    return status["counts"]["dropped"]["buffer"] + status["counts"]["dropped"]["disk"]


def wait_written(daemon, more=1):
    """Waits until this many more records are written."""
    start = daemon.status()["counts"]["written"]
    harness.wait_until(lambda: daemon.status()["counts"]["written"] >= start + more, f"{more} more are written")


def check_end(directory, daemon, watch, code):
    """Checks that a stopped --once recording has a gap for each loss at its position. Returns the dropped samples."""
    assert watch.samples >= FEW, watch.samples
    status = json.loads(daemon.out)
    counts = check_counts(status)
    equal(counts["in_flight"], 0, "in flight")
    dropped = counts["dropped"]
    if list(directory.glob("*.partial")):
        equal(code, 1, daemon.err.decode())
        recover(directory)
    else:
        equal(code, 4 if dropped["buffer"] + dropped["disk"] else 0, daemon.err.decode())
    segments = all_segments(directory, status["recording"]["id"])
    verify(segments)
    equal(sum(segment["records"] for segment in info(segments)), counts["written"], "records in the segments")
    check_losses_on_record(segments, dropped)
    equal(check_places(segments), counts["received"] - dropped["invalid"], "records and losses on record")
    return dropped


def live_failure(directory, rules):
    out = directory / "out"
    out.mkdir()
    faults = Faults(directory, out)
    argv = ("--once", "--source", endless(RATE), "-o", out, "-b", "filesize:2M", *SMALL)
    has_losses = rules.startswith("pwrite") and "short" not in rules
    with Daemon(*argv, socket=directory / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        with Watch(daemon.socket) as watch:
            wait_written(daemon)
            faults.set(rules)
            harness.wait_until(lambda: has_failed(faults) and ("short" in rules or watch.last["disk"]["last_error"]),
                               f"{rules}: something fails")
            if has_losses:
                harness.wait_until(lambda: watch.last["counts"]["dropped"]["disk"] > RATE // 10, "samples are lost")
            time.sleep(0.9)
            watch.wait_samples(FEW)
            faults.set("")
            wait_written(daemon, RATE // 2)
            watch.finish()
        code = daemon.stop()
    dropped = check_end(out, daemon, watch, code)
    if has_losses:
        assert dropped["disk"] > RATE // 10, f"{dropped}; {daemon.err.decode()}"


def test_losses_of_a_live_source_are_exact_and_on_record(tmp):
    jobs = [("pwrite:ENOSPC",), ("pwrite:EIO",), ("pwrite:short",), ("fdatasync:EIO",), ("fdatasync:ENOSPC",),
            ("openat:ENOSPC",), ("openat:EIO",), ("renameat2:EIO",), ("renameat2:ENOSPC",),
            ("pwrite:EIO,ftruncate:EIO",), ("fdatasync:EIO,renameat2:EIO",)]
    each(live_failure, harness.some(jobs, len(jobs)), workers=4)  # torture-disk has the others


def fullest(daemon):
    """Returns the most chunks in use in any second."""
    _, history = harness.http(daemon.socket, "/v1/history")
    return max(filter(None, json.loads(history)["seconds"]["used_chunks"]), default=0)


def test_a_blocked_writer_costs_what_exceeds_the_buffer(tmp):
    seconds = 3 if NIGHTLY else 1
    rate = harness.rate(700_000)
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out)
    argv = ("--once", "--source", endless(rate), "-o", out, "-b", "filesize:4M", *SMALL)
    with Daemon(*argv, socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        with Watch(daemon.socket) as watch:
            wait_written(daemon)
            start = time.monotonic()
            faults.set("pwrite:hold")
            harness.wait_until(lambda: watch.last["buffer"]["free_chunks"] == 0, "the buffer is full")
            before = daemon.status()
            harness.wait_until(lambda: lost(watch.last) > rate * seconds, "losses")
            # Requests are answered as before.
            watch.wait_samples(10 * seconds)
            harness.wait_until(lambda: fullest(daemon) == before["buffer"]["chunks"], "a second of the history with a full buffer")
            held = daemon.status()
            equal(held["buffer"]["time_left_seconds"], 0)
            # Encoded chunks wait in less memory than their records have. A slow source's are not full.
            assert held["counts"]["in_flight"] * 12 > 1.2 * 7 * MIB, held["counts"]
            took = time.monotonic() - start
            faults.set("")
            after = harness.wait_until(lambda: (s := daemon.status())["buffer"]["free_chunks"] > 0 and s, "a free chunk")
            wait_written(daemon, rate // 2)
            watch.finish()
        peak = 1024 * harness.memory_kib(daemon.process.pid)
        code = daemon.stop()
    check_end(out, daemon, watch, code)
    named = r"samples lost: .* \(buffer full\) .*; the writer: writing to \S+ since 20\S+Z; the recording continues"
    assert re.search(named, daemon.err.decode()), daemon.err.decode()
    # The samples received while the buffer was full.
    least, most = (status["counts"]["received"] - before["counts"]["received"] for status in (held, after))
    harness.note(f"writer held for {took:.0f} s at {rate / 1e6:.1f} M samples/s, buffer 7 MiB: {lost(after)} samples "
                 f"lost, peak {peak / MIB:.0f} MiB, slowest status {watch.slowest * 1000:.0f} ms")
    # What the buffer and the encoder can still have taken.
    assert least - 7 * MIB // 12 < lost(after) - lost(before) <= most, (least, most, lost(after))
    assert peak <= (7 + 32) * MIB or harness.is_sanitized(), f"{peak / MIB:.1f} MiB"


@pytest.mark.root
@pytest.mark.parametrize("call", ["fdatasync", "fsync", "renameat2", "unlinkat"])
def test_a_disk_that_is_slow_at_all_but_writing_costs_nothing(tmp, call):
    rate = harness.rate(100_000)
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out)
    argv = ("--source", endless(rate), "-o", out, "-b", "filesize:100K", "-b", "files:3", *SMALL)
    with Daemon(*argv, socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        wait_written(daemon)
        faults.set(f"{call}:hold")
        harness.wait_until(lambda: any(done == "hold" for _, _, done, _ in faults.calls()), f"a {call} that takes long")
        wait_written(daemon, rate // 4)  # and what was done before it is published
        before = daemon.status()["counts"]
        wait_written(daemon, rate // 2)
        during = daemon.status()
        faults.set("")
        harness.wait_until(lambda: daemon.status()["counts"]["durable"] >= during["counts"]["written"], "it is durable")
        code = daemon.stop()
    equal(code, 0, daemon.err)
    equal(during["counts"]["durable"], before["durable"])
    # Held for 5 s, the call is reported, but the writer is never stuck.
    assert not during["disk"]["stuck"] or during["disk"]["last_error"].startswith("the sealer: "), during["disk"]
    equal(sum(during["counts"]["lost"].values()), 0, daemon.err)
    assert len(harness.segments(out)) <= 3
    verify(all_segments(out))


def test_a_full_disk_is_logged_once_and_recording_resumes(tmp):
    rate = harness.rate(500_000)
    with harness.SmallDisk(tmp, "12M") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(10 * MIB))
        out = disk / "out"
        argv = ("--once", "--source", endless(rate), "-o", out, "-b", "filesize:2M", *SMALL)
        with Daemon(*argv, socket=tmp / "socket") as daemon:
            daemon.wait_ready()
            with Watch(daemon.socket) as watch:
                full = harness.wait_until(lambda: watch.last and watch.last["disk"]["last_error"] and watch.last,
                                          "the disk is full")
                assert "No space left on device" in full["disk"]["last_error"], full["disk"]
                time.sleep(1.5)
                during = harness.wait_until(
                    lambda: (now := watch.last)["counts"]["dropped"]["disk"] > rate // 2 and now, "samples are lost")
                equal(during["state"], "recording", "state")
                equal(during["counts"]["written"], full["counts"]["written"], "written while full")
                ballast.unlink()
                wait_written(daemon, rate)
                watch.finish()
            code = daemon.stop()
        err = daemon.err.decode()
        equal(err.count("No space left"), 1, err)
        equal(err.count("writing again"), 1, err)
        dropped = check_end(out, daemon, watch, code)
        assert dropped["disk"] > rate // 2, dropped


def signal_twice(daemon):
    """Sends two stop signals in a row, like timeout(1). The daemon is suspended meanwhile, so that it finds both at once."""
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status")
    daemon.process.send_signal(signal.SIGSTOP)
    harness.wait_until(lambda: re.search(r"^State:\s+T", status.read_text(), re.M), "it is suspended")
    daemon.process.send_signal(signal.SIGTERM)
    daemon.process.send_signal(signal.SIGINT)
    daemon.process.send_signal(signal.SIGCONT)


@pytest.mark.root
def test_a_stop_while_the_disk_is_full(tmp):
    with harness.SmallDisk(tmp, "4M") as disk:
        with Daemon("--once", "--source", endless(RATE), "-o", disk / "out", socket=tmp / "socket") as daemon:
            daemon.wait_ready()
            harness.wait_until(lambda: daemon.status()["disk"]["last_error"], "the disk is full")
            signal_twice(daemon)
            harness.wait_until(lambda: daemon.status()["state"] == "draining", "the state draining")
            check_counts(daemon.status())
            daemon.wait_uptime(1)
            equal(daemon.status()["state"], "draining", "after a repeated signal")
            code = daemon.stop(signal.SIGTERM)
        err = daemon.err.decode()
        equal(code, 1, err)
        equal(err.count("second stop signal"), 1, err)
        assert "giving up" in err, err
        # Abandoned samples are counted, although they are in no file.
        counts = check_counts(json.loads(daemon.out))
        equal(counts["in_flight"], 0, "in flight")
        assert counts["dropped"]["disk"] > 0, counts
        segments = all_segments(disk / "out")
        equal(harness.compare_with_sim(segments), counts["written"], "records in the files")


def hang(directory, signals):
    out = directory / "out"
    out.mkdir()
    faults = Faults(directory, out)
    with Daemon("--source", endless(100_000), "-o", out, socket=directory / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        wait_written(daemon)
        faults.set("pwrite:hold")
        time.sleep(0.3)
        daemon.process.send_signal(signal.SIGTERM)
        harness.wait_until(lambda: daemon.status()["state"] == "draining", "the state draining")
        if signals == 2:
            daemon.wait_uptime(1)  # an earlier signal counts as a repetition of the first
        start = time.monotonic()

        def has_ended():
            if signals == 2:
                daemon.process.send_signal(signal.SIGINT)  # all but the first change nothing
            return daemon.process.poll() is not None

        harness.wait_until(has_ended, "the end")
        code = daemon.wait()
    took = time.monotonic() - start
    harness.note(f"stopped with {signals} signals, the writer hanging: ended after {took:.1f} s")
    equal(code, 1, daemon.err.decode())
    equal(daemon.err.count(b"second stop signal"), signals - 1, daemon.err)
    assert not (directory / "socket").exists()
    recover(out)
    assert harness.compare_with_sim(harness.segments(out)[:1]) > 0


def slow_end(directory):
    """A slow disk that eventually writes the buffer."""
    out = directory / "out"
    out.mkdir()
    faults = Faults(directory, out)
    with Daemon("--source", endless(1_500_000), "-o", out, socket=directory / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        faults.set("pwrite:hold")  # until the buffer is full, however slow the source is
        harness.wait_until(lambda: daemon.status()["counts"]["dropped"]["buffer"], "the buffer is full")
        faults.set("pwrite:slow")
        start = time.monotonic()
        code = daemon.stop()
    assert time.monotonic() - start > 12, "the disk was too fast for this test"
    equal(code, 4, daemon.err.decode())
    verify(all_segments(out))


def test_a_stop_ends_if_a_write_hangs(tmp):
    each(hang, [(2,), (1,)] if NIGHTLY else [(2,)])


def idle_hang(directory, is_asked):
    """Without a recording, the writer hangs asking for the free space; with is_asked, a client's request too, and the
    thread that lists the directory."""
    out = directory / "out"
    out.mkdir()
    faults = Faults(directory, out)
    argv = ("--source", "sim:rate=1k", "--set", "recording.record=on-demand", "-o", out)
    with Daemon(*argv, socket=directory / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        harness.wait_until((out / ".buscapd.reserve").exists, "the reserve")
        faults.set("openat:hold,fstatvfs:hold" if is_asked else "fstatvfs:hold")
        harness.wait_until(lambda: any(done == "hold" and call == "fstatvfs" for call, _, done, _ in faults.calls()),
                           "a thread hangs")
        if is_asked:
            client = socket.socket(socket.AF_UNIX)
            client.connect(str(directory / "socket"))
            client.sendall(b"GET /v1/recordings HTTP/1.0\r\n\r\n")
            time.sleep(0.3)
        code = daemon.stop(signal.SIGINT)
        if is_asked:
            client.close()
    err = daemon.err.decode()
    equal(code, 1, err)
    assert "the disk does not respond; exiting" in err, err
    assert not (directory / "socket").exists()


def test_a_stop_ends_if_the_disk_hangs_while_idle(tmp):
    each(idle_hang, [(False,), (True,)])


def test_a_stop_ends_if_its_last_call_hangs(tmp):
    """The writer is idle until the stop. Then it removes the reserve, and hangs."""
    faults = Faults(tmp, tmp / "out")
    argv = ("--source", "sim:rate=1k", "--set", "recording.record=on-demand", "-o", tmp / "out")
    with Daemon(*argv, socket=tmp / "socket", env={**faults.env, "FAULTFS_ENDING": ".reserve"}) as daemon:
        daemon.wait_ready()
        harness.wait_until((tmp / "out/.buscapd.reserve").exists, "the reserve")
        faults.set("unlinkat:hold")
        code = daemon.stop()
    err = daemon.err.decode()
    equal(code, 1, err)
    assert "the disk does not respond; exiting" in err, err


def test_a_signal_after_giving_up_does_not_start_another_wait(tmp):
    """Takes the ten seconds until it gives up."""
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out, "pwrite:hold")
    argv = ("--once", "--source", endless(harness.rate(200_000)), "-o", out, "-a", "duration:1")
    with Daemon(*argv, socket=tmp / "socket", env={**faults.env, "FAULTFS_ENDING": ".partial"}) as daemon:
        harness.wait_until(lambda: "giving up the buffer" in daemon.log_so_far(), "it gives up")
        code = daemon.stop()
    err = daemon.err.decode()
    equal(code, 1, err)
    equal(err.count("giving up the buffer"), 1, err)
    equal(len(re.findall(r"the disk accepts nothing: waiting up to 8 s to write [\d,]+ samples; a second signal ", err)), 1, err)


def seal_slowly(directory, call, *more):
    """All is written when the stop begins. Sealing takes longer than the ten seconds that a disk gets which accepts
    nothing."""
    out = directory / "out"
    out.mkdir()
    faults = Faults(directory, out)
    with Daemon("--source", endless(100_000), "-o", out, *more, socket=directory / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        wait_written(daemon)
        faults.set(f"{call}:hold")
        daemon.process.send_signal(signal.SIGTERM)
        harness.wait_until(lambda: any(done == "hold" for _, _, done, _ in faults.calls()), f"a {call} that takes long")
        if more:
            equal(daemon.wait(), 1, daemon.err)
            assert b"the disk has sealed nothing for 10 s; leaving the last files open" in daemon.err, daemon.err
            assert b"accepted nothing" not in daemon.err and b"could not be written" not in daemon.err, daemon.err
            recover(out)
        else:
            daemon.wait_uptime(12)
            faults.set("")
            equal(daemon.wait(), 0, daemon.err)
            assert b"nothing" not in daemon.err, daemon.err
    verify(harness.segments(out))


def sync_slowly(directory):
    """The writer waits for the sealer when the stop begins."""
    out = directory / "out"
    out.mkdir()
    faults = Faults(directory, out)
    # With a slow build, it takes a minute until the writer waits.
    argv = ("--source", endless(RATE), "-o", out, "-b", "filesize:2M", "--set", "pipeline.stuck=10min", *SMALL)
    with Daemon(*argv, socket=directory / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        faults.set("fdatasync:hold")
        harness.wait_until(lambda: "not synced" in str(daemon.status()["disk"]["last_error"]), "the writer waits")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_uptime(12)
        faults.set("")
        assert daemon.wait() in (0, 4), daemon.err
    assert b"giving up" not in daemon.err, daemon.err
    verify(harness.segments(out))


def test_a_stop_waits_for_sealing_that_is_slow_but_not_for_sealing_that_hangs(tmp):
    hanging = ("fdatasync", "--set", "pipeline.stuck=1s")
    each(lambda directory, job, *more: job(directory, *more),
         [(seal_slowly, "fdatasync"), (seal_slowly, "renameat2"), (seal_slowly, *hanging), (sync_slowly,)], workers=4)


@pytest.mark.nightly
def test_a_stop_waits_for_a_slow_disk(tmp):
    slow_end(tmp)


def test_a_new_directory_is_durable(tmp):
    parent = tmp / "parent"
    parent.mkdir()
    faults = Faults(tmp, parent)
    for _ in range(2):  # the second run finds it there
        done = run(BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=1", "-o", parent / "out",
                   env={**os.environ, **faults.env})
        equal(done.returncode, 0, done.stderr.decode())
        equal([done for kind, _, done, name in faults.calls() if (kind, name) == ("fsync", "parent")], ["ok"])


# ---- interference by other processes


def remove(directory):
    """Deletes a directory in which a daemon may create files."""
    while directory.exists():
        shutil.rmtree(directory, ignore_errors=True)


def test_a_deleted_directory_ends_a_once_recording(tmp):
    out = tmp / "out"
    with Daemon("--once", "--source", endless(1_000_000), "-o", out, socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        wait_written(daemon)
        remove(out)
        code = daemon.wait()
    err = daemon.err.decode()
    equal(code, 1, err)
    check_counts(json.loads(daemon.out))
    errors = [line for line in err.splitlines() if "No such file or directory" in line]
    equal(len(errors), 1, f"error lines; {err}")
    assert str(out) in errors[0], err


def test_a_service_continues_when_its_directory_is_created_again(tmp):
    out = tmp / "out"
    rate = harness.rate(1_000_000)
    with Daemon("--source", endless(rate), "-o", out, *SMALL, socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        with Watch(daemon.socket) as watch:
            wait_written(daemon)
            remove(out)
            harness.wait_until(lambda: "No such file" in (watch.last["disk"]["last_error"] or ""), "the error is reported")
            harness.wait_until(lambda: watch.last["counts"]["dropped"]["disk"] > 100_000, "the buffer is full")
            equal(watch.last["state"], "recording", "state")
            out.mkdir()
            wait_written(daemon, rate)
            watch.finish()
        daemon.stop()
    segments = harness.segments(out)
    assert segments
    verify(segments)
    # More may have been lost after the last status.
    reported = int(re.search(r": samples lost: .*?([\d,]+) \(disk stuck\).*; \d+ gaps? recorded", daemon.err.decode())[1].replace(",", ""))
    assert reported >= watch.last["counts"]["dropped"]["disk"] > 100_000, reported
    equal(lost_by_cause(segments).get("disk"), reported, "losses on record")


@pytest.mark.parametrize("is_stopped", (False, True))
def test_a_deleted_open_segment_is_counted(tmp, is_stopped):
    """With is_stopped, the daemon seals the segment before it notices."""
    out = tmp / "out"
    rate = harness.rate(500_000)
    argv = ("--once", "--source", endless(rate), "-o", out, "--set", "pipeline.buffer=128MiB")
    with Daemon(*argv, socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        wait_written(daemon)
        opened = harness.wait_until(lambda: list(out.glob("*.partial")), "a segment is open")[0]
        with Watch(daemon.socket) as watch:
            opened.unlink()
            if not is_stopped:
                harness.wait_until(lambda: watch.last and watch.last["counts"]["deleted_records"], "it is noticed")
                wait_written(daemon, rate)
            watch.finish()  # `written` never falls
        code = daemon.stop()
    err = daemon.err.decode()
    equal(code, 4, err)
    named = re.findall(r"([^/\s]+): deleted while open: ([\d,]+) records lost", err)
    counts = check_counts(json.loads(daemon.out))
    equal(named, [(opened.stem, f"{counts['deleted_records']:,}")], err)
    segments = harness.segments(out)
    verify(segments)
    equal(counts["written"], counts["deleted_records"] + sum(one["records"] for one in info(segments)), "written")
    if not is_stopped:
        assert harness.compare_with_sim(segments, counts["deleted_records"]) > 0, "nothing follows"


# ---- losses at the end of a recording


def loss_at_end(directory, rules, from_start, is_deleted=False):
    """The disk accepts nothing, but for what fits in the reserve, until the daemon is stopped. With is_deleted, the open
    segment is deleted just before."""
    out = directory / "out"
    out.mkdir()
    faults = Faults(directory, out)
    reserve = out / ".buscapd.reserve"
    if from_start:
        faults.set(rules)
    rotation = "filesize:1G" if is_deleted else "filesize:2M"
    with Daemon("--once", "--source", endless(RATE), "-o", out, "-b", rotation, *SMALL,
                socket=directory / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        harness.wait_until(reserve.exists, "the reserve exists")
        if not from_start:
            wait_written(daemon)
            faults.set(rules)
        harness.wait_until(lambda: daemon.status()["counts"]["dropped"]["disk"] > RATE // 10, "samples are lost")
        daemon.process.send_signal(signal.SIGTERM)
        harness.wait_until(lambda: daemon.status()["state"] == "draining", "the state draining")
        # A second signal gives up, if it is not taken for a repetition of the first.
        time.sleep(1.2)
        if is_deleted:
            (opened,) = out.glob("*.partial")
            opened.unlink()
        code = daemon.stop()
    err = daemon.err.decode()
    counts = check_counts(json.loads(daemon.out))
    if harness.BUILD.name == "thread" and "the disk does not respond; exiting" in err:
        # A thread has finished no call for three seconds, which may happen here. What was given up meanwhile is in flight.
        equal(code, 1, err)
        return
    assert not reserve.exists()
    segments = all_segments(out)
    equal(sum(one["records"] for one in info(segments)) if segments else 0, counts["written"] - counts["deleted_records"],
          "records in the files")
    if "@" not in rules:
        assert "no file reports the loss" in err, err
        return
    equal(code, 1, err)  # the buffer was given up
    verify(segments)
    check_losses_on_record(segments, counts["dropped"])
    (named,) = re.findall(r"([^/\s]+): ends with a gap", err)
    equal(named, segments[-1].name, "the log names the file")
    if is_deleted:
        assert counts["deleted_records"] > 0, counts
        return
    equal(check_places(segments), counts["received"] - counts["dropped"]["invalid"], "records and losses on record")
    for path in segments:
        reference.read_segment(path)
    if from_start:
        equal((counts["written"], len(segments)), (0, 1), "written")


def test_a_loss_at_the_end_is_on_record(tmp):
    full = "@.buscapd.reserve"
    jobs = [(f"openat:ENOSPC{full}", False), (f"pwrite:ENOSPC{full}", False), (f"openat:ENOSPC{full}", True),
            (f"pwrite:ENOSPC{full}", False, True), ("openat:ENOSPC,pwrite:ENOSPC", False)]
    each(loss_at_end, harness.some(jobs, 3), workers=5)


def set_lost(path, number, lost):
    """Returns the segment without its index, with `lost` more samples lost (disk) by the counts of later chunks."""
    chunks = reference.read_segment(path).chunks
    return reference.forged(path, [(n, "<Q", 160 + 8 * 2, chunks[n].info["lost"][2] + lost) for n in range(number, len(chunks))])


def test_a_loss_without_a_gap_is_found(tmp):
    out = tmp / "out"
    done = run(BUSCAPD, "--once", "--source", "sim:rate=max,count=200000", "-o", out, "--set", "pipeline.flush=10m")
    equal(done.returncode, 0, done.stderr.decode())
    (path,) = harness.segments(out)
    torn = tmp / "torn.byu.lz4"
    torn.write_bytes(set_lost(path, 1, 1000))
    done = run(harness.BUSCAP, "verify", torn)
    equal(done.returncode, 3, done.stdout.decode())
    assert b"a loss of 1000 samples that no gap reports" in done.stdout, done.stdout
    equal(done.stdout.count(b"no gap"), 1, done.stdout)
    (segment,) = info([torn])
    equal((segment["gaps"], segment["unreported"]), (0, 1000), segment)
    done = run(harness.BUSCAP, "dump", torn)
    equal((done.returncode, done.stderr.count(b"1,000 samples were lost before chunk 1, but no gap")), (3, 1), done.stderr)
    equal(done.stdout.count(b"# gap: at least 1,000 samples lost (disk)"), 1)
    done = run(harness.BUSCAP, "convert", "-O", "csv", "-o", tmp / "all.csv", torn)
    equal((done.returncode, done.stderr.count(b"1,000 samples were lost before chunk 1")), (3, 1), done.stderr)

    # So do a replay and recovery, which make it a gap.
    done = run(BUSCAPD, "--once", "--source", f"file:{torn}", "-o", tmp / "replay")
    equal(done.returncode, 3, done.stderr.decode())
    assert b"1,000 samples lost before record 87381, but no gap" in done.stderr, done.stderr
    equal(info(harness.segments(tmp / "replay"))[0]["causes"]["disk"]["lost"], 1000, "lost in the replay")
    whole = tmp / "whole.byu.lz4"
    run(harness.BUSCAP, "recover", torn, "-o", whole)
    verify([whole])
    (segment,) = info([whole])
    equal(segment["causes"], {"disk": {"gaps": 1, "lost": 1000, "inexact_gaps": 1}}, "gaps")
    equal(segment["unreported"], 0, "unreported")


def test_a_renamed_directory_is_reported(tmp):
    """The recording continues in it, and the log and the status name the new place."""
    out, moved = tmp / "out", tmp / "moved"
    rate = harness.rate(500_000)
    with Daemon("--source", endless(rate), "-o", out, socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        wait_written(daemon)
        out.rename(moved)
        harness.wait_until(lambda: daemon.status()["disk"]["last_error"] == f"{out}: was renamed: {moved}", "it is reported")
        wait_written(daemon, rate)
        moved.rename(out)
        harness.wait_until(lambda: ": has its name again" in daemon.log_so_far(), "its return is reported")
        equal(daemon.stop(), 0, daemon.err.decode())
    err = daemon.err.decode()
    wanted = f"{out}: was renamed: {moved}; recordings continue there; rename it back, or restart buscapd"
    equal(err.count(wanted), 1, err)
    segments = harness.segments(out)
    verify(segments)
    harness.compare_with_sim(segments)


@pytest.mark.root
@pytest.mark.parametrize("where", ["out", "."], ids=["the directory", "the one above"])
def test_a_directory_below_a_mount_is_reported_as_hidden(tmp, where):
    """Its name has not changed, but stands for something else now."""
    above = tmp / "above"
    out = above / "out"
    above.mkdir()
    with Daemon("--source", endless(100_000), "-o", out, socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        wait_written(daemon)
        done = run("mount", "-t", "tmpfs", "tmpfs", above / where)
        if done.returncode != 0:
            pytest.skip(f"a tmpfs can't be mounted: {done.stderr.decode().strip()}")
        try:
            hidden = f"{out}: is hidden: something is mounted over it"
            harness.wait_until(lambda: daemon.status()["disk"]["last_error"] == hidden, "it is reported")
            wait_written(daemon, 100_000)
        finally:
            run("umount", above / where)
        harness.wait_until(lambda: ": has its name again" in daemon.log_so_far(), "its return is reported")
        equal(daemon.stop(), 0, daemon.err.decode())
    wanted = f"{hidden}; recordings continue in the hidden directory; unmount that, or restart buscapd"
    equal(daemon.err.decode().count(wanted), 1, daemon.err)
    segments = harness.segments(out)
    verify(segments)
    harness.compare_with_sim(segments)
