/*
 * Tables of names and values:
 *
 *   dict ─→ keys: head │ index │ key value, key value, …       all in one
 *     └───→ values: value, value, …                            or the values apart: instances of one class share their keys
 *
 * The index is not asked: hashes of str are the target's secret. A table that changes meanwhile gives what it had before, or has now.
 */
#include "unwind/pydict.h"

#include <string.h>

#include "abi/cpython.h"

enum { PART = 128, ENTRIES_MAX = 1 << 20, ENTRY_BYTES = 16, HASH_BYTES = 8, KEYS_HEAD = 40, DICT_HEAD = 48, SET_HEAD = 48, NAME_BYTES_MAX = 64, STR_HEAD_MAX = 56, INDEX_BITS_MAX = 34 };
enum { KIND_GENERAL = 0 };
/* Py_TPFLAGS_*: where instances keep their attributes, from 3.11 and from 3.13 on. */
enum { FLAG_MANAGED_DICT = 1 << 4, FLAG_INLINE_VALUES = 1 << 2 };

struct keys {
	uint64_t entries, count;
	uint32_t step, before; /* bytes from entry to entry, and in each before its key */
};

static int read_keys(const struct pyreader *reader, uint64_t addr, struct keys *out)
{
	const struct cpython_layout *layout = reader->walk.layout;
	unsigned char head[KEYS_HEAD];
	uint64_t index_bytes, size;
	bool hashed = true;

	if (!address_plausible(addr) || reader_read(reader, addr, head, sizeof head) < 0)
		return -1;
	if (layout->keys_index_bits >= 0) {
		if (head[layout->keys_index_bits] > INDEX_BITS_MAX)
			return -1;
		index_bytes = 1ull << head[layout->keys_index_bits];
		hashed = head[layout->keys_kind] == KIND_GENERAL;
	} else {
		size = word_at(head, layout->keys_size);
		if (size > UINT32_MAX)
			return -1;
		index_bytes = size * (size <= UINT8_MAX ? 1 : size <= UINT16_MAX ? 2 : 4);
	}
	out->before = hashed ? HASH_BYTES : 0;
	out->step = out->before + ENTRY_BYTES;
	out->count = word_at(head, layout->keys_count);
	out->entries = addr + (uint64_t)layout->keys_indices + index_bytes;
	return out->count <= ENTRIES_MAX ? 0 : -1;
}

/* VALUES: where they stand apart from KEYS; 0: they do not. */
static int each_entry(const struct pyreader *reader, const struct keys *keys, uint64_t values, bool (*each)(void *context, uint64_t key, uint64_t value), void *context)
{
	unsigned char entries[PART * (ENTRY_BYTES + HASH_BYTES)], apart[PART * 8];

	for (uint64_t at = 0; at < keys->count; at += PART) {
		uint64_t part = keys->count - at < PART ? keys->count - at : PART;

		if (reader_read(reader, keys->entries + at * keys->step, entries, part * keys->step) < 0 || (values && reader_read(reader, values + at * 8, apart, part * 8) < 0))
			return -1;
		for (uint64_t i = 0; i < part; i++) {
			int entry = (int)(i * keys->step + keys->before);
			uint64_t key = word_at(entries, entry), value = values ? word_at(apart, (int)i * 8) : word_at(entries, entry + 8);

			if (key && value && !each(context, key, value))
				return 0;
		}
	}
	return 0;
}

int reader_dict(const struct pyreader *reader, uint64_t dict, bool (*each)(void *context, uint64_t key, uint64_t value), void *context)
{
	const struct cpython_layout *layout = reader->walk.layout;
	unsigned char head[DICT_HEAD];
	struct keys keys;
	uint64_t values;

	if (!address_plausible(dict) || reader_read(reader, dict, head, sizeof head) < 0 || read_keys(reader, word_at(head, layout->dict_keys), &keys) < 0)
		return -1;
	values = word_at(head, layout->dict_values);
	return each_entry(reader, &keys, values ? values + (uint64_t)layout->values_first : 0, each, context);
}

int reader_set(const struct pyreader *reader, uint64_t set, bool (*each)(void *context, uint64_t member), void *context)
{
	const struct cpython_layout *layout = reader->walk.layout;
	unsigned char head[SET_HEAD], slots[PART * ENTRY_BYTES];
	uint64_t count, table;

	if (!address_plausible(set) || reader_read(reader, set, head, sizeof head) < 0)
		return -1;
	count = word_at(head, layout->set_mask) + 1;
	table = word_at(head, layout->set_table);
	if (count > ENTRIES_MAX || !address_plausible(table))
		return -1;
	for (uint64_t at = 0; at < count; at += PART) {
		uint64_t part = count - at < PART ? count - at : PART;

		if (reader_read(reader, table + at * ENTRY_BYTES, slots, part * ENTRY_BYTES) < 0)
			return -1;
		for (uint64_t i = 0; i < part; i++)
			if (word_at(slots, (int)i * ENTRY_BYTES) && !each(context, word_at(slots, (int)i * ENTRY_BYTES)))
				return 0;
	}
	return 0;
}

