// Starts the page, draws it, and connects keys and buttons with what they do.
/* global d3 */

import { currentColours, forgetColours } from "./colours.js";
import { compareReports } from "./compare.js";
import { saveFigure } from "./figure.js";
import { drawFollow, followedView, isFollowing, isWindow } from "./follow.js";
import { drawTip, listen, setCursor, timeToMark } from "./gestures.js";
import { drawFacts, drawNotices, drawOrigin, drawRange, emptyText, recordingName, recordingView, runName, setText, startText, stateText } from "./header.js";
import { cellPixels, drawHeatMap, drawLegend } from "./heatmap.js";
import { placeOf, placesOf } from "./goto.js";
import { drawHelp } from "./help.js";
import { copyText, goBack, outsideText, parseLink, writeLink } from "./link.js";
import { drawLive, watchLive } from "./live.js";
import { changed, load, watchFiles, watchStart } from "./load.js";
import { armMarkers, clearMarkers, drawMeasured, restoreMarkers, setMarker, viewBetween } from "./markers.js";
import {
	clampView, eventsByTime, inOther, isColumnInView, model, pannedView, spanView, visibleRows, wholeView, zoomedView,
} from "./model.js";
import { drawPanel, isTab } from "./panel.js";
import { drawProcessors, showProcessors } from "./processors.js";
import { parseQuery } from "./query.js";
import { copyCommand, goToNext, listCell, saveCsv, startSearch } from "./records.js";
import { viewQueries } from "./selection.js";
import { embeddedReport } from "./source.js";
import { changeRuns, commonMarks, isSameRuns } from "./runs.js";
import { drawStrip, listenToStrip } from "./strip.js";
import { CLASS_TEXTS, CLASSES, eventText, visible } from "./text.js";
import { rememberedTheme, rememberTheme, setTheme } from "./theme.js";
import { drawTimeline } from "./timeline.js";
import { formatDuration, formatTime, fromRfc3339, setAxis, timeAxis, toRfc3339 } from "./time.js";
import { follow, go, goNear, goTo, show } from "./views.js";

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

// Says why nothing is shown, and what to do.
function drawEmpty() {
	const text = !model.overview ? startText() : model.isLoading ? "" : emptyText();
	const box = element("empty");
	box.hidden = !text;
	setText(box, text);
}

// Draws what may change each second. The rest stays, with its focus and selection.
function drawNow() {
	drawNotices();
	drawEmpty();
	drawOrigin();
	drawFollow(app);
	drawLive();
}

function drawRun(timeline, heatmap) {
	drawTimeline(canvasOf(timeline));
	drawHeatMap(canvasOf(heatmap));
	for (const id of [timeline, heatmap]) {
		element(`${id}-run`).textContent = runName();
		element(`${id}-run`).hidden = !model.other;
	}
}

function draw() {
	drawNow();
	element("panel").classList.toggle("waiting", !model.overview);
	if (!model.overview) {
		return;
	}
	drawFacts();
	drawProcessors(app);
	drawComparison();
	drawStrip(canvasOf("strip"));
	drawRun("timeline", "heatmap");
	element("plots").classList.toggle("compared", model.other !== null);
	for (const id of ["timeline-b", "heatmap-b"]) {
		element(id).hidden = element(`${id}-run`).hidden = !model.other;
	}
	if (model.other) {
		inOther(() => drawRun("timeline-b", "heatmap-b"));
	}
	drawLegend(canvasOf("legend"));
	drawRange();
	drawMeasured();
	drawPanel(app);
	drawTip();
}

// ---- actions

// From the text, to where n and p walk through the hits.
function leaveSearch() {
	if (document.activeElement === element("search-text")) {
		element("timeline").focus();
	}
}

// Zooms to the addresses in the search box, and keeps the times.
function showPlaces() {
	const places = placesOf(element("search-text").value);
	if (places) {
		go(app, { ...model.view, ...places });
		leaveSearch();
	} else {
		app.announce("Shift + Enter shows an address, a range (b8000-bffff) or a port (port 3f8).");
	}
}

const ACTS = {
	home: () => follow(app, "all"),
	resume: () => follow(app, model.window),
	back: () => { model.isLoading = goBack() || model.isLoading; },
	in: () => go(app, zoomedView(model.view, 2, 0.5), true),
	out: () => go(app, zoomedView(model.view, 0.5, 0.5), true),
	left: () => go(app, pannedView(model.view, -0.25), true),
	right: () => go(app, pannedView(model.view, 0.25), true),
	next: () => goToNext(app, 1),
	previous: () => goToNext(app, -1),
	measure: () => armMarkers(app),
	markA: () => setMarker(app, "a", timeToMark("a")),
	markB: () => setMarker(app, "b", timeToMark("b")),
	between: () => go(app, viewBetween()),
	clear: () => clearMarkers(app),
	csv: () => saveCsv(app),
	command: () => copyCommand(app),
	timelineFigure: () => saveFigure(app, "timeline"),
	heatMapFigure: () => saveFigure(app, "heat-map"),
	workingSetFigure: () => saveFigure(app, "working-set"),
	missRatioFigure: () => saveFigure(app, "miss-ratio"),
	copyLink: () => app.announce(copyText(location.href) ? "The link was copied." : "The browser does not allow copying."),
	help: () => element("help").showModal(),
	search: () => element("search-text").focus(),
	leaveSearch, showPlaces,
};

// The id of the recording that others are compared with: the one that is shown, or the first.
function firstId() {
	const { compared, overview: { recordings } } = model;
	const one = recordings[element("recording").value] || recordings[0];
	return compared ? compared.a : one && one.id;
}

