// The data of the page. Everything drawn comes from here, and the tests read it as window.buscap.model.
/* global d3 */

import { CLASSES, PLACES, plural, PORT_0 } from "./text.js";
import { countedAxis, formatDuration } from "./time.js";

export const model = {
	isReport: false,
	report: null, // made, program, reduced
	picture: null, // as the server sent it; of two runs, the first
	overview: null, // what is shown of it: of all processors, or of some (processors.js)
	compared: null, // the ids of two recordings and the mark from which their times count, or null: {a, b, mark}
	runs: null, // these: compare.js
	recordings: [], // of the server's last answer, also while two are compared
	other: null, // the second run: {overview, events}
	isOther: false, // it is drawn: inOther()
	whole: null, // the overview of everything, with few rows; it may be a little older
	events: null,
	window: "all", // what is followed: follow.js
	isFollowing: true, // the view moves with the window
	view: null, // {from, to: BigInt ns since 1970; placeFrom, placeTo}
	shown: "all", // or a class
	proc: "all", // or "each", or the processors of a track
	tab: "totals", // the open table
	cursor: null, // {column, row, toRow}: indices in the overview; without toRow, one row
	records: null, // single records in the view: {hits, isCutOff}
	localities: null, // {from, to, of, at: ms; list: {working_set, miss_ratio, at_least} of each run; error}; null: not read
	hiddenKinds: new Set(), // of events
	markers: { a: null, b: null }, // times: markers.js
	armed: null, // the marker that the next click sets
	measured: null, // what is between the markers: {records, counts, ..., isExact, ticks}, or {error}; null: not known yet
	cell: null, // the records of the cursor's cell: {queries, recording, hits, isCutOff, page, error}; hits null: being fetched
	search: null, // {text, which: "first" or "last", limit, hits, end, error}
	linkFault: null, // why the page's address can't be shown
	error: null, // why there is no picture: {text, since}
	liveError: null, // why there is no daemon's state: {text, since}
	around: null, // the records before and after a view without any: {before, after; from, to: their times}
	deleted: null, // which files are gone since they were shown: {text, since}
	isLoading: false,
	files: null, // {paths, files, read}: how far the first load is
	isDragging: false,
	live: null, // the last answer of /data/live
	mixes: [], // of the last ten seconds, oldest first, each with the time of its arrival
	history: null,
	liveEvents: [],
	lostSince: null, // when the daemon's answers ended
};

const MIN_SPAN = 20n; // ns: about a tick of a 66 MHz bus

function origin() {
	return BigInt(model.overview.origin_ns);
}

// From ns after the origin, as in the overview, and back.
export function toAbsolute(relative) {
	return origin() + BigInt(Math.round(relative));
}

export function toRelative(ns) {
	return Number(ns - origin());
}

// The view that shows a span of time: never empty.
export function spanView(from, to, placeFrom = 0, placeTo = PLACES - 1) {
	if (to - from < MIN_SPAN) {
		const middle = (from + to) / 2n;
		const half = to === from ? 500n : MIN_SPAN / 2n;
		return { from: middle - half, to: middle + half, placeFrom, placeTo };
	}
	return { from, to, placeFrom, placeTo };
}

export function wholeView(overview = model.overview) {
	const spans = [overview, ...(model.other ? [model.other.overview] : [])].map((one) => {
		const { from, to } = model.isReport ? one : one.extent;
		const start = BigInt(one.origin_ns);
		return [start + BigInt(Math.round(from)), start + BigInt(Math.round(to))];
	});
	return spanView(d3.min(spans, ([from]) => from), d3.max(spans, ([, to]) => to));
}

// Calls a function with the second run in the place of the first.
export function inOther(act) {
	const { overview, events, other, isOther, cursor, records, search } = model;
	Object.assign(model, { ...other, other: { overview, events }, isOther: !isOther, cursor: null, records: null, search: null });
	try {
		return act();
	} finally {
		Object.assign(model, { overview, events, other, isOther, cursor, records, search });
	}
}

// What a function returns of each run.
export function ofRuns(act) {
	return model.other ? [act(), inOther(act)] : [act()];
}

export function isSameView(a, b) {
	return a.from === b.from && a.to === b.to && a.placeFrom === b.placeFrom && a.placeTo === b.placeTo;
}

// Limits a view to the recordings.
export function clampView(view) {
	const whole = wholeView();
	const span = view.to - view.from;
	if (span >= whole.to - whole.from) {
		return { ...view, from: whole.from, to: whole.to };
	}
	let { from } = view;
	from = from < whole.from ? whole.from : from + span > whole.to ? whole.to - span : from;
	return { ...view, from, to: from + span };
}

