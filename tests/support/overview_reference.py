"""Counts records by time and place in the slowest way, to compare overviews (docs/report.md) with."""

import array
import bisect
import collections
import pathlib
import struct

import page_reference
import reference
from harness import equal

PORT_0 = page_reference.PORT_0


def place_of(addr, reqtype):
    return PORT_0 + addr % 65536 if reqtype in (0x10, 0x11) else addr >> 12


class Chunk:
    def __init__(self, chunk, clock_hz):
        info = chunk.info
        self.first, self.records, self.wall = info["first_record"], info["records"], info["wall_ns"]
        self.lost, self.epoch = sum(info["lost"]), info["epoch"]
        self.first_tick, self.last_tick, self.clock_hz = info["first_tick"], info["last_tick"], clock_hz
        self.events = [e for e in chunk.events if e.kind in ("gap", "mark", "trigger")]
        anchors = {e.position: e.value for e in chunk.events if e.kind == "anchor"}
        tick, self.times, self.keys = info["first_tick"], array.array("q"), []
        for i, (addr, reqtype, proc, time) in enumerate(struct.iter_unpack("<IB2xBI", chunk.records)):
            if i and time != 0xFFFFFFFF:
                tick += time
            elif i:
                tick = anchors.get(i, tick)
            ns = (tick - info["first_tick"]) * 10**9 // clock_hz if clock_hz else 0
            self.times.append(self.wall + ns)
            self.keys.append((place_of(addr, reqtype), page_reference.class_of(reqtype), proc))
        last = (info["last_tick"] - info["first_tick"]) * 10**9 // clock_hz if clock_hz else 0
        self.end = self.wall + last
        self.counts = collections.Counter(self.keys)

    def event_time(self, event):
        if not self.records:
            return self.wall
        return self.times[min(event.position, self.records - 1)]


