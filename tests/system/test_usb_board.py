"""Tests the software board below the real libusb with a minimal reader, so that other tests can rely on it."""

import json
import random
import signal
import time

import pytest

import harness
from harness import BUSCAPD, Daemon, equal, run, wait_until
from usb_harness import BARE_READER, Board

pytestmark = pytest.mark.nightly


def counts_of(capture):
    """Returns buscapd's counts for a file of what the board sent."""
    done = run(BUSCAPD, "--source", f"file:{capture}", "--once", "-o", capture.parent / "out")
    return json.loads(done.stdout)["counts"]


def check_stream(tmp, board, figures, gaps=0):
    """Every byte that left the board arrived and is correct. A paced board's FIFO suffices for a busy machine."""
    sent = board.sent()
    equal(figures["bytes"], sent["bytes"], "bytes")
    counts = counts_of(tmp / "capture")
    equal((counts["received"], counts["lost"]["board"], counts["gaps"]), (sent["samples"], sent["lost"], gaps), f"{sent}")
    equal(sent["dropped_samples"] if gaps == 0 else 0, 0, "dropped")
    return counts


def test_a_paced_stream_arrives_whole(tmp):
    with Board(f"serial=A1,rate={harness.rate(2000000)},fifo=50000000") as board:
        figures = board.read_bare("-t", 2, "-o", tmp / "capture")
        check_stream(tmp, board, figures)
        assert figures["bytes"] > 1000000, figures
        equal(board.state()["files"], 0, "files left open")


def test_an_unpaced_stream_arrives_whole(tmp):
    for transfers, size in ((16, 65536), (1, 512), (4, 1048576)):
        with Board() as board:
            figures = board.read_bare("-t", 0.3, "-n", transfers, "-b", size, "-o", tmp / "capture")
            check_stream(tmp, board, figures)


def test_transfers_end_short_at_random_places(tmp):
    for kind in ("xhci", "split"):
        with Board("serial=A1,packet=64") as board:
            board.host(kind)
            board.command("short on")
            figures = board.read_bare("-t", 1.5, "-o", tmp / "capture")
            check_stream(tmp, board, figures)
            assert figures["short"] > 10, figures


def test_cancelled_transfers_carry_data(tmp):
    for kind in ("xhci", "split"):
        cancelled = data = 0
        for attempt in range(30):
            # On a busy machine the board always has enough for whole transfers, unless it is slow.
            rate = harness.rate(1000000) if attempt < 3 else 20000
            with Board(f"serial=A1,rate={rate},fifo=50000000") as board:
                board.host(kind)
                board.command("frame 512")
                board.discard_data(1024)
                figures = board.read_bare("-t", 1, "-x", 7, "-o", tmp / "capture")
                check_stream(tmp, board, figures)
            cancelled += figures["cancelled"]
            data += figures["cancelled_bytes"]
            if cancelled > 100 and data > 0:
                break
        assert cancelled > 100 and data > 0, (cancelled, data)


def test_faults_are_reported_as_by_the_kernel(tmp):
    for fault in ("stall", "protocol-error", "overflow 1000"):
        with Board(f"serial=A1,rate={harness.rate(1000000)},fifo=50000000") as board:
            for _ in range(3):
                board.command(fault)
            figures = board.read_bare("-t", 1.5, "-o", tmp / "capture")
            equal(figures["bytes"], board.sent()["bytes"], fault)
            assert figures["errors"] >= 3, (fault, figures)


def test_the_kernels_memory_for_transfers_is_limited(tmp):
    with Board() as board:
        board.memory(300000)
        figures = board.read_bare("-n", 4, "-t", 0.3, "-o", tmp / "capture")
        check_stream(tmp, board, figures)
        figures = board.read_bare("-n", 5, "-t", 0.3)
        assert figures["transfers"] <= 4, figures
        equal(board.state()["memory"], 0, "memory still in use")


def test_a_board_is_replugged_in_mid_stream(tmp):
    dice = random.Random(1)
    with Board("serial=A1,rate=500000", plugged=False) as board:
        with Daemon("-o", tmp / "capture", program=BARE_READER, env=board.env) as reader:
            for i in range(30):
                board.plug()
                before = board.sent()["bytes"]
                if i % 8 != 0:
                    wait_until(lambda: board.sent()["bytes"] > before, "the stream")
                time.sleep(dice.random() * 0.003)
                board.unplug(event_first=i % 3 == 0)
            board.plug()
            wait_until(lambda: board.state()["claimed"], "the last")
            equal(reader.stop(signal.SIGTERM), 0, "exit code")
            figures = json.loads(reader.out)
        sent = board.sent()
        equal(figures["bytes"], sent["bytes"], "bytes")
        equal(counts_of(tmp / "capture")["received"], sent["samples"], "samples")
        equal(board.state()["files"], 0, "files")
        equal(board.state()["memory"], 0, "memory")


def test_two_boards_are_distinguished_by_their_serial_numbers():
    with Board("serial=A1,seed=1", "serial=B2,seed=2") as board:
        for port, serial in ((1, "A1\n"), (2, "B2\n")):
            equal((board.sysfs(port) / "serial").read_text(), serial, "serial number")
        board.unplug(1)
        assert not board.sysfs(1).exists() and board.sysfs(2).exists()
        board.plug(1)
        equal((board.sysfs(1) / "devnum").read_text(), "4\n", "a new address")


def test_a_node_can_be_denied_even_to_root():
    with Board(plugged=False) as board:
        board.deny()
        board.plug()
        figures = board.read_bare("-t", 0.3)
        equal(figures["opens"], 0, "opens")
        board.allow()
        figures = board.read_bare("-c", 100000)
        equal(figures["opens"], 1, "opens")


def test_data_that_a_killed_reader_did_not_get_counts_as_unsent():
    with Board("serial=A1,rate=100000") as board:
        with Daemon(program=BARE_READER, env=board.env) as reader:
            wait_until(lambda: board.sent()["samples"] > 10000, "the stream")
            reader.process.kill()
            reader.wait()
        wait_until(lambda: board.state()["files"] == 0, "the file is closed")
        equal((board.state()["memory"], board.state()["pending"]), (0, 0), "left")
        assert board.read_bare("-c", 100000)["errors"] == 0
