// Starts the page, loads what the view needs, and draws it.
/* global d3 */

import { currentColours, forgetColours } from "./colours.js";
import { listen, setCursor } from "./gestures.js";
import { cellPixels, drawHeatMap, drawLegend, rowsThatFit } from "./heatmap.js";
import { drawHelp } from "./help.js";
import { drawLive, watchLive } from "./live.js";
import { clampView, eventsByTime, isInView, isSameView, model, pannedView, spanView, toAbsolute, toRelative, totals, visibleColumns, visibleRows, wholeView, zoomedView } from "./model.js";
import { drawPanel, openTab, recordingName } from "./panel.js";
import { parseQuery } from "./query.js";
import { edges } from "./plot.js";
import { embeddedReport, fetchEvents, fetchFind, fetchOverview, fetchRecords, setError } from "./source.js";
import { addressRange, CLASSES, count, eventText, PLACES, plural, visible } from "./text.js";
import { drawTimeline } from "./timeline.js";
import { formatDuration, formatTime, fromRfc3339, timeAxis, toRfc3339 } from "./time.js";

const RECORDS = 500; // listed one by one
const SETTLE_MS = 60; // a view stands still for this long before it is fetched
const STEP_MS = 700; // steps of the wheel and the arrows in this time are one step back
const REFRESH_MS = 5000; // of a recording in progress
const CHUNK = 87381; // records

const element = (id) => document.getElementById(id);
const canvasOf = (id) => document.querySelector(`#${id} canvas`);

// ---- drawing

let isAsked = false;

function redraw() {
	if (!isAsked) {
		isAsked = true;
		requestAnimationFrame(() => {
			isAsked = false;
			draw();
		});
	}
}

function draw() {
	drawNotices();
	drawDaemon();
	drawLive();
	if (!model.view) {
		return;
	}
	const isEmpty = !model.overview.columns.length && !model.isLoading;
	element("empty").hidden = !isEmpty;
	element("empty").textContent = model.overview.recordings.length ? "Nothing was recorded in this view." : "There are no recordings here yet.";
	drawFacts();
	drawTimeline(canvasOf("timeline"));
	drawHeatMap(canvasOf("heatmap"));
	drawLegend(canvasOf("legend"));
	drawRange();
	drawPanel(app);
}

// Names of units of time, in words, for the columns of the picture.
function unitText() {
	const columns = visibleColumns();
	const { unit } = model.overview;
	if (!columns.length) {
		return "no records";
	}
	const mostRecords = d3.max(columns, (column) => column.records);
	if (unit === "records") {
		return mostRecords === 1 ? "single records" : `records counted one by one, ${formatDuration(d3.median(columns, (column) => column.to - column.from))} per column`;
	}
	if (unit === "segments") {
		return "whole segments";
	}
	return `${plural(Math.max(1, Math.round(mostRecords / CHUNK)), "chunk")} per column`;
}

function drawRange() {
	if (!model.overview.recordings.length) {
		element("range").replaceChildren();
		return;
	}
	const { from, to } = model.view;
	const span = Number(to - from);
	const parts = [`${formatTime(from, span / 100)} \u2013 ${formatTime(to, span / 100, formatTime(from, 1e9).slice(0, 10) !== formatTime(to, 1e9).slice(0, 10))} UTC`,
		formatDuration(span), unitText()];
	if (model.view.placeFrom > 0 || model.view.placeTo < PLACES - 1) {
		parts.push(`addresses ${addressRange(model.view.placeFrom, 1).split("\u2013")[0]} to ${addressRange(model.view.placeTo, 1).split("\u2013").pop()}`);
	}
	if (model.isReport && visibleColumns().length < 12 && !isSameView(model.view, wholeView())) {
		parts.push("the report has no finer figures; buscap web shows single records");
	}
	if (model.isLoading) {
		parts.push("loading \u2026");
	}
	d3.select("#range").selectAll("span").data(parts).join("span").text((text) => text);
}

