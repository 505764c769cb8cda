// The live view: what the daemon does now, and the last hour or day.
/* global d3 */

import { currentColours } from "./colours.js";
import { model } from "./model.js";
import { prepareCanvas } from "./plot.js";
import { fetchHistory, fetchLive, setError } from "./source.js";
import { bytes, CLASS_TEXTS, CLASSES, count, eventText, percent, plural, short, visible } from "./text.js";
import { formatDuration } from "./time.js";

const EVENTS = 200; // remembered
const POLL_MS = 1000;
const HISTORY_MS = 60000; // how often the whole history is fetched; in between, the status extends it
const RETRY_MS = 5000; // the same after a failure
const MIX_MS = 10500; // the mix covers the last ten seconds, and polls are not exactly a second apart
const MISSED_S = 2.5; // a longer time between two states means that some were missed, as while the page was hidden
const TYPES = { FETCH: 0, MEMREAD: 1, MEMREADINV: 1, IOREAD: 1, MEMWRITE: 2, IOWRITE: 2 };

const OPENED = new Date().toISOString();

let span = "seconds";
let historyAt = 0;

function sum(object) {
	return d3.sum(Object.values(object || {}));
}

function lastSecond(received, lost, written) {
	const { seconds } = model.history;
	for (const [name, value] of [["received_samples", received], ["lost_samples", lost], ["written_bytes", written]]) {
		seconds[name].push(value);
		if (seconds[name].length > 3600) {
			seconds[name].shift();
		}
	}
}

async function updateHistory() {
	if (Date.now() - historyAt < HISTORY_MS) {
		return;
	}
	historyAt = Date.now();
	try {
		model.history = await fetchHistory();
	} catch (error) {
		historyAt += RETRY_MS - HISTORY_MS; // until then the old history is shown
	}
}

// Keeps the mixes of the last ten seconds and the one before them: each counts from the start of the daemon.
function addMix(mix) {
	const { mixes } = model;
	const last = mixes[mixes.length - 1];
	const isNew = !mix || (last && mix.sampled_records < last.sampled_records); // of another daemon
	const now = Date.now();
	const recent = mixes.filter((one) => now - one.at <= MIX_MS);
	const known = recent.length > 0 ? recent : mixes.slice(-1); // after a pause
	model.mixes = isNew ? [] : known;
	if (mix) {
		model.mixes.push({ ...mix, at: now });
	}
}

// Asks once. Returns true if the daemon reported anything that may have changed the recordings.
async function update() {
	const before = model.live;
	const answer = await fetchLive(before ? before.seq : 0);
	setError("liveError", null);
	if (answer.state === "connected" && answer.status) {
		const passed = before && before.status ? answer.status.uptime_seconds - before.status.uptime_seconds : -1;
		if (passed < 0 || passed > MISSED_S) {
			historyAt = 0;
		}
		await updateHistory();
		const isNext = passed > 0.5; // else it is the same status as in the last answer
		if (model.history && isNext && historyAt < Date.now() - 500) {
			const { rates, counts } = answer.status;
			const lost = Math.max(0, sum(counts.lost) - sum(before.status.counts.lost));
			for (let missed = Math.round(passed) - 1; missed > 0; missed--) {
				lastSecond(null, null, null);
			}
			lastSecond(rates.samples_per_second, lost, rates.written_bytes_per_second);
		}
	}
	model.lostSince = answer.state === "disconnected" ? model.lostSince || new Date() : null;
	model.liveEvents = model.liveEvents.concat(answer.events).slice(-EVENTS);
	model.live = answer;
	addMix(answer.mix);
	return answer.events.some((event) => /recording|segment|mark|trigger|gap/.test(event.event));
}

// Polls while the page is visible.
export function watchLive(app) {
	const ask = async () => {
		try {
			if (!document.hidden) {
				app.changed(await update());
			}
		} catch (error) {
			setError("liveError", error);
			if (model.live && model.live.state === "connected") {
				model.live = { ...model.live, state: "disconnected", status: null, mix: null };
			}
			app.drawNow();
		}
		setTimeout(ask, POLL_MS);
	};
	ask();
}

// ---- drawing

// The mean of each pixel's values, undefined without values.
function resample(values, pixels, figureOf) {
	const start = (i) => Math.floor(i * values.length / pixels);
	return d3.range(pixels).map((i) => figureOf(values.slice(start(i), Math.max(start(i + 1), start(i) + 1)).filter((v) => v !== null)));
}

