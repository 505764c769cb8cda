"""csv, ndjson, vcd and perfetto: parsed with Python's, GTKWave's and protobuf's readers, and compared with the source as decoded by
tests/support/reference.py."""

import codecs
import csv
import datetime
import io
import json
import os
import random
import struct

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, equal, need, run

NO_DELTA = 0xFFFFFFFF
CHUNK_MAGIC = struct.pack("<I", 0x184D2A51)
TYPES = {0: "FETCH", 1: "MEMREAD", 2: "MEMREADINV", 3: "MEMWRITE", 0x10: "IOREAD", 0x11: "IOWRITE", 0x20: "DEFERREPLY",
         0x21: "INTA", 0x22: "CNTRLAGNTRES", 0x23: "BRTRACEREC", 0x31: "SHUTDOWN", 0x32: "FLUSH", 0x33: "HALT",
         0x34: "SYNC", 0x35: "FLUSHACK", 0x36: "STOPCLKACK", 0x37: "SMIACK"}

csv.field_size_limit(1 << 20)
codecs.register_error("latin", lambda why: (why.object[why.start : why.end].decode("latin-1"), why.end))


def convert(source, target, *paths, data=None, code=0):
    """Returns stdout as bytes and stderr as text."""
    done = run(need(BUSCAP), "convert", "-I", source, "-O", target, *paths, data=data)
    err = done.stderr.decode()
    if done.returncode == 2 and "can only be written" in err:
        pytest.skip(f"{source} can't be read yet")
    if code is not None:
        equal(done.returncode, code, f"{source} to {target}: {err}")
    return done.stdout, err


def no_twins(pairs):
    equal(len({key for key, _ in pairs}), len(pairs), f"each key once in {pairs}")
    return dict(pairs)


def cell(value):
    """The csv form of an ndjson value."""
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def entries_of(source, *paths, data=None, code=0):
    """The entries of a trace, read from ndjson. csv must have the same entries and names."""
    lines, _ = convert(source, "ndjson", *paths, data=data, code=code)
    table, _ = convert(source, "csv", *paths, data=data, code=code)
    assert lines == b"" or lines.endswith(b"\n")
    objects = [json.loads(line, object_pairs_hook=no_twins) for line in lines.split(b"\n")[:-1]]
    # latin-1 preserves arbitrary bytes.
    rows = csv.reader(io.StringIO(table.decode("latin-1"), newline=""), strict=True, lineterminator="\n")
    header = next(rows)
    equal(len(set(header)), len(header), "each column once")
    got = []
    for row in rows:
        equal(len(row), len(header), f"cells of {row}")
        got.append({name: text.encode("latin-1").decode("utf-8", errors="latin")
                    for name, text in zip(header, row) if text != ""})
    wanted = [{name: cell(value) for name, value in entry.items() if name != "kind" or "kind" in header}
              for entry in objects]
    equal(got, wanted, f"csv and ndjson of {source}")
    return objects


def type_name(reqtype):
    return TYPES.get(reqtype, "0x%02x" % reqtype)


def record_entry(number, tick, record, **more):
    addr, reqtype, size, attr, proc, time = struct.unpack("<I4BI", record)
    entry = {"kind": "reference", "number": number, "tick": tick, "type": type_name(reqtype), "addr": hex(addr),
             "size": size, "attr": attr, "proc": proc, **more}
    if time != NO_DELTA:
        entry["delta"] = time
    return entry


def records_of(data):
    return [data[at : at + 12] for at in range(0, len(data) - 11, 12)]


def test_bus_samples_are_included_with_their_meaning():
    rng = random.Random(3)
    features = reference.Features(p_invalid=0.1, p_special=0.1, hostile=True)
    options = reference.Options(keep_invalid=True)
    data, expected = reference.make_raw6(rng, 4000, features, options)
    wanted = []
    for i, record in enumerate(records_of(expected.records)):
        address, be, control = struct.unpack_from(">IBB", data, 6 * i)
        entry = record_entry(i, 0, record, bus_addr=hex(address), byte_enables="0x%02x" % be,
                             control="0x%02x" % control)
        for name in ("tick", "proc", "delta"):
            entry.pop(name, None)
        wanted.append(entry)
    equal(entries_of("raw6", data=data), wanted, "raw6")


