// Tables of the selection: each stands in its section in place of the one of the whole capture.

const SELECTED_ROWS = 500;

function numberCell(value, text) {
	const made = element("td", { className: "n" }, text);
	made.dataset.v = value;
	return made;
}

function nameCell(...inside) {
	return element("td", { className: "fn" }, ...inside);
}

// Parts of a WHOLE as one bar; its label says the same.
function partsBar(parts, values, whole, className) {
	const bar = element("div", { className: "stack " + className }), words = [];
	bar.setAttribute("role", "img");
	parts.forEach((part, i) => {
		const pct = 100 * values[i] / whole;
		if (!(pct >= 0.05)) return;
		words.push(part.label + " " + formatPct(pct));
		const span = element("span", { className: part.pattern, title: words[words.length - 1] }, className !== "thin" && pct >= 9 ? part.label : "");
		span.style.width = pct + "%";
		span.style.backgroundColor = part.colour;
		bar.append(span);
	});
	bar.setAttribute("aria-label", words.join(", ") || "not known");
	return bar;
}

function mostlyWord(world, states, whole) {
	const most = states.indexOf(Math.max(...states));
	return states[most] > 0 ? world.states[most].label + " " + formatPct(100 * states[most] / whole) : "not sampled";
}

// A function of the table, with its place; -1: none was seen.
function functionCell(world, name) {
	if (name < 0 || name === world.otherName) return nameCell(element("span", { className: "soft" }, "no call was seen"));
	return nameCell(element("code", { title: treeName(world, name) }, elideLeft(treeName(world, name), 56)), element("span", { className: "at", title: treePlace(world, name) }, elideLeft(treePlace(world, name), 56)));
}

function causeCell(cause) {
	const key = element("span", { className: "key " + cause.pattern });
	key.style.backgroundColor = cause.colour;
	return element("td", { className: "nb", title: cause.meaning }, key, " " + cause.label);
}

// How busy each device was, and why it idled, as one bar each.
function deviceBars(world, devices, length) {
	const busy = { label: "busy", colour: "#009e73", pattern: "" };
	return [...devices].sort((p, q) => p[0] - q[0]).flatMap(([device, idle]) => {
		const left = Math.max(0, length - idle.reduce((sum, ns) => sum + ns, 0));
		return [element("h3", { className: "sub" }, "GPU " + device + ": busy " + formatPct(100 * left / length)), partsBar([busy, ...world.causes], [left, ...idle], length, "")];
	});
}

