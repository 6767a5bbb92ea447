/* Python stacks out of recorded memory: a small interpreter of each version, built by hand, then damaged in every way that counts. */
#include "unwind/pystack.h"
#include "unwind_fake.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACKS_MAX = 16 };

struct seen {
	struct pystack stacks[STACKS_MAX];
	int count;
};

static void keep(void *context, const struct pystack *stack)
{
	struct seen *seen = context;

	cr_assert_lt(seen->count, STACKS_MAX);
	seen->stacks[seen->count++] = *stack;
}

static struct pyreader *reader_new(struct fake *fake)
{
	struct remote_memory memory = { fake_read, fake };
	struct pyreader *reader = NULL;
	struct error err = { 0 };

	cr_assert_eq(pyreader_open(&memory, fake->runtime, fake_hex(fake->minor), TID_OFFSET, &reader, &err), 0, "%s", err.text);
	return reader;
}

/* One round over FAKE. Returns what pyreader_stacks() did, and how many walks it dropped. */
static int look(struct fake *fake, struct seen *seen, uint64_t *torn)
{
	struct pyreader *reader = reader_new(fake);
	int result;

	memset(seen, 0, sizeof *seen);
	result = pyreader_stacks(reader, keep, seen);
	*torn = pyreader_torn(reader);
	pyreader_close(reader);
	return result;
}

static struct criterion_test_params each_version(void)
{
	static int minors[] = { 8, 9, 10, 11, 12, 13, 14, 15 };

	return cr_make_param_array(int, minors, sizeof minors / sizeof minors[0]);
}

#define VERSION_TEST(name) ParameterizedTestParameters(pystack, name) { return each_version(); } ParameterizedTest(int *minor, pystack, name, .timeout = 60)

VERSION_TEST(reads_two_threads_and_who_holds_the_gil)
{
	struct fake *fake = fake_new(*minor);
	uint64_t main_code = add_code(fake, "main", "m.py", 1), leaf_code = add_code(fake, "leaf", "l.py", 7);
	uint64_t one = add_frame(fake, main_code, outermost(fake), 0);
	uint64_t two = add_frame(fake, leaf_code, add_frame(fake, main_code, outermost(fake), 0), 0);
	struct seen seen;
	uint64_t torn;

	add_thread(fake, one, 100);
	give_gil(fake, add_thread(fake, two, 101));
	cr_assert_eq(look(fake, &seen, &torn), 2);
	cr_assert_eq(torn, 0);
	cr_assert_eq(seen.stacks[0].tid, 100);
	cr_assert_eq(seen.stacks[0].count, 1);
	cr_assert(!seen.stacks[0].holds_gil && seen.stacks[1].holds_gil);
	cr_assert_eq(seen.stacks[1].tid, 101);
	cr_assert_eq(seen.stacks[1].count, 2);
	cr_assert_eq(seen.stacks[1].code[0], leaf_code);
	cr_assert_eq(seen.stacks[1].code[1], main_code);
	fake_free(fake);
}

VERSION_TEST(leaves_out_shims_and_threads_without_frames)
{
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "f", "f.py", 1), frame = outermost(fake);
	struct seen seen;
	uint64_t torn;

	if (*minor >= 12) /* what a shim calls its code is anything */
		frame = add_frame(fake, 0x1234, frame, FRAME_OWNER_SHIM);
	frame = add_frame(fake, code, frame, 1);
	if (*minor >= 14)
		frame = add_frame(fake, 0, frame, FRAME_OWNER_SHIM + 1);
	add_thread(fake, outermost(fake), 5);
	add_thread(fake, frame, 6);
	cr_assert_eq(look(fake, &seen, &torn), 1);
	cr_assert_eq(torn, 0);
	cr_assert_eq(seen.stacks[0].count, 1);
	cr_assert_eq(seen.stacks[0].code[0], code);
	fake_free(fake);
}

VERSION_TEST(names_code_in_utf8)
{
	static const uint16_t wide[] = { 'a', 0xfc, 0x20ac, 0xdcff };
	static const uint32_t widest[] = { 0x1d535, 'b', 0 };
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "name", "x.py", 42);
	struct pyreader *reader = reader_new(fake);
	struct pycode names;

	cr_assert_eq(pyreader_code(reader, code, &names), 0);
	cr_assert_str_eq(names.name, "name");
	cr_assert_str_eq(names.qualname, *minor >= 11 ? "Class.name" : "name");
	cr_assert_str_eq(names.file, "x.py");
	cr_assert_eq(names.line, 42);
	put(fake, code, fake->layout->code_name, add_str(fake, wide, 4, 2, false));
	put(fake, code, fake->layout->code_filename, add_str(fake, widest, 3, 4, false));
	cr_assert_eq(pyreader_code(reader, code, &names), 0);
	cr_assert_str_eq(names.name, "a\xc3\xbc\xe2\x82\xac\xef\xbf\xbd");
	cr_assert_str_eq(names.file, "\xf0\x9d\x94\xb5" "b\xef\xbf\xbd");
	pyreader_close(reader);
	fake_free(fake);
}

