// Two markers, A and B, and the line that says what is between them: the time, bus ticks, records by class and losses.
//
// Markers are times. The counts are those of an overview of the time between them: exact if that consists of records, else
// "about". Bus ticks are those between the first and the last record, if both have one clock: that of one recording, and of
// one epoch.
/* global d3 */

import { isFollowing } from "./follow.js";
import { writeLink } from "./link.js";
import {
	hasClocks, hasPlaces, isColumnBetween, missingText, model, onlyProcessors, shownEvents, spanView, toAbsolute, toRelative,
} from "./model.js";
import { NEAR, timeAtPixel, timeScale } from "./plot.js";
import { fetchFind, fetchOverview } from "./source.js";
import { CLASS_TEXTS, CLASSES, count, lostText, PLACES, plural, short } from "./text.js";
import { countedAxis, exactSpan, formatTime, fromRfc3339, rateOf, rateUnit, toRfc3339 } from "./time.js";

const COLUMNS = 512; // the most: the more, the smaller the parts of the first and the last that are outside

let measuring = null; // an AbortController

// The times of both, in order; null without both.
function markedTimes() {
	const { a, b } = model.markers;
	return a === null || b === null ? null : a < b ? [a, b] : [b, a];
}

// The times of events, and of records that are shown one by one; relative.
function exactTimes() {
	const hits = [model.records, model.search].flatMap((list) => (list && list.hits) || []).filter((hit) => hit.time);
	return [...shownEvents().map((event) => event.time), ...hits.map((hit) => toRelative(fromRfc3339(hit.time)))];
}

// The time of a pixel: that of the nearest event or record, if one is near.
export function markerTime(x, width) {
	const scale = timeScale(width);
	const distance = (time) => Math.abs(scale(time) - x);
	const [nearest] = exactTimes().filter((time) => distance(time) <= NEAR).sort((one, other) => distance(one) - distance(other));
	return nearest === undefined ? timeAtPixel(x, width) : toAbsolute(nearest);
}

function sumsOf(columns) {
	const sum = (figure) => d3.sum(columns, figure);
	return {
		counts: CLASSES.map((name, k) => sum((column) => column.counts[k])), records: sum((column) => column.records),
		uncounted: sum((column) => column.uncounted), missing: sum((column) => column.missing), lost: sum((column) => column.lost),
		inexact: sum((column) => column.inexact_gaps),
	};
}

// The ticks from the first record to the last, as text; "" if there are no two records.
function ticksText(first, last) {
	if (countedAxis() || !first || !last || (first.number === last.number && first.recording === last.recording)) {
		return "";
	}
	return first.recording !== last.recording ? "no bus ticks between different recordings"
		: first.epoch !== last.epoch ? "no bus ticks: the board was connected again in between"
		: `${plural(last.tick - first.tick, "bus tick")} from the first record to the last`;
}

// Counts what is between the markers.
async function measure(app) {
	const times = markedTimes();
	model.measured = null;
	if (measuring) {
		measuring.abort();
	}
	if (!times) {
		return;
	}
	const [from, to] = times;
	if (model.isReport) {
		const columns = model.picture.columns.filter((column) => isColumnBetween(column, toRelative(from), toRelative(to)));
		model.measured = { ...sumsOf(columns), isExact: false, ticks: "" };
		return;
	}
	const own = new AbortController();
	measuring = own;
	const limits = { from: toRfc3339(from), to: toRfc3339(to + 1n) };
	try {
		const [overview, first, last] = await Promise.all([
			fetchOverview({ from, to, placeFrom: 0, placeTo: PLACES - 1 }, COLUMNS, 2, own.signal),
			fetchFind({ ...limits, first: 1 }, own.signal), fetchFind({ ...limits, last: 1 }, own.signal)]);
		own.signal.throwIfAborted();
		const sums = sumsOf(overview.columns);
		model.measured = {
			...sums, isExact: overview.unit === "records" && sums.uncounted === 0, ticks: ticksText(first.hits[0], last.hits[0]),
		};
	} catch (error) {
		if (error.name === "AbortError") {
			return;
		}
		model.measured = { error: error.message };
	}
	app.redraw();
}

// Shows the markers of a link.
export function restoreMarkers(app, { a, b }) {
	if (a !== model.markers.a || b !== model.markers.b) {
		model.markers = { a, b };
		measure(app);
	}
}

// Sets a marker to a time. After A, the next click sets B if it was a click that set A.
export function setMarker(app, name, ns) {
	model.armed = model.armed === "a" && name === "a" ? "b" : null;
	model.markers = { ...model.markers, [name]: ns };
	measure(app);
	writeLink(isFollowing(), false);
	app.redraw();
}

export function clearMarkers(app) {
	model.armed = null;
	model.markers = { a: null, b: null };
	measure(app);
	writeLink(isFollowing(), false);
	app.redraw();
}

// Makes the next two clicks set the markers; or no longer.
export function armMarkers(app) {
	model.armed = model.armed ? null : "a";
	app.redraw();
}

export function hasMarkers() {
	return model.armed !== null || model.markers.a !== null || model.markers.b !== null;
}

function countsText(ns) {
	const { measured } = model;
	const isExact = measured.isExact && hasClocks();
	const number = (n) => (isExact || n < 1000 ? count(n) : short(n));
	const rate = ns > 0 && measured.records ? ` (${short(rateOf(measured.records, ns))}${rateUnit()})` : "";
	const classes = CLASS_TEXTS.map((name, k) => `${name} ${number(measured.counts[k])}`).join(", ");
	const isLossKnown = !measured.inexact;
	const lost = measured.lost === 0 && isLossKnown ? "no samples lost"
		: measured.lost > 0 && !isExact ? `about ${plural(measured.lost, "sample")} lost` : lostText(measured.lost, isLossKnown);
	return [
		`${isExact ? "" : "about "}${number(measured.records)} ${measured.records === 1 ? "record" : "records"}${rate}: ${classes}`
			+ `${onlyProcessors() ? " of all processors" : ""}${hasPlaces() ? " at all addresses" : ""}`,
		...(measured.uncounted ? [`${plural(measured.uncounted, "record")} not counted by class`] : []),
		...(measured.missing ? [missingText(measured.missing)] : []), lost,
	];
}

function markerTexts() {
	const { armed, markers, measured } = model;
	const times = markedTimes();
	const texts = ["a", "b"].filter((name) => markers[name] !== null)
		.map((name) => `${name.toUpperCase()} ${formatTime(markers[name], 1, false)}`);
	if (armed) {
		return [...texts, `Click where marker ${armed.toUpperCase()} goes.`];
	}
	if (!times) {
		return [...texts, `${markers.a === null ? "a" : "b"} sets the other marker`];
	}
	const ns = times[1] - times[0];
	texts.push(exactSpan(ns));
	if (!measured) {
		return [...texts, "counting \u2026"];
	}
	return measured.error ? [...texts, measured.error]
		: [...texts, ...(measured.ticks ? [measured.ticks] : []), ...countsText(Number(ns))];
}

export function drawMeasured() {
	const box = document.getElementById("measured");
	const line = box.querySelector("p");
	const text = hasMarkers() ? markerTexts().join(" \u00b7 ") : "";
	document.querySelector("[data-act=measure]").ariaPressed = model.armed !== null;
	box.querySelector("[data-act=between]").hidden = !markedTimes();
	box.hidden = !text;
	if (line.textContent !== text) {
		line.textContent = text;
	}
}

// The view from one marker to the other, or null.
export function viewBetween() {
	const times = markedTimes();
	return times && spanView(...times, model.view.placeFrom, model.view.placeTo);
}
