"""The commands of buscap that use the daemon: requests, output and exit codes, with a daemon that is good, broken or
hostile (tests/support/mock_daemon.py)."""

import copy
import json
import os
import pty
import re
import shlex
import signal
import socket
import subprocess
import time

import pytest

import harness
from harness import BUSCAP, BUSCAPD, equal, need, one_line, run
from mock_daemon import MockDaemon, Stream, response

# A good daemon's, shared with tests/unit/cli/test_client_answers.c.
GOOD = json.loads((harness.ROOT / "tests/support/answers.json").read_text())
RECORDING, TRIGGER, STATUS, RECORDS = (
    GOOD[name] for name in ("recording", "trigger", "status", "records"))
RECORDING_TEXT = """\
recording 20261120T091500Z-3f9a2c-boot: in progress
  label       boot
  started     2026-11-20T09:15:00.123456789Z
  limit       10 min 0 s
  limit       100,000,000 records
  limit       1.00 GB
  segments    3
  records     61,203,456
  on disk     98.3 MB
  lost        0
  newest file /var/lib/buscapd/20261120T091500Z-3f9a2c-boot-00002.byu.lz4.partial
  note        run=7
"""
STATUS_TEXT = """\
buscapd 0.1.0: recording, mode flight, up 2 h 13 min
  source     usb, clock 66.0 MHz, usb:serial=A1
  board      streaming, 1209:0001 A1, 1 unplug, 2 errors, last: it stalled, high speed, Bus board, firmware 1.2, port 1-2
  recording  20261120T091500Z-3f9a2c-boot, in /var/lib/buscapd
             61,203,456 records, 98.3 MB, since 2026-11-20T09:15:00Z, segment 2
             note run=7
  rate       1.00 M samples/s, 12.0 MB/s of records, 1.60 MB/s to disk
  lost       12,355 samples, 4 gaps, buffer 12,000, disk 345, board 10, 3 B skipped
  left out   idle 1,234, filtered 5, invalid 7
  buffer     2 % in use, max 8 %, room for 4.1 s
  disk       37.1 hours left, 215 GB free, last error: can't write: No space left on device, in /var/lib/buscapd/x.byu.lz4
  flight     9.5 s of 10 s, 12.0 MB of 33.6 MB, 1,000,000 records
  daemon     2 clients, 1 event stream, 3 commands failed, 2 segments sealed, 1 command waiting, 1 trigger armed
"""
RECORDS_TEXT = """\
000b8000\tMEMWRITE\t 4\t03\t0\tffffffff\t1000
# gap: 17 samples lost (board)
# gap: an unknown number of samples lost (unplug)
fffffff0\tFETCH\t32\t07\t1\t0000000c\t1012
# skipped: 87,381 records, 2 gaps or marks (too fast to show)
# mark: a \\x1b[31mmark
# epoch 1
00000001\tf2\t 1\t00\t3\t00000005\t7
"""
TIME = "2026-11-20T09:15:00.123456789Z"
EVENTS = [{"event": name, "seq": n, "time": TIME, **more} for n, (name, more) in enumerate((
    ("status", {"status": STATUS}),
    ("state", {"from": "idle", "to": "recording"}),
    ("recording-started", {"recording": RECORDING}),
    ("recording-ended", {"recording": {**RECORDING, "lost": 1, "reason": "limit", "ended": "2026-11-20T09:27:05Z"}}),
    ("segment-started", {"recording": RECORDING["id"], "segment": 2, "path": "/d/x"}),
    ("segment-sealed", {"recording": RECORDING["id"], "segment": 2, "path": "/d/x", "records": 1000, "bytes": 2000,
                        "chunks": 1, "gaps": 1, "lost": 12, "inexact_gaps": 0, "away_ns": 0, "hash": "00ff", "first_record": 0, "started": TIME}),
    ("mark", {"mark": {"text": "here", "record": 7, "tick": 8, "epoch": 0}}),
    ("mark", {"mark": {"text": "here", "record": None, "tick": 8, "epoch": 0}}),
    ("trigger", {"name": "roi", "action": "stop", "record": 9, "tick": 10, "epoch": 0}),
    ("trigger-armed", {"trigger": {"name": "roi", "when": "port=e0", "action": "stop"}}),
    ("trigger-disarmed", {"name": "roi"}),
    ("gap", {"cause": "buffer", "gaps": 3, "lost": 1200, "exact": True, "activity": "the sealer: syncing x since then"}),
    ("note", {"recording": RECORDING["id"], "metadata": {"a": "b", "c": "d"}}),
    ("disk", {"stuck": True, "error": "No space left on device"}),
    ("disk", {"stuck": False, "error": None}),
    ("disk", {"stuck": False, "error": "/d/x: deleted"}),
    ("disk-low", {"low": True, "time_left_seconds": 720}),
    ("disk-low", {"low": False, "time_left_seconds": None}),
    ("hang", {"error": "the writer hangs: writing to x"}),
    ("hang", {"error": None}),
    ("board", {"state": "detached", "error": "it was unplugged", "unplugs": 1}),
    ("board", {"state": "opening", "error": None, "unplugs": 1, "time": "2026-11-20T09:15:02Z"}),
    ("board", {"state": "streaming", "error": None, "unplugs": 1, "time": "2026-11-20T09:15:02.62Z"}),
    ("board", {"state": "streaming", "error": None, "unplugs": 1}),
    ("clock", {"reason": "set", "moved_seconds": -3600.25}),
    ("command-failed", {"path": "/d/x", "exit_code": 3, "error": None}),
    ("command-failed", {"path": "/d/x", "exit_code": None, "error": "it was left out"}),
    ("reload", {}),
    ("missed", {"count": 4}),
    ("of-tomorrow", {"what": "\u009b\x07"}),
    ("stopping", {"signal": "SIGTERM"})))]
