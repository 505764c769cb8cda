"""buscap report --figure: what an SVG shows, read with its own axes, is what `report --json` and `stats --json` say."""

import json
import math
import re
import struct
import time
import xml.etree.ElementTree

import pytest

import harness
from harness import BUSCAP, equal, need, run
from test_report import many_chunks, record

SVG = "{http://www.w3.org/2000/svg}"
CLASSES = {"fetch": "#0072b2", "read + ioread": "#2fc494", "write + iowrite": "#d55e00", "other": "#b79be0"}
PREFIXES = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
LEFT, TOP, RIGHT, BOTTOM = 84, 40, 704, 312


def buscap(*argv, code=0):
    done = run(need(BUSCAP), *argv)
    equal(done.returncode, code, done.stderr.decode())
    return done.stdout, done.stderr.decode()


def value_of(label):
    number, prefix = re.fullmatch(r"([\d.]+) ?(\D*?)B?%?", label.strip()).groups()
    return float(number) * PREFIXES[prefix.strip()]


class Figure:
    """An SVG: its texts, and its paths by colour."""

    def __init__(self, *argv):
        self.root = xml.etree.ElementTree.fromstring(buscap("report", "--figure", *argv)[0])
        equal((self.root.tag, self.root.get("viewBox")), (f"{SVG}svg", "0 0 720 360"))
        assert {one.tag for one in self.root.iter()} <= {SVG + name for name in ("svg", "g", "path", "pattern", "text")}
        self.texts = [(one.text, float(one.get("x", 0)), float(one.get("y", 0))) for one in self.root.iter(f"{SVG}text")]
        self.legend = [text for text, _, y in self.texts if y == 16]
        self.titles = [text for text, _, y in self.texts if y == 346] + [text for text, x, y in self.texts if x == y == 0]

    def path(self, colour, kind="fill"):
        found = [one.get("d") for one in self.root.iter(f"{SVG}path") if one.get(kind) == colour and "transform" not in one.attrib]
        return found[0] if found else ""

    def symbols(self, colour):
        """The places of the symbols in the plot, or above it."""
        places = [re.findall(r"[\d.]+", one.get("transform")) for one in self.root.iter(f"{SVG}path")
                  if one.get("fill") == colour and "transform" in one.attrib]
        return [(float(x), float(y)) for x, y in places if float(y) > 16]

    def axis(self, is_x, is_log=False):
        """Returns the function from a place to a value, by the first and the last label."""
        at = 1 if is_x else 2
        labels = [(one[at], value_of(one[0])) for one in self.texts
                  if (one[2] == BOTTOM + 16 if is_x else one[1] == LEFT - 5)]
        assert 2 <= len(labels) <= 14, labels
        (p0, v0), (p1, v1) = [(p - (0 if is_x else 4), math.log2(v) if is_log else v) for p, v in (labels[0], labels[-1])]

        def value(place):
            v = v0 + (place - p0) * (v1 - v0) / (p1 - p0)
            return 2**v if is_log else v

        for place, expected in labels:  # they are even
            assert math.isclose(value(place - (0 if is_x else 4)), expected, rel_tol=1e-3, abs_tol=1e-6), labels
        return value


def numbers(path):
    return [float(one) for one in re.findall(r"-?[\d.]+", path)]


@pytest.fixture(scope="module")
def recording():
    """A recording of many chunks, with gaps and ports."""
    return harness.shared("figure", lambda new: record(new, many_chunks(150, samples=90)))


def pictures(*argv):
    made = json.loads(buscap("report", "--json", "--columns", "512", "--rows", "200", *argv)[0])
    return made["overview"], made["events"]["events"]


