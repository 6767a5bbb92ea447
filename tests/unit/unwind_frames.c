/* Of frames in recorded memory: which evaluator call runs each, the line it is at, its local variables, and looks at one thread. */
#include "unwind/pyglance.h"
#include "unwind/pystack.h"
#include "unwind_fake.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

enum { C_STACK_BYTES = 4096, CFRAME_BYTES = 64 };

static struct criterion_test_params each_version(void)
{
	static int minors[] = { 8, 9, 10, 11, 12, 13, 14, 15 };

	return cr_make_param_array(int, minors, sizeof minors / sizeof minors[0]);
}

#define VERSION_TEST(name) ParameterizedTestParameters(frames, name) { return each_version(); } ParameterizedTest(int *minor, frames, name, .timeout = 60)

static struct pystack seen;

static void keep(void *context, const struct pystack *stack)
{
	(void)context;
	seen = *stack;
}

static struct pyreader *reader_new(struct fake *fake)
{
	struct remote_memory memory = { fake_read, fake };
	struct pyreader *reader = NULL;
	struct error err = { 0 };

	cr_assert_eq(pyreader_open(&memory, fake->runtime, fake_hex(fake->minor), TID_OFFSET, &reader, &err), 0, "%s", err.text);
	return reader;
}

/* Cframes from ADDR on, COUNT of them, each the next one's inner; the last leads to the root. Returns the innermost. */
static uint64_t add_cframes(struct fake *fake, uint64_t thread, uint64_t frame, int count)
{
	const struct cpython_layout *layout = fake->layout;
	uint64_t outer = thread + (uint64_t)layout->tstate_root_cframe, cframe = outer;

	for (int i = 0; i < count; i++, outer = cframe) {
		cframe = place(fake, CFRAME_BYTES);
		put(fake, cframe, layout->cframe_previous, outer);
	}
	if (layout->cframe_frame >= 0)
		put(fake, cframe, layout->cframe_frame, frame);
	put(fake, thread, layout->tstate_cframe, cframe);
	return cframe;
}

/* Two evaluator calls: the inner one runs two frames where a call can run more than one. ENTRIES gets what must come out. */
static uint64_t two_calls(struct fake *fake, uint64_t code, uint64_t entries[3])
{
	const struct cpython_layout *layout = fake->layout;
	uint64_t frame = outermost(fake), thread, cframe;
	bool shims = fake->minor >= 12;

	memset(entries, 0, 3 * sizeof entries[0]);
	if (shims)
		frame = entries[2] = add_frame(fake, 0x1234, frame, FRAME_OWNER_SHIM);
	frame = add_frame(fake, code, frame, 0);
	if (layout->frame_is_entry >= 0)
		*at(fake, frame, layout->frame_is_entry) = 1;
	if (shims)
		frame = entries[0] = entries[1] = add_frame(fake, 0x1234, frame, FRAME_OWNER_SHIM);
	frame = add_frame(fake, code, frame, 0);
	if (layout->frame_is_entry >= 0)
		*at(fake, frame, layout->frame_is_entry) = 1;
	frame = add_frame(fake, code, frame, 0);
	thread = add_thread(fake, frame, 7);
	if (fake->minor == 10) {
		cframe = add_cframes(fake, thread, frame, 3);
		for (int i = 0; i < 3; i++, cframe -= CFRAME_BYTES)
			entries[i] = cframe;
	}
	if (fake->minor == 11) {
		entries[0] = entries[1] = add_cframes(fake, thread, frame, 2);
		entries[2] = entries[0] - CFRAME_BYTES;
	}
	return thread;
}

VERSION_TEST(tells_which_evaluator_call_runs_each)
{
	struct fake *fake = fake_new(*minor);
	struct pyreader *reader = reader_new(fake);
	uint64_t entries[3];

	two_calls(fake, add_code(fake, "f", "f.py", 1), entries);
	cr_assert_eq(pyreader_stacks(reader, keep, NULL), 1);
	cr_assert_eq(seen.count, 3);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(seen.entry[i], entries[i], "frame %d: 0x%llx instead of 0x%llx", i, (unsigned long long)seen.entry[i], (unsigned long long)entries[i]);
	pyreader_close(reader);
	fake_free(fake);
}