EVENTS_TEXT = """\
status             recording, 1.00 M samples/s, 61,290,837 samples received, 12,355 samples lost
state              idle -> recording
recording started  20261120T091500Z-3f9a2c-boot, label boot
recording ended    20261120T091500Z-3f9a2c-boot: 61,203,456 records in 3 segments, 1 sample lost, 12 min 4 s; ended: limit reached
segment started    /d/x
segment sealed     /d/x: 1,000 records, 2.00 kB, 12 samples lost, hash 00ff
mark               here, before record 7, tick 8
mark               here, tick 8
trigger            roi: stop, at record 9, tick 10
trigger armed      roi: stop on port=e0
trigger disarmed   roi
gap                1,200 samples lost (buffer) in 3 gaps; the sealer: syncing x since then
note               20261120T091500Z-3f9a2c-boot a=b c=d
disk               stuck: No space left on device
disk               writing resumed, after 0 s
disk               write failed: /d/x: deleted; writing resumed
disk low           full in 12 min 0 s at the current rate
disk low           no longer nearly full, after 0 s
hang               the writer hangs: writing to x
hang               the thread continues, after 0 s
board              detached: it was unplugged
board              opening
board              streaming, after 2.5 s
board              streaming
clock              times of day move by -3600.250 s (set)
command failed     /d/x, exit code 3
command failed     /d/x: it was left out
reload             configuration reloaded
missed             4 events (this program was too slow)
{"event":"of-tomorrow","seq":29,"time":"2026-11-20T09:15:00.123456789Z","what":"\\u009b\\u0007"}
stopping           buscapd is stopping: SIGTERM
"""


def buscap(*argv, code=0, socket_path=None, **options):
    """Runs buscap, checks the exit code and that no output can harm a terminal. Returns (output, errors)."""
    if socket_path is not None:
        options["env"] = {**os.environ, "BUSCAP_SOCKET": str(socket_path)}
    done = run(need(BUSCAP), *argv, **options)
    out, err = check_output(done.stdout, done.stderr)
    if code is not None:
        equal(done.returncode, code, f"exit code of {' '.join(map(str, argv))}: {err}")
    assert done.returncode in (0, 1, 2, 3, 6), f"{argv}: {done.returncode} {err}"
    return out, err


def check_output(out, err):
    harness.check_sound(err)
    for text in (out, err):
        assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", text), text
    return out.decode(), err.decode()


def check(directory, argv, method, path, body, answer, text=None, code=0):
    """Checks the request that a command sends and what it prints for the response."""
    where = directory / "s"
    with MockDaemon(where, {f"{method} {path}": answer}) as daemon:
        out, err = buscap(*argv, socket_path=where, code=code)
        equal(daemon.requests, [(method, path, body)], f"request of {argv}")
    if text is not None:
        equal(out, text, f"output of {argv}")
    return out, err


# ---- no daemon


