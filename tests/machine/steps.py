"""The steps of a run, in their order: each a sentence that holds, or fails."""

import json
import pathlib
import time

import sandbox
import sent
from harness import check_counts, equal
from machine import SLOWEST

LATER = "9.0"  # version of the packages of the upgrade
FAST = 5000000  # samples a second: 40 MB
FAST_SAMPLES = 20000000
SLOW = 100000
SPOOL = "/var/lib/buscapd"
CONF = "/etc/buscapd/conf.d/machine.conf"
DROP_INS = "/etc/systemd/system/buscapd.service.d"
PORT = 9477  # where /metrics is served
FIRST, SECOND = "A1", "B-2"  # serial numbers; a "-" stands for "/" in systemd's own escaping of names
STOPPED, KILLED = "stopped", "killed"


class Context:
    """What the steps share."""

    def __init__(self, machine, boards, debs, later, directory):
        self.machine = machine
        self.board = boards[FIRST]
        self.second = boards[SECOND]
        self.debs = debs
        self.later = later
        self.directory = pathlib.Path(directory)
        self.recordings = []  # [id, how it ended], in their order

    def run(self, script, timeout=30):
        return self.machine.run(script, timeout).strip()

    def status(self, options=""):
        # Who asks gives up after ten seconds, in which a slow machine may not have started the daemon.
        status = json.loads(self.machine.wait_until(f"buscap status --json {options}", "it answers"))
        check_counts(status)
        return status

    def show(self, *names, unit="buscapd.service"):
        """Properties of a unit, as texts."""
        text = self.run(f"systemctl show {unit} " + " ".join(f"-p {name}" for name in names))
        properties = dict(line.split("=", 1) for line in text.splitlines())
        return [properties[name] for name in names]

    def pid(self, unit="buscapd.service"):
        return int(self.show("MainPID", unit=unit)[0])

    def configure(self, text):
        self.run(f"cat >{CONF} <<'END'\n{text}\nEND")

    def is_recording(self, behind=0, timeout=60, options=""):
        """Waits until it records and more records than `behind` are in this recording. Returns the status."""
        end = time.monotonic() + timeout * SLOWEST
        while True:
            status = self.status(options)
            if status["state"] == "recording" and status["recording"]["records"] > behind:
                return status
            assert time.monotonic() < end, f"no records within {timeout * SLOWEST} s: {status}"
            time.sleep(0.2)

    def next_recording(self, how_it_ended):
        """A new recording has followed the last, which ended so. Returns the status."""
        before = self.recordings[-1]
        before[1] = how_it_ended
        status = self.is_recording()
        assert status["recording"]["id"] != before[0], f"the recording is still {before[0]}"
        self.recordings.append([status["recording"]["id"], None])
        return status

    def partial(self, recording=""):
        return self.run(f"find {SPOOL} -name '{recording}*.partial'")


def the_machine_boots(c):
    c.machine.boot()


def the_packages_install_without_a_network(c):
    names = " ".join(f"/mnt/{path.name}" for path in c.debs.values())
    c.run(f"dpkg -i {names}", timeout=150)
    equal(c.run("systemctl is-active buscapd.socket buscapd.service || true").split(), ["active", "inactive"])
    equal(c.run("stat -c '%U:%G %a' /run/buscapd/buscapd.sock /etc/buscapd/buscapd.conf").splitlines(),
          ["root:buscap 660", "root:root 644"])
    equal(c.run("getent passwd buscapd").split(":")[5:], [SPOOL, "/usr/sbin/nologin"])
    equal(c.run("systemctl --failed --no-legend"), "")
    equal(c.show("Type", "User", "Group", "UMask", "StateDirectory", "RuntimeDirectory", "RuntimeDirectoryPreserve",
                 "LimitCORE", "NotifyAccess"),
          ["notify", "buscapd", "buscap", "0027", "buscapd", "buscapd", "yes", "0", "main"])


