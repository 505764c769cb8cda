// Starts the page, loads what the view needs, and draws it.
/* global d3 */

import { currentColours, forgetColours } from "./colours.js";
import { drawFollow, followedView, isFollowed, isFollowing, isWindow } from "./follow.js";
import { drawTip, listen, setCursor } from "./gestures.js";
import {
	drawFacts, drawNotices, drawOrigin, drawRange, emptyText, recordingAround, recordingName, recordingView, stateText, viewText,
} from "./header.js";
import { cellPixels, drawHeatMap, drawLegend, placeOfHit, rowsThatFit } from "./heatmap.js";
import { drawHelp } from "./help.js";
import { copyText, goBack, parseLink, writeLink } from "./link.js";
import { drawLive, watchLive } from "./live.js";
import {
	clampView, columnRecords, eventsByTime, isColumnInView, isInView, isSameView, model, pannedView, shownEvents, spanView,
	toAbsolute, toRelative, visibleRows, wholeView, zoomedView,
} from "./model.js";
import { drawPanel, isTab } from "./panel.js";
import { edges } from "./plot.js";
import { parseQuery } from "./query.js";
import { cellView, commandText, csvText, saveFile, viewQueries } from "./selection.js";
import { embeddedReport, fetchEvents, fetchFind, fetchOverview, fetchRecords, setError } from "./source.js";
import { CLASSES, count, eventText, PLACES, plural } from "./text.js";
import { rememberedTheme, rememberTheme, setTheme } from "./theme.js";
import { drawTimeline } from "./timeline.js";
import { formatDuration, formatTime, fromRfc3339, timeAxis, toRfc3339 } from "./time.js";

const RECORDS = 500; // listed one by one
const HITS = 200; // of a search
const MOST = 10000; // records of a cell or in a file: the limit of the server
const SETTLE_MS = 60; // a view is fetched when it has not changed for this long
const STEP_MS = 700; // Back undoes all steps of the wheel and the arrows within this time at once
const REFRESH_MS = 5000; // of a recording in progress
const SLIDE_MS = 500; // the same of a window; the daemon's state comes each second
const EVENTS_MS = 30000; // how often all events are fetched, unless the daemon reports some

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

// Draws what may change each second. The rest stays, with its focus and selection.
function drawNow() {
	drawNotices();
	drawOrigin();
	drawFollow(app);
	drawLive();
}

function draw() {
	drawNow();
	if (!model.view) {
		return;
	}
	const text = model.isLoading ? "" : emptyText();
	element("empty").hidden = !text;
	element("empty").textContent = text;
	drawFacts();
	drawTimeline(canvasOf("timeline"));
	drawHeatMap(canvasOf("heatmap"));
	drawLegend(canvasOf("legend"));
	drawRange();
	drawPanel(app);
	drawTip();
}

// ---- loading

let pending = null; // an AbortController
let timer = 0;
let refreshed = 0; // when a load ended
let hasNews = true; // from the daemon, since the last load began
let eventsAt = 0; // when the events were fetched

function recordingsKey(overview) {
	return [overview.origin_ns, ...overview.recordings.map((one) => one.id)].join();
}

// What was shown and is gone, in words; "" if nothing. While the first segments are deleted, others may be added.
function goneText(before, after) {
	const start = (overview, one) => BigInt(overview.origin_ns) + BigInt(one.from);
	const gone = [];
	for (const one of before.recordings) {
		const now = after.recordings.find((other) => other.id === one.id);
		const segments = now ? one.segments - now.segments : 0;
		if (!now || segments > 0 || start(after, now) > start(before, one)) {
			const what = !now ? "all files" : segments > 0 ? plural(segments, "segment") : "the first segments";
			gone.push(`${recordingName(one)}: ${what} deleted or renamed`);
		}
	}
	return gone.length > 3 ? `${count(gone.length)} recordings: files deleted or renamed` : gone.join("; ");
}

// Shows an overview. Events of other recordings are forgotten: their times are relative to another origin.
function setOverview(overview) {
	if (model.overview && recordingsKey(model.overview) !== recordingsKey(overview)) {
		model.events = null;
	}
	const text = model.overview ? goneText(model.overview, overview) : "";
	if (text) {
		model.deleted = { text, since: new Date() };
	}
	Object.assign(model, { overview, cursor: null, cell: null, records: null, around: null });
}

