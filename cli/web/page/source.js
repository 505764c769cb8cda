// Where the data comes from: a server, or the report in the page.

import { eventsOfRun, findInRun, hitOfRun, overviewOfRun, runTimes } from "./compare.js";
import { model } from "./model.js";
import { fromRfc3339 } from "./time.js";

// Returns the report that the page carries, or null.
export function embeddedReport() {
	const text = document.getElementById("report").textContent.trim();
	return text ? JSON.parse(text) : null;
}

class RequestError extends Error {}

// The token of the page's own link.
const token = new URLSearchParams(location.search).get("token") || "";

async function get(path, parameters, signal) {
	const query = new URLSearchParams({ ...parameters, token });
	let response;
	try {
		response = await fetch(`${path}?${query}`, { signal, cache: "no-store" });
	} catch (error) {
		if (error.name === "AbortError") {
			throw error;
		}
		throw new RequestError("buscap web has stopped; start it again and open its new link");
	}
	if (response.status === 403) {
		throw new RequestError("This page is no longer allowed to read: open the link that buscap web printed");
	}
	if (!response.ok) {
		const body = await response.text();
		let text = body;
		try {
			text = JSON.parse(body).error;
		} catch (error) {
			// not JSON: shown as it is
		}
		throw new RequestError(text || `buscap web answers ${response.status}`);
	}
	return response;
}

// These functions take and return times of the axis. `run` is one of two that are compared, or null: all recordings.
const firstRun = () => model.runs && model.runs[0];

// With `byProcessor`, the columns have the cells of each track, unless there are too many records.
export async function fetchOverview(view, columns, rows, signal, run = firstRun(), byProcessor = false) {
	const parameters = {
		columns, rows, ...runTimes(run, view), ...(view ? { place_from: view.placeFrom, place_to: view.placeTo } : {}),
		...(byProcessor ? { by_processor: true } : {}),
	};
	const overview = { ...await (await get("data/overview", parameters, signal)).json(), isAsked: byProcessor };
	model.recordings = overview.recordings;
	return run ? overviewOfRun(run, overview) : overview;
}

// The SVG of a curve of what a search finds.
export async function fetchCurve(figure, query) {
	return (await get("data/locality", { ...query, figure })).text();
}

// The SVG of a view; `index` of a class, or -1 for all.
export async function fetchFigure(figure, view, index) {
	const shown = index < 0 ? {} : { class: index };
	const { from, to, placeFrom: place_from, placeTo: place_to } = view;
	return (await get("data/overview", { from, to, place_from, place_to, columns: 512, figure, ...shown })).text();
}

// {working_set, miss_ratio, at_least} of what a search finds.
export async function fetchLocality(query, signal) {
	return (await get("data/locality", query, signal)).json();
}

// The events in a view, or all; only the first 10,000 if `cut_off`.
export async function fetchEvents(view, signal, run = firstRun()) {
	const events = await (await get("data/events", runTimes(run, view), signal)).json();
	return run ? eventsOfRun(run, events) : events;
}

// Returns {hits, end} of a search.
export async function fetchFind(parameters, signal) {
	const run = firstRun();
	const text = await (await get("data/find", run ? findInRun(run, parameters) : parameters, signal)).text();
	const lines = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
	const hits = lines.filter((line) => line.number !== undefined);
	return {
		hits: run ? hits.filter((hit) => hit.recording === run.id).map((hit) => hitOfRun(run, hit)) : hits,
		damage: lines.filter((line) => line.damage).map((line) => line.damage),
		end: (lines.find((line) => line.end) || {}).end || null,
	};
}

// The records that searches find, by time.
export async function fetchRecords(queries, most, signal) {
	const answers = await Promise.all(queries.map((query) => fetchFind({ ...query, first: most }, signal)));
	const hits = answers.flatMap((answer) => answer.hits);
	const after = (a, b) => fromRfc3339(a.time) - fromRfc3339(b.time) || BigInt(a.number - b.number);
	return {
		hits: answers.length === 1 ? hits : hits.sort((a, b) => Number(after(a, b))),
		isCutOff: answers.some(({ hits, end }) => !end || end.matches > hits.length || end.cut_off !== null),
	};
}

// {paths, files, read}: what is read, and how many files of it the server has read.
export async function fetchFiles() {
	return (await get("data/files", {})).json();
}

export async function fetchLive(since) {
	const live = await (await get("data/live", { since })).json();
	return { ...live, status: live.status && live.status.status };
}

export async function fetchHistory() {
	return (await get("data/history", {})).json();
}

// Remembers when the answers stopped.
export function setError(name, error) {
	const text = error ? error.message : null;
	if (text !== (model[name] && model[name].text)) {
		model[name] = text && { text, since: new Date() };
	}
}
