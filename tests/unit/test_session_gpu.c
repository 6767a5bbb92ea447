/* The device's part, outside: what a process shows of CUDA, its clock against ours, records into lanes of the trace. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abi/cupti.h"
#include "session/gpu_look.h"
#include "session/gpu_relay.h"
#include "trace/writer.h"

#define SECOND 1000000000ull
#define EPOCH (1700000000ull * SECOND)

/* ---- the clock ---- */

static void compare(struct gpu_clock *clock, uint64_t cpu_ns, uint64_t gpu, uint64_t width)
{
	gpu_clock_add(clock, gpu - width / 2, cpu_ns, EPOCH + cpu_ns, gpu + width / 2);
}

static uint64_t converted(const struct gpu_clock *clock, uint64_t gpu)
{
	struct clock_map map;

	cr_assert(gpu_clock_at(clock, gpu, &map));
	return clock_to_ns(&map, gpu);
}

Test(gpu_clock, follows_a_clock_that_runs_faster)
{
	struct gpu_clock clock = { 0 };
	uint64_t got;

	for (uint64_t i = 0; i < 8; i++)
		compare(&clock, i * SECOND + 5, EPOCH + i * (SECOND + 500000), 80);
	got = converted(&clock, EPOCH + 3 * (SECOND + 500000) + (SECOND + 500000) / 2);
	cr_assert(got > 3 * SECOND + SECOND / 2 && got < 3 * SECOND + SECOND / 2 + 10, "%llu", (unsigned long long)got);
	cr_assert_eq(clock.bound_ns, 120, "half of one comparison between two, and half of two beyond the last");
	cr_assert(gpu_clock_good(&clock));
	gpu_clock_done(&clock);
}

/* Four days of comparisons, four a second, of a clock that is slewed by 10 ppm. */
Test(gpu_clock, is_followed_for_days)
{
	const uint64_t step = SECOND / 4, slewed = step + step / 100000, count = 4 * 86400ull * 4;
	struct gpu_clock clock = { 0 };
	uint64_t got;

	for (uint64_t i = 0; i < count; i++)
		compare(&clock, i * step + 5, EPOCH + i * slewed, 80);
	got = converted(&clock, EPOCH + (count - 1) * slewed - slewed / 2);
	cr_assert(got > (count - 2) * step + step / 2 && got < (count - 2) * step + step / 2 + 10, "%lld ns off", (long long)(got - (count - 2) * step - step / 2));
	cr_assert_eq(gpu_clock_reached(&clock), EPOCH + (count - 1) * slewed);
	cr_assert_eq(clock.comparisons, count);
	cr_assert_eq(clock.bound_ns, 120);
	gpu_clock_done(&clock);
}

Test(gpu_clock, leaves_a_disturbed_comparison_out)
{
	struct gpu_clock clock = { 0 };

	compare(&clock, SECOND, EPOCH + SECOND, 80);
	compare(&clock, 2 * SECOND, EPOCH + 2 * SECOND + 900000, 2000000);
	compare(&clock, 3 * SECOND, EPOCH + 3 * SECOND, 80);
	cr_assert_eq(clock.outliers, 1);
	cr_assert_eq(clock.points.count, 2);
	cr_assert_eq(converted(&clock, EPOCH + 2 * SECOND), 2 * SECOND);
	gpu_clock_done(&clock);
}

Test(gpu_clock, notices_that_the_time_of_day_was_set)
{
	struct gpu_clock clock = { 0 };

	compare(&clock, SECOND, EPOCH + SECOND, 80);
	compare(&clock, 2 * SECOND, EPOCH + 2 * SECOND, 80);
	compare(&clock, 3 * SECOND, EPOCH + 63 * SECOND, 80);
	cr_assert_eq(clock.steps, 1);
	cr_assert_eq(converted(&clock, EPOCH + 2 * SECOND + SECOND / 2), 2 * SECOND + SECOND / 2);
	cr_assert_eq(converted(&clock, EPOCH + 63 * SECOND - SECOND / 4), 3 * SECOND - SECOND / 4);
	gpu_clock_done(&clock);
}

Test(gpu_clock, fits_a_foreign_one_and_says_so)
{
	struct gpu_clock clock = { 0 };

	for (uint64_t i = 1; i < 6; i++)
		compare(&clock, i * SECOND, i * 2400000000ull, 200);
	cr_assert(clock.foreign);
	cr_assert_eq(converted(&clock, 3600000000ull), SECOND + SECOND / 2);
	cr_assert(gpu_clock_good(&clock));
	gpu_clock_done(&clock);
}

Test(gpu_clock, without_a_second_comparison_is_not_good)
{
	struct gpu_clock clock = { 0 };

	compare(&clock, SECOND, EPOCH, 80);
	cr_assert_not(gpu_clock_good(&clock));
	cr_assert_eq(gpu_clock_reached(&clock), 0);
	gpu_clock_done(&clock);
}

/* ---- records ---- */

struct seen { uint32_t lanes, chunks; uint64_t events, starts[16]; char names[16][64]; uint32_t streams[16], count, tid; };

