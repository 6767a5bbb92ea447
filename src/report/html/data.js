// From the page's data blocks to typed arrays. What html_pack.c, html_slices.c and html_model.c wrote.

const PACK_END = 0, PACK_SLICES = 1, PACK_TREE = 2, PACK_DIFF = 3;
const CALLS = 0, SCOPES = 1, SYSCALLS = 2, API = 3, STREAM = 4, COPIES = 5, SYNC = 6, STATES = 7, GIL = 8, MARKS = 9, IDLE = 10, COLLECTIONS = 11;
const STATE_GIL_WAIT = 3;
const MIP = 16; // slices in a block of the next level

function bytesOfBase64(text) {
	if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
	const binary = atob(text), bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
	return bytes;
}

async function gunzip(bytes) {
	if (typeof DecompressionStream === "undefined") throw new Error("this browser cannot unpack the data (it has no DecompressionStream)");
	return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

// LEB128 numbers, one after another. Beyond 2^53 they lose their last digits, which no time here has.
class Numbers {
	constructor(bytes) {
		this.bytes = bytes;
		this.at = 0;
	}
	next() {
		const bytes = this.bytes;
		let at = this.at, byte = bytes[at++];
		if (byte === undefined) throw new Error("the data end too early");
		let value = byte & 127, scale = 128;
		while (byte & 128) {
			byte = bytes[at++];
			if (byte === undefined) throw new Error("the data end too early");
			value += (byte & 127) * scale;
			scale *= 128;
		}
		this.at = at;
		return value;
	}
	signed() {
		const value = this.next(), half = Math.floor(value / 2);
		return value % 2 ? -half - 1 : half;
	}
}

class Row {
	constructor(group, a, b, depth, owner) {
		this.group = group;
		this.a = a;
		this.b = b;
		this.depth = depth;
		this.owner = owner || ""; // of a stream that several processes have
		this.count = 0;
		this.parts = [];
		this.last = 0;
	}
	read(numbers, count, mask) {
		const part = { starts: new Float64Array(count), ends: new Float64Array(count), names: new Uint32Array(count), correlations: null, bytes: null };
		for (let i = 0; i < count; i++) part.starts[i] = numbers.signed();
		for (let i = 0; i < count; i++) {
			part.starts[i] += this.last;
			part.ends[i] = this.last = part.starts[i] + numbers.next();
		}
		for (let i = 0; i < count; i++) part.names[i] = numbers.next();
		if (mask & 1) {
			part.correlations = new Float64Array(count);
			for (let i = 0; i < count; i++) part.correlations[i] = numbers.next();
		}
		if (mask & 2) {
			part.bytes = new Float64Array(count);
			for (let i = 0; i < count; i++) part.bytes[i] = numbers.next();
		}
		this.parts.push(part);
		this.count += count;
	}
	// One array of each column, in order of time.
	finish() {
		for (const [key, Kind] of [["starts", Float64Array], ["ends", Float64Array], ["names", Uint32Array], ["correlations", Float64Array], ["bytes", Float64Array]]) {
			if (!this.parts.length || !this.parts[0][key]) continue;
			if (this.parts.length === 1) {
				this[key] = this.parts[0][key];
				continue;
			}
			this[key] = new Kind(this.count);
			let at = 0;
			for (const part of this.parts) {
				this[key].set(part[key], at);
				at += part[key].length;
			}
		}
		this.parts = null;
		for (let i = 1; i < this.count; i++) if (this.starts[i] < this.starts[i - 1]) {
			const order = Array.from({ length: this.count }, (_, j) => j).sort((x, y) => this.starts[x] - this.starts[y] || this.ends[y] - this.ends[x]);
			this.pick(order);
			break;
		}
		return this;
	}
	pick(order) {
		for (const key of ["starts", "ends", "names", "correlations", "bytes"]) if (this[key]) this[key] = this[key].constructor.from(order, (i) => this[key][i]);
		this.count = order.length;
	}
	// Slices that overlap go to rows of their own: the first one on which nothing is in the way.
	split() {
		const lasts = [], rows = [];
		let clean = true;
		for (let i = 1; i < this.count && clean; i++) clean = this.starts[i] >= this.ends[i - 1];
		if (clean) return [this];
		for (let i = 0; i < this.count; i++) {
			let row = lasts.findIndex((end) => end <= this.starts[i]);
			if (row < 0) {
				row = lasts.length < 64 ? lasts.length : 63;
				rows[row] = rows[row] || [];
			}
			lasts[row] = Math.max(lasts[row] || 0, this.ends[i]);
			rows[row].push(i);
		}
		return rows.map((order, number) => {
			const part = new Row(this.group, this.a, this.b, number, this.owner);
			for (const key of ["starts", "ends", "names", "correlations", "bytes"]) part[key] = this[key];
			part.pick(order);
			return part;
		});
	}
	// Levels of blocks of MIP, MIP², … slices: where they begin and end, the longest one, and how much of the time they fill.
	buildMips() {
		this.mips = [];
		let below = null, count = this.count;
		while (count > 2 * MIP) {
			const size = Math.ceil(count / MIP), level = { starts: new Float64Array(size), ends: new Float64Array(size), longest: new Uint32Array(size), filled: new Float64Array(size), count: size };
			for (let i = 0; i < size; i++) {
				const from = i * MIP, to = Math.min(count, from + MIP);
				let filled = 0, best = -1, end = 0;
				level.starts[i] = below ? below.starts[from] : this.starts[from];
				for (let j = from; j < to; j++) {
					const slice = below ? below.longest[j] : j, length = this.ends[slice] - this.starts[slice], last = below ? below.ends[j] : this.ends[j];
					filled += below ? below.filled[j] : length;
					end = last > end ? last : end;
					if (length > best) {
						best = length;
						level.longest[i] = slice;
					}
				}
				level.ends[i] = end;
				level.filled[i] = filled;
			}
			this.mips.push(level);
			below = level;
			count = size;
		}
		return this;
	}
	// The first slice that ends after AT.
	find(at) {
		return firstAfter(this.ends, this.count, at);
	}
	// The slice at the moment AT, or -1.
	at(at) {
		const i = this.find(at);
		return i < this.count && this.starts[i] <= at ? i : -1;
	}
}

function firstAfter(ends, count, at) {
	let low = 0, high = count;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (ends[middle] <= at) low = middle + 1;
		else high = middle;
	}
	return low;
}

