// Which part of a growing recording is followed: everything, or a window at its end that slides each second. A view chosen
// by hand pauses this, and so does a cursor.
/* global d3 */

import { isSameView, model, recordingInProgress, wholeView } from "./model.js";
import { hasTimesOfDay } from "./time.js";

const WINDOWS = [["all", "All", null], ["10s", "10 s", 10n], ["1min", "1 min", 60n], ["10min", "10 min", 600n], ["1h", "1 h", 3600n]];

export function isWindow(name) {
	return WINDOWS.some(([known]) => known === name);
}

// The view that is followed in an overview.
export function followedView(overview = model.overview) {
	const whole = wholeView(overview);
	const [, , seconds] = WINDOWS.find(([name]) => name === model.window);
	const from = seconds === null ? whole.from : whole.to - seconds * 1000000000n;
	return from > whole.from ? { ...whole, from } : whole;
}

export function isFollowed(view) {
	return isSameView(view, followedView());
}

// True if the picture moves with the recording. Without recordings, it waits for the first.
export function isFollowing() {
	return model.view !== null && model.overview !== null && (model.isFollowing || !model.overview.recordings.length);
}

function isPaused() {
	const grows = model.window !== "all" || recordingInProgress() !== null;
	return !model.isReport && model.view !== null && grows && (!isFollowing() || model.cursor !== null);
}

export function drawFollow(app) {
	const paused = isPaused();
	d3.select("#windows").selectAll("button").data(model.isReport || !hasTimesOfDay() ? WINDOWS.slice(0, 1) : WINDOWS).join("button")
		.attr("type", "button").attr("data-window", ([name]) => name).text(([, text]) => text)
		.attr("title", ([name, text]) => (name === "all" ? "Show everything (Home)" : `Follow the last ${text}`))
		.attr("aria-pressed", ([name]) => isFollowing() && name === model.window)
		.on("click", ([name]) => app.follow(name));
	document.getElementById("resume").hidden = !paused;
}
