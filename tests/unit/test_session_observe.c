/* Readings from a folder that plays /proc. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/block.h"
#include "session/census.h"
#include "session/observe.h"
#include "session/syscalls.h"
#include "tests/unit/folder.h"

static char folder[FOLDER_BYTES];

__attribute__((format(printf, 2, 3)))
static void file_put(const char *name, const char *format, ...)
{
	char text[16384];
	va_list list;

	va_start(list, format);
	cr_assert_lt(vsnprintf(text, sizeof text, format, list), (int)sizeof text);
	va_end(list);
	folder_write(folder, name, text);
}

static void thread_put(int tid, int inner, const char *name, char state, const char *call)
{
	char path[128];

	snprintf(path, sizeof path, "7/task/%d/status", tid);
	file_put(path, "Name:\t%s\nState:\t%c (x)\nUid:\t0\t0\t0\t0\nNSpid:\t%d\t%d\nvoluntary_ctxt_switches:\t11\nnonvoluntary_ctxt_switches:\t22\n", name, state, tid, inner);
	snprintf(path, sizeof path, "7/task/%d/comm", tid);
	file_put(path, "%s\n", name);
	snprintf(path, sizeof path, "7/task/%d/schedstat", tid);
	file_put(path, "5000000 6000 7\n");
	snprintf(path, sizeof path, "7/task/%d/syscall", tid);
	file_put(path, "%s\n", call);
	snprintf(path, sizeof path, "7/task/%d/stat", tid);
	file_put(path, "%d (%s) %c 1 7 7 0 -1 0 10 0 20 0 3 4 0 0 20 0 2 0 555 1000 10 0 0 0 0\n", tid, name, state);
}

static void setup(void)
{
	folder_make(folder);
	folder_way(folder, "7/task/");
	file_put("7/stat", "7 (py thon)) S 1 7 7 0 -1 0 10 0 20 0 30 40 0 0 20 0 2 0 555 1000 10 0 0 0 0\n");
}

static void teardown(void)
{
	folder_remove(folder);
}

TestSuite(observe, .init = setup, .fini = teardown);

/* The text of WAIT of thread TID after one reading. */
static void wait_read(uint64_t runtime, int tid, char *out, size_t size)
{
	const struct procfs procfs = { folder };
	struct observe observe;
	struct event_builder builder;
	bool found = false;

	observe_init(&observe, &procfs, 7, true);
	observe.runtime = (struct block_runtime){ runtime, runtime + 4096 };
	event_builder_init(&builder);
	cr_assert(observe_read(&observe, 1, &builder));
	for (struct event_cursor cursor = event_cursor(builder.bytes, builder.size); event_next(&cursor);) {
		size_t length;
		const char *text;

		if (cursor.event.kind != EVENT_THREAD_TIME || (int)cursor.event.ref != tid)
			continue;
		text = event_str(&cursor, 5, &length);
		snprintf(out, size, "%.*s", (int)length, text);
		cr_assert_eq(event_u64(&cursor, 0), 5000000);
		cr_assert_eq(event_u64(&cursor, 2), 11);
		cr_assert_eq(event_u64(&cursor, 3), 22);
		found = true;
	}
	cr_assert(found);
	event_builder_done(&builder);
	observe_done(&observe);
}

Test(observe, tells_the_gil_from_other_locks_by_its_address)
{
	char wait[32];

	thread_put(100, 1, "main", 'S', "202 0x7f0000000010 0x89 0x0 0x0 0x0 0x0 0x7ffc 0x7f00");
	wait_read(0x7f0000000000, 100, wait, sizeof wait);
	cr_assert_str_eq(wait, "gil");
	wait_read(0x600000000000, 100, wait, sizeof wait);
	cr_assert_str_eq(wait, "futex");
}

Test(observe, says_nothing_of_a_thread_that_runs)
{
	char wait[32];

	thread_put(100, 1, "main", 'R', "running");
	wait_read(0, 100, wait, sizeof wait);
	cr_assert_str_eq(wait, "");
}

