// The flame graph: the same canvas for all four ways to look at stacks.

const FLAME_ROW = 18;
const WAYS = [["icicle", "Icicle: callers above"], ["flame", "Flame: callers below"], ["inverted", "Inverted: who called the hot ones"], ["sandwich", "Sandwich: around one function"]];
const WEIGHTS = [["wall", "wall time"], ["cpu", "on a CPU"], ["gil", "holding the GIL"], ["gpu", "GPU work it launched"]];

class Flame {
	constructor(page, section, more) {
		this.page = page;
		this.world = page.world;
		this.palette = new Palette(this.world);
		this.way = "icicle";
		this.weight = "wall";
		this.thread = -1;
		this.scope = "";
		this.heavy = true;
		this.idle = true;
		this.root = 0;
		this.focus = -1;
		this.hover = null;
		Object.assign(this, more);
		this.build(section);
		this.rebuild();
	}

	build(section) {
		const choice = (label, values, act) => {
			const select = element("select", {}, ...values.map(([value, text]) => element("option", { value: String(value) }, text)));
			select.setAttribute("aria-label", label);
			select.addEventListener("change", () => act(select.value));
			return select;
		};
		const check = (text, on, act) => {
			const box = element("input", { type: "checkbox", checked: on });
			box.addEventListener("change", () => act(box.checked));
			return element("label", { className: "check" }, box, " " + text);
		};
		const scopes = [...new Set(this.world.rows.filter((row) => row.group === SCOPES).flatMap((row) => [...new Set(row.names)]))].slice(0, 200).map((name) => [name, "in " + (this.world.labels[name] || "?")]);
		this.ways = choice("Way to look", WAYS, (value) => this.set({ way: value }));
		this.weights = choice("Weight", WEIGHTS.filter(([value]) => value !== "gpu" || this.world.devices.length), (value) => this.set({ weight: value }));
		const threads = choice("Thread", [[-1, "all threads"]].concat(this.world.threads.map((thread) => [thread.index, threadWord(this.world, thread.index)])), (value) => this.set({ thread: Number(value) }));
		this.makeCanvas("Flame graph: arrow keys walk from caller to callee and from sibling to sibling, Enter zooms, Escape goes back. The call tree below says the same in words.");
		section.replaceChildren(element("h2", {}, "Flame graph", this.subtitle),
			element("div", { className: "tools" }, this.ways, this.weights, threads, scopes.length ? choice("Scope", [["", "whole time"]].concat(scopes), (value) => this.set({ scope: value })) : "",
				check("left-heavy", true, (on) => this.set({ heavy: on })), check("waiting", true, (on) => this.set({ idle: on })),
				this.world.threads.length > 1 ? check("merge threads", false, (on) => {
					this.world.mergeThreads = on;
					this.set({});
				}) : "", this.matched),
			this.trail, this.canvas, this.details, this.legend());
		this.listen();
	}

	makeCanvas(label) {
		this.subtitle = element("small", {});
		this.matched = element("span", { className: "soft small" });
		this.trail = element("div", { className: "trail" });
		this.canvas = element("canvas", { className: "flames", tabIndex: 0 });
		this.canvas.setAttribute("role", "application");
		this.canvas.setAttribute("aria-label", label);
		this.details = element("div", { className: "details" });
		this.details.setAttribute("aria-live", "polite");
	}

	listen() {
		this.canvas.addEventListener("pointermove", (event) => {
			const hit = this.hit(event);
			if (hit === this.hover) return;
			this.hover = hit;
			this.describe();
			this.draw();
		});
		this.canvas.addEventListener("pointerleave", () => {
			this.hover = null;
			this.describe();
			this.draw();
		});
		this.canvas.addEventListener("click", (event) => this.enter(this.hit(event)));
		this.canvas.addEventListener("keydown", (event) => this.key(event));
		new ResizeObserver(() => this.canvas.clientWidth && this.canvas.clientWidth !== this.width && this.draw()).observe(this.canvas);
	}

