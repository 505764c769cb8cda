"""The Python package against the programs: every record, tick, time, event and page count of recordings with gaps,
marks and epochs, sealed, torn and open, in both compressions; bytes of a small one damaged; the document's examples."""

import collections
import datetime
import importlib
import json
import os
import pathlib
import pickle
import random
import re
import shutil
import sys

import pytest

import harness
import page_reference
import reference
from harness import BUSCAP, BUSCAPD, ROOT, equal, need, run


@pytest.fixture
def buscap(monkeypatch):
    for module in ("numpy", "lz4.frame", "xxhash", "zstandard"):
        harness.need_module(module)
    monkeypatch.syspath_prepend(ROOT / "python")
    return importlib.import_module("buscap")


def output(*argv, data=None):
    done = run(BUSCAP, *argv, data=data)
    assert done.returncode in (0, 1, 3, 4), done.stderr.decode()
    return done.stdout


def lines(*argv):
    return [json.loads(line) for line in output(*argv).splitlines()]


def record(out, seed, *options, samples=12_000):
    features = reference.Features(samples=samples, frame=300, agents=3, p_loss=0.05, p_epoch=0.08, p_trigger=0.05,
                                  p_pause=0.0005)
    (out / "stream").write_bytes(reference.make_bcp1(random.Random(seed), features)[0])
    done = run(need(BUSCAPD), "--once", "--no-socket", "--source",
               f"file:{out}/stream,format=bcp1,clock_hz=66000000", "-o", out, *options)
    assert done.returncode in (0, 3, 4), done.stderr.decode()
    (out / "stream").unlink()


def with_marks(path, out):
    """Copies a recording, with a mark before some records and after the last one."""
    rows = output("convert", "-O", "ndjson", path).splitlines()
    mark = b'{"kind":"mark","text":"here: %d"}'
    rows = [row for i, line in enumerate(rows) for row in ([mark % i] if i % 1000 == 0 else []) + [line]]
    data = b"\n".join([*rows, mark % len(rows), b""])
    output("convert", "-I", "ndjson", "-O", "segment", "-o", out, data=data)


def without_deltas(out):
    data, _ = reference.make_byu(random.Random(3), 2000, no_delta=0.02, strange=0.05)
    output("convert", "-I", "byu", "-O", "segment", "-o", out, data=data)


def make_corpus(directory):
    for name, options in (("lz4", ("-b", "filesize:20K")), ("zst", ("--set", "output.compression=zstd"))):
        (directory / name).mkdir()
        record(directory / name, len(options), *options)
    one = max(harness.segments(directory / "lz4"), key=lambda path: path.stat().st_size)
    with_marks(one, directory / "marks.byu.lz4")
    without_deltas(directory / "inexact.byu.lz4")
    chunks = reference.read_segment(one).chunks
    for name, length in (("open", chunks[-1].offset), ("torn", chunks[-1].offset + 300), ("header", 100)):
        (directory / name).mkdir()
        (directory / name / f"{one.name}.partial").write_bytes(one.read_bytes()[:length])


CASES = ("lz4", "zst", "marks.byu.lz4", "inexact.byu.lz4", "open", "torn")


@pytest.fixture
def corpus():
    return harness.shared("python", make_corpus)


def utc(ns):
    seconds, rest = divmod(int(ns), 10**9)
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{rest:09}Z"


TYPES = {0: "FETCH", 1: "MEMREAD", 2: "MEMREADINV", 3: "MEMWRITE", 0x10: "IOREAD", 0x11: "IOWRITE", 0x20: "DEFERREPLY",
         0x21: "INTA", 0x22: "CNTRLAGNTRES", 0x23: "BRTRACEREC", 0x31: "SHUTDOWN", 0x32: "FLUSH", 0x33: "HALT",
         0x34: "SYNC", 0x35: "FLUSHACK", 0x36: "STOPCLKACK", 0x37: "SMIACK"}


def has_times_of_day(chunk):
    return chunk.clock_hz != 0 and "axis" not in chunk.segment.header["source"]


