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