@pytest.mark.root
def test_a_permission_error_names_the_group(tmp):
    with MockDaemon(tmp / "s", {}):
        tmp.chmod(0o755)
        os.chown(tmp / "s", 0, 1)
        (tmp / "s").chmod(0o660)
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        program = tmp / "buscap"
        program.write_bytes(BUSCAP.read_bytes())
        program.chmod(0o755)
        for mode, path, word in ((0o660, "s", "the group daemon"), (0o600, "s", "only its owner")):
            (tmp / "s").chmod(mode)
            done = run(program, "status", "--socket", tmp / path, **nobody)
            equal(done.returncode, 6, done.stderr)
            one_line(done.stderr.decode(), "permission denied", word)
        os.chown(tmp / "s", 0, 0)
        (tmp / "s").chmod(0o660)
        done = run(program, "status", "--socket", tmp / "s", **nobody)
        one_line(done.stderr.decode(), "permission denied", "only its owner")
        assert b"usermod" not in done.stderr, done.stderr
        tmp.chmod(0o700)
        tmp.chmod(0o711)
        (tmp / "d").mkdir(mode=0o700)
        done = run(program, "status", "--socket", tmp / "d/s", **nobody)
        one_line(done.stderr.decode(), "permission denied", "the group buscap")


def test_a_daemon_that_never_responds_times_out(tmp):
    with socket.socket(socket.AF_UNIX) as deaf, socket.socket(socket.AF_UNIX) as full:
        deaf.bind(str(tmp / "deaf"))
        deaf.listen(64)
        full.bind(str(tmp / "full"))
        full.listen(0)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(str(tmp / "full"))
            harness.each(lambda _, name, *argv: one_line(
                buscap(*argv, socket_path=tmp / name, code=6)[1], "no response within 10 s"),
                         [("deaf", "status"), ("deaf", "tail"), ("deaf", "events"), ("deaf", "record", "list"),
                          ("full", "status"), ("full", "tail")])


def test_requests_that_wait_for_the_disk_have_a_longer_timeout():
    def wait_longer(directory, *argv):
        def answer(_):
            time.sleep(11)  # longer than the timeout of other calls
            return {"recording": RECORDING}

        with MockDaemon(directory / "s", {"*": answer}):
            out, _ = buscap(*argv, socket_path=directory / "s")
        assert RECORDING["id"] in out, out

    harness.each(wait_longer, [("snapshot",), ("record", "stop"), ("rotate",)])


# ---- requests and output


def test_status_is_a_page(tmp):
    check(tmp, ("status",), "GET", "/v1/status", None, STATUS, STATUS_TEXT)


def test_status_of_a_full_disk_says_so_first(tmp):
    full = copy.deepcopy(STATUS)
    full["disk"].update(time_left_seconds=0, stuck=True)
    out, _ = check(tmp, ("status",), "GET", "/v1/status", None, full)
    assert out.startswith("buscapd 0.1.0: recording (disk stuck), "), out
    assert ("  disk       stuck: can't write: No space left on device, 215 GB free, "
            "in /var/lib/buscapd/x.byu.lz4\n") in out, out


def test_status_says_how_long_the_disk_lasts(tmp):
    nearly = copy.deepcopy(STATUS)
    for seconds, text in ((10, "10 s left"), (59.9, "59 s left"), (60, "1 min left"), (3599, "59 min left"), (0, "0 s left")):
        nearly["disk"].update(time_left_seconds=seconds)
        out, _ = check(tmp, ("status",), "GET", "/v1/status", None, nearly)
        assert f"  disk       {text}, 215 GB free" in out, out


def test_status_shows_the_ring(tmp):
    ring = copy.deepcopy(STATUS)
    for limits, text in (({"limit_bytes": 24_000_000, "limit_segments": 3}, "ring: 19.0 of 24.0 MB"),
                         ({"limit_bytes": 24_000_000_000, "limit_segments": None}, "ring: 19.0 MB of 24.0 GB"),
                         ({"limit_bytes": None, "limit_segments": 3}, "ring: 2 of 3 segments")):
        ring["disk"].update(time_left_seconds=None, last_error=None, last_error_cause=None,
                            ring={"bytes": 19_000_000, "segments": 2, **limits})
        out, _ = check(tmp, ("status",), "GET", "/v1/status", None, ring)
        assert f"  disk       {text}, 215 GB free\n" in out, out


def test_status_says_when_the_number_of_lost_samples_is_unknown(tmp):
    unsure = copy.deepcopy(STATUS)
    unsure["counts"].update(lost={}, gaps=1, inexact_gaps=1)
    out, _ = check(tmp, ("status",), "GET", "/v1/status", None, unsure)
    assert "  lost       unknown number of samples, 1 gap, " in out, out
    unsure["counts"].update(lost={"crc": 1024}, gaps=2)
    out, _ = check(tmp, ("status",), "GET", "/v1/status", None, unsure)
    assert "  lost       at least 1,024 samples, 2 gaps, crc 1,024, " in out, out


