"""The steps of a run, in order. Each is a sentence that is true or fails."""

import json
import pathlib
import re
import time

import gadget
import sandbox
import sent
from harness import check_counts, equal
from machine import TIME_FACTOR
from reference import CHUNK_RECORDS

LATER = "9.0"  # version of the packages for the upgrade
FAST = 5000000  # samples per second: 40 MB
FAST_SAMPLES = 20000000
SLOW = 100000
SPOOL = "/var/lib/buscapd"
CONF = "/etc/buscapd/conf.d/machine.conf"
ALERTS = "/etc/systemd/system/buscap-alerts.service"
DROP_INS = "/etc/systemd/system/buscapd.service.d"
PORT = 9477  # of /metrics
FIRST, SECOND = "A1", "B-2"  # serial numbers; systemd escapes "/" as "-", so one has a "-"
STOPPED, KILLED = "stopped", "killed"
# In docs/messages.md.
ENDED, BOARD_GONE, BOARD_BACK = ("fd153248702049d2809fdaa4deed9625", "254e27a29ff64cdaadbc9764bea1d7fa",
                                 "6dace0eb007a40d6a6ed8985e984383a")


class Context:
    """State shared by the steps."""

    def __init__(self, machine, boards, debs, later, directory):
        self.machine = machine
        self.board = boards[FIRST]
        self.second = boards[SECOND]
        self.debs = debs
        self.later = later
        self.directory = pathlib.Path(directory)
        self.recordings = []  # [id, how it ended], in order

    def run(self, script, timeout=30):
        return self.machine.run(script, timeout).strip()

    def status(self, options=""):
        # The client gives up after ten seconds; a slow machine may need longer to start the daemon.
        status = json.loads(self.machine.wait_until(f"buscap status --json {options}", "an answer"))
        check_counts(status)
        return status

    def show(self, *names, unit="buscapd.service"):
        """Returns properties of a unit as strings."""
        text = self.run(f"systemctl show {unit} " + " ".join(f"-p {name}" for name in names))
        properties = dict(line.split("=", 1) for line in text.splitlines())
        return [properties[name] for name in names]

    def pid(self, unit="buscapd.service"):
        return int(self.show("MainPID", unit=unit)[0])

    def alert(self, event, member=""):
        """Waits until the unit for alerts has passed on an event."""
        self.machine.wait_until(f"grep -q '\"event\":\"{event}\".*{member}' /run/alerts", f"the alert {event}", 60)

    def journal(self, *fields):
        """Returns the messages of the service with these fields."""
        return self.run(f"journalctl -q -b -u buscapd.service -o cat {' '.join(fields)}").splitlines()

    def alerts_are_on(self):
        """Waits until the unit for alerts gets this daemon's events."""
        self.machine.wait_until("buscap status --json | grep -q '\"streams\":{\"events\":1,'", "the unit for alerts", 60)

    def configure(self, text):
        self.run(f"cat >{CONF} <<'END'\n{text}\nEND")

    def is_recording(self, more_than=0, timeout=60, options=""):
        """Waits until it is recording and this recording has more than `more_than` records. Returns the status."""
        end = time.monotonic() + timeout * TIME_FACTOR
        while True:
            status = self.status(options)
            if status["state"] == "recording" and status["recording"]["records"] > more_than:
                return status
            assert time.monotonic() < end, f"no records within {timeout * TIME_FACTOR} s: {status}"
            time.sleep(0.2)

    def next_recording(self, how_it_ended):
        """Waits for a new recording after the last one, which ended as given. Returns the status."""
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
    assert f"{ENDED} buscapd: " in c.run("journalctl --list-catalog"), "the catalog of messages"
    equal(c.show("Type", "User", "Group", "UMask", "StateDirectory", "RuntimeDirectory", "RuntimeDirectoryPreserve",
                 "LimitCORE", "NotifyAccess"),
          ["notify", "buscapd", "buscap", "0027", "buscapd", "buscapd", "yes", "0", "main"])