// Fetches all events if there may be new ones; or the events in the view, if there are too many.
async function loadEvents(view, isNews, signal) {
	const { events } = model;
	const areTooMany = events && (events.view || events.cut_off);
	const isEnough = events && (view ? !areTooMany : !events.view && Date.now() - eventsAt < EVENTS_MS);
	if (isEnough && !isNews) {
		return;
	}
	let part = areTooMany ? view : null;
	let fetched = await fetchEvents(part, signal);
	if (fetched.cut_off && view && !part) {
		part = view;
		fetched = await fetchEvents(part, signal);
	}
	signal.throwIfAborted();
	if (fetched.origin_ns !== model.overview.origin_ns) {
		hasNews = true;
		return;
	}
	model.events = { ...fetched, view: part };
	eventsAt = Date.now();
}

// The overview of no time has all recordings.
function fetchRecordings(signal) {
	return fetchOverview({ from: 0, to: 0, placeFrom: 0, placeTo: PLACES - 1 }, 1, 2, signal);
}

// Fetches the picture of the view, or of what is followed, draws it, and announces a text or the view. The first time, the
// view is `first`, which may be partly outside of the recordings.
async function load(isEnd = false, text = "", first = null) {
	if (model.isReport) {
		app.announce(text || viewText());
		redraw();
		return;
	}
	if (pending) {
		pending.abort();
	}
	const own = new AbortController();
	pending = own;
	const isAskedFor = model.isLoading || !isEnd || !model.view;
	model.isLoading = model.isLoading || !isEnd;
	const isNews = hasNews;
	hasNews = false;
	redraw();
	try {
		const { left, right } = edges(element("timeline").clientWidth);
		const columns = Math.max(32, Math.min(512, Math.round((right - left) / 2)));
		const rows = rowsThatFit(canvasOf("heatmap"));
		const view = !isEnd ? first || model.view
			: model.window === "all" ? null : followedView(await fetchRecordings(own.signal));
		const overview = await fetchOverview(view, columns, rows, own.signal);
		own.signal.throwIfAborted(); // the view has changed
		setOverview(overview);
		model.view = view || wholeView();
		if (first && !isSameView(first, clampView(first))) {
			show(clampView(first));
			return;
		}
		redraw();
		await loadRecords(own.signal);
		await loadAround(own.signal);
		await loadEvents(view, isNews, own.signal);
		setError("error", null);
		model.isLoading = false;
		app.announce(text || viewText(), isAskedFor);
	} catch (error) {
		hasNews = hasNews || isNews;
		if (error.name === "AbortError") {
			return;
		}
		model.isLoading = false;
		setError("error", error);
	} finally {
		if (pending === own) {
			pending = null;
			refreshed = Date.now();
		}
	}
	redraw();
}

async function loadRecords(signal) {
	const { overview } = model;
	const from = toRelative(model.view.from);
	const to = toRelative(model.view.to);
	const known = d3.sum(overview.columns, columnRecords);
	const areInside = overview.columns.every((column) => column.from >= from && column.from <= to);
	if (overview.unit === "records" && areInside && known > 0 && known <= RECORDS) {
		const { placeFrom, placeTo } = model.view;
		const { hits, isCutOff } = await fetchRecords(viewQueries(model.view, "all"), RECORDS, signal);
		const isInside = (hit) => placeOfHit(hit) >= placeFrom && placeOfHit(hit) <= placeTo;
		model.records = { hits: hits.filter(isInside), isCutOff };
	}
}

// Finds the records before and after a view that is within a recording and has no records.
async function loadAround(signal) {
	const one = recordingAround();
	if (model.overview.columns.length || !one) {
		return;
	}
	const [last, first] = await Promise.all([
		fetchFind({ from: toRfc3339(toAbsolute(one.from)), to: toRfc3339(model.view.from), last: 1 }, signal),
		fetchFind({ from: toRfc3339(model.view.to), to: toRfc3339(toAbsolute(one.to) + 1n), first: 1 }, signal)]);
	const [before, after] = [last.hits[0], first.hits[0]];
	if (before && after && before.recording === one.id && after.recording === one.id) {
		model.around = { before, after, from: fromRfc3339(before.time), to: fromRfc3339(after.time) };
	}
}

