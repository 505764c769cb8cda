"""Every example in the help of a command runs. tests/unit/cli/test_options.c checks the rest of --help and --options."""

import os
import shutil
import signal
import subprocess

import pytest

import harness
from harness import BUILD, BUSCAP, BUSCAPD, Daemon, equal, run

pytestmark = pytest.mark.documents

ROWS = [line.split("\t") for line in run(BUSCAP, "--options").stdout.decode().splitlines()]
COMMANDS = [row[0] for row in ROWS if row[0] != "-" and row[1:3] == ["", ""]]


def example_of(program, *words):
    done = run(program, *words, "--help")
    equal((done.returncode, done.stderr), (0, b""), words)
    return done.stdout.decode().split("\nExample: ")[1].rstrip("\n")


REFERENCES = "r 123456789abcdef0 4 9f8e7 9a8b7c6d\nw 123456789abcdefa 8 9a8b7 8888ffff3e456a21\n"
EVENTS = "F 123456789abcdef7 100 77\nM 123456789abcdefe 100 1a2b3c4d 9000 8efa5567 35 5 1029384756afbecd foobar.so\n"
TARMAC = ("100 clk cpu0 IT (135) 00008000 d2a00028 O EL3h_s : MOV      x8,#0x10000\n"
          "100 clk cpu0 R X8 0000000000010000\n")
# Commands to run before an example.
BEFORE = {"record stop": ["record start"], "record show": ["record start"], "record note": ["record start"],
          "rotate": ["record start"], "trigger remove": ["trigger add boot mark gap"]}
# Commands that run until Ctrl-C.
STAYS = ("status", "events", "web")


def shell(directory, line, socket=None):
    env = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "BUSCAP_SOCKET": str(socket)}
    return harness.popen(["bash", "-o", "pipefail", "-c", line], cwd=directory, env=env, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def finish(process, line):
    try:
        out, err = process.communicate(timeout=harness.TIMEOUT_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    equal(process.returncode, 0, f"{line}: {out.decode(errors='replace')[-500:]}{err.decode(errors='replace')}")
    return out


def interrupt_when_it_prints(process):
    """Sends SIGINT, as Ctrl-C does, after the first output."""
    first = process.stdout.read1(1)
    assert first, process.stderr.read()
    process.send_signal(signal.SIGINT)


def files_of_examples(directory):
    (directory / "references.txt").write_text(REFERENCES)
    (directory / "events.txt").write_text(EVENTS)
    for name in ("golden.tarmac", "dut.tarmac"):
        (directory / name).write_text(TARMAC)
    for line in ("buscap sim -n 100k -O bcp1 -o bus.bcp1",
                 "buscapd --once --no-socket --source file:bus.bcp1 -o .",
                 "buscap sim -n 300k -O bcp1 -o long.bcp1",
                 "mkdir torn && buscapd --once --no-socket --source file:long.bcp1 -o torn",
                 "cp torn/*.byu.lz4 X-00000.byu.lz4.partial"):
        finish(shell(directory, line), line)


def is_live(command):
    return any(row[0].split()[0] == command.split()[0] and row[2] == "socket" for row in ROWS)


@pytest.mark.nightly
def test_every_example_of_files_runs(tmp):
    files_of_examples(tmp)
    for command in COMMANDS:
        if not is_live(command):
            line = example_of(BUSCAP, *command.split())
            if "valgrind" in line and shutil.which("valgrind") is None:
                harness.note(f"the example of {command} is skipped: valgrind is not installed")
                continue
            finish(shell(tmp, line), line)
    for program in (BUSCAP, BUSCAPD):
        line = example_of(program)
        finish(shell(tmp, line), line)


@pytest.mark.nightly
def test_every_example_with_a_daemon_runs(tmp):
    files_of_examples(tmp)
    where = tmp / "socket"
    with Daemon("--source", f"sim:rate={harness.rate(400_000)}", "-o", tmp / "live", "-c", "/dev/null",
                "--set", "recording.record=flight", socket=where) as daemon:
        daemon.wait_ready()
        for command in filter(is_live, COMMANDS):
            for words in BEFORE.get(command, []):
                line = f"buscap {words}"
                finish(shell(tmp, line, where), line)
            line = example_of(BUSCAP, *command.split())
            process = shell(tmp, "exec " + line, where)
            if command in STAYS:
                if command == "events":
                    harness.wait_until(lambda: daemon.status()["streams"]["events"] == 1, "the client reads events")
                    finish(shell(tmp, "buscap mark here", where), "mark")
                interrupt_when_it_prints(process)
            finish(process, line)
            # Clean up for the next example.
            for undo in ("record stop", "trigger remove boot"):
                shell(tmp, f"buscap {undo}", where).communicate(timeout=harness.TIMEOUT_S)
        equal(daemon.stop() in (0, 4), True, "the daemon's exit code")
