// The records of a part of the picture: a search for the page, a command for the tool, a file for other programs.
/* global d3 */

import { model, toAbsolute } from "./model.js";
import { PLACES, PORT_0, PORTS } from "./text.js";
import { countedAxis, hasTimesOfDay, toRfc3339 } from "./time.js";

const CLASS_TYPES = {
	fetch: "fetch", read: "read,ioread", write: "write,iowrite",
	other: "deferreply,inta,cntrlagntres,brtracerec,shutdown,flush,halt,sync,flushack,stopclkack,smiack",
};
const CSV_COLUMNS = ["recording", "number", "tick", "epoch", "time", "type", "addr", "size", "attr", "proc", "name"];

// Returns the searches for the records in a view, of one class or of all, and of all processors or of some. Memory and ports are two searches, as a search has
// one range. They also find records that begin before the range and reach into it.
export function viewQueries({ from, to, placeFrom, placeTo }, shown, proc = null) {
	const hex = (first, last) => `${first.toString(16)}-${last.toString(16)}`;
	const common = { from: toRfc3339(from), to: toRfc3339(to + 1n), ...(shown === "all" ? {} : { type: CLASS_TYPES[shown] }), ...(proc ? { proc } : {}) };
	if (placeFrom === 0 && placeTo === PLACES - 1) {
		return [common];
	}
	const found = [];
	if (placeFrom < PORT_0) {
		found.push({ ...common, addr: hex(placeFrom * 4096, Math.min(placeTo + 1, PORT_0) * 4096 - 1) });
		if (shown !== "all" || placeFrom * 4096 < PORTS) {
			const types = shown === "all" ? Object.values(CLASS_TYPES).join() : CLASS_TYPES[shown];
			found[0].type = types.replace(/,io(read|write)/g, "");
		}
	}
	if (placeTo >= PORT_0 && !["fetch", "other"].includes(shown)) {
		found.push({ ...common, port: hex(Math.max(placeFrom - PORT_0, 0), placeTo - PORT_0) });
	}
	return found;
}

export function quoted(text) {
	return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}

// The command that writes the same records. The directories are those of the hits.
export function commandText(queries, hits) {
	const paths = [...new Set(hits.map((hit) => hit.file.replace(/\/[^/]*$/, "") || "/"))];
	return queries.map((query) => ["buscap", "cut", ...Object.entries(query).flatMap(([name, value]) => [`--${name}`, value]),
		"-O", "csv", ...paths].map(quoted).join(" ")).join("; ");
}

export function csvText(hits) {
	const cell = (value) => (value === null || value === undefined ? "" : String(value));
	const columns = CSV_COLUMNS.filter((name) => (name !== "time" || hasTimesOfDay()) && (name !== "tick" || countedAxis() !== "records"));
	return `${d3.csvFormatRows([columns, ...hits.map((hit) => columns.map((name) => cell(hit[name])))])}\n`;
}

// Offers a file to save.
export function saveFile(name, type, text) {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(new Blob([text], { type }));
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// The rows of the cursor, which the keyboard may extend: the first and the last.
export function cursorRows({ row, toRow = row }) {
	return [Math.min(row, toRow), Math.max(row, toRow)];
}

// The view of a cell of the heat map, or of several. The end of a column is the start of the next one.
export function cellView(cell) {
	const one = model.overview.columns[cell.column];
	const [block, last] = cursorRows(cell).map((row) => model.overview.rows[row]);
	const from = toAbsolute(one.from);
	const end = toAbsolute(one.to);
	return { from, to: end > from ? end - 1n : from, placeFrom: block.place, placeTo: last.place + last.count - 1 };
}

// The searches for the records of a cell. A column of chunks has all of their records: of a live source, the last ones may
// be later than the start of the next column.
export function cellQueries(cell, shown) {
	const view = cellView(cell);
	const { columns, rows, tracks, unit } = model.overview;
	const { first_record: first, records, numbered = records, to, duration_ns: duration } = columns[cell.column];
	const proc = tracks ? tracks[rows[cell.row].track].text : null;
	if (unit === "records" || !records) {
		return viewQueries(view, shown, proc);
	}
	const range = `${first}-${first + numbered - 1}`;
	return viewQueries({ ...view, to: toAbsolute(to + duration) }, shown, proc).map((query) => ({ ...query, records: range }));
}