def test_status_says_that_the_rate_is_unknown(tmp):
    new = copy.deepcopy(STATUS)
    new["rates"] = dict.fromkeys(new["rates"])
    out, _ = check(tmp, ("status",), "GET", "/v1/status", None, new)
    assert "  rate       unknown\n" in out, out


def test_status_as_json_is_the_unchanged_object(tmp):
    text = b'{ "b": 1.50,"a":9223372036854775807, "state":"idle", "s":"\xc3\xa4\\u001b" }'
    check(tmp, ("status", "--json"), "GET", "/v1/status", None, response(200, text + b"\n"), text.decode() + "\n")


def test_watching_without_a_terminal_appends(tmp):
    with MockDaemon(tmp / "s", {"GET /v1/status": STATUS}) as daemon:
        argv = [BUSCAP, "status", "--watch", "0.1", "--socket", tmp / "s"]
        with harness.popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            harness.wait_until(lambda: len(daemon.requests) >= 4, "three pages and one more request")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=harness.TIMEOUT_S)
        equal((process.returncode, err), (0, b""))
        pages = check_output(out, err)[0].split("\n\n")
        assert len(pages) >= 3, pages
        equal(set(page.strip("\n") for page in pages), {STATUS_TEXT.strip("\n")})


def test_watching_on_a_terminal_redraws_in_place(tmp):
    with MockDaemon(tmp / "s", {"GET /v1/status": STATUS}) as daemon:
        here, there = pty.openpty()
        argv = [BUSCAP, "status", "--watch", "0.1", "--socket", tmp / "s"]
        with harness.popen(argv, stdout=there, stderr=there) as process:
            os.close(there)
            harness.wait_until(lambda: len(daemon.requests) >= 4, "three pages and one more request")
            process.send_signal(signal.SIGINT)
            got = b""
            while True:
                try:
                    piece = os.read(here, 65536)
                except OSError:
                    break
                if not piece:
                    break
                got += piece
            equal(process.wait(harness.TIMEOUT_S), 0)
        os.close(here)
    equal(got.count(b"\x1b[2J\x1b[H"), 1)
    pages = got.decode().replace("\r\n", "\n").split("\x1b[J")
    assert len(pages) >= 4 and pages[-1] == "", pages
    for page in pages[1:-1]:
        assert page.startswith("\x1b[H"), page
        equal(page[3:].replace("\x1b[K", ""), STATUS_TEXT)


def test_record_start_sends_all_options(tmp):
    check(tmp, ("record", "start"), "POST", "/v1/recordings", {}, (201, {"recording": RECORDING}), RECORDING_TEXT)
    check(tmp, ("record", "start", "--label", "boot", "--note", "run=7", "--note", "a=b=c", "--limit", "duration:10s",
               "--limit", "records:1000000", "--limit", "filesize:64M", "--pre", "5s", "--trigger",
               "end:stop:type=write addr=e1", "--trigger", "q:mark:idle 5s", "--json"),
         "POST", "/v1/recordings",
         {"label": "boot", "metadata": {"run": "7", "a": "b=c"},
          "limits": {"duration": "10s", "records": 1000000, "filesize": "64M"}, "pre": "5s",
          "triggers": [{"name": "end", "action": "stop", "when": "type=write addr=e1"},
                       {"name": "q", "action": "mark", "when": "idle 5s"}]},
         (201, {"recording": RECORDING}), json.dumps({"recording": RECORDING}) + "\n")


