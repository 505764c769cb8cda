"""Marks, triggers and notes set during a recording keep their record through every tool and are shown."""

import json
import struct

import pytest

import harness
import reference
from api_harness import Api, daemon_in
from harness import BUSCAP, BUSCAPD, equal, info, run

KINDS = {"mark": 3, "trigger": 4, "note": 5}
RECORDS = 5000
NOTES = {"run": "7", "who": "two\nlines \\ and \x7f"}


def plant(path, events):
    """Inserts events, (record, kind, text), into the only chunk of a segment, which then has no index."""
    (chunk,) = reference.read_segment(path).chunks
    data = path.read_bytes()
    head = bytearray(data[chunk.offset : chunk.offset + reference.CHUNK_FIXED])
    old_bytes = 32 * len(chunk.events)  # without the recording's end, which follows
    rows = [(event.position, 1, None) for event in chunk.events if event.kind == "anchor"]
    assert len(rows) == len(chunk.events), "the chunk has other events"
    encoded = data[chunk.offset + reference.CHUNK_FIXED :][:old_bytes]
    for record, kind, text in sorted(events, key=lambda event: event[0]):
        text = text.encode()
        encoded += struct.pack("<4BIQQH6x", KINDS[kind], 0, 0, 0, record, 0, 0, len(text)) + text
    struct.pack_into("<I", head, 4, reference.CHUNK_FIXED + len(encoded))
    struct.pack_into("<II", head, 32, len(chunk.events) + len(events), len(encoded))
    header = bytes(head) + encoded
    header += struct.pack("<Q", reference.hash_of(header))
    return data[: chunk.offset] + header + chunk.frame


def trace(tmp):
    """A sealed segment with events of each kind, and the events: (kind, record, text)."""
    out = tmp / "planted"
    done = run(BUSCAPD, "--once", "--source", "sim:rate=max,seed=3", "-a", f"records:{RECORDS}", "-o", out)
    equal(done.returncode, 0, done.stderr.decode())
    (segment,) = harness.segments(out)
    events = [(100, "mark", "begins"), (100, "note", json.dumps({"run": "6", "who": "me"})), (2500, "trigger", "io"),
              (2500, "mark", 'a "b"\n\\c\x1b[31mé'), (4000, "note", json.dumps(NOTES)), (4999, "trigger", ""),
              (RECORDS, "mark", "ends")]
    torn = tmp / "torn.byu.lz4"
    torn.write_bytes(plant(segment, events))
    whole = tmp / "whole.byu.lz4"
    done = run(BUSCAP, "recover", torn, "-o", whole)
    equal(done.returncode, 0, done.stderr.decode())
    return torn, whole, [(kind, record, text) for record, kind, text in events]


def events_of(path):
    (segment,) = info([path])
    equal(segment["events_left"], 0, "events left out")
    return [(event["kind"], event["record"], event["text"] or "") for event in segment["events"]]


def dumped(path):
    """Marks, triggers and notes as dump shows them: [(kind, records before it, text)]."""
    done = run(BUSCAP, "dump", path)
    equal(done.returncode, 0, done.stderr.decode())
    records, found = 0, []
    for line in done.stdout.decode().splitlines():
        kind = line[2:].partition(":")[0] if line.startswith("# ") else ""
        if kind in KINDS:
            found.append((kind, records, line.partition(": ")[2]))
        records += not line.startswith("#")
    return found


def escaped(text):
    return "".join(f"\\x{ord(c):02x}" if c < " " or c in "\\\x7f" else c for c in text)


def check(path, events, metadata):
    equal(events_of(path), events, f"{path.name}: events")
    equal(dumped(path), [(kind, record, escaped(text)) for kind, record, text in events], f"{path.name}: dump")
    (segment,) = info([path])
    equal({name: segment["metadata"].get(name) for name in metadata}, metadata, f"{path.name}: metadata")
    for kind in ("mark", "trigger"):
        equal(segment[kind + "s"], sum(event[0] == kind for event in events), kind + "s")


def test_info_shows_marks_triggers_and_notes_with_record_and_text(tmp):
    torn, whole, events = trace(tmp)
    check(whole, events, NOTES)
    # Also without the index, from the chunks only.
    (segment,) = info([torn])
    equal([(e["kind"], e["record"], e["text"] or "") for e in segment["events"]], events, "events of the torn segment")
    equal(segment["metadata"], NOTES, "metadata of the torn segment")
    text = run(BUSCAP, "info", whole).stdout.decode()
    for line in ("  marks       3", "  triggers    2", "  mark        record 100: begins",
                 "  mark        record 2500: a \"b\"\\x0a\\x5cc\\x1b[31mé", "  trigger     record 2500: io",
                 "  trigger     record 4999\n", f"  mark        record {RECORDS}: ends"):
        assert line in text, f"{line!r} is not in {text}"
    assert '  metadata    {"run":"7","who":"two\\nlines \\\\ and ' in text, text