def entries(chunks):
    """Yields what a chunk has, in the words of convert."""
    for chunk in chunks:
        events = collections.deque(event for event in chunk.events if event.kind not in ("anchor", "end"))
        has_time = has_times_of_day(chunk)
        rows = list(zip(chunk.records.tolist(), chunk.ticks.tolist(), chunk.times.tolist()))
        for i, row in enumerate([*rows, None]):
            while events and events[0].position == i:
                event = events.popleft()
                entry = {"kind": event.kind, "number": chunk.first_record + i, "tick": chunk.tick_at(i)}
                if has_time:
                    entry["time"] = utc(chunk.time_at(i))
                yield entry | ({"cause": event.cause, "lost": event.value, "exact": event.exact}
                               if event.kind == "gap" else {"text": event.text} if event.text else {})
            if row is not None:
                (addr, type_, size, attr, proc, delta), tick, time = row
                entry = {"kind": "reference", "number": chunk.first_record + i, "tick": tick, "type": type_,
                         "addr": addr, "size": size, "attr": attr, "proc": proc}
                if has_time:
                    entry["time"] = utc(time)
                yield entry | ({"delta": delta} if delta != 0xFFFFFFFF else {})


def comparable(line):
    """The same of a line of convert."""
    keys = "kind number tick time type addr size attr proc delta cause lost exact text".split()
    line = {key: line[key] for key in keys if key in line}
    if line["kind"] == "reference":
        names = {name: number for number, name in TYPES.items()}
        line["type"] = names[line["type"]] if line["type"] in names else int(line["type"], 16)
        line["addr"] = int(line["addr"], 16)
    return line


@pytest.mark.parametrize("case", CASES)
def test_every_record_tick_time_and_event_is_what_convert_prints(buscap, corpus, case):
    got = [entry for segment in buscap.segments(corpus / case) for entry in entries(segment.chunks)]
    wanted = [comparable(line) for line in lines("convert", "-O", "ndjson", corpus / case) if line["kind"] != "epoch"]
    if case in ("open", "torn"):  # the end of a killed recording, which is in no file
        equal(wanted.pop()["kind"], "gap", "the last line")
    assert len(got) > 1000, len(got)
    equal(got, wanted, case)


@pytest.mark.parametrize("case", CASES)
def test_marks_and_gaps_are_what_marks_prints(buscap, corpus, case):
    got = [(event.kind, chunk.first_record + event.position, chunk.tick_at(event.position),
            utc(chunk.time_at(event.position)) if has_times_of_day(chunk) else None,
            *((event.value, event.duration_ns) if event.kind == "gap" else (None, None)))
           for segment in buscap.segments(corpus / case) for chunk in segment.chunks for event in chunk.events
           if event.kind in ("gap", "mark", "trigger")]
    wanted = [tuple(line[key] for key in ("kind", "number", "tick", "time", "lost", "duration_ns"))
              for line in lines("marks", "--json", corpus / case) if line["kind"] != "missing"]
    equal([one for one in got if one in wanted], got, "all are printed")
    assert len(wanted) - len(got) <= (case in ("open", "torn")), (got, wanted)


@pytest.mark.parametrize("case", CASES)
def test_page_counts_are_those_of_the_records_and_of_find(buscap, corpus, case):
    counted = collections.Counter()
    for segment in buscap.segments(corpus / case):
        records = b"".join(chunk.records.tobytes() for chunk in segment.chunks)
        wanted = page_reference.count(records)[1]
        for place, places, *four in segment.page_counts().tolist():
            inside = [wanted.pop(one) for one in list(wanted) if place <= one < place + places]
            equal(four, [sum(column) for column in zip(*inside)], f"{segment.path}: place {place}")
            counted[place, places] += sum(four)
        equal(wanted, {}, "places without counts")
    (page, pages), _ = max(((key, n) for key, n in counted.items() if key[0] < buscap.PORTS), key=lambda item: item[1])
    at = f"{page << 12:x}-{((page + pages) << 12) - 1:x}"
    found = lines("find", "--json", "--type", "fetch,read,write", at, corpus / case)
    assert found, at


