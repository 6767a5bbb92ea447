/* What must be in a trace so that a rule can be judged. */
#include <string.h>

#include "analyze/rule.h"
#include "timeline/operations.h"

static bool has_operation(const struct analysis_private *p, enum event_kind kind)
{
	const struct operations *all = timeline_operations(p->timeline);

	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].kind == kind)
			return true;
	return false;
}

static bool has_calls(const struct analysis_private *p) { return p->timeline->window_count > 0; }
static bool has_stacks(const struct analysis_private *p) { return has_calls(p) || p->timeline->quality.samples > 0; }
static bool has_native(const struct analysis_private *p) { return p->timeline->native_split; }
static bool has_clocks(const struct analysis_private *p) { return p->load.read; }
static bool has_process(const struct analysis_private *p) { return p->timeline->process_count && p->timeline->processes[0].rss_max_bytes; }
static bool has_gpu(const struct analysis_private *p) { return p->device != NULL; }
static bool has_launches(const struct analysis_private *p) { return p->device && p->timeline->gpu.launches > 0; }
static bool has_syscalls(const struct analysis_private *p) { return has_operation(p, EVENT_CPU_SYSCALL); }
static bool has_scopes(const struct analysis_private *p) { return p->timeline->scope_count > 0; }

static const struct { const char *name, *reason; bool (*there)(const struct analysis_private *p); } needs[] = {
	{ "clocks", "the threads' CPU clocks were not read", has_clocks },
	{ "gpu", "no GPU data", has_gpu },
	{ "gpu.launches", "no call that launched work on a device was recorded", has_launches },
	{ "native.stacks", "native code was not told from Python: neither C calls nor native samples were recorded", has_native },
	{ "process", "the process's counters were not read", has_process },
	{ "py.calls", "no calls were recorded", has_calls },
	{ "py.stacks", "neither calls nor samples were recorded", has_stacks },
	{ "scopes", "no request scopes: with scope(…) in the program, or --scope FUNCTION", has_scopes },
	{ "syscalls", "system calls are not recorded", has_syscalls },
};
enum { NEED_COUNT = sizeof needs / sizeof *needs };

bool need_find(const char *name, uint32_t *bit)
{
	for (unsigned i = 0; i < NEED_COUNT; i++) {
		if (strcmp(needs[i].name, name) != 0)
			continue;
		*bit = 1u << i;
		return true;
	}
	return false;
}

const char *need_missing(const struct analysis_private *p, uint32_t wanted)
{
	for (unsigned i = 0; i < NEED_COUNT; i++)
		if (wanted >> i & 1 && !needs[i].there(p))
			return needs[i].reason;
	return NULL;
}

const char *need_name(unsigned index)
{
	return index < NEED_COUNT ? needs[index].name : NULL;
}
