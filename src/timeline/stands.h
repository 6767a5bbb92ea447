/*
 * What windows of the overhead budget say of the time before them.
 *
 * How long a window would look (WINDOW_PLAN) was decided before anything in it was seen, so that stretch is a fair sample of the time since the window before, whatever ran:
 * that time is shared out as the stretch was. Hooks make code that calls much slower, and would make its share larger: what they cost by the
 * collector's own measure is taken off first. The time in the stretch itself stays what it was. The rest of a window stands for itself alone.
 */
#ifndef INFERSCOPE_TIMELINE_STANDS_H
#define INFERSCOPE_TIMELINE_STANDS_H

#include "timeline/private.h"

/* Of one lane, while it is replayed. Zeroed; stands_end() frees. */
struct stands {
	size_t segment;       /* whose stretch is being seen */
	double seen_ns;       /* of it, in calls */
	LIST(uint32_t) nodes; /* with time in it */
	bool open;
};

/* NODE runs from FROM to TO, in SEGMENT of LANE. */
void stands_run(struct timeline_private *p, struct stands *stands, const struct lane *lane, size_t segment, uint32_t node, uint64_t from_ns, uint64_t to_ns);
/* A call of NODE begins at AT: both it and PARENT paid for the hook. COUNTS: it is one more call, not one that goes on. */
void stands_enter(struct timeline_private *p, struct stands *stands, const struct lane *lane, size_t segment, uint32_t parent, uint32_t node, uint64_t at_ns, bool counts);
void stands_leave(struct timeline_private *p, struct stands *stands, const struct lane *lane, size_t segment, uint32_t parent, uint32_t node, uint64_t at_ns);
/* After LANE's last call. */
void stands_end(struct timeline_private *p, struct stands *stands, const struct lane *lane);
/* After all lanes: the CPU time of what was given out, in proportion to that of what was seen. */
void stands_share_cpu(struct timeline_private *p);

#endif
