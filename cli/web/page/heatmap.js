// The heat map: columns of time, rows of addresses. Cells with more records are darker, or brighter on a dark screen.
/* global d3 */

import { currentColours, heatColour, heatStep } from "./colours.js";
import {
	cellCounts, eachCell, model, mostInCell, onlyProcessors, processorText, shownCount, toAbsolute, toRelative, visibleRows,
} from "./model.js";
import {
	columnAtPixel, columnPixels, drawFrame, drawMarkers, drawPauses, edges, fitText, FONT, MONO, prepareCanvas, timeScale, trackBands,
} from "./plot.js";
import { cellView, cursorRows } from "./selection.js";
import { holeLines, linedSymbols } from "./timeline.js";
import { address, addressRange, CLASS_TEXTS, count, endsText, isPort, PORT_0, PORTS, visible } from "./text.js";
import { formatSpan, formatTime, fromRfc3339 } from "./time.js";

const MAP_TOP = 4;
const MAP_BOTTOM = 6;
const DIVIDER = 9; // between memory and I/O
const HIGHEST = 22; // a row
const LABEL = 13; // a line of text

// How many rows this canvas can show well, in each of its tracks.
export function rowsThatFit(canvas) {
	const tracks = model.proc === "each" && model.picture ? model.picture.processors.length : 1;
	return Math.max(16, Math.min(1024, Math.floor((canvas.clientHeight - MAP_TOP - MAP_BOTTOM - DIVIDER) / 3 / Math.max(1, tracks))));
}

// The pixels of the rows of a part: {track, top, list: [{row, y, height}], divider: y or null, bottom}.
function bandPixels({ track, top: start, bottom: limit }) {
	const { rows } = model.overview;
	const indices = visibleRows().filter((i) => track === null || rows[i].track === track);
	const firstPort = indices.findIndex((i) => isPort(rows[i].place));
	const isDivided = firstPort > 0;
	const room = limit - start - (isDivided ? DIVIDER : 0);
	const each = Math.min(HIGHEST, room / Math.max(1, indices.length));
	const memory = isDivided ? firstPort : indices.length;
	const ports = indices.length - memory;
	// Even with thousands of pages, ports get a quarter.
	const port = Math.max(each, Math.min(LABEL, room / 4 / ports));
	const page = Math.min(each, (room - ports * port) / memory);
	const top = (n) => Math.round(Math.min(n, memory) * page + Math.max(0, n - memory) * port);
	const list = indices.map((row, n) => {
		const y = start + top(n) + (isDivided && n >= memory ? DIVIDER : 0);
		return { row, y, height: Math.max(1, top(n + 1) - top(n)) };
	});
	const end = list.length ? list[list.length - 1] : { y: start, height: 0 };
	const divider = isDivided ? list[firstPort].y - Math.round(DIVIDER / 2) : null;
	return { track, top: start, list, divider, bottom: end.y + end.height };
}

function bandsPixels(height) {
	return trackBands(MAP_TOP, height - MAP_BOTTOM).map(bandPixels);
}

function rowPixels(height) {
	return bandsPixels(height).flatMap(({ list }) => list);
}

// Cells are drawn from the emptiest to the fullest, so the fullest of a pixel is visible.
function drawCells(context, width, height) {
	const scale = timeScale(width);
	const byRow = new Map(rowPixels(height).map((one) => [one.row, one]));
	const most = mostInCell();
	const boxes = currentColours().heat.map(() => []);
	for (const column of model.overview.columns) {
		const pixels = columnPixels(column, scale);
		if (!pixels) {
			continue;
		}
		eachCell(column, (row, i) => {
			const place = byRow.get(row);
			const n = place ? shownCount(column.cells, i) : 0;
			if (n) {
				boxes[heatStep(n, most)].push(pixels.x, place.y, pixels.width, place.height);
			}
		});
	}
	boxes.forEach((list, step) => {
		context.fillStyle = currentColours().heat[step];
		for (let i = 0; i < list.length; i += 4) {
			context.fillRect(list[i], list[i + 1], list[i + 2], list[i + 3]);
		}
	});
}

// Rows to label, the important ones first: where a named region starts, where untouched memory was left out, then any.
function labelled(list) {
	const { rows } = model.overview;
	const importance = list.map(({ row }, n) => {
		const before = n ? rows[list[n - 1].row] : null;
		const one = rows[row];
		if (!before || one.track !== before.track || (one.name && one.name !== before.name) || isPort(one.place) !== isPort(before.place)) {
			return 2;
		}
		return one.place !== before.place + before.count || one.name !== before.name ? 1 : 0;
	});
	const order = d3.range(list.length).sort((a, b) => importance[b] - importance[a] || a - b);
	const chosen = [];
	for (const n of order) {
		const y = list[n].y + Math.min(list[n].height / 2, LABEL / 2);
		if (chosen.every((other) => Math.abs(other.y - y) >= LABEL)) {
			chosen.push({ y, n });
		}
	}
	return chosen.sort((a, b) => a.y - b.y);
}

