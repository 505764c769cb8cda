// Loads what the view needs: the picture, then single records, the records around an empty view, and events.
//
// One load runs at a time: a newer one aborts it. While the recording is followed, what the daemon reports starts the next
// one (changed()); in any case, the names and sizes of the files are asked for now and then (watchFiles()).
/* global d3 */

import { shareRows } from "./compare.js";
import { followedView, isFollowing } from "./follow.js";
import { recordingAround, recordingName, viewText } from "./header.js";
import { placeOfHit, rowsThatFit } from "./heatmap.js";
import { outsideText, writeLink } from "./link.js";
import { clampView, columnRecords, isSameView, model, onlyProcessors, toAbsolute, toRelative, wholeView } from "./model.js";
import { loadLocality } from "./locality.js";
import { edges } from "./plot.js";
import { showProcessors } from "./processors.js";
import { chooseRuns, fetchOther } from "./runs.js";
import { viewQueries } from "./selection.js";
import { fetchEvents, fetchFiles, fetchFind, fetchOverview, fetchRecords, setError } from "./source.js";
import { count, PLACES, plural } from "./text.js";
import { fromRfc3339, setAxis, toRfc3339 } from "./time.js";

const RECORDS = 500; // listed one by one
const SETTLE_MS = 60; // a view is fetched when it has not changed for this long
const START_MS = 300; // how often the first load is asked how far it is
const REFRESH_MS = 5000; // of a recording in progress
const SLIDE_MS = 500; // the same of a window; the daemon's state comes each second
const STRIP_COLUMNS = 256;
const EVENTS_MS = 30000; // how often all events are fetched, unless the daemon reports some

let pending = null; // an AbortController
let timer = 0; // of a view that is not fetched yet
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
function setOverview(overview, other) {
	if (model.overview && recordingsKey(model.overview) !== recordingsKey(overview)) {
		model.events = null;
		model.whole = null;
	}
	const text = model.overview ? goneText(model.overview, overview) : "";
	if (text) {
		model.deleted = { text, since: new Date() };
	}
	setAxis(overview.axis);
	const [first, second] = other ? shareRows([overview, other.overview]) : [overview];
	model.other = other && { ...other, overview: second };
	Object.assign(model, { picture: first, cursor: null, cell: null, records: null, around: null });
	showProcessors();
}

// Fetches all events if there may be new ones; or the events in the view, if there are too many.
async function loadEvents(view, isNews, signal) {
	const { events, overview } = model;
	const areTooMany = events && (events.view || events.cut_off);
	const gaps = d3.sum(overview.recordings, (one) => one.gaps);
	const areKnown = events && (areTooMany || gaps <= events.events.filter((one) => one.kind === "gap").length);
	const isEnough = areKnown && (view ? !areTooMany : !events.view && Date.now() - eventsAt < EVENTS_MS);
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
	return fetchOverview({ from: 0n, to: 0n, placeFrom: 0, placeTo: PLACES - 1 }, 1, 2, signal);
}

