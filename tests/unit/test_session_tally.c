/* Samples added up: self, total, GIL, CUDA calls, recursion, turns. */
#include <criterion/criterion.h>
#include <string.h>

#include "session/tally.h"
#include "trace/writer.h"

static struct tally *tally;
static struct event_builder events;
static struct error err;

static void begin(void)
{
	cr_assert_eq(tally_new(&tally, &err), 0);
	event_builder_init(&events);
}

static void end(void)
{
	event_builder_done(&events);
	tally_free(tally);
}

TestSuite(tally, .init = begin, .fini = end);

static void code(uint32_t id, const char *name)
{
	event_add(&events, 0, EVENT_CODE, id, 0, (uint64_t)0, (uint32_t)7, (uint32_t)0, name, name, "a.py");
}

static void native(uint32_t id, const char *name)
{
	event_add(&events, 0, EVENT_NATIVE, id, 0, (uint64_t)0, (uint32_t)1, (uint32_t)0, name, "");
}

static void stack(uint32_t id, uint32_t parent, uint32_t frame, uint32_t kind)
{
	event_add(&events, 0, EVENT_STACK, id, 0, parent, frame, kind);
}

static void sample(uint32_t id, uint32_t tid, enum thread_state state, uint64_t ns)
{
	event_add(&events, 0, EVENT_SAMPLE, id, 0, tid, (uint32_t)state, ns);
}

static void add(void)
{
	tally_add(tally, events.bytes, events.size);
	event_builder_clear(&events);
}

static const struct tally_function *function(const char *name)
{
	size_t count, i = 0;
	const struct tally_function *functions = tally_functions(tally, &count);

	while (i < count && strcmp(functions[i].name, name) != 0)
		i++;
	cr_assert_lt(i, count, "no function %s", name);
	return &functions[i];
}

Test(tally, gives_self_to_the_innermost_and_total_to_all)
{
	code(1, "outer");
	code(2, "inner");
	stack(1, 0, 1, 0);
	stack(2, 1, 2, 0);
	sample(2, 10, THREAD_PYTHON, 30);
	sample(1, 10, THREAD_NATIVE, 5);
	sample(2, 10, THREAD_SLEEP, 100);
	add();
	cr_assert_eq(function("inner")->now.self_run_ns, 30);
	cr_assert_eq(function("inner")->now.gil_ns, 30);
	cr_assert_eq(function("inner")->now.self_wait_ns, 100);
	cr_assert_eq(function("outer")->now.self_run_ns, 5);
	cr_assert_eq(function("outer")->now.total_run_ns, 35);
	cr_assert_eq(function("outer")->now.total_wait_ns, 100);
	cr_assert_eq(function("outer")->now.gil_ns, 0);
	cr_assert_eq(function("outer")->line, 7);
	cr_assert_str_eq(function("outer")->file, "a.py");
}

Test(tally, counts_a_recursion_once)
{
	code(1, "again");
	stack(1, 0, 1, 0);
	stack(2, 1, 1, 0);
	stack(3, 2, 1, 0);
	sample(3, 10, THREAD_PYTHON, 8);
	add();
	cr_assert_eq(function("again")->now.total_run_ns, 8);
}

Test(tally, begins_each_turn_at_zero_and_keeps_the_sum)
{
	code(1, "f");
	stack(1, 0, 1, 0);
	sample(1, 10, THREAD_PYTHON, 8);
	add();
	tally_turn(tally);
	cr_assert_eq(function("f")->now.self_run_ns, 0);
	cr_assert_eq(function("f")->all.self_run_ns, 8);
	cr_assert_eq(tally_thread_find(tally, 10)->gil_ns, 0);
}

Test(tally, forgets_threads_that_are_not_seen_any_longer)
{
	code(1, "f");
	stack(1, 0, 1, 0);
	sample(1, 10, THREAD_PYTHON, 8);
	add();
	for (int i = 0; i < 10; i++)
		tally_turn(tally);
	cr_assert_null(tally_thread_find(tally, 10));
}

