"""Installed files: the configuration is complete and valid, the units' system call filter allows what the daemon calls,
and PREFIX and DESTDIR are respected. systemd's own checks of the units: `make units`."""

import fcntl
import functools
import os
import re
import shutil
import signal
import socket
import sys

import pytest

import harness
import tables
from api_harness import Api
from harness import BUSCAP, BUSCAPD, ROOT, Daemon, equal, need, run

CONFIGURATION = ROOT / "systemd/buscapd.conf"
CYCLES = ("INT_ACK", "SPECIAL", "IO_READ", "IO_WRITE", "I_FETCH", "NC_I_FETCH", "D_READ", "NC_D_READ", "WRITE_BACK",
          "D_WRITE")


def settings(text):
    """The settings in a configuration: (section, key, value, is_commented_out)."""
    section = ""
    for line in text.splitlines():
        setting = line.removeprefix("#")
        if setting.startswith("["):
            section = setting.strip("[]")
        elif setting and not setting.startswith(" "):
            key, _, value = setting.partition("=")
            yield section, key.strip(), value.strip(), line.startswith("#")


def test_every_key_is_in_the_installed_configuration_with_its_default():
    there = {(section, key): value for section, key, value, _ in settings(CONFIGURATION.read_text())}
    for row in tables.settings(BUSCAPD):
        section, key = row.section.replace("trigger NAME", "trigger roi"), row.key
        if key == "attr.CYCLE":
            for cycle in CYCLES:
                wanted = {"I_FETCH": "3", "D_READ": "3", "WRITE_BACK": "3", "D_WRITE": "1"}.get(cycle, "0")
                equal(there.pop((section, f"attr.{cycle}"), None), wanted, f"attr.{cycle}")
            continue
        # Keys that may occur several times are shown once; those of the simulated bus are in its source.
        if key in ("keep.NAME", "leave_out.NAME") or section == "sim":
            continue
        key = {"metadata.KEY": "metadata.bench"}.get(key, key)
        value = there.pop((section, key), None)
        assert value is not None, f"[{section}] {key} is missing"
        # These defaults depend on the machine, or on the name of the trigger.
        if row.default != "none" and key not in ("workers", "text"):
            equal(value, row.default, f"[{section}] {key}")
    equal(there, {}, "keys that buscapd does not have")


def test_the_installed_configuration_is_valid_as_it_is_and_uncommented(tmp):
    text = CONFIGURATION.read_text()
    equal([line[:3] for line in settings(text) if not line[3]], [("source", "source", "usb")], "uncommented settings")
    done = run(BUSCAPD, "--check-config", "-c", CONFIGURATION)
    equal(done.returncode, 0, done.stderr.decode())
    bare = tmp / "bare.conf"
    bare.write_text(re.sub(r"^#(?=[^ #\n])", "", text, flags=re.M))
    equal({setting[3] for setting in settings(bare.read_text())}, {False}, "commented out")
    done = run(BUSCAPD, "--check-config", "-c", bare)
    equal(done.returncode, 0, done.stderr.decode())


@functools.cache
def sets_of_calls():
    """The sets of system calls of systemd: {name: names of calls and sets}."""
    done = run("systemd-analyze", "--no-pager", "syscall-filter")
    equal(done.returncode, 0, done.stderr.decode())
    sets = {}
    for line in done.stdout.decode().splitlines():
        if line.startswith("@"):
            words = sets[line] = set()
        elif re.fullmatch(r"    @?[a-z]\S*", line):
            words.add(line.strip())
    return sets


def system_calls(name):
    """The system calls in a set of systemd."""
    words = sets_of_calls()[name]
    assert words, name
    return set().union(*(system_calls(word) if word.startswith("@") else {word} for word in words))


def allowed_calls(*names):
    """The system calls allowed by SystemCallFilter= in these parts of a unit."""
    allowed = set()
    text = "".join((ROOT / "systemd" / name).read_text() for name in names)
    lines = re.findall(r"^SystemCallFilter=(~?)(.*)$", text, re.M)
    assert len(lines) >= 2, lines
    for refuses, words in lines:
        for word in words.split():
            calls = system_calls(word) if word.startswith("@") else {word}
            allowed = allowed - calls if refuses else allowed | calls
    return allowed