def a_status_request_starts_the_service(c):
    """Through the socket, without a board. Members of the group have access, others do not."""
    c.run("useradd -M -G buscap member; useradd -M stranger")
    node = c.run("stat -c %i /run/buscapd/buscapd.sock")
    asked = "setpriv --reuid {0} --regid {0} --init-groups buscap status --json"
    equal(c.machine.try_run(asked.format("stranger")).code, 6, "a stranger's exit code")
    equal(c.machine.try_run("systemctl is-active -q buscapd.service").code, 3, "the service isn't running")
    status = json.loads(c.machine.wait_until(asked.format("member"), "an answer", 60))
    equal(status["state"], "waiting")
    equal(status["source"]["board"]["state"], "detached")
    equal(c.run("systemctl is-active buscapd.service"), "active")
    c.run("systemctl stop buscapd.service", timeout=60)
    equal(c.run("stat -c '%i %U:%G %a' /run/buscapd/buscapd.sock"), f"{node} root:buscap 660", "the socket stays")
    equal(c.run("systemctl is-active buscapd.socket buscapd.service || true").split(), ["active", "inactive"])
    equal(c.run(f"stat -c '%U:%G %a' {SPOOL} && ls {SPOOL}"), "buscapd:buscap 750", "no board, no file")


def a_wrong_configuration_stops_the_service_until_fixed_as_in_install_md(c):
    """One request is enough: it stays queued at the socket, so systemd starts the service again and again."""
    # Even on a slow machine, the starts must count as close together.
    c.run(f"mkdir -p {DROP_INS}; printf '[Unit]\\nStartLimitIntervalSec=10min\\n' >{DROP_INS}/slow.conf; "
          "systemctl daemon-reload")
    c.configure("[rotation]\nduration = soon")
    done = c.machine.try_run("buscap status", 120)
    equal(done.code, 6, f"exit code of a client: {done.err}")
    c.machine.wait_until("systemctl is-failed -q buscapd.socket && systemctl is-failed -q buscapd.service",
                         "systemd gives up", 120)
    equal(c.show("Result", unit="buscapd.socket"), ["service-start-limit-hit"])
    equal(c.show("ExecMainStatus", "NRestarts"), ["2", "0"])
    c.machine.wait_until("journalctl -b -u buscapd.service | grep -q 'machine.conf:2'", "the log names the line")
    c.run(f"rm {CONF} {DROP_INS}/slow.conf; systemctl daemon-reload")
    c.run("systemctl reset-failed buscapd.service buscapd.socket; systemctl start buscapd.socket buscapd.service",
          timeout=60)
    equal(c.run("systemctl is-active buscapd.socket buscapd.service").split(), ["active", "active"])
    equal(c.status()["state"], "waiting")
    c.run("systemctl stop buscapd.service", timeout=60)


def plugging_the_board_starts_the_service(c):
    c.configure("[pipeline]\nbuffer = 256MiB")  # a virtual processor may stand still for seconds
    c.board.command("plug")
    c.machine.wait_until("systemctl is-active -q buscapd.service", "the service starts", 60)
    equal(c.run("stat -L -c '%U:%G %a %F' /dev/buscap/A1"), "root:buscap 660 character special file")
    assert c.run("readlink -f /dev/buscap/A1").startswith("/dev/bus/usb/"), "the link's target"
    assert " A1 " in c.run("buscapd --list-boards"), "the board is listed"
    denied = c.machine.try_run("setpriv --reuid stranger --regid stranger --init-groups buscapd --list-boards")
    assert denied.code == 5 and "board, but permission denied" in denied.out, denied
    status = c.is_recording()
    equal(status["source"]["board"]["serial"], "A1")
    c.recordings.append([status["recording"]["id"], None])


