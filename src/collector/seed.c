/*
 * Frames that were on the stack before a window opened: STACK_BEGIN, then a SEED for each, outermost first. For all threads
 * when a window opens, as far as the pool allows; for the others at their own first event.
 */
#include "collector/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "abi/cpython.h"
#include "collector/libc.h"

enum { WALK_MAX = 200000 };

static uint32_t ref_of(PyObject *code)
{
	const struct code *found = code_find_in(&the.codes, code);

	return found->counted ? 0 : found->ref;
}

/* The innermost SEEDS_MAX frames go to the lane, outermost first; the rest is counted. Frames that are left out or only counted keep their
 * place here (the evaluator finds its way by them) but are no events. */
static uint32_t walk(struct lane *lane, char *frame)
{
	struct seed *seeds = lane->seeds;
	uint32_t count = 0, omitted = 0;

	for (int i = 0; frame && i < WALK_MAX; i++, frame = python_frame_back(&the.python, frame)) {
		PyObject *code = python_frame_code(&the.python, frame);

		if (!code)
			continue;
		if (count < SEEDS_MAX)
			seeds[count++] = (struct seed){frame, ref_of(code)};
		else
			omitted++;
	}
	for (uint32_t i = 0; i < count / 2; i++) {
		struct seed swap = seeds[i];

		seeds[i] = seeds[count - 1 - i];
		seeds[count - 1 - i] = swap;
	}
	lane->seed_count = count;
	return omitted;
}

void seed_lane(struct lane *lane, char *frame, uint64_t now)
{
	uint32_t omitted = walk(lane, frame);

	lane->above = 0;
	lane->depth = omitted;
	memset(lane->refs, 0, (omitted < DEPTH_KNOWN ? omitted : DEPTH_KNOWN) * sizeof *lane->refs); /* 0 matches any */
	lane->window = the.window;
	lane_put_u32(lane, now, 0, EVENT_STACK_BEGIN, omitted);
	for (uint32_t i = 0; i < lane->seed_count; i++)
		if (lane->seeds[i].ref)
			lane_push(lane, now, lane->seeds[i].ref, EVENT_SEED);
	if (the.greenlets)
		the.tokens -= lane->seed_count; /* it may happen a hundred thousand times a second */
}

struct lane *lane_enter_window(char *frame, uint64_t now)
{
	int saved = errno;
	struct lane *lane = lane_attach();

	if (!lane)
		the.page->lane_overflow++;
	else if (lane->window != the.window)
		seed_lane(lane, frame, now);
	errno = saved;
	return lane;
}

/* That memory may be gone with its thread, so the kernel reads it for us. */
uint32_t pthread_tid(uint64_t pthread)
{
	uint32_t offset = the.settings.thread_tid_offset, tid = 0;
	int memory;

	if (!offset || offset > 4096)
		return 0;
	memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return 0;
	if (pread(memory, &tid, sizeof tid, (off_t)(pthread + offset)) != sizeof tid)
		tid = 0;
	close(memory);
	return tid;
}

uint32_t thread_tid(char *tstate, uint64_t pthread)
{
	int offset = the.python.layout->tstate_native_id;

	return offset >= 0 ? (uint32_t)(uint64_t)at_pointer(tstate, offset) : pthread_tid(pthread);
}

void seed_all(uint64_t now)
{
	const struct cpython_layout *layout = the.python.layout;
	uint32_t room = the.page->pool_count / 2; /* idle threads must not take what busy ones will need */

	for (char *tstate = python_first_thread(&the.python); tstate; tstate = python_next_thread(&the.python, tstate)) {
		uint64_t pthread = (uint64_t)at_pointer(tstate, layout->tstate_thread_id);
		char *frame = python_top_frame(&the.python, tstate);
		struct lane *lane;
		uint32_t tid = 0;

		if (!frame || (the.hooks->hooked && !the.hooks->hooked(tstate)))
			continue;
		if (layout->tstate_native_id >= 0)
			tid = (uint32_t)(uint64_t)at_pointer(tstate, layout->tstate_native_id);
		lane = lane_of_thread(pthread, tid, false);
		if (!lane && the.lanes.busy < room) {
			lane = lane_of_thread(pthread, thread_tid(tstate, pthread), true);
		}
		if (lane && lane->window != the.window && (lane->subbuf || the.lanes.busy < room))
			seed_lane(lane, frame, now);
	}
}
