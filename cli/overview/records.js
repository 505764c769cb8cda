// Lists of records: of the cursor's cell, and the hits of a search; saves and copies what is listed.

import { copyText } from "./link.js";
import { model } from "./model.js";
import { parseQuery } from "./query.js";
import { cellQueries, commandText, csvText, saveFile, viewQueries } from "./selection.js";
import { fetchFind, fetchRecords } from "./source.js";
import { plural } from "./text.js";
import { fromRfc3339 } from "./time.js";
import { goToEvent } from "./views.js";

const HITS = 200; // of a search
const MOST = 10000; // records of a cell or in a file: the limit of the server

// Lists the records of the cursor's cell.
export async function listCell(app) {
	const queries = cellQueries(model.cursor, model.shown);
	const own = { queries, hits: null, isCutOff: false, page: 0, error: null };
	model.cell = own; // an older one that is still fetched is no longer shown
	app.openTab("records");
	try {
		Object.assign(own, await fetchRecords(queries, MOST));
	} catch (error) {
		own.error = error.message;
	}
	app.redraw();
}

// The searches of the open table: a cell, the hits, or the view.
function selectedQueries() {
	const { search } = model;
	return model.tab === "search-hits" && search && search.query ? [search.query]
		: model.cell ? model.cell.queries : viewQueries(model.view, model.shown);
}

export async function saveCsv(app) {
	try {
		const { hits, isCutOff } = await fetchRecords(selectedQueries(), MOST);
		saveFile("records.csv", "text/csv", csvText(hits));
		app.announce(isCutOff ? `The first ${plural(hits.length, "record")} were saved; the command has no limit.`
			: `${plural(hits.length, "record")} saved.`);
	} catch (error) {
		app.announce(error.message);
	}
}

export async function copyCommand(app) {
	const queries = selectedQueries();
	try {
		const { hits } = await fetchRecords(queries, MOST);
		const isCopied = hits.length > 0 && copyText(commandText(queries, hits));
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
		const isFree = !given.addr && !given.region && !others.length;
		own.query = { ...(isFree ? limits : view ? { from, to } : {}), ...given };
		Object.assign(own, await fetchFind({ ...own.query, [which]: HITS }, searching.signal));
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
		const span = model.view.to - model.view.from;
		const from = fromRfc3339(hit.time) - span / 2n;
		app.go({ ...model.view, from, to: from + span }, false, `${at + 1} of ${search.hits.length}: ${hit.text}`);
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