def who_asks_for_the_status_starts_the_service(c):
    """By the socket; no board is there. Those of the group may, others may not."""
    c.run("useradd -M -G buscap member; useradd -M stranger")
    node = c.run("stat -c %i /run/buscapd/buscapd.sock")
    asked = "setpriv --reuid {0} --regid {0} --init-groups buscap status --json"
    equal(c.machine.try_run(asked.format("stranger")).code, 6, "a stranger's exit code")
    equal(c.machine.try_run("systemctl is-active -q buscapd.service").code, 3, "it isn't running")
    status = json.loads(c.machine.wait_until(asked.format("member"), "it answers", 60))
    equal(status["state"], "waiting")
    equal(status["source"]["board"]["state"], "detached")
    equal(c.run("systemctl is-active buscapd.service"), "active")
    c.run("systemctl stop buscapd.service", timeout=60)
    equal(c.run("stat -c '%i %U:%G %a' /run/buscapd/buscapd.sock"), f"{node} root:buscap 660", "the socket stays")
    equal(c.run("systemctl is-active buscapd.socket buscapd.service || true").split(), ["active", "inactive"])
    equal(c.run(f"stat -c '%U:%G %a' {SPOOL} && ls {SPOOL}"), "buscapd:buscap 750", "no board, no file")


def a_wrong_configuration_is_given_up_and_mended_as_install_md_says(c):
    """One question is enough: it waits at the socket, for which systemd starts the service again and again."""
    # However slow this machine is, the starts count as near to one another.
    c.run(f"mkdir -p {DROP_INS}; printf '[Unit]\\nStartLimitIntervalSec=10min\\n' >{DROP_INS}/slow.conf; "
          "systemctl daemon-reload")
    c.configure("[rotation]\nduration = soon")
    done = c.machine.try_run("buscap status", 120)
    equal(done.code, 6, f"who asks is told: {done.err}")
    c.machine.wait_until("systemctl is-failed -q buscapd.socket && systemctl is-failed -q buscapd.service",
                         "systemd gives up", 120)
    equal(c.show("Result", unit="buscapd.socket"), ["service-start-limit-hit"])
    equal(c.show("ExecMainStatus", "NRestarts"), ["2", "0"])
    c.machine.wait_until("journalctl -b -u buscapd.service | grep -q 'machine.conf:2'", "it names the line")
    c.run(f"rm {CONF} {DROP_INS}/slow.conf; systemctl daemon-reload")
    c.run("systemctl reset-failed buscapd.service buscapd.socket; systemctl start buscapd.socket buscapd.service",
          timeout=60)
    equal(c.run("systemctl is-active buscapd.socket buscapd.service").split(), ["active", "active"])
    equal(c.status()["state"], "waiting")
    c.run("systemctl stop buscapd.service", timeout=60)


def plugging_the_board_starts_the_service(c):
    c.board.tell("plug")
    c.machine.wait_until("systemctl is-active -q buscapd.service", "the service starts", 60)
    equal(c.run("stat -L -c '%U:%G %a %F' /dev/buscap/A1"), "root:buscap 660 character special file")
    assert c.run("readlink -f /dev/buscap/A1").startswith("/dev/bus/usb/"), "where the link leads"
    status = c.is_recording()
    equal(status["source"]["board"]["serial"], "A1")
    c.recordings.append([status["recording"]["id"], None])


def it_records_40_mb_a_second_and_all_that_the_board_sent(c):
    before = c.board.sent()["captured"]
    c.board.tell(f"rate {FAST}", f"send {FAST_SAMPLES}")
    end = time.monotonic() + 120 * SLOWEST
    while True:
        time.sleep(0.3)
        sent_now = c.board.sent()
        if sent_now["captured"] >= before + FAST_SAMPLES and sent_now["samples"] == sent_now["captured"]:
            status = c.status()
            if status["counts"]["received"] == sent_now["samples"]:
                break
        assert time.monotonic() < end, f"{sent_now}, {c.status()['counts']}"
    counts = status["counts"]
    equal((counts["gaps"], counts["board_lost"], counts["skipped_bytes"]), (0, 0, 0), f"{counts}")
    equal(sum(counts["dropped"].values()), counts["dropped"]["invalid"], f"{counts}")


def a_loss_that_the_board_tells_is_on_record(c):
    c.board.tell(f"rate {SLOW}", "lose 12345", "send all")
    end = time.monotonic() + 30 * SLOWEST
    while c.status()["counts"]["board_lost"] != 12345:
        assert time.monotonic() < end, c.status()["counts"]
        time.sleep(0.2)
    equal(c.status()["counts"]["gaps"], 1)


def unplugged_and_plugged_in_again_it_is_the_same_recording(c):
    pid, records = c.pid(), c.is_recording()["recording"]["records"]
    c.board.tell("unplug")
    c.machine.wait_until("buscap status --json | grep -q '\"state\":\"waiting\"' && test ! -e /dev/buscap/A1",
                         "the board is gone", 60)
    equal(c.run("systemctl is-active buscapd.service"), "active")
    c.board.tell("plug")
    status = c.is_recording(records + SLOW)
    equal((status["recording"]["id"], c.pid()), (c.recordings[-1][0], pid), "recording and process")
    c.written_before_the_unplug = records
    equal(status["counts"]["gaps"], 2)
    equal(status["source"]["board"]["unplugs"], 1)


