/* Which task of asyncio a thread runs: in recorded memory, as each version keeps it. */
#include "unwind/pyglance.h"
#include "unwind_fake.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

enum { TID = 7, HASH_BYTES = 8, ENTRY_BYTES = 24, INDEX_BITS = 3, INDEX_BYTES = 1 << INDEX_BITS, OBJECT_BYTES = 256 };

static struct criterion_test_params each_version(void)
{
	static int minors[] = { 8, 9, 10, 11, 12, 13, 14, 15 };

	return cr_make_param_array(int, minors, sizeof minors / sizeof minors[0]);
}

#define VERSION_TEST(name) ParameterizedTestParameters(tasks, name) { return each_version(); } ParameterizedTest(int *minor, tasks, name, .timeout = 60)

/* A thread in `step`, called by the coroutine of a task, called by `loop`; and what asyncio knows of it. */
struct scene {
	struct fake *fake;
	struct pyreader *reader;
	struct pyglance *glance;
	uint64_t code, coroutine, task, tasks /* dict of what loops run */, thread;
	_Alignas(8) unsigned char bytes[PYGLANCE_BYTES_MAX];
	uint32_t size;
};

static uint64_t add_dict(struct fake *fake, uint64_t key, uint64_t value)
{
	const struct cpython_layout *layout = fake->layout;
	uint64_t dict = place(fake, OBJECT_BYTES), keys = place(fake, OBJECT_BYTES);

	put(fake, dict, layout->dict_used, 1);
	put(fake, dict, layout->dict_keys, keys);
	if (layout->keys_index_bits >= 0)
		*at(fake, keys, layout->keys_index_bits) = INDEX_BITS;
	else
		put(fake, keys, layout->keys_size, INDEX_BYTES);
	put(fake, keys, layout->keys_count, 1);
	put(fake, keys, layout->keys_indices + INDEX_BYTES + HASH_BYTES, key);
	put(fake, keys, layout->keys_indices + INDEX_BYTES + HASH_BYTES + 8, value);
	return dict;
}

/* MODULE is imported, and has one variable. */
static void import(struct fake *fake, const char *module, const char *name, uint64_t value)
{
	uint64_t object = place(fake, OBJECT_BYTES);

	put(fake, object, fake->layout->module_dict, add_dict(fake, add_ascii(fake, name), value));
	put(fake, fake->runtime, fake->layout->runtime_interp_main, fake->interp);
	put(fake, fake->interp, fake->layout->interp_modules, add_dict(fake, add_ascii(fake, module), object));
}

/* A str that says so, as asyncio's names do. */
static uint64_t add_name(struct fake *fake, const char *text)
{
	uint64_t type = place(fake, 2 * OBJECT_BYTES), name = add_ascii(fake, text);

	put(fake, type, fake->layout->type_name, add_text(fake, "str"));
	put(fake, name, fake->layout->object_type, type);
	return name;
}

/* The coroutine's frame, called by CALLER. */
static uint64_t add_coroutine(struct scene *scene, uint64_t caller)
{
	struct fake *fake = scene->fake;
	const struct cpython_layout *layout = fake->layout;
	uint64_t frame;

	scene->coroutine = place(fake, (size_t)layout->generator_frame);
	frame = add_frame(fake, scene->code, caller, FRAME_OWNER_THREAD + 1);
	if (fake->minor < 11)
		put(fake, scene->coroutine, layout->generator_frame, frame);
	else
		scene->coroutine = frame - (uint64_t)layout->generator_frame;
	return frame;
}

static void look(struct scene *scene)
{
	scene->size = pyglance_look(scene->glance, TID, scene->bytes, sizeof scene->bytes);
	cr_assert_gt(scene->size, 0);
}

static struct scene *scene_new(int minor)
{
	static struct scene scene;
	struct fake *fake = scene.fake = fake_new(minor);
	const struct cpython_layout *layout = fake->layout;
	struct remote_memory memory = { fake_read, fake };
	struct error err = { 0 };
	uint64_t frame;

	scene.code = add_code(fake, "handle", "app.py", 1);
	frame = add_coroutine(&scene, add_frame(fake, add_code(fake, "loop", "app.py", 2), outermost(fake), FRAME_OWNER_THREAD));
	scene.thread = add_thread(fake, add_frame(fake, add_code(fake, "step", "app.py", 3), frame, FRAME_OWNER_THREAD), TID);
	scene.task = place(fake, OBJECT_BYTES);
	put(fake, scene.task, layout->task_coro, scene.coroutine);
	put(fake, scene.task, layout->task_name, add_name(fake, "reader"));
	scene.tasks = add_dict(fake, place(fake, OBJECT_BYTES), scene.task);
	if (layout->tstate_task >= 0)
		put(fake, scene.thread, layout->tstate_task, scene.task);
	cr_assert_eq(pyreader_open(&memory, fake->runtime, fake_hex(minor), TID_OFFSET, &scene.reader, &err), 0, "%s", err.text);
	cr_assert_eq(pyglance_open(scene.reader, &scene.glance, &err), 0);
	cr_assert_eq(pyglance_threads(scene.glance, scene.reader, NULL, NULL), 1);
	look(&scene);
	return &scene;
}