/* ---- by name ---- */

struct wanted {
	const struct pyreader *reader;
	const char *name;
	size_t length;
	uint64_t value;
};

static bool is_wanted(const struct wanted *wanted, uint64_t key)
{
	const struct cpython_layout *layout = wanted->reader->walk.layout;
	unsigned char bytes[STR_HEAD_MAX + NAME_BYTES_MAX];
	size_t begin = (size_t)layout->unicode_ascii_size;
	uint32_t state;

	/* One read: a shorter str at the end of what is mapped fails, and is another one anyway. */
	if (wanted->length > NAME_BYTES_MAX || !address_plausible(key) || reader_read(wanted->reader, key, bytes, begin + wanted->length) < 0)
		return false;
	state = half_at(bytes, layout->unicode_state);
	return word_at(bytes, layout->unicode_length) == wanted->length && state >> layout->unicode_ascii_bit & 1 && state >> layout->unicode_compact_bit & 1
		&& memcmp(bytes + begin, wanted->name, wanted->length) == 0;
}

static bool look_for(void *context, uint64_t key, uint64_t value)
{
	struct wanted *wanted = context;

	if (is_wanted(wanted, key))
		wanted->value = value;
	return !wanted->value;
}

uint64_t reader_dict_get(const struct pyreader *reader, uint64_t dict, const char *name)
{
	struct wanted wanted = { reader, name, strlen(name), 0 };

	return reader_dict(reader, dict, look_for, &wanted) < 0 ? 0 : wanted.value;
}

/* ---- attributes ---- */

static uint64_t word_or_0(const struct pyreader *reader, uint64_t addr)
{
	uint64_t word;

	return address_plausible(addr) && reader_word(reader, addr, &word) == 0 ? word : 0;
}

/* Values of an instance without a dict of its own; 0: it has one, at *DICT. */
static uint64_t managed_values(const struct pyreader *reader, uint64_t object, uint64_t type, uint64_t flags, uint64_t *dict)
{
	uint64_t before = word_or_0(reader, object - 24), values = 0; /* MANAGED_DICT_OFFSET */
	unsigned char head[8];

	*dict = before;
	if (reader->walk.minor == 11)
		return word_or_0(reader, object - 32);
	if (reader->walk.minor == 12)
		return before & 1 ? before + 1 : 0;
	if (before || !(flags & FLAG_INLINE_VALUES))
		return 0;
	values = object + word_or_0(reader, type + (uint64_t)reader->walk.layout->type_basicsize);
	/* struct _dictvalues: the fourth byte says whether they are in use. */
	return address_plausible(values) && reader_read(reader, values, head, sizeof head) == 0 && head[3] ? values : 0;
}

uint64_t reader_attribute(const struct pyreader *reader, uint64_t object, const char *name)
{
	const struct cpython_layout *layout = reader->walk.layout;
	struct wanted wanted = { reader, name, strlen(name), 0 };
	uint64_t type = address_plausible(object) ? word_or_0(reader, object + (uint64_t)layout->object_type) : 0, flags, dict, values;
	struct keys keys;

	if (!type)
		return 0;
	flags = word_or_0(reader, type + (uint64_t)layout->type_flags);
	if (reader->walk.minor < 11 || !(flags & FLAG_MANAGED_DICT)) {
		uint64_t offset = word_or_0(reader, type + (uint64_t)layout->type_dictoffset);

		return offset && (int64_t)offset > 0 && offset < 1 << 20 ? reader_dict_get(reader, word_or_0(reader, object + offset), name) : 0;
	}
	values = managed_values(reader, object, type, flags, &dict);
	if (!values)
		return reader_dict_get(reader, dict, name);
	if (read_keys(reader, word_or_0(reader, type + (uint64_t)layout->heaptype_keys), &keys) < 0)
		return 0;
	return each_entry(reader, &keys, values + (uint64_t)layout->values_first, look_for, &wanted) < 0 ? 0 : wanted.value;
}

/* The dict of modules, 0: it cannot be read. */
static uint64_t find_modules(const struct pyreader *reader)
{
	const struct cpython_layout *layout = reader->walk.layout;
	uint64_t interp = word_or_0(reader, reader->walk.runtime + (uint64_t)layout->runtime_interp_main);

	return interp ? word_or_0(reader, interp + (uint64_t)layout->interp_modules) : 0;
}

uint64_t reader_modules(const struct pyreader *reader)
{
	uint64_t modules = find_modules(reader);

	return modules ? word_or_0(reader, modules + (uint64_t)reader->walk.layout->dict_used) : 0;
}

uint64_t reader_global(const struct pyreader *reader, const char *module, const char *name)
{
	uint64_t modules = find_modules(reader), found = modules ? reader_dict_get(reader, modules, module) : 0;

	return found ? reader_dict_get(reader, word_or_0(reader, found + (uint64_t)reader->walk.layout->module_dict), name) : 0;
}