def reload_changes_the_rotation_and_a_mistake_changes_nothing(c):
    pid = c.pid()
    sealed = int(c.run(f"ls {SPOOL} | grep -c 'lz4$' || true"))
    c.configure("[rotation]\nduration = 1s")
    c.run("systemctl reload buscapd.service", timeout=60)
    c.machine.wait_until(f"test $(ls {SPOOL} | grep -c 'lz4$') -ge {sealed + 2}", "segments are sealed", 60)
    c.configure("[rotation]\nduration = soon")
    assert c.machine.try_run("systemctl reload buscapd.service").code != 0, "the reload fails"
    c.machine.wait_until("journalctl -b -u buscapd.service | grep -q 'machine.conf:2'", "it names the line")
    equal((c.run("systemctl is-active buscapd.service"), c.pid()), ("active", pid))


def its_sandbox_holds_against_what_is_tried_in_it(c):
    """By a program that the daemon starts in its own sandbox; the same outside of it shows that it tries rightly."""
    c.run(sandbox.PREPARE)
    c.configure("[rotation]\nduration = 1s\n[output]\nsealed_command = /usr/local/lib/machine/probe")
    c.run("systemctl reload buscapd.service", timeout=60)
    c.machine.wait_until(f"test -e {SPOOL}/probe", "the probe has run", 60)
    found = sandbox.read(c.run(f"cat {SPOOL}/probe; rm {SPOOL}/probe"))
    equal(c.run("ls /tmp | grep probe || true"), "", "what it wrote to /tmp is not in the machine's")
    free = sandbox.read(c.run("/usr/local/lib/machine/probe here"))
    sandbox.check(found, free)
    c.configure("")
    c.run("systemctl reload buscapd.service", timeout=60)


def killed_it_is_started_again_and_what_it_wrote_is_recovered(c):
    equal(c.show("WatchdogUSec", "Restart", "RestartUSec", "NRestarts"), ["30s", "on-failure", "5s", "0"])
    # Only so that the run doesn't wait for them.
    c.run(f"mkdir -p {DROP_INS}; printf '[Service]\\nWatchdogSec=15s\\nRestartSec=500ms\\n' >{DROP_INS}/quick.conf; "
          "systemctl daemon-reload")
    recording, pid = c.recordings[-1][0], c.pid()
    assert c.partial(recording), "a segment is open"
    written = c.status()["counts"]["written"]
    c.run(f"kill -9 {pid}")
    c.machine.wait_until(f"p=$(systemctl show -P MainPID buscapd.service); test $p != 0 && test $p != {pid}",
                         "it is started again", 60)
    status = c.next_recording(KILLED)
    equal(c.partial(recording), "", "what is torn")
    equal(c.show("NRestarts"), ["1"])
    c.written_before_the_kill = written
    assert status["counts"]["received"] < written, "it counts from 0"


def one_that_hangs_is_ended_by_the_watchdog_and_started_again(c):
    equal(c.show("WatchdogUSec"), ["15s"])
    recording, pid = c.recordings[-1][0], c.pid()
    c.run(f"kill -STOP {pid}")
    c.machine.wait_until(f"p=$(systemctl show -P MainPID buscapd.service); test $p != 0 && test $p != {pid}",
                         "it is started again", 60)
    c.run(f"rm {DROP_INS}/quick.conf; systemctl daemon-reload")
    c.machine.wait_until("journalctl -b -u buscapd.service | grep -q 'Watchdog timeout'", "the journal says why")
    c.next_recording(KILLED)
    equal(c.partial(recording), "", "what is torn")
    equal(c.show("NRestarts"), ["2"])


