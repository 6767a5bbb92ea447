/* Joins of made-up stacks, of each family of versions: where a frame is run, and what happens when the halves do not fit. */
#include "unwind/join.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/*
 * A stack in words, innermost first: native frames are letters, each 0x100 bytes of stack from 0x1000 upwards. E is the evaluator, K the collector's.
 * Python frames are digits; `entries` says which native frame (by position, '.' = not known, '<' or '>' = below or above all) runs each.
 */
struct both {
	struct pystack python;
	struct native_stack native;
	struct joined_stack joined;
	char text[256];
};

static uint64_t entry_of(char place, size_t frames)
{
	switch (place) {
	case '.': return 0;
	case '<': return 0x800;
	case '>': return 0x1000 + frames * 0x100 + 0x80;
	default: return 0x1000 + (uint64_t)(place - 'a') * 0x100 + 0x80;
	}
}

static bool says_evaluator(void *context, const struct native_stack *native, uint32_t which)
{
	(void)context;
	return native->frames[which].ip == 'E';
}

static bool says_hidden(void *context, const struct native_stack *native, uint32_t which)
{
	(void)context;
	return native->frames[which].ip == 'K';
}

/* NATIVE: a letter per frame. ENTRIES: per Python frame the place of its native frame, a = the innermost. */
static const char *join_at(struct both *both, int minor, const char *native, enum walk_end end, const char *entries, uint64_t still_above)
{
	const struct join_rules rules = { .python_minor = minor, .still_above = still_above, .evaluator = says_evaluator, .hidden = says_hidden };
	size_t length = 0;

	memset(both, 0, sizeof *both);
	both->native.end = end;
	for (const char *at = native; *at; at++) {
		uint64_t sp = 0x1000 + both->native.count * 0x100;

		both->native.frames[both->native.count++] = (struct native_frame){ .ip = (unsigned char)*at, .sp = sp, .cfa = sp + 0x100 };
	}
	for (const char *at = entries; *at; at++)
		both->python.entry[both->python.count++] = entry_of(*at, both->native.count);
	join_stacks(&both->python, &both->native, &rules, &both->joined);
	for (uint32_t i = 0; i < both->joined.count; i++) {
		const struct joined_frame *frame = &both->joined.frames[i];

		both->text[length++] = frame->python ? (char)('0' + frame->index) : (char)both->native.frames[frame->index].ip;
	}
	return both->text;
}

static const char *join(struct both *both, int minor, const char *native, enum walk_end end, const char *entries)
{
	return join_at(both, minor, native, end, entries, 0);
}

static struct both both;

/* STILL: the innermost native frame that was still the same when the Python frames were read. */
#define JOINS_LATER(minor, native, entries, still, expected, verdict, is_later) do { \
	cr_assert_str_eq(join_at(&both, minor, native, WALK_COMPLETE, entries, 0x1000 + ((still) - 'a') * 0x100 - 8), expected); \
	cr_assert_eq(both.joined.result, verdict, "%s", join_result_name(both.joined.result)); \
	cr_assert_eq(both.joined.later, is_later); } while (0)

#define JOINS(minor, native, end, entries, expected, verdict) do { \
	cr_assert_str_eq(join(&both, minor, native, end, entries), expected); \
	cr_assert_eq(both.joined.result, verdict, "%s", join_result_name(both.joined.result)); } while (0)

Test(join, puts_all_frames_of_one_call_in_its_place)
{
	JOINS(13, "xEyzEm", WALK_COMPLETE, "bbbee", "x012yz34m", JOIN_WHOLE);
	JOINS(12, "Em", WALK_COMPLETE, "a", "0m", JOIN_WHOLE);
	JOINS(11, "xEEm", WALK_COMPLETE, "bc", "x01m", JOIN_WHOLE);
	JOINS(10, "xEpEqEm", WALK_COMPLETE, "bdf", "x0p1q2m", JOIN_WHOLE);
}

Test(join, needs_no_name_of_the_evaluator)
{
	JOINS(14, "xuyzvm", WALK_COMPLETE, "bbe", "x01yz2m", JOIN_WHOLE);
}

Test(join, keeps_evaluator_calls_that_run_nothing)
{
	JOINS(13, "ExEm", WALK_COMPLETE, "cc", "Ex01m", JOIN_WHOLE);
}

Test(join, leaves_out_the_collectors_own_frames)
{
	JOINS(11, "xEKyEKm", WALK_COMPLETE, "be", "x0y1m", JOIN_WHOLE);
	JOINS(8, "xEKyEKm", WALK_COMPLETE, "..", "x0y1m", JOIN_WHOLE);
}

Test(join, takes_two_runs_that_lie_in_one_native_frame)
{
	memset(&both, 0, sizeof both);
	cr_assert_str_eq(join(&both, 13, "Em", WALK_COMPLETE, "aa"), "01m");
	both.python.entry[1] += 8;
	join_stacks(&both.python, &both.native, &(struct join_rules){ .python_minor = 13 }, &both.joined);
	cr_assert_eq(both.joined.result, JOIN_WHOLE);
	cr_assert_eq(both.joined.count, 3);
}

Test(join, counts_where_entries_are_not_known)
{
	JOINS(8, "xEpEqEm", WALK_COMPLETE, "...", "x0p1q2m", JOIN_WHOLE);
	JOINS(10, "xEpEm", WALK_COMPLETE, "..", "x0p1m", JOIN_WHOLE);
}

