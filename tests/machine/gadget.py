"""The steps with a board behind a USB device controller of the machine itself: tests/board/gadget_board.c, started by
tests/tools/gadget.sh. dummy_hcd takes the place of the wire; all else is as between a Raspberry Pi and its host."""

import json
import re
import time

import sent
from harness import equal
from machine import TIME_FACTOR

SERIAL = "G3"
UNIT = f"buscapd@{SERIAL}.service"
SOCKET = f"--socket /run/buscapd/{SERIAL}.sock"
GADGETS = "/sys/kernel/config/usb_gadget"
UDC = f"{GADGETS}/capture_board/UDC"
SAMPLES, FAST_SAMPLES = 300000, 2000000  # of the first recording: at a rate, and as fast as the USB allows
SMALL_FIFO = 65536
HELD_SAMPLES = 65536 // 8  # an unplug costs a transfer, which the kernel had taken
OTHER = "other"  # a gadget that has nothing to do with the board


def _command(c, line, answer=None):
    """Returns the board's answer."""
    got = c.run(f"cd /run/gadget_board; n=$(wc -l <answers); echo '{line}' >commands; "
                "while [ $(wc -l <answers) = $n ]; do sleep 0.05; done; tail -n 1 answers")
    if answer is not None:
        equal(got, answer, line)
    return got


def _sent(c):
    return json.loads(_command(c, "sent"))


def _wait(c, what, is_reached, read=lambda c: c.status(SOCKET)):
    """Waits until that is true of the daemon's status, or of what is read instead. Returns it."""
    end = time.monotonic() + 60 * TIME_FACTOR
    while not is_reached(got := read(c)):
        assert time.monotonic() < end, f"{what}: {got}"
        time.sleep(0.1)
    return got


def _wait_for_records(c, before):
    """Waits until more has been received than in this status."""
    _wait(c, "more samples", lambda status: status["counts"]["received"] > before["counts"]["received"])


def _compare_counts(c, before, unplugs=0, stalls=0):
    """Stops the bus, and compares what was sent since `before` with what has arrived. Returns the status."""
    _command(c, "send 0", "ok")
    now = _wait(c, "all is sent", lambda sent: sent["idle"], _sent)
    wanted = {name: now[name] - before[name] for name in ("samples", "lost", "torn_samples", "starts")}
    least = wanted["samples"] - unplugs * HELD_SAMPLES
    status = _wait(c, f"{wanted}", lambda status: status["counts"]["received"] >= least)
    counts, board = status["counts"], status["source"]["board"]
    if not unplugs:
        equal((counts["received"], counts["lost"]["crc"]), (wanted["samples"], wanted["torn_samples"]), f"{wanted}")
    assert counts["received"] <= wanted["samples"], (wanted, counts)
    equal((counts["lost"]["board"], board["plugs"], board["unplugs"], board["stalls"]),
          (wanted["lost"], wanted["starts"], unplugs, stalls), f"{wanted}, {counts}, {board}")
    # At an unplug, transfers may fail before it is seen, so that a reset is tried.
    assert board["restarts"] <= unplugs, (wanted, counts, board)
    return status


def _start(c, options):
    """The board and, by udev, the service. Returns the counts of a board that has sent nothing."""
    c.run(f"/mnt/gadget.sh start serial={SERIAL},{options}")
    c.machine.wait_until(f"systemctl is-active -q {UNIT}", "the service starts", 60)
    return dict.fromkeys(_sent(c), 0)


def _stop_service(c, code):
    c.run(f"systemctl stop {UNIT}", timeout=60)
    equal(c.show("Result", "ExecMainStatus", unit=UNIT), ["success", code])


def _check_log(c, *texts):
    """What docs/test-board.md promises, in this order."""
    journal = c.run(f"journalctl -q -b -u {UNIT} -o cat")
    at = [journal.find(text) for text in texts]
    assert -1 not in at and at == sorted(at), (texts, at, journal)


