"""The log: a persistent fault causes a bounded number of lines, which name what is wrong."""

import re
import shutil
import signal

import pytest

import harness
from harness import BUSCAP, BUSCAPD, Daemon, Faults, equal, run
from usb_harness import Board, Recorder

# A buffer that overflows soon, but not within a second or two.
SMALL = ("--set", "pipeline.workers=1", "--set", "pipeline.buffer=8M")

# Sanitized programs keep up with this rate, too.
RATE = "sim:rate=100k"

OVERLOAD = "sim:rate=400k"
LOST = 50_000  # samples, at least

# Lines of one kind: the first ten, and summaries for the minutes that a test takes.
KIND_MOST = 12


def lines_of(err):
    """Checks the lines of a log. Returns them without time, name and level."""
    lines = []
    for line in err.decode().splitlines():
        found = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z buscapd: (?:error: |warning: )?(.*)", line)
        assert found, line
        assert len(line.encode()) < 1000, line
        assert not re.search(r"[\x00-\x1f\x7f]", line), line
        lines.append(found[1])
    return lines


def some(lines, words):
    return [line for line in lines if words in line]


def repeated(lines):
    """How often a message was logged by itself, and how often in lines that sum up, one or more."""
    sums = re.findall(r"^(\d+) more times? in the last ", "\n".join(lines), re.M)
    return len(lines) - len(sums), sum(map(int, sums))


# The lines of every run of a service.
LIFE = (": source sim", ": recording started", "SIGTERM: stopping", ": sealed, ", " records written")


# Possible additions on a busy machine.
LOSSES = ("samples lost: ", "samples still being lost: ", "samples no longer lost", "gaps recorded")


def exactly(lines, *words, may=()):
    """Each of `words` is in some line, and each line has one of `words` or `may`."""
    odd = [line for line in lines if not any(w in line for w in (*words, *may))]
    missing = [w for w in words if not some(lines, w)]
    assert not odd and not missing, f"unexpected: {odd}; missing: {missing}; {lines}"


def kinds(lines):
    """Counts the lines by their text without numbers and names."""
    found = {}
    for line in lines:
        line = re.sub(r"^\d+ more times? in the last [\d.]+ s; the latest: ", "", line)
        line = re.sub(r"/\S+|\d{8}T\d{6}Z-\w+(-\d+)?[.\w]*|\d+(\.\d+)?|0x[0-9a-f]+", "_", line)
        found[line] = found.get(line, 0) + 1
    return found


def check_bound(lines):
    for kind, count in kinds(lines).items():
        assert count <= KIND_MOST, f"{count} times: {kind}"


# ---- persistent faults


def test_a_full_disk_is_logged_when_it_starts_and_ends(tmp):
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out)
    with Daemon("--source", RATE, "-o", out, *SMALL, socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["written"], "records are written")
        faults.set("pwrite:ENOSPC")
        harness.wait_until(lambda: daemon.status()["counts"]["dropped"]["disk"] > LOST, "samples are lost")
        faults.set("")
        harness.wait_until(lambda: b"writing again" in log_of(daemon), "the recovery is logged")
        # Losses are over after ten seconds without any.
        harness.wait_until(lambda: b"samples no longer lost" in log_of(daemon), "the end of the losses")
        daemon.stop()
    lines = lines_of(daemon.err)
    full = some(lines, "No space left on device")
    equal(len(full), 1, "error lines")
    assert str(out) in full[0] and "retrying every 0.5 s" in full[0], full
    equal(len(some(lines, "writing again after")), 1, "the recovery")
    # A busy machine also loses some because of the buffer.
    began, ended = some(lines, "the recording continues"), some(lines, "samples no longer lost")
    equal((1 <= len(began) <= 3, len(began) - len(ended) in (0, 1)), (True, True), lines)
    reported = sum(int(n) for n in re.findall(r"(\d+) \(disk stuck\)", "\n".join(ended)))
    (whole,) = re.findall(r"gaps recorded: .*?(\d+) \(disk stuck\)", "\n".join(lines))
    equal((reported, reported > LOST), (int(whole), True), "losses in both messages")
    assert len(lines) <= 16, lines
    exactly(lines, *LIFE, "No space left on device; retrying", "writing again after", "the recording continues",
            "samples no longer lost", "gaps recorded", may=LOSSES)


