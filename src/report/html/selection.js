// What lies in a stretch of the capture, weighed for tables. Nothing here touches the page.

// EACH(index, how much of the slice lies in [from, to]) for the slices of ROW that do.
function eachInside(row, from, to, each) {
	for (let i = row.find(from); i < row.count && row.starts[i] < to; i++) each(i, Math.min(row.ends[i], to) - Math.max(row.starts[i], from));
}

function getOrMake(map, key, make) {
	let value = map.get(key);
	if (value === undefined) map.set(key, (value = make()));
	return value;
}

// States of each thread, by number of the state, and how many of its calls began.
function threadsInside(world, from, to) {
	const threads = new Map(), of = (thread) => getOrMake(threads, thread, () => ({ thread, states: new Float64Array(world.states.length), calls: 0 }));
	for (const row of world.rows) {
		if (!world.threads[row.a]) continue;
		if (row.group === STATES) eachInside(row, from, to, (i, ns) => { of(row.a).states[row.names[i]] += ns; });
		else if (row.group === CALLS && row.find(from) < firstAfter(row.starts, row.count, to)) of(row.a).calls += firstAfter(row.starts, row.count, Math.ceil(to) - 0.5) - firstAfter(row.starts, row.count, Math.ceil(from) - 0.5); // starts are whole ns
	}
	const rows = [...threads.values()].map((row) => ({ ...row, cpu: row.states[1] + row.states[2] }));
	return rows.sort((p, q) => q.cpu - p.cpu || q.calls - p.calls || p.thread - q.thread);
}

// Kernels by name, copies by direction: how many, how long together and the longest, whole; bytes of copies.
function workInside(world, from, to) {
	const kernels = new Map(), copies = new Map();
	for (const row of world.rows) {
		if (row.group !== STREAM && row.group !== COPIES) continue;
		eachInside(row, from, to, (i, ns) => {
			const key = row.group === STREAM ? row.names[i] : row.b, work = getOrMake(row.group === STREAM ? kernels : copies, key, () => ({ key, count: 0, time: 0, longest: 0, bytes: 0 }));
			work.count++;
			work.time += ns;
			work.longest = Math.max(work.longest, row.ends[i] - row.starts[i]);
			work.bytes += row.bytes ? row.bytes[i] : 0;
		});
	}
	const sorted = (map) => [...map.values()].sort((p, q) => q.time - p.time || p.key - q.key);
	return { kernels: sorted(kernels), copies: sorted(copies) };
}

// Requests of which any part lies inside, by name, with their whole lengths, sorted.
function requestsInside(world, from, to) {
	const names = new Map();
	for (const row of world.rows) if (row.group === SCOPES) eachInside(row, from, to, (i) => getOrMake(names, row.names[i], () => []).push(row.ends[i] - row.starts[i]));
	return [...names].map(([name, lengths]) => ({ name, lengths: Float64Array.from(lengths).sort() })).sort((p, q) => q.lengths.length - p.lengths.length || p.name - q.name);
}

// Gaps of devices by cause and by the function in which the thread stood that asked for the work after them: how much of each lies inside, their parts whole, and the longest one. A gap that the selection
// cuts counts by how much of it lies inside. DEVICES: what each idled, by number of the cause.
function idleInside(world, from, to) {
	const stacks = new Map(), devices = new Map(world.devices.map((device) => [device, new Float64Array(world.causes.length)]));
	for (const row of world.rows) if (row.group === IDLE) eachInside(row, from, to, (i, ns) => {
		const length = row.ends[i] - row.starts[i], time = row.bytes[i] * ns / length, stack = getOrMake(stacks, row.b + "." + row.names[i], () => ({ cause: row.b, name: row.names[i], time: 0, parts: [], longest: 0, at: null }));
		stack.time += time;
		stack.parts.push(row.bytes[i]);
		if (row.bytes[i] > stack.longest) {
			stack.longest = row.bytes[i];
			stack.at = [row.starts[i], row.starts[i] + row.bytes[i]];
		}
		getOrMake(devices, row.a, () => new Float64Array(world.causes.length))[row.b] += time;
	});
	for (const stack of stacks.values()) stack.parts.sort((p, q) => p - q);
	return { devices, stacks: [...stacks.values()].sort((p, q) => q.time - p.time || p.cause - q.cause || p.name - q.name) };
}

