"""Recording from software boards on the USB: whole streams, plugs and unplugs, starts and ends, settings."""

import json
import os
import pathlib
import re
import signal
import time

import pytest

import harness
from api_harness import daemon_in
from harness import BUSCAP, BUSCAPD, Daemon, Faults, ask, equal, info, note, run, segments, verify, wait_until
from usb_harness import BARE_READER, Board, Recorder

pytestmark = pytest.mark.threads

RATE = harness.rate(200_000)
BOARD = f"serial=A1,rate={RATE},send=0"
WORKERS = 3
NO_DELTA = b"\xff\xff\xff\xff"


def usage(pid):
    """Returns a process's CPU time in seconds, memory in MiB and number of open files."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    resident = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return {
        "cpu": (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        "rss": resident * os.sysconf("SC_PAGESIZE") / (1 << 20), "fds": len(os.listdir(f"/proc/{pid}/fd")),
    }


def usage_but_chunks(daemon):
    """The same without the memory of chunks: unused ones take none, and how many are used depends on the disk."""
    used, buffer = usage(daemon.process.pid), daemon.status()["buffer"]
    return {**used, "rss": used["rss"] - (buffer["chunks"] - buffer["min_free_chunks"]) * 64 / buffer["chunks"]}


def buscapd(board, *argv, **options):
    """Runs buscapd to its end with the boards. Returns (exit code, standard output, standard error)."""
    done = run(BUSCAPD, *argv, env={**os.environ, **board.env}, **options)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def dump(directory, *options):
    """Returns the output of `buscap dump` for all segments."""
    done = run(BUSCAP, "dump", *options, *segments(directory))
    equal(done.returncode, 0, done.stderr.decode())
    return done.stdout.decode()


# ---- whole streams


@pytest.mark.ci
def test_40_megabytes_a_second_are_recorded_whole(tmp):
    rate = harness.rate(5_000_000)
    samples = rate * (5 if harness.NIGHTLY else 1)
    # Its FIFO holds the whole stream, because the machine may be several times slower, or busy for some time.
    with Board(f"serial=A1,rate={rate},fifo={samples},send={samples}", plugged=False) as board:
        # So does the buffer: the disk may be busy, too.
        options = ["-b", "filesize:16M", "-b", "files:2", "--set", "pipeline.buffer=400M"]
        with Recorder(tmp, board, *options) as daemon:
            board.plug()
            daemon.wait_for(lambda s: s["counts"]["received"], "samples")
            before, start = usage(daemon.process.pid), time.monotonic()
            while daemon.counts["received"] < samples:
                assert time.monotonic() - start < 1200, daemon.status()
                time.sleep(0.2)
            elapsed, after = time.monotonic() - start, usage(daemon.process.pid)
            daemon.end(wanted=0)
            slowest = daemon.watch.slowest
        counts, sent = daemon.final["counts"], board.sent()
        equal((sent["samples"], sent["lost"], counts["received"]), (samples, 0, samples), "samples")
        equal(counts["written"] + counts["dropped"]["invalid"], samples, f"{counts}")
        equal((counts["gaps"], counts["lost"]["board"], counts["skipped_bytes"]), (0, 0, 0), f"{counts}")
        verify(segments(tmp / "out"))
    cpu, megabytes = after["cpu"] - before["cpu"], 8e-6 * samples
    note(f"{megabytes:.0f} MB of samples in {elapsed:.1f} s, {megabytes / elapsed:.1f} MB/s: {cpu / elapsed:.2f} s"
         f" of CPU time per second, {1000 * cpu / megabytes:.1f} ms per MB; {after['rss']:.0f} MiB of memory; status"
         f" within {1000 * slowest:.0f} ms")


@pytest.mark.ci
def test_an_unpaced_board_is_accounted_for_to_the_sample(tmp):
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out)
    with Board("serial=A1,send=0") as board:
        with Recorder(tmp, board, "--set", "pipeline.buffer=6M", "--set", "pipeline.workers=1", env=faults.env) as daemon:
            daemon.take_all(500_000)
            faults.set("pwrite:hold")
            full = daemon.take_all(2_000_000)
            assert full["counts"]["dropped"]["buffer"] > 500_000, full
            faults.set("")
            daemon.wait_for(lambda s: s["counts"]["in_flight"] == 0, "the buffer is written")
            before = daemon.counts["written"]
            daemon.take_all(500_000)
            daemon.wait_for(lambda s: s["counts"]["written"] > before, "the recording continues")
            daemon.end(wanted=4)
        counts, sent = daemon.final["counts"], board.sent()
        harness.check_counts(daemon.final)
        equal((counts["received"], counts["in_flight"]), (sent["samples"], 0), "samples")
        paths = segments(out)
        verify(paths)
        infos = info(paths)
        equal(sum(s["records"] for s in infos), counts["written"], "records")
        equal(sum(s["gaps"]["count"] for s in infos), counts["gaps"], "gaps")
        causes = [cause for s in infos for cause in s["gaps"]["causes"].items()]
        equal({name for name, _ in causes}, {"buffer"}, "causes of gaps")
        equal(sum(gap["lost"] for _, gap in causes), counts["dropped"]["buffer"], "the sum of the gaps")
        assert all(gap["exact"] for _, gap in causes), causes
        assert daemon.logged("(buffer full)"), daemon.log


def records_without_times(records):
    """Returns the BYU records without their times."""
    return [records[at : at + 8] for at in range(0, len(records), 12)]


@pytest.mark.nightly
def test_every_link_and_protocol_delivers_the_boards_samples():
    def one(tmp, form, link, packet):
        is_ftdi = link == "ftdi"
        settings = f"protocol={form},link={link}" + ",id=0403:6014,clock_hz=50000000" * is_ftdi
        options = f"seed=7,form={form},packet={packet},rate={RATE},ftdi={int(is_ftdi)},send=50000"
        with Board(options, plugged=False) as board:
            board.plug()
            with Recorder(tmp, board, settings=settings) as daemon:
                daemon.wait_for(lambda s: s["counts"]["received"] >= 30_000, "samples")
                daemon.end(wanted=0)
            recorded = daemon.check(board, gaps={})
        samples = daemon.final["counts"]["received"]
        equal(records_without_times(recorded.records),
              records_without_times(harness.sim_records(samples, seed=7)), "records")
        equal({s["source"]["clock_hz"] for s in info(segments(tmp / "out"))},
              {50_000_000 if is_ftdi else 66_000_000}, "clock_hz")

    harness.each(one, [(form, link, packet) for form in ("bcp1", "raw6") for link in ("plain", "ftdi")
                       for packet in (64, 512)], workers=WORKERS)


@pytest.mark.nightly
def test_an_ftdi_chip_is_set_up_as_configured(tmp):
    with Board(f"ftdi=1,rate={RATE},send=0") as board:
        with Recorder(tmp, board, settings="link=ftdi,id=0403:6014,ftdi_latency=3ms") as daemon:
            daemon.take_all()
            set_up = json.loads(board.command("ftdi"))
            equal((set_up["latency_ms"], set_up["bit_mode"]), (3, 0x40), f"{set_up}")
            assert set_up["resets"] and set_up["purges"], set_up
            equal(daemon.board["info"], None, "info")
            daemon.end(wanted=0)
        equal(json.loads(board.command("ftdi"))["bit_mode"], 0, "the bit mode at the end")
        daemon.check(board, gaps={})


@pytest.mark.nightly
def test_the_time_of_raw6_is_the_hosts():
    def one(tmp, requests, settings, clock_hz):
        with Board(f"serial=A1,form=raw6,rate={RATE},send=0", plugged=False) as board:
            board.command(f"requests {requests}")
            with Recorder(tmp, board, settings=f"protocol=raw6,transfer_size=4K{settings}") as daemon:
                start = time.monotonic()
                board.plug()
                daemon.take()
                started = time.monotonic()
                daemon.take(RATE // 4)
                ends = time.monotonic()
                board.unplug()
                daemon.wait_for(lambda s: s["state"] == "waiting", "the daemon waits")
                board.plug()
                daemon.take(RATE // 4)
                daemon.end(wanted=4)
                over = time.monotonic()
            recorded = daemon.check(board, gaps={"unplugged": 1})
        equal(len(recorded.epochs), 1, "the host's clock continues")
        equal({s["source"]["clock_hz"] for s in info(segments(tmp / "out"))}, {clock_hz}, "clock_hz")
        # The latest samples arrived after `ends`, the first before `started`.
        seconds = (recorded.ticks[-1] - recorded.ticks[0]) / clock_hz
        assert ends - started < seconds < over - start, (started - start, ends - start, over - start, seconds)

    harness.each(one, [("answer", "", 66_000_000), ("stall", "", 1_000_000_000),
                       ("stall", ",clock_hz=1000000", 1_000_000)], workers=WORKERS)


# ---- plugs and unplugs


def cycle(daemon, board, count, is_streaming):
    """Plugs the board in and out; the daemon streams each time."""
    taken = 0
    for i in range(count):
        board.command(f"send {20_000 * is_streaming}")
        board.plug()
        end = time.monotonic() + harness.TIMEOUT_S
        while True:
            sample = json.loads(ask(daemon.socket).partition(b"\r\n\r\n")[2])
            if sample["source"]["board"]["plugs"] == i + 1 and (
                    not is_streaming or sample["counts"]["received"] > taken):
                taken = sample["counts"]["received"]
                break
            assert time.monotonic() < end, f"plug {i}: {sample}"
            time.sleep(0.001)
        board.unplug()
        if i == count // 10:
            before = usage_but_chunks(daemon)
    return before


@pytest.mark.nightly
def test_hundreds_of_plugs_leak_nothing_and_each_is_a_gap():
    figures = []

    def one(tmp, count, is_streaming):
        # Short frames, so that some of them arrive whole each time.
        with Board("serial=A1,rate=1000000", plugged=False) as board:
            board.command("frame 256")
            settings = "back_off_max=1ms,transfers=2,transfer_size=4K"
            with Recorder(tmp, board, "--set", "log.level=error", settings=settings) as daemon:
                start = time.monotonic()
                before = cycle(daemon, board, count, is_streaming)
                elapsed = time.monotonic() - start
                daemon.wait_for(lambda s: s["source"]["board"]["state"] == "detached", "the last board is closed")
                # One may be open temporarily: libuv's or a client's.
                wait_until(lambda: usage(daemon.process.pid)["fds"] <= before["fds"] + 2, "descriptors are closed")
                after = usage_but_chunks(daemon)
                board_counts = daemon.board
                daemon.end(wanted=4)
                asked = daemon.watch.samples
            equal((board_counts["plugs"], board_counts["unplugs"]), (count, count), "plugs and unplugs")
            recorded = daemon.check(board)
            all_gaps = [event for chunk in recorded.chunks for event in chunk.events if event.kind == "gap"]
            gaps = [gap for gap in all_gaps if gap.cause == "unplugged"]
            equal(len(gaps), count, "gaps")
            # A frame cut in two by the unplug is a gap too.
            assert {gap.cause for gap in all_gaps} <= {"unplugged", "crc"}, all_gaps
            assert len(all_gaps) - len(gaps) <= board.sent()["torn_frames"], "torn frames"
            assert all(gap.duration_ns > 0 and not gap.exact for gap in gaps), "a gap without its time"
            assert (len(recorded.ticks) != 0) == is_streaming
        # In mid-stream, usage_but_chunks() takes a chunk that has been used for full.
        assert harness.is_sanitized() or after["rss"] - before["rss"] < (12 if is_streaming else 4), (before, after)
        figures.append(f"{count} plugs{' in mid-stream' if is_streaming else ''} in {elapsed:.0f} s: open files"
                       f" {before['fds']} then {after['fds']}, memory without chunks {before['rss']:.1f} then"
                       f" {after['rss']:.1f} MiB, {asked} status samples")

    harness.each(one, [(200, False), (60, True)])
    for line in sorted(figures):
        note(line)


def test_a_board_is_used_when_its_permissions_are_set(tmp):
    with Board(BOARD, plugged=False) as board:
        with Recorder(tmp, board, once=False) as daemon:
            status = daemon.wait_for(lambda s: s["source"]["board"]["state"] == "detached", "the search for a board")
            equal((status["state"], status["source"]["clock_hz"]), ("waiting", 0), "before the plug")
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


@pytest.mark.asan
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
    gaps = [event for chunk in recorded.chunks for event in chunk.events if event.kind == "gap"]
    (gap,) = [gap for gap in gaps if gap.cause == "unplugged"]
    assert plugged - seen < gap.duration_ns * 1e-9 < after - before, (gap, plugged - seen, after - before)
    assert not gap.exact and gap.value == 0, gap
    at = recorded.epochs[1]
    equal(recorded.records[12 * at + 8 : 12 * at + 12], NO_DELTA, "the first record's delta")
    equal(recorded.ticks[at], recorded.ticks[0], "its tick: the board's clock was reset")
    assert re.search(r"# gap: an unknown number of samples lost \(unplugged, \d+\.\d+ s\)", dump(tmp / "out")), "dump"
    for words in (("A1 at 1-1", "unplugged; the recording continues"), ("streaming",), ("stream interruptions: 1",)):
        assert daemon.logged(*words), daemon.log


@pytest.mark.nightly
def test_an_idle_boards_trigger_starts_a_recording_and_a_loss_ends_it(tmp):
    triggers = ("trigger on.when=board", "trigger on.action=start", "trigger off.when=gap", "trigger off.action=stop")
    settings = [word for setting in triggers for word in ("--set", setting)]
    # Each step has ten seconds of samples, and takes what it needs of them.
    with Board("serial=A1,rate=50000,send=0") as board, daemon_in(tmp, *settings, source="usb", env=board.env) as daemon:
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
    equal({cause: gap["lost"] for cause, gap in segment["gaps"]["causes"].items()}, {"board": 123}, "gaps")
    equal([(event["record"], event["text"]) for event in segment["events"]],
          [(0, None), (0, "on"), (segment["records"] - 1, "off")], "a board trigger and a configured one")


@pytest.mark.nightly
def test_a_board_in_use_is_opened_when_the_other_program_ends(tmp):
    with Board(BOARD) as board:
        with Daemon(program=BARE_READER, env=board.env) as other:
            wait_until(lambda: board.state()["claimed"], "the other program claims the board")
            board.command("heartbeat off")
            board.command("send 10000")
            # Then the other program takes no part of a frame.
            wait_until(lambda: board.sent()["idle"] and board.state()["completed"] == 0, "it has read all frames")
            with Recorder(tmp, board) as daemon:
                status = daemon.wait_for(lambda s: s["source"]["board"]["last_error"], "the failure to claim the board")
                assert "another program uses it" in status["source"]["board"]["last_error"], status
                other.process.kill()
                other.wait()
                daemon.take_all()
                daemon.end(wanted=0)
        equal(daemon.log.count("can't claim interface: Device or resource busy"), 1, daemon.log)


@pytest.mark.ci
def test_without_events_from_udev_a_board_is_found(tmp):
    with Board(BOARD, plugged=False) as board:
        with Recorder(tmp, board) as daemon:
            daemon.wait_for(lambda s: s["source"]["board"]["state"] == "detached", "the search for a board")
            board.mute()
            for plugs in (1, 2, 3):
                board.plug()
                status = daemon.take(5000)
                equal(status["source"]["board"]["plugs"], plugs, "plugs")
                if plugs != 3:
                    board.unplug()
                    daemon.wait_for(lambda s, n=plugs: s["source"]["board"]["unplugs"] == n, "the unplug")
            daemon.take_all()
            daemon.end(wanted=4)
        daemon.check(board, gaps={"unplugged": 2})
        equal(daemon.log.count("found without an event from udev"), 1, daemon.log)


@pytest.mark.ci
def test_a_second_board_with_the_same_serial_number_does_not_continue_the_recording():
    def one(tmp, serial):
        name = f"serial={serial}," if serial else ""
        with Board(f"{name}rate={RATE},send=0", f"{name}seed=2,rate={RATE},send=0", plugged=False) as board:
            board.plug(1)
            with Recorder(tmp, board) as daemon:
                daemon.take()
                board.plug(2)
                board.command("send 20000", 2)
                wait_until(lambda: "at 1-2" in daemon.log_so_far(), "the second board is seen")
                board.unplug(1)
                wait_until(lambda: "at port 1-1" in daemon.log_so_far(), "it waits for the first")
                equal(board.sent(2)["starts"], 0, "starts of the second board")
                board.plug(1)
                daemon.take_all()
                daemon.end(wanted=4)
            equal(board.sent(2)["bytes"], 0, "the second board")
            daemon.check(board, gaps={"unplugged": 1}, may_be_torn=True)

    harness.each(one, [("A1",), ("",)], workers=WORKERS)


@pytest.mark.ci
def test_a_board_is_selected_by_its_port_or_the_next_is_used_if_it_cannot_be_opened():
    def one(tmp, is_denied):
        with Board(BOARD, f"serial=A1,seed=2,rate={RATE},send=0") as board:
            if is_denied:
                board.deny(1)
            with Recorder(tmp, board, settings="" if is_denied else "port=1-2") as daemon:
                daemon.take_all(5000, number=2)
                equal(daemon.board["port"], "1-2", "the port")
                daemon.end(wanted=0)
            daemon.check(board, gaps={}, number=2)
            equal(board.sent(1)["starts"], 0, "starts of the first board")
            equal("Permission denied" in daemon.log and "trying the next board" in daemon.log, is_denied, daemon.log)

    harness.each(one, [(False,), (True,)], workers=WORKERS)


@pytest.mark.nightly
def test_another_board_does_not_continue_the_recording(tmp):
    with Board(BOARD, f"serial=B2,seed=2,rate={RATE},send=0", plugged=False) as board:
        board.plug(1)
        with Recorder(tmp, board) as daemon:
            daemon.take()
            board.plug(2)
            board.unplug(1)
            daemon.wait_for(lambda s: s["source"]["board"]["state"] == "detached", "the board is gone")
            time.sleep(0.2)
            assert daemon.board["state"] != "streaming" and board.sent(2)["starts"] == 0, "the daemon waits for its board"
            board.plug(1)
            daemon.take_all()
            daemon.end(wanted=4)
        daemon.check(board, gaps={"unplugged": 1}, may_be_torn=True)
        assert daemon.logged("not used", "B2 at 1-2"), daemon.log


@pytest.mark.nightly
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
    equal([(segment["board"]["serial"], segment["source"]["clock_hz"], segment["gaps"]["count"])
           for segment in info(segments(tmp / "out"))], [("A1", 66_000_000, 0), ("B2", 33_000_000, 0)], "the recordings")


# ---- the end


@pytest.mark.ci
def test_once_without_a_board_ends_with_5_after_its_wait(tmp):
    with Board("serial=A1,vid=0x1234") as board:
        start = time.monotonic()
        code, out, err = buscapd(board, "--once", "--source", "usb:wait=700ms", "-o", tmp / "out")
        assert time.monotonic() - start >= 0.7, "the wait"
        equal(code, 5, err)
        status = json.loads(out)
        equal((out.count("\n"), status["state"], status["counts"]["received"]), (1, "failed", 0), "the status")
        errors = [line for line in err.splitlines() if "error" in line]
        equal(len(errors), 1, err)
        assert "1209:0001" in errors[0] and "not found within" in errors[0], err
        equal(segments(tmp / "out"), [], "segments")
        code, _, err = buscapd(board, "--once", "--source", "usb:wait=100ms,serial=X9", "-o", tmp / "out")
        assert code == 5 and "1209:0001 with serial number X9" in err, err


@pytest.mark.ci
def test_once_ends_with_0_after_the_boards_last_frame(tmp):
    with Board(BOARD) as board:
        with Recorder(tmp, board) as daemon:
            daemon.take()
            daemon.watch.may_end = True
            board.command("last")
            daemon.end(None, wanted=0)
        daemon.check(board, gaps={})
        assert daemon.logged("sent its last frame"), daemon.log


@pytest.mark.ci
def test_a_stop_in_mid_frame_is_no_damage():
    # An FTDI chip stops at any byte. A board that stalls STOP is not stopped: its transfers are cancelled.
    def one(tmp, form, link, packet):
        is_ftdi = link == "ftdi"
        settings = f"protocol={form},link={link},clock_hz=50000000,transfers=1,transfer_size=4K" + ",id=0403:6014" * is_ftdi
        # Without a pace, it is in mid-frame all the time, unless the machine is slow. The buffer holds all that it can send.
        with Board(f"seed=7,form={form},packet={packet},send=3000000,ftdi={int(is_ftdi)}", plugged=False) as board:
            board.command("requests " + ("answer" if is_ftdi else "stall"))
            board.plug()
            argv = ["--set", "pipeline.buffer=200M"]
            with Recorder(tmp, board, *argv, settings=settings) as daemon:
                daemon.wait_more(5000)
                daemon.end(wanted=0)
            counts = daemon.final["counts"]
            equal((counts["gaps"], counts["skipped_bytes"], counts["lost"]["crc"]), (0, 0, 0), f"{counts}")
            assert "lost" not in daemon.log, daemon.log
            verify(segments(tmp / "out"))

    harness.each(one, [("bcp1", "ftdi", 512), ("raw6", "ftdi", 64), ("bcp1", "plain", 512), ("raw6", "plain", 512)],
                 workers=WORKERS)


@pytest.mark.ci
def test_a_stop_under_full_load_drains_the_board_and_seals(tmp):
    # Data in flight at the stop is decoded within the board's second, even with a sanitizer.
    settings = "transfers=4,transfer_size=16K" if harness.is_sanitized() else ""
    # More than can be sent before the stop, unless the machine is slow.
    with Board("serial=A1,send=8000000") as board:
        with Recorder(tmp, board, settings=settings) as daemon:
            daemon.wait_more(1_000_000)
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


@pytest.mark.ci
def test_a_stop_ends_the_recording_whatever_the_board_is_doing():
    def one(tmp, what):
        with Board(BOARD, plugged=False) as board:
            with Recorder(tmp, board, settings="back_off=60s,back_off_max=60s") as daemon:
                if what == "denied":
                    board.deny()
                if what == "opening":
                    board.command("requests hang")
                if what != "absent":
                    board.plug()
                if what == "denied":
                    daemon.wait_for(lambda s: s["source"]["board"]["state"] == "back-off", "the back-off")
                elif what == "opening":
                    daemon.wait_for(lambda s: s["source"]["board"]["state"] in ("opening", "streaming"), "the board is queried")
                elif what != "absent":
                    daemon.take(1000)
                if what in ("frozen", "unplugged while it stops"):
                    board.command("freeze")
                if what == "away":
                    board.unplug()
                    daemon.wait_for(lambda s: s["source"]["board"]["state"] in ("back-off", "detached"), "the board is gone")
                if what == "unplugged while it stops":
                    board.command("requests hang")
                    daemon.watch.may_end = True
                    daemon.process.send_signal(signal.SIGTERM)
                    wait_until(lambda: "SIGTERM: stopping" in daemon.log_so_far(), "the daemon stops")
                    board.unplug()
                    daemon.end(None)
                else:
                    daemon.end()
            daemon.check(board)
            codes = {"opening": (0, 4), "away": (0, 4), "unplugged while it stops": (0, 4), "frozen": (4,)}
            assert daemon.code in codes.get(what, (0,)), (what, daemon.log)

    harness.each(one, [(what,) for what in (
        "absent", "denied", "opening", "streaming", "frozen", "away", "unplugged while it stops")], workers=WORKERS)


@pytest.mark.nightly
def test_limits_end_a_recording_and_stop_the_board(tmp):
    with Board(BOARD, plugged=False) as board:
        with Recorder(tmp, board, "-a", "records:20000") as daemon:
            daemon.watch.may_end = True
            board.command("send 40000")
            board.plug()
            daemon.end(None, wanted=0)
        equal((daemon.final["counts"]["written"], board.sent()["stops"]), (20_000, 1), "records, stops")


@pytest.mark.nightly
def test_the_duration_of_a_later_recording_is_counted_from_its_first_data(tmp):
    with Board(BOARD) as board, Recorder(tmp, board, once=False) as daemon:
        daemon.take_all()
        answer = ask(daemon.socket, b"DELETE /v1/recordings/current HTTP/1.0\r\n\r\n")
        assert answer.split()[1] == b"200", answer
        board.unplug()
        daemon.wait_for(lambda s: s["source"]["board"]["state"] == "detached", "the board is gone")
        body = b'{"limits": {"duration": "1ms"}}'
        head = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        answer = ask(daemon.socket, f"POST /v1/recordings HTTP/1.0\r\n{head}".encode() + body)
        assert answer.split()[1] == b"201", answer
        equal(daemon.status()["state"], "waiting", "the state without the board")
        board.command("send 20000")
        board.plug()
        ended = daemon.wait_for(lambda s: s["state"] == "idle", "the recording has ended")
        equal(ended["sealed"]["segments"], 2, "recordings with data")
        daemon.end(wanted=None)


# ---- --list-boards


@pytest.mark.asan
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


@pytest.mark.nightly
def test_a_board_without_permission_is_listed_as_such():
    with Board() as board:
        nobody = {}
        if os.geteuid() == 0:  # root may open anything
            os.chmod(board.root, 0o777)
            nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        else:
            board.deny()
        try:
            code, out, err = buscapd(board, "--list-boards", **nobody)
        except PermissionError:
            pytest.skip("another user can't run the program from this directory")
        equal((code, err), (5, ""), out)
        line = re.search(r"^1-1 .*", out, re.M).group()
        assert "board, but permission denied" in line and "udev rule" in line, out
        assert "no usable board 1209:0001" in out, out


# ---- settings


def config(tmp, text):
    path = tmp / "buscapd.conf"
    path.write_text(text)
    return path


@pytest.mark.nightly
def test_the_source_option_overrides_the_section(tmp):
    path = config(tmp, "[usb]\nserial = B2\ntransfers = 3\ntransfer_size = 8K\n")
    with Board(BOARD, f"serial=B2,rate={RATE},send=0") as board:
        for settings, wanted in (("", ("B2", 3, 8192)), ("serial=A1,transfers=5", ("A1", 5, 8192))):
            with Recorder(tmp, board, "-c", path, settings=settings) as daemon:
                taken = daemon.wait_streaming()["source"]["board"]
                equal((taken["serial"], taken["transfers"], taken["transfer_bytes"]), wanted, settings)
                daemon.end(wanted=0)
        code, out, err = buscapd(board, "--list-boards", "-c", path)
        equal(code, 0, err)
        assert "different serial number" in re.search(r"^1-1 .*", out, re.M).group(), out


@pytest.mark.nightly
def test_a_changed_section_needs_a_restart(tmp):
    path = config(tmp, "[usb]\ntransfers = 3\n")
    with Board(BOARD) as board:
        with Recorder(tmp, board, "-c", path, once=False) as daemon:
            daemon.take()
            config(tmp, "[usb]\ntransfers = 4\n")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.take_all(5000)
            equal(daemon.board["transfers"], 3, "transfers")
            daemon.end(wanted=0)
        verify(segments(tmp / "out"))
        equal(daemon.log.count("needs a restart"), 1, daemon.log)
        assert daemon.logged("usb.transfers has changed, but needs a restart"), daemon.log


# ---- the kernel's memory for transfers


@pytest.mark.nightly
def test_too_little_usbfs_memory_is_logged_and_tolerated(tmp):
    with Board(BOARD, plugged=False) as board:
        board.memory(300_000)
        board.plug()
        with Recorder(tmp, board) as daemon:
            taken = daemon.take(20_000)["source"]["board"]
            equal((taken["transfers"], taken["transfer_bytes"]), (4, 65536), "transfers")
            board.memory(None)
            daemon.wait_for(lambda s: s["source"]["board"]["transfers"] == 16, "16 transfers are in use again")
            daemon.take_all()
            daemon.end(wanted=0)
        daemon.check(board, gaps={})
        assert daemon.logged("only 4 transfers of 65536 bytes", "usbfs_memory_mb", "docs/usb.md"), daemon.log
        assert daemon.logged("16 transfers of 65536 bytes again"), daemon.log


@pytest.mark.nightly
def test_lack_of_usbfs_memory_is_logged_and_retried(tmp):
    with Board(BOARD, plugged=False) as board:
        board.memory(100)
        board.plug()
        with Recorder(tmp, board) as daemon:
            status = daemon.wait_for(lambda s: s["source"]["board"]["last_error"], "the failure to submit")
            assert "usbfs_memory_mb" in status["source"]["board"]["last_error"], status
            board.memory(None)
            daemon.take_all()
            daemon.end(wanted=0)
        daemon.check(board, gaps={})
        equal(daemon.log.count("usbfs_memory_mb"), 1, daemon.log)