VERSION_TEST(cuts_long_names_at_a_whole_character)
{
	static uint16_t euros[1000];
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "name", "x.py", 1);
	struct pyreader *reader = reader_new(fake);
	struct pycode names;

	for (size_t i = 0; i < 1000; i++)
		euros[i] = 0x20ac;
	put(fake, code, fake->layout->code_name, add_str(fake, euros, 1000, 2, false));
	cr_assert_eq(pyreader_code(reader, code, &names), 0);
	cr_assert_eq(strlen(names.name), 255 / 3 * 3);
	pyreader_close(reader);
	fake_free(fake);
}

VERSION_TEST(refuses_names_that_lie_about_themselves)
{
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "name", "x.py", 1), name = add_ascii(fake, "abc");
	struct pyreader *reader = reader_new(fake);
	struct pycode names;

	put(fake, code, fake->layout->code_name, name);
	put(fake, name, fake->layout->unicode_length, ~0ull);
	cr_assert_eq(pyreader_code(reader, code, &names), -1);
	put(fake, name, fake->layout->unicode_length, 3);
	put_int(fake, name, fake->layout->unicode_state, 3u << fake->layout->unicode_kind_bit | 1u << fake->layout->unicode_compact_bit);
	cr_assert_eq(pyreader_code(reader, code, &names), -1);
	put_int(fake, name, fake->layout->unicode_state, 0);
	cr_assert_eq(pyreader_code(reader, code, &names), -1);
	cr_assert_eq(pyreader_code(reader, 0, &names), -1);
	cr_assert_eq(pyreader_code(reader, name, &names), -1);
	cr_assert_eq(pyreader_code(reader, ~0ull, &names), -1);
	pyreader_close(reader);
	fake_free(fake);
}

VERSION_TEST(drops_a_chain_that_meets_itself)
{
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "f", "f.py", 1), first = add_frame(fake, code, 0, 0), frame = first;
	struct seen seen;
	uint64_t torn;

	for (int i = 0; i < 150; i++)
		frame = add_frame(fake, code, frame, 0);
	put(fake, first, fake->layout->frame_previous, frame);
	add_thread(fake, frame, 5);
	cr_assert_eq(look(fake, &seen, &torn), 0);
	cr_assert_eq(torn, 1);
	fake_free(fake);
}

VERSION_TEST(drops_chains_that_lead_nowhere_and_goes_on_with_the_next_thread)
{
	static const uint64_t wild[] = { 0x10, 0x7f0000000001, 0xffffffffffffff00, 0x4141414141414141, 0x7effffff0000, 0x8000 };
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "f", "f.py", 1);
	struct seen seen;
	uint64_t torn;

	for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++)
		add_thread(fake, add_frame(fake, code, wild[i], 0), (uint32_t)(10 + i));
	add_thread(fake, add_frame(fake, 0x7f0000000100, outermost(fake), 0), 30); /* a code that is none */
	add_thread(fake, add_frame(fake, code, add_frame(fake, 0, outermost(fake), 0), 0), 31);
	add_thread(fake, add_frame(fake, code, outermost(fake), 0), 32);
	cr_assert_eq(look(fake, &seen, &torn), 1);
	cr_assert_eq(seen.stacks[0].tid, 32);
	cr_assert_eq(torn, sizeof wild / sizeof wild[0] + 2);
	fake_free(fake);
}

VERSION_TEST(cuts_a_chain_of_100000_frames)
{
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "deep", "d.py", 1), frame = outermost(fake);
	struct seen seen;
	uint64_t torn;

	for (int i = 0; i < 100000; i++)
		frame = add_frame(fake, code, frame, 0);
	add_thread(fake, frame, 5);
	cr_assert_eq(look(fake, &seen, &torn), 1);
	cr_assert(seen.stacks[0].cut);
	cr_assert_eq(seen.stacks[0].count, PYSTACK_FRAMES_MAX);
	cr_assert_eq(torn, 0);
	fake_free(fake);
}

