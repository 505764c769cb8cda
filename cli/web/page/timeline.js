// The timeline: records per second by class, stacked; marks, triggers and gaps above; the time axis below.
/* global d3 */

import { currentColours } from "./colours.js";
import {
	classIndex, columnCounts, columnRecords, hasClocks, hasPlaces, isMoment, model, ofRuns, processorText, shownCount, shownEvents, toAbsolute,
	toRelative, visibleColumns,
} from "./model.js";
import {
	columnAtPixel, columnPixels, drawFrame, drawMarkers, drawPauses, edges, fitText, FONT, MONO, NEAR, prepareCanvas, timeScale, trackBands,
} from "./plot.js";
import { CLASS_TEXTS, count, eventText, lostText, plural, short } from "./text.js";
import { countedAxis, formatDuration, formatSpan, formatTime, rateOf, rateUnit, timeAxis } from "./time.js";

const RATES_TOP = 24; // of the plot, below the symbols
const AXIS = 24; // height of the time axis; on a narrow screen, the text that precedes its labels is below it
const AXIS_NARROW = 40;
const MOMENT = 6; // height of a column without a rate, next to columns with one
const PER_TICK = 26; // pixels of the rates
const SPARSE = 24; // pixels between symbols, on average, that leave room for their lines

// Records per second of a column, or of one of its tracks; null if it is too short, or a moment: 1 ns with an exclusive end.
function rate(column, track) {
	return column.duration_ns > 1 ? rateOf(shownCount(columnCounts(column, track)), column.duration_ns) : null;
}

// Events in the view; events of one kind that would overlap are grouped: [{x, kind, events}].
function symbols(width) {
	const scale = timeScale(width);
	const [left, right] = scale.range();
	const found = [];
	const last = {};
	for (const event of shownEvents()) {
		const x = scale(event.time);
		if (x < left || x > right) {
			continue;
		}
		if (last[event.kind] && x - last[event.kind].x < NEAR) {
			last[event.kind].events.push(event);
		} else {
			last[event.kind] = { x, kind: event.kind, events: [event] };
			found.push(last[event.kind]);
		}
	}
	return found;
}

// The events that have a line across the plots: all, unless these would hide everything else.
export function linedSymbols(width) {
	const found = symbols(width);
	return found.length * SPARSE <= width ? found : [];
}

