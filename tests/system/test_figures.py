"""One figure by cause for what is lost: in the status, the metrics, the recording, its files, the log and the exit code."""

import json
import re
import signal

import pytest

import harness
from api_harness import Api, daemon_in
from harness import equal
from test_metrics import get_metrics

START = ("POST", "/v1/recordings")
STOP = ("DELETE", "/v1/recordings/current")


def lost_in(segments):
    """The losses in the gaps of files, by cause."""
    lost = {}
    for segment in harness.info(segments):
        for cause, gaps in segment["gaps"]["causes"].items():
            lost[cause] = lost.get(cause, 0) + gaps["lost"]
    return lost


def above_zero(lost):
    return {cause: samples for cause, samples in lost.items() if samples}


@pytest.mark.asan
def test_damaged_frames_are_an_exact_loss_and_the_same_figure_everywhere(tmp):
    """Most flipped bits are in a frame's samples: its header says how many."""
    with daemon_in(tmp, source=f"sim:rate={harness.rate(300_000)},corrupt=0.2,loss=0.1") as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        api.good(*START, status=201)
        before = harness.wait_until(lambda: (s := daemon.status())["counts"]["lost"]["crc"] > 20_000 and s["counts"]["lost"]["board"] and s, "frames are damaged")
        now = api.good("GET", "/v1/recordings/current")["recording"]["lost"]
        after = daemon.status()
        assert sum(before["counts"]["lost"].values()) <= now <= sum(after["counts"]["lost"].values()), (before, now, after)
        ended = api.good(*STOP)["recording"]
        counts = harness.check_counts(daemon.status())
        lost = above_zero(counts["lost"])
        # A busy machine also loses some because of the buffer.
        assert {"crc", "board"} <= set(lost) <= {"crc", "board", "buffer"}, counts
        equal(ended["lost"], sum(lost.values()), "the recording's losses")
        equal(api.good("GET", f"/v1/recordings")["recordings"][0]["lost"], ended["lost"], "in the list")
        metrics = get_metrics(tmp / "socket")
        for cause, samples in counts["lost"].items():
            equal(metrics.value("lost_samples_total", cause=cause), samples, f"metrics, {cause}")
        files = harness.segments(tmp / "out")
        equal(above_zero(lost_in(files)), lost, "the files")
        crc = [gaps["exact"] for segment in harness.info(files) for cause, gaps in segment["gaps"]["causes"].items() if cause == "crc"]
        assert crc and all(crc), crc
        equal(daemon.stop(), 4, "exit code")
    words = re.search(r"gaps recorded: \d+; samples lost: (.*?); damaged", daemon.err.decode())[1]
    assert f"{lost['crc']} (damaged frames)" in words and f"{lost['board']} (board overflow)" in words, words


def test_a_snapshot_counts_the_losses_that_it_contains(tmp):
    """The flight recorder has lost samples before the recording starts, and before what it still holds."""
    rate = harness.rate(100_000)
    with daemon_in(tmp, "--set", "recording.flight_time=2s", mode="flight",
                   source=f"sim:rate={rate},corrupt=0.2,loss=0.1") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["received"] > 4 * rate, "the flight recorder is full")
        ended = Api(tmp / "socket").good("POST", "/v1/snapshot", status=201)["recording"]
        equal(ended["lost"], sum(lost_in(harness.segments(tmp / "out")).values()), "the file")
        assert 0 < ended["lost"] < sum(daemon.status()["counts"]["lost"].values()), ended
        equal(daemon.stop(), 4, "exit code")


AT_THE_END = ("no longer lost", "recording continues", "writing again")


def after(log, words):
    """The rest of the log, from the line with these words on."""
    at = log.find(words)
    assert at >= 0, log
    return log[at:]


def test_a_buffer_that_is_given_up_is_the_same_figure_everywhere(tmp):
    out = tmp / "out"
    out.mkdir()
    faults = harness.Faults(tmp, out)
    rate = harness.rate(200_000)
    argv = ("--once", "--source", f"sim:rate={rate},count={60 * rate}", "-o", out)
    with harness.Daemon(*argv, socket=tmp / "socket", env=faults.env) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["written"] > 0, "records are written")
        faults.set("pwrite:hold")
        harness.wait_until(lambda: any(done == "hold" for _, _, done, _ in faults.calls()), "a chunk is being written")
        in_flight = daemon.status()["counts"]["in_flight"]
        harness.wait_until(lambda: daemon.status()["counts"]["in_flight"] > in_flight, "others wait")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_uptime(1)  # an earlier second signal is ignored
        daemon.process.send_signal(signal.SIGTERM)
        harness.wait_until(lambda: "giving up the buffer" in daemon.log_so_far(), "it gives up")
        faults.set("")
        equal(daemon.wait(), 1, "exit code")
    log = daemon.err.decode()
    counts = harness.check_counts(json.loads(daemon.out))
    (path,) = harness.segments(out)
    (segment,) = harness.info([path])
    assert counts["lost"]["disk"] > 0, counts
    equal(above_zero(lost_in([path])), above_zero(counts["lost"]), "the file")
    equal(segment["gaps"]["count"], counts["gaps"], "gaps in the file")
    assert f"gaps recorded: {counts['gaps']}; samples lost: {counts['lost']['disk']} (disk stuck);" in log, log
    for words in AT_THE_END:
        assert words not in after(log, "SIGTERM: stopping"), log
