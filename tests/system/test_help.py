"""--help and --options: every listed option is accepted and no other, fixed words are the accepted values, and every
example runs. formats/base/usage.h describes the output of --options."""

import collections
import os
import re
import shutil
import signal
import string
import subprocess

import pytest

import harness
from harness import BUILD, BUSCAP, BUSCAPD, Daemon, equal, run

pytestmark = pytest.mark.documents

Row = collections.namedtuple("Row", "command short long metavar kind summary")

# A value for each fixed word that takes one.
VALUES = {"duration:": "1s", "interval:": "1s", "filesize:": "64M", "files:": "3", "records:": "5", "usb:": "serial=A",
          "sim:": "seed=2", "file:": "x", "127.0.0.1:": "9100", "[::1]:": "9100"}
KINDS = {"none", "file", "dir", "format-read", "format-write", "choice", "list", "command", "setting", "number", "size",
         "time", "length", "range", "text"}


def rows_of(program):
    done = run(program, "--options")
    equal((done.returncode, done.stderr), (0, b""))
    return [Row(*line.split("\t")) for line in done.stdout.decode().splitlines()]


BUSCAP_ROWS = rows_of(BUSCAP)
BUSCAPD_ROWS = rows_of(BUSCAPD)
COMMANDS = [row.command for row in BUSCAP_ROWS if not row.short and not row.long and row.command != "-"]
CLIENTS = ("status", "record", "rotate", "mark", "snapshot", "trigger", "replay", "tail", "events")
CONFIG = [row for row in BUSCAPD_ROWS if row.command == "config"]


def options_of(command, rows=None):
    return [row for row in rows or BUSCAP_ROWS if row.command == command and (row.short or row.long)]


def words_of(row):
    return [word for word in (row.short and "-" + row.short, row.long and "--" + row.long) if word]


def verbs_of(command):
    return [name for name in COMMANDS if name.startswith(command + " ")]


def takes_options(command):
    """False for a command that only has verbs: it accepts only --help."""
    return command != "help" and (not verbs_of(command) or len(options_of(command)) > 1)


def refusal(*argv, program=BUSCAP):
    """Returns the error message, which must be one line."""
    done = run(program, *argv)
    equal((done.returncode, done.stdout), (2, b""), argv)
    text = done.stderr.decode()
    equal(text.count("\n"), 1, text)
    return text


def service_refusal(*argv):
    """The same for the daemon."""
    message = refusal(*argv, program=BUSCAPD)
    assert message.startswith("buscapd: "), message
    return message


def help_of(program, *words):
    done = run(program, *words)
    equal((done.returncode, done.stderr), (0, b""), words)
    text = done.stdout.decode()
    equal([line for line in text.splitlines() if len(line) > 100], [], f"lines that are too long: {words}")
    equal([line for line in text.splitlines() if line != line.rstrip()], [], f"blanks at the end: {words}")
    return text


def example_of(text):
    return text.split("\nExample: ")[1].rstrip("\n")


# ---- --help and --options


def test_each_command_and_verb_has_help_with_an_example():
    assert len(COMMANDS) > 30, COMMANDS
    for command in COMMANDS:
        text = help_of(BUSCAP, *command.split(), "--help")
        assert text.startswith(f"usage: buscap {command} "), text
        assert f"buscap {command}" in example_of(text), text
        assert "\nExit code: 0 " in text, text
        if command.split()[0] in CLIENTS:
            assert "--socket PATH" in text and "--json" in text and "Exit code: 0 ok" in text, text
            assert text.splitlines()[-1].startswith("Example: buscap "), text
        equal(help_of(BUSCAP, "help", *command.split()), text, f"help {command}")
        equal(help_of(BUSCAP, *command.split(), "-h"), text, f"{command} -h")
    text = help_of(BUSCAPD, "--help")
    equal(help_of(BUSCAPD, "-h"), text)
    assert example_of(text).startswith("buscapd "), text
    text = help_of(BUSCAP, "help")
    equal(help_of(BUSCAP, "--help"), text)
    for command in COMMANDS:
        assert " " in command or command == "help" or f"\n  {command} " in text, command


def test_help_and_options_list_agree():
    for program, rows, commands in ((BUSCAP, BUSCAP_ROWS, COMMANDS), (BUSCAPD, BUSCAPD_ROWS, ["-"])):
        for command in commands:
            text = help_of(program, *command.strip("-").split(), "--help")
            words = " ".join(text.split())
            for row in options_of(command, rows):
                assert row.summary and " ".join(row.summary.split()) in words, (command, row.summary)
                left = ", ".join(words_of(row)) + (" " + row.metavar if row.metavar else "")
                assert re.search(rf"^  +{re.escape(left)}  ", text, re.M), (left, text)
    for verb in (name for name in COMMANDS if " " in name):
        text = help_of(BUSCAP, verb.split()[0], "--help")
        assert f" buscap {verb} " in text, text
        for row in options_of(verb):
            assert row.summary in " ".join(text.split()), (verb, row.summary)


