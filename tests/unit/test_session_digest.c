/*
 * From a look at a thread to its events: the looker, the digest and the joiner on this very process, in whose memory a small interpreter was built by hand.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/target.h"
#include "session/digest.h"
#include "session/look.h"
#include "session/stacks.h"
#include "session/tasks.h"
#include "trace/reader.h"
#include "unwind_fake.h"

enum { TID = 77, OTHER = 78, WEIGHT = 1000000 };

struct scene {
	struct fake *fake;
	struct target target;
	struct looker *looker;
	struct digest *digest;
	struct event_builder builder;
	struct look look;
	uint64_t outer, inner, thread;
};

/* The fake's memory, where the fake believes it to be. */
static bool put_in_place(struct fake *fake)
{
	unsigned char *here = mmap((void *)(uintptr_t)MEMORY_BASE, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (here != (void *)(uintptr_t)MEMORY_BASE)
		return false;
	memcpy(here, fake->bytes, fake->used);
	free(fake->bytes);
	fake->bytes = here;
	return true;
}

static void open_all(struct scene *scene)
{
	struct digest_settings settings = { .target = &scene->target, .runtime = scene->fake->runtime, .builder = &scene->builder, .clock = clock_map_monotonic() };
	struct error err = { 0 };

	cr_assert_eq(looker_open(&scene->target, &procfs_real, scene->fake->runtime, &scene->looker, &err), 0, "%s", err.text);
	cr_assert_eq(digest_open(&settings, &scene->digest, &err), 0, "%s", err.text);
	cr_assert(looker_threads(scene->looker, NULL, NULL));
}

/* A thread in `inner`, called by `outer`. NULL where our own memory has no room at that address. */
static struct scene *scene_new(int minor)
{
	struct scene *scene = calloc(1, sizeof *scene);
	struct fake *fake = scene->fake = fake_new(minor);
	uint64_t frame;

	scene->outer = add_code(fake, "outer", "/srv/app.py", 10);
	scene->inner = add_code(fake, "inner", "/srv/app.py", 20);
	frame = add_frame(fake, scene->outer, outermost(fake), FRAME_OWNER_THREAD);
	scene->thread = add_thread(fake, add_frame(fake, scene->inner, frame, FRAME_OWNER_THREAD), TID);
	if (!put_in_place(fake)) {
		fake_free(fake);
		free(scene);
		return NULL;
	}
	scene->target.pid = scene->target.memory.pid = scene->target.facts.pid = scene->target.facts.inner_pid = getpid();
	scene->target.facts.python_hex = fake_hex(minor);
	scene->target.facts.python_minor = minor;
	scene->target.facts.tid_offset = TID_OFFSET;
	event_builder_init(&scene->builder);
	open_all(scene);
	return scene;
}

static void scene_free(struct scene *scene)
{
	digest_close(scene->digest);
	looker_close(scene->looker);
	event_builder_done(&scene->builder);
	munmap(scene->fake->bytes, MEMORY_BYTES);
	free(scene->fake);
	free(scene);
}

/* Looks, and tells of it. TASK runs, its coroutine is `outer`; NULL: none does. */
static void tell_task(struct scene *scene, bool running, pid_t holder, const char *task)
{
	struct sight *sight;

	looker_python(scene->looker, TID, running, &scene->look);
	if (task) {
		scene->look.task.code = scene->outer;
		snprintf(scene->look.task.name, sizeof scene->look.task.name, "%s", task);
	}
	sight = sight_new(TID, &scene->look);
	cr_assert_not_null(sight);
	sight->weight_ns = WEIGHT;
	sight->running = running;
	sight->state = THREAD_GIL_WAIT;
	sight->holder = holder;
	digest_tell(scene->digest, sight);
	free(sight);
}

static void tell(struct scene *scene, bool running, pid_t holder)
{
	tell_task(scene, running, holder, NULL);
}

/* What was told, as "code inner|code outer|stack|stack|sample …". */
static const char *told(struct scene *scene)
{
	static char text[1024];
	struct event_cursor cursor = event_cursor(scene->builder.bytes, scene->builder.size);
	size_t used = 0, length;

	text[0] = '\0';
	while (event_next(&cursor)) {
		const char *separator = used ? "|" : "", *name;

		switch (cursor.event.kind) {
		case EVENT_CODE:
			name = event_str(&cursor, 3, &length);
			used += (size_t)snprintf(text + used, sizeof text - used, "%scode %.*s", separator, (int)length, name);
			break;
		case EVENT_STACK:
			used += (size_t)snprintf(text + used, sizeof text - used, "%sstack %u on %u", separator, cursor.event.ref - SAMPLER_FIRST_ID, event_u32(&cursor, 0) ? event_u32(&cursor, 0) - SAMPLER_FIRST_ID : 99);
			break;
		case EVENT_SAMPLE:
			used += (size_t)snprintf(text + used, sizeof text - used, "%ssample %u of %u state %u ns %u", separator, cursor.event.ref - SAMPLER_FIRST_ID, event_u32(&cursor, 0), event_u32(&cursor, 1),
			                         (unsigned)event_u64(&cursor, 2));
			break;
		case EVENT_GIL:
			used += (size_t)snprintf(text + used, sizeof text - used, "%sgil %u held by %u", separator, cursor.event.ref, event_u32(&cursor, 0));
			break;
		case EVENT_TASK:
			name = event_str(&cursor, 1, &length);
			used += (size_t)snprintf(text + used, sizeof text - used, "%stask %u %.*s in %u", separator, cursor.event.ref, (int)length, name, event_u32(&cursor, 0) - SAMPLER_FIRST_ID);
			break;
		case EVENT_TASK_RUN:
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%u runs task %u", separator, cursor.event.ref, event_u32(&cursor, 0));
			break;
		}
	}
	event_builder_clear(&scene->builder);
	return text;
}

struct version { int minor; };

ParameterizedTestParameters(digest, tells_stacks_once_and_samples_each_time)
{
	static struct version versions[] = { { 8 }, { 9 }, { 10 }, { 11 }, { 12 }, { 13 }, { 14 }, { 15 } };

	return cr_make_param_array(struct version, versions, sizeof versions / sizeof *versions);
}

ParameterizedTest(struct version *version, digest, tells_stacks_once_and_samples_each_time)
{
	struct scene *scene = scene_new(version->minor);

	if (!scene)
		cr_skip_test("no room in memory");
	tell(scene, true, 0);
	cr_assert_str_eq(told(scene), "code outer|stack 0 on 99|code inner|stack 1 on 0|sample 1 of 77 state 2 ns 1000000");
	tell(scene, true, 0);
	cr_assert_str_eq(told(scene), "sample 1 of 77 state 2 ns 1000000");
	give_gil(scene->fake, scene->thread);
	tell(scene, true, 0);
	cr_assert_str_eq(told(scene), "sample 1 of 77 state 1 ns 1000000", "with the GIL it runs Python");
	cr_assert_eq(digest_totals(scene->digest).samples, 3);
	scene_free(scene);
}

/* Another str of the same length where the name of CODE lies: as when a function was freed, and one made right after it has all its addresses. */
static void replace(struct scene *scene, uint64_t code, const char *name)
{
	const struct cpython_layout *layout = scene->fake->layout;
	uint64_t text;

	memcpy(&text, at(scene->fake, code, layout->code_name), sizeof text);
	memcpy(at(scene->fake, text, layout->unicode_ascii_size), name, strlen(name));
}

ParameterizedTestParameters(digest, tells_functions_at_one_address_apart)
{
	static struct version versions[] = { { 8 }, { 11 }, { 13 }, { 15 } };

	return cr_make_param_array(struct version, versions, sizeof versions / sizeof *versions);
}

ParameterizedTest(struct version *version, digest, tells_functions_at_one_address_apart)
{
	struct scene *scene = scene_new(version->minor);

	if (!scene)
		cr_skip_test("no room in memory");
	tell(scene, true, 0);
	told(scene);
	replace(scene, scene->inner, "newer");
	tell(scene, true, 0);
	cr_assert_str_eq(told(scene), "code newer|stack 2 on 0|sample 2 of 77 state 2 ns 1000000");
	replace(scene, scene->outer, "after");
	nanosleep(&(struct timespec){ 0, 60000000 }, NULL); /* what calls it is looked at again after a while */
	tell(scene, true, 0);
	cr_assert_str_eq(told(scene), "code after|stack 3 on 99|stack 4 on 3|sample 4 of 77 state 2 ns 1000000");
	scene_free(scene);
}

Test(digest, says_who_holds_the_gil_while_another_waits)
{
	struct scene *scene = scene_new(12);

	if (!scene)
		cr_skip_test("no room in memory");
	tell(scene, false, OTHER);
	cr_assert_str_eq(strstr(told(scene), "gil"), "gil 77 held by 78|sample 1 of 77 state 3 ns 1000000");
	tell(scene, false, TID);
	cr_assert_str_eq(told(scene), "sample 1 of 77 state 3 ns 1000000", "it does not wait for itself");
	scene_free(scene);
}

Test(digest, says_which_task_a_thread_runs_as_long_as_it_does)
{
	struct scene *scene = scene_new(13);
	struct sight *again;

	if (!scene)
		cr_skip_test("no room in memory");
	tell_task(scene, false, 0, "reader");
	cr_assert_str_eq(told(scene), "code outer|stack 0 on 99|code inner|stack 1 on 0|task 1 reader in 0|77 runs task 1|sample 1 of 77 state 3 ns 1000000");
	again = sight_new(TID, NULL);
	again->weight_ns = WEIGHT;
	again->state = THREAD_SLEEP;
	digest_tell(scene->digest, again);
	cr_assert_str_eq(told(scene), "77 runs task 1|sample 1 of 77 state 7 ns 1000000", "it stays where it was");
	tell_task(scene, true, 0, "writer");
	cr_assert_str_eq(told(scene), "task 2 writer in 0|77 runs task 2|sample 1 of 77 state 2 ns 1000000");
	tell(scene, true, 0);
	cr_assert_str_eq(told(scene), "sample 1 of 77 state 2 ns 1000000");
	free(again);
	scene_free(scene);
}

/* As in a service that makes a task for each request, for days. */
Test(tasks, are_numbered_on_however_many_names_there_were)
{
	struct event_builder builder;
	struct tasks *tasks;
	uint32_t id = 0;
	char name[32];

	event_builder_init(&builder);
	cr_assert_eq(tasks_open(NULL, NULL, &builder, &tasks, NULL), 0);
	for (uint32_t i = 1; i <= 2000000; i++) {
		snprintf(name, sizeof name, "Task-%u", i);
		id = tasks_id(tasks, name, 5, 0);
		cr_assert_eq(id, i);
		event_builder_clear(&builder);
	}
	cr_assert_eq(tasks_id(tasks, name, 5, 0), id, "it is known");
	cr_assert_eq(tasks_id(tasks, name, 6, 0), id + 1);
	cr_assert_eq(tasks_id(tasks, "Task-1", 5, 0), id + 2, "that was forgotten");
	tasks_close(tasks);
	event_builder_done(&builder);
}

Test(digest, repeats_the_last_stack_of_a_thread_that_stayed_blocked)
{
	struct scene *scene = scene_new(11);
	struct sight *again;

	if (!scene)
		cr_skip_test("no room in memory");
	again = sight_new(TID, NULL);
	again->weight_ns = WEIGHT;
	again->state = THREAD_SLEEP;
	digest_tell(scene->digest, again);
	cr_assert_str_eq(told(scene), "", "nothing is known yet");
	tell(scene, false, 0);
	told(scene);
	digest_tell(scene->digest, again);
	cr_assert_str_eq(told(scene), "sample 1 of 77 state 7 ns 1000000");
	free(again);
	scene_free(scene);
}

Test(digest, gives_the_time_of_a_torn_look_to_the_next)
{
	struct scene *scene = scene_new(13);
	struct sight *torn;

	if (!scene)
		cr_skip_test("no room in memory");
	looker_python(scene->looker, TID, true, &scene->look);
	torn = sight_new(TID, &scene->look);
	torn->weight_ns = WEIGHT;
	torn->running = true;
	torn->glimpse_size -= 8;
	digest_tell(scene->digest, torn);
	cr_assert_str_eq(told(scene), "");
	cr_assert_eq(digest_totals(scene->digest).torn, 1);
	tell(scene, true, 0);
	cr_assert_str_eq(strstr(told(scene), "sample"), "sample 1 of 77 state 2 ns 2000000");
	free(torn);
	scene_free(scene);
}

Test(stacks, count_frames_for_which_there_is_no_room)
{
	struct event_builder builder;
	struct stacks *stacks;

	event_builder_init(&builder);
	cr_assert_eq(stacks_open(NULL, &builder, &stacks, NULL), 0);
	for (uint32_t i = 1; i <= (1 << 20) + 3; i++) {
		cr_assert_eq(stacks_push_native(stacks, 0, i) != 0, i <= 1 << 20);
		event_builder_clear(&builder);
	}
	cr_assert_neq(stacks_push_native(stacks, 0, 7), 0, "what is known stays");
	cr_assert_eq(stacks_left_out(stacks), 3);
	stacks_close(stacks);
	event_builder_done(&builder);
}

/* Of a few libraries it is worth knowing, once; a program may have thousands. */
Test(stacks, tell_once_of_each_of_fifty_files_why_it_has_no_names)
{
	enum { FILES = 60, TOLD = 50 };
	struct module *module = calloc(1, sizeof *module);
	struct event_builder builder;
	struct event_cursor cursor;
	struct stacks *stacks;
	struct error err;
	uint32_t told = 0;

	event_builder_init(&builder);
	cr_assert_eq(stacks_open(NULL, &builder, &stacks, &err), 0);
	for (uint32_t i = 0; i < 2 * FILES; i++) {
		module->id = 1 + i % FILES;
		snprintf(module->path, sizeof module->path, "/usr/lib/lib%u.so", i % FILES);
		stacks_unnamed(stacks, module, i < FILES ? "none: stripped, and no server knows it" : "asked again");
	}
	for (cursor = event_cursor(builder.bytes, builder.size); event_next(&cursor); told++) {
		char wanted[64];
		size_t key_size, value_size;
		const char *key = event_str(&cursor, 0, &key_size), *value = event_str(&cursor, 1, &value_size);

		cr_assert_eq(cursor.event.kind, EVENT_CAPTURE);
		snprintf(wanted, sizeof wanted, "names./usr/lib/lib%u.so", told);
		cr_expect(key_size == strlen(wanted) && memcmp(key, wanted, key_size) == 0, "%.*s", (int)key_size, key);
		cr_expect(value_size >= 5 && memcmp(value, "none:", 5) == 0, "%.*s", (int)value_size, value);
	}
	cr_expect_eq(told, TOLD);
	stacks_close(stacks);
	event_builder_done(&builder);
	free(module);
}

Test(looker, reads_the_rest_of_a_stack_so_that_it_is_there)
{
	enum { PAGE = 4096, PAGES = 4 };
	unsigned char *stack = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), there[PAGES];
	static struct thread_copy copy;
	struct scene *scene = scene_new(13);

	if (!scene)
		cr_skip_test("no room in memory");
	cr_assert_neq(stack, MAP_FAILED);
	madvise(stack, PAGES * PAGE, MADV_NOHUGEPAGE);
	stack[0] = 1;
	copy.regs[DWARF_RSP] = (uintptr_t)stack;
	copy.stack_size = PAGE;
	copy.stack_asked = 3 * PAGE;
	looker_touch(scene->looker, &copy);
	cr_assert_eq(mincore(stack, PAGES * PAGE, there), 0);
	cr_assert(there[0] && there[1] && there[2] && !there[3]);
	munmap(stack, PAGES * PAGE);
	scene_free(scene);
}

