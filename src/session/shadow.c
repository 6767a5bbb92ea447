/* Following a thread's stack through its events. */
#include "session/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "abi/event.h"

static void push(struct shadow *shadow, uint32_t ref)
{
	if (shadow->depth >= SHADOW_DEPTH_MAX)
		return;
	if (shadow->depth == shadow->capacity) {
		uint32_t capacity = shadow->capacity ? shadow->capacity * 2 : 64;
		uint32_t *refs = realloc(shadow->refs, capacity * sizeof *refs);

		if (!refs)
			return; /* the depth stays short; the next sub-buffer's head corrects it after a loss */
		shadow->refs = refs;
		shadow->capacity = capacity;
	}
	shadow->refs[shadow->depth++] = ref;
}

static void pop(struct shadow *shadow)
{
	if (shadow->depth)
		shadow->depth--;
}

void shadow_set(struct shadow *shadow, const struct subbuf *head)
{
	uint32_t unknown = head->depth - head->ref_count;

	shadow->depth = 0;
	while (unknown--)
		push(shadow, 0);
	for (uint32_t i = 0; i < head->ref_count; i++)
		push(shadow, head->refs[i]);
}

void shadow_follow(struct shadow *shadow, const struct event_cursor *cursor)
{
	switch (cursor->event.kind) {
	case EVENT_PY_ENTER:
	case EVENT_PY_RESUME:
	case EVENT_C_ENTER:
	case EVENT_SEED:
		push(shadow, cursor->event.ref);
		break;
	case EVENT_PY_LEAVE:
	case EVENT_PY_YIELD:
	case EVENT_C_LEAVE:
		pop(shadow);
		break;
	case EVENT_STACK_BEGIN: {
		uint32_t omitted = event_u32(cursor, 0);

		for (shadow->depth = 0; omitted && shadow->depth < SHADOW_DEPTH_MAX; omitted--)
			push(shadow, 0);
		break;
	}
	default:
		break;
	}
}

void shadow_tell(const struct shadow *shadow, struct chunk *chunk)
{
	chunk->depth = shadow->depth;
	chunk->ref_count = shadow->depth < LANE_DEPTH_REFS ? shadow->depth : LANE_DEPTH_REFS;
	if (chunk->ref_count)
		memcpy(chunk->refs, shadow->refs + shadow->depth - chunk->ref_count, chunk->ref_count * sizeof *chunk->refs);
}

void shadow_done(struct shadow *shadow)
{
	free(shadow->refs);
	memset(shadow, 0, sizeof *shadow);
}
