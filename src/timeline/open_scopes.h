/* Scopes that have begun and not ended yet, by lane and id; to begin and to end one takes the same time however many are open. */
#ifndef INFERSCOPE_TIMELINE_OPEN_SCOPES_H
#define INFERSCOPE_TIMELINE_OPEN_SCOPES_H

#include <stdint.h>

#include "base/list.h"

enum { OPEN_SCOPES_LIMIT = 65536, OPEN_SCOPES_BUCKETS = 4096 };

struct open_scope {
	uint64_t id, start_ns;
	uint64_t order;  /* the later it began, the higher */
	uint32_t lane;
	uint32_t kept;   /* its user's */
	uint32_t next;   /* of its bucket, or of those that have ended; + 1, 0 = none */
	bool open;
};

/* Zeroed: none. Freed by open_scopes_done. */
struct open_scopes {
	LIST(struct open_scope) list; /* those that have ended too, until their room is taken */
	uint32_t buckets[OPEN_SCOPES_BUCKETS], ended;
	uint64_t begun;
};

/* NULL: as many as the limit are open, or out of memory, when *FAILED is set. What they return holds until the next one begins. */
struct open_scope *open_scopes_begin(struct open_scopes *scopes, uint32_t lane, uint64_t id, uint64_t at_ns, bool *failed);
/* The one that began last, of those with this id. NULL: none has it. */
struct open_scope *open_scopes_end(struct open_scopes *scopes, uint32_t lane, uint64_t id);
void open_scopes_done(struct open_scopes *scopes);

#endif