def an_upgrade_seals_and_the_next_recording_goes_on(c):
    recording, pid = c.recordings[-1][0], c.pid()
    c.run("echo '# mine' >>/etc/buscapd/buscapd.conf")
    names = " ".join(f"/mnt/{path.name}" for path in c.later.values())
    c.run(f"dpkg -i {names}", timeout=150)
    equal(c.run("dpkg-query -W -f '${Version} ${Status}\\n' buscapd buscap-tools").splitlines(),
          [f"{LATER} install ok installed"] * 2)
    c.next_recording(STOPPED)
    assert c.pid() != pid, "it runs the new program"
    equal(c.partial(recording), "", "what is torn")
    equal(c.run("tail -n 1 /etc/buscapd/buscapd.conf"), "# mine", "the configuration that was changed")
    equal(c.run("systemctl is-active buscapd.socket buscapd.service").split(), ["active", "active"])
    equal(c.show("Result"), ["success"])


def with_the_drop_in_metrics_are_served_to_this_machine_and_nothing_else(c):
    c.configure(f"[socket]\nmetrics_listen = 127.0.0.1:{PORT}\n[rotation]\nduration = 1s\n"
                "[output]\nsealed_command = /usr/local/lib/machine/probe")
    c.run(f"rm -f {SPOOL}/probe; ln -sf /usr/share/buscapd/metrics.conf {DROP_INS}/; systemctl daemon-reload; "
          "systemctl restart buscapd.service", timeout=60)
    c.next_recording(STOPPED)
    get = f"exec 3<>/dev/tcp/127.0.0.1/{PORT}; printf \"GET $1 HTTP/1.0\\r\\n\\r\\n\" >&3; cat <&3"
    answer = c.run(f"bash -c '{get}' get /metrics")
    assert " 200 " in answer.splitlines()[0] and "buscap" in answer, answer[:500]
    for path in ("/v1/status", "/"):
        answer = c.run(f"bash -c '{get}' get {path}")
        assert " 404 " in answer.splitlines()[0], answer[:500]
    listening = c.run("cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | "
                      "awk '$4 == \"0A\" || $4 == \"07\" { print $2 }'")
    equal(listening, f"0100007F:{PORT:04X}", "all that is listened on")
    c.machine.wait_until(f"test -e {SPOOL}/probe", "the probe has run", 60)
    sandbox.check_network(sandbox.read(c.run(f"cat {SPOOL}/probe; rm {SPOOL}/probe")))
    c.configure("")
    c.run(f"systemctl reload buscapd.service; rm {DROP_INS}/metrics.conf; systemctl daemon-reload", timeout=60)


def with_the_other_drop_in_a_sealed_command_reaches_other_hosts(c):
    c.configure("[rotation]\nduration = 1s\n[output]\nsealed_command = /usr/local/lib/machine/probe")
    c.run(f"rm -f {SPOOL}/probe; ln -sf /usr/share/buscapd/network.conf {DROP_INS}/; systemctl daemon-reload; "
          "systemctl restart buscapd.service", timeout=60)
    c.next_recording(STOPPED)
    c.machine.wait_until(f"test -e {SPOOL}/probe", "the probe has run", 60)
    sandbox.check_whole_network(sandbox.read(c.run(f"cat {SPOOL}/probe; rm {SPOOL}/probe")))
    c.configure("")
    c.run(f"systemctl reload buscapd.service; rm {DROP_INS}/network.conf; systemctl daemon-reload", timeout=60)


def a_second_board_has_a_service_of_its_own(c):
    unit = f"'{c.run(f'systemd-escape --template=buscapd@.service {SECOND}')}'"
    socket = f"--socket /run/buscapd/{SECOND}.sock"
    c.run("printf '[source]\\nsource = usb\\n[output]\\nlabel = second\\n' "
          f">/etc/buscapd/boards/{SECOND}.conf")
    c.second.tell("plug")
    c.machine.wait_until(f"systemctl is-active -q {unit}", "the second service starts", 60)
    status = c.is_recording(options=socket)
    equal(status["source"]["board"]["serial"], SECOND)
    assert status["recording"]["path"].startswith(f"{SPOOL}/{SECOND}/"), status["recording"]
    equal(c.is_recording()["recording"]["id"], c.recordings[-1][0], "the first goes on")
    equal(c.run("readlink -f /dev/buscap/A1") != c.run(f"readlink -f /dev/buscap/{SECOND}"), True)
    c.run(f"systemctl stop {unit}", timeout=60)
    equal(c.run("systemctl is-active buscapd.service"), "active")
    equal(c.partial("*second"), "", "what is torn")


def stopping_the_service_seals_and_lost_samples_are_no_failure(c):
    lost = c.status()["counts"]["board_lost"] + 54321
    c.board.tell("lose 54321")
    c.machine.wait_until(f"buscap status --json | grep -q '\"board_lost\":{lost}\\b'", "it is counted")
    c.run("systemctl stop buscapd.service", timeout=60)
    c.recordings[-1][1] = STOPPED
    equal(c.partial(), "", "what is torn")
    equal(c.show("Result", "ExecMainStatus", "ActiveState"), ["success", "4", "inactive"])