def test_at_finds_records_ticks_and_times(buscap, corpus):
    for segment in buscap.segments(corpus / "lz4", corpus / "zst"):
        for chunk in segment.chunks:
            for i in range(0, len(chunk), 97):
                found, position = segment.at(record=chunk.first_record + i)
                equal((found.number, position), (chunk.number, i), "record")
                found, position = segment.at(tick=chunk.ticks[i], epoch=chunk.epoch)
                equal((found.epoch, found.ticks[position]), (chunk.epoch, chunk.ticks[i]), "tick")
                found, position = segment.at(time=chunk.times[i])
                assert found.times[position] >= chunk.times[i], (found, position)
                assert position == 0 or found.times[position - 1] < chunk.times[i], (found, position)
        with pytest.raises(LookupError):
            segment.at(record=10**9)


def test_the_order_is_that_of_buscap(buscap, corpus, tmp):
    paths = harness.segments(corpus / "lz4")
    (tmp / "below").mkdir()
    for path in paths[::2]:
        shutil.copy(path, tmp / "below")
    for path in paths[1::2]:
        shutil.copy(path, tmp)
    shutil.copy(paths[0], tmp)  # a copy of one below
    shutil.copy(paths[1], tmp / f"{paths[1].name}.partial")
    shutil.copy(paths[1], tmp / f"{paths[2].name}.damaged")
    found = buscap.segments(tmp)
    equal([pathlib.Path(segment.path).name for segment in found], [path.name for path in paths], "the names")
    equal(found[0].path, str(tmp / paths[0].name), "the copy in the directory itself")
    renamed = tmp / "x"
    shutil.copy(paths[0], renamed)
    equal([segment.path for segment in buscap.segments(paths[2], renamed, paths[1])],
          [str(renamed), str(paths[1]), str(paths[2])], "files are ordered by their headers")


def with_package():
    return {**os.environ, "PYTHONPATH": str(ROOT / "python")}


def test_segments_and_chunks_are_pickled_as_a_path_and_a_number(buscap, corpus):
    chunks = [chunk for segment in buscap.segments(corpus / "lz4") for chunk in segment.chunks]
    for thing in (chunks[0], chunks[0].segment):
        _ = chunks[0].records
        assert len(pickle.dumps(thing)) < 300, thing
    program = "import pickle, sys; print([int(c.records['addr'].sum(dtype='u8')) for c in pickle.load(sys.stdin.buffer)])"
    done = run(sys.executable, "-c", program, data=pickle.dumps(chunks), env=with_package())
    equal(json.loads(done.stdout), [int(chunk.records["addr"].sum(dtype="u8")) for chunk in chunks], "in another process")
    damaged = pickle.loads(pickle.dumps(buscap.Damaged("f", 7, "what")))
    equal(str(damaged), "f: offset 7: what", "Damaged")


def contents(buscap, path):
    (segment,) = buscap.segments(path)
    return [(chunk.records.tobytes(), chunk.events) for chunk in segment.chunks]


def small_segment(tmp, compression):
    features = reference.Features(samples=30, frame=10, p_loss=0.2, p_trigger=0.2, p_epoch=0.2)
    (tmp / "s").write_bytes(reference.make_bcp1(random.Random(5), features)[0])
    run(need(BUSCAPD), "--once", "--no-socket", "--source", f"file:{tmp}/s,format=bcp1", "-o", tmp, "--set",
        f"output.compression={compression}")
    (path,) = harness.segments(tmp)
    return path


