"""USB faults as the user of buscapd sees them: count, gap, message, recovery."""

import os
import random

import pytest

import harness
import reference
from harness import BUSCAPD, equal, run, segments, some
from usb_harness import Board, Recorder

pytestmark = pytest.mark.threads

RATE = harness.rate(200_000)
BOARD = f"serial=A1,rate={RATE},send=0"
WORKERS = 3


def events(recorded, kind="gap"):
    return [event for chunk in recorded.chunks for event in chunk.events if event.kind == kind]


# Causes of gaps for an incomplete frame.
TORN = {"crc", "sequence"}

# The board's commands; the count in the status, and its value; the gaps that must follow, and those that may; words of
# a log line; the exit code.
FAULTS = {
    "stall": (["stall"], "stalls", 1, {"transfer": 1}, TORN, ["endpoint stalled"], 4),
    "repeated stalls": (["stall"] * 3, "stalls", 3, {"transfer": 3}, TORN, ["endpoint stalled"], 4),
    "overflow": (["overflow 1000"], "overflows", 1, {"transfer": 1}, TORN, ["overflow", "lost"], 4),
    "overflow of a packet": (["overflow 1"], "overflows", 1, {"transfer": 1}, TORN, ["overflow"], 4),
    "protocol error": (["protocol-error"], "errors", 1, {"transfer": 1}, TORN, ["transfer failed"], 4),
    "loss": (["lose 123"], "board", 123, {"board": 1}, {}, ["123 (board overflow)"], 4),
    "frames missing": (["lose-frames 2"], None, 0, {"sequence": 1}, {}, ["expected frame"], 4),
    "damage": (["corrupt"], "damaged_places", 1, {}, TORN, ["damaged places: 1"], 4),
    "garbage": (["garbage 500"], "skipped_bytes", 500, {}, {}, ["500 bytes skipped (no valid frame)"], 4),
    "short packets": (["short on"], None, 0, {}, {}, ["streaming"], 0),
    "triggers": (["trigger"], None, 0, {}, {}, ["streaming"], 0),
}


@pytest.mark.ci
def test_a_fault_is_counted_logged_and_recorded_and_the_recording_continues():
    def one(tmp, name):
        commands, counted, number, gaps, may, words, code = FAULTS[name]
        with Board(BOARD) as board:
            with Recorder(tmp, board) as daemon:
                daemon.take(1000)
                for command in commands:
                    board.command(command)
                daemon.take(5000)
                if counted is not None:
                    daemon.wait_for(lambda s: {**s["counts"], **s["counts"]["lost"], **s["source"]["board"]}[counted] == number, counted)
                status = daemon.take_all(5000)
                equal((status["state"], status["source"]["board"]["restarts"]), ("recording", 0), "afterwards")
                daemon.end(wanted=code)
            # A frame that continues after a failed transfer is not reassembled.
            recorded = daemon.check(board, given_up=2048 * gaps.get("transfer", 0))
        assert daemon.logged(*words), f"{words}: {daemon.log}"
        causes = [gap.cause for gap in events(recorded)]
        for cause, wanted in gaps.items():
            equal(causes.count(cause), wanted, f"gaps; {causes}\n{daemon.log}")
        assert set(causes) <= {*gaps, *may}, f"{causes}\n{daemon.log}"
        for gap in events(recorded):
            is_exact = name == "loss" or gap.cause == "crc"
            equal((gap.exact, gap.value), (is_exact, 123 if name == "loss" else gap.value), "the gap's number")
            assert gap.cause != "transfer" or gap.duration_ns > 0, gap
        equal(len(recorded.triggers), int(name == "triggers"), "triggers")
        equal(len(recorded.epochs), 1, "epochs")

    harness.each(one, [(name,) for name in some(FAULTS, 4)], workers=WORKERS)


@pytest.mark.ci
def test_persistent_faults_reset_the_board(tmp):
    with Board(BOARD) as board:
        with Recorder(tmp, board) as daemon:
            daemon.take(1000)
            # No data is in or between the faults, however slow the daemon or this test is.
            board.command("freeze")
            for _ in range(12):
                board.command("protocol-error")
            daemon.wait_for(lambda s: s["source"]["board"]["restarts"], "the board is reset")
            board.command("thaw")
            daemon.take_all(5000)
            at = daemon.board
            # Faults of transfers that are already being cancelled, for the reset, are not counted.
            assert 8 <= at["errors"] <= 12 and at["unplugs"] == 0, at
            daemon.end(wanted=4)
        recorded = daemon.check(board, given_up=2048 * 12)
    assert {"transfer"} <= {gap.cause for gap in events(recorded)} <= {"transfer", *TORN}, events(recorded)
    assert daemon.logged("resetting"), daemon.log
    # Twelve faults are logged once, or a few times on a slow machine.
    assert daemon.log.count("transfer failed") < 5, daemon.log


