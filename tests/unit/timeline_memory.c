/* Collections of garbage and samples of allocations, added up. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/memory.h"
#include "timeline/operations.h"
#include "trace/dump.h"
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

#define BYTES(at, weight) #at " memory_alloc bytes=1 weight_bytes=" #weight " domain=2\n"

Test(timeline_memory, what_is_sampled_stands_for_the_time_without)
{
	const struct memory_facts *facts = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(10000)
		"0 memory_sampling off_ns=0 cpu_ns=0 on=1 native=0\n"
		"1000 memory_sampling off_ns=0 cpu_ns=0 on=0 native=0\n"
		"4000 memory_sampling off_ns=3000 cpu_ns=0 on=1 native=0\n"
		"6000 memory_sampling off_ns=0 cpu_ns=0 on=0 native=0\n"
		"8000 memory_sampling off_ns=2000 cpu_ns=0 on=1 native=0\n"
		THREAD(3, 7) BYTES(500, 1) BYTES(4500, 10) BYTES(8500, 1000) "10000 memory_alloc ref=7 bytes=1 weight_bytes=100000 domain=3\n"));

	cr_assert_eq(facts->all.bytes, 2 + 20 + 2000 + 100000, "%llu", (unsigned long long)facts->all.bytes);
	cr_assert_float_eq(facts->seen_pct[0], 50, 0.001);
	cr_assert_eq(facts->seen_pct[1], 0, "of native libraries nothing is told");
}

Test(timeline_memory, time_asleep_is_not_what_samples_stand_for)
{
	const struct memory_facts *facts = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(100000)
		"0 memory_sampling off_ns=0 cpu_ns=5000 on=1 native=0\n"
		"50000 memory_sampling off_ns=0 cpu_ns=6000 on=0 native=0\n"
		"60000 memory_sampling off_ns=10000 cpu_ns=9000 on=1 native=0\n"
		"80000 memory_sampling off_ns=0 cpu_ns=9000 on=0 native=0\n"
		THREAD(3, 7) BYTES(500, 10)));

	cr_assert_eq(facts->all.bytes, 50, "1 of 4 us of CPU, and of as much more at the end as it took before: %llu", (unsigned long long)facts->all.bytes);
	cr_assert_float_eq(facts->seen_pct[0], 20, 0.001);
}

Test(timeline_memory, a_stretch_whose_end_was_lost_ends_where_the_next_says)
{
	const struct memory_facts *facts = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(10000)
		"0 memory_sampling off_ns=0 cpu_ns=0 on=1 native=0\n"
		"8000 memory_sampling off_ns=5000 cpu_ns=0 on=1 native=0\n"
		THREAD(3, 7) BYTES(500, 10)));

	cr_assert_eq(facts->all.bytes, 20, "3 + 2 of 10 us: %llu", (unsigned long long)facts->all.bytes);
}

Test(timeline_memory, all_stretches_stand_for_the_time_without_at_the_end)
{
	const struct memory_facts *facts = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(10000)
		"2000 memory_sampling off_ns=0 cpu_ns=0 on=1 native=1\n"
		"4000 memory_sampling off_ns=0 cpu_ns=0 on=0 native=1\n"
		THREAD(3, 7) "2500 memory_alloc ref=7 bytes=10 weight_bytes=100 domain=3\n"));

	cr_assert_eq(facts->all.bytes, 400, "before it began nobody asked: %llu", (unsigned long long)facts->all.bytes);
	cr_assert_eq(facts->all.count, 40);
	cr_assert_float_eq(facts->seen_pct[1], 25, 0.001);
}

Test(timeline_memory, a_trace_that_begins_in_the_middle_stands_for_its_own_time)
{
	const struct memory_facts *in_a_rest = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(10000)
		"5000 memory_sampling off_ns=20000000 cpu_ns=0 on=1 native=0\n" THREAD(3, 7) BYTES(6000, 10)));
	const struct memory_facts *before_one = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(10000)
		"5000 memory_sampling off_ns=0 cpu_ns=0 on=0 native=0\n" THREAD(3, 7) BYTES(1000, 10)));

	cr_assert_eq(in_a_rest->all.bytes, 20, "%llu", (unsigned long long)in_a_rest->all.bytes);
	cr_assert_eq(before_one->all.bytes, 20, "%llu", (unsigned long long)before_one->all.bytes);
}

Test(timeline_memory, each_process_has_its_own_stretches)
{
	const struct memory_facts *facts = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(4000)
		"0 memory_sampling off_ns=0 cpu_ns=0 on=1 native=0\n"
		"1000 memory_sampling off_ns=0 cpu_ns=0 on=0 native=0\n"
		THREAD(3, 7) BYTES(500, 100)
		"chunk process=1 lane=4 tid=8 kind=thread sequence=1 lost=0 depth=0 refs=" CLOCK
		BYTES(500, 7)));

	cr_assert_eq(facts->all.bytes, 400 + 7, "%llu", (unsigned long long)facts->all.bytes);
}

#define PROCESS(n) "chunk process=" #n " lane=1 tid=0 kind=meta sequence=1 lost=0 depth=0 refs=" CLOCK

Test(timeline_memory, of_several_processes_the_part_seen_is_that_of_their_cpu_time_together)
{
	const struct memory_facts *facts = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(4000)
		"0 memory_sampling off_ns=0 cpu_ns=1000 on=1 native=0\n"
		"1000 memory_sampling off_ns=0 cpu_ns=1900 on=0 native=0\n"
		"4000 memory_sampling off_ns=3000 cpu_ns=4000 on=1 native=0\n"
		PROCESS(1)
		"0 memory_sampling off_ns=0 cpu_ns=50 on=1 native=0\n"
		"2000 memory_sampling off_ns=0 cpu_ns=150 on=0 native=0\n"
		"4000 memory_sampling off_ns=2000 cpu_ns=1050 on=1 native=0\n"));

	cr_assert_float_eq(facts->seen_pct[0], 100 * (900.0 + 100) / (3000 + 1000), 0.001, "%f", facts->seen_pct[0]);
}

Test(timeline_memory, believes_no_marks)
{
	const struct memory_facts *facts = timeline_memory(timeline_from_text(META NAMES ON(0) OFF(10000)
		"3000 memory_sampling off_ns=18446744073709551615 cpu_ns=0 on=77 native=88\n"
		"3000 memory_sampling off_ns=18446744073709551615 cpu_ns=0 on=1 native=1\n"
		"99000 memory_sampling off_ns=5 cpu_ns=0 on=0 native=1\n"
		"99000 memory_sampling off_ns=18446744073709551615 cpu_ns=0 on=1 native=0\n"
		THREAD(3, 7) "3000 memory_alloc ref=7 bytes=10 weight_bytes=18446744073709551615 domain=3\n" BYTES(99999, 18446744073709551615)));

	cr_assert_eq(facts->all.samples, 2);
	cr_assert(facts->seen_pct[1] >= 0 && facts->seen_pct[1] <= 100, "%f", facts->seen_pct[1]);
}

Test(timeline_memory, does_not_know_what_was_released_behind_the_end_of_a_trace_that_is_cut_off)
{
	struct timeline *timeline;
	struct error err = { 0 };
	struct trace *trace;
	void *bytes;
	size_t size;

	cr_assert_eq(trace_assemble_memory(META NAMES ON(0) OFF(10000) THREAD(3, 7) BYTES(500, 1) THREAD(4, 8) "600 memory_free address=0\n", &bytes, &size, &err), 0);
	cr_assert_eq(trace_open_memory(bytes, size - 1, &trace, &err), 0);
	cr_assert_eq(timeline_build(trace, &timeline, &err), 0);
	cr_assert_str_eq(timeline_memory(timeline)->ends_missing, "what was released is not known: the trace is cut off, or damaged");
	timeline_free(timeline);
	trace_close(trace);
	free(bytes);
}

static const char *ends_missing(const char *rows)
{
	char text[4096];

	snprintf(text, sizeof text, META NAMES ON(0) OFF(10000) SESSION "%s" THREAD(3, 7) BYTES(500, 1), rows);
	return timeline_memory(timeline_from_text(text))->ends_missing;
}

#define TOLD(key, value) "100 capture key=\"" key "\" value=\"" value "\"\n"
#define COUNTED(name, value) "100 counter name=\"" name "\" value=" #value "\n"

Test(timeline_memory, says_why_it_does_not_know_what_was_released)
{
	static const struct { const char *rows, *why; } cases[] = {
		{ TOLD("memory", "sampled"), NULL },
		{ TOLD("memory", "sampled") TOLD("memory.native", "sampled") COUNTED("memory_pauses", 0) COUNTED("heap_ends_missed", 0), NULL },
		{ TOLD("memory", "sampled") COUNTED("memory_pauses", 3), "a part of the time" },
		{ TOLD("memory", "cut: another tool put back the allocators of before") COUNTED("memory_pauses", 3), "another tool" },
		{ TOLD("memory", "given up: passing on each call costs more") COUNTED("memory_pauses", 3), "not sampled to the end" },
		{ TOLD("memory", "sampled") TOLD("memory.native", "given up: passing on each call costs more"), "not sampled to the end" },
		{ TOLD("memory", "sampled") COUNTED("heap_ends_missed", 1), "more threads released" },
		{ TOLD("memory", "sampled") THREAD(5, 9) "0 enter ref=1\n" "chunk process=0 lane=5 tid=9 kind=thread sequence=4 lost=90 depth=0 refs=" CLOCK "500 leave ref=1\n", "events were lost" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *why = ends_missing(cases[i].rows);

		cr_expect(cases[i].why ? why && strncmp(why, "what was released is not known: ", 32) == 0 && strstr(why, cases[i].why) : !why, "%s: %s", cases[i].rows, why ? why : "known");
	}
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