@pytest.mark.parametrize("is_open", (False, True))
@pytest.mark.parametrize("compression", ("default", "zstd"))
def test_a_damaged_byte_is_reported_or_changes_nothing(buscap, tmp, compression, is_open):
    path = small_segment(tmp, compression)
    data = bytearray(path.read_bytes())
    whole = contents(buscap, path)
    assert len(whole) > 1, whole
    name = f"{path.name}.partial" if is_open else path.name
    end = len(data) if not is_open else reference.read_segment(path).chunks[-1].offset + 100
    copy = tmp / "damaged" / name
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(data[:end])
    wanted = whole[: len(contents(buscap, copy))]
    missing = []
    with open(copy, "r+b", buffering=0) as file:
        for at in range(end):
            file.seek(at)
            file.write(bytes([data[at] ^ 1 << at % 8]))
            try:
                got = contents(buscap, copy)
                if got != wanted:
                    missing.append(at)
                    equal(got, wanted[: len(got)], f"{name}: byte {at}")
            except buscap.Damaged as damaged:
                equal(damaged.file, str(copy), "file")
                assert damaged.offset <= at, (at, str(damaged))
            file.seek(at)
            file.write(data[at : at + 1])
    for at in missing[::20]:  # dump has no more either: nothing whole follows
        copy.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 : end])
        records = sum(len(records) // 12 for records, _ in contents(buscap, copy))
        shown = [line for line in output("dump", copy).splitlines() if not line.startswith(b"#")]
        equal(len(shown), records, f"{name}: byte {at}")


def test_damage_is_named_as_verify_names_it(buscap, corpus, tmp):
    path = max(harness.segments(corpus / "lz4"), key=lambda path: path.stat().st_size)
    data = path.read_bytes()
    chunk = reference.read_segment(path).chunks[1]
    for at in (30, chunk.offset, chunk.offset + 9, chunk.offset + chunk.header_bytes + 40, len(data) - 3,
               len(data) - 200):
        copy = tmp / path.name
        copy.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        with pytest.raises(buscap.Damaged) as caught:
            contents(buscap, copy)
        verified = run(BUSCAP, "verify", "--json", copy).stdout.splitlines()
        damages = [json.loads(line)["damage"] for line in verified if b'"damage"' in line]
        assert (caught.value.offset, caught.value.what) in [(one["offset"], one["what"]) for one in damages], (
            at, str(caught.value), damages)
        (segment,) = buscap.segments(copy)
        assert len(segment.whole_chunks) >= len(reference.read_segment(path).chunks) - 1, at


def test_a_torn_end_is_damage_only_of_a_sealed_name(buscap, corpus, tmp):
    (torn,) = buscap.segments(corpus / "torn")
    assert len(torn.chunks) > 0 and not torn.is_sealed and not torn.damage
    copy = tmp / pathlib.Path(torn.path).name.removesuffix(".partial")
    shutil.copy(torn.path, copy)
    with pytest.raises(buscap.Damaged):
        contents(buscap, copy)
    equal(len(buscap.Segment(copy).whole_chunks), len(torn.chunks), "its whole chunks")
    # A segment that is sealed while it is read.
    equal(buscap.Segment(f"{copy}.partial").header["segment"], torn.header["segment"], "header")


def test_without_zstandard_the_error_names_the_package(buscap, corpus, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (segment,) = buscap.segments(corpus / "zst")
    assert segment.chunks[0].events
    with pytest.raises(ImportError, match="python3-zstandard"):
        _ = segment.chunks[0].records


EXAMPLES = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/python.md").read_text(), re.M | re.S)


@pytest.mark.parametrize("number", [pytest.param(i, marks=pytest.mark.nightly if "pandas" in text else ())  # to import it: 2 s
                                    for i, text in enumerate(EXAMPLES)])
def test_the_examples_of_the_document_run(buscap, corpus, number, tmp):
    example = EXAMPLES[number]
    if "pandas" in example:
        harness.need_module("pandas")
    script = tmp / "example.py"
    script.write_text(example.replace("/var/lib/buscapd", str(corpus / "lz4")))
    done = run(sys.executable, script, env=with_package())
    equal((done.returncode, done.stderr), (0, b""), example)
    assert done.stdout, example


def test_the_package_is_small():
    files = [path for path in (ROOT / "python/buscap").glob("*.py") if path.name != "ship.py"]
    assert len(re.findall(r"^.*\S", "".join(path.read_text() for path in files), re.M)) <= 375
