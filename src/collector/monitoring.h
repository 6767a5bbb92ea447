/* sys.monitoring: the events that are asked for, and what is called for each. */
#ifndef INFERSCOPE_COLLECTOR_MONITORING_H
#define INFERSCOPE_COLLECTOR_MONITORING_H

#include "collector/collector.h"

struct monitored {
	const char *name;      /* of the event, in sys.monitoring.events */
	struct method method;  /* what the builtin says it is; it is never called by way of it */
	bool (*wanted)(void);  /* in this session */
};
enum { MONITORED_ROWS = 11 };
_Static_assert((int)MONITORED_ROWS <= (int)MONITORED_EVENTS, "the state has room for all");
extern const struct monitored monitored[MONITORED_ROWS];

/* No event is wanted any more: callbacks and tool ids are given back. Under the GIL; also in a forked child. */
void monitoring_remove(void);

#endif
