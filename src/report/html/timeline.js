// The time line: a canvas of pixels for the slices, one above it for what moves with the mouse.

const RULER = 24, LABELS = 150, HANDLE_NS = 1;

class Timeline {
	constructor(page, section) {
		this.page = page;
		this.world = page.world;
		this.palette = new Palette(this.world);
		this.open = new Set();
		this.from = 0;
		this.to = this.world.duration;
		this.hover = this.picked = this.drag = null;
		this.build(section);
		this.relayout();
		this.listen();
	}

	build(section) {
		const help = element("span", { className: "soft small" }, "drag to select · Ctrl+wheel or W S to zoom · A D to move · ? for all keys");
		this.search = element("input", { type: "search", placeholder: "search (regex)  /", className: "filter" });
		this.search.setAttribute("aria-label", "Search the time line and the flame graph");
		this.found = element("span", { className: "soft small" });
		const button = (text, title, act) => {
			const made = element("button", { type: "button", className: "quiet", title }, text);
			made.addEventListener("click", act);
			return made;
		};
		this.base = element("canvas", { className: "base" });
		this.over = element("canvas", { className: "over", tabIndex: 0 });
		this.over.setAttribute("role", "application");
		this.over.setAttribute("aria-label", "Time line: arrow keys walk from slice to slice, Enter zooms, W and S zoom, A and D move. The tables say the same in words.");
		this.scroller = element("div", { className: "lanes" }, element("div", { className: "sticky" }, this.base, this.over), (this.sizer = element("div", {})));
		this.details = element("div", { className: "details" });
		this.details.setAttribute("aria-live", "polite");
		section.replaceChildren(
			element("h2", {}, "Timeline", element("small", {}, this.thinnedWords())),
			element("div", { className: "tools" }, this.search, this.found, button("Zoom in", "W", () => this.zoom(0.5)), button("Zoom out", "S", () => this.zoom(2)), button("Selection", "F: zoom to the selection", () => this.zoomToSelection()), button("All", "0", () => this.show(0, this.world.duration)), help),
			this.scroller, this.details, this.legend());
		this.describe();
	}

	thinnedWords() {
		const thinned = this.world.thinned, words = [];
		if (!thinned.calls && !thinned.others && !this.world.rows.length) return "nothing was recorded one by one";
		words.push(formatCount(thinned.calls - thinned.calls_left_out + thinned.others - thinned.others_left_out) + " slices");
		if (thinned.least_ns && thinned.calls_left_out) words.push(formatCount(thinned.calls_left_out) + " calls shorter than " + formatNs(thinned.least_ns) + " are left out here, and their time is their callers' (tables and the flame graph of everything have them)");
		else if (thinned.calls_left_out) words.push(formatCount(thinned.calls_left_out) + " calls are left out here (too deep, or too many)");
		if (thinned.others_left_out) words.push(formatCount(thinned.others_left_out) + " other slices are left out");
		return words.join(", ");
	}

	legend() {
		const kinds = new Set(), items = [];
		for (const band of makeBands(this.world, this.open).bands) if (band.kind === "row") for (let i = 0; i < Math.min(band.row.count, 200); i++) kinds.add(sliceKind(this.world, band.row, i));
		for (const kind of [...kinds].sort((x, y) => x - y)) {
			const key = element("i", { className: "key" });
			key.style.background = KIND_TINTS[kind][0];
			items.push(element("span", {}, key, KIND_WORDS[kind]));
		}
		for (const state of this.world.states) {
			if (!this.world.rows.some((row) => row.group === STATES && row.names.includes(this.world.states.indexOf(state)))) continue;
			const key = element("i", { className: "key thin " + state.pattern });
			key.style.backgroundColor = state.colour;
			items.push(element("span", {}, key, state.label));
		}
		return element("p", { className: "keys" }, ...items);
	}

	relayout() {
		const made = makeBands(this.world, this.open);
		this.bands = made.bands;
		this.total = made.height;
		this.resize();
	}