def it_records_40_mb_per_second_without_loss(c):
    before = c.board.sent()["captured"]
    c.board.command(f"rate {FAST}", f"send {FAST_SAMPLES}")
    end = time.monotonic() + 120 * TIME_FACTOR
    while True:
        time.sleep(0.3)
        sent_now = c.board.sent()
        if sent_now["captured"] >= before + FAST_SAMPLES and sent_now["samples"] == sent_now["captured"]:
            status = c.status()
            if status["counts"]["received"] == sent_now["samples"]:
                break
        assert time.monotonic() < end, f"{sent_now}, {c.status()['counts']}"
    counts = status["counts"]
    equal((counts["gaps"], counts["lost"]["board"], counts["skipped_bytes"]), (0, 0, 0), f"{counts}")
    equal(sum(counts["dropped"].values()), counts["dropped"]["invalid"], f"{counts}")


def a_unit_passes_events_to_a_program_as_in_install_md(c):
    text = (pathlib.Path(__file__).parents[2] / "docs/install.md").read_text()
    unit = re.search(r"^    \[Unit\]\n(    .*\n)+", text[text.index("## Alerts"):], re.M)[0]
    unit = re.sub("^    ", "", unit, flags=re.M).replace("/usr/local/bin/alert", "tee -a /run/alerts")
    c.run(f"cat >{ALERTS} <<'END'\n{unit}END\nsystemctl daemon-reload; systemctl enable --now buscap-alerts.service")
    c.alerts_are_on()


def a_loss_reported_by_the_board_is_recorded(c):
    c.board.command(f"rate {SLOW}", "lose 12345", "send all")
    end = time.monotonic() + 30 * TIME_FACTOR
    while c.status()["counts"]["lost"]["board"] != 12345:
        assert time.monotonic() < end, c.status()["counts"]
        time.sleep(0.2)
    equal(c.status()["counts"]["gaps"], 1)
    c.alert("gap", '"lost":12345')


def a_replugged_board_continues_the_recording(c):
    pid, records = c.pid(), c.is_recording()["recording"]["records"]
    c.board.command("unplug")
    c.machine.wait_until("buscap status --json | grep -q '\"state\":\"waiting\"' && test ! -e /dev/buscap/A1",
                         "the board is gone", 60)
    equal(c.run("systemctl is-active buscapd.service"), "active")
    c.board.command("plug")
    status = c.is_recording(records + SLOW)
    equal((status["recording"]["id"], c.pid()), (c.recordings[-1][0], pid), "recording and process")
    c.written_before_the_unplug = records
    equal(status["counts"]["gaps"], 2)
    equal(status["source"]["board"]["unplugs"], 1)
    c.alert("board", '"unplugs":1')
    for number, words in ((BOARD_GONE, ": unplugged; "), (BOARD_BACK, ": back after ")):
        messages = c.journal(f"MESSAGE_ID={number}", f"RECORDING={c.recordings[-1][0]}")
        assert messages and words in messages[-1], messages


def a_reload_changes_the_rotation_and_an_invalid_one_changes_nothing(c):
    pid = c.pid()
    sealed = int(c.run(f"ls {SPOOL} | grep -c 'lz4$' || true"))
    c.configure("[rotation]\nduration = 1s")
    c.run("systemctl reload buscapd.service", timeout=60)
    c.machine.wait_until(f"test $(ls {SPOOL} | grep -c 'lz4$') -ge {sealed + 2}", "segments are sealed", 60)
    c.configure("[rotation]\nduration = soon")
    assert c.machine.try_run("systemctl reload buscapd.service").code != 0, "the reload fails"
    c.machine.wait_until("journalctl -b -u buscapd.service | grep -q 'machine.conf:2'", "the log names the line")
    equal((c.run("systemctl is-active buscapd.service"), c.pid()), ("active", pid))


