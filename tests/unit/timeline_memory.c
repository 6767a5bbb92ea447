/* Collections of garbage and samples of allocations, added up. */
#include <criterion/criterion.h>
#include <string.h>

#include "timeline/memory.h"
#include "timeline/operations.h"
#include "timeline_help.h"

static const struct operation *collections_named(const struct timeline *timeline, const char *name)
{
	const struct operations *all = timeline_operations(timeline);

	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].kind == EVENT_GC && strcmp(all->items[i].name, name) == 0)
			return &all->items[i];
	return NULL;
}

Test(timeline_memory, adds_up_collections_by_generation)
{
	struct timeline *timeline = timeline_from_text(META NAMES ON(0) OFF(10000)
		THREAD(3, 7)
		"0 enter ref=1\n"
		"2000 gc ref=0 duration_ns=100 collected=3\n"
		"3000 gc ref=2 duration_ns=700 collected=4 uncollectable=1\n"
		"5000 gc ref=2 duration_ns=300 collected=5\n");

	cr_assert_eq(collections_named(timeline, "generation 0")->count, 1);
	cr_assert_eq(collections_named(timeline, "generation 2")->count, 2);
	cr_assert_eq(collections_named(timeline, "generation 2")->time_ns, 1000);
	cr_assert_eq(collections_named(timeline, "generation 2")->longest_ns, 700);
	cr_assert_eq(collections_named(timeline, "generation 2")->freed, 9);
}

static bool keep_collection(void *context, const struct interval *interval)
{
	if (interval->kind == EVENT_GC)
		*(struct interval *)context = *interval;
	return true;
}

Test(timeline_memory, a_collection_is_told_at_its_end)
{
	struct trace *trace = trace_from_text(META NAMES ON(0) OFF(10000) THREAD(3, 7) "0 enter ref=1\n" "3000 gc ref=1 duration_ns=700\n");
	struct timeline *timeline = NULL;
	struct interval seen = { 0 };
	struct error err = { 0 };

	cr_assert_eq(timeline_build(trace, &timeline, &err), 0);
	cr_assert_eq(timeline_intervals(timeline, trace, keep_collection, &seen, &err), 0);
	cr_assert_eq(seen.start_ns, 2300);
	cr_assert_eq(seen.end_ns, 3000);
	timeline_free(timeline);
}

Test(timeline_memory, an_end_that_stands_before_its_sample_in_the_file_is_its_end)
{
	const struct memory_facts *facts = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(4000000000)
		THREAD(4, 8)
		"500 memory_free address=4096\n"
		"5000 memory_free address=4096\n"
		THREAD(3, 7)
		"1000 memory_alloc address=4096 bytes=100 weight_bytes=100 domain=2\n"
		"7000 memory_alloc address=4096 bytes=100 weight_bytes=100 domain=2\n"));

	cr_assert_eq(facts->all.samples, 2);
	cr_assert_eq(facts->all.live_samples, 1);
	cr_assert_eq(facts->sites[0].lifetime_p50_ns, 4000);
}

Test(timeline_memory, a_block_whose_address_is_given_again_has_ended)
{
	const struct memory_facts *facts = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(4000000000)
		THREAD(3, 7)
		"1000 memory_alloc address=4096 bytes=100 weight_bytes=100 domain=2\n"
		"7000 memory_alloc address=4096 bytes=100 weight_bytes=100 domain=2\n"));

	cr_assert_eq(facts->all.live_samples, 1);
	cr_assert_eq(facts->sites[0].lifetime_p50_ns, 6000);
}

#define FRAMES(line) "memory_frame ref=2 line=" #line "\n"

/* Line 12 of work allocates twice, once released at once and once for good; line 30 of main late, and for good. */
static struct timeline *sampled(void)
{
	return timeline_from_text(META NAMES ON(0) OFF(4000000000)
		THREAD(3, 7)
		"0 enter ref=1\n"
		"1000 " FRAMES(12) "1000 memory_frame ref=1 line=3\n"
		"1000 memory_alloc address=4096 bytes=100 weight_bytes=50000 domain=2\n"
		"2000 memory_free address=4096\n"
		"3000 " FRAMES(12) "3000 memory_frame ref=1 line=4\n"
		"3000 memory_alloc address=4096 bytes=100 weight_bytes=60000 domain=2\n"
		"3000000000 memory_frame ref=1 line=30\n"
		"3000000000 memory_alloc address=8192 bytes=1000000 weight_bytes=1000001 domain=1\n"
		"3000000001 memory_alloc bytes=70 weight_bytes=700 domain=2\n"
		"4000000000 leave ref=1\n");
}