def test_record_list_is_a_table(tmp):
    unknown = {"id": "20261119T000000Z-000000", "label": None, "started": "2026-11-19T00:00:00Z", "ended": None,
               "state": "open", "segments": 1, "records": None, "bytes": 12, "lost": None, "gaps": None, "inexact_gaps": None, "away_ns": None, "metadata": {}, "path": None,
               "reason": None}
    rows = {"recordings": [RECORDING, unknown]}
    table = """\
ID                            STATE      STARTED (UTC)        SEGMENTS            RECORDS          LOST   ON DISK  LABEL
20261120T091500Z-3f9a2c-boot  recording  2026-11-20T09:15:00         3         61,203,456             0   98.3 MB  boot
20261119T000000Z-000000       open       2026-11-19T00:00:00         1                  -             -      12 B  -
"""
    disk = {"free_bytes": 215 * 10**9, "ring": None}
    by_size = {"bytes": 1, "limit_bytes": 3 * 10**9, "segments": 1, "limit_segments": None}
    by_number = {**by_size, "limit_bytes": None, "limit_segments": 12}
    after = "; the oldest segments are deleted above "
    for answer, words in (({"disk": disk}, ", 215 GB free"), ({"disk": {**disk, "ring": by_size}}, f", 215 GB free{after}3.00 GB"),
                          ({"disk": {**disk, "free_bytes": None, "ring": by_number}}, f"{after}12 segments"), ((503, {}), "")):
        with MockDaemon(tmp / "s", {"GET /v1/recordings?limit=1000": rows, "GET /v1/status": answer}):
            equal(buscap("record", "list", socket_path=tmp / "s")[0], f"{table}# 98.3 MB on disk{words}\n")
    check(tmp, ("record", "list", "--json"), "GET", "/v1/recordings?limit=1000", None, rows, json.dumps(rows) + "\n")
    with MockDaemon(tmp / "s", {"GET /v1/recordings?limit=1000": {"recordings": []}}):
        equal(buscap("record", "list", socket_path=tmp / "s")[0], "no recordings\n")
    with MockDaemon(tmp / "s", {"GET /v1/recordings?limit=1000": {**rows, "omitted": 1234}}):
        out, _ = buscap("record", "list", socket_path=tmp / "s")
    assert out.startswith("# 1,234 older recordings not shown\nID "), out
    out, _ = check(tmp, ("record", "show", unknown["id"]), "GET", "/v1/recordings?limit=1000", None, rows)
    assert out.startswith("recording 20261119T000000Z-000000: open\n") and "records" not in out, out
    out, _ = check(tmp, ("record", "show", unknown["id"], "--json"), "GET", "/v1/recordings?limit=1000", None, rows)
    equal(json.loads(out), {"recording": unknown})
    _, err = check(tmp, ("record", "show", "x"), "GET", "/v1/recordings?limit=1000", None, rows, "", code=1)
    one_line(err, "recording x: not found; see buscap record list")
    _, err = check(tmp, ("record", "show", "x"), "GET", "/v1/recordings?limit=1000", None, {**rows, "omitted": 1234}, "", code=1)
    one_line(err, "recording x: not found; 1,234 older recordings are not listed", "buscap info")
    check(tmp, ("record", "show"), "GET", "/v1/recordings/current", None, {"recording": RECORDING}, RECORDING_TEXT)


def test_record_note_rotate_and_snapshot_show_the_recording(tmp):
    good = {"recording": RECORDING}
    check(tmp, ("record", "note", "run=7", "b="), "PATCH", "/v1/recordings/current", {"metadata": {"run": "7", "b": ""}},
         good, RECORDING_TEXT)
    check(tmp, ("rotate",), "POST", "/v1/rotate", {}, good,
         f"recording {RECORDING['id']}: the next record starts a new segment\n")
    check(tmp, ("snapshot",), "POST", "/v1/snapshot", {}, (201, good), RECORDING_TEXT)
    check(tmp, ("snapshot", "--pre", "5s", "--post", "1s", "--label", "x", "--note", "a=b"), "POST", "/v1/snapshot",
         {"pre": "5s", "post": "1s", "label": "x", "metadata": {"a": "b"}}, (201, good))
    check(tmp, ("snapshot", "--until-stopped", "--until-stopped"), "POST", "/v1/snapshot", {"until_stopped": True}, (201, good))


def test_mark_joins_its_words(tmp):
    mark = {"mark": {"text": "the relay clicked", "record": 9007199254740992, "tick": 40, "epoch": 1}}
    check(tmp, ("mark", "the relay", "clicked"), "POST", "/v1/marks", {"text": "the relay clicked"}, (201, mark),
         "mark before record 9007199254740992, after tick 40 of epoch 1\n")
    mark["mark"]["record"] = None
    check(tmp, ("mark", "x"), "POST", "/v1/marks", {"text": "x"}, (201, mark),
         "mark in the flight recorder, after tick 40 of epoch 1\n")
    check(tmp, ("mark", "--json", "--", "-x \"\n"), "POST", "/v1/marks", {"text": "-x \"\n"}, (201, mark),
         json.dumps(mark) + "\n")


