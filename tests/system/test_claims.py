"""What a start claims: directory and socket. A failed start leaves nothing behind, and its message names the right process or
file."""

import contextlib
import os
import pathlib
import shutil
import socket as sockets
import stat
import subprocess
import tempfile

import pytest

from harness import BUSCAPD, Daemon, equal, popen, run, wait_until

pytestmark = pytest.mark.threads

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
SIM = ("--source", "sim:rate=20k")


# ---- a failed start


@contextlib.contextmanager
def no_directory_for_the_socket(tmp):
    yield ("--socket", tmp / "run/socket")


@contextlib.contextmanager
def a_file_instead_of_the_socket(tmp):
    (tmp / "file").write_text("mine")
    yield ("--socket", tmp / "file")
    equal((tmp / "file").read_text(), "mine")
    (tmp / "file").unlink()


@contextlib.contextmanager
def another_process_on_the_socket(tmp):
    with sockets.socket(sockets.AF_UNIX) as listener:
        listener.bind(str(tmp / "other"))
        listener.listen()
        yield ("--socket", tmp / "other")
    (tmp / "other").unlink()


@contextlib.contextmanager
def a_port_in_use(tmp):
    with sockets.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield ("--socket", tmp / "socket", "--set", f"socket.metrics_listen=127.0.0.1:{listener.getsockname()[1]}")


@contextlib.contextmanager
def no_source(tmp):
    yield ("--socket", tmp / "socket", "--source", f"file:{tmp}/none")


FAULTS = (no_directory_for_the_socket, a_file_instead_of_the_socket, another_process_on_the_socket, a_port_in_use, no_source)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("mode", ["always", "on-demand"])
def test_a_failed_start_leaves_nothing_behind(tmp, fault, mode):
    """Neither a directory nor a lock; and what was there before, stays."""
    before = set(tmp.iterdir())
    with fault(tmp) as options:
        argv = [*SIM, "--set", f"recording.record={mode}", *options]
        done = run(BUSCAPD, *argv, "-o", tmp / "out")
        equal(done.returncode, 2 if (fault, mode) == (no_source, "on-demand") else 1, done.stderr)
        assert not (tmp / "out").exists(), sorted((tmp / "out").iterdir())
        assert not list(tmp.rglob("*.lock")), list(tmp.rglob("*.lock"))
        (tmp / "out").mkdir()
        (tmp / "out/notes").write_text("mine")
        equal(run(BUSCAPD, *argv, "-o", tmp / "out").returncode, done.returncode)
        equal([path.name for path in (tmp / "out").iterdir()], ["notes"], "in the directory")
        shutil.rmtree(tmp / "out")
    equal(set(tmp.iterdir()), before, "next to the directory")


@pytest.mark.parametrize("source, code", [("usb:id=1209:ffff,wait=100ms", 5), ("file:/etc/passwd", 1)], ids=("no_board", "no_trace"))
def test_a_run_that_could_not_record_leaves_nothing_behind(tmp, source, code):
    argv = (BUSCAPD, "--once", "--source", source, "-o", tmp / "out")
    done = run(*argv)
    equal(done.returncode, code, done.stderr)
    equal(list(tmp.iterdir()), [])
    (tmp / "out").mkdir()
    equal(run(*argv).returncode, code)
    equal([path.name for path in tmp.rglob("*")], ["out"])


