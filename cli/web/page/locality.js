// The working set and the miss ratio of the records in the view, as curves and tables.
/* global d3 */

import { findInRun } from "./compare.js";
import { isFollowing } from "./follow.js";
import { columnRecords, hasPlaces, model, onlyProcessors, ofRuns, processorText } from "./model.js";
import { viewQueries } from "./selection.js";
import { fetchLocality } from "./source.js";
import { CLASS_TEXTS, CLASSES, count } from "./text.js";

const READ_MOST = 16e6; // records, which take about 3 s; the server's limit, too
const WIDTH = 340;
const HEIGHT = 180;
const MARGIN = { left: 58, right: 22, top: 10, bottom: 34 };
const FOLLOW_MS = 10000; // how often they are read again while a recording is followed

// 4096: "4 Ki".
function binary(n) {
	const power = Math.max(0, Math.min(6, Math.floor(Math.log2(n) / 10)));
	return `${Number((n / 1024 ** power).toPrecision(3))} ${["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]}`.trim();
}

function size(n) {
	return `${binary(n)}${n < 1024 ? " " : ""}B`;
}

export function canReadView() {
	return !model.isReport && d3.max(ofRuns(recordsInView)) <= READ_MOST;
}

// The search for what they are of.
export function localityQuery() {
	return viewQueries(model.view, model.shown, onlyProcessors())[0]; // memory is the first
}

function runIds() {
	return model.runs && model.runs.map(({ id }) => id);
}

// Those that are known, if they belong to what is shown. In a report they are of everything. While a recording is followed,
// those of a view that was left less than `ms` ago will do.
function knownLocalities(ms) {
	const { localities, isReport } = model;
	if (!localities || isReport) {
		return localities;
	}
	const { from, to, ...query } = localityQuery();
	const isSame = JSON.stringify([query, runIds()]) === localities.of;
	const isRecent = isFollowing() && Date.now() - localities.at < ms;
	return isSame && (isRecent || (localities.from === from && localities.to === to)) ? localities : null;
}

// Reads them if their table is open. That they can't be read is said there: the picture is as good without them.
export async function loadLocality(signal) {
	const { runs } = model;
	const known = knownLocalities(FOLLOW_MS);
	if (model.tab !== "locality" || !canReadView() || (known && !known.error)) {
		return;
	}
	const query = localityQuery();
	const { from, to, ...others } = query;
	const own = { from, to, of: JSON.stringify([others, runIds()]), list: [], error: null };
	try {
		const list = await Promise.all((runs || [null]).map((run) => fetchLocality(
			run ? { ...findInRun(run, query), recording: run.id } : query, signal)));
		model.localities = { ...own, list, at: Date.now() };
	} catch (error) {
		if (error.name === "AbortError") {
			throw error;
		}
		model.localities = { ...own, error: error.message, at: Date.now() };
	}
}

function recordsInView() {
	return d3.sum(model.overview.columns, columnRecords);
}

function addAxis(svg, scale, isX, format, title) {
	const at = isX ? `translate(0,${HEIGHT - MARGIN.bottom})` : `translate(${MARGIN.left},0)`;
	const make = (isX ? d3.axisBottom : d3.axisLeft)(scale).ticks(5).tickFormat(format).tickSizeOuter(0);
	if (scale.base) {
		const [low, high] = scale.domain().map(Math.log2);
		const step = Math.ceil((high - low) / 6);
		make.tickValues(d3.range(Math.ceil(low), high + 0.01, step).map((power) => 2 ** power));
	}
	svg.append("g").attr("transform", at).call(make).attr("font-family", null);
	svg.append("text").attr("x", isX ? WIDTH - MARGIN.right : MARGIN.left + 6).attr("y", isX ? HEIGHT - 3 : MARGIN.top + 8)
		.attr("text-anchor", isX ? "end" : "start").text(title);
}

