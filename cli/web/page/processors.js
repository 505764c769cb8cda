// The processors shown: all together, each in its own track, or one track. The server sends a picture with the cells of each
// track, unless that has too many records; what is shown of it is the overview.
/* global d3 */

import { model } from "./model.js";

// The processors of a track, as in --proc: "0", "7-9,16".
function trackText(procs) {
	const starts = procs.filter((proc, i) => proc !== procs[i - 1] + 1);
	const ends = procs.filter((proc, i) => proc !== procs[i + 1] - 1);
	return starts.map((start, i) => (start === ends[i] ? start : `${start}-${ends[i]}`)).join();
}

// The overview of some tracks of a picture: the rows of each, and the columns' cells in them.
function ofTracks(picture, tracks) {
	const rows = [];
	const places = tracks.map((at, track) => {
		const used = new Set(picture.columns.flatMap((column) => column.cells_by_processor[at].filter((n, i) => i % 5 === 0)));
		return new Map([...used].sort(d3.ascending).map((row) => [row, rows.push({ ...picture.rows[row], track }) - 1]));
	});
	const sumOf = (cells) => d3.sum(cells, (n, i) => (i % 5 ? n : 0));
	const columns = picture.columns.map((column) => {
		const untold = sumOf(column.cells) - d3.sum(column.cells_by_processor, sumOf); // of damaged chunks
		const uncounted = column.uncounted + untold;
		const cells = tracks.flatMap((at, track) => column.cells_by_processor[at].map((n, i) => (i % 5 ? n : places[track].get(n))));
		const counts = [1, 2, 3, 4].map((k) => d3.sum(cells, (n, i) => (i % 5 === k ? n : 0)));
		return { ...column, cells, counts, uncounted, records: d3.sum(counts) + uncounted, numbered: column.records };
	});
	const shown = tracks.map((at) => ({ procs: picture.processors[at], text: trackText(picture.processors[at]) }));
	return { ...picture, rows, columns, tracks: shown };
}

const HEIGHTS = { timeline: [48, 40], heatmap: [10, 60] }; // pixels, and more for each track

// Makes the overview of the picture and the processors chosen.
export function showProcessors() {
	const { picture } = model;
	const names = picture.processors.map(trackText);
	if (!["all", "each", ...names].includes(model.proc) && names.length) {
		model.linkFault = `This link shows processor ${model.proc}; the recordings have ${names.join(", ")}`;
		model.proc = "all";
	}
	const tracks = d3.range(names.length).filter((at) => model.proc === "each" || model.proc === names[at]);
	model.overview = picture.by_processor && tracks.length ? ofTracks(picture, tracks) : picture;
}

// Why the processors chosen are not shown; "" if they are.
export function togetherText() {
	const { picture, proc, isReport } = model;
	return !picture || picture.by_processor || proc === "all" || picture.processors.length < 2 || !(isReport || picture.isAsked) ? ""
		: `All processors are shown: ${isReport ? "this report" : "this view"} has too many records to tell them apart. `
			+ `${isReport ? "Make one of a shorter time, with --from and --to" : "Zoom in"}, to 16 million records or less.`;
}

export function drawProcessors(app) {
	const names = model.picture.processors.map(trackText);
	const texts = model.picture.processors.map((procs) => (procs.length > 1 ? "others" : procs[0]));
	const labels = d3.select("#processors").property("hidden", names.length < 2).selectAll("label").data(["all", "each", ...names])
		.join((enter) => {
			const added = enter.append("label");
			added.append("input").attr("type", "radio").attr("name", "processor");
			added.append("span");
			return added;
		});
	labels.select("input").attr("value", (name) => name).property("checked", (name) => name === model.proc)
		.on("change", (name) => app.chooseProcessor(name));
	labels.select("span").text((name, at) => ["all processors", "each", ...texts][at]);
	const { tracks } = model.overview;
	for (const [id, [height, each]] of Object.entries(HEIGHTS)) {
		document.getElementById(id).style.minHeight = tracks && tracks.length > 1 ? `${height + each * tracks.length}px` : "";
	}
}
