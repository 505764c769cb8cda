"""What a user without a service sees: a recording in a terminal shows itself, and the defaults need no root."""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import termios

import pytest

import harness
from harness import BUSCAP, BUSCAPD, equal, popen, run, wait_until

pytestmark = pytest.mark.threads

ERASE = b"\r\x1b[K"
SHOWN = re.escape(ERASE) + rb"recording: "
LINE = SHOWN + rb"[\d.]+( k| M)? samples/s, [\d.]+( k| M)? records, [\d.]+ [kM]?B, 0 samples lost, buffer \d+ %"


class Terminal:
    """Runs buscapd in its own terminal, in the foreground or background. Its output is what the terminal shows."""

    def __init__(self, *argv, is_background=False, through=""):
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, b"\x18\x00\x50\x00\x00\x00\x00\x00")  # 24 rows, 80 columns

        def own_terminal():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        shell = ["sh", "-mc", '"$0" "$@" & wait'] if is_background else ["sh", "-c", f'"$0" "$@" | {through}'] if through else []
        self.process = popen([*shell, BUSCAPD, *argv], stdin=slave, stdout=slave, stderr=slave, preexec_fn=own_terminal)
        os.close(slave)
        self.out = b""

    def read(self):
        """Returns whether there may be more."""
        with contextlib.suppress(OSError):
            got = os.read(self.master, 65536)
            self.out += got
            return got != b""
        return False

    def read_until(self, pattern):
        while not re.search(pattern, self.out):
            assert self.read(), self.out

    def end(self):
        """Returns the lines that remain on the screen."""
        while self.read():
            pass
        self.code = self.process.wait(harness.TIMEOUT_S)
        os.close(self.master)
        text = self.out.replace(b"\r\n", b"\n")
        return [line.rpartition(ERASE)[2].decode() for line in text.split(b"\n")]


def test_a_recording_in_the_foreground_shows_itself(tmp):
    terminal = Terminal("--once", "--source", "sim:rate=100k", "-o", tmp / "out")
    terminal.read_until(LINE)
    fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, b"\x18\x00\x28\x00\x00\x00\x00\x00")  # 40 columns
    terminal.read_until(SHOWN + rb"[^\r\n]{20,28}\r")
    terminal.process.terminate()
    lines = terminal.end()
    equal(terminal.code, 0, lines)
    (file,) = harness.segments(tmp / "out")
    assert f"recording started: {file}" in lines[0], lines
    assert re.search(r"[\d,]+ records written in 1 segment, [\d,]+ bytes.*, 0 lost$", lines[-2]), lines
    # Neither the status line nor JSON is left.
    equal([line for line in lines if "buscapd: " not in line], [""], lines)
    for shown in re.findall(re.escape(ERASE) + rb"([^\r\n]*)", terminal.out):
        assert len(shown) < 80 or b"buscapd: " in shown, shown


def test_a_recording_in_the_background_leaves_the_terminal_alone(tmp):
    terminal = Terminal("--source", "sim:rate=100k", "-o", tmp / "out", "--socket", tmp / "socket", is_background=True)

    def records():
        with contextlib.suppress(AssertionError):  # the socket is there before it answers
            return harness.status(tmp / "socket")["rates"]["samples_per_second"]

    wait_until(records, "a second has passed")
    pid = int((tmp / "out/.buscapd.lock").read_text().split()[0])
    os.kill(pid, signal.SIGTERM)
    lines = terminal.end()
    assert b"\x1b" not in terminal.out and "records written" in lines[-2], terminal.out


def test_json_is_printed_on_a_terminal_if_asked_for(tmp):
    terminal = Terminal("--once", "--json", "--source", "sim:rate=100k,count=150k", "-o", tmp / "out")
    lines = terminal.end()
    assert re.search(SHOWN, terminal.out), lines  # but not in the JSON
    status = json.loads(lines[-2])
    equal(status["counts"]["received"], 150_000)
    # The same size in the status, the summary and the directory.
    size = sum(path.stat().st_size for path in harness.segments(tmp / "out"))
    equal(status["recording"]["bytes"], size)
    assert f"records written in 1 segment, {size:,} bytes" in lines[-3], lines


def test_json_for_another_program_on_the_terminal_is_not_next_to_the_status_line(tmp):
    terminal = Terminal("--once", "--source", "sim:rate=100k", "-o", tmp / "out", "-a", "duration:1500ms", through="cat")
    lines = terminal.end()
    assert re.search(SHOWN, terminal.out), lines
    assert json.loads(lines[-2])["counts"]["received"] > 100_000 and lines[-1] == "", lines
    assert ERASE not in terminal.out[terminal.out.index(b'{"version"'):], lines