// The call tree of the whole capture. Node 0 is above all threads.
function readTree(numbers) {
	const count = numbers.next(), tree = { count };
	for (const [key, Kind] of [["parents", Int32Array], ["functions", Int32Array], ["threads", Int32Array], ["selfs", Float64Array], ["cpus", Float64Array], ["calls", Float64Array]]) {
		tree[key] = new Kind(count);
		for (let i = 0; i < count; i++) tree[key][i] = numbers.next() - (Kind === Int32Array ? 1 : 0);
	}
	return tree;
}

function readRecords(bytes, model) {
	const rows = model.rows.map((row) => new Row(...row)), numbers = new Numbers(bytes);
	let tree = null;
	for (;;) {
		const record = numbers.next();
		if (record === PACK_END) break;
		if (record === PACK_TREE) tree = readTree(numbers);
		else if (record === PACK_SLICES) {
			const row = numbers.next(), count = numbers.next(), mask = numbers.next();
			if (!rows[row]) throw new Error("slices of a row that is not there");
			rows[row].read(numbers, count, mask);
		} else throw new Error("data of an unknown kind");
	}
	const all = [];
	for (const row of rows) if (row.count) all.push(...(row.group === CALLS ? [row.finish()] : row.finish().split()));
	for (const row of all) row.buildMips();
	return { rows: all, tree };
}
