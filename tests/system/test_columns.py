"""csv, ndjson and vcd: parsed with Python's and GTKWave's readers, and compared with the source as decoded by
tests/support/reference.py."""

import codecs
import csv
import io
import json
import random
import struct

import pytest

import harness
import reference
from harness import BUSCAP, BUSCAPD, equal, need, run

NO_DELTA = 0xFFFFFFFF
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


@pytest.mark.asan
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


def make_recording(tmp):
    """Records segments of several chunks with gaps, triggers and epochs. Returns their paths and contents."""
    rng = random.Random(11)
    features = reference.Features(samples=8000, frame=150, agents=2, p_loss=0.05, p_jump=0.02, p_epoch=0.03,
                                  p_trigger=0.05, p_pause=0.0001)
    data, _ = reference.make_bcp1(rng, features)
    stream = tmp / "bus.bcp1"
    stream.write_bytes(data)
    (tmp / "out").mkdir()
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{stream}", "-o", tmp / "out", "-b", "filesize:20")
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


# ---- vcd


IDS = {"!": "seq", '"': "addr", "#": "type", "$": "name", "%": "size", "&": "attr", "'": "proc"}


def read_vcd(text):
    """Returns the timescale, and the value of each variable at each time with a change."""
    head, found, body = text.partition("$enddefinitions $end\n")
    assert found, text[:400]
    names = {}
    words = head.split()
    for at, word in enumerate(words):
        if word == "$var":
            names[words[at + 3]] = words[at + 4]
    equal(names, IDS, "variables")
    scale = "".join(words[words.index("$timescale") + 1 : words.index("$end", words.index("$timescale"))])
    now, shown, states = None, dict.fromkeys(IDS.values()), {}
    for line in body.splitlines():
        if line[0] == "#" and line[1:].isdigit():
            assert now is None or int(line[1:]) > now, f"time goes from {now} to {line}"
            now = int(line[1:])
        elif line[0] == "b":
            bits, name = line[1:].split(" ")
            shown[IDS[name]] = None if set(bits) == {"x"} else int(bits, 2)
        elif line[0] == "s":
            value, name = line[1:].split(" ")
            shown[IDS[name]] = value or None
        else:
            assert line in ("$dumpvars", "$end"), line
        if line[0] in "bs":
            states[now] = dict(shown)
    return scale, states, now


def check_vcd(text, wanted, scale, tmp):
    """Checks the states in our dump, and after conversion with vcd2fst and fst2vcd."""
    got_scale, states, last = read_vcd(text)
    equal(got_scale, scale, "timescale")
    equal(sorted(states), sorted(wanted), "times")
    for time, state in wanted.items():
        equal(states[time], state, f"at {time}")
    assert last > max(wanted), "a time after the last reference"
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


def state_of(seq, record):
    addr, reqtype, size, attr, proc, _ = struct.unpack("<I4BI", record)
    return {"seq": seq, "addr": addr, "type": reqtype, "name": type_name(reqtype), "size": size, "attr": attr,
            "proc": proc}


@pytest.mark.asan
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


def test_a_dump_continues_across_epochs(tmp):
    paths, recorded = make_recording(tmp)
    text, err = convert("segment", "vcd:clock_hz=100000000", *paths)
    wanted, ahead, now, epoch = {}, 0, None, 0
    for i, (record, tick, at) in enumerate(zip(records_of(recorded.records), recorded.ticks, epoch_of(recorded))):
        time = tick * 10**4
        if now is not None and at != epoch:
            ahead = now + 10**4 - time
        epoch = at
        now = time + ahead
        wanted[now] = state_of(i, record)
    check_vcd(text.decode(), wanted, "1ps", tmp)
    assert f"vcd can't hold every time: lost in {len(recorded.epochs) - 1} entr" in err, err
    assert "vcd has no gap, mark or epoch: " in err, err
