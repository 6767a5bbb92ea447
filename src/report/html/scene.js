// What there is to show, by name and kind, and in which order it stands on the time line.

const KIND_PYTHON = 0, KIND_C = 1, KIND_NATIVE = 2, KIND_UNKNOWN = 3, KIND_THREAD = 4, KIND_KERNEL = 5, KIND_COPY = 6, KIND_API = 7, KIND_SCOPE = 8, KIND_SYNC = 9, KIND_SYSCALL = 10, KIND_IMPORT = 11, KIND_COLLECTION = 12;
const KIND_WORDS = ["Python function", "C function", "native function", "unknown", "thread", "kernel", "copy", "CUDA call", "scope", "synchronization", "system call", "import", "collection of garbage"];
// Tints after Okabe and Ito, light enough for dark letters. Neighbours of the same file share one.
const KIND_TINTS = [
	["#8ec5e8", "#7db7de", "#a3d0ee", "#93bfe6"], ["#f0b74a", "#f3c56d", "#e9a93a"], ["#7fd1b9", "#94dac6", "#6bc5ab"], ["#cfd6dd"], ["#b8c4d0"],
	["#4fbf9b", "#66c9a9", "#83d4bb", "#3bb38c"], ["#e6a5c9", "#dd92bc"], ["#f2a07b", "#eb8f66", "#f5b293"], ["#f4e98a", "#efe27a"], ["#d7b3e0"], ["#c9cfa5"], ["#d9c8a0"], ["#e8927c"],
];
const COPY_WORDS = ["host → device", "device → host", "device → device"];

function hashText(text) {
	let hash = 2166136261;
	for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
	return hash >>> 0;
}

// MODEL is the page's JSON, DATA what readRecords() made of the columns.
function makeWorld(model, data) {
	const functions = model.functions.map(([name, file, line, kind, waiter]) => ({ name: name || "(no name)", file, line, kind: /importlib/.test(file) ? KIND_IMPORT : kind, waiter: Boolean(waiter) }));
	const world = {
		duration: Math.max(1, model.duration_ns), functions, rows: data.rows, tree: data.tree, labels: model.labels, states: model.states, causes: model.causes || [], callClasses: model.call_classes || [], labelClasses: model.label_classes || "", thinned: model.thinned, nodesLeftOut: model.nodes_left_out,
		windows: model.windows, slots: model.slots, loads: model.loads, devices: model.devices, mergeThreads: false,
		threads: model.threads.map(([tid, name, cpu, first, last], index) => ({ tid, name, cpu, first, last, index })),
	};
	world.otherName = functions.length;
	world.unlaunchedName = functions.length + 1;
	world.threadBase = functions.length + 2;
	world.labelBase = world.threadBase + world.threads.length + 1;
	for (const row of world.rows) if (row.group === CALLS) for (let i = 0; i < row.count; i++) if (row.names[i] >= functions.length) row.names[i] = world.otherName;
	world.lanes = makeLanes(world.rows);
	world.launches = () => world.launchMap || (world.launchMap = mapCorrelations(world.rows, [API]));
	world.lanesOf = (thread) => (world.laneMap || (world.laneMap = groupBy(world.lanes, (lane) => lane.thread))).get(thread) || [];
	world.works = () => world.workMap || (world.workMap = mapCorrelations(world.rows, [STREAM, COPIES]));
	return world;
}

// The calls of one lane: rows by depth. A depth that is missing ends it.
function makeLanes(rows) {
	const lanes = new Map();
	for (const row of rows) {
		if (row.group !== CALLS) continue;
		if (!lanes.has(row.b)) lanes.set(row.b, { thread: row.a, rows: [] });
		lanes.get(row.b).rows.push(row);
	}
	for (const lane of lanes.values()) lane.rows.sort((x, y) => x.depth - y.depth);
	return [...lanes.values()];
}