Test(timeline_memory, adds_up_samples_by_line)
{
	const struct memory_facts *facts = timeline_memory(sampled());

	cr_assert_eq(facts->site_count, 3);
	cr_assert_str_eq(facts->sites[0].frames[0].name, "main");
	cr_assert_eq(facts->sites[0].frames[0].line, 30);
	cr_assert_eq(facts->sites[0].count, 1);
	cr_assert_str_eq(facts->sites[1].frames[0].name, "work");
	cr_assert_eq(facts->sites[1].samples, 2);
	cr_assert_eq(facts->sites[1].bytes, 110000);
	cr_assert_eq(facts->sites[1].count, 1100);
	cr_assert_eq(facts->sites[1].frames[1].line, 4, "the heaviest stack is shown");
	cr_assert_eq(facts->sites[2].frame_count, 0);
	cr_assert_eq(facts->all.bytes, 50000 + 60000 + 1000001 + 700);
}

Test(timeline_memory, tells_what_stayed)
{
	const struct memory_facts *facts = timeline_memory(sampled());

	cr_assert_eq(facts->sites[1].live_bytes, 60000);
	cr_assert_eq(facts->sites[1].early_bytes, 60000);
	cr_assert_eq(facts->sites[1].brief_bytes, 50000);
	cr_assert_eq(facts->sites[1].lifetime_p50_ns, 1000);
	cr_assert_eq(facts->sites[0].live_bytes, 1000001);
	cr_assert_eq(facts->sites[0].early_bytes, 0);
	cr_assert_eq(facts->sites[2].live_bytes, 0, "its end would not have been told");
}

Test(timeline_memory, sums_are_of_all_the_time_where_samples_were_taken_for_a_part_of_it)
{
	const struct memory_facts *facts = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(4000000000)
		"4000 counter name=\"memory_watched_ns\" value=4000\n"
		"4000 counter name=\"memory_off_ns\" value=3000\n"
		"4000 counter name=\"heap_watched_ns\" value=4000\n"
		"4000 counter name=\"heap_off_ns\" value=4000\n"
		THREAD(3, 7)
		"0 enter ref=1\n"
		"1000 " FRAMES(12) "1000 memory_alloc address=4096 bytes=100 weight_bytes=50000 domain=2\n"
		"2000 memory_free address=4096\n"
		"3000 memory_alloc address=8192 bytes=10 weight_bytes=18446744073709551615 domain=2\n"
		"3000000000 memory_alloc ref=7 bytes=100 weight_bytes=300 domain=3\n"));
	const struct memory_site *work = &facts->sites[1];

	cr_assert_eq(work->bytes, 200000);
	cr_assert_eq(work->count, 2000);
	cr_assert_eq(work->brief_bytes, 200000);
	cr_assert_eq(facts->sites[0].bytes, UINT64_MAX, "no number is larger");
	cr_assert_eq(facts->sites[2].bytes, 300, "never on, and seen nevertheless: the trace is no measure");
}

Test(timeline_memory, counters_of_one_process_say_nothing_of_the_others)
{
	const struct memory_facts *facts = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(4000000000)
		"4000 counter name=\"memory_watched_ns\" value=4000\n"
		"4000 counter name=\"memory_off_ns\" value=3000\n"
		THREAD(3, 7)
		"1000 memory_alloc address=4096 bytes=100 weight_bytes=500 domain=2\n"
		"chunk process=1 lane=4 tid=8 kind=thread sequence=1 lost=0 depth=0 refs=" CLOCK
		"1000 memory_alloc address=4096 bytes=100 weight_bytes=700 domain=2\n"));

	cr_assert_eq(facts->all.bytes, 1200);
}

Test(timeline_memory, believes_no_trace)
{
	const struct memory_facts *facts = timeline_memory(timeline_from_text(META ON(0) OFF(10000)
		THREAD(3, 7)
		"1000 memory_free address=1\n"
		"1000 memory_frame ref=77 line=1\n"
		"900 memory_alloc address=1\n"
		"800 memory_free address=1\n"
		"800 memory_free address=1\n"
		"700 memory_alloc address=1 bytes=18446744073709551615 weight_bytes=18446744073709551615 domain=9\n"));

	cr_assert_eq(facts->all.samples, 2);
	cr_assert_eq(facts->sites[0].frame_count + facts->sites[1].frame_count, 1);
}

Test(timeline_memory, is_empty_where_nothing_was_sampled)
{
	cr_assert_eq(timeline_memory(timeline_from_text(META ON(0) OFF(1000) THREAD(3, 7) "0 enter ref=1\n"))->site_count, 0);
}
