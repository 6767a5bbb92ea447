/*
 * Frames of one thread, and what on the C stack runs them:
 *
 *   thread state → frame → frame → shim → frame → … → end        3.12 and later: a shim lies in the evaluator call that runs the frames before it
 *             └──→ cframe ─────────→ cframe → … → root           3.10, 3.11: so does a cframe; is_entry (3.11) tells where its run ends
 *
 * Every pointer may be stale by the time it is followed, unless the thread is held. What lies behind code addresses pystack.c finds out.
 */
#include "unwind/pyframes.h"

#include <string.h>

#include "abi/cpython.h"
#include "base/map.h"
#include "unwind/machine.h"

enum {
	TSTATE_BYTES_MAX = 1024, FRAME_BYTES_MAX = 128, GIL_BYTES = 24,
	STEPS_MAX = FRAMES_SEEN / 2, /* frames of all kinds in one walk */
};

/* ---- reading ---- */

int walk_read(const struct pywalk *walk, uint64_t addr, void *buffer, size_t size)
{
	return walk->memory.read(walk->memory.context, addr, buffer, size);
}

int walk_word(const struct pywalk *walk, uint64_t addr, uint64_t *out)
{
	return walk_read(walk, addr, out, sizeof *out);
}

bool address_plausible(uint64_t addr)
{
	return addr >= 4096 && addr < 1ull << ADDRESS_BITS && addr % 8 == 0;
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

/* ---- which evaluator call runs a frame ---- */

/* The cframe outside the one at hand; 0 after the outermost. */
static uint64_t cframe_outer(struct pywalk *walk, uint64_t cframe)
{
	uint64_t outer;

	if (!cframe || pages_read(&walk->pages, cframe + (uint64_t)walk->layout->cframe_previous, &outer, sizeof outer) < 0 || outer == walk->root
	    || !address_plausible(outer))
		return 0;
	return outer;
}

/* The frames since the last run's end belong to the call with ENTRY on its stack. */
static void run_end(struct pywalk *walk, uint64_t entry)
{
	while (walk->run < walk->frames.count)
		walk->frames.frames[walk->run++].entry = entry;
}

/* 3.10 has one cframe per frame, but for the moment in which an evaluator call begins or ends: then one of the two is there without the other. */
static void pair_cframes(struct pywalk *walk)
{
	uint64_t cframe[PYFRAMES_MAX + 1];
	struct pyframes *frames = &walk->frames;
	uint32_t count = 0, skipped, lacking;

	for (uint64_t at = walk->cframe; at && at != walk->root && count < frames->count + 1; at = cframe_outer(walk, at))
		cframe[count++] = at;
	skipped = !frames->cut && count == frames->count + 1;
	lacking = !frames->cut && count + 1 == frames->count;
	if (count + lacking < frames->count)
		return;
	for (uint32_t i = lacking; i < frames->count; i++)
		frames->frames[i].entry = cframe[i + skipped - lacking];
}

/* ---- frames ---- */

/* Remembers a frame of this walk. False when it was there already: a circle. */
static bool frame_is_new(struct pywalk *walk, uint64_t frame)
{
	size_t slot = (size_t)(frame * 0x9e3779b97f4a7c15ull >> 53) % FRAMES_SEEN;

	while (walk->seen[slot] && walk->seen[slot] != frame)
		slot = (slot + 1) % FRAMES_SEEN;
	if (walk->seen[slot])
		return false;
	walk->seen[slot] = frame;
	return true;
}

static void take_frame(struct pywalk *walk, uint64_t addr, const unsigned char *bytes)
{
	const struct cpython_layout *layout = walk->layout;
	struct pyframes *frames = &walk->frames;
	struct pyframe *frame = &frames->frames[frames->count];

	if (layout->frame_owner >= 0 && bytes[layout->frame_owner] >= FRAME_OWNER_SHIM) {
		run_end(walk, addr);
		return;
	}
	if (frames->count == PYFRAMES_MAX) {
		frames->cut = true;
		return;
	}
	frame->code = word_at(bytes, layout->frame_code);
	if (walk->minor >= 14)
		frame->code &= ~3ull; /* a tagged reference */
	if (walk->minor >= 14 && frame->code == 0 && frames->count == 0)
		return; /* the innermost one has just been left and cleared */
	frame->address = addr;
	frame->instr = walk->minor >= 11 ? word_at(bytes, layout->frame_instr) : half_at(bytes, layout->frame_instr);
	frame->entry = 0;
	frames->count++;
	if (layout->frame_is_entry >= 0 && bytes[layout->frame_is_entry]) {
		run_end(walk, walk->cframe);
		walk->cframe = cframe_outer(walk, walk->cframe);
	}
}

/* Cut; but where only a shim tells what runs the last frames taken, that is still looked for. */
static bool walk_enough(const struct pywalk *walk)
{
	return walk->frames.cut && (walk->minor < 12 || walk->run == walk->frames.count);
}

/* From the innermost frame outwards to the end, which is BASE where the version has such a thing. -1: torn. */
static int walk_frames(struct pywalk *walk, uint64_t frame, uint64_t base)
{
	const struct cpython_layout *layout = walk->layout;
	const size_t size = walk->minor >= 11 ? 80 : 112;
	unsigned char bytes[FRAME_BYTES_MAX];

	memset(walk->seen, 0, sizeof walk->seen);
	walk->run = walk->frames.count = 0;
	walk->frames.cut = false;
	for (int steps = 0; frame && frame != base && !walk_enough(walk); steps++) {
		if (steps == STEPS_MAX) {
			walk->frames.cut = true;
			break;
		}
		if (!address_plausible(frame) || !frame_is_new(walk, frame) || pages_read(&walk->pages, frame, bytes, size) < 0)
			return -1;
		take_frame(walk, frame, bytes);
		frame = word_at(bytes, layout->frame_previous);
	}
	if (frame != base && !walk->frames.cut)
		return -1;
	if (layout->frame_is_entry >= 0 && walk->frames.cut)
		run_end(walk, walk->cframe);
	if (layout->frame_is_entry < 0 && layout->cframe_previous >= 0 && layout->cframe_frame < 0)
		pair_cframes(walk);
	return 0;
}

/* Where the innermost frame is written, by version. 0 = nowhere. */
static uint64_t innermost_place(const struct pywalk *walk)
{
	if (walk->layout->cframe_frame < 0)
		return walk->tstate + (uint64_t)walk->layout->tstate_frame;
	return address_plausible(walk->cframe) ? walk->cframe + (uint64_t)walk->layout->cframe_frame : 0;
}

/* ---- one thread ---- */

static int page_word(struct pywalk *walk, uint64_t addr, uint64_t *out)
{
	return pages_read(&walk->pages, addr, out, sizeof *out);
}

static int read_tstate(struct pywalk *walk, uint64_t addr, uint64_t interp, unsigned char tstate[TSTATE_BYTES_MAX])
{
	size_t size = (size_t)walk->layout->tstate_size;

	return address_plausible(addr) && size <= TSTATE_BYTES_MAX && pages_read(&walk->pages, addr, tstate, size) == 0
		&& word_at(tstate, walk->layout->tstate_interp) == interp ? 0 : -1;
}

static int thread_tid(struct pywalk *walk, const unsigned char *tstate, pid_t *out)
{
	const struct cpython_layout *layout = walk->layout;
	pid_t tid;

	if (layout->tstate_native_id >= 0)
		tid = (pid_t)word_at(tstate, layout->tstate_native_id);
	else if (pages_read(&walk->pages, word_at(tstate, layout->tstate_thread_id) + walk->tid_offset, &tid, sizeof tid) < 0)
		return -1;
	*out = tid;
	return tid > 0 ? 0 : -1;
}

static bool thread_holds_gil(struct pywalk *walk, const unsigned char *tstate, uint64_t interp)
{
	const struct cpython_layout *layout = walk->layout;
	unsigned char gil[GIL_BYTES];
	uint64_t current;

	if (layout->tstate_holds_gil >= 0)
		return half_at(tstate, layout->tstate_holds_gil) != 0;
	if (layout->runtime_current >= 0)
		return page_word(walk, walk->runtime + (uint64_t)layout->runtime_current, &current) == 0 && current == walk->tstate;
	return page_word(walk, interp + (uint64_t)layout->interp_gil, &current) == 0 && address_plausible(current)
		&& pages_read(&walk->pages, current, gil, sizeof gil) == 0 && half_at(gil, layout->gil_locked) == 1 && word_at(gil, layout->gil_holder) == walk->tstate;
}

/* An evaluator call of 3.11 and 3.12 links its cframe before it writes the frame into it: then the one outside of it is right. */
static int walk_from_outer_cframe(struct pywalk *walk, uint64_t cframe, uint64_t *place, uint64_t *frame)
{
	if (walk->layout->cframe_frame < 0)
		return -1;
	walk->cframe = cframe_outer(walk, cframe);
	if (!walk->cframe)
		return -1;
	*place = innermost_place(walk);
	return page_word(walk, *place, frame) < 0 ? -1 : walk_frames(walk, *frame, 0);
}

static enum thread_found walk_pages(struct pywalk *walk, uint64_t addr, struct thread_expected expected, uint64_t *next)
{
	const struct cpython_layout *layout = walk->layout;
	unsigned char tstate[TSTATE_BYTES_MAX];
	uint64_t place, frame, now, cframe, base = 0;

	*next = 0;
	if (read_tstate(walk, addr, expected.interp, tstate) < 0 || (expected.thread_id && word_at(tstate, layout->tstate_thread_id) != expected.thread_id))
		return THREAD_TORN;
	*next = word_at(tstate, layout->tstate_next);
	walk->tstate = walk->frames.tstate = addr;
	walk->frames.count = 0;
	walk->cframe = cframe = layout->tstate_cframe >= 0 ? word_at(tstate, layout->tstate_cframe) : 0;
	walk->root = layout->tstate_root_cframe >= 0 ? addr + (uint64_t)layout->tstate_root_cframe : 0;
	place = innermost_place(walk);
	if (!place || page_word(walk, place, &frame) < 0)
		return THREAD_TORN;
	if (layout->tstate_base_frame >= 0)
		base = word_at(tstate, layout->tstate_base_frame);
	if (frame == base)
		return THREAD_IDLE;
	if (walk_frames(walk, frame, base) < 0 && walk_from_outer_cframe(walk, cframe, &place, &frame) < 0)
		return THREAD_TORN;
	if (thread_tid(walk, tstate, &walk->frames.tid) < 0)
		return THREAD_TORN;
	walk->frames.holds_gil = thread_holds_gil(walk, tstate, expected.interp);
	/* There was a frame, but by now its memory is another one's. */
	if (walk->frames.count == 0)
		return THREAD_TORN;
	walk->frames.moved = walk_word(walk, place, &now) < 0 || now != frame;
	return walk->frames.moved ? THREAD_MOVED : THREAD_READ;
}

enum thread_found walk_thread(struct pywalk *walk, uint64_t addr, struct thread_expected expected, uint64_t *next)
{
	struct walked *walked = &walk->walked[mix64(addr) % WALKS_REMEMBERED];
	enum thread_found found;

	pages_forget(&walk->pages);
	if (walked->tstate == addr)
		pages_expect(&walk->pages, walked->pages, walked->count);
	found = walk_pages(walk, addr, expected, next);
	walked->tstate = addr;
	walked->count = walk->pages.used_count;
	memcpy(walked->pages, walk->pages.used, walked->count * sizeof *walked->pages);
	return found;
}

int walk_identity(struct pywalk *walk, uint64_t addr, uint64_t interp, pid_t *tid, uint64_t *thread_id, uint64_t *next)
{
	unsigned char tstate[TSTATE_BYTES_MAX];

	pages_forget(&walk->pages);
	if (read_tstate(walk, addr, interp, tstate) < 0)
		return -1;
	*next = word_at(tstate, walk->layout->tstate_next);
	*thread_id = word_at(tstate, walk->layout->tstate_thread_id);
	return thread_tid(walk, tstate, tid);
}
