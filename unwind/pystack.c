/*
 * The walk over interpreters, thread states and frames of a CPython process, from its memory while it runs:
 *
 *   _PyRuntime → interpreter → thread state → frame → frame → … → end
 *                    ↓ next        ↓ next       ↓ code
 *
 * Every pointer may be stale by the time it is followed. A frame counts only when it leads to a code object, a walk only when it
 * comes to the proper end without meeting itself; else it is dropped and counted. Frames of one thread are pyframes.c's, names of code pycode.c's.
 */
#include "abi/cpython.h"
#include "base/clock.h"
#include "unwind/pyreader.h"

#include <stdlib.h>
#include <string.h>

enum {
	INTERPRETERS_MAX = 256, THREADS_MAX = 65536,
	TRIES = 5, /* a thread that calls and returns all the time tears one walk in 20 */
};

/* ---- what the process says of its own layout, 3.13 and later ---- */

struct claim {
	const char *name;
	int says; /* where in _Py_DebugOffsets */
	int known;
};

static int check_claims(const struct pyreader *reader, uint32_t python_hex, struct error *err)
{
	const struct cpython_layout *layout = reader->walk.layout;
	const struct claim claims[] = {
#define CLAIM(field) { #field, layout->debug_##field, layout->field }
		{ "runtime_interp_head", layout->debug_interp_head, layout->runtime_interp_head },
		CLAIM(interp_next), CLAIM(interp_threads), CLAIM(interp_modules), CLAIM(interp_gil), CLAIM(tstate_size), CLAIM(tstate_next), CLAIM(tstate_frame),
		CLAIM(tstate_base_frame), CLAIM(tstate_thread_id), CLAIM(tstate_native_id), CLAIM(frame_previous), CLAIM(frame_code),
		CLAIM(frame_owner), CLAIM(code_name), CLAIM(code_qualname), CLAIM(code_filename),
#undef CLAIM
	};
	unsigned char offsets[1024];

	if ((size_t)layout->debug_size > sizeof offsets || reader_read(reader, reader->walk.runtime, offsets, (size_t)layout->debug_size) < 0)
		return fail(err, ERR_NOT_PYTHON, "the interpreter's state at 0x%llx cannot be read", (unsigned long long)reader->walk.runtime);
	if (memcmp(offsets, "xdebugpy", 8) != 0)
		return fail(err, ERR_NOT_PYTHON, "there is no interpreter at 0x%llx", (unsigned long long)reader->walk.runtime);
	if (word_at(offsets, 8) != python_hex)
		return fail(err, ERR_PYTHON_VERSION, "the interpreter calls itself version 0x%llx, not 0x%x", (unsigned long long)word_at(offsets, 8), python_hex);
	if (word_at(offsets, layout->debug_free_threaded) != 0)
		return fail(err, ERR_FREE_THREADED, "the interpreter is a free-threaded build");
	for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++)
		if (claims[i].says >= 0 && word_at(offsets, claims[i].says) != (uint64_t)claims[i].known)
			return fail(err, ERR_PYTHON_VERSION, "this build of Python 3.%d has another layout: %s is %llu, not %d", reader->walk.minor, claims[i].name,
			            (unsigned long long)word_at(offsets, claims[i].says), claims[i].known);
	return 0;
}

int pyreader_open(const struct remote_memory *memory, uint64_t runtime, uint32_t python_hex, uint32_t tid_offset, struct pyreader **out, struct error *err)
{
	int minor = (int)(python_hex >> 16 & 0xff);
	const struct cpython_layout *layout = python_hex >> 24 == 3 ? cpython_layout(minor) : NULL;
	struct pyreader *reader;
	uint64_t head;

	if (!layout)
		return fail(err, ERR_PYTHON_VERSION, "Python %u.%d", python_hex >> 24, minor);
	reader = calloc(1, sizeof *reader);
	if (!reader)
		return fail(err, ERR_MEMORY, "reading Python stacks");
	reader->walk.memory = *memory;
	reader->walk.runtime = runtime;
	reader->walk.minor = minor;
	reader->walk.layout = layout;
	reader->walk.tid_offset = tid_offset;
	pages_init(&reader->walk.pages, memory);
	if (layout->debug_size >= 0 && check_claims(reader, python_hex, err) < 0)
		goto fail;
	if (reader_word(reader, runtime + (uint64_t)layout->runtime_interp_head, &head) < 0) {
		fail(err, ERR_NOT_PYTHON, "the interpreter's state at 0x%llx cannot be read", (unsigned long long)runtime);
		goto fail;
	}
	*out = reader;
	return 0;
fail:
	free(reader);
	return -1;
}

