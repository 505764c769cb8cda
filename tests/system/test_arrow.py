"""Arrow IPC streams: read by tests/support/arrow_stream.py, and by other programs if they are there, and compared with csv."""

import csv
import datetime
import io
import json
import shutil
import struct
import subprocess

import pytest

import arrow_stream
import test_matrix
from harness import BUSCAP, equal, need, popen, run
from test_columns import make_recording

TYPES = {"number": "uint64", "tick": "uint64", "epoch": "uint32", "time": ("ns", "UTC"), "type": "utf8", "addr": "uint64",
         "size": "uint32", "attr": "uint8", "proc": "uint16", "delta": "uint64"}


def arrow_of(command, form, *paths, data=None, codes=(0,)):
    done = run(need(BUSCAP), command, *(("-I", form) if form else ()), "-O", "arrow:invalid=keep", "--", *paths, data=data)
    assert done.returncode in codes, (form, done.stderr)
    return done.stdout


def ns_of(text):
    seconds, fraction = text[:-1].split(".")
    whole = datetime.datetime.fromisoformat(seconds + "+00:00") - datetime.datetime.fromtimestamp(0, datetime.timezone.utc)
    return (whole.days * 86400 + whole.seconds) * 10**9 + int(fraction)


def value_of(name, text):
    if text == "":
        return None
    return text if name == "type" else ns_of(text) if name == "time" else int(text, 0)


def of_csv(command, form, *paths, data=None):
    """The same as arrow_stream.read() returns, from csv; and the rows of instructions and micro-ops."""
    text = run(BUSCAP, command, *(("-I", form) if form else ()), "-O", "csv", "--", *paths, data=data).stdout.decode("latin-1")
    table = list(csv.DictReader(io.StringIO(text, newline="")))
    names = [name for name in TYPES if name in text.split("\n")[0].split(",")]
    rows = [row for row in table if row.get("kind", "reference") == "reference" and row.get("type", "OTHER") != "OTHER"]
    return {name: [value_of(name, row[name]) for row in rows] for name in names}, table


