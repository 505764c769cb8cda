"""The daemon from outside: start, socket, stop and reload."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import stat
import time

import pytest

import harness
from api_harness import Stream
from harness import BUSCAP, BUSCAPD, Daemon, Watch, check_counts, equal, info, run, verify

pytestmark = pytest.mark.threads

SIM = ("--source", "sim:rate=20k")

STATUS = {
    "": {"version", "state", "source", "directory", "recording", "counts", "rates", "buffer", "disk", "clients", "uptime_seconds"},
    "source": {"kind", "name", "clock_hz", "board"},
    "recording": {"id", "label", "started", "segment", "path", "records", "bytes"},
    "counts": {"received", "written", "durable", "in_flight", "dropped", "lost", "skipped_bytes", "gaps", "inexact_gaps"},
    "counts.dropped": {"buffer", "disk", "invalid", "filtered", "idle"},
    "rates": {"samples_per_second", "record_bytes_per_second", "written_bytes_per_second"},
    "buffer": {"chunks", "free_chunks", "min_free_chunks"},
    "disk": {"free_bytes", "time_left_seconds", "last_error"},
}


def daemon_in(tmp, *argv, **options):
    return Daemon("-o", tmp / "out", *argv, socket=tmp / "socket", **options)


def refused(*argv, code, words, **options):
    """Expects the run to fail with this exit code and one line with these words. Returns the line."""
    done = run(BUSCAPD, *argv, **options)
    err = done.stderr.decode()
    equal(done.returncode, code, f"{argv}: {err}")
    equal(done.stdout, b"", "standard output")
    equal(err.count("\n"), 1, f"lines; {err}")
    for word in words:
        assert word in err, f"{argv}: {word!r} is not in: {err}"
    return err


# ---- options and configuration


@pytest.mark.asan
@pytest.mark.single
def test_help_and_version():
    done = run(BUSCAPD, "--help")
    equal(done.returncode, 0)
    for word in (b"--source", b"--check-config", b"--socket", b"Exit", b"Example"):
        assert word in done.stdout, word
    assert max(map(len, done.stdout.splitlines())) <= 100
    done = run(BUSCAPD, "--version")
    assert re.fullmatch(rb"buscapd \d+\.\d+\.\d+\n", done.stdout), done.stdout


@pytest.mark.single
def test_help_that_cannot_be_written_is_a_failure():
    for option in ("--help", "--version", "--options", "--list-settings"):
        with open("/dev/full", "wb") as full:
            done = run(BUSCAPD, option, stdout=full)
        equal(done.returncode, 1, option)
        equal(done.stderr, b"buscapd: can't write to standard output: No space left on device\n", option)


@pytest.mark.single
def test_a_usage_error_ends_the_daemon():
    """tests/unit/daemon/test_options.c has all others."""
    equal(refused("--frob", code=2, words=[]), "buscapd: unknown option --frob; see buscapd --help\n")


@pytest.mark.asan
@pytest.mark.tsan
def test_a_trace_of_another_format_is_rejected_by_name(tmp):
    bus = tmp / "bus.bcp1"
    equal(run(BUSCAP, "sim", "--count", "2000", "-O", "bcp1", "-o", bus).returncode, 0, "sim")
    traces = {}
    for name in ("din", "xdin", "laplace", "laplace-text", "tarmac", "vcd", "csv", "ndjson", "rowbinary"):
        traces[name] = tmp / name
        done = run(BUSCAP, "convert", "-O", name, "-o", traces[name], bus)
        equal(done.returncode, 0, done.stderr.decode())
    traces["lackey"] = tmp / "lackey"
    traces["lackey"].write_text("I  04001000,3\n L 1ffeff0a8,8\n S 1ffeff0a0,8\nI  04001003,5\n")
    traces["text"] = tmp / "text"
    traces["text"].write_text("what is this? " * 100)
    rejected = []
    for name, path in traces.items():
        done = run(BUSCAPD, "--once", "--source", f"file:{path}", "-o", tmp / "out", "--no-socket")
        err = done.stderr.decode()
        equal(done.returncode, 1, f"{name}: {err}")
        assert json.loads(done.stdout)["counts"]["received"] == 0, done.stdout
        equal(harness.segments(tmp / "out"), [], f"{name}: a segment was created")
        if f"{name} is not a bus trace: convert it" in err:
            rejected.append(name)
        else:
            assert "unknown format" in err, f"{name}: {err}"
    assert {"din", "xdin", "laplace-text", "tarmac", "lackey"} <= set(rejected), rejected


def config(tmp, text, name="buscapd.conf"):
    path = tmp / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


GOOD = """; as in the manual
[source]
source = sim:rate=100k
[rotation]
filesize = 8M
duration = 1h
files = 10
[stop]
records = 1000000
[space]
max_use = 10G
keep_free = 1G
max_age = 30d
[pipeline]
buffer = 32M
workers = 2
flush = 500ms
sync = 0.1
[mapping]
invalid = keep
size = v1.0
attr.D_WRITE = 7
[socket]
path =
group = buscap
[log]
level = debug
"""


@pytest.mark.single
def test_a_valid_configuration_is_confirmed(tmp):
    done = run(BUSCAPD, "--check-config", "-c", config(tmp, GOOD))
    equal((done.returncode, done.stderr), (0, b""), "the check")
    equal(done.stdout, b"configuration is valid\n")
    assert not (tmp / "out").exists()


@pytest.mark.single
def test_all_errors_are_reported_at_once(tmp):
    path = config(tmp, "[log]\njust words\nlevel = shout\n[pipe]\n[space]\nmax_use = 1K\n")
    second = config(tmp, "[log]\nlevel = whisper\n", "conf.d/second.conf")
    done = run(BUSCAPD, "--check-config", "-c", path, "--source", "sim", "--set", "pipeline.workers=0")
    err = done.stderr.decode()
    equal((done.returncode, done.stdout), (2, b""), err)
    for line, words in zip(err.splitlines(), (f"{path}:2: expected", f"{path}:3: level = shout", f"{path}:4: [pipe]: no such",
                                              f"{second}:2: level = whisper", "command line: workers = 0",
                                              "max_use: too small"), strict=True):
        assert words in line, f"{words}: {line}"


@pytest.mark.asan
@pytest.mark.single
def test_the_settings_in_effect_are_printed(tmp):
    path = config(tmp, GOOD)
    config(tmp, "[rotation]\nfilesize = 4M\n", "conf.d/more.conf")
    argv = ("--print-config", "--once", "--set", "usb.serial=A1", "--set", "pipeline.buffer=32768K")
    done = run(BUSCAPD, *argv, "-c", path)
    equal((done.returncode, done.stderr), (0, b""), "the settings")
    text = done.stdout.decode()
    for line in ("source = sim:rate=100k", "filesize = 4M", "files = 10", "serial = A1", "buffer = 32M", "path =",
                 "record = always", "sync = 100ms", "attr.D_WRITE = 7", "#interval ="):
        assert f"\n{line}\n" in text, f"{line}: {text}"
    # The output is a configuration with the same settings.
    again = run(BUSCAPD, "--print-config", "-c", config(tmp, text, "again/buscapd.conf"))
    equal((again.returncode, again.stdout.decode()), (0, text), "the settings")
    refused("--print-config", "-c", path, "--set", "log.level=loud", code=2, words=["loud"])


@pytest.mark.single
def test_an_unreadable_configuration_is_reported(tmp):
    path = config(tmp, GOOD)
    path.chmod(0)
    if os.geteuid() != 0:
        refused("--check-config", "-c", path, code=2, words=[str(path), "Permission denied"])
        return
    # Root can read anything, other users cannot.
    tmp.chmod(0o755)
    try:
        run(BUSCAPD, "--version", user=65534, group=65534, extra_groups=[])
    except PermissionError:
        pytest.skip("another user can't run the program from this directory")
    refused("--check-config", "-c", path, code=2, words=[str(path), "Permission denied"], user=65534, group=65534,
            extra_groups=[])


# ---- errors at startup


def test_missing_inputs_and_directories_are_reported(tmp):
    out = tmp / "out"
    refused("--once", "--source", f"file:{tmp}/none", "-o", out, code=1, words=[f"file:{tmp}/none", "No such file"])
    refused("--once", "--source", f"file:{tmp}", "-o", out, code=1, words=[str(tmp), "Is a directory"])
    plain = tmp / "plain"
    plain.write_text("")
    refused("--once", *SIM, "-o", plain, code=1, words=[str(plain), "can't", "Not a directory"])
    refused("--once", *SIM, "-o", plain / "below", code=1, words=[str(plain / "below"), "Not a directory"])
    refused("--once", *SIM, "-o", tmp / "a/b", code=1, words=[str(tmp / "a/b"), "No such file"])
    refused(*SIM, "-o", out, "--socket", tmp / "a/socket", code=1, words=[str(tmp / "a/socket"), "No such file"])


@pytest.mark.single
@pytest.mark.skipif(harness.is_sanitized(), reason="programs with AddressSanitizer are linked with the library")
def test_the_library_for_http_is_needed_by_a_socket_only(tmp):
    (tmp / "libmicrohttpd.so.12").touch()
    env = {**os.environ, "LD_LIBRARY_PATH": str(tmp)}
    argv = "-o", tmp / "out", "--once", "--source", "sim:rate=max,count=1"
    words = "libmicrohttpd.so.12: file too short", "install or update the package libmicrohttpd12"
    refused(*argv, "--socket", tmp / "s", code=1, words=words, env=env)
    refused(*argv, "--no-socket", "--set", "socket.metrics_listen=127.0.0.1:9", code=1, words=words, env=env)
    assert not (tmp / "out").exists()
    equal(run(BUSCAPD, *argv, "--no-socket", env=env).returncode, 0)
    equal(run(BUSCAP, "web", tmp, env=env).stderr.decode(), f"buscap web: {tmp}/{words[0]}; {words[1]}\n")


def test_a_stale_socket_is_replaced(tmp):
    with daemon_in(tmp, *SIM) as first:
        first.wait_ready()
        first.process.kill()
        first.wait()
    assert (tmp / "socket").is_socket()
    with daemon_in(tmp, *SIM) as second:
        equal(second.wait_ready()["state"], "recording", "state")
        mode = (tmp / "socket").stat().st_mode
        equal(stat.S_IMODE(mode), 0o660, "mode of the socket")
        equal(second.stop(), 0, second.err)
    assert not (tmp / "socket").exists(), "the socket was not removed"


def test_a_socket_that_was_deleted_is_made_again(tmp):
    """By a cleanup of /tmp, or a logout that removes the user's runtime directory."""
    where = tmp / "run" / "socket"
    where.parent.mkdir()
    with Daemon(*SIM, "-o", tmp / "out", socket=where) as daemon:
        daemon.wait_ready()
        with Stream(where, "/v1/events", "Event") as events:
            shutil.rmtree(where.parent)
            harness.wait_until(lambda: "can't connect until it can be made again: " in daemon.log_so_far(), "it notices")
            where.parent.mkdir()
            equal(daemon.wait_ready()["state"], "recording", "state")
            events.until(lambda event: event["event"] == "status")
        # Another daemon is refused as ever.
        refused(*SIM, "-o", tmp / "other", "--socket", where, code=1, words=[f"process {daemon.process.pid} "])
        equal(daemon.stop(), 0, daemon.err)
    assert not where.exists(), "the socket was not removed"


