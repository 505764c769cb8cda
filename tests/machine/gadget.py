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
SAMPLES = 300000  # of the first recording
HELD_SAMPLES = 65536 // 8  # an unplug costs a transfer, which the kernel had taken


def _command(c, line, answer=None):
    """Returns the board's answer."""
    got = c.run(f"cd /run/gadget_board; n=$(wc -l <answers); echo '{line}' >commands; "
                "while [ $(wc -l <answers) = $n ]; do sleep 0.05; done; tail -n 1 answers")
    if answer is not None:
        equal(got, answer, line)
    return got


def _sent(c):
    return json.loads(_command(c, "sent"))


def _wait(c, what, is_reached):
    """Waits until that is true of the daemon's status. Returns it."""
    end = time.monotonic() + 60 * TIME_FACTOR
    while not is_reached(status := c.status(SOCKET)):
        assert time.monotonic() < end, f"{what}: {status}"
        time.sleep(0.1)
    return status


def _wait_for_records(c, before):
    """Waits until more has been received than in this status."""
    _wait(c, "more samples", lambda status: status["counts"]["received"] > before["counts"]["received"])


def _compare_counts(c, before, unplugs):
    """Stops the bus, and compares what was sent since `before` with what has arrived. Returns the status."""
    _command(c, "send 0", "ok")
    while not (now := _sent(c))["idle"]:
        time.sleep(0.1)
    wanted = {name: now[name] - before[name] for name in ("samples", "lost", "torn_samples", "starts")}
    least = wanted["samples"] - unplugs * HELD_SAMPLES
    status = _wait(c, f"{wanted}", lambda status: status["counts"]["received"] >= least)
    counts, board = status["counts"], status["source"]["board"]
    if not unplugs:
        equal((counts["received"], counts["lost"]["crc"]), (wanted["samples"], wanted["torn_samples"]), f"{wanted}")
    assert counts["received"] <= wanted["samples"], (wanted, counts)
    equal((counts["lost"]["board"], board["plugs"], board["unplugs"], board["stalls"], board["restarts"]),
          (wanted["lost"], wanted["starts"], unplugs, wanted["lost"] and 1, 0), f"{wanted}, {counts}, {board}")
    return status


def the_software_board_is_refused_in_one_line_where_it_cannot_be(c):
    left = ""

    def refused(line, words):
        done = c.machine.try_run(f"/mnt/gadget.sh start {words}")
        equal((done.code, done.out), (2, ""), f"{words}: {done.err}")
        assert re.fullmatch(line, done.err), done.err
        equal(c.run(f"ls -A {GADGETS} /run/gadget_board 2>/dev/null || true"), left)

    refused("gadget.sh: /sys/class/udc/: no such USB device controller; .*\n", "rate=1")
    c.run("modprobe dummy_hcd; modprobe libcomposite")
    left = f"{GADGETS}:"
    refused("gadget_board: rat=1: no such board; .*\n", "rat=1")
    refused("gadget.sh: /sys/class/udc/none: no such USB device controller; .*\n", "rate=1 none")


def it_is_a_board_behind_a_real_controller(c):
    c.run(f"printf '[source]\\nsource = usb\\n' >/etc/buscapd/boards/{SERIAL}.conf")
    c.run(f"/mnt/gadget.sh start serial={SERIAL},rate=150000,fifo={1 << 31},send={SAMPLES}")
    done = c.machine.try_run("/mnt/gadget.sh start rate=1")
    assert done.code == 2 and re.fullmatch(f"gadget.sh: {GADGETS}/.*: exists; .*\n", done.err), done
    c.machine.wait_until(f"systemctl is-active -q {UNIT}", "the service starts", 60)
    status = _wait(c, "all samples", lambda status: status["counts"]["received"] >= SAMPLES)
    equal(status["counts"]["received"], SAMPLES)
    equal(_compare_counts(c, dict.fromkeys(_sent(c), 0), 0)["counts"]["gaps"], 0)
    equal(status["source"]["board"]["info"]["firmware"], "sim-1.0", "the answer to GET_INFO")
    c.run(f"systemctl stop {UNIT}", timeout=60)
    equal(c.show("Result", "ExecMainStatus", unit=UNIT), ["success", "0"])
    c.gadget_counts = status["counts"]


def each_of_its_faults_is_a_gap_and_all_counts_agree(c):
    before = _sent(c)
    c.run(f"systemctl start {UNIT}", timeout=60)
    _command(c, "send all", "ok")
    status = c.status(SOCKET)
    for number, fault in enumerate(("lose 777", "stall", "corrupt", "lose-frames 1"), 1):
        _wait_for_records(c, status)
        _command(c, fault, "ok")
        status = _wait(c, fault, lambda status, number=number: status["counts"]["gaps"] == number)
    status = _compare_counts(c, before, 0)
    _command(c, "send all", "ok")
    _wait_for_records(c, status)
    name = c.run(f"cat {UDC}; echo >{UDC}")
    _wait(c, "unplugged", lambda status: status["source"]["board"]["state"] == "detached")
    c.run(f"echo {name} >{UDC}")
    _wait_for_records(c, _wait(c, "back", lambda status: status["source"]["board"]["state"] == "streaming"))
    _compare_counts(c, before, 1)
    c.run(f"systemctl stop {UNIT}", timeout=60)
    equal(c.show("Result", "ExecMainStatus", unit=UNIT), ["success", "4"])


def nothing_of_it_is_left_even_if_it_was_killed(c):
    for end in ("true", "kill -9 $(cat /run/gadget_board/pid)"):
        c.run(f"{end}; /mnt/gadget.sh stop")
        equal(c.run(f"ls -A {GADGETS}; ls /run/gadget_board 2>&1 || true"),
              "ls: cannot access '/run/gadget_board': No such file or directory")
        c.machine.wait_until(f"test ! -e /dev/buscap/{SERIAL}", "the board is gone")
        if end == "true":
            c.run(f"/mnt/gadget.sh start serial={SERIAL},rate=1000")
            c.machine.wait_until(f"test -e /dev/buscap/{SERIAL}", "the board is back")
    c.run(f"systemctl stop {UNIT}; rm /etc/buscapd/boards/{SERIAL}.conf", timeout=60)


STEPS = [
    the_software_board_is_refused_in_one_line_where_it_cannot_be, it_is_a_board_behind_a_real_controller,
    each_of_its_faults_is_a_gap_and_all_counts_agree, nothing_of_it_is_left_even_if_it_was_killed,
]


def compare_recordings(c, out):
    """The files, after the machine has been switched off."""
    first, second, *_ = sent.read_recordings(out / SERIAL)
    equal((len(first) + c.gadget_counts["dropped"]["invalid"], first.gaps), (SAMPLES, []))
    # An unplug may cut a frame, which is then a gap at the same place.
    end = second.gaps[-1][0]
    equal([cause for place, cause, _, _ in second.gaps if place != end or cause != "crc"],
          ["board", "transfer", "crc", "sequence", "unplugged"])
    equal(second.gaps[0][2:], (777, True))