def split_events(entries):
    return ([entry for entry in entries if entry["kind"] == "reference"],
            [entry for entry in entries if entry["kind"] != "reference"])


def epoch_of(expected):
    """The epoch of each record."""
    begins = {at: epoch for epoch, at in expected.epochs.items()}
    epochs, epoch = [], 0
    for i in range(len(expected.ticks)):
        epoch = begins.get(i, epoch)
        epochs.append(epoch)
    return epochs


def check_events(events, expected, what):
    gaps = {}
    for event in events:
        if event["kind"] == "gap":
            lost, exact = gaps.get((event["number"], event["cause"]), (0, True))
            gaps[event["number"], event["cause"]] = lost + event["lost"], exact and event["exact"]
    equal(sorted((at, cause, *rest) for (at, cause), rest in gaps.items()), expected.gaps, f"{what}: gaps")
    equal([event["number"] for event in events if event["kind"] == "trigger"], expected.triggers, f"{what}: triggers")
    equal({event["kind"] for event in events} - {"gap", "trigger", "mark", "epoch"}, set(), f"{what}: kinds")


def make_recording(tmp, source=""):
    """Records segments of several chunks with gaps, triggers and epochs. Returns their paths and contents. `source`: settings
    of the source."""
    rng = random.Random(11)
    features = reference.Features(samples=8000, frame=150, agents=2, p_loss=0.05, p_jump=0.02, p_epoch=0.03,
                                  p_trigger=0.05, p_pause=0.0001)
    data, _ = reference.make_bcp1(rng, features)
    stream = tmp / "bus.bcp1"
    stream.write_bytes(data)
    (tmp / "out").mkdir()
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{stream}{source}", "-o", tmp / "out", "-b",
               "filesize:20K")
    assert done.returncode in (0, 3, 4), done.stderr
    paths = harness.segments(tmp / "out")
    assert len(paths) >= 2, paths
    return paths, reference.read_segments(paths)


def test_a_recording_is_converted_with_all_chunk_data(tmp):
    paths, recorded = make_recording(tmp)
    references, events = split_events(entries_of("segment", *paths))
    epochs = epoch_of(recorded)
    assert len(recorded.epochs) > 1 and recorded.gaps and recorded.triggers
    equal(references, [record_entry(i, recorded.ticks[i], record, epoch=epochs[i])
                       for i, record in enumerate(records_of(recorded.records))], "records")
    check_events(events, recorded, "recording")
    # An epoch that starts with a segment is visible only in the column.
    begins = {chunk.info["first_record"] for segment in recorded.segments for chunk in segment.chunks[:1]}
    equal([event["number"] for event in events if event["kind"] == "epoch"],
          [at for at in recorded.epochs.values() if at not in begins], "epochs")


def time_of(ns):
    whole = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=ns // 10**9)
    return f"{whole.isoformat()}.{ns % 10**9:09}Z"