@pytest.mark.asan
def test_a_file_that_is_not_a_socket_is_kept(tmp):
    (tmp / "socket").write_text("precious")
    refused(*SIM, "-o", tmp / "out", "--socket", tmp / "socket", code=1, words=[str(tmp / "socket"), "is not a socket"])
    equal((tmp / "socket").read_text(), "precious")


# ---- the end


def test_a_signal_at_full_load_seals(tmp):
    for number in (signal.SIGTERM, signal.SIGINT):
        out = tmp / number.name
        with Daemon("--once", "-o", out, "--source", "sim:rate=max", socket=tmp / "socket") as daemon:
            daemon.wait_ready()
            with Watch(daemon.socket) as watch:
                harness.wait_until(lambda: watch.last and watch.last["counts"]["written"] > harness.rate(500_000), "the daemon records")
                watch.finish()
            start = time.monotonic()
            code = daemon.stop(number)
            took = time.monotonic() - start
        equal(code, 0, daemon.err.decode())
        harness.note(f"{number.name} at full load: sealed and ended after {took * 1000:.0f} ms")
        equal(list(out.glob("*.partial")), [], "left open")
        segments = harness.segments(out)
        verify(segments)
        counts = check_counts(json.loads(daemon.out))
        equal(counts["received"], counts["written"] + counts["dropped"]["invalid"], "samples without a loss")
        equal(harness.compare_with_sim(segments), counts["written"], "records in the files")


