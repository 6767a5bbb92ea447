/*
 * Replays the calls of one lane: keeps the stack as the thread had it and says what opens, runs and closes. Used by the totals
 * (calls.c) and by the exports (intervals.c), so that both see the same calls.
 */
#ifndef INFERSCOPE_TIMELINE_REPLAY_H
#define INFERSCOPE_TIMELINE_REPLAY_H

#include "timeline/private.h"
#include "timeline/ticks.h"

struct frame {
	uint32_t function; /* index in names */
	uint32_t node;     /* the user's own: whatever `open` put there */
	uint64_t start_ns;
	uint32_t omitted;  /* > 0: stands for so many unknown outer frames */
	uint8_t kind;      /* PY_ENTER, PY_RESUME or C_ENTER */
	bool open_start;   /* began before it was watched */
	bool suspended;    /* it is left by a yield */
};

struct replay;

struct replay_hooks {
	/* The whole stack goes on unchanged from FROM to TO. Not called for empty stacks. */
	void (*run)(void *context, const struct replay *replay, uint64_t from_ns, uint64_t to_ns);
	/* The topmost frame was pushed. COUNTS: it is a call (not a resume, not a frame found on the stack). */
	void (*open)(void *context, const struct replay *replay, struct frame *frame, bool counts);
	/* The topmost frame ends at AT; still on the stack. */
	void (*close)(void *context, const struct replay *replay, const struct frame *frame, uint64_t at_ns, bool open_end, bool exception);
};

struct replay {
	const struct timeline_private *p;
	const struct replay_hooks *hooks;
	void *context;
	struct lane *lane;
	LIST(struct frame) frames;
	uint64_t now_ns;
	size_t segment;       /* index into lane->segments */
	bool known;           /* the stack is known since some event of this segment */
	bool began;           /* of a lane: its first event was seen */
	LIST(uint32_t) seeds; /* functions collected after a STACK_BEGIN */
	bool seeding;
	uint32_t seeds_omitted;
	LIST(uint32_t) before; /* the stack at the end of the last segment in which it was known */
	bool before_whole;     /* and nothing of it was unknown */
	size_t quiet_from;     /* first segment since then without an event */
	uint64_t sequence, lost;
	uint64_t unmatched, outside, too_deep;
	bool failed;           /* out of memory */
};

void replay_init(struct replay *replay, const struct timeline_private *p, const struct replay_hooks *hooks, void *context, struct lane *lane);
/* Before the first event of a chunk: takes over its stack after a loss or at the beginning. */
void replay_chunk(struct replay *replay, const struct chunk *chunk, const struct ticks *ticks);
void replay_event(struct replay *replay, const struct event_cursor *at, uint64_t at_ns);
/* Closes what is open where the lane ends. */
void replay_end(struct replay *replay);
void replay_done(struct replay *replay);

static inline const struct segment *replay_segment(const struct replay *replay)
{
	return replay->segment < replay->lane->segments.count ? &replay->lane->segments.items[replay->segment] : NULL;
}

#endif
