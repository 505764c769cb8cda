"""keep_raw with a USB board: whatever happens, replaying the raw capture gives the same recording."""

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, check_counts, equal, lz4_dc, segments, verify, wait_until
from usb_harness import Board, Recorder

SAMPLES = 40_000


def dump(paths):
    done = harness.run(BUSCAP, "dump", "-t", "tick", *paths)
    equal(done.returncode, 0, done.stderr.decode())
    return done.stdout


def record(tmp, board, form):
    """Records a board through an unplug, a stall, corruption and a loss. Returns the segments, the raw captures and the
    gaps by cause."""
    argv = ["--set", "output.keep_raw=yes", "-b", "filesize:100K"]
    with Recorder(tmp, board, *argv, settings=f"protocol={form}") as daemon:
        daemon.take(SAMPLES)
        board.unplug()
        wait_until(lambda: daemon.status()["state"] == "waiting", "the daemon waits")
        board.plug()
        daemon.take(SAMPLES)
        board.command("stall")
        daemon.take(SAMPLES)
        board.command("short on")
        if form == "bcp1":
            for fault in ("corrupt", "garbage 77", "lose-frames 2"):
                board.command(fault)
        board.command("lose 1000")
        daemon.take(SAMPLES)
        board.command("overflow 100")
        daemon.take_all(SAMPLES)
        daemon.end(wanted=4)
        counts = check_counts(daemon.final)
        # The board counts bytes of raw6; each of three interruptions may cut a sample in two.
        cut = board.sent()["samples"] - counts["received"]
        assert 0 <= cut <= (3 if form == "raw6" else 0), (counts, board.sent())
        equal(counts["lost"]["board"], 1000, "lost by the board")
        equal(counts["raw_dropped_bytes"], 0, "not kept")
    causes = {}
    for chunk in reference.read_segments(segments(daemon.directory)).chunks:
        for event in chunk.events:
            if event.kind == "gap":
                causes[event.cause] = causes.get(event.cause, 0) + 1
    return segments(daemon.directory), sorted(daemon.directory.glob(f"*.{form}.lz4")), causes


def check_replay(tmp, form):
    with Board(f"serial=A1,rate=400000,send=0,form={form}") as board:
        recording, raw, causes = record(tmp, board, form)
    # Nothing may have arrived after the last segment was started.
    assert len(recording) > 2 and len(recording) - len(raw) in (0, 1), (recording, raw)
    names = [path.name.replace(".byu.", f".{form}.") for path in recording]
    equal([path.name for path in raw], names[: len(raw)], "raw captures")
    verify(recording)
    verify(raw)
    again = tmp / "again"
    done = harness.run(BUSCAPD, "--once", "--source", "file:-", "-o", again,
                       data=b"".join(path.read_bytes() for path in raw))
    # The stream of bcp1 is damaged in places; raw6 has only losses, and after an overflow arbitrary bytes.
    equal(done.returncode, 3 if form == "bcp1" else 4, done.stderr.decode())
    equal(lz4_dc(segments(again)), lz4_dc(recording), "records")
    equal(dump(segments(again)), dump(recording), "records, their ticks, epochs and gaps")
    equal(causes["unplugged"], 1, f"gaps: {causes}")
    # The stall and the overflow; if the daemon is held up, it may also reset a board that seems silent.
    assert causes["transfer"] >= 2 and causes["board"] >= 1, causes


@pytest.mark.ci
def test_a_bcp1_recording_is_replayed_from_its_raw_capture(tmp):
    check_replay(tmp, "bcp1")


@pytest.mark.nightly
def test_a_raw6_recording_is_replayed_with_the_same_stamps(tmp):
    check_replay(tmp, "raw6")
