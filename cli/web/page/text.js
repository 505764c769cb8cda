// Numbers, sizes, addresses and events in words.
/* global d3 */

// A place is a page of memory, or a port after them: docs/segment-format.md, section 8.
export const PORT_0 = 1 << 20;
export const PORTS = 65536;
export const PLACES = PORT_0 + PORTS;
export const CLASSES = ["fetch", "read", "write", "other"];
// The same in the words for types: those of I/O ports are in the classes, too.
export const CLASS_TEXTS = ["fetch", "read + ioread", "write + iowrite", "other"];

const formatCount = d3.format(",");

export function count(n) {
	return n === null || n === undefined ? "unknown" : formatCount(n);
}

export function plural(n, word) {
	return `${count(n)} ${word}${n === 1 ? "" : "s"}`;
}

// 1234567: "1.23 M". Three digits, for axes and live figures.
export function short(n) {
	if (n < 1000) {
		return String(Number(n.toPrecision(3)));
	}
	return d3.format(".3~s")(n).replace(/([a-zA-Z])$/, "\u2009$1");
}

export function bytes(n) {
	return n < 1000 ? `${n} B` : `${d3.format(".3~s")(n).replace(/([a-zA-Z])$/, " $1")}B`;
}

export function percent(part, whole) {
	if (!whole) {
		return "";
	}
	const share = 100 * part / whole;
	return part && share < 0.1 ? "< 0.1 %" : `${share.toFixed(1)} %`;
}

function hex(n, digits) {
	return n.toString(16).padStart(digits, "0");
}

export function isPort(place) {
	return place >= PORT_0;
}

// The first address of a place.
export function address(place) {
	return isPort(place) ? `io ${hex(place - PORT_0, 4)}` : hex(place * 4096, 8);
}

export function addressRange(place, places) {
	if (!isPort(place)) {
		return `${hex(place * 4096, 8)}\u2013${hex((place + places) * 4096 - 1, 8)}`;
	}
	const first = place - PORT_0;
	return places === 1 ? `io ${hex(first, 4)}` : `io ${hex(first, 4)}\u2013${hex(first + places - 1, 4)}`;
}

// The first and the last address of a range of places, which may have memory and ports.
export function endsText(placeFrom, placeTo) {
	return [addressRange(placeFrom, 1).split("\u2013")[0], addressRange(placeTo, 1).split("\u2013").pop()];
}

// Escapes control characters: they are invisible, or change the direction of the text around them.
export function visible(text) {
	return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
		(c) => c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "\ufffd");
}

export function lostText(lost, isExact) {
	return lost === 0 && !isExact ? "unknown number of samples lost"
		: `${isExact ? "" : "at least "}${plural(lost, "sample")} lost`;
}

export function eventText(event) {
	if (event.kind === "gap") {
		return `${lostText(event.lost, event.exact)}${event.cause ? ` (${visible(event.cause)})` : ""}`;
	}
	return visible(event.text || "") || event.kind;
}
