/* The table of functions and their names. */
#include "collector/collector.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/cpython.h"
#include "collector/mapping.h"
#include "collector/text.h"

#define TABLE_BYTES (CODES_SLOTS * sizeof(struct code) + (REFS_MAX + CODES_MAX) * sizeof(uint32_t))
enum { REFS_MAX = CODES_MAX + 2 /* from 1, and one for "other" */ };
enum { TYPE_ON_HEAP = 9, TYPE_OF_TYPES = 31 }; /* bits: Py_TPFLAGS_HEAPTYPE, Py_TPFLAGS_TYPE_SUBCLASS */
enum { FLAG_GENERATOR = 0x20, FLAG_COROUTINE = 0x80, FLAG_ASYNC_GENERATOR = 0x200 };

int codes_open(void)
{
	const struct cpython_layout *layout = the.python.layout;
	struct code *slots = mapping_make(TABLE_BYTES, -1);

	if (!slots)
		return errno;
	memset(&the.codes, 0, sizeof the.codes);
	the.codes.slots = slots;
	the.codes.by_ref = (uint32_t *)(the.codes.slots + CODES_SLOTS);
	the.codes.taken = the.codes.by_ref + REFS_MAX;
	the.codes.next_ref = 1;
	the.codes.at_name = layout->code_name;
	the.codes.at_file = layout->code_filename;
	the.codes.at_qualname = layout->code_qualname >= 0 ? layout->code_qualname : layout->code_name;
	the.codes.at_line = layout->code_firstlineno;
	the.codes.at_flags = layout->code_flags;
	return 0;
}

static void hold(const struct code_id *id, void (*count)(PyObject *))
{
	count((PyObject *)(uintptr_t)id->name);
	count((PyObject *)(uintptr_t)id->file);
	count((PyObject *)(uintptr_t)id->qualname);
}

/* Dropping the last reference of a str (of a class of the program's own) may run other code, which must find no table any more. */
void codes_close(void)
{
	struct code *slots = the.codes.slots;
	const uint32_t *taken = the.codes.taken, count = the.codes.count;

	if (!slots)
		return;
	memset(&the.codes, 0, sizeof the.codes);
	for (uint32_t i = 0; i < count; i++)
		if (slots[taken[i]].flags & CODE_PYTHON)
			hold(&slots[taken[i]].id, the.python.Py_DecRef);
	munmap(slots, TABLE_BYTES);
}

void codes_forget(void)
{
	void *slots = the.codes.slots;

	memset(&the.codes, 0, sizeof the.codes);
	if (slots)
		munmap(slots, TABLE_BYTES);
}

/* A row at SLOT, or after it. */
static struct code *take(uint64_t key, const struct code_id *id, uint32_t slot)
{
	uint32_t i = slot;

	if (the.codes.count >= CODES_MAX)
		return NULL;
	while (the.codes.slots[i].key)
		i = (i + 1) & (CODES_SLOTS - 1);
	the.codes.slots[i].key = key;
	the.codes.slots[i].id = *id;
	the.codes.taken[the.codes.count] = i;
	the.page->code_count = ++the.codes.count;
	return &the.codes.slots[i];
}

static void give_ref(struct code *code)
{
	code->ref = the.codes.next_ref++;
	if (code->ref < REFS_MAX)
		the.codes.by_ref[code->ref] = (uint32_t)(code - the.codes.slots);
}

struct code *code_of_ref(uint32_t ref)
{
	struct code *code = ref && ref < REFS_MAX ? &the.codes.slots[the.codes.by_ref[ref]] : NULL;

	return code && code->ref == ref ? code : NULL;
}

static char *put_string(char *at, const char *text)
{
	uint16_t length = (uint16_t)strlen(text);

	memcpy(at, &length, sizeof length);
	memcpy(at + sizeof length, text, length); /* NOLINT(bugprone-not-null-terminated-result): its length stands before it */
	return at + sizeof length + length;
}

static size_t string_size(const char *text)
{
	return sizeof(uint16_t) + strlen(text);
}