@pytest.mark.parametrize("part", [(), ("--from", "+20ms", "--to", "+90ms")])
def test_a_timeline_has_the_rates_of_each_column(recording, part):
    overview, events = pictures(*part, recording)
    figure = Figure("timeline", *part, recording)
    assert re.fullmatch(r"time after \d{4}-\d\d-\d\dT[\d:.]+Z \(ms\)", figure.titles[0]), figure.titles
    equal(figure.titles[1], "records per second")
    time, rate = figure.axis(True), figure.axis(False)
    off = rate(BOTTOM - 0.02)  # a hundredth of a unit at each end
    below = [0] * len(overview["columns"])
    for k, (name, colour) in enumerate(CLASSES.items()):
        bars = [numbers(bar) for bar in figure.path(colour).split("z")[:-1]]
        shown = [(i, c) for i, c in enumerate(overview["columns"]) if c["counts"][k]]
        equal((len(bars), name in figure.legend), (len(shown), bool(shown)), name)
        for (x, low, high, end, _), (i, column) in zip(bars, shown):
            expected = column["counts"][k] * 1e9 / column["duration_ns"]
            assert abs(rate(high) - rate(low) - expected) <= off, (name, i, rate(high) - rate(low), expected)
            assert abs(rate(low) - below[i]) <= off, (name, i)
            below[i] += expected
            assert abs(time(x) * 1e6 - (column["from"] - overview["from"])) <= 1e6 * (time(LEFT + 0.02) - time(LEFT))
            assert end > x
    gaps = [event["time"] for event in events if event["kind"] == "gap"]
    equal(bool(gaps), "gap" in figure.legend)
    at = [(ns - overview["from"]) / 1e6 for ns in gaps]
    assert all(min(abs(time(x) - one) for x, _ in figure.symbols("#c4161c")) <= 2.1 * (time(LEFT + 1) - time(LEFT)) for one in at)


def test_a_heat_map_has_the_count_of_each_cell(recording):
    overview, _ = pictures(recording)
    figure = Figure("heat-map", recording)
    height = (BOTTOM - TOP) / len(overview["rows"])
    colours = [one.get("stroke") for one in figure.root.iter(f"{SVG}path") if one.get("stroke-width")]
    equal(len(set(colours)), 16)
    counts = {(i, c["cells"][k]): sum(c["cells"][k + 1 : k + 5]) for i, c in enumerate(overview["columns"])
              for k in range(0, len(c["cells"]), 5)}
    most = max(counts.values())
    equal(figure.legend[:2], ["records per cell: 1", f"{most:,}"])
    drawn = {}
    for step, colour in enumerate(colours):
        for line in figure.path(colour, "stroke").split("M")[2:]:
            x, y, *ends = numbers(line.replace("H", " "))
            row = (y - TOP) / height - 0.5
            assert abs(row - round(row)) < 0.01, row
            drawn.setdefault(round(row), []).append((x, max(ends), step))
    span = (RIGHT - LEFT) / (overview["to"] - overview["from"] + 1)
    for (i, row), n in counts.items():
        column = overview["columns"][i]
        x = LEFT + span * (column["from"] - overview["from"])
        end = max(LEFT + span * (column["to"] - overview["from"]), x + 0.5)
        steps = [step for start, stop, step in drawn[row] if start - 0.02 <= x and end <= stop + 0.02]
        exact = 15 * math.log(n) / math.log(most)  # in the middle of two steps, either
        assert any(abs(exact - step) < 0.5001 for step in steps), (i, row, n, exact, steps)
    equal(sum(map(len, drawn.values())) <= len(counts), True)
    labels = [text for text, x, _ in figure.texts if x == LEFT - 5]
    names = {(f"io {row['place'] - (1 << 20):04x}" if row["place"] >= 1 << 20 else f"{row['place'] << 12:08x}") for row in overview["rows"]}
    assert len(labels) > 5 and set(labels) <= names, labels


@pytest.mark.parametrize("part", [(), ("--from", "+20ms")])
def test_curves_have_the_points_of_stats(recording, part):
    stats = json.loads(buscap("stats", "--json", "--working-set", "--miss-ratio", *part, recording)[0])
    figure = Figure("working-set", *part, recording)
    x, y = figure.axis(True, is_log=True), figure.axis(False, is_log=True)
    for name, colour, unit in (("lines", "#0072b2", 32), ("pages", "#d55e00", 4096)):
        places = numbers(figure.path(colour, "stroke"))
        points = [(x(a), y(b)) for a, b in zip(places[::2], places[1::2])]
        equal(len(points), len(stats["working_set"]))
        for got, one in zip(points, stats["working_set"]):
            assert math.isclose(got[0], one["references"], rel_tol=0.01) and math.isclose(got[1], unit * one[name], rel_tol=0.01), (got, one)
    equal(figure.legend, ["lines of 32 bytes", "pages of 4 KiB"])
    figure = Figure("miss-ratio", *part, recording)
    x, y = figure.axis(True, is_log=True), figure.axis(False)
    places = numbers(figure.path("#0072b2", "stroke"))
    equal(len(places), 2 * len(stats["miss_ratio"]))
    for a, b, one in zip(places[::2], places[1::2], stats["miss_ratio"]):
        assert math.isclose(x(a), one["bytes"], rel_tol=0.01) and abs(y(b) - 100 * one["ratio"]) < 0.05, one
    equal("estimated" in figure.legend, stats["miss_ratio"][-1]["one_line_in"] > 1)