static void chunk_note(void *context, const struct chunk *chunk, uint64_t events)
{
	struct seen *seen = context;

	seen->chunks++;
	seen->events += events;
	cr_assert_eq(chunk->lane_kind, LANE_GPU);
	for (struct event_cursor c = event_cursor(chunk->events, chunk->size); event_next(&c) && seen->count < 16;) {
		size_t length;
		const char *name;

		if (c.event.kind == EVENT_GPU_API) {
			seen->tid = event_u32(&c, 2);
			continue;
		}
		name = event_str(&c, 10, &length);
		snprintf(seen->names[seen->count], 64, "%.*s", (int)length, name);
		seen->streams[seen->count] = event_u32(&c, 3);
		seen->starts[seen->count++] = clock_to_ns(&chunk->clock, c.event.ticks);
	}
}

static uint32_t lane_next(void *context)
{
	return 10 + ((struct seen *)context)->lanes++;
}

static uint32_t tid_plus_1000(void *context, uint32_t tid)
{
	return tid + 1000;
}

static void give(struct gpu_relay *relay, struct event_builder *events, bool names)
{
	struct chunk chunk = { .lane_kind = names ? LANE_META : LANE_GPU, .clock = clock_map_monotonic(), .events = events->bytes, .size = events->size };

	if (names)
		gpu_relay_names(relay, &chunk);
	else
		gpu_relay_work(relay, &chunk);
	event_builder_done(events);
}

static void clock_told(struct event_builder *events, uint64_t at_ns)
{
	event_add(events, at_ns, EVENT_GPU_CLOCK, 0, 0, EPOCH + at_ns - 40, EPOCH + at_ns, EPOCH + at_ns + 40);
}

static void kernel(struct event_builder *events, uint64_t at_ns, uint32_t stream, uint32_t name)
{
	event_add(events, EPOCH + at_ns, EVENT_GPU_KERNEL, name, 0, (uint64_t)1000, 5u, 0u, stream, 1u, 1u, 1u, 1u, 1u, 1u, "");
}

/* NOTE gets the chunks. Its clock is known from the first second to the second one. */
static struct gpu_relay *begin_with(void (*note)(void *, const struct chunk *, uint64_t), struct seen *seen, struct event_builder *names, struct event_builder *work)
{
	const struct gpu_relay_sink sink = { note, lane_next, tid_plus_1000, seen };

	event_builder_init(names);
	event_builder_init(work);
	clock_told(names, SECOND);
	clock_told(names, 2 * SECOND);
	return gpu_relay_new(&sink);
}

static struct gpu_relay *begin(struct seen *seen, struct event_builder *names, struct event_builder *work)
{
	return begin_with(chunk_note, seen, names, work);
}

static void run(struct gpu_relay *relay, struct event_builder *names, struct event_builder *work)
{
	give(relay, names, true);
	give(relay, work, false);
	gpu_relay_run(relay, false);
}

Test(gpu_relay, sorts_streams_apart_and_by_time_with_names)
{
	struct seen seen = { 0 };
	struct event_builder names, work;
	struct gpu_relay *relay = begin(&seen, &names, &work);

	event_add(&names, 0, EVENT_GPU_NAME, 1, 0, "_Z4gemmPf");
	event_add(&names, 0, EVENT_GPU_NAME, 2, 0, "triton");
	kernel(&work, SECOND + 500, 7, 1);
	kernel(&work, SECOND + 300, 9, 2);
	kernel(&work, SECOND + 100, 7, 2);
	run(relay, &names, &work);
	cr_assert_eq(seen.lanes, 2);
	cr_assert_eq(seen.count, 3);
	cr_assert(seen.streams[0] == 7 && seen.streams[1] == 7 && seen.streams[2] == 9);
	cr_assert(seen.starts[0] == SECOND + 100 && seen.starts[1] == SECOND + 500 && seen.starts[2] == SECOND + 300);
	cr_assert_str_eq(seen.names[1], "gemm(float*)");
	cr_assert_str_eq(seen.names[2], "triton");
	gpu_relay_free(relay);
}

Test(gpu_relay, believes_the_first_name_and_takes_no_memory_for_more)
{
	struct seen seen = { 0 };
	struct event_builder names, work;
	struct gpu_relay *relay = begin(&seen, &names, &work);

	event_add(&names, 0, EVENT_GPU_NAME, 1, 0, "first");
	event_add(&names, 0, EVENT_GPU_NAME, 1, 0, "second");
	kernel(&work, SECOND + 100, 7, 1);
	event_add(&work, EPOCH + SECOND + 200, EVENT_COUNTER, 0, 0, "none of a device's", (int64_t)1);
	run(relay, &names, &work);
	cr_assert_str_eq(seen.names[0], "first");
	cr_assert_eq(seen.events, 1, "what is no work of a device is not handed on, nor counted");
	gpu_relay_free(relay);
}