/* One event in META: NUMBERS, then COUNT strings. */
static void write_names(uint32_t ref, uint8_t kind, const void *numbers, size_t numbers_size, const char *const *strings, int count, bool cut)
{
	uint64_t now = ticks_now();
	size_t size = sizeof(struct event) + numbers_size;
	struct event *event;
	char *at;

	for (int i = 0; i < count; i++)
		size += string_size(strings[i]);
	size = (size + 7) & ~(size_t)7;
	event = lane_reserve(lane_meta(), size, now);
	if (!event)
		return;
	memset((char *)event + size - 8, 0, 8); /* the padding */
	*event = (struct event){now, ref, (uint16_t)size, kind, cut ? EVENT_FLAG_CUT : 0};
	at = (char *)(event + 1);
	memcpy(at, numbers, numbers_size);
	at += numbers_size;
	for (int i = 0; i < count; i++)
		at = put_string(at, strings[i]);
	lane_commit(lane_meta(), size);
}

static void write_code(uint32_t ref, uint64_t address, uint32_t line, uint32_t flags, bool cut)
{
	const char *const strings[] = {the.codes.name, the.codes.qualname, the.codes.file};
	char numbers[16];

	memcpy(numbers, &address, 8);
	memcpy(numbers + 8, &line, 4);
	memcpy(numbers + 12, &flags, 4);
	write_names(ref, EVENT_CODE, numbers, sizeof numbers, strings, 3, cut);
}

struct code *code_overflow(void)
{
	the.page->code_overflow++;
	if (!the.codes.other_named) {
		the.codes.other_named = true;
		the.codes.other.ref = the.codes.next_ref++;
		strcpy(the.codes.name, "(other functions)");
		strcpy(the.codes.qualname, "(other functions)");
		the.codes.file[0] = 0;
		write_code(the.codes.other.ref, 0, 0, 0, false);
	}
	return &the.codes.other;
}

static struct code *code_add(PyObject *object, const struct code_id id, uint64_t key)
{
	struct code *code = take(key, &id, code_slot(key));
	bool cut = false;

	if (!code)
		return code_overflow();
	hold(&id, the.python.Py_IncRef);
	code->flags = CODE_PYTHON | ((id.flags & (FLAG_GENERATOR | FLAG_COROUTINE | FLAG_ASYNC_GENERATOR)) ? CODE_GENERATOR : 0);
	text_from_str(&the.python, id.name, the.codes.name, sizeof the.codes.name, &cut);
	text_from_str(&the.python, id.file, the.codes.file, sizeof the.codes.file, &cut);
	the.codes.qualname[0] = 0;
	if (the.python.layout->code_qualname >= 0)
		text_from_str(&the.python, id.qualname, the.codes.qualname, sizeof the.codes.qualname, &cut);
	if (skip_matches(&the.settings, the.codes.name, the.codes.qualname, the.codes.file))
		return code;
	give_ref(code);
	write_code(code->ref, (uint64_t)(uintptr_t)object, id.line, id.flags, cut);
	return code;
}

struct code *code_find_slow(PyObject *object, uint32_t recent)
{
	const struct code_id id = code_id_of(&the.codes, object);
	const uint64_t key = code_key(&id);
	uint32_t i = code_slot(key);
	struct code *code;

	while (the.codes.slots[i].key && (the.codes.slots[i].key != key || !code_id_same(&the.codes.slots[i].id, &id)))
		i = (i + 1) & (CODES_SLOTS - 1);
	code = the.codes.slots[i].key ? &the.codes.slots[i] : code_add(object, id, key);
	if (code != &the.codes.other) {
		the.codes.recent[recent].object = object;
		the.codes.recent[recent].code = code;
	}
	return code;
}

/*
 * A C function, by its PyMethodDef: bound methods are new objects at every call. Nothing is kept alive for it: holding the
 * function would hold what it is bound to, and its definition lies in its module. A class that the program made may go, and another one
 * come to lie there, as a definition may that a library made (pybind11): so the name belongs to it.
 */