Test(tally, charges_cuda_calls_to_the_python_function_above)
{
	code(1, "forward");
	event_add(&events, 0, EVENT_MODULE, 1, 0, (uint64_t)0, (uint64_t)0, (uint64_t)0, "/usr/lib/libcudart.so.12", "");
	native(1, "cudaLaunchKernel");
	native(2, "cuLaunchKernel");
	native(3, "cudaStreamSynchronize");
	stack(1, 0, 1, 0);
	stack(2, 1, 1, 1);
	stack(3, 2, 2, 1);
	stack(4, 1, 3, 1);
	sample(3, 10, THREAD_NATIVE, 4);
	sample(4, 10, THREAD_IO_WAIT, 9);
	add();
	cr_assert(tally_knows_gpu(tally));
	cr_assert_eq(function("forward")->now.launch_ns, 4);
	cr_assert_eq(function("forward")->now.gpu_wait_ns, 9);
	cr_assert_eq(function("cudaLaunchKernel")->now.launch_ns, 4);
	cr_assert_eq(function("cuLaunchKernel")->now.launch_ns, 0, "the same call is counted twice");
	cr_assert_str_eq(function("cudaLaunchKernel")->file, "libcudart.so.12");
	cr_assert_eq(tally_thread_find(tally, 10)->state, THREAD_GPU_WAIT);
}

/* The interpreter's own calls are the Python function's time; what it calls for Python is not. */
Test(tally, leaves_out_the_machinery)
{
	code(1, "f");
	event_add(&events, 0, EVENT_MODULE, 1, 0, (uint64_t)0, (uint64_t)0, (uint64_t)0, "/usr/bin/python3.11", "");
	native(1, "_start");
	native(2, "long_add");
	native(3, "cfunction_vectorcall_O");
	native(4, "math_factorial");
	stack(1, 0, 1, 1);
	stack(2, 1, 1, 0);
	stack(3, 2, 2, 1);
	stack(4, 2, 3, 1);
	stack(5, 4, 4, 1);
	stack(6, 5, 2, 1);
	sample(3, 10, THREAD_PYTHON, 1);
	sample(5, 10, THREAD_PYTHON, 10);
	sample(6, 10, THREAD_PYTHON, 100);
	sample(1, 11, THREAD_SLEEP, 1000);
	add();
	cr_assert_eq(function("f")->now.self_run_ns, 1);
	cr_assert_eq(function("f")->now.total_run_ns, 111);
	cr_assert_eq(function("math_factorial")->now.self_run_ns, 10);
	cr_assert_eq(function("math_factorial")->now.total_run_ns, 110);
	cr_assert_eq(function("long_add")->now.self_run_ns, 100);
	cr_assert_eq(function("cfunction_vectorcall_O")->now.total_run_ns, 0);
	cr_assert_eq(function("_start")->now.total_run_ns, 0);
	cr_assert_eq(function("_start")->now.self_wait_ns, 1000, "a thread without Python");
}

Test(tally, keeps_functions_over_a_change_of_the_sampler)
{
	code(1, "f");
	stack(1, 0, 1, 0);
	sample(1, 10, THREAD_PYTHON, 8);
	add();
	tally_forget_ids(tally);
	sample(1, 10, THREAD_PYTHON, 8);
	code(5, "f");
	stack(1, 0, 5, 0);
	sample(1, 10, THREAD_PYTHON, 2);
	add();
	cr_assert_eq(function("f")->all.self_run_ns, 10);
}

Test(tally, takes_stacks_that_name_nothing)
{
	stack(1, 77, 99, 1);
	stack(1, 1, 99, 0);
	sample(1, 10, THREAD_PYTHON, 8);
	sample(1234, 11, (enum thread_state)99, 8);
	add();
	cr_assert_eq(tally_samples(tally), 2);
	cr_assert_eq(tally_thread_find(tally, 10)->function, TALLY_NONE);
	cr_assert_str_eq(thread_state_words((enum thread_state)99), "not known");
}
