"""buscapd with software boards on its USB: what a user sees of boards, losses, faults and the end. The source itself is
tested in C (tests/unit/usb), the real kernel and udev in a virtual machine (tests/machine)."""

import os
import re
import time

import pytest

import harness
from api_harness import daemon_in
from harness import ask, equal, info, run, segments, some, verify, wait_until
from usb_harness import Board, Recorder

pytestmark = pytest.mark.threads

RATE = harness.rate(200_000)
BOARD = f"serial=A1,rate={RATE},send=0"
WORKERS = 3
NO_DELTA = b"\xff\xff\xff\xff"


def buscapd(board, *argv):
    """Runs buscapd to its end with the boards. Returns (exit code, standard output, standard error)."""
    done = run(board.PROGRAM, *argv, env={**os.environ, **board.env})
    return done.returncode, done.stdout.decode(), harness.check_sound(done.stderr)


def events(recorded, kind="gap"):
    return [event for chunk in recorded.chunks for event in chunk.events if event.kind == kind]


def test_a_board_is_used_when_its_permissions_are_set(tmp):
    with Board(BOARD, plugged=False) as board:
        with Recorder(tmp, board, once=False) as daemon:
            status = daemon.wait_for(lambda s: s["source"]["board"]["state"] == "detached", "the search for a board")
            equal((status["state"], status["source"]["clock_hz"]), ("waiting", None), "before the plug")
            assert "serial" not in status["source"]["board"], status
            board.deny()
            board.plug()
            denied = daemon.wait_for(lambda s: s["source"]["board"]["last_error"], "the failure to open the board")
            assert "Permission denied" in denied["source"]["board"]["last_error"], denied
            equal((denied["state"], denied["counts"]["received"]), ("waiting", 0), "while it is denied")
            board.allow()
            status = daemon.take_all()
            equal((status["state"], status["source"]["board"]["serial"]), ("recording", "A1"), "with the board")
            equal(status["recording"]["id"], denied["recording"]["id"], "the recording")
            daemon.end(wanted=0)
        infos = info(segments(tmp / "out"))
        for segment in infos:
            equal((segment["source"]["kind"], segment["source"]["clock_hz"], segment["board"]),
                  ("usb", 66_000_000, {"serial": "A1", "firmware": "sim-1.0"}), "the segments' metadata")
        equal(sum(s["records"] for s in infos) > 0, True, "records")
        equal(daemon.log.count("Permission denied"), 1, "logged once")
        assert daemon.logged("no board 1209:0001", "waiting for it"), daemon.log
        assert daemon.logged("board 1209:0001 A1 at 1-1", "streaming", "66000000 Hz"), daemon.log


def test_a_replugged_board_continues_the_same_recording(tmp):
    with Board(BOARD) as board:
        with Recorder(tmp, board) as daemon:
            first = daemon.take(5000)
            before = time.monotonic()
            board.unplug()
            away = daemon.wait_for(lambda s: s["source"]["board"]["state"] == "detached", "the board is gone")
            equal((away["state"], away["source"]["board"]["unplugs"]), ("waiting", 1), "while the board is unplugged")
            equal(away["source"]["board"]["serial"], "A1", "the expected board")
            seen = time.monotonic()
            time.sleep(0.1)
            plugged = time.monotonic()
            board.plug()
            status = daemon.take()
            after = time.monotonic()
            equal(status["recording"]["id"], first["recording"]["id"], "the recording")
            equal(status["source"]["board"]["plugs"], 2, "plugs")
            daemon.wait_idle()
            daemon.end(wanted=4)
        recorded = daemon.check(board, gaps={"unplugged": 1}, may_be_torn=True)
    equal({s.header["recording"] for s in recorded.segments}, {first["recording"]["id"]}, "the recording on disk")
    (gap,) = [gap for gap in events(recorded) if gap.cause == "unplugged"]
    assert plugged - seen < gap.duration_ns * 1e-9 < after - before, (gap, plugged - seen, after - before)
    assert not gap.exact and gap.value == 0, gap
    at = recorded.epochs[1]
    equal(recorded.records[12 * at + 8 : 12 * at + 12], NO_DELTA, "the first record's delta")
    moved = (recorded.ticks[at] - recorded.ticks[0]) / 66e6
    assert moved < after - plugged, ("the board's clock was not reset", moved, after - plugged)
    dump = run(harness.BUSCAP, "dump", *segments(tmp / "out")).stdout.decode()
    assert re.search(r"# gap: an unknown number of samples lost \(unplugged, \d+\.\d+ s\)", dump), "dump"
    for words in (("A1 at 1-1", "unplugged; the recording continues"), ("streaming",), ("stream interruptions: 1",)):
        assert daemon.logged(*words), daemon.log


