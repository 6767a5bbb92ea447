/* The spool: what is put in comes out in order; at the bound the oldest calls go and the names stay. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"
#include "session/pool.h"
#include "session/spool.h"
#include "session/tasks.h"
#include "tests/unit/folder.h"

static void add(struct spool *spool, uint32_t lane, uint32_t kind, uint64_t sequence, uint32_t ref, uint64_t events)
{
	struct event_builder builder;
	struct chunk chunk = { .lane = lane, .lane_kind = kind, .sequence = sequence, .clock = clock_map_monotonic() };
	uint64_t ticks = sequence * 1000;

	event_builder_init(&builder);
	for (uint64_t i = 0; i < events; i++) {
		ticks += ticks * 2862933555777941757ull % 100000; /* does not compress to nothing */
		event_add(&builder, ticks, kind == LANE_SESSION ? EVENT_COUNTER : EVENT_PY_ENTER, ref, 0, "n", (int64_t)sequence);
	}
	chunk.events = builder.bytes;
	chunk.size = builder.size;
	spool_add(spool, &chunk, events);
	event_builder_done(&builder);
}

static struct trace *finish(struct spool *spool, struct text *text)
{
	struct sink *sink;
	struct trace *trace;

	text_init(text);
	cr_assert_eq(sink_open_text(text, &sink, NULL), 0);
	cr_assert_eq(spool_finish(spool, sink, NULL), 0);
	cr_assert_eq(sink_commit(sink, NULL), 0);
	cr_assert_eq(trace_open_memory(text->data, text->length, &trace, NULL), 0);
	return trace;
}

Test(spool, gives_back_every_chunk_in_order)
{
	struct spool *spool;
	struct trace *trace;
	struct chunk chunk;
	struct text text;

	cr_assert_eq(spool_open("/tmp", 0, 1, &spool, NULL), 0);
	for (uint64_t i = 1; i <= 20; i++)
		add(spool, 1, LANE_THREAD, i, 1, 10);
	trace = finish(spool, &text);
	for (uint64_t i = 1; i <= 20; i++) {
		cr_assert_eq(trace_next(trace, &chunk, NULL), 1);
		cr_assert_eq(chunk.sequence, i);
	}
	cr_assert_eq(trace_next(trace, &chunk, NULL), 0);
	trace_close(trace);
	text_done(&text);
	spool_close(spool);
}

Test(spool, at_the_bound_the_oldest_calls_go_and_names_stay)
{
	struct spool *spool;
	struct trace *trace;
	struct chunk chunk;
	struct text text;
	uint64_t names = 0, calls = 0, first_call = 0, last_call = 0;

	cr_assert_eq(spool_open("/tmp", 80000, 1, &spool, NULL), 0);
	for (uint64_t i = 1; i <= 400; i++) {
		add(spool, 0, LANE_SESSION, i, 0, 1);
		add(spool, 1, LANE_THREAD, i, 1, 200);
	}
	cr_assert_gt(spool_dropped_events(spool), 0);
	trace = finish(spool, &text);
	while (trace_next(trace, &chunk, NULL) == 1) {
		if (chunk.lane_kind == LANE_SESSION) {
			cr_assert_eq(chunk.sequence, ++names, "every reading is there, in order");
			continue;
		}
		calls += 200;
		first_call = first_call ? first_call : chunk.sequence;
		cr_assert(last_call == 0 || chunk.sequence == last_call + 1, "what is left has no holes");
		last_call = chunk.sequence;
	}
	cr_assert_eq(names, 400);
	cr_assert_gt(first_call, 1);
	cr_assert_eq(last_call, 400);
	cr_assert_eq(calls + spool_dropped_events(spool), 400 * 200);
	cr_assert_lt(text.length, 200000);
	cr_assert_eq(trace_info(trace).damaged_chunks, 0);
	trace_close(trace);
	text_done(&text);
	spool_close(spool);
}