def replug(daemon, board, **options):
    """Replugs the board and waits until it streams: what arrives then belongs to this plug."""
    plugs = daemon.board["plugs"]
    board.unplug(**options)
    board.plug()
    daemon.wait_for(lambda s: s["source"]["board"]["plugs"] > plugs, "the board is plugged in")


@pytest.mark.nightly
def test_a_storm_of_faults_is_accounted_for_to_the_sample(tmp):
    dice = random.Random(3)
    kinds = ["stall", "overflow 700", "protocol-error", "lose 9", "lose-frames 1", "corrupt", "garbage 77",
             "short on", "short off", "frame 100", "frame 2048", "unplug"]
    with Board(BOARD) as board:
        with Recorder(tmp, board, settings="transfer_timeout=20ms,transfer_size=16K") as daemon:
            board.discard_data(1024)
            for _ in range(100):
                daemon.take(dice.choice((1, 1000, 10_000)))
                kind = dice.choice(kinds)
                if kind == "unplug":
                    replug(daemon, board)
                else:
                    board.command(kind)
            status = daemon.take_all(20_000)
            daemon.end(wanted=4)
        at = status["source"]["board"]
        faults = sum(at[name] for name in ("stalls", "overflows", "errors", "unplugs"))
        # After a failed transfer bytes may be missing, so a frame that continues there is not reassembled.
        recorded = daemon.check(board, given_up=2048 * faults)
        equal((status["state"], len(recorded.epochs), at["unplugs"] > 0), ("recording", at["plugs"], True), f"{at}")


@pytest.mark.ci
def test_data_in_flight_at_an_unplug_precedes_the_gap(tmp):
    dice = random.Random(3)
    unplugs = 60 if harness.NIGHTLY else 12
    with Board(BOARD) as board:
        board.discard_data(1024)
        with Recorder(tmp, board, settings="transfer_size=16K") as daemon:
            for i in range(unplugs):
                daemon.take(dice.choice((1, 1000, 5000)))
                replug(daemon, board, event_first=i % 4 != 0)
            daemon.take_all(5000)
            daemon.end(wanted=4)
        recorded = daemon.check(board)
        at = daemon.final["source"]["board"]
        # A daemon that is held up may also reset a board that seems silent.
        causes = [gap.cause for gap in events(recorded) if gap.cause != "transfer"]
        assert at["plugs"] == unplugs + 1 <= len(recorded.epochs) <= unplugs + 1 + at["restarts"], f"epochs; {at}"
        equal((causes.count("unplugged"), set(causes) <= {"unplugged", "crc"}), (unplugs, True), f"gaps; {causes}")


# ---- timeouts, silence


@pytest.mark.nightly
def test_a_transfer_that_hangs_is_cancelled_at_its_timeout(tmp):
    with Board(BOARD) as board:
        with Recorder(tmp, board, settings="transfer_timeout=50ms") as daemon:
            daemon.take(1000)
            board.command("timeout 1000")
            daemon.wait_for(lambda s: s["source"]["board"]["timeouts"], "a timeout")
            daemon.take_all(5000)
            daemon.end(wanted=0)
        daemon.check(board, gaps={})


@pytest.mark.nightly
def test_data_of_a_timed_out_transfer_is_recorded(tmp):
    with Board(BOARD) as board:
        board.discard_data(1024)
        with Recorder(tmp, board, settings="transfer_timeout=3ms") as daemon:
            daemon.take_all(100_000)
            daemon.wait_for(lambda s: s["source"]["board"]["timeouts"] > 100, "timeouts")
            daemon.take_all(5000)
            daemon.end(wanted=0)
        daemon.check(board, gaps={})


@pytest.mark.nightly
def test_a_board_on_an_idle_bus_that_sends_heartbeats_is_not_silent(tmp):
    with Board(BOARD, plugged=False) as board:
        board.command("heartbeat 50")
        board.plug()
        with Recorder(tmp, board, settings="silence=8s") as daemon:
            daemon.wait_streaming()
            daemon.wait_uptime(10)
            equal((daemon.board["silences"], daemon.counts["received"]), (0, 0), "silences, samples")
            daemon.end(wanted=0)
        daemon.check(board, gaps={})