def test_rows_are_well_formed():
    for row in BUSCAP_ROWS + BUSCAPD_ROWS:
        for kind in row.kind.split(" "):
            assert kind.split(":")[0] in KINDS, row
        assert row.summary and row.summary == row.summary.strip(), row
        if row.short or row.long:
            equal(row.kind == "none", row.metavar == "", row)
        assert re.fullmatch(r"[A-Za-z0-9]?", row.short), row
        for kind in re.findall(r"(?:choice|list):(\S+)", row.kind):
            words = kind.split("|")
            assert all(words) and len(set(words)) == len(words), row
    for rows in (BUSCAP_ROWS, BUSCAPD_ROWS):
        listed = [(row.command, word) for row in rows for word in words_of(row)]
        equal(len(listed), len(set(listed)), "options listed twice")


# ---- options


def test_every_listed_option_is_accepted():
    for command in filter(takes_options, COMMANDS):
        for row in options_of(command):
            for word in words_of(row):
                if row.long == "help":
                    continue
                if row.metavar and not row.metavar.startswith("["):
                    message = refusal(*command.split(), word)
                    assert f"option {word} requires a value; see buscap {command} --help" in message, message
                else:
                    message = refusal(*command.split(), word, "--frobnicate")
                    assert f"unknown option --frobnicate; see buscap {command} --help" in message, message
    for row in options_of("-", BUSCAPD_ROWS):
        for word in words_of(row):
            if row.long in ("help", "version", "options", "list-settings"):
                done = run(BUSCAPD, word, "--frobnicate")
                equal((done.returncode, done.stderr), (0, b""), word)
            elif row.metavar:
                equal(service_refusal(word), f"buscapd: option {word} requires a value; see buscapd --help\n")
            else:
                equal(service_refusal(word, "--frobnicate"), "buscapd: unknown option --frobnicate; see buscapd --help\n")


NAMES = sorted({row.long for row in BUSCAP_ROWS + BUSCAPD_ROWS if row.long and row.command != "config"})


@pytest.mark.parametrize("command", filter(takes_options, COMMANDS))
def test_no_unlisted_option_is_accepted(command):
    letters = {row.short for row in BUSCAP_ROWS + BUSCAPD_ROWS if row.short} | {"x", "Z", "0"}
    rows = options_of(command)
    longs = {row.long for row in rows if row.long}
    unlisted = ["-" + letter for letter in sorted(letters - {row.short for row in rows})]
    unlisted += ["--" + name for name in NAMES if not any(long.startswith(name) for long in longs)]
    for option in ("--frobnicate", *harness.some(unlisted, 40)):
        message = refusal(*command.split(), option)
        assert f"unknown option {option}" in message, message


def test_the_daemon_accepts_no_unlisted_option():
    rows = options_of("-", BUSCAPD_ROWS)
    letters = set(string.ascii_letters + string.digits) - {row.short for row in rows}
    names = [name for name in NAMES if not any(row.long.startswith(name) for row in rows)]
    for option in harness.some(["-" + letter for letter in sorted(letters)] + ["--" + name for name in names], 6):
        equal(service_refusal(option), f"buscapd: unknown option {option}; see buscapd --help\n")


def test_errors_of_known_options_are_specific():
    for option in ("--t", "--t=1", "--output-", "--rec"):
        message = refusal("cut", option)
        assert (f"{option} is ambiguous" in message) == (option[:3] == "--t"), message
    assert "option --strict takes no value; see buscap cut --help" in refusal("cut", "--strict=3")
    assert "unknown option -s" in refusal("cut", "-s"), "the first letter of an option"
    assert "unknown option --=1" in refusal("cut", "--=1")
    equal(service_refusal("--o"), "buscapd: option --o is ambiguous; see buscapd --help\n")
    equal(service_refusal("--once=1"), "buscapd: option --once takes no value; see buscapd --help\n")
    equal(service_refusal("-cx", "-b"), "buscapd: option -b requires a value; see buscapd --help\n")
    equal(service_refusal("--once", "-xb"), "buscapd: unknown option -x; see buscapd --help\n")


def fixed_words(row):
    return [word + VALUES.get(word, "") for word in row.kind.split(":", 1)[1].split("|")]


def test_fixed_words_are_the_accepted_values():
    tried = 0
    for command in filter(takes_options, COMMANDS):
        for row in options_of(command):
            if not row.kind.startswith(("choice:", "list:")):
                continue
            words = fixed_words(row)
            if row.kind.startswith("list:"):
                words.append(",".join(words))
            for option in words_of(row):
                for word in words:
                    message = refusal(*command.split(), option, word, "--frobnicate")
                    assert "unknown option --frobnicate" in message, (command, option, word, message)
                    tried += 1
                # The daemon checks the types given to tail.
                if (command, row.long) != ("tail", "type"):
                    message = refusal(*command.split(), option, "nonsense", "--frobnicate")
                    assert "nonsense" in message and "--frobnicate" not in message, message
    assert tried > 100, tried


