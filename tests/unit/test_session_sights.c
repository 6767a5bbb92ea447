/* The queue between who looks at threads and who tells of them. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "session/sight.h"

static struct sights sights;
static struct look look;

static void setup(void)
{
	sights_init(&sights);
	memset(&look, 0, sizeof look);
}

static void teardown(void)
{
	sights_done(&sights);
}

TestSuite(sights, .init = setup, .fini = teardown);

Test(sights, come_out_as_they_went_in_with_what_was_seen)
{
	struct sight *first, *second;

	look.copy.known = 1;
	look.copy.stack_size = 3;
	memcpy(look.copy.stack, "abc", 3);
	look.glimpse_size = 2;
	memcpy(look.glimpse, "xy", 2);
	cr_assert(sights_push(&sights, sight_new(7, &look)));
	cr_assert(sights_push(&sights, sight_new(8, NULL)));
	first = sights_pop(&sights);
	second = sights_pop(&sights);
	cr_assert(first->tid == 7 && !first->again && first->stack_size == 3 && first->glimpse_size == 2);
	cr_assert_eq(memcmp(first->bytes, "xyabc", 5), 0);
	cr_assert(second->tid == 8 && second->again && second->stack_size == 0);
	free(first);
	free(second);
}

Test(sights, of_python_alone_bring_no_stack)
{
	struct sight *sight;

	look.copy.stack_size = 100; /* of an earlier look */
	sight = sight_new(7, &look);
	cr_assert(sight->known == 0 && sight->stack_size == 0);
	free(sight);
}

Test(sights, end_when_they_are_closed_and_all_are_out)
{
	cr_assert(sights_push(&sights, sight_new(7, &look)));
	sights_close(&sights);
	free(sights_pop(&sights));
	cr_assert_null(sights_pop(&sights));
}

Test(sights, that_find_no_room_are_lost_and_counted)
{
	uint64_t lost;

	look.copy.known = 1;
	look.copy.stack_size = THREAD_COPY_STACK_MAX;
	while (sights_push(&sights, sight_new(7, &look)))
		;
	cr_assert_eq(sights_load(&sights, &lost), 100);
	cr_assert_eq(lost, 1);
	free(sights_pop(&sights));
	cr_assert(sights_push(&sights, sight_new(8, &look)), "there is room again");
}

Test(sights, carry_wishes_back)
{
	struct sight_wish asked[SIGHTS_ASKED];

	for (pid_t tid = 1; tid < SIGHTS_ASKED + 5; tid++)
		sights_ask(&sights, (struct sight_wish){ .tid = tid, .stack_bytes = 100 });
	cr_assert_eq(sights_asked(&sights, asked), SIGHTS_ASKED);
	cr_assert(asked[0].tid == 1 && asked[SIGHTS_ASKED - 1].tid == SIGHTS_ASKED && asked[3].stack_bytes == 100);
	cr_assert_eq(sights_asked(&sights, asked), 0);
}