	legend() {
		const items = [[KIND_PYTHON, "Python, tinted by file"], [KIND_C, "C function"], [KIND_NATIVE, "native"], [KIND_IMPORT, "import"], [KIND_KERNEL, "GPU"], [KIND_THREAD, "thread"]].map(([kind, text]) => {
			const key = element("i", { className: "key" });
			key.style.background = KIND_TINTS[kind][0];
			return element("span", {}, key, text);
		});
		const waiting = element("i", { className: "key hatch" });
		waiting.style.backgroundColor = KIND_TINTS[KIND_PYTHON][0];
		return element("p", { className: "keys" }, ...items, element("span", {}, waiting, "waits"));
	}

	set(change) {
		Object.assign(this, change);
		this.root = 0;
		this.rebuild();
		this.page.remember();
	}

	hottest() {
		const rows = tableOf(this.tree).filter((row) => treeKind(this.world, row.name) !== KIND_THREAD).sort((p, q) => q.self - p.self);
		return rows.length ? rows[0].name : -1;
	}

	// Which time counts: the selection, the scope's, or everything.
	spans() {
		const range = this.page.selection;
		if (this.scope === "") return range ? [range] : null;
		const spans = [];
		for (const row of this.world.rows) {
			if (row.group !== SCOPES) continue;
			for (let i = 0; i < row.count; i++) {
				const start = Math.max(row.starts[i], range ? range[0] : 0), end = Math.min(row.ends[i], range ? range[1] : this.world.duration);
				if (row.names[i] === Number(this.scope) && end > start && spans.length < 20000) spans.push([start, end, row.a]);
			}
		}
		return spans;
	}

	treeOf(spans) {
		if (!spans && (this.weight === "wall" || this.weight === "cpu") && this.world.tree && this.world.tree.count > 1) return wholeTree(this.world, this.weight, this.thread);
		if (!spans || spans.length === 1) return selectionTree(this.world, spans ? spans[0][0] : 0, spans ? spans[0][1] : this.world.duration, this.weight, this.thread);
		const sum = new Tree();
		for (const [from, to, thread] of spans) {
			if (this.thread >= 0 && thread !== this.thread) continue;
			addTree(sum, selectionTree(this.world, from, to, this.weight, thread));
		}
		return sum.finish();
	}

	rebuild() {
		const spans = this.spans();
		let tree = this.treeOf(spans);
		if (!this.idle) tree = withoutWaiting(this.world, tree);
		this.tree = tree;
		if (this.way === "sandwich" && !tree.names.includes(this.focus)) this.focus = this.hottest();
		this.shown = this.way === "inverted" ? invertTree(tree) : this.way === "sandwich" && this.focus >= 0 ? calleesOf(tree, this.focus) : tree;
		this.above = this.way === "sandwich" && this.focus >= 0 ? invertTree(tree, this.focus) : null;
		this.root = this.way === "sandwich" && this.shown.kids[0] ? this.shown.kids[0][0] : 0;
		const words = [WEIGHTS.find(([key]) => key === this.weight)[1] + " " + formatNs(tree.totals[0])];
		if (this.page.selection) words.push("of the selected " + formatNs(this.page.selection[1] - this.page.selection[0]));
		if (spans && this.scope !== "") words.push(formatCount(spans.length) + " scopes");
		if (!spans && this.weight === "wall" && this.world.nodesLeftOut) words.push(formatCount(this.world.nodesLeftOut) + " smaller stacks left out");
		if (this.weight === "gil" || this.weight === "cpu") words.push(spans || this.weight === "gil" ? (measures(this.world, this.weight).size ? "from samples" : "not known: no samples of thread states") : "an estimate");
		this.subtitle.textContent = words.join(", ");
		this.draw();
		this.describe();
	}

