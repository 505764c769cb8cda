"""A directory with many recordings: the recording goes on while it is listed, by a thread of its own, and the newest
recording stays the newest."""

import json
import re

import harness
import many_files
import pytest
from harness import BUSCAPD, Daemon, MovedClock, equal, http, run, segments, status, wait_until

RECORDINGS = 300


@pytest.fixture
def many(tmp):
    """A directory with many recordings."""
    many_files.make(tmp, tmp / "out", RECORDINGS)
    return tmp / "out"


def is_listed(daemon, count=RECORDINGS):
    return status(daemon.socket)["disk"]["ring"]["segments"] >= count


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