Test(looker, knows_threads_with_python_alone)
{
	struct scene *scene = scene_new(14);

	if (!scene)
		cr_skip_test("no room in memory");
	cr_assert(looker_knows(scene->looker, TID));
	cr_assert_not(looker_knows(scene->looker, OTHER));
	looker_python(scene->looker, OTHER, true, &scene->look);
	cr_assert(scene->look.glimpse_size == 0 && scene->look.copy.tid == OTHER && scene->look.copy.known == 0);
	scene_free(scene);
}

Test(looker, says_how_far_a_stack_is_still_what_it_was)
{
	struct scene *scene = scene_new(12);
	uint64_t stack, words = 16;

	if (!scene)
		cr_skip_test("no room in memory");
	stack = place(scene->fake, words * 8);
	scene->look.copy.regs[DWARF_RSP] = stack;
	scene->look.copy.stack_size = (uint32_t)words * 8;
	for (uint64_t i = 0; i < words; i++)
		put(scene->fake, stack, (int)i * 8, i);
	memcpy(scene->look.copy.stack, at(scene->fake, stack, 0), words * 8);
	cr_assert_eq(looker_still(scene->looker, &scene->look.copy), stack);
	put(scene->fake, stack, 5 * 8, 1000);
	cr_assert_eq(looker_still(scene->looker, &scene->look.copy), stack + 6 * 8, "from the word after the changed one on");
	put(scene->fake, stack, 15 * 8, 1000);
	cr_assert_eq(looker_still(scene->looker, &scene->look.copy), stack + words * 8, "nothing is");
	scene->look.copy.regs[DWARF_RSP] = 8;
	cr_assert_eq(looker_still(scene->looker, &scene->look.copy), 8 + words * 8, "nor what cannot be read");
	scene_free(scene);
}