VERSION_TEST(says_that_256_frames_are_all)
{
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "deep", "d.py", 1), frame = outermost(fake);
	struct seen seen;
	uint64_t torn;

	for (int i = 0; i < PYSTACK_FRAMES_MAX; i++)
		frame = add_frame(fake, code, frame, 0);
	add_thread(fake, frame, 5);
	cr_assert_eq(look(fake, &seen, &torn), 1);
	cr_assert(!seen.stacks[0].cut);
	cr_assert_eq(seen.stacks[0].count, PYSTACK_FRAMES_MAX);
	fake_free(fake);
}

VERSION_TEST(ends_at_a_list_of_threads_that_is_a_circle)
{
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "f", "f.py", 1), first = add_thread(fake, add_frame(fake, code, outermost(fake), 0), 5);
	struct seen seen;
	uint64_t torn;

	add_thread(fake, add_frame(fake, code, outermost(fake), 0), 6);
	put(fake, add_thread(fake, add_frame(fake, code, outermost(fake), 0), 7), fake->layout->tstate_next, first);
	cr_assert_leq(look(fake, &seen, &torn), 9);
	fake_free(fake);
}

VERSION_TEST(leaves_a_thread_that_is_of_another_interpreter)
{
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "f", "f.py", 1);
	struct seen seen;
	uint64_t torn;

	put(fake, add_thread(fake, add_frame(fake, code, outermost(fake), 0), 5), fake->layout->tstate_interp, fake->runtime);
	cr_assert_eq(look(fake, &seen, &torn), 0);
	cr_assert_eq(torn, 1);
	fake_free(fake);
}

VERSION_TEST(survives_a_process_that_goes_away_at_any_read)
{
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "f", "f.py", 1), frame = outermost(fake);
	struct pyreader *reader;
	struct seen seen;

	for (int i = 0; i < 40; i++)
		frame = add_frame(fake, code, frame, 0);
	add_thread(fake, frame, 5);
	add_thread(fake, frame, 6);
	for (int reads = 1; reads < 40; reads++) {
		fake->fail_after = 0;
		reader = reader_new(fake);
		fake->reads = 0;
		fake->fail_after = reads;
		memset(&seen, 0, sizeof seen);
		cr_assert_leq(pyreader_stacks(reader, keep, &seen), 2);
		for (int i = 0; i < seen.count; i++)
			cr_assert_eq(seen.stacks[i].count, 40);
		pyreader_close(reader);
	}
	fake_free(fake);
}

VERSION_TEST(stamps_code_anew_when_another_takes_its_address)
{
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "f", "f.py", 1);
	struct pyreader *reader = reader_new(fake);
	struct seen before = { 0 }, after;

	add_thread(fake, add_frame(fake, code, outermost(fake), 0), 5);
	cr_assert_eq(pyreader_stacks(reader, keep, &before), 1);
	put(fake, code, fake->layout->code_name, add_ascii(fake, "other"));
	for (int i = 0; i < 100; i++) {
		memset(&after, 0, sizeof after);
		cr_assert_eq(pyreader_stacks(reader, keep, &after), 1);
	}
	cr_assert_neq(before.stacks[0].stamp[0], after.stacks[0].stamp[0]);
	pyreader_close(reader);
	fake_free(fake);
}

VERSION_TEST(keeps_up_with_programs_that_make_code_without_end)
{
	struct fake *fake = fake_new(*minor);
	uint64_t code = add_code(fake, "f", "f.py", 1), frame = add_frame(fake, code, outermost(fake), 0);
	struct pyreader *reader = reader_new(fake);
	struct seen seen;

	add_thread(fake, frame, 5);
	for (int i = 0; i < 10000; i++) {
		code = add_code(fake, "g", "g.py", (uint32_t)i);
		put(fake, frame, fake->layout->frame_code, code);
		memset(&seen, 0, sizeof seen);
		cr_assert_eq(pyreader_stacks(reader, keep, &seen), 1);
		cr_assert_eq(seen.stacks[0].code[0], code);
	}
	pyreader_close(reader);
	fake_free(fake);
}

static uint32_t noise_state = 12345;

static void add_noise(struct fake *fake)
{
	for (int i = 0; i < 4; i++) {
		noise_state = noise_state * 1664525 + 1013904223;
		fake->bytes[noise_state % fake->used] = (unsigned char)(noise_state >> 24);
	}
}