def the_software_board_is_refused_in_one_line_where_it_cannot_be(c):
    left = []

    def refused(line, words):
        done = c.machine.try_run(f"/mnt/gadget.sh start {words}", timeout=120)
        equal((done.code, done.out), (2, ""), f"{words}: {done.err}")
        assert re.fullmatch(line, done.err), done.err
        equal(c.run(f"ls -A {GADGETS} /run/gadget_board 2>/dev/null || true").split(), left)

    refused("gadget.sh: /sys/class/udc/: no such USB device controller; .*\n", "rate=1")
    c.run("modprobe dummy_hcd; modprobe libcomposite")
    left = [f"{GADGETS}:"]
    refused("gadget_board: rat=1: no such board; .*\n", "rat=1")
    refused("gadget.sh: /sys/class/udc/none: no such USB device controller; .*\n", "rate=1 none")
    left.append(OTHER)
    udc = c.run("ls /sys/class/udc")
    c.run(f"""cd {GADGETS}; mkdir -p {OTHER}/functions/acm.0 {OTHER}/configs/c.1; echo 0x1d6b >{OTHER}/idVendor
ln -s $PWD/{OTHER}/functions/acm.0 {OTHER}/configs/c.1; echo {udc} >{OTHER}/UDC""")
    refused(f"gadget.sh: /sys/class/udc/{udc}: in use by {OTHER}; .*\n", "rate=1")
    c.run(f"echo >{GADGETS}/{OTHER}/UDC")


def it_is_a_board_behind_a_real_controller_also_as_fast_as_the_usb_allows(c):
    c.run(f"printf '[source]\\nsource = usb\\n[pipeline]\\nbuffer = 256MiB\\n' >/etc/buscapd/boards/{SERIAL}.conf")
    before = _start(c, f"rate=150000,fifo={1 << 31},send={SAMPLES}")
    done = c.machine.try_run("/mnt/gadget.sh start rate=1")
    assert done.code == 2 and re.fullmatch(f"gadget.sh: {GADGETS}/.*: exists; .*\n", done.err), done
    status = _wait(c, "all samples", lambda status: status["counts"]["received"] >= SAMPLES)
    equal(status["counts"]["received"], SAMPLES)
    equal(status["source"]["board"]["info"]["firmware"], "sim-1.0", "the answer to GET_INFO")
    _command(c, "rate max", "ok")
    _command(c, f"send {FAST_SAMPLES}", "ok")
    _wait(c, "all is captured", lambda sent: sent["samples"] >= SAMPLES + FAST_SAMPLES, _sent)
    c.gadget_counts = counts = _compare_counts(c, before)["counts"]
    equal((counts["received"], counts["gaps"], sum(counts["dropped"].values())),
          (SAMPLES + FAST_SAMPLES, 0, counts["dropped"]["invalid"]), f"{counts}")
    _command(c, "rate 150000", "ok")
    _command(c, "last", "ok")
    _wait(c, "the end", lambda status: status["state"] == "idle")
    _stop_service(c, "0")
    _check_log(c, ": sent its last frame: stream ended", ": source ended; idle until buscapd is stopped")


def each_of_its_faults_is_a_gap_and_all_counts_agree(c):
    before = _sent(c)
    c.run(f"systemctl start {UNIT}", timeout=60)
    _command(c, "send all", "ok")
    status = c.status(SOCKET)
    for number, fault in enumerate(("lose 777", "stall", "corrupt", "lose-frames 1"), 1):
        _wait_for_records(c, status)
        _command(c, fault, "ok")
        status = _wait(c, fault, lambda status, number=number: status["counts"]["gaps"] == number)
    skipped = status["counts"]["skipped_bytes"]  # the corrupt frame
    _command(c, "garbage 5000", "ok")
    _wait(c, "garbage", lambda status: status["counts"]["skipped_bytes"] == skipped + 5000)
    status = _compare_counts(c, before, stalls=1)
    equal(status["counts"]["gaps"], 4)
    _command(c, "send all", "ok")
    _wait_for_records(c, status)
    name = c.run(f"cat {UDC}; echo >{UDC}")
    _wait(c, "unplugged", lambda status: status["source"]["board"]["state"] == "detached")
    c.run(f"echo {name} >{UDC}")
    _wait_for_records(c, _wait(c, "back", lambda status: status["source"]["board"]["state"] == "streaming"))
    _compare_counts(c, before, unplugs=1, stalls=1)
    _stop_service(c, "4")
    _check_log(c, "samples lost: 777 (board overflow) in ", ": endpoint stalled; gap recorded (total: 1 stalls, ",
               ": 2048 samples lost (torn or bad CRC)", ": expected frame ", ": 5,000 bytes skipped (no valid frame)",
               ": unplugged; the recording continues ", ": back after ")
    c.run("/mnt/gadget.sh stop")


