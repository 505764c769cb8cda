// The texts at the top: the header, notices, and which part of the recordings is shown.
/* global d3 */

import {
	eventsByTime, hasClocks, hasPlaces, holeText, isInView, isSameView, missingText, model, ofRuns, onlyProcessors, processorText,
	recordingInProgress, spanView, toAbsolute, toRelative, totals, visibleColumns, visibleHoles, visibleRows, wholeView,
} from "./model.js";
import { togetherText } from "./processors.js";
import { quoted } from "./selection.js";
import { CLASS_TEXTS, count, endsText, lostText, plural, short, visible } from "./text.js";
import { cutRate } from "./timeline.js";
import { formatSpan, formatTime, formatTimes, hasTimesOfDay, rateUnit } from "./time.js";

const byId = (id) => document.getElementById(id);

// The unit of time of the picture's columns.
function unitText() {
	const columns = visibleColumns();
	const { unit } = model.overview;
	if (!columns.length) {
		return "no records";
	}
	const most = d3.max(columns, (column) => column.records);
	if (unit === "records") {
		const span = d3.median(columns, (column) => column.to - column.from);
		return most === 1 ? "single records" : `records counted one by one, ${formatSpan(span)} per column`;
	}
	return unit === "segments" ? "whole segments" : `up to ${plural(most, "record")} per column`;
}

function addressesText({ placeFrom, placeTo }) {
	return `addresses ${endsText(placeFrom, placeTo).join(" to ")}`;
}

export function drawRange() {
	if (!model.overview.recordings.length) {
		byId("range").replaceChildren();
		return;
	}
	const { from, to } = model.view;
	const span = Number(to - from);
	const parts = [formatTimes(from, to, span / 100), formatSpan(span), unitText()];
	if (onlyProcessors()) {
		parts.push(processorText());
	}
	if (hasPlaces()) {
		parts.push(addressesText(model.view));
	}
	const { extent } = model.overview;
	if (model.isReport && (model.overview.from > extent.from || model.overview.to < extent.to)) {
		parts.push(`the report has only a part of the ${formatSpan(extent.to - extent.from)} recorded`);
	}
	if (model.isReport && visibleColumns().length < 12 && !isSameView(model.view, wholeView())) {
		parts.push("the report has no finer figures; buscap web shows single records");
	}
	const cut = cutRate();
	if (cut) {
		parts.push(`columns cut at the top reach up to ${short(cut)}${rateUnit()}`);
	}
	if (!hasClocks()) {
		parts.push("clock unknown: arrival times");
	}
	if (model.isLoading) {
		parts.push("loading \u2026");
	}
	d3.select("#range").selectAll("span").data(parts).join("span").text((text) => text);
}

// The view as a sentence, for screen readers.
export function viewText() {
	if (!model.overview.recordings.length) {
		return "";
	}
	const { from, to } = model.view;
	return `${formatSpan(Number(to - from))} from ${formatTime(from, 1e3)}${hasTimesOfDay() ? " UTC" : ""}, ${ofRuns(sumsText).join("; ")}`;
}

function sumsText() {
	const sums = totals();
	const counts = CLASS_TEXTS.map((name, k) => `${name} ${count(sums.counts[k])}`).join(", ");
	const where = `${onlyProcessors() ? ` of ${processorText()}` : ""}${hasPlaces() ? ` at ${addressesText(model.view)}` : ""}`;
	return `${model.other ? `${runName()}: ` : ""}${plural(sums.records, "record")}${where}, ${counts}, `
		+ `${sums.missing ? `${missingText(sums.missing)}, ` : ""}${lostText(sums.lost, sums.isExact)}, ${unitText()}`;
}

function hasHosts() {
	return model.overview.recordings.some((one) => one.host !== model.overview.recordings[0].host);
}