function symbolText({ kind, events }) {
	if (events.length === 1) {
		return kind === "gap" ? eventText(events[0]).replace(/( of)? samples?| \(.*/g, "") : eventText(events[0]);
	}
	if (kind !== "gap") {
		return plural(events.length, kind);
	}
	const lost = events.reduce((sum, event) => sum + event.lost, 0);
	return `${events.length} gaps, ${lostText(lost, events.every((event) => event.exact)).replace(/( of)? samples?/, "")}`;
}

// Different shapes, so that colour is not needed: a gap is a triangle, a mark a flag, a trigger a diamond.
function drawSymbol(context, kind, x, colour) {
	context.fillStyle = colour;
	context.beginPath();
	const y = RATES_TOP - 10;
	const shape = { gap: [[-5, -4], [5, -4], [0, 5]], mark: [[-1, -6], [8, -2.5], [0.5, 1], [0.5, 6], [-1, 6]],
		trigger: [[0, -6], [5, 0], [0, 6], [-5, 0]] }[kind] || [[-3, -3], [3, -3], [3, 3], [-3, 3]];
	shape.forEach(([dx, dy]) => context.lineTo(x + dx, y + dy));
	context.fill();
}

function drawEvents(context, width, bottom) {
	const colours = currentColours();
	const found = symbols(width);
	const hasLines = linedSymbols(width).length > 0;
	const { left, right } = edges(width);
	let free = left;
	found.forEach((symbol, i) => {
		const x = Math.round(symbol.x) + 0.5;
		if (hasLines) {
			context.strokeStyle = colours[symbol.kind] || colours.ink;
			context.setLineDash(symbol.kind === "gap" ? [3, 3] : []);
			context.beginPath();
			context.moveTo(x, RATES_TOP - 4);
			context.lineTo(x, bottom);
			context.stroke();
			context.setLineDash([]);
		}
		drawSymbol(context, symbol.kind, x, colours[symbol.kind] || colours.ink);
		const start = x + 11;
		const room = (i + 1 < found.length ? found[i + 1].x - 8 : right) - start;
		const whole = symbolText(symbol);
		const needed = context.measureText(whole).width;
		context.fillStyle = colours.ink;
		if (needed > room && x - 9 - needed >= free) {
			context.textAlign = "right";
			context.fillText(whole, x - 9, RATES_TOP - 10);
			free = start;
		} else if (start >= free && room > (symbol.kind === "gap" ? needed : 24)) {
			const text = fitText(context, whole, room); // part of a number would be wrong
			context.textAlign = "left";
			context.fillText(text, start, RATES_TOP - 10);
			free = start + context.measureText(text).width + 10;
		} else {
			free = Math.max(free, start);
		}
	});
}

function isNarrow(width) {
	return edges(width).left < 100;
}

// The end of the rates, above the time axis.
function plotBottom(width, height) {
	return height - (isNarrow(width) ? AXIS_NARROW : AXIS);
}

function drawTimeAxis(context, width, bottom) {
	const { left, right } = edges(width);
	const colours = currentColours();
	const scale = timeScale(width);
	const { ticks, base } = timeAxis(model.view.from, model.view.to, Math.max(2, (right - left) / 100));
	context.strokeStyle = colours.line;
	context.fillStyle = colours.ink;
	context.textAlign = "center";
	let free = left - (isNarrow(width) ? 20 : 6); // right of the text that precedes the labels
	for (const tick of ticks) {
		const x = Math.round(scale(toRelative(tick.ns))) + 0.5;
		context.beginPath();
		context.moveTo(x, bottom);
		context.lineTo(x, bottom + 5);
		context.stroke();
		const half = context.measureText(tick.label).width / 2;
		const centre = Math.min(x, right - half + 8);
		if (centre - half > free) {
			context.fillText(tick.label, centre, bottom + 14);
			free = centre + half + 8;
		}
	}
	context.textAlign = "right";
	context.fillStyle = colours.dim;
	if (isNarrow(width)) {
		context.textAlign = "left";
		context.fillText(base, left - 1, bottom + 30);
		return;
	}
	const room = left - 14;
	const withoutDate = base.replace(/^\d{4}-\d\d-\d\d (?=\d)/, "");
	const shorter = [base, withoutDate, base.replace(/^\d{4}-/, "").replace(" UTC", "")];
	const text = shorter.find((one) => context.measureText(one).width <= room) || "";
	context.fillText(text, left - 14, bottom + 14);
}

// The height of a column. Moments have no rate; if the view has only moments, they are drawn by their records.
function figureOf(columns) {
	return columns.length && columns.every(isMoment) ? (column, track) => shownCount(columnCounts(column, track)) : rate;
}

// The scale up to the highest rate of any track or run; if a few columns are much higher than the rest, they exceed it.
function rateScale(top, bottom) {
	const rates = ofRuns(() => {
		const columns = visibleColumns();
		const figure = figureOf(columns);
		return trackBands(top, bottom).flatMap(({ track }) => columns.map((column) => figure(column, track)));
	}).flat().filter((one) => one !== null).sort(d3.ascending);
	const highest = d3.max(rates) || 0;
	const usual = d3.quantile(rates, 0.98) || 0;
	const end = usual > 0 && highest > 3 * usual ? 1.5 * usual : highest;
	return { most: highest, y: d3.scaleLinear([0, end || 1], [bottom, top]).nice(3) };
}

// The highest rate if it exceeds the axis; or 0.
export function cutRate() {
	const { most, y } = rateScale(1, 0);
	return most > y.domain()[1] ? most : 0;
}

function drawRates(context, width, { track, top: highest, bottom }) {
	const colours = currentColours();
	const { left, right } = edges(width);
	const scale = timeScale(width);
	const columns = visibleColumns();
	const figure = figureOf(columns);
	const { most, y } = rateScale(highest, bottom);
	const room = Math.min(3, Math.floor((bottom - highest) / PER_TICK));
	const steps = room > 1 ? y.ticks(room) : [y.domain()[1]];
	const ticks = most ? steps.filter((tick) => figure === rate || Number.isInteger(tick)) : [];
	context.font = MONO;
	context.textAlign = "right";
	for (const tick of ticks) {
		context.fillStyle = colours.dim;
		context.fillText(short(tick), left - 8, Math.min(Math.max(y(tick), highest + 4), bottom - 4));
		context.fillStyle = colours.line;
		context.fillRect(left, Math.round(y(tick)), right - left, 1);
	}
	context.font = FONT;
	const only = classIndex();
	for (const column of columns) {
		const pixels = columnPixels(column, scale);
		if (!pixels) {
			continue;
		}
		const counts = columnCounts(column, track);
		const all = shownCount(counts);
		const perSecond = figure(column, track);
		const isCut = perSecond > y.domain()[1];
		const top = perSecond === null ? bottom - MOMENT : isCut ? highest : y(perSecond);
		let base = bottom;
		counts.forEach((n, k) => {
			if (n && (only < 0 || only === k)) {
				const height = (bottom - top) * n / all;
				context.fillStyle = colours.classes[k];
				context.fillRect(pixels.x, base - height, pixels.width, height);
				base -= height;
			}
		});
		if (isCut) {
			context.fillStyle = colours.paper;
			context.fillRect(pixels.x, highest + 5, pixels.width, 2);
		}
		if (column.uncounted || column.missing) {
			context.fillStyle = column.missing ? colours.gap : colours.dim;
			context.fillRect(pixels.x, highest, pixels.width, 2);
		}
	}
}

export function drawTimeline(canvas) {
	const { context, width, height } = prepareCanvas(canvas);
	if (!model.overview.recordings.length) {
		return;
	}
	const { left } = edges(width);
	const bottom = plotBottom(width, height);
	const colours = currentColours();
	const bands = trackBands(RATES_TOP, bottom);
	bands.forEach((band) => drawRates(context, width, band));
	drawPauses(context, timeScale(width), RATES_TOP, bottom - RATES_TOP, true);
	bands.forEach((band) => drawFrame(context, width, band));
	drawEvents(context, width, bottom);
	drawMarkers(context, timeScale(width), RATES_TOP, bottom - RATES_TOP, true);
	drawTimeAxis(context, width, bottom);
	context.textAlign = "right";
	context.fillStyle = colours.dim;
	const title = figureOf(visibleColumns()) !== rate ? "records" : countedAxis() ? `records${isNarrow(width) ? "" : rateUnit()}` : isNarrow(width) ? "rec./s"
		: `records/s ${hasClocks() ? "of bus time" : "by arrival"}`;
	context.fillText(title, left - 8, 9);
}

// The lines of the tip at a pixel: [[term, text]], or null.
export function timelineTip(canvas, x, y) {
	const { clientWidth: width, clientHeight: height } = canvas;
	const symbol = symbols(width).find((one) => Math.abs(one.x - x) <= NEAR);
	if (symbol && (y < RATES_TOP || Math.abs(symbol.x - x) <= 2)) {
		const lines = symbol.events.slice(0, 8).map((event) => [
			`${event.kind}, ${formatTime(toAbsolute(event.time), 1, false)}`,
			`${eventText(event)}, at record ${count(event.record)}`]);
		if (symbol.events.length > 8) {
			lines.push(["", `and ${symbol.events.length - 8} more`]);
		}
		return lines;
	}
	const index = columnAtPixel(x, timeScale(width));
	const band = trackBands(RATES_TOP, plotBottom(width, height)).find((one) => y < one.bottom);
	return index < 0 ? null : columnLines(model.overview.columns[index], band ? band.track : null);
}

// The tip's lines for a hole.
export function holeLines(hole) {
	return [
		["time", `${formatTime(toAbsolute(hole.from), 1, false)} + ${formatSpan(hole.to - hole.from)}`],
		hole.away_ns ? ["not recorded", formatDuration(hole.away_ns)]
			: ["missing", hole.missing ? `${plural(hole.missing, "record")}, from ${count(hole.first_record)}` : "unknown number of records"],
	];
}

function columnLines(column, track) {
	if (column.is_hole) {
		return holeLines(column);
	}
	const perSecond = rate(column, track);
	const counts = columnCounts(column, track);
	const records = count(track === null ? columnRecords(column) : d3.sum(counts));
	return [
		...(track === null ? [] : [["track", processorText(track)]]),
		["time", `${formatTime(toAbsolute(column.from), 1, false)} + ${formatSpan(column.to - column.from)}`],
		["records", hasPlaces() ? `${records} at these addresses` : `${records}, from ${count(column.first_record)}`],
		...CLASS_TEXTS.map((name, k) => [name, count(counts[k])]),
		["rate", perSecond !== null ? short(perSecond) + rateUnit() : isMoment(column) ? "one moment" : "too short to tell"],
		...(column.uncounted ? [["uncounted", `${count(column.uncounted)} (no page counts)`]] : []),
		...(column.missing ? [["missing", plural(column.missing, "record")]] : []),
		...(column.away_ns ? [["not recorded", formatDuration(column.away_ns)]] : []),
		...(column.lost ? [["lost", `${column.inexact_gaps ? "at least " : ""}${count(column.lost)}`]]
			: column.inexact_gaps ? [["lost", "unknown number"]] : []),
	];
}