def test_losses_by_the_board_are_reported_at_the_end(tmp):
    with daemon_in(tmp, "--source", "sim:rate=max,loss=0.1") as daemon:
        harness.wait_until(lambda: daemon.wait_ready()["counts"]["lost"]["board"], "the board has lost samples")
        equal(daemon.stop(), 4, daemon.err.decode())
    assert b"warning" in daemon.err and b"board" in daemon.err, daemon.err


def test_a_service_outlives_its_source(tmp):
    with daemon_in(tmp, "--source", "sim:rate=max,count=1000") as daemon:
        daemon.wait_ready()
        status = harness.wait_until(lambda: daemon.status()["state"] == "idle" and daemon.status(), "the daemon is idle")
        equal(check_counts(status)["durable"], status["counts"]["written"], "durable")
        reload(daemon, "SIGHUP: applied ")
        equal(daemon.status()["state"], "idle", "state")
        equal(daemon.stop(), 0, daemon.err)


def test_a_service_reports_that_its_source_failed(tmp):
    # Its format can't be detected.
    path = tmp / "input"
    path.write_bytes(random.Random(1).randbytes(1 << 16))
    with daemon_in(tmp, "--source", f"file:{path}") as daemon:
        harness.wait_until(lambda: daemon.wait_ready()["state"] == "failed", "the source has failed")
        equal(daemon.stop(), 1, daemon.err)
    assert daemon.err.decode().count("format") >= 1, daemon.err


