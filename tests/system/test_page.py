"""The page of `buscap web` and of reports, in a browser: what it draws is what the programs and a count say."""

import datetime
import functools
import itertools
import json
import math
import operator
import os
import random
import re
import shutil
import struct
import subprocess

import pytest

import cut_model
import harness
import page_reference
import reference
from harness import BUSCAP, BUSCAPD, Daemon, equal, http, run, segments, status, wait_until
from page_browser import Tab, chromium
from web_harness import REFUSED, Web

# All in one process, which starts one browser for them.
pytestmark = [pytest.mark.ci, pytest.mark.browser, pytest.mark.xdist_group("browser")]

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\"&amp;\u202e\x01\x1b[31m"
NS = operator.itemgetter(0)
LEFT, RIGHT = 212, 12  # edges of the plot at 1400 pixels: cli/web/page/plot.js


@pytest.fixture(scope="module")
def driver():
    with chromium() as driver:
        yield driver


@pytest.fixture(autouse=True)
def no_daemon(tmp, monkeypatch):
    """The default socket must not be that of a daemon on this host."""
    monkeypatch.setenv("BUSCAP_SOCKET", str(tmp / "no-socket"))


def record(out, *options, source="sim:rate=1M,count=300000,agents=2,loss=0.05,seed=1"):
    done = run(BUSCAPD, "--once", "--no-socket", "--source", source, "-o", out, *options)
    assert done.returncode in (0, 3, 4), done.stderr.decode()
    return out


def record_chunks(tmp, count):
    """Records so many segments of one chunk or more, with marks and gaps."""
    socket, out = tmp / "socket", tmp / "out"
    with Daemon("--source", "sim:rate=50k,agents=2,loss=0.1", "-o", out, "--label", "boot", socket=socket) as daemon:
        daemon.wait_ready()
        for number in range(count):
            received = status(socket)["counts"]["received"]
            wait_until(lambda: status(socket)["counts"]["received"] > received, "records")
            path, body = ("/v1/marks", {"text": f"mark {number}"}) if number % 10 == 5 else ("/v1/rotate", {})
            equal(http(socket, path, "POST", json.dumps(body).encode())[0], 201 if body else 200)
        daemon.stop()
    return out


def output(*argv):
    done = run(BUSCAP, *argv)
    equal(done.returncode, 0, done.stderr.decode())
    return done.stdout.decode()


def timed_records(directory):
    """Returns {recording: [(ns since 1970, 12 bytes)]}, in the order of time, read without the programs."""
    found = {}
    for path in segments(directory):
        segment = reference.read_segment(path)
        for chunk in segment.chunks:
            anchors = {event.position: event.value for event in chunk.events if event.kind == "anchor"}
            first = tick = chunk.info["first_tick"]
            for i in range(chunk.info["records"]):
                data = chunk.records[12 * i : 12 * i + 12]
                tick = anchors.get(i, tick + int.from_bytes(data[8:], "little") if i else tick)
                ns = chunk.info["wall_ns"] + (tick - first) * 10**9 // segment.header["source"]["clock_hz"]
                found.setdefault(segment.header["recording"], []).append((ns, data))
    return {name: sorted(records, key=NS) for name, records in found.items()}


def check_pixels(browser, rng):
    """Cells are drawn in the colour of their counts, and empty ones in that of the paper, if no events are above them."""
    browser.driver.execute_script("window.events = buscap.model.events; buscap.model.events = {...window.events, events: []}")
    browser.redraw()
    overview = browser.model("overview")
    colours = browser.js("buscap.currentColours()")
    most = max((sum(c["cells"][i + 1 : i + 5]) for c in overview["columns"] for i in range(0, len(c["cells"]), 5)), default=0)
    seen = [0, 0]
    pairs = [(column, row) for column in rng.sample(range(len(overview["columns"])), min(40, len(overview["columns"])))
             for row in rng.sample(range(len(overview["rows"])), min(20, len(overview["rows"])))]
    drawn = browser.js("""((context) => arguments[0].map(([column, row]) => {
        const box = buscap.cellPixels(column, row);
        return box && [box.x, box.width,
            ...context.getImageData(box.x + Math.floor(box.width / 2), box.y + Math.floor(box.height / 2), 1, 1).data];
    }))(document.querySelector("#heatmap canvas").getContext("2d"))""", pairs)
    heat = browser.js("arguments[0].map((colour) => (({r, g, b}) => [r, g, b])(d3.rgb(colour)))", [*colours["heat"], colours["paper"]])
    for (number, row), got in zip(pairs, drawn):
        column = overview["columns"][number]
        # Of columns that share a pixel, the last is visible. A gap after all records has a column without duration.
        if got is None or got[1] < 2 or column["from"] == column["to"]:
            continue
        flat = column["cells"]
        n = next((sum(flat[i + 1 : i + 5]) for i in range(0, len(flat), 5) if flat[i] == row), 0)
        share = math.log(n) / math.log(most) if n and most > 1 else 1
        equal(got[2:5], heat[math.floor(share * 255 + 0.5) if n else 256], f"column {number}, row {row}: {n} of {most}; {overview['columns'][max(0, number - 2) : number + 3]}")
        seen[bool(n)] += 1
    assert all(seen), seen
    browser.driver.execute_script("buscap.model.events = window.events")
    browser.redraw()


def totals_on_page(browser):
    """Returns {class: records} of the table of totals."""
    browser.click("#tab-totals")
    rows = browser.js("[...document.querySelectorAll('#tab-body tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))")
    return {row[0]: int(row[1].replace(",", "")) for row in rows}


def texts_drawn(browser, selector):
    """Returns the texts on a canvas."""
    browser.driver.execute_script("""if (!window.drawn) {
        window.drawn = new Map();
        const {clearRect, fillText} = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.clearRect = function (...box) {
            window.drawn.set(this.canvas, []);
            return clearRect.apply(this, box);
        };
        CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
            window.drawn.get(this.canvas).push(text);
            return fillText.call(this, text, ...at);
        };
        document.querySelector("#theme").dispatchEvent(new Event("change"));
    }""")
    browser.wait("!!window.drawn.get(document.querySelector(arguments[0]))".replace("arguments[0]", json.dumps(selector)), "it is drawn")
    return browser.js("window.drawn.get(document.querySelector(arguments[0]))", selector)


ON_PAGE = {"read": "read + ioread", "write": "write + iowrite"}
CLASSES = {"FETCH": "fetch", "MEMREAD": "read", "MEMREADINV": "read", "IOREAD": "read", "MEMWRITE": "write", "IOWRITE": "write"}


# First, because it pays for the start of the browser.
@pytest.mark.parametrize("clock", ["", ",clock_hz=66000000"])
def test_an_unknown_clock_is_said(tmp, driver, clock):
    output("sim", "-n", "1000", "-O", "bcp1", "-o", tmp / "bus.bcp1")
    out = record(tmp / "out", source=f"file:{tmp}/bus.bcp1{clock}")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        equal("clock unknown: arrival times" in browser.text("#range"), not clock)
        equal(browser.faults(), [])