def test_triggers_are_listed_added_and_removed(tmp):
    head = "NAME              ACTION         FIRED      MISSED  FROM           WHEN\n"
    row = "roi               mark              12           0  request        port=e0, holdoff 0.5 s, text begin\n"
    check(tmp, ("trigger", "list"), "GET", "/v1/triggers", None, {"triggers": [TRIGGER, TRIGGER]}, head + row + row)
    check(tmp, ("trigger", "list"), "GET", "/v1/triggers", None, {"triggers": []}, "no triggers\n")
    long = {**TRIGGER, "name": "a" * 32, "text": "a" * 32, "holdoff": None}
    for answer in ({"triggers": [TRIGGER, long]}, {"trigger": long}):
        argv, method = (("list",), "GET") if "triggers" in answer else (("add", long["name"], "mark", "gap"), "POST")
        out, _ = check(tmp, ("trigger", *argv), method, "/v1/triggers", None if method == "GET" else
                      {"name": long["name"], "action": "mark", "when": "gap"}, answer)
        lines = out.splitlines()
        assert lines[-1].endswith("  port=e0") and len({line.index("  mark") for line in lines[1:]}) == 1, out
        equal(lines[0].index("ACTION"), lines[-1].index("mark"))
    check(tmp, ("trigger", "add", "roi", "mark", "type=write", "addr=e0", "--text", "begin", "--holdoff", "500ms",
               "--pre", "1s", "--post", "2M"), "POST", "/v1/triggers",
         {"name": "roi", "action": "mark", "when": "type=write addr=e0", "text": "begin", "holdoff": "500ms",
          "pre": "1s", "post": "2M"}, (201, {"trigger": TRIGGER}), head + row)
    check(tmp, ("trigger", "remove", "a/../ü?"), "DELETE", "/v1/triggers/a%2F..%2F%C3%BC%3F", None, {"trigger": TRIGGER},
         "")


def test_tail_prints_the_lines_of_dump(tmp):
    check(tmp, ("tail", "-t", "tick"), "GET", "/v1/records", None, Stream(*RECORDS), RECORDS_TEXT)
    check(tmp, ("tail",), "GET", "/v1/records", None, Stream(*RECORDS),
         re.sub(r"^([0-9a-f]{8}\t.*)\t\d+$", r"\1", RECORDS_TEXT, flags=re.M))
    check(tmp, ("tail", "--json"), "GET", "/v1/records", None, Stream(*RECORDS),
         "".join(json.dumps(record) + "\n" for record in RECORDS))
    out, _ = check(tmp, ("tail", "--json", "--map", "pc"), "GET", "/v1/records", None, Stream({"mark": "\u009b\x7f"}))
    equal(out, '{"mark":"\\u009b\\u007f"}\n')
    for argv, query in ((("--addr", "1000-1fff", "--type", "read,0xf2", "--proc", "0,2-3"),
                         "addr=1000-1fff&type=read%2C0xf2&proc=0%2C2-3"),
                        (("--type", "read", "--proc", "1", "--type", "0xf2"), "type=read%2C0xf2&proc=1"),
                        (("--port", "e0-e3"), "port=e0-e3"), (("--region", "a name"), "region=a%20name")):
        check(tmp, ("tail", *argv), "GET", f"/v1/records?{query}", None, Stream(), "")


def test_tail_has_the_times_of_dump(tmp):
    times = iter([record["time"] or "-" for record in RECORDS if "time" in record])
    check(tmp, ("tail", "-t", "wall"), "GET", "/v1/records", None, Stream(*RECORDS),
         re.sub(r"^([0-9a-f]{8}\t.*)\t\d+$", lambda line: f"{line[1]}\t{next(times)}", RECORDS_TEXT, flags=re.M))
    hostile = {**RECORDS[0], "time": "\u001b[31m"}
    out, _ = check(tmp, ("tail", "-t", "wall"), "GET", "/v1/records", None, Stream(hostile))
    equal(out.split("\t")[-1], "\\x1b[31m\n")


def test_tail_names_its_columns_in_a_terminal(tmp):
    with MockDaemon(tmp / "s", {"*": Stream(*RECORDS)}):
        for options, more in (((), ""), (("-t", "wall", "--map", "pc"), "\ttime\tname"), (("-j",), None)):
            argv = (BUSCAP, "tail", "-n", "3", *options, "--socket", tmp / "s")
            head = "" if more is None else f"# addr  \ttype\tsize\tattr\tproc\tdelta{more}\n"
            equal(harness.in_terminal(*argv), head + run(*argv).stdout.decode(), f"{options}")


def test_tail_checks_its_options_before_it_connects(tmp):
    for argv, words in ((("--type", "walk"), "--type walk: "), (("--time", "relative"), "must be delta, tick or wall"),
                        (("--port", "e0", "--addr", "0-1"), "--addr excludes --port"),
                        (("--addr", "0", "--addr", "1"), "--addr given twice")):
        one_line(buscap("tail", *argv, socket_path=tmp / "none", code=2)[1], words)


def test_tail_asks_for_n_records(tmp):
    for options in ((), ("--json",)):
        out, _ = check(tmp, ("tail", "-n", "2", *options), "GET", "/v1/records?limit=2", None, Stream(*RECORDS[:4]))
        equal(out.count("\n"), 4)