function drawLabels(context, width, height) {
	const { left } = edges(width);
	const colours = currentColours();
	const { rows } = model.overview;
	const list = rowPixels(height);
	let name = null;
	context.textAlign = "right";
	for (const { y, n } of labelled(list)) {
		const row = rows[list[n].row];
		const at = Math.min(Math.max(y, 7), height - 6);
		context.font = MONO;
		context.fillStyle = colours.dim;
		context.fillText(address(row.place), left - 8, at);
		const used = context.measureText("00000000").width + 16;
		if (row.name && row.name !== name && left - used > 60) {
			context.font = FONT;
			context.fillStyle = colours.ink;
			context.fillText(fitText(context, visible(row.name), left - used - 8), left - used, at);
		}
		name = row.name;
		context.fillStyle = colours.line;
		context.fillRect(left - 5, Math.round(list[n].y), 4, 1);
	}
	context.font = FONT;
}

export function placeOfHit(hit) {
	const addr = parseInt(hit.addr, 16);
	return /^IO/.test(hit.type) ? PORT_0 + addr % PORTS : Math.floor(addr / 4096);
}

// The row of a record's address, in its processor's track.
function rowOfHit(hit) {
	const { rows, tracks } = model.overview;
	const place = placeOfHit(hit);
	return rows.findIndex((row) => place >= row.place && place < row.place + row.count
		&& (!tracks || tracks[row.track].procs.includes(hit.proc)));
}

// Single records as dots, and the hits of a search as rings.
function drawRecords(context, width, height, hits, isRing) {
	const colours = currentColours();
	const scale = timeScale(width);
	const [left, right] = scale.range();
	const byRow = new Map(rowPixels(height).map((one) => [one.row, one]));
	for (const hit of hits) {
		const place = byRow.get(rowOfHit(hit));
		const x = hit.time ? scale(toRelative(fromRfc3339(hit.time))) : -1;
		if (!place || x < left || x > right) {
			continue;
		}
		context.beginPath();
		context.arc(x, place.y + place.height / 2, isRing ? 5 : 2.5, 0, 7);
		context.lineWidth = isRing ? 1.5 : 1;
		context.strokeStyle = isRing ? colours.accent : colours.paper;
		context.fillStyle = colours.ink;
		if (!isRing) {
			context.fill();
		}
		context.stroke();
	}
	context.lineWidth = 1;
}

function drawCursor(context, width, height) {
	const [box, last] = cursorRows(model.cursor).map((row) => cellPixels(width, height, model.cursor.column, row));
	if (!box || !last) {
		return;
	}
	box.height = last.y + last.height - box.y;
	const colours = currentColours();
	const { left } = edges(width);
	const row = Math.round(box.y + box.height / 2) + 0.5;
	const column = Math.round(box.x + box.width / 2) + 0.5;
	// On cells of any colour, light or dark: an edge of the paper's colour around each line.
	for (const [colour, edge] of [[colours.paper, 2], [colours.cursor, 0]]) {
		context.strokeStyle = colour;
		context.lineWidth = 1 + edge;
		context.strokeRect(left, row, Math.max(0, box.x - 4 - left), 0);
		context.strokeRect(column, MAP_TOP, 0, Math.max(0, box.y - 4 - MAP_TOP));
		context.lineWidth = 2 + edge;
		context.strokeRect(box.x - 2, box.y - 2, box.width + 4, box.height + 4);
	}
	context.lineWidth = 1;
}

// A cell's pixels, or null if it isn't visible. Tests compare them with the model.
export function cellPixels(width, height, column, row) {
	const pixels = columnPixels(model.overview.columns[column], timeScale(width));
	const place = rowPixels(height).find((one) => one.row === row);
	return pixels && place ? { ...pixels, y: place.y, height: place.height } : null;
}