def log_of(daemon):
    """The log of a running daemon."""
    return daemon.log_so_far().encode()


def test_failing_syncs_are_logged_ten_times_and_summarized(tmp):
    out = tmp / "out"
    out.mkdir()
    faults = Faults(tmp, out, "fdatasync:EIO")
    with Daemon("--source", RATE, "-o", out, socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: len(list(out.glob("*.partial"))) > 25, "25 segments are left")
        faults.set("")
        daemon.stop()
    lines = lines_of(daemon.err)
    check_bound(lines)
    failed = some(lines, "can't sync: Input/output error")
    logged, summed = repeated(failed)
    assert logged == 10 and summed >= 15 and "continuing in a new segment" in failed[-1], lines
    exactly(lines, *LIFE, "can't sync", "unsealed files: ",
            may=LOSSES)
    # The next start recovers all of them.
    with Daemon("--source", "sim:rate=100k", "-o", out, socket=tmp / "socket") as again:
        again.wait_ready()
        harness.wait_until(lambda: again.status()["counts"]["received"], "the daemon records")
        again.stop()
    lines = lines_of(again.err)
    check_bound(lines)
    logged, summed = repeated(some(lines, "left open by an earlier run"))
    assert logged == 10 and summed >= 15, lines
    exactly(lines, *LIFE, "left open by an earlier run; recovered all", may=LOSSES)


def test_a_flapping_board_is_logged_ten_times_and_summarized(tmp):
    with Board("serial=A1,rate=200000,send=0") as board:
        with Recorder(tmp, board) as daemon:
            daemon.take(1000)
            for number in range(16):
                board.unplug()
                # Wait until the daemon has seen the unplug.
                daemon.wait_for(lambda s, n=number: s["source"]["board"]["unplugs"] == n + 1, "the board is unplugged")
                board.plug()
                daemon.wait_for(lambda s, n=number: s["source"]["board"]["plugs"] == n + 2, "the board is plugged in")
                daemon.take(1)
            daemon.end(wanted=4)
    lines = lines_of(daemon.err)
    check_bound(lines)
    unplugged, back = some(lines, "unplugged; the recording continues"), some(lines, ": back after")
    equal((repeated(unplugged), repeated(back)), ((10, 6), (10, 6)), lines)
    assert "A1 at 1-1" in unplugged[-1], unplugged
    # The board's process may be too slow for the daemon's stop.
    assert any(f"stream interruptions: {n}, recorded as gaps" in line for line in lines for n in (16, 17)), lines
    # Losses are logged every five seconds, and sums every minute, for as long as it takes.
    others = [line for line in lines if not any(word in line for word in (*LOSSES, " in the last "))]
    assert len(others) <= 40, others
    exactly(lines, "A1 at 1-1: streaming: ", ": unplugged; ", ": back after", "SIGTERM: stopping", ": sealed, ",
            " records written", "stream interruptions",
            may=("torn or bad CRC", "no answer to ", "its buffered samples may be lost", *LOSSES))


def test_damage_is_logged_ten_times_and_summarized(tmp):
    capture = tmp / "bus.bcp1"
    run(BUSCAP, "sim", "-n", "1000000", "-O", "bcp1", "-o", capture)
    data = bytearray(capture.read_bytes())
    frame = 36 + 2048 * 8
    for at in range(5000, len(data), 2 * frame):
        data[at] ^= 0x55
    capture.write_bytes(data)
    done = run(BUSCAPD, "--once", "--source", f"file:{capture}", "-o", tmp / "out")
    equal(done.returncode, 3, done.stderr)
    lines = lines_of(done.stderr)
    check_bound(lines)
    damaged = some(lines, "samples lost (torn or bad CRC)")
    assert all(str(capture) in line and "offset" in line for line in damaged), damaged
    (places,) = re.findall(r"damaged places: (\d+)", "\n".join(lines))
    equal(repeated(damaged), (10, int(places) - 10), lines)
    exactly(lines, "samples lost (torn or bad CRC)", ": sealed, ", " records written", "gaps recorded",
            may=("(no valid frame)", ": expected frame "))