# ---- losses of the board


@pytest.mark.nightly
def test_a_loss_too_large_for_a_header_is_in_the_counters(tmp):
    with Board(BOARD) as board:
        with Recorder(tmp, board) as daemon:
            daemon.take_all()
            board.command("lose 10000000000")
            daemon.wait_for(lambda s: s["counts"]["lost"]["board"] >= 0xFFFFFFFF, "at least 2^32 - 1 lost samples")
            daemon.take_all()
            daemon.end(wanted=4)
        equal(daemon.final["counts"]["lost"]["board"], 10_000_000_000, daemon.log)
        equal(daemon.final["source"]["board"]["counters"]["lost_samples"], 10_000_000_000, "GET_COUNTERS")


@pytest.mark.nightly
def test_a_loss_that_no_frame_reported_is_recorded_at_the_end(tmp):
    with Board(BOARD) as board:
        with Recorder(tmp, board) as daemon:
            daemon.take_all()
            board.command("lose 5")
            daemon.wait_for(lambda s: s["counts"]["lost"]["board"] == 5, "a loss is reported")
            board.command("freeze")
            board.command("lose 50")
            daemon.end(wanted=4)
            assert daemon.logged("no last frame", "may be lost"), daemon.log
        equal(daemon.final["counts"]["lost"]["board"], 55, daemon.log)
        assert daemon.logged("55 (board overflow)"), daemon.log


@pytest.mark.nightly
def test_a_loss_before_the_start_does_not_hide_one_at_the_end(tmp):
    with Board(BOARD) as board:
        board.command("lose 7")
        with Recorder(tmp, board) as daemon:
            daemon.wait_for(lambda s: s["counts"]["lost"]["board"] == 7, "the first frame reports the loss")
            daemon.take_all(1000)  # between the two gaps
            board.command("freeze")
            board.command("lose 50")
            daemon.end(wanted=4)
        gaps = reference.read_segments(segments(daemon.directory)).gaps
        equal([gap[2:] for gap in gaps if gap[1] == "board"], [(7, True), (43, False)], "7 of the 50 may be the first frame's")


@pytest.mark.nightly
def test_losses_before_a_restart_of_buscapd_are_not_counted(tmp):
    with Board(BOARD) as board:
        for lost in (7, 3):
            directory = tmp / str(lost)
            directory.mkdir()
            with Recorder(directory, board) as daemon:
                daemon.take_all()
                board.command(f"lose {lost}")
                daemon.wait_for(lambda s: s["counts"]["lost"]["board"], "the loss")
                daemon.end(wanted=4)
            equal(daemon.final["counts"]["lost"]["board"], lost, "the board lost")


# ---- requests that fail


@pytest.mark.nightly
def test_a_board_that_stalls_all_requests_is_recorded(tmp):
    with Board(BOARD, plugged=False) as board:
        board.command("requests stall")
        board.plug()
        with Recorder(tmp, board, settings="clock_hz=33000000") as daemon:
            status = daemon.take_all(5000)
            equal((status["source"]["clock_hz"], status["source"]["board"]["info"]), (33_000_000, None), "the clock")
            equal(status["source"]["board"]["counters"], None, "counters")
            daemon.end(wanted=0)
        recorded = daemon.check(board, gaps={})
        equal({s.header["source"]["clock_hz"] for s in recorded.segments}, {33_000_000}, "clock_hz")
        assert "no answer" not in daemon.log, daemon.log


@pytest.mark.nightly
def test_a_board_that_answers_no_request_is_recorded(tmp):
    with Board(BOARD, plugged=False) as board:
        board.command("requests hang")
        board.plug()
        with Recorder(tmp, board) as daemon:
            daemon.wait_streaming()
            daemon.take(5000)
            daemon.end(wanted=4)
        daemon.check(board, gaps={"transfer": 1}, may_be_torn=True)
        assert daemon.logged("no answer to STOP", "may be lost"), daemon.log
        for name in ("GET_INFO", "GET_COUNTERS", "START"):
            assert daemon.logged("A1 at 1-1", f"no answer to {name}"), daemon.log
        assert daemon.logged("streaming", "unknown clock"), daemon.log


