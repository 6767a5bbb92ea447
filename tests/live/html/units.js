// The page's pure functions, without a browser: node units.js SOURCES. Prints PASS and FAIL lines.
"use strict";
const fs = require("fs"), path = require("path"), vm = require("vm"), zlib = require("zlib"), assert = require("assert");

const sources = process.argv[2], context = vm.createContext({ console, TextDecoder, Uint8Array, Float64Array, Uint32Array, Int32Array, Uint16Array, Float32Array, Blob, Response, DecompressionStream, atob });
for (const file of ["format.js", "data.js", "stacks.js", "selection.js", "scene.js", "requests.js", "flame.js", "difference.js"]) vm.runInContext(fs.readFileSync(path.join(sources, file), "utf8"), context, { filename: file });
const get = (name) => vm.runInContext(name, context);
const plain = (value) => JSON.parse(JSON.stringify(value));

// Two threads: 0 has main over work over step, work twice; 1 launches. A kernel of 100 ns was asked for in work's second call. OTHERS: rows to be there instead.
function world(change, others) {
	const Row = get("Row"), rows = [];
	const add = (group, a, b, depth, slices, correlations, bytes) => {
		const row = new Row(group, a, b, depth);
		row.parts.push({ starts: Float64Array.from(slices, (s) => s[0]), ends: Float64Array.from(slices, (s) => s[1]), names: Uint32Array.from(slices, (s) => s[2]), correlations: correlations ? Uint32Array.from(correlations) : null, bytes: bytes ? Float64Array.from(bytes) : null });
		row.count = slices.length;
		row.finish().buildMips();
		rows.push(row);
	};
	add(0, 0, 5, 0, [[0, 1000, 0]]);
	add(0, 0, 5, 1, [[100, 400, 1], [500, 900, 1]]);
	add(0, 0, 5, 2, [[150, 250, 2], [600, 700, 2], [700, 750, 2]]);
	add(0, 1, 6, 0, [[0, 500, 3]]);
	add(3, 0, 0, 0, [[610, 620, 1]], [77]);
	add(4, 0, 7, 0, [[650, 750, 2], [800, 810, 3]], [77, 99]);
	add(7, 0, 0, 0, [[0, 200, 1], [200, 600, 3], [600, 1000, 1]]);
	add(8, 1, 0, 0, [[450, 500, 0]]);
	add(1, 0, 0, 0, [[100, 400, 4], [500, 900, 4]]);
	add(10, 0, 1, 0, [[0, 650, 1], [810, 1000, 2]], null, [600, 190]);
	add(10, 0, 0, 0, [[0, 650, 1]], null, [50]);
	const model = { duration_ns: 1000, functions: [["main", "/app.py", 1, 0, 0], ["work", "/app.py", 2, 0, 0], ["step", "/app.py", 3, 0, 0], ["Queue.get", "/queue.py", 4, 0, 1]], threads: [[10, "MainThread", 900, 0, 1000], [11, "pool", 10, 0, 1000]], labels: ["", "cudaLaunchKernel", "gemm", "fill", "request"], states: [], thinned: {}, windows: [], slots: [], loads: [], devices: [0], causes: [{}, {}], call_classes: ["other", "launch"], label_classes: "01000", nodes_left_out: 0, rows: [], ...change };
	return get("makeWorld")(model, { rows: others || rows, tree: { count: 1 } });
}

function weights(tree) {
	const w = {};
	for (let i = 1; i < tree.names.length; i++) w[tree.names[i]] = (w[tree.names[i]] || 0) + tree.selfs[i];
	return w;
}