def the_sandbox_refuses_everything_not_allowed(c):
    """A program started by the daemon runs in the daemon's sandbox. The same program outside it proves that its
    attempts are valid."""
    c.run(sandbox.PREPARE)
    c.configure("[rotation]\nduration = 1s\n[output]\nsealed_command = /usr/local/lib/machine/probe")
    c.run("systemctl reload buscapd.service", timeout=60)
    c.machine.wait_until(f"test -e {SPOOL}/probe", "the probe has run", 60)
    found = sandbox.read(c.run(f"cat {SPOOL}/probe; rm {SPOOL}/probe"))
    equal(c.run("ls /tmp | grep probe || true"), "", "the private /tmp")
    free = sandbox.read(c.run("/usr/local/lib/machine/probe here"))
    sandbox.check(found, free)
    c.configure("")
    c.run("systemctl reload buscapd.service", timeout=60)


def a_sealed_command_killed_for_its_memory_does_not_end_the_service(c):
    recording, pid = c.recordings[-1][0], c.pid()
    c.run("printf '#!/usr/bin/perl\\nmy $x = \"x\" x 1_000_000_000;\\n' >/usr/local/lib/machine/hog; "
          "chmod 755 /usr/local/lib/machine/hog; "
          "systemctl set-property --runtime buscapd.service MemoryMax=256M MemorySwapMax=0")
    c.configure("[rotation]\nduration = 1s\n[output]\nsealed_command = /usr/local/lib/machine/hog")
    c.run("systemctl reload buscapd.service", timeout=60)
    # systemd logs this and then applies the policy.
    c.machine.wait_until("journalctl -b -u buscapd.service | grep -q 'killed by the OOM killer'", "a command is killed", 60)
    c.configure("")
    c.run("systemctl reload buscapd.service; "
          "systemctl set-property --runtime buscapd.service MemoryMax= MemorySwapMax=", timeout=60)
    status = c.is_recording()
    equal((c.show("ActiveState", "OOMPolicy", "NRestarts"), c.pid(), status["recording"]["id"]),
          (["active", "continue", "0"], pid, recording))


def after_a_kill_the_service_restarts_and_recovers_its_files(c):
    equal(c.show("WatchdogUSec", "Restart", "RestartUSec", "NRestarts"), ["30s", "on-failure", "5s", "0"])
    # Only to shorten the run; but the end takes longer than the alerts wait, which then find the service stopping.
    c.run(f"mkdir -p {DROP_INS}; "
          f"printf '[Service]\\nWatchdogSec=15s\\nRestartSec=500ms\\nExecStopPost=sleep 5\\n' >{DROP_INS}/quick.conf; "
          "systemctl daemon-reload")
    recording, pid = c.recordings[-1][0], c.pid()
    assert c.partial(recording), "a segment is open"
    written = c.status()["counts"]["written"]
    c.run(f"kill -9 {pid}")
    c.machine.wait_until(f"p=$(systemctl show -P MainPID buscapd.service); test $p != 0 && test $p != {pid}",
                         "the restart", 60)
    status = c.next_recording(KILLED)
    equal(c.partial(recording), "", "torn segments")
    equal(c.show("NRestarts"), ["1"])
    c.written_before_the_kill = written
    assert status["counts"]["received"] < written, "the counts start at 0"
    c.alerts_are_on()


def the_watchdog_restarts_a_service_that_hangs(c):
    equal(c.show("WatchdogUSec"), ["15s"])
    recording, pid = c.recordings[-1][0], c.pid()
    c.run(f"kill -STOP {pid}")
    c.machine.wait_until(f"p=$(systemctl show -P MainPID buscapd.service); test $p != 0 && test $p != {pid}",
                         "the restart", 60)
    c.run(f"rm {DROP_INS}/quick.conf; systemctl daemon-reload")
    c.machine.wait_until("journalctl -b -u buscapd.service | grep -q 'Watchdog timeout'", "the journal has the reason")
    c.next_recording(KILLED)
    equal(c.partial(recording), "", "torn segments")
    equal(c.show("NRestarts"), ["2"])
    c.alerts_are_on()
    c.run(f"systemctl disable --now buscap-alerts.service; rm {ALERTS}; systemctl daemon-reload", timeout=60)


