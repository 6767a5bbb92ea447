// The differential flame graph: as wide as one side's time, in the colour of the change. Orange costs more than before, blue less.

const DIFF_NONE = [221, 227, 232], DIFF_MORE = [240, 136, 66], DIFF_LESS = [96, 174, 226];

// How much of the full colour: a change of an eighth of the whole, or of all there was, is all of it.
function differenceShade(before, after, whole) {
	const change = after - before, largest = Math.max(before, after);
	if (!largest || !whole) return 0;
	const share = Math.min(1, Math.sqrt(Math.abs(change) / whole * 8)) * Math.min(1, Math.abs(change) / largest * 2);
	return change < 0 ? -share : share;
}

function differenceColour(shade) {
	const to = shade < 0 ? DIFF_LESS : DIFF_MORE, share = Math.abs(shade);
	return "#" + DIFF_NONE.map((from, i) => Math.round(from + (to[i] - from) * share).toString(16).padStart(2, "0")).join("");
}

// Parents, functions, and the time of its own on both sides.
function readDifference(bytes) {
	const numbers = new Numbers(bytes), columns = { parents: Int32Array, functions: Int32Array, before: Float64Array, after: Float64Array };
	if (numbers.next() !== PACK_DIFF) throw new Error("data of an unknown kind");
	const read = { count: numbers.next() };
	for (const [key, Kind] of Object.entries(columns)) {
		read[key] = new Kind(read.count);
		for (let i = 0; i < read.count; i++) read[key][i] = numbers.next() - (Kind === Int32Array ? 1 : 0);
	}
	if (numbers.next() !== PACK_END) throw new Error("the data do not end");
	return read;
}

// The tree as wide as SIDE ("before", "after"); `beforeTotals` and `afterTotals` are what each node costs on both, with everything below it.
function differenceTree(data, side) {
	const tree = new Tree(), totals = { before: new Float64Array(data.count), after: new Float64Array(data.count) };
	for (let i = 1; i < data.count; i++) tree.selfs[tree.child(data.parents[i], data.functions[i])] = data[side][i];
	for (const key of ["before", "after"]) for (let i = data.count - 1; i >= 0; i--) {
		totals[key][i] += data[key][i];
		if (i) totals[key][data.parents[i]] += totals[key][i];
	}
	tree.beforeTotals = totals.before;
	tree.afterTotals = totals.after;
	return tree.finish();
}

class Difference extends Flame {
	constructor(page, section, data, model) {
		super(page, section, { data, model, side: "after" });
	}

	build(section) {
		const sides = element("select", {}, element("option", { value: "after" }, "as wide as after"), element("option", { value: "before" }, "as wide as before"));
		sides.setAttribute("aria-label", "Width");
		sides.addEventListener("change", () => this.set({ side: sides.value }));
		const search = element("input", { type: "search", placeholder: "search (regex)  /", className: "filter" });
		search.setAttribute("aria-label", "Search the flame graph");
		search.addEventListener("input", () => {
			this.page.pattern = searchPattern(search.value);
			this.draw();
		});
		this.search = search;
		this.makeCanvas("Differential flame graph: arrow keys walk from caller to callee and from sibling to sibling, Enter zooms, Escape goes back. The tables say what changed in words.");
		section.replaceChildren(element("h2", {}, "Flame graph", this.subtitle), element("div", { className: "tools" }, sides, search, this.matched), this.trail, this.canvas, this.details, this.legend());
		this.listen();
	}

	legend() {
		const key = (shade, text) => {
			const made = element("i", { className: "key" });
			made.style.background = differenceColour(shade);
			return element("span", {}, made, text);
		};
		return element("p", { className: "keys" }, key(1, "costs more"), key(0, "the same"), key(-1, "costs less"));
	}

	rebuild() {
		this.tree = this.shown = differenceTree(this.data, this.side);
		this.above = null;
		const words = ["CPU time per " + this.model.unit + ": " + formatNs(this.tree.beforeTotals[0]) + " before, " + formatNs(this.tree.afterTotals[0]) + " after"];
		if (this.model.left_out) words.push(formatCount(this.model.left_out) + " smaller stacks left out");
		this.subtitle.textContent = words.join(", ");
		this.draw();
		this.describe();
	}

	colourOf(box) {
		return differenceColour(differenceShade(this.tree.beforeTotals[box.node], this.tree.afterTotals[box.node], Math.max(this.tree.beforeTotals[0], this.tree.afterTotals[0])));
	}

	describe() {
		const box = this.hover;
		if (!box) {
			this.details.replaceChildren(element("span", { className: "soft" }, "Point at a frame; click to zoom into it."));
			return;
		}
		const before = this.tree.beforeTotals[box.node], after = this.tree.afterTotals[box.node], place = treePlace(this.world, box.name), copy = element("button", { type: "button", className: "quiet" }, "Copy name");
		copy.addEventListener("click", () => copyText(treeName(this.world, box.name), copy));
		const change = (after < before ? "−" : "+") + formatNs(Math.abs(after - before)) + (before ? ", " + (after < before ? "−" : "+") + formatPct(100 * Math.abs(after - before) / before) : ", new");
		this.details.replaceChildren(element("div", {}, element("code", {}, treeName(this.world, box.name)), place ? element("span", { className: "at" }, place) : ""),
			element("div", {}, element("b", { className: after > before ? "worse" : "better" }, change), "; " + formatNs(before) + " before, " + formatNs(after) + " after, per " + this.model.unit + ", with everything below it"), element("div", { className: "tools" }, copy));
	}
}
