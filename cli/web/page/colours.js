// The colours of the canvases. Classes have the colours of Okabe and Ito, which colour-blind people can distinguish. The
// heat map has viridis, whose lightness changes evenly, starting near the background: light paper or dark screen.
/* global d3 */

const HEAT_STEPS = 256;

function readColours() {
	const style = getComputedStyle(document.documentElement);
	const value = (name) => style.getPropertyValue(name).trim();
	const isDark = value("--is-dark") === "1";
	return {
		isDark,
		paper: value("--plot"),
		ink: value("--ink"),
		dim: value("--dim"),
		line: value("--line"),
		accent: value("--accent"),
		cursor: value("--cursor"),
		gap: value("--gap"),
		mark: value("--mark"),
		trigger: value("--trigger"),
		classes: ["fetch", "read", "write", "other"].map((name) => value(`--${name}`)),
		heat: d3.range(HEAT_STEPS).map((i) => {
			const t = i / (HEAT_STEPS - 1);
			return d3.interpolateViridis(isDark ? 0.2 + 0.8 * t : 0.93 - 0.93 * t);
		}),
	};
}

let colours = null;

export function currentColours() {
	colours = colours || readColours();
	return colours;
}

// Call after the theme has changed.
export function forgetColours() {
	colours = null;
}

// Returns the step of the scale, 0 .. 255, of a cell with n records, 1 .. most.
export function heatStep(n, most) {
	return Math.round((most > 1 ? Math.log(n) / Math.log(most) : 1) * (HEAT_STEPS - 1));
}

export function heatColour(n, most) {
	return currentColours().heat[heatStep(n, most)];
}
