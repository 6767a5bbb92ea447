/* Counters of threads, and of functions by samples. */
#include "timeline_help.h"

#include <criterion/criterion.h>

#define READY META NAMES ON(0) OFF(1000) SESSION "0 thread ref=7 name=\"main\"\n0 thread_time ref=7 cpu_ns=0 state=82\n1000 thread_time ref=7 cpu_ns=900 state=82\n"
#define COUNTER(at, value, name) #at " thread_counter ref=7 value=" #value " name=\"" name "\"\n"
#define GAINED(at, stack, tid, value, name) #at " sample_counter ref=" #stack " tid=" #tid " value=" #value " name=\"" name "\"\n"
#define SAMPLE(at, stack) #at " sample ref=" #stack " tid=7 state=1 weight_ns=100\n"
/* 1 main, 2 main work, 3 a native one below work, 4 a native one alone. */
#define STACKS \
	"0 module ref=1 path=\"/usr/lib/libz.so\"\n0 native ref=1 module=1 name=\"inflate\"\n" \
	"0 stack ref=1 parent=0 frame=1 kind=0\n0 stack ref=2 parent=1 frame=2 kind=0\n0 stack ref=3 parent=2 frame=1 kind=1\n0 stack ref=4 parent=0 frame=1 kind=1\n"

static const struct thread *thread_seven(const struct timeline *timeline)
{
	cr_assert_eq(timeline->thread_count, 1);
	return &timeline->threads[0];
}

Test(timeline_counters, are_what_they_came_to_at_last)
{
	struct timeline *t = timeline_from_text(READY COUNTER(100, 5, "minor_faults") COUNTER(900, 25, "minor_faults") COUNTER(900, 3, "context_switches"));
	const struct thread *thread = thread_seven(t);

	cr_expect_eq(thread->counters[COUNTER_MINOR_FAULTS], 25);
	cr_expect_eq(thread->counters[COUNTER_SWITCHES], 3);
	cr_expect_eq(thread->counters_known, 1u << COUNTER_MINOR_FAULTS | 1u << COUNTER_SWITCHES, "what nobody counted is not known");
	cr_expect_eq(thread->counters_scaled, 0);
}

Test(timeline_counters, of_a_number_that_is_given_again_add_up)
{
	struct timeline *t = timeline_from_text(READY COUNTER(100, 20, "cpu_migrations") COUNTER(500, 4, "cpu_migrations") COUNTER(900, 6, "cpu_migrations"));

	cr_expect_eq(thread_seven(t)->counters[COUNTER_MIGRATIONS], 26);
}

Test(timeline_counters, say_when_they_are_estimates)
{
	struct timeline *t = timeline_from_text(READY "900 thread_counter ref=7 flags=sampled value=1000 name=\"cycles\"\n");

	cr_expect_eq(thread_seven(t)->counters_scaled, 1u << COUNTER_CYCLES);
}

Test(timeline_counters, of_another_name_are_nothing)
{
	struct timeline *t = timeline_from_text(READY COUNTER(900, 6, "bogomips") STACKS SAMPLE(200, 1) GAINED(200, 1, 7, 5, "bogomips") GAINED(200, 1, 7, 5, "context_switches"));

	cr_expect_eq(thread_seven(t)->counters_known, 0);
	cr_expect_eq(t->counter_site_count, 0);
}

Test(timeline_counters, of_samples_belong_to_the_innermost_python_function)
{
	struct timeline *t = timeline_from_text(READY STACKS SAMPLE(200, 3) GAINED(200, 3, 7, 40, "minor_faults") SAMPLE(300, 2) GAINED(300, 2, 7, 2, "minor_faults") GAINED(300, 2, 7, 1, "major_faults")
		SAMPLE(400, 1) GAINED(400, 1, 7, 5, "minor_faults") SAMPLE(500, 4) GAINED(500, 4, 7, 3, "minor_faults"));
	const struct function *of[3];

	cr_assert_eq(t->counter_site_count, 3);
	for (size_t i = 0; i < 3; i++)
		of[i] = &t->functions[t->counter_sites[i].function];
	cr_expect_str_eq(of[0]->name, "work");
	cr_expect_eq(t->counter_sites[0].gained[COUNTER_MINOR_FAULTS - COUNTERS_SAMPLED], 42);
	cr_expect_eq(t->counter_sites[0].gained[COUNTER_MAJOR_FAULTS - COUNTERS_SAMPLED], 1);
	cr_expect_str_eq(of[1]->name, "main");
	cr_expect_str_eq(of[2]->name, "inflate");
}

Test(timeline_counters, of_another_thread_than_the_sample_before_are_left_out)
{
	struct timeline *t = timeline_from_text(READY STACKS SAMPLE(200, 1) GAINED(200, 1, 8, 40, "minor_faults"));

	cr_expect_eq(t->counter_site_count, 0);
}
