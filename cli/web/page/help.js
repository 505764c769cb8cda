// The help: keys and symbols.
/* global d3 */

const KEYS = [
	["drag", "select a time; in the heat map also addresses"],
	["click, drag in the strip", "centre, move the view"],
	["wheel, + \u2212", "zoom"],
	["Shift + wheel or drag, \u2190 \u2192", "earlier, later"],
	["Home", "everything"],
	["f", "follow the recording again, after a pause"],
	["Backspace", "back to the previous view"],
	["a, b", "markers A and B, at the pointer, else at the cursor, else in the middle; near an event or a single record, at its time"],
	["Esc", "cancel a drag; remove the cursor, then the markers; then as Backspace"],
	["n, p", "next, previous mark, trigger or gap; with the search open, the next, previous hit"],
	["click on a cell", "list its records"],
	["/, g, Ctrl+G", "search, or go to a time (14:29:17.5, +1.5 ms), a record (#1021171), a mark by its name; Shift + Enter shows the addresses in the text; Enter and Esc leave it"],
	["in the heat map: \u2190 \u2191 \u2192 \u2193", "move the cursor; Shift + \u2191 \u2193: over several rows; Shift + \u2190 \u2192: earlier, later"],
	["Enter, Shift + Enter", "list the records of the cursor, zoom to its column or, over several rows, to their addresses; in a report both zoom"],
];
const SYMBOLS = [
	["\u25bc", "gap: samples were lost here"],
	["\u2691", "mark"],
	["\u25c6", "trigger"],
	["////", "no records here; in red: records not counted"],
	["cut column", "its rate exceeds the axis"],
	["grey top", "some records not counted by class and address"],
];

export function drawHelp(dialog) {
	const box = d3.select(dialog);
	box.append("h2").attr("id", "help-title").text("Keys and symbols");
	box.append("dl").selectAll("div").data([...KEYS, ...SYMBOLS]).join("div").selectAll("*").data((row) => row)
		.join((enter) => enter.append((d, i) => document.createElement(i ? "dd" : "dt"))).text((text) => text);
	box.append("p").text("A record counts once, at its address. A row is a block of pages or I/O ports; untouched ones are "
		+ "left out. Times are of the recorded bus, in UTC.");
	box.append("form").attr("method", "dialog").append("button").text("Close");
}
