// Parses the search box.

const KINDS = ["fetch", "read", "write", "ioread", "iowrite"];
const REQUESTS = ("memread memreadinv memwrite deferreply inta cntrlagntres brtracerec shutdown flush halt sync flushack "
	+ "stopclkack smiack").split(" ");
const RANGE = /^(?:0x)?[0-9a-f]{1,8}(?:-(?:(?:0x)?[0-9a-f]{1,8})?)?$/;

// Returns the parameters of a search: {addr, port, region, type, proc, records}, all optional. Throws an Error that says what is wrong.
export function parseQuery(text) {
	const found = {};
	const types = [];
	let port = null; // its words
	const rest = []; // an address, or the words of a name
	const words = text.replace(/\b(port|io|proc)\s*[:=]\s*/gi, "$1:").split(/\s+/).filter(Boolean);
	for (let i = 0; i < words.length; i++) {
		const word = words[i].toLowerCase();
		const next = (words[i + 1] || "").toLowerCase();
		const [, kind, value] = /^(port|io|proc):(.+)$/.exec(word) || [];
		if (kind === "proc") {
			found.proc = value;
		} else if (word === "proc" && /^\d+$/.test(next)) {
			found.proc = next;
			i++;
		} else if (kind && RANGE.test(value)) {
			port = { range: value, words: [words[i]], at: rest.length };
		} else if (/^(port|io)$/.test(word) && RANGE.test(next)) {
			port = { range: next, words: words.slice(i, i + 2), at: rest.length };
			i++;
		} else if (KINDS.includes(word) || REQUESTS.includes(word)) {
			types.push(word);
		} else if (/^#[\d,]+$/.test(word)) {
			const number = word.replace(/[#,]/g, "");
			found.records = `${number}-${number}`;
		} else {
			rest.push(words[i]);
		}
	}
	if (port && rest.length) { // "port a data" is a name
		rest.splice(port.at, 0, ...port.words);
		port = null;
	}
	if (rest.length === 1 && RANGE.test(rest[0].toLowerCase())) {
		found.addr = rest[0].toLowerCase().replace(/0x/g, "");
	} else if (rest.length) {
		found.region = rest.join(" "); // of memory and ports
	}
	if (port) {
		found.port = port.range.replace(/0x/g, "");
	}
	if (types.length) {
		found.type = types.join(",");
	}
	if (!words.length) {
		throw new Error("Type an address such as b8000, a range, a port, a type, a region, a time, a mark or #1234, a record.");
	}
	return found;
}
