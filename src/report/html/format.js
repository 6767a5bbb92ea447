"use strict";
// Numbers and names as people read them: the same rules as quantity.c and name.c.

const NS_UNITS = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];

function threeDigits(value) {
	const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
	return value.toFixed(digits);
}

function formatNs(ns) {
	if (!Number.isFinite(ns)) return "–";
	const size = Math.abs(ns);
	let unit = NS_UNITS[0];
	for (const candidate of NS_UNITS) if (size >= candidate[0] * 0.9995) unit = candidate;
	return (ns < 0 ? "-" : "") + (unit[0] === 1 ? Math.round(size) : threeDigits(size / unit[0])) + " " + unit[1];
}

// A moment of the capture: as many digits as STEP (ns between neighbours) needs.
function formatAt(ns, step) {
	const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(Math.max(step, 1) / 1e9))));
	return (ns / 1e9).toFixed(digits) + " s";
}

function formatPct(pct) {
	if (!Number.isFinite(pct)) return "–";
	return pct > 0 && pct < 0.1 ? "<0.1 %" : pct.toFixed(1) + " %";
}

function formatCount(count) {
	return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ",");
}

function formatBytes(bytes) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let unit = 0;
	for (; bytes >= 1024 && unit < units.length - 1; unit++) bytes /= 1024;
	return (unit ? threeDigits(bytes) : bytes) + " " + units[unit];
}

// The end of a name is what tells it from others: cut before it, at a folder or dot where one is near.
function elideLeft(name, columns) {
	if (name.length <= columns) return name;
	if (columns < 3) return "";
	const tail = name.slice(name.length - columns + 1), cut = tail.search(/[/.]/);
	return "…" + (cut > 0 && cut < tail.length / 3 ? tail.slice(cut) : tail);
}

function csvField(value) {
	const text = String(value).replace(/\s+/g, " ").trim(), safe = /^[=+\-@\t]/.test(text) && !/^-?[\d.]+$/.test(text) ? "'" + text : text;
	return /[",\n]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
}

// 1, 2 or 5 times a power of ten, the first that gives at most COUNT steps over LENGTH.
function niceStep(length, count) {
	let step = Math.pow(10, Math.floor(Math.log10(Math.max(length, 1) / count)));
	for (const factor of [1, 2, 5, 10]) if (length / (step * factor) <= count) return step * factor;
	return step * 10;
}

// A regular expression from what was typed; what is none is taken as it stands.
function searchPattern(text) {
	if (!text) return null;
	try {
		return new RegExp(text, "i");
	} catch (error) {
		return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
	}
}

// #t=12.3,12.9&q=re&sel=3.17 to and from an object. Anything else is a place on the page.
function readFragment(fragment) {
	const state = {};
	if (!fragment.includes("=")) return state;
	for (const part of fragment.replace(/^#/, "").split("&")) {
		const at = part.indexOf("=");
		if (at <= 0) continue;
		try {
			state[part.slice(0, at)] = decodeURIComponent(part.slice(at + 1));
		} catch (error) {
			state[part.slice(0, at)] = part.slice(at + 1);
		}
	}
	return state;
}

function writeFragment(state) {
	const parts = [];
	for (const key of Object.keys(state)) if (state[key]) parts.push(key + "=" + encodeURIComponent(state[key]).replace(/%2C/g, ","));
	return parts.length ? "#" + parts.join("&") : "";
}

function readRange(text, duration) {
	const parts = (text || "").split(",").map(Number), from = Math.max(0, parts[0] * 1e9), to = Math.min(duration, parts[1] * 1e9);
	return parts.length === 2 && to > from ? [from, to] : null;
}

function writeRange(range) {
	const text = (ns) => String(+(ns / 1e9).toFixed(9));
	return range ? text(range[0]) + "," + text(range[1]) : "";
}

// Values sorted upwards: the one that PCT per cent of them do not exceed.
function percentile(sorted, pct) {
	return sorted.length ? sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(sorted.length * pct / 100) - 1))] : NaN;
}
