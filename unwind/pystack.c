/*
 * The walk over interpreters, thread states and frames of a CPython process, from its memory while it runs:
 *
 *   _PyRuntime → interpreter → thread state → frame → frame → … → end
 *                    ↓ next        ↓ next       ↓ code
 *
 * Every pointer may be stale by the time it is followed. A frame counts only when it leads to a code object, a walk only when it
 * comes to the proper end without meeting itself; else it is dropped and counted. Names of code are pycode.c's.
 */
#include "abi/cpython.h"
#include "unwind/pyreader.h"

#include <stdlib.h>
#include <string.h>

enum {
	INTERPRETERS_MAX = 256, THREADS_MAX = 65536,
	TSTATE_BYTES_MAX = 1024, FRAME_BYTES_MAX = 128,
	STEPS_MAX = FRAMES_SEEN / 2, /* frames of all kinds in one walk */
	GIL_BYTES = 24,
	TRIES = 5, /* a thread that calls and returns all the time tears one walk in 20 */
};

/* ---- reading ---- */

int reader_read(const struct pyreader *reader, uint64_t addr, void *buffer, size_t size)
{
	return reader->memory.read(reader->memory.context, addr, buffer, size);
}

int reader_word(const struct pyreader *reader, uint64_t addr, uint64_t *out)
{
	return reader_read(reader, addr, out, sizeof *out);
}

bool reader_plausible(uint64_t addr)
{
	return addr >= 4096 && addr < 1ull << 47 && addr % 8 == 0;
}

uint64_t word_at(const unsigned char *bytes, int offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof value);
	return value;
}

uint32_t half_at(const unsigned char *bytes, int offset)
{
	uint32_t value;

	memcpy(&value, bytes + offset, sizeof value);
	return value;
}

/* ---- what the process says of its own layout, 3.13 and later ---- */

struct claim {
	const char *name;
	int says; /* where in _Py_DebugOffsets */
	int known;
};