@pytest.mark.nightly
def test_a_board_that_does_not_answer_stop_is_closed_anyway(tmp):
    with Board(BOARD) as board:
        with Recorder(tmp, board) as daemon:
            daemon.take()
            board.command("requests hang")
            daemon.end(wanted=4)
        daemon.check(board, gaps={"transfer": 1}, may_be_torn=True)


@pytest.mark.nightly
def test_a_recording_that_is_complete_does_not_need_an_answer_to_stop(tmp):
    with Board(BOARD, plugged=False) as board:
        board.command("requests hang")
        board.command("send 40000")
        with Recorder(tmp, board, "-a", "records:20000") as daemon:
            daemon.watch.may_end = True
            board.plug()
            daemon.end(None, wanted=0)
        assert "may be lost" not in daemon.log, daemon.log
        equal(len(reference.read_segments(segments(daemon.directory)).ticks), 20_000, "records")


# ---- lies


NO_BOARDS = {
    "no-endpoint": "vendor-specific interface without a bulk IN endpoint",
    "iso-endpoint": "vendor-specific interface without a bulk IN endpoint",
    "out-endpoint": "vendor-specific interface without a bulk IN endpoint",
    "truncated-config": "vendor-specific interface without a bulk IN endpoint",
    "zero-packet": "invalid packet size",
    "huge-packet": "invalid packet size",
    "wrong-class": "no vendor-specific interface (class FF)",
}
BOARDS = {
    "long-config": "66000000 Hz", "many-interfaces": "66000000 Hz", "alternate": "66000000 Hz",
    "short-info": "GET_INFO answer ignored", "wild-info": "GET_INFO answer ignored", "wild-serial": "../../",
}


@pytest.mark.nightly
def test_a_device_that_is_not_a_board_is_reported():
    def one(tmp, lie, why):
        with Board(BOARD, plugged=False) as board:
            board.command(f"lie {lie}")
            board.plug()
            done = run(BUSCAPD, "--list-boards", env={**os.environ, **board.env})
            assert done.returncode == 5 and why.encode() in done.stdout, (done.returncode, done.stdout, done.stderr)
            with Recorder(tmp, board) as daemon:
                status = daemon.wait_for(lambda s: s["source"]["board"]["last_error"], "the board is rejected")
                assert why in status["source"]["board"]["last_error"], status
                equal((status["state"], board.state()["opens"]), ("waiting", 0), "the board isn't opened")
                board.unplug()
                board.command("lie none")
                board.plug()
                daemon.take_all(5000)
                daemon.end(wanted=0)
            daemon.check(board, gaps={})
            assert daemon.logged("device at 1-1 is not a board", why), daemon.log
            done = run(BUSCAPD, "--list-boards", env={**os.environ, **board.env})
            equal(done.returncode, 0, done.stdout)

    harness.each(one, list(NO_BOARDS.items()), workers=WORKERS)


@pytest.mark.nightly
def test_harmless_false_descriptors_are_tolerated():
    def one(tmp, lie, words):
        with Board(BOARD, plugged=False) as board:
            board.command(f"lie {lie}")
            board.plug()
            with Recorder(tmp, board) as daemon:
                daemon.take(5000)
                board.command("stall")
                daemon.wait_for(lambda s: s["source"]["board"]["stalls"], "a stall")
                board.unplug()
                board.plug()
                daemon.take_all(5000)
                daemon.end(wanted=4)
            daemon.check(board)
            assert daemon.logged(words), daemon.log
            for name in set(os.listdir(tmp / "out")) - {".buscapd.lock"}:
                assert name.endswith((".byu.lz4", ".xxh128")), name

    harness.each(one, list(BOARDS.items()), workers=WORKERS)


@pytest.mark.nightly
def test_invalid_texts_of_a_board_are_made_printable(tmp):
    with Board(BOARD, plugged=False) as board:
        board.command(r"serial A\x1b[31m\x0a\x22\xe9")
        board.command(r"firmware \x07\x1b]0;x\x5c\x80")
        board.plug()
        with Recorder(tmp, board) as daemon:
            status = daemon.take_all(5000)
            daemon.end(wanted=0)
        daemon.check(board, gaps={})
    for text in (status["source"]["board"]["serial"], status["source"]["board"]["info"]["firmware"], daemon.log):
        assert all(" " <= c <= "~" or c == "\n" for c in text), repr(text)