def traced(tmp):
    """The command prefix that traces system calls to tmp/calls."""
    if harness.is_sanitized():
        pytest.skip("sanitizers make additional system calls")
    need("systemd-analyze")
    need("strace")
    return "strace", ["-D", "-f", "-qq", "-o", tmp / "calls"]


def check_calls(tmp, *names):
    """Checks that the filter in these parts of a unit allows each call in tmp/calls. Returns them."""
    harness.wait_until(lambda: re.search(r"^\d+ +exit_group\(", (tmp / "calls").read_text(), re.M), "the last call")
    calls = set(re.findall(r"^\d+ +([a-z]\w*)\(", (tmp / "calls").read_text(), re.M))
    assert {"openat", "futex"} <= calls, calls
    equal(sorted(calls - allowed_calls(*names)), [], "refused by SystemCallFilter=")
    return calls


def test_the_unit_allows_all_system_calls_of_a_recording_daemon(tmp):
    program, options = traced(tmp)
    command = tmp / "command"
    command.write_text(f'#!/bin/sh\ncp "$1" {tmp}/copy/ && sync {tmp}/copy && nice -n 1 true\n')
    command.chmod(0o755)
    (tmp / "copy").mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp / "notify"))
        environment = {"NOTIFY_SOCKET": str(tmp / "notify"), "WATCHDOG_USEC": "1000000"}
        with Daemon(*options, BUSCAPD, "--source", "sim:rate=100k,agents=2", "-o", tmp / "out", "-b", "files:2",
                    "--set", "space.max_use=1GiB", "--set", f"output.sealed_command={command}",
                    program=program, socket=tmp / "socket", env=environment) as daemon:
            daemon.wait_ready()
            api = Api(tmp / "socket")
            rotated = 0
            for number in range(1, 4):  # a segment without records is not sealed
                harness.wait_until(lambda: daemon.status()["recording"]["records"] > rotated, "there are new records")
                api.good("POST", "/v1/rotate")
                harness.wait_until(lambda: len(list((tmp / "copy").glob("*.byu.lz4"))) >= number, "the segment is copied")
                rotated = daemon.status()["recording"]["records"]  # all that are sealed; the answer had only those written by then
            api.good("POST", "/v1/marks", {"text": "here"}, status=201)
            api.good("GET", "/v1/recordings")
            api.ask("GET", "/metrics")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_ready()
            equal(daemon.stop(), 0, daemon.err.decode())
    wanted = {"renameat2", "fdatasync", "setpriority", "execve", "unlinkat", "epoll_ctl"}
    assert wanted <= check_calls(tmp, "service.sandbox", "service.common")


