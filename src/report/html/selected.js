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

// Thread states as one bar; its label says the same.
function stateBar(world, states, whole) {
	const bar = element("div", { className: "stack thin" }), words = [];
	bar.setAttribute("role", "img");
	world.states.forEach((state, i) => {
		const pct = 100 * states[i] / whole;
		if (!(pct >= 0.05)) return;
		words.push(state.label + " " + formatPct(pct));
		const part = element("span", { className: "p-" + state.key + " " + state.pattern, title: words[words.length - 1] });
		part.style.width = pct + "%";
		bar.append(part);
	});
	bar.setAttribute("aria-label", words.join(", ") || "not known");
	return bar;
}

function mostlyWord(world, states, whole) {
	const most = states.indexOf(Math.max(...states));
	return states[most] > 0 ? world.states[most].label + " " + formatPct(100 * states[most] / whole) : "not sampled";
}

// Each: the section, what the table is called, what its numbers are, its heads (those of numbers with a space before), and its rows.
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
		return [nameCell(element("code", {}, elideLeft(thread.name, 40)), element("span", { className: "at" }, String(thread.tid))), numberCell(known ? row.cpu / known : -1, known ? formatPct(100 * row.cpu / known) : "–"), element("td", { className: "share" }, known ? stateBar(page.world, row.states, known) : ""), element("td", {}, mostlyWord(page.world, row.states, known)), numberCell(row.calls, formatCount(row.calls))];
	})],
	["requests", "Requests", "those of which any part lies in it, with their whole length", ["Scope", " n", " p50", " p95", " p99", " Longest"], (page, from, to) => requestsInside(page.world, from, to).slice(0, SELECTED_ROWS).map(({ name, lengths }) => [
		nameCell(element("code", {}, page.world.labels[name] || "(no name)")), numberCell(lengths.length, formatCount(lengths.length)), ...[50, 95, 99].map((pct) => numberCell(percentile(lengths, pct), formatNs(percentile(lengths, pct)))), numberCell(lengths[lengths.length - 1], formatNs(lengths[lengths.length - 1]))])],
	["kernels", "Kernels and copies", "time that lies in it; the longest whole", ["What", " Time %", " Time", " Runs", " Longest", " Bytes"], (page, from, to) => {
		const { kernels, copies } = workInside(page.world, from, to), all = kernels.concat(copies), sum = all.reduce((total, work) => total + work.time, 0) || 1;
		return all.slice(0, SELECTED_ROWS).map((work, i) => [nameCell(element("code", {}, i < kernels.length ? elideLeft(page.world.labels[work.key] || "(no name)", 64) : COPY_WORDS[work.key])), numberCell(work.time / sum, formatPct(100 * work.time / sum)), numberCell(work.time, formatNs(work.time)), numberCell(work.count, formatCount(work.count)), numberCell(work.longest, formatNs(work.longest)), numberCell(work.bytes, work.bytes ? formatBytes(work.bytes) : "–")]);
	}],
];

class Selected {
	constructor(page) {
		this.page = page;
		this.shown = [];
	}

	// The tables of RANGE, or with null those of the whole capture again.
	show(range) {
		for (const made of this.shown) made.remove();
		this.shown = [];
		for (const [id, label, meaning, heads, rowsOf] of SELECTED_TABLES) {
			const section = document.getElementById(id);
			if (!section) continue;
			for (const region of section.querySelectorAll(":scope > .scroll")) {
				region.hidden = Boolean(range);
				if (region.previousElementSibling.classList.contains("tools")) region.previousElementSibling.hidden = Boolean(range);
			}
			if (range) this.add(section, label, meaning, heads, rowsOf(this.page, range[0], range[1]), range);
		}
	}

	add(section, label, meaning, heads, rows, range) {
		const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col", className: text.startsWith(" ") ? "n" : "" }, text.trim()))), body = element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells)));
		const table = element("table", {}, element("thead", {}, head), body), region = element("div", { className: "scroll", tabIndex: 0 }, table), clear = element("button", { type: "button" }, "Show the whole capture");
		region.setAttribute("role", "region");
		region.setAttribute("aria-label", label + " of the selection");
		clear.addEventListener("click", () => this.page.select(null));
		const made = element("div", { className: "selected" }, element("p", {}, element("b", {}, "Selection: "), formatNs(range[1] - range[0]) + " from " + formatAt(range[0], 1e6) + "; " + meaning + ". ", clear), rows.length ? region : element("p", { className: "soft" }, "None in it."));
		section.querySelector("h2").after(made);
		if (rows.length > 1) enhanceTable(table);
		this.shown.push(made);
	}
}
