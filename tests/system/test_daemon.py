"""The daemon from outside: start, socket, stop and reload."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
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


@pytest.mark.single
def test_a_usage_error_ends_the_daemon():
    """tests/unit/daemon/test_options.c has all others."""
    equal(refused("--frobnicate", code=2, words=[]), "buscapd: unknown option --frobnicate; see buscapd --help\n")


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
        equal(done.stdout, b"", f"{name}: the status of nothing")
        equal(harness.segments(tmp / "out"), [], f"{name}: a segment was created")
        if f"{name} is not a bus trace: convert it" in err:
            rejected.append(name)
        else:
            assert "unknown format" in err or "can only be written" in err, f"{name}: {err}"
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
def test_the_settings_in_effect_are_printed(tmp):
    path = config(tmp, GOOD)
    config(tmp, "[rotation]\nfilesize = 4M\n", "conf.d/more.conf")
    argv = ("--print-config", "--once", "--set", "usb.serial=A1", "--set", "pipeline.buffer=32768KiB")
    done = run(BUSCAPD, *argv, "-c", path)
    equal((done.returncode, done.stderr), (0, b""), "the settings")
    text = done.stdout.decode()
    for line in ("source = sim:rate=100k", "filesize = 4MB", "files = 10", "serial = A1", "buffer = 32MiB", "path =",
                 "record = always", "sync = 100ms", "attr.D_WRITE = 7", "#interval ="):
        assert f"\n{line}\n" in text, f"{line}: {text}"
    # The output is a configuration with the same settings.
    again = run(BUSCAPD, "--print-config", "-c", config(tmp, text, "again/buscapd.conf"))
    equal((again.returncode, again.stdout.decode()), (0, text), "the settings")
    refused("--print-config", "-c", path, "--set", "log.level=loud", code=2, words=["loud"])


def test_version_has_the_commit_and_the_libraries_that_are_loaded():
    for program, name, libraries in ((BUSCAPD, "buscapd", ("libuv", "libusb")), (BUSCAP, "buscap", ())):
        first, *others = run(program, "--version").stdout.decode().splitlines()
        commit = (harness.BUILD / "commit").read_text().strip()
        assert re.fullmatch(rf"{name} \d+\.\d+\S*" + (rf" \({commit}\)" if commit else ""), first), first
        versions = dict(line.split(" ") for line in others)
        equal(set(versions), {"jansson", "liblzma", "lz4", "zlib", "zstd", *libraries}, name)
        for version in versions.values():
            assert re.fullmatch(r"\d+(\.\d+)+\S*", version), versions


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
    refused("--once", *SIM, "-o", tmp / "a/b", code=1, words=[str(tmp / "a/b"), f"{tmp}/a does not exist"])
    refused(*SIM, "-o", out, "--socket", tmp / "a/socket", code=1, words=[str(tmp / "a/socket"), f"{tmp}/a does not exist"])


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


@pytest.mark.single
@pytest.mark.skipif(harness.is_sanitized(), reason="programs with AddressSanitizer are linked with the library")
def test_libsystemd_is_needed_by_a_passed_socket_and_a_watchdog_only(tmp):
    (tmp / "libsystemd.so.0").touch()
    env = {**os.environ, "LD_LIBRARY_PATH": str(tmp)}
    argv = "--once", "--source", "sim:rate=max,count=1"
    words = "libsystemd.so.0: file too short", "install or update the package libsystemd0"
    refused(*argv, "-o", tmp / "refused", code=2, words=words, env={**env, "LISTEN_FDS": "1"})
    watched = {**env, "NOTIFY_SOCKET": str(tmp / "notify"), "WATCHDOG_USEC": "1000000"}
    done = run(BUSCAPD, *argv, "-o", tmp / "watched", env=watched)
    equal(done.returncode, 0)
    assert all(word in done.stderr.decode() for word in words), done.stderr
    equal(run(BUSCAPD, *argv, "-o", tmp / "out", env=env).returncode, 0)


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


def test_verify_accepts_the_segment_that_is_being_written(tmp):
    with Daemon("--source", f"sim:rate={harness.rate(1_000_000)}", "-o", tmp / "out", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: harness.status(tmp / "socket")["recording"]["records"] != 0, "a chunk is written")
        done = run(BUSCAP, "verify", tmp / "out")
        equal(done.returncode, 0, done.stdout)
        assert b".partial: ok: being recorded, " in done.stdout, done.stdout
        (partial,) = (tmp / "out").glob("*.partial")
        shutil.copy(partial, tmp)
        done = run(BUSCAP, "verify", tmp / partial.name)
        equal(done.returncode, 3, done.stdout)
        assert b"not sealed (no index)" in done.stdout, done.stdout
        done = run(BUSCAP, "verify", "--json", tmp / "out")
        file = json.loads(done.stdout.splitlines()[0])
        equal((file["ok"], file["sealed"], done.returncode), (True, False, 0), file)


def test_a_command_reads_what_a_recording_had_when_it_began(tmp):
    """A command slower than the recording would otherwise never end."""
    with Daemon("--source", f"sim:rate={harness.rate(2_000_000)}", "-o", tmp / "out", socket=tmp / "socket") as daemon:
        daemon.wait_ready()

        def recorded():
            return harness.status(tmp / "socket")["recording"]["records"]

        harness.wait_until(recorded, "a chunk is written")
        (partial,) = (tmp / "out").glob("*.partial")
        with harness.popen([BUSCAP, "convert", "-O", "byu", partial], stdout=subprocess.PIPE) as slow:
            slow.stdout.read(12)
            most = recorded() + 200_000  # with chunks that are not counted yet
            harness.wait_until(lambda: recorded() > most + 600_000, "more is recorded")
            read = 12 + sum(len(data) for data in iter(lambda: slow.stdout.read(1 << 20), b""))
        equal(slow.returncode, 0)
        assert 0 < read // 12 <= most, (read // 12, most)


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
        "SIGHUP: (?:applied .*|nothing to apply)\n|keeping the old configuration\n", log) and log, "SIGHUP is logged")
    assert words in log, log
    return log


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
        reload(daemon, "SIGHUP: applied rotation.duration, space.max_use, pipeline.flush\n")
        harness.wait_until(lambda: len(harness.segments(out)) >= 4, "segments follow one another")
        count = len(harness.segments(out))

        def has_rotated():
            reload(daemon, "SIGHUP: nothing to apply\n")
            return len(harness.segments(out)) >= count + 2

        harness.wait_until(has_rotated, "a reload that changes nothing does not delay the next segment")
        path.write_text("[source]\nsource = sim:rate=1k\n[pipeline]\nflush = 50ms\n[rotation]\nduration = 300ms\n"
                        "files = 2\n")
        reload(daemon, "SIGHUP: applied ")
        harness.wait_until(lambda: len(list(out.glob("*.byu.lz4*"))) <= 2, "old segments are deleted")
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
