/* What a job's report takes from the trace of one process. */
#include <criterion/criterion.h>

#include "analyze/job.h"

Test(job, the_hottest_function_has_its_part_of_what_was_no_spinning)
{
	struct function work = { .name = "work", .cpu_self_ns = 300 };
	struct thread thread = { .point_count = 2, .cpu_ns = 1000, .python_ns = 300, .native_ns = 100, .gpu_wait_ns = 600 };
	struct timeline timeline = { .duration_ns = 1000, .function_count = 1, .functions = &work, .thread_count = 1, .threads = &thread };
	struct analysis analysis = { .finding_count = 0 };
	struct rank rank;

	rank_fill(&timeline, &analysis, "a.iscope", &rank);
	cr_assert_str_eq(rank.hottest, "work");
	cr_expect_float_eq(rank.hottest_pct, 75, 1e-9, "%g", rank.hottest_pct);
}