def what_its_fifo_cannot_hold_is_lost_in_the_next_frame(c):
    """While the host sleeps, and while the board is frozen. It survives that its own computer sleeps."""
    before = _start(c, f"rate=150000,fifo={SMALL_FIFO}")
    status = _wait(c, "the stream", lambda status: status["source"]["board"]["state"] == "streaming")
    _wait_for_records(c, status)
    pid = c.pid(UNIT)
    c.run(f"kill -STOP {pid}")
    _wait(c, "an overflow", lambda sent: sent["captured_lost"] >= SMALL_FIFO, _sent)
    c.run(f"kill -CONT {pid}")
    _wait(c, "the loss", lambda status: status["counts"]["lost"]["board"] >= SMALL_FIFO)
    _command(c, "freeze", "ok")
    _wait(c, "silence", lambda status: status["source"]["board"]["silences"] == 1)
    lost = _sent(c)["captured_lost"]
    assert lost > SMALL_FIFO, lost
    _command(c, "thaw", "ok")
    _wait(c, "the loss", lambda status: status["counts"]["lost"]["board"] >= lost)
    _compare_counts(c, before)
    c.run("pid=$(cat /run/gadget_board/pid); kill -STOP $pid; until grep -q '^State:.T' /proc/$pid/status; do "
          "sleep 0.1; done; kill -CONT $pid")
    _sent(c)
    _stop_service(c, "4")
    _check_log(c, ": no data for 1", ": data again after ")
    c.run("/mnt/gadget.sh stop")


def with_an_ftdi_chip_it_gets_its_requests_and_nothing_is_skipped_at_the_stop(c):
    c.run("/mnt/gadget.sh start rate=0,ftdi=1,vid=0x0403,pid=0x6014")
    # On a slow machine, the default of 10 s is too short to find the board.
    counts = json.loads(c.run("buscapd --once --json --source usb:link=ftdi,id=0403:6014,wait=2min -o /var/tmp/ftdi "
                              "-a records:1000000", 120))["counts"]
    board = json.loads(_command(c, "ftdi"))
    equal((counts["gaps"], counts["skipped_bytes"]), (0, 0), f"{counts}")
    assert 1000000 <= counts["received"] <= (now := _sent(c))["samples"] + now["torn_samples"], (counts, now)
    assert board["resets"] == 1 and board["purges"] >= 2 and board["latency_ms"] == 16, board
    c.run("/mnt/gadget.sh stop")


def nothing_of_it_is_left_even_if_it_was_killed(c):
    for end in ("true", "kill -9 $(cat /run/gadget_board/pid)"):
        c.run(f"/mnt/gadget.sh start serial={SERIAL},rate=1000")
        c.machine.wait_until(f"test -e /dev/buscap/{SERIAL}", "the board is back")
        c.run(f"{end}; /mnt/gadget.sh stop")
        equal(c.run(f"ls -A {GADGETS}; ls /run/gadget_board 2>&1 || true"),
              f"{OTHER}\nls: cannot access '/run/gadget_board': No such file or directory")
        c.machine.wait_until(f"test ! -e /dev/buscap/{SERIAL}", "the board is gone")
    c.run(f"systemctl stop {UNIT}; rm /etc/buscapd/boards/{SERIAL}.conf", timeout=60)


STEPS = [
    the_software_board_is_refused_in_one_line_where_it_cannot_be,
    it_is_a_board_behind_a_real_controller_also_as_fast_as_the_usb_allows,
    each_of_its_faults_is_a_gap_and_all_counts_agree, what_its_fifo_cannot_hold_is_lost_in_the_next_frame,
    with_an_ftdi_chip_it_gets_its_requests_and_nothing_is_skipped_at_the_stop,
    nothing_of_it_is_left_even_if_it_was_killed,
]


def compare_recordings(c, out):
    """The files, after the machine has been switched off."""
    first, second, third, *_ = sent.read_recordings(out / SERIAL)
    equal((len(first) + c.gadget_counts["dropped"]["invalid"], first.gaps), (SAMPLES + FAST_SAMPLES, []))
    # An unplug may cut a frame, which is then a gap at the same place.
    end = second.gaps[-1][0]
    equal([cause for place, cause, _, _ in second.gaps if place != end or cause != "crc"],
          ["board", "transfer", "crc", "sequence", "unplugged"])
    equal(second.gaps[0][2:], (777, True))
    equal({(cause, is_exact) for _, cause, _, is_exact in third.gaps}, {("board", True)})