	resize() {
		const width = Math.max(240, this.scroller.clientWidth), height = Math.min(this.total + RULER, Math.max(260, Math.min(640, window.innerHeight * 0.72)));
		this.width = Math.round(width);
		this.height = Math.round(height);
		this.labels = this.width < 600 ? 78 : LABELS;
		this.plot = this.width - this.labels;
		this.scroller.style.height = this.height + 2 + "px"; // and its border
		this.sizer.style.height = this.total + RULER + "px";
		this.sizer.style.marginTop = -this.height + "px";
		const ratio = window.devicePixelRatio || 1;
		for (const canvas of [this.base, this.over]) {
			canvas.width = canvas === this.base ? this.width : Math.round(this.width * ratio);
			canvas.height = canvas === this.base ? this.height : Math.round(this.height * ratio);
			canvas.style.width = this.width + "px";
			canvas.style.height = this.height + "px";
		}
		this.ratio = ratio;
		this.context = this.base.getContext("2d", { alpha: false });
		this.marks = this.over.getContext("2d");
		this.image = this.context.createImageData(this.plot, this.height);
		this.pixels = new Uint32Array(this.image.data.buffer);
		this.columns = new Uint32Array(this.plot);
		this.cover = new Float32Array(this.plot);
		this.longest = new Float64Array(this.plot);
		this.striped = new Uint8Array(this.plot);
		this.draw();
	}

	theme() {
		const style = getComputedStyle(document.documentElement), get = (name) => style.getPropertyValue(name).trim();
		const card = get("--card").length === 4 ? "#" + [...get("--card").slice(1)].map((c) => c + c).join("") : get("--card");
		this.colours = { card, ink: get("--ink"), soft: get("--soft"), line: get("--line"), track: get("--track"), link: get("--link") };
		this.background = pixelOf(card);
		this.pixelsOf = [];
		this.off = mixPixels(this.background, pixelOf("#808890"), 0.14);
	}

	x(at) {
		return this.labels + (at - this.from) / (this.to - this.from) * this.plot;
	}
	time(x) {
		return this.from + (x - this.labels) / this.plot * (this.to - this.from);
	}

	draw() {
		const begun = performance.now();
		this.theme();
		this.pending = 0;
		this.texts = [];
		this.pixels.fill(this.background);
		this.shadeOff();
		const scroll = this.scroller.scrollTop;
		for (const band of this.bands) {
			const y = band.y - scroll + RULER;
			if (y + band.height <= RULER || y >= this.height) continue;
			this.drawBand(band, y);
		}
		const context = this.context;
		context.fillStyle = this.colours.card;
		context.fillRect(0, 0, this.width, this.height);
		context.putImageData(this.image, this.labels, 0);
		this.drawTexts();
		this.drawRuler();
		this.drawOver();
		this.drawTime = performance.now() - begun;
	}

	later() {
		if (!this.pending) this.pending = requestAnimationFrame(() => this.draw());
	}

	// Where hooks were off nothing was seen: grey, so that nobody takes it for idle time.
	shadeOff() {
		const windows = this.world.windows;
		if (!windows.length) return;
		this.columns.fill(this.off);
		for (const [start, end] of windows) {
			const x0 = Math.max(0, Math.floor(this.x(start) - this.labels)), x1 = Math.min(this.plot, Math.ceil(this.x(end) - this.labels));
			if (x1 > x0) this.columns.fill(this.background, x0, x1);
		}
		for (let y = RULER; y < this.height; y++) this.pixels.set(this.columns, y * this.plot);
		this.blank = Uint32Array.from(this.columns);
	}

	drawBand(band, y) {
		if (band.label && band.kind !== "space") this.texts.push([band.kind === "row" || band.kind === "copies" ? "label" : "title", band, y]);
		if (band.kind === "row") this.paintRow(band.row, y, band.height - 1, true);
		else if (band.kind === "thread" && band.row) this.paintRow(band.row, y + 6, 11, false);
		else if (band.kind === "copies") this.paintCopies(band, y);
		else if (band.kind === "gil") this.paintGil(band, y);
		else if (band.kind === "device") this.paintBusy(band, y);
		else if (band.kind === "loads") this.paintLoads(band, y);
	}

	colourOf(row, index) {
		const pixels = this.pixelsOf[row.group] || (this.pixelsOf[row.group] = []), name = row.names[index];
		let pixel = pixels[name];
		if (pixel === undefined) {
			const css = row.group === STATES ? (this.world.states[name] || this.world.states[0]).colour : this.palette.css(sliceKind(this.world, row, index), row.group === CALLS ? name : name + 1000000);
			pixel = pixelOf(css);
			if (this.pattern && row.group !== STATES && !this.matches(row, index)) pixel = mixPixels(this.background, pixel, 0.22); // steps back
			pixels[name] = pixel;
		}
		return pixel;
	}

	isStriped(row, index) {
		return row.group === STATES ? this.world.states[row.names[index]] && this.world.states[row.names[index]].pattern !== "" : row.group === CALLS && isWaiter(this.world, row.names[index]);
	}

	matches(row, index) {
		return this.pattern ? this.pattern.test(sliceName(this.world, row, index)) : true;
	}