def test_the_unit_of_the_catalogue_allows_the_system_calls_of_python(tmp):
    """Of a program that reads recordings with the module and sends them over the network."""
    for module in ("numpy", "lz4.frame", "xxhash", "zstandard"):
        harness.need_module(module)
    program, options = traced(tmp)
    run(BUSCAP, "sim", "-n", "100k", "-O", "byu", "-o", tmp / "s.byu")
    run(BUSCAP, "convert", "-O", "segment", "-o", tmp / "s.byu.lz4", tmp / "s.byu")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://localhost:{server.getsockname()[1]}"
        script = ("import buscap, numpy, os, socket, sys, urllib.request, zstandard\n"
                  "data = b''.join(chunk.records for one in buscap.segments(sys.argv[1]) for chunk in one.chunks)\n"
                  "open(sys.argv[1] + '.new', 'w').close(), os.replace(sys.argv[1] + '.new', sys.argv[1] + '.prom')\n"
                  "print(socket.gethostname(), flush=True)\n"
                  "try: urllib.request.urlopen(sys.argv[2], data, timeout=0.1)\n"
                  "except TimeoutError: pass\n")
        done = run(program, *options, sys.executable, "-c", script, tmp / "s.byu.lz4", url,
                   env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    equal((done.returncode, done.stderr), (0, b""), "the script")
    assert {"connect", "sendto", "rename"} <= check_calls(tmp, "service.sandbox")


def make(*words):
    """Runs make, quietly and alone: it writes the units with its PREFIX into the build directory."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    with open(harness.BUILD / "tests/make.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run("make", "-C", ROOT, "--no-print-directory", *words, env=environment)
    equal(done.returncode, 0, done.stderr.decode())


@pytest.mark.ci
def test_shells_find_the_completions_installed_below_usr_local(tmp):
    """In the default directories of bash-completion, fish and zsh."""
    if harness.BUILD.name != "build":
        pytest.skip("installs the same files as the build without sanitizers")
    need("zsh")
    make("install-daemon", "install-tools", f"DESTDIR={tmp}", "PREFIX=/usr/local")
    done = run("zsh", "-f", "-c", "print -l $fpath")
    equal(done.returncode, 0, done.stderr.decode())
    looked_in = done.stdout.decode().split()
    for name in ("_buscap", "_buscapd"):
        there = [folder for folder in looked_in if (tmp / folder.lstrip("/") / name).is_file()]
        equal(len(there), 1, f"{name} in one of {looked_in}")
    need("fish")
    done = run("fish", "-c", "string join \\n $fish_complete_path", env={**os.environ, "XDG_DATA_DIRS": "/usr/local/share:/usr/share"})
    folder = "/usr/local/share/fish/vendor_completions.d"
    assert folder in done.stdout.decode().splitlines(), done
    for name in ("buscap", "buscapd"):
        assert (tmp / "usr/local/share/bash-completion/completions" / name).is_file(), name
        assert (tmp / folder.lstrip("/") / f"{name}.fish").is_file(), name


def test_the_commit_is_that_of_git_or_of_the_tarball(tmp):
    def commit():
        done = run("make", "-s", "-C", tmp, "BUILD=build", "build/commit")
        equal(done.returncode, 0, done.stderr.decode())
        return (tmp / "build/commit").read_text().strip()

    def git(*words):
        done = run("git", "-C", tmp, "-c", "user.name=x", "-c", "user.email=x", *words)
        equal(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode().strip()

    need("git")
    shutil.copy(ROOT / "Makefile", tmp)
    shutil.copytree(ROOT / "mk", tmp / "mk")
    equal(commit(), "", "neither")
    (tmp / "commit").write_text("0123456789ab\n")
    equal(commit(), "0123456789ab", "a tarball")
    git("init", "-q")
    git("add", "Makefile")
    git("commit", "-q", "-m", "x")
    equal(commit(), git("rev-parse", "--short=12", "HEAD"), "git")
    before = (tmp / "build/commit").stat().st_mtime_ns
    commit()
    equal((tmp / "build/commit").stat().st_mtime_ns, before, "the same commit: nothing is built again")
    (tmp / "Makefile").write_text((tmp / "Makefile").read_text() + "#\n")
    equal(commit(), git("rev-parse", "--short=12", "HEAD") + "-dirty", "a change that is not committed")


@pytest.mark.ci
def test_make_install_uses_destdir_and_prefix_and_uninstall_keeps_the_configuration(tmp):
    if harness.BUILD.name != "build":
        pytest.skip("installs the same files as the build without sanitizers")
    tmp = tmp / "a b"
    there = ["install", f"DESTDIR={tmp}", "PREFIX=/opt/bus"]
    make(*there)
    for unit in ("buscapd.service", "buscapd@.service"):
        text = (tmp / "opt/bus/lib/systemd/system" / unit).read_text()
        assert "\nExecStart=/opt/bus/sbin/buscapd" in text and "@sbindir@" not in text, text
        assert "/opt/bus/share/buscapd/metrics.conf" in text and "@datadir@" not in text, text
    text = (tmp / "opt/bus/lib/systemd/system/buscap-ship.service").read_text()
    assert "\nExecStart=/opt/bus/bin/buscap-ship $" in text and "\nProtectSystem=strict\n" in text, text
    done = run(tmp / "opt/bus/sbin/buscapd", "--check-config", "-c", tmp / "etc/buscapd/buscapd.conf")
    equal(done.returncode, 0, done.stderr.decode())
    equal(run(tmp / "opt/bus/bin/buscap", "--version").returncode, 0, "buscap")
    configuration = tmp / "etc/buscapd/buscapd.conf"
    configuration.write_text("[source]\nsource = sim\n")
    make(*there)
    equal(configuration.read_text(), "[source]\nsource = sim\n", "existing configuration")
    make("uninstall", *there[1:])
    left = [str(path.relative_to(tmp)) for path in tmp.rglob("*") if not path.is_dir()]
    equal(left, ["etc/buscapd/buscapd.conf"], "left")
