"""Events, status, metrics, files and log never disagree."""

import datetime
import json
import re
import signal

import pytest

import harness
import reference
from api_harness import Api, Fifo, Stream, daemon_in
from harness import BUSCAP, NIGHTLY, check_counts, equal, run, status, wait_until
from test_metrics import get_metrics
from usb_harness import Board

pytestmark = pytest.mark.threads

START = ("POST", "/v1/recordings")
STOP = ("DELETE", "/v1/recordings/current")
ARM = ("POST", "/v1/triggers")
SNAPSHOT = ("POST", "/v1/snapshot")
TURNS = 4 if NIGHTLY else 2
LOSSES = tuple(reference.GAPS.values())


class Follower:
    """The daemon's state according to its events, from the first status on. `seen` counts events by name."""

    def __init__(self):
        self.status = None  # the last
        self.may_lack_file = False
        self.seen = {}
        self.recordings = []  # not sealed yet, oldest first
        self.notes = {}
        self.files = {}  # the newest segment and its path, by recording
        self.gaps = 0
        self.lost = dict.fromkeys(LOSSES, 0)

    def apply(self, event):
        name = event["event"]
        if self.status is None:
            equal(name, "status", "the first")
            self.start(event["status"])
        else:
            equal(event["seq"], self.seq + 1, f"seq of {event}")
        self.seq = event["seq"]
        self.seen[name] = self.seen.get(name, 0) + 1
        getattr(self, "on_" + name.replace("-", "_"), lambda event: None)(event)

    def start(self, status):
        self.first = self.status = status
        self.state = status["state"]
        self.triggers = status["triggers"]
        self.sealed, self.failed = status["sealed"]["segments"], status["sealed"]["commands_failed"]
        self.stuck, self.error = status["disk"]["stuck"], status["disk"]["last_error"]
        self.board = (status["source"]["board"] or {}).get("state")
        recording = status["recording"]
        if recording is not None:
            self.recordings = [recording["id"]]
            self.notes[recording["id"]] = dict(recording["metadata"])
            if recording["path"] is not None:
                self.files[recording["id"]] = (recording["segment"], recording["path"])

    # Events.

    def on_state(self, event):
        equal(event["from"], self.state, f"{event}")
        self.state = event["to"]

    def on_recording_started(self, event):
        recording = event["recording"]
        self.recordings.append(recording["id"])
        self.notes[recording["id"]] = dict(recording["metadata"])

    def on_recording_ended(self, event):
        recording = event["recording"]
        equal(self.recordings.pop(0), recording["id"], "recordings are sealed in order")
        equal(recording["metadata"], self.notes.pop(recording["id"]), "metadata at the end")
        equal(recording["path"], self.files.pop(recording["id"], (None, None))[1], "its newest file")

    def on_note(self, event):
        self.notes[event["recording"]].update(event["metadata"])

    def on_segment_started(self, event):
        self.may_lack_file = False
        assert event["path"].endswith(".partial"), event
        self.files[event["recording"]] = (event["segment"], event["path"])

    def on_segment_sealed(self, event):
        equal(self.files[event["recording"]], (event["segment"], event["path"] + ".partial"), "a sealed segment has been opened")
        self.files[event["recording"]] = (event["segment"], event["path"])
        self.sealed += 1

    def on_trigger_armed(self, event):
        self.triggers += 1

    def on_trigger_disarmed(self, event):
        self.triggers -= 1

    def on_gap(self, event):
        self.gaps += event["gaps"]
        self.lost[event["cause"]] += event["lost"]

    def on_disk(self, event):
        # The file being written may be lost.
        self.may_lack_file = event["error"] is not None
        self.stuck = event["stuck"]
        self.error = event["error"] or self.error

    def on_board(self, event):
        self.board = event["state"]

    def on_command_failed(self, event):
        self.failed += 1

    def on_missed(self, event):
        raise AssertionError(f"this test reads too slowly: {event}")

    # Comparison.

    def on_status(self, event):
        status = event["status"]
        counts = check_counts(status)
        equal(status["state"], self.state, "state")
        equal(status["triggers"], self.triggers, "triggers")
        equal(status["sealed"]["segments"], self.sealed, "sealed segments")
        equal(status["sealed"]["commands_failed"], self.failed, "commands failed")
        equal((status["disk"]["stuck"], status["disk"]["last_error"]), (self.stuck, self.error), "disk")
        equal((status["source"]["board"] or {}).get("state"), self.board, "board")
        equal(counts["gaps"] - self.first["counts"]["gaps"], self.gaps, "gaps")
        for cause in LOSSES:
            equal(counts["lost"][cause] - self.first["counts"]["lost"][cause], self.lost[cause], f"lost by {cause}")
        assert status["streams"]["events"] >= 1 or self.seen["status"] == 1, status["streams"]
        self.check_recording(status["recording"])
        for before, now in ((self.status["counts"], counts), (self.status["counts"]["dropped"], counts["dropped"]),
                            (self.status["counts"]["lost"], counts["lost"])):
            assert all(now[name] >= before[name] for name in now if name not in ("dropped", "lost", "in_flight")), (before, now)
        self.status = status

    def check_recording(self, recording):
        equal(recording and recording["id"], self.recordings[-1] if self.recordings else None, "recording")
        if recording is None:
            return
        equal(recording["metadata"], self.notes[recording["id"]], "metadata")
        if recording["path"] is None and self.may_lack_file:
            return
        equal((recording["segment"], recording["path"]), self.files.get(recording["id"], (None, None)), "its newest segment")


