// What is typed into the search box, as parameters of a search.

const KINDS = ["fetch", "read", "write", "ioread", "iowrite"];
const REQUESTS = ("memread memreadinv memwrite deferreply inta cntrlagntres brtracerec shutdown flush halt sync flushack "
	+ "stopclkack smiack").split(" ");
const RANGE = /^(?:0x)?[0-9a-f]{1,8}(?:-(?:(?:0x)?[0-9a-f]{1,8})?)?$/;

// Returns the parameters of a search: {addr, region, type, proc}, all optional. Throws an Error that says what is wrong.
export function parseQuery(text) {
	const found = {};
	let types = [];
	let isPort = false;
	const rest = []; // an address, or the words of a name
	const words = text.toLowerCase().replace(/\b(port|io|proc)\s*[:=\s]\s*/g, "$1:").split(/\s+/).filter(Boolean);
	for (const word of words) {
		const [, kind, value] = /^(port|io|proc):(.+)$/.exec(word) || [];
		if (kind === "proc") {
			found.proc = value;
		} else if (kind && RANGE.test(value)) {
			found.addr = value.replace(/0x/g, "");
			isPort = true;
		} else if (KINDS.includes(word) || REQUESTS.includes(word)) {
			types.push(word);
		} else {
			rest.push(word);
		}
	}
	if (rest.length === 1 && RANGE.test(rest[0])) {
		found.addr = rest[0].replace(/0x/g, "");
	} else if (rest.length) {
		found.region = rest.join(" "); // of memory and ports
		types = types.flatMap((type) => (/^(read|write)$/.test(type) ? [type, `io${type}`] : type));
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
