// What the timeline and the heat map share: the canvas, the x axis, pauses, text that fits.
/* global d3 */

import { currentColours } from "./colours.js";
import { holeText, isMoment, model, pauses, processorText, toAbsolute, toRelative } from "./model.js";
import { plural } from "./text.js";
import { formatSpan } from "./time.js";

export const FONT = "11px system-ui, 'DejaVu Sans', sans-serif";
export const MONO = "11px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
export const NEAR = 7; // pixels around an event that belong to it
const RIGHT = 12;
const PRINT_RATIO = 3; // dots per CSS pixel
const TRACK_NAME = 15; // height
const IDLE = 24; // pixels without records that are worth hatching within a recording

// The plot's left and right edge in a canvas of this width; the labels are on the left.
export function edges(width) {
	return { left: width >= 900 ? 212 : width >= 560 ? 150 : 78, right: width - RIGHT };
}

// Fits the canvas to its element and the screen's resolution, clears it, and returns its context in CSS pixels.
export function prepareCanvas(canvas) {
	const { clientWidth: width, clientHeight: height } = canvas;
	const isPrinting = document.documentElement.classList.contains("printing");
	const ratio = isPrinting ? PRINT_RATIO : window.devicePixelRatio || 1;
	if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
	}
	const context = canvas.getContext("2d");
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, width, height);
	context.fillStyle = currentColours().paper;
	context.fillRect(0, 0, width, height);
	context.font = FONT;
	context.textBaseline = "middle";
	return { context, width, height };
}

// From ns after the origin to pixels. Exact down to single ns, because differences of integers are.
export function timeScale(width) {
	const { left, right } = edges(width);
	return d3.scaleLinear([toRelative(model.view.from), toRelative(model.view.to)], [left, right]);
}

export function timeAtPixel(x, width) {
	const { left, right } = edges(width);
	const share = Math.min(1, Math.max(0, (x - left) / (right - left)));
	return toAbsolute(toRelative(model.view.from)) + BigInt(Math.round(Number(model.view.to - model.view.from) * share));
}

// The parts of a plot between two pixels: one for each track, below its name; or one of all if these are shown together.
export function trackBands(top, bottom) {
	const { tracks } = model.overview;
	if (!tracks || tracks.length < 2) {
		return [{ track: null, top, bottom }];
	}
	const at = d3.scaleLinear().domain([0, tracks.length]).rangeRound([top, bottom]);
	return tracks.map((one, track) => ({ track, top: at(track) + TRACK_NAME, bottom: at(track + 1) }));
}

// The frame of a part, and which processors it shows.
export function drawFrame(context, width, { track, top, bottom }) {
	const { left, right } = edges(width);
	const { dim, ink, paper } = currentColours();
	context.strokeStyle = dim;
	context.strokeRect(left - 0.5, top - 0.5, right - left + 1, bottom - top + 1);
	if (track !== null) {
		const text = processorText(track);
		context.fillStyle = paper;
		context.fillRect(left, top - TRACK_NAME + 1, context.measureText(text).width + 6, TRACK_NAME - 2);
		context.fillStyle = ink;
		context.textAlign = "left";
		context.fillText(text, left, top - TRACK_NAME / 2);
	}
}

// The markers in view, on any colour: a line with an edge of the paper's colour; with `label`, their names.
export function drawMarkers(context, scale, top, height, label) {
	const { ink, paper } = currentColours();
	const [left, right] = scale.range();
	for (const [name, ns] of Object.entries(model.markers)) {
		const x = ns === null ? -1 : Math.round(scale(toRelative(ns)));
		if (x < left || x > right) {
			continue;
		}
		context.fillStyle = paper;
		context.fillRect(x - 1, top, 3, height);
		context.fillStyle = ink;
		context.fillRect(x, top, 1, height);
		if (label) {
			context.fillRect(x - 7, top, 15, 14);
			context.fillStyle = paper;
			context.textAlign = "center";
			context.fillText(name.toUpperCase(), x + 0.5, top + 7.5);
		}
	}
}

// A column's pixels: whole, at least one, within the plot; three around a moment. null if there are none.
export function columnPixels(column, scale) {
	const [left, right] = scale.range();
	const isShort = isMoment(column) && scale(column.to) - scale(column.from) < 3;
	const start = Math.round(scale(column.from)) - (isShort ? 1 : 0);
	const end = isShort ? start + 3 : Math.max(Math.round(scale(column.to)), start + 1);
	if (end <= left || start >= right) {
		return null;
	}
	return { x: Math.max(start, left), width: Math.min(end, right) - Math.max(start, left) };
}

// The index of the column at a pixel, or -1.
export function columnAtPixel(x, scale) {
	const { columns } = model.overview;
	let found = -1;
	columns.forEach((column, i) => {
		const pixels = columnPixels(column, scale);
		if (pixels && x >= pixels.x && x < pixels.x + pixels.width) {
			found = i;
		}
	});
	return found;
}

// The text, cut off with an ellipsis if it does not fit; "" if hardly any fits.
export function fitText(context, text, width) {
	if (context.measureText(text).width <= width) {
		return text;
	}
	let length = text.length;
	while (length > 2 && context.measureText(`${text.slice(0, length)}\u2026`).width > width) {
		length -= 1;
	}
	return length > 2 ? `${text.slice(0, length)}\u2026` : "";
}

const hatches = new Map(); // patterns by colour

function hatching(context, line) {
	if (!hatches.has(line)) {
		const tile = document.createElement("canvas");
		tile.width = tile.height = 8;
		const ink = tile.getContext("2d");
		ink.strokeStyle = line;
		ink.lineWidth = 1;
		for (const x of [-8, 0, 8]) {
			ink.moveTo(x, 8);
			ink.lineTo(x + 8, 0);
		}
		ink.stroke();
		hatches.set(line, context.createPattern(tile, "repeat"));
	}
	return hatches.get(line);
}

// Hatches the times without records. With `label`, prints their durations if there is room.
export function drawPauses(context, scale, top, height, label) {
	const [left, right] = scale.range();
	for (const span of pauses()) {
		const x = Math.max(left, Math.round(scale(span.from)));
		const end = Math.max(Math.round(scale(span.to)), span.isHole ? x + 2 : x);
		const width = Math.min(right, end) - x;
		if (width < (span.isBetween || span.isHole ? 2 : IDLE)) {
			continue;
		}
		context.fillStyle = hatching(context, span.uncounted || span.isHole ? currentColours().gap : currentColours().line);
		context.fillRect(x, top, width, height);
		const text = span.isHole ? holeText(span.hole)
			: span.uncounted ? `${plural(span.uncounted, "record")} not counted`
			: `${span.isBetween ? "not recorded for" : "no records for"} ${formatSpan(span.to - span.from)}`;
		if (label && context.measureText(text).width + 12 < width) {
			const half = context.measureText(text).width / 2 + 4;
			context.fillStyle = currentColours().paper;
			context.fillRect(x + width / 2 - half, top + height / 2 - 8, 2 * half, 16);
			context.fillStyle = currentColours().dim;
			context.textAlign = "center";
			context.fillText(text, x + width / 2, top + height / 2 + 0.5);
		}
	}
}
