/* Python stacks of the moment of a copy: which functions its words name, who called them, and when nothing is said. */
#include "unwind/pymoment.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>
#include <string.h>

#include "unwind_fake.h"

enum { STACK = 0x7ff000, FRAME = 0x100, INSTRUCTIONS = 64 /* bytes of each function's */, CODES = 6, TID = 7, ENTRY_BELOW = 0x40 /* the CFA */ };

/* Functions a, b, c … of a process, and a thread of native frames (letters, innermost first; E is the loop) on a stack of FRAME bytes each. */
struct scene {
	struct fake *fake;
	struct pyreader *reader;
	struct pymoment *moment;
	uint64_t code[CODES], start[CODES];
	struct thread_copy copy;
	struct native_stack native;
	struct pystack out;
};

static struct scene scene;

static uint64_t add_function(struct fake *fake, char letter, uint64_t *start)
{
	const struct cpython_layout *layout = fake->layout;
	uint64_t code = add_code(fake, (char[]){ letter, '\0' }, "/srv/app.py", (uint32_t)letter), bytes = place(fake, INSTRUCTIONS + 64);

	if (layout->code_code >= 0) {
		put(fake, code, layout->code_code, bytes);
		put(fake, bytes, layout->object_size, INSTRUCTIONS);
		*start = bytes + (uint64_t)layout->bytes_text;
	} else {
		put(fake, code, layout->object_size, INSTRUCTIONS / 2);
		*start = code + (uint64_t)layout->code_bytes;
	}
	return code;
}

static void begin(int minor, const char *native)
{
	struct remote_memory memory = { fake_read, NULL };
	struct error err = { 0 };

	memset(&scene, 0, sizeof scene);
	scene.fake = fake_new(minor);
	for (int i = 0; i < CODES; i++)
		scene.code[i] = add_function(scene.fake, (char)('a' + i), &scene.start[i]);
	memory.context = scene.fake;
	cr_assert_eq(pyreader_open(&memory, scene.fake->runtime, fake_hex(minor), TID_OFFSET, &scene.reader, &err), 0, "%s", err.text);
	cr_assert_eq(pymoment_open(scene.reader, &scene.moment, &err), 0, "%s", err.text);
	scene.copy.known = 1u << DWARF_RSP | 1u << DWARF_RIP | 1u << DWARF_RBX;
	scene.copy.regs[DWARF_RSP] = STACK;
	for (; native[scene.native.count]; scene.native.count++) {
		uint64_t sp = STACK + scene.native.count * (uint64_t)FRAME;

		scene.native.frames[scene.native.count] = (struct native_frame){ .ip = (unsigned char)native[scene.native.count], .sp = sp, .cfa = sp + FRAME };
	}
	scene.copy.stack_size = scene.native.count * FRAME;
}

static void end(void)
{
	pymoment_close(scene.moment);
	pyreader_close(scene.reader);
	fake_free(scene.fake);
}

TestSuite(moment, .fini = end);

/* The loop's frame number WHICH (of native) is at an instruction of LETTER. */
static void runs(uint32_t which, char letter)
{
	uint64_t word = scene.start[letter - 'a'] + 10;

	memcpy(scene.copy.stack + which * FRAME + 0x20, &word, sizeof word);
}

/* Functions innermost first, each with the native frame that its loop's is: "a1b1c3"; '.' = not known. */
static struct pystack stack_of(const char *text)
{
	struct pystack stack = { .tid = TID };

	for (; *text; text += 2, stack.count++) {
		stack.code[stack.count] = scene.code[*text - 'a'];
		stack.entry[stack.count] = text[1] == '.' ? 0 : STACK + (uint64_t)(text[1] - '0' + 1) * FRAME - ENTRY_BELOW;
	}
	return stack;
}

static void learn(const char *text)
{
	struct pystack stack = stack_of(text);

	pymoment_learn(scene.moment, &stack);
}

static bool is_loop(void *context, const struct native_stack *native, uint32_t which)
{
	(void)context;
	return native->frames[which].ip == 'E';
}

/* What is told when LATER was read, and the stack was the same from native frame STILL on. NULL: nothing. */
static const char *recalled(const char *later, uint32_t still)
{
	static char text[PYSTACK_FRAMES_MAX + 1];
	const struct join_rules rules = { .python_minor = scene.fake->minor, .still_above = STACK + still * FRAME - 8, .evaluator = is_loop };
	struct pystack read = stack_of(later);
	uint32_t count = 0;

	if (!pymoment_stack(scene.moment, &scene.copy, &scene.native, &rules, &read, &scene.out))
		return NULL;
	for (; count < scene.out.count; count++)
		for (int i = 0; i < CODES; i++)
			if (scene.out.code[count] == scene.code[i])
				text[count] = (char)('a' + i);
	text[count] = '\0';
	return text;
}

struct version { int minor; };

ParameterizedTestParameters(moment, each_call_of_the_loop_names_its_function)
{
	static struct version versions[] = { { 8 }, { 9 }, { 10 } };

	return cr_make_param_array(struct version, versions, sizeof versions / sizeof *versions);
}

ParameterizedTest(struct version *version, moment, each_call_of_the_loop_names_its_function)
{
	const char *entries = version->minor == 10 ? "d1b3" : "d.b.";

	begin(version->minor, "xEyEm");
	learn("a1b3");
	learn("d1b3");
	runs(1, 'a');
	runs(3, 'b');
	cr_assert_str_eq(recalled(entries, 3), "ab");
	cr_assert_eq(scene.out.tid, TID);
	cr_assert(scene.out.entry[0] >= STACK + FRAME && scene.out.entry[0] < STACK + 2 * FRAME);
}