class Recordings:
    """All recordings in some segment files."""

    def __init__(self, paths):
        self.by_id = {}
        for segment in map(reference.read_segment, sorted(map(pathlib.Path, paths))):
            chunks = self.by_id.setdefault(segment.header["recording"], [])
            chunks += [Chunk(chunk, segment.header["source"]["clock_hz"]) for chunk in segment.chunks]

    def start(self):
        return min(chunk.wall for chunks in self.by_id.values() for chunk in chunks)

    def tracks(self):
        """The processors that are counted together."""
        procs = sorted({key[2] for chunks in self.by_id.values() for chunk in chunks for key in chunk.counts})
        return [[proc] for proc in procs] if len(procs) <= 8 else [*([proc] for proc in procs[:7]), procs[7:]]

    def check(self, report):
        """Checks everything in a report that follows from the records."""
        o = report["overview"]
        origin = int(o["origin_ns"])
        equal(origin, self.start(), "origin")
        for r in o["recordings"]:
            chunks = self.by_id[r["id"]]
            equal(r["records"], sum(chunk.records for chunk in chunks), "records")
            equal(r["lost"], chunks[-1].lost, "lost")
            equal(r["gaps"], sum(e.kind == "gap" for chunk in chunks for e in chunk.events), "gaps")
            equal(r["from"] + origin, min(chunk.wall for chunk in chunks), "from")
            equal(r["to"] + origin, max(chunk.end for chunk in chunks), "to")
        equal(sorted(r["id"] for r in o["recordings"]), sorted(self.by_id), "recordings")
        equal(o["processors"], self.tracks(), "processors")
        if o["unit"] == "records":
            self._check_bins(o, origin)
        else:
            self._check_columns(o, origin)
        self._check_events(report["events"], o, origin)

    def _check_cells(self, o, column, counts):
        totals = [0] * 4
        for (_, kind, _), n in counts.items():
            totals[kind] += n
        equal(column["counts"], totals, "counts")
        tracks = o["processors"] if o["by_processor"] else []
        wanted = [{} for _ in range(len(tracks) + 1)]  # of all, and by track
        for (place, kind, proc), n in counts.items():
            shift = o["page_shift"] if place < PORT_0 else o["port_shift"]
            first = place >> shift << shift
            if first + (1 << shift) > o["place_from"] and first <= o["place_to"]:
                for at in (0, *(1 + t for t, procs in enumerate(tracks) if proc in procs)):
                    wanted[at].setdefault(first, [0] * 4)[kind] += n
        equal(len(column["cells_by_processor"]), len(tracks), "tracks")
        for flat, cells in zip((column["cells"], *column["cells_by_processor"]), wanted):
            self._check_list(o, flat, cells)

    def _check_list(self, o, flat, wanted):
        got = {o["rows"][flat[i]]["place"]: flat[i + 1 : i + 5] for i in range(0, len(flat), 5)}
        equal(len(got), len(flat) // 5, "cells of different rows")
        equal(sorted(flat[::5]), flat[::5], "order of rows")
        equal(got, wanted, "cells")

    def _check_rows(self, o):
        touched = set()
        for column in o["columns"]:
            touched.update(column["cells"][::5])
        equal(touched, set(range(len(o["rows"]))), "touched rows")
        places = [row["place"] for row in o["rows"]]
        equal(places, sorted(set(places)), "rows")
        for row in o["rows"]:
            shift = o["page_shift"] if row["place"] < PORT_0 else o["port_shift"]
            equal(row["count"], 1 << shift, "places of a row")

    def _check_columns(self, o, origin):
        start, end = o["from"] + origin, o["to"] + origin
        self._check_rows(o)
        seen = {id_: 0 for id_ in self.by_id}
        firsts = {id_: [chunk.first for chunk in chunks] for id_, chunks in self.by_id.items()}
        for i, column in enumerate(o["columns"]):
            id_ = o["recordings"][column["recording"]]["id"]
            chunks = self.by_id[id_]
            inside = range(bisect.bisect_left(firsts[id_], column["first_record"]),
                           bisect.bisect_left(firsts[id_], column["first_record"] + column["records"]))
            # A chunk without records is where its gap is: in the column after it, or the last one.
            equal(column["uncounted"], 0, "uncounted")
            equal(sum(chunks[at].records for at in inside), column["records"], "records of whole chunks")
            counts = collections.Counter()
            for at in inside:
                counts.update(chunks[at].counts)
            self._check_cells(o, column, counts)
            first = next(at for at in inside if chunks[at].records)
            while first and not chunks[first - 1].records and column["from"] + origin != chunks[first].wall:
                first -= 1
            equal(column["from"] + origin, chunks[first].wall, "from")
            last = inside[-1]
            after = o["columns"][i + 1] if i + 1 < len(o["columns"]) else None
            epochs = last + 1 < len(chunks) and chunks[last].epoch == chunks[last + 1].epoch
            if after and after["recording"] == column["recording"] and epochs and after["from"] >= column["from"]:
                equal(column["to"], after["from"], "to")
            else:
                equal(column["to"] + origin, max(chunks[at].end for at in range(first, last + 1)), "to")
            if chunks[first].clock_hz and chunks[first].epoch == chunks[last].epoch:
                is_next = after and after["recording"] == column["recording"] and epochs
                end_tick = chunks[last + 1].first_tick if is_next else chunks[last].last_tick
                duration = (end_tick - chunks[first].first_tick) * 10**9 // chunks[first].clock_hz
            else:
                duration = column["to"] - column["from"]
            is_short = 4 * len(o["columns"]) * duration <= end - start
            assert column["duration_ns"] == duration or (is_short and not column["duration_ns"]), "duration"
            before = chunks[first - 1].lost if first else 0
            equal(column["lost"], chunks[last].lost - before, "lost")
            if column["gaps"] is not None:
                gaps = sum(e.kind == "gap" for chunk in chunks[first : last + 1] for e in chunk.events)
                equal(column["gaps"], gaps, "gaps")
            seen[id_] += column["records"]
        for id_, chunks in self.by_id.items():
            within = [chunk for chunk in chunks if chunk.end >= start and chunk.wall <= end]
            assert seen[id_] >= sum(chunk.records for chunk in within), "records in the picture"

    def _check_bins(self, o, origin):
        start, end = o["from"] + origin, o["to"] + origin
        self._check_rows(o)
        columns = {(o["recordings"][c["recording"]]["id"], c["from"] + origin): c for c in o["columns"]}
        equal(len(columns), len(o["columns"]), "columns")
        done = set()
        for id_, chunks in self.by_id.items():
            mine = sorted(key for key in columns if key[0] == id_)
            edges = [(key[1], columns[key]["to"] + origin) for key in mine]
            counts = [collections.Counter() for _ in mine]
            firsts, records, lost, gaps = {}, [0] * len(mine), [0] * len(mine), [0] * len(mine)

            def column_of(ns):
                at = bisect.bisect_right(edges, (ns, 1 << 64)) - 1
                assert at >= 0 and edges[at][0] <= ns < edges[at][1], f"no column has {ns}: {edges}"
                return at

            for chunk in chunks:
                if chunk.end < start or chunk.wall > end:
                    continue
                cache = {}
                for i, (ns, key) in enumerate(zip(chunk.times, chunk.keys)):
                    if not start <= ns <= end:
                        continue
                    at = cache[ns] if ns in cache else cache.setdefault(ns, column_of(ns))
                    counts[at][key] += 1
                    records[at] += 1
                    firsts[at] = min(firsts.get(at, chunk.first + i), chunk.first + i)
                for event in chunk.events:
                    ns = chunk.event_time(event)
                    if event.kind == "gap" and start <= ns <= end:
                        lost[column_of(ns)] += event.value
                        gaps[column_of(ns)] += 1
            for at, key in enumerate(mine):
                column = columns[key]
                equal(column["records"], records[at], "records")
                equal(column["lost"], lost[at], "lost")
                equal(column["gaps"], gaps[at], "gaps")
                equal(column["uncounted"], 0, "uncounted")
                equal(column["duration_ns"], self._bin_duration(o, origin, column, chunks), "duration")
                if records[at]:
                    assert column["first_record"] <= firsts[at], "first record"
                self._check_cells(o, column, counts[at])
                done.add(key)
        equal(done, set(columns), "columns of recordings")

    def _bin_duration(self, o, origin, column, chunks):
        """The time of day of a column, and how much more passed on the bus clock where chunks meet in it: evenly spread
        between the end of one and the start of the next, whichever is earlier."""
        low, high, more = column["from"] + origin, column["to"] + origin, 0
        start, end = o["from"] + origin, o["to"] + origin
        inside = [at for at, chunk in enumerate(chunks) if chunk.end >= start and chunk.wall <= end]
        for at in range(inside[0] + 1, inside[-1] + 1):
            one, two = chunks[at - 1], chunks[at]
            if not one.clock_hz or one.epoch != two.epoch or one.last_tick > two.first_tick:
                continue
            first, last = sorted((one.end, two.wall))
            difference = (two.first_tick - one.last_tick) * 10**9 // one.clock_hz + one.end - two.wall
            if first == last:
                more += difference if low <= first < high else 0
            elif min(high, last) > max(low, first):
                share = abs(difference) * (min(high, last) - max(low, first)) // (last - first)
                more += share if difference > 0 else -share
        return max(high - low + more, (high - low) // 4)

    def _check_events(self, events, o, origin):
        start, end = o["from"] + origin, o["to"] + origin
        wanted = []
        for at, recording in enumerate(o["recordings"]):
            for chunk in self.by_id[recording["id"]]:
                for e in chunk.events:
                    if start <= chunk.event_time(e) <= end:
                        is_gap = e.kind == "gap"
                        wanted.append({
                            "kind": e.kind, "time": chunk.event_time(e) - origin, "record": chunk.first + e.position,
                            "recording": at, "text": None if is_gap else e.text, "cause": e.cause or None,
                            "lost": e.value if is_gap else None, "exact": e.exact if is_gap else None,
                            "duration_ns": e.duration_ns})
        equal(events["events"], wanted, "events")
