// What is shown, as the part of the page's address after #: a reload, Back, Forward and a copied link restore it. Times
// are left out while the recording is followed.

import { hasPlaces, model, spanView, wholeView } from "./model.js";
import { CLASSES, isPort, PLACES, PORT_0, PORTS } from "./text.js";
import { formatTime, fromRfc3339, hasTimesOfDay, timeToLink } from "./time.js";

const SLACK = 1000n; // a moment is shown with what is around it
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/;

function readTime(text) {
	const [, whole, fraction = "", second] = /^(-?\d{1,18})(?:\.(\d{1,9}))?(s?)$/.exec(text) || [];
	if (whole) {
		return second ? BigInt(whole + fraction.padEnd(9, "0")) : fraction ? null : BigInt(whole);
	}
	return TIME.test(text) && !Number.isNaN(Date.parse(`${text.slice(0, 19)}Z`)) ? fromRfc3339(text) : null;
}

// The first or last address of a place.
function addressText(place, isLast) {
	return isPort(place) ? `io${(place - PORT_0).toString(16)}` : (place * 4096 + (isLast ? 4095 : 0)).toString(16);
}

function readAddress(text) {
	const [, io, digits] = /^(io)?([0-9a-f]{1,8})$/.exec(text) || [];
	const number = parseInt(digits, 16);
	return io ? PORT_0 + number % PORTS : Math.floor(number / 4096); // NaN if it is no address
}

function readPlaces(text) {
	const [placeFrom, placeTo] = text.split("-").map(readAddress);
	return placeFrom <= placeTo ? { placeFrom, placeTo } : { placeFrom: 0, placeTo: PLACES - 1 };
}

// Returns the text of the model; `isEnd` if the view moves with the recording.
function linkText(isEnd) {
	const found = new URLSearchParams();
	const { view, shown, proc, tab, search, markers } = model;
	if (view && !isEnd) {
		found.set("from", timeToLink(view.from));
		found.set("to", timeToLink(view.to));
		if (hasPlaces()) {
			found.set("places", `${addressText(view.placeFrom, false)}-${addressText(view.placeTo, true)}`);
		}
	}
	if (model.compared) {
		const { a, b, mark } = model.compared;
		found.set("runs", `${a},${b}`);
		if (mark !== null) {
			found.set("align", mark);
		}
	}
	for (const name of ["a", "b"].filter((one) => markers[one] !== null)) {
		found.set(name, timeToLink(markers[name]));
	}
	for (const [name, value, usual] of [["class", shown, "all"], ["proc", proc, "all"], ["tab", tab, "totals"], ["window", model.window, "all"],
		["q", search && search.text, null], ["which", search && search.which, "first"], ["in", search && search.isLimited && "view", null]]) {
		if (value && value !== usual) {
			found.set(name, value);
		}
	}
	return String(found).replace(/%3A/g, ":");
}

// Returns why the times of a link can't be shown, or "".
function faultText(given, from, to) {
	const wrong = ["from", "to", "a", "b"].find((name) => given.has(name) && readTime(given.get(name)) === null);
	if (wrong) {
		return `This link has no valid time: ${wrong}=${given.get(wrong).slice(0, 40)}`;
	}
	if ((from === null) !== (to === null)) {
		return `This link has only one of from and to: ${from === null ? "to" : "from"}`;
	}
	return from !== null && from > to ? `This link shows ${formatTime(from, 1e9)} to ${formatTime(to, 1e9)}: the end is before the start` : "";
}

// Returns what to say about a link's view that is, or begins or ends, outside of what there is; or "".
export function outsideText(view) {
	const whole = wholeView();
	const late = view.from < whole.from - SLACK ? [["begin", whole.from]] : [];
	const early = view.to > whole.to + SLACK ? [["end", whole.to]] : [];
	const bounds = [...late, ...early];
	if (!bounds.length || !model.overview.recordings.length) {
		return "";
	}
	const days = !hasTimesOfDay() ? [] : [view.from, view.to, ...bounds.map(([, ns]) => ns)].map((ns) => formatTime(ns, 1e9).slice(0, -9));
	const time = (ns) => formatTime(ns, Math.min(Number(view.to - view.from), 1e9), new Set(days).size > 1);
	const [what, s] = model.isReport ? ["the report", "s"] : ["the recordings", ""];
	return `This link shows ${time(view.from)} to ${time(view.to)}; `
		+ `${what} ${bounds.map(([verb, ns]) => `${verb}${s} at ${time(ns)}`).join(" and ")}`;
}

function readRuns(given) {
	const [a, b] = (given.get("runs") || "").split(",");
	return a && b ? { a, b, mark: given.get("align") } : null;
}

// Returns {view, fault, a, b, compared, shown, proc, tab, window, q, which, isLimited} of a text. What is missing or invalid
// has its usual value; view null: what is followed. `fault` says why the times are invalid; "": they are not.
export function parseLink(text) {
	const given = new URLSearchParams(text.replace(/^#/, ""));
	const [from, to, a, b] = ["from", "to", "a", "b"].map((name) => readTime(given.get(name) || ""));
	const { placeFrom, placeTo } = readPlaces(given.get("places") || "");
	return {
		view: from !== null && to !== null && from <= to ? spanView(from, to, placeFrom, placeTo) : null,
		fault: faultText(given, from, to),
		a, b,
		compared: readRuns(given),
		shown: CLASSES.includes(given.get("class")) ? given.get("class") : "all",
		proc: /^(each|\d+([-,]\d+)*)$/.test(given.get("proc")) ? given.get("proc") : "all",
		tab: given.get("tab") || "totals",
		window: given.get("window") || "all",
		q: given.get("q") || "",
		isLimited: given.get("in") === "view",
		which: given.get("which") === "last" ? "last" : "first",
	};
}

// Replaces the address of the entry in the browser's history, or adds an entry. `depth` counts the entries of this page.
export function writeLink(isEnd, isNew) {
	const text = `#${linkText(isEnd)}`;
	const depth = history.state ? history.state.depth : 0;
	if (isNew) {
		history.pushState({ depth: depth + 1 }, "", text);
	} else if (text !== (location.hash || "#")) {
		history.replaceState({ depth }, "", text);
	}
}

// Goes back, unless that would leave the page. Returns true if the browser will send popstate.
export function goBack() {
	const canGo = history.state !== null && history.state.depth > 0;
	if (canGo) {
		history.back();
	}
	return canGo;
}

// Copies a text, also where the page's address is not that of this host: the newer way would need https there.
export function copyText(text) {
	document.addEventListener("copy", (event) => {
		event.clipboardData.setData("text/plain", text);
		event.preventDefault();
	}, { once: true });
	return document.execCommand("copy");
}
