/* What modules know: names of threads, as threading has them (each Thread of its table of active ones knows its tid); whether a switch is on. */
#include <string.h>

#include "unwind/pydict.h"
#include "unwind/pyvalue.h"

struct naming {
	struct pyreader *reader;
	void (*each)(void *context, pid_t tid, const char *name);
	void *context;
	int told;
};

static bool tell_thread(void *context, uint64_t ident, uint64_t thread)
{
	struct naming *naming = context;
	char name[PYTHREAD_NAME_MAX];
	uint64_t tid;

	(void)ident;
	if (naming->told == PYTHREADS_MAX)
		return false;
	if (!reader_number(naming->reader, reader_attribute(naming->reader, thread, "_native_id"), &tid) || tid == 0 || tid > INT32_MAX
	    || reader_str(naming->reader, reader_attribute(naming->reader, thread, "_name"), name, sizeof name, NULL) < 0)
		return true;
	naming->told++;
	naming->each(naming->context, (pid_t)tid, name);
	return true;
}

int pyreader_names(struct pyreader *reader, void (*each)(void *context, pid_t tid, const char *name), void *context)
{
	struct naming naming = { reader, each, context, 0 };
	uint64_t active = reader_global(reader, "threading", "_active");

	if (!active)
		return 0;
	return reader_dict(reader, active, tell_thread, &naming) < 0 ? -1 : naming.told;
}

bool pyreader_is_true(struct pyreader *reader, const char *module, const char *name)
{
	uint64_t value = reader_global(reader, module, name);
	char text[PYLOCAL_VALUE_MAX];

	return value && reader_value(reader, value, text, sizeof text) && strcmp(text, "True") == 0;
}