def test_failing_commands_are_logged_ten_times_and_summarized(tmp):
    command = tmp / "command"
    command.write_text("#!/bin/sh\ntest -e $0.good || exit 3\n")
    command.chmod(0o755)
    sealed = ("--set", f"output.sealed_command={command}", "-b", "duration:50ms")
    with Daemon("--source", "sim:rate=100k", "-o", tmp / "out", *sealed, socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["sealed"]["commands_failed"] > 30, "30 commands have failed")
        command.with_suffix(".good").touch()
        failed = harness.wait_until(lambda: b"succeeded again" in log_of(daemon) and daemon.status(), "a command succeeds")
        daemon.stop()
    lines = lines_of(daemon.err)
    failures = some(lines, "; not tried again")
    assert failures[0].startswith(f"{tmp}/out/") and f"{command}: exit code 3; " in failures[0], failures
    assert all("exit code 3; " in line for line in failures[:10]), failures
    # At the stop, a command that still runs after ten seconds is ended.
    logged, summed = repeated(failures)
    assert logged == 10 and summed - (failed["sealed"]["commands_failed"] - 10) in (0, 1), lines
    equal(len(some(lines, "succeeded again")), 1, lines)


def test_an_overload_is_logged_when_it_starts_and_ends(tmp):
    out = tmp / "out"
    out.mkdir()
    # Writes and syncs of 300 ms are too slow for the source, but do not count as stuck.
    faults = Faults(tmp, out, "pwrite:slow,fdatasync:slow")
    with Daemon("--source", OVERLOAD, "-o", out, *SMALL, socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["dropped"]["buffer"] > LOST, "samples are lost")
        faults.set("")
        harness.wait_until(lambda: b"samples no longer lost" in log_of(daemon), "the end of the losses")
        daemon.stop()
    lines = lines_of(daemon.err)
    began, ended = some(lines, "the recording continues"), some(lines, "samples no longer lost")
    equal((1 <= len(began) <= 3, len(began) - len(ended) in (0, 1)), (True, True), lines)
    assert "(buffer full)" in began[0] + ended[0], lines
    exactly(lines, *LIFE, "the recording continues", "samples no longer lost", "gaps recorded")
    assert len(lines) <= 16, lines


def test_bad_clients_are_not_logged(tmp):
    with Daemon("--source", "sim:rate=100k", "-o", tmp / "out", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        for request in (b"\0\xff\r\n\r\n", b"GET /" + b"a" * 100_000, b"POST /v1/mark HTTP/1.1\r\n",
                        b"GET /nope HTTP/1.0\r\n\r\n",
                        b"POST /v1/mark HTTP/1.0\r\nContent-Length: 3\r\n\r\n{]}"):
            for _ in range(20):
                with harness.socket.socket(harness.socket.AF_UNIX) as connection:
                    connection.connect(str(tmp / "socket"))
                    connection.settimeout(0.1)
                    try:
                        connection.sendall(request)
                        connection.recv(100)
                    except OSError:
                        pass
        daemon.stop()
    exactly(lines_of(daemon.err), *LIFE, may=LOSSES)


def test_the_start_after_a_kill_logs_what_was_recovered(tmp):
    out, socket = tmp / "out", tmp / "socket"
    with Daemon("--source", "sim:rate=1M", "-o", out, socket=socket) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["durable"] > 100_000, "records are durable")
        daemon.process.kill()
        daemon.wait()
    with Daemon("--source", "sim:rate=100k", "-o", out, socket=socket) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["received"], "the daemon records")
        daemon.stop()
    lines = lines_of(daemon.err)
    assert re.search(r"-00000\.byu\.lz4: left open by an earlier run", lines[0]), lines
    wanted = ["-00000.byu.lz4: left open by an earlier run; recovered ",
              "buscapd ", ": recording started",
              "SIGTERM: stopping", ": sealed, ", "records written in 1 segment"]
    equal([next((w for w in wanted if w in line), line) for line in lines], wanted, "the log")