Test(join, counts_past_a_call_that_has_no_frame_yet)
{
	JOINS(9, "EpEqEm", WALK_COMPLETE, "..", "Ep0q1m", JOIN_WHOLE);
	JOINS(9, "xEpEqEm", WALK_COMPLETE, "..", "xEp0q1m", JOIN_WHOLE);
}

Test(join, counts_from_within_where_further_out_is_another_greenlet)
{
	JOINS(8, "abcdEpEm", WALK_COMPLETE, ".", "abcd0pEm", JOIN_WHOLE);
	JOINS(8, "EpEqErEm", WALK_COMPLETE, "..", "0p1qErEm", JOIN_WHOLE);
}

Test(join, places_a_frame_whose_call_is_ending)
{
	JOINS(10, "xEpEm", WALK_COMPLETE, ".d", "x0p1m", JOIN_WHOLE);
}

Test(join, places_a_run_whose_shim_was_too_far_away)
{
	JOINS(13, "xEyEm", WALK_COMPLETE, "b..", "x0y12m", JOIN_WHOLE);
	JOINS(13, "xEm", WALK_COMPLETE, "...", "x012m", JOIN_WHOLE);
}

Test(join, is_partial_where_the_native_walk_was_cut)
{
	JOINS(13, "xEy", WALK_CUT_STACK, "bb>>", "x01y23", JOIN_PARTIAL);
	JOINS(8, "xEy", WALK_CUT_DEPTH, "..", "x0y1", JOIN_PARTIAL);
	JOINS(14, "xy", WALK_CUT_JIT, ">", "xy0", JOIN_PARTIAL);
}

Test(join, is_partial_where_python_runs_on_another_stack)
{
	JOINS(13, "xEym", WALK_COMPLETE, "bb>>", "x01ym23", JOIN_PARTIAL);
	JOINS(13, "xym", WALK_COMPLETE, "<", "xym0", JOIN_PARTIAL);
}

Test(join, keeps_both_halves_where_they_contradict_each_other)
{
	JOINS(13, "xEyEm", WALK_COMPLETE, "db", "xEyEm01", JOIN_FAILED);
	JOINS(8, "xEym", WALK_COMPLETE, "..", "xEym01", JOIN_FAILED);
	JOINS(8, "xym", WALK_COMPLETE, ".", "xym0", JOIN_FAILED);
}

Test(join, hides_the_collector_in_kept_halves_too)
{
	JOINS(9, "xKm", WALK_COMPLETE, ".", "xm0", JOIN_FAILED);
}

Test(join, takes_what_there_is)
{
	JOINS(13, "xyz", WALK_COMPLETE, "", "xyz", JOIN_NATIVE);
	JOINS(13, "", WALK_COMPLETE, "aab", "012", JOIN_PYTHON);
	join_stacks(NULL, NULL, &(struct join_rules){ .python_minor = 13 }, &both.joined);
	cr_assert_eq(both.joined.count, 0);
	cr_assert_eq(both.joined.result, JOIN_NATIVE);
}

Test(join, holds_every_frame_of_the_largest_stacks)
{
	memset(&both, 0, sizeof both);
	both.native.count = WALK_FRAMES_MAX;
	both.python.count = PYSTACK_FRAMES_MAX;
	for (uint32_t i = 0; i < WALK_FRAMES_MAX; i++)
		both.native.frames[i] = (struct native_frame){ .ip = 'x', .sp = 0x1000 + i * 16, .cfa = 0x1010 + i * 16 };
	for (uint32_t i = 0; i < PYSTACK_FRAMES_MAX; i++)
		both.python.entry[i] = UINT64_MAX;
	join_stacks(&both.python, &both.native, &(struct join_rules){ .python_minor = 13 }, &both.joined);
	cr_assert_eq(both.joined.count, JOINED_FRAMES_MAX);
	cr_assert_eq(both.joined.result, JOIN_PARTIAL);
}

Test(join, of_python_frames_read_later_is_whole_where_the_evaluator_call_stood_still)
{
	/* the same call of C: nothing has moved from the evaluator's frame on */
	JOINS_LATER(13, "xyEm", "cc", 'c', "xy01m", JOIN_WHOLE, false);
	JOINS_LATER(9, "xEmEm", "..", 'b', "x0m1m", JOIN_WHOLE, false);
	/* it has moved: the native frames may be those of another call */
	JOINS_LATER(13, "xyEm", "cc", 'd', "xy01m", JOIN_LATER, true);
	/* it ran Python itself: there are no native frames to be wrong about */
	JOINS_LATER(13, "Em", "aa", 'b', "01m", JOIN_WHOLE, true);
}

Test(join, leaves_out_python_frames_that_were_not_there_yet)
{
	/* a call that began after the native stack was taken, deeper than its end, or where another function's frame was */
	JOINS_LATER(13, "xEm", "<bb", 'c', "x12m", JOIN_LATER, true);
	JOINS_LATER(13, "xyEm", "acc", 'd', "xy12m", JOIN_LATER, true);
	JOINS_LATER(8, "xEm", "..", 'c', "x1m", JOIN_LATER, true);
	/* calls that have ended since: the frames of the outer ones are left */
	JOINS_LATER(13, "xEyEm", "d", 'd', "xEy0m", JOIN_WHOLE, false);
	JOINS_LATER(8, "xEyEm", ".", 'd', "xEy0m", JOIN_WHOLE, false);
}
