// Latency of the requests: what the program marks with scope(). Numbers by name, a histogram, each one over time, and what slow ones do that others do not.

function requestStats(world) {
	const byName = new Map();
	for (const row of world.rows) {
		if (row.group !== SCOPES) continue;
		for (let i = 0; i < row.count; i++) {
			if (!byName.has(row.names[i])) byName.set(row.names[i], []);
			byName.get(row.names[i]).push({ row, index: i, start: row.starts[i], length: row.ends[i] - row.starts[i] });
		}
	}
	return [...byName].map(([name, items]) => {
		const lengths = Float64Array.from(items, (item) => item.length).sort();
		return { name, items, lengths, sum: lengths.reduce((sum, value) => sum + value, 0) };
	}).sort((p, q) => q.sum - p.sum);
}

// Counts in COUNT classes, each wider than the one before by the same factor.
function logHistogram(lengths, count) {
	const low = Math.max(1, lengths[0]), high = Math.max(low * 1.01, lengths[lengths.length - 1]), factor = Math.log(high / low) / count, counts = new Array(count).fill(0);
	for (const length of lengths) counts[Math.min(count - 1, Math.max(0, Math.floor(Math.log(Math.max(length, low) / low) / factor)))]++;
	return { low, high, counts, edge: (i) => low * Math.exp(factor * i) };
}

// Self time per request of each function: the slowest twentieth against the middle fifth.
function slowVersusTypical(world, stats) {
	const sorted = stats.items.slice().sort((p, q) => p.length - q.length), part = (from, to) => sorted.slice(Math.floor(sorted.length * from), Math.max(Math.floor(sorted.length * from) + 1, Math.ceil(sorted.length * to))).slice(0, 200);
	const mean = (items) => {
		const sums = new Map();
		for (const item of items) {
			const merged = world.mergeThreads;
			world.mergeThreads = true;
			for (const row of tableOf(selectionTree(world, item.start, item.start + item.length, "wall", item.row.a))) sums.set(row.name, (sums.get(row.name) || 0) + row.self / items.length);
			world.mergeThreads = merged;
		}
		return sums;
	};
	const slow = mean(part(0.95, 1)), typical = mean(part(0.4, 0.6)), rows = [];
	for (const name of new Set([...slow.keys(), ...typical.keys()])) {
		const a = typical.get(name) || 0, b = slow.get(name) || 0;
		rows.push({ name, typical: a, slow: b, more: b - a });
	}
	return rows.sort((p, q) => Math.abs(q.more) - Math.abs(p.more)).slice(0, 12);
}

// The page has their table; this adds what can be pointed at.
class Requests {
	constructor(page) {
		this.page = page;
		this.world = page.world;
		this.stats = requestStats(this.world);
		this.charts = document.getElementById("latency");
		if (!this.charts || !this.stats.length) return;
		const pick = element("select", {}, ...this.stats.slice(0, 200).map((stats, i) => element("option", { value: String(i) }, (this.world.labels[stats.name] || "(no name)") + " (" + formatCount(stats.items.length) + ")")));
		pick.setAttribute("aria-label", "Requests to look at");
		pick.addEventListener("change", () => this.choose(this.stats[Number(pick.value)]));
		this.charts.before(element("div", { className: "tools" }, pick));
		this.choose(this.stats[0]);
	}

	choose(stats) {
		this.now = stats;
		const histogram = element("canvas", { className: "chart" }), scatter = element("canvas", { className: "chart" }), slowest = element("ul", { className: "places" });
		for (const item of stats.items.slice().sort((p, q) => q.length - p.length).slice(0, 5)) {
			const show = element("button", { type: "button", className: "link" }, formatNs(item.length) + " at " + formatAt(item.start, 1e6));
			show.addEventListener("click", () => this.page.showSlice(item.row, item.index));
			slowest.append(element("li", {}, show));
		}
		const differ = element("div", {});
		this.charts.replaceChildren(
			element("div", { className: "pair" }, element("figure", {}, histogram, element("figcaption", {}, "how many took how long (log scale)")), element("figure", {}, scatter, element("figcaption", {}, "each one, over the capture; click to see it"))),
			element("div", { className: "pair" }, element("div", {}, element("h3", { className: "sub" }, "Slowest"), slowest), differ));
		this.drawHistogram(histogram, stats);
		this.drawScatter(scatter, stats);
		if (stats.items.length >= 20 && this.world.lanes.length) this.fillDiffer(differ, stats);
	}