	draw() {
		const width = Math.max(200, this.canvas.clientWidth || this.canvas.parentNode.clientWidth), ratio = window.devicePixelRatio || 1, nameOf = (name) => treeName(this.world, name);
		const down = layoutTree(this.shown, this.root, 0.4 / width, this.heavy, nameOf), up = this.above ? layoutTree(this.above, this.above.kids[0] ? this.above.kids[0][0] : 0, 0.4 / width, this.heavy, nameOf) : null;
		const lift = up ? up.deepest * FLAME_ROW : 0, rows = down.deepest + 1, height = Math.max(3, rows) * FLAME_ROW + lift;
		this.width = width;
		this.canvas.width = Math.round(width * ratio);
		this.canvas.height = Math.round(height * ratio);
		this.canvas.style.height = height + "px";
		this.context = this.canvas.getContext("2d");
		this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.boxes = [];
		this.place(this.shown, down.rects, (rect) => lift + (this.way === "flame" ? down.deepest - rect.depth : rect.depth) * FLAME_ROW);
		if (up) this.place(this.above, up.rects.filter((rect) => rect.depth > 0), (rect) => lift - rect.depth * FLAME_ROW);
		for (const box of this.boxes) this.drawBox(box);
		this.drawTrail();
		const pattern = this.page.pattern;
		this.matched.textContent = pattern ? formatPct(100 * matchedShare(this.shown, this.root, (name) => pattern.test(treeName(this.world, name)))) + " matched" : "";
		if (!this.shown.totals[0]) {
			this.context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--soft");
			this.context.font = "13px " + SANS;
			this.context.fillText("Nothing of this weight was seen here.", 8, 24);
		}
	}

	place(tree, rects, top) {
		for (const rect of rects) this.boxes.push({ tree, node: rect.node, name: tree.names[rect.node], x: rect.x0 * this.width, width: (rect.x1 - rect.x0) * this.width, y: top(rect) });
	}

	colourOf(box) {
		return this.palette.css(treeKind(this.world, box.name), box.name);
	}

	drawBox(box) {
		const context = this.context, width = Math.max(0.6, box.width - (box.width > 3 ? 1 : 0)), pattern = this.page.pattern;
		const match = !pattern || pattern.test(treeName(this.world, box.name));
		context.globalAlpha = match ? 1 : 0.28;
		context.fillStyle = this.colourOf(box);
		context.fillRect(box.x, box.y, width, FLAME_ROW - 1);
		if (isWaiter(this.world, box.name)) this.hatch(box, width);
		context.globalAlpha = 1;
		if (this.hover && this.hover.node === box.node && this.hover.tree === box.tree) {
			context.strokeStyle = "#10161d";
			context.lineWidth = 2;
			context.strokeRect(box.x + 1, box.y + 1, Math.max(1, width - 2), FLAME_ROW - 3);
		}
		if (box.width < 26) return;
		context.font = (pattern && match ? "600 " : "") + "11px " + MONO;
		context.textBaseline = "middle";
		context.fillStyle = match ? "#10161d" : "#5a6673";
		context.fillText(elideLeft(treeName(this.world, box.name), Math.floor((box.width - 6) / 6.65)), box.x + 3, box.y + FLAME_ROW / 2);
	}

	hatch(box, width) {
		const context = this.context;
		context.save();
		context.beginPath();
		context.rect(box.x, box.y, width, FLAME_ROW - 1);
		context.clip();
		context.strokeStyle = "rgba(0,0,0,.28)";
		context.lineWidth = 1.4;
		context.beginPath();
		for (let x = box.x - FLAME_ROW; x < box.x + width; x += 7) {
			context.moveTo(x, box.y + FLAME_ROW);
			context.lineTo(x + FLAME_ROW, box.y);
		}
		context.stroke();
		context.restore();
	}