// Zooms by a factor (2: half as much is seen), with the point at a share (0 .. 1) of the view staying where it is.
export function zoomedView(view, factor, share) {
	const span = Number(view.to - view.from);
	const next = Math.max(span / factor, Number(MIN_SPAN));
	const from = view.from + BigInt(Math.round((span - next) * share));
	return clampView({ ...view, from, to: from + BigInt(Math.round(next)) });
}

export function pannedView(view, share) {
	const by = BigInt(Math.round(Number(view.to - view.from) * share));
	return clampView({ ...view, from: view.from + by, to: view.to + by });
}

// The id of the daemon's recording, or null.
export function recordingInProgress() {
	const { live } = model;
	return live && live.status && live.status.recording ? live.status.recording.id : null;
}

// ---- figures of the overview

export function hasClocks() {
	return countedAxis() !== null || model.overview.recordings.every((recording) => recording.clock_hz);
}

export function isInView(from, to) {
	return to >= toRelative(model.view.from) && from <= toRelative(model.view.to);
}

// A column of one record, or of several at the same time, has no length, or 1 ns if its end is exclusive.
export function isMoment(column) {
	return column.to - column.from <= 1;
}

// The end of a column is the start of the next one, so a view of exactly one column has only that.
export function isColumnBetween(column, from, to) {
	return isMoment(column) ? column.to >= from && column.from <= to : column.to > from && column.from < to;
}

export function isColumnInView(column) {
	return isColumnBetween(column, toRelative(model.view.from), toRelative(model.view.to));
}

// The columns that have records: not the holes.
export function visibleColumns() {
	return model.overview.columns.filter((column) => !column.is_hole && isColumnInView(column));
}

export function visibleHoles() {
	return model.overview.columns.filter((column) => column.is_hole && isColumnInView(column));
}

// How many records are missing, or segments if their records are unknown; "" if none.
export function missingText(records, segments) {
	return records ? `${plural(records, "record")} missing` : segments ? `${plural(segments, "segment")} missing` : "";
}

// Why a hole has no records: nothing was recorded, or segments are missing.
export function holeText(hole) {
	return hole.away_ns ? `nothing recorded for ${formatDuration(hole.away_ns)}` : missingText(hole.missing) || "segments missing";
}

export function classIndex() {
	return CLASSES.indexOf(model.shown);
}

// The figure to show of a cell's or column's four counts.
export function shownCount(counts, at = 0) {
	const index = classIndex();
	return index < 0 ? counts[at] + counts[at + 1] + counts[at + 2] + counts[at + 3] : counts[at + index];
}

// Calls visit(row, index of the four counts in cells) for each cell of a column.
export function eachCell(column, visit) {
	const { cells } = column;
	for (let i = 0; i < cells.length; i += 5) {
		visit(cells[i], i + 1);
	}
}

// The four counts of a cell, or null.
export function cellCounts(column, row) {
	let found = null;
	eachCell(column, (at, i) => {
		if (at === row) {
			found = column.cells.slice(i, i + 4);
		}
	});
	return found;
}

// True if the view is limited to some addresses.
export function hasPlaces() {
	return model.view.placeFrom > 0 || model.view.placeTo < PLACES - 1;
}

// The processors shown, if not all.
export function onlyProcessors() {
	const { tracks } = model.overview;
	return tracks && tracks.length === 1 ? tracks[0].text : null;
}

// "processor 0", "processors 7-9,16" of a track.
export function processorText(track = 0) {
	const { procs, text } = model.overview.tracks[track];
	return `processor${procs.length > 1 ? "s" : ""} ${text}`;
}

let countsOf = { overview: null, placeFrom: 0, placeTo: 0, counts: null };

// The four counts of a column at the view's addresses, or of one of its tracks there: the sums of its cells in the rows shown.
export function columnCounts(column, track = null) {
	const { overview, view: { placeFrom, placeTo } } = model;
	if (!hasPlaces() && track === null) {
		return column.counts;
	}
	if (countsOf.overview !== overview || countsOf.placeFrom !== placeFrom || countsOf.placeTo !== placeTo) {
		const shown = new Set(visibleRows());
		const counts = new Map(overview.columns.map((one) => {
			const sums = [null, ...(overview.tracks || [])].map(() => [0, 0, 0, 0]); // of all, and of each track
			eachCell(one, (row, i) => {
				for (let k = 0; k < 4 && shown.has(row); k++) {
					sums[0][k] += one.cells[i + k];
					if (overview.tracks) {
						sums[overview.rows[row].track + 1][k] += one.cells[i + k];
					}
				}
			});
			return [one, sums];
		}));
		countsOf = { overview, placeFrom, placeTo, counts };
	}
	return countsOf.counts.get(column)[track === null ? 0 : track + 1];
}

// The records of a column at the view's addresses. Records at unknown addresses count only if all addresses are shown.
export function columnRecords(column) {
	return hasPlaces() ? d3.sum(columnCounts(column)) : column.records;
}