static int check_claims(const struct pyreader *reader, uint32_t python_hex, struct error *err)
{
	const struct cpython_layout *layout = reader->layout;
	const struct claim claims[] = {
#define CLAIM(field) { #field, layout->debug_##field, layout->field }
		{ "runtime_interp_head", layout->debug_interp_head, layout->runtime_interp_head },
		CLAIM(interp_next), CLAIM(interp_threads), CLAIM(interp_gil), CLAIM(tstate_size), CLAIM(tstate_next), CLAIM(tstate_frame),
		CLAIM(tstate_base_frame), CLAIM(tstate_thread_id), CLAIM(tstate_native_id), CLAIM(frame_previous), CLAIM(frame_code),
		CLAIM(frame_owner), CLAIM(code_name), CLAIM(code_qualname), CLAIM(code_filename),
#undef CLAIM
	};
	unsigned char offsets[1024];

	if ((size_t)layout->debug_size > sizeof offsets || reader_read(reader, reader->runtime, offsets, (size_t)layout->debug_size) < 0)
		return fail(err, ERR_NOT_PYTHON, "the interpreter's state at 0x%llx cannot be read", (unsigned long long)reader->runtime);
	if (memcmp(offsets, "xdebugpy", 8) != 0)
		return fail(err, ERR_NOT_PYTHON, "there is no interpreter at 0x%llx", (unsigned long long)reader->runtime);
	if (word_at(offsets, 8) != python_hex)
		return fail(err, ERR_PYTHON_VERSION, "the interpreter calls itself version 0x%llx, not 0x%x", (unsigned long long)word_at(offsets, 8), python_hex);
	if (word_at(offsets, layout->debug_free_threaded) != 0)
		return fail(err, ERR_FREE_THREADED, "the interpreter is a free-threaded build");
	for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++)
		if (claims[i].says >= 0 && word_at(offsets, claims[i].says) != (uint64_t)claims[i].known)
			return fail(err, ERR_PYTHON_VERSION, "this build of Python 3.%d has another layout: %s is %llu, not %d", reader->minor, claims[i].name,
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
	reader->memory = *memory;
	reader->runtime = runtime;
	reader->minor = minor;
	reader->layout = layout;
	reader->tid_offset = tid_offset;
	pages_init(&reader->pages, memory);
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

/* Remembers a frame of this walk. False when it was there already: a circle. */
static bool frame_is_new(struct pyreader *reader, uint64_t frame)
{
	size_t slot = (size_t)(frame * 0x9e3779b97f4a7c15ull >> 53) % FRAMES_SEEN;

	while (reader->seen[slot] && reader->seen[slot] != frame)
		slot = (slot + 1) % FRAMES_SEEN;
	if (reader->seen[slot])
		return false;
	reader->seen[slot] = frame;
	return true;
}

/* Adds the frame to the stack unless it is a shim. -1 when it is no frame. */
static int take_frame(struct pyreader *reader, const unsigned char *frame)
{
	const struct cpython_layout *layout = reader->layout;
	struct pystack *stack = &reader->stack;
	uint64_t addr = word_at(frame, layout->frame_code);
	const struct known_code *code;

	if (layout->frame_owner >= 0 && frame[layout->frame_owner] >= FRAME_OWNER_SHIM)
		return 0;
	if (reader->minor >= 14) {
		addr &= ~3ull; /* a tagged reference */
		if (addr == 0 && stack->count == 0)
			return 0; /* the innermost one has just been left and cleared */
	}
	code = reader_code(reader, addr);
	if (!code)
		return -1;
	if (code->internal)
		return 0;
	if (stack->count == PYSTACK_FRAMES_MAX) {
		stack->cut = true;
		return 0;
	}
	stack->code[stack->count] = addr;
	stack->stamp[stack->count++] = code->stamp;
	return 0;
}

/* From the innermost frame outwards to the end, which is BASE where the version has such a thing. -1: torn. */
static int walk_frames(struct pyreader *reader, uint64_t frame, uint64_t base)
{
	const struct cpython_layout *layout = reader->layout;
	const size_t size = reader->minor >= 11 ? 80 : 112;
	unsigned char bytes[FRAME_BYTES_MAX];

	memset(reader->seen, 0, sizeof reader->seen);
	for (int steps = 0; frame && frame != base && !reader->stack.cut; steps++) {
		if (steps == STEPS_MAX) {
			reader->stack.cut = true;
			return 0;
		}
		if (!reader_plausible(frame) || !frame_is_new(reader, frame) || pages_read(&reader->pages, frame, bytes, size) < 0
		    || take_frame(reader, bytes) < 0)
			return -1;
		frame = word_at(bytes, layout->frame_previous);
	}
	return frame == base || reader->stack.cut ? 0 : -1;
}

/* Where the innermost frame of the thread state at ADDR is written, by version. 0 = nowhere. */
static uint64_t innermost_place(const struct pyreader *reader, uint64_t addr, const unsigned char *tstate)
{
	const struct cpython_layout *layout = reader->layout;
	uint64_t cframe;

	if (layout->cframe_frame < 0)
		return addr + (uint64_t)layout->tstate_frame;
	cframe = word_at(tstate, layout->tstate_cframe);
	return reader_plausible(cframe) ? cframe + (uint64_t)layout->cframe_frame : 0;
}

static int thread_tid(const struct pyreader *reader, const unsigned char *tstate, pid_t *out)
{
	const struct cpython_layout *layout = reader->layout;

	if (layout->tstate_native_id >= 0) {
		*out = (pid_t)word_at(tstate, layout->tstate_native_id);
		return 0;
	}
	return reader_read(reader, word_at(tstate, layout->tstate_thread_id) + reader->tid_offset, out, sizeof *out);
}

static bool thread_holds_gil(const struct pyreader *reader, const unsigned char *tstate, uint64_t addr, uint64_t interp)
{
	const struct cpython_layout *layout = reader->layout;
	unsigned char gil[GIL_BYTES];
	uint64_t current;

	if (layout->tstate_holds_gil >= 0)
		return half_at(tstate, layout->tstate_holds_gil) != 0;
	if (layout->runtime_current >= 0)
		return reader_word(reader, reader->runtime + (uint64_t)layout->runtime_current, &current) == 0 && current == addr;
	return reader_word(reader, interp + (uint64_t)layout->interp_gil, &current) == 0 && reader_plausible(current)
		&& reader_read(reader, current, gil, sizeof gil) == 0 && half_at(gil, layout->gil_locked) == 1 && word_at(gil, layout->gil_holder) == addr;
}

enum thread_found { THREAD_TORN = -1, THREAD_IDLE = 0, THREAD_READ = 1, THREAD_MOVED = 2 };

/* Reads one thread's stack into reader->stack. MOVED: the thread has called or returned meanwhile; frames that it left may have been taken for live ones. */
static enum thread_found read_thread(struct pyreader *reader, uint64_t addr, uint64_t interp, uint64_t *next)
{
	const struct cpython_layout *layout = reader->layout;
	struct pystack *stack = &reader->stack;
	unsigned char tstate[TSTATE_BYTES_MAX];
	uint64_t place, frame, now, base = 0;

	*next = 0;
	if (!reader_plausible(addr) || (size_t)layout->tstate_size > sizeof tstate || reader_read(reader, addr, tstate, (size_t)layout->tstate_size) < 0
	    || word_at(tstate, layout->tstate_interp) != interp)
		return THREAD_TORN;
	*next = word_at(tstate, layout->tstate_next);
	stack->count = 0;
	stack->cut = false;
	place = innermost_place(reader, addr, tstate);
	if (!place || reader_word(reader, place, &frame) < 0)
		return THREAD_TORN;
	if (layout->tstate_base_frame >= 0)
		base = word_at(tstate, layout->tstate_base_frame);
	if (frame == base)
		return THREAD_IDLE;
	pages_forget(&reader->pages);
	if (walk_frames(reader, frame, base) < 0 || thread_tid(reader, tstate, &stack->tid) < 0 || stack->tid <= 0)
		return THREAD_TORN;
	stack->holds_gil = thread_holds_gil(reader, tstate, addr, interp);
	if (stack->count == 0)
		return THREAD_IDLE;
	return reader_word(reader, place, &now) == 0 && now == frame ? THREAD_READ : THREAD_MOVED;
}

/* ---- all threads ---- */

static int read_interpreter(struct pyreader *reader, uint64_t interp, void (*each)(void *context, const struct pystack *stack), void *context)
{
	uint64_t thread, next, checkpoint = 0;
	int count = 0;

	if (reader_word(reader, interp + (uint64_t)reader->layout->interp_threads, &thread) < 0)
		return -1;
	for (uint32_t seen = 0; thread && seen < THREADS_MAX && thread != checkpoint; seen++, thread = next) {
		enum thread_found found = THREAD_TORN;

		/* One that moves all the time is taken as it was read last. */
		for (int tries = 0; tries < TRIES && (found == THREAD_TORN || found == THREAD_MOVED); tries++)
			found = read_thread(reader, thread, interp, &next);
		/* The list may have been changed into a circle under our eyes: stop at a thread that was met before. */
		if ((seen & (seen + 1)) == 0)
			checkpoint = thread;
		if (found == THREAD_TORN)
			reader->torn++;
		if (found == THREAD_READ || found == THREAD_MOVED) {
			each(context, &reader->stack);
			count++;
		}
	}
	return count;
}

int pyreader_stacks(struct pyreader *reader, void (*each)(void *context, const struct pystack *stack), void *context)
{
	const struct cpython_layout *layout = reader->layout;
	uint64_t interp;
	int count = 0;

	reader->round++;
	if (reader_word(reader, reader->runtime + (uint64_t)layout->runtime_interp_head, &interp) < 0)
		return -1;
	for (int seen = 0; interp && seen < INTERPRETERS_MAX; seen++) {
		int found = reader_plausible(interp) ? read_interpreter(reader, interp, each, context) : -1;

		if (found < 0)
			return seen ? count : -1;
		count += found;
		if (reader_word(reader, interp + (uint64_t)layout->interp_next, &interp) < 0)
			break;
	}
	return count;
}