def same(stream, wanted, what):
    types, columns, rows = arrow_stream.read(stream)
    equal(types, {name: TYPES[name] for name in wanted}, f"{what}: columns")
    for name, values in wanted.items():
        equal(columns[name], values, f"{what}: {name}")
    count = len(wanted["number"])
    equal(rows, [2048] * (count // 2048) + [count % 2048] * (count % 2048 != 0), f"{what}: batches")


def accesses(row):
    """The type and address of each reference that an entry is or becomes."""
    kind = row.get("kind") or ("uop" if "pc" in row else "instruction" if "effect" in row else "reference")
    if kind == "instruction":
        yield "FETCH", int(row["addr"], 16)
    if kind == "uop" and row["step"] == "1":
        yield "FETCH", int(row["pc"], 16)
    if kind == "uop" and row["access"] in "LS":
        yield "MEMREAD" if row["access"] == "L" else "MEMWRITE", int(row["mem_addr"], 16)
    if kind == "reference" and row["type"] != "OTHER":
        yield row["type"], int(row["addr"], 16)


def test_a_stream_has_the_references_of_csv_from_each_format(tmp):
    _, cells, *_ = test_matrix.matrix()
    forms = [form for form in test_matrix.FORMS if cells[form, "arrow"] != "-"]
    assert set(test_matrix.FORMS) - set(forms) == {"laplace-events"}
    for form in forms:
        path = test_matrix.source(tmp, form)
        form = test_matrix.LINES if form == "lines" else form
        stream = arrow_of("convert", form, path)
        wanted, table = of_csv("convert", form, path)
        if {"pc", "effect"} & set(table[0]):
            types, columns, _ = arrow_stream.read(stream)
            equal(types, {name: TYPES[name] for name in types}, form)
            equal(list(zip(columns["type"], columns["addr"])), [access for row in table for access in accesses(row)], form)
            assert any(columns["size"]) and None not in columns["number"]
        else:
            same(stream, wanted, form)
            assert wanted["number"], form


def test_an_instruction_becomes_a_fetch_of_its_size(tmp):
    _, columns, _ = arrow_stream.read(arrow_of("convert", "tarmac", test_matrix.source(tmp, "tarmac")))
    equal(columns["type"], ["FETCH", "FETCH", "MEMREAD", "MEMREAD", "FETCH", "MEMWRITE"], "types")
    equal(columns["size"], [4, 4, 8, 4, 2, 4], "sizes")
    equal(columns["tick"], [100, 110, 110, 111, 120, 120], "ticks")
    equal(columns["proc"], [None, 1, 1, 1, None, None], "processors")


@pytest.mark.parametrize("count", [0, 1, 2047, 2048, 2049, 6000])
def test_rows_come_in_batches(count):
    data = b"".join(struct.pack("<IBBBBI", 8 * i, i % 4, i % 256, i % 7, i % 5, 0xFFFFFFFF if i % 100 == 9 else i) for i in range(count))
    same(arrow_of("convert", "byu", data=data), of_csv("convert", "byu", data=data)[0], count)


FULL = {"kind": "reference", "number": 7, "tick": 2**64 - 1, "epoch": 2**32 - 1, "time": "2026-11-20T09:15:00.123456789Z", "type": "FETCH",
        "addr": "0xffffffffffffffff", "size": 2**32 - 1, "attr": 255, "proc": 65535, "delta": 2**64 - 2}


def test_the_largest_values_are_kept_and_what_is_unknown_is_null():
    rows = [FULL, FULL | {"time": "1969-12-31T23:59:59.999999999Z", "type": "0xf2"}]
    unknown = (["tick"], ["time"], ["size"], ["attr", "delta"], ["proc"], ["delta"])  # a BYU record has both or none
    rows += [{key: value for key, value in FULL.items() if key not in names} for names in unknown]
    data = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()
    stream = arrow_of("convert", "ndjson", data=data)
    _, columns, _ = arrow_stream.read(stream)
    for row, *values in zip(rows, *(columns[name] for name in TYPES), strict=True):
        got = dict(zip(columns, values))
        equal(got, {name: value_of(name, str(row[name])) if name in row else None for name in columns}, row)
    equal(sorted(columns), sorted(TYPES), "all columns")
    same(stream, of_csv("convert", "ndjson", data=data)[0], "csv")


def test_a_recording_has_times_and_epochs_whatever_prints_it(tmp):
    paths, _ = make_recording(tmp, ",clock_hz=66000000")
    for command, some in (("convert", paths), ("cut", paths[:1]), ("merge", paths[:2])):
        wanted, table = of_csv(command, None, *some)
        assert len(wanted["time"]) > 2048 and None not in wanted["time"] and len(set(wanted["epoch"])) > 1, command
        same(arrow_of(command, None, *some), wanted, command)
        assert len(table) > len(wanted["time"]), "events are left out"
    done = run(BUSCAP, "convert", "-O", "arrow", "--strict", *paths)
    equal(done.returncode, 1, done.stderr)
    assert b"--strict" in done.stderr


def test_a_name_selects_the_format(tmp):
    for ending in ("arrow", "arrows"):
        equal(run(need(BUSCAP), "convert", "-I", "din", "-o", f"a.{ending}", cwd=tmp, data=b"0 10\n").returncode, 0, ending)
        _, columns, rows = arrow_stream.read((tmp / f"a.{ending}").read_bytes())
        equal((rows, columns), ([1], {"number": [1], "type": ["MEMREAD"], "addr": [16]}), ending)


def test_a_reader_that_stops_early_ends_it_as_it_ends_csv(tmp):
    """Without a message, and before it has read everything."""
    ends = {}
    for form in ("csv", "arrow"):
        source = popen([need(BUSCAP), "sim", "-O", "byu"], stdout=subprocess.PIPE)  # endless
        convert = popen([BUSCAP, "convert", "-I", "byu", "-O", form, "-"], stdin=source.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        source.stdout.close()
        assert len(convert.stdout.read(100000)) == 100000
        convert.stdout.close()
        ends[form] = convert.wait(60), convert.stderr.read()
        convert.stderr.close()
        source.wait(60)
    equal(ends["arrow"], ends["csv"], "exit code and messages")
    equal(ends["arrow"][1], b"", "messages")


# Each prints the rows, the sum of the addresses, the largest tick, the rows of each type, the first and the last time in
# ns, and the rows without a delta.
READERS = {
    "apache-arrow": """
        const t = require('apache-arrow').tableFromIPC(require('fs').readFileSync(process.argv[1]));
        const all = (name) => Array.from({length: t.numRows}, (_, i) => t.getChild(name).get(i)), types = {};
        let sum = 0n, tick = 0n, times = [];
        for (const a of all('addr')) sum += a;
        for (const a of all('tick')) if (a > tick) tick = a;
        for (const a of all('type')) types[a] = (types[a] || 0) + 1;
        for (const batch of t.getChild('time').data) for (let i = 0; i < batch.length; i++) times.push(batch.values[i]);
        const last = times.reduce((a, b) => a > b ? a : b), first = times.reduce((a, b) => a < b ? a : b);
        console.log(JSON.stringify([t.numRows, `${sum}`, `${tick}`, types, `${first}`, `${last}`, t.getChild('delta').nullCount]));""",
    "nodejs-polars": """
        const pl = require('nodejs-polars'), t = pl.readIPCStream(require('fs').readFileSync(process.argv[1])), types = {};
        for (const a of t.getColumn('type').cast(pl.Utf8)) types[a] = (types[a] || 0) + 1;
        const number = (a) => `${t.select(a).toRecords()[0].x}`, time = pl.col('time').cast(pl.Int64);
        console.log(JSON.stringify([t.height, number(pl.col('addr').sum().cast(pl.Utf8).alias('x')),
            number(pl.col('tick').max().cast(pl.Utf8).alias('x')), types, number(time.min().cast(pl.Utf8).alias('x')),
            number(time.max().cast(pl.Utf8).alias('x')), t.getColumn('delta').nullCount()]));""",
    "chdb": """
        const from = `FROM file('${process.argv[1]}', ArrowStream)`, ask = (sql) => JSON.parse(require('chdb').query(sql, 'JSONCompact')).data;
        const t = ask(`SELECT count(), toString(sum(addr)), toString(max(tick)), toString(toUnixTimestamp64Nano(min(time))),
            toString(toUnixTimestamp64Nano(max(time))), countIf(delta IS NULL) ${from}`)[0];
        const types = Object.fromEntries(ask(`SELECT type, count() ${from} GROUP BY type`).map(([a, n]) => [a, Number(n)]));
        console.log(JSON.stringify([Number(t[0]), t[1], t[2], types, t[3], t[4], Number(t[5])]));""",
}


@pytest.mark.parametrize("package", READERS)
def test_other_programs_read_the_same(tmp, package):
    """Needs node and, in a folder of $NODE_PATH, the package of npm."""
    if shutil.which("node") is None or run("node", "-e", f"require({package!r})").returncode != 0:
        pytest.skip(f"no {package}")
    paths, _ = make_recording(tmp, ",clock_hz=66000000")
    stream = arrow_of("convert", "segment", *paths)
    (tmp / "a.arrows").write_bytes(stream)
    done = run("node", "-e", READERS[package], tmp / "a.arrows")
    equal(done.returncode, 0, done.stderr.decode())
    wanted, _ = of_csv("convert", "segment", *paths)
    types = {name: wanted["type"].count(name) for name in wanted["type"]}
    equal(json.loads(done.stdout), [len(wanted["addr"]), str(sum(wanted["addr"])), str(max(wanted["tick"])), types,
                                    str(min(wanted["time"])), str(max(wanted["time"])), wanted["delta"].count(None)], package)
    assert 0 < wanted["delta"].count(None)