VERSION_TEST(are_read_of_one_thread_in_two_steps)
{
	struct fake *fake = fake_new(*minor);
	struct pyreader *reader = reader_new(fake);
	struct pyglance *glance = NULL;
	unsigned char bytes[PYGLANCE_BYTES_MAX];
	struct error err = { 0 };
	uint64_t entries[3], thread = two_calls(fake, add_code(fake, "f", "f.py", 1), entries);
	uint32_t size;

	cr_assert_eq(pyglance_open(reader, &glance, &err), 0);
	cr_assert_eq(pyglance_look(glance, 7, bytes, sizeof bytes), 0);
	cr_assert_eq(pyglance_threads(glance, reader, NULL, NULL), 1);
	cr_assert(pyglance_knows(glance, 7) && !pyglance_knows(glance, 8));
	size = pyglance_look(glance, 7, bytes, sizeof bytes);
	cr_assert_gt(size, 0);
	cr_assert_eq(pyglance_look(glance, 7, bytes, size - 1), 0, "it does not fit");
	cr_assert_eq(pyglance_look(glance, 7, bytes, size), size);
	cr_assert_eq(pyglance_stack(reader, bytes, size, &seen), 0);
	cr_assert_eq(seen.count, 3);
	cr_assert_eq(seen.entry[2], entries[2]);
	cr_assert_eq(pyreader_torn(reader), 0);
	cr_assert_eq(pyglance_stack(reader, bytes, size - 8, &seen), -1);
	cr_assert_eq(pyreader_torn(reader), 1);
	/* Another thread has the place now. */
	put(fake, thread, fake->layout->tstate_thread_id, 0x4242424242);
	cr_assert_eq(pyglance_look(glance, 7, bytes, sizeof bytes), 0);
	pyglance_close(glance);
	pyreader_close(reader);
	fake_free(fake);
}

/* ---- many pages at once ---- */

static int together_most;   /* reads of many places stop there */
static uint64_t together_all; /* places that were read so */

static size_t read_together(void *context, const struct iovec *here, const struct iovec *there, size_t count)
{
	size_t done = 0;

	while (done < count && done < (size_t)together_most && fake_read(context, (uint64_t)(uintptr_t)there[done].iov_base, here[done].iov_base, here[done].iov_len) == 0)
		done++;
	together_all += done;
	return done;
}

/* A look at the thread; *READS: places that were read one by one. */
static uint32_t look_again(struct pyglance *glance, struct fake *fake, unsigned char *bytes, int *reads)
{
	uint32_t size;

	fake->reads = 0;
	together_all = 0;
	size = pyglance_look(glance, 7, bytes, PYGLANCE_BYTES_MAX);
	*reads = fake->reads - (int)together_all;
	return size;
}

