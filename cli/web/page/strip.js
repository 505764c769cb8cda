// The strip above the timeline: everything that is recorded, with the view as a window that can be dragged.
/* global d3 */

import { currentColours } from "./colours.js";
import { model, shownCount, shownEvents, toAbsolute, toRelative, wholeView } from "./model.js";
import { columnPixels, drawMarkers, edges, prepareCanvas } from "./plot.js";
import { formatSpan, formatTime } from "./time.js";

const NARROWEST = 5; // pixels of the window
const EVENT = 5; // pixels at the top that show events

function wholeScale(width) {
	const { left, right } = edges(width);
	const { from, to } = wholeView();
	return d3.scaleLinear([toRelative(from), toRelative(to)], [left, right]);
}

// The window's left and right edge.
function windowPixels(scale) {
	const [from, to] = [scale(toRelative(model.view.from)), scale(toRelative(model.view.to))];
	const more = Math.max(0, NARROWEST - (to - from)) / 2;
	return [from - more, to + more];
}

function drawRecorded(context, scale, height) {
	const colours = currentColours();
	const rate = (column) => (column.duration_ns > 1 ? shownCount(column.counts) / column.duration_ns : 0);
	const columns = model.whole.columns.filter((column) => !column.is_hole && shownCount(column.counts));
	const most = d3.quantile(columns.map(rate).sort(d3.ascending), 0.98) || 1;
	context.fillStyle = colours.dim;
	for (const column of columns) {
		const pixels = columnPixels(column, scale);
		const share = Math.min(1, rate(column) / most);
		if (pixels) {
			context.fillRect(pixels.x, height, pixels.width, -Math.max(2, share * (height - EVENT)));
		}
	}
	for (const event of shownEvents()) {
		context.fillStyle = colours[event.kind] || colours.ink;
		context.fillRect(Math.round(scale(event.time)) - 1, 0, 2, EVENT);
	}
}

export function drawStrip(canvas) {
	const strip = canvas.parentElement;
	const isWaiting = !model.overview.recordings.length;
	strip.classList.toggle("waiting", isWaiting);
	if (isWaiting) {
		return;
	}
	const { context, width, height } = prepareCanvas(canvas);
	const { left, right } = edges(width);
	const scale = wholeScale(width);
	const colours = currentColours();
	const [from, to] = windowPixels(scale);
	const whole = wholeView();
	context.fillStyle = colours.dim;
	context.textAlign = "right";
	const span = formatSpan(Number(whole.to - whole.from));
	context.fillText(context.measureText(`all, ${span}`).width + 8 <= left ? `all, ${span}` : span, left - 8, height / 2);
	if (model.whole) {
		drawRecorded(context, scale, height);
	}
	context.fillStyle = colours.paper;
	context.globalAlpha = 0.6;
	context.fillRect(left, 0, from - left, height);
	context.fillRect(to, 0, right - to, height);
	context.globalAlpha = 1;
	drawMarkers(context, scale, 0, height, false);
	context.strokeStyle = colours.accent;
	context.lineWidth = 2;
	context.strokeRect(from, 1, to - from, height - 2);
	context.lineWidth = 1;
	strip.ariaValueNow = Math.round(100 * (scale(toRelative((model.view.from + model.view.to) / 2n)) - left) / (right - left));
	strip.ariaValueText = `${formatTime(model.view.from, 1e6)} to ${formatTime(model.view.to, 1e6)}`;
}

// A drag moves the window; a click beside it centres the view there.
export function listenToStrip(strip, app) {
	let grip = null; // how far the pointer is from the start of the view, in ns
	const timeAt = (event) => {
		const { left } = strip.getBoundingClientRect();
		return toAbsolute(wholeScale(strip.clientWidth).invert(event.clientX - left));
	};
	const move = (event) => {
		const { view } = model;
		const from = timeAt(event) - grip;
		app.go({ ...view, from, to: from + view.to - view.from }, true);
	};
	strip.addEventListener("pointerdown", (event) => {
		if (event.button !== 0 || !model.view) {
			return;
		}
		const { view } = model;
		const [from, to] = windowPixels(wholeScale(strip.clientWidth));
		const x = event.clientX - strip.getBoundingClientRect().left;
		strip.setPointerCapture(event.pointerId);
		model.isDragging = true;
		grip = x >= from && x <= to ? timeAt(event) - view.from : (view.to - view.from) / 2n;
		move(event);
	});
	strip.addEventListener("pointermove", (event) => {
		if (grip !== null) {
			move(event);
		}
	});
	for (const end of ["pointerup", "pointercancel"]) {
		strip.addEventListener(end, () => {
			grip = null;
			model.isDragging = false;
		});
	}
}
