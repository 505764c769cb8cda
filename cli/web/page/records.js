// Lists of records: of the cursor's cell, and the hits of a search; saves and copies what is listed.

import { copyText } from "./link.js";
import { model, onlyProcessors } from "./model.js";
import { parseQuery } from "./query.js";
import { cellQueries, commandText, csvText, saveFile, viewQueries } from "./selection.js";
import { fetchFind, fetchRecords } from "./source.js";
import { plural } from "./text.js";
import { fromRfc3339 } from "./time.js";
import { goTo, goToEvent } from "./views.js";

const HITS = 200; // of a search
const MOST = 10000; // records of a cell or in a file: the limit of the server

// The records of a selection: {queries, recording: an id, or null for all}.
async function fetchSelected({ queries, recording }) {
	const { hits, isCutOff } = await fetchRecords(queries, MOST);
	return { hits: hits.filter((hit) => recording === null || hit.recording === recording), isCutOff };
}

// Lists the records of the cursor's cell. Those of other recordings, as of another host, may be at the same time.
export async function listCell(app) {
	const { columns, recordings } = model.overview;
	const recording = recordings[columns[model.cursor.column].recording].id;
	const own = { queries: cellQueries(model.cursor, model.shown), recording, hits: null, isCutOff: false, page: 0, error: null };
	model.cell = own; // an older one that is still fetched is no longer shown
	app.openTab("records");
	try {
		Object.assign(own, await fetchSelected(own));
	} catch (error) {
		own.error = error.message;
	}
	app.redraw();
}

// What the open table shows: a cell, the hits, or the view.
function selection() {
	const { search } = model;
	return model.tab === "search-hits" && search && search.query ? { queries: [search.query], recording: null }
		: model.cell || { queries: viewQueries(model.view, model.shown, onlyProcessors()), recording: null };
}

export async function saveCsv(app) {
	try {
		const { hits, isCutOff } = await fetchSelected(selection());
		saveFile("records.csv", "text/csv", csvText(hits));
		app.announce(isCutOff ? `The first ${plural(hits.length, "record")} were saved; the command has no limit.`
			: `${plural(hits.length, "record")} saved.`);
	} catch (error) {
		app.announce(error.message);
	}
}

export async function copyCommand(app) {
	const selected = selection();
	try {
		const { hits } = await fetchSelected(selected);
		const isCopied = hits.length > 0 && copyText(commandText(selected.queries, hits));
		app.announce(isCopied ? "The command was copied." : hits.length ? "The browser does not allow copying." : "No records.");
	} catch (error) {
		app.announce(error.message);
	}
}

let searching = null; // an AbortController

// Searches all recordings, or a view: its times, and its addresses if none are given.
export async function startSearch(app, which, view) {
	const text = document.getElementById("search-text").value;
	const own = { text, which, isLimited: view !== null, query: null, limit: HITS, hits: null, error: null };
	model.search = own; // one that is still running changes only what was there before
	app.redraw();
	if (searching) {
		searching.abort();
	}
	searching = new AbortController();
	try {
		const [limits, ...others] = view ? viewQueries(view, "all") : [{}];
		const { from, to } = limits;
		const given = parseQuery(text);
		const isFree = !given.addr && !given.port && !given.region && !others.length;
		own.query = { ...(isFree ? limits : view ? { from, to } : {}), ...given };
		Object.assign(own, await fetchFind({ ...own.query, [which]: HITS }, searching.signal));
		if (given.records && own.hits.length === 1) {
			goToHit(app, 1);
		}
	} catch (error) {
		own.error = error.message;
	}
	app.redraw();
}

// Goes to the hit before or after the one last gone to.
function goToHit(app, by) {
	const { search } = model;
	const at = search.at === undefined ? (by > 0 ? 0 : search.hits.length - 1) : search.at + by;
	const hit = search.hits[at];
	if (hit && hit.time) {
		search.at = at;
		goTo(app, fromRfc3339(hit.time), `${at + 1} of ${search.hits.length}: ${hit.text}`);
		app.redraw();
	}
}

// Goes to the next or previous hit if the search is open, else to the next or previous event.
export function goToNext(app, by) {
	const { search } = model;
	if (model.tab === "search-hits" && search && search.hits && search.hits.length) {
		goToHit(app, by);
	} else {
		goToEvent(app, by);
	}
}
