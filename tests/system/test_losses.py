"""What was lost in a recording: everything that names it says the same count, exactness and time, whatever happened."""

import json
import os

import pytest

import harness
import reference
from api_harness import daemon_in
from harness import BUSCAP, BUSCAPD, Daemon, Faults, equal, run
from usb_harness import Board, Recorder
from web_harness import Web

pytestmark = pytest.mark.threads

SMALL = ("--set", "pipeline.workers=1", "--set", "pipeline.buffer=7MiB")
RATE = harness.rate(700_000)


def endless(rate):
    """A source that outlasts its test, but cannot fill the disk if the test hangs."""
    return f"sim:rate={rate},count={180 * rate}"


# ---- what happens; each returns the last status, or None


def kill(out):
    with Daemon("--source", "sim:rate=20k", "-o", out, socket=out.parent / "s") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["written"], "records are written")
        daemon.process.kill()
        daemon.wait()


def killed(out):
    kill(out)
    equal(run(BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=1", "-o", out, *SMALL).returncode, 0)
    for path in harness.segments(out)[1:]:
        path.unlink()


def unplugged(out):
    with Board("rate=200000,send=0") as board, Recorder(out.parent, board) as daemon:
        daemon.take()
        board.unplug()
        daemon.wait_for(lambda s: s["source"]["board"]["state"] != "streaming", "the board is away")
        daemon.wait_uptime(daemon.status()["uptime_seconds"] + 0.3)
        board.plug()
        daemon.wait_streaming()
        daemon.take_all()
        daemon.end()
        return daemon.final


def disturbed(out, rules, is_over):
    """Something is the matter with writes until is_over(status)."""
    out.mkdir()
    faults = Faults(out.parent, out)
    with Daemon("--once", "--source", endless(RATE), "-o", out, *SMALL, socket=out.parent / "s", env=faults.env) as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: daemon.status()["counts"]["written"], "records are written")
        faults.set(rules)
        harness.wait_until(lambda: is_over(daemon.status()["counts"]), "losses")
        faults.set("")
        written = daemon.status()["counts"]["written"]
        harness.wait_until(lambda: daemon.status()["counts"]["written"] > written + 1000, "more are written")
        daemon.stop()
        return json.loads(daemon.out)


def stalled(out):
    return disturbed(out, "pwrite:hold", lambda counts: counts["dropped"]["buffer"] + counts["dropped"]["disk"] > RATE // 10)


def full_disk(out):
    return disturbed(out, "pwrite:ENOSPC", lambda counts: counts["dropped"]["disk"] > RATE // 10)


def board(out):
    """Several segments. The board lost some samples in the second one, and an unknown number in the last one."""
    stream = b""
    for sequence in range(40):
        frame = [(8 * i, sequence * i % 256, 8 << 4, 977 * i % 50000) for i in range(150)]
        lost = {8: 17, 38: reference.MANY}.get(sequence, 0)
        stream += reference.encode_header(reference.LOSS if lost else 0, 0, sequence, len(frame), 1000, lost)
        stream += reference.encode_payload(frame)
    source = out.parent / "stream"
    source.write_bytes(stream)
    done = run(BUSCAPD, "--once", "--no-socket", "--source", f"file:{source},format=bcp1,clock_hz=1000000", "-o", out, "-b", "filesize:8K")
    assert done.returncode in (0, 3, 4), done.stderr


def gaps_of(path):
    return [e for chunk in reference.read_segment(path).chunks for e in chunk.events if e.kind == "gap"]


# ---- what happens to the files later. `lossy` is the number of the first one with a gap


def nothing(_paths, _lossy):
    return 0


def segment_is_missing(paths, lossy):
    """Returns how many records it had."""
    records = sum(chunk.info["records"] for chunk in reference.read_segment(paths[lossy + 1]).chunks)
    paths[lossy + 1].unlink()
    return records


def index_is_damaged(paths, lossy):
    data = bytearray(paths[lossy].read_bytes())
    data[-20] ^= 1
    paths[lossy].write_bytes(data)
    return 0


CASES = {
    "killed": (killed, nothing),
    "unplugged": (unplugged, nothing),
    "stalled": (stalled, nothing),
    "full disk": (full_disk, nothing),
    "board": (board, nothing),
    "missing segment": (board, segment_is_missing),
    "damaged index": (board, index_is_damaged),
}


@pytest.mark.parametrize("case", CASES)
def test_everything_says_the_same(tmp, case):
    out = tmp / "out"
    happen, spoil = CASES[case]
    status = happen(out)
    paths = harness.segments(out)
    gaps = [gaps_of(path) for path in paths]
    lossy = next(i for i, some in enumerate(gaps) if some)
    missing = spoil(paths, lossy)
    if missing:
        assert 0 < lossy < len(paths) - 3 and not gaps[lossy + 1], gaps
    check(tmp, out, [gap for some in gaps for gap in some], missing, status)


def check_killed_picture(out):
    for columns in (2, 16, 512):
        made = json.loads(run(BUSCAP, "report", "--json", "--columns", str(columns), out).stdout)
        (recording,) = made["overview"]["recordings"]
        for told in (recording, {name: sum(c[name] for c in made["overview"]["columns"]) for name in ("gaps", "lost", "inexact_gaps")}):
            equal((told["gaps"], told["lost"], told["inexact_gaps"]), (1, 0, 1), columns)
        (gap,) = [event for event in made["events"]["events"] if event["kind"] == "gap"]
        equal((gap["cause"], gap["lost"], gap["exact"], gap["record"]), ("crash", 0, False, recording["records"]), columns)
        equal(recording["state"], "open")


def test_a_recording_that_was_killed_between_two_segments_has_lost_an_unknown_number(tmp):
    out = tmp / "out"
    done = run(BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=300K", "-b", "filesize:200K", "-o", out)
    equal(done.returncode, 0, done.stderr)
    *_, last = harness.segments(out)
    last.unlink()
    row = json.loads(run(BUSCAP, "info", "-j", out).stdout.splitlines()[0])
    equal((row["state"], row["gaps"], row["lost"], row["inexact_gaps"]), ("open", 1, 0, 1), "info DIR")
    check_killed_picture(out)
    # Its last segment was complete, but not sealed yet.
    *_, last = harness.segments(out)
    last.rename(f"{last}.partial")
    row = json.loads(run(BUSCAP, "info", "-j", out).stdout.splitlines()[0])
    equal((row["state"], row["gaps"], row["lost"], row["inexact_gaps"]), ("open", 1, 0, 1), "info DIR")
    check_killed_picture(out)


def test_what_the_end_of_a_killed_recording_lost_is_unknown_before_and_after_its_recovery(tmp):
    out = tmp / "out"
    kill(out)
    (path,) = out.glob("*.partial")

    def summary():
        first = run(BUSCAP, "info", "-j", out).stdout.splitlines()[0]
        return json.loads(first), run(BUSCAP, "info", out).stdout.decode().splitlines()[1]

    row, line = summary()
    equal((row["state"], row["gaps"], row["lost"], row["inexact_gaps"]), ("open", 1, 0, 1), "killed")
    assert "  unknown  " in line, line
    file = json.loads(run(BUSCAP, "info", "-j", path).stdout)
    equal((file["gaps"], file["inexact_gaps"], list(file["causes"])), (1, 1, ["crash"]), "info FILE")
    check_killed_picture(out)
    for command in (["marks", out], ["cut", "-o", tmp / "cut.byu.lz4", out], ["recover", "-o", tmp / "copy.byu.lz4", path]):
        assert run(BUSCAP, *command).returncode in (0, 3), command
    for files in ([out], [tmp / "cut.byu.lz4"], [tmp / "copy.byu.lz4"]):
        marks = [json.loads(line) for line in run(BUSCAP, "marks", "-j", *files).stdout.splitlines()]
        equal([(one["kind"], one["cause"], one["lost"], one["exact"]) for one in marks], [("gap", "crash", 0, False)], files)
        equal(marks[0]["number"], row["records"], files)
        events = json.loads(run(BUSCAP, "stats", "-j", *files).stdout)["events"]
        equal((events["gaps"], events["lost"], events["inexact_gaps"]), (1, 0, 1), files)
    # The daemon does not read the whole file: it says nothing, rather than that nothing was lost.
    with Daemon("--source", "sim:rate=1", "--set", "recording.record=on-demand", "-o", tmp / "live", socket=tmp / "s") as daemon:
        daemon.wait_ready()
        (tmp / "live" / path.name).write_bytes(path.read_bytes())

        def listed():
            return json.loads(harness.http(daemon.socket, "/v1/recordings")[1])["recordings"]

        harness.wait_until(lambda: len(listed()) == 1, "the recording is listed")
        (one,) = listed()
        equal((one["state"], one["lost"], one["gaps"], one["inexact_gaps"]), ("open", None, None, None), "API")
    equal(run(BUSCAPD, "--once", "--no-socket", "--source", "sim:rate=max,count=1", "-o", out, *SMALL).returncode, 0)
    recovered, line = summary()
    equal((recovered["state"], recovered["gaps"], recovered["inexact_gaps"]), ("recovered", 1, 1), "recovered")
    assert "  unknown  " in line or "  >= " in line, line


def check(tmp, out, gaps, missing, status):
    paths = harness.segments(out)
    wanted = {"gaps": len(gaps), "lost": sum(gap.value for gap in gaps), "inexact_gaps": sum(not gap.exact for gap in gaps),
              "away_ns": sum(gap.duration_ns for gap in gaps)}
    counts = {name: wanted[name] for name in ("gaps", "lost", "inexact_gaps")}
    cell = f">= {wanted['lost']:,}" if wanted["inexact_gaps"] else f"{wanted['lost']:,}"
    cell = "unknown" if wanted["inexact_gaps"] and not wanted["lost"] else cell

    def lines(*argv):
        return [json.loads(line) for line in run(BUSCAP, *argv).stdout.splitlines()]

    def losses(row):
        return {name: row[name] for name in wanted}

    # Files, and what they add up to.
    infos = lines("info", "-j", *paths)
    equal({name: sum(one[name] for one in infos) for name in wanted}, wanted, "info FILE")
    if wanted["away_ns"] and len(paths) == 1:
        away = f", {wanted['away_ns'] * 1e-9:.6f} s\n"
        for command in ("info", "stats"):
            assert away in run(BUSCAP, command, *paths).stdout.decode(), (command, away)
    marks = lines("marks", "-j", "--kind", "gap", out)
    equal({"gaps": len(marks), "lost": sum(one["lost"] for one in marks), "inexact_gaps": sum(not one["exact"] for one in marks),
           "away_ns": sum(one["duration_ns"] for one in marks)}, wanted, "marks")
    (stats,) = lines("stats", "-j", out)
    in_stats = {"gaps": stats["events"]["gaps"], "lost": stats["events"]["lost"], "inexact_gaps": stats["events"]["inexact_gaps"],
                "away_ns": stats["events"]["away_ns"]}
    # To it, missing segments are one more gap.
    equal(in_stats, {**wanted, "gaps": counts["gaps"] + bool(missing), "lost": counts["lost"] + missing}, "stats")
    # Recordings.
    (row,) = lines("info", "-j", out)
    equal(losses(row), wanted, "info DIR")
    assert f"  {cell}  " in run(BUSCAP, "info", out).stdout.decode(), cell
    with daemon_in(tmp) as daemon:
        daemon.wait_ready()
        listed = json.loads(harness.http(daemon.socket, "/v1/recordings")[1])["recordings"]
        equal([losses(one) for one in listed], [wanted], "API")
        text = run(BUSCAP, "record", "list", "--socket", daemon.socket).stdout.decode()
        assert f"  {cell}  " in text, text
        text = run(BUSCAP, "record", "show", "--socket", daemon.socket, listed[0]["id"]).stdout.decode()
        assert f"  lost        {cell}\n" in text, text
        assert not missing or f"  missing     1 segment\n              {missing:,} records\n" in text, text
    # Pictures.
    report = lines("report", "--json", out)[0]["overview"]
    with Web("--socket", tmp / "none", out) as web:
        page = web.get("/data/overview")
    for overview in (report, page):
        equal([losses(one) for one in overview["recordings"]], [wanted], "recordings of a picture")
        equal({name: sum(column[name] for column in overview["columns"]) for name in wanted}, wanted, "columns")
    # At 16 columns, at most 4 times are holes.
    for columns in (16, 512) if wanted["away_ns"] and len(gaps) <= 4 else ():
        (made,) = lines("report", "--json", "--columns", str(columns), out)
        holes, others = ([c for c in made["overview"]["columns"] if c["is_hole"] == is_hole] for is_hole in (True, False))
        short = (made["overview"]["to"] - made["overview"]["from"]) // 2048 + 1
        assert 0 <= wanted["away_ns"] - sum(one["away_ns"] for one in holes) < len(gaps) * short, (wanted, made)
        assert holes, made
        assert all(one["to"] <= hole["from"] + 1 or one["from"] >= hole["to"] for hole in holes for one in others), made
    if status is None:
        return
    equal({"gaps": status["counts"]["gaps"], "lost": sum(status["counts"]["lost"].values()),
           "inexact_gaps": status["counts"]["inexact_gaps"]}, counts, "status")
    assert abs(status["counts"]["away_seconds"] - wanted["away_ns"] / 1e9) < 1e-6, (status["counts"], wanted)
    assert wanted["away_ns"], "how long nothing was recorded"


# ---- what is here of a recording, and how it ended


def damage(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xff
    path.write_bytes(data)


def open_again(path, size=None):
    """As if it had not been sealed."""
    if size is not None:
        os.truncate(path, size)
    path.rename(f"{path}.partial")


def open_before_a_hole(paths):
    open_again(paths[5])
    paths[6].unlink()


def a_hole_before(paths, *offsets):
    paths[3].unlink()
    for offset in offsets:
        damage(paths[4], offset)


def killed_before_a_foreign_one(paths):
    open_again(paths[6])
    paths[7].write_bytes(paths[2].read_bytes())


# What happened: state, gaps and inexact gaps, and whether something is damaged.
SPOILED = {
    "an open segment in the middle": (lambda paths: open_again(paths[3]), "open", 2, 1, False),
    "a torn open segment in the middle": (lambda paths: open_again(paths[3], 4000), "open", 2, 1, True),
    "an open segment before a hole": (open_before_a_hole, "open", 2, 1, True),
    "the last one is open, and torn": (lambda paths: open_again(paths[-1], paths[-1].stat().st_size - 3000), "open", 3, 2, False),
    "the last one is open, and has only a header": (lambda paths: open_again(paths[-1], reference.read_segment(paths[-1]).chunks[0].offset), "open", 2, 1, False),
    "killed before a foreign segment": (killed_before_a_foreign_one, "open", 2, 1, True),
    "the last one is missing": (lambda paths: paths[-1].unlink(), "open", 2, 1, False),
    "a damaged header": (lambda paths: damage(paths[3], 20), "sealed", 2, 1, True),
    "a hole before a damaged header": (lambda paths: a_hole_before(paths, 20), "sealed", 2, 1, True),
    "a hole before a damaged chunk and index": (lambda paths: a_hole_before(paths, 700, -20), "sealed", 2, 1, True),
    "a damaged last index": (lambda paths: damage(paths[-1], -20), "sealed", 2, 1, True),
}


@pytest.mark.parametrize("case", SPOILED)
def test_how_a_recording_ended_and_what_is_missing_is_the_same_to_all(tmp, case):
    out = tmp / "out"
    board(out)
    spoil, state, gaps, inexact, is_damaged = SPOILED[case]
    spoil(harness.segments(out))

    def lines(*argv):
        done = run(BUSCAP, *argv)
        equal(done.returncode, 3 if is_damaged else 0, (argv, done.stderr))
        return [json.loads(line) for line in done.stdout.splitlines()]

    (row,) = lines("info", "-j", out)
    (made,) = lines("report", "--json", out)
    (recording,) = made["overview"]["recordings"]
    names = ("state", "gaps", "lost", "inexact_gaps", "missing_segments", "missing", "segments", "records")
    equal((row["state"], row["gaps"], row["inexact_gaps"]), (state, gaps, inexact), "info")
    equal({name: recording[name] for name in names if row[name] is not None}, {name: row[name] for name in names if row[name] is not None}, "report")
    equal(sum(hole["records"] for hole in made["overview"]["holes"]), row["missing"], "holes")
    marks = lines("marks", "-j", out)
    if case != "the last one is missing":  # to a file, its recording may go on elsewhere
        lost = [mark for mark in marks if mark["kind"] == "gap"]
        equal((len(lost), sum(not one["exact"] for one in lost)), (gaps, inexact), "marks")
        events = [(e["cause"], e["lost"], e["exact"]) for e in made["events"]["events"] if e["kind"] == "gap"]
        equal(events, [(one["cause"], one["lost"], one["exact"]) for one in lost], "events")
    equal(sum(mark.get("records") or 0 for mark in marks), row["missing"], "missing segments")
    lines("find", "-j", "0-", out)


def test_only_the_newest_recording_of_a_directory_in_use_may_be_between_two_segments(tmp):
    out = tmp / "out"
    board(tmp / "old")
    old, *_ = harness.segments(tmp / "old")
    with Daemon("--source", "sim:rate=200k", "-o", out, "-b", "duration:200ms", socket=tmp / "s") as daemon:
        daemon.wait_ready()
        harness.wait_until(lambda: (daemon.status()["recording"]["segment"] or 0) > 2, "some segments")
        for path in harness.segments(tmp / "old")[:-1]:  # it was killed, and is not recovered
            path.rename(out / path.name)

        def states():
            report = json.loads(run(BUSCAP, "report", "--json", out).stdout)["overview"]["recordings"]
            info = [json.loads(line) for line in run(BUSCAP, "info", "-j", out).stdout.splitlines()]
            listed = json.loads(harness.http(daemon.socket, "/v1/recordings")[1])["recordings"]
            return [sorted((not old.name.startswith(one["id"]), one["state"]) for one in some) for some in (report, info, listed)]

        harness.wait_until(lambda: len(states()[2]) == 2, "the daemon lists both")
        for _ in range(5):
            equal(states(), [[(False, "open"), (True, "recording")]] * 3)
        assert daemon.stop() in (0, 4)