def test_lines_are_joined_however_they_are_split(tmp):
    whole = b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS)
    for size in (1, 2, 3, 7, 64, 1000):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        check(tmp, ("tail", "-t", "tick"), "GET", "/v1/records", None, Stream(*pieces), RECORDS_TEXT)
    check(tmp, ("tail", "-t", "tick"), "GET", "/v1/records", None, Stream(whole.replace(b"\n", b"\r\n\r\n")), RECORDS_TEXT)


def test_each_event_is_one_line(tmp):
    times = (event["time"] for event in EVENTS)
    wanted = "".join(f"{time if len(time) < 24 else time[:23] + 'Z'} {line}\n" for time, line in zip(times, EVENTS_TEXT.splitlines(), strict=True))
    check(tmp, ("events", "--status"), "GET", "/v1/events", None, Stream(*EVENTS), wanted)
    check(tmp, ("events",), "GET", "/v1/events", None, Stream(*EVENTS, EVENTS[0]), wanted.split("\n", 1)[1])
    for options, seen in ((("--status",), EVENTS), ((), EVENTS[1:])):
        out, _ = check(tmp, ("events", "-j", *options), "GET", "/v1/events", None, Stream(*EVENTS))
        equal([json.loads(line) for line in out.splitlines()], seen)


def test_interrupting_ends_a_stream_cleanly(tmp):
    for argv, path in ((("tail", "-t", "tick"), "/v1/records"), (("events",), "/v1/events")):
        for number in (signal.SIGINT, signal.SIGTERM):
            lines = RECORDS if argv[0] == "tail" else EVENTS
            with MockDaemon(tmp / "s", {f"GET {path}": Stream(*lines, is_open=True)}):
                with harness.popen([BUSCAP, *argv, "--socket", tmp / "s"], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE) as process:
                    got = b""
                    while got.count(b"\n") < 8:
                        piece = os.read(process.stdout.fileno(), 65536)
                        assert piece, "buscap has ended"
                        got += piece
                    process.send_signal(number)
                    out, err = process.communicate(timeout=harness.TIMEOUT_S)
                equal((process.returncode, err), (0, b""), argv)


