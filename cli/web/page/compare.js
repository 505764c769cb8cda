// Two runs on one time axis, from their starts or from a mark that both have. The model has the first run; the second one,
// model.other, takes its place while it is drawn: inOther().
//
// Times are those of the common axis: an overview of a run has the origin that makes them so. The runs of a report are in
// it. From a server, a run is a recording, and times are converted in requests and answers. It is {id, index, base, from,
// to}: its index in the server's list, the time that is 0 on the axis, and its first and last record.
/* global d3 */

import { eachCell, model } from "./model.js";
import { isPort, PORT_0 } from "./text.js";
import { fromRfc3339, toRfc3339 } from "./time.js";

// The overview of a run whose time starts `zero` ns after its origin.
function onAxis(overview, zero) {
	return { ...overview, axis: overview.axis ?? "seconds", origin_ns: String(-BigInt(zero)) };
}

// Gives pictures the same rows: all of both, with the larger blocks of the two.
export function shareRows(overviews) {
	const rows = overviews.flatMap((one) => one.rows);
	const size = (port) => d3.max(rows.filter((row) => isPort(row.place) === port), (row) => row.count);
	const sizes = [size(false), size(true)];
	const block = (place) => place - (isPort(place) ? (place - PORT_0) % sizes[1] : place % sizes[0]);
	const names = new Map();
	for (const { place, name } of rows) {
		names.set(block(place), names.get(block(place)) || name);
	}
	const places = [...names.keys()].sort(d3.ascending);
	const shared = places.map((place) => ({ place, count: sizes[Number(isPort(place))], name: names.get(place) }));
	const indices = new Map(places.map((place, i) => [place, i]));
	const share = (overview, column) => {
		const cells = [];
		eachCell(column, (row, i) => {
			const index = indices.get(block(overview.rows[row].place));
			if (cells[cells.length - 5] !== index) {
				cells.push(index, 0, 0, 0, 0);
			}
			for (let k = 0; k < 4; k++) {
				cells[cells.length - 4 + k] += column.cells[i + k];
			}
		});
		return { ...column, cells };
	};
	return overviews.map((one) => ({ ...one, rows: shared, processors: [], columns: one.columns.map((column) => share(one, column)) }));
}

// Shows the two runs of a report.
export function compareReports(report) {
	const { compared } = report;
	const [first, second] = shareRows([onAxis(report.overview, report.zero), onAxis(compared.overview, compared.zero)]);
	model.picture = model.overview = model.whole = first;
	model.events = report.events;
	model.other = { overview: second, events: compared.events };
}

// ---- runs of a server

// The times of a request for a view, or for everything.
export function runTimes(run, view) {
	const base = run ? run.base : 0n;
	return view ? { from: view.from + base, to: view.to + base } : run ? { from: run.from, to: run.to } : {};
}

export function overviewOfRun(run, overview) {
	const own = (list) => list.filter((one) => one.recording === run.index).map((one) => ({ ...one, recording: 0 }));
	run.index = overview.recordings.findIndex((one) => one.id === run.id);
	const recordings = overview.recordings.filter((one) => one.id === run.id);
	const [extent = { from: 0, to: 0 }] = recordings;
	const time = (relative) => BigInt(overview.origin_ns) + BigInt(relative);
	Object.assign(run, { from: time(extent.from), to: time(extent.to) });
	return {
		...onAxis(overview, run.base - BigInt(overview.origin_ns)), recordings, extent,
		columns: own(overview.columns), holes: own(overview.holes),
	};
}

export function eventsOfRun(run, events) {
	const own = events.events.filter((one) => one.recording === run.index);
	return { ...events, origin_ns: String(BigInt(events.origin_ns) - run.base), events: own.map((one) => ({ ...one, recording: 0 })) };
}

export function findInRun(run, { from, to, ...others }) {
	const time = (text, usual) => toRfc3339(text ? fromRfc3339(text) + run.base : usual);
	return { ...others, from: time(from, run.from), to: time(to, run.to + 1n) };
}

export function hitOfRun(run, hit) {
	return { ...hit, time: hit.time && toRfc3339(fromRfc3339(hit.time) - run.base) };
}