# ---- the socket


def test_the_status_has_what_scripts_depend_on(tmp):
    rate = harness.rate(200_000)
    with daemon_in(tmp, "--source", f"sim:rate={rate}", "--label", "boot") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["rates"]["written_bytes_per_second"], "records are written")

        def as_usual():
            """The status, once the machine is not busy and the previous client is gone."""
            now = daemon.status()
            return rate / 2 < now["rates"]["samples_per_second"] < rate * 2 and now["clients"] == 1 and now

        status = harness.wait_until(as_usual, f"{rate} samples a second and one client")
        for path, names in STATUS.items():
            value = status
            for name in filter(None, path.split(".")):
                value = value[name]
            assert names <= set(value), f"{path} lacks {names - set(value)}"
        recording = status["recording"]
        equal((status["source"]["kind"], status["state"], recording["label"]), ("sim", "recording", "boot"))
        assert pathlib.Path(recording["path"]).exists(), recording
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", recording["started"]), recording
        assert recording["id"].endswith("-boot"), recording
        assert status["disk"]["free_bytes"] > 0 and status["disk"]["time_left_seconds"] > 0, status["disk"]
        assert 0 < status["buffer"]["free_chunks"] <= status["buffer"]["chunks"], status["buffer"]
        assert 0 < status["uptime_seconds"] < 3600