def test_the_clock_of_a_board_runs_while_the_bus_is_silent(tmp):
    with Board(BOARD) as board:
        with Recorder(tmp, board) as daemon:
            before = time.monotonic()
            daemon.take_all(5000)
            begin = time.monotonic()
            daemon.wait_uptime(daemon.status()["uptime_seconds"] + 0.3)
            end = time.monotonic()
            daemon.take_all(5000)
            after = time.monotonic()
            daemon.end(wanted=0)
        recorded = daemon.check(board)
    silence = max(b - a for a, b in zip(recorded.ticks, recorded.ticks[1:])) / 66e6
    assert end - begin < silence < after - before, (end - begin, silence, after - before)
    assert not daemon.logged("clock rate"), daemon.log


def test_after_a_recording_another_board_can_be_used(tmp):
    def request(line):
        answer = ask(daemon.socket, f"{line} HTTP/1.0\r\nContent-Length: 0\r\n\r\n".encode())
        assert answer.split()[1].startswith(b"2"), answer

    with Board(BOARD, f"serial=B2,seed=2,rate={RATE},send=0", plugged=False) as board:
        board.command("requests stall", 2)
        board.plug(1)
        with Recorder(tmp, board, once=False, settings="clock_hz=33000000") as daemon:
            daemon.take()
            request("DELETE /v1/recordings/current")
            board.unplug(1)
            board.plug(2)
            daemon.wait_for(lambda s: s["source"]["board"]["serial"] == "B2", "the other board")
            daemon.wait_streaming()
            daemon.take(number=2)
            request("POST /v1/recordings")
            status = daemon.take_all(5000, number=2)
            equal(status["source"]["clock_hz"], 33_000_000, "its clock")
            daemon.end(wanted=0)
    equal([(segment["board"]["serial"], segment["source"]["clock_hz"], segment["gaps"])
           for segment in info(segments(tmp / "out"))], [("A1", 66_000_000, 0), ("B2", 33_000_000, 0)], "the recordings")


def test_an_idle_boards_trigger_starts_a_recording_and_a_loss_ends_it(tmp):
    triggers = ("trigger on.when=board", "trigger on.action=start", "trigger off.when=gap", "trigger off.action=stop")
    settings = [word for setting in triggers for word in ("--set", setting)]
    # Each step has ten seconds of samples, and takes what it needs of them.
    with Board("serial=A1,rate=50000,send=0") as board, daemon_in(tmp, *settings, source="usb",
                                                                     program=board.PROGRAM, env=board.env) as daemon:
        daemon.wait_ready()

        def status_with(condition, what):
            return wait_until(lambda: (now := daemon.status()) and condition(now) and now, what)

        board.command("send 500000")
        idle = status_with(lambda now: now["counts"]["dropped"]["idle"] > 1000, "samples that are not recorded")
        equal((idle["state"], idle["recording"], idle["source"]["board"]["state"]), ("idle", None, "streaming"), "idle")
        equal((idle["counts"]["written"], idle["triggers"]), (0, 2), "written, triggers")
        board.command("trigger")
        board.command("send 500000")
        status_with(lambda now: now["state"] == "recording" and now["counts"]["written"] > 5000, "the daemon records")
        board.command("lose 123")
        ended = status_with(lambda now: now["state"] == "idle" and now["sealed"]["segments"] == 1, "the recording has ended")
        left = ended["counts"]["dropped"]["idle"]
        board.command("send 500000")
        later = status_with(lambda now: now["counts"]["dropped"]["idle"] > left, "the board continues")
        equal((later["source"]["board"]["state"], later["source"]["board"]["plugs"]), ("streaming", 1), "the board")
        equal(later["counts"]["written"], ended["counts"]["written"], "nothing more is written")
        harness.check_counts(later)
        board.command("send 0")
        equal(daemon.stop(), 4, daemon.err)
    verify(segments(tmp / "out"))
    (segment,) = info(segments(tmp / "out"))
    equal(segment["records"], later["counts"]["written"], "records")
    equal({cause: gap["lost"] for cause, gap in segment["causes"].items()}, {"board": 123}, "gaps")
    equal([(event["record"], event["text"]) for event in segment["events"]],
          [(0, None), (0, "on"), (segment["records"] - 1, "off")], "a board trigger and a configured one")