const tests = {
	"numbers read as in the report"() {
		const formatNs = get("formatNs");
		assert.deepEqual([0, 999, 1000, 45600000, 999950000, 12.3e9, NaN].map(formatNs), ["0 ns", "999 ns", "1.00 µs", "45.6 ms", "1.00 s", "12.3 s", "–"]);
		assert.equal(get("formatPct")(0.05), "<0.1 %");
		assert.equal(get("formatCount")(1234567), "1,234,567");
		assert.equal(get("formatBytes")(1536), "1.50 KiB");
	},
	"a long name loses its beginning"() {
		assert.equal(get("elideLeft")("package.module.Class.method", 15), "….Class.method");
		assert.equal(get("elideLeft")("short", 15), "short");
	},
	"a cell cannot become a formula, a comma or a line"() {
		assert.equal(get("csvField")("=cmd()"), "'=cmd()");
		assert.equal(get("csvField")("a,b\n\"c\""), "\"a,b \"\"c\"\"\"");
		assert.equal(get("csvField")("-12.5"), "-12.5");
	},
	"the fragment holds a view and comes back the same"() {
		const state = { t: "1.5,2.25", q: "a&b=c #%", sel: "3.17", theme: "dark" };
		assert.deepEqual(plain(get("readFragment")(get("writeFragment")(state))), state);
		assert.deepEqual(plain(get("readFragment")("#findings")), {});
		assert.deepEqual(plain(get("readFragment")("#q=%zz")), { q: "%zz" });
		assert.equal(get("readRange")("2,1", 1e10), null);
		assert.equal(get("readRange")("x,NaN", 1e10), null);
	},
	"a search that is no regular expression is taken as it stands"() {
		assert.ok(get("searchPattern")("f(").test("F(x)"));
		assert.equal(get("searchPattern")(""), null);
	},
	"columns come back as they were packed"() {
		const bytes = [], number = (value) => {
			for (; value >= 128; value = Math.floor(value / 128)) bytes.push(value % 128 | 128);
			bytes.push(value);
		}, signed = (value) => number(value < 0 ? -2 * value - 1 : 2 * value);
		[1, 0, 2, 0].forEach(number);
		[5, 3].forEach(signed);
		[10, 20, 1, 7].forEach(number);
		[1, 0, 1, 0].forEach(number);
		signed(-4); // before the end of the last one
		[5e9, 9, 0].forEach(number);
		const read = get("readRecords")(Uint8Array.from(bytes), { rows: [[0, 0, 0, 0]] });
		assert.deepEqual([...read.rows[0].starts], [5, 18, 34]);
		assert.deepEqual([...read.rows[0].ends], [15, 38, 5000000034]);
		assert.throws(() => get("readRecords")(Uint8Array.from(bytes.slice(0, 9)), { rows: [[0, 0, 0, 0]] }), /too early/);
		assert.throws(() => get("readRecords")(Uint8Array.from([1, 9, 0, 0]), { rows: [[0, 0, 0, 0]] }), /not there/);
	},
	async "gzip and base64 are undone"() {
		const packed = zlib.gzipSync(Buffer.from([1, 2, 3, 250])).toString("base64");
		assert.deepEqual([...(await get("gunzip")(get("bytesOfBase64")(packed)))], [1, 2, 3, 250]);
	},
	"slices that overlap go to rows of their own"() {
		const Row = get("Row"), row = new Row(4, 0, 0, 0);
		row.parts.push({ starts: Float64Array.of(0, 5, 12), ends: Float64Array.of(10, 8, 20), names: Uint32Array.of(1, 2, 3) });
		row.count = 3;
		const rows = row.finish().split();
		assert.deepEqual(rows.map((part) => [...part.names]), [[1, 3], [2]]);
	},
	"a level of the pyramid knows its longest slice and how full it is"() {
		const Row = get("Row"), row = new Row(0, 0, 0, 0), n = 1000, part = { starts: new Float64Array(n), ends: new Float64Array(n), names: new Uint32Array(n) };
		for (let i = 0; i < n; i++) {
			part.starts[i] = i * 10;
			part.ends[i] = i * 10 + (i === 37 ? 9 : 2);
		}
		row.parts.push(part);
		row.count = n;
		row.finish().buildMips();
		assert.equal(row.mips[0].longest[2], 37);
		assert.equal(row.mips[0].filled[2], 16 * 2 + 7);
		assert.equal(row.mips[1].longest[0], 37);
		assert.equal(row.mips[1].filled[0], 256 * 2 + 7);
		assert.equal(row.find(372), 37);
		assert.equal(row.at(371), 37);
		assert.equal(row.at(365), -1);
	},
	"a selection weighs stacks by what lies in it"() {
		const w = weights(get("selectionTree")(world(), 0, 1000, "wall", 0));
		assert.deepEqual(w, { 0: 300, 1: 450, 2: 250 });
		assert.deepEqual(weights(get("selectionTree")(world(), 200, 650, "wall", 0)), { 0: 100, 1: 250, 2: 100 });
		const both = get("selectionTree")(world(), 0, 1000, "wall", -1);
		assert.equal(both.totals[0], 1500);
	},
	"GIL-held time is running Python, and what waiters say"() {
		const made = world(), w = weights(get("selectionTree")(made, 0, 1000, "gil", 0));
		assert.deepEqual(w, { 0: 250, 1: 200, 2: 200 }); // not from 200 to 450, nor from 500 to 600
	},
	"GPU time goes to the stack that launched the work"() {
		const made = world(), tree = get("selectionTree")(made, 0, 1000, "gpu", -1), paths = {};
		for (let i = 1; i < tree.names.length; i++) {
			const path = [];
			for (let at = i; at > 0; at = tree.parents[at]) path.unshift(get("treeName")(made, tree.names[at]));
			if (tree.selfs[i]) paths[path.join(";")] = tree.selfs[i];
		}
		assert.deepEqual(paths, { "MainThread (10);main;work;step;gemm": 100, "(launched by nobody known);fill": 10 });
	},
	"tables of a selection weigh what lies in it"() {
		const made = world({ states: [0, 1, 2, 3].map((i) => ({ key: "s" + i, label: "state " + i, colour: "#000000", pattern: "" })) });
		const threads = get("threadsInside")(made, 100, 650).map((row) => [row.thread, [...row.states], row.cpu, row.calls]);
		assert.deepEqual(plain(threads), [[0, [0, 150, 0, 400], 150, 4], [1, [0, 0, 0, 0], 0, 0]]);
		const { kernels, copies } = get("workInside")(made, 700, 805);
		assert.deepEqual(plain(kernels), [{ key: 2, count: 1, time: 50, longest: 100, bytes: 0 }, { key: 3, count: 1, time: 5, longest: 10, bytes: 0 }]);
		assert.deepEqual(plain(copies), []);
		const [requests] = get("requestsInside")(made, 350, 450);
		assert.deepEqual([requests.name, [...requests.lengths]], [4, [300]]); // whole, though cut by the selection
		const { sum, rows } = get("functionsInside")(made, 150, 250);
		assert.deepEqual(plain([sum, rows.map((row) => [row.name, row.self, row.total])]), [200, [[2, 100, 100], [3, 100, 100], [0, 0, 100], [1, 0, 100]]]);
		assert.equal(made.mergeThreads, false);
	},
	"idling of a selection is shared out by cause and by what was on the stack"() {
		const whole = get("idleInside")(world(), 0, 1000);
		assert.deepEqual(plain(whole.stacks.map((stack) => [stack.cause, stack.name, stack.time, stack.parts, stack.longest, stack.at])), [[1, 1, 600, [600], 600, [0, 600]], [1, 2, 190, [190], 190, [810, 1000]], [0, 1, 50, [50], 50, [0, 50]]]);
		assert.deepEqual([...whole.devices.get(0)], [50, 790]);
		const half = get("idleInside")(world(), 325, 905);
		assert.deepEqual(plain(half.stacks.map((stack) => [stack.cause, stack.name, stack.time])), [[1, 1, 300], [1, 2, 95], [0, 1, 25]]);
		assert.equal(get("idleInside")(world(), 700, 800).stacks.length, 0);
	},
	"calls of the GPU in a selection belong to the function that made them"() {
		const sites = (from, to) => plain(get("sitesInside")(world(), from, to).map((site) => [site.kind, site.name, site.count, site.time, site.gpu]));
		assert.deepEqual(sites(0, 1000), [[1, 2, 1, 10, 100]]);
		assert.deepEqual(sites(615, 1000), [[1, 2, 1, 5, 100]]);
		assert.deepEqual(sites(0, 600), []);
	},
	"waits for the GIL in a selection have a holder where one was seen"() {
		const made = world(), waits = (from, to) => plain(get("gilInside")(made, from, to).map((wait) => [wait.waiter, wait.holder, wait.time]));
		assert.deepEqual(waits(0, 1000), [[0, -1, 400], [1, 0, 50]]);
		assert.deepEqual(waits(460, 470), [[0, -1, 10], [1, 0, 10]]);
	},
	"the longest call of a function is found"() {
		const made = world(), calls = get("longestCalls")(made);
		assert.deepEqual([calls[1].row.depth, calls[1].index], [1, 1]);
		assert.equal(calls[4], undefined);
	},
	"a difference is read, and as wide as the side that is asked for"() {
		// the root; main over work, which costs more, and gone, which costs nothing any more
		const data = get("readDifference")(Uint8Array.from([3, 4, 0, 1, 2, 2, 0, 1, 2, 3, 0, 10, 20, 30, 0, 10, 60, 0, 0]));
		for (const [side, sums] of [["before", [60, 60, 20, 30]], ["after", [70, 70, 60, 0]]]) {
			const tree = get("differenceTree")(data, side);
			assert.deepEqual([...tree.totals], sums);
			assert.deepEqual([...tree.beforeTotals], [60, 60, 20, 30]);
			assert.deepEqual([...tree.afterTotals], [70, 70, 60, 0]);
		}
		assert.throws(() => get("readDifference")(Uint8Array.from([3, 4, 0, 1])), /too early/);
		assert.throws(() => get("readDifference")(Uint8Array.from([1, 0, 0])), /unknown kind/);
	},
	"the colour of a difference says which way, and how much"() {
		const shade = get("differenceShade"), colour = get("differenceColour");
		assert.equal(shade(50, 50, 100), 0);
		assert.equal(shade(0, 0, 100), 0);
		assert.ok(shade(0, 50, 100) === 1 && shade(50, 0, 100) === -1);
		assert.ok(shade(40, 41, 100) > 0 && shade(40, 41, 100) < shade(40, 60, 100));
		assert.deepEqual([colour(0), colour(1), colour(-1)], ["#dde3e8", "#f08842", "#60aee2"]);
	},
	"an inverted tree has the same weight, callers below callees"() {
		const tree = get("selectionTree")(world(), 0, 1000, "wall", 0), inverted = get("invertTree")(tree);
		assert.equal(inverted.totals[0], tree.totals[0]);
		const step = inverted.kids[0].find((node) => inverted.names[node] === 2);
		assert.equal(inverted.totals[step], 250);
		assert.equal(inverted.names[inverted.kids[step][0]], 1);
	},
	"a sandwich has what its function called and who called it"() {
		const tree = get("selectionTree")(world(), 0, 1000, "wall", 0), callees = get("calleesOf")(tree, 1), callers = get("invertTree")(tree, 1);
		assert.equal(callees.totals[0], 700);
		assert.equal(callers.totals[0], 700);
		assert.equal(callers.names[callers.kids[callers.kids[0][0]][0]], 0);
	},
	"recursion counts once in a total"() {
		const Tree = get("Tree"), tree = new Tree();
		tree.selfs[tree.child(tree.child(0, 5), 5)] = 10;
		const row = get("tableOf")(tree.finish())[0];
		assert.deepEqual([row.self, row.total], [10, 10]);
	},
	"what is below a match is not counted twice"() {
		const tree = get("selectionTree")(world(), 0, 1000, "wall", 0);
		assert.equal(get("matchedShare")(tree, 0, (name) => name === 1 || name === 2), 0.7);
	},
	"a layout fills its width, children inside their parent"() {
		const tree = get("selectionTree")(world(), 0, 1000, "wall", -1), { rects } = get("layoutTree")(tree, 0, 0, true, String);
		assert.equal(rects[0].x1, 1);
		const by = new Map(rects.map((rect) => [rect.node, rect]));
		for (const rect of rects.slice(1)) {
			const parent = by.get(tree.parents[rect.node]);
			assert.ok(rect.x0 >= parent.x0 - 1e-9 && rect.x1 <= parent.x1 + 1e-9 && rect.depth === parent.depth + 1);
		}
	},
	"latencies by name, and what slow ones do more"() {
		const made = world(), [stats] = get("requestStats")(made);
		assert.equal(stats.items.length, 2);
		assert.equal(get("percentile")(stats.lengths, 50), 300);
		assert.equal(get("percentile")(stats.lengths, 99), 400);
		const histogram = get("logHistogram")(stats.lengths, 10);
		assert.equal(histogram.counts.reduce((sum, count) => sum + count, 0), 2);
		const rows = get("slowVersusTypical")(made, stats);
		assert.ok(rows.some((row) => row.more > 0));
	},
	"streams of one number are shown apart, each process's rows together"() {
		const Row = get("Row"), rows = [[4, 0, 7, 0, " of process 12"], [4, 0, 7, 0, " of process 11"], [6, 0, 7, 0, " of process 12"]].map((said) => {
			const row = new Row(...said);
			row.parts.push({ starts: Float64Array.of(0, 50), ends: Float64Array.of(100, 150), names: Uint32Array.of(0, 0), correlations: null, bytes: null });
			row.count = 2;
			return row.finish().split();
		}).flat();
		for (const row of rows) row.buildMips();
		const { bands } = get("makeBands")(world({}, rows), new Set());
		assert.deepEqual(plain(bands.filter((band) => band.kind === "row").map((band) => band.label)), ["stream 7 of process 11", "", "stream 7 of process 12", "", "waits, stream 7 of process 12", ""]);
	},
	"pixels mix by their parts"() {
		const mix = get("mixPixels"), pixel = get("pixelOf");
		assert.equal(mix(pixel("#102030"), pixel("#f0e0d0"), 0), pixel("#102030"));
		assert.equal(mix(pixel("#102030"), pixel("#f0e0d0"), 1), pixel("#f0e0d0"));
		assert.equal(mix(pixel("#000000"), pixel("#fefefe"), 0.5), pixel("#7f7f7f"));
	},
	"the bands show each row once and no two at the same place"() {
		const made = world(), { bands, height } = get("makeBands")(made, new Set());
		let y = 0;
		for (const band of bands) {
			assert.equal(band.y, y);
			y += band.height;
		}
		assert.equal(y, height);
		const rows = bands.filter((band) => band.kind === "row").map((band) => band.row);
		assert.equal(new Set(rows).size, rows.length);
	},
};

(async () => {
	let failed = 0;
	for (const [name, test] of Object.entries(tests)) {
		try {
			await test();
			console.log("PASS " + name);
		} catch (error) {
			failed++;
			console.log("FAIL " + name + ": " + String(error.stack || error).split("\n").slice(0, 6).join(" "));
		}
	}
	process.exit(failed ? 1 : 0);
})();