def removed_and_purged_the_package_leaves_the_recordings(c):
    listing = f"find {SPOOL} -printf '%p %u:%g %m %s %T@\\n' | sort"  # what is in them is looked at in the end
    before = c.run(listing)
    assert len(before.splitlines()) > len(c.recordings), before
    c.run("dpkg -r buscapd", timeout=90)
    equal(c.run(listing), before, "recordings, once it is removed")
    equal(c.run("systemctl is-active buscapd.socket buscapd.service || true").split(), ["inactive"] * 2)
    equal(c.run("ls /etc/buscapd/buscapd.conf"), "/etc/buscapd/buscapd.conf")
    c.run("dpkg -P buscapd buscap-tools", timeout=90)
    equal(c.run(listing), before, "recordings, once it is purged")
    equal(c.run("ls -d /etc/buscapd/buscapd.conf /dev/buscap/* $(systemctl show -P UnitPath | tr ' ' '\\n' | "
                "sed 's,$,/buscapd*,') 2>/dev/null | grep -v buscapd.service.d || true"), 
          f"/dev/buscap/{FIRST}\n/dev/buscap/{SECOND}")
    equal(c.run(f"cat /etc/buscapd/boards/{SECOND}.conf | wc -l"), "4", "what the user wrote")
    c.run("getent passwd buscapd")


def what_was_recorded_is_what_the_boards_sent(c):
    c.run(f"cp -a {SPOOL} /mnt/out", timeout=120)
    c.machine.power_off()
    out = c.machine.fetch("out")
    frames = sent.read_streams(sorted((c.directory / "A1").glob("kept.*")))
    recordings = sent.read_recordings(out)
    equal([recording.id for recording in recordings], [name for name, _ in c.recordings], "the recordings")
    at, before = 0, None
    for recording, (name, how) in zip(recordings, c.recordings):
        equal(recording.header["continues"], before and before[0], f"{name}: it continues")
        equal(recording.header["board"], {"serial": "A1", "firmware": "bench-1"})
        found = sent.compare(recording, frames, at)
        if before is None or before[1] == STOPPED:
            equal(found.first, at, f"{name}: its first frame; what was sent after the last was recorded")
        if how == STOPPED:
            assert frames[found.end - 1].is_last and not found.is_cut, f"{name}: it ends before the board had"
        if before is None:
            (unplugged,) = [place for place, cause, _, _ in recording.gaps if cause == "unplugged"]
            assert unplugged >= c.written_before_the_unplug, f"{name}: unplugged at record {unplugged}"
            assert len(recording) >= c.written_before_the_kill, f"{name}: {len(recording)} records"
        at, before = found.end, (name, how)
    equal(at, len(frames), "frames sent, and recorded to the last")
    frames = sent.read_streams(sorted((c.directory / SECOND).glob("kept.*")))
    (second,) = sent.read_recordings(out / SECOND)
    found = sent.compare(second, frames, 0)
    equal((found.first, found.end, found.is_cut, second.header["board"]["serial"]), (0, len(frames), False, SECOND))


STEPS = [
    the_machine_boots, the_packages_install_without_a_network, who_asks_for_the_status_starts_the_service,
    a_wrong_configuration_is_given_up_and_mended_as_install_md_says,
    plugging_the_board_starts_the_service, it_records_40_mb_a_second_and_all_that_the_board_sent,
    a_loss_that_the_board_tells_is_on_record, unplugged_and_plugged_in_again_it_is_the_same_recording,
    reload_changes_the_rotation_and_a_mistake_changes_nothing, its_sandbox_holds_against_what_is_tried_in_it,
    killed_it_is_started_again_and_what_it_wrote_is_recovered,
    one_that_hangs_is_ended_by_the_watchdog_and_started_again, an_upgrade_seals_and_the_next_recording_goes_on,
    with_the_drop_in_metrics_are_served_to_this_machine_and_nothing_else,
    with_the_other_drop_in_a_sealed_command_reaches_other_hosts, a_second_board_has_a_service_of_its_own,
    stopping_the_service_seals_and_lost_samples_are_no_failure, removed_and_purged_the_package_leaves_the_recordings,
    what_was_recorded_is_what_the_boards_sent,
]