Test(spool, is_not_filled_by_a_program_that_tells_names_without_end)
{
	struct spool *spool;
	struct trace *trace;
	struct chunk chunk;
	struct text text;
	uint64_t told = 0, last = 0;

	cr_assert_eq(spool_open("/tmp", 80000, 1, &spool, NULL), 0);
	for (uint64_t i = 1; i <= 2000; i++)
		add(spool, 1, LANE_META, i, 1, 200);
	trace = finish(spool, &text);
	while (trace_next(trace, &chunk, NULL) == 1) {
		told += 200;
		last = chunk.sequence;
	}
	cr_assert_eq(last, 2000);
	cr_assert_gt(spool_dropped_events(spool), 0);
	cr_assert_lt(text.length, 3 * 80000);
	cr_assert_eq(told + spool_dropped_events(spool), 2000 * 200);
	trace_close(trace);
	text_done(&text);
	spool_close(spool);
}

Test(spool, leaves_no_file_behind)
{
	char folder[FOLDER_BYTES];
	struct spool *spool;

	folder_make(folder);
	cr_assert_eq(spool_open(folder, 1000000, 1, &spool, NULL), 0);
	add(spool, 1, LANE_THREAD, 1, 1, 10);
	cr_assert_eq(rmdir(folder), 0, "the folder is empty while it records");
	spool_close(spool);
}

Test(spool, says_where_it_cannot_write)
{
	struct spool *spool;
	struct error err = { 0 };

	cr_assert_eq(spool_open("/nonexistent/folder", 0, 1, &spool, &err), -1);
	cr_assert_eq(err.code, ERR_OUTPUT);
}

Test(pool, takes_a_fresh_memfd_and_seals_it)
{
	int fd = memfd_create("lanes", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	struct pool pool;

	cr_assert_eq(pool_open(fd, pool_bytes(1), &pool, NULL), 0);
	cr_assert_eq(fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW), F_SEAL_SHRINK | F_SEAL_GROW);
	cr_assert_eq(ftruncate(fd, 0), -1);
	pool_close(&pool);
	close(fd);
}

Test(pool, refuses_what_is_no_fresh_memfd)
{
	char path[] = "/dev/shm/inferscope-test-XXXXXX";
	int file = mkstemp(path), unsealable = memfd_create("lanes", 0);
	struct pool pool;
	struct error err = { 0 };

	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(pool_open(file, pool_bytes(1), &pool, &err), -1, "a file of tmpfs");
	cr_assert_eq(lseek(file, 0, SEEK_END), 0, "and it was not resized");
	cr_assert_eq(pool_open(unsealable, pool_bytes(1), &pool, &err), -1, "a memfd that cannot be sealed");
	cr_assert_eq(pool_open(STDIN_FILENO, pool_bytes(1), &pool, &err), -1);
	close(file);
	close(unsealable);
}

