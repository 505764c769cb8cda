// Moves the view: by hand, to a moment, to an event, or to what is followed.
/* global d3 */

import { followedView, isFollowed, isFollowing } from "./follow.js";
import { viewText } from "./header.js";
import { writeLink } from "./link.js";
import { loadSoon } from "./load.js";
import { clampView, isInView, isSameView, model, pannedView, shownEvents, spanView, toAbsolute, toRelative } from "./model.js";
import { eventText } from "./text.js";

const STEP_MS = 700; // Back undoes all steps of the wheel and the arrows within this time at once

let steppedAt = 0;
let lastEvent = null; // the event last gone to

// Shows a view. `isStep`: one of many small steps, such as the wheel's.
export function go(app, view, isStep = false, text = "") {
	const next = clampView(view);
	if (!model.view || isSameView(next, model.view)) {
		app.announce(text || viewText());
		return;
	}
	const isNew = !isStep || Date.now() - steppedAt > STEP_MS;
	steppedAt = isStep ? Date.now() : 0;
	show(app, next, text);
	writeLink(isFollowing(), isNew);
}

// Then announces a text, or the view.
export function show(app, view, text = "") {
	model.view = view;
	model.isFollowing = isFollowed(view);
	model.cursor = null;
	model.cell = null;
	model.records = null;
	model.deleted = null;
	model.linkFault = null;
	model.isLoading = !model.isReport;
	loadSoon(app, isFollowing(), text); // what is followed: also what was recorded since the last answer
	app.redraw();
}

// Moves the view to a moment.
export function goTo(app, ns, text) {
	const span = model.view.to - model.view.from;
	const from = ns - span / 2n;
	go(app, { ...model.view, from, to: from + span }, false, text);
}

// Shows the surroundings of a moment: a tenth of the view, but at least 20 us.
export function goNear(app, ns) {
	lastEvent = null;
	const span = model.view.to - model.view.from;
	const half = span / 20n > 10000n ? span / 20n : 10000n;
	go(app, spanView(ns - half, ns + half));
	document.getElementById("timeline").focus();
}

function isSameEvent(a, b) {
	return b && ["time", "record", "recording", "kind", "cause", "text"].every((member) => a[member] === b[member]);
}

// Goes to the event before or after the last one visited if that is in view, else before or after the middle.
export function goToEvent(app, by) {
	const events = shownEvents();
	const last = events.findIndex((one) => isSameEvent(one, lastEvent));
	let next = last + by;
	if (last < 0 || !isInView(lastEvent.time, lastEvent.time)) {
		const middle = toRelative((model.view.from + model.view.to) / 2n);
		const { left, right } = d3.bisector((one) => one.time);
		next = by > 0 ? right(events, middle + 1) : left(events, middle - 1) - 1;
	}
	const event = events[next];
	if (event) {
		lastEvent = event;
		goTo(app, toAbsolute(event.time), `${event.kind}: ${eventText(event)}`);
	} else if (model.events && (model.events.view || model.events.cut_off)) {
		go(app, pannedView(model.view, by / 2)); // where others may be
	}
}

// Follows everything, or the end of what is recorded.
export function follow(app, name) {
	model.window = name;
	const isNew = !isFollowing() || !isFollowed(model.view);
	show(app, followedView());
	writeLink(true, isNew);
}