def test_a_daemon_prints_json_at_its_end_if_asked_for(tmp):
    with harness.Daemon("--json", "--source", "sim:rate=100k", "-o", tmp / "out", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        daemon.stop()
    equal(json.loads(daemon.out)["sealed"]["segments"], 1, daemon.out)


def test_a_failed_start_prints_no_json(tmp):
    (tmp / "empty").touch()
    for source in ("file:" + str(tmp / "none"), "file:" + str(tmp / "empty"), "usb:wait=1ms"):
        done = run(BUSCAPD, "--once", "--json", "--source", source, "-o", tmp / "out")
        assert done.returncode in (1, 5), done
        equal((done.stdout, b"buscapd: " in done.stderr), (b"", True), source)


# ---- an ordinary user


@contextlib.contextmanager
def user_session():
    """Yields popen's options for a program of an ordinary user, and the user's home directory."""
    with tempfile.TemporaryDirectory() as name:
        home = pathlib.Path(name)
        (home / "run").mkdir()
        options = {"env": {**os.environ, "HOME": name, "XDG_RUNTIME_DIR": f"{name}/run"}}
        for variable in ("XDG_DATA_HOME", "BUSCAP_SOCKET", "INVOCATION_ID"):
            options["env"].pop(variable, None)
        if os.geteuid() == 0:
            options.update(user=4321, group=4321, extra_groups=[])
            for path in (home, home / "run"):
                os.chown(path, 4321, 4321)
        yield options, home


def test_an_ordinary_user_needs_no_options():
    with user_session() as (options, home):
        socket = home / "run/buscapd.sock"
        tool = lambda *argv: run(BUSCAP, *argv, **options)
        with popen([BUSCAPD, "--source", "sim:rate=100k"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options) as process:
            wait_until(lambda: tool("status").returncode == 0, "the tools find the daemon")
            out = home / ".local/share/buscapd"
            equal(json.loads(tool("status", "--json").stdout)["directory"], str(out))
            equal((tool("mark", "here").returncode, tool("top", "--once").returncode), (0, 0))
            # A socket that is named is the only one.
            equal(tool("status", "--socket", home / "none").returncode, 6)
            process.terminate()
            _, err = process.communicate(timeout=harness.TIMEOUT_S)
            equal(process.returncode, 0, err)
        assert harness.segments(out), list(home.rglob("*"))
        # Without the daemon, the recordings are found where it would record.
        for command, *argv in (["info"], ["verify"], ["marks"], ["report", "--json"]):
            done = tool(command, *argv)
            equal((done.returncode, done.stderr.splitlines()[0]),
                  (0, f"buscap {command}: can't reach a daemon; reading {out}".encode()), command)
        equal(tool("info", harness.segments(out)[0].name[:16]).returncode, 0, "an id")
        options["env"]["BUSCAP_SOCKET"] = str(socket)
        equal(tool("info").returncode, 6, "a socket that is named")
        del options["env"]["BUSCAP_SOCKET"]
        for command in ("status", "top", "tail"):
            done = tool(command)
            equal(done.returncode, 6, done.stderr)
            assert f"{socket}, /run/buscapd/buscapd.sock: no such socket".encode() in done.stderr, done.stderr


def test_without_a_runtime_directory_there_is_no_socket():
    with user_session() as (options, home):
        del options["env"]["XDG_RUNTIME_DIR"]
        out = home / ".local/share/buscapd"
        with popen([BUSCAPD, "--source", "sim:rate=100k"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options) as process:
            wait_until(lambda: list(out.glob("*.partial")), "it records")
            process.terminate()
            _, err = process.communicate(timeout=harness.TIMEOUT_S)
        equal(process.returncode, 0, err)
        assert f"recordings in {out}, no socket without $XDG_RUNTIME_DIR or --socket PATH\n".encode() in err, err
        assert harness.segments(out) and not list(home.rglob("*.sock*")), list(home.rglob("*"))


def test_root_and_services_keep_the_system_defaults():
    def settings(**more):
        done = run(BUSCAPD, "--print-config", "-c", "/dev/null", "--source", "sim", **{**options, **more})
        return re.findall(rb"^(?:dir|path) = ?(.*)$", done.stdout, re.MULTILINE)

    with user_session() as (options, home):
        system = [b"/var/lib/buscapd", b"/run/buscapd/buscapd.sock"]
        own = [bytes(home / "data/buscapd"), bytes(home / "run/buscapd.sock")]
        env = {**options["env"], "XDG_DATA_HOME": str(home / "data")}
        equal(settings(env=env), own, "a user's session")
        equal(settings(env={**env, "INVOCATION_ID": "0"}), own, "a terminal that systemd has started")
        service = {**env, "XDG_RUNTIME_DIR": "", "INVOCATION_ID": "0"}
        equal(settings(env=service), system, "a service")
        for name, path in (("none", ""), ("a relative path", "run"), ("longer than a socket's path may be", f"/{'x' * 100}")):
            equal(settings(env={**env, "XDG_RUNTIME_DIR": path}), [own[0], b""], name)
        if os.geteuid() == 0:
            equal(settings(env=env, user=0, group=0), system, "root")
