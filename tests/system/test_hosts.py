"""--hosts of find, marks, info and status, with an ssh of our own that runs the command here, or fails in one of many ways."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import signal

import pytest

import harness
from harness import BUSCAP, NIGHTLY, equal, need, popen, run
from mock_daemon import MockDaemon
from test_find import in_order, overlapping

# Called as "ssh -o BatchMode=yes -- DEST COMMAND". Like sshd, it gives the command a pipe as its input. A destination's
# answer may be in a file.
SSH = r"""#!/bin/sh
[ $# = 5 ] && [ "$1 $2 $3" = "-o BatchMode=yes --" ] || { echo "wrong arguments: $*" >&2; exit 254; }
echo "$4" >>"$HOSTS/asked"
case $4 in
refuses) echo "key refused" >&2; exit 255 ;;
fails) echo "buscap find: /x: can't open: No such file or directory" >&2; exit 1 ;;
old) echo "buscap find: unknown option --last; see buscap find --help" >&2; exit 2 ;;
mute) exit 7 ;;
killed) kill -9 $$ ;;
half) sh -c "$5" </dev/null | head -c 1000; exit 255 ;;
cut) sh -c "$5" </dev/null | head -c -1 ;;
torn) sh -c "$5" </dev/null | head -c -9 ;;
banner) echo "Welcome!"; sh -c "$5" </dev/null ;;
lies) echo '{"text":7,"kind":[],"state":null,"id":{}}' ;;
chatters) exec yes '{"text":"x","time":"2026-01-01T00:00:00.000000000Z"}' ;;
hangs*) echo $$ >>"$HOSTS/pids"; sleep 1000 & echo $! >>"$HOSTS/pids"; wait ;;
stubborn) trap '' TERM INT HUP; echo $$ >>"$HOSTS/pids"; while :; do sleep 1000; done ;;
lingers) sleep 1000 & echo $! >>"$HOSTS/pids"; sh -c "$5" </dev/null ;;
file*) cat "$HOSTS/$4"; exit "$(cat "$HOSTS/$4.code" 2>/dev/null || echo 0)" ;;
*) : | sh -c "$5" ;;
esac
"""
FAILURES = {"refuses": "exit code 255: key refused", "fails": "exit code 1: /x: can't open: No such file or directory",
            "old": "exit code 2, perhaps another version: unknown option --last; see buscap find --help",
            "mute": "exit code 7: no message", "killed": "ssh was killed by signal 9: no message", "half": "exit code 255: no message",
            "cut": "not a whole answer", "torn": "not a whole answer", "banner": "not a whole answer", "lies": "not a whole answer",
            "hangs": "no answer in time", "stubborn": "no answer in time"}


class Hosts:
    """A file of hosts, and the environment in which ours is ssh."""

    def __init__(self, tmp):
        self.tmp = tmp
        self.file = tmp / "hosts"
        (tmp / "bin").mkdir()
        (tmp / "bin/ssh").write_text(SSH)
        (tmp / "bin/ssh").chmod(0o755)
        (tmp / "bin/buscap").symlink_to(need(BUSCAP))
        self.env = {**os.environ, "PATH": f"{tmp}/bin:{os.environ['PATH']}", "HOSTS": str(tmp), "BUSCAP_SOCKET": "none"}

    def are(self, *lines):
        self.file.write_text("".join(f"{line}\n" for line in lines))

    def answer(self, name, objects, code=0):
        (self.tmp / name).write_text("".join(json.dumps(one) + "\n" for one in objects))
        (self.tmp / f"{name}.code").write_text(str(code))

    def ask(self, command, *argv, code=0):
        done = run(BUSCAP, command, "--hosts", self.file, *argv, env=self.env)
        equal(done.returncode, code, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def objects(self, command, *argv, code=0):
        out, err = self.ask(command, "--json", *argv, code=code)
        return [json.loads(line) for line in out.splitlines()], err

    def asked(self):
        with contextlib.suppress(FileNotFoundError):
            return (self.tmp / "asked").read_text().split()
        return []

    def is_alive(self):
        """Returns whether a process that hangs is left."""
        pids = (self.tmp / "pids").read_text().split()
        return any(pathlib.Path(f"/proc/{pid}/stat").exists() and
                   pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z" for pid in pids)


@pytest.fixture
def hosts(tmp):
    return Hosts(tmp)


def make_lab(lab):
    """Five recordings that overlap in time, of three hosts; the first has a copy on another one."""
    _, paths = overlapping(lab, random.Random(7), 5)
    names = sorted({path.name.rsplit("-", 1)[0] for path in paths})
    for path in paths:
        number = names.index(path.name.rsplit("-", 1)[0])
        for host in (number % 3, 1) if number == 0 else (number % 3,):
            (lab / f"h{host}").mkdir(exist_ok=True)
            shutil.copy(path, lab / f"h{host}")


@pytest.fixture
def lab(hosts):
    lab = harness.shared("hosts", make_lab)
    hosts.are("# the laboratory", "", *(f"h{n} {lab}/h{n}  # host {n}" for n in range(3)))
    return lab


def without_place(objects):
    return [{name: value for name, value in one.items() if name not in ("file", "node")} for one in objects]


def test_all_hosts_answer_as_one_directory(hosts, lab):
    paths = harness.segments(lab / "rec")
    everything = in_order(paths, ("find", "-j", "0-"))
    for options in ([], ["--first", "3"], ["--last", "7"], ["--type", "write"]):
        wanted = [hit for hit in everything if "write" not in options or hit["type"] == "MEMWRITE"]
        wanted = wanted[:3] if "--first" in options else wanted[-7:] if "--last" in options else wanted
        found, err = hosts.objects("find", *options, "0-")
        equal((without_place(found), err), (without_place(wanted), ""), options)
        for hit in found:
            assert hit["file"].startswith(f"{lab}/{hit['node']}/"), hit
    equal(hosts.ask("find", "--count", "0-")[0], f"{len(everything)}\n")
    equal(without_place(hosts.objects("marks")[0]), without_place(in_order(paths, ("marks", "-j"))))
    equal(sorted(hosts.asked()), sorted(["h0", "h1", "h2"] * 6))


def test_the_last_access_to_a_page_is_that_of_all_hosts(hosts, lab):
    paths = harness.segments(lab / "rec")
    everything = in_order(paths, ("find", "-j", "0-"))
    dice = random.Random(50)
    for _ in range(200 if NIGHTLY else 8):
        page = int(dice.choice(everything)["addr"], 16) & ~0xFFF
        near = [hit for hit in everything if int(hit["addr"], 16) >> 12 == page >> 12]
        found, _ = hosts.objects("find", "--last", "1", f"{page:x}-{page + 0xFFF:x}")
        equal(without_place(found), without_place(near[-1:]), f"{page:x}")


def test_lines_are_those_of_local_files_with_the_host(hosts, lab):
    out, _ = hosts.ask("find", "--region", "timer", "--map", "pc", "--first", "2")
    local = run(BUSCAP, "find", "--region", "timer", "--map", "pc", "--first", "2", *harness.segments(lab / "rec")).stdout.decode()
    for line, wanted in zip(out.splitlines(), local.splitlines(), strict=True):
        number, wall, node, file, text = line.split(maxsplit=4)
        equal([number, wall, os.path.basename(file), text],
              [os.path.basename(word) for word in wanted.split(maxsplit=3)[:3]] + [wanted.split(maxsplit=3)[3]])
        assert file.startswith(f"{lab}/{node}/") and line.index(number) == wanted.index(number), line
    local = run(BUSCAP, "marks", *harness.segments(lab / "rec")).stdout.decode()
    words = [[*line.split()[:2], *line.split()[4:]] for line in hosts.ask("marks")[0].splitlines()]
    equal(words, [[*line.split()[:2], *line.split()[3:]] for line in local.splitlines()])
    out, _ = hosts.ask("info")
    head, *rows = out.splitlines()
    equal(head.split()[:3], ["NODE", "ID", "STATE"])
    equal(sorted(row.split()[0] for row in rows), ["h0", "h0", "h1", "h1", "h1", "h2"], "a copy is where it is")
    equal([row["started"] for row in hosts.objects("info")[0]], sorted(row["started"] for row in hosts.objects("info")[0]))


@pytest.mark.parametrize("name", FAILURES)
def test_of_a_host_that_fails_only_the_reason_is_printed(hosts, lab, name):
    hosts.are(f"{name} {lab}/h0", f"good {lab}/h2")
    hangs = name in ("hangs", "stubborn")
    found, err = hosts.objects("find", *(["--timeout", "8"] if hangs else []), "0-", code=3)
    equal({hit["node"] for hit in found}, {"good"})
    harness.one_line(err, f"buscap find: {name}: {FAILURES[name]}")
    hosts.are(f"{name} {lab}/h0")
    out, err = hosts.ask("find", *(["--timeout", "0.3"] if hangs else []), "0-", code=1)
    equal(out, "")
    harness.one_line(err, f"buscap find: {name}: {FAILURES[name]}")
    if hangs:
        harness.wait_until(lambda: not hosts.is_alive(), "they end")


def test_a_host_that_keeps_talking_is_left_out(hosts, lab):
    hosts.are("chatters", f"good {lab}/h2")
    found, err = hosts.objects("find", "--first", "2", "0-", code=3)
    equal([hit["node"] for hit in found], ["good", "good"])
    harness.one_line(err, "buscap find: chatters: the answer is longer than 64 MiB; narrow the search")


def test_damage_is_the_hosts_own_message(hosts, lab):
    shutil.copytree(lab / "h0", hosts.tmp / "torn")
    path = max(harness.segments(hosts.tmp / "torn"), key=lambda path: path.stat().st_size)
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    hosts.are(f"h0 {hosts.tmp}/torn", f"h2 {lab}/h2")
    local = run(BUSCAP, "find", "--json", "0-", hosts.tmp / "torn")
    equal(local.returncode, 3, local.stderr)
    found, err = hosts.objects("find", "0-", code=3)
    equal(len([hit for hit in found if hit["node"] == "h0"]), len(local.stdout.splitlines()))
    equal(err, local.stderr.decode().replace("buscap find: ", "buscap find: h0: "))


def test_a_process_that_keeps_the_output_open_delays_nothing(hosts, lab):
    hosts.are(f"lingers {lab}/h0")
    assert hosts.objects("find", "--first", "1", "0-")[0]
    assert hosts.is_alive()
    for pid in (hosts.tmp / "pids").read_text().split():
        os.kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("lines, line, what", [
    (["good", "-oProxyCommand=touch x"], 2, "can't begin with"), (["a /b", "# c", "a b c # d"], 3, "more than"), ([], 1, "is empty"),
    (["", "# nothing"], 3, "without an ssh")])
def test_a_wrong_file_asks_no_host(hosts, lines, line, what):
    hosts.are(*lines)
    out, err = hosts.ask("find", "0-", code=2)
    assert out == "" and f"{hosts.file}: line {line}: " in err and what in err, err
    equal(hosts.asked(), [])


def test_what_is_for_this_machine_excludes_hosts(hosts, lab):
    for argv in (["find", "--context", "1", "0-"], ["find", "0-", lab], ["find", "-I", "byu", "0-"], ["info", lab], ["marks", lab],
                 ["status", "--wait"], ["status", "--watch"], ["status", "--socket", "x"], ["find", "--jobs", "0", "0-"],
                 ["find", "--timeout", "never", "0-"]):
        assert hosts.ask(*argv, code=2)[0] == ""
    equal(hosts.asked(), [])


def test_the_variable_counts_without_operands(hosts, lab):
    env = {**hosts.env, "BUSCAP_HOSTS": str(hosts.file)}
    equal(run(BUSCAP, "find", "--first", "1", "--json", "0-", env=env).stdout.count(b'"node":"h'), 1)
    assert b"node" not in run(BUSCAP, "find", "--first", "1", "--json", "0-", lab / "h0", env=env).stdout
    equal(sorted(hosts.asked()), ["h0", "h1", "h2"], "a host that has the variable, too, asks no others")


EVIL = ["'; touch {0}; '", '"; touch {0}; "', "$(touch {0})", "`touch {0}`", "a b; touch {0}", "\n touch {0}\n", "& touch {0} &", "\\'; touch {0} #",
        "| touch {0}", "END\ntouch {0}\n"]


@pytest.mark.parametrize("evil", EVIL)
def test_no_argument_runs_a_command(hosts, lab, evil):
    made = hosts.tmp / "made"
    evil = evil.format(made)
    hosts.are(f"h0 {lab}/h0")
    hosts.ask("find", "--after-mark", evil, "0-", code=1)  # there is no such mark
    equal(hosts.asked(), ["h0"])
    hosts.ask("find", "--type", evil, "0-", code=2)
    # A destination and a directory have no blanks.
    word = evil.strip().translate(str.maketrans(" \n#", "\t" * 3)).replace("\t", "${IFS}")
    (hosts.tmp / "map").write_text(f"0-fff {evil.strip().splitlines()[0]}\n")
    hosts.ask("find", "--map", hosts.tmp / "map", "--region", evil.strip().splitlines()[0], code=0)
    hosts.are(f"h0 {word}", f"{word} {lab}/h0")
    hosts.ask("find", "0-", code=3)
    assert not made.exists()


def test_two_hundred_hosts_of_which_twenty_hang(hosts):
    hosts.answer("file", [{"kind": "mark", "text": "x", "time": "2026-01-01T00:00:00.000000000Z", "number": 1}])
    for n in range(180):
        (hosts.tmp / f"file{n}").symlink_to("file")
    hosts.are(*(f"hangs{n}" for n in range(20)), *(f"file{n}" for n in range(180)))
    with popen([BUSCAP, "marks", "--hosts", hosts.file, "--timeout", "1h"], env=hosts.env) as process:
        harness.wait_until(lambda: len(hosts.asked()) == 200, "all are asked, although more hang than --jobs")
        process.send_signal(signal.SIGINT)
        equal(process.wait(), -signal.SIGINT)
    harness.wait_until(lambda: not hosts.is_alive(), "they end")
    hosts.are("hangs", *(f"file{n}" for n in range(20)))
    out, err = hosts.ask("marks", "--timeout", "8", code=3)
    equal((len(out.splitlines()), err.count("no answer in time")), (1, 1), "one mark that all have")


def test_no_more_hosts_at_a_time_than_jobs(hosts):
    hosts.are(*(f"hangs{n}" for n in range(9)))
    with popen([BUSCAP, "marks", "--hosts", hosts.file, "--jobs", "3"], env=hosts.env) as process:
        harness.wait_until(lambda: len(hosts.asked()) >= 3, "three are asked")
        harness.wait_until((hosts.tmp / "pids").exists, "they run")
        process.send_signal(signal.SIGINT)
        equal(process.wait(), -signal.SIGINT)
    harness.wait_until(lambda: not hosts.is_alive(), "Ctrl-C ends all")


def hit(at, number, recording, **more):
    return {"number": number, "time": f"2026-01-01T00:00:{at:02}.000000000Z", "recording": recording, "segment": 0, "file": "f", "text": f"{number}",
            "addr": "0x0", "type": "FETCH", "size": 1, **more}


def test_copies_are_printed_once_also_if_the_clock_was_set_back(hosts):
    """The record at 10 comes after one at 50 in one answer only."""
    hosts.answer("file1", [hit(20, 5, "r"), hit(50, 1, "s"), hit(10, 6, "r")])
    hosts.answer("file2", [hit(20, 5, "r", file="g"), hit(10, 6, "r", file="g"), hit(30, 7, "r"), hit(40, 1, "q")])
    hosts.are("file1", "file2")
    found, _ = hosts.objects("find", "0-")
    equal(sorted((one["recording"], one["number"]) for one in found), [("q", 1), ("r", 5), ("r", 6), ("r", 7), ("s", 1)])
    numbers = [one["number"] for one in found if one["recording"] == "r"]
    equal(numbers, sorted(numbers))
    # The same number with other contents is another record: a clone of a machine.
    hosts.answer("file2", [hit(20, 5, "r", text="other")])
    equal(len(hosts.objects("find", "0-")[0]), 4)


HOSTILE = ['{"text":"x"}', '{"text":"x","time":5,"number":"a","file":[],"addr":{},"type":1,"size":-1,"name":[]}',
           '{"text":"\\u001b[2J","time":"%s","number":-1,"kind":"gap"}' % ("9" * 5000), '{"text":"x","number":1e308,"addr":"0xzz","type":"IOREAD"}',
           '{"text":"x","node":"mallory","state":{},"id":"' + "i" * 3000 + '","duration_ns":1e99,"bytes":"x"}', "[" * 100_000, "{" * 5000, "\x00", "{}", "null",
           '{"text":"x","text":"y","time":null}']


@pytest.mark.parametrize("command", ["find", "marks", "info", "status"])
def test_a_hostile_answer_is_refused_or_printed_safely(hosts, command):
    for n, text in enumerate(HOSTILE):
        text = text.replace('"text":"', f'"{ {"find": "text", "marks": "kind", "info": "id", "status": "state"}[command] }":"', 1)
        (hosts.tmp / "file").write_text(text + "\n")
        hosts.are("file")
        for more in ([], ["--json"]):
            done = run(BUSCAP, command, "--hosts", hosts.file, *more, *(["0-"] if command == "find" else []), env=hosts.env)
            assert done.returncode in (0, 1), (n, done)
            assert b"\x1b" not in done.stdout + done.stderr, (n, done)
            assert b'"node":"mallory"' not in done.stdout


def test_status_has_a_line_for_each_host(hosts):
    status = {"state": "recording", "rates": {"samples_per_second": 1_500_000}, "counts": {"lost": {"buffer": 12}},
              "buffer": {"chunks": 10, "free_chunks": 9, "min_free_chunks": 5}, "disk": {"free_bytes": 5_000_000_000, "time_left_seconds": 7200}}
    with MockDaemon(hosts.tmp / "s", {"GET /v1/status": status}):
        hosts.env["BUSCAP_SOCKET"] = str(hosts.tmp / "s")
        hosts.are("h1 /ignored", "refuses", "h2")
        out, err = hosts.ask("status", code=3)
        found, _ = hosts.objects("status", code=3)
    head, *rows = out.splitlines()
    equal(head.split(), ["NODE", "STATE", "RATE", "LOST", "BUFFER", "DISK"])
    for name, row in zip(("h1", "h2"), rows, strict=True):
        equal([cell.strip() for cell in row.split("  ") if cell.strip()],
              [name, "recording", "1.50 M samples/s", "12 samples", "10 % in use", "2.0 hours left"])
    harness.one_line(err, "buscap status: refuses: exit code 255: key refused")
    equal(found, [{**status, "node": "h1"}, {**status, "node": "h2"}])