static void import_asyncio(struct scene *scene)
{
	bool threads_know = scene->fake->layout->tstate_task >= 0;

	import(scene->fake, threads_know ? "asyncio.tasks" : "_asyncio", threads_know ? "_scheduled_tasks" : "_current_tasks", scene->tasks);
	cr_assert(pyreader_knows_tasks(scene->reader));
}

static void scene_free(struct scene *scene)
{
	pyglance_close(scene->glance);
	pyreader_close(scene->reader);
	fake_free(scene->fake);
}

VERSION_TEST(are_known_by_the_frames_of_a_look)
{
	struct scene *scene = scene_new(*minor);
	struct pytask_now task;

	cr_expect_not(pyreader_knows_tasks(scene->reader));
	cr_expect_not(pyglance_task(scene->reader, scene->bytes, scene->size, &task), "asyncio is not imported");
	import_asyncio(scene);
	cr_assert(pyglance_task(scene->reader, scene->bytes, scene->size, &task));
	cr_expect_str_eq(task.name, "reader");
	cr_expect_eq(task.code, scene->code);
	cr_expect_not(pyglance_task(scene->reader, scene->bytes, scene->size - 1, &task), "bytes that are no look");
	cr_expect_eq(task.code, 0);
	scene_free(scene);
}

/* As 3.10.4 has them. */
Test(tasks, of_early_3_10s_have_one_field_less)
{
	struct scene *scene = scene_new(10);
	const struct cpython_layout *layout = scene->fake->layout;
	uint64_t type = place(scene->fake, OBJECT_BYTES);
	struct pytask_now task;

	import_asyncio(scene);
	put(scene->fake, scene->task, layout->object_type, type);
	put(scene->fake, type, layout->type_basicsize, (uint64_t)layout->task_name + 24);
	cr_expect(pyglance_task(scene->reader, scene->bytes, scene->size, &task), "as 3.10.12 has them");
	put(scene->fake, type, layout->type_basicsize, (uint64_t)layout->task_name + 16);
	cr_expect_not(pyglance_task(scene->reader, scene->bytes, scene->size, &task));
	put(scene->fake, scene->task, layout->task_coro - 8, scene->coroutine);
	put(scene->fake, scene->task, layout->task_name - 8, add_name(scene->fake, "early"));
	cr_assert(pyglance_task(scene->reader, scene->bytes, scene->size, &task));
	cr_expect_str_eq(task.name, "early");
	scene_free(scene);
}

VERSION_TEST(that_run_now_but_not_in_these_frames_are_not_taken)
{
	struct scene *scene = scene_new(*minor);
	struct pytask_now task;

	import_asyncio(scene);
	put(scene->fake, scene->task, scene->fake->layout->task_coro, place(scene->fake, OBJECT_BYTES));
	cr_expect_not(pyglance_task(scene->reader, scene->bytes, scene->size, &task), "the loop has gone on to another one");
	put(scene->fake, scene->task, scene->fake->layout->task_coro, 5);
	cr_expect_not(pyglance_task(scene->reader, scene->bytes, scene->size, &task));
	scene_free(scene);
}

VERSION_TEST(whose_name_is_something_else_by_now_are_not_taken)
{
	struct scene *scene = scene_new(*minor);
	struct pytask_now task;

	import_asyncio(scene);
	put(scene->fake, scene->task, scene->fake->layout->task_name, add_ascii(scene->fake, "no type says that this is a str"));
	cr_expect_not(pyglance_task(scene->reader, scene->bytes, scene->size, &task));
	scene_free(scene);
}

VERSION_TEST(are_none_while_the_loop_runs_none)
{
	struct scene *scene = scene_new(*minor);
	struct pytask_now task;

	import_asyncio(scene);
	put(scene->fake, scene->tasks, scene->fake->layout->dict_used, 0);
	if (scene->fake->layout->tstate_task >= 0)
		put(scene->fake, scene->thread, scene->fake->layout->tstate_task, 0);
	cr_expect_not(pyglance_task(scene->reader, scene->bytes, scene->size, &task));
	scene_free(scene);
}
