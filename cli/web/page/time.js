// Times of day, durations and the ticks of a time axis. Times are BigInts in ns since 1970, durations Numbers in ns. Traces have no times of day but
// an axis: seconds from the start, or ticks or record numbers, of which each is 1 ns. Only the functions here know that.
/* global d3 */

let axis = null; // "ticks", "records", a unit such as "clk", or "seconds"; null: times of day

export function setAxis(name) {
	axis = name;
}

// The axis if it counts something, else null.
export function countedAxis() {
	return axis === "seconds" ? null : axis;
}

export function hasTimesOfDay() {
	return axis === null;
}

export function timeHead(name = "time") {
	return axis === null ? `${name} (UTC)` : countedAxis() ? { ticks: "tick", records: "record" }[axis] ?? axis : name;
}

const SECOND = 1e9;
const DAY = 86400 * SECOND;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// 1, 2 and 5 of each power of ten up to half a second, then the divisions of minutes, hours and days.
const STEPS = d3.range(0, 9).flatMap((power) => [1, 2, 5].map((n) => n * 10 ** power)).concat(
	[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200].map((s) => s * SECOND),
	[1, 2, 7, 14, 28, 91, 365, 1825].map((d) => d * DAY));

const COUNTS = d3.range(0, 19).flatMap((power) => [1, 2, 5].map((n) => n * 10 ** power)); // without times of day

function floorTo(ns, step) {
	const rest = ns % step;
	return ns - rest - (rest < 0n ? step : 0n);
}

// Returns {date, time, fraction} in UTC; fraction has nine digits.
function parts(ns) {
	const ms = floorTo(ns, 1000000n);
	const iso = new Date(Number(ms / 1000000n)).toISOString();
	const fraction = iso.slice(-4, -1) + String(ns - ms).padStart(6, "0");
	return { date: iso.slice(0, -14), time: iso.slice(-13, -5), fraction };
}

// The digits after the second for a resolution in ns: 0, 3, 6 or 9.
function digitsOf(resolution) {
	return [SECOND, 1e6, 1e3].findIndex((unit) => resolution >= unit) * 3 + (resolution < 1e3 ? 12 : 0);
}

function withFraction(time, fraction, digits) {
	return digits ? `${time}.${fraction.slice(0, digits).replace(/\B(?=(\d{3})+$)/g, "\u2009")}` : time;
}

export function formatTime(ns, resolution, withDate = true) {
	if (countedAxis()) {
		return `${timeHead()} ${d3.format(",")(Number(ns))}`;
	}
	if (axis) {
		const text = String(ns < 0n ? -ns : ns).padStart(10, "0");
		return `${ns < 0n ? "-" : ""}${withFraction(text.slice(0, -9), text.slice(-9), digitsOf(resolution))} s`;
	}
	const { date, time, fraction } = parts(ns);
	const text = withFraction(time, fraction, digitsOf(resolution));
	return withDate ? `${date} ${text}` : text;
}

// Two times, and with the time zone.
export function formatTimes(from, to, resolution) {
	const isOneDay = hasTimesOfDay() && formatTime(from, SECOND).slice(0, 10) === formatTime(to, SECOND).slice(0, 10);
	const end = formatTime(to, resolution, !isOneDay);
	return `${formatTime(from, resolution)} \u2013 ${countedAxis() ? end.replace(/^\D+ /, "") : end}${hasTimesOfDay() ? " UTC" : ""}`;
}

// A time in the page's address: 1234, 1.5s, or as in requests.
export function timeToLink(ns) {
	return countedAxis() ? String(ns) : axis ? `${d3.format(".9f")(Number(ns) / SECOND)}s` : toRfc3339(ns);
}

// RFC 3339 with nanoseconds, as in requests and responses, also for positions on an axis.
export function toRfc3339(ns) {
	const { date, time, fraction } = parts(ns);
	return `${date}T${time}.${fraction}Z`;
}

export function fromRfc3339(text) {
	const [, second, fraction = ""] = /^(.{19})(?:\.(\d{1,9}))?Z$/.exec(text);
	return BigInt(Date.parse(`${second}Z`)) * 1000000n + BigInt(fraction.padEnd(9, "0"));
}