// Each: the section, what the table is called, what its numbers are, its heads (those of numbers with a space before), its rows, and what stands above it.
const SELECTED_TABLES = [
	["functions", "Functions", "calls as they were seen, clipped to it", ["Function", " Self %", " Self", " Total", " Calls"], (page, from, to) => {
		const { sum, rows } = functionsInside(page.world, from, to);
		return rows.slice(0, SELECTED_ROWS).map((row) => {
			const around = element("button", { type: "button", className: "link", title: "show around it in the flame graph" }, element("code", { title: treeName(page.world, row.name) }, elideLeft(treeName(page.world, row.name), 64)));
			around.addEventListener("click", () => page.flame.around(row.name));
			return [nameCell(around, element("span", { className: "at" }, elideLeft(treePlace(page.world, row.name), 60))), numberCell(row.self / sum, formatPct(100 * row.self / sum)), numberCell(row.self, formatNs(row.self)), numberCell(row.total, formatNs(row.total)), numberCell(row.calls, formatCount(row.calls))];
		});
	}],
	["threads", "Threads", "states by samples", ["Thread", " CPU", "How it spent its time", "Mostly", " Calls"], (page, from, to) => threadsInside(page.world, from, to).slice(0, SELECTED_ROWS).map((row) => {
		const known = row.states.reduce((sum, ns) => sum + ns, 0), thread = page.world.threads[row.thread];
		return [nameCell(element("code", {}, elideLeft(thread.name, 40)), element("span", { className: "at" }, String(thread.tid))), numberCell(known ? row.cpu / known : -1, known ? formatPct(100 * row.cpu / known) : "–"), element("td", { className: "share" }, known ? partsBar(page.world.states, row.states, known, "thin") : ""), element("td", {}, mostlyWord(page.world, row.states, known)), numberCell(row.calls, formatCount(row.calls))];
	})],
	["requests", "Requests", "those of which any part lies in it, with their whole length", ["Scope", " n", " p50", " p95", " p99", " Longest"], (page, from, to) => requestsInside(page.world, from, to).slice(0, SELECTED_ROWS).map(({ name, lengths }) => [
		nameCell(element("code", {}, page.world.labels[name] || "(no name)")), numberCell(lengths.length, formatCount(lengths.length)), ...[50, 95, 99].map((pct) => numberCell(percentile(lengths, pct), formatNs(percentile(lengths, pct)))), numberCell(lengths[lengths.length - 1], formatNs(lengths[lengths.length - 1]))])],
	["idle", "Why the GPU had nothing to do", "gaps by their innermost function, clipped to it; p50 and longest whole", ["Cause", "The thread stood in", " Idle", " Of all idle", " Gaps", " p50", " Longest"], (page, from, to) => {
		const { stacks } = idleInside(page.world, from, to), sum = stacks.reduce((total, stack) => total + stack.time, 0) || 1;
		return stacks.slice(0, SELECTED_ROWS).map((stack) => {
			const longest = element("a", { className: "range", href: writeFragment({ t: writeRange(stack.at), v: writeRange([Math.max(0, stack.at[0] - stack.longest / 4), stack.at[1] + stack.longest / 4]) }) }, formatNs(stack.longest)), cell = numberCell(stack.longest, "");
			cell.append(longest);
			return [causeCell(page.world.causes[stack.cause]), functionCell(page.world, stack.name), numberCell(stack.time, formatNs(stack.time)), numberCell(stack.time / sum, formatPct(100 * stack.time / sum)), numberCell(stack.parts.length, formatCount(stack.parts.length)),
				numberCell(percentile(stack.parts, 50), formatNs(percentile(stack.parts, 50))), cell];
		});
	}, (page, from, to) => deviceBars(page.world, idleInside(page.world, from, to).devices, to - from)],
	["sites", "Who calls the GPU", "host time clipped to it; what the GPU did for these calls whole", ["Call", "In", " Calls", " Host time", " Blocked", " GPU time", " Copied"], (page, from, to) => sitesInside(page.world, from, to).slice(0, SELECTED_ROWS).map((site) => [
		element("td", { className: "nb" }, page.world.callClasses[site.kind] || "other"), functionCell(page.world, site.name), numberCell(site.count, formatCount(site.count)), ...[site.time, site.blocked, site.gpu].map((ns) => numberCell(ns, formatNs(ns))), numberCell(site.bytes, formatBytes(site.bytes))])],
	["gil", "Waiting for the GIL", "by samples", ["Waiter", "Holder", " Waited", " Of it"], (page, from, to) => gilInside(page.world, from, to).slice(0, SELECTED_ROWS).map((wait) => [
		nameCell(element("code", {}, threadWord(page.world, wait.waiter))), nameCell(element("code", {}, wait.holder < 0 ? "not known" : threadWord(page.world, wait.holder))), numberCell(wait.time, formatNs(wait.time)), numberCell(wait.time / (to - from), formatPct(100 * wait.time / (to - from)))])],
	["kernels", "Kernels and copies", "time that lies in it; the longest whole", ["What", " Time %", " Time", " Runs", " Longest", " Bytes"], (page, from, to) => {
		const { kernels, copies } = workInside(page.world, from, to), all = kernels.concat(copies), sum = all.reduce((total, work) => total + work.time, 0) || 1;
		return all.slice(0, SELECTED_ROWS).map((work, i) => [nameCell(element("code", {}, i < kernels.length ? elideLeft(page.world.labels[work.key] || "(no name)", 64) : COPY_WORDS[work.key])), numberCell(work.time / sum, formatPct(100 * work.time / sum)), numberCell(work.time, formatNs(work.time)), numberCell(work.count, formatCount(work.count)), numberCell(work.longest, formatNs(work.longest)), numberCell(work.bytes, work.bytes ? formatBytes(work.bytes) : "–")]);
	}],
];

// What cannot be told of a part of the capture.
const WHOLE_SECTIONS = ["time", "stacks"];

class Selected {
	constructor(page) {
		this.page = page;
		this.shown = [];
	}

	// The tables of RANGE, or with null those of the whole capture again.
	show(range) {
		for (const made of this.shown) made.remove();
		this.shown = [];
		for (const id of range ? WHOLE_SECTIONS : []) if (document.getElementById(id)) this.place(document.getElementById(id), element("p", { className: "selected soft" }, "Of the whole capture, not of the selection."));
		for (const [id, label, meaning, heads, rowsOf, aboveOf] of SELECTED_TABLES) {
			const section = document.getElementById(id);
			if (!section) continue;
			for (const region of section.querySelectorAll(":scope > .scroll, :scope > .whole")) {
				region.hidden = Boolean(range);
				if (region.previousElementSibling && region.previousElementSibling.classList.contains("tools")) region.previousElementSibling.hidden = Boolean(range);
			}
			if (range) this.add(section, label, meaning, heads, rowsOf(this.page, range[0], range[1]), aboveOf ? aboveOf(this.page, range[0], range[1]) : [], range);
		}
	}

	add(section, label, meaning, heads, rows, above, range) {
		const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col", className: text.startsWith(" ") ? "n" : "" }, text.trim()))), body = element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells)));
		const table = element("table", {}, element("thead", {}, head), body), region = element("div", { className: "scroll", tabIndex: 0 }, table), clear = element("button", { type: "button" }, "Show the whole capture");
		region.setAttribute("role", "region");
		region.setAttribute("aria-label", label + " of the selection");
		clear.addEventListener("click", () => this.page.select(null));
		const made = element("div", { className: "selected" }, element("p", {}, element("b", {}, "Selection: "), formatNs(range[1] - range[0]) + " from " + formatAt(range[0], 1e6) + "; " + meaning + ". ", clear), ...above, rows.length ? region : element("p", { className: "soft" }, "None in it."));
		this.place(section, made);
		if (rows.length > 1) enhanceTable(table);
	}

	place(section, made) {
		section.querySelector("h2").after(made);
		this.shown.push(made);
	}
}
