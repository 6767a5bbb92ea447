/*
 * Functions of a trace: one for every distinct (kind, name, file, line), whatever numbers processes, the collector and the sampler
 * give it. Two code objects made from the same line of the same file are one function to a reader of the report.
 */
#include <stdio.h>

#include "timeline/private.h"

static bool add_reserved(struct timeline_private *p, const char *name)
{
	struct name *entry = list_add_or_fail(&p->names.list, FUNCTIONS_LIMIT, &p->failed);

	if (!entry)
		return false;
	entry->kind = FUNCTION_UNKNOWN;
	entry->name = strings_add(p->strings, name, strlen(name));
	return entry->name != NONE;
}

uint32_t names_string(struct timeline_private *p, const char *bytes, size_t length)
{
	uint32_t id = strings_add(p->strings, bytes, length);

	p->failed |= id == NONE;
	return id == NONE ? 0 : id;
}

bool names_begin(struct timeline_private *p)
{
	return add_reserved(p, "(unknown)") && add_reserved(p, "(other)");
}

static bool same(const struct name *a, const struct name *b)
{
	return a->kind == b->kind && a->name == b->name && a->file == b->file && a->line == b->line;
}

static uint32_t names_add(struct timeline_private *p, enum function_kind kind, const char *name, size_t name_length, const char *file, size_t file_length, uint32_t line)
{
	struct name wanted = { .kind = kind, .line = line };
	uint64_t key;
	uint32_t found;

	wanted.name = strings_add(p->strings, name, name_length);
	wanted.file = strings_add(p->strings, file, file_length);
	if (wanted.name == NONE || wanted.file == NONE) {
		p->failed = true;
		return NAME_OTHER;
	}
	key = mix64((uint64_t)wanted.name << 32 | wanted.file) ^ mix64((uint64_t)line << 8 | kind);
	while ((found = map_get(&p->names.by_key, key)) != MAP_ABSENT) {
		if (same(&p->names.list.items[found], &wanted))
			return found;
		key++;
	}
	struct name *entry = list_add_or_fail(&p->names.list, FUNCTIONS_LIMIT, &p->failed);

	if (!entry)
		return NAME_OTHER;
	*entry = wanted;
	if (!map_put(&p->names.by_key, key, (uint32_t)p->names.list.count - 1))
		p->failed = true;
	return (uint32_t)p->names.list.count - 1;
}

static void names_bind(struct timeline_private *p, uint32_t process, uint32_t ref, uint32_t function)
{
	struct process_build *owner = &p->processes.items[process];

	if (ref < DIRECT_REFS) {
		while (owner->refs.count <= ref)
			if (!list_add_or_fail(&owner->refs, DIRECT_REFS, &p->failed))
				return;
		if (!owner->refs.items[ref])
			owner->refs.items[ref] = function + 1;
		return;
	}
	uint64_t key = (uint64_t)process << 32 | ref;

	if (map_get(&p->names.by_ref, key) == MAP_ABSENT && !map_put(&p->names.by_ref, key, function))
		p->failed = true;
}

uint32_t names_find(const struct timeline_private *p, uint32_t process, uint32_t ref)
{
	const struct process_build *owner = &p->processes.items[process];
	uint32_t found;

	if (ref < owner->refs.count)
		return owner->refs.items[ref] ? owner->refs.items[ref] - 1 : NAME_UNKNOWN;
	if (ref < DIRECT_REFS)
		return NAME_UNKNOWN;
	found = map_get(&p->names.by_ref, (uint64_t)process << 32 | ref);
	return found == MAP_ABSENT ? NAME_UNKNOWN : found;
}

static void names_bind_native(struct timeline_private *p, uint32_t process, uint32_t ref, uint32_t function)
{
	if (!map_put(&p->names.by_native, (uint64_t)process << 32 | ref, function))
		p->failed = true;
}

uint32_t names_find_native(const struct timeline_private *p, uint32_t process, uint32_t ref)
{
	uint32_t found = map_get(&p->names.by_native, (uint64_t)process << 32 | ref);

	return found == MAP_ABSENT ? NAME_UNKNOWN : found;
}

void names_code(struct timeline_private *p, uint32_t process, const struct event_cursor *c)
{
	size_t name_length, qualname_length, file_length;
	const char *name = event_str(c, 3, &name_length);
	const char *qualname = event_str(c, 4, &qualname_length);
	const char *file = event_str(c, 5, &file_length);

	if (qualname_length) {
		name = qualname;
		name_length = qualname_length;
	}
	names_bind(p, process, c->event.ref, names_add(p, FUNCTION_PYTHON, name, name_length, file, file_length, event_u32(c, 1)));
}

void names_c_function(struct timeline_private *p, uint32_t process, const struct event_cursor *c)
{
	size_t name_length, module_length;
	const char *name = event_str(c, 1, &name_length);
	const char *module = event_str(c, 2, &module_length);

	names_bind(p, process, c->event.ref, names_add(p, FUNCTION_C, name, name_length, module, module_length, 0));
}

void names_native(struct timeline_private *p, uint32_t process, const struct event_cursor *c)
{
	size_t name_length, file_length;
	const char *name = event_str(c, 3, &name_length);
	const char *file = event_str(c, 4, &file_length);
	uint32_t module = map_get(&p->names.modules, (uint64_t)process << 32 | event_u32(c, 1)), function;
	char address[32];

	if (!name_length) {
		name = address;
		name_length = (size_t)snprintf(address, sizeof address, "0x%llx", (unsigned long long)event_u64(c, 0));
	}
	if (!file_length) {
		file = module == MAP_ABSENT ? "" : strings_get(p->strings, module);
		file_length = strlen(file);
	}
	function = names_add(p, FUNCTION_NATIVE, name, name_length, file, file_length, event_u32(c, 2));
	if (module != MAP_ABSENT && function != NAME_OTHER)
		p->names.list.items[function].module = module;
	names_bind_native(p, process, c->event.ref, function);
}

void names_done(struct timeline_private *p)
{
	list_done(&p->names.list);
	map_done(&p->names.by_key);
	map_done(&p->names.by_ref);
	map_done(&p->names.by_native);
	map_done(&p->names.modules);
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