def follow(stream):
    follower = Follower()
    for event in stream.objects:
        follower.apply(event)
    return follower


def poll_status(api, condition, what):
    """Waits by polling the status as fast as possible, so that events occur between the responses."""
    return wait_until(lambda: condition(status(api.socket)), what)


def wait_sealed(api):
    poll_status(api, lambda status: status["recording"] is None, "it is sealed")


def test_events_and_status_never_disagree(tmp):
    settings = tmp / "buscapd.conf"
    settings.write_text("[trigger a]\nwhen = port=80\naction = mark\n")
    with daemon_in(tmp, "-c", settings, "--set", "output.sealed_command=/bin/false", mode="flight",
                   source=f"sim:rate={harness.rate(200_000)},loss=0.2,corrupt=0.01") as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        with Stream(tmp / "socket", "/v1/events", "Event") as events:
            events.read()
            for turn in range(TURNS):
                api.good(*SNAPSHOT, {"post": "50ms", "metadata": {"turn": str(turn)}}, status=201)
                wait_sealed(api)
                # Each starts while the previous one is being sealed.
                for _ in range(3):
                    own = {"name": "own", "when": "addr=0", "action": "mark"}
                    api.good(*START, {"limits": {"records": 100000000}, "triggers": [own]}, status=201)
                    api.good("PATCH", "/v1/recordings/current", {"metadata": {"k": str(turn)}})
                    poll_status(api, lambda status: status["recording"]["records"] > 0, "records are written")
                    api.good("POST", "/v1/rotate")
                    poll_status(api, lambda status: status["recording"]["segment"] == 1, "the second segment has started")
                    api.good(*STOP)
                api.good(*ARM, {"name": "b", "when": "gap", "action": "mark"}, status=201)
                settings.write_text(f"[trigger {'ca'[turn % 2]}]\nwhen = port=8{turn}\naction = mark\n"
                                    f"[trigger d]\nwhen = port=90\naction = mark\n")
                daemon.process.send_signal(signal.SIGHUP)
                events.until(lambda event: event["event"] == "reload")
                api.good("DELETE", "/v1/triggers/b")
                api.good(*START, {"triggers": [own | {"name": "e", "when": "gap", "action": "stop"}]}, status=201)
                wait_sealed(api)
                # What is not read before the daemon ends may be cut off.
                events.until(lambda event: event["event"] == "status" and event["status"]["recording"] is None)
            equal(daemon.stop(), 4)
            events.rest()
    follower = follow(events)
    for name, least in {"recording-started": 5, "segment-sealed": 8, "trigger-armed": 5, "gap": 5,
                        "trigger-disarmed": 5, "note": 3, "command-failed": 5, "status": 1.25, "state": 10}.items():
        assert follower.seen.get(name, 0) >= TURNS * least, (name, follower.seen)


def test_losses_within_a_second_are_one_event(tmp):
    """One more may precede each status, with which the events agree."""
    with daemon_in(tmp, mode="always", source=f"sim:rate={harness.rate(200_000)},loss=0.5") as daemon:
        daemon.wait_ready()
        with Stream(tmp / "socket", "/v1/events", "Event") as events:
            gaps = []
            while len(gaps) < 4:
                gaps.append(events.until(lambda event: event["event"] == "gap"))
        first, *more = (datetime.datetime.fromisoformat(event["time"][:26]) for event in gaps)
        assert len(more) <= 1 + 2 * (more[-1] - first).total_seconds(), gaps
        assert sum(event["gaps"] for event in gaps[1:]) > 2 * len(gaps), gaps
        equal(daemon.stop(), 4, daemon.err)