def an_upgrade_seals_the_recording_and_starts_the_next(c):
    recording, pid = c.recordings[-1][0], c.pid()
    c.run("echo '# mine' >>/etc/buscapd/buscapd.conf")
    names = " ".join(f"/mnt/{path.name}" for path in c.later.values())
    c.run(f"dpkg -i {names}", timeout=150)
    equal(c.run("dpkg-query -W -f '${Version} ${Status}\\n' buscapd buscap-tools").splitlines(),
          [f"{LATER} install ok installed"] * 2)
    c.next_recording(STOPPED)
    assert c.pid() != pid, "it runs the new program"
    equal(c.partial(recording), "", "torn segments")
    equal(c.run("tail -n 1 /etc/buscapd/buscapd.conf"), "# mine", "the changed configuration")
    equal(c.run("systemctl is-active buscapd.socket buscapd.service").split(), ["active", "active"])
    equal(c.show("Result"), ["success"])


def the_metrics_drop_in_allows_only_loopback(c):
    c.configure(f"[socket]\nmetrics_listen = 127.0.0.1:{PORT}\n[rotation]\nduration = 1s\n"
                "[output]\nsealed_command = /usr/local/lib/machine/probe")
    c.run(f"systemctl stop buscapd.service; rm -f {SPOOL}/probe; ln -sf /usr/share/buscapd/metrics.conf {DROP_INS}/; "
          "systemctl daemon-reload; systemctl start buscapd.service", timeout=60)
    c.next_recording(STOPPED)
    get = f"exec 3<>/dev/tcp/127.0.0.1/{PORT}; printf \"GET $1 HTTP/1.0\\r\\n\\r\\n\" >&3; cat <&3"
    answer = c.run(f"bash -c '{get}' get /metrics")
    assert " 200 " in answer.splitlines()[0] and "buscap" in answer, answer[:500]
    for path in ("/v1/status", "/"):
        answer = c.run(f"bash -c '{get}' get {path}")
        assert " 404 " in answer.splitlines()[0], answer[:500]
    listening = c.run("cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | "
                      "awk '$4 == \"0A\" || $4 == \"07\" { print $2 }'")
    equal(listening, f"0100007F:{PORT:04X}", "listening sockets")
    c.machine.wait_until(f"test -e {SPOOL}/probe", "the probe has run", 60)
    sandbox.check_network(sandbox.read(c.run(f"cat {SPOOL}/probe; rm {SPOOL}/probe")))
    c.configure("")
    c.run(f"systemctl reload buscapd.service; rm {DROP_INS}/metrics.conf; systemctl daemon-reload", timeout=60)


def the_network_drop_in_lets_a_sealed_command_reach_other_hosts(c):
    c.configure("[rotation]\nduration = 1s\n[output]\nsealed_command = /usr/local/lib/machine/probe")
    # The commands of the stopped daemon write there, too.
    c.run(f"systemctl stop buscapd.service; rm -f {SPOOL}/probe; ln -sf /usr/share/buscapd/network.conf {DROP_INS}/; "
          "systemctl daemon-reload; systemctl start buscapd.service", timeout=60)
    c.next_recording(STOPPED)
    c.machine.wait_until(f"test -e {SPOOL}/probe", "the probe has run", 60)
    sandbox.check_whole_network(sandbox.read(c.run(f"cat {SPOOL}/probe; rm {SPOOL}/probe")))
    c.configure("")
    c.run(f"systemctl reload buscapd.service; rm {DROP_INS}/network.conf; systemctl daemon-reload", timeout=60)


