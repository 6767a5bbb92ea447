// Stacks and their weights: the tree of the whole capture as it was measured, trees of a selection from the slices, and the ways to look at one.

// A tree to draw: nodes with parents before children; `selfs` is what a node weighs alone, `totals` with everything below it.
class Tree {
	constructor() {
		this.names = [-1];
		this.parents = [-1];
		this.selfs = [0];
		this.calls = [0];
		this.children = new Map();
	}
	child(parent, name) {
		const key = parent * 4194304 + name; // names stay below 2^22
		let node = this.children.get(key);
		if (node === undefined) {
			node = this.names.length;
			this.children.set(key, node);
			this.names.push(name);
			this.parents.push(parent);
			this.selfs.push(0);
			this.calls.push(0);
		}
		return node;
	}
	finish() {
		const count = this.names.length, totals = new Float64Array(count);
		for (let i = count - 1; i >= 0; i--) {
			totals[i] += this.selfs[i];
			if (i) totals[this.parents[i]] += totals[i];
		}
		this.totals = totals;
		this.kids = Array.from({ length: count }, () => null);
		for (let i = 1; i < count; i++) {
			if (!totals[i]) continue;
			(this.kids[this.parents[i]] = this.kids[this.parents[i]] || []).push(i);
		}
		this.depth = new Uint16Array(count);
		for (let i = 1; i < count; i++) this.depth[i] = this.depth[this.parents[i]] + 1;
		return this;
	}
}

// Threads stand as names of their own above the functions.
function threadName(world, thread) {
	return world.threadBase + thread;
}

function wholeTree(world, weight, thread, names) {
	const source = world.tree, tree = new Tree(), map = new Int32Array(source.count), values = weight === "cpu" ? source.cpus : source.selfs, skip = names || null;
	for (let i = 1; i < source.count; i++) {
		const parent = source.parents[i] > 0 ? map[source.parents[i]] : 0;
		if (parent < 0 || (thread >= 0 && source.threads[i] !== thread)) {
			map[i] = -1;
			continue;
		}
		const name = source.functions[i] >= 0 && source.functions[i] < world.functions.length ? source.functions[i] : world.otherName;
		const above = source.parents[i] <= 0 && thread < 0 && source.threads[i] >= 0 && world.threads.length > 1 && !world.mergeThreads ? tree.child(0, threadName(world, source.threads[i])) : parent;
		map[i] = tree.child(above, name);
		if (!skip || !skip.has(name)) tree.selfs[map[i]] += values[i];
		tree.calls[map[i]] += source.calls[i];
	}
	return tree.finish();
}

// Sums of the lengths of intervals before any moment, so that a slice can be asked how much of it lies inside them.
class Measure {
	constructor(intervals) {
		const merged = [];
		intervals.sort((x, y) => x[0] - y[0]);
		for (const [start, end] of intervals) {
			const last = merged[merged.length - 1];
			if (last && start <= last[1]) last[1] = Math.max(last[1], end);
			else merged.push([start, end]);
		}
		this.starts = Float64Array.from(merged, (x) => x[0]);
		this.ends = Float64Array.from(merged, (x) => x[1]);
		this.before = new Float64Array(merged.length + 1);
		for (let i = 0; i < merged.length; i++) this.before[i + 1] = this.before[i] + merged[i][1] - merged[i][0];
	}
	upTo(at) {
		const i = firstAfter(this.ends, this.ends.length, at);
		return this.before[i] + (i < this.starts.length && at > this.starts[i] ? at - this.starts[i] : 0);
	}
	total() {
		return this.before[this.before.length - 1];
	}
}

// When each thread ran, or held the GIL: from its states, and from what those who waited saw.
function measuresOf(world, states, withHolders) {
	const intervals = new Map();
	const add = (thread, start, end) => (intervals.get(thread) || intervals.set(thread, []).get(thread)).push([start, end]);
	for (const row of world.rows) {
		if (row.group === STATES) {
			if (!intervals.has(row.a)) intervals.set(row.a, []);
			for (let i = 0; i < row.count; i++) if (states.includes(row.names[i])) add(row.a, row.starts[i], row.ends[i]);
		} else if (withHolders && row.group === GIL) for (let i = 0; i < row.count; i++) add(row.names[i], row.starts[i], row.ends[i]);
	}
	const measures = new Map();
	for (const [thread, list] of intervals) measures.set(thread, new Measure(list));
	return measures;
}

function measures(world, weight) {
	if (weight === "wall" || weight === "gpu") return null;
	const key = "measures_" + weight;
	if (!world[key]) world[key] = measuresOf(world, weight === "gil" ? [1] : [1, 2], weight === "gil");
	return world[key];
}

// Walks the calls of one lane inside [from, to]: EACH(row, slice, start, end, node) with the node that its caller was given.
function walkLane(lane, from, to, root, each) {
	let above = null;
	for (const row of lane) {
		const first = row.find(from), nodes = [], begin = first;
		let parent = above ? above.first : 0;
		for (let i = first; i < row.count && row.starts[i] < to; i++) {
			const start = Math.max(row.starts[i], from), end = Math.min(row.ends[i], to);
			let node = root;
			if (above) {
				while (parent < above.first + above.nodes.length && above.row.ends[parent] <= row.starts[i]) parent++;
				const inside = parent < above.first + above.nodes.length && above.row.starts[parent] <= row.starts[i];
				if (inside) node = above.nodes[parent - above.first];
			}
			nodes.push(each(row, i, start, end, node, above ? above.row : null, parent));
		}
		above = { row, first: begin, nodes };
		if (!nodes.length) break;
	}
}

