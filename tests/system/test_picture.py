"""buscap web and report draw traces of any format: the axis is what the trace has."""

import json
import os
import random
import struct

import pytest

from harness import BUSCAP, ROOT, equal, need, run
from web_harness import Web

P2 = ROOT / "../shared/data/byu/pentium2-slice.tr"


def byu(path, deltas):
    rng = random.Random(len(deltas))
    path.write_bytes(b"".join(struct.pack("<IBBBBI", rng.randrange(1 << 32), rng.randrange(3), 4, 0, 0, delta) for delta in deltas))
    return path


def din(path, count):
    rng = random.Random(count)
    path.write_text("".join(f"{rng.randrange(3)} {rng.randrange(1 << 32):x}\n" for _ in range(count)))
    return path


def tarmac(path, times, unit):
    path.write_text("".join(f"{time} {unit} IT ({i}) {0x8000 + 4 * i:08x} d2a00028 O EL3h_s : NOP\n" for i, time in enumerate(times)))
    return path


def convert(path, out, options=""):
    done = run(need(BUSCAP), "convert", "-O", f"segment{options}", "-o", out, path)
    equal(done.returncode, 0, done.stderr)
    return out, done.stderr.decode()


def report(*argv):
    done = run(need(BUSCAP), "report", "--json", *argv)
    equal(done.returncode, 0, done.stderr)
    return json.loads(done.stdout)["overview"]


def axis_of(overview):
    """Returns the axis, the first and last position, and the records."""
    origin = int(overview["origin_ns"])
    extent = overview["extent"]
    return overview["axis"], origin + extent["from"], origin + extent["to"], sum(c["records"] for c in overview["columns"])


def test_the_axis_is_ticks_without_a_clock(tmp):
    rng = random.Random(7)
    for count in (2, 3, 1000, 100_000):
        deltas = [rng.randrange(1, 500) for _ in range(count)]
        want = ("ticks", deltas[0], sum(deltas), count)
        trace = byu(tmp / f"{count}.tr", deltas)
        equal(axis_of(report(trace)), want, "the trace")
        equal(axis_of(report(convert(trace, tmp / f"{count}.byu.lz4")[0])), want, "its segment")


def test_the_axis_is_record_numbers_without_ticks(tmp):
    for count in (1, 2, 1000, 100_000):
        want = ("records", 0, count - 1, count)
        trace = din(tmp / f"{count}.din", count)
        equal(axis_of(report(trace)), want, "the trace")
        equal(axis_of(report(convert(trace, tmp / f"{count}.byu.lz4")[0])), want, "its segment")


def test_a_trace_of_one_instant_or_of_a_clock_that_goes_back_has_record_numbers(tmp):
    equal(axis_of(report("-I", "byu", byu(tmp / "still.tr", [0] * 5000))), ("records", 0, 4999, 5000))
    equal(axis_of(report(tarmac(tmp / "back.tarmac", [i % 2 for i in range(4000)], "clk"))), ("records", 0, 3999, 4000))


def test_the_axis_has_the_unit_of_the_trace(tmp):
    for unit in ("clk", "ns", "ps"):
        equal(axis_of(report(tarmac(tmp / f"{unit}.tarmac", [3, 9, 100], unit)))[:3], (unit, 3, 100))


def test_a_clock_rate_gives_seconds(tmp):
    trace = byu(tmp / "a.tr", [5, 10, 20])
    path, err = convert(trace, tmp / "a.byu.lz4", ":clock_hz=1000000")
    equal((axis_of(report(path)), err), (("seconds", 5000, 35000, 3), ""))
    _, err = convert(trace, tmp / "b.byu.lz4")
    assert "b.byu.lz4: no clock rate: pictures of it count ticks; -O segment:clock_hz=N gives seconds" in err, err
    equal(convert(din(tmp / "a.din", 3), tmp / "c.byu.lz4")[1], "", "no times at all")


def test_several_traces_are_one_after_another(tmp):
    equal(axis_of(report(din(tmp / "a.din", 10), din(tmp / "b.din", 20))), ("records", 0, 29, 30))


def test_other_axes_are_refused(tmp):
    trace = din(tmp / "a.din", 10)
    ticks, _ = convert(byu(tmp / "a.tr", [1, 2]), tmp / "ticks.byu.lz4")
    records, _ = convert(trace, tmp / "records.byu.lz4")
    for argv, text in (((trace, ticks), "draw it without them"), ((ticks, records), "draw them separately"),
                       (("--from", "+1s", trace), "need @N"), (("--from", "@99", trace), "from @0 to @9")):
        done = run(need(BUSCAP), "report", "--json", *argv)
        assert done.returncode in (1, 2) and text in done.stderr.decode(), done.stderr
    part = report("--from", "@3", "--to", "@5", trace)
    equal((part["from"], part["to"], sum(c["records"] for c in part["columns"])), (3, 4, 2))


def test_a_long_trace_is_refused_with_the_command_to_type(tmp):
    path = tmp / "long.tr"
    path.write_bytes(struct.pack("<IBBBBI", 4096, 0, 4, 0, 0, 1) * 4_000_001)
    done = run(need(BUSCAP), "report", "-I", "byu", "--json", path)
    equal(done.returncode, 1)
    assert f"buscap convert -I byu -O segment -o FILE.byu.lz4 {path}" in done.stderr.decode(), done.stderr


def test_the_server_draws_and_searches_a_trace(tmp):
    with Web(byu(tmp / "a.tr", [2] * 100)) as web:
        overview = web.get("/data/overview?from=50&to=99")
        equal((overview["axis"], sum(c["records"] for c in overview["columns"])), ("ticks", 25))
        hits = [hit for hit in web.lines("/data/find?from=1970-01-01T00:00:00.000000050Z&first=1") if "number" in hit]
        equal([(hit["number"], hit["tick"]) for hit in hits], [(24, 50)])
        os.unlink(tmp / "a.tr")
        web.stop()


def test_a_course_trace_is_drawn():
    if not P2.exists():
        pytest.skip("no course trace here")
    done = run(need(BUSCAP), "report", "--json", P2)
    equal(done.returncode, 3, "it is torn")
    equal(axis_of(json.loads(done.stdout)["overview"]), ("ticks", 288, 3259832, 23335))
