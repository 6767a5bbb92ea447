/* Names of threads: dictionaries and instances of each version, built by hand. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "unwind/pystack.h"
#include "unwind_fake.h"

enum { INDEX_BYTES = 8, INDEX_BITS = 3, KIND_GENERAL = 0, KIND_UNICODE = 1, KIND_SPLIT = 2, BEFORE = 32, FLAG_INT = 1 << 24, FLAG_MANAGED = 1 << 4, FLAG_INLINE = 1 << 2 };

struct pair { uint64_t key, value; };

static uint64_t add_keys(struct fake *fake, int kind, const struct pair *pairs, int count)
{
	const struct cpython_layout *layout = fake->layout;
	uint64_t keys = place(fake, 256);
	int hash = layout->keys_kind < 0 || kind == KIND_GENERAL ? 8 : 0;

	if (layout->keys_size >= 0)
		put(fake, keys, layout->keys_size, INDEX_BYTES);
	if (layout->keys_index_bits >= 0) {
		*at(fake, keys, layout->keys_index_bits) = INDEX_BITS;
		*at(fake, keys, layout->keys_kind) = (unsigned char)kind;
	}
	put(fake, keys, layout->keys_count, (uint64_t)count);
	for (int i = 0; i < count; i++) {
		int entry = layout->keys_indices + INDEX_BYTES + i * (16 + hash) + hash;

		put(fake, keys, entry, pairs[i].key);
		if (kind != KIND_SPLIT)
			put(fake, keys, entry + 8, pairs[i].value);
	}
	return keys;
}

static uint64_t add_dict(struct fake *fake, int kind, const struct pair *pairs, int count)
{
	uint64_t dict = place(fake, 64);

	put(fake, dict, fake->layout->dict_keys, add_keys(fake, kind, pairs, count));
	return dict;
}

static uint64_t add_type(struct fake *fake, const char *name, uint64_t flags)
{
	uint64_t type = place(fake, 1024);

	put(fake, type, fake->layout->type_name, add_text(fake, name));
	put(fake, type, fake->layout->type_flags, flags);
	return type;
}

static uint64_t add_int(struct fake *fake, uint64_t type, uint32_t value)
{
	uint64_t object = place(fake, 64);

	put(fake, object, fake->layout->object_type, type);
	put(fake, object, fake->layout->long_tag >= 0 ? fake->layout->long_tag : fake->layout->object_size, fake->layout->long_tag >= 0 ? 1 << 3 : 1);
	put_int(fake, object, fake->layout->long_digits, value);
	return object;
}

/* An instance as its version keeps attributes; OWN: in a dict of its own all the same. */
static uint64_t add_instance(struct fake *fake, const struct pair *pairs, int count, bool own)
{
	const struct cpython_layout *layout = fake->layout;
	bool managed = fake->minor >= 11, inlined = fake->minor >= 13;
	uint64_t type = add_type(fake, "Thread", (managed ? FLAG_MANAGED : 0) | (inlined ? FLAG_INLINE : 0)), object = place(fake, 256) + BEFORE, values = place(fake, 128);

	put(fake, object, layout->object_type, type);
	put(fake, type, layout->type_basicsize, 16);
	put(fake, type, layout->type_dictoffset, managed ? (uint64_t)-1 : 16);
	put(fake, type, layout->heaptype_keys, add_keys(fake, KIND_SPLIT, pairs, count));
	if (inlined && !own) {
		values = object + 16;
		*at(fake, values, 3) = 1;
	}
	for (int i = 0; i < count; i++)
		put(fake, values, layout->values_first + i * 8, pairs[i].value);
	if (own)
		put(fake, object, managed ? -24 : 16, add_dict(fake, KIND_UNICODE, pairs, count));
	else if (fake->minor == 11)
		put(fake, object, -32, values);
	else if (fake->minor == 12)
		put(fake, object, -24, values - 1);
	else if (!inlined)
		put(fake, object, 16, add_dict(fake, KIND_UNICODE, pairs, count));
	return object;
}