ParameterizedTestParameters(moment, remembers_who_called)
{
	static struct version versions[] = { { 11 }, { 12 }, { 13 }, { 14 }, { 15 } };

	return cr_make_param_array(struct version, versions, sizeof versions / sizeof *versions);
}

ParameterizedTest(struct version *version, moment, remembers_who_called)
{
	begin(version->minor, "xEyEm");
	learn("a1b1c1f3");
	learn("d1e1c1f3");
	runs(1, 'a');
	runs(3, 'f');
	cr_assert_str_eq(recalled("d1e1c1f3", 3), "abcf");
	cr_assert_str_eq(recalled("f3", 3), "abcf", "the inner call of the loop has ended");
	runs(1, 'e');
	cr_assert_str_eq(recalled("d1e1c1f3", 3), "ecf", "what it called has begun since");
}

Test(moment, takes_the_callers_of_another_call_where_they_are_always_the_same)
{
	begin(13, "xEyEm");
	learn("a3b3");
	learn("c1f3");
	runs(1, 'a');
	runs(3, 'f');
	cr_assert_str_eq(recalled("c1f3", 4), "abf");
	learn("a3c3");
	cr_assert_null(recalled("c1f3", 4));
}

Test(moment, needs_no_frames_that_were_read_afterwards)
{
	begin(13, "xEyEm");
	learn("a1b1f3");
	learn("c1b1f3");
	runs(1, 'a');
	runs(3, 'f');
	cr_assert_str_eq(recalled("", 4), "abf");
	scene.native.end = WALK_CUT_TABLES;
	cr_assert_null(recalled("", 4), "and what lies further out is not");
}

Test(moment, takes_frames_that_stood_still_as_they_were_read)
{
	begin(12, "xEyEm");
	learn("a1f3");
	learn("b1f3");
	runs(1, 'a');
	cr_assert_str_eq(recalled("b1f3", 2), "af");
	cr_assert_null(recalled("b1f3", 4), "the outer call has changed, and its function is not told");
}

Test(moment, believes_a_register_before_what_may_be_left_over)
{
	begin(12, "xEm");
	learn("a1");
	learn("b1");
	runs(1, 'b');
	scene.native.frames[1].preserved[2] = scene.start[0] + 2;
	cr_assert_str_eq(recalled("b1", 2), "a");
}

Test(moment, finds_it_in_any_register_of_a_loop_that_was_interrupted)
{
	begin(12, "Em");
	learn("a0");
	learn("b0");
	scene.copy.regs[DWARF_RBX] = scene.start[0] + 2;
	cr_assert_str_eq(recalled("b0", 2), "a");
}

Test(moment, says_nothing_where_they_contradict_each_other)
{
	begin(9, "xEm");
	learn("a.");
	learn("b.");
	runs(1, 'a');
	scene.native.frames[1].preserved[0] = scene.start[0];
	scene.native.frames[1].preserved[5] = scene.start[1];
	cr_assert_null(recalled("a.", 2));
	scene.native.frames[1].preserved[0] = scene.native.frames[1].preserved[5] = 0;
	cr_assert_str_eq(recalled("a.", 2), "a");
	memcpy(scene.copy.stack + FRAME + 0x40, &scene.start[1], sizeof scene.start[1]);
	cr_assert_null(recalled("a.", 2));
}

Test(moment, says_nothing_of_functions_nobody_has_seen)
{
	begin(9, "xEm");
	learn("b.");
	runs(1, 'a');
	cr_assert_null(recalled("b.", 2));
}

Test(moment, says_nothing_of_words_that_are_not_in_the_copy)
{
	begin(9, "xEm");
	learn("a.");
	runs(1, 'a');
	scene.copy.stack_size = FRAME + 0x28;
	cr_assert_null(recalled("a.", 2));
}

/* What a function saves of its caller's registers is no word of its own. */
Test(moment, leaves_saved_registers_to_the_caller)
{
	uint64_t word;

	begin(10, "EEm");
	learn("a0b1");
	learn("c0b1");
	runs(0, 'a');
	runs(1, 'b');
	word = scene.start[2] + 4;
	memcpy(scene.copy.stack + FRAME - 24, &word, sizeof word);
	cr_assert_str_eq(recalled("b1", 2), "ab");
}

/* 3.10 keeps equal instructions of a module once. */
Test(moment, says_nothing_of_instructions_that_functions_share)
{
	const struct cpython_layout *layout = cpython_layout(10);
	uint64_t bytes;

	begin(10, "xEm");
	bytes = scene.start[1] - (uint64_t)layout->bytes_text;
	put(scene.fake, scene.code[0], layout->code_code, bytes);
	learn("b1");
	runs(1, 'b');
	cr_assert_str_eq(recalled("b1", 2), "b");
	learn("a1");
	cr_assert_null(recalled("b1", 2));
}

Test(moment, looks_again_at_a_place_that_another_function_took)
{
	struct pystack stack;

	begin(12, "xEm");
	learn("a1");
	learn("c1");
	runs(1, 'a');
	cr_assert_str_eq(recalled("c1", 2), "a");
	stack = stack_of("a1");
	stack.stamp[0] = 5;
	pymoment_learn(scene.moment, &stack);
	cr_assert_str_eq(recalled("c1", 2), "a");
	cr_assert_eq(scene.out.stamp[0], 5);
}