@pytest.mark.parametrize("is_stopped", (False, True))
def test_events_and_status_agree_over_the_end_of_a_file(tmp, is_stopped):
    lossy = run(BUSCAP, "sim", "-O", "bcp1", "-n", "100000", "--loss", "0.05", "--corrupt", "0.01").stdout
    with Fifo(tmp) as fifo, daemon_in(tmp, mode="always", source=fifo.source) as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        with Stream(tmp / "socket", "/v1/events", "Event") as events:
            events.read()
            fifo.send(lossy, is_end=not is_stopped)
            if is_stopped:
                poll_status(api, lambda status: status["counts"]["lost"]["board"] > 0, "the file is read")
                api.good(*STOP)
            wait_sealed(api)
            api.bad(*START, status=409, words="the source has ended")
            equal(daemon.stop(), 4)
            events.rest()
    follower = follow(events)
    equal(events.objects[0]["status"]["state"], "replaying")
    states = [event["to"] for event in events.objects if event["event"] == "state"]
    assert states in (["idle"], ["draining", "idle"]), states
    (ended,) = (event["recording"] for event in events.objects if event["event"] == "recording-ended")
    equal((ended["reason"], ended["state"]), ("request" if is_stopped else "source", "sealed"))
    assert follower.lost["board"] > 0, follower.lost


def test_events_and_status_agree_while_a_board_comes_and_goes(tmp):
    with Board("serial=A1,rate=200000") as board, daemon_in(
            tmp, source="usb", mode="always", program=board.PROGRAM, env=board.env) as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        with Stream(tmp / "socket", "/v1/events", "Event") as events:
            events.read()
            for _ in range(5):
                poll_status(api, lambda status: status["state"] == "recording", "it streams")
                board.unplug()
                poll_status(api, lambda status: status["state"] == "waiting", "the board is gone")
                events.until(lambda event: event["event"] == "state" and event["to"] == "waiting")
                board.plug()
            poll_status(api, lambda status: status["state"] == "recording", "it streams")
            daemon.stop()
            events.rest()
    follower = follow(events)
    assert follower.seen["board"] >= 10 and follower.seen["gap"] >= 5, follower.seen


def test_a_recording_with_only_sealed_segments_is_still_in_progress(tmp):
    with daemon_in(tmp, "--set", "pipeline.flush=10ms", source="sim:rate=1") as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        begun = api.good(*START, status=201)["recording"]
        poll_status(api, lambda status: status["recording"]["records"] > 0, "records are written")
        api.good("POST", "/v1/rotate")
        poll_status(api, lambda status: status["sealed"]["segments"] == 1, "it is rotated")
        (row,) = api.good("GET", "/v1/recordings")["recordings"]
        equal((row["id"], row["state"], row["ended"]), (begun["id"], "recording", None))
        equal(daemon.stop(), 0)


# ---- one figure everywhere


def lost_in(segments):
    """The losses in the gaps of files, by cause."""
    lost = {}
    for segment in harness.info(segments):
        for cause, gaps in segment["causes"].items():
            lost[cause] = lost.get(cause, 0) + gaps["lost"]
    return lost


def above_zero(lost):
    return {cause: samples for cause, samples in lost.items() if samples}


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
        crc = [not gaps["inexact_gaps"] for segment in harness.info(files) for cause, gaps in segment["causes"].items() if cause == "crc"]
        assert crc and all(crc), crc
        equal(daemon.stop(), 4, "exit code")
    words = re.search(r": samples lost: ([^;\n]*); \d+ gaps? recorded", daemon.err.decode())[1]
    assert f"{lost['crc']:,} (damaged frames)" in words and f"{lost['board']:,} (board overflow)" in words, words


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


AT_THE_END = ("no samples lost for", "recording continues", "writing again")


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
    equal(segment["gaps"], counts["gaps"], "gaps in the file")
    gaps = f"{counts['gaps']:,} gap{'s' * (counts['gaps'] != 1)} recorded"
    assert f": samples lost: {counts['lost']['disk']:,} (disk stuck); {gaps}" in log, log
    for words in AT_THE_END:
        assert words not in after(log, "SIGTERM: stopping"), log