	// One line of slices: columns of pixels first, then as often as the row is high.
	paintRow(row, y, height, named) {
		const { plot, columns, cover, longest, striped } = this, scale = plot / (this.to - this.from), first = row.find(this.from), last = firstAfter(row.starts, row.count, this.to);
		let level = -1, many = last - first;
		columns.fill(0);
		cover.fill(0);
		longest.fill(0);
		striped.fill(0);
		while (many > plot * 6 && level + 1 < row.mips.length) {
			level++;
			many /= MIP;
		}
		if (level >= 0) this.paintBlocks(row, level, firstAfter(row.mips[level].ends, row.mips[level].count, this.from), row.mips[level].count, scale);
		else for (let i = first; i < last; i++) this.paintSlice(row, i, scale, y, height, named);
		this.putColumns(y, height);
	}

	paintSlice(row, i, scale, y, height, named) {
		const x0 = (row.starts[i] - this.from) * scale, x1 = (row.ends[i] - this.from) * scale, left = Math.max(0, Math.floor(x0)), right = Math.min(this.plot, Math.ceil(x1));
		if (x1 - x0 < 1.5) {
			if (left >= this.plot || x1 < 0) return;
			this.cover[left] += Math.max(x1 - x0, 0.2);
			if (row.ends[i] - row.starts[i] >= this.longest[left]) {
				this.longest[left] = row.ends[i] - row.starts[i];
				this.columns[left] = this.colourOf(row, i);
			}
			return;
		}
		const gap = x1 - x0 >= 4 && right < this.plot ? 1 : 0;
		this.columns.fill(this.colourOf(row, i), left, right - gap);
		this.cover.fill(1, left, right - gap);
		if (this.isStriped(row, i)) this.striped.fill(1, left, right - gap);
		if (named && right - left >= 30) this.texts.push(["slice", row, i, left + this.labels, right - left - gap, y, height]);
	}

	// A block as one column or a few; where it is wider, what is in it.
	paintBlocks(row, level, from, to, scale) {
		const mip = row.mips[level];
		for (let i = from; i < to && mip.starts[i] < this.to; i++) {
			const x0 = (mip.starts[i] - this.from) * scale, x1 = (mip.ends[i] - this.from) * scale, left = Math.max(0, Math.floor(x0)), right = Math.min(this.plot, Math.max(left + 1, Math.ceil(x1)));
			if (right - left > 2) {
				const inside = i * MIP, end = Math.min(inside + MIP, level ? row.mips[level - 1].count : row.count);
				if (level) this.paintBlocks(row, level - 1, inside, end, scale);
				else for (let j = inside; j < end; j++) this.paintSlice(row, j, scale, -1, 0, false);
				continue;
			}
			const weight = mip.filled[i], share = weight * scale / (right - left);
			for (let x = left; x < right; x++) {
				this.cover[x] += share;
				if (weight < this.longest[x]) continue;
				this.longest[x] = weight;
				this.columns[x] = this.colourOf(row, mip.longest[i]);
			}
		}
	}

	putColumns(y, height) {
		const { plot, columns, cover, striped, pixels } = this, blank = this.blank;
		let any = false;
		for (let x = 0; x < plot; x++) {
			const under = blank ? blank[x] : this.background;
			if (!cover[x]) columns[x] = under;
			else if (cover[x] < 1) columns[x] = mixPixels(under, columns[x], Math.max(0.3, cover[x]));
			any = any || striped[x] === 1;
		}
		for (let line = Math.max(RULER, y); line < Math.min(this.height, y + height); line++) {
			pixels.set(columns, line * plot);
			if (!any) continue;
			for (let x = 0; x < plot; x++) if (striped[x] && (x + line) % 6 < 2) pixels[line * plot + x] = mixPixels(columns[x], 0xff000000, 0.22);
		}
	}

	// A bar from the floor of a band: SHARE of its height, in COLOUR.
	putBar(left, right, y, height, share, colour) {
		const top = Math.max(RULER, Math.round(y + height * (1 - share)));
		left = Math.max(0, left);
		right = Math.min(this.plot, right);
		if (right <= left) return;
		for (let line = top; line < Math.min(this.height, y + height); line++) this.pixels.fill(colour, line * this.plot + left, line * this.plot + right);
	}

