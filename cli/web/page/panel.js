// The tables below the picture: the same figures as text, events, single records, hits of a search, recordings.
/* global d3 */

import { showLocality } from "./locality.js";
import { lostCount, recordingName, recordingView, runName, stateText } from "./header.js";
import {
	eventsByTime, hasPlaces, missingText, model, ofRuns, onlyProcessors, processorText, shownCount, shownEvents, toAbsolute, totals, trackTotals,
} from "./model.js";
import { addressRange, bytes, CLASS_TEXTS, CLASSES, count, eventText, lostText, percent, plural, visible } from "./text.js";
import { countedAxis, formatDuration, formatSpan, formatTime, fromRfc3339, hasTimesOfDay, timeHead } from "./time.js";

const HOTTEST = 20;
const PAGE = 200; // records of a cell
const LISTED = 500; // rows of a long table
const LONG = 40; // characters of a cell that may be broken into lines

// A table from its head and rows. A cell is a text, or {text, act}: a button. The first cell is the row's head.
function table(parent, caption, head, rows, numbers = []) {
	const box = parent.append("div").attr("class", "table").append("table");
	box.append("caption").append("span").text(caption);
	box.append("thead").append("tr").selectAll("th").data(head).join("th").attr("scope", "col")
		.classed("number", (d, i) => numbers.includes(i)).text((d) => d);
	const cells = box.append("tbody").selectAll("tr").data(rows).join("tr")
		.selectAll("td").data((row) => row).join("td").classed("number", (d, i) => numbers.includes(i));
	cells.filter((cell) => !cell || !cell.act).text((cell) => cell).classed("long", (cell) => cell.length > LONG);
	cells.filter((cell) => cell && cell.act).append("button").attr("type", "button").text((cell) => cell.text)
		.on("click", (cell) => (cell.act ? cell.act() : null));
}

function note(parent, text) {
	parent.append("p").attr("class", "note").text(text);
}

function showTotals(parent) {
	const sums = totals();
	const all = d3.sum(sums.counts);
	const rows = CLASS_TEXTS.map((name, k) => [
		name, count(sums.counts[k]), percent(sums.counts[k], all), count(sums.memory[k]), count(sums.ports[k])]);
	rows.push(["all", count(all), "", count(d3.sum(sums.memory)), count(d3.sum(sums.ports))]);
	const where = `${onlyProcessors() ? ` of ${processorText()}` : ""}${hasPlaces() ? " at the addresses shown" : ""}`;
	table(parent, sums.columns ? `Records${where} in the ${plural(sums.columns, "column")}` : "No records in this view",
		["class", "records", "share", "memory", "I/O ports"], rows, [1, 2, 3, 4]);
	if (sums.columns && trackTotals().length > 1) {
		table(parent, `Records${where} by processor`, ["track", "records", "share", ...CLASS_TEXTS], trackTotals().map((four, track) => [
			processorText(track), count(d3.sum(four)), percent(d3.sum(four), all), ...four.map(count)]), [1, 2, 3, 4, 5, 6]);
	}
	const more = [];
	if (sums.uncounted) {
		more.push(`${plural(sums.uncounted, "record")} not counted by class and address.`);
	}
	if (sums.missing) {
		more.push(`${missingText(sums.missing)}.`);
	}
	if (sums.columns) {
		const lost = lostText(sums.lost, sums.isExact);
		more.push(sums.lost || !sums.isExact ? `${lost[0].toUpperCase()}${lost.slice(1)} here.` : "No samples lost here.");
	}
	note(parent, more.join(" "));
}

function showHottest(parent) {
	const { rows } = model.overview;
	const found = [...totals().rows].map(([row, four]) => ({ ...rows[row], four, shown: shownCount(four) })).filter((one) => one.shown);
	found.sort((a, b) => b.shown - a.shown);
	const isApart = trackTotals().length > 1;
	const only = model.shown === "all" ? "" : ` with ${CLASS_TEXTS[CLASSES.indexOf(model.shown)]}`;
	if (!found.length) {
		note(parent, `No addresses${only} in this view.`);
		return;
	}
	table(parent, `Hottest of ${plural(found.length, "address block")}${only} in the columns shown`,
		["addresses", "region", "records", ...CLASS_TEXTS, ...(isApart ? ["track"] : [])],
		found.slice(0, HOTTEST).map((one) => [
			addressRange(one.place, one.count), visible(one.name || ""), count(d3.sum(one.four)), ...one.four.map(count),
			...(isApart ? [processorText(one.track)] : [])]),
		[2, 3, 4, 5, 6]);
}

