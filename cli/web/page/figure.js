// Figures for papers: saves the picture that is shown, or copies the command that writes it.

import { copyText } from "./link.js";
import { canReadView, localityQuery } from "./locality.js";
import { hasPlaces, model, toRelative } from "./model.js";
import { quoted, saveFile } from "./selection.js";
import { fetchCurve, fetchFigure, fetchFiles } from "./source.js";
import { CLASSES } from "./text.js";
import { countedAxis, hasTimesOfDay, toRfc3339 } from "./time.js";

// A time as `buscap report` takes it.
function timeOption(ns) {
	return countedAxis() ? `@${ns}` : hasTimesOfDay() ? toRfc3339(ns) : `+${toRelative(ns)}ns`;
}

// A report does not know where the recordings are, but their ids are enough in the daemon's directory.
async function figureCommand(name) {
	const { from, to } = model.view;
	const operands = !model.isReport ? (await fetchFiles()).paths
		: hasTimesOfDay() ? model.overview.recordings.map((one) => one.id) : ["FILE"];
	return ["buscap", "report", "--figure", name, "--from", timeOption(from), "--to", timeOption(to + 1n), "-o", `${name}.svg`,
		...operands].map(quoted).join(" ");
}

// A figure shows one run; a picture, all of its processors.
export async function saveFigure(app, name) {
	const { isReport, view, shown, proc } = model;
	const isPicture = ["timeline", "heat-map"].includes(name);
	const isLimited = !["all", "each"].includes(proc) || (isReport && (hasPlaces() || shown !== "all"));
	try {
		if (model.other || model.runs) {
			app.announce("A figure shows one run: end the comparison first.");
		} else if (isPicture ? !isReport : canReadView()) {
			const svg = isPicture ? fetchFigure(name, view, CLASSES.indexOf(shown)) : fetchCurve(name, localityQuery());
			saveFile(`${name}.svg`, "image/svg+xml", await svg);
			app.announce(`${name}.svg was saved${isPicture && isLimited ? "; it shows all processors" : ""}.`);
		} else if (copyText(await figureCommand(name))) {
			app.announce(`The command was copied${isLimited ? "; it draws all addresses, classes and processors" : ""}.`);
		} else {
			app.announce("The browser does not allow copying.");
		}
	} catch (error) {
		app.announce(error.message);
	}
}
