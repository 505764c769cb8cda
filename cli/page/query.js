// What is typed into the search box, as parameters of a search.

import { PORT_0 } from "./text.js";

const KINDS = ["fetch", "read", "write", "ioread", "iowrite"];
const REQUESTS = ("memread memreadinv memwrite deferreply inta cntrlagntres brtracerec shutdown flush halt sync flushack "
	+ "stopclkack smiack").split(" ");
const RANGE = /^(?:0x)?[0-9a-f]{1,8}(?:-(?:(?:0x)?[0-9a-f]{1,8})?)?$/;

// Returns the addresses of the rows with this name as {addr, isPort}, or null.
function region(name, all) {
	const rows = all.filter((row) => row.name && row.name.toLowerCase().includes(name));
	if (!rows.length) {
		return null;
	}
	const first = rows[0];
	const same = rows.filter((row) => row.name === first.name && (row.place < PORT_0) === (first.place < PORT_0));
	const last = same[same.length - 1];
	const hex = (n) => n.toString(16);
	return first.place < PORT_0
		? { addr: `${hex(first.place * 4096)}-${hex((last.place + last.count) * 4096 - 1)}`, isPort: false }
		: { addr: `${hex(first.place - PORT_0)}-${hex(last.place + last.count - 1 - PORT_0)}`, isPort: true };
}

// Returns the parameters of a search: {addr, type, proc}, all optional. `getRows` returns a promise of rows with names;
// it is called if there is a name. Throws an Error that says what is wrong.
export async function parseQuery(text, getRows) {
	const found = {};
	let types = [];
	let isPort = false;
	const rest = [];
	const words = text.toLowerCase().replace(/\b(port|io|proc)\s*[:=\s]\s*/g, "$1:").split(/\s+/).filter(Boolean);
	for (const word of words) {
		const [, kind, value] = /^(port|io|proc):(.+)$/.exec(word) || [];
		const range = RANGE.test(value || word) && (value || word).replace(/0x/g, "");
		if (kind === "proc") {
			found.proc = value;
		} else if (kind && range) {
			found.addr = range;
			isPort = true;
		} else if (KINDS.includes(word) || REQUESTS.includes(word)) {
			types.push(word);
		} else if (range && (!kind)) {
			found.addr = range;
		} else {
			rest.push(word);
		}
	}
	if (rest.length) {
		const place = region(rest.join(" "), await getRows());
		if (!place) {
			throw new Error(`No address, type or region here is called \u201c${rest.join(" ")}\u201d.`);
		}
		found.addr = place.addr;
		isPort = place.isPort;
	}
	if (isPort) {
		types = types.length ? types.map((type) => (/^(read|write)$/.test(type) ? `io${type}` : type)) : ["ioread", "iowrite"];
	}
	if (types.length) {
		found.type = types.join(",");
	}
	if (!words.length) {
		throw new Error("Type an address such as b8000, a range, a port, a type or a region.");
	}
	return found;
}