struct c_name {
	uint64_t key;
	uint64_t mark; /* of the name */
	const char *name;     /* C strings of the definition or type … */
	const char *module;
	const PyObject *name_str, *module_str; /* … or str objects */
};

static const char *type_name(const void *type)
{
	return at_pointer(type, the.python.layout->type_name);
}

static uint64_t text_hash(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	while (text && *text)
		hash = (hash ^ (uint8_t)*text++) * 0x100000001b3ull;
	return hash;
}

static bool type_has(const void *type, int flag)
{
	return *(const uint64_t *)((const char *)type + the.python.layout->type_flags) >> flag & 1;
}

static void describe(PyObject *callable, struct c_name *out)
{
	const struct cpython_layout *layout = the.python.layout;
	const void *type = at_pointer(callable, layout->object_type);

	memset(out, 0, sizeof *out);
	if (type == the.python.cfunction_type || type == the.python.cmethod_type) {
		const void *definition = at_pointer(callable, layout->cfunction_def), *self = at_pointer(callable, layout->cfunction_self);

		out->key = (uint64_t)(uintptr_t)definition | 1;
		out->name = at_pointer(definition, 0);
		out->mark = (uint64_t)(uintptr_t)out->name;
		out->module_str = at_pointer(callable, layout->cfunction_module);
		if (!out->module_str && self)
			out->module = type_name(at_pointer(self, layout->object_type));
	} else if (type == the.python.method_descriptor_type) {
		out->key = (uint64_t)(uintptr_t)callable | 1;
		out->name_str = at_pointer(callable, layout->descriptor_name);
		out->mark = (uint64_t)(uintptr_t)out->name_str;
		out->module = type_name(at_pointer(callable, layout->descriptor_type));
	} else {
		bool is_type = type_has(type, TYPE_OF_TYPES);
		const void *named = is_type ? (const void *)callable : type;

		out->key = is_type ? (uint64_t)(uintptr_t)callable | 1 : (uint64_t)(uintptr_t)type | 2;
		out->name = type_name(named);
		out->mark = type_has(named, TYPE_ON_HEAP) ? text_hash(out->name) : 0;
	}
}

static bool is_str(const PyObject *object)
{
	return object && at_pointer(object, the.python.layout->object_type) == the.python.unicode_type;
}

static struct code_id c_id(const struct c_name *c)
{
	return (struct code_id){.name = (const void *)(uintptr_t)c->mark};
}

static uint32_t c_slot(const struct c_name *c)
{
	return code_slot((c->key >> 4) * 0x9e3779b97f4a7c15ull ^ c->mark * 0xc2b2ae3d27d4eb4full);
}

static struct code *add_c_function(const struct c_name *c)
{
	const char *const strings[] = {the.codes.name, the.codes.file};
	const struct code_id id = c_id(c);
	struct code *code = take(c->key, &id, c_slot(c));
	uint64_t address = c->key & ~(uint64_t)3;
	bool cut = false;

	if (!code)
		return code_overflow();
	if (is_str(c->name_str))
		text_from_str(&the.python, c->name_str, the.codes.name, sizeof the.codes.name, &cut);
	else
		text_from_c(c->name, the.codes.name, sizeof the.codes.name, &cut);
	if (is_str(c->module_str))
		text_from_str(&the.python, c->module_str, the.codes.file, sizeof the.codes.file, &cut);
	else
		text_from_c(c->module, the.codes.file, sizeof the.codes.file, &cut);
	if (skip_matches(&the.settings, the.codes.name, "", the.codes.file))
		return code;
	give_ref(code);
	write_names(code->ref, EVENT_C_FUNCTION, &address, sizeof address, strings, 2, cut);
	return code;
}

struct code *code_c_function(PyObject *callable)
{
	struct c_name c;
	struct code_id id;

	describe(callable, &c);
	id = c_id(&c);
	for (uint32_t i = c_slot(&c); the.codes.slots[i].key; i = (i + 1) & (CODES_SLOTS - 1))
		if (the.codes.slots[i].key == c.key && code_id_same(&the.codes.slots[i].id, &id))
			return &the.codes.slots[i];
	return add_c_function(&c);
}