function groupBy(items, keyOf) {
	const groups = new Map();
	for (const item of items) {
		if (!groups.has(keyOf(item))) groups.set(keyOf(item), []);
		groups.get(keyOf(item)).push(item);
	}
	return groups;
}

function mapCorrelations(rows, groups) {
	const map = new Map();
	for (const row of rows) if (groups.includes(row.group)) for (let i = 0; i < row.count; i++) if (row.correlations && row.correlations[i]) map.set(row.correlations[i], { row, index: i });
	return map;
}

function threadWord(world, thread) {
	return world.threads[thread] ? world.threads[thread].name + " (" + world.threads[thread].tid + ")" : "no thread";
}

// The name that stands for NAME in a tree, whatever it is.
function treeName(world, name) {
	if (name < 0) return "all";
	if (name < world.functions.length) return world.functions[name].name;
	if (name === world.otherName) return "(other)";
	if (name === world.unlaunchedName) return "(launched by nobody known)";
	if (name < world.labelBase) return threadWord(world, name - world.threadBase);
	return world.labels[name - world.labelBase] || "(no name)";
}

function treeKind(world, name) {
	if (name < 0) return KIND_THREAD;
	if (name < world.functions.length) return world.functions[name].kind;
	if (name <= world.unlaunchedName) return KIND_UNKNOWN;
	return name < world.labelBase ? KIND_THREAD : /^Mem(cpy|set)/.test(world.labels[name - world.labelBase]) ? KIND_COPY : KIND_KERNEL;
}

function treePlace(world, name) {
	const known = name >= 0 && name < world.functions.length ? world.functions[name] : null;
	return known && known.file ? known.file + (known.line ? ":" + known.line : "") : "";
}

// What a call of the GPU's runtime is for, as index of callClasses.
const CALL_SYNC = 3, CALL_COPY = 4;
function callClass(world, label) {
	return Number(world.labelClasses[label] || 0);
}

function isWaiter(world, name) {
	return name >= 0 && name < world.functions.length && world.functions[name].waiter;
}

const GROUP_KINDS = { [SCOPES]: KIND_SCOPE, [SYSCALLS]: KIND_SYSCALL, [API]: KIND_API, [STREAM]: KIND_KERNEL, [COPIES]: KIND_COPY, [SYNC]: KIND_SYNC, [MARKS]: KIND_SCOPE, [COLLECTIONS]: KIND_COLLECTION };

function sliceKind(world, row, index) {
	return row.group === CALLS ? treeKind(world, row.names[index]) : GROUP_KINDS[row.group];
}

function sliceName(world, row, index) {
	if (row.group === CALLS) return treeName(world, row.names[index]);
	if (row.group === STATES) return (world.states[row.names[index]] || { label: "unknown" }).label;
	if (row.group === COPIES) return COPY_WORDS[row.b] + (row.bytes ? ", " + formatBytes(row.bytes[index]) : "");
	return world.labels[row.names[index]] || "(no name)";
}

function tintOf(kind, key) {
	const tints = KIND_TINTS[kind] || KIND_TINTS[KIND_UNKNOWN];
	return tints[hashText(key) % tints.length];
}

// Colours of names, as CSS and as one pixel; made at their first use.
class Palette {
	constructor(world) {
		this.world = world;
		this.cache = new Map();
	}
	css(kind, name) {
		const key = kind * 8388608 + name;
		let css = this.cache.get(key);
		if (!css) {
			const known = this.world.functions[name];
			css = tintOf(kind, kind === KIND_PYTHON && known ? known.file : String(name));
			this.cache.set(key, css);
		}
		return css;
	}
}

function pixelOf(css) {
	const rgb = parseInt(css.slice(1), 16);
	return (255 << 24 | (rgb & 255) << 16 | (rgb >> 8 & 255) << 8 | rgb >> 16) >>> 0;
}

// A with SHARE of B: red and blue in one multiplication, green in another.
function mixPixels(a, b, share) {
	const part = Math.round(share * 256), rest = 256 - part;
	return (((a & 0xff00ff) * rest + (b & 0xff00ff) * part >>> 8 & 0xff00ff) | ((a >>> 8 & 255) * rest + (b >>> 8 & 255) * part & 0xff00) | 0xff000000) >>> 0;
}

