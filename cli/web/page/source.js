// Where the data comes from: a server, or the report in the page.

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

// With `byProcessor`, the columns have the cells of each track, unless there are too many records.
export async function fetchOverview(view, columns, rows, signal, byProcessor = false) {
	const parameters = { columns, rows, ...(byProcessor ? { by_processor: true } : {}) };
	if (view) {
		Object.assign(parameters, { from: view.from, to: view.to, place_from: view.placeFrom, place_to: view.placeTo });
	}
	return { ...await (await get("data/overview", parameters, signal)).json(), isAsked: byProcessor };
}

// The events in a view, or all; only the first 10,000 if `cut_off`.
export async function fetchEvents(view, signal) {
	return (await get("data/events", view ? { from: view.from, to: view.to } : {}, signal)).json();
}

// Returns {hits, end} of a search.
export async function fetchFind(parameters, signal) {
	const text = await (await get("data/find", parameters, signal)).text();
	const lines = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
	return {
		hits: lines.filter((line) => line.number !== undefined),
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