def test_a_tick_of_a_recording_has_a_time_of_day(tmp):
    paths, recorded = make_recording(tmp, ",clock_hz=66000000")
    entries = entries_of("segment", *paths)
    chunks = [chunk.info for segment in recorded.segments for chunk in segment.chunks if chunk.info["records"]]
    assert len(chunks) > 3 and len({chunk["epoch"] for chunk in chunks}) > 1
    times = [time_of(chunk["wall_ns"] + (tick - chunk["first_tick"]) * 10**9 // 66000000) for chunk in chunks
             for tick in recorded.ticks[chunk["first_record"] : chunk["first_record"] + chunk["records"]]]
    equal([entry["time"] for entry in entries if entry["kind"] == "reference"], times, "records")
    assert any(entry["kind"] == "gap" for entry in entries) and all("time" in entry for entry in entries)
    # Merged by time of day, ticks are ns since the first one.
    done = run(BUSCAP, "merge", "--by", "wall", "-O", "ndjson", paths[0], paths[1])
    merged = [json.loads(line) for line in done.stdout.splitlines()]
    equal([entry["time"] for entry in merged], [time_of(chunks[0]["wall_ns"] + entry["tick"]) for entry in merged], "merged")
    assert len(merged) > 1000 and merged[1]["time"] == times[merged[1]["number"]], merged[:2]
    # Other formats have none.
    table, _ = convert("byu", "csv", data=recorded.records)
    equal(table.split(b"\n")[0], b"number,tick,type,addr,size,attr,proc,delta", "columns")


# ---- dump --json


def dump_json(*argv, code=0):
    done = run(BUSCAP, "dump", "--json", *argv)
    equal(done.returncode, code, f"dump {argv}: {done.stderr}")
    return done.stdout


def test_dump_prints_the_objects_of_ndjson(tmp):
    paths, _ = make_recording(tmp, ",clock_hz=66000000")
    equal(dump_json(*paths), convert("segment", "ndjson", *paths)[0], "segments")
    stream = tmp / "bus.bcp1"
    byu = tmp / "a.byu"
    byu.write_bytes(convert("segment", "byu", paths[0])[0])
    for path, code in ((stream, 3), (byu, 0)):
        equal(dump_json(path, code=code), convert(path.suffix[1:], "ndjson", path, code=code)[0], path.name)
    for kind, data in (("din", b"0 1000\n1 ff\n"), ("tarmac", b"12 clk IT (12) 00008000 e3a00000 A svc_s : MOV r0,#0\n")):
        path = tmp / f"a.{kind}"
        path.write_bytes(data)
        equal(dump_json("-I", kind, path), convert(kind, "ndjson", path)[0], kind)
    equal(len(dump_json(tmp / "a.tarmac", "-I", "tarmac").splitlines()), 1)
    # A file has no time of day after one that has it.
    path = tmp / "first.byu.lz4"
    equal(run(BUSCAP, "cut", "--epoch", "0", paths[0], "-o", path).returncode, 0)
    equal(dump_json(path, byu), dump_json(path) + dump_json(byu), "both")
    equal(dump_json(tmp / "gone.byu", byu, code=1), dump_json(byu), "the first one can't be read")


def test_dump_json_selects_what_dump_does(tmp):
    paths, _ = make_recording(tmp, ",clock_hz=66000000")
    whole = [json.loads(line) for line in dump_json(*paths).splitlines()]
    numbers = {entry["number"]: entry for entry in whole if entry["kind"] == "reference"}
    times = sorted(entry["time"] for entry in numbers.values())
    for options in (("--records", "100-250"), ("--type", "write"), ("--addr", "0-7fffffff", "--proc", "1"),
                    ("--from", times[len(times) // 3], "--to", times[len(times) // 2]), ("--epoch", "1"), ("-n", "17"),
                    ("--records", "100-250", "-p"), ("-n", "3", "--type", "fetch", "-p")):
        text = run(BUSCAP, "dump", *options, *paths).stdout.decode().splitlines()
        got = [json.loads(line) for line in dump_json(*options, *paths).splitlines()]
        shown = [entry for entry in got if entry["kind"] == "reference"]
        assert shown, options
        for entry in shown:
            equal(entry, numbers[entry["number"]], f"{options}: the same object")
        # A line has the address, type, size and processor.
        equal([(hex(int(row[0], 16)), int(row[2]), int(row[4])) for row in (line.split("\t") for line in text if line[0] != "#")],
              [(entry["addr"], entry["size"], entry["proc"]) for entry in shown], f"{options}: records")
        events = [entry for entry in got if entry["kind"] not in ("reference", "epoch")]
        equal(len(events), sum(line[0] == "#" and not line.startswith("# epoch") for line in text), f"{options}: events")
        assert all(event in whole for event in events), options
    bcp1 = [json.loads(line) for line in dump_json(tmp / "bus.bcp1", code=3).splitlines()]
    equal([json.loads(line) for line in dump_json("-p", tmp / "bus.bcp1", code=3).splitlines()],
          [entry for entry in bcp1 if entry["kind"] == "reference"], "plain samples")


def test_dump_json_has_names(tmp):
    data = b"".join(struct.pack("<I4BI", *row) for row in ((0xB8000, 3, 2, 0, 0, 1), (0x3F8, 0x11, 1, 0, 0, 1), (0x5000000, 1, 4, 0, 0, 1)))
    for path, data in ((tmp / "a.byu", data), (tmp / "a.raw6", struct.pack(">IBB", 0xB8000, 0xFC, 0xF0))):
        path.write_bytes(data)
        kind = path.suffix[1:]
        plain = [json.loads(line) for line in dump_json("-I", kind, path).splitlines()]
        named = [json.loads(line) for line in dump_json("-I", kind, "--map", "pc", path).splitlines()]
        names = ["VGA colour text", "COM1", None][: len(plain)]
        equal([{**entry, "name": entry["name"] and entry["name"].partition(" data")[0]} for entry in named],
              [{**entry, "name": name} for entry, name in zip(plain, names)], kind)
    paths, _ = make_recording(tmp)
    for line in dump_json("--map", "pc", *paths).splitlines():
        entry = json.loads(line)
        equal("name" in entry, entry["kind"] == "reference", line)
    for option in (("-t", "tick"), ("--b2a",)):
        done = run(BUSCAP, "dump", "-j", *option, tmp / "a.byu")
        equal(done.returncode, 2)
        harness.one_line(done.stderr.decode(), "--json excludes")


# ---- vcd


NAMES = ("seq", "addr", "type", "name", "size", "attr")
SHARED = "others"


def read_vcd(text):
    """Returns the timescale, {time: {scope.variable: value}} at each time with a change, the latest time."""
    head, found, body = text.partition("$enddefinitions $end\n")
    assert found, text[:400]
    names, scope = {}, None
    words = head.split()
    for at, word in enumerate(words):
        if word == "$scope":
            scope = words[at + 2]
        elif word == "$var":
            names[words[at + 3]] = f"{scope}.{words[at + 4].partition('[')[0]}"
    scale = "".join(words[words.index("$timescale") + 1 : words.index("$end", words.index("$timescale"))])
    now, shown, states = None, dict.fromkeys(names.values()), {}
    for line in body.splitlines():
        if line[0] == "#" and line[1:].isdigit():
            assert now is None or int(line[1:]) > now, f"time goes from {now} to {line}"
            now = int(line[1:])
        elif line[0] == "b":
            bits, name = line[1:].split(" ")
            shown[names[name]] = None if set(bits) == {"x"} else int(bits, 2)
        elif line[0] == "s":
            value, name = line[1:].split(" ")
            shown[names[name]] = value or None
        elif line[0] in "01x" and line[1:] in names:
            shown[names[line[1:]]] = None if line[0] == "x" else int(line[0])
        else:
            assert line in ("$dumpvars", "$end") or line.startswith("$comment "), line
        if line[0] in "bs01x":
            states[now] = dict(shown)
    return scale, states, now


def check_vcd(text, wanted, scale, tmp):
    """Checks the references in our dump, and that GTKWave's reader finds the same in it. Returns the latest state."""
    got_scale, states, last = read_vcd(text)
    equal(got_scale, scale, "timescale")
    assert min(states) == 0, "time from 0"
    for time, state in wanted.items():
        got = {name: value for name, value in states[time].items() if not name.startswith("events.")}
        equal({name: value for name, value in got.items() if value is not None}, state, f"at {time}")
    assert last > max(wanted), "a time after the last reference"
    # At other times, events; only a gap changes the references, to unknown.
    for time in sorted(set(states) - set(wanted)):
        before = states[max(other for other in states if other < time)]
        for name, value in states[time].items():
            assert name.startswith("events.") or value in (None, before[name]), (time, name, value)
    need("vcd2fst")
    (tmp / "a.vcd").write_text(text)
    done = run("vcd2fst", tmp / "a.vcd", tmp / "a.fst")
    equal(done.returncode, 0, f"vcd2fst: {done.stdout}{done.stderr}")
    done = run("fst2vcd", tmp / "a.fst")
    equal(done.returncode, 0, f"fst2vcd: {done.stderr}")
    there_scale, there, _ = read_vcd(done.stdout.decode())
    equal(there_scale, scale, "timescale of vcd2fst")
    # It may omit times without an effective change.
    for time, state in there.items():
        equal(state, states[time], f"vcd2fst at {time}")
    before = None
    for time in sorted(states):
        assert time in there or states[time] == before, f"vcd2fst lacks {time}"
        before = states[time]
    return states[max(states)]


def state_of(seq, record):
    """What the scope of its processor shows."""
    addr, reqtype, size, attr, proc, _ = struct.unpack("<I4BI", record)
    scope = f"processor{proc}" if proc < 4 else SHARED
    values = dict(zip(NAMES, (seq, addr, reqtype, type_name(reqtype), size, attr)))
    if scope == SHARED:
        values["proc"] = proc
    return {f"{scope}.{name}": value for name, value in values.items()}


def test_sigrok_reads_signals_of_one_bit(tmp):
    dice = random.Random(6)
    records = [(dice.randrange(1 << 32), dice.choice((0, 1, 3, 0x10, 0x36)), dice.choice((1, 8, 32, 255)), dice.randrange(4),
                dice.randrange(256), dice.randrange(1, 9)) for _ in range(500)]
    data = b"".join(struct.pack("<IBBBBI", *record) for record in records)
    text, err = convert("byu", "vcd:signals=bits", data=data)
    equal(err, "", "nothing is lost")
    for big, words in ((b"r 100000000 4\n", b"addr 0x100000000 doesn't fit the 32 signals"),
                       (b"r 0 100\n", b"size 0x100 doesn't fit the 8 signals")):
        done = run(need(BUSCAP), "convert", "-I", "xdin", "-O", "vcd:signals=bits", data=big)
        assert done.returncode == 1 and words in done.stderr, done.stderr
    (tmp / "a.vcd").write_bytes(text)
    need("sigrok-cli")
    done = run("sigrok-cli", "-i", tmp / "a.vcd", "-I", "vcd", "-O", "csv")
    lines = [line for line in done.stdout.decode().splitlines() if line[:1] in "01;"]
    (channels,) = (line.split(": ")[1].split(", ") for line in lines if line.startswith("; Channels"))
    widths = {"addr": 32, "type": 9, "size": 8, "attr": 8, "proc": 8}
    equal(channels, ["seq"] + [f"{name}{bit}" for name, width in widths.items() for bit in range(width)], "channels")
    rows = [line.split(",") for line in lines if line[0] != ";"]
    wanted = []
    for i, (addr, kind, size, attr, proc, _) in enumerate(records):
        last = i + 1 == len(records)
        row = [str(i & 1)] + [str(value >> bit & 1) for value, width in zip((addr, kind, size, attr, proc), widths.values())
                              for bit in range(width)]
        wanted += [row] * (1 if last else records[i + 1][5])
    equal(rows, wanted, "samples")


def test_a_dump_continues_across_epochs_and_gaps(tmp):
    paths, recorded = make_recording(tmp)
    text, err = convert("segment", "vcd:clock_hz=100000000", *paths)
    step = 10**4
    gaps = {}
    for at, _, lost, _ in recorded.gaps:
        gaps[at] = gaps.get(at, 0) + 1
    triggers = {at: recorded.triggers.count(at) for at in recorded.triggers}
    wanted, state, ahead, now, epoch = {}, {}, None, 0, 0
    for i, (record, tick, at) in enumerate(zip(records_of(recorded.records), recorded.ticks, epoch_of(recorded))):
        time = tick * step
        if ahead is None:
            ahead = -time
        if gaps.get(i):
            state = {}
        if at != epoch:
            # One tick for each event between the epochs, and one for the reference.
            ahead = now + (1 + gaps.get(i, 0) + triggers.get(i, 0)) * step - time
        epoch = at
        now = time + ahead
        state = {**state, **state_of(i, record)}
        wanted[now] = state
    last = check_vcd(text.decode(), wanted, "1ps", tmp)
    equal(last["events.lost"], sum(lost for _, _, lost, _ in recorded.gaps), "lost")
    assert f"vcd can't hold every time: lost in {len(recorded.epochs) - 1} entr" in err, err
    assert "has no" not in err, err


PROTO = """syntax = "proto2";
message Trace { repeated TracePacket packet = 1; }
message TracePacket {
  optional uint64 timestamp = 8; optional uint32 trusted_packet_sequence_id = 10;
  optional TrackEvent track_event = 11; optional TrackDescriptor track_descriptor = 60;
}
message TrackDescriptor {
  optional uint64 uuid = 1; optional string name = 2; optional ProcessDescriptor process = 3;
  optional uint64 parent_uuid = 5; optional CounterDescriptor counter = 8;
}
message ProcessDescriptor { optional int32 pid = 1; optional string process_name = 6; }
message CounterDescriptor { optional int32 unit = 3; }
message TrackEvent {
  enum Type { TYPE_SLICE_BEGIN = 1; TYPE_SLICE_END = 2; TYPE_INSTANT = 3; TYPE_COUNTER = 4; }
  repeated DebugAnnotation debug_annotations = 4; optional Type type = 9; optional uint64 track_uuid = 11;
  optional string name = 23; optional int64 counter_value = 30;
}
message DebugAnnotation { optional uint64 uint_value = 3; optional string name = 10; }
"""


def read_perfetto(tmp, data):
    """The packets as protoc decodes them, {path: [value]}. A field that the messages lack would have a number."""
    (tmp / "trace.proto").write_text(PROTO)
    done = run(need("protoc"), f"--proto_path={tmp}", "--decode=Trace", "trace.proto", data=data)
    equal((done.returncode, done.stderr), (0, b""), "protoc")
    packets, path = [], []
    for line in done.stdout.decode().splitlines():
        word, _, value = line.strip().partition(" ")
        if line == "packet {":
            packets.append({})
        elif value == "{":
            path.append(word)
        elif word == "}":
            path = path[:-1]
        else:
            packets[-1].setdefault("/".join([*path, word.rstrip(":")]), []).append(value.strip('"'))
    return packets


def test_perfetto_has_the_references_of_each_interval_and_all_events(tmp):
    paths, recorded = make_recording(tmp)
    text, err = convert("segment", "perfetto:clock_hz=100000000,interval=20us", *paths)
    packets = read_perfetto(tmp, text)
    equal({*sum((packet["trusted_packet_sequence_id"] for packet in packets), [])}, {"1"}, "sequence")
    tracks = {packet["track_descriptor/uuid"][0]: packet["track_descriptor/name"][0] for packet in packets
              if "track_descriptor/name" in packet}
    equal(sorted(tracks.values()), ["fetch", "gaps", "marks", "other", "read", "triggers", "write"], "tracks")
    series, instants = {}, {}
    for packet in packets:
        if "track_event/type" not in packet:
            continue
        track, time = tracks[packet["track_event/track_uuid"][0]], int(packet["timestamp"][0])
        if packet["track_event/type"] == ["TYPE_COUNTER"]:
            values = series.setdefault(track, [])
            assert time % 20000 == 0 and (not values or time > values[-1][0]), (track, time)
            values.append((time, int(packet["track_event/counter_value"][0])))
        else:
            names = packet["track_event/debug_annotations/name"]
            numbers = map(int, packet["track_event/debug_annotations/uint_value"])
            instants.setdefault(track, []).append((packet["track_event/name"][0], dict(zip(names, numbers))))
    kinds = {"fetch": (0,), "read": (1, 2, 0x10), "write": (3, 0x11)}
    types = [record[4] for record in records_of(recorded.records)]
    for track, values in series.items():
        equal(values[-1][1], 0, f"{track}: the latest value")
        total = sum(value * (after - time) // 20000 for (time, value), (after, _) in zip(values, values[1:]))
        if track in kinds:
            equal(total, sum(kind in kinds[track] for kind in types), track)
        else:
            equal(total, sum(kind not in sum(kinds.values(), ()) for kind in types), track)
    assert len(series["read"]) > 10, series
    equal(instants["marks"][0], ("start", {"tick": recorded.ticks[0]}), "start")
    equal([(name, event["record"]) for name, event in instants["triggers"]], [("board", at) for at in recorded.triggers], "triggers")
    equal(sorted({(event["record"], name) for name, event in instants["gaps"]}), [gap[:2] for gap in recorded.gaps], "gaps")
    equal(sum(event.get("lost", event.get("lost at least")) for _, event in instants["gaps"]),
          sum(lost for _, _, lost, _ in recorded.gaps), "gaps")
    assert "has no" in err and "gap" not in err, err


def test_perfetto_says_that_the_clock_rate_is_unknown(tmp):
    data = struct.pack("<I4BI", 0x1000, 1, 8, 0, 0, 5) + struct.pack("<I4BI", 0x1000, 3, 8, 0, 0, 2500000)
    packets = read_perfetto(tmp, convert("byu", "perfetto", data=data)[0])
    equal(packets[0]["track_descriptor/process/process_name"], ["bus (unknown clock rate: 1 tick = 1 ns)"])
    counters = [(packet["timestamp"][0], packet["track_event/track_uuid"][0], packet["track_event/counter_value"][0])
                for packet in packets if packet.get("track_event/type") == ["TYPE_COUNTER"]]
    equal(counters, [("0", "6", "1"), ("1000000", "6", "0"), ("2000000", "7", "1"), ("3000000", "7", "0")])


@pytest.mark.threads
def test_other_cores_change_nothing(tmp):
    """Threads print, check, select and search chunks ahead. With one core there are none. Nor if the header of a chunk is damaged,
    which the threads don't read, or its records."""
    done = run(need(BUSCAPD), "--once", "--source", "sim:rate=max,count=440K,agents=3,loss=0.1,seed=4", "-o", tmp)
    equal(done.returncode, 4, done.stderr)  # samples were lost
    path, = harness.segments(tmp)
    whole = path.read_bytes()
    core = {min(os.sched_getaffinity(0))}
    csv, text, verify = ("convert", "-O", "csv"), ("convert", "-O", "ndjson"), ("verify",)
    some = ("find", "-U", "1", "--type", "write", "--records", "200000-203000", "0-ffffffff")
    count = ("find", "--count", "--type", "read", "0-ffffffff")
    dump, cut = ("dump", "--b2a", "--limit", "300000"), ("cut", "--type", "write", "--addr", "0-7fffffff", "-O", "byu")
    third = whole.split(CHUNK_MAGIC)[:3]
    header = sum(map(len, third)) + 3 * len(CHUNK_MAGIC)
    for at, commands in ((None, (csv, text, dump, cut, verify, some, count)), (header + 40, (dump, cut, verify, some, count)),
                         (header + 40000, (dump, cut, verify, some, count))):
        if at is not None:
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        for command in commands:
            one = run(BUSCAP, *command, path, preexec_fn=lambda: os.sched_setaffinity(0, core))
            every = run(BUSCAP, *command, path)
            equal((every.returncode, every.stderr), (one.returncode, one.stderr), command)
            equal(one.returncode, 0 if at is None else 3, command)
            assert every.stdout == one.stdout, command