// The distance of two times.
export function formatSpan(ns) {
	return countedAxis() ? `${d3.format(",")(Math.round(ns))} ${Math.round(ns) === 1 ? timeHead() : axis}` : formatDuration(ns);
}

// Records per second of so many in a duration; without seconds, per 1,000 of what the axis counts.
export function rateOf(records, duration) {
	return records / duration * (countedAxis() ? 1000 : SECOND);
}

export function rateUnit() {
	return countedAxis() ? ` per 1,000 ${axis}` : "/s";
}

export function formatDuration(ns) {
	const seconds = ns / SECOND;
	const pair = (big, bigName, small, smallName) => `${big} ${bigName}${small ? ` ${small} ${smallName}` : ""}`;
	if (seconds >= 86400) {
		return pair(Math.floor(seconds / 86400), "d", Math.floor(seconds % 86400 / 3600), "h");
	}
	if (seconds >= 3600) {
		return pair(Math.floor(seconds / 3600), "h", Math.floor(seconds % 3600 / 60), "min");
	}
	if (seconds >= 60) {
		return pair(Math.floor(seconds / 60), "min", Math.floor(seconds % 60), "s");
	}
	const [unit, name] = [[SECOND, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]].find(([u]) => ns >= u) || [1, "ns"];
	return `${Number((ns / unit).toPrecision(4))} ${name}`;
}

// The same with all digits, of a BigInt.
export function exactSpan(ns) {
	if (countedAxis()) {
		return formatSpan(Number(ns));
	}
	const [unit, name, digits] = [[1000000000n, "s", 9], [1000000n, "ms", 6], [1000n, "\u00b5s", 3]].find(([one]) => ns >= one)
		|| [1n, "ns", 0];
	const fraction = digits ? String(ns % unit).padStart(digits, "0").replace(/(000)+$/, "") : "";
	const text = `${withFraction(d3.format(",")(Number(ns / unit)), fraction, fraction.length)} ${name}`;
	return ns < 60000000000n ? text : `${text} (${formatDuration(Number(ns))})`;
}

// Returns {ticks: [{ns, label}], base}: about `wanted` ticks in [from, to], and the text that precedes all labels.
export function timeAxis(from, to, wanted) {
	const span = Number(to - from);
	const steps = axis ? COUNTS : STEPS;
	const step = steps.find((s) => s * wanted >= span) || steps[steps.length - 1];
	const start = parts(from);
	let label;
	let base;
	if (countedAxis()) {
		label = (ns) => d3.format(",")(Number(ns));
		base = axis;
	} else if (axis && step >= SECOND) {
		label = (ns) => `${ns / 1000000000n} s`;
		base = "";
	} else if (step < SECOND) {
		const [unit, name, whole] = step >= 1e6 ? [1000000n, "ms", 1000000000n]
			: step >= 1e3 ? [1000n, "\u00b5s", 1000000n] : [1n, "ns", 1000n];
		const zero = floorTo(from, whole);
		label = (ns) => `${(ns - zero) / unit} ${name}`;
		base = `${formatTime(zero, Number(whole))} +`;
	} else if (step < DAY) {
		label = (ns) => {
			const { date, time } = parts(ns);
			return time === "00:00:00" ? dayLabel(date) : step >= 60 * SECOND ? time.slice(0, 5) : time;
		};
		base = `${start.date} UTC`;
	} else {
		label = (ns) => dayLabel(parts(ns).date, step >= 91 * DAY);
		base = `${start.date.slice(0, -6)} UTC`;
	}
	const big = BigInt(step);
	const ticks = [];
	for (let ns = floorTo(from + big - 1n, big); ns <= to; ns += big) {
		ticks.push({ ns, label: label(ns) });
	}
	return { ticks, base, step };
}

function dayLabel(date, isLong = false) {
	const month = MONTHS[Number(date.slice(-5, -3)) - 1];
	return isLong ? `${month} ${date.slice(0, -6)}` : `${Number(date.slice(-2))} ${month}`;
}