function drawFacts() {
	const { recordings } = model.overview;
	const options = recordings.map((one, i) => [String(i), recordings.filter((other) => other.label === one.label).length > 1 ? visible(one.id) : recordingName(one)]);
	element("recording-label").hidden = recordings.length < 2;
	d3.select("#recording").selectAll("option").data([["all", `All ${recordings.length} recordings`], ...options]).join("option").attr("value", (d) => d[0]).text((d) => d[1]);
	const chosen = recordings.findIndex((one) => isSameView(spanView(toAbsolute(one.from), toAbsolute(one.to)), { ...model.view, placeFrom: wholeView().placeFrom, placeTo: wholeView().placeTo }));
	element("recording").value = chosen < 0 || recordings.length < 2 ? "all" : String(chosen);
	const one = recordings.length === 1 ? recordings[0] : recordings[chosen];
	const shown = one ? [one] : recordings;
	const facts = !recordings.length ? [] : [
		...(recordings.length === 1 ? [recordingName(one)] : []),
		...(one && one.state !== "sealed" ? [one.state === "open" ? "in progress" : one.state] : []),
		formatTime(toAbsolute(shown[0].from), 1e9), formatDuration(d3.max(shown, (r) => r.to) - shown[0].from),
		plural(d3.sum(shown, (r) => r.records), "record"), `${count(d3.sum(shown, (r) => r.lost))} lost`];
	d3.select("#facts").selectAll("span").data(facts).join("span").text((text) => text);
	document.title = recordings.length === 1 ? `${recordingName(one)} \u2013 buscap` : "buscap";
}

function clock(date) {
	return date.toISOString().slice(11, 19);
}

// What the reader must know: errors, damage, reduced resolution.
function drawNotices() {
	const notices = [];
	if (model.error) {
		notices.push(["bad", `${model.error.text} (since ${clock(model.error.since)} UTC).`]);
	}
	if (model.lostSince) {
		notices.push(["bad", `${visible(model.live.error || "buscapd does not answer")} (since ${clock(model.lostSince)} UTC). This page connects again by itself.`]);
	}
	if (model.report && model.report.reduced) {
		notices.push(["", visible(model.report.reduced)]);
	}
	if (model.overview && model.overview.damage.length) {
		const [first] = model.overview.damage;
		notices.push(["bad", `${plural(model.overview.damage.length, "damaged place")}, not part of the picture: ${visible(first.file.replace(/.*\//, ""))}: ${visible(first.what)}${model.overview.damage.length > 1 ? "; all are listed under Recordings" : ""}.`]);
	}
	if (model.events && model.events.cut_off) {
		notices.push(["", `Only the first ${count(model.events.events.length)} marks, triggers and gaps are shown.`]);
	}
	const uncounted = model.overview ? d3.sum(model.overview.columns, (column) => column.uncounted) : 0;
	if (uncounted) {
		notices.push(["", `${plural(uncounted, "record")} not counted by class and address: chunks that are damaged, or too many without page counts${model.isReport ? "" : "; zoom in to count these"}.`]);
	}
	d3.select("#notices").selectAll("p").data(notices).join("p").attr("class", (d) => `notice ${d[0]}`).text((d) => d[1]);
}

function drawDaemon() {
	const { live } = model;
	const box = element("daemon");
	box.hidden = !model.isReport && (!live || live.state === "none");
	if (model.isReport) {
		box.className = "report";
		box.textContent = `report, made ${model.report.made.slice(0, 16).replace("T", " ")} UTC by ${visible(model.report.program)}`;
		return;
	}
	box.className = live ? live.state : "";
	box.textContent = !live ? "" : live.state === "connected" && live.status ? live.status.state : live.state;
}

function announceView() {
	if (!model.overview.recordings.length) {
		app.announce("");
		return;
	}
	const sums = totals();
	app.announce(`${formatDuration(Number(model.view.to - model.view.from))} from ${formatTime(model.view.from, 1e3)} UTC, `
		+ `${plural(sums.records, "record")}, ${CLASSES.map((name, k) => `${name} ${count(sums.counts[k])}`).join(", ")}, ${count(sums.lost)} lost, ${unitText()}`);
}