static void add_modules(struct fake *fake, const char *module, const char *variable, uint64_t value)
{
	uint64_t object = place(fake, 64);
	struct pair variables[] = { { add_ascii(fake, "other"), object }, { add_ascii(fake, variable), value } };
	struct pair modules[] = { { add_ascii(fake, "sys"), object }, { add_ascii(fake, module), object } };

	put(fake, object, fake->layout->module_dict, add_dict(fake, KIND_UNICODE, variables, 2));
	put(fake, fake->runtime, fake->layout->runtime_interp_main, fake->interp);
	put(fake, fake->interp, fake->layout->interp_modules, add_dict(fake, KIND_GENERAL, modules, 2));
}

static void add_named_threads(struct fake *fake)
{
	uint64_t ints = add_type(fake, "int", FLAG_INT), ident = add_ascii(fake, "_ident"), name = add_ascii(fake, "_name"), tid = add_ascii(fake, "_native_id");
	const struct pair first[] = { { ident, add_int(fake, ints, 1) }, { name, add_ascii(fake, "MainThread") }, { tid, add_int(fake, ints, 71) } };
	const struct pair second[] = { { ident, add_int(fake, ints, 2) }, { name, add_ascii(fake, "loader") }, { tid, add_int(fake, ints, 72) } };
	const struct pair nameless[] = { { ident, add_int(fake, ints, 3) }, { tid, add_int(fake, ints, 73) } };
	struct pair active[] = { { first[0].value, add_instance(fake, first, 3, false) }, { second[0].value, add_instance(fake, second, 3, true) }, { nameless[0].value, add_instance(fake, nameless, 2, false) } };

	add_modules(fake, "threading", "_active", add_dict(fake, KIND_GENERAL, active, 3));
}

static void note(void *context, pid_t tid, const char *name)
{
	char *text = context;

	sprintf(text + strlen(text), "%d %s|", (int)tid, name);
}

static struct pyreader *open_reader(struct fake *fake)
{
	const struct remote_memory memory = { fake_read, fake };
	struct pyreader *reader;
	struct error err = { 0 };

	cr_assert_eq(pyreader_open(&memory, fake->runtime, fake_hex(fake->minor), TID_OFFSET, &reader, &err), 0, "%s", err.text);
	return reader;
}

struct version { int minor; };

ParameterizedTestParameters(names, are_those_of_threading)
{
	static struct version versions[] = { { 8 }, { 9 }, { 10 }, { 11 }, { 12 }, { 13 }, { 14 }, { 15 } };

	return cr_make_param_array(struct version, versions, sizeof versions / sizeof *versions);
}

ParameterizedTest(struct version *version, names, are_those_of_threading)
{
	struct fake *fake = fake_new(version->minor);
	struct pyreader *reader = open_reader(fake);
	char text[256] = "";

	cr_assert_eq(pyreader_names(reader, note, text), 0, "there is no threading yet");
	add_named_threads(fake);
	cr_assert_eq(pyreader_names(reader, note, text), 2);
	cr_assert_str_eq(text, "71 MainThread|72 loader|");
	for (int reads = 1; reads < 60; reads++) {
		fake->reads = 0;
		fake->fail_after = reads;
		text[0] = '\0';
		cr_assert_leq(pyreader_names(reader, note, text), 2, "what cannot be read is left out");
	}
	pyreader_close(reader);
	fake_free(fake);
}

Test(names, of_a_table_without_end_are_not_read)
{
	struct fake *fake = fake_new(12);
	struct pyreader *reader = open_reader(fake);
	uint64_t dict = place(fake, 64), keys = add_keys(fake, KIND_GENERAL, NULL, 0);
	char text[64] = "";

	put(fake, dict, fake->layout->dict_keys, keys);
	add_modules(fake, "threading", "_active", dict);
	cr_assert_eq(pyreader_names(reader, note, text), 0, "an empty one has none");
	put(fake, keys, fake->layout->keys_count, UINT64_MAX / 2);
	cr_assert_eq(pyreader_names(reader, note, text), -1);
	pyreader_close(reader);
	fake_free(fake);
}
