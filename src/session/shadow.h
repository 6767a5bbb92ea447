/* A thread's stack of functions as its events tell it: what a chunk says lay below its first event. */
#ifndef INFERSCOPE_SESSION_SHADOW_H
#define INFERSCOPE_SESSION_SHADOW_H

#include "abi/lane.h"
#include "trace/reader.h"

enum { SHADOW_DEPTH_MAX = 1 << 20 };

struct shadow {
	uint32_t depth, capacity;
	uint32_t *refs; /* 0 = unknown */
};

void shadow_done(struct shadow *shadow);
/* As a sub-buffer's head says (checked: ref_count <= depth <= SHADOW_DEPTH_MAX): only the innermost frames are known. */
void shadow_set(struct shadow *shadow, const struct subbuf *head);
/* What the cursor's event does to it. */
void shadow_follow(struct shadow *shadow, const struct event_cursor *cursor);
/* Fills depth and the innermost refs of CHUNK. */
void shadow_tell(const struct shadow *shadow, struct chunk *chunk);

#endif
