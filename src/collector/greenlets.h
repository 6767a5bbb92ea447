/* Has this thread gone on with another greenlet's stack? Asked only where the.greenlets says that there may be any. Under the GIL. */
#ifndef INFERSCOPE_COLLECTOR_GREENLETS_H
#define INFERSCOPE_COLLECTOR_GREENLETS_H

#include "collector/collector.h"

/* Allocates a little; keeps a pending exception. */
bool greenlets_imported(void);
/* By frames: CALLER, which stands innermost, is not above the frame that LANE knows as innermost. */
bool greenlets_left(const struct lane *lane, char *caller);
/* By where frames lie, 3.12 and later. True once for each switch that an event follows. */
bool greenlets_switched(struct lane *lane);

#endif
