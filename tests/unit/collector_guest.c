/* What the collector does without the GIL: on the program's threads nothing to the page, which another thread may be taking away; on ours, where there is no memory to take it. */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/cpython.h"
#include "abi/handover.h"
#include "collector/memory.h"

void inferscope_collector_entry(struct handover *handover);

static struct page *gone_page(void)
{
	void *page = mmap(NULL, sizeof(struct page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	cr_assert_neq(page, MAP_FAILED);
	return page;
}

static void *no_state(void)
{
	return NULL;
}

/* As it is on another thread between two of its instructions, while the last session ends. */
static void arm_with_a_page_that_has_gone(void)
{
	the.page = gone_page();
	the.mapping_bytes = sizeof(struct page);
	the.armed = true;
	the.python.minor = 13;
	the.python.PyThreadState_GetUnchecked = no_state;
}

Test(collector_guest, an_allocation_without_the_GIL_is_missed_and_the_page_left_alone)
{
	int block;

	arm_with_a_page_that_has_gone();
	the.memory.on = true;
	the.memory.blocks.random = 1;
	the.memory.spending.interval = 64;
	memory_sampled(&block, sizeof block, 1);
	memory_ended(&block);
	cr_assert_eq(the.memory.missed, 1);
	cr_assert_geq(the.memory.left, 0);
}

/* Another session may have begun meanwhile. */
Test(collector_guest, an_allocation_without_the_GIL_ends_no_sampling)
{
	int block;

	arm_with_a_page_that_has_gone();
	the.memory.left = 17;
	memory_sampled(&block, sizeof block, 1);
	cr_assert_eq(the.memory.left, 17);
	cr_assert_eq(the.memory.missed, 0);
}

static void *other_state(void)
{
	return (void *)1;
}

/* Up to 3.11 the current state is whoever's holds the GIL, and may be released as we look. */
Test(collector_guest, another_threads_state_is_not_looked_at)
{
	int block;

	arm_with_a_page_that_has_gone();
	the.python.minor = 11;
	the.python._PyThreadState_UncheckedGet = other_state;
	the.python.PyGILState_GetThisThreadState = no_state;
	memory_sampled(&block, sizeof block, 1);
	memory_ended(&block);
	cr_assert_eq(the.memory.missed, 0);
}

Test(collector_guest, a_fork_without_the_GIL_is_counted_and_the_page_left_alone)
{
	int status = 0;
	pid_t pid;

	arm_with_a_page_that_has_gone();
	cr_assert_eq(fork_watch(), 0);
	pid = fork();
	if (!pid)
		_exit(the.child && !the.page ? 0 : 1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
	cr_assert_eq(the.forks, 1);
}

static int asked;

static int ask(void)
{
	asked++;
	return 1;
}

static void *refuse_memory(void *interp)
{
	return NULL;
}

/* PyGILState_Ensure() ends the process then; and where it finds some memory, what we release was held once only. */
Test(collector_guest, the_GIL_is_not_asked_for_without_memory_for_a_state)
{
	int gil;

	the.python.PyInterpreterState_Main = no_state;
	the.python.PyThreadState_New = refuse_memory;
	the.python.PyGILState_Ensure = ask;
	cr_assert_not(gil_ensure(&gil));
	cr_assert_eq(asked, 0);
	cr_assert_eq(the.fork_turn, 0);
}

static void *new_state(void *interp)
{
	return (void *)1;
}

static int (*pending)(void *);
static int queued;

static int queue_call(int (*call)(void *), void *argument)
{
	pending = call;
	queued++;
	return 0;
}

static int queue_call_in(void *interp, int (*call)(void *), void *argument)
{
	return queue_call(call, argument);
}

static uint64_t kept_ns(void)
{
	uint64_t least = UINT64_MAX;

	for (int tries = 0; tries < 5; tries++) {
		uint64_t begin = monotonic_ns(), took;

		cr_assert_eq(pending(NULL), 0);
		took = monotonic_ns() - begin;
		least = took < least ? took : least;
	}
	return least;
}

/* The GIL comes when main has been asked, or after half a second. */
static int wait_for_main(void)
{
	const struct timespec pause = {0, 1000000};

	for (int tries = 0; tries < 500 && !__atomic_load_n(&the.gil_asked, __ATOMIC_SEQ_CST); tries++)
		nanosleep(&pause, NULL);
	return 1;
}

static int yes(void)
{
	return 1;
}

static void wait_with_help(int minor)
{
	static char runtime[65536];
	bool helped;
	int gil;

	the.python.minor = minor;
	the.python.layout = cpython_layout(minor);
	the.python.runtime = runtime;
	the.python.Py_IsInitialized = yes;
	the.python.PyInterpreterState_Main = no_state;
	the.python.PyThreadState_New = new_state;
	the.python.PyGILState_Ensure = wait_for_main;
	the.python.Py_AddPendingCall = queue_call;
	the.python.add_pending = minor == 9 ? queue_call_in : NULL;
	helped = gil_help_begin();
	cr_assert(helped);
	cr_assert(gil_ensure(&gil));
	gil_help_end(helped);
}

Test(collector_guest, main_is_asked_to_keep_the_GIL_for_longer_than_a_switch_interval_while_we_wait)
{
	for (int minor = 9; minor <= 13; minor += 4) {
		queued = 0;
		wait_with_help(minor);
		cr_assert_eq(queued, 1);
		cr_assert(the.gil_asked);
		cr_assert_lt(kept_ns(), 4000000, "nobody waits any more");
		cr_assert_not(the.gil_asked);
		the.gil_since = 1;
		cr_assert_gt(kept_ns(), 5000000);
		the.gil_since = 0;
	}
}

/* Whoever forks may want the GIL, and we have it as soon as it is free: nobody waits for the other. */
Test(collector_guest, a_fork_is_not_waited_for_to_ask_main, .timeout = 10)
{
	queued = 0;
	the.fork_turn = 1;
	wait_with_help(13);
	cr_assert_eq(queued, 0);
	cr_assert_eq(the.fork_turn, 1);
}

/* What 3.8 calls there needs the thread state of who calls when it shuts down; other builds may not have it. */
Test(collector_guest, main_is_not_asked_where_that_would_need_a_thread_state)
{
	wait_with_help(8);
	wait_with_help(11);
	cr_assert_eq(queued, 0);
}

/* The attacher takes hooks that stay for those of an interpreter that ends unless it is told otherwise. */
static uint32_t reason_for_staying(bool ends)
{
	static const struct cpython_layout layout;
	void *finalizing = ends ? &asked : NULL;
	struct handover handover = {.magic = HANDOVER_MAGIC, .command = HANDOVER_DISARM};
	static struct page page = {.arm = ARM_ARMED};

	the.page = &page;
	the.armed = true;
	the.python.layout = &layout;
	the.python.runtime = (char *)&finalizing;
	the.python.Py_IsInitialized = yes;
	the.python.PyInterpreterState_Main = no_state;
	the.python.PyThreadState_New = refuse_memory;
	inferscope_collector_entry(&handover);
	cr_assert_eq(handover.said, SAID_DONE);
	cr_assert_eq(page.arm, ARM_ARMED);
	return page.reason;
}

Test(collector_guest, leaving_without_memory_says_that_the_hooks_stay_for_want_of_it)
{
	cr_assert_eq(reason_for_staying(false), REASON_MEMORY);
}

Test(collector_guest, leaving_an_interpreter_that_ends_is_not_for_want_of_memory)
{
	cr_assert_eq(reason_for_staying(true), REASON_NONE);
}

/* The hooks of an attacher that died are still called, and look at its page. */
Test(collector_guest, the_next_one_leaves_the_page_of_hooks_that_stay)
{
	static const struct cpython_layout layout;
	static struct page page = {.arm = ARM_ARMED};
	void *finalizing = &asked;
	struct handover handover = {.magic = HANDOVER_MAGIC, .command = HANDOVER_ARM};

	the.page = &page;
	the.armed = the.dead = true;
	the.python.layout = &layout;
	the.python.runtime = (char *)&finalizing;
	the.python.Py_IsInitialized = yes;
	inferscope_collector_entry(&handover);
	cr_expect_eq(handover.said, SAID_FAILED);
	cr_assert_eq(the.page, &page);
}