Test(gpu_relay, keeps_what_no_comparison_of_clocks_reaches)
{
	struct seen seen = { 0 };
	struct event_builder names, work;
	struct gpu_relay *relay = begin(&seen, &names, &work);

	kernel(&work, 2 * SECOND + 5, 7, 3);
	run(relay, &names, &work);
	cr_assert_eq(seen.count, 0);
	gpu_relay_run(relay, true);
	cr_assert_eq(seen.count, 1);
	cr_assert_eq(gpu_relay_totals(relay).nameless, 1);
	gpu_relay_free(relay);
}

Test(gpu_relay, numbers_threads_as_the_attacher_does)
{
	struct seen seen = { 0 };
	struct event_builder names, work;
	struct gpu_relay *relay = begin(&seen, &names, &work);

	event_add(&work, EPOCH + SECOND, EVENT_GPU_API, 1, 0, (uint64_t)10, 5u, 42u, "");
	run(relay, &names, &work);
	cr_assert_eq(seen.tid, 1042);
	gpu_relay_free(relay);
}

static void range_note(void *context, const struct chunk *chunk, uint64_t events)
{
	struct seen *seen = context;

	(void)events;
	seen->tid = chunk->tid;
	for (struct event_cursor c = event_cursor(chunk->events, chunk->size); event_next(&c) && seen->count < 16;) {
		size_t length = 0;
		const char *name = c.event.kind == EVENT_SCOPE_EXIT ? "" : event_str(&c, c.event.kind == EVENT_SCOPE_ENTER ? 1 : 0, &length);

		snprintf(seen->names[seen->count], 64, "%.*s", (int)length, name);
		seen->streams[seen->count] = c.event.kind;
		seen->starts[seen->count++] = clock_to_ns(&chunk->clock, c.event.ticks);
	}
}

Test(gpu_relay, makes_scopes_of_ranges_in_lanes_of_their_threads)
{
	struct seen seen = { 0 };
	struct event_builder names, work;
	struct gpu_relay *relay = begin_with(range_note, &seen, &names, &work);

	event_add(&names, 0, EVENT_GPU_NAME, 1, 0, "forward");
	event_add(&work, EPOCH + SECOND + 30, EVENT_GPU_RANGE, 0, 0, 42u, 8u, (uint32_t)CUPTI_RANGE_END);
	event_add(&work, EPOCH + SECOND + 20, EVENT_GPU_RANGE, 1, 0, 42u, 9u, (uint32_t)CUPTI_RANGE_MARK);
	event_add(&work, EPOCH + SECOND + 10, EVENT_GPU_RANGE, 1, 0, 42u, 8u, (uint32_t)CUPTI_RANGE_START);
	run(relay, &names, &work);
	cr_assert_eq(seen.tid, 1042);
	cr_assert_eq(seen.count, 3);
	cr_assert(seen.streams[0] == EVENT_SCOPE_ENTER && seen.streams[1] == EVENT_INSTANT && seen.streams[2] == EVENT_SCOPE_EXIT);
	cr_assert(seen.starts[0] == SECOND + 10 && seen.starts[2] == SECOND + 30);
	cr_assert_str_eq(seen.names[0], "forward");
	cr_assert_str_eq(seen.names[1], "forward");
	gpu_relay_free(relay);
}

Test(gpu_relay, counts_what_it_cannot_date)
{
	struct seen seen = { 0 };
	const struct gpu_relay_sink sink = { chunk_note, lane_next, tid_plus_1000, &seen };
	struct gpu_relay *relay = gpu_relay_new(&sink);
	struct event_builder work;

	event_builder_init(&work);
	kernel(&work, 5, 7, 1);
	give(relay, &work, false);
	gpu_relay_run(relay, true);
	cr_assert_eq(seen.count, 0);
	cr_assert_eq(gpu_relay_totals(relay).timeless, 1);
	gpu_relay_free(relay);
}

/* ---- the look from outside ---- */

Test(gpu_look, says_what_is_there)
{
	struct gpu_look look = { 0 };
	char text[512];

	gpu_look_text(&look, text, sizeof text);
	cr_assert_str_eq(text, "no CUDA driver in the target");
	look.driver = look.runtime = true;
	gpu_look_text(&look, text, sizeof text);
	cr_assert_str_eq(text, "CUDA driver; libcupti is looked for beside the CUDA runtime");
	look.cupti_count = 1;
	strcpy(look.cupti, "/x/libcupti.so.12");
	strcpy(look.kernel_driver, "550.54.15");
	gpu_look_text(&look, text, sizeof text);
	cr_assert_str_eq(text, "CUDA driver 550.54.15, libcupti.so.12");
	strcpy(look.tool, "Nsight Systems");
	gpu_look_text(&look, text, sizeof text);
	cr_assert_str_eq(text, "CUDA driver 550.54.15, libcupti.so.12; Nsight Systems is in it and may hold CUPTI");
}

Test(gpu_look, finds_no_driver_in_itself)
{
	struct gpu_look look;

	cr_assert(gpu_look_read(&procfs_real, getpid(), &look));
	cr_assert_not(look.driver);
	cr_assert_eq(look.cupti_count, 0);
}