	// The height of a copy is its speed.
	paintCopies(band, y) {
		const row = band.row, scale = this.plot / (this.to - this.from), last = firstAfter(row.starts, row.count, this.to), height = band.height - 3;
		const highest = new Float32Array(this.plot);
		for (let i = row.find(this.from); i < last; i++) {
			const speed = row.bytes[i] / Math.max(1, row.ends[i] - row.starts[i]), share = band.fastest ? Math.max(0.12, speed / band.fastest) : 1;
			const left = Math.max(0, Math.floor((row.starts[i] - this.from) * scale)), right = Math.min(this.plot, Math.max(left + 1, Math.ceil((row.ends[i] - this.from) * scale)));
			for (let x = left; x < right; x++) if (share > highest[x]) highest[x] = share;
		}
		const colour = pixelOf(KIND_TINTS[KIND_COPY][row.b % 2]);
		for (let x = 0; x < this.plot; x++) if (highest[x]) this.putBar(x, x + 1, y, height, highest[x], colour);
		this.texts.push(["note", band, y + 6, band.fastest >= 0.1 ? "up to " + threeDigits(band.fastest) + " GB/s" : band.fastest ? "up to " + threeDigits(band.fastest * 1000) + " MB/s" : ""]);
	}

	// Above: who held it, a colour for each thread. Below: how many waited.
	paintGil(band, y) {
		const scale = this.plot / (this.to - this.from), waiting = new Float32Array(this.plot + 1), held = new Uint32Array(this.plot), amount = new Float32Array(this.plot);
		for (const row of this.world.rows) {
			if (row.group !== STATES && row.group !== GIL) continue;
			const last = firstAfter(row.starts, row.count, this.to);
			for (let i = row.find(this.from); i < last; i++) {
				const thread = row.group === GIL ? row.names[i] : row.a, x0 = (row.starts[i] - this.from) * scale, x1 = (row.ends[i] - this.from) * scale;
				const left = Math.max(0, Math.floor(x0)), right = Math.min(this.plot, Math.max(left + 1, Math.ceil(x1)));
				const holds = row.group === GIL || row.names[i] === 1, waits = row.group === STATES && row.names[i] === 3;
				if (!holds && !waits) continue;
				for (let x = left; x < right; x++) {
					const part = Math.min(x1, x + 1) - Math.max(x0, x);
					if (waits) waiting[x] += part;
					else if (part > amount[x]) {
						amount[x] = part;
						held[x] = pixelOf(threadColour(thread));
					}
				}
			}
		}
		let most = 1;
		for (let x = 0; x < this.plot; x++) most = Math.max(most, waiting[x]);
		for (let x = 0; x < this.plot; x++) {
			if (held[x]) for (let line = Math.max(RULER, y + 3); line < Math.min(this.height, y + 14); line++) this.pixels[line * this.plot + x] = held[x];
			if (waiting[x] > 0.01) this.putBar(x, x + 1, y + 16, 14, Math.min(1, waiting[x] / most), pixelOf("#d55e00"));
		}
		this.texts.push(["note", band, y + 12, "waiters, up to " + Math.ceil(most)]);
	}

	// The slices of ROW that are in view, or blocks of them where there are many to a pixel: where they begin and end, how much of that they fill.
	eachPart(row, visit) {
		const first = row.find(this.from), last = firstAfter(row.starts, row.count, this.to);
		let level = -1;
		for (let many = last - first; many > this.plot * 6 && level + 1 < row.mips.length; many /= MIP) level++;
		if (level < 0) {
			for (let i = first; i < last; i++) visit(row.starts[i], row.ends[i], row.ends[i] - row.starts[i]);
			return;
		}
		const mip = row.mips[level];
		for (let i = firstAfter(mip.ends, mip.count, this.from); i < mip.count && mip.starts[i] < this.to; i++) visit(mip.starts[i], mip.ends[i], mip.filled[i]);
	}

	// How busy the device was, over the width of each pixel.
	paintBusy(band, y) {
		const scale = this.plot / (this.to - this.from), busy = new Float32Array(this.plot);
		for (const row of band.streams) this.eachPart(row, (start, end, filled) => {
			const x0 = Math.max(0, (start - this.from) * scale), x1 = Math.min(this.plot, (end - this.from) * scale), share = filled / Math.max(1, end - start);
			for (let x = Math.floor(x0); x < x1; x++) busy[x] += share * (Math.min(x1, x + 1) - Math.max(x0, x));
		});
		let sum = 0;
		for (let x = 0; x < this.plot; x++) {
			sum += Math.min(1, busy[x]);
			if (busy[x] > 0.01) this.putBar(x, x + 1, y + 4, band.height - 8, Math.min(1, busy[x]), pixelOf("#009e73"));
		}
		this.texts.push(["note", band, y + 8, "busy " + formatPct(100 * sum / this.plot)]);
	}