// Checks now and then if the files have changed.
function watchFiles() {
	const records = (overview) => overview.recordings.map((one) => `${one.id} ${one.records}`).join();
	const ask = async () => {
		if (!document.hidden && model.overview && !pending && !model.isLoading && !model.isDragging) {
			const shown = model.overview;
			try {
				const now = await fetchRecordings();
				const isNew = isFollowing() && !isInUse() && records(now) !== records(shown);
				if (model.overview === shown && !pending && (isNew || goneText(shown, now))) {
					hasNews = true;
					load(isFollowing());
				}
			} catch (error) {
				setError("error", error);
				drawNow();
			}
		}
		setTimeout(ask, REFRESH_MS);
	};
	setTimeout(ask, REFRESH_MS);
}

// True while a selection or the focus would be lost if the picture and the tables were replaced.
function isInUse() {
	const body = element("tab-body");
	const selection = document.getSelection();
	return model.isDragging || model.cursor || body.querySelector(":focus")
		|| (selection.type === "Range" && body.contains(selection.anchorNode));
}

// Call after the daemon has reported something; `isNews` if it may concern the recordings.
function changed(isNews) {
	const isOpen = model.live && model.live.status && model.live.status.recording;
	const isIdle = !pending && !model.isLoading && !isInUse() && (!model.view || isFollowing());
	const isLate = Date.now() - refreshed > (model.window === "all" ? REFRESH_MS : SLIDE_MS);
	hasNews = hasNews || isNews;
	if (isLate && isIdle && (hasNews || isOpen || !model.overview)) {
		if (model.overview) {
			load(true);
		} else {
			restore();
		}
	}
	drawNow();
}

// ---- actions

let steppedAt = 0;
let lastEvent = null; // the event last gone to

// Shows a view. `isStep`: one of many small steps, such as the wheel's.
function go(view, isStep = false, text = "") {
	const next = clampView(view);
	if (!model.view || isSameView(next, model.view)) {
		app.announce(text || viewText());
		return;
	}
	const isNew = !isStep || Date.now() - steppedAt > STEP_MS;
	steppedAt = isStep ? Date.now() : 0;
	show(next, text);
	writeLink(isFollowing(), isNew);
}

// Then announces a text, or the view.
function show(view, text = "") {
	model.view = view;
	model.isFollowing = isFollowed(view);
	model.cursor = null;
	model.cell = null;
	model.records = null;
	model.deleted = null;
	model.isLoading = !model.isReport;
	if (pending) {
		pending.abort();
	}
	clearTimeout(timer);
	const isEnd = isFollowing(); // also what was recorded since the last answer
	timer = setTimeout(() => load(isEnd, text), SETTLE_MS);
	redraw();
}

// Shows the surroundings of a moment: a tenth of the view, but at least 20 us.
function goNear(ns) {
	lastEvent = null;
	const span = model.view.to - model.view.from;
	const half = span / 20n > 10000n ? span / 20n : 10000n;
	go(spanView(ns - half, ns + half));
	element("timeline").focus();
}

function isSameEvent(a, b) {
	return b && ["time", "record", "recording", "kind", "cause", "text"].every((member) => a[member] === b[member]);
}

// Goes to the event before or after the last one visited if that is in view, else before or after the middle.
function goToEvent(by) {
	const events = shownEvents();
	const last = events.findIndex((one) => isSameEvent(one, lastEvent));
	let next = last + by;
	if (last < 0 || !isInView(lastEvent.time, lastEvent.time)) {
		const middle = toRelative((model.view.from + model.view.to) / 2n);
		const { left, right } = d3.bisector((one) => one.time);
		next = by > 0 ? right(events, middle + 1) : left(events, middle - 1) - 1;
	}
	const event = events[next];
	if (event) {
		lastEvent = event;
		const span = model.view.to - model.view.from;
		const from = toAbsolute(event.time) - span / 2n;
		go({ ...model.view, from, to: from + span }, false, `${event.kind}: ${eventText(event)}`);
	} else if (model.events && (model.events.view || model.events.cut_off)) {
		go(pannedView(model.view, by / 2)); // where others may be
	}
}

