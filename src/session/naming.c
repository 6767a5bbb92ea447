/* A map from tid to a name in a list, read anew now and then: threads may be renamed. */
#include "session/naming.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "session/reader.h"

#define OFTEN_NS 50000000ull
#define RARELY_NS 1000000000ull
enum { COST_PART = 50 };

struct named_thread {
	char name[PYTHREAD_NAME_MAX];
};

struct names {
	struct map place_of; /* tid to the place in threads */
	LIST(struct named_thread) threads;
};

struct naming {
	struct pyreader *reader;
	struct names names;
	uint64_t early_ns, due_ns; /* when they may be read again, and when they are */
};

struct naming *naming_open(const struct target *target, remote_addr runtime)
{
	const struct remote_memory memory = reader_memory(target);
	struct naming *naming = calloc(1, sizeof *naming);
	struct error err = { 0 };

	if (naming && reader_open(target, &memory, runtime, &naming->reader, &err) < 0) {
		free(naming);
		naming = NULL;
	}
	return naming;
}

static void names_done(struct names *names)
{
	map_done(&names->place_of);
	list_done(&names->threads);
}

void naming_close(struct naming *naming)
{
	if (!naming)
		return;
	names_done(&naming->names);
	pyreader_close(naming->reader);
	free(naming);
}

static void keep(void *context, pid_t tid, const char *name)
{
	struct names *names = context;
	struct named_thread *thread = list_add(&names->threads, PYTHREADS_MAX);

	if (thread && map_put(&names->place_of, (uint64_t)tid, (uint32_t)names->threads.count - 1))
		snprintf(thread->name, sizeof thread->name, "%s", name);
}

void naming_refresh(struct naming *naming, bool early)
{
	uint64_t begin_ns = clock_monotonic_ns(), cost_ns;
	struct names fresh = { 0 };

	if (begin_ns < (early ? naming->early_ns : naming->due_ns))
		return;
	/* Names that cannot be read now stay what they were. */
	if (pyreader_names(naming->reader, keep, &fresh) > 0) {
		names_done(&naming->names);
		naming->names = fresh;
	} else {
		names_done(&fresh);
	}
	cost_ns = (clock_monotonic_ns() - begin_ns) * COST_PART;
	naming->early_ns = begin_ns + (cost_ns > OFTEN_NS ? cost_ns : OFTEN_NS);
	naming->due_ns = begin_ns + (cost_ns > RARELY_NS ? cost_ns : RARELY_NS);
}

const char *naming_find(const struct naming *naming, pid_t inner_tid)
{
	uint32_t place = map_get(&naming->names.place_of, (uint64_t)inner_tid);

	return place == MAP_ABSENT ? NULL : naming->names.threads.items[place].name;
}

bool naming_torch_profiles(const struct naming *naming)
{
	return naming && pyreader_is_true(naming->reader, "torch.autograd.profiler", "_is_profiler_enabled");
}