// The stacks inside [from, to], weighed. Callers lose what their callees take.
function selectionTree(world, from, to, weight, thread) {
	const tree = new Tree(), all = measures(world, weight);
	if (weight === "gpu") return gpuTree(world, from, to, thread);
	for (const lane of world.lanes) {
		if (thread >= 0 && lane.thread !== thread) continue;
		const measure = all ? all.get(lane.thread) : null;
		if (all && !measure) continue;
		const root = thread < 0 && world.threads.length > 1 && !world.mergeThreads ? tree.child(0, threadName(world, lane.thread)) : 0;
		walkLane(lane.rows, from, to, root, (row, i, start, end, parent) => {
			const node = tree.child(parent, row.names[i]), value = measure ? measure.upTo(end) - measure.upTo(start) : end - start;
			tree.selfs[node] += value;
			tree.calls[node]++;
			if (parent !== root) tree.selfs[parent] -= value;
			return node;
		});
	}
	for (let i = 0; i < tree.selfs.length; i++) if (tree.selfs[i] < 0) tree.selfs[i] = 0;
	return tree.finish();
}

// The stack of THREAD at the moment AT, outermost first: names of functions.
function stackAt(world, thread, at) {
	const stack = [];
	for (const lane of world.lanesOf(thread)) {
		for (const row of lane.rows) {
			const i = row.at(at);
			if (i < 0) break;
			stack.push(row.names[i]);
		}
		if (stack.length) break;
	}
	return stack;
}

// Where the work of the device was asked for: its time goes to the stack that launched it.
function gpuTree(world, from, to, thread) {
	const tree = new Tree(), launches = world.launches();
	for (const row of world.rows) {
		if (row.group !== STREAM && row.group !== COPIES) continue;
		for (let i = row.find(from); i < row.count && row.starts[i] < to; i++) {
			const launch = launches.get(row.correlations ? row.correlations[i] : 0);
			if (thread >= 0 && (!launch || launch.row.a !== thread)) continue;
			let node = 0;
			if (launch) {
				if (thread < 0 && world.threads.length > 1 && !world.mergeThreads) node = tree.child(0, threadName(world, launch.row.a));
				for (const name of stackAt(world, launch.row.a, launch.row.starts[launch.index])) node = tree.child(node, name);
			} else node = tree.child(0, world.unlaunchedName);
			node = tree.child(node, world.labelBase + row.names[i]);
			tree.selfs[node] += Math.min(row.ends[i], to) - Math.max(row.starts[i], from);
			tree.calls[node]++;
		}
	}
	return tree.finish();
}

// Callers below callees: each function that has weight of its own is a root.
function invertTree(tree, onlyName) {
	const inverted = new Tree();
	for (let i = 1; i < tree.names.length; i++) {
		let weight = tree.selfs[i];
		if (onlyName !== undefined) {
			if (tree.names[i] !== onlyName || hasAbove(tree, i, onlyName)) continue;
			weight = tree.totals[i];
		}
		if (!(weight > 0)) continue;
		let node = 0;
		for (let at = i; at > 0; at = tree.parents[at]) node = inverted.child(node, tree.names[at]);
		inverted.selfs[node] += weight;
	}
	return inverted.finish();
}

function hasAbove(tree, node, name) {
	for (let at = tree.parents[node]; at > 0; at = tree.parents[at]) if (tree.names[at] === name) return true;
	return false;
}

// Everything that NAME called, from wherever it was called.
function calleesOf(tree, name) {
	const below = new Tree(), map = new Int32Array(tree.names.length);
	for (let i = 1; i < tree.names.length; i++) {
		const inside = map[tree.parents[i]] > 0, top = tree.names[i] === name && !inside;
		if (!inside && !top) continue;
		map[i] = below.child(top ? 0 : map[tree.parents[i]], tree.names[i]);
		below.selfs[map[i]] += tree.selfs[i];
		below.calls[map[i]] += tree.calls[i];
	}
	return below.finish();
}

// Rectangles of the part of TREE below ROOT: x as a share of the width. Children by weight, or as ORDER says.
function layoutTree(tree, root, leastShare, heavy, nameOf) {
	const rects = [], stack = [[root, 0, 1, 0]], whole = tree.totals[root] || 1;
	let deepest = 0;
	while (stack.length) {
		const [node, x0, x1, depth] = stack.pop();
		rects.push({ node, x0, x1, depth });
		deepest = Math.max(deepest, depth);
		let x = x0;
		const kids = (tree.kids[node] || []).slice();
		kids.sort(heavy ? (p, q) => tree.totals[q] - tree.totals[p] : (p, q) => (nameOf(tree.names[p]) < nameOf(tree.names[q]) ? -1 : 1));
		for (const kid of kids) {
			const width = tree.totals[kid] / whole;
			if (width >= leastShare) stack.push([kid, x, x + width, depth + 1]);
			x += width;
		}
	}
	return { rects, deepest };
}

// How much of the tree below ROOT lies in or under functions that match: what is below a match is not counted twice.
function matchedShare(tree, root, matches) {
	let sum = 0;
	const stack = [root];
	while (stack.length) {
		const node = stack.pop();
		if (node && matches(tree.names[node])) sum += tree.totals[node];
		else if (tree.kids[node]) stack.push(...tree.kids[node]);
	}
	return tree.totals[root] ? sum / tree.totals[root] : 0;
}

// Self, total and calls of each name in TREE; recursion counts once in the total.
function tableOf(tree) {
	const rows = new Map();
	for (let i = 1; i < tree.names.length; i++) {
		let row = rows.get(tree.names[i]);
		if (!row) rows.set(tree.names[i], (row = { name: tree.names[i], self: 0, total: 0, calls: 0 }));
		row.self += tree.selfs[i];
		row.calls += tree.calls[i];
		if (!hasAbove(tree, i, tree.names[i])) row.total += tree.totals[i];
	}
	return [...rows.values()];
}