def test_a_replay_keeps_the_events(tmp):
    _, whole, events = trace(tmp)
    done = run(BUSCAPD, "--once", "--source", f"file:{whole}", "-o", tmp / "out")
    equal(done.returncode, 0, done.stderr.decode())
    (segment,) = harness.segments(tmp / "out")
    check(segment, events, NOTES)
    equal(harness.lz4_dc([segment]), harness.lz4_dc([whole]), "records")


def test_tables_contain_the_events(tmp):
    _, whole, events = trace(tmp)
    done = run(BUSCAP, "convert", whole, "-O", "ndjson")
    equal(done.returncode, 0, done.stderr.decode())
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    equal([(row["kind"], row.get("text", "")) for row in rows if row["kind"] in KINDS],
          [(kind, text) for kind, _, text in events], "rows")


# ---- while recording


def raw_metadata(path):
    return reference.read_segment(path).header["metadata"]


@pytest.mark.threads
def test_metadata_set_while_recording_is_a_note_in_this_segment_and_in_the_next_header(tmp):
    with daemon_in(tmp) as daemon:
        daemon.wait_ready()
        api = Api(tmp / "socket")
        api.good("POST", "/v1/recordings", {"metadata": {"who": "me", "run": "1"}}, 201)

        def wait_more():
            before = api.good("GET", "/v1/recordings/current")["recording"]["records"]
            harness.wait_until(lambda: api.good("GET", "/v1/recordings/current")["recording"]["records"] > before,
                               "more records")

        wait_more()
        mark = api.good("POST", "/v1/marks", {"text": "here \u00e9\n"}, 201)["mark"]
        noted = api.good("PATCH", "/v1/recordings/current", {"metadata": {"run": "2", "more": "\u20ac"}})
        metadata = {"who": "me", "run": "2", "more": "\u20ac"}
        equal(noted["recording"]["metadata"], metadata, "metadata in the response")
        for key, value in (("a b", "1"), ("", "1"), ("k" * 65, "1"), ("k", "v" * 1025), ("k", 1), ("k", None)):
            api.bad("PATCH", "/v1/recordings/current", {"metadata": {key: value}})
        api.bad("PATCH", "/v1/recordings/current", {"metadata": {f"k{i}": "v" * 1024 for i in range(4)}})
        equal(api.good("GET", "/v1/recordings/current")["recording"]["metadata"], metadata, "after a refused request")
        wait_more()
        api.good("POST", "/v1/rotate")
        wait_more()
        # The last one is set when no further segment will be started.
        api.good("PATCH", "/v1/recordings/current", {"metadata": {"end": "yes"}})
        stopped = api.good("DELETE", "/v1/recordings/current")["recording"]
        equal(stopped["metadata"], {**metadata, "end": "yes"}, "metadata at the end")
        (row,) = api.good("GET", "/v1/recordings")["recordings"]
        for name in ("id", "label", "segments", "records", "bytes", "lost", "metadata", "path", "state"):
            equal(row[name], stopped[name], name)
        equal(row["started"][:20], stopped["started"][:20], "started")
        equal(daemon.stop(), 0, daemon.err)
    first, second = harness.segments(tmp / "out")
    equal(raw_metadata(first), {"who": "me", "run": "1"}, "header of the first segment")
    # The header is written with the segment's first chunk and may contain the last note too.
    equal({**raw_metadata(second), "end": "yes"}, {**metadata, "end": "yes"}, "header of the second")
    one, two = info([first, second])
    equal(one["metadata"], metadata, "info of the first")
    equal(two["metadata"], {**metadata, "end": "yes"}, "info of the second")
    kinds = [event["kind"] for event in one["events"]]
    equal(kinds, ["mark", "note"], "events of the first")
    equal((one["events"][0]["record"], one["events"][0]["text"]), (mark["record"], "here \u00e9\n"), "the mark")
    equal(json.loads(one["events"][1]["text"]), {"run": "2", "more": "\u20ac"}, "the note")
    equal([kind for kind, _, _ in dumped(first)], kinds, "dump of the first")