	paintLoads(band, y) {
		const slots = this.world.slots, loads = this.world.loads;
		let most = 1000;
		for (const slot of slots) most = Math.max(most, slot.slice(1).reduce((sum, value) => sum + value, 0));
		for (let i = 0; i < slots.length; i++) {
			const start = slots[i][0], end = i + 1 < slots.length ? slots[i + 1][0] : this.world.duration;
			if (end < this.from || start > this.to) continue;
			const left = Math.floor(this.x(start) - this.labels), right = Math.max(left + 1, Math.ceil(this.x(end) - this.labels));
			for (let load = loads.length, sum = slots[i].slice(1).reduce((total, value) => total + value, 0); load > 0; load--) {
				this.putBar(left, right, y + 4, band.height - 8, sum / most, pixelOf(this.world.states[loads[load - 1]].colour));
				sum -= slots[i][load];
			}
		}
		this.texts.push(["note", band, y + 12, "up to " + Math.ceil(most / 1000)]);
	}

	drawTexts() {
		const context = this.context, colours = this.colours;
		context.save();
		context.textBaseline = "middle";
		for (const text of this.texts) {
			const [kind] = text;
			if (kind === "slice") {
				const [, row, index, left, width, y, height] = text;
				context.font = "11px " + MONO;
				context.fillStyle = "#10161d";
				if (y >= RULER) context.fillText(elideLeft(sliceName(this.world, row, index), Math.floor((width - 6) / 6.65)), left + 3, y + height / 2 + 0.5);
			} else if (text[2] >= RULER - 4) {
				const [, band, y, note] = text;
				context.font = (kind === "title" ? "600 12px " : "11px ") + SANS;
				context.fillStyle = kind === "title" ? colours.ink : colours.soft;
				const label = kind === "note" ? note : (band.more ? (this.open.has(band.key) ? "▾ " : "▸ ") : "") + band.label, columns = Math.floor((this.labels - 14) / (kind === "title" ? 6.9 : 6));
				context.fillText(kind === "note" ? label : label.length > columns ? label.slice(0, columns - 1) + "…" : label, kind === "title" ? 4 : 12, y + (kind === "note" ? 12 : band.kind === "copies" ? 7 : Math.min(band.height, 22) / 2));
			}
		}
		context.restore();
	}

