/* Which functions `top` shows, and in which order. */
#include "cli/top.h"

#include <stdlib.h>
#include <string.h>

uint64_t top_self_ns(const struct top_view *view, const struct tally_time *time)
{
	return time->self_run_ns + (view->waits ? time->self_wait_ns : 0);
}

uint64_t top_total_ns(const struct top_view *view, const struct tally_time *time)
{
	return time->total_run_ns + (view->waits ? time->total_wait_ns : 0);
}

bool top_knows_gpu(const struct top_view *view, const struct live_turn *turn)
{
	return view->native && tally_knows_gpu(turn->tally);
}

static uint64_t key_of(const struct top_view *view, const struct tally_function *function)
{
	switch (view->sort) {
	case TOP_TOTAL:
		return top_total_ns(view, &function->now);
	case TOP_GIL:
		return function->now.gil_ns;
	case TOP_LAUNCH:
		return function->now.launch_ns;
	case TOP_WAIT:
		return function->now.gpu_wait_ns;
	case TOP_TIME:
		return top_self_ns(view, &function->all);
	default:
		return top_self_ns(view, &function->now);
	}
}

/* Ties go by what was before this turn, then by name, so that rows do not jump about. */
static int row_compare(const void *a, const void *b, void *context)
{
	const struct top_view *view = context;
	const struct tally_function *x = *(const struct tally_function *const *)a, *y = *(const struct tally_function *const *)b;
	uint64_t keys[][2] = {
		{ key_of(view, x), key_of(view, y) }, { top_self_ns(view, &x->now), top_self_ns(view, &y->now) }, { top_self_ns(view, &x->all), top_self_ns(view, &y->all) },
		{ top_total_ns(view, &x->all), top_total_ns(view, &y->all) },
	};

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] < keys[i][1] ? 1 : -1;
	return strcmp(x->name, y->name) ? strcmp(x->name, y->name) : strcmp(x->file, y->file);
}

const struct tally_function **top_functions(const struct top_view *view, const struct live_turn *turn, size_t *count)
{
	const struct tally_function **rows, *functions;
	size_t all, kept = 0;

	functions = tally_functions(turn->tally, &all);
	*count = 0;
	rows = all ? malloc(all * sizeof *rows) : NULL;
	if (!rows)
		return NULL;
	for (size_t i = 0; i < all; i++)
		if (top_total_ns(view, &functions[i].all) && (!*view->filter || strcasestr(functions[i].name, view->filter) || strcasestr(functions[i].file, view->filter)))
			rows[kept++] = &functions[i];
	qsort_r(rows, kept, sizeof *rows, row_compare, (void *)(uintptr_t)view);
	*count = kept;
	return rows;
}