def test_totals_cells_gaps_and_marks_equal_stats_info_marks_and_a_count(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    out = record_chunks(tmp, 72)
    files = segments(out)
    timed = timed_records(out)
    with Web(out, "--map", "pc") as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        overview = browser.model("overview")
        check_pixels(browser, random.Random(1))

        stats = json.loads(output("stats", "--json", "--full", *files))
        wanted = dict.fromkeys(("fetch", "read", "write", "other"), 0)
        for row in stats["types"]:
            wanted[CLASSES.get(row["name"], "other")] += row["references"]
        equal(totals_on_page(browser), {**{ON_PAGE.get(name, name): n for name, n in wanted.items()}, "all": stats["references"]})
        equal(sum(column["lost"] for column in overview["columns"]), stats["events"]["lost"])
        info = [json.loads(line) for line in output("info", "--json", *files).splitlines()]
        recording = overview["recordings"][0]
        equal(recording["records"], stats["references"])
        equal((recording["segments"], recording["gaps"], recording["lost"]),
              (len(info), stats["events"]["gaps"], stats["events"]["lost"]))
        members = ("kind", "text", "cause", "lost", "exact")
        listed = [json.loads(line) for line in output("marks", "--json", out).splitlines()]
        assert listed and {event["kind"] for event in listed} == {"gap", "mark"}
        listed = [{**event, "text": None} if event["kind"] == "gap" else event for event in listed]  # the page writes its own
        equal([(event["record"], event["duration_ns"], *map(event.get, members)) for event in browser.model("events.events")],
              [(event["number"], event["duration_ns"] or 0, *map(event.get, members)) for event in listed])

        # By mouse: a quarter of the timeline.
        before = browser.view()
        width = browser.js("document.querySelector('#timeline').clientWidth") - LEFT - RIGHT
        browser.drag("#timeline", (LEFT + width // 2, 80), (LEFT + width * 3 // 4, 90))
        start, end = browser.view()
        span, pixel = before[1] - before[0], (before[1] - before[0]) / width
        assert abs(start - before[0] - span / 2) <= 2 * pixel and abs(end - before[0] - span * 3 / 4) <= 2 * pixel
        equal(browser.model("overview.unit"), "records")
        equal(sum(totals_on_page(browser).values()), 2 * sum(start <= ns <= end for ns, _ in timed[recording["id"]]))
        check_pixels(browser, random.Random(2))

        # By keys, down to single records.
        browser.driver.execute_script("document.querySelector('#timeline').focus()")
        browser.press("+")
        assert abs((browser.view()[1] - browser.view()[0]) * 2 - (end - start)) <= 2
        browser.press(Keys.BACKSPACE)
        equal(browser.view(), (start, end))
        browser.driver.execute_script("document.querySelector('#heatmap').focus()")
        for _ in range(10):
            if browser.model("records"):
                break
            browser.press(Keys.ARROW_DOWN)
            browser.chord(Keys.SHIFT, Keys.ENTER)  # the cursor's column
        view = browser.view()
        inside = [(ns, data) for ns, data in timed[recording["id"]] if view[0] <= ns <= view[1]]
        hits = browser.model("records.hits")
        equal([int(hit["addr"], 16).to_bytes(4, "little") for hit in hits], [data[:4] for _, data in inside])
        equal(browser.js("buscap.model.records.hits.map((hit) => String(buscap.fromRfc3339(hit.time)))"), [str(ns) for ns, _ in inside])
        browser.click("#tab-records")
        equal(browser.js("document.querySelectorAll('#tab-body tbody tr').length"), len(inside))
        browser.driver.execute_script("document.querySelector('#timeline').focus()")
        browser.press(Keys.ARROW_RIGHT)
        equal(browser.view()[1] - browser.view()[0], view[1] - view[0])
        assert browser.view()[0] > view[0]

        # Events one after the other, also where the view can't move.
        browser.press(Keys.HOME)
        equal(browser.view(), before)
        events = browser.js("buscap.eventsByTime().map((one) => [one.time, `${one.kind}: ${buscap.eventText(one)}`])")
        origin = int(browser.model("overview.origin_ns"))
        at = sum(time <= sum(before) // 2 - origin for time, _ in events) - 1
        for key, by in 3 * [("n", 1)] + 5 * [("p", -1)]:
            if 0 <= at + by < len(events):
                at += by
                browser.press(key)
                equal((browser.view(), browser.text("#summary")), (before, events[at][1]), f"event {at}")
        browser.press("+", "+", "+", "p")
        start, end = (ns - origin for ns in browser.view())
        assert browser.text("#summary") in [text for time, text in events if start <= time <= end]

        # Addresses too: the upper half of the heat map, then the cursor on it.
        browser.press(Keys.HOME)
        equal(browser.view(), before)
        rows = browser.model("overview.rows")
        boxes = browser.js("buscap.model.overview.rows.map((row, i) => buscap.cellPixels(0, i))")
        top, bottom = boxes[0]["y"] + 1, boxes[len(boxes) // 2]["y"] + 1
        dragged = [row for row, box in zip(rows, boxes) if box["y"] + box["height"] > top and box["y"] < bottom]
        assert 1 < len(dragged) < len(rows) and bottom - top > 12
        browser.drag("#heatmap", (LEFT + 5, top), (LEFT + width - 5, bottom))
        overview = browser.model("overview")
        equal((overview["place_from"], overview["place_to"]), (dragged[0]["place"], dragged[-1]["place"] + dragged[-1]["count"] - 1))
        assert all(row["place"] + row["count"] > overview["place_from"] and row["place"] <= overview["place_to"] for row in overview["rows"])
        browser.driver.execute_script("document.querySelector('#heatmap').focus()")
        browser.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
        cursor = browser.model("cursor")
        equal(cursor["row"], 1)
        place = overview["rows"][1]["place"]  # of memory or of a port
        first = f"io {place - page_reference.PORT_0:04x}" if place >= page_reference.PORT_0 else f"{place << 12:08x}"
        assert f"address {first}" in browser.text("#summary"), browser.text("#summary")
        equal(browser.faults(), [])


def select_rows(browser, first, last):
    """Drags over rows of the heat map."""
    boxes = browser.js("buscap.model.overview.rows.map((row, i) => buscap.cellPixels(0, i))")
    width = browser.js("document.querySelector('#heatmap').clientWidth")
    top, bottom = boxes[first]["y"] + 1, boxes[last]["y"] + boxes[last]["height"] - 1
    assert bottom - top > 12, (top, bottom)
    browser.drag("#heatmap", (LEFT + 1, top), (width - RIGHT - 1, bottom))


def tip(browser, selector, x, y):
    """Moves the pointer to a point of an element. Returns {term: text} of what is shown there."""
    from selenium.webdriver.common.action_chains import ActionChains

    box = browser.js("(({x, y}) => [x, y])(document.querySelector(arguments[0]).getBoundingClientRect())", selector)
    chain = ActionChains(browser.driver, duration=0)
    chain.w3c_actions.pointer_action.move_to_location(int(box[0] + x), int(box[1] + y))
    chain.perform()
    return tip_now(browser)


def tip_now(browser):
    return browser.js("""document.querySelector("#tip").hidden ? {} : Object.fromEntries(
        [...document.querySelectorAll("#tip b")].map((b) => [b.textContent, b.nextSibling.textContent]))""")


@pytest.mark.parametrize("kind", ["memory", "ports", "both", "report"])
def test_selected_addresses_filter_the_timeline_the_totals_and_the_records(tmp, driver, kind):
    from selenium.webdriver.common.keys import Keys

    trace = harness.sim_records(6000)
    for i in range(0, len(trace), 12 * 9):  # more accesses to ports
        trace = trace[:i] + struct.pack("<I4B", 0x60 + 4 * (i % 5), 0x10 + i % 2, 1, 0, 0) + trace[i + 8:]
    (tmp / "trace").write_bytes(trace)
    out = record(tmp / "out", source=f"file:{tmp}/trace,format=byu,clock_hz=10000000")
    (timed,) = timed_records(out).values()
    with Web(out) as web, Tab(driver) as browser:
        if kind == "report":
            output("report", "-o", tmp / "run.html", "--rows", "100", out)
        browser.open(f"file://{tmp}/run.html" if kind == "report" else f"http://{web.host}/?token={web.token}").idle()
        rows = browser.model("overview.rows")
        ports = [i for i, row in enumerate(rows) if row["place"] >= page_reference.PORT_0]
        first, last = {"memory": (2, ports[0] // 2), "ports": (ports[0], ports[2]), "both": (ports[0] - 9, ports[1]),
                       "report": (0, ports[0] // 3)}[kind]
        places = rows[first]["place"], rows[last]["place"] + rows[last]["count"] - 1
        select_rows(browser, first, last)
        equal((browser.js("buscap.model.view.placeFrom"), browser.js("buscap.model.view.placeTo")), places)

        def selected():
            view = browser.view()
            return [(ns, data) for ns, data in timed if view[0] <= ns <= view[1]
                    and places[0] <= next(iter(page_reference.count(data)[1])) <= places[1]]

        wanted = selected()
        if kind != "report":  # whose columns may reach beyond the view
            assert 0 < len(wanted) < 6000
            equal(totals_on_page(browser)["all"], len(wanted))
            assert f"{len(wanted):,} records at addresses" in browser.text("#summary"), browser.text("#summary")
        # A column in the timeline.
        columns = browser.js("buscap.model.overview.columns.map((one, i) => [one, (buscap.cellPixels(i, arguments[0]) || {}).x])",
                             0 if kind != "report" else first)
        column, x = next((one, x) for one, x in columns[len(columns) // 3:] if x is not None and one["cells"])
        flat, rows = column["cells"], browser.model("overview.rows")
        n = sum(sum(flat[i + 1:i + 5]) for i in range(0, len(flat), 5)
                if rows[flat[i]]["place"] + rows[flat[i]]["count"] > places[0] and rows[flat[i]]["place"] <= places[1])
        equal(tip(browser, "#timeline", x + 1, 80)["records"], f"{n:,} at these addresses")
        if kind == "report":
            equal(totals_on_page(browser)["all"], sum(
                sum(sum(one["cells"][i + 1:i + 5]) for i in range(0, len(one["cells"]), 5)
                    if places[0] <= rows[one["cells"][i]]["place"] <= places[1]) for one in browser.model("overview.columns")))
            return
        # Single records, of which there are few enough only at these addresses.
        while len(selected()) > 500 or not browser.model("records"):
            browser.js("document.querySelector('#timeline').focus()")
            browser.press("+")
            wanted = selected()
            assert len(wanted) > 20, "they are listed before"
        browser.click("#tab-records")
        equal(browser.js("document.querySelectorAll('#tab-body tbody tr').length"), len(wanted))
        equal(browser.js("buscap.model.records.hits.map((hit) => String(buscap.fromRfc3339(hit.time)))"), [str(ns) for ns, _ in wanted])
        browser.press(Keys.HOME)
        equal(totals_on_page(browser)["all"], 6000)
        equal(browser.faults(), [])


def test_the_tip_has_the_figures_of_what_is_under_the_pointer_now(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    out = record(tmp / "out", source="sim:rate=1M,count=100000,seed=3")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        for selector, y in (("#timeline", 80), ("#heatmap", 60)):
            browser.driver.execute_script("document.querySelector('#timeline').focus()")
            x = browser.js("buscap.cellPixels(Math.floor(buscap.model.overview.columns.length / 2), 0).x")
            before = tip(browser, selector, x, y)
            assert before["time"]
            for keys in (["+", "+", "+"], [Keys.ARROW_RIGHT], [Keys.BACKSPACE], [Keys.HOME]):
                browser.press(*keys)
                now = tip_now(browser)
                equal(now, tip(browser, selector, x, y), keys)
                assert keys[0] in (Keys.BACKSPACE, Keys.HOME) or now != before, keys
            select_rows(browser, 0, 20)
            shown = tip(browser, selector, x, y)
            browser.press(Keys.BACKSPACE)
            now = tip_now(browser)
            assert now != shown, "the row is another"
            equal(now, tip(browser, selector, x, y))
        equal(tip(browser, "#range", 5, 5), {})
        equal(browser.faults(), [])


def contrast(a, b):
    """That of WCAG, from 1 to 21."""
    def light(colour):
        parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05

    return max(light(a), light(b)) / min(light(a), light(b))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_cursor_can_be_seen_on_cells_of_any_colour(tmp, driver, theme):
    """All cells around it are the fullest, then the emptiest: its frame, or the edge of that, differs from them."""
    data = b"".join(struct.pack("<I4BI", (i % 60) << 12, 0, 8, 0, 0, 100) for i in range(60 * 400))
    (tmp / "trace").write_bytes(data)
    out = record(tmp / "out", source=f"file:{tmp}/trace,format=byu,clock_hz=10000000")
    with Web(out) as web, Tab(driver, theme=theme) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        for n in (1, 1000):
            browser.driver.execute_script("""const overview = structuredClone(buscap.model.overview);
                overview.columns.forEach((one, i) => { one.cells = overview.rows.flatMap((row, at) =>
                    [at, i === 0 && at === 0 ? 1000 : arguments[0], 0, 0, 0]); });
                buscap.model.overview = overview;""", n)
            browser.js("buscap.setCursor({column: 100, row: 30})")
            browser.redraw()
            pixels = browser.js("""((context, {x, y, width, height}) => [-12, -3, -2, -1].map((by) =>
                [...context.getImageData(x + by, y + Math.floor(height / 2) + (by === -12 ? 9 : 0), 1, 1).data].slice(0, 3)))(
                document.querySelector("#heatmap canvas").getContext("2d"), buscap.cellPixels(100, 30))""")
            cell, *frame = pixels
            assert max(contrast(cell, one) for one in frame) >= 3, (n, pixels)
            assert max(contrast(a, b) for a in frame for b in frame) >= 3, (n, pixels)


def test_a_recording_in_progress_an_idle_bus_and_deleted_files_are_named(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    def empty():
        browser.idle()
        return browser.js("(({hidden, innerText}) => hidden ? '' : innerText)(document.querySelector('#empty'))")

    def look(start, end):
        browser.js("buscap.show(buscap.spanView(arguments[0], arguments[1]))".replace("arguments[0]", f"{start}n").replace(
            "arguments[1]", f"{end}n"))

    socket = tmp / "socket"
    (tmp / "trace").write_bytes(b"".join(
        struct.pack("<I4BI", 0x1000 * i, 0, 8, 0, 0, 100_000 if i == 50 else 10) for i in range(100)))
    old = record(tmp / "out", "--label", "old", source=f"file:{tmp}/trace,format=byu,clock_hz=10000000")
    with Daemon("--source", "sim:rate=2k", "-o", tmp / "out", "--label", "new", "-b", "duration:1", socket=socket) as daemon:
        daemon.wait_ready()
        wait_until(lambda: status(socket)["sealed"]["segments"], "a segment")
        with Web("--socket", socket) as web, Tab(driver) as browser:
            browser.open(f"http://{web.host}/?token={web.token}").idle()
            browser.wait("buscap.model.live")
            states = "buscap.model.overview.recordings.map(buscap.stateText)"
            equal(browser.js(states), ["sealed", "in progress"])
            first, second = browser.model("overview.recordings")
            origin = int(browser.model("overview.origin_ns"))
            middle = origin + (first["from"] + first["to"]) // 2
            look(middle - 1000, middle + 1000)
            equal(empty(), "The bus was idle: no record between 49 and 50 (10 ms).")
            look(origin + first["to"] + 1_000, origin + first["to"] + 2_000)
            equal(empty(), "No recording has records in this view.")
            # Files are deleted while a part is shown.
            look(origin + first["from"], origin + first["from"] + 10_000)
            equal(empty(), "")
            for path in segments(old):
                if "-old-" in path.name:
                    path.unlink()
            browser.wait("document.querySelector('#notices').innerText.includes('old: all files deleted or renamed (since ')")
            browser.wait("buscap.model.overview.recordings.length === 1")
            browser.press(Keys.HOME)
            browser.wait("!document.querySelector('#notices').innerText.includes('old')", "it was read")
            daemon.stop()
            browser.wait("buscap.model.overview.recordings[0].state === 'sealed'")
            equal(browser.js(states), ["sealed"])


def test_an_idle_bus_at_the_end_of_a_recording_is_named(tmp, driver):
    """It can be shown if another recording follows."""
    data = b"".join(struct.pack("<I4BI", 0x1000 * i, 0, 8, 0, 0, 10) for i in range(100))
    (tmp / "trace").write_bytes(data)
    with Daemon("--once", "--source", "file:-,format=byu,clock_hz=10000000", "-o", tmp / "out", socket=tmp / "socket",
                stdin=subprocess.PIPE) as daemon:
        daemon.process.stdin.write(data)
        daemon.process.stdin.flush()
        daemon.wait_ready()
        wait_until(lambda: status(tmp / "socket")["counts"]["durable"] == 100, "the records")
        daemon.process.stdin.close()
        daemon.wait()
    out = record(tmp / "out", "--label", "next", source=f"file:{tmp}/trace,format=byu,clock_hz=10000000")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        first, second = browser.model("overview.recordings")
        assert first["to"] < first["ended"] <= second["from"] and second["to"] == second["ended"], (first, second)
        origin = int(browser.model("overview.origin_ns"))
        for at, text in ((first["ended"] - 1000, "The bus was idle in this view."),
                         (first["ended"] + 1000, "No recording has records in this view.")):
            browser.js(f"buscap.show(buscap.spanView({origin + at - 500}n, {origin + at + 500}n))")
            browser.idle()
            equal(browser.text("#empty"), text)


def test_a_recording_is_shown_after_all_files_were_deleted_while_a_part_was_shown(tmp, driver):
    out = record(tmp / "out", "--label", "old", source="sim:rate=1M,count=1000")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        browser.js("document.querySelector('#timeline').focus()")
        browser.press("+")
        browser.idle()
        for path in segments(out):
            path.unlink()
        browser.wait("document.querySelector('#empty').innerText.startsWith('There are no recordings in ')")
        record(out, "--label", "new", source="sim:rate=1M,count=1000")
        browser.wait("buscap.model.overview.recordings.length === 1 && document.querySelector('#empty').hidden")
        equal(browser.js("buscap.model.overview.recordings[0].label"), "new")
        equal(browser.faults(), [])


def test_an_empty_directory_says_what_to_do(tmp, driver):
    out = tmp / "it is empty"
    out.mkdir()
    empty = f"There are no recordings in {out} yet. "
    shown = "document.querySelector('#empty').innerText"
    with Web(out, "--socket", tmp / "socket") as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}")
        browser.wait(f"{shown} === arguments[0]".replace("arguments[0]", json.dumps(
            f"{empty}buscapd does not answer. Start it as a service, or: buscapd -o '{out}'")))
        with Daemon("--set", "recording.record=on-demand", "--source", "sim:rate=1k", "-o", out, socket=tmp / "socket") as daemon:
            daemon.wait_ready()
            browser.wait(f"{shown} === {json.dumps(f'{empty}buscapd is idle. To record in {out}: buscap record start')}")
            output("record", "start", "--socket", tmp / "socket")
            browser.wait("buscap.model.overview.recordings.length === 1 && document.querySelector('#empty').hidden")
            assert "simulated bus and time" in browser.text("#facts"), browser.text("#facts")


def test_a_search_lists_hits_and_a_click_shows_one(tmp, driver):
    out = record(tmp / "out", source="sim:rate=1M,count=100000,seed=2")
    with Web(out, "--map", "pc") as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()

        def search(text, which="first"):
            browser.driver.execute_script("document.querySelector('#search-text').value = arguments[0]", text)
            browser.click(f"#search [name={which}]")
            browser.wait("!!(buscap.model.search.error || buscap.model.search.hits)", "the search has ended")
            return browser.model("search")

        for text, which, argv in (
                ("100000-1fffff fetch", "first", ("--type", "fetch", "100000-1fffff")), ("write", "last", ("--type", "write",)),
                ("port 20", "first", ("--port", "20")), ("io:20 iowrite", "last", ("--type", "iowrite", "20"))):
            argv = argv if argv[-1][0].isdigit() else (*argv, "0-ffffffff")
            wanted = [json.loads(line) for line in output("find", "--json", f"--{which}", "200", *argv, out).splitlines()]
            assert wanted, text
            equal([hit["number"] for hit in search(text, which)["hits"]], [hit["number"] for hit in wanted], text)
        hit = browser.model("search.hits")[0]
        before = browser.view()
        browser.click("#tab-body tbody button")
        browser.idle()
        start, end = browser.view()
        at = int(browser.js("String(buscap.fromRfc3339(arguments[0]))", hit["time"]))
        assert start <= at <= end and end - start < before[1] - before[0]
        equal(search("deadbeef")["hits"], [])
        browser.wait("document.querySelector('#tab-body').innerText === 'No match for deadbeef.'")
        assert "region=nonsense: no region has this name" in search("nonsense")["error"]
        assert "types of I/O ports are ioread and iowrite" in search("port 20 write")["error"]
        faults = browser.faults()
        assert len(faults) == 2 and all("status of 400" in fault for fault in faults), faults
        for text, argv in (("interrupt controller 1", ()), ("Interrupt Controller 1 iowrite", ("--type", "iowrite"))):
            wanted = output("find", "--json", "--first", "200", "--region", "interrupt controller 1", *argv, out).splitlines()
            assert wanted, text
            equal([hit["number"] for hit in search(text)["hits"]], [json.loads(line)["number"] for line in wanted], text)
        equal(browser.faults(), [])


def test_the_hottest_addresses_are_those_of_the_class_shown(tmp, driver):
    with Web(record(tmp / "out")) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}#tab=addresses").idle()
        firsts = set()
        for column, name in enumerate(("all", "fetch", "read", "write"), 2):
            browser.click(f"#classes .swatch-{name} input")
            browser.wait("document.querySelector('#tab-body caption').innerText.includes(' with ') === (buscap.model.shown !== 'all')")
            rows = browser.js("[...document.querySelectorAll('#tab-body tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))")
            counts = [int(row[column].replace(",", "")) for row in rows]
            assert len(rows) == 20 and min(counts) > 0, rows
            equal(counts, sorted(counts, reverse=True), name)
            firsts.add(rows[0][0])
        assert len(firsts) > 1, firsts


def test_a_search_by_keys_leads_to_its_hits(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    text = "document.querySelector('#search-text').value"
    with Web(record(tmp / "out")) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        browser.press("/", *"write", Keys.ENTER)
        browser.wait("!!(buscap.model.search && buscap.model.search.hits)", "the search has ended")
        browser.press("n", "n", "p")
        assert browser.text("#summary").startswith("1 of 200: "), browser.text("#summary")
        browser.press("/", "s", Keys.ESCAPE, "b")
        equal((browser.js(text), browser.js("buscap.model.markers.b !== null")), ("writes", True))
        equal(browser.faults(), [])


def test_the_box_goes_to_times_records_and_marks(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    out = record_chunks(tmp, 16)  # with the marks "mark 5" and "mark 15"
    wanted = {mark["text"]: mark["time"] for mark in map(json.loads, output("marks", "--json", out).splitlines())
              if mark.get("kind") == "mark"}
    hit = json.loads(output("find", "--json", "--records", "5000", "0-ffffffff", out).splitlines()[0])
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        start, end = browser.view()
        ns = f"String(buscap.fromRfc3339('{hit['time']}'))"
        number = int(browser.js(ns))
        browser.driver.execute_script("document.querySelector('#timeline').focus()")
        browser.press("+", "+")
        for words, time in (("#5,000", number), (hit["time"], number), (hit["time"][:-1].replace("T", " ") + " UTC", number),
                            (hit["time"][11:-1], number), ("mark 15", int(browser.js("String(buscap.fromRfc3339(arguments[0]))", wanted["mark 15"]))),
                            ("+12.5 ms", start + 12500000), ("+ 0.1s", start + 100000000)):
            span = end - start >> 6
            browser.js("buscap.show({...buscap.model.view, from: BigInt(arguments[0]), to: BigInt(arguments[1])})", str(start), str(start + span))
            browser.idle()
            browser.js("document.querySelector('#search-text').value = ''")
            browser.chord(Keys.CONTROL, "g")
            browser.press(*words, Keys.ENTER)
            browser.wait("!buscap.model.search || buscap.model.search.hits !== null", "no search is running")
            browser.idle()
            view = browser.view()
            middle = min(max(time, start + (view[1] - view[0]) // 2), end - (view[1] - view[0]) // 2)
            assert abs((view[0] + view[1]) // 2 - middle) <= 1, (words, view, time)
        equal(browser.faults(), [])
        browser.js("document.querySelector('#search-text').value = ''")
        browser.press("g", *"25:00:00", Keys.ENTER)  # no time: it is searched for
        browser.wait("!!(buscap.model.search && buscap.model.search.error)", "an error")
        assert "25:00:00" in browser.js("buscap.model.search.error")


def test_a_range_of_addresses_is_selected_by_the_keyboard(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    out = record(tmp / "out")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        rows, height = browser.model("overview.rows"), browser.js("document.querySelector('#heatmap').getBoundingClientRect().top")
        browser.js("document.querySelector('#heatmap').focus()")
        browser.press(Keys.ARROW_RIGHT)
        for key in (Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP):
            browser.chord(Keys.SHIFT, key)
        cursor = browser.model("cursor")
        first, last = rows[cursor["row"]], rows[cursor["toRow"]]
        equal(cursor["toRow"], cursor["row"] + 2)
        cells = browser.js("buscap.model.overview.columns[buscap.model.cursor.column].cells")
        wanted = sum(sum(cells[i + 1 : i + 5]) for i in range(0, len(cells), 5) if cursor["row"] <= cells[i] <= cursor["toRow"])
        assert f"records {wanted:,}" in browser.text("#summary"), (wanted, browser.text("#summary"))
        browser.press(Keys.ENTER)
        browser.wait("!!(buscap.model.cell && (buscap.model.cell.hits || buscap.model.cell.error))", "its records")
        hits = browser.js("buscap.model.cell.hits")
        assert hits, browser.js("buscap.model.cell.error")
        view = {"placeFrom": first["place"], "placeTo": last["place"] + last["count"] - 1}
        assert {int(hit["addr"], 16) >> 12 for hit in hits} <= {*range(view["placeFrom"], view["placeTo"] + 1)}
        browser.js("document.querySelector('#heatmap').focus()")
        browser.chord(Keys.SHIFT, Keys.ENTER)
        browser.idle()
        equal({name: browser.js(f"buscap.model.view.{name}") for name in view}, view)
        # From the search box.
        for words, places in (("b8000-bffff", (0xB8, 0xBF)), ("0x1000", (1, 1)), ("port 3f8-3ff", ((1 << 20) + 0x3F8, (1 << 20) + 0x3FF))):
            browser.js("document.querySelector('#search-text').value = ''")
            browser.press("/", *words)
            browser.chord(Keys.SHIFT, Keys.ENTER)
            browser.idle()
            equal(tuple(browser.js(f"buscap.model.view.{name}") for name in view), places, words)
        browser.press("/", *" write")
        browser.chord(Keys.SHIFT, Keys.ENTER)
        assert browser.text("#summary").startswith("Shift + Enter shows an address"), browser.text("#summary")
        # Markers do not move the picture.
        browser.press(Keys.ESCAPE, "a", "b")
        browser.wait("buscap.model.measured !== null", "it is measured")
        equal(browser.js("document.querySelector('#heatmap').getBoundingClientRect().top"), height)
        equal(browser.faults(), [])


def test_the_page_that_xdg_open_gets_leads_to_the_page(tmp, driver):
    opener = tmp / "xdg-open"
    opener.write_text(f"#!/bin/sh\necho \"$1\" >{tmp}/half; mv {tmp}/half {tmp}/path\n")
    opener.chmod(0o755)
    record(tmp / "out", source="sim:rate=1M,count=1000,seed=1")
    env = {"XDG_STATE_HOME": str(tmp), "PATH": f"{tmp}:{os.environ['PATH']}"}
    with Web(tmp / "out", "--open", env=env) as web, Tab(driver) as browser:
        wait_until((tmp / "path").exists, "the browser")
        browser.open("file://" + (tmp / "path").read_text().strip())
        browser.wait("location.protocol === 'http:' && window.buscap")
        equal(browser.js("location.search"), f"?token={web.token}")
        equal(web.stop(), 0, web.err)


def test_the_live_view_follows_the_daemon_and_survives_its_end(tmp, driver):
    socket, out = tmp / "socket", tmp / "out"
    options = ("--source", "sim:rate=50k", "-o", out, "-b", "duration:2")
    with Daemon(*options, socket=socket) as daemon:
        daemon.wait_ready()
        with Web("--socket", socket) as web, Tab(driver) as browser:
            url = f"http://{web.host}/?token={web.token}"
            browser.open(url)
            browser.wait("!document.querySelector('#live').hidden && document.querySelector('#daemon').innerText === 'recording'")
            browser.wait("document.querySelector('#live-mix li')")
            browser.wait("!!buscap.model.history", "the history")
            assert "max 0/s" in texts_drawn(browser, "#live-lost canvas")
            assert re.match(r"[\d.]+ % in use", browser.js("document.querySelector('#live-room strong').innerText")), "the buffer"
            browser.wait(r"/^buffer: max [\d.]+ %\nroom for [\d.]+ .*\ndisk: /.test(document.querySelector('#live-room small').innerText)")
            for width, height in ((1400, 900), (1280, 800), (390, 844)):
                browser.resize(width, height)
                browser.wait(f"document.documentElement.clientWidth === {width}")
                equal(browser.js("""[...document.querySelectorAll('.tile, .tile small')].filter((one) => one.scrollHeight > one.clientHeight)
                    .map((one) => one.innerText)"""), [])
                equal(browser.js("""[...document.querySelectorAll('#live-mix li span')].filter((one) => one.scrollWidth > one.clientWidth)
                    .map((one) => one.innerText)"""), [])
                assert browser.js("""document.querySelector('#live-span').getBoundingClientRect().bottom
                    <= document.querySelector('#live-samples strong').getBoundingClientRect().top + 2""")
            old = browser.model("live.status.counts.received")
            browser.wait(f"buscap.model.live.status && buscap.model.live.status.counts.received > {old}")
            browser.wait("buscap.model.history && buscap.model.history.seconds.received_samples.length > 0")
            equal(http(socket, "/v1/marks", "POST", json.dumps({"text": HOSTILE}).encode())[0], 201)
            browser.wait("document.querySelector('#live-events') && document.querySelector('#live-events').innerText.includes('</script>')")
            browser.wait("buscap.model.events && buscap.model.events.events.some((one) => one.kind === 'mark')", "the picture follows")
            equal(daemon.stop(), 0)
            browser.wait("document.querySelector('#daemon').innerText === 'disconnected'")
            assert "since" in browser.text("#notices"), browser.text("#notices")
            with Daemon(*options, socket=socket) as again:
                again.wait_ready()
                browser.wait("document.querySelector('#daemon').innerText === 'recording'")
                browser.wait("document.querySelector('#notices').innerText === ''")
                again.stop()
            equal(browser.js("window.hacked || 0"), 0)
            # The server ends too; another one, with another token, has its port.
            equal(web.stop(), 0)
            browser.wait("document.querySelector('#notices').innerText.includes('buscap web has stopped')")
            with Web(out, "--port", web.port, env={"XDG_STATE_HOME": str(tmp)}) as other:
                browser.wait("document.querySelector('#notices').innerText.includes('open the link')")
                browser.open(url)
                equal(browser.js("document.body.innerText.trim()"), REFUSED.decode().strip())
                equal(browser.open(f"http://{other.host}/?token={other.token}").js("document.title"), "buscap")


def test_the_live_view_says_what_the_flight_recorder_has(tmp, driver):
    socket = tmp / "socket"
    settings = ("--set", "recording.record=flight", "--set", "recording.flight_time=1s")
    with Daemon("--source", "sim:rate=200k", "-o", tmp / "out", *settings, socket=socket) as daemon:
        daemon.wait_ready()
        with Web("--socket", socket) as web, Tab(driver, 1280, 800) as browser:
            browser.open(f"http://{web.host}/?token={web.token}")
            browser.wait(r"/^no recording\nflight [\d.]+ s of 1 s\n[\d.]+ [kM]B\nsimulated bus/.test("
                         "(document.querySelector('#live-state small') || {}).innerText)")
            equal(http(socket, "/v1/recordings", "POST", b"{}")[0], 201)
            browser.wait(r"/records, .*\nsegment 0\nsimulated bus/.test(document.querySelector('#live-state small').innerText)")
            equal(browser.faults(), [])
        daemon.stop()


# Before the scripts of the page: each question for the live view is asked 6 s after the one before, pictures wait, and
# requests of the history can fail.
HELD = """(() => {
    const {fetch} = window, {now} = Date;
    Object.assign(window, {polls: 0, pictures: 0, waiting: []});
    Date.now = () => now() + 6000 * window.polls;
    window.fetch = async (path, options) => {
        if (path.startsWith("data/live")) {
            window.polls += 1;
            await new Promise((go) => setTimeout(go, 100)); // each poll draws the page
        }
        if (path.startsWith("data/overview")) {
            window.pictures += 1;
            await (window.waiting && new Promise((go) => window.waiting.push(go)));
        }
        if (path.startsWith("data/history") && window.failures !== undefined) {
            window.failures += 1;
            throw new TypeError("failed");
        }
        return fetch(path, options);
    };
})();"""


def test_a_live_page_waits_for_slow_pictures_follows_what_is_recorded_and_keeps_the_focus(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    socket = tmp / "socket"
    with Daemon("--source", "sim:rate=2k", "-o", tmp / "out", "-b", "duration:1", socket=socket) as daemon:
        daemon.wait_ready()
        with Web("--socket", socket) as web, Tab(driver, 800, 600) as browser:
            browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": HELD})
            browser.open(f"http://{web.host}/?token={web.token}")

            def wait_polls():
                browser.wait(f"window.polls > {browser.js('window.polls') + 2}", "the live view is asked for")

            def wait_follows(what):
                browser.wait(f"buscap.model.view.to > {browser.view()[1]}n", what)

            wait_polls()
            equal(browser.js("window.pictures"), 1)
            browser.driver.execute_script("window.waiting.forEach((go) => go()); window.waiting = null")
            browser.idle()
            wait_follows("the picture follows")
            browser.wait("document.querySelector('#summary').ariaLive === 'off'", "that is not announced")

            browser.drag("#timeline", (LEFT + 100, 80), (LEFT + 500, 80))
            equal(browser.js("document.querySelector('#summary').ariaLive"), "polite")
            zoomed = browser.view()
            browser.click("#tab-recordings")
            browser.driver.execute_script("window.button = document.querySelector('#tab-body button'); window.button.focus()")
            wait_polls()
            equal((browser.view(), browser.js("document.activeElement === window.button")), (zoomed, True))
            browser.press(Keys.HOME)
            wait_follows("the picture follows after Home")
            browser.press(Keys.BACKSPACE)
            equal(browser.view(), zoomed)
            browser.press(Keys.BACKSPACE)
            wait_follows("the picture follows after Back")
            browser.wait("!!buscap.model.history", "the history")
            browser.driver.execute_script("window.failures = 0")
            browser.wait("window.failures > 1", "the history is asked for again")
            assert browser.model("history"), "the old one is still shown"
            equal([fault for fault in browser.faults() if "data/history" not in fault], [])

            equal(web.stop(), 0)
            browser.wait("document.querySelector('#daemon').innerText === 'disconnected'")
            assert browser.js("document.querySelector('#live').classList.contains('stale')")
            daemon.stop()


# Before the scripts of the page: the daemon's events never arrive.
WITHOUT_EVENTS = """(() => {
    const {fetch} = window;
    window.fetch = async (path, options) => {
        const response = await fetch(path, options);
        return path.startsWith("data/live") ? new Response(JSON.stringify({...await response.json(), events: []})) : response;
    };
})();"""


def test_losses_that_the_daemon_has_not_reported_yet_are_exact_too(tmp, driver):
    socket = tmp / "socket"
    with Daemon("--source", "sim:rate=200k,loss=0.1", "-o", tmp / "out", socket=socket) as daemon:
        daemon.wait_ready()
        with Web("--socket", socket) as web, Tab(driver) as browser:
            browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WITHOUT_EVENTS})
            browser.open(f"http://{web.host}/?token={web.token}#window=10s").idle()
            gaps = "buscap.model.overview.recordings.reduce((sum, one) => sum + one.gaps, 0)"
            browser.wait(f"{gaps} > 0 && !buscap.model.isLoading", "a loss")
            browser.driver.execute_script("""window.texts = [];
                const facts = document.querySelector("#facts");
                new MutationObserver(() => texts.push(facts.innerText)).observe(facts, {subtree: true, childList: true, characterData: true});""")
            for _ in range(3):
                browser.wait(f"{gaps} > {browser.js(gaps)}", "another")
            browser.wait("texts.length > 1")
            equal([text for text in browser.js("texts") if "at least" in text], [])
        daemon.stop()


# Before the scripts of the page: a poll takes a second of the page's clock, at once. Each mix has 100 writes more while
# window.step is 1, on top of a million fetches; at -1 the daemon is another one.
MIXES = """(() => {
    const {fetch, setTimeout} = window;
    let seconds = 0, writes = 0;
    Object.assign(window, {step: 1, polls: 0});
    Date.now = () => 1e12 + 1000 * seconds;
    window.setTimeout = (run, ms, ...rest) => setTimeout(run, Math.min(ms, 20), ...rest);
    window.fetch = async (path, options) => {
        const response = await fetch(path, options);
        if (!path.startsWith("data/live")) {
            return response;
        }
        const live = await response.json();
        seconds += 1;
        writes += window.step > 0 ? 100 : 0;
        const types = window.step < 0 ? {MEMREAD: 60, INTA: 20} : {FETCH: 1e6, MEMWRITE: writes};
        live.mix = {sampled_records: Object.values(types).reduce((a, b) => a + b), types, memory_requests: 4,
            pages: [{addr: "0x00100000", requests: 3, name: null},
                {addr: "0x00200000", requests: 1, name: "that\u202e"}]};
        window.polls += 1;
        return new Response(JSON.stringify(live));
    };
})();"""


def test_the_mix_is_of_the_last_ten_seconds_and_pages_have_their_own_names(tmp, driver):
    (tmp / "map").write_text("0-ffffffff everything\n")
    socket = tmp / "socket"
    with Daemon("--source", "sim:rate=20k", "-o", tmp / "out", socket=socket) as daemon:
        daemon.wait_ready()
        with Web("--socket", socket, "--map", tmp / "map") as web, Tab(driver) as browser:
            browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": MIXES})
            browser.open(f"http://{web.host}/?token={web.token}")

            def wait_mix(*shares):
                shown = "[...document.querySelectorAll('#live-mix li')].map((one) => one.lastChild.innerText).join()"
                browser.wait(f"{shown} === '{','.join(f'{share} %' for share in shares)}'", f"a mix of {shares}")

            wait_mix("0.0", "0.0", "100.0", "0.0")
            browser.wait("window.polls > 20")
            browser.driver.execute_script("window.step = 0")
            fetches = "document.querySelector('#live-mix li').lastChild.innerText"
            browser.wait(f"parseFloat({fetches}) > 50", "all since the start")
            browser.driver.execute_script("window.step = -1")
            wait_mix("0.0", "75.0", "0.0", "25.0")
            browser.wait("buscap.model.overview && buscap.model.overview.rows.some((row) => row.name === 'everything')")
            browser.wait(f"window.polls > {browser.js('window.polls') + 2}")
            rows = browser.js("""[...document.querySelectorAll('#live-pages li')].map((li) =>
                [...li.children].map((one) => one.innerText))""")
            equal(rows, [["00100000", "", "75.0 %"], ["00200000", "that\ufffd", "25.0 %"]])
            equal(browser.faults(), [])
        daemon.stop()


def test_a_report_shows_hostile_texts_as_text_and_loads_nothing(tmp, driver):
    socket, out = tmp / "socket", tmp / "out"
    (tmp / "names").write_text(f"0-ffffffff {HOSTILE.split(chr(0x202e))[0][:60]}\n")
    with Daemon("--source", "sim:rate=100k", "-o", out, "--set", "recording.record=on-demand", socket=socket) as daemon:
        daemon.wait_ready()
        start = {"label": "x.y", "metadata": {"note": HOSTILE}}
        equal(http(socket, "/v1/recordings", "POST", json.dumps(start).encode())[0], 201)
        wait_until(lambda: json.loads(http(socket, "/v1/status")[1])["counts"]["received"] > 20000, "records")
        for text in (HOSTILE, "plain"):
            equal(http(socket, "/v1/marks", "POST", json.dumps({"text": text}).encode())[0], 201)
        equal(http(socket, "/v1/recordings/current", "DELETE")[0], 200)
        daemon.stop()
    output("report", "-o", tmp / "run.html", "--map", tmp / "names", out)
    with Tab(driver, theme="dark") as browser:
        browser.open(f"file://{tmp}/run.html").idle()
        overview = browser.model("overview")
        equal([event["text"] for event in browser.model("events.events") if event["kind"] == "mark"], [HOSTILE, "plain"])
        shown = HOSTILE.replace("\u202e", "\ufffd").replace("\x01", "\u2401").replace("\x1b", "\u241b")
        for tab, text in (("events", shown), ("recordings", f"note={shown}"), ("addresses", "</script><script>")):
            browser.click(f"#tab-{tab}")
            assert text in browser.text("#tab-body"), browser.text("#tab-body")
        equal(browser.js("document.querySelectorAll('img, script').length"), 2)  # the report's data and the page's script
        equal(browser.js("window.hacked || 0"), 0)
        check_pixels(browser, random.Random(3))
        before = browser.view()
        browser.press("+", "+", "+")
        assert abs((browser.view()[1] - browser.view()[0]) * 8 - (before[1] - before[0])) <= 8
        equal(browser.model("overview"), overview)
        assert browser.js("document.querySelector('#search').hidden")
        equal(browser.js("performance.getEntriesByType('resource').map((one) => one.name)"), [])
        # A long text is within its cell, also if there are others after it.
        browser.driver.execute_script("""buscap.model.overview.recordings.push(buscap.model.overview.recordings[0]);
            buscap.model.events.events[0].text = "x".repeat(200)""")
        browser.click("#tab-events")
        equal(browser.js("[...document.querySelectorAll('#tab-body td')].filter((one) => one.scrollWidth > one.clientWidth).length"), 0)
        equal(browser.faults(), [])


def test_ports_have_room_next_to_thousands_of_pages(tmp, driver):
    rng = random.Random(1)
    stream = b""
    for sequence in range(10):
        frame = [(rng.randrange(8000) << 12, 0xFF, 8 << 4, 300) for _ in range(2000)] + [(port, 0xFE, 5 << 4, 300) for port in (0x20, 0x70, 0x3F8)]
        stream += reference.encode_header(0, 0, sequence, len(frame), 1000, 0) + reference.encode_payload(frame)
    (tmp / "stream").write_bytes(stream)
    output("report", "-o", tmp / "run.html", record(tmp / "out", source=f"file:{tmp}/stream,format=bcp1,clock_hz=66000000"))
    with Tab(driver) as browser:
        browser.open(f"file://{tmp}/run.html").idle()
        rows = browser.model("overview.rows")
        assert len(rows) > 500, len(rows)
        boxes = browser.js("buscap.model.overview.rows.map((row, i) => buscap.cellPixels(0, i))")
        ports = [box for row, box in zip(rows, boxes) if row["place"] >= page_reference.PORT_0]
        assert [box["height"] for box in ports] == [13] * 3, ports
        equal(boxes[-1]["y"] + boxes[-1]["height"] <= browser.js("document.querySelector('#heatmap').clientHeight"), True)

        # In the timeline, columns without a rate are low, and those of which not all is counted have a grey top.
        columns = browser.model("overview.columns")
        assert len(columns) > 3, len(columns)
        browser.driver.execute_script("""const {columns} = buscap.model.overview;
            columns[1].duration_ns = 1;
            columns[2].uncounted = 1""")
        browser.redraw()
        colours, box = browser.js("buscap.currentColours()"), browser.js("[1, 2].map((column) => buscap.cellPixels(column, 0).x)")
        pixel = """((x, y) => d3.rgb(...document.querySelector("#timeline canvas").getContext("2d").getImageData(x, y, 1, 1).data).hex())"""
        drawn = [browser.js(f"{pixel}({x}, {y})") for x, y in ((box[0], 125), (box[0], 134), (box[1], 24))]
        equal((drawn[0], drawn[2]), (colours["paper"], colours["dim"]))
        assert drawn[1] in colours["classes"], drawn


def test_missing_segments_are_hatched_named_and_counted(tmp, driver):
    out = record(tmp / "out", "-b", "filesize:200K", source="sim:rate=max,count=700000,seed=1")
    firsts = {path: reference.read_segment(path).chunks[0].info["first_record"] for path in segments(out)}
    paths = list(firsts)
    assert len(paths) >= 7, paths
    for path in (paths[0], *paths[3:5]):
        path.unlink()
    missing = f"{firsts[paths[5]] - firsts[paths[3]]:,} records missing"
    hatch = """(([id, x, y, width, height]) => {
        const ratio = window.devicePixelRatio || 1;
        const {data} = document.querySelector(`${id} canvas`).getContext("2d").getImageData(x * ratio, y * ratio, width * ratio, height * ratio);
        const found = new Set();
        for (let i = 0; i < data.length; i += 4) {
            found.add(d3.rgb(data[i], data[i + 1], data[i + 2]).hex());
        }
        return [...found];
    })"""
    with Web(out) as web, Tab(driver) as browser:
        done = run(BUSCAP, "report", "-o", tmp / "run.html", out)
        equal(done.returncode, 3, done.stderr)
        for link in (f"file://{tmp}/run.html", f"http://{web.host}/?token={web.token}"):
            browser.open(link).idle()
            (hole,) = [i for i, column in enumerate(browser.model("overview.columns")) if column["is_hole"]]
            box = browser.js(f"buscap.cellPixels({hole}, 0)")
            assert box["width"] > 50, box
            colours = browser.js("buscap.currentColours()")
            # The heat map has only hatching there; the timeline, a label too.
            for where in (["#heatmap", box["x"] + 2, 10, box["width"] - 4, 40], ["#timeline", box["x"] + 2, 30, 16, 40]):
                found = browser.js(f"{hatch}({json.dumps(where)})")
                assert colours["gap"] in found and colours["paper"] in found, (where, found)
                assert not {*colours["heat"][1:], *colours["classes"]} & set(found), (where, found)
            assert any(missing in text for text in texts_drawn(browser, "#timeline canvas")), texts_drawn(browser, "#timeline canvas")
            assert missing in browser.text("#facts") and f"starts at record {firsts[paths[1]]:,}" in browser.text("#facts")
            equal(browser.text("#notices"), f"{missing}: segments 3 to 4 are not here.")
            equal(totals_on_page(browser)["all"], sum(one["records"] for one in browser.model("overview.recordings")))
            browser.click("#tab-recordings")
            assert f"{missing}: segments 3 to 4 are not here" in browser.text("#tab-body")
            equal(browser.faults(), [])


def ns_of(text):
    seconds, fraction = text.removesuffix("Z").split(".")
    return int(datetime.datetime.fromisoformat(seconds + "+00:00").timestamp()) * 10**9 + int(fraction)


def test_more_events_than_are_fetched_at_once_are_shown_where_the_view_has_fewer(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    frame = reference.encode_payload([(0x100000, 0xFF, 8 << 4, 300)])
    stream = b"".join(reference.encode_header(reference.LOSS, 0, i, 1, 1000 + 300 * i, 1) + frame for i in range(12_000))
    (tmp / "stream").write_bytes(stream)
    out = record(tmp / "out", source=f"file:{tmp}/stream,format=bcp1,clock_hz=66000000")
    marks = [json.loads(line) for line in output("marks", "--json", out).splitlines()]
    equal(len(marks), 12_000)
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        browser.click("#tab-events")
        assert browser.text("#tab-body").startswith("10,000 events; there are more, which are not shown"), browser.text("#tab-body")
        browser.click("#tab-totals")  # cheaper than thousands of rows at each key
        browser.js("document.querySelector('#timeline').focus()")
        browser.press("+", "+")
        for _ in range(2):
            browser.press(*8 * [Keys.ARROW_RIGHT])  # to the end
            start, end = browser.view()
            events = browser.js("buscap.model.events.events.map((event) => event.record)")
            inside = [mark["number"] for mark in marks if start <= ns_of(mark["time"]) <= end]
            assert inside[-1] == 11_999 and len(inside) > 1000, inside
            equal(events, inside)
            browser.click("#tab-events")
            assert f"{len(inside):,} events in this view" in browser.text("#tab-body")
            browser.click("#tab-totals")
            browser.press("+")
        browser.press(Keys.HOME)
        equal(browser.model("events.events.length"), 10_000)
        equal(browser.faults(), [])


def test_events_are_those_of_the_recordings_that_are_there(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    def check_events():
        listed = [json.loads(line) for line in output("marks", "--json", out).splitlines()]
        origin = int(browser.model("overview.origin_ns"))
        names = [one["id"] for one in browser.model("overview.recordings")]
        events = browser.model("events.events")
        equal([(origin + event["time"], event["record"], names[event["recording"]]) for event in events],
              [(ns_of(event["time"]), event["number"], event["recording"]) for event in listed])
        return len(events)

    out = record(tmp / "out", "--label", "a", source="sim:rate=1M,count=60000,loss=0.2")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        before = check_events()
        # Another is added: Home fetches it, also where everything is in view. Then the first is deleted while the second is in view.
        record(out, "--label", "b", source="sim:rate=1M,count=60000,loss=0.2,seed=2")
        browser.js("document.querySelector('#timeline').focus()")
        browser.press(Keys.HOME)
        browser.wait("buscap.model.overview.recordings.length === 2")
        browser.idle()
        assert check_events() > before > 0
        browser.press(*4 * ["+"], *20 * [Keys.ARROW_RIGHT])
        for path in segments(out):
            if "-a-" in path.name:
                path.unlink()
        browser.press("+")
        browser.wait("buscap.model.overview.recordings.length === 1")
        browser.idle()
        check_events()
        browser.click("#tab-events")
        browser.press(Keys.HOME)
        check_events()
        equal(browser.faults(), [])


def test_a_report_of_a_part_opens_on_it(tmp, driver):
    out = record(tmp / "out", source="sim:rate=max,count=300000,agents=2,loss=0.05,seed=1")
    output("report", "-o", tmp / "run.html", "--from", "+100ms", "--to", "+150ms", out)
    with Tab(driver) as browser:
        browser.open(f"file://{tmp}/run.html").idle()
        overview = browser.model("overview")
        origin = int(overview["origin_ns"])
        equal(browser.view(), (origin + overview["from"], origin + overview["to"]))
        assert overview["from"] == 100_000_000 and overview["to"] - overview["from"] < 50_000_001, overview["extent"]
        assert "a part of" in browser.text("#range"), browser.text("#range")
        browser.press("-")
        equal(browser.view(), (origin + overview["from"], origin + overview["to"]))


def test_a_zoom_to_a_column_counts_only_that(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    frame = reference.encode_payload([(0x100000 + 8 * i, 0xFF, 8 << 4, 300) for i in range(2000)])
    (tmp / "stream").write_bytes(reference.encode_header(0, 0, 0, 2000, 1000, 0) + frame)
    out = record(tmp / "out", source=f"file:{tmp}/stream,format=bcp1,clock_hz=66000000")
    output("report", "-o", tmp / "run.html", out)
    with Tab(driver) as browser:
        browser.open(f"file://{tmp}/run.html").idle()
        columns = browser.model("overview.columns")
        equal(totals_on_page(browser)["all"], 2000)
        for i in (0, 1, len(columns) // 2, len(columns) - 2, len(columns) - 1):
            browser.js("buscap.setCursor({column: arguments[0], row: 0})", i)
            browser.js("document.querySelector('#heatmap').focus()")
            browser.press(Keys.ENTER)
            assert browser.view()[1] - browser.view()[0] <= columns[i]["to"] - columns[i]["from"], i
            equal(totals_on_page(browser)["all"], columns[i]["records"], f"column {i}")
            browser.press(Keys.HOME)
        equal(totals_on_page(browser)["all"], 2000)


def test_a_loss_is_unknown_if_a_gap_of_the_recording_is_not_exact(tmp, driver):
    frame = reference.encode_payload([(0x100000, 0xFF, 8 << 4, 1000)] * 10)

    def recorded(name, *frames):
        headers = (reference.encode_header(reference.LOSS if lost else 0, 0, sequence, 10, 1_000_000 * i, lost)
                   for i, (sequence, lost) in enumerate(frames))
        (tmp / name).write_bytes(b"".join(header + frame for header in headers))
        return record(tmp / f"{name}.out", source=f"file:{tmp / name},format=bcp1,clock_hz=66000000")

    known = recorded("known", (0, 0), (1, 3185), (2, 0))
    unknown = recorded("unknown", (0, 0), (2, 0))
    with Tab(driver) as browser:
        for out, argv, lost, here in (
                (known, (), "3,185 lost", "3,185 samples lost here."),
                (known, ("--from", "+20ms"), "3,185 lost", "No samples lost here."),
                (unknown, (), "unknown number lost", "Unknown number of samples lost here.")):
            output("report", "-o", tmp / "run.html", *argv, out)
            browser.open(f"file://{tmp}/run.html").idle()
            equal(browser.js("document.querySelector('#facts').lastChild.innerText"), lost)
            browser.click("#tab-totals")
            equal(browser.js("document.querySelector('#tab-body .note').innerText"), here)


def test_empty_tiny_and_damaged_recordings_are_shown_on_any_screen_and_on_paper(tmp, driver):
    run(BUSCAP, "sim", "--count", "1", "-O", "bcp1", "-o", tmp / "one.bcp1")
    one = record(tmp / "one", source=f"file:{tmp}/one.bcp1,clock_hz=66000000")
    unknown = record(tmp / "unknown", source=f"file:{tmp}/one.bcp1")
    many = record(tmp / "many", "-b", "filesize:16K", source="sim:rate=max,count=50000")
    for label in ("a", "b"):
        record(many, "--label", label, source="sim:rate=max,count=5000")
    damaged = tmp / "damaged"
    shutil.copytree(many, damaged)
    victim = segments(damaged)[0]
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    (tmp / "empty").mkdir()
    with Tab(driver) as browser:
        screens = ((1400, 900, "light"), (390, 844, "dark"))
        cases = itertools.product((tmp / "empty", one, unknown, many, damaged), screens)
        for directory, (width, height, theme) in harness.some(cases, 3):
            with Web(directory) as web:
                where = f"{directory.name} {width} {theme}"
                browser.resize(width, height)
                browser.set_theme(theme)
                browser.open(f"http://{web.host}/?token={web.token}").idle()
                assert browser.js("document.documentElement.scrollWidth") <= width, where
                equal(browser.js("buscap.currentColours().isDark"), theme == "dark")
                overview = browser.model("overview")
                equal(sum(totals_on_page(browser).values()), 2 * sum(sum(c["counts"]) for c in overview["columns"]), where)
                if directory.name == "empty":
                    assert "no recordings" in browser.text("#empty")
                else:
                    equal(overview["recordings"][0]["records"] > 0, True)
                    equal(browser.js("document.querySelector('#recording-label').hidden"), len(overview["recordings"]) == 1)
                if directory in (one, unknown):
                    equal((totals_on_page(browser)["all"], browser.text("#facts").count("1 record")), (1, 1))
                    equal(len(browser.model("records.hits")), 1)
                    texts = texts_drawn(browser, "#timeline canvas")
                    assert {"records", "0", "1"} <= {*texts} and any(text.endswith("+") for text in texts), (where, texts)
                if directory in (many, damaged):
                    # On paper: light and of one size, whatever the screen.
                    sizes = "[...document.querySelectorAll('.plot:not([hidden]) canvas')].map((one) => [one.clientWidth, one.width, one.clientHeight, one.height])"
                    before = browser.js(sizes)
                    browser.driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
                    equal(browser.js("buscap.currentColours().isDark"), False)
                    equal(browser.js(sizes), [[960, 2880, 160, 480], [960, 2880, 290, 870]])
                    browser.driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
                    browser.idle()
                    equal(browser.js(sizes), before)
                    for name, is_dark in (("light", False), ("dark", True)):
                        browser.driver.execute_script("""const s = document.querySelector('#theme'); s.value = arguments[0];
                            s.dispatchEvent(new Event('change'))""", name)
                        equal(browser.js("buscap.currentColours().isDark"), is_dark)
                equal(browser.faults(), [], where)
                browser.open("about:blank")  # before the server ends


def test_records_of_a_damaged_chunk_are_not_said_to_be_missing_from_the_bus(tmp, driver):
    frame = reference.encode_payload([(0x100000, 0xFF, 8 << 4, 300)] * 100)
    headers = [reference.encode_header(0, 0, i, 100, 1_000_000 * i, 0) for i in range(3)]
    (tmp / "stream").write_bytes(b"".join(header + frame for header in headers))
    out = record(tmp / "out", source=f"file:{tmp}/stream,format=bcp1,clock_hz=66000000")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()

        def pauses():
            return [text for text in texts_drawn(browser, "#timeline canvas") if re.search("no records|not counted", text)]

        equal(len(pauses()), 2)
        # As if the records in the middle were those of a damaged chunk, which the clock of day places before the last ones
        # of the chunk before it.
        browser.driver.execute_script("""const {columns} = buscap.model.overview;
            const middle = columns.filter((one) => one.first_record >= 100 && one.first_record < 200);
            Object.assign(middle[0], {uncounted: 100, records: 100, counts: [0, 0, 0, 0], cells: []});
            columns.splice(columns.indexOf(middle[0]) + 1, middle.length - 1);
            columns.splice(columns.indexOf(middle[0]) + 1, 0, {...columns[0], from: middle[0].to + 1e5, to: middle[0].to + 2e5});""")
        browser.redraw()
        before, after = pauses()
        equal((before[:14], after), ("no records for", "100 records not counted"))
        equal(browser.faults(), [])


def test_a_pause_of_one_host_is_not_drawn_over_the_records_of_another(tmp, driver):
    (tmp / "lab").mkdir()
    for host, count, seconds in (("busy", 110, 1), ("calm", 4, 20)):
        (tmp / host).write_bytes(b"".join(struct.pack("<I4BI", 0x60, 0x10, 1, 0, 0, seconds * 10_000_000) for _ in range(count)))
        record(tmp / "lab" / host, source=f"file:{tmp / host},format=byu,clock_hz=10000000")
    with Tab(driver) as browser:
        for directory, pauses in ((tmp / "lab" / "calm", 3), (tmp / "lab", 0)):
            with Web(directory) as web:
                browser.open(f"http://{web.host}/?token={web.token}").idle()
                texts = [text for text in texts_drawn(browser, "#timeline canvas") if text.startswith("no records for")]
                equal(len(texts), pauses, texts)
                browser.open("about:blank")


def test_a_chosen_recording_is_named_while_a_part_of_it_is_shown(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    out = tmp / "out"
    for label in ("a", "b", "c"):
        record(out, "--label", label, source="sim:rate=max,count=5000")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        chosen = "((one) => one.options[one.selectedIndex].text)(document.querySelector('#recording'))"
        equal((browser.js(chosen), "15,000 records" in browser.text("#facts")), ("All 3 recordings", True))
        browser.driver.execute_script("""const one = document.querySelector('#recording'); one.value = '1';
            one.dispatchEvent(new Event('change'))""")
        browser.idle()
        for key in ("", "+", "+", Keys.ARROW_RIGHT, "-"):
            browser.press(key)
            equal((browser.js(chosen), "5,000 records" in browser.text("#facts")), ("b", True), key)
        browser.press("-")
        browser.press("-")
        equal(browser.js(chosen), "All 3 recordings", "a view of several")
        browser.press(Keys.HOME)
        equal(browser.js(chosen), "All 3 recordings")
        host = browser.model("overview.recordings")[0]["host"]
        browser.driver.execute_script("buscap.model.overview.recordings[1].host = 'other'")
        browser.click("#tab-recordings")
        equal(browser.js("[...document.querySelectorAll('#tab-body tbody tr')].map((row) => row.cells[0].innerText)"),
              [f"a ({host})", "b (other)", f"c ({host})"], "of several hosts")
        equal(browser.faults(), [])


def test_times_and_views_are_exact(tmp, driver):
    one = record(tmp / "one", source="sim:rate=max,count=100")
    with Web(one) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        noon = 1763630100 * 10**9
        for expression, wanted in (
                (f"buscap.toRfc3339({noon}n)", "2025-11-20T09:15:00.000000000Z"),
                (f"buscap.toRfc3339({noon}n - 1n)", "2025-11-20T09:14:59.999999999Z"),
                ("buscap.toRfc3339(-1n)", "1969-12-31T23:59:59.999999999Z"),
                ("String(buscap.fromRfc3339('2025-11-20T09:15:00.000000001Z'))", str(noon + 1)),
                ("String(buscap.fromRfc3339('2025-11-20T09:15:00Z'))", str(noon)),
                (f"buscap.formatTime({noon}n, 1e9)", "2025-11-20 09:15:00"),
                (f"buscap.formatTime({noon}n + 1234567n, 1e6, false)", "09:15:00.001"),
                (f"buscap.formatTime({noon}n + 1234567n, 1, false)", "09:15:00.001\u2009234\u2009567"),
                *((f"buscap.formatDuration({ns})", text) for ns, text in (
                    (0, "0 ns"), (1, "1 ns"), (999, "999 ns"), (1000, "1 \u00b5s"), (1500, "1.5 \u00b5s"), (12345678, "12.35 ms"),
                    (59.5e9, "59.5 s"), (60e9, "1 min"), (61e9, "1 min 1 s"), (3600e9, "1 h"), (86400e9 * 3 + 3600e9, "3 d 1 h")))):
            equal(browser.js(expression), wanted, expression)
        # Ticks: at most as many as wanted, evenly apart, within the range, and with labels that differ.
        for exponent in range(1, 18):
            for factor in (1, 2.7, 5):
                span = int(factor * 10**exponent)
                axis = browser.js(f"""((axis) => ({{base: axis.base, labels: axis.ticks.map((one) => one.label),
                    at: axis.ticks.map((one) => String(one.ns))}}))(buscap.timeAxis({noon}n + 7n, {noon + 7 + span}n, 8))""")
                at = [int(ns) for ns in axis["at"]]
                assert 1 <= len(at) <= 9 and at[0] >= noon + 7 and at[-1] <= noon + 7 + span, (span, axis)
                equal(len({b - a for a, b in zip(at, at[1:])}) <= 1, True, f"{span}: {axis}")
                assert all(a != b for a, b in zip(axis["labels"], axis["labels"][1:])), f"{span}: {axis}"
        # Zooming in and out about a point keeps the point; the view stays inside of the recording.
        whole = browser.view()
        for share in (0, 0.25, 1):
            view = browser.js(f"((v) => [String(v.from), String(v.to)])(buscap.zoomedView(buscap.model.view, 4, {share}))")
            start, end = map(int, view)
            assert abs((start - whole[0]) + (end - start) * share - (whole[1] - whole[0]) * share) <= 2
            assert whole[0] <= start < end <= whole[1]
        view = browser.js("((v) => [String(v.from), String(v.to)])(buscap.pannedView(buscap.zoomedView(buscap.model.view, 2, 0), -5))")
        equal(int(view[0]), whole[0])
        for text, wanted in (("b8000-BFFFF write", {"addr": "b8000-bffff", "type": "write"}), ("0x100", {"addr": "100"}),
                             ("100-", {"addr": "100-"}), ("port 3f8", {"port": "3f8"}),
                             ("io:3f8-3ff ioread", {"port": "3f8-3ff", "type": "ioread"}), ("inta proc 1", {"type": "inta", "proc": "1"}),
                             ("IDE 1 write", {"region": "IDE 1", "type": "write"}), ("100 200", {"region": "100 200"}),
                             ("Reset_Handler", {"region": "Reset_Handler"}), ("port A data", {"region": "port A data"}),
                             ("port A READ", {"port": "a", "type": "read"}), ("io: 3F8", {"port": "3f8"}),
                             ("proc stack", {"region": "proc stack"}), ("proc=2 0X1000", {"proc": "2", "addr": "1000"})):
            equal(browser.js("buscap.parseQuery(arguments[0])", text), wanted, text)


def test_the_address_restores_the_view_and_the_theme_is_remembered(tmp, driver):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    def shown():
        return (browser.view(), *browser.js("[buscap.model.view.placeFrom, buscap.model.view.placeTo, buscap.model.shown, buscap.model.tab,"
                                            " buscap.model.search && buscap.model.search.text]"))

    out = record(tmp / "out")
    with Web(out) as web, Tab(driver) as browser:
        url = f"http://{web.host}/?token={web.token}"
        browser.open(url).idle()
        whole = shown()
        width = browser.js("document.querySelector('#timeline').clientWidth") - LEFT - RIGHT
        boxes = browser.js("buscap.model.overview.rows.map((row, i) => buscap.cellPixels(0, i))")
        browser.drag("#heatmap", (LEFT + 20, boxes[0]["y"] + 1), (LEFT + width // 2, boxes[len(boxes) // 2]["y"] + 1))
        browser.click("#classes .swatch-write input")
        browser.driver.execute_script("document.querySelector('#search-text').value = 'write'")
        browser.click("#search [name=last]")
        browser.wait("!!buscap.model.search.hits")
        browser.click("#tab-events")
        # The button's text is what a paste gives.
        ActionChains(driver, duration=0).click(driver.find_element(By.CSS_SELECTOR, "[data-act=copyLink]")).click(
            driver.find_element(By.ID, "search-text")).key_down(Keys.CONTROL).send_keys("av").key_up(Keys.CONTROL).perform()
        link = browser.js("document.querySelector('#search-text').value")
        equal(link, browser.js("location.href"))
        browser.driver.execute_script("const s = document.querySelector('#theme'); s.value = 'dark'; s.dispatchEvent(new Event('change'))")
        part = shown()
        assert all(one != other for one, other in zip(part, whole) if other not in (0, None)) and part[3:] == ("write", "events", "write")
        browser.driver.refresh()
        browser.idle()
        equal((shown(), browser.js("document.querySelector('#theme').value")), (part, "dark"), "a reload")
        equal(browser.js("buscap.currentColours().isDark"), True)
        for _ in range(2):  # the second is not back to another page
            browser.js("document.querySelector('#timeline').focus()")
            browser.press(Keys.BACKSPACE)
            equal(browser.view(), whole[0], "back")
        browser.driver.forward()
        browser.idle()
        equal(shown(), part, "forward")
        # Outside of the recordings, and nonsense.
        browser.open("about:blank")
        browser.open(f"{url}#from=2001-01-01T00:00:00Z&to=2001-01-01T00:00:00.01Z&places=x-y&class=z&tab=constructor").idle()
        equal(shown(), ((whole[0][0], whole[0][0] + 10_000_000), *whole[1:]))
        # A search in view needs one.
        times = "from={}&to={}&".format(*browser.js("[buscap.model.view.from, buscap.model.view.to].map(buscap.toRfc3339)"))
        for text, is_limited in ((times, True), ("", False)):
            browser.open("about:blank")
            browser.open(f"{url}#{text}q=write&in=view").idle()
            browser.wait("!!buscap.model.search.hits")
            equal(browser.js("[document.querySelector('#search-limit').checked, buscap.model.search.isLimited]"), [is_limited] * 2, text)
        equal(browser.faults(), [])


def test_processors_are_shown_apart_or_alone_with_the_counts_of_stats(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    @functools.cache
    def stats(proc):
        rows = json.loads(output("stats", "--json", "--full", "--proc", proc, *segments(out)))["types"]
        return [sum(row["references"] for row in rows if CLASSES.get(row["name"], "other") == name)
                for name in ("fetch", "read", "write", "other")]

    names = ["processor 0", "processor 1", "processor 2"]
    out = record(tmp / "out", source="sim:rate=1M,count=30000,agents=3,seed=1")
    output("report", "-o", tmp / "run.html", out)
    with Web(out) as web, Tab(driver) as browser:
        url = f"http://{web.host}/?token={web.token}"
        browser.open(url).idle()
        equal(browser.text("#processors").split("\n")[1:], ["all processors", "each", "0", "1", "2"])
        browser.driver.execute_script("document.querySelector('#processors input:checked').focus()")
        browser.press(Keys.ARROW_RIGHT)  # each
        for selector in ("#timeline canvas", "#heatmap canvas"):
            equal([text for text in texts_drawn(browser, selector) if text.startswith("processor")], names)
        browser.click("#tab-totals")
        rows = browser.js("[...document.querySelectorAll('.table:nth-child(2) tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))")
        equal([(row[0], *(int(text.replace(",", "")) for text in row[3:])) for row in rows],
              [(name, *stats(name[-1])) for name in names])

        # What is under the pointer, and the records of a cell, are those of its track: others have some there too.
        overview = browser.model("overview")
        places = {(row["place"], row["track"]): i for i, row in enumerate(overview["rows"])}
        number, row, wanted = next(
            (number, row, sum(column["cells"][5 * at + 1 : 5 * at + 5])) for number, column in enumerate(overview["columns"])
            for at, row in enumerate(column["cells"][::5]) if overview["rows"][row]["track"] == 1
            and places.get((overview["rows"][row]["place"], 0)) in column["cells"][::5])
        box = browser.js("buscap.cellPixels(...arguments)", number, row)
        lines = tip(browser, "#heatmap", box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        equal((lines["track"], lines["records"]), ("processor 1", f"{wanted:,}"))
        height = browser.js("document.querySelector('#timeline').clientHeight")
        x = box["x"] + box["width"] / 2
        equal([tip(browser, "#timeline", x, y).get("track") for y in (30, height // 2, height - 30)], names)
        browser.driver.execute_script("document.querySelector('#heatmap').focus(); buscap.setCursor({column: arguments[0], row: arguments[1]})", number, row)
        browser.press(Keys.ENTER)
        browser.wait("!!(buscap.model.cell && buscap.model.cell.hits)")
        equal(browser.js("buscap.model.cell.hits.map((hit) => hit.proc)"), [1] * wanted)

        # Alone, and from the address.
        browser.click("#processors input[value='2']")
        browser.idle()
        assert "processor 2" in browser.text("#range")
        check_pixels(browser, random.Random(2))
        equal(browser.js("new URLSearchParams(location.hash.slice(1)).get('proc')"), "2")
        for page, proc, wanted, notice in ((url, "2", "2", ""), (f"file://{tmp}/run.html", "1", "1", ""), (url, "each", "each", ""),
                                           (url, "9", "all", r"This link shows processor 9; .* 0, 1, 2\.")):
            browser.open("about:blank")
            browser.open(f"{page}#proc={proc}").idle()
            equal((browser.model("proc"), browser.js("document.querySelector('#processors input:checked').value")), (wanted, wanted), page)
            assert re.fullmatch(notice, browser.text("#notices")), browser.text("#notices")
            if wanted.isdigit():
                equal(list(totals_on_page(browser).values()), [*stats(wanted), sum(stats(wanted))])
        equal(browser.faults(), [])


def test_processors_of_too_many_records_are_shown_together(tmp, driver):
    """Each of the chunks counts as 4,096 of 16 million records."""
    (tmp / "bus").write_bytes(b"".join(reference.encode_header(0, i % 2, i, 2, 1000, 0) + reference.encode_payload([(0x1000, 0, 8 << 4, 9)] * 2)
                                       for i in range(4200)))
    out = record(tmp / "out", source=f"file:{tmp}/bus,format=bcp1,clock_hz=66000000")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}#proc=1").idle()
        assert "All processors are shown: this view has too many records" in browser.text("#notices")
        equal(totals_on_page(browser)["all"], 8400)
        browser.driver.execute_script("document.querySelector('#timeline').focus()")
        browser.press("+")
        equal(browser.text("#notices"), "")
        assert 0 < totals_on_page(browser)["all"] < 4200
        equal(browser.model("overview.tracks"), [{"procs": [1], "text": "1"}])
        equal(browser.faults(), [])


def test_a_link_that_can_not_be_honoured_says_so(tmp, driver):
    """And its times leave the address."""
    ask = "[document.querySelector('#notices').innerText, location.hash]"
    rng = random.Random(50)
    with Web(record(tmp / "out", source="sim:rate=1M,count=100000")) as web, Tab(driver) as browser:
        url = f"http://{web.host}/?token={web.token}"
        browser.open(url).idle()
        start, end = browser.view()
        span = rng.randrange(10**6, 10**7)
        at = rng.randrange(start, end - span)
        links = {
            "before": (start - 2 * span, start - span, r"This link shows .*; the recordings begin at .*\d\."),
            "after": (end + span, end + 2 * span, r"This link shows .*; the recordings end at .*\d\."),
            "around": (start - span, end + span, r"This link shows .*; the recordings begin at .* and end at .*\d\."),
            "cut": (start - span, start + span, r"This link shows .*; the recordings begin at .*\d\."),
            "reversed": (at + span, at, r"This link shows .* to .*: the end is before the start\."),
            "malformed": (at, "2026-13-01T00:00:00Z", r"This link has no valid time: to=2026-13-01T00:00:00Z\."),
            "marker": (at, at + span, r"This link has no valid time: a=soon\."),
            "one": (at, None, r"This link has only one of from and to: from\."),
            "inside": (at, at + span, "")}
        for kind, (*times, wanted) in links.items():
            first, last = (browser.js("buscap.toRfc3339(BigInt(arguments[0]))", str(one)) if isinstance(one, int) else one for one in times)
            link = f"from={first}{f'&to={last}' if last else ''}{'&a=soon' if kind == 'marker' else ''}"
            for is_new in (True, False) if kind in ("cut", "one") else (False,):
                if is_new:
                    browser.open("about:blank")
                    browser.open(f"{url}#{link}").idle()
                else:
                    browser.js("void (location.hash = arguments[0])", link)
                    browser.idle()
                text, shown = browser.js(ask)
                assert re.fullmatch(wanted, text), (kind, text)
                equal(shown == f"#{link}", kind == "inside", (kind, shown))
                view = list(browser.view())
                assert start <= view[0] < view[1] <= end, (kind, view)
                left = dict(part.split("=") for part in shown.lstrip("#").split("&") if part)
                if "from" in left:
                    equal([int(browser.js("String(buscap.fromRfc3339(arguments[0]))", left[one])) for one in ("from", "to")], view, kind)
        browser.press("+")
        browser.js("void (location.hash = 'from=never&to=never')")
        browser.idle()
        browser.press("+")
        equal(browser.js(ask)[0], "", "a new view has no notice")
        equal(browser.faults(), [])


def test_the_address_restores_the_view_of_a_report(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    output("report", "-o", tmp / "run.html", record(tmp / "out", source="sim:rate=1M,count=50000"))
    with Tab(driver) as browser:
        browser.open(f"file://{tmp}/run.html").idle()
        whole = browser.view()
        browser.drag("#timeline", (LEFT + 100, 80), (LEFT + 300, 80))
        part = browser.view()
        browser.press(Keys.BACKSPACE)
        equal(browser.view(), whole)
        browser.driver.forward()
        browser.idle()
        equal(browser.view(), part)
        browser.driver.refresh()
        browser.idle()
        equal((browser.view(), browser.faults()), (part, []))


def test_a_window_follows_the_end_until_the_view_is_moved(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    (tmp / "trace").write_bytes(b"".join(struct.pack("<I4BI", 0x60, 0x10, 1, 0, 0, 10_000_000) for _ in range(120)))
    old = record(tmp / "old", source=f"file:{tmp}/trace,format=byu,clock_hz=10000000")
    paused = "!document.querySelector('#resume').hidden"
    pressed = "[...document.querySelectorAll('#windows [aria-pressed=true]')].map((one) => one.innerText)"
    with Web(old) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        whole = browser.view()
        equal((browser.js(pressed), browser.js(paused)), (["All"], False))
        browser.click("[data-window='10s']")
        browser.idle()
        end = (whole[1] - 10 * 10**9, whole[1])
        equal((browser.view(), browser.js(pressed), browser.js(paused)), (end, ["10 s"], False))
        browser.driver.refresh()
        browser.idle()
        equal((browser.view(), browser.js(pressed)), (end, ["10 s"]))
        browser.js("document.querySelector('#timeline').focus()")
        browser.resize(1280, 800)
        browser.idle()
        top = browser.js("document.querySelector('#timeline').getBoundingClientRect().top")
        browser.press(Keys.ARROW_LEFT)
        equal((browser.view()[1] < end[1], browser.js(pressed), browser.js(paused)), (True, [], True))
        equal(browser.js("document.querySelector('#timeline').getBoundingClientRect().top"), top, "the picture stays under the pointer")
        browser.driver.refresh()
        browser.idle()
        equal((browser.view()[1] < end[1], browser.js(pressed), browser.js(paused)), (True, [], True))
        browser.press("f")
        equal((browser.view(), browser.js(pressed), browser.js(paused)), (end, ["10 s"], False))
        browser.press(Keys.HOME)
        equal((browser.view(), browser.js(pressed)), (whole, ["All"]))
        browser.click("[data-window='1h']")
        browser.idle()
        equal((browser.view(), browser.js(pressed)), (whole, ["1 h"]))
        equal(browser.faults(), [])
    socket, out = tmp / "socket", tmp / "out"
    with Daemon("--source", "sim:rate=200k", "-o", out, socket=socket) as daemon:
        daemon.wait_ready()
        with Web(out, "--socket", socket) as web, Tab(driver) as browser:
            browser.open(f"http://{web.host}/?token={web.token}#window=1min").idle()
            browser.wait("buscap.model.overview.recordings.length === 1")
            for _ in range(2):
                end = browser.view()[1]
                browser.wait(f"buscap.model.view.to > {end}n", "it slides")
            browser.js("document.querySelector('#timeline').focus()")
            browser.press("+")
            end = browser.view()[1]
            browser.wait(paused)
            equal(browser.view()[1], end)
            browser.press("f")
            browser.wait(f"buscap.model.view.to > {end}n", "it slides again")
            equal((browser.js(paused), browser.faults()), (False, []))
        daemon.stop()


def test_the_records_of_a_cell_and_of_a_search_are_listed_saved_and_copied(tmp, driver):
    import csv
    import shlex

    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    def saved():
        """Returns the rows of what CSV saves."""
        browser.driver.execute_script("window.saved = null; URL.createObjectURL = (blob) => { blob.text().then((text) => { saved = text; });"
                                      " return '#'; }; HTMLAnchorElement.prototype.click = () => {};")
        browser.js("[...document.querySelectorAll('.acts button')].find((one) => one.innerText === 'CSV').click()")
        browser.wait("window.saved !== null")
        return [(row["number"], row["tick"], row["type"], row["addr"]) for row in csv.DictReader(browser.js("saved").splitlines())]

    def copied():
        """Returns the rows of what the copied command prints."""
        ActionChains(driver, duration=0).click(driver.find_element(By.CSS_SELECTOR, ".acts button:nth-child(2)")).perform()
        browser.wait("document.querySelector('#summary').innerText === 'The command was copied.'")
        ActionChains(driver, duration=0).click(driver.find_element(By.ID, "search-text")).key_down(Keys.CONTROL).send_keys(
            "av").key_up(Keys.CONTROL).perform()
        program, *argv = shlex.split(browser.js("document.querySelector('#search-text').value"))
        equal(program, "buscap")
        return [(row["number"], row["tick"], row["type"], row["addr"]) for row in csv.DictReader(output(*argv).splitlines())
                if row["kind"] == "reference"]

    out = record(tmp / "an 'out'", source="sim:rate=max,count=30000")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        overview = browser.model("overview")
        cells = [(sum(one["cells"][i + 1:i + 5]), column, one["cells"][i]) for column, one in enumerate(overview["columns"])
                 for i in range(0, len(one["cells"]), 5)]
        for n, column, row in (max(cells), min(cells)):
            box = browser.js("buscap.cellPixels(arguments[0], arguments[1])", column, row)
            at = box["x"] + box["width"] // 2, box["y"] + box["height"] // 2
            browser.drag("#heatmap", at, at)
            browser.wait("!!(buscap.model.cell && buscap.model.cell.hits)")
            browser.idle()
            hits = browser.model("cell.hits")
            equal(len(hits), n)
            assert f"{n:,} record" in browser.text("#tab-body caption")
            rows = [(str(hit["number"]), str(hit["tick"]), hit["type"], hit["addr"]) for hit in hits]
            equal(saved(), rows)
            equal(copied(), rows)
            pages = []
            while True:
                pages += browser.js("[...document.querySelectorAll('#tab-body tbody tr')].map((row) => row.cells[0].innerText)")
                if len(pages) >= n:
                    break
                browser.js("[...document.querySelectorAll('.acts button')].find((one) => one.innerText === 'Next page').click()")
                browser.idle()
            equal(pages, [f"{hit['number']:,}" for hit in hits])

        def found(*options):
            return [(int(row["number"]), row["type"], int(row["addr"], 16)) for row in csv.DictReader(
                output("cut", *options, "-O", "csv", out).splitlines()) if row["kind"] == "reference"]

        # Low memory has the addresses of ports.
        for first, last, is_there in ((0, 15, lambda kind, addr: kind[:2] != "IO" and addr < 1 << 16),
                                      (0, (1 << 20) + 255, lambda kind, addr: kind[:2] != "IO" or addr < 256)):
            queries = browser.js("buscap.viewQueries({...buscap.model.view, placeFrom: arguments[0], placeTo: arguments[1]}, 'all')", first, last)
            equal(sorted(row for query in queries for row in found(*(word for name in query for word in (f"--{name}", query[name])))),
                  [row for row in found() if is_there(*row[1:])])
        # A search limited to the view, and its hits one after the other.
        browser.js("document.querySelector('#timeline').focus()")
        browser.press("+")
        view = browser.view()
        browser.driver.execute_script("document.querySelector('#search-text').value = 'write'")
        browser.click("#search-limit")
        browser.click("#search [name=first]")
        browser.wait("!!buscap.model.search.hits")
        browser.idle()
        times = browser.js("buscap.model.search.hits.map((hit) => String(buscap.fromRfc3339(hit.time)))")
        assert len(times) > 3 and view[0] <= int(times[0]) and int(times[-1]) <= view[1]
        equal(len(copied()) >= len(times), True)
        browser.js("document.querySelector('#timeline').focus()")
        browser.press("+", "+")
        for key, at in (("n", 0), ("n", 1), ("n", 2), ("p", 1)):
            browser.press(key)
            equal(browser.js("[...document.querySelectorAll('#tab-body tbody tr')].findIndex((row) => row.className === 'current')"), at)
            assert browser.view()[0] <= int(times[at]) <= browser.view()[1]
        equal(browser.faults(), [])


def test_figures_of_what_is_shown_are_saved_or_their_commands_copied(tmp, driver):
    import shlex

    from selenium.webdriver.common.keys import Keys

    def choose(name):
        """Chooses by keys, as after a click on Figure. Returns what was saved or copied."""
        browser.driver.execute_script("window.saved = null; URL.createObjectURL = (blob) => { blob.text().then((text) => { saved = text; });"
                                      " return '#'; }; HTMLAnchorElement.prototype.click = () => {};"
                                      "document.execCommand = () => { const data = new DataTransfer(); document.dispatchEvent(new"
                                      " ClipboardEvent('copy', { clipboardData: data, cancelable: true })); saved = data.getData('text/plain'); return true; };"
                                      "document.querySelector('#figures-open').focus()")
        browser.press(Keys.ENTER)
        browser.press(*[Keys.TAB] * (1 + ["timeline", "heat-map", "working-set", "miss-ratio"].index(name)), Keys.ENTER)
        browser.wait("window.saved !== null")
        equal(browser.js("document.querySelectorAll(':popover-open').length"), 0)
        return browser.js("saved")

    out = record(tmp / "out", source="sim:rate=1M,count=50000")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        for name in ("timeline", "heat-map"):
            equal(choose(name), output("report", "--figure", name, out))
        browser.drag("#timeline", (LEFT + 100, 80), (LEFT + 300, 80))
        part = browser.view()
        start, end = (cut_model.utc(ns) for ns in (part[0], part[1] + 1))
        equal(choose("timeline"), output("report", "--figure", "timeline", "--from", start, "--to", end, out))
        for name in ("working-set", "miss-ratio"):
            equal(choose(name), output("report", "--figure", name, "--from", start, "--to", end, out))
        browser.js("document.querySelector('#figures-open').click()")
        browser.press(Keys.ESCAPE)
        equal((browser.js("document.querySelectorAll(':popover-open').length"), browser.view()), (0, part))
        select_rows(browser, 0, 12)
        browser.click("#classes [value=write]")
        rows = browser.js("buscap.model.overview.rows.filter((row) => row.place >= buscap.model.view.placeFrom && row.place <= buscap.model.view.placeTo).length")
        made = choose("heat-map")
        assert 0 < made.count('text-anchor="end"') <= rows and "records per cell" in made
        made = choose("timeline")
        assert ">write + iowrite<" in made and ">fetch<" not in made
        equal(browser.faults(), [])
    output("report", "-o", tmp / "run.html", out)
    with Tab(driver) as browser:
        browser.open(f"file://{tmp}/run.html").idle()
        for name in ("timeline", "miss-ratio"):
            *start, operand = shlex.split(choose(name))
            equal(start[:4], ["buscap", "report", "--figure", name])
            equal([operand], [one["id"] for one in browser.model("overview.recordings")])
            equal(output(*start[1:-2], out), output("report", "--figure", name, out))
        equal(browser.faults(), [])


def test_the_working_set_and_the_misses_of_the_view_are_those_of_stats(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    def check(*options, at=0, runs=1):
        browser.wait(f"buscap.model.localities && buscap.model.localities.list[{at}] && !buscap.model.isLoading && document.querySelectorAll('#tab-body svg').length === {2 * runs}")
        wanted = json.loads(output("stats", "--json", "--working-set", "--miss-ratio", *options))
        equal({name: browser.model(f"localities.list[{at}].{name}") for name in ("working_set", "miss_ratio")},
              {name: wanted[name] for name in ("working_set", "miss_ratio")}, options)
        shown = browser.js("[...document.querySelectorAll('#tab-body table:first-of-type tbody tr')].map((row) => row.innerText.split('\\t'))")
        windows = [[f"{row['references']:,}", f"{row['lines']:,.2f}", f"{row['pages']:,.2f}"] for row in wanted["working_set"]]
        assert all(row in shown for row in windows), (shown, windows)

    out = record(tmp / "out", source="sim:rate=1M,count=50000,agents=2")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        browser.js("document.querySelector('#tab-totals').focus()")
        browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        check(out)
        browser.drag("#timeline", (LEFT + 100, 80), (LEFT + 300, 80))
        part = browser.view()
        times = ("--from", cut_model.utc(part[0]), "--to", cut_model.utc(part[1] + 1))
        check(*times, out)
        browser.click("#processors [value='1']")
        check(*times, "--proc", 1, out)
        browser.click("#classes [value=write]")
        check(*times, "--proc", 1, "--type", "write,iowrite", out)
        equal(browser.faults(), [])
    one, two = (record(tmp / f"run-{seed}", source=f"sim:rate=1M,count=20000,seed={seed}") for seed in (1, 2))
    output("report", "--compare", "-o", tmp / "run.html", one, two)
    with Tab(driver) as browser:
        browser.open(f"file://{tmp}/run.html#tab=locality").idle()
        check(one, runs=2)
        check(two, at=1, runs=2)
        browser.click("#classes [value=write]")
        browser.click("#classes [value=all]")
        browser.idle()
        check(two, at=1, runs=2)
        equal(browser.faults(), [])
    both = tmp / "both"
    for seed in (1, 2):
        record(both, source=f"sim:rate=1M,count=20000,seed={seed}")
    first, second = harness.segments(both)
    with Web(both) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        one, two = (recording["id"] for recording in browser.model("overview.recordings"))
        browser.open(f"http://{web.host}/?token={web.token}#runs={one},{two}&tab=locality").idle()
        check(first, runs=2)
        check(second, at=1, runs=2)
        equal(browser.faults(), [])


def test_events_can_be_hidden_by_kind(tmp, driver):
    with Web(record_chunks(tmp, 16)) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}#tab=events").idle()
        kinds = browser.js("buscap.model.events.events.map((one) => one.kind)")
        listed = "[...document.querySelectorAll('#tab-body tbody tr')].map((row) => row.cells[1].innerText)"
        equal((sorted(browser.js(listed)), {*kinds}), (sorted(kinds), {"gap", "mark"}))
        browser.js("[...document.querySelectorAll('.acts button')].find((one) => /gap/.test(one.innerText)).click()")
        browser.idle()
        equal(browser.js(listed), ["mark"] * kinds.count("mark"))
        texts = texts_drawn(browser, "#timeline canvas")
        assert any("mark" in text for text in texts) and not any("lost" in text or "gap" in text for text in texts), texts
        browser.click("#tab-totals")
        assert "No samples lost" not in browser.text("#tab-body"), "the figures stay"
        equal(browser.faults(), [])


def test_what_is_between_two_markers_is_what_the_tools_count_there(tmp, driver):
    import csv

    from selenium.webdriver.common.keys import Keys

    def measured():
        browser.wait("buscap.model.measured !== null")
        browser.idle()
        return browser.text("#measured p")

    def marker(name):
        return int(browser.js(f"String(buscap.model.markers.{name})"))

    def check(text):
        """The figures are those of a cut from the earlier marker to the later one."""
        start, end = sorted((marker("a"), marker("b")))
        rfc3339 = browser.js("arguments[0].map((ns) => buscap.toRfc3339(BigInt(ns)))", [str(start), str(end + 1)])
        rows = [row for row in csv.DictReader(output("cut", "--from", rfc3339[0], "--to", rfc3339[1], "-O", "csv", out).splitlines())
                if row["kind"] == "reference"]
        classes = [CLASSES.get(row["type"], "other") for row in rows]
        counts = ", ".join(f"{ON_PAGE.get(name, name)} {classes.count(name):,}" for name in ("fetch", "read", "write", "other"))
        if rows:
            ticks = int(rows[-1]["tick"]) - int(rows[0]["tick"])
            assert f" {ticks:,} bus ticks from the first record to the last · {len(rows):,} records (" in text, (text, ticks, len(rows))
            assert f"/s): {counts} · " in text, (text, counts)
        else:  # the bus was silent there
            assert f" · 0 records: {counts} · " in text, (text, counts)
        number, unit = re.fullmatch("([0-9.\u2009]+) (s|ms|µs)", text.split(" · ")[2]).groups()
        equal(round(float(number.replace("\u2009", "")) * {"s": 1e9, "ms": 1e6, "µs": 1e3}[unit]), end - start, text)

    out = record_chunks(tmp, 6)
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        equal(browser.js("document.querySelector('#measured').hidden"), True)
        width = browser.js("document.querySelector('#timeline').clientWidth")
        # Two clicks: the second is the earlier one.
        browser.click("[data-act=measure]")
        browser.idle()
        equal(browser.text("#measured p"), "Click where marker A goes.")
        browser.drag("#timeline", (width // 2, 80), (width // 2, 80))
        assert browser.text("#measured p").endswith("marker B goes."), browser.text("#measured p")
        browser.drag("#heatmap", (width // 3, 80), (width // 3, 80))
        assert marker("b") < marker("a")
        check(text := measured())
        drawn = texts_drawn(browser, "#timeline canvas")
        assert {"A", "B"} <= {*drawn}, drawn
        # A link restores them; a zoom leaves the figures as they are.
        browser.driver.refresh()
        browser.idle()
        equal(measured(), text)
        browser.click("[data-act=between]")
        browser.idle()
        equal((browser.view(), measured()), ((marker("b"), marker("a")), text))
        browser.press(Keys.HOME)
        # Keys: near an event, at its time.
        gap = browser.js("buscap.eventsByTime().find((one) => one.kind === 'gap').time") + int(browser.model("overview.origin_ns"))
        view = browser.view()
        tip(browser, "#timeline", LEFT + 3 + (width - LEFT - RIGHT) * (gap - view[0]) / (view[1] - view[0]), 80)
        browser.press("a")
        equal(marker("a"), gap)
        check(measured())
        # Without a pointer, at the cursor; else in the middle.
        tip(browser, "#range", 5, 5)
        browser.js("buscap.setCursor({column: 3, row: 0})")
        browser.press("a", "b")
        column = browser.model("overview.columns")[3]
        origin = int(browser.model("overview.origin_ns"))
        equal((marker("a"), marker("b")), (origin + column["from"], origin + column["to"] - 1))
        check(measured())
        equal(browser.model("measured.records"), column["records"])
        browser.press(Keys.ESCAPE)  # the cursor
        browser.press("b")
        equal(marker("b"), sum(browser.view()) // 2)
        browser.press(Keys.ESCAPE)
        equal((browser.model("markers"), browser.js("document.querySelector('#measured').hidden")), ({"a": None, "b": None}, True))
        assert "a=" not in browser.js("location.hash"), browser.js("location.hash")
        equal(browser.faults(), [])


def test_a_cell_of_chunks_that_overlap_in_time_lists_all_of_its_records_and_no_others(tmp, driver):
    clock = harness.MovedClock(tmp)
    with Daemon("--source", "sim:rate=4M", "-o", tmp / "large", socket=tmp / "s", env=clock.env) as daemon:
        daemon.wait_ready()
        for step in range(25):  # it is set back again and again, so that chunks overlap
            clock.move(-0.008 * step)
            wait_until(lambda: status(daemon.socket)["counts"]["written"] > (step + 1) * 200_000, "records")
        equal(daemon.stop(), 0, daemon.err)
    with Web(tmp / "large") as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        assert browser.model("overview.unit") != "records"
        columns, rows = browser.model("overview.columns"), browser.model("overview.rows")
        origin = int(browser.model("overview.origin_ns"))
        by_overlap = sorted(range(len(columns) - 1), key=lambda i: columns[i]["duration_ns"] - (columns[i]["to"] - columns[i]["from"]))
        late = 0
        for number in [*by_overlap[:2], *by_overlap[-4:]]:
            cells = columns[number]["cells"]
            row, n = min(((cells[i], sum(cells[i + 1 : i + 5])) for i in range(0, len(cells), 5) if rows[cells[i]]["place"] < 1 << 20),
                         key=lambda one: abs(one[1] - 1000))
            box = browser.js("buscap.cellPixels(arguments[0], arguments[1])", number, row)
            at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            browser.drag("#heatmap", at, at)
            equal((browser.model("cursor.column"), browser.model("cursor.row")), (number, row))
            browser.wait("buscap.model.cell && buscap.model.cell.hits")
            hits = browser.model("cell.hits")
            first = columns[number]["first_record"]
            equal((len(hits), all(first <= hit["number"] < first + columns[number]["records"] for hit in hits)), (n, True))
            last = int(browser.js("String(buscap.fromRfc3339(arguments[0]))", max(hit["time"] for hit in hits)))
            late += last >= origin + columns[number]["to"]
        assert late > 0, "some are later than the start of the next column"
        equal(browser.faults(), [])


def test_a_cell_of_one_host_lists_no_records_of_another(tmp, driver):
    (tmp / "lab").mkdir()
    for host in ("a", "b"):  # 100 s each, which overlap
        (tmp / host).write_bytes(struct.pack("<I4BI", 0x60, 0x10, 1, 0, 0, 50_000) * 20_000)
        record(tmp / "lab" / host, source=f"file:{tmp / host},format=byu,clock_hz=10000000")
    with Web(tmp / "lab") as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        columns = browser.model("overview.columns")
        middle = (browser.model("overview.extent.from") + browser.model("overview.extent.to")) / 2
        for recording in (0, 1):
            number, column = next((i, one) for i, one in enumerate(columns) if one["recording"] == recording and one["to"] > middle)
            box = browser.js("buscap.cellPixels(arguments[0], 0)", number)
            at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            browser.drag("#heatmap", at, at)
            browser.wait("buscap.model.cell && buscap.model.cell.hits")
            column = columns[browser.model("cursor.column")]
            name = browser.model("overview.recordings")[column["recording"]]["id"]
            hits = browser.model("cell.hits")
            equal((len(hits), {hit["recording"] for hit in hits}), (column["records"], {name}))
        equal(browser.faults(), [])


def test_a_count_between_markers_that_is_not_exact_says_so(tmp, driver):
    def measure():
        width = browser.js("document.querySelector('#timeline').clientWidth") - LEFT - RIGHT
        browser.click("[data-act=measure]")
        for share in (0.01, 1.005):  # to the right of the plot: the end
            browser.drag("#timeline", (LEFT + width * share, 80), (LEFT + width * share, 80))
        browser.wait("buscap.model.measured !== null")
        browser.idle()
        return browser.text("#measured p"), browser.model("measured.records")

    out = record(tmp / "large", source="sim:rate=max,count=5000000")
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        text, records = measure()
        limits = browser.js("['a', 'b'].map((name) => buscap.toRfc3339(buscap.model.markers[name]))")
        exact = int(output("find", "--count", "--from", limits[0], "--to", limits[1], "0-ffffffff", out).split()[0])
        assert exact <= records <= exact * 1.05, (exact, records)
        assert f" · about {records / 1e6:.3g} M records (" in text.replace("\u2009", " ") and " bus ticks from " in text, text
        # As if the board had been unplugged before the last record.
        browser.driver.execute_script("""const {fetch} = window;
            window.fetch = async (path, options) => path.includes("last=1")
                ? new Response((await (await fetch(path, options)).text()).replace('"epoch":0', '"epoch":1')) : fetch(path, options);""")
        browser.click("[data-act=clear]")
        browser.idle()
        text, _ = measure()
        assert " · no bus ticks: the board was connected again in between · " in text, text
        record(out, source="sim:rate=max,count=6000000")  # its last record is later than the other's
        browser.driver.refresh()
        browser.idle()
        equal(browser.js("buscap.model.overview.recordings.length"), 2)
        browser.click("[data-act=clear]")
        browser.idle()
        text, _ = measure()
        assert " · no bus ticks between different recordings · " in text, text
        equal(browser.faults(), [])
    output("report", "-o", tmp / "run.html", out)
    with Tab(driver) as browser:
        browser.open(f"file://{tmp}/run.html").idle()
        text, records = measure()
        assert " · about " in text and "ticks" not in text and 0 < records <= 11_000_000, text
        equal(browser.faults(), [])


def test_escape_cancels_a_drag(tmp, driver):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    with Web(record(tmp / "out")) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        browser.press("+")
        before = browser.view()
        chain = ActionChains(driver, duration=0).move_to_element(driver.find_element("id", "timeline")).click_and_hold()
        chain.move_by_offset(100, 0).perform()
        equal(browser.js("document.querySelector('#band').hidden"), False)
        browser.press(Keys.ESCAPE)
        equal(browser.js("document.querySelector('#band').hidden"), True)
        ActionChains(driver, duration=0).move_by_offset(50, 0).release().perform()
        browser.idle()
        equal((browser.view(), browser.model("isDragging")), (before, False))
        equal(browser.faults(), [])


def test_the_strip_says_how_long_everything_is_on_a_narrow_screen_too(tmp, driver):
    (tmp / "trace").write_bytes(b"".join(struct.pack("<I4BI", 0x60, 0x10, 1, 0, 0, 10_000_000) for _ in range(120)))
    out = record(tmp / "out", source=f"file:{tmp}/trace,format=byu,clock_hz=10000000")
    with Web(out) as web:
        for size, text in (((1400, 900), "all, 1 min 59 s"), ((480, 900), "1 min 59 s")):
            with Tab(driver, *size) as browser:
                browser.open(f"http://{web.host}/?token={web.token}").idle()
                assert text in texts_drawn(browser, "#strip canvas"), size


def test_a_drag_with_shift_moves_the_view_to_where_the_pointer_takes_it(tmp, driver):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    with Web(record(tmp / "out")) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        width = browser.js("document.querySelector('#timeline').clientWidth") - LEFT - RIGHT
        browser.drag("#timeline", (LEFT + width // 2, 80), (LEFT + width // 2 + 200, 80))
        for plot in ("#timeline", "#heatmap"):
            before = browser.view()
            ActionChains(driver, duration=0).key_down(Keys.SHIFT).perform()
            browser.drag(plot, (LEFT + 300, 60), (LEFT + 400, 120))
            ActionChains(driver, duration=0).key_up(Keys.SHIFT).perform()
            by = (before[1] - before[0]) * 100 // width
            assert all(abs(old - by - new) <= 2 for old, new in zip(before, browser.view())), (plot, before, browser.view())
            equal(browser.model("view.placeFrom"), 0)
        equal(browser.faults(), [])


def test_the_strip_shows_everything_and_moves_the_view(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    def pictures():
        """How many were fetched, of everything and of parts."""
        return browser.js("""((all) => [all.filter((one) => !/[?&]from=/.test(one)).length, all.filter((one) => /[?&]from=[^0]/.test(one)).length])(
            performance.getEntriesByType('resource').map((one) => one.name).filter((one) => one.includes('/data/overview')))""")

    def frame():
        """Returns the x of pixels of the window's frame, at half its height."""
        return browser.js("""((canvas) => { const [r, g, b] = Object.values(d3.rgb(buscap.currentColours().accent));
            const {data} = canvas.getContext('2d').getImageData(0, canvas.height / 2, canvas.width, 1);
            return d3.range(canvas.width).filter((x) => data[4 * x] === r && data[4 * x + 1] === g && data[4 * x + 2] === b); })(
            document.querySelector('#strip canvas'))""")

    def middle():
        return sum(browser.view()) / 2

    out = record(tmp / "out")
    with Web(out) as web, Tab(driver) as browser:
        url = f"http://{web.host}/?token={web.token}"
        browser.open(url).idle()
        whole = browser.view()
        width = browser.js("document.querySelector('#timeline').clientWidth") - LEFT - RIGHT
        ns = (whole[1] - whole[0]) / width  # of a pixel

        def check():
            """The window is where the view is."""
            xs, view = frame(), browser.view()
            for x, time in ((xs[0], view[0]), (xs[-1], view[1])):
                assert abs(x - LEFT - (time - whole[0]) / ns) <= 3, (xs, view, whole)

        check()
        equal(pictures(), [1, 0])
        browser.drag("#timeline", (LEFT + width * 0.4, 80), (LEFT + width * 0.5, 80))
        check()
        equal(pictures(), [1, 1], "everything is known")
        span = browser.view()[1] - browser.view()[0]
        browser.drag("#strip", (LEFT + width * 0.8, 14), (LEFT + width * 0.8, 14))
        check()
        assert abs(middle() - whole[0] - ns * width * 0.8) <= 2 * ns
        browser.drag("#strip", (LEFT + width * 0.8 + 5, 14), (LEFT + width * 0.3 + 5, 14))
        check()
        assert abs(middle() - whole[0] - ns * width * 0.3) <= 3 * ns
        equal(browser.view()[1] - browser.view()[0], span)
        browser.driver.execute_script("document.querySelector('#strip').focus()")
        before, said = middle(), browser.js("document.querySelector('#strip').ariaValueText")
        browser.press(Keys.ARROW_RIGHT)
        assert middle() > before and browser.js("document.querySelector('#strip').ariaValueText") != said
        browser.driver.refresh()
        browser.idle()
        check()
        equal(pictures(), [1, 1])
        equal(browser.faults(), [])
    # A window that slides: the bus time of this source is that of its records.
    data = [struct.pack("<I4BI", 0x1000 * i, 0, 8, 0, 0, 10_000_000) for i in range(200)]
    with Daemon("--once", "--source", "file:-,format=byu,clock_hz=10000000", "-o", tmp / "live", socket=tmp / "socket",
                stdin=subprocess.PIPE) as daemon:
        def send(records):
            daemon.process.stdin.write(b"".join(records))
            daemon.process.stdin.flush()

        send(data[:120])
        daemon.wait_ready()
        wait_until(lambda: status(tmp / "socket")["counts"]["durable"] == 120, "the records")
        with Web(tmp / "live", "--socket", tmp / "socket") as web, Tab(driver) as browser:
            browser.open(f"http://{web.host}/?token={web.token}#window=10s").idle()
            end = browser.view()[1]
            xs = frame()
            send(data[120:])
            browser.wait(f"buscap.model.view.to > {end}n && buscap.model.whole.columns.length > 150", "both are new")
            browser.idle()
            equal(browser.view()[1] - browser.view()[0], 10 * 10**9)
            assert frame()[-1] - frame()[0] < xs[-1] - xs[0], (frame(), xs)
            equal(browser.faults(), [])
        daemon.process.stdin.close()
        daemon.wait()


def test_the_first_screen_says_what_is_read_and_why_nothing_is_shown(tmp, driver):
    empty = "document.querySelector('#empty').innerText"
    out = record(tmp / "out", "-b", "filesize:16K", source="sim:rate=max,count=300000")
    files, records = segments(out), sum(map(len, timed_records(out).values()))
    assert len(files) > 2
    size = files[-1].stat().st_size
    os.truncate(files[-1], 1 << 43)  # takes hours to read
    with Web(out) as web, Tab(driver, 1400, 1200) as browser:
        browser.open(f"http://{web.host}/?token={web.token}")
        browser.wait(f"{empty} === 'Reading {out} … {len(files) - 1} of {len(files)} files'")
        height = browser.js("document.querySelector('#heatmap').clientHeight")
        browser.driver.execute_script("document.querySelectorAll('[data-window], [data-act]').forEach((one) => one.click())")
        os.truncate(files[-1], size)
        browser.idle()
        equal(browser.js("document.querySelector('#empty').hidden"), True)
        equal(totals_on_page(browser)["all"], records)
        equal((browser.js("location.hash"), browser.faults()), ("", []), "the buttons did nothing")
        equal(web.get("/data/files"), {"paths": [str(out)], "files": len(files), "read": len(files)})
        out.rename(tmp / "away")
        browser.driver.refresh()
        browser.wait(f"{empty} === '{out}: can\\'t be shown; the reason is above. This page tries again every 5 s.'")
        assert browser.text("#notices").startswith("can't read the directory: No such file or directory (since "), browser.text("#notices")
        (tmp / "away").rename(out)
        browser.idle()
        equal((totals_on_page(browser)["all"], browser.text("#notices")), (records, ""))
        equal(browser.js("document.querySelector('#heatmap').clientHeight"), height, "as many rows as fit were asked for")


def test_paper_has_no_buttons_and_all_texts(tmp, driver):
    out = record_chunks(tmp, 12)
    buttons = "[...document.querySelectorAll('button, input, select')].filter((one) => one.getClientRects().length).map((one) => one.closest('td, .choices') ? 'text' : one.innerText)"
    with Web(out) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}#tab=events").idle()
        tip(browser, "#timeline", LEFT + 100, 80)
        browser.press("a", "b")
        browser.wait("buscap.model.measured !== null")
        browser.idle()
        assert {"Measure", "Clear"} < {*browser.js(buttons)}, browser.js(buttons)
        for tab in ("events", "records", "recordings"):
            browser.click(f"#tab-{tab}")
            browser.idle()
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
            equal({*browser.js(buttons)}, {"text"}, tab)
            for selector in ("#range", "#measured p", "#summary", "#tab-body"):
                assert browser.text(selector), selector
            times = browser.js("[...document.querySelectorAll('#tab-body td button')].map((one) => one.innerText)")
            assert all(times) and bool(times) == (tab != "records"), times
            equal(browser.js("getComputedStyle(document.querySelector('#tip')).display"), "none")
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        equal(browser.faults(), [])


def trace_of(kind, tmp):
    """Returns a trace, and the text of its record 50 on the axis."""
    path = tmp / f"a.{kind}"
    if kind == "tr":
        path.write_bytes(b"".join(struct.pack("<IBBBBI", 4096 * i, i % 3, 4, 0, 0, 40) for i in range(3000)))
        return path, "tick 2,040"
    if kind == "din":
        path.write_text("".join(f"{i % 3} {4096 * i:x}\n" for i in range(3000)))
        return path, "record 50"
    path.write_bytes(b"".join(struct.pack("<IBBBBI", 4096 * i, i % 3, 4, 0, 0, 40) for i in range(3000)))
    output("convert", "-I", "byu", "-O", "segment:clock_hz=1000", "-o", tmp / "a.byu.lz4", path)
    return tmp / "a.byu.lz4", "2.040 000 000 s"


@pytest.mark.parametrize("kind", ["tr", "din", "seconds"])
def test_a_trace_without_times_of_day_shows_none(driver, tmp, kind):
    path, text = trace_of(kind, tmp)
    with Web(path) as web, Tab(driver) as browser:
        browser.open(f"http://{web.host}/?token={web.token}")
        browser.idle()
        at = {"tr": 2040, "din": 50, "seconds": 2_040_000_000}[kind]
        browser.js(f"buscap.show(buscap.spanView({at}n - 20n, {at}n + 20n))")
        browser.idle()
        browser.press("b")
        browser.click("#tab-records")
        browser.idle()
        shown = browser.text("body").replace("\u2009", " ")
        assert text in shown, shown
        for wrong in ("1970", "UTC", "Copy as command", *(["ns", "ms"] if kind != "seconds" else [])):
            assert not re.search(rf"\b{wrong}\b", shown), (wrong, shown)
        address = browser.js("location.hash")
        assert "1970" not in address and "b=" in address, address
        browser.open(f"http://{web.host}/?token={web.token}{address}")
        browser.idle()
        equal(browser.js("location.hash"), address)
        equal(browser.faults(), [])
        web.stop()


# ---- two runs


def shift_of(run):
    """What is added to relative times of a run, in ns."""
    return int(run["overview"]["origin_ns"])


def runs_on_page(browser):
    return browser.js("[{overview: buscap.model.overview, events: buscap.model.events}, buscap.model.other]")


def check_same_axes(browser):
    """Both timelines have the same labels: times and rates."""
    labels = [texts_drawn(browser, f"#{name} canvas") for name in ("timeline", "timeline-b")]
    axes = [[text for text in texts if re.search(r"^\d+(\u2009[kM]| m?s| \u00b5s)?$|\+$", text)] for texts in labels]
    assert len(axes[0]) > 5, labels
    equal(axes[0], axes[1], "labels of the axes")
    return axes[0]


@pytest.mark.parametrize("align", [None, "disk"])
def test_two_runs_of_a_report_share_their_axes(tmp, driver, align):
    (tmp / "marks").write_text("[trigger disk]\nwhen = type=ioread\naction = mark\n")
    dirs = [record(tmp / name, "-c", tmp / "marks", source=f"sim:rate={rate},count={count},seed={seed}")
            for name, rate, count, seed in (("boot-1", "400k", 10000, 3), ("boot-2", "1M", 90000, 4))]
    sizes = [json.loads(output("report", "--json", "--rows", "60", path))["overview"]["page_shift"] for path in dirs]
    assert sizes[0] < sizes[1], sizes
    output("report", "--compare", *(["--align", f"mark={align}"] if align else []), "--rows", "60", "-o", tmp / "runs.html", *dirs)
    with Tab(driver, height=1200) as browser:
        browser.open(f"file://{tmp}/runs.html").idle()
        runs = runs_on_page(browser)
        # Where the time starts: at the first record, or the first mark.
        for one in runs:
            marks = [event["time"] for event in one["events"]["events"] if event["text"] == "disk"]
            equal((marks[0] if align else 0) + shift_of(one), 0, "the start of the common time")
        equal(browser.view(), (min(map(shift_of, runs)), max(shift_of(one) + one["overview"]["to"] for one in runs)), "all of both")
        # Rows are those of both, and nothing is lost where they became larger.
        equal(runs[0]["overview"]["rows"], runs[1]["overview"]["rows"], "rows")
        records = []
        for path, one in zip(dirs, runs):
            classes = json.loads(output("stats", "--json", path))["classes"]
            wanted = {name: classes[name] + classes.get(f"io{name}", 0) for name in ("fetch", "read", "write", "other")}
            sums = [sum(sum(column["cells"][k::5]) for column in one["overview"]["columns"]) for k in range(1, 5)]
            equal(sums, [*wanted.values()], f"cells of {path}")
            records.append(f"{sum(sums):,}")
        names = [browser.text(f"#{name}-run") for name in ("timeline", "timeline-b", "heatmap", "heatmap-b")]
        equal([name[:2] for name in names], ["A:", "B:"] * 2, "names")
        equal(len(set(names)), 2, "names")
        before = check_same_axes(browser)
        # The tables have both.
        browser.click("#tab-totals")
        equal(browser.js("[...document.querySelectorAll('#tab-body tbody tr:last-child td:nth-child(2)')].map((td) => td.innerText)"),
              records, "records")
        # A zoom in either changes both; the tip at a place is that of the run there.
        width = browser.js("document.querySelector('#timeline-b').clientWidth")
        browser.drag("#timeline-b", (LEFT + 10, 80), ((LEFT + width) // 2, 80))
        assert check_same_axes(browser) != before
        browser.driver.execute_script("buscap.model.hiddenKinds.add('mark').add('gap')")
        for name, one in zip(("timeline", "timeline-b"), runs):
            start = shift_of(one)
            browser.driver.execute_script("buscap.show(buscap.spanView(BigInt(arguments[0]), BigInt(arguments[1])))",
                                          str(start), str(start + one["overview"]["to"] // 9))
            browser.idle()
            view = browser.view()

            def pixel(time, shift=shift_of(one)):
                return LEFT + (time + shift - view[0]) * (width - RIGHT - LEFT) / (view[1] - view[0])

            column = next(column for column in one["overview"]["columns"] if not column["is_hole"] and column["records"]
                          and pixel(column["from"]) > LEFT + 5 and pixel(column["to"]) - pixel(column["from"]) > 3)
            found = tip(browser, f"#{name}", (pixel(column["from"]) + pixel(column["to"])) / 2, 100)
            equal(found.get("records"), f"{column['records']:,}, from {column['first_record']:,}", f"tip of {name}")
        equal(browser.faults(), [])


def check_columns(browser, timed, base):
    """The columns of each run have the records of its recording at their times, which count from `base`."""
    for (name, records), one, zero in zip(timed.items(), runs_on_page(browser), base):
        overview = one["overview"]
        equal([recording["id"] for recording in overview["recordings"]], [name])
        start = zero + shift_of(one)  # of the overview's times
        for column in overview["columns"]:
            n = sum(column["from"] <= ns - start < column["to"] for ns, _ in records)
            equal(column["records"], n, f"{name}: {column['from']} to {column['to']}")
    assert any(one["overview"]["columns"] for one in runs_on_page(browser))


def choose(browser, selector, value):
    browser.driver.execute_script("""const one = document.querySelector(arguments[0]);
        one.value = arguments[1]; one.dispatchEvent(new Event("change"))""", selector, value)
    browser.idle()


def test_two_recordings_are_compared_on_the_page(tmp, driver):
    from selenium.webdriver.common.keys import Keys

    (tmp / "marks").write_text("[trigger disk]\nwhen = type=ioread\naction = mark\n")
    for name, seed in (("boot-1", 3), ("boot-2", 4), ("boot-3", 5)):
        record(tmp / "out", "-c", tmp / "marks", "--label", name, source=f"sim:rate=1M,count=20000,seed={seed}")
    timed = timed_records(tmp / "out")
    ids = sorted(timed)
    marks = [json.loads(line) for line in output("marks", "--json", tmp / "out").splitlines()]
    pair = {name: timed[name] for name in (ids[0], ids[2])}
    starts = [records[0][0] for records in pair.values()]
    with Web(tmp / "out") as web, Tab(driver, height=1200) as browser:
        browser.open(f"http://{web.host}/?token={web.token}").idle()
        choose(browser, "#compare", ids[2])
        check_columns(browser, pair, starts)
        equal(browser.view(), (0, max(records[-1][0] - records[0][0] for records in pair.values())), "all of both")
        equal([browser.text(f"#{name}-run") for name in ("timeline", "timeline-b")], ["A: boot-1", "B: boot-3"])
        equal(runs_on_page(browser)[0]["overview"]["rows"], runs_on_page(browser)[1]["overview"]["rows"])
        browser.press("+", "+")
        check_columns(browser, pair, starts)
        check_same_axes(browser)
        # From the first mark of each; a reload keeps that.
        firsts = [next(ns_of(mark["time"]) for mark in marks if mark["recording"] == name and mark["kind"] == "mark") for name in pair]
        choose(browser, "#align", "disk")
        for _ in range(2):
            equal([min(mark["time"] for mark in one["events"]["events"] if mark["kind"] == "mark") + shift_of(one)
                   for one in runs_on_page(browser)], [0, 0], "the first marks")
            check_columns(browser, pair, firsts)
            browser.driver.refresh()
            browser.idle()
        # A search is of the first run, at its times on the axis.
        browser.driver.execute_script("document.querySelector('#search-text').value = 'ioread'")
        browser.click("#search [name=first]")
        browser.wait("!!(buscap.model.search.error || buscap.model.search.hits)", "the search has ended")
        found = [(hit["number"], ns_of(hit["time"]) + firsts[0]) for hit in browser.model("search.hits")]
        first = [path for path in segments(tmp / "out") if ids[0] in path.name]
        wanted = map(json.loads, output("find", "--json", "--first", "200", "--type", "ioread", "0-ffffffff", *first).splitlines())
        equal(found, [(hit["number"], ns_of(hit["time"])) for hit in wanted], "hits")
        equal(browser.text("#timeline-b-run"), "B: boot-3")
        choose(browser, "#compare", "")
        equal((browser.model("runs"), browser.model("other"), len(browser.model("overview.recordings"))), (None, None, 3))
        assert browser.js("document.querySelector('#timeline-b').hidden")
        # A recording that is not there.
        browser.open(f"http://{web.host}/?token={web.token}#runs={ids[0]},none").idle()
        assert "No recording has the id none" in browser.text("#notices"), browser.text("#notices")
        equal(len(browser.model("overview.recordings")), 3)
        equal(browser.faults(), [])
