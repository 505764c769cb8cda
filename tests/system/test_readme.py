"""The README and --help: each command of the tour and each example works; link targets exist."""

import contextlib
import os
import re
import shutil
import signal
import subprocess

import pytest

import harness
from harness import BUILD, BUSCAP, BUSCAPD, Daemon, equal, need, run

pytestmark = pytest.mark.documents

README = harness.ROOT / "README.md"

# The first words of a last command that is expected to fail, and its exit code.
CODES = {"buscap diff --first": 1}
# Commands that run until Ctrl-C or q: a terminal gives them what is pasted after them.
ENDLESS = re.compile(r"(sudo |build/|/usr/s?bin/)*(buscap (web|top(?!.*--once)|events|tail(?!.* -n)|status.* (-w|--watch))"
                     r"|journalctl.* -f|buscapd (?!.*(--once|--check-config|--list-boards|&$)))")


def blocks(text):
    """What a reader pastes into a terminal: indented lines that follow each other, without their comments."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return [re.sub(r"^    |  +# .*$", "", block, flags=re.M).rstrip() for block in re.findall(r"(?:^    .*\n)+", text, re.M)]


def is_endless(line):
    return "|" not in line and ENDLESS.match(line) is not None


def paste(tmp, block, env):
    """Runs a block in a new shell, until a command fails. Presses Ctrl-C when an endless command, which is the last one,
    has printed something. Returns the exit code and standard error, with the commands."""
    *before, last = block.splitlines()
    lines = [*before, "echo =====", last] if is_endless(last) else [*before, last]
    with open(tmp / "out", "wb") as out, open(tmp / "err", "wb") as err:
        process = harness.popen(["bash", "-exc", "\n".join(lines)], cwd=harness.ROOT, env=env, stdin=subprocess.DEVNULL,
                                stdout=out, stderr=err, start_new_session=True)
    try:
        if is_endless(last):
            while process.poll() is None and b"" in (tmp / "out").read_bytes().partition(b"=====\n")[1:]:
                exports = "\n".join(line for line in before if line.startswith("export "))
                for verb in ("start", "stop"):  # cause events; nothing else of the block is run twice
                    run("bash", "-c", f"{exports}\nbuscap record {verb}", env=env)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
        return process.wait(harness.TIMEOUT_S), (tmp / "err").read_text()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def check_tour(tmp, text):
    """Pastes each block into a shell that has nothing of the earlier ones but the files and the daemons."""
    env = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "HOME": str(tmp)}
    for name in ("BUSCAP_SOCKET", "XDG_RUNTIME_DIR"):
        env.pop(name, None)
    try:
        for block in blocks(text):
            code, err = paste(tmp, block, env)
            wanted = next((code for words, code in CODES.items() if block.splitlines()[-1].startswith(words)), 0)
            if code == 4 and "samples lost" in err:
                harness.note(f"the machine was too busy for: {block}")
                continue
            equal(code, wanted, f"{block}\n{err}")
            assert "kill:" not in err, f"{block}\n{err}"
        harness.wait_until(lambda: not list(tmp.glob("*sock")), "the daemons have ended")
        equal(list(tmp.rglob("*.partial")), [], "left open")
    finally:
        for lock in tmp.rglob(".buscapd.lock"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(lock.read_text()), signal.SIGKILL)


@pytest.mark.ci
def test_every_block_of_the_readme_works_in_a_new_shell(tmp):
    """In "ci" with shorter recordings."""
    text = re.search(r"^## A tour on the simulated bus\n(.*?)^## ", README.read_text() + "## ", re.M | re.S)[1]
    for long, short in (("-a duration:10", "-a duration:1"), ("--count 1000000", "--count 100000")):
        assert long in text, long
        text = text if harness.NIGHTLY else text.replace(long, short)
    check_tour(tmp, text.replace("/tmp/", f"{tmp}/").replace("build/busc", "busc"))


@pytest.mark.ci
def test_every_block_of_the_tour_of_the_daemon_works_in_a_new_shell(tmp):
    check_tour(tmp, (harness.ROOT / "docs/live.md").read_text().replace("/tmp/live", str(tmp)))


def test_nothing_is_pasted_into_a_command_that_stays():
    count = 0
    for path in (README, *sorted((harness.ROOT / "docs").glob("*.md"))):
        for block in blocks(path.read_text()):
            *before, last = block.splitlines()
            equal([line for line in before if is_endless(line)], [], f"{path.name}: not the last of its block")
            count += is_endless(last)
    assert count >= 5, count


def test_status_can_wait_for_a_daemon_that_is_starting(tmp):
    waiting = harness.popen([BUSCAP, "status", "--wait", "--socket", tmp / "sock"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal(waiting.stderr.readline().decode(), f"buscap status: {tmp}/sock: waiting up to 30 s for buscapd to start\n")
    with Daemon("--source", "sim:rate=10k", "-o", tmp / "out", socket=tmp / "sock") as daemon:
        out, err = waiting.communicate(timeout=harness.TIMEOUT_S)
        equal((waiting.returncode, err), (0, b""))
        assert out.startswith(b"buscapd "), out
        equal(daemon.stop(), 0, daemon.err)


def test_status_waits_only_while_there_is_no_daemon(tmp):
    (tmp / "file").write_text("")
    done = run(need("strace"), "-e", "trace=connect", "-o", tmp / "calls", BUSCAP, "status", "--wait", "--socket", tmp / "file")
    equal(done.returncode, 6, done.stderr)
    assert b"not a socket" in done.stderr or b"onnection refused" in done.stderr, done.stderr
    assert (tmp / "calls").read_text().count("connect(") <= 2, "it was tried again"


def test_link_targets_exist():
    for path in (README, harness.ROOT / "docs/README.md", *sorted((harness.ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text()):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name} points to {target}, which does not exist"


def test_the_commands_for_a_lab_host_work_on_debian():
    """A user's PATH lacks /usr/sbin, a user can't read the system journal, and drop-ins need their directory."""
    made = set()
    count = 0
    for line in (harness.ROOT / "docs/install.md").read_text().splitlines():
        if line.startswith("#"):
            made = set()  # a reader may start with this section
        if not line.startswith("    "):
            continue
        for command in re.split(r"[|;&]+", line.split("  #")[0]):
            words = command.split()
            if not words:
                continue
            count += 1
            assert words[0] not in ("buscapd", "journalctl", "runuser", "udevadm"), f"wants sudo: {line}"
            if words[:3] == ["sudo", "mkdir", "-p"]:
                made.add(words[3])
            for word in words[1:]:
                if word.startswith("/etc/systemd/system/") and ("ln" in words or "tee" in words):
                    assert os.path.dirname(word) in made, f"the section does not create its directory: {line}"
    assert count > 40, count


def test_the_index_has_every_document():
    index = (harness.ROOT / "docs/README.md").read_text()
    for path in sorted((harness.ROOT / "docs").iterdir()):
        if path.suffix in (".md", ".json") and path.name != "README.md":
            assert f"]({path.name})" in index, f"docs/README.md lacks {path.name}"


# ---- the examples of --help


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