// The innermost Python function of THREAD at the moment AT, else the innermost one that is not the runtime's own; -1: no call was seen.
function callerAt(world, thread, at) {
	const stack = stackAt(world, thread, at).reverse(), python = stack.find((name) => treeKind(world, name) === KIND_PYTHON || treeKind(world, name) === KIND_IMPORT);
	if (python !== undefined) return python;
	const other = stack.find((name) => !/^(cuda|hip|cu[A-Z])/.test(treeName(world, name)));
	return other === undefined ? -1 : other;
}

// What the device did for each call, by its correlation: how long, bytes of copies, and when the last copy was done.
function workByCall(world) {
	if (world.workOfCall) return world.workOfCall;
	world.workOfCall = new Map();
	for (const row of world.rows) {
		if (row.group !== STREAM && row.group !== COPIES) continue;
		for (let i = 0; i < row.count; i++) {
			if (!row.correlations || !row.correlations[i]) continue;
			const work = getOrMake(world.workOfCall, row.correlations[i], () => ({ time: 0, bytes: 0, copied: Infinity }));
			work.time += row.ends[i] - row.starts[i];
			if (row.group !== COPIES) continue;
			work.bytes += row.bytes[i];
			work.copied = Math.min(work.copied, row.ends[i]);
		}
	}
	return world.workOfCall;
}

// Calls of the GPU's runtime by what they are for and by the function that made them; host time as it lies inside, the device's work whole.
function sitesInside(world, from, to) {
	const sites = new Map(), works = workByCall(world), launches = world.launches();
	for (const row of world.rows) if (row.group === API) eachInside(row, from, to, (i, ns) => {
		const kind = callClass(world, row.names[i]), name = callerAt(world, row.a, row.starts[i]), site = getOrMake(sites, kind + "." + name, () => ({ kind, name, count: 0, time: 0, blocked: 0, gpu: 0, bytes: 0 }));
		const last = row.correlations[i] && launches.get(row.correlations[i]), work = last && last.row === row && last.index === i ? works.get(row.correlations[i]) : null; // the last call of a correlation counts
		site.count++;
		site.time += ns;
		site.blocked += kind === CALL_SYNC || (work && work.copied <= row.ends[i]) ? ns : 0;
		site.gpu += work ? work.time : 0;
		site.bytes += work ? work.bytes : 0;
	});
	return [...sites.values()].sort((p, q) => q.time - p.time || p.kind - q.kind || p.name - q.name);
}

// Who waited for the GIL, and for whom; -1: nobody knows who held it.
function gilInside(world, from, to) {
	const waits = new Map(), add = (waiter, holder, ns) => { getOrMake(waits, waiter + "." + holder, () => ({ waiter, holder, time: 0 })).time += ns; };
	for (const row of world.rows) {
		if (row.group === GIL) eachInside(row, from, to, (i, ns) => {
			add(row.a, row.names[i], ns);
			add(row.a, -1, -ns); // told once more by the thread's state
		});
		else if (row.group === STATES) eachInside(row, from, to, (i, ns) => { if (row.names[i] === STATE_GIL_WAIT) add(row.a, -1, ns); });
	}
	return [...waits.values()].filter((wait) => wait.time > 0).sort((p, q) => q.time - p.time || p.waiter - q.waiter || p.holder - q.holder);
}

// Functions of all threads together.
function functionsInside(world, from, to) {
	const merged = world.mergeThreads;
	world.mergeThreads = true;
	const tree = selectionTree(world, from, to, "wall", -1);
	world.mergeThreads = merged;
	return { sum: tree.totals[0] || 1, rows: tableOf(tree).filter((row) => row.self > 0 || row.total > 0).sort((p, q) => q.self - p.self) };
}

// The longest slice of a call of each function, by number: { row, index }, or nothing.
function longestCalls(world) {
	const best = [], longest = new Float64Array(world.functions.length + 1).fill(-1);
	for (const row of world.rows) {
		if (row.group !== CALLS) continue;
		for (let i = 0; i < row.count; i++) {
			const name = row.names[i], length = row.ends[i] - row.starts[i];
			if (!(length > longest[name])) continue;
			longest[name] = length;
			best[name] = { row, index: i };
		}
	}
	return best;
}
