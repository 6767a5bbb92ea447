/* The hand-over (abi/handover.h) as seen from inside: what is said, and how the shared page is got. */
#ifndef INFERSCOPE_COLLECTOR_PAGE_H
#define INFERSCOPE_COLLECTOR_PAGE_H

#include "collector/collector.h"

#include "abi/handover.h"

static inline void handover_say(struct handover *handover, enum handover_said said)
{
	__atomic_store_n(&handover->said, said, __ATOMIC_RELEASE);
}

/* ERROR is an errno. */
static inline void handover_fail(struct handover *handover, int error, const char *text)
{
	handover->error = error;
	snprintf(handover->text, sizeof handover->text, "%s", text);
	handover_say(handover, SAID_FAILED);
}

/* The page, mapped, whose settings hold and are copied to the.settings; the.mapped until somebody arms it. NULL: HANDOVER says why not. Waits for the attacher, without the GIL. */
struct page *page_take(struct handover *handover);

#endif