VERSION_TEST(survives_memory_that_changes_under_it)
{
	for (int round = 0; round < 60; round++) {
		struct fake *fake = fake_new(*minor);
		uint64_t code = add_code(fake, "f", "f.py", 1), frame = outermost(fake);
		struct pyreader *reader = reader_new(fake);
		struct seen seen = { 0 };
		struct pycode names;

		for (int i = 0; i < 30; i++)
			frame = add_frame(fake, code, frame, 0);
		for (uint32_t i = 0; i < 5; i++)
			add_thread(fake, frame, 5 + i);
		fake->on_read = add_noise;
		for (int i = 0; i < 100; i++) {
			memset(&seen, 0, sizeof seen);
			pyreader_stacks(reader, keep, &seen);
			pyreader_code(reader, code, &names);
		}
		pyreader_close(reader);
		fake_free(fake);
	}
}

static enum error_code open_code(struct fake *fake, uint32_t python_hex)
{
	struct remote_memory memory = { fake_read, fake };
	struct pyreader *reader = NULL;
	struct error err = { 0 };

	if (pyreader_open(&memory, fake->runtime, python_hex, TID_OFFSET, &reader, &err) == 0)
		pyreader_close(reader);
	return err.code;
}

Test(pystack, takes_the_caller_of_a_frame_that_3_14_has_just_cleared)
{
	struct fake *fake = fake_new(14);
	uint64_t code = add_code(fake, "f", "f.py", 1);
	struct seen seen;
	uint64_t torn;

	add_thread(fake, add_frame(fake, 0, add_frame(fake, code, 0, 0), 0), 5);
	cr_assert_eq(look(fake, &seen, &torn), 1);
	cr_assert_eq(seen.stacks[0].count, 1);
	cr_assert_eq(seen.stacks[0].code[0], code);
	fake_free(fake);
}

Test(pyreader_open, refuses_versions_that_it_does_not_know)
{
	struct fake *fake = fake_new(12);

	cr_assert_eq(open_code(fake, 0x03070000), ERR_PYTHON_VERSION);
	cr_assert_eq(open_code(fake, 0x03100000), ERR_PYTHON_VERSION);
	cr_assert_eq(open_code(fake, 0x02070000), ERR_PYTHON_VERSION);
	cr_assert_eq(open_code(fake, 0), ERR_PYTHON_VERSION);
	cr_assert_eq(open_code(fake, fake_hex(12)), ERR_NONE);
	fake_free(fake);
}

Test(pyreader_open, refuses_a_layout_that_the_process_contradicts)
{
	struct fake *fake = fake_new(13);

	put(fake, fake->runtime, fake->layout->debug_tstate_frame, 80);
	cr_assert_eq(open_code(fake, fake_hex(13)), ERR_PYTHON_VERSION);
	fake_free(fake);
}

Test(pyreader_open, refuses_a_free_threaded_build_by_name)
{
	struct fake *fake = fake_new(14);

	put(fake, fake->runtime, fake->layout->debug_free_threaded, 1);
	cr_assert_eq(open_code(fake, fake_hex(14)), ERR_FREE_THREADED);
	fake_free(fake);
}

Test(pyreader_open, refuses_memory_without_an_interpreter)
{
	struct fake *fake = fake_new(15);

	memset(at(fake, fake->runtime, 0), 0, 8);
	cr_assert_eq(open_code(fake, fake_hex(15)), ERR_NOT_PYTHON);
	fake->runtime = 0x1000;
	cr_assert_eq(open_code(fake, fake_hex(15)), ERR_NOT_PYTHON);
	fake->minor = 8;
	cr_assert_eq(open_code(fake, fake_hex(8)), ERR_NOT_PYTHON);
	fake_free(fake);
}

Test(pystack, drops_a_walk_of_3_15_that_misses_the_base_frame)
{
	struct fake *fake = fake_new(15);
	struct seen seen;
	uint64_t torn;

	add_thread(fake, add_frame(fake, add_code(fake, "f", "f.py", 1), 0, 0), 5);
	cr_assert_eq(look(fake, &seen, &torn), 0);
	cr_assert_eq(torn, 1);
	fake_free(fake);
}

Test(pystack, leaves_out_the_trampoline_under_an_inlined_init)
{
	struct fake *fake = fake_new(13);
	uint64_t trampoline = add_code(fake, "__init__", "x", 0), code = add_code(fake, "__init__", "a.py", 3);
	struct seen seen;
	uint64_t torn, name = add_ascii(fake, "__init__");

	put(fake, trampoline, fake->layout->code_name, name);
	put(fake, trampoline, fake->layout->code_filename, name);
	add_thread(fake, add_frame(fake, code, add_frame(fake, trampoline, 0, 0), 0), 5);
	cr_assert_eq(look(fake, &seen, &torn), 1);
	cr_assert_eq(seen.stacks[0].count, 1);
	cr_assert_eq(seen.stacks[0].code[0], code);
	fake_free(fake);
}
