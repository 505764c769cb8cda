// Which two recordings of a server are compared, and what is fetched of the second one.

import { model, ofRuns } from "./model.js";
import { fetchEvents, fetchOverview } from "./source.js";
import { PLACES } from "./text.js";

// Forgets what is shown, before it is shown on another axis.
export function changeRuns(compared) {
	Object.assign(model, {
		compared, runs: null, other: null, picture: null, overview: null, whole: null, events: null, view: null, cursor: null, cell: null,
		records: null, search: null, measured: null, markers: { a: null, b: null }, window: "all", isFollowing: true,
	});
}

export function isSameRuns(one, other) {
	return JSON.stringify(one) === JSON.stringify(other);
}

// The texts of the marks and triggers that both runs have.
export function commonMarks() {
	const texts = () => (model.events ? model.events.events : []).filter(({ kind }) => kind !== "gap").map(({ text }) => text);
	const [first, second] = ofRuns(() => new Set(texts()));
	return [...first].filter((text) => second && second.has(text));
}

// The time of the first mark with a text, or null.
async function markTime(run, text, signal) {
	const { events, origin_ns: origin } = await fetchEvents(run, signal, null);
	const mark = events.find((one) => one.recording === run.index && one.kind !== "gap" && one.text === text);
	return mark ? BigInt(origin) + BigInt(mark.time) : null;
}

// Finds the two recordings, and where their times start. If they are not there, everything is shown.
export async function chooseRuns(signal) {
	const { a, b, mark } = model.compared;
	const { origin_ns: origin, recordings } = await fetchOverview({ from: 0n, to: 0n, placeFrom: 0, placeTo: PLACES - 1 }, 1, 2, signal, null);
	const missing = [a, b].find((id) => !recordings.some((one) => one.id === id));
	if (missing !== undefined) {
		model.compared = null;
		model.linkFault = `No recording has the id ${missing}`;
		return;
	}
	const runs = [a, b].map((id) => {
		const index = recordings.findIndex((one) => one.id === id);
		const from = BigInt(origin) + BigInt(recordings[index].from);
		return { id, index, base: from, from, to: BigInt(origin) + BigInt(recordings[index].to) };
	});
	if (mark !== null) {
		const times = await Promise.all(runs.map((run) => markTime(run, mark, signal)));
		if (times.includes(null)) {
			model.compared = { a, b, mark: null };
			model.linkFault = `Not both recordings have a mark or trigger ${mark}: their times count from their starts`;
		} else {
			runs.forEach((run, i) => { run.base = times[i]; });
		}
	}
	model.runs = runs;
}

// The second run in a view; null if there is only one.
export async function fetchOther(view, columns, rows, signal) {
	if (!model.runs) {
		return null;
	}
	const [, run] = model.runs;
	const overview = await fetchOverview(view, columns, rows, signal, run);
	const events = await fetchEvents(null, signal, run);
	return { overview, events: events.cut_off && view ? await fetchEvents(view, signal, run) : events };
}