function streamWord(row) {
	return "stream " + row.b + row.owner;
}

// The bands of the time line from top to bottom: {kind, y, height, label, row …}. OPEN: threads that show all their rows.
function makeBands(world, open) {
	const bands = [], FEW = 10;
	let y = 0;
	const add = (band) => {
		bands.push({ ...band, y });
		y += band.height;
	};
	const rowsOf = (group, a) => world.rows.filter((row) => row.group === group && (a === undefined || row.a === a)).sort((p, q) => p.b - q.b || (p.owner === q.owner ? p.depth - q.depth : p.owner < q.owner ? -1 : 1));
	const addRows = (rows, height, label) => rows.forEach((row, i) => add({ kind: "row", row, height, label: i ? "" : label(row) }));

	const scopes = rowsOf(SCOPES);
	if (scopes.length) {
		add({ kind: "title", label: "Requests", height: 20, key: "requests" });
		scopes.slice(0, open.has("requests") ? 400 : 12).forEach((row) => add({ kind: "row", row, height: 16, label: threadWord(world, row.a) }));
	}
	const order = world.threads.slice().sort((p, q) => q.cpu - p.cpu || p.tid - q.tid).map((thread) => thread.index);
	if (world.rows.some((row) => [CALLS, API, SYSCALLS].includes(row.group) && !world.threads[row.a])) order.push(4294967295);
	for (const index of order) {
		const calls = world.lanes.filter((lane) => lane.thread === index).flatMap((lane) => lane.rows), api = rowsOf(API, index), calls_shown = open.has(index) ? calls : calls.slice(0, FEW);
		const states = world.rows.find((row) => row.group === STATES && row.a === index), marks = rowsOf(MARKS, index), system = rowsOf(SYSCALLS, index), collections = rowsOf(COLLECTIONS, index);
		if (!calls.length && !api.length && !states && !system.length && !collections.length && !marks.length) continue;
		add({ kind: "thread", label: threadWord(world, index), height: 22, thread: index, key: index, row: states || null, marks, more: calls.length > FEW });
		addRows(calls_shown, 15, () => "");
		addRows(system.slice(0, 4), 13, () => "system calls");
		addRows(collections.slice(0, 4), 13, () => "garbage");
		addRows(api.slice(0, 4), 15, () => "CUDA API");
		add({ kind: "space", height: 5, label: "" });
	}
	if (world.rows.some((row) => row.group === STATES || row.group === GIL)) add({ kind: "gil", label: "GIL", height: 34 });
	for (const device of world.devices) {
		const streams = rowsOf(STREAM, device), copies = rowsOf(COPIES, device), syncs = rowsOf(SYNC, device);
		if (!streams.length && !copies.length && !syncs.length) continue;
		add({ kind: "device", label: "GPU " + device, height: 30, device, streams: streams.concat(copies) });
		addRows(streams, 16, streamWord);
		streams.forEach((row, i) => { bands[bands.length - streams.length + i].label = row.depth ? "" : streamWord(row); });
		copies.forEach((row) => add({ kind: "copies", row, height: 24, label: row.depth ? "" : COPY_WORDS[row.b], fastest: fastestCopy(row) }));
		syncs.slice(0, 6).forEach((row) => add({ kind: "row", row, height: 13, label: row.depth ? "" : "waits, " + streamWord(row) }));
		add({ kind: "space", height: 5, label: "" });
	}
	if (world.slots.length > 1) add({ kind: "loads", label: "threads", height: 46 });
	return { bands, height: y };
}

function fastestCopy(row) {
	let fastest = 0;
	for (let i = 0; i < row.count; i++) fastest = Math.max(fastest, row.bytes ? row.bytes[i] / Math.max(1, row.ends[i] - row.starts[i]) : 0);
	return fastest;
}