	fillDiffer(box, stats) {
		const body = element("tbody", {});
		for (const row of slowVersusTypical(this.world, stats)) {
			if (!row.more) continue;
			body.append(element("tr", {}, element("td", {}, element("code", {}, elideLeft(treeName(this.world, row.name), 44))), element("td", { className: "n" }, formatNs(row.typical)), element("td", { className: "n" }, formatNs(row.slow)), element("td", { className: "n " + (row.more > 0 ? "worse" : "better") }, (row.more > 0 ? "+" : "") + formatNs(row.more))));
		}
		if (body.rows.length) box.replaceChildren(element("h3", { className: "sub" }, "What slow ones do (≥ p95) that typical ones (p40–p60) do not, self time each"), element("table", {}, element("thead", {}, element("tr", {}, ...["Function", "Typical", "Slow", "More"].map((text, i) => element("th", { className: i ? "n" : "" }, text)))), body));
	}

	prepare(canvas) {
		const ratio = window.devicePixelRatio || 1, width = Math.max(220, canvas.clientWidth), height = 150, context = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
		canvas.width = width * ratio;
		canvas.height = height * ratio;
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		context.font = "11px " + SANS;
		context.fillStyle = style.getPropertyValue("--soft");
		return { context, width, height: height - 18, soft: style.getPropertyValue("--soft"), line: style.getPropertyValue("--line") };
	}

	drawHistogram(canvas, stats) {
		const { context, width, height, soft } = this.prepare(canvas), made = logHistogram(stats.lengths, Math.max(8, Math.min(40, Math.floor(width / 14)))), most = Math.max(...made.counts), step = width / made.counts.length;
		canvas.setAttribute("role", "img");
		canvas.setAttribute("aria-label", "Histogram: half took up to " + formatNs(percentile(stats.lengths, 50)) + ", one in twenty more than " + formatNs(percentile(stats.lengths, 95)));
		made.counts.forEach((count, i) => {
			const tall = count / most * (height - 14);
			context.fillStyle = "#56b4e9";
			context.fillRect(i * step, height - tall, step - 1, tall);
		});
		context.fillStyle = soft;
		context.fillText(formatNs(made.low), 0, height + 13);
		context.textAlign = "right";
		context.fillText(formatNs(made.high), width, height + 13);
		for (const [pct, colour] of [[50, "#0072b2"], [95, "#d55e00"]]) {
			const x = Math.log(Math.max(1, percentile(stats.lengths, pct) / made.low)) / Math.log(made.high / made.low) * width;
			context.fillStyle = colour;
			context.fillRect(Math.min(width - 2, x), 0, 2, height);
			context.textAlign = x > width - 40 ? "right" : "left";
			context.fillText("p" + pct, x + (x > width - 40 ? -4 : 4), 10);
		}
	}

	drawScatter(canvas, stats) {
		const { context, width, height, soft, line } = this.prepare(canvas), high = Math.max(1, stats.lengths[stats.lengths.length - 1]), slow = percentile(stats.lengths, 95), at = (item) => [item.start / this.world.duration * (width - 6) + 3, height - 3 - item.length / high * (height - 16)];
		canvas.setAttribute("role", "img");
		canvas.setAttribute("aria-label", "Requests over time; the list of the slowest says the same");
		context.fillStyle = line;
		context.fillRect(0, height, width, 1);
		for (const item of stats.items) {
			const [x, y] = at(item);
			context.fillStyle = item.length >= slow ? "#d55e00" : "#0072b2";
			context.globalAlpha = stats.items.length > 500 ? 0.5 : 0.85;
			context.fillRect(x - 2, y - 2, 4, 4);
		}
		context.globalAlpha = 1;
		context.fillStyle = soft;
		context.fillText("0 s", 0, height + 13);
		context.fillText(formatNs(high), 2, 10);
		context.textAlign = "right";
		context.fillText(formatNs(this.world.duration), width, height + 13);
		canvas.addEventListener("click", (event) => {
			const box = canvas.getBoundingClientRect(), distance = (item) => Math.hypot(at(item)[0] - event.clientX + box.left, at(item)[1] - event.clientY + box.top);
			const nearest = stats.items.reduce((best, item) => (distance(item) < distance(best) ? item : best));
			if (distance(nearest) < 24) this.page.showSlice(nearest.row, nearest.index);
		});
	}
}
