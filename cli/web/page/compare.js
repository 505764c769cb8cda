// Two runs on one time axis, from their starts or from a mark that both have. The model has the first run; the second one,
// model.other, takes its place while it is drawn: inOther().
//
// Times are those of the common axis: an overview of a run has the origin that makes them so.
/* global d3 */

import { eachCell, model } from "./model.js";
import { isPort, PORT_0 } from "./text.js";

// The overview of a run whose time starts `zero` ns after its origin.
function onAxis(overview, zero) {
	return { ...overview, axis: overview.axis ?? "seconds", origin_ns: String(-BigInt(zero)), processors: [] };
}

// Gives pictures the same rows: all of both, with the larger blocks of the two.
function shareRows(overviews) {
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
	return overviews.map((one) => ({ ...one, rows: shared, columns: one.columns.map((column) => share(one, column)) }));
}

// Shows the two runs of a report.
export function compareReports(report) {
	const { compared } = report;
	const [first, second] = shareRows([onAxis(report.overview, report.zero), onAxis(compared.overview, compared.zero)]);
	model.picture = model.overview = model.whole = first;
	model.events = report.events;
	model.other = { overview: second, events: compared.events };
}
