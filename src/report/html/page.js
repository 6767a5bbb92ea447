// Brings the page to life: state in the fragment, keys, theme, and the views.

const MONO = "ui-monospace,'SF Mono','Cascadia Mono','DejaVu Sans Mono',Menlo,Consolas,monospace", SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',Ubuntu,'DejaVu Sans',sans-serif";

// Text only ever becomes text: nothing here reads markup.
function element(tag, properties, ...children) {
	const made = Object.assign(document.createElement(tag), properties);
	made.append(...children);
	return made;
}

function say(text) {
	const place = document.getElementById("said");
	if (place) place.textContent = text;
}

// Those of the time line first.
const TIMELINE_KEYS = [["W S", "zoom in, out"], ["A D", "move left, right"], ["F", "zoom to the selection"], ["0", "show everything"], ["n N", "next, previous match"], ["M", "mark this moment"]];
const KEYS = [["/", "search"], ["T", "light or dark"], ["← → ↑ ↓", "walk, in the time line or the flame graph"], ["Enter", "zoom to the slice or frame"], ["Esc", "give up search, selection, zoom"], ["?", "this help"]];

class Page {
	constructor() {
		this.selection = null;
		this.pattern = null;
		this.query = "";
		this.bookmarks = [];
		this.selected = new Selected(this);
		this.state = readFragment(location.hash);
		this.theme();
		this.header();
		for (const table of document.querySelectorAll(".scroll > table")) if (table.tHead && table.tBodies[0].rows.length > 1) enhanceTable(table);
		for (const card of document.querySelectorAll(".finding")) this.card(card);
		document.addEventListener("keydown", (event) => this.key(event));
		window.addEventListener("hashchange", () => this.restore());
		document.addEventListener("click", (event) => {
			if (event.target.closest && event.target.closest("a.range")) setTimeout(() => document.getElementById("timeline").scrollIntoView({ block: "start" }));
		});
		window.addEventListener("beforeprint", () => this.redraw());
	}

	header() {
		const nav = document.querySelector("nav"), theme = element("button", { type: "button", className: "quiet", title: "light or dark (T)" }, "◐"), help = element("button", { type: "button", className: "quiet", title: "keys (?)" }, "?");
		theme.addEventListener("click", () => this.toggleTheme());
		help.addEventListener("click", () => this.help.showModal());
		theme.setAttribute("aria-label", "light or dark");
		help.setAttribute("aria-label", "keys");
		nav.append(theme, help);
		const close = element("button", { type: "button", className: "quiet" }, "Close");
		this.help = element("dialog", {}, element("h2", {}, "Keys"), element("dl", { className: "words" }, ...(document.getElementById("timeline") ? TIMELINE_KEYS : []).concat(KEYS).flatMap(([key, text]) => [element("dt", {}, key), element("dd", {}, text)])), close);
		this.help.setAttribute("aria-label", "Keys");
		close.addEventListener("click", () => this.help.close());
		const said = element("div", { id: "said", className: "away" });
		said.setAttribute("role", "status");
		document.body.append(this.help, said);
	}

	theme() {
		if (this.state.theme === "dark" || this.state.theme === "light") document.documentElement.dataset.theme = this.state.theme;
		else delete document.documentElement.dataset.theme;
	}

	toggleTheme() {
		const dark = this.state.theme ? this.state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
		this.state.theme = dark ? "light" : "dark";
		this.theme();
		this.remember();
		this.redraw();
	}

	card(card) {
		const copy = element("button", { type: "button", className: "quiet" }, "Copy as Markdown");
		copy.addEventListener("click", () => copyText(findingMarkdown(card), copy));
		card.querySelector(".body").append(copy);
	}

	// From a place of a finding to what the time line and the flame graph know of it.
	linkPlaces() {
		const places = document.querySelectorAll(".places [data-f]"), calls = places.length ? longestCalls(this.world) : [];
		for (const place of places) {
			const name = Number(place.dataset.f), call = calls[name], tools = element("span", { className: "goto" });
			const add = (text, act) => {
				const made = element("button", { type: "button", className: "quiet" }, text);
				made.addEventListener("click", act);
				tools.append(made);
			};
			if (call) add("Longest call, " + formatNs(call.row.ends[call.index] - call.row.starts[call.index]), () => this.showSlice(call.row, call.index));
			if (this.flame.tree.names.includes(name)) add("In the flame graph", () => {
				this.flame.around(name);
				document.getElementById("flame").scrollIntoView({ block: "start" });
			});
			if (tools.childNodes.length) place.append(tools);
		}
	}

	redraw() {
		if (this.timeline) this.timeline.draw();
		if (this.flame) this.flame.draw();
		if (this.requests && this.requests.now) this.requests.choose(this.requests.now);
	}

	async load() {
		const model = JSON.parse(document.getElementById("model").textContent), bytes = await gunzip(bytesOfBase64(document.getElementById("slices").textContent));
		document.getElementById("slices").remove();
		if (model.diff) this.showDifference(model, bytes);
		else this.showCapture(model, bytes);
		this.drawnAt = performance.now();
		document.body.classList.add("drawn");
		this.restore();
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
	}

	// What two captures differ in has no time line.
	showDifference(model, bytes) {
		this.world = makeWorld({ functions: model.functions, threads: [], labels: [], states: [], thinned: {}, windows: [], slots: [], loads: [], devices: [], duration_ns: 1, nodes_left_out: 0 }, { rows: [], tree: null });
		this.flame = new Difference(this, document.getElementById("flame"), readDifference(bytes), model);
	}

