"""The log: a persistent fault causes a bounded number of lines, which name what is wrong."""

import re
import shutil

import pytest

import harness
from harness import BUSCAP, BUSCAPD, Daemon, Faults, equal, run

pytestmark = pytest.mark.threads

# A buffer that overflows soon, but not within a second or two.
SMALL = ("--set", "pipeline.workers=1", "--set", "pipeline.buffer=8MiB")
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


def log_of(daemon):
    """The log of a running daemon."""
    return daemon.log_so_far().encode()


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
    (places,) = re.findall(r": samples lost: [\d,]+ \(.*\); [\d,]+ gaps recorded; "
                           r"([\d,]+) damaged places in the source, [\d,]+ bytes skipped$", "\n".join(lines), re.M)
    equal(repeated(damaged), (10, int(places.replace(",", "")) - 10), lines)
    exactly(lines, ": recording started", "samples lost (torn or bad CRC)", ": sealed, ", " records written", " recorded; ",
            may=("(no valid frame)", ": expected frame ", "the recording continues", "no samples lost for"))


@pytest.mark.single
def test_an_overload_is_logged_when_it_starts_and_ends(tmp):
    out = tmp / "out"
    out.mkdir()
    # Writes and syncs of 300 ms are too slow for the source, but do not count as stuck.
    faults = Faults(tmp, out, "pwrite:slow,fdatasync:slow")
    with Daemon("--source", OVERLOAD, "-o", out, *SMALL, socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["dropped"]["buffer"] > LOST, "samples are lost")
        faults.set("")
        harness.wait_until(lambda: b"no samples lost for" in log_of(daemon), "the end of the losses")
        daemon.stop()
    lines = lines_of(daemon.err)
    began, ended = some(lines, "the recording continues"), some(lines, "no samples lost for")
    equal((1 <= len(began) <= 3, len(began) - len(ended) in (0, 1)), (True, True), lines)
    assert "(buffer full)" in began[0] + ended[0], lines
    exactly(lines, *LIFE, "the recording continues", "no samples lost for", " recorded")
    assert len(lines) <= 16, lines


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
