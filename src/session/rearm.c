#include "session/rearm.h"

#define FIRST_NS 1000000000ull
#define AGAIN_NS 10000000000ull

bool rearm_due(struct rearm *rearm, bool wanted, uint64_t now_ns)
{
	if (!wanted) {
		rearm->due_ns = 0;
		return false;
	}
	if (!rearm->due_ns)
		rearm->due_ns = now_ns + FIRST_NS > rearm->again_ns ? now_ns + FIRST_NS : rearm->again_ns;
	if (now_ns < rearm->due_ns)
		return false;
	rearm->due_ns = rearm->again_ns = now_ns + AGAIN_NS;
	return true;
}