// Fetches the picture of the view, or of what is followed, draws it, and announces a text or the view. The first time, the
// view is `first`, which may be partly outside of the recordings.
export async function load(app, isEnd = false, text = "", first = null) {
	if (model.isReport) {
		app.announce(text || viewText());
		app.redraw();
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
	app.redraw();
	try {
		const { left, right } = edges(document.getElementById("timeline").clientWidth);
		const columns = Math.max(32, Math.min(512, Math.round((right - left) / 2)));
		const rows = rowsThatFit(document.querySelector("#heatmap canvas"));
		if (model.compared && !model.runs) {
			await chooseRuns(own.signal);
		}
		const view = !isEnd ? first || model.view
			: model.window === "all" ? null : followedView(await fetchRecordings(own.signal));
		const overview = await fetchOverview(view, columns, rows, own.signal, undefined, model.proc !== "all" && !model.runs);
		const other = await fetchOther(view, columns, rows, own.signal);
		own.signal.throwIfAborted(); // the view has changed
		setOverview(overview, other);
		model.view = view || wholeView();
		if (first && !isSameView(first, clampView(first))) {
			const outside = outsideText(first);
			app.show(clampView(first), outside);
			if (outside) {
				model.linkFault = outside;
				writeLink(isFollowing(), false);
			}
			return;
		}
		if (isAskedFor) {
			app.redraw(); // else the picture and its events change at once
		}
		await loadRecords(own.signal);
		await loadAround(own.signal);
		await loadEvents(view, isNews, own.signal);
		await loadWhole(own.signal);
		await loadLocality(own.signal);
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
	app.redraw();
}

// Fetches the view, or what is followed, once it has not changed for a moment.
export function loadSoon(app, isEnd, text) {
	if (pending) {
		pending.abort();
	}
	clearTimeout(timer);
	timer = setTimeout(() => load(app, isEnd, text), SETTLE_MS);
}

// The picture, if that is of everything. Else it is fetched again only after a change that can be seen.
async function loadWhole(signal) {
	const { overview, whole } = model;
	const { from, to } = overview.extent;
	if (isSameView(model.view, wholeView())) {
		model.whole = model.picture;
	} else if (!whole || (to - whole.extent.to) * STRIP_COLUMNS > to - from) {
		model.whole = await fetchOverview(null, STRIP_COLUMNS, 2, signal);
	}
}

async function loadRecords(signal) {
	const { overview } = model;
	const from = toRelative(model.view.from);
	const to = toRelative(model.view.to);
	const known = d3.sum(overview.columns, columnRecords);
	const areInside = overview.columns.every((column) => column.from >= from && column.from <= to);
	if (overview.unit === "records" && areInside && known > 0 && known <= RECORDS) {
		const { placeFrom, placeTo } = model.view;
		const { hits, isCutOff } = await fetchRecords(viewQueries(model.view, "all", onlyProcessors()), RECORDS, signal);
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

// Until the first picture is there, asks how far the server is, and what it reads.
export function watchStart(app) {
	const ask = async () => {
		if (model.overview && (model.files || model.overview.recordings.length)) {
			return;
		}
		try {
			model.files = await fetchFiles();
		} catch (error) {
			// the first load says what is wrong
		}
		app.redraw();
		setTimeout(ask, START_MS);
	};
	setTimeout(ask, START_MS);
}

// Checks now and then if the files have changed.
export function watchFiles(app) {
	const records = (overview) => overview.recordings.map((one) => `${one.id} ${one.records}`).join();
	const ask = async () => {
		if (!document.hidden && model.overview && !pending && !model.isLoading && !model.isDragging) {
			const shown = model.overview;
			try {
				const now = await fetchRecordings();
				const isNew = isFollowing() && !isInUse() && records(now) !== records(shown);
				if (model.overview === shown && !pending && (isNew || goneText(shown, now))) {
					hasNews = true;
					load(app, isFollowing());
				}
			} catch (error) {
				setError("error", error);
				app.drawNow();
			}
		}
		setTimeout(ask, REFRESH_MS);
	};
	setTimeout(ask, REFRESH_MS);
}

// True while a selection or the focus would be lost if the picture and the tables were replaced.
function isInUse() {
	const body = document.getElementById("tab-body");
	const selection = document.getSelection();
	return model.isDragging || model.cursor || body.querySelector(":focus")
		|| (selection.type === "Range" && body.contains(selection.anchorNode));
}

// Call after the daemon has reported something; `isNews` if it may concern the recordings.
export function changed(app, isNews) {
	const isOpen = model.live && model.live.status && model.live.status.recording;
	const isIdle = !pending && !model.isLoading && !isInUse() && (!model.view || isFollowing());
	const isLate = Date.now() - refreshed > (model.window === "all" ? REFRESH_MS : SLIDE_MS);
	hasNews = hasNews || isNews;
	if (isLate && isIdle && (hasNews || isOpen || !model.overview)) {
		if (model.overview) {
			load(app, true);
		} else {
			app.restore();
		}
	}
	app.drawNow();
}