function traceName({ metadata: { converted_from: path } }) {
	return hasTimesOfDay() || !path ? "" : path.replace(/.*\//, "");
}

// The recording's name, with its host if there are several hosts. The id of a trace has a time that is not the trace's.
export function recordingName(recording, name = recording.label || traceName(recording) || recording.id) {
	return visible(hasHosts() && recording.host ? `${name} (${recording.host})` : name);
}

// A letter and the name of the run that is drawn.
export function runName() {
	const { recordings } = model.overview;
	const name = recordings.length === 1 ? recordingName(recordings[0]) : plural(recordings.length, "recording");
	return `${model.isOther ? "B" : "A"}: ${name}`;
}

// The recording that the view is within, or undefined. The bus may have been idle before its end.
export function recordingAround() {
	const [from, to] = [toRelative(model.view.from), toRelative(model.view.to)];
	return model.overview.recordings.find((one) => one.from <= from && one.ended >= to);
}

// The files and directories that are shown.
function pathsText() {
	const paths = model.files ? model.files.paths.map(visible) : [];
	return paths.length > 3 ? `${paths[0]} and ${count(paths.length - 1)} more` : paths.join(", ");
}

// What is going on before the first picture.
export function startText() {
	const { error, files, isLoading, liveError } = model;
	const where = pathsText() || "the recordings";
	if (error && !isLoading) {
		return `${where}: can't be shown; the reason is above.${liveError ? "" : " This page tries again every 5 s."}`;
	}
	return `Reading ${where} \u2026${files ? ` ${count(files.read)} of ${plural(files.files, "file")}` : ""}`;
}

// What to do if there is nothing to show.
function nothingText() {
	const { files, live } = model;
	const status = live && live.status;
	const next = !status ? `buscapd does not answer. Start it as a service, or: buscapd -o ${files ? quoted(files.paths[0]) : "DIRECTORY"}`
		: status.state === "idle" ? `buscapd is idle. To record in ${visible(status.directory)}: buscap record start`
		: `buscapd is ${visible(status.state)} in ${visible(status.directory)}; its first records take a second.`;
	return `There are no recordings in ${pathsText() || "the directory"} yet. ${next}`;
}

// Why the view is empty; "" if it is not.
export function emptyText() {
	const { overview, around } = model;
	if (!overview.recordings.length) {
		return nothingText();
	}
	if (visibleColumns().length) {
		return visibleRows().length || overview.columns.some((column) => column.uncounted) ? ""
			: `No record${onlyProcessors() ? ` of ${processorText()}` : ""}${hasPlaces() ? " at these addresses" : ""} in this view.`;
	}
	const holes = visibleHoles();
	if (holes.length) {
		return holes.length === 1 ? `No records in this view: ${holeText(holes[0])}.`
			: `No records in this view: ${missingText(d3.sum(holes, (hole) => hole.missing), holes.length)}.`;
	}
	const gaps = eventsByTime().filter((event) => event.kind === "gap" && isInView(event.time, event.time));
	const within = recordingAround();
	if (gaps.length) {
		return `No records in this view: ${lostText(d3.sum(gaps, (gap) => gap.lost), gaps.every((gap) => gap.exact))}.`;
	}
	if (within && around && around.before.number + 1 === around.after.number) {
		return `The bus was idle: no record between ${count(around.before.number)} and ${count(around.after.number)} `
			+ `(${formatSpan(Number(around.to - around.from))}).`;
	}
	return within ? "The bus was idle in this view." : "No recording has records in this view.";
}

// "open" in the JSON means no end: the recording was killed, or its next segment is missing or yet to come.
export function stateText(recording) {
	const { id, state } = recording;
	const isInProgress = state === "recording" || (state === "open" && id === recordingInProgress());
	return isInProgress ? "in progress" : state === "open" ? "no end recorded" : state;
}

export function recordingView(recording) {
	return spanView(toAbsolute(recording.from), toAbsolute(recording.to));
}

// Returns the recording that contains the whole view; of several, the one chosen before; null: none, or everything is shown.
function shownRecording() {
	const { recordings } = model.overview;
	if (isSameView(model.view, wholeView())) {
		return null;
	}
	const isShown = (one) => recordingView(one).from <= model.view.from && model.view.to <= recordingView(one).to;
	const chosen = recordings[byId("recording").value];
	return [chosen, ...recordings].find((one) => one && isShown(one)) || null;
}

// The recordings to choose from. Returns the one that the view shows, or null.
function drawChoice() {
	const { recordings } = model.overview;
	const isTwice = (label) => recordings.filter((other) => other.label === label).length > 1;
	const options = recordings.map((one, i) => [String(i), recordingName(one, isTwice(one.label) ? one.id : undefined)]);
	byId("recording-label").hidden = recordings.length < 2;
	d3.select("#recording").selectAll("option").data([["all", `All ${recordings.length} recordings`], ...options])
		.join("option").attr("value", ([value]) => value).text(([, text]) => text);
	if (recordings.length === 1) {
		return recordings[0];
	}
	const shown = shownRecording();
	byId("recording").value = shown ? String(recordings.indexOf(shown)) : "all";
	return shown;
}

// How many samples the recordings lost, "at least N" or unknown.
export function lostCount(recordings) {
	const lost = d3.sum(recordings, (one) => one.lost);
	const isExact = recordings.every((one) => !one.inexact_gaps);
	return isExact ? count(lost) : lost ? `at least ${count(lost)}` : "unknown number";
}

// The facts of a run, of which one recording may be chosen.
function factsOf(one) {
	const { recordings } = model.overview;
	const shown = one ? [one] : recordings;
	const facts = [];
	if (recordings.length === 1 || model.other) {
		facts.push(model.other ? runName() : recordingName(one));
	}
	if (one && one.state !== "sealed") {
		facts.push(stateText(one));
	}
	if (shown.length) {
		const missing = missingText(d3.sum(shown, (r) => r.missing), d3.sum(shown, (r) => r.missing_segments));
		facts.push(...(shown.every((r) => r.simulated) ? ["simulated bus and time"] : []),
			...(model.other ? [] : [formatTime(toAbsolute(shown[0].from), 1e9)]), formatSpan(d3.max(shown, (r) => r.to) - shown[0].from),
			plural(d3.sum(shown, (r) => r.records), "record"),
			...(one && one.first_record ? [`starts at record ${count(one.first_record)}`] : []),
			...(missing ? [missing] : []), `${lostCount(shown)} lost`);
	}
	return facts;
}

export function drawFacts() {
	const { recordings } = model.overview;
	const one = drawChoice();
	const facts = model.other ? ofRuns(() => factsOf(null)).flat() : factsOf(one);
	d3.select("#facts").selectAll("span").data(facts).join("span").text((text) => text);
	document.title = recordings.length === 1 ? `${recordingName(one)} \u2013 buscap` : "buscap";
}

function clock(date) {
	return `${date.toISOString().slice(11, 19)} UTC`;
}

function damageText(damage) {
	const [first] = damage;
	return `${plural(damage.length, "damaged place")}, not part of the picture: ${visible(first.file.replace(/.*\//, ""))}: `
		+ `${visible(first.what)}${damage.length > 1 ? "; all are listed under Recordings" : ""}.`;
}

function holesText(holes) {
	const [{ recording, what }] = holes;
	const { recordings } = model.overview;
	return `${recordings.length > 1 ? `${recordingName(recordings[recording])}: ` : ""}${what}`
		+ `${holes.length > 1 ? `; all ${holes.length} holes are listed under Recordings` : ""}.`;
}

// Sets a text only if it differs: setting it would lose a selection, and be announced.
export function setText(node, text) {
	if (node.textContent !== text) {
		node.textContent = text;
	}
}

// What is missing from the picture.
function pictureNotices() {
	const { overview, events } = model;
	const notices = [];
	if (overview.holes.length) {
		notices.push(["bad", holesText(overview.holes)]);
	}
	if (overview.damage.length) {
		notices.push(["bad", damageText(overview.damage)]);
	}
	if (events && events.cut_off) {
		notices.push(["", `Only the first ${count(events.events.length)} marks, triggers and gaps are shown.`]);
	}
	const uncounted = d3.sum(overview.columns, (column) => column.uncounted);
	if (uncounted) {
		notices.push(["", `${plural(uncounted, "record")} not counted by class and address: chunks that are damaged, or too many `
			+ `without page counts${model.isReport ? "" : "; zoom in to count the latter"}.`]);
	}
	return notices.map(([kind, text]) => [kind, model.other ? `${runName()}: ${text}` : text]);
}

// Notices: errors, damage, reduced resolution.
export function drawNotices() {
	const { overview, report } = model;
	const notices = [];
	const errors = [model.error, model.liveError].filter(Boolean);
	for (const { text, since } of errors.filter((one) => one.text !== errors[0].text || one === errors[0])) {
		notices.push(["bad", `${text} (since ${clock(since)}).`]);
	}
	if (model.lostSince) {
		const text = visible(model.live.error || "buscapd has stopped; start it again");
		notices.push(["bad", `${text} (since ${clock(model.lostSince)}). This page connects again by itself.`]);
	}
	if (model.linkFault) {
		notices.push(["", `${visible(model.linkFault)}.`]);
	}
	if (model.deleted) {
		notices.push(["", `${model.deleted.text} (since ${clock(model.deleted.since)}).`]);
	}
	if (report && report.reduced) {
		notices.push(["", visible(report.reduced)]);
	}
	if (togetherText()) {
		notices.push(["", togetherText()]);
	}
	notices.push(...(overview ? ofRuns(pictureNotices).flat() : []));
	d3.select("#notices").selectAll("p").data(notices).join("p")
		.attr("class", ([kind]) => `notice ${kind}`).each(([, text], i, nodes) => setText(nodes[i], text));
}

// The state of the daemon, or what made the report.
export function drawOrigin() {
	const { live, report } = model;
	const box = byId("daemon");
	box.hidden = !report && (!live || live.state === "none");
	if (report) {
		box.className = "report";
		box.textContent = `report, made ${report.made.slice(0, 16).replace("T", " ")} UTC by ${visible(report.program)}`;
	} else if (live) {
		box.className = live.state;
		setText(box, live.state === "connected" && live.status ? live.status.state : live.state);
	}
}
