"""What operands stand for: every command that reads, with files, directories, ids, and nothing."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from harness import BUSCAP, BUSCAPD, equal, need, popen, run, shared
from mock_daemon import MockDaemon
from web_harness import Web

COMMANDS = {
    "info": (), "verify": (), "find": ("--count", "0-3ffff"), "find --json": ("--last", "5", "--json", "0-"), "marks": ("--json",),
    "report": ("--json",), "stats": ("--json",), "dump": ("--records", "87300-87400"), "convert": ("-O", "byu"),
    "cut": ("--records", "87300-87400", "-O", "ndjson"), "merge": ("-O", "byu"), "diff": ("--json",),
}
WITHOUT = ("info", "verify", "find", "find --json", "marks", "report")  # read the daemon's directory without an operand
NAME = re.compile(r"(\d{8}T\d{6}Z-[0-9a-f]{6})-(\d{5})\.byu\.lz4")


def make_lab(lab):
    for host, seed in (("host1", 1), ("host2", 2), ("host2", 3)):
        (lab / host).mkdir(exist_ok=True)
        done = run(need("unshare"), "--uts", "sh", "-c", 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"', host, need(BUSCAPD), "--once",
                   "--source", f"sim:seed={seed},rate=max,count=200000", "-o", lab / host, "-b", "filesize:16K")
        equal(done.returncode, 0, done.stderr.decode())


def names(directory):
    """The segments below a directory, in the order of their names."""
    return sorted((path for path in pathlib.Path(directory).rglob("*.byu.lz4")), key=lambda path: path.name)


def recordings(directory):
    return sorted({NAME.fullmatch(path.name)[1] for path in names(directory)})


@pytest.fixture(scope="module")
def lab():
    return shared("lab", make_lab)


def buscap(command, *operands, code=0, data=None, socket="none"):
    word = command.split()[0]
    done = run(need(BUSCAP), word, *COMMANDS[command], *operands, data=data, env={**os.environ, "BUSCAP_SOCKET": str(socket)})
    equal(done.returncode, code, f"{command} {operands}: {done.stderr.decode()}")
    return re.sub(rb'"made":"[^"]*"', b'"made":""', done.stdout) if command == "report" else done.stdout


@contextlib.contextmanager
def daemon_in(directory, tmp):
    with MockDaemon(tmp / "s", {"GET /v1/status": {"directory": str(directory)}}) as daemon:
        yield daemon.path


def several(command, operand):
    """The operands of a command that may need two."""
    return (operand, operand) if command == "diff" else (operand,)


def by_files(command, files):
    """What the command prints for these files of recordings, named one by one."""
    if command == "diff":
        return buscap(command, files[0], *files) if len(files) == 1 else None
    return buscap(command, *files)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_directory_and_an_id_stand_for_their_files(command, lab, tmp):
    first, *_, last = recordings(lab)
    places = {"a directory": (lab / "host2", names(lab / "host2")), "subdirectories": (lab, names(lab))}
    with daemon_in(lab, tmp) as socket:
        for word in (first, last, last[:-1], last + "-no-label"):
            files = [path for path in names(lab) if path.name.startswith(word)]
            if word == last + "-no-label":
                buscap(command, *several(command, word), code=1, socket=socket)
                continue
            if command in ("merge", "info"):  # one input; see below
                continue
            got = buscap(command, *several(command, word), socket=socket)
            if command == "diff":
                equal(json.loads(got.splitlines()[-1])["differences"], 0)
            else:
                equal(got, by_files(command, files), word)
        text = buscap(command, *several(command, "2"), code=2, socket=socket)
        equal(text, b"", "an ambiguous id")
        if command in WITHOUT:
            equal(buscap(command, socket=socket), buscap(command, lab), "nothing")
    if command == "diff":  # a side is one recording
        buscap(command, lab, lab, code=2)
        done = buscap(command, lab / "host1", *names(lab / "host1"))
        equal(json.loads(done.splitlines()[-1])["differences"], 0)
    for what, (operand, files) in places.items():
        if command not in ("diff", "info"):
            equal(buscap(command, operand), by_files(command, files), what)
    if command not in WITHOUT and command not in ("merge", "diff"):
        data = names(lab)[0].read_bytes()
        equal(buscap(command, data=data).replace(b"-", b""), buscap(command, "-", data=data).replace(b"-", b""), "standard input")
    elif command in WITHOUT:
        buscap(command, code=6)


def test_info_prints_a_line_for_each_recording_and_their_sum(lab, tmp):
    rows = [json.loads(line) for line in run(need(BUSCAP), "info", "--json", lab).stdout.splitlines()]
    equal([row["id"] for row in rows], recordings(lab))
    equal({row["host"] for row in rows}, {"host1", "host2"})
    for row in rows:
        files = [path for path in names(lab) if path.name.startswith(row["id"])]
        parts = [json.loads(line) for line in run(need(BUSCAP), "info", "--json", *files).stdout.splitlines()]
        equal((row["segments"], row["records"], row["bytes"], row["lost"], row["state"], row["path"], row["reason"]),
              (len(files), sum(part["records"] for part in parts), sum(path.stat().st_size for path in files), 0, "sealed",
               str(files[-1]), "source"))
        assert 0 < row["duration_ns"] < 60e9
    head, *lines, total = buscap("info", lab).decode().splitlines()
    equal(head.split()[:2], ["ID", "STATE"])
    equal([line.split()[0] for line in lines], recordings(lab))
    equal(total.split()[:3], ["total", str(sum(row["segments"] for row in rows)), f"{sum(row['records'] for row in rows):,}"])
    with daemon_in(lab, tmp) as socket:
        equal(buscap("info", recordings(lab)[0][:-1], socket=socket).decode().splitlines(), [head, lines[0]])


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("diff", "merge")])
def test_what_can_not_be_read_is_said_and_the_rest_is_read(command, lab, tmp):
    need("setpriv")
    tmp.chmod(0o755)
    for host in ("host1", "host2"):
        shutil.copytree(lab / host, tmp / host, ignore=shutil.ignore_patterns(".*"))
    wanted = buscap(command, tmp)
    first, *_, last = names(tmp)
    one = NAME.fullmatch(last.name)[1]
    foreign = [tmp / f"{one}-00077.byu.lz4", tmp / "host1/20260101T000000Z-000000-00000.byu.lz4"]
    shutil.copy(first, foreign[0])  # by its header it is another segment
    for name in (f"{one}-00001.byu.lz4.damaged", f"{first.name}.partial", "notes"):
        (tmp / name).write_text("text")  # is damaged, a copy, no segment
    (tmp / "closed").mkdir(mode=0)

    done = run("setpriv", "--reuid", "65534", "--clear-groups", need(BUSCAP), command.split()[0], *COMMANDS[command], tmp)
    err = [line for line in done.stderr.decode().splitlines() if str(tmp) in line]
    equal((done.returncode, len(err)), (3 if command == "report" else 1, 2), done.stderr.decode())
    assert any(f"{foreign[0]}: skipped: by its header" in line for line in err), err
    assert any(f"{tmp}/closed: can't open: Permission denied" in line for line in err), err
    if command == "report":
        equal(json.loads(done.stdout)["overview"]["recordings"], json.loads(wanted)["overview"]["recordings"])
    else:
        equal(done.stdout, wanted)
    (tmp / "closed").rmdir()
    foreign[0].unlink()
    equal(buscap(command, tmp), wanted)
    foreign[1].write_text("text")
    os.utime(foreign[1], (1767229200, 1767229200))  # an hour after its name
    done = run(need(BUSCAP), command.split()[0], *COMMANDS[command], tmp)
    if command == "find --json":  # it doesn't get that far back
        equal(done.returncode, 0, done.stderr.decode())
        return
    equal(done.returncode, 3, done.stderr.decode())
    assert str(foreign[1]).encode() in done.stderr + done.stdout, done.stderr


@pytest.mark.parametrize("command", [("dump",), ("convert", "-O", "byu")])
def test_files_that_are_deleted_or_sealed_meanwhile_are_not_missing(command, lab, tmp):
    shutil.copytree(lab, tmp / "lab")
    first, second, third = ([path for path in names(tmp / "lab") if path.name.startswith(name)] for name in recordings(lab))
    wanted = run(need(BUSCAP), *command, *first, *third).stdout
    open_end = third[-1].with_name(third[-1].name + ".partial")
    third[-1].rename(open_end)
    reader = popen([need(BUSCAP), *command, tmp / "lab"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    got = os.read(reader.stdout.fileno(), 1)  # it has listed all and, as its output is long, not read on
    for path in second:
        path.unlink()
    open_end.rename(third[-1])
    out, err = reader.communicate()
    equal((reader.returncode, got + out), (0, wanted), err.decode())


def test_diff_names_a_directory_of_several_recordings_and_the_files_of_one(lab):
    done = run(need(BUSCAP), "diff", names(lab)[0], lab / "host2")
    equal((done.returncode, done.stdout, done.stderr.decode()), (2, b"", f"buscap diff: {lab}/host2: has several recordings; "
          f"name one by its id or its files, such as {names(lab / 'host2')[0]}\n"))


def test_diff_counts_the_files_of_both(lab):
    files = names(lab / "host1")
    assert len(files) > 2, files
    done = run(need(BUSCAP), "diff", lab / "host1", lab / "host1")
    equal(done.stdout.decode().splitlines()[:2],
          [f"{side}: {files[0]} and {len(files) - 1} more (segment)" for side in ("--- A", "+++ B")])


def test_web_shows_files_directories_and_ids(lab, tmp):
    first, *_, last = recordings(lab)

    def shown(*operands, **options):
        with Web(*operands, **options) as web:
            return [(one["id"], one["host"]) for one in web.get("/data/overview")["recordings"]]

    everything = [(name, "host1" if name in recordings(lab / "host1") else "host2") for name in recordings(lab)]
    by_id = dict(everything)
    equal(sorted(shown(lab)), everything)
    equal(shown(lab / "host1"), [(first, "host1")])
    equal(shown(*names(lab / "host1")), [(first, "host1")])
    with daemon_in(lab, tmp) as socket:
        equal(shown(last[:-1], "--socket", socket), [(last, by_id[last])])
        equal(sorted(shown("--socket", socket)), everything)


def test_a_pipe_is_read_or_refused(tmp):
    """Without operands, most commands read the daemon's directory: not what was piped into them."""
    trace = tmp / "x.din"
    trace.write_text("0 1000\n1 1004\n2 2000\n" * 20)
    def code(command, **stdin):
        done = subprocess.run([BUSCAP, *command], capture_output=True, timeout=30, check=False, **stdin)
        return done.returncode, b"standard input is not read; use -, or name files" in done.stderr

    for command in (["verify"], ["info"], ["find", "0-"], ["marks"], ["report", "-o", tmp / "x.html"], ["web"]):
        equal(code(command, input=trace.read_bytes()), (2, True), command)
        with trace.open("rb") as file:
            equal(code(command, stdin=file), (2, True), command)
    for command in (["stats"], ["cut"], ["dump"], ["convert", "-O", "csv"]):
        equal(code(command, input=trace.read_bytes()), (0, False), command)