Test(pool, says_which_limit_is_too_low)
{
	int fd = memfd_create("lanes", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	struct rlimit few, limit;
	struct error err = { 0 };
	struct pool pool;
	int result;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	few = (struct rlimit){ 4096, limit.rlim_max };
	setrlimit(RLIMIT_FSIZE, &few);
	result = pool_open(fd, pool_bytes(1), &pool, &err);
	setrlimit(RLIMIT_FSIZE, &limit);
	cr_assert_eq(result, -1);
	cr_assert_eq(err.code, ERR_OUTPUT);
	cr_assert_not_null(strstr(err.text, "ulimit -f"), "%s", err.text);
	cr_assert_not_null(strstr(err.hint, "--trace-size-mb"), "%s", err.hint);
	close(fd);
}

/* ---- the last while ---- */

#define SECOND 1000000000ull

static struct trace *window(struct spool *spool, uint64_t since_ns, uint64_t *begin_ns, struct text *text)
{
	struct spool_window *window;
	struct sink *sink;
	struct trace *trace;

	text_init(text);
	cr_assert_eq(spool_window_take(spool, since_ns, &window, NULL), 0);
	*begin_ns = spool_window_begin(window);
	cr_assert_eq(sink_open_text(text, &sink, NULL), 0);
	cr_assert_eq(spool_window_write(window, sink, NULL), 0);
	spool_window_free(window);
	cr_assert_eq(sink_commit(sink, NULL), 0);
	cr_assert_eq(trace_open_memory(text->data, text->length, &trace, NULL), 0);
	return trace;
}

/* Hooks go on, or off, and a thread gets a name, and a reading is taken. */
static void add_session(struct spool *spool, uint64_t sequence, enum event_kind coverage)
{
	struct event_builder builder;
	struct chunk chunk = { .lane_kind = LANE_SESSION, .sequence = sequence, .clock = clock_map_monotonic() };

	event_builder_init(&builder);
	event_add(&builder, sequence * SECOND, EVENT_THREAD, (uint32_t)sequence, 0, (uint64_t)0, "name");
	event_add(&builder, sequence * SECOND, EVENT_COUNTER, 0, 0, "n", (int64_t)sequence);
	if (coverage)
		event_add(&builder, sequence * SECOND, coverage, 0, 0, (uint32_t)WINDOW_BUDGET);
	chunk.events = builder.bytes;
	chunk.size = builder.size;
	spool_add(spool, &chunk, 0);
	event_builder_done(&builder);
}

struct seen { uint64_t threads, counters, first_counter, calls, first_call, last_call, on; };

static struct seen look(struct trace *trace)
{
	struct seen seen = { 0 };
	struct chunk chunk;

	while (trace_next(trace, &chunk, NULL) == 1) {
		for (struct event_cursor c = event_cursor(chunk.events, chunk.size); event_next(&c);) {
			seen.threads += c.event.kind == EVENT_THREAD;
			seen.on += c.event.kind == EVENT_WINDOW_ON;
			seen.counters += c.event.kind == EVENT_COUNTER;
			if (c.event.kind == EVENT_COUNTER && !seen.first_counter)
				seen.first_counter = (uint64_t)event_i64(&c, 1);
		}
		if (chunk.lane_kind != LANE_THREAD)
			continue;
		cr_assert(!seen.last_call || chunk.sequence == seen.last_call + 1, "calls have no holes");
		seen.calls++;
		seen.first_call = seen.first_call ? seen.first_call : chunk.sequence;
		seen.last_call = chunk.sequence;
	}
	cr_assert_eq(trace_info(trace).damaged_chunks, 0);
	return seen;
}

Test(spool_window, holds_the_last_while_and_all_names)
{
	struct spool *spool;
	struct trace *trace;
	struct text text;
	struct seen seen;
	uint64_t begin_ns;

	cr_assert_eq(spool_open("/tmp", 1 << 30, 1, &spool, NULL), 0);
	spool_keep_window(spool, 30 * SECOND);
	for (uint64_t i = 1; i <= 200; i++) {
		spool_mark(spool, i * SECOND);
		add_session(spool, i, i == 1 ? EVENT_WINDOW_ON : 0);
		add(spool, 1, LANE_THREAD, i, 1, 10);
	}
	trace = window(spool, 170 * SECOND, &begin_ns, &text);
	seen = look(trace);
	cr_expect_eq(begin_ns, 170 * SECOND);
	cr_expect_eq(seen.threads, 200, "names are all there");
	cr_expect_eq(seen.first_counter, 170, "readings are those of the window");
	cr_expect_eq(seen.counters, 31);
	cr_expect_eq(seen.first_call, 170);
	cr_expect_eq(seen.last_call, 200);
	cr_expect_eq(seen.on, 1, "hooks were on when it began");
	trace_close(trace);
	text_done(&text);
	trace = window(spool, 0, &begin_ns, &text);
	cr_expect_geq(begin_ns, 150 * SECOND, "what is older went: %llu", (unsigned long long)begin_ns);
	cr_expect_leq(begin_ns, 170 * SECOND);
	cr_expect_eq(spool_dropped_events(spool), 0, "it is no loss");
	trace_close(trace);
	text_done(&text);
	spool_close(spool);
}

Test(spool_window, tells_hooks_as_they_were_when_it_began)
{
	struct spool *spool;
	struct trace *trace;
	struct text text;
	uint64_t begin_ns;

	cr_assert_eq(spool_open("/tmp", 1 << 30, 1, &spool, NULL), 0);
	spool_keep_window(spool, 30 * SECOND);
	spool_mark(spool, SECOND);
	add_session(spool, 1, EVENT_WINDOW_ON);
	add_session(spool, 2, EVENT_WINDOW_OFF);
	spool_mark(spool, 3 * SECOND);
	add_session(spool, 3, 0);
	spool_mark(spool, 4 * SECOND);
	trace = window(spool, 3 * SECOND, &begin_ns, &text);
	cr_expect_eq(look(trace).on, 0);
	trace_close(trace);
	text_done(&text);
	spool_close(spool);
}

Test(spool_window, stays_readable_when_the_spool_is_gone)
{
	struct spool *spool;
	struct spool_window *window;
	struct sink *sink;
	struct text text;

	cr_assert_eq(spool_open("/tmp", 1 << 30, 1, &spool, NULL), 0);
	spool_keep_window(spool, 30 * SECOND);
	cr_assert_eq(spool_window_take(spool, 0, &window, NULL), -1, "nothing is there before the first mark");
	spool_mark(spool, SECOND);
	add(spool, 1, LANE_THREAD, 1, 1, 10);
	cr_assert_eq(spool_window_take(spool, 0, &window, NULL), 0);
	spool_close(spool);
	text_init(&text);
	cr_assert_eq(sink_open_text(&text, &sink, NULL), 0);
	cr_expect_eq(spool_window_write(window, sink, NULL), 0);
	cr_assert_eq(sink_commit(sink, NULL), 0);
	cr_expect_gt(text.length, 64);
	text_done(&text);
	spool_window_free(window);
}

Test(spool_window, is_shorter_where_the_bound_is_reached)
{
	struct spool *spool;
	struct trace *trace;
	struct text text;
	struct seen seen;
	uint64_t begin_ns;

	cr_assert_eq(spool_open("/tmp", 80000, 1, &spool, NULL), 0);
	spool_keep_window(spool, 3600 * SECOND);
	for (uint64_t i = 1; i <= 400; i++) {
		spool_mark(spool, i * SECOND);
		add(spool, 1, LANE_THREAD, i, 1, 200);
	}
	trace = window(spool, 0, &begin_ns, &text);
	seen = look(trace);
	cr_expect_eq(seen.last_call, 400);
	cr_expect_gt(seen.first_call, 1);
	cr_expect_eq(begin_ns, seen.first_call * SECOND, "it says since when");
	cr_expect_lt(text.length, 200000);
	trace_close(trace);
	text_done(&text);
	spool_close(spool);
}

enum { TASKS_EACH = 150 };

/* A second of a program that starts threads all the time: one of each second ends at once, one is renamed, one is silent, tasks come and go, and a function is told. */
static void add_threads(struct spool *spool, uint64_t second, unsigned count)
{
	struct event_builder builder;
	struct chunk chunk = { .lane_kind = LANE_SESSION, .sequence = second, .clock = clock_map_monotonic() };
	char name[32];

	event_builder_init(&builder);
	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof name, "t%llx", (unsigned long long)((second * count + i) * 0x9e3779b97f4a7c15ull)); /* does not compress to nothing */
		event_add(&builder, second * SECOND, EVENT_THREAD, (uint32_t)(1000 + second * count + i), 0, second, name);
	}
	for (uint32_t i = 0; i < TASKS_EACH; i++) {
		snprintf(name, sizeof name, "Task-%llu", (unsigned long long)second * TASKS_EACH + i);
		event_add(&builder, second * SECOND, EVENT_TASK, (uint32_t)second * TASKS_EACH + i, 0, (uint32_t)1, name);
	}
	snprintf(name, sizeof name, "%llu", (unsigned long long)second);
	event_add(&builder, second * SECOND, EVENT_THREAD, 7, 0, (uint64_t)0, name);
	event_add(&builder, second * SECOND, EVENT_THREAD_TIME, 7, 0, second, (uint64_t)0, (uint64_t)0, (uint64_t)0, (uint32_t)'R', "");
	if (second == 1)
		event_add(&builder, second * SECOND, EVENT_THREAD, 8, 0, (uint64_t)0, "silent");
	event_add(&builder, second * SECOND, EVENT_THREAD_TIME, 8, 0, second, (uint64_t)0, (uint64_t)0, (uint64_t)0, (uint32_t)'S', "");
	if (second % 100 == 0)
		event_add(&builder, second * SECOND, EVENT_CODE, (uint32_t)second, 0, second, (uint32_t)1, (uint32_t)0, "f", "f", "f.py");
	chunk.events = builder.bytes;
	chunk.size = builder.size;
	spool_add(spool, &chunk, 0);
	event_builder_done(&builder);
}