	drawRuler() {
		const context = this.context, step = niceStep(this.to - this.from, Math.max(2, this.plot / 110));
		context.fillStyle = this.colours.card;
		context.fillRect(0, 0, this.width, RULER - 1);
		context.font = "11px " + SANS;
		context.textBaseline = "middle";
		context.strokeStyle = this.colours.line;
		context.beginPath();
		for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
			const x = Math.round(this.x(at)) + 0.5;
			context.moveTo(x, RULER - 7);
			context.lineTo(x, this.height);
			context.fillStyle = this.colours.soft;
			if (x + 60 < this.width) context.fillText(formatAt(at, step), x + 4, RULER / 2 - 2);
		}
		context.globalAlpha = 0.35;
		context.stroke();
		context.globalAlpha = 1;
		context.beginPath();
		context.moveTo(0, RULER - 0.5);
		context.lineTo(this.width, RULER - 0.5);
		context.stroke();
	}

	// Selection, mouse, picked slice, arrows between launch and work.
	drawOver() {
		const marks = this.marks, selection = this.drag && this.drag.moved ? this.drag.range : this.page.selection;
		marks.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
		marks.clearRect(0, 0, this.width, this.height);
		if (selection) {
			const x0 = Math.max(this.labels, this.x(selection[0])), x1 = Math.min(this.width, this.x(selection[1]));
			if (x1 > x0) {
				marks.fillStyle = "rgba(0,114,178,.13)";
				marks.fillRect(x0, 0, x1 - x0, this.height);
				marks.strokeStyle = "#0072b2";
				marks.strokeRect(x0 + 0.5, -1, x1 - x0 - 1, this.height + 2);
				marks.fillStyle = this.colours.ink;
				marks.font = "600 11px " + SANS;
				marks.fillText(formatNs(selection[1] - selection[0]), x0 + 5, 34);
			}
		}
		for (const at of this.page.bookmarks) this.drawLine(at, "#cc79a7");
		for (const shown of [this.hover, this.picked]) if (shown) this.outline(shown, shown === this.picked ? this.colours.ink : this.colours.link);
		const flow = this.flowOf(this.hover) || this.flowOf(this.picked);
		if (flow) this.drawFlow(flow);
	}

	drawLine(at, colour) {
		const x = Math.round(this.x(at)) + 0.5;
		if (x < this.labels || x > this.width) return;
		this.marks.strokeStyle = colour;
		this.marks.lineWidth = 1.5;
		this.marks.beginPath();
		this.marks.moveTo(x, 0);
		this.marks.lineTo(x, this.height);
		this.marks.stroke();
		this.marks.lineWidth = 1;
	}

	bandOf(row) {
		return this.bands.find((band) => band.row === row && band.kind !== "thread") || this.bands.find((band) => band.row === row);
	}

	outline(shown, colour) {
		const band = this.bandOf(shown.row);
		if (!band) return;
		const y = band.y - this.scroller.scrollTop + RULER, x0 = Math.max(this.labels, this.x(shown.row.starts[shown.index])), x1 = Math.min(this.width, this.x(shown.row.ends[shown.index]));
		if (y < RULER - 8 || x1 < this.labels || x0 > this.width) return;
		this.marks.strokeStyle = colour;
		this.marks.lineWidth = 2;
		this.marks.strokeRect(x0, y + (band.kind === "thread" ? 6 : 0), Math.max(2, x1 - x0), band.kind === "thread" ? 11 : band.height - 1);
		this.marks.lineWidth = 1;
	}

	// The launch and the work that belong together, when SHOWN is one of them.
	flowOf(shown) {
		const id = shown && shown.row.correlations ? shown.row.correlations[shown.index] : 0;
		if (!id) return null;
		const launch = this.world.launches().get(id), work = this.world.works().get(id);
		return launch && work ? { launch, work } : null;
	}

	drawFlow({ launch, work }) {
		const a = this.bandOf(launch.row), b = this.bandOf(work.row);
		if (!a || !b) return;
		const scroll = this.scroller.scrollTop, x0 = this.x(launch.row.ends[launch.index]), y0 = a.y - scroll + RULER + a.height / 2, x1 = this.x(work.row.starts[work.index]), y1 = b.y - scroll + RULER + b.height / 2, marks = this.marks;
		marks.save();
		marks.beginPath();
		marks.rect(this.labels, RULER, this.plot, this.height);
		marks.clip();
		marks.strokeStyle = marks.fillStyle = "#d55e00";
		marks.lineWidth = 1.8;
		const bend = Math.max(24, Math.abs(x1 - x0) / 2);
		marks.beginPath();
		marks.moveTo(x0, y0);
		marks.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
		marks.stroke();
		marks.beginPath();
		marks.moveTo(x1 + 1, y1);
		marks.lineTo(x1 - 7, y1 - 4);
		marks.lineTo(x1 - 7, y1 + 4);
		marks.fill();
		marks.restore();
	}

	hit(x, y) {
		if (x < this.labels || y < RULER) return null;
		const at = y - RULER + this.scroller.scrollTop, band = this.bands.find((candidate) => at >= candidate.y && at < candidate.y + candidate.height);
		if (!band || !band.row) return null;
		const row = band.row, near = 2 * (this.to - this.from) / this.plot, time = this.time(x);
		let index = row.at(time);
		if (index < 0) {
			const next = row.find(time);
			if (next < row.count && row.starts[next] - time < near) index = next;
			else if (next > 0 && time - row.ends[next - 1] < near) index = next - 1;
		}
		return index < 0 ? null : { row, index };
	}

	listen() {
		const canvas = this.over, place = (event) => {
			const box = canvas.getBoundingClientRect();
			return [event.clientX - box.left, event.clientY - box.top];
		};
		canvas.addEventListener("pointerdown", (event) => {
			if (event.button) return;
			const [x, y] = place(event);
			this.drag = { x, y, at: this.time(Math.max(this.labels, x)), moved: false, range: null };
			canvas.setPointerCapture(event.pointerId);
		});
		canvas.addEventListener("pointermove", (event) => {
			const [x, y] = place(event);
			if (this.drag && Math.abs(x - this.drag.x) > 4 && event.pointerType !== "touch") {
				const at = this.time(Math.min(this.width, Math.max(this.labels, x)));
				this.drag.moved = true;
				this.drag.range = [Math.min(at, this.drag.at), Math.max(at, this.drag.at)];
				this.drawOver();
				return;
			}
			const hit = this.hit(x, y);
			if ((hit && hit.row) !== (this.hover && this.hover.row) || (hit && hit.index) !== (this.hover && this.hover.index)) {
				this.hover = hit;
				this.describe();
				this.drawOver();
			}
		});
		canvas.addEventListener("pointerup", (event) => {
			const drag = this.drag, [x, y] = place(event);
			this.drag = null;
			if (!drag) return;
			if (drag.moved && drag.range[1] - drag.range[0] > HANDLE_NS) this.page.select(drag.range);
			else this.click(x, y);
			canvas.focus({ preventScroll: true });
		});
		canvas.addEventListener("pointerleave", () => {
			this.hover = null;
			this.describe();
			this.drawOver();
		});
		canvas.addEventListener("dblclick", () => this.picked && this.zoomTo(this.picked));
		canvas.addEventListener("wheel", (event) => {
			const [x] = place(event), step = event.deltaMode === 1 ? 30 : 1;
			if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(event.deltaY * step * 0.0022), this.time(Math.max(this.labels, x)));
			else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) * step / this.plot);
			else return;
			event.preventDefault();
		}, { passive: false });
		this.scroller.addEventListener("scroll", () => this.later());
		this.search.addEventListener("input", () => this.page.searchFor(this.search.value));
		this.search.addEventListener("keydown", (event) => {
			if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
		});
		canvas.addEventListener("keydown", (event) => this.key(event));
		new ResizeObserver(() => this.scroller.clientWidth && this.resize()).observe(this.scroller);
	}

	click(x, y) {
		if (x < this.labels) {
			const at = y - RULER + this.scroller.scrollTop, band = this.bands.find((candidate) => at >= candidate.y && at < candidate.y + candidate.height);
			if (band && band.key !== undefined) {
				if (!this.open.delete(band.key)) this.open.add(band.key);
				this.relayout();
			}
			return;
		}
		this.pick(this.hit(x, y));
	}

	pick(shown) {
		this.picked = shown;
		this.describe();
		this.drawOver();
		this.page.remember();
	}

	// Arrow keys: along the row, or to what lies above and below at that moment.
	key(event) {
		const along = { ArrowLeft: -1, ArrowRight: 1 }[event.key], across = { ArrowUp: -1, ArrowDown: 1 }[event.key];
		if (event.key === "Enter" && this.picked) this.zoomTo(this.picked);
		else if (along) this.walk(along);
		else if (across) this.step(across);
		else return;
		event.preventDefault();
		event.stopPropagation();
	}

	walk(direction) {
		const now = this.picked || this.firstShown();
		if (!now) return;
		const index = this.picked ? Math.min(now.row.count - 1, Math.max(0, now.index + direction)) : now.index;
		this.pick({ row: now.row, index });
		this.reveal(this.picked);
	}

	step(direction) {
		const rows = this.bands.filter((band) => band.row), at = this.picked ? rows.findIndex((band) => band.row === this.picked.row) : -1;
		const now = this.picked ? (this.picked.row.starts[this.picked.index] + this.picked.row.ends[this.picked.index]) / 2 : this.from;
		for (let i = at + direction; i >= 0 && i < rows.length; i += direction) {
			const row = rows[i].row, next = Math.min(row.count - 1, row.find(now));
			if (next < 0) continue;
			this.pick({ row, index: next });
			this.reveal(this.picked);
			return;
		}
	}

	firstShown() {
		const band = this.bands.find((candidate) => candidate.row && candidate.row.count);
		return band ? { row: band.row, index: Math.min(band.row.count - 1, band.row.find(this.from)) } : null;
	}

	reveal(shown) {
		const band = this.bandOf(shown.row), start = shown.row.starts[shown.index], end = shown.row.ends[shown.index], width = this.to - this.from;
		if (band) {
			const top = band.y - this.scroller.scrollTop;
			if (top < 0 || top + band.height > this.height - RULER) this.scroller.scrollTop = band.y - this.height / 2;
		}
		if (end < this.from || start > this.to) this.show((start + end - width) / 2, (start + end + width) / 2);
		else this.later();
	}

	show(from, to) {
		const least = Math.min(this.world.duration, 50), length = Math.min(this.world.duration, Math.max(least, to - from));
		this.from = Math.min(Math.max(0, from), this.world.duration - length);
		this.to = this.from + length;
		this.later();
		this.page.remember();
	}

	zoom(factor, around) {
		const at = around === undefined ? (this.picked && this.x(this.picked.row.starts[this.picked.index]) > this.labels && this.x(this.picked.row.starts[this.picked.index]) < this.width ? this.picked.row.starts[this.picked.index] : (this.from + this.to) / 2) : around;
		const from = at - (at - this.from) * factor;
		this.show(from, from + (this.to - this.from) * factor);
	}

	pan(share) {
		const by = share * (this.to - this.from);
		this.show(this.from + by, this.to + by);
	}

	zoomTo(shown) {
		const start = shown.row.starts[shown.index], length = Math.max(100, shown.row.ends[shown.index] - start);
		this.show(start - length * 0.15, start + length * 1.15);
	}

	zoomToSelection() {
		if (this.page.selection) this.show(this.page.selection[0], this.page.selection[1]);
		else if (this.picked) this.zoomTo(this.picked);
	}

	// The next slice that matches the search, in the order of time.
	next(direction) {
		if (!this.pattern) return;
		const now = this.picked ? this.picked.row.starts[this.picked.index] : direction > 0 ? -1 : Infinity, from = this.picked;
		let best = null;
		for (const band of this.bands) {
			const row = band.row;
			if (!row || row.group === STATES) continue;
			for (let i = direction > 0 ? firstAfter(row.starts, row.count, now - 0.5) : firstAfter(row.starts, row.count, now) - 1; i >= 0 && i < row.count; i += direction) {
				if (best && (direction > 0 ? row.starts[i] >= best.row.starts[best.index] : row.starts[i] <= best.row.starts[best.index])) break;
				if ((from && row.starts[i] === now && (row !== from.row || i !== from.index) && !(direction > 0 ? row.starts[i] > now : row.starts[i] < now)) || (from && row === from.row && i === from.index)) continue;
				if (!this.matches(row, i)) continue;
				best = { row, index: i };
				break;
			}
		}
		if (!best) return;
		this.pick(best);
		this.reveal(best);
	}

	setPattern(pattern) {
		let count = 0, names = null;
		this.pattern = pattern;
		if (pattern) {
			names = new Map();
			for (const row of this.world.rows) {
				if (row.group === STATES || row.group === GIL) continue;
				for (let i = 0; i < row.count; i++) {
					const key = row.group === CALLS ? row.names[i] : -1 - row.names[i];
					let match = names.get(key);
					if (match === undefined) names.set(key, (match = this.matches(row, i)));
					count += match;
				}
			}
		}
		this.found.textContent = pattern ? formatCount(count) + " slices match" : "";
		this.later();
	}

	isSampled(at) {
		return !this.world.windows.some(([start, end]) => at >= start && at <= end) && this.world.windows.length > 0;
	}

	describe() {
		const shown = this.hover || this.picked;
		if (!shown) {
			this.details.replaceChildren(element("span", { className: "soft" }, "Point at a slice, or click it to keep it here."));
			return;
		}
		const { row, index } = shown, length = row.ends[index] - row.starts[index], name = sliceName(this.world, row, index), facts = [];
		const place = row.group === CALLS ? treePlace(this.world, row.names[index]) : "", flow = this.flowOf(shown);
		facts.push(element("b", {}, formatNs(length)), " from " + formatAt(row.starts[index], 1000));
		if (row.group === CALLS && this.isSampled((row.starts[index] + row.ends[index]) / 2)) facts.push(" (hooks were off: from samples)");
		if (row.group === CALLS || row.group === API || row.group === SCOPES || row.group === STATES) facts.push(", " + threadWord(this.world, row.a));
		if (row.group === STREAM) facts.push(", GPU " + row.a + ", " + streamWord(row));
		if (row.group === COPIES && row.bytes) facts.push(", GPU " + row.a + ", " + threeDigits(row.bytes[index] / Math.max(1, length)) + " GB/s");
		if (flow) facts.push(", queue delay " + formatNs(flow.work.row.starts[flow.work.index] - flow.launch.row.ends[flow.launch.index]) + (flow.launch.row === row ? " until its work began" : " after its launch"));
		const line = element("div", {}, element("code", {}, name), " ", element("span", { className: "kind" }, row.group === STATES ? "thread state" : KIND_WORDS[sliceKind(this.world, row, index)]), place ? element("span", { className: "at" }, place) : "");
		const buttons = [];
		if (shown === this.picked) {
			const button = (text, act) => {
				const made = element("button", { type: "button", className: "quiet" }, text);
				made.addEventListener("click", () => act(made));
				buttons.push(made);
			};
			button("Zoom", () => this.zoomTo(shown));
			button("Select its time", () => this.page.select([row.starts[index], row.ends[index]]));
			button("Copy name", (made) => copyText(name, made));
			if (flow) button(flow.launch.row === row ? "Go to its work" : "Go to its launch", () => {
				const other = flow.launch.row === row ? flow.work : flow.launch;
				this.pick({ row: other.row, index: other.index });
				this.reveal(this.picked);
			});
			if (row.group === CALLS || flow) button("Copy stack", (made) => copyText((row.group === CALLS ? stackAt(this.world, row.a, row.starts[index]) : stackAt(this.world, flow.launch.row.a, flow.launch.row.starts[flow.launch.index])).map((id) => treeName(this.world, id) + (treePlace(this.world, id) ? "  " + treePlace(this.world, id) : "")).join("\n"), made));
		}
		this.details.replaceChildren(line, element("div", {}, ...facts), element("div", { className: "tools" }, ...buttons));
	}
}

function threadColour(thread) {
	return ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#6b4fa0", "#8a6d1d"][thread % 8];
}