def test_a_second_daemon_leaves_the_first_one_its_locks(tmp):
    with Daemon(*SIM, "-o", tmp / "out", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        for options in (("-o", tmp / "out", "--no-socket"), ("-o", tmp / "other", "--socket", tmp / "socket")):
            done = run(BUSCAPD, *SIM, *options)
            equal(done.returncode, 1, done.stderr)
            assert f" {daemon.process.pid}".encode() in done.stderr, done.stderr
        assert (tmp / "socket.lock").exists() and (tmp / "out/.buscapd.lock").exists() and not (tmp / "other").exists()
        equal(daemon.stop(), 0, daemon.err)
    assert not (tmp / "socket.lock").exists() and not (tmp / "socket").exists()


# ---- other users


@contextlib.contextmanager
def sticky_directory():
    """A directory like /tmp, and a copy of the program that anyone can run."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        path = pathlib.Path(place)
        shutil.copy(BUSCAPD, path / "buscapd")
        path.chmod(0o755)
        (path / "tmp").mkdir()
        (path / "tmp").chmod(0o1777)
        yield path / "buscapd", path / "tmp"


@pytest.mark.root
@pytest.mark.parametrize("kind", ["socket", "directory"])
def test_a_lock_left_by_another_user_is_named(kind):
    with sticky_directory() as (program, place):
        lock = place / ("socket.lock" if kind == "socket" else ".buscapd.lock")
        lock.touch(0o640)
        if kind == "socket":
            (place / "out").mkdir()
            os.chown(place / "out", 65534, 65534)
        options = ("-o", place / "out", "--socket", place / "socket") if kind == "socket" else ("-o", place, "--no-socket")
        done = run(program, *SIM, *options, cwd="/", **NOBODY)
        equal(done.returncode, 1, done.stderr)
        wanted = {"socket": f"{lock}: can't open: Permission denied; it belongs to user root; delete it, or choose another path with --socket\n",
                  "directory": f"{place}: .buscapd.lock: can't open: Permission denied; it belongs to user root; delete it, or use another directory (-o)\n"}[kind]
        assert done.stderr.decode().endswith("buscapd: " + ("error: " if kind == "socket" else "") + wanted), done.stderr
        equal(stat.S_IMODE(lock.stat().st_mode), 0o640)
        # A user without a name, too.
        os.chown(lock, 4_000_000, 4_000_000)
        done = run(program, *SIM, *options, cwd="/", **NOBODY)
        assert b"; it belongs to user 4000000; " in done.stderr, done.stderr


@pytest.mark.root
def test_root_is_not_locked_out_by_a_lock_that_a_user_left():
    """fs.protected_regular forbids even root to open it with O_CREAT."""
    with sticky_directory() as (program, place):
        (place / "socket.lock").touch(0o600)
        os.chown(place / "socket.lock", 65534, 65534)
        with Daemon(*SIM, "-o", place.parent / "out", program=program, socket=place / "socket") as daemon:
            daemon.wait_ready()
            equal(daemon.stop(), 0, daemon.err)
        assert not (place / "socket.lock").exists()


# ---- containers


def in_container(*argv):
    return ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *argv]


@pytest.mark.root
def test_a_process_of_another_container_is_not_given_a_number(tmp):
    """Its own pid is often 1: "stop 1" would be the end of the host."""
    if run(*in_container("true")).returncode != 0:
        pytest.skip("no pid namespaces")
    options = (*SIM, "-o", tmp / "out", "--socket", tmp / "socket")
    elsewhere = (*SIM, "-o", tmp / "elsewhere", "--socket", tmp / "socket")

    def refused(argv, words):
        done = run(*argv)
        equal(done.returncode, 1, done.stderr)
        assert words in done.stderr.decode(), done.stderr

    def check(first, second):
        with popen([*first, BUSCAPD, *options], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                wait_until(lambda: list((tmp / "out").glob("*.partial")) and (tmp / "socket").exists(), "it records")
                refused([*second, BUSCAPD, *options, "--no-socket"],
                        "in use by another buscapd, of another user or in another container; stop that one")
                refused([*second, BUSCAPD, *elsewhere],
                        "another process listens on this socket, perhaps in another container; stop it")
                # Without its lock, only the kernel knows.
                (tmp / "socket.lock").unlink()
                wanted = ": process " if first else "another process listens on this socket, perhaps in another container"
                refused([*second, BUSCAPD, *elsewhere], wanted)
            finally:
                process.kill()
                process.wait()
        for path in ("out", "elsewhere"):
            shutil.rmtree(tmp / path, ignore_errors=True)
        (tmp / "socket").unlink(missing_ok=True)

    check(in_container(), ())
    check((), in_container())


@pytest.mark.root
def test_process_1_of_a_container_is_not_called_systemd(tmp):
    if run(*in_container("true")).returncode != 0:
        pytest.skip("no pid namespaces")
    if pathlib.Path("/run/systemd/system").exists():
        pytest.skip("systemd runs here")
    # Process 1 listens; the daemon, its child, can see that.
    script = ("import socket, subprocess, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen();"
              "sys.exit(subprocess.run(sys.argv[2:]).returncode)")
    done = run(*in_container("/usr/bin/python3", "-c", script, tmp / "socket", BUSCAPD, *SIM, "-o", tmp / "out", "--socket", tmp / "socket"))
    equal(done.returncode, 1, done.stderr)
    assert b": process 1 listens on this socket; stop it" in done.stderr, done.stderr