# ---- reload


def reload(daemon, words):
    """Sends SIGHUP and waits for the last line that it logs. Returns what has been logged since."""
    at = len(daemon.log_so_far())
    daemon.process.send_signal(signal.SIGHUP)
    log = harness.wait_until(lambda: (log := daemon.log_so_far()[at:]) and re.search(
        "SIGHUP: applied .*\n|keeping the old configuration\n", log) and log, "SIGHUP is logged")
    assert words in log, log
    return log


@pytest.mark.asan
@pytest.mark.tsan
def test_a_reload_changes_rotation_and_flush(tmp):
    path = config(tmp, "[source]\nsource = sim:rate=1k\n[pipeline]\nflush = 100s\n")
    out = tmp / "out"
    with daemon_in(tmp, "-c", path) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["received"] > 100, "samples are received")
        # Less than a chunk, and a long flush interval.
        equal(daemon.status()["counts"]["written"], 0, "written")
        path.write_text("[source]\nsource = sim:rate=1k\n[pipeline]\nflush = 50ms\n[rotation]\nduration = 300ms\n"
                        "[space]\nmax_use = 1G\n")
        reload(daemon, "SIGHUP: applied ")
        harness.wait_until(lambda: len(harness.segments(out)) >= 4, "segments follow one another")
        count = len(harness.segments(out))

        def has_rotated():
            daemon.process.send_signal(signal.SIGHUP)
            return len(harness.segments(out)) >= count + 2

        harness.wait_until(has_rotated, "a reload that changes nothing does not delay the next segment")
        path.write_text("[source]\nsource = sim:rate=1k\n[pipeline]\nflush = 50ms\n[rotation]\nduration = 300ms\n"
                        "files = 2\n")
        reload(daemon, "SIGHUP: applied ")
        harness.wait_until(lambda: len(list(out.glob("*.byu.lz4*"))) <= 2, "old segments are deleted")
        equal(daemon.stop(), 0, daemon.err)


