// Mouse, touch and keys on the timeline and the heat map.

import { hasMarkers, markerTime, setMarker } from "./markers.js";
import { inOther, model, pannedView, spanView, toAbsolute, wholeView, zoomedView } from "./model.js";
import { cellAtPixel, cellLines, heatMapTip, placesBetween } from "./heatmap.js";
import { edges, timeAtPixel } from "./plot.js";
import { cellView, cursorRows } from "./selection.js";
import { timelineTip } from "./timeline.js";

const DRAG = 4; // pixels that make a click a drag
const TALL = 12; // pixels that make a drag select addresses too
const PAN = 0.25; // of the view, for a key

function place(element, left, top, width, height) {
	element.style.left = `${left}px`;
	element.style.top = `${top}px`;
	if (width !== undefined) {
		element.style.width = `${width}px`;
		element.style.height = `${height}px`;
	}
}

function showTip(plots, plot, lines, x, y) {
	const tip = plots.querySelector("#tip");
	tip.hidden = !lines;
	if (!lines) {
		return;
	}
	tip.replaceChildren(...lines.flatMap(([term, text]) => {
		const left = document.createElement("b");
		const right = document.createElement("span");
		left.textContent = term;
		right.textContent = text;
		return [left, right];
	}));
	const space = plots.getBoundingClientRect();
	const own = plot.getBoundingClientRect();
	const px = own.left - space.left + x;
	const py = own.top - space.top + y;
	const { offsetWidth: width, offsetHeight: height } = tip;
	const left = px + 14 + width <= space.width ? px + 14 : px - 14 - width;
	place(tip, Math.max(0, Math.min(left, space.width - width)), Math.max(0, Math.min(py + 14, space.height - height)));
}

// Returns the view that a drag from one point to another selects in a plot.
function draggedView(plot, start, end) {
	const canvas = plot.querySelector("canvas");
	const [x0, x1] = [start.x, end.x].sort((a, b) => a - b);
	const [y0, y1] = [start.y, end.y].sort((a, b) => a - b);
	const { view } = model;
	const isTime = x1 - x0 > DRAG;
	const isTall = isMap(plot) && y1 - y0 > TALL;
	const places = isTall ? placesBetween(canvas, y0, y1) : null;
	const from = isTime ? timeAtPixel(x0, canvas.clientWidth) : view.from;
	const to = isTime ? timeAtPixel(x1, canvas.clientWidth) : view.to;
	const { placeFrom, placeTo } = places || view;
	return spanView(from, to, placeFrom, placeTo);
}

function isMap(plot) {
	return plot.id.startsWith("heatmap");
}

function isOther(plot) {
	return plot.id.endsWith("-b");
}

let pointed = null; // where the tip points: {plots, plot, x, y}

// Shows the figures at the pointer. Called again when the picture under it changes.
export function drawTip() {
	if (!pointed) {
		return;
	}
	const { plots, plot, x, y } = pointed;
	const canvas = plot.querySelector("canvas");
	const isOnMap = isMap(plot);
	const isInside = isOnMap || x >= edges(canvas.clientWidth).left - 1;
	const tip = isOnMap ? heatMapTip : timelineTip;
	const lines = () => (isInside ? tip(canvas, x, y) : null);
	showTip(plots, plot, isOther(plot) ? inOther(lines) : lines(), x, y);
}

// Where a key sets a marker: at the pointer, else at the start or the end of the cursor's column, else in the middle.
export function timeToMark(name) {
	const { view, cursor } = model;
	if (pointed) {
		return markerTime(pointed.x, pointed.plot.clientWidth);
	}
	return cursor ? cellView(cursor)[name === "a" ? "from" : "to"] : (view.from + view.to) / 2n;
}

function hideTip(plots) {
	pointed = null;
	plots.querySelector("#tip").hidden = true;
}

function listenToPointer(plots, plot, app) {
	const band = plots.querySelector("#band");
	let start = null;
	let grip = null; // the pointer's x while a drag with Shift moves the view
	const point = (event) => {
		const box = plot.getBoundingClientRect();
		return { x: event.clientX - box.left, y: event.clientY - box.top };
	};
	const drawBand = (end) => {
		const isTall = isMap(plot) && Math.abs(end.y - start.y) > TALL;
		const top = plot.offsetTop + (isTall ? Math.min(start.y, end.y) : 0);
		const height = isTall ? Math.abs(end.y - start.y) : plot.offsetHeight;
		place(band, plot.offsetLeft + Math.min(start.x, end.x), top, Math.abs(end.x - start.x), height);
		band.hidden = false;
	};
	plot.addEventListener("pointerdown", (event) => {
		if (event.button === 0 && model.view) {
			if (event.shiftKey) {
				grip = point(event).x;
			} else {
				start = point(event);
			}
			model.isDragging = true;
			plot.setPointerCapture(event.pointerId);
		}
	});
	plot.addEventListener("pointermove", (event) => {
		const at = point(event);
		if (!model.view) {
			return;
		}
		if (grip !== null) {
			const { left, right } = edges(plot.clientWidth);
			app.go(pannedView(model.view, (grip - at.x) / (right - left)), true);
			grip = at.x;
		}
		if (start && (Math.abs(at.x - start.x) > DRAG || Math.abs(at.y - start.y) > TALL)) {
			drawBand(at);
			hideTip(plots);
			return;
		}
		pointed = { plots, plot, ...at };
		drawTip();
	});
	const finish = (event) => {
		band.hidden = true;
		const from = start;
		start = grip = null;
		model.isDragging = false;
		if (!from || event.type === "pointercancel") {
			return;
		}
		const at = point(event);
		if (Math.abs(at.x - from.x) > DRAG || (isMap(plot) && Math.abs(at.y - from.y) > TALL)) {
			app.go(draggedView(plot, from, at));
		} else if (model.armed) {
			setMarker(app, model.armed, markerTime(at.x, plot.clientWidth));
		} else if (plot.id === "heatmap") {
			const cell = cellAtPixel(plot.querySelector("canvas"), at.x, at.y);
			setCursor(app, cell.column >= 0 && cell.row >= 0 ? cell : null);
			if (model.cursor && !model.isReport) {
				app.listCell();
			}
		}
	};
	plot.addEventListener("pointerup", finish);
	plot.addEventListener("pointercancel", finish);
	plot.addEventListener("pointerleave", () => hideTip(plots));
	plot.addEventListener("wheel", (event) => {
		if (!model.view) {
			return;
		}
		event.preventDefault();
		const { left, right } = edges(plot.clientWidth);
		const unit = event.deltaMode === 1 ? 33 : 1;
		if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			app.go(pannedView(model.view, (event.deltaX || event.deltaY) * unit / (right - left)), true);
			return;
		}
		const share = Math.min(1, Math.max(0, (point(event).x - left) / (right - left)));
		app.go(zoomedView(model.view, 2 ** (-event.deltaY * unit / 240), share), true);
	}, { passive: false });
}

