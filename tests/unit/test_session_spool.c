/* The spool: what is put in comes out in order; at the bound the oldest calls go and the names stay. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "session/pool.h"
#include "session/spool.h"

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

Test(spool, leaves_no_file_behind)
{
	char folder[] = "/tmp/inferscope-spool-XXXXXX";
	struct spool *spool;

	cr_assert_not_null(mkdtemp(folder));
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