void pyreader_close(struct pyreader *reader)
{
	free(reader);
}

uint64_t pyreader_torn(const struct pyreader *reader)
{
	return reader->torn;
}

/* ---- one thread ---- */

int reader_finish(struct pyreader *reader, const struct pyframes *frames, struct pystack *out)
{
	uint64_t now_ns = clock_monotonic_ns(), recent_ns = now_ns > KNOWN_NS ? now_ns - KNOWN_NS : 0;

	out->tid = frames->tid;
	out->holds_gil = frames->holds_gil;
	out->cut = frames->cut;
	out->count = 0;
	for (uint32_t i = 0; i < frames->count; i++) {
		/* Of functions that are made, run and freed one after the other each has the address of the one before: the innermost is looked at each time. */
		const struct known_code *code = reader_code_since(reader, frames->frames[i].code, i == 0 ? now_ns : recent_ns);

		if (!code)
			return -1;
		if (code->internal)
			continue;
		if (out->count == PYSTACK_FRAMES_MAX) {
			out->cut = true;
			break;
		}
		out->code[out->count] = frames->frames[i].code;
		out->stamp[out->count] = code->stamp;
		out->entry[out->count] = frames->frames[i].entry;
		out->instr[out->count] = frames->frames[i].instr;
		out->frame[out->count++] = frames->frames[i].address;
	}
	return 0;
}

static enum thread_found read_thread(struct pyreader *reader, uint64_t addr, uint64_t interp, uint64_t *next)
{
	enum thread_found found = walk_thread(&reader->walk, addr, (struct thread_expected){ .interp = interp }, next);

	if (found != THREAD_READ && found != THREAD_MOVED)
		return found;
	if (reader_finish(reader, &reader->walk.frames, &reader->stack) < 0)
		return THREAD_TORN;
	return reader->stack.count ? found : THREAD_IDLE;
}

/* ---- all threads ---- */

static int interpreter_threads(struct pyreader *reader, uint64_t interp, int (*each)(void *context, uint64_t tstate, uint64_t interp, uint64_t *next), void *context)
{
	uint64_t thread, next, checkpoint = 0;
	int count = 0;

	if (reader_word(reader, interp + (uint64_t)reader->walk.layout->interp_threads, &thread) < 0)
		return -1;
	for (uint32_t seen = 0; thread && seen < THREADS_MAX && thread != checkpoint; seen++, thread = next) {
		next = 0;
		count += each(context, thread, interp, &next);
		/* The list may have been changed into a circle under our eyes: stop at a thread that was met before. */
		if ((seen & (seen + 1)) == 0)
			checkpoint = thread;
	}
	return count;
}

int reader_threads(struct pyreader *reader, int (*each)(void *context, uint64_t tstate, uint64_t interp, uint64_t *next), void *context)
{
	const struct cpython_layout *layout = reader->walk.layout;
	uint64_t interp;
	int count = 0;

	if (reader_word(reader, reader->walk.runtime + (uint64_t)layout->runtime_interp_head, &interp) < 0)
		return -1;
	for (int seen = 0; interp && seen < INTERPRETERS_MAX; seen++) {
		int found = address_plausible(interp) ? interpreter_threads(reader, interp, each, context) : -1;

		if (found < 0)
			return seen ? count : -1;
		count += found;
		if (reader_word(reader, interp + (uint64_t)layout->interp_next, &interp) < 0)
			break;
	}
	return count;
}

struct every_stack {
	struct pyreader *reader;
	void (*each)(void *context, const struct pystack *stack);
	void *context;
};

static int tell_stack(void *context, uint64_t tstate, uint64_t interp, uint64_t *next)
{
	struct every_stack *every = context;
	enum thread_found found = THREAD_TORN;

	/* One that moves all the time is taken as it was read last. */
	for (int tries = 0; tries < TRIES && (found == THREAD_TORN || found == THREAD_MOVED); tries++)
		found = read_thread(every->reader, tstate, interp, next);
	if (found == THREAD_TORN)
		every->reader->torn++;
	if (found != THREAD_READ && found != THREAD_MOVED)
		return 0;
	every->each(every->context, &every->reader->stack);
	return 1;
}

int pyreader_stacks(struct pyreader *reader, void (*each)(void *context, const struct pystack *stack), void *context)
{
	struct every_stack every = { reader, each, context };

	return reader_threads(reader, tell_stack, &every);
}
