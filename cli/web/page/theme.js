// The theme: that of the system, light or dark. A browser remembers it for each address of a server.

import { forgetColours } from "./colours.js";

const KEY = "theme";

export function setTheme(name) {
	document.documentElement.dataset.theme = name;
	forgetColours();
}

// A browser may forbid to remember anything.
export function rememberTheme(name) {
	try {
		localStorage.setItem(KEY, name);
	} catch (error) {
		// until the page is closed
	}
}

export function rememberedTheme() {
	try {
		const name = localStorage.getItem(KEY);
		return ["light", "dark"].includes(name) ? name : "auto";
	} catch (error) {
		return "auto";
	}
}