const ACTS = {
	home: () => follow("all"),
	resume: () => follow(model.window),
	back: () => { model.isLoading = goBack() || model.isLoading; },
	in: () => go(zoomedView(model.view, 2, 0.5), true),
	out: () => go(zoomedView(model.view, 0.5, 0.5), true),
	left: () => go(pannedView(model.view, -0.25), true),
	right: () => go(pannedView(model.view, 0.25), true),
	next: () => goToNext(1),
	previous: () => goToNext(-1),
	csv: saveCsv,
	command: copyCommand,
	copyLink: () => app.announce(copyText(location.href) ? "The link was copied." : "The browser does not allow copying."),
	help: () => element("help").showModal(),
	search: () => element("search-text").focus(),
};

// Follows everything, or the end of what is recorded.
function follow(name) {
	model.window = name;
	const isNew = !isFollowing() || !isFollowed(model.view);
	show(followedView());
	writeLink(true, isNew);
}

// Lists the records of the cursor's cell.
async function listCell() {
	const queries = viewQueries(cellView(model.cursor), model.shown);
	const own = { queries, hits: null, isCutOff: false, page: 0, error: null };
	model.cell = own; // an older one that is still fetched is no longer shown
	openTab("records");
	try {
		Object.assign(own, await fetchRecords(queries, MOST));
	} catch (error) {
		own.error = error.message;
	}
	redraw();
}

// The searches of the open table: a cell, the hits, or the view.
function selectedQueries() {
	const { search } = model;
	return model.tab === "search-hits" && search && search.query ? [search.query]
		: model.cell ? model.cell.queries : viewQueries(model.view, model.shown);
}

async function saveCsv() {
	try {
		const { hits, isCutOff } = await fetchRecords(selectedQueries(), MOST);
		saveFile("records.csv", "text/csv", csvText(hits));
		app.announce(isCutOff ? `The first ${plural(hits.length, "record")} were saved; the command has no limit.`
			: `${plural(hits.length, "record")} saved.`);
	} catch (error) {
		app.announce(error.message);
	}
}

async function copyCommand() {
	const queries = selectedQueries();
	try {
		const { hits } = await fetchRecords(queries, MOST);
		const isCopied = hits.length > 0 && copyText(commandText(queries, hits));
		app.announce(isCopied ? "The command was copied." : hits.length ? "The browser does not allow copying." : "No records.");
	} catch (error) {
		app.announce(error.message);
	}
}

// Goes to the hit before or after the one last gone to.
function goToHit(by) {
	const { search } = model;
	const at = search.at === undefined ? (by > 0 ? 0 : search.hits.length - 1) : search.at + by;
	const hit = search.hits[at];
	if (hit && hit.time) {
		search.at = at;
		const span = model.view.to - model.view.from;
		const from = fromRfc3339(hit.time) - span / 2n;
		go({ ...model.view, from, to: from + span }, false, `${at + 1} of ${search.hits.length}: ${hit.text}`);
		redraw();
	}
}

function goToNext(by) {
	const { search } = model;
	if (model.tab === "search-hits" && search && search.hits && search.hits.length) {
		goToHit(by);
	} else {
		goToEvent(by);
	}
}

function openTab(id) {
	model.tab = id;
	if (model.overview) {
		drawPanel(app);
	}
	writeLink(isFollowing(), false);
}

// Shows what the page's address says.
function restore() {
	const { view, shown, tab, window: followed, q, which, isLimited } = parseLink(location.hash);
	model.window = isWindow(followed) && !model.isReport ? followed : "all";
	model.isFollowing = view === null;
	model.shown = shown;
	model.tab = isTab(tab) ? tab : "totals";
	d3.selectAll("#classes input").property("checked", (name) => name === shown);
	const isSearched = model.search ? model.search.text === q && model.search.which === which
		&& model.search.isLimited === isLimited : !q;
	if (!isSearched && !model.isReport) {
		element("search-text").value = q;
		element("search-limit").checked = isLimited;
		if (q) {
			search(which, isLimited ? view || model.view : null);
		} else {
			model.search = null;
		}
	}
	if (model.overview) {
		show(view ? clampView(view) : followedView());
	} else {
		load(!view, "", view);
	}
}