Test(observe, finds_threads_by_inner_and_outer_id_and_forgets_ended_ones)
{
	const struct procfs procfs = { folder };
	struct observe observe;
	struct event_builder builder;
	char command[128];

	thread_put(300, 3, "late", 'S', "-1 0x0 0x0");
	thread_put(100, 1, "main", 'S', "230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	observe_init(&observe, &procfs, 7, true);
	event_builder_init(&builder);
	cr_assert(observe_read(&observe, 1, &builder));
	cr_assert_eq(observe.count, 2);
	cr_assert_eq(observe_by_inner(&observe, 3)->tid, 300);
	cr_assert_str_eq(observe_by_tid(&observe, 100)->wait, "clock_nanosleep");
	snprintf(command, sizeof command, "rm -r %s/7/task/300", folder);
	cr_assert_eq(system(command), 0);
	cr_assert(observe_read(&observe, 2, &builder));
	cr_assert_null(observe_by_tid(&observe, 300));
	event_builder_done(&builder);
	observe_done(&observe);
}

Test(observe, leaves_our_own_threads_out)
{
	const struct procfs procfs = { folder };
	struct observe observe;
	struct event_builder builder;

	thread_put(100, 1, "main", 'S', "230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	thread_put(101, 2, "inferscope", 'S', "202 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	thread_put(102, 3, "python", 'S', "202 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	observe_init(&observe, &procfs, 7, true);
	observe.own_inner_tid = 3;
	event_builder_init(&builder);
	cr_assert(observe_read(&observe, 1, &builder));
	for (struct event_cursor cursor = event_cursor(builder.bytes, builder.size); event_next(&cursor);)
		cr_assert(cursor.event.ref == 100 || cursor.event.kind == EVENT_PROCESS_TIME);
	event_builder_done(&builder);
	observe_done(&observe);
}

/* All at once: a thread that came with a later reading would be taken for a new one, and all that it ever did for done since. */
Test(observe, reads_all_threads_the_first_time)
{
	const struct procfs procfs = { folder };
	struct observe observe;
	struct event_builder builder;

	for (int i = 0; i < 300; i++)
		thread_put(100 + i, 1 + i, "worker", 'S', "230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	observe_init(&observe, &procfs, 7, true);
	event_builder_init(&builder);
	cr_assert(observe_read(&observe, 1, &builder));
	cr_assert_eq(observe.count, 300);
	cr_assert_eq(observe_by_inner(&observe, 300)->tid, 399);
	event_builder_done(&builder);
	observe_done(&observe);
}

Test(observe, reads_what_stands_behind_many_groups)
{
	const struct procfs procfs = { folder };
	struct observe observe;
	struct event_builder builder;
	char groups[6000];

	thread_put(100, 1, "main", 'S', "230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	memset(groups, '1', sizeof groups - 1);
	groups[sizeof groups - 1] = '\0';
	file_put("7/task/100/status", "Name:\tmain\nState:\tS (x)\nUid:\t0\t0\t0\t0\nGroups:\t%s\nNSpid:\t100\t3\nvoluntary_ctxt_switches:\t11\nnonvoluntary_ctxt_switches:\t22\n", groups);
	observe_init(&observe, &procfs, 7, true);
	event_builder_init(&builder);
	cr_assert(observe_read(&observe, 1, &builder));
	cr_assert_eq(observe_by_inner(&observe, 3)->tid, 100);
	cr_assert_eq(observe_by_tid(&observe, 100)->switches, 33);
	event_builder_done(&builder);
	observe_done(&observe);
}

static void ended(int tid)
{
	char command[128];

	snprintf(command, sizeof command, "rm -r %s/7/task/%d", folder, tid);
	cr_assert_eq(system(command), 0);
}

Test(observe, tells_the_outer_number_without_a_look_where_it_is_known_and_looks_for_new_threads_now_and_then)
{
	const struct procfs procfs = { folder };
	struct observe observe;
	struct event_builder builder;

	thread_put(100, 1, "main", 'S', "230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	thread_put(300, 3, "known", 'S', "230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	observe_init(&observe, &procfs, 7, true);
	event_builder_init(&builder);
	cr_assert(observe_read(&observe, 1, &builder));
	thread_put(301, 4, "late", 'S', "230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	thread_put(302, 5, "late", 'S', "230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	ended(300);
	cr_expect_eq(observe_outer(&observe, 3), 300, "as the last reading has it");
	cr_expect_eq(observe.late_due_ns, 0, "nobody looked for it");
	cr_expect_eq(observe_outer(&observe, 4), 301);
	observe.late_due_ns = UINT64_MAX;
	ended(301);
	cr_expect_eq(observe_outer(&observe, 5), 302, "one look finds all");
	cr_expect_eq(observe_outer(&observe, 6), -1, "nobody may look so soon");
	observe.late_due_ns = 0;
	cr_expect_eq(observe_outer(&observe, 6), 0, "there is none");
	observe.late_due_ns = 0;
	cr_expect_eq(observe_outer(&observe, 4), 0, "it has ended");
	event_builder_done(&builder);
	observe_done(&observe);
}

Test(observe, takes_no_thread_for_ended_while_not_all_can_be_looked_at)
{
	const struct procfs procfs = { folder };
	struct observe observe;
	struct event_builder builder;

	thread_put(100, 1, "main", 'S', "230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	observe_init(&observe, &procfs, 7, true);
	event_builder_init(&builder);
	cr_assert(observe_read(&observe, 1, &builder));
	folder_way(folder, "7/task/300/status/"); /* which cannot be read as a file */
	cr_assert_eq(observe_outer(&observe, 3), -1);
	event_builder_done(&builder);
	observe_done(&observe);
}

/* Its events would be another thread's. */
Test(observe, tells_an_ended_thread_by_a_number_that_no_other_has)
{
	const struct procfs procfs = { folder };
	struct observe observe;
	struct event_builder builder;

	thread_put(100, 1, "main", 'S', "230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	observe_init(&observe, &procfs, 7, true);
	event_builder_init(&builder);
	cr_assert(observe_read(&observe, 1, &builder));
	cr_expect_eq(observe_told(&observe, 1), 100);
	cr_expect_eq(observe_told(&observe, 9), 9);
	cr_expect_eq(observe_told(&observe, 100), 100 + (1 << 22));
	event_builder_done(&builder);
	observe_done(&observe);
}

/* No descriptor is left, say: it is looked at again the next time. */
Test(observe, does_not_take_what_it_cannot_read_for_gone)
{
	const struct procfs procfs = { folder };
	struct observe observe;
	struct event_builder builder;
	char path[FOLDER_BYTES + 16];

	thread_put(100, 1, "main", 'S', "230 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0");
	snprintf(path, sizeof path, "%s/7/stat", folder);
	cr_assert_eq(remove(path), 0);
	folder_way(folder, "7/stat/"); /* which cannot be read as a file */
	observe_init(&observe, &procfs, 7, false);
	event_builder_init(&builder);
	cr_assert(observe_read(&observe, 1, &builder));
	cr_assert_eq(observe.count, 0);
	event_builder_done(&builder);
	observe_done(&observe);
}

Test(observe, knows_when_the_process_is_gone)
{
	const struct procfs procfs = { "/nonexistent" };
	struct observe observe;
	struct event_builder builder;

	observe_init(&observe, &procfs, 7, false);
	event_builder_init(&builder);
	cr_assert_not(observe_read(&observe, 1, &builder));
	event_builder_done(&builder);
	observe_done(&observe);
}

Test(syscalls, have_names_and_unknown_ones_numbers)
{
	char name[32];

	syscall_name(202, name, sizeof name);
	cr_assert_str_eq(name, "futex");
	syscall_name(99999, name, sizeof name);
	cr_assert_str_eq(name, "syscall_99999");
}

static struct census census_of_folder(void)
{
	static struct procfs procfs;
	struct census census;

	procfs.root = folder;
	census_init(&census, &procfs, 7, true, (struct block_runtime){ 0x5000, 0x6000 });
	return census;
}

Test(block, tells_what_a_thread_is_blocked_in, .init = setup, .fini = teardown)
{
	const struct block_runtime runtime = { 0x5000, 0x6000 };
	const struct procfs procfs = { folder };
	struct block block;

	thread_put(7, 1, "python", 'S', "202 0x5010 0x0 0x0 0x0 0x0 0x0 0x7ffc00 0x7f0010");
	cr_assert_eq(block_read(&procfs, 7, 7, &block), BLOCK_BLOCKED);
	cr_assert_eq(block.sp, 0x7ffc00);
	cr_assert_eq(block.pc, 0x7f0010);
	cr_assert_eq(block_state(&block, &runtime), THREAD_GIL_WAIT);
	block.argument = 0x7000;
	cr_assert_eq(block_state(&block, &runtime), THREAD_LOCK_WAIT);
	thread_put(8, 2, "python", 'R', "running");
	cr_assert_eq(block_read(&procfs, 7, 8, &block), BLOCK_RUNNING);
	thread_put(9, 3, "python", 'D', "-1 0x7ffc00 0x7f0010");
	cr_assert_eq(block_read(&procfs, 7, 9, &block), BLOCK_BLOCKED);
	cr_assert_eq(block_state(&block, &runtime), THREAD_IO_WAIT);
	cr_assert_eq(block_read(&procfs, 7, 99, &block), BLOCK_GONE);
}

Test(block, takes_no_word_behind_the_interpreters_state_for_the_gils)
{
	const struct block in = { .number = 202, .argument = 0x105ff }, behind = { .number = 202, .argument = 0x10600 }, far = { .number = 202, .argument = 0x10000 + (1 << 20) };
	struct block_runtime runtime = block_runtime_at(0x10000, 0x600, 0x030c0100);

	cr_expect_eq(block_state(&in, &runtime), THREAD_GIL_WAIT);
	cr_expect_eq(block_state(&behind, &runtime), THREAD_LOCK_WAIT);
	runtime = block_runtime_at(0x10000, UINT64_MAX, 0x030c0100); /* a file may say anything */
	cr_expect_eq(block_state(&far, &runtime), THREAD_LOCK_WAIT);
	runtime = block_runtime_at(0x10000, 0, 0x030c0100);
	cr_expect_eq(block_state(&behind, &runtime), THREAD_GIL_WAIT, "it is not told where it ends");
	runtime = block_runtime_at(0, 0, 0x030c0100);
	cr_expect_eq(block_state(&in, &runtime), THREAD_LOCK_WAIT, "it is not known where it lies");
}

Test(block, knows_a_sleep_by_select_from_a_selector)
{
	const struct block_runtime runtime = { 0 };

	cr_assert_eq(block_state(&(struct block){ .number = 23, .argument = 0 }, &runtime), THREAD_SLEEP);
	cr_assert_eq(block_state(&(struct block){ .number = 23, .argument = 5 }, &runtime), THREAD_IDLE);
}

Test(session_census, leaves_out_our_own_thread_and_finds_the_others_by_the_targets_number, .init = setup, .fini = teardown)
{
	struct census census = census_of_folder();
	struct seen_thread *due[8];

	thread_put(7, 1, "python", 'S', "running");
	thread_put(300, 3, "inferscope", 'S', "running");
	thread_put(301, 4, "worker", 'S', "running");
	cr_assert(census_read(&census, NULL, NULL));
	cr_assert_eq(census.count, 3);
	cr_assert_eq(census_due(&census, due), 2);
	cr_assert_eq(census_by_inner(&census, 4)->tid, 301);
	census_done(&census);
}

Test(session_census, takes_threads_that_stay_blocked_in_turn, .init = setup, .fini = teardown)
{
	struct census census = census_of_folder();
	struct seen_thread *due[CENSUS_QUIET_LOOKS * 2];
	unsigned looks[CENSUS_QUIET_LOOKS * 2] = { 0 };

	for (int i = 0; i < CENSUS_QUIET_LOOKS + 6; i++)
		thread_put(100 + i, 100 + i, "worker", 'S', "running");
	cr_assert(census_read(&census, NULL, NULL));
	for (size_t i = 1; i < census.count; i++)
		census.threads[i].quiet = 9;
	for (int look = 0; look < 2; look++) {
		size_t count = census_due(&census, due);

		cr_assert_eq(count, CENSUS_QUIET_LOOKS + 1, "and the one that is not quiet");
		for (size_t i = 0; i < count; i++)
			looks[due[i] - census.threads]++;
	}
	cr_assert_eq(looks[0], 2);
	for (size_t i = 1; i < census.count; i++)
		cr_assert_geq(looks[i], 1);
	census_done(&census);
}

Test(session_census, reads_all_threads_the_first_time, .init = setup, .fini = teardown)
{
	struct census census = census_of_folder();

	for (int i = 0; i < 300; i++)
		thread_put(100 + i, 1 + i, "worker", 'S', "running");
	cr_assert(census_read(&census, NULL, NULL));
	cr_assert_eq(census.count, 300);
	cr_assert_eq(census_by_inner(&census, 300)->tid, 399);
	census_done(&census);
}

/* No descriptor is left, say. */
Test(session_census, keeps_its_threads_where_they_cannot_be_listed, .init = setup, .fini = teardown)
{
	struct census census = census_of_folder();
	struct procfs none = { "" };
	char deep[PATH_MAX];

	thread_put(7, 1, "python", 'S', "running");
	cr_assert(census_read(&census, NULL, NULL));
	memset(deep, 'x', sizeof deep - 1);
	deep[sizeof deep - 1] = '\0';
	none.root = deep;
	census.procfs = &none;
	cr_assert(census_read(&census, NULL, NULL));
	cr_assert_eq(census.count, 1);
	census_done(&census);
}

Test(session_census, notices_that_the_process_is_gone, .init = setup, .fini = teardown)
{
	struct procfs procfs = { "/nonexistent" };
	struct census census;

	census_init(&census, &procfs, 7, false, (struct block_runtime){ 0 });
	cr_assert_not(census_read(&census, NULL, NULL));
	census_done(&census);
}

static void count_gone(void *context, pid_t tid)
{
	*(pid_t *)context += tid;
}

Test(session_census, names_threads_that_have_ended, .init = setup, .fini = teardown)
{
	struct census census = census_of_folder();
	char path[256];
	pid_t gone = 0;

	thread_put(7, 1, "python", 'S', "running");
	thread_put(300, 3, "worker", 'S', "running");
	cr_assert(census_read(&census, count_gone, &gone));
	cr_assert_eq(gone, 0);
	snprintf(path, sizeof path, "rm -rf %s/7/task/300", folder);
	cr_assert_eq(system(path), 0);
	cr_assert(census_read(&census, count_gone, &gone));
	cr_assert_eq(gone, 300);
	cr_assert_not_null(census_by_tid(&census, 7));
	cr_assert_null(census_by_tid(&census, 300));
	census_done(&census);
}

Test(session_census, moves_events_to_the_end_of_others)
{
	struct event_builder first, second;
	size_t size;

	event_builder_init(&first);
	event_builder_init(&second);
	event_add(&second, 1, EVENT_GIL, 7, 0, (uint32_t)8);
	size = second.size;
	event_builder_move(&first, &second);
	cr_assert_eq(first.size, size);
	cr_assert_eq(second.size, 0);
	event_add(&second, 2, EVENT_GIL, 9, 0, (uint32_t)8);
	event_builder_move(&first, &second);
	cr_assert_eq(first.size, 2 * size);
	cr_assert_eq(((const struct event *)(first.bytes + size))->ref, 9);
	event_builder_done(&first);
	event_builder_done(&second);
}