// Curves: [{name, style, points: [[x, y, isEstimated], ...]}, ...].
function plot(parent, label, curves, x, y, titles, formats) {
	const svg = parent.append("svg").attr("class", "curves").attr("role", "img").attr("aria-label", `${label}; the table has its values`)
		.attr("viewBox", `0 0 ${WIDTH} ${HEIGHT}`).attr("width", WIDTH).attr("height", HEIGHT);
	x.range([MARGIN.left, WIDTH - MARGIN.right]);
	y.range([HEIGHT - MARGIN.bottom, MARGIN.top]);
	addAxis(svg, x, true, formats[0], titles[0]);
	addAxis(svg, y, false, formats[1], titles[1]);
	curves.forEach(({ name, style, points }, i) => {
		const line = d3.line().x(([at]) => x(at)).y(([, value]) => y(value));
		svg.append("path").attr("class", style).attr("d", line(points));
		svg.selectAll(null).data(points).join("circle").attr("class", style).classed("estimated", ([, , isEstimated]) => isEstimated).attr("r", 2.5)
			.attr("cx", ([at]) => x(at)).attr("cy", ([, value]) => y(value))
			.append("title").text(([at, value]) => `${formats[0](at)}: ${formats[1](value)}${name ? ` in ${name}` : ""}`);
		svg.append("text").attr("class", style).attr("x", WIDTH - MARGIN.right).attr("y", HEIGHT - MARGIN.bottom - 6 - 14 * i)
			.attr("text-anchor", "end").text(name);
	});
}

function doubling(values) {
	const [low, high] = d3.extent(values);
	return d3.scaleLog().base(2).domain([low, Math.max(high, 2 * low)]);
}

// The curves of two runs have the same scales: `all` are the rows of both.
function showWorkingSet(parent, rows, all) {
	const part = parent.append("div").attr("class", "part");
	const curves = [["lines of 32 bytes", "lines", 32, "fetch"], ["pages of 4 KiB", "pages", 4096, "write"]].map(([name, member, each, style]) => (
		{ name, style, points: rows.map((row) => [row.references, row[member] * each]) }));
	plot(part, "Working set by window", curves, doubling(all.map((row) => row.references)),
		doubling(all.flatMap((row) => [32 * row.lines, 4096 * row.pages])),
		["window (references to memory)", "average working set"], [binary, size]);
	return part;
}

function showMisses(parent, rows, all) {
	const part = parent.append("div").attr("class", "part");
	const points = rows.map((row) => [row.bytes, row.ratio, row.one_line_in > 1]);
	plot(part, "Miss ratio by cache size", [{ name: "", style: "fetch", points }], doubling(all.map((row) => row.bytes)),
		d3.scaleLinear([0, 1], [0, 1]), ["size of an LRU cache, lines of 32 bytes", "misses, of all touches of lines"], [size, d3.format(".0%")]);
	return part;
}

// Why there are no curves.
function reason(localities) {
	if (localities) {
		return localities.error || "No references to memory in this view.";
	}
	return model.isReport ? "This report has too many records for these curves: make one of at most 4 million, with --from and --to; or use Figure."
		: recordsInView() <= READ_MOST ? "Reading the records of this view \u2026"
		: "This view has too many records to read them now: zoom in, to 16 million records or less; or use Figure.";
}

export function showLocality(parent, note, table) {
	const { isOther, isReport, shown } = model;
	const localities = knownLocalities(2 * FOLLOW_MS);
	const list = localities ? localities.list : [];
	const locality = list[Number(isOther)];
	if (!locality || !locality.miss_ratio.length) {
		note(parent, reason(localities));
		return;
	}
	const windows = showWorkingSet(parent, locality.working_set, list.flatMap((one) => one.working_set));
	const sizes = showMisses(parent, locality.miss_ratio, list.flatMap((one) => one.miss_ratio));
	const number = d3.format(",.2f");
	table(windows, "Average working set", ["references", "lines", "pages"],
		locality.working_set.map((row) => [count(row.references), number(row.lines), number(row.pages)]), [0, 1, 2]);
	table(sizes, "LRU misses", ["cache", "misses", "ratio"], locality.miss_ratio.map((row) => [
		size(row.bytes), `${row.one_line_in > 1 ? "about " : ""}${count(row.misses)}`, d3.format(".2%")(row.ratio)]), [0, 1, 2]);
	const of = [
		...(!isReport && shown !== "all" ? [CLASS_TEXTS[CLASSES.indexOf(shown)]] : []),
		...(!isReport && onlyProcessors() ? [processorText()] : []), ...(!isReport && hasPlaces() ? ["the addresses shown"] : []),
	];
	note(parent, [
		of.length ? `Only of ${of.join(", ")}.` : isReport ? "Of everything in the report." : "",
		locality.at_least ? "More lines were touched than are counted." : "",
	].join(" "));
}
