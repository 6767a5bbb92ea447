/*
 * What the program says of itself by the Python package: scope() and mark_event(), as events of the thread that says it. Scopes that are open when
 * the collector is armed are told then. All under the GIL.
 */
#include "collector/collector.h"

#include <errno.h>
#include <string.h>

#include "abi/cpython.h"
#include "abi/scope.h"
#include "collector/libc.h"
#include "collector/text.h"

enum { OPEN_MAX = 100000 /* more are no scopes but a ring that lies */ };

static struct scope_table *table; /* NULL: the package is not imported */

/* A string of the payload: its length, then its bytes. Returns where it ends. */
static char *put_string(char *at, PyObject *str, size_t room, bool *cut)
{
	uint16_t length = str ? (uint16_t)text_from_str(&the.python, str, at + sizeof length, room, cut) : 0;

	memcpy(at, &length, sizeof length);
	return at + sizeof length + length;
}

/* ID (unless NULL), then the strings, written where they are to be: in the lane, which is asked for as much as they can come to. */
static void write_event(struct lane *lane, uint64_t now, uint8_t kind, const uint64_t *id, PyObject *name, PyObject *metadata)
{
	size_t name_room = text_room(&the.python, name, EVENT_STRING_MAX + 1), metadata_room = metadata ? text_room(&the.python, metadata, EVENT_STRING_MAX + 1) : 0;
	size_t most = sizeof(struct event) + sizeof *id + 2 * sizeof(uint16_t) + name_room + metadata_room + 8, size;
	struct event *event = lane_reserve(lane, most, now);
	char *end;
	bool cut = false;

	if (!event)
		return;
	end = (char *)(event + 1);
	if (id) {
		memcpy(end, id, sizeof *id);
		end += sizeof *id;
	}
	end = put_string(end, name, name_room, &cut);
	end = put_string(end, metadata, metadata_room, &cut);
	memset(end, 0, 8);
	size = (size_t)(end - (char *)event + 7) & ~(size_t)7;
	*event = (struct event){now, 0, (uint16_t)size, kind, cut ? EVENT_FLAG_CUT : 0};
	lane_commit(lane, size);
}

static void enter_in(struct lane *lane, uint64_t now, const struct scope_open *scope)
{
	write_event(lane, now, EVENT_SCOPE_ENTER, &scope->id, scope->name, scope->metadata);
}

/* The calling thread's lane, or NULL. */
static struct lane *lane_now(uint64_t *now)
{
	struct lane *lane;

	*now = ticks_now();
	if (!may_tell(*now))
		return NULL;
	lane = lane_attach();
	if (!lane)
		the.page->lane_overflow++;
	return lane;
}

static void scope_enter(const struct scope_open *scope)
{
	int saved = errno;
	uint64_t now;
	struct lane *lane = lane_now(&now);

	if (lane)
		enter_in(lane, now, scope);
	errno = saved;
}

static void scope_leave(uint64_t id)
{
	int saved = errno;
	uint64_t now;
	struct lane *lane = lane_now(&now);

	if (lane)
		lane_put_with(lane, now, 0, EVENT_SCOPE_EXIT, &id, sizeof id);
	errno = saved;
}

static void scope_instant(void *name, void *metadata)
{
	int saved = errno;
	uint64_t now;
	struct lane *lane = lane_now(&now);

	if (lane)
		write_event(lane, now, EVENT_INSTANT, NULL, name, metadata);
	errno = saved;
}

/* The table by the modules that are imported; nothing of the program's is run. */
static struct scope_table *table_find(void)
{
	PyObject *(*get_modules)(void) = (PyObject * (*)(void)) dlsym(RTLD_DEFAULT, "PyImport_GetModuleDict");
	PyObject *(*get_item)(PyObject *, const char *) = (PyObject * (*)(PyObject *, const char *)) dlsym(RTLD_DEFAULT, "PyDict_GetItemString");
	PyObject *(*get_dict)(PyObject *) = (PyObject * (*)(PyObject *)) dlsym(RTLD_DEFAULT, "PyModule_GetDict");
	void *(*get_pointer)(PyObject *, const char *) = (void *(*)(PyObject *, const char *))dlsym(RTLD_DEFAULT, "PyCapsule_GetPointer");
	void *module_type = dlsym(RTLD_DEFAULT, "PyModule_Type"), *capsule_type = dlsym(RTLD_DEFAULT, "PyCapsule_Type");
	int type = the.python.layout->object_type;
	PyObject *module, *capsule;
	struct scope_table *found;

	if (!get_modules || !get_item || !get_dict || !get_pointer || !module_type || !capsule_type)
		return NULL;
	module = get_item(get_modules(), SCOPE_MODULE);
	if (!module || at_pointer(module, type) != module_type)
		return NULL;
	capsule = get_item(get_dict(module), SCOPE_CAPSULE);
	if (!capsule || at_pointer(capsule, type) != capsule_type)
		return NULL;
	found = get_pointer(capsule, SCOPE_MODULE "." SCOPE_CAPSULE);
	if (!found)
		the.python.PyErr_Clear();
	return found && found->magic == SCOPE_MAGIC ? found : NULL;
}

static void seed_open(uint64_t now)
{
	int seen = 0;

	for (const struct scope_open *scope = table->open.next; scope && scope != &table->open && seen < OPEN_MAX; scope = scope->next, seen++) {
		struct lane *lane = lane_of_thread(scope->pthread, pthread_tid(scope->pthread), true);

		if (lane)
			enter_in(lane, now, scope);
	}
}

static void connect(uint64_t now)
{
	seed_open(now);
	table->enter = scope_enter;
	table->leave = scope_leave;
	table->instant = scope_instant;
}

void scopes_begin(uint64_t now)
{
	if (!table)
		table = table_find();
	if (table)
		connect(now);
}

void scopes_end(void)
{
	if (!table)
		return;
	table->enter = NULL;
	table->leave = NULL;
	table->instant = NULL;
}

__attribute__((visibility("default"))) void inferscope_collector_scopes(struct scope_table *imported);

/* The package was imported after the collector was loaded. */
void inferscope_collector_scopes(struct scope_table *imported)
{
	uint64_t now = ticks_now();

	if (!imported || imported->magic != SCOPE_MAGIC)
		return;
	table = imported;
	if (may_tell(now))
		connect(now);
}