struct names { uint64_t threads, codes, renamed, silent, tasks, last_task, bytes; };

static struct names names_kept(struct spool *spool, uint64_t since_ns)
{
	struct names names = { 0 };
	struct trace *trace;
	struct chunk chunk;
	struct text text;
	uint64_t begin_ns;
	size_t length;

	trace = window(spool, since_ns, &begin_ns, &text);
	names.bytes = text.length;
	while (trace_next(trace, &chunk, NULL) == 1)
		for (struct event_cursor c = event_cursor(chunk.events, chunk.size); event_next(&c);) {
			names.threads += c.event.kind == EVENT_THREAD;
			names.codes += c.event.kind == EVENT_CODE;
			names.tasks += c.event.kind == EVENT_TASK;
			names.last_task = c.event.kind == EVENT_TASK ? c.event.ref : names.last_task;
			names.silent += c.event.kind == EVENT_THREAD && c.event.ref == 8;
			if (c.event.kind == EVENT_THREAD && c.event.ref == 7)
				names.renamed = strtoull(event_str(&c, 1, &length), NULL, 10);
		}
	cr_assert_eq(trace_info(trace).damaged_chunks, 0);
	trace_close(trace);
	text_done(&text);
	return names;
}

Test(spool_window, forgets_threads_that_ended_and_words_said_again)
{
	struct spool *spool;
	struct names early = { 0 }, late = { 0 };
	uint64_t last = 6000;

	cr_assert_eq(spool_open("/tmp", 1 << 30, 1, &spool, NULL), 0);
	spool_keep_window(spool, 30 * SECOND);
	for (uint64_t i = 1; i <= last; i++) {
		spool_mark(spool, i * SECOND);
		add_threads(spool, i, 20);
		if (i == last / 3)
			early = names_kept(spool, (i - 20) * SECOND);
	}
	late = names_kept(spool, (last - 20) * SECOND);
	cr_expect_lt(late.threads, last * 20 / 3, "of %llu threads %llu are named", (unsigned long long)last * 20, (unsigned long long)late.threads);
	cr_expect_lt(late.bytes, 2 * early.bytes, "%llu bytes, %llu before", (unsigned long long)late.bytes, (unsigned long long)early.bytes);
	cr_expect_geq(late.threads, 20 * 20, "those of the window are all there: %llu", (unsigned long long)late.threads);
	cr_expect_eq(late.codes, last / 100, "functions stay");
	cr_expect_lt(late.tasks, 4 * TASKS_KEPT, "of %llu tasks %llu are named", (unsigned long long)last * TASKS_EACH, (unsigned long long)late.tasks);
	cr_expect_geq(late.tasks, 2 * TASKS_KEPT);
	cr_expect_eq(late.last_task, last * TASKS_EACH + TASKS_EACH - 1);
	cr_expect_eq(late.silent, 1, "a thread that lives keeps its name");
	cr_expect_eq(late.renamed, last, "the last name counts: %llu", (unsigned long long)late.renamed);
	cr_expect(!spool_failed(spool));
	spool_close(spool);
}