// ---- loading

let pending = null; // an AbortController
let timer = 0;

// Fetches the picture of the view, or of everything, and draws it.
async function load(isWhole = false) {
	if (model.isReport) {
		announceView();
		redraw();
		return;
	}
	if (pending) {
		pending.abort();
	}
	const own = new AbortController();
	pending = own;
	model.isLoading = !isWhole;
	redraw();
	try {
		const { left, right } = edges(element("timeline").clientWidth);
		const columns = Math.max(32, Math.min(512, Math.round((right - left) / 2)));
		model.overview = await fetchOverview(isWhole ? null : model.view, columns, rowsThatFit(canvasOf("heatmap")), own.signal);
		if (isWhole) {
			model.events = await fetchEvents();
			model.view = wholeView();
		}
		model.cursor = null;
		model.records = null;
		redraw();
		await loadRecords(own.signal);
		setError(null);
		model.isLoading = false;
		announceView();
	} catch (error) {
		if (error.name === "AbortError") {
			return;
		}
		model.isLoading = false;
		setError(error);
	}
	redraw();
}

async function loadRecords(signal) {
	const { overview } = model;
	const from = toRelative(model.view.from);
	const to = toRelative(model.view.to);
	const known = d3.sum(overview.columns, (column) => column.records);
	if (overview.unit === "records" && known > 0 && known <= RECORDS && overview.columns.every((column) => column.from >= from && column.from <= to)) {
		const { hits, end } = await fetchRecords(model.view, RECORDS, signal);
		model.records = { hits, isCutOff: !end || end.matches > hits.length };
	}
}

// True if the view shows everything, up to the end of a recording in progress.
function isFollowing() {
	return model.view && model.overview && isSameView({ ...model.view }, wholeView());
}

let refreshed = 0;

// After the daemon has reported something; `isNews` if it may concern the recordings.
function changed(isNews) {
	const isOpen = model.live && model.live.status && model.live.status.recording;
	const isLate = Date.now() - refreshed > REFRESH_MS;
	if (isLate && !model.isLoading && !model.cursor && (isNews || isOpen || !model.overview) && (!model.view || isFollowing())) {
		refreshed = Date.now();
		load(true);
	}
	redraw();
}

// ---- acts

let steppedAt = 0;

// Shows a view. `isStep`: one of many small steps, as of the wheel.
function go(view, isStep = false) {
	const next = clampView(view);
	if (!model.view || isSameView(next, model.view)) {
		return;
	}
	if (!isStep || Date.now() - steppedAt > STEP_MS) {
		model.visited.push(model.view);
	}
	steppedAt = isStep ? Date.now() : 0;
	show(next);
}

function show(view) {
	model.view = view;
	model.cursor = null;
	model.records = null;
	model.isLoading = !model.isReport;
	clearTimeout(timer);
	timer = setTimeout(() => load(), SETTLE_MS);
	redraw();
}

// Shows the surroundings of a moment: a hundredth of the view, but no more than needed.
function goNear(ns) {
	const span = model.view.to - model.view.from;
	const half = span / 20n > 10000n ? span / 20n : 10000n;
	go(spanView(ns - half, ns + half));
	element("timeline").focus();
}

function goToEvent(by) {
	const middle = toRelative((model.view.from + model.view.to) / 2n);
	const events = eventsByTime();
	const event = by > 0 ? events.find((one) => one.time > middle + 1) : [...events].reverse().find((one) => one.time < middle - 1);
	if (event) {
		const half = (model.view.to - model.view.from) / 2n;
		go({ ...model.view, from: toAbsolute(event.time) - half, to: toAbsolute(event.time) - half + (model.view.to - model.view.from) });
		app.announce(`${event.kind}: ${event.text || event.lost || ""}`);
	}
}