function showEvents(parent, app) {
	const { events } = model;
	if (!events || !events.events.length) {
		note(parent, `No marks, triggers or gaps${events && events.view ? " in this view" : ""}.`);
		return;
	}
	const toggle = (kind) => {
		if (!model.hiddenKinds.delete(kind)) {
			model.hiddenKinds.add(kind);
		}
		app.redraw();
	};
	const kinds = d3.nest().key((event) => event.kind).entries(eventsByTime());
	parent.append("p").attr("class", "acts").selectAll("button")
		.data(kinds.length > 1 || model.hiddenKinds.size ? kinds : []).join("button").attr("type", "button")
		.attr("aria-pressed", ({ key }) => !model.hiddenKinds.has(key))
		.text(({ key, values }) => plural(values.length, key)).on("click", ({ key }) => toggle(key));
	const shown = shownEvents();
	const several = model.overview.recordings.length > 1;
	const where = events.view ? " in this view" : "";
	const more = events.cut_off ? "; there are more, which are not shown" : "";
	table(parent, `${plural(shown.length, "event")}${where}${more}`,
		[timeHead(), "kind", "record", "what", ...(several ? ["recording"] : [])],
		shown.slice(0, LISTED).map((event) => [
			{ text: formatTime(toAbsolute(event.time), 1), act: () => app.goNear(toAbsolute(event.time)) },
			event.kind, count(event.record),
			eventText(event) + (event.duration_ns ? `, for ${formatDuration(event.duration_ns)}` : ""),
			...(several ? [recordingName(model.overview.recordings[event.recording])] : [])]), [2]);
	if (shown.length > LISTED) {
		note(parent, `The first ${LISTED} are listed; zoom to see others in the timeline.`);
	}
}

// Saves or copies what is selected; moves between pages.
function acts(parent, app, more = []) {
	const copy = { text: "Copy as command", act: () => app.act("command") }; // its times are times of day
	const buttons = [{ text: "CSV", act: () => app.act("csv") }, ...(hasTimesOfDay() ? [copy] : []), ...more];
	parent.append("p").attr("class", "acts").selectAll("button").data(buttons).join("button").attr("type", "button")
		.property("disabled", (one) => one.isOff === true).text((one) => one.text).on("click", (one) => one.act());
}

function hitRows(hits, app) {
	return hits.slice(0, LISTED).map((hit) => [
		count(hit.number),
		hit.time ? { text: formatTime(fromRfc3339(hit.time), 1), act: () => app.goNear(fromRfc3339(hit.time)) } : "unknown",
		...(countedAxis() ? [] : [String(hit.tick)]), hit.type, hit.addr.replace(/^0x/, "").padStart(/^IO/.test(hit.type) ? 4 : 8, "0"),
		visible(hit.name || ""),
		String(hit.size === null ? "" : hit.size), String(hit.proc === null ? "" : hit.proc)]);
}

// A table of records. Positions on an axis that counts are the ticks.
function hitTable(parent, caption, hits, app) {
	const hasTicks = !countedAxis();
	table(parent, caption, ["record", timeHead(), ...(hasTicks ? ["tick"] : []), "type", "address", "name", "size", "processor"],
		hitRows(hits, app), hasTicks ? [0, 2, 6, 7] : [0, 5, 6]);
}

// A page of the records of the cursor's cell.
function showCell(parent, app) {
	const { hits, isCutOff, page, error } = model.cell;
	if (!hits || !hits.length) {
		note(parent, error || (hits ? "No records in this cell." : "Reading the records of this cell \u2026"));
		return;
	}
	const first = page * PAGE;
	const turn = (by) => () => {
		model.cell.page += by;
		app.redraw();
	};
	acts(parent, app, hits.length > PAGE ? [{ text: "Previous page", act: turn(-1), isOff: page === 0 },
		{ text: "Next page", act: turn(1), isOff: first + PAGE >= hits.length }] : []);
	const shown = hits.slice(first, first + PAGE);
	const which = hits.length > PAGE ? `Records ${count(first + 1)} to ${count(first + shown.length)} of ` : "";
	hitTable(parent, `${which}${isCutOff ? "the first " : ""}${plural(hits.length, "record")} of this cell`, shown, app);
}

function showRecords(parent, app) {
	if (model.cell) {
		showCell(parent, app);
		return;
	}
	if (!model.isReport && totals().columns) {
		acts(parent, app);
	}
	if (model.records) {
		const { hits, isCutOff } = model.records;
		hitTable(parent, `${plural(hits.length, "record")} in this view${isCutOff ? "; there are more" : ""}`, hits, app);
	} else if (!totals().columns) {
		note(parent, "No records in this view.");
	} else {
		note(parent, model.isReport ? "A report has no single records. Open the recording with buscap web to see them."
			: `Click on a cell, or zoom in until the view has at most ${LISTED} records, to list them here.`);
	}
}