let mostOf = { overview: null, shown: null, most: 0 };

// The largest cell of the overviews: the end of the colour scale.
export function mostInCell() {
	return d3.max(ofRuns(mostOfRun));
}

function mostOfRun() {
	const { overview, shown } = model;
	if (mostOf.overview !== overview || mostOf.shown !== shown) {
		let most = 0;
		for (const column of overview.columns) {
			eachCell(column, (row, i) => {
				most = Math.max(most, shownCount(column.cells, i));
			});
		}
		mostOf = { overview, shown, most };
	}
	return mostOf.most;
}

// Indices of the rows in the view's range of places.
export function visibleRows() {
	const { rows } = model.overview;
	const { placeFrom, placeTo } = model.view;
	const indices = [];
	rows.forEach((row, i) => {
		if (row.place + row.count > placeFrom && row.place <= placeTo) {
			indices.push(i);
		}
	});
	return indices;
}

// Returns the sums over the columns in the view, at its addresses: counts and cells by class, memory and I/O apart.
export function totals() {
	const shown = visibleColumns();
	const rows = new Set(visibleRows());
	const sums = {
		columns: 0, records: 0, uncounted: 0, missing: 0, lost: 0, counts: [0, 0, 0, 0], memory: [0, 0, 0, 0], ports: [0, 0, 0, 0],
		rows: new Map(), isExact: true,
	};
	for (const column of shown) {
		sums.columns += 1;
		sums.records += columnRecords(column);
		sums.uncounted += column.uncounted;
		columnCounts(column).forEach((n, k) => { sums.counts[k] += n; });
		eachCell(column, (row, i) => {
			if (!rows.has(row)) {
				return;
			}
			const kind = model.overview.rows[row].place < PORT_0 ? sums.memory : sums.ports;
			const four = sums.rows.get(row) || [0, 0, 0, 0];
			for (let k = 0; k < 4; k++) {
				kind[k] += column.cells[i + k];
				four[k] += column.cells[i + k];
			}
			sums.rows.set(row, four);
		});
	}
	for (const part of [...shown, ...visibleHoles()]) {
		sums.missing += part.missing;
		sums.lost += part.lost;
		sums.isExact = sums.isExact && !part.inexact_gaps;
	}
	return sums;
}

// The four counts of each track in the view; none if processors are not shown apart.
export function trackTotals() {
	const shown = visibleColumns();
	return (model.overview.tracks || []).map((one, track) => [0, 1, 2, 3].map((k) => d3.sum(shown, (column) => columnCounts(column, track)[k])));
}

// Spans of the view without records, between recordings and within those that overlap in time, as of several hosts. After a damaged chunk, `uncounted` records may be
// anywhere in the span. Where segments are missing or nothing was recorded, there is a `hole`, a column. Returns [{from, to, isBetween, isHole,
// uncounted, hole}], relative.
export function pauses() {
	const { columns, recordings } = model.overview;
	const spans = [];
	const parts = []; // of each recording: the same for those that overlap
	let end = Infinity;
	let last = 0;
	for (const [i, recording] of [...recordings.entries()].sort(([, a], [, b]) => a.from - b.from)) {
		if (recording.from > end) {
			spans.push({ from: end, to: recording.from, isBetween: true });
			last += 1;
		}
		parts[i] = last;
		end = end === Infinity ? recording.to : Math.max(end, recording.to);
	}
	const ends = recordings.map(() => Infinity); // of the parts
	const latest = recordings.map(() => ({ uncounted: 0, first_record: -1 })); // by number: of a live source, chunks may overlap
	for (const column of [...columns].sort((a, b) => a.from - b.from)) {
		const part = parts[column.recording];
		if (column.from > ends[part]) {
			const uncounted = d3.sum(latest, (one, i) => (parts[i] === part ? one.uncounted : 0));
			spans.push({ from: ends[part], to: column.from, uncounted });
		}
		if (column.is_hole) {
			spans.push({ from: column.from, to: column.to, isHole: true, hole: column });
		}
		if (column.is_hole || column.first_record > latest[column.recording].first_record) {
			latest[column.recording] = column;
		}
		ends[part] = ends[part] === Infinity ? column.to : Math.max(ends[part], column.to);
	}
	return spans.filter((span) => isInView(span.from, span.to));
}

let sorted = { of: null, list: [] };

// Marks, triggers and gaps by time; the server sends them by recording.
export function eventsByTime() {
	if (sorted.of !== model.events) {
		const list = model.events ? [...model.events.events] : [];
		sorted = { of: model.events, list: list.sort((a, b) => a.time - b.time) };
	}
	return sorted.list;
}

// Those of the kinds that are shown.
export function shownEvents() {
	return eventsByTime().filter((event) => !model.hiddenKinds.has(event.kind));
}