export function setCursor(app, cell) {
	model.cursor = cell;
	model.cell = null;
	app.redraw();
	app.announce(cell ? cellLines(cell).map(([term, text]) => `${term} ${text}`).join(", ") : "");
}

// Moves the cursor to the next column and row that are visible.
function moveCursor(app, dx, dy) {
	const columns = app.columnsInView();
	const rows = app.rowsInView();
	if (!columns.length || !rows.length) {
		return;
	}
	const old = model.cursor || { column: columns[0], row: rows[0] };
	const step = (list, now, by) => {
		const at = list.indexOf(now);
		return list[Math.min(list.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
	};
	const isNew = !model.cursor;
	setCursor(app, { column: step(columns, old.column, isNew ? 0 : dx), row: step(rows, old.row, isNew ? 0 : dy) });
}

// Extends the cursor to the next row of its track.
function extendCursor(app, dy) {
	const { track } = model.overview.rows[model.cursor.row];
	const rows = app.rowsInView().filter((row) => model.overview.rows[row].track === track);
	const { row, toRow = row } = model.cursor;
	const next = rows[rows.indexOf(toRow) + dy];
	setCursor(app, { ...model.cursor, toRow: next === undefined ? toRow : next });
}

// Zooms to the addresses of the cursor if it has several rows, else to its column. The last column may end 1 ns after
// everything, which would move the view back by 1 ns.
function enterCursor(app) {
	const [first, last] = cursorRows(model.cursor);
	if (first !== last) {
		const { placeFrom, placeTo } = cellView(model.cursor);
		app.go({ ...model.view, placeFrom, placeTo });
		return;
	}
	const column = model.overview.columns[model.cursor.column];
	const [to, end] = [toAbsolute(column.to), wholeView().to];
	app.go(spanView(toAbsolute(column.from), to < end ? to : end, model.view.placeFrom, model.view.placeTo));
}

function listenToKeys(plots, app) {
	const acts = {
		Home: "home", "+": "in", "=": "in", "-": "out", Backspace: "back", Escape: "back", "?": "help", "/": "search", g: "search",
		n: "next", p: "previous", f: "resume", a: "markA", b: "markB",
	};
	document.addEventListener("keydown", (event) => {
		if (event.key === "Escape" && event.target.id === "search-text") {
			app.act("leaveSearch");
			event.preventDefault();
			return;
		}
		if (event.key === "Enter" && event.shiftKey && event.target.id === "search-text") {
			app.act("showPlaces");
			event.preventDefault();
			return;
		}
		if (event.ctrlKey && event.key === "g") {
			app.act("search");
			event.preventDefault();
			return;
		}
		const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
		if (event.ctrlKey || event.altKey || event.metaKey || isTyping || document.querySelector("dialog[open], :popover-open")) {
			return;
		}
		const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
		const isOnMap = event.target.id === "heatmap";
		if (arrows && model.view && (isOnMap || /^(timeline|strip|.*-b)$/.test(event.target.id) || event.target === document.body)) {
			if (isOnMap && !event.shiftKey) {
				moveCursor(app, ...arrows);
			} else if (isOnMap && arrows[1] && model.cursor) {
				extendCursor(app, arrows[1]);
			} else if (arrows[0]) {
				app.go(pannedView(model.view, arrows[0] * PAN), true);
			} else {
				return;
			}
		} else if (event.key === "Enter" && isOnMap && model.cursor) {
			if (event.shiftKey || model.isReport) {
				enterCursor(app);
			} else {
				app.listCell();
			}
		} else if (event.key === "Escape" && model.isDragging) {
			plots.querySelectorAll(".plot").forEach((plot) => plot.dispatchEvent(new Event("pointercancel")));
		} else if (event.key === "Escape" && model.cursor) {
			setCursor(app, null);
		} else if (event.key === "Escape" && hasMarkers()) {
			app.act("clear");
		} else if (acts[event.key]) {
			app.act(acts[event.key]);
		} else {
			return;
		}
		event.preventDefault();
	});
}

export function listen(plots, app) {
	for (const plot of plots.querySelectorAll(".plot")) {
		listenToPointer(plots, plot, app);
	}
	listenToKeys(plots, app);
}