def a_second_board_has_its_own_service(c):
    unit = f"'{c.run(f'systemd-escape --template=buscapd@.service {SECOND}')}'"
    socket = f"--socket /run/buscapd/{SECOND}.sock"
    c.run("printf '[source]\\nsource = usb\\n[output]\\nlabel = second\\n' "
          f">/etc/buscapd/boards/{SECOND}.conf")
    c.second.command("plug")
    c.machine.wait_until(f"systemctl is-active -q {unit}", "the second service starts", 60)
    status = c.is_recording(options=socket)
    equal(status["source"]["board"]["serial"], SECOND)
    assert status["recording"]["path"].startswith(f"{SPOOL}/{SECOND}/"), status["recording"]
    equal(c.is_recording()["recording"]["id"], c.recordings[-1][0], "the first service continues")
    equal(c.run("readlink -f /dev/buscap/A1") != c.run(f"readlink -f /dev/buscap/{SECOND}"), True)
    c.run(f"systemctl stop {unit}", timeout=60)
    equal(c.run("systemctl is-active buscapd.service"), "active")
    equal(c.partial("*second"), "", "torn segments")


def hosts_are_asked_through_a_real_sshd(c):
    """Two names of this machine, a port that is closed, a key that is refused, and a directory that would be a command."""
    c.run(f"""mkdir -p -m 700 /root/.ssh; cd /root/.ssh
ssh-keygen -q -t ed25519 -N '' -f id_ed25519; cp id_ed25519.pub authorized_keys
cat >config <<'END'
Host *
    StrictHostKeyChecking accept-new
Host one two closed
    HostName 127.0.0.1
Host closed
    Port 1
END
mkdir -p /run/sshd; /usr/sbin/sshd -o ListenAddress=127.0.0.1 -o PidFile=/run/sshd.pid
cat >/run/hosts <<'END'
one
two {SPOOL}
closed
nobody@one
two $(touch${{IFS}}/run/touched)
END""", timeout=60)
    first = "--json --first 3 --type write 0-ffffffff"
    asked = c.machine.try_run(f"buscap find --hosts /run/hosts --timeout 5min {first}", 120)
    found, local = ([json.loads(line) for line in text.splitlines()]
                    for text in (asked.out, c.run(f"buscap find {first} {SPOOL}", 60)))
    equal(asked.code, 3, asked.err)
    equal([(one["recording"], one["number"]) for one in found], [(one["recording"], one["number"]) for one in local])
    assert {one["node"] for one in found} <= {"one", "two"}, found
    equal([line.split(": ")[1] for line in asked.err.splitlines()], ["closed", "nobody@one", "two"], asked.err)
    assert "Permission denied" in asked.err and "No such file" in asked.err, asked.err
    c.run("test ! -e /run/touched")
    asked = c.machine.try_run("buscap status --hosts /run/hosts --timeout 5min --json", 120)
    states = [json.loads(line) for line in asked.out.splitlines()]
    equal({(one["node"], one["state"]) for one in states}, {("one", "recording"), ("two", "recording")}, asked.err)
    c.run("kill $(cat /run/sshd.pid); rm -r /root/.ssh /run/hosts", timeout=60)


def stopping_the_service_seals_and_lost_samples_are_not_a_failure(c):
    lost = c.status()["counts"]["lost"]["board"] + 54321
    c.board.command("lose 54321")
    c.machine.wait_until(f"buscap status --json | grep -q '\"lost\":.*\"board\":{lost}\\b'", "it is counted")
    c.run("systemctl stop buscapd.service", timeout=60)
    c.recordings[-1][1] = STOPPED
    equal(c.partial(), "", "torn segments")
    equal(c.show("Result", "ExecMainStatus", "ActiveState"), ["success", "4", "inactive"])
    # The last messages are the service's, too, although it may have ended before the journal read them.
    ended = c.journal(f"MESSAGE_ID={ENDED}", f"RECORDING={c.recordings[-1][0]}")
    assert len(ended) == 1 and " records written in " in ended[0], ended


