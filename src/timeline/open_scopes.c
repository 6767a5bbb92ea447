#include "timeline/open_scopes.h"

#include "base/map.h"

/* The open ones whose ids fall into one bucket, newest first: place of the first, + 1. */
static uint32_t *bucket_of(struct open_scopes *scopes, uint32_t lane, uint64_t id)
{
	return &scopes->buckets[mix64(id ^ (uint64_t)lane << 40) % OPEN_SCOPES_BUCKETS];
}

struct open_scope *open_scopes_begin(struct open_scopes *scopes, uint32_t lane, uint64_t id, uint64_t at_ns, bool *failed)
{
	uint32_t *bucket = bucket_of(scopes, lane, id), at = scopes->ended;
	struct open_scope *scope;

	if (at) {
		scope = &scopes->list.items[at - 1];
		scopes->ended = scope->next;
	} else {
		scope = list_add_or_fail(&scopes->list, OPEN_SCOPES_LIMIT, failed);
		at = (uint32_t)scopes->list.count;
	}
	if (!scope)
		return NULL;
	*scope = (struct open_scope){ .id = id, .start_ns = at_ns, .order = scopes->begun++, .lane = lane, .next = *bucket, .open = true };
	*bucket = at;
	return scope;
}

struct open_scope *open_scopes_end(struct open_scopes *scopes, uint32_t lane, uint64_t id)
{
	for (uint32_t *link = bucket_of(scopes, lane, id), at; (at = *link); link = &scopes->list.items[at - 1].next) {
		struct open_scope *scope = &scopes->list.items[at - 1];

		if (scope->lane != lane || scope->id != id)
			continue;
		*link = scope->next;
		scope->next = scopes->ended;
		scope->open = false;
		scopes->ended = at;
		return scope;
	}
	return NULL;
}

void open_scopes_done(struct open_scopes *scopes)
{
	list_done(&scopes->list);
}