/* ---- joiner ---- */

#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noinline, noclone))
#endif

static int copy_own(void *context, uint64_t addr, void *buffer, size_t size)
{
	struct iovec ours = { buffer, size }, theirs = { (void *)(uintptr_t)addr, size };

	(void)context;
	return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == (ssize_t)size ? 0 : -1;
}

KEPT void joiner_test_innermost(struct thread_copy *copy);

KEPT void joiner_test_innermost(struct thread_copy *copy)
{
	const int order[DWARF_COUNT] = { 13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16 }; /* gregs in DWARF's order */
	ucontext_t context;
	uint64_t sp;

	getcontext(&context);
	for (int i = 0; i < DWARF_COUNT; i++)
		copy->regs[i] = (uint64_t)context.uc_mcontext.gregs[order[i]];
	copy->known = (1u << DWARF_COUNT) - 1;
	copy->at_ns = clock_monotonic_ns();
	sp = copy->regs[DWARF_RSP];
	for (uint32_t size = 0; size < THREAD_COPY_STACK_MAX && copy_own(NULL, sp + size, copy->stack + size, 8) == 0; size += 8)
		copy->stack_size = size + 8;
}

Test(joiner, walks_names_and_joins_a_copy_of_this_thread)
{
	static struct thread_copy copy;
	static struct native_stack native;
	static struct joined_stack joined;
	struct target target = { .pid = getpid(), .memory.pid = getpid(), .facts = { .pid = getpid(), .inner_pid = getpid(), .python_minor = 12 } };
	struct symbol names[SYMBOL_INLINES_MAX];
	const struct module *module;
	struct error err = { 0 };
	struct joiner *joiner;
	size_t count;

	joiner_test_innermost(&copy);
	cr_assert_eq(joiner_open(&target, &procfs_real, false, &joiner, &err), 0, "%s", err.text);
	joiner_walk(joiner, &copy, &native);
	cr_assert_eq(native.end, WALK_COMPLETE, "%s", walk_end_name(native.end));
	count = joiner_names(joiner, &native, 0, names, &module);
	cr_assert_str_eq(names[count - 1].name, "joiner_test_innermost");
	cr_assert(module && strstr(module->path, "test_session"), "it lies in %s", module ? module->path : "nothing");
	joiner_join(joiner, NULL, &native, 0, &joined);
	cr_assert_eq(joined.result, JOIN_NATIVE);
	cr_assert_eq(joined.count, native.count);
	cr_assert_not(joiner_hides(joiner, &native, 0));
	joiner_close(joiner);
}