def test_a_stop_under_full_load_drains_the_board_and_seals(tmp):
    # Data in flight at the stop is decoded within the board's second, even with a sanitizer.
    settings = "transfers=4,transfer_size=16KiB" if harness.is_sanitized() else ""
    # More than can be sent before the stop, unless the machine is slow.
    with Board("serial=A1,send=8000000") as board:
        with Recorder(tmp, board, settings=settings) as daemon:
            daemon.wait_for(lambda s: s["counts"]["received"] >= 1_000_000, "some of the samples")
            daemon.end()
        counts, sent = harness.check_counts(daemon.final), board.sent()
        equal((counts["received"], sent["stops"]), (sent["samples"], 1), f"{counts} {sent}")
        equal(sent["captured"], sent["samples"], "everything up to the last frame arrived")
        equal(daemon.final["source"]["board"]["counters"]["samples"], sent["captured"], "GET_COUNTERS at the end")
        # The disk may be too slow for a board without a rate limit.
        is_short = counts["dropped"]["buffer"] != 0
        equal((daemon.code, counts["gaps"] != 0), (4 if is_short else 0, is_short), daemon.log)
        equal(list((tmp / "out").glob("*.partial")), [], "unsealed files")
        verify(segments(tmp / "out"))


def test_boards_are_listed_with_the_reasons():
    boards = [BOARD, "serial=B2,firmware=other", "serial=C3,vid=0x1234,pid=0x5678", "ftdi=1"]
    with Board(*boards, plugged=False) as board:
        code, out, err = buscapd(board, "--list-boards")
        equal((code, err), (5, ""), out)
        assert "no usable board 1209:0001" in out, out
        for number in range(1, 5):
            board.plug(number)
        code, out, err = buscapd(board, "--list-boards")
        equal((code, err), (0, ""), out)
        lines = {line.split()[0]: line for line in out.splitlines()}
        assert lines["PORT"].split()[1:4] == ["ID", "SPEED", "SERIAL"], out
        for port, words in {
                "1-1": ("1209:0001", "high", "A1", "board: interface 0, endpoint 81, 512-byte packets"),
                "1-2": ("1209:0001", "B2", "board: interface"), "1-3": ("1234:5678", "C3", "no: not 1209:0001"),
                "1-4": ("0403:6014", "no: not 1209:0001"), "usb1": ("1d6b:0002", "no:"),
                "2": ("2 boards match",)}.items():
            for word in words:
                assert word in lines[port], f"{word}: {out}"
        code, out, _ = buscapd(board, "--list-boards", "--source", "usb:serial=B2")
        equal((code, "\n1-1" in out and "board: interface" in re.search(r"^1-2 .*", out, re.M).group()), (0, True), out)
        assert "different serial number" in re.search(r"^1-1 .*", out, re.M).group(), out
        code, out, _ = buscapd(board, "--list-boards", "--source", "usb:port=1-2")
        equal((code, "no: not at port 1-2" in re.search(r"^1-1 .*", out, re.M).group()), (0, True), out)
        code, out, _ = buscapd(board, "--list-boards", "--source", "usb:id=0403:6014")
        assert code == 0 and "board: interface" in re.search(r"^1-4 .*", out, re.M).group(), out
        code, out, _ = buscapd(board, "--list-boards", "--source", "usb:serial=none")
        assert code == 5 and "no usable board 1209:0001" in out, out
        board.command("lie wrong-class")
        board.command("lie no-endpoint", 2)
        for number in (1, 2):
            board.unplug(number)
            board.plug(number)
        code, out, _ = buscapd(board, "--list-boards")
        equal(code, 5, out)
        assert "no: no vendor-specific interface (class FF)" in out, out
        assert "no: vendor-specific interface without a bulk IN endpoint" in out, out
    with Board() as board:
        board.deny()
        code, out, _ = buscapd(board, "--list-boards")
        line = re.search(r"^1-1 .*", out, re.M).group()
        assert code == 5 and "board, but permission denied" in line and "udev rule" in line, out


# ---- faults


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
    "damage": (["corrupt"], "damaged_places", 1, {}, TORN, ["1 damaged place in the source"], 4),
    "garbage": (["garbage 500"], "skipped_bytes", 500, {}, {}, ["500 bytes skipped (no valid frame)"], 4),
    "short packets": (["short on"], None, 0, {}, {}, ["streaming"], 0),
    "triggers": (["trigger"], None, 0, {}, {}, ["streaming"], 0),
}


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

    harness.each(one, [(name,) for name in some(FAULTS, 2)], workers=WORKERS)
