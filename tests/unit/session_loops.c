/* Which functions are believed to be the interpreter's loop. */
#include <criterion/criterion.h>

#include "session/loops.h"

Test(session_loops, the_one_of_that_name_is_one_and_is_never_learned)
{
	struct loops loops = { 0 };

	cr_assert(loops_have(&loops, "_PyEval_EvalFrameDefault.cold"));
	cr_assert_not(loops_met(&loops, "_PyEval_EvalFrameDefault", true));
	cr_assert_eq(loops.count, 0);
}

Test(session_loops, alone_one_is_learned_at_once)
{
	struct loops loops = { 0 };
	const char *name = "python3.14+0x1234";

	cr_assert(loops_met(&loops, name, true));
	cr_assert(loops_have(&loops, name));
	cr_assert_not(loops_met(&loops, name, true), "it is known already");
}

Test(session_loops, beside_one_that_is_known_another_one_must_be_met_again_and_again)
{
	struct loops loops = { 0 };
	const char *name = "python3.14+0x5678";

	cr_assert_not(loops_met(&loops, name, false));
	cr_assert_not(loops_met(&loops, name, false));
	cr_assert(loops_met(&loops, name, false));
}

/* A look that came later than its copy says so now and then of a function that stands in most stacks. */
Test(session_loops, what_mostly_runs_none_is_never_learned)
{
	struct loops loops = { 0 };
	const char *name = "_PyFunction_Vectorcall";

	for (int i = 0; i < 1000; i++) {
		cr_assert_not(loops_met(&loops, name, false), "after %d", i);
		for (int j = 0; j < 5; j++)
			loops_missed(&loops, name);
	}
}

Test(session_loops, has_room_for_a_few)
{
	static const char names[2 * LOOPS_MAX][2];
	struct loops loops = { 0 };

	for (int i = 0; i < 2 * LOOPS_MAX; i++)
		cr_assert_not(loops_met(&loops, names[i], false));
	for (int i = 0; i < 2 * LOOPS_MAX; i++)
		cr_assert_eq(loops_met(&loops, names[i], true), i < LOOPS_MAX);
}
