// What the search box goes to: times as they are printed, times since the start, marks and triggers; addresses.

import { model, toAbsolute, wholeView } from "./model.js";
import { parseQuery } from "./query.js";
import { PORT_0, PORTS } from "./text.js";
import { countedAxis, fromRfc3339, hasTimesOfDay, toRfc3339 } from "./time.js";

const UNITS = { ns: 1n, us: 1000n, "\u00b5s": 1000n, ms: 1000000n, s: 1000000000n, min: 60000000000n, h: 3600000000000n };
const DAY_NS = 86400000000000n;

// "1.5" of a unit in ns.
function amountOf(text, unit) {
	const [whole, fraction = ""] = text.split(".");
	return (BigInt(whole + fraction) * unit) / 10n ** BigInt(fraction.length);
}

// A time of day without its date is one that was recorded, if there is one.
function dayTime(time) {
	const { from, to } = wholeView();
	const first = fromRfc3339(`${toRfc3339(from).slice(0, 10)}T${time}Z`);
	return first < from && first + DAY_NS <= to ? first + DAY_NS : first;
}

// The time that a text is, or null.
function timeOf(given) {
	const text = given.trim().replace(/[\u2009,]/g, "").replace(/ ?(?:UTC|Z)$/i, "");
	const [, number, unit] = /^\+ ?(\d+(?:\.\d{1,9})?) ?(ns|us|\u00b5s|ms|s|min|h)?$/.exec(text) || [];
	if (number && !countedAxis()) {
		return wholeView().from + amountOf(number, UNITS[unit || "s"]);
	}
	if (countedAxis()) {
		const [, ticks] = /^(?:[a-z]+ )?\+?(\d+)$/.exec(text.startsWith("+") || / /.test(text) ? text : "") || [];
		return ticks ? BigInt(ticks) : null;
	}
	if (!hasTimesOfDay()) {
		const [, seconds] = /^(\d+(?:\.\d{1,9})?) ?s$/.exec(text) || [];
		return seconds ? amountOf(seconds, UNITS.s) : null;
	}
	const [, date, time] = /^(?:(\d{4}-\d\d-\d\d)[T ])?((?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?)$/i.exec(text) || [];
	if (!time || (date && Number.isNaN(Date.parse(date)))) {
		return null;
	}
	const whole = time.length === 5 ? `${time}:00` : time;
	return date ? fromRfc3339(`${date}T${whole}Z`) : dayTime(whole);
}

// The places of a search for nothing but addresses or ports, or null: {placeFrom, placeTo}.
export function placesOf(text) {
	try {
		const { addr, port, ...others } = parseQuery(text);
		const [first, last = first] = (addr || port || "").split("-").map((end) => parseInt(end || "ffffffff", 16));
		if (Number.isNaN(first) || last < first || (addr && port) || Object.keys(others).length) {
			return null;
		}
		return addr ? { placeFrom: first >>> 12, placeTo: last >>> 12 }
			: { placeFrom: PORT_0 + first, placeTo: PORT_0 + Math.min(last, PORTS - 1) };
	} catch (error) {
		return null;
	}
}

// Returns {ns, text} of what a text names, or null: then it is searched for.
export function placeOf(text) {
	const ns = timeOf(text);
	if (ns !== null) {
		return { ns, text: text.trim() };
	}
	const name = text.trim().toLowerCase();
	const event = ((model.events && model.events.events) || [])
		.find((one) => one.kind !== "gap" && one.text && one.text.toLowerCase() === name);
	return event ? { ns: toAbsolute(event.time), text: `${event.kind} ${event.text}` } : null;
}