export function drawHeatMap(canvas) {
	const { context, width, height } = prepareCanvas(canvas);
	if (!model.overview.rows.length) {
		return;
	}
	const { left, right } = edges(width);
	const colours = currentColours();
	const bands = bandsPixels(height);
	const { bottom } = bands[bands.length - 1];
	drawPauses(context, timeScale(width), MAP_TOP, bottom - MAP_TOP, false);
	drawCells(context, width, height);
	for (const symbol of linedSymbols(width)) {
		context.strokeStyle = colours[symbol.kind] || colours.ink;
		context.setLineDash(symbol.kind === "gap" ? [3, 3] : [1, 3]);
		context.beginPath();
		context.moveTo(Math.round(symbol.x) + 0.5, MAP_TOP);
		context.lineTo(Math.round(symbol.x) + 0.5, bottom);
		context.stroke();
	}
	context.setLineDash([]);
	context.fillStyle = colours.dim;
	for (const { divider } of bands.filter((one) => one.divider !== null)) {
		context.fillRect(left - 60, divider, right - left + 60, 1);
	}
	bands.forEach((band) => drawFrame(context, width, band));
	drawLabels(context, width, height);
	if (model.records) {
		drawRecords(context, width, height, model.records.hits, false);
	}
	if (model.search && model.search.hits) {
		drawRecords(context, width, height, model.search.hits, true);
	}
	drawMarkers(context, timeScale(width), MAP_TOP, bottom - MAP_TOP, false);
	if (model.cursor) {
		drawCursor(context, width, height);
	}
}

// {column, row} at a pixel; -1 for none.
export function cellAtPixel(canvas, x, y) {
	const place = rowPixels(canvas.clientHeight).find((one) => y >= one.y && y < one.y + one.height);
	return { column: columnAtPixel(x, timeScale(canvas.clientWidth)), row: place ? place.row : -1 };
}

// The places between two pixels, as a range of whole rows; null if no row is there.
export function placesBetween(canvas, y0, y1) {
	const { rows } = model.overview;
	const found = rowPixels(canvas.clientHeight).filter((one) => one.y + one.height > y0 && one.y < y1).map(({ row }) => rows[row]);
	return !found.length ? null
		: { placeFrom: d3.min(found, (row) => row.place), placeTo: d3.max(found, (row) => row.place + row.count - 1) };
}

function placeLines(row) {
	const track = row.track === undefined || onlyProcessors() ? [] : [["track", processorText(row.track)]];
	return [...track, ["address", addressRange(row.place, row.count)], ...(row.name ? [["region", visible(row.name)]] : [])];
}

export function cellLines(cell) {
	const { column } = cell;
	const one = model.overview.columns[column];
	const [first, last] = cursorRows(cell);
	const { placeFrom, placeTo } = cellView(cell);
	const places = first === last ? placeLines(model.overview.rows[first]) : [["addresses", endsText(placeFrom, placeTo).join("\u2013")]];
	if (one.is_hole) {
		return [...places, ...holeLines(one)];
	}
	const cells = d3.range(first, last + 1).map((row) => cellCounts(one, row) || [0, 0, 0, 0]);
	const counts = CLASS_TEXTS.map((name, k) => d3.sum(cells, (four) => four[k]));
	return [
		...places,
		["time", `${formatTime(toAbsolute(one.from), 1, false)} + ${formatSpan(one.to - one.from)}`],
		...CLASS_TEXTS.map((name, k) => [name, count(counts[k])]),
		["records", count(d3.sum(counts))],
	];
}

export function heatMapTip(canvas, x, y) {
	const cell = cellAtPixel(canvas, x, y);
	if (cell.row < 0) {
		return null;
	}
	if (cell.column >= 0) {
		return cellLines(cell);
	}
	const place = model.overview.rows[cell.row];
	return placeLines(place);
}

// The scale of colours, with its figures.
export function drawLegend(canvas) {
	const { context, width, height } = prepareCanvas(canvas);
	const colours = currentColours();
	const most = mostInCell();
	context.clearRect(0, 0, width, height);
	if (!most) {
		return;
	}
	context.fillStyle = colours.dim;
	context.textAlign = "left";
	const title = "records per cell";
	context.fillText(title, 0, height / 2);
	const left = Math.ceil(context.measureText(title).width) + 16;
	const right = width - 24;
	const scale = d3.scaleLog([1, Math.max(most, 2)], [left, right]);
	for (let x = left; x < right; x++) {
		context.fillStyle = heatColour(Math.max(1, most ** ((x - left) / (right - left))), most);
		context.fillRect(x, 2, right - x, 8); // no seams
	}
	context.fillStyle = colours.ink;
	context.textAlign = "center";
	let free = left - 40;
	const powers = d3.range(0, Math.floor(Math.log10(most) + 1e-9) + 1).map((power) => 10 ** power);
	for (const tick of most > 1 ? [...powers.filter((power) => scale(power) < right - 36), most] : [1]) {
		const text = count(tick);
		const half = context.measureText(text).width / 2;
		if (scale(tick) - half > free) {
			context.fillText(text, scale(tick), 19);
			free = scale(tick) + half + 6;
		}
	}
	canvas.setAttribute("aria-label", `Colours: from 1 to ${count(most)} records per cell, logarithmic`);
}