VERSION_TEST(are_read_together_where_they_were_the_last_time)
{
	struct fake *fake = fake_new(*minor);
	struct remote_memory memory = { fake_read, fake, read_together };
	struct pyreader *reader = NULL;
	struct pyglance *glance = NULL;
	unsigned char first[PYGLANCE_BYTES_MAX], again[PYGLANCE_BYTES_MAX];
	struct error err = { 0 };
	uint64_t entries[3], code = add_code(fake, "f", "f.py", 1), other = add_code(fake, "g", "g.py", 1);
	uint64_t thread = two_calls(fake, code, entries);
	int reads, reads_first;
	uint32_t size;

	cr_assert_eq(pyreader_open(&memory, fake->runtime, fake_hex(fake->minor), TID_OFFSET, &reader, &err), 0, "%s", err.text);
	cr_assert_eq(pyglance_open(reader, &glance, &err), 0);
	cr_assert_eq(pyglance_threads(glance, reader, NULL, NULL), 1);
	together_most = 16;
	size = look_again(glance, fake, first, &reads_first);
	cr_assert(size > 0 && reads_first >= 2);
	cr_assert_eq(look_again(glance, fake, again, &reads), size);
	cr_assert_eq(memcmp(first, again, size), 0);
	cr_assert_eq(reads, 1, "%d: where it is now is all that is asked anew", reads);
	for (together_most = 0; together_most < reads_first; together_most++) {
		cr_assert_eq(look_again(glance, fake, again, &reads), size);
		cr_assert_eq(memcmp(first, again, size), 0, "when only %d can be read", together_most);
	}
	/* It has gone on meanwhile: nothing old is told. */
	together_most = 16;
	for (size_t i = 0; i < MEMORY_BYTES - 8 && i < fake->used; i += 8) {
		uint64_t word;

		memcpy(&word, fake->bytes + i, sizeof word);
		if ((word & ~3ull) != code) /* from 3.14 on a tagged reference */
			continue;
		word = other | (word & 3);
		memcpy(fake->bytes + i, &word, sizeof word);
	}
	cr_assert_eq(look_again(glance, fake, again, &reads), size);
	cr_assert_eq(pyglance_stack(reader, again, size, &seen), 0);
	cr_assert(seen.count == 3 && seen.code[0] == other && seen.code[2] == other);
	put(fake, thread, fake->layout->tstate_thread_id, 0x4242424242);
	cr_assert_eq(look_again(glance, fake, again, &reads), 0);
	pyglance_close(glance);
	pyreader_close(reader);
	fake_free(fake);
}

Test(frames, of_3_10_whose_call_begins_or_ends_are_paired_all_the_same)
{
	struct fake *fake = fake_new(10);
	struct pyreader *reader = reader_new(fake);
	uint64_t entries[3], thread = two_calls(fake, add_code(fake, "f", "f.py", 1), entries);

	add_cframes(fake, thread, 0, 4);
	pyreader_stacks(reader, keep, NULL);
	cr_assert(seen.entry[0] && seen.entry[2]);
	cr_assert_eq(seen.entry[0] - seen.entry[2], 2 * CFRAME_BYTES);
	put(fake, thread, fake->layout->tstate_cframe, seen.entry[1]);
	pyreader_stacks(reader, keep, NULL);
	cr_assert_eq(seen.entry[0], 0, "the innermost has none any longer");
	cr_assert(seen.entry[1] && seen.entry[2]);
	put(fake, thread, fake->layout->tstate_cframe, 0x41414141);
	pyreader_stacks(reader, keep, NULL);
	cr_assert(!seen.entry[0] && !seen.entry[1] && !seen.entry[2]);
	pyreader_close(reader);
	fake_free(fake);
}

Test(frames, are_those_of_the_outer_call_while_one_begins)
{
	for (int minor = 11; minor <= 12; minor++) {
		struct fake *fake = fake_new(minor);
		struct pyreader *reader = reader_new(fake);
		uint64_t code = add_code(fake, "f", "f.py", 1), frame = add_frame(fake, code, 0, 0), thread = add_thread(fake, frame, 7), cframe;

		cframe = add_cframes(fake, thread, 0x4141414141414141, 2);
		put(fake, cframe - CFRAME_BYTES, fake->layout->cframe_frame, frame);
		cr_assert_eq(pyreader_stacks(reader, keep, NULL), 1, "3.%d", minor);
		cr_assert_eq(seen.count, 1);
		pyreader_close(reader);
		fake_free(fake);
	}
}