	drawTrail() {
		const path = [];
		for (let at = this.root; at > 0 && this.way !== "sandwich"; at = this.shown.parents[at]) path.unshift(at);
		const step = (text, node) => {
			const made = element("button", { type: "button", className: "quiet" }, text);
			made.addEventListener("click", () => this.zoomTo(node));
			return made;
		};
		this.trail.replaceChildren(...(path.length ? [step("all", 0), ...path.map((node) => step(elideLeft(treeName(this.world, this.shown.names[node]), 28), node))] : []));
	}

	hit(event) {
		const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
		return this.boxes.find((candidate) => y >= candidate.y && y < candidate.y + FLAME_ROW && x >= candidate.x && x < candidate.x + Math.max(2, candidate.width)) || null;
	}

	enter(box) {
		if (!box) return;
		if (this.way === "sandwich") {
			if (treeKind(this.world, box.name) === KIND_THREAD) return;
			this.focus = box.name;
			this.rebuild();
		} else this.zoomTo(box.node);
	}

	zoomTo(node) {
		this.root = node;
		this.hover = null;
		this.draw();
		this.describe();
	}

	around(name) {
		this.focus = name;
		this.way = this.ways.value = "sandwich";
		this.rebuild();
	}

	key(event) {
		const boxes = this.boxes, now = this.hover || boxes[0];
		if (!now) return;
		let next = null;
		if (event.key === "Enter") this.enter(now);
		else if (event.key === "Escape" && this.root && this.way !== "sandwich") this.zoomTo(0);
		else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
			const deeper = (event.key === "ArrowDown") !== (this.way === "flame");
			next = deeper ? boxes.find((box) => box.tree === now.tree && box.tree.parents[box.node] === now.node && box.node) : boxes.find((box) => box.tree === now.tree && box.node === now.tree.parents[now.node]);
		} else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
			const line = boxes.filter((box) => box.y === now.y).sort((p, q) => p.x - q.x);
			next = line[line.indexOf(now) + (event.key === "ArrowRight" ? 1 : -1)];
		} else return;
		event.preventDefault();
		event.stopPropagation();
		if (next) {
			this.hover = next;
			this.describe();
			this.draw();
			this.hover = this.boxes.find((box) => box.tree === next.tree && box.node === next.node) || null;
		}
	}

	describe() {
		const box = this.hover;
		if (!box) {
			this.details.replaceChildren(element("span", { className: "soft" }, "Point at a frame; click to zoom into it."));
			return;
		}
		const { tree, node, name } = box, whole = this.tree.totals[0] || 1, place = treePlace(this.world, name), around = element("button", { type: "button", className: "quiet" }, "Sandwich"), copy = element("button", { type: "button", className: "quiet" }, "Copy name");
		around.addEventListener("click", () => this.around(name));
		copy.addEventListener("click", () => copyText(treeName(this.world, name), copy));
		this.details.replaceChildren(element("div", {}, element("code", {}, treeName(this.world, name)), " ", element("span", { className: "kind" }, KIND_WORDS[treeKind(this.world, name)]), place ? element("span", { className: "at" }, place) : ""),
			element("div", {}, element("b", {}, formatNs(tree.totals[node])), ", " + formatPct(100 * tree.totals[node] / whole) + " of all, self " + formatNs(tree.selfs[node]) + (tree.calls[node] ? ", " + formatCount(tree.calls[node]) + " calls" : "")));
	}
}

// Adds the weights of PART, node by node.
function addTree(sum, part) {
	const map = new Int32Array(part.names.length);
	for (let i = 1; i < part.names.length; i++) {
		map[i] = sum.child(map[part.parents[i]], part.names[i]);
		sum.selfs[map[i]] += part.selfs[i];
		sum.calls[map[i]] += part.calls[i];
	}
}

// The same tree, but what functions that are there to wait weigh themselves.
function withoutWaiting(world, tree) {
	const rest = new Tree();
	addTree(rest, tree);
	for (let i = 1; i < rest.names.length; i++) if (isWaiter(world, rest.names[i])) rest.selfs[i] = 0;
	return rest.finish();
}