def removing_and_purging_the_packages_keeps_the_recordings(c):
    listing = f"find {SPOOL} -printf '%p %u:%g %m %s %T@\\n' | sort"  # their contents are checked at the end
    before = c.run(listing)
    assert len(before.splitlines()) > len(c.recordings), before
    c.run("dpkg -r buscapd", timeout=90)
    equal(c.run(listing), before, "recordings after the removal")
    equal(c.run("systemctl is-active buscapd.socket buscapd.service || true").split(), ["inactive"] * 2)
    equal(c.run("ls /etc/buscapd/buscapd.conf"), "/etc/buscapd/buscapd.conf")
    c.run("dpkg -P buscapd buscap-tools", timeout=90)
    equal(c.run(listing), before, "recordings after the purge")
    equal(c.run("ls -d /etc/buscapd/buscapd.conf /dev/buscap/* $(systemctl show -P UnitPath | tr ' ' '\\n' | "
                "sed 's,$,/buscapd*,') 2>/dev/null | grep -v buscapd.service.d || true"), 
          f"/dev/buscap/{FIRST}\n/dev/buscap/{SECOND}")
    equal(c.run(f"cat /etc/buscapd/boards/{SECOND}.conf | wc -l"), "4", "the user's files")
    c.run("getent passwd buscapd")


def the_recordings_match_what_the_boards_sent(c):
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
        if how == KILLED:
            place, cause, lost, is_exact = recording.gaps.pop()
            equal((place, cause, is_exact), (len(recording), "crash", False), f"{name}: its last gap")
        found = sent.compare(recording, frames, at)
        if how == KILLED:
            # It counts the records of a torn last chunk, of which the file has only the header.
            following = sum(frame.samples for frame in frames[found.end - found.is_cut :])
            assert 0 <= lost <= min(CHUNK_RECORDS, following), (name, lost, following)
        if before is None or before[1] == STOPPED:
            equal(found.first, at, f"{name}: its first frame; what was sent after the last was recorded")
        if how == STOPPED:
            assert frames[found.end - 1].is_last and not found.is_cut, f"{name}: it ends before the board's last frame"
        if before is None:
            (unplugged,) = [place for place, cause, _, _ in recording.gaps if cause == "unplugged"]
            assert unplugged >= c.written_before_the_unplug, f"{name}: unplugged at record {unplugged}"
            assert len(recording) >= c.written_before_the_kill, f"{name}: {len(recording)} records"
        at, before = found.end, (name, how)
    equal(at, len(frames), "all frames sent are recorded")
    frames = sent.read_streams(sorted((c.directory / SECOND).glob("kept.*")))
    (second,) = sent.read_recordings(out / SECOND)
    found = sent.compare(second, frames, 0)
    equal((found.first, found.end, found.is_cut, second.header["board"]["serial"]), (0, len(frames), False, SECOND))
    gadget.compare_recordings(c, out)


STEPS = [
    the_machine_boots, the_packages_install_without_a_network, a_status_request_starts_the_service,
    a_wrong_configuration_stops_the_service_until_fixed_as_in_install_md,
    plugging_the_board_starts_the_service, it_records_40_mb_per_second_without_loss,
    a_unit_passes_events_to_a_program_as_in_install_md,
    a_loss_reported_by_the_board_is_recorded, a_replugged_board_continues_the_recording,
    a_reload_changes_the_rotation_and_an_invalid_one_changes_nothing, the_sandbox_refuses_everything_not_allowed,
    a_sealed_command_killed_for_its_memory_does_not_end_the_service,
    after_a_kill_the_service_restarts_and_recovers_its_files,
    the_watchdog_restarts_a_service_that_hangs, an_upgrade_seals_the_recording_and_starts_the_next,
    the_metrics_drop_in_allows_only_loopback,
    the_network_drop_in_lets_a_sealed_command_reach_other_hosts, a_second_board_has_its_own_service,
    hosts_are_asked_through_a_real_sshd,
    *gadget.STEPS,
    stopping_the_service_seals_and_lost_samples_are_not_a_failure,
    removing_and_purging_the_packages_keeps_the_recordings,
    the_recordings_match_what_the_boards_sent,
]