/* A frame at instruction AT (bytes), in code whose table is TABLE and whose first line is 10. */
static uint32_t line_at(int minor, const void *table, size_t size, int at_bytes)
{
	struct fake *fake = fake_new(minor);
	const struct cpython_layout *layout = fake->layout;
	struct pyreader *reader = reader_new(fake);
	uint64_t code = add_code(fake, "f", "f.py", 10), bytes = place(fake, 64 + size);
	uint64_t instr = layout->code_bytes >= 0 ? code + (uint64_t)layout->code_bytes + (uint64_t)(int64_t)at_bytes : (uint64_t)(uint32_t)(minor == 10 ? at_bytes / 2 : at_bytes);
	uint32_t line;

	put(fake, bytes, layout->object_size, size);
	memcpy(at(fake, bytes, layout->bytes_text), table, size);
	put(fake, code, layout->code_linetable, bytes);
	line = pyreader_line(reader, code, instr);
	pyreader_close(reader);
	fake_free(fake);
	return line;
}

Test(lines, of_3_8_and_3_9_add_up)
{
	static const unsigned char table[] = { 4, 1, 6, 255, 2, 100, 0, 100 };

	for (int minor = 8; minor <= 9; minor++) {
		cr_assert_eq(line_at(minor, table, sizeof table, 0), 10);
		cr_assert_eq(line_at(minor, table, sizeof table, 4), 11);
		cr_assert_eq(line_at(minor, table, sizeof table, 10), 10);
		cr_assert_eq(line_at(minor, table, sizeof table, 12), 210);
	}
}

Test(lines, of_3_10_count_from_their_end)
{
	static const unsigned char table[] = { 4, 0, 6, 1, 2, 128, 4, 254 };

	cr_assert_eq(line_at(10, table, sizeof table, 2), 10);
	cr_assert_eq(line_at(10, table, sizeof table, 4), 11);
	cr_assert_eq(line_at(10, table, sizeof table, 10), 0, "code without a line");
	cr_assert_eq(line_at(10, table, sizeof table, 12), 9);
	cr_assert_eq(line_at(10, table, sizeof table, 100), 0);
}

Test(lines, of_3_11_and_later_are_entries_of_varints)
{
	/* short form, same line, 2 units; one line +1, 1 unit; long, +600, 1 unit; no location, 1 unit; no columns, -1, 8 units */
	static const unsigned char table[] = { 128 | 0 << 3 | 1, 0, 128 | 11 << 3 | 0, 0, 0, 128 | 14 << 3 | 0, 64 | 48, 18, 0, 1, 1, 128 | 15 << 3 | 0, 128 | 13 << 3 | 7, 3 };

	for (int minor = 11; minor <= 15; minor++) {
		cr_assert_eq(line_at(minor, table, sizeof table, 2), 10);
		cr_assert_eq(line_at(minor, table, sizeof table, 4), 11);
		cr_assert_eq(line_at(minor, table, sizeof table, 6), 611, "%u", line_at(minor, table, sizeof table, 6));
		cr_assert_eq(line_at(minor, table, sizeof table, 8), 0);
		cr_assert_eq(line_at(minor, table, sizeof table, 24), 610);
		cr_assert_eq(line_at(minor, table, sizeof table, 100), 0);
	}
}

Test(lines, of_a_frame_that_has_not_begun_are_the_first)
{
	cr_assert_eq(line_at(8, "", 0, -1), 10);
	cr_assert_eq(line_at(10, "", 0, -2), 10);
	cr_assert_eq(line_at(13, "", 0, -2), 10);
}

Test(lines, of_tables_that_lie_are_not_known)
{
	static const unsigned char open_varint[] = { 128 | 14 << 3, 127, 127, 127, 127, 127, 127, 127, 127 }, no_head[] = { 1, 2, 3 };

	cr_assert_eq(line_at(12, no_head, sizeof no_head, 0), 0);
	cr_assert_eq(line_at(12, open_varint, sizeof open_varint, 0), 0);
	cr_assert_eq(line_at(10, "\x04", 1, 0), 0);
}

/* ---- local variables ---- */

static char told[512];

static void tell(void *context, const char *name, const char *value)
{
	(void)context;
	snprintf(told + strlen(told), sizeof told - strlen(told), "%s=%s;", name, value);
}

static uint64_t add_type(struct fake *fake, const char *name, uint64_t flags)
{
	uint64_t type = place(fake, 512);

	put(fake, type, fake->layout->type_name, add_text(fake, name));
	put(fake, type, fake->layout->type_flags, flags);
	place(fake, 4096); /* a name is read to its end or that of its page */
	return type;
}