def check_config(*settings, source="sim:rate=1M"):
    argv = [word for setting in settings for word in ("--set", setting)]
    done = run(BUSCAPD, "--check-config", "-c", "/dev/null", "--source", source, *argv)
    return done.returncode, done.stderr.decode()


def concrete(key):
    return key.replace("CYCLE", "D_WRITE").replace("NAME", "x").replace("KEY", "x")


def test_every_listed_setting_is_known():
    for row in CONFIG:
        _, message = check_config(f"{concrete(row.long)}=")
        assert "no such" not in message, (row.long, message)
    for section in {row.long.split(".")[0] for row in CONFIG}:
        code, message = check_config(f"{concrete(section)}.frobnicate=1")
        assert code == 2 and "frobnicate" in message, (section, message)


def test_fixed_words_of_settings_are_the_accepted_values():
    for row in (row for row in CONFIG if row.kind.startswith(("choice:", "list:"))):
        key = concrete(row.long)
        # Settings that a value requires.
        more = ["recording.record=flight", "trigger x.when=gap"] if row.long.startswith("trigger") else []
        source = "file:/dev/null" if row.long == "source.speed" else "sim:rate=1M"
        words = fixed_words(row)
        for word in words + ([",".join(words)] if row.kind.startswith("list:") else []):
            code, message = check_config(*more, f"{key}={word}", source=source)
            equal((code, message), (0, ""), f"{key}={word}")
        code, message = check_config(*more, f"{key}=nonsense", source=source)
        assert code == 2 and "nonsense" in message, (key, message)
    for option, section in (("-b", "rotation."), ("-a", "stop.")):
        row = next(row for row in BUSCAPD_ROWS if row.short == option[1:])
        keys = [key.long.removeprefix(section) + ":" for key in CONFIG if key.long.startswith(section)]
        equal(sorted(row.kind.split(":", 1)[1].split("|")), sorted(keys), option)
        for word in fixed_words(row):
            done = run(BUSCAPD, "--check-config", "-c", "/dev/null", "--source", "sim", option, word)
            equal((done.returncode, done.stderr), (0, b""), f"{option} {word}")


# ---- commands


def test_a_misspelt_command_gets_a_suggestion():
    for wrong, right in (("recrod", "record"), ("dmup", "dump"), ("verfy", "verify"), ("statuss", "status"),
                         ("snapshott", "snapshot"), ("conv", "convert"), ("triger", "trigger")):
        for argv in ([wrong], [wrong, "--help"], ["help", wrong]):
            message = refusal(*argv)
            assert f"no such command: {wrong}; did you mean {right}?" in message, message
    for wrong in ("frobnicate", "x" * 5000, "", "-x", "--hel", "nope", "ls"):
        assert "did you mean" not in refusal(wrong), wrong
    assert "unknown option --hlep; see buscap --help" in refusal("--hlep")
    message = refusal("record", "strat")
    assert "strat: unknown verb; use start, stop, list, show or note" in message, message


# ---- examples

REFERENCES = "r 123456789abcdef0 4 9f8e7 9a8b7c6d\nw 123456789abcdefa 8 9a8b7 8888ffff3e456a21\n"
EVENTS = "F 123456789abcdef7 100 77\nM 123456789abcdefe 100 1a2b3c4d 9000 8efa5567 35 5 1029384756afbecd foobar.so\n"
TARMAC = ("100 clk cpu0 IT (135) 00008000 d2a00028 O EL3h_s : MOV      x8,#0x10000\n"
          "100 clk cpu0 R X8 0000000000010000\n")
# Commands to run before an example.
BEFORE = {"record stop": ["record start"], "record show": ["record start"], "record note": ["record start"],
          "rotate": ["record start"], "trigger remove": ["trigger add boot mark gap"],
          "replay cancel": ["replay --speed 0.0001 bus.bcp1 >replay.log 2>&1 & until buscap status | grep -q replay; do sleep 0.05; done"]}
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
    return any(row.long == "socket" for row in options_of(command)) or bool(verbs_of(command))


def test_every_example_of_files_runs(tmp):
    files_of_examples(tmp)
    for command in COMMANDS:
        if not is_live(command):
            line = example_of(help_of(BUSCAP, *command.split(), "--help"))
            if "valgrind" in line and shutil.which("valgrind") is None:
                harness.note(f"the example of {command} is skipped: valgrind is not installed")
                continue
            finish(shell(tmp, line), line)
    for program in (BUSCAP, BUSCAPD):
        line = example_of(help_of(program, "--help"))
        finish(shell(tmp, line), line)


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
            line = example_of(help_of(BUSCAP, *command.split(), "--help"))
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