const ACTS = {
	home: () => go(wholeView()),
	back: () => model.visited.length && show(clampView(model.visited.pop())),
	in: () => go(zoomedView(model.view, 2, 0.5), true),
	out: () => go(zoomedView(model.view, 0.5, 0.5), true),
	left: () => go(pannedView(model.view, -0.25), true),
	right: () => go(pannedView(model.view, 0.25), true),
	next: () => goToEvent(1),
	previous: () => goToEvent(-1),
	help: () => element("help").showModal(),
	search: () => element("search-text").focus(),
};

// Blocks of addresses as small as the server makes them, for their names.
async function smallRows() {
	return (await fetchOverview(null, 1, 1024)).rows;
}

async function search(which) {
	const text = element("search-text").value;
	model.search = { text: visible(text), which, hits: null, error: null };
	openTab("search-hits", app);
	try {
		const found = await fetchFind({ ...await parseQuery(text, smallRows), [which]: 200 });
		model.search = { ...model.search, ...found, which: which === "first" ? "The first" : "The last" };
	} catch (error) {
		model.search.error = error.message;
	}
	redraw();
}

const app = {
	redraw, go, goNear, changed,
	act: (name) => model.overview && ACTS[name](),
	announce: (text) => { element("summary").textContent = text; },
	columnsInView: () => d3.range(model.overview.columns.length).filter((i) => isInView(model.overview.columns[i].from, model.overview.columns[i].to)),
	rowsInView: visibleRows,
};

// ---- start

function setTheme(name) {
	document.documentElement.dataset.theme = name;
	forgetColours();
	redraw();
}

function addClasses() {
	const labels = d3.select("#classes").selectAll("label").data(["all", ...CLASSES]).join("label").attr("class", (name) => `swatch-${name}`);
	labels.append("input").attr("type", "radio").attr("name", "class").attr("value", (name) => name).property("checked", (name) => name === model.shown)
		.on("change", (name) => {
			model.shown = name;
			redraw();
		});
	labels.append("span").text((name) => name);
}

// Paper is light, and canvases are drawn again for it at once.
function listenToPrinter() {
	let theme = null;
	window.addEventListener("beforeprint", () => {
		theme = theme || document.documentElement.dataset.theme || "auto";
		document.documentElement.dataset.theme = "light";
		forgetColours();
		draw();
	});
	window.addEventListener("afterprint", () => {
		setTheme(theme);
		theme = null;
	});
}

function start() {
	addClasses();
	drawHelp(element("help"));
	listen(element("plots"), app);
	listenToPrinter();
	document.querySelectorAll("[data-act]").forEach((button) => button.addEventListener("click", () => app.act(button.dataset.act)));
	element("theme").addEventListener("change", (event) => setTheme(event.target.value));
	element("help-open").addEventListener("click", ACTS.help);
	element("recording").addEventListener("change", (event) => {
		const one = model.overview.recordings[event.target.value];
		go(one ? spanView(toAbsolute(one.from), toAbsolute(one.to)) : wholeView());
	});
	element("search").addEventListener("submit", (event) => {
		event.preventDefault();
		search(event.submitter && event.submitter.name ? event.submitter.name : "first");
	});
	window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
		forgetColours();
		redraw();
	});
	new ResizeObserver(redraw).observe(element("plots"));

	const report = embeddedReport();
	model.isReport = report !== null;
	element("search").hidden = model.isReport;
	if (report) {
		model.report = { made: report.made, program: report.program, reduced: report.reduced };
		model.overview = report.overview;
		model.events = report.events;
		model.view = wholeView();
	} else {
		watchLive(app);
	}
	load(!report);
}

// For tests: what is known, where it is drawn, and functions without state.
window.buscap = {
	model, currentColours, formatTime, formatDuration, timeAxis, fromRfc3339, toRfc3339, zoomedView, pannedView, parseQuery, eventText,
	setCursor: (cell) => setCursor(app, cell),
	cellPixels: (column, row) => cellPixels(canvasOf("heatmap").clientWidth, canvasOf("heatmap").clientHeight, column, row),
};

start();