static uint64_t add_object(struct fake *fake, const char *type, uint64_t flags, uint64_t first, uint64_t second)
{
	uint64_t object = place(fake, 64);

	put(fake, object, fake->layout->object_type, add_type(fake, type, flags));
	put(fake, object, 16, first);
	put(fake, object, 24, second);
	return object;
}

static uint64_t add_names(struct fake *fake, const char *const *names, size_t count)
{
	uint64_t tuple = place(fake, 64 + count * 8);

	put(fake, tuple, fake->layout->object_size, count);
	for (size_t i = 0; i < count; i++)
		put(fake, tuple, fake->layout->tuple_items + (int)i * 8, add_ascii(fake, names[i]));
	return tuple;
}

VERSION_TEST(have_local_variables_of_simple_types)
{
	static const char *const names[] = { "n", "unset", "big", "l", "c", "none", "own" };
	struct fake *fake = fake_new(*minor);
	const struct cpython_layout *layout = fake->layout;
	struct pyreader *reader = reader_new(fake);
	uint64_t code = add_code(fake, "f", "f.py", 1), frame = place(fake, 1024), number, values[7];

	number = add_object(fake, "int", 1 << 24, *minor >= 12 ? 1 << 3 | 2 : (uint64_t)-1, 42);
	values[0] = number;
	values[1] = 0;
	values[2] = add_object(fake, "int", 1 << 24, *minor >= 12 ? 10 << 3 : 10, 1);
	values[3] = add_object(fake, "list", 1 << 25, 3, 0);
	values[4] = add_object(fake, "cell", 0, number, 0);
	values[5] = add_object(fake, "NoneType", 0, 0, 0);
	values[6] = add_object(fake, "package.Thing", 1 << 9 | 1 << 24, 1, 1);
	put(fake, frame, layout->frame_code, *minor >= 14 ? code | 1 : code);
	put(fake, frame, layout->frame_previous, outermost(fake));
	put(fake, code, layout->code_localnames, add_names(fake, names, 7));
	for (int i = 0; i < 7; i++)
		put(fake, frame, layout->frame_locals + i * 8, *minor >= 14 && values[i] ? values[i] | 1 : values[i]);
	add_thread(fake, frame, 7);
	pyreader_stacks(reader, keep, NULL);
	told[0] = '\0';
	cr_assert_eq(pyreader_locals(reader, &seen, 0, tell, NULL), 6);
	cr_assert_str_eq(told, "n=-42;big=<int of 300 bits>;l=<list, 3 items>;c=-42;none=None;own=<Thing>;");
	put(fake, frame, layout->frame_code, 0);
	cr_assert_eq(pyreader_locals(reader, &seen, 0, tell, NULL), -1);
	pyreader_close(reader);
	fake_free(fake);
}

VERSION_TEST(are_not_searched_for_all_the_variables_that_a_torn_tuple_claims)
{
	static const char *const names[] = { "n" };
	struct fake *fake = fake_new(*minor);
	const struct cpython_layout *layout = fake->layout;
	struct pyreader *reader = reader_new(fake);
	uint64_t code = add_code(fake, "f", "f.py", 1), tuple = add_names(fake, names, 1), frame = place(fake, 1 << 20);
	int reads;

	put(fake, frame, layout->frame_code, *minor >= 14 ? code | 1 : code);
	put(fake, frame, layout->frame_previous, outermost(fake));
	put(fake, tuple, layout->object_size, 60000);
	put(fake, code, layout->code_localnames, tuple);
	add_thread(fake, frame, 7);
	pyreader_stacks(reader, keep, NULL);
	reads = fake->reads;
	cr_assert_eq(pyreader_locals(reader, &seen, 0, tell, NULL), 0);
	cr_assert_leq(fake->reads - reads, 1100);
	pyreader_close(reader);
	fake_free(fake);
}