// One small graph of a member of the history, which ends now. A new daemon has a short one.
function drawGraph(canvas, name, colour) {
	const { context, width, height } = prepareCanvas(canvas);
	context.clearRect(0, 0, width, height);
	const history = model.history && model.history[span];
	if (!history || width < 10) {
		return;
	}
	const length = Math.min(span === "seconds" ? 3600 : 1440, Math.max(60, history[name].length));
	const perSecond = history[name].map((value) => (value === null ? null : value / history.interval_seconds));
	const missing = Array(Math.max(0, length - perSecond.length)).fill(null);
	const shown = [...missing, ...perSecond.slice(-length)];
	const values = resample(shown, Math.floor(width), name === "lost_samples" ? d3.max : d3.mean); // losses are rare
	const most = d3.max(shown) || 0;
	const spanText = formatDuration(length * history.interval_seconds * 1e9);
	const mostText = `max ${name === "written_bytes" ? bytes(Math.round(most)) : short(most)}/s`;
	const lines = context.measureText(spanText).width + context.measureText(mostText).width + 8 > width ? 2 : 1;
	context.fillStyle = currentColours().line;
	context.fillRect(0, height - 1, width, 1);
	context.fillStyle = colour;
	values.forEach((value, x) => {
		if (value) {
			const y = Math.max(1, value / most * (height - 13 * lines));
			context.fillRect(x, height - 1 - y, 1, y);
		}
	});
	context.textBaseline = "top";
	context.fillStyle = currentColours().dim;
	context.textAlign = "left";
	context.fillText(spanText, 0, 13 * (lines - 1));
	context.textAlign = "right";
	context.fillText(mostText, width, 0);
}

function tile(live, id, title) {
	let box = live.select(`#live-${id}`);
	if (box.empty()) {
		box = live.append("div").attr("class", "tile").attr("id", `live-${id}`);
		box.append("h2").text(title);
	}
	return box;
}

function figure(live, id, title, value, detail) {
	const box = tile(live, id, title);
	for (const [name, text] of [["strong", value], ["small", detail]]) {
		if (box.select(name).empty()) {
			box.append(name);
		}
		box.select(name).text(text).attr("title", text || null);
	}
	return box;
}

function graph(box, name, colour, label) {
	if (box.select("canvas").empty()) {
		box.append("canvas").attr("role", "img");
	}
	drawGraph(box.select("canvas").attr("aria-label", label).node(), name, colour);
}

function list(box, rows) {
	if (box.select("ol").empty()) {
		box.append("ol");
	}
	const items = box.select("ol").selectAll("li").data(rows).join("li");
	items.selectAll("span").data((row) => row).join("span").text((text) => text);
}

function eventLine(event) {
	const time = event.time.slice(11, 19);
	const text = {
		state: () => `${event.from} \u2192 ${event.to}`,
		mark: () => visible(event.mark.text),
		trigger: () => visible(event.name),
		gap: () => eventText({ kind: "gap", lost: event.lost, exact: event.exact, cause: event.cause }),
		"segment-started": () => `${event.segment}`,
		"segment-sealed": () => `${event.segment}, ${count(event.records)} records`,
		"recording-started": () => visible(event.recording.label || event.recording.id),
		"recording-ended": () => visible(event.recording.label || event.recording.id),
		disk: () => visible(event.error || "working again"),
		"disk-low": () => event.low ? `full in ${formatDuration(event.time_left_seconds * 1e9)}` : "no longer nearly full",
		hang: () => visible(event.error || "continues"),
		board: () => event.state,
		missed: () => plural(event.count, "event"),
	}[event.event];
	return [time, event.event.replace("-", " "), text ? text() : ""];
}

// Without recent records, it shows the records since the daemon started, as buscap top does.
function drawMix(live) {
	const { mix } = model.live;
	const [earliest] = model.mixes;
	const before = mix && earliest && earliest.sampled_records < mix.sampled_records ? earliest.types : {};
	const counts = [0, 0, 0, 0];
	Object.entries(mix ? mix.types : {}).forEach(([type, n]) => {
		counts[TYPES[type] === undefined ? 3 : TYPES[type]] += n - (before[type] || 0);
	});
	const all = d3.sum(counts);
	const box = tile(live, "mix", "Mix by type");
	list(box, CLASS_TEXTS.map((name, k) => ["\u25a0", name, percent(counts[k], all)]));
	box.selectAll("li").each((row, k, nodes) => { nodes[k].className = `swatch-${CLASSES[k]}`; });
}