let searching = null; // an AbortController

// Searches all recordings, or a view: its times, and its addresses if none are given.
async function search(which, view) {
	const text = element("search-text").value;
	const own = { text, which, isLimited: view !== null, query: null, limit: HITS, hits: null, error: null };
	model.search = own; // one that is still running changes only what was there before
	redraw();
	if (searching) {
		searching.abort();
	}
	searching = new AbortController();
	try {
		const [limits, ...others] = view ? viewQueries(view, "all") : [{}];
		const { from, to } = limits;
		const given = parseQuery(text);
		const isFree = !given.addr && !given.region && !others.length;
		own.query = { ...(isFree ? limits : view ? { from, to } : {}), ...given };
		Object.assign(own, await fetchFind({ ...own.query, [which]: HITS }, searching.signal));
	} catch (error) {
		own.error = error.message;
	}
	redraw();
}

const app = {
	redraw, drawNow, go, goNear, changed, openTab, follow, listCell,
	act: (name) => model.overview && ACTS[name](),
	announce: (text, isAloud = true) => {
		element("summary").ariaLive = isAloud ? "polite" : "off";
		element("summary").textContent = text;
	},
	columnsInView: () => d3.range(model.overview.columns.length).filter((i) => isColumnInView(model.overview.columns[i])),
	rowsInView: visibleRows,
};

// ---- start

function addClasses() {
	const labels = d3.select("#classes").selectAll("label").data(["all", ...CLASSES]).join("label")
		.attr("class", (name) => `swatch-${name}`);
	labels.append("input").attr("type", "radio").attr("name", "class").attr("value", (name) => name)
		.property("checked", (name) => name === model.shown)
		.on("change", (name) => {
			model.shown = name;
			redraw();
			writeLink(isFollowing(), false);
		});
	labels.append("span").text((name) => name);
}

// For printing, draws the canvases again at once: light, in a size that fits A4 and Letter.
function listenToPrinter() {
	let theme = null;
	window.addEventListener("beforeprint", () => {
		theme = theme || document.documentElement.dataset.theme || "auto";
		setTheme("light");
		document.documentElement.classList.add("printing");
		draw();
	});
	window.addEventListener("afterprint", () => {
		document.documentElement.classList.remove("printing");
		setTheme(theme);
		redraw();
		theme = null;
	});
}

function start() {
	addClasses();
	drawHelp(element("help"));
	listen(element("plots"), app);
	listenToPrinter();
	for (const button of document.querySelectorAll("[data-act]")) {
		button.addEventListener("click", () => app.act(button.dataset.act));
	}
	element("theme").addEventListener("change", (event) => {
		setTheme(event.target.value);
		rememberTheme(event.target.value);
		redraw();
	});
	element("theme").value = rememberedTheme();
	setTheme(element("theme").value);
	element("help-open").addEventListener("click", ACTS.help);
	element("recording").addEventListener("change", (event) => {
		const one = model.overview.recordings[event.target.value];
		if (one) {
			go(recordingView(one));
		} else {
			follow("all");
		}
	});
	element("search").addEventListener("submit", (event) => {
		event.preventDefault();
		search(event.submitter && event.submitter.name ? event.submitter.name : "first", element("search-limit").checked ? model.view : null);
		openTab("search-hits");
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
		watchFiles();
	}
	restore();
	window.addEventListener("popstate", restore);
}

// For tests: what is known, where it is drawn, and functions without state.
window.buscap = {
	model, currentColours, formatTime, formatDuration, timeAxis, fromRfc3339, toRfc3339, zoomedView, pannedView, parseQuery,
	eventText, eventsByTime, show, spanView, stateText,
	setCursor: (cell) => setCursor(app, cell),
	cellPixels: (column, row) => {
		const { clientWidth, clientHeight } = canvasOf("heatmap");
		return cellPixels(clientWidth, clientHeight, column, row);
	},
};

start();