@pytest.mark.parametrize("unit", ["ticks", "records", "seconds"])
def test_a_trace_has_its_own_axis(tmp, unit):
    """Positions are as they are, and rates are per 1,000 of them."""
    trace = tmp / "trace"
    din = "".join(f"{0 if i % 3 else 2} {i << 12:x}\n" for i in range(3000)).encode()
    trace.write_bytes(din if unit == "records" else harness.sim_records(3000))
    if unit == "seconds":
        buscap("convert", "-I", "byu", "-O", "segment:clock_hz=1000000", "-o", tmp / "x.byu.lz4", trace)
        trace = tmp / "x.byu.lz4"
    figure = Figure("timeline", trace)
    overview, _ = pictures(trace)
    equal(overview["axis"], unit)
    equal(figure.titles, ["time (ms)", "records per second"] if unit == "seconds" else [unit, f"records per 1,000 {unit}"])
    x = figure.axis(True)
    for place, at in ((LEFT, "from"), (RIGHT, "to")):
        ns = int(overview["origin_ns"]) + overview[at]
        assert abs(x(place) * (1e6 if unit == "seconds" else 1) - ns) <= 1 + ns / 1000, (at, x(place), ns)


def test_what_was_not_recorded_is_hatched(tmp):
    """A segment is missing."""
    out = tmp / "out"
    out.mkdir()
    record(out, many_chunks(300, samples=90), options=("-b", "filesize:50K"))
    paths = harness.segments(out)
    assert len(paths) >= 3
    paths[1].unlink()
    for name in ("timeline", "heat-map"):
        done = run(need(BUSCAP), "report", "--figure", name, out)
        equal(done.returncode, 3, done.stderr.decode())
        assert b"not recorded" in done.stdout and b'fill="url(#lines)" d="M' in done.stdout


def test_the_time_between_recordings_is_hatched(tmp):
    for name in ("a", "b"):
        (tmp / name).mkdir()
        record(tmp / name, many_chunks(3, samples=90))
        overview, _ = pictures(tmp)
        ended = int(overview["origin_ns"]) + overview["recordings"][0]["ended"]
        harness.wait_until(lambda: time.time_ns() > ended, "the bus time of the first one is over")
    first, second = overview["recordings"]
    assert first["ended"] < second["from"]
    figure = Figure("timeline", tmp)
    start, _, _, end, _ = numbers(figure.path("url(#lines)"))
    span = (RIGHT - LEFT) / (overview["to"] - overview["from"] + 1)
    assert abs(start - LEFT - span * first["ended"]) < 0.02 and abs(end - LEFT - span * second["from"]) < 0.02
    assert "not recorded" in figure.legend


def test_a_figure_that_can_not_be_drawn_says_why(recording, tmp):
    segment = harness.segments(recording)[0]
    before = segment.read_bytes()
    (tmp / "ports.byu").write_bytes(struct.pack("<I4BI", 0x3F8, 0x10, 1, 0, 0, 5) * 9)
    late = "--from", "2030-01-01T00:00:00Z"
    for argv, code, text in (
            (("--figure", "pie", recording), 2, "--figure pie: must be timeline|heat-map|working-set|miss-ratio"),
            (("-o", tmp / "x.svg", recording), 2, "an .svg file needs --figure timeline|heat-map"),
            (("--figure", "timeline", "-o", tmp / "x.html", recording), 2, "named for another type of report"),
            (("--figure", "timeline", "--json", recording), 2, "--figure excludes --json and --compare"),
            (("--figure", "timeline", *late, "-o", tmp / "x.svg", recording), 1, "no records in this range"),
            (("--figure", "miss-ratio", *late, "-o", tmp / "x.svg", recording), 1, "no record matches"),
            (("--figure", "working-set", "-I", "byu", "-o", tmp / "x.svg", tmp / "ports.byu"), 1, "no references to memory"),
            (("--figure", "miss-ratio", "-o", segment, recording), 1, "also an input"),
            (("--figure", "timeline", "-o", segment, recording), 1, "also an input")):
        out, err = buscap("report", *argv, code=code)
        equal(out, b"")
        assert text in err, (argv, err)
    equal((list(tmp.glob("x.*")), segment.read_bytes() == before), ([], True))