function drawPages(live) {
	const { mix } = model.live;
	list(tile(live, "pages", "Hot pages"), (mix ? mix.pages : []).slice(0, 5).map((page) => [
		page.addr.replace(/^0x/, "").padStart(8, "0"), visible(page.name || ""), percent(page.requests, mix.memory_requests)]));
}

// What a snapshot would save.
function flightText({ seconds, limit_seconds: limit, bytes: size, limit_bytes: most }) {
	const time = formatDuration(seconds * 1e9);
	return `flight ${limit ? `${time} of ${formatDuration(limit * 1e9)}` : time}\n${most ? `${bytes(size)} of ${bytes(most)}` : bytes(size)}`;
}

function addSwitch(live) {
	if (live.select("#live-span").empty() && !live.select("#live-samples").empty()) {
		const label = live.select("#live-samples").append("label").attr("id", "live-span");
		label.append("span").attr("class", "unseen").text("Span of the graphs");
		label.append("select").on("change", () => {
			span = d3.event.target.value;
			drawLive();
		}).selectAll("option").data([["seconds", "1 h"], ["minutes", "1 day"]]).join("option")
			.attr("value", ([value]) => value).text(([, text]) => text);
	}
}

// Returns the text of a rate; null: in the daemon's first second, it is unknown.
function perSecond(rate, text) {
	return rate === null ? "unknown" : `${text(rate)}/s`;
}

export function drawLive() {
	const live = d3.select("#live");
	const shown = model.live && model.live.state !== "none" && (model.live.status || model.history);
	live.property("hidden", !shown);
	if (!shown) {
		return;
	}
	const colours = currentColours();
	const { status } = model.live;
	live.classed("stale", !status);
	if (status) {
		const { counts, rates, recording, flight, buffer, disk, source } = status;
		const lost = sum(counts.lost);
		figure(live, "state", "State", status.state, [recording ? visible(recording.label || recording.id) : "no recording",
			recording ? `${short(recording.records)} records, ${bytes(recording.bytes)}${recording.segment === null ? "" : `\nsegment ${recording.segment}`}` : flight ? flightText(flight) : "",
			visible(source.name), `up ${formatDuration(Math.round(status.uptime_seconds) * 1e9)}`].filter(Boolean).join("\n"));
		const samples = figure(live, "samples", "Samples", perSecond(rates.samples_per_second, short), "");
		graph(samples, "received_samples", colours.accent, "Samples per second");
		const least = lost ? `at least ${count(lost)}` : "unknown";
		const losses = figure(live, "lost", "Lost", counts.inexact_gaps ? least : count(lost), plural(counts.gaps, "gap"));
		graph(losses, "lost_samples", colours.gap, "Lost samples per second");
		live.select("#live-lost").classed("bad", lost > 0 || counts.gaps > 0);
		const written = figure(live, "written", "Written", perSecond(rates.written_bytes_per_second, bytes), "");
		graph(written, "written_bytes", colours.dim, "Bytes written per second");
		figure(live, "room", "Buffer and disk", `${percent(buffer.chunks - buffer.free_chunks, buffer.chunks)} in use`,
			[disk.stuck ? "disk is stuck" : "", disk.last_error ? visible(disk.last_error) : "",
				`buffer: max ${percent(buffer.chunks - buffer.min_free_chunks, buffer.chunks)}`,
				buffer.time_left_seconds === null ? "" : `room for ${formatDuration(buffer.time_left_seconds * 1e9)}`,
				`disk: ${disk.free_bytes === null ? "free space unknown" : `${bytes(disk.free_bytes)} free`}`,
				disk.time_left_seconds === null ? "" : `full in ${formatDuration(disk.time_left_seconds * 1e9)}`].filter(Boolean).join("\n"));
		drawMix(live);
		drawPages(live);
	}
	const [first] = model.liveEvents;
	const since = first && first.time < OPENED ? first.time : OPENED;
	list(tile(live, "events", `Events since ${since.slice(11, 19)}`), model.liveEvents.slice(-6).reverse().map(eventLine));
	addSwitch(live);
}