def test_each_reload_logs_its_result(tmp):
    config = tmp / "buscapd.conf"
    config.write_text("[log]\nlevel = info\n")
    with Daemon("-c", config, "--source", "sim:rate=100k", "-o", tmp / "out", socket=tmp / "socket") as daemon:
        daemon.wait_ready()
        for text, words in (("", "SIGHUP: applied"), ("[log]\nlevel = loud\n", "keeping the old configuration"),
                            ("[pipeline]\nworkers = 1\n", "pipeline.workers has changed")):
            before = len(log_of(daemon))
            config.write_text(text)
            daemon.process.send_signal(signal.SIGHUP)
            harness.wait_until(lambda: words.encode() in log_of(daemon)[before:], words)
        daemon.stop()
    lines = lines_of(daemon.err)
    equal(len(some(lines, "SIGHUP")), 4, lines)
    equal(len(some(lines, "has changed")), 1, lines)
    (bad,) = some(lines, "; keeping the old configuration")
    assert f"{config}:2: " in bad, bad
    exactly(lines, *LIFE, "SIGHUP: applied rotation, space, ", "; keeping the old configuration",
            "pipeline.workers has changed", may=LOSSES)


def test_a_file_name_cannot_forge_a_line(tmp):
    capture = tmp / "x\nbuscapd: error: forged\x1b[31m\udcff"
    run(BUSCAP, "sim", "-n", "10000", "-O", "bcp1", "-o", tmp / "bus.bcp1")
    shutil.copy(tmp / "bus.bcp1", capture)
    with open(capture, "ab") as file:
        file.write(b"torn")
    done = run(BUSCAPD, "--once", "--source", f"file:{capture}", "-o", tmp / "out")
    equal(done.returncode, 3, done.stderr)
    lines = lines_of(done.stderr)
    assert some(lines, r"x\x0abuscapd: error: forged\x1b[31m\xff"), lines


def long_path(tmp, bytes_):
    """A directory whose path has this many bytes. The end of each part says where it is."""
    path = tmp
    while len(str(path)) + 102 < bytes_:
        path /= "x" * 96 + str(len(str(path)))
    return path / ("y" * max(1, bytes_ - len(str(path)) - 1))


@pytest.mark.asan
@pytest.mark.parametrize("length", (300, 600, 1000, 2000, 3500))
def test_a_message_does_not_end_before_its_reason(tmp, length):
    """However long the path before it."""
    missing = long_path(tmp, length)
    made = long_path(tmp / "made", length - 100)
    made.mkdir(parents=True)
    (made / "trace").write_text("prose, no trace\n")
    (made / "conf").write_text("[output]\nwrong = 1\n")
    (made / "file").write_text("")
    for argv, ends in (
        (("--source", "sim:rate=max,count=10", "-o", missing), ": No such file or directory; create it, or use another (-o)"),
        (("--source", "sim:rate=max,count=10", "-o", made / "file/x"), ": Not a directory; create it, or use another (-o)"),
        (("--source", f"file:{missing}", "-o", tmp / "out"), ": can't open: No such file or directory"),
        (("--source", f"file:{made}/trace", "-o", tmp / "out"), None),
        (("--source", "sim:rate=max,count=10", "-c", missing), "No such file or directory"),
        (("--source", "sim:rate=max,count=10", "-c", made / "conf"), "no such key"),
        (("--source", "sim:rate=max,count=10", "--set", f"names.map={missing}"), "No such file or directory"),
    ):
        done = run(BUSCAPD, "--once", *argv)
        assert done.returncode in (1, 2, 3), (argv, done.stderr)
        (line, *_) = lines_of(done.stderr)
        assert ends is None and "unknown format" in line or ends and ends in line, (ends, line)
        assert length <= 1000 or "..." in line, line