def test_a_closed_pipe_ends_tail(tmp):
    def many(_):
        return Stream(*[json.dumps(RECORDS[0]).encode() + b"\n" for _ in range(20000)], is_open=True)

    with MockDaemon(tmp / "s", {"GET /v1/records": many}):
        with harness.popen([BUSCAP, "tail", "--socket", tmp / "s"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            process.stdout.readline()
            process.stdout.close()
            equal(process.wait(harness.TIMEOUT_S), 0)
            equal(process.stderr.read(), b"")


def test_a_closed_standard_output_is_a_failure(tmp):
    with MockDaemon(tmp / "s", {"GET /v1/status": STATUS, "GET /v1/records": Stream(*RECORDS)}):
        for command in ("status", "tail"):
            done = run("sh", "-c", f"exec {shlex.quote(str(need(BUSCAP)))} {command} --socket {tmp}/s >&-")
            equal(done.returncode, 1, done.stderr)
            one_line(done.stderr.decode(), "write error")


# ---- a daemon that refuses or is hostile: tests/unit/cli/test_client_answers.c has the rest


ODD = (None, True, -1, 0.5, 1e308, 2**63 - 1, "", "\x1b[31m\x00\u0085\u2028", "x" * 5000, [], [[]], {}, {"\x1b": "\x07"})


def variants(value):
    """Yields the value with each part in turn omitted or replaced by each value of ODD."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield {k: v for k, v in value.items() if k != key}
            for other in variants(part):
                yield {**value, key: other}
    yield from ODD


def test_events_of_any_kind_are_one_line(tmp):
    # test_client_answers.c has those of the status.
    odd = [event for one in EVENTS[1:] for event in variants(one) if isinstance(event, dict) and event.get("event")
           and isinstance(event["event"], str)]
    out, _ = check(tmp, ("events",), "GET", "/v1/events", None, Stream(*odd))
    equal(out.count("\n"), len(odd))


def test_an_endless_line_is_rejected(tmp):
    def endless(_):
        return Stream(*[b"x" * (1 << 20)] * 16, is_open=True)

    with MockDaemon(tmp / "s", {"GET /v1/records": endless}):
        one_line(buscap("tail", socket_path=tmp / "s", code=1)[1], "exceeds 4 MiB")


# ---- the daemon itself


def on_demand(directory, *more):
    """A daemon that records the simulated bus on demand."""
    return harness.Daemon("--source", "sim:rate=20k", "-o", directory / "rec", "--set",
                          "recording.record=on-demand", *more, socket=directory / "s")


@pytest.mark.threads
def test_the_daemon_executes_the_commands(tmp):
    with on_demand(tmp) as daemon:
        daemon.wait_ready()

        def ask(*argv, code=0):
            return buscap(*argv, socket_path=tmp / "s", code=code)[0]

        assert ask("status").startswith("buscapd 0.1.0: idle, mode on-demand, up ")
        for argv, err in (("record stop", "no recording is in progress"), ("trigger remove x", "trigger x: not armed")):
            equal(buscap(*argv.split(), socket_path=tmp / "s", code=1)[1], f"buscap {argv.removesuffix(' x')}: {err}\n")
        for argv, err in (("trigger add x jump gap", "buscap trigger add: action: must be start, "),
                          ("record start --limit duration:x", "buscap record start: --limit duration:x: not a time; "),
                          ("record start --pre 1x", "buscap record start: --pre 1x: unknown unit x; "),
                          ("record start --trigger x:bark:gap", "buscap record start: --trigger x:bark:gap: action: must be "),
                          ("tail --type walk", "buscap tail: ")):
            one_line(buscap(*argv.split(), socket_path=tmp / "s", code=2)[1], err)
        text = ask("record", "start", "--label", "l", "--note", "a=b")
        assert ": in progress\n  label       l\n" in text and text.endswith("  note        a=b\n"), text
        assert "mark before record " in ask("mark", "one", "\x1b[2Jtwo")
        assert "  note        c=d\n" in ask("record", "note", "c=d")
        ask("rotate")
        harness.wait_until(lambda: daemon.status()["recording"]["segment"] == 1, "the second segment has records")
        text = ask("record", "stop")
        assert ": sealed\n" in text and "  segments    2\n" in text and "stopped on request" in text, text
        paths = harness.segments(tmp / "rec")
        equal(len(paths), 2)
        dumped, _ = buscap("dump", *paths)
        assert "# mark: one \\x1b[2Jtwo\n" in dumped
        ask("trigger", "add", "roi", "mark", "type=IOWRITE")
        assert "\nroi               mark " in ask("trigger", "list")
        ask("trigger", "remove", "roi")
        equal(ask("trigger", "list"), "no triggers\n")
        harness.check_counts(json.loads(ask("status", "--json")))
        equal(daemon.stop(), 0)


@pytest.mark.threads
def test_tail_prints_what_dump_prints_of_the_recording(tmp):
    with on_demand(tmp) as daemon:
        daemon.wait_ready()
        # After a fifth of a second, the daemon knows how the clocks relate: times do not change any more.
        harness.wait_until(lambda: daemon.status()["counts"]["received"] > 10_000, "half a second of the bus")
        buscap("record", "start", socket_path=tmp / "s")
        out, _ = buscap("tail", "--json", "-n", "2000", socket_path=tmp / "s")
        buscap("record", "stop", socket_path=tmp / "s")
        records = [json.loads(line) for line in out.splitlines() if '"addr"' in line]
        for form in ("tick", "wall"):
            dumped, _ = buscap("dump", "-t", form, *harness.segments(tmp / "rec"))
            lines = [line for line in dumped.splitlines() if not line.startswith("#")]
            with MockDaemon(tmp / form, {"*": Stream(*[json.loads(line) for line in out.splitlines()])}):
                text, _ = buscap("tail", "-t", form, socket_path=tmp / form)
            shown = [line for line in text.splitlines() if not line.startswith("#")]
            equal(len(shown), 2000)
            for record, line in zip(records, shown):
                if record["number"] is not None and record["delta"] is not None:
                    equal(line, lines[record["number"]])
        equal(daemon.stop(), 0)


@pytest.mark.threads
def test_a_stream_ends_with_the_daemon(tmp):
    for kill in (signal.SIGTERM, signal.SIGKILL):
        with on_demand(tmp) as daemon:
            daemon.wait_ready()
            argv = [BUSCAP, "events", "--socket", tmp / "s"]
            with harness.popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                harness.wait_until(lambda: daemon.status()["streams"]["events"] == 1, "buscap reads events")
                daemon.process.send_signal(kill)
                out, err = process.communicate(timeout=harness.TIMEOUT_S)
            equal(process.returncode, 6)
            one_line(err.decode(), "buscapd has stopped")
            assert (b" buscapd is stopping: SIGTERM\n" in out) == (kill == signal.SIGTERM), out
            daemon.process.wait(harness.TIMEOUT_S)