	showCapture(model, bytes) {
		this.world = makeWorld(model, readRecords(bytes, model));
		this.timeline = new Timeline(this, document.getElementById("timeline"));
		this.flame = new Flame(this, document.getElementById("flame"));
		this.requests = new Requests(this);
		this.linkPlaces();
	}

	// From the fragment; a mere place on the page changes nothing.
	restore() {
		if (!this.timeline || (location.hash && !location.hash.includes("="))) return;
		this.state = { theme: this.state.theme, ...readFragment(location.hash) };
		this.theme();
		const view = readRange(this.state.v, this.world.duration), parts = (this.state.sel || "").split(".").map(Number);
		if (view) this.timeline.show(view[0], view[1]);
		if (this.state.q) {
			this.timeline.search.value = this.state.q;
			this.searchFor(this.state.q);
		}
		if (parts.length === 2 && this.world.rows[parts[0]] && parts[1] < this.world.rows[parts[0]].count) this.timeline.pick({ row: this.world.rows[parts[0]], index: parts[1] });
		const range = readRange(this.state.t, this.world.duration);
		if (range || this.selection) this.select(range);
	}

	// Into the fragment: a link to this very view.
	remember() {
		if (!this.timeline) {
			history.replaceState(null, "", writeFragment({ theme: this.state.theme || "" }) || location.pathname + location.search);
			return;
		}
		const timeline = this.timeline, whole = timeline.from === 0 && timeline.to === this.world.duration;
		const fragment = writeFragment({
			t: writeRange(this.selection), v: whole ? "" : writeRange([timeline.from, timeline.to]), q: this.query,
			sel: timeline.picked ? this.world.rows.indexOf(timeline.picked.row) + "." + timeline.picked.index : "", theme: this.state.theme || "",
		});
		clearTimeout(this.soon);
		this.soon = setTimeout(() => history.replaceState(null, "", fragment || location.pathname + location.search), 120);
	}

	select(range) {
		this.selection = range;
		this.timeline.drawOver();
		this.flame.root = 0;
		this.flame.rebuild();
		this.selected.show(range);
		this.remember();
		say(range ? "selected " + formatNs(range[1] - range[0]) + " from " + formatAt(range[0], 1e6) : "nothing selected");
	}

	searchFor(text) {
		this.query = text;
		this.pattern = searchPattern(text);
		this.timeline.setPattern(this.pattern);
		this.flame.draw();
		this.remember();
	}

	showSlice(row, index) {
		const timeline = this.timeline;
		timeline.pick({ row, index });
		timeline.zoomTo(timeline.picked);
		timeline.reveal(timeline.picked);
		document.getElementById("timeline").scrollIntoView({ block: "start" });
	}

	key(event) {
		const timeline = this.timeline;
		if (event.ctrlKey || event.metaKey || event.altKey || (!timeline && !(/^[tT?]$/.test(event.key) || (event.key === "/" && this.flame)))) return;
		if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox") {
			if (event.key === "Escape") event.target.blur();
			return;
		}
		const acts = {
			w: () => timeline.zoom(0.6), s: () => timeline.zoom(1 / 0.6), a: () => timeline.pan(-0.2), d: () => timeline.pan(0.2), f: () => timeline.zoomToSelection(), 0: () => timeline.show(0, this.world.duration),
			"/": () => (timeline || this.flame).search.focus(), n: () => timeline.next(1), N: () => timeline.next(-1), t: () => this.toggleTheme(), "?": () => this.help.showModal(), m: () => this.mark(), Escape: () => this.escape(),
		};
		const act = acts[event.key] || acts[event.key.toLowerCase()];
		if (!act) return;
		act();
		event.preventDefault();
	}

	mark() {
		const at = this.timeline.picked ? this.timeline.picked.row.starts[this.timeline.picked.index] : (this.timeline.from + this.timeline.to) / 2;
		this.bookmarks.push(at);
		this.timeline.drawOver();
		say("marked " + formatAt(at, 1e6));
	}

	escape() {
		if (this.query) {
			this.timeline.search.value = "";
			this.searchFor("");
		} else if (this.selection) this.select(null);
		else if (this.timeline.picked) this.timeline.pick(null);
		else this.bookmarks.length = 0;
		this.timeline.drawOver();
	}
}

function findingMarkdown(card) {
	const text = (selector) => [...card.querySelectorAll(selector)].map((found) => found.textContent.replace(/\s+/g, " ").trim());
	const lines = ["**" + text(".title")[0] + "** (" + text(".chip")[0] + ")", ""];
	for (const row of text(".body tr")) lines.push("- " + row);
	for (const place of card.querySelectorAll(".places li")) lines.push("- `" + [...place.querySelectorAll(":scope > code, :scope > .range, :scope > .at")].map((part) => part.title || part.textContent).join(" ").replace(/`/g, "'").replace(/\s+/g, " ").trim() + "`");
	lines.push("", text(".do p")[0] || "");
	return lines.join("\n") + "\n";
}

document.documentElement.classList.add("scripted");
var page = new Page(); // var: a property of the window, for its console
if (document.getElementById("model")) page.load().catch((error) => {
	const words = "The time line and the flame graph cannot be drawn: " + error.message + ". All else is below.", timeline = document.getElementById("timeline"), flame = document.getElementById("flame");
	(timeline || flame).replaceChildren(element("h2", {}, timeline ? "Timeline" : "Flame graph"), element("p", { className: "soft" }, words));
	flame.hidden = Boolean(timeline);
	document.body.classList.add("failed");
});