// Shows another recording next to it; "": only the recordings as they are.
function compareWith(b, mark) {
	changeRuns(b ? { a: firstId(), b, mark } : null);
	writeLink(true, true);
	load(app, true);
}

// What can be compared, and from which marks.
function drawComparison() {
	const { compared, recordings, isReport } = model;
	const shown = firstId();
	const others = recordings.filter((one) => one.id !== shown).map((one) => [one.id, `${compared ? "with " : ""}${recordingName(one)}`]);
	const fill = (id, options, value) => {
		element(`${id}-label`).hidden = options.length < 2;
		d3.select(`#${id}`).selectAll("option").data(options).join("option").attr("value", ([one]) => one).text(([, text]) => text);
		element(id).value = value;
	};
	fill("compare", isReport ? [] : [["", compared ? "Not compared" : "Compare with \u2026"], ...others], compared ? compared.b : "");
	const marks = compared ? commonMarks().map((text) => [text, `from ${visible(text)}`]) : [];
	fill("align", [["", "from their starts"], ...marks], (compared && compared.mark) || "");
}

function openTab(id) {
	model.tab = id;
	if (model.overview) {
		drawPanel(app);
	}
	if (id === "locality" && model.overview && !model.isReport) {
		load(app, isFollowing());
	}
	writeLink(isFollowing(), false);
}

// Shows what the page's address says.
function restore() {
	const { view, fault, a, b, compared, shown, proc, tab, window: followed, q, which, isLimited } = parseLink(location.hash);
	if (!isSameRuns(compared, model.compared)) {
		changeRuns(compared);
	}
	model.window = isWindow(followed) && !model.isReport ? followed : "all";
	model.isFollowing = view === null;
	model.shown = shown;
	model.proc = proc;
	model.tab = isTab(tab) ? tab : "totals";
	d3.selectAll("#classes input").property("checked", (name) => name === shown);
	const isSearched = model.search ? model.search.text === q && model.search.which === which
		&& model.search.isLimited === isLimited : !q;
	if (!isSearched && !model.isReport) {
		const limits = isLimited ? view || model.view : null; // null at the start: what is followed is not known yet
		element("search-text").value = q;
		element("search-limit").checked = limits !== null;
		if (q) {
			startSearch(app, which, limits);
		} else {
			model.search = null;
		}
	}
	restoreMarkers(app, { a, b });
	const text = fault || (model.overview && view ? outsideText(view) : "");
	if (model.overview) {
		show(app, view ? clampView(view) : followedView(), text);
	} else {
		load(app, !view, text, view);
	}
	if (model.picture) {
		showProcessors();
	}
	if (text) {
		model.linkFault = text;
		writeLink(isFollowing(), false);
	}
}

const app = {
	redraw, drawNow, restore, openTab,
	go: (...values) => go(app, ...values),
	show: (...values) => show(app, ...values),
	goNear: (ns) => goNear(app, ns),
	follow: (name) => model.overview && follow(app, name),
	changed: (isNews) => changed(app, isNews),
	listCell: () => listCell(app),
	act: (name) => model.overview && ACTS[name](),
	chooseProcessor: (name) => {
		model.proc = name;
		Object.assign(model, { cursor: null, cell: null, records: null, isLoading: !model.isReport });
		showProcessors();
		load(app, isFollowing());
		writeLink(isFollowing(), false);
	},
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
			if (model.tab === "locality") {
				openTab(model.tab);
			}
			redraw();
			writeLink(isFollowing(), false);
		});
	labels.append("span").text((name, i) => (i ? CLASS_TEXTS[i - 1] : name));
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
	listenToStrip(element("strip"), app);
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
			go(app, recordingView(one));
		} else {
			follow(app, "all");
		}
	});
	element("compare").addEventListener("change", (event) => compareWith(event.target.value, null));
	element("align").addEventListener("change", (event) => {
		compareWith(model.compared.b, event.target.selectedIndex ? event.target.value : null);
	});
	element("search").addEventListener("submit", (event) => {
		event.preventDefault();
		const place = model.overview && placeOf(element("search-text").value);
		if (place) {
			goTo(app, place.ns, place.text);
		} else {
			startSearch(app, event.submitter && event.submitter.name ? event.submitter.name : "first", element("search-limit").checked ? model.view : null);
			openTab("search-hits");
		}
		leaveSearch();
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
		model.picture = model.overview = model.whole = report.overview;
		setAxis(report.overview.axis);
		model.events = report.events;
		const localities = [report.locality, report.compared && report.compared.locality].filter(Boolean);
		model.localities = localities.length ? { list: localities, error: null } : null;
		if (report.compared) {
			compareReports(report);
			setAxis(model.overview.axis);
		}
		model.view = wholeView();
	} else {
		watchLive(app);
		watchStart(app);
		watchFiles(app);
	}
	restore();
	window.addEventListener("popstate", restore);
}

// For tests: what is known, where it is drawn, and functions without state.
window.buscap = {
	model, currentColours, formatTime, formatDuration, timeAxis, fromRfc3339, toRfc3339, zoomedView, pannedView, parseQuery,
	eventText, eventsByTime, spanView, stateText, viewQueries,
	show: app.show,
	setCursor: (cell) => setCursor(app, cell),
	cellPixels: (column, row) => {
		const { clientWidth, clientHeight } = canvasOf("heatmap");
		return cellPixels(clientWidth, clientHeight, column, row);
	},
};

start();