def size_of(path):
    """The size of a file, 0 if it has since been deleted."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_a_reload_changes_the_space(tmp):
    path = config(tmp, "")
    out = tmp / "out"
    with daemon_in(tmp, "--source", f"sim:rate={harness.rate(1_000_000)}", "-c", path, "-b", "filesize:400K") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: len(harness.segments(out)) > 8, "segments follow one another")
        path.write_text("[space]\nmax_use = 2M\n")
        reload(daemon, "SIGHUP: applied ")
        harness.wait_until(lambda: sum(size_of(file) for file in out.glob("*.lz4")) <= 2 << 20, "old segments are deleted")
        assert daemon.stop() in (0, 4), daemon.err


def test_a_reload_changes_the_log_level(tmp):
    path = config(tmp, "[log]\nlevel = error\n")
    with daemon_in(tmp, *SIM, "-c", path, "-b", "duration:0.2", "--set", "pipeline.flush=50ms") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: len(harness.segments(tmp / "out")) > 2, "segments follow one another")
        equal(daemon.log_so_far(), "", "the log")
        path.write_text("[log]\nlevel = info\n")
        daemon.process.send_signal(signal.SIGHUP)
        count = len(harness.segments(tmp / "out"))
        harness.wait_until(lambda: len(harness.segments(tmp / "out")) > count + 2, "segments follow one another")
        equal(daemon.stop(), 0, daemon.err)
    assert b"sealed" in daemon.err, daemon.err


def test_a_reload_names_settings_that_need_a_restart(tmp):
    path = config(tmp, "[source]\nsource = sim:rate=100k\n[output]\ndir = %s\n" % (tmp / "out"))
    with Daemon("-c", path, socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        path.write_text("[source]\nsource = sim:rate=200k\n[output]\ndir = %s\nlabel = x\n[pipeline]\nbuffer = 32M\n"
                        "[mapping]\ninvalid = keep\n[stop]\nrecords = 5\n" % (tmp / "elsewhere"))
        err = reload(daemon, "source.source")
        for name in ("output.dir", "output.label", "pipeline.buffer", "mapping.invalid", "stop.records"):
            assert re.search(re.escape(name) + ".*restart", err), f"{name}: {err}"
        for name in ("pipeline.workers", "socket.path", "source.speed"):
            assert name not in err, f"{name}: {err}"
        time.sleep(0.1)
        equal(daemon.status()["state"], "recording", "state")
        equal(daemon.stop(), 0, daemon.err)
    assert not (tmp / "elsewhere").exists()


def test_an_invalid_configuration_is_rejected(tmp):
    path = config(tmp, "[rotation]\nduration = 0.2\n")
    with daemon_in(tmp, *SIM, "-c", path, "--set", "pipeline.flush=50ms") as daemon:
        daemon.wait_ready()
        path.write_text("[rotation]\nduration = 100h\n[pipeline]\nflush = never\n")
        err = reload(daemon, f"{path}:4: ")
        assert "keeping the old configuration" in err and "never" in err, err
        count = len(harness.segments(tmp / "out"))
        harness.wait_until(lambda: len(harness.segments(tmp / "out")) > count + 2, "the rotation continues")
        path.unlink()
        reload(daemon, str(path) + ": No such file")
        equal(daemon.stop(), 0, daemon.err)


def test_a_configuration_that_became_a_pipe_stops_nothing(tmp):
    path = config(tmp, "")
    with daemon_in(tmp, *SIM, "-c", path) as daemon:
        daemon.wait_ready()
        path.unlink()
        os.mkfifo(path)
        reload(daemon, f"{path}: is a pipe, which can't be read again; use a file; keeping the old configuration")
        equal(daemon.stop(), 0, daemon.err)
    refused(*SIM, "-c", path, code=2, words=[str(path), "is a pipe"])


# ---- time


def test_the_first_record_of_a_slow_source_is_in_the_file_soon(tmp):
    start = time.monotonic()
    with daemon_in(tmp, "--source", "sim:rate=100") as daemon:
        (opened,) = harness.wait_until(lambda: list((tmp / "out").glob("*.partial")), "a segment is created")
        took = time.monotonic() - start
        harness.wait_until(lambda: harness.lz4_dc([opened]), "the records of the segment")
        recorded = harness.wait_until(lambda: len(harness.lz4_dc([opened])) > 12 * 50 and harness.lz4_dc([opened]), "more")
        equal(recorded, harness.sim_records(10_000)[: len(recorded)], "records")
        equal(len(recorded) % 12, 0)
        equal(daemon.stop(), 0, daemon.err)
    harness.note(f"100 samples/s: the first records are in the file after {took:.1f} s")


def test_a_replay_has_the_requested_speed(tmp):
    # Half a second of bus time.
    source = tmp / "bus.bcp1"
    run(harness.BUSCAP, "sim", "-s", "1", "-n", "300000", "-O", "bcp1", "-o", source)
    expected = harness.sim_records(300_000)
    for speed, factor, clock_hz in [("max", 1e9, 16_500_000), ("realtime", 1, 16_500_000), ("2", 2, 16_500_000),
                                    ("0.5", 0.5, 33_000_000)]:
        spec = f"file:{source},clock_hz={clock_hz}"
        start = time.monotonic()
        done = run(BUSCAPD, "--once", "--speed", speed, "--source", spec, "-o", tmp / speed)
        took = time.monotonic() - start
        equal(done.returncode, 0, done.stderr)
        segments = harness.segments(tmp / speed)
        equal(harness.lz4_dc(segments) == expected, True, "records")
        (segment,) = info(segments)
        assert segment["duration_s"] > 0.25, segment
        harness.note(f"--speed {speed}: {segment['duration_s']:.3f} s of the bus took {took:.3f} s")
        assert took >= segment["duration_s"] / factor - 0.02, f"{speed}: {took} s"