/* A JIT's code, or a library's, that came after the map was read: once it is read again what is there is known. */
Test(joiner, walks_once_more_where_the_map_is_older_than_the_code)
{
	static struct thread_copy copy;
	static struct native_stack native;
	struct target target = { .pid = getpid(), .memory.pid = getpid(), .facts = { .pid = getpid(), .inner_pid = getpid(), .python_minor = 14 } };
	struct error err = { 0 };
	struct joiner *joiner;
	void *code;

	joiner_test_innermost(&copy);
	cr_assert_eq(joiner_open(&target, &procfs_real, false, &joiner, &err), 0, "%s", err.text);
	joiner_walk(joiner, &copy, &native);
	code = mmap(NULL, 65536, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(code, MAP_FAILED);
	copy.regs[DWARF_PC] = (uint64_t)code + 100;
	joiner_walk(joiner, &copy, &native);
	cr_assert_eq(native.end, WALK_CUT_TABLES, "%s", walk_end_name(native.end));
	cr_assert_eq(native.frames[0].module, 0);
	joiner_walk_newest(joiner, &copy, &native);
	cr_assert_eq(native.end, WALK_CUT_JIT, "%s", walk_end_name(native.end));
	cr_assert_neq(native.frames[0].module, 0);
	munmap(code, 65536);
	joiner_close(joiner);
}

Test(joiner, puts_python_frames_where_their_entry_lies)
{
	static struct thread_copy copy;
	static struct native_stack native;
	static struct joined_stack joined;
	static struct pystack python = { .count = 2 };
	struct target target = { .pid = getpid(), .memory.pid = getpid(), .facts = { .pid = getpid(), .inner_pid = getpid(), .python_minor = 12 } };
	struct error err = { 0 };
	struct joiner *joiner;

	joiner_test_innermost(&copy);
	cr_assert_eq(joiner_open(&target, &procfs_real, false, &joiner, &err), 0, "%s", err.text);
	joiner_walk(joiner, &copy, &native);
	cr_assert_gt(native.count, 2);
	python.entry[0] = python.entry[1] = native.frames[1].sp;
	joiner_join(joiner, &python, &native, 0, &joined);
	cr_assert_eq(joined.result, JOIN_WHOLE);
	cr_assert_eq(joined.count, native.count + 1, "two Python frames for one native one");
	cr_assert(!joined.frames[0].python && joined.frames[1].python && joined.frames[2].python && !joined.frames[3].python);
	joiner_close(joiner);
}

static uint32_t python_frames_later(struct joiner *joiner, const struct thread_copy *copy, const struct pystack *python, const struct native_stack *native)
{
	static struct joined_stack joined;
	uint32_t count = 0;

	joiner_meet(joiner, copy, python, native);
	joiner_join(joiner, python, native, UINT64_MAX, &joined);
	for (uint32_t i = 0; i < joined.count; i++)
		count += joined.frames[i].python;
	return count;
}

/* In a stripped build nothing names the interpreter's loop, and Python frames that were read later have no place without it. */
Test(joiner, learns_the_loop_from_an_entry_that_stands_still)
{
	static struct thread_copy copy;
	static struct native_stack native;
	static struct pystack python = { .count = 2 };
	struct target target = { .pid = getpid(), .memory.pid = getpid(), .facts = { .pid = getpid(), .inner_pid = getpid(), .python_minor = 14 } };
	struct error err = { 0 };
	struct joiner *joiner;

	joiner_test_innermost(&copy);
	cr_assert_eq(joiner_open(&target, &procfs_real, false, &joiner, &err), 0, "%s", err.text);
	joiner_walk(joiner, &copy, &native);
	cr_assert_gt(native.count, 3);
	python.entry[0] = python.entry[1] = native.frames[native.count - 2].sp;
	copy.stack[python.entry[1] - copy.regs[DWARF_RSP]] ^= 1;
	cr_assert_eq(python_frames_later(joiner, &copy, &python, &native), 0, "its place held something else then");
	copy.stack[python.entry[1] - copy.regs[DWARF_RSP]] ^= 1;
	python.cut = true;
	cr_assert_eq(python_frames_later(joiner, &copy, &python, &native), 0, "the outermost frame is not known");
	python.cut = false;
	cr_assert_eq(python_frames_later(joiner, &copy, &python, &native), 2);
	python.entry[0] = python.entry[1] = copy.regs[DWARF_RSP] + copy.stack_size; /* outside of the copy: nothing to compare with */
	joiner_meet(joiner, &copy, &python, &native);
	joiner_close(joiner);
}