function showSearch(parent, app) {
	const { search } = model;
	if (!search) {
		note(parent, "Search for an address, a range, a port, a type or a region: press /.");
		return;
	}
	if (search.error || !search.hits) {
		note(parent, search.error || `Searching for ${visible(search.text)} \u2026`);
		return;
	}
	const { end, hits, damage } = search;
	if (hits.length) {
		acts(parent, app);
		const matches = `${count(hits.length)} ${hits.length === 1 ? "match" : "matches"}`;
		hitTable(parent, `${hits.length < search.limit ? matches : `The ${search.which} ${matches}`} for ${visible(search.text)} in ${search.isLimited ? "the view" : "all recordings"}`, hits, app);
		parent.selectAll("tbody tr").classed("current", (d, i) => i === search.at);
	} else {
		note(parent, `No match for ${visible(search.text)}.`);
	}
	if (!end) {
		note(parent, "The answer was cut short.");
	} else if (end.cut_off) {
		note(parent, `The search was cut off: ${end.cut_off}.`);
	}
	damage.forEach((one) => note(parent, `Not searched: ${visible(one.file)}: ${visible(one.what)}`));
}

function notesText(metadata) {
	return Object.entries(metadata).map(([key, value]) => `${visible(key)}=${visible(String(value))}`).join(", ");
}

function showRecordings(parent, app) {
	if (!model.overview.recordings.length) {
		note(parent, "No recordings.");
		return;
	}
	const missing = (one) => missingText(one.missing, one.missing_segments).replace(/ missing$/, "");
	table(parent, plural(model.overview.recordings.length, "recording"),
		["recording", "state", timeHead("start"), "length", "records", "size", "segments", "missing", "lost", "gaps", "notes"],
		model.overview.recordings.map((one) => [
			{ text: recordingName(one), act: () => app.go(recordingView(one)) },
			stateText(one), formatTime(toAbsolute(one.from), 1e6), formatSpan(one.to - one.from), count(one.records),
			bytes(one.bytes), count(one.segments), missing(one), lostCount([one]), count(one.gaps), notesText(one.metadata || {})]),
		[3, 4, 5, 6, 7, 8, 9]);
	if (model.overview.holes.length) {
		table(parent, plural(model.overview.holes.length, "hole"), ["recording", "what", "before"],
			model.overview.holes.map((one) => [
				recordingName(model.overview.recordings[one.recording]), one.what, visible(one.file)]));
	}
	if (model.overview.damage.length) {
		table(parent, plural(model.overview.damage.length, "damaged place"), ["file", "offset", "bytes", "what"],
			model.overview.damage.map((one) => [visible(one.file), count(one.offset), count(one.bytes), visible(one.what)]),
			[1, 2]);
	}
}

// How many of something the runs have.
function number(listOf) {
	return ` (${count(d3.sum(ofRuns(() => listOf().length)))})`;
}

const TABS = [
	{ id: "totals", show: showTotals, label: () => "Totals" },
	{ id: "addresses", show: showHottest, label: () => "Addresses" },
	{ id: "locality", show: (parent) => showLocality(parent, note, table), label: () => "Working set" },
	{ id: "events", show: showEvents, label: () => `Events${model.events ? number(() => model.events.events) : ""}` },
	{ id: "records", show: showRecords, label: () => `Records${model.records ? number(() => (model.records ? model.records.hits : [])) : ""}` },
	{ id: "search-hits", show: showSearch, label: () => "Search", isHidden: () => model.isReport },
	{ id: "recordings", show: showRecordings, label: () => `Recordings${number(() => model.overview.recordings)}` },
];

export function isTab(id) {
	return TABS.some((tab) => tab.id === id);
}

export function drawPanel(app) {
	const tabs = TABS.filter((tab) => !tab.isHidden || !tab.isHidden());
	const move = (by) => {
		const at = tabs.findIndex((tab) => tab.id === model.tab);
		const { id } = tabs[(at + by + tabs.length) % tabs.length];
		app.openTab(id);
		document.getElementById(`tab-${id}`).focus();
	};
	d3.select("#tabs").selectAll("button").data(tabs).join("button")
		.attr("type", "button").attr("role", "tab").attr("aria-controls", "tab-body").attr("id", (tab) => `tab-${tab.id}`)
		.attr("aria-selected", (tab) => tab.id === model.tab).attr("tabindex", (tab) => (tab.id === model.tab ? 0 : -1))
		.text((tab) => tab.label())
		.on("click", (tab) => app.openTab(tab.id))
		.on("keydown", () => {
			const by = { ArrowLeft: -1, ArrowRight: 1 }[d3.event.key];
			if (by) {
				d3.event.stopPropagation();
				move(by);
			}
		});
	const body = d3.select("#tab-body").attr("aria-labelledby", `tab-${model.tab}`);
	body.selectAll("*").remove();
	const open = TABS.find((tab) => tab.id === model.tab);
	if (!model.other) {
		open.show(body, app);
		return;
	}
	ofRuns(() => {
		const part = body.append("section").attr("class", "part");
		part.append("h2").attr("class", "run").text(runName());
		open.show(part, app);
	});
}
