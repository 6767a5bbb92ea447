#include "report/nesting.h"

#include <stdlib.h>

#include "base/list.h"

enum { WAITING_LIMIT = 4096, LANES_LIMIT = 1 << 20, DEPTH_LIMIT = 1 << 24 };

/* The open calls of one lane of the trace, and the closed ones whose caller is still open and began with them. */
struct stack {
	LIST(uint64_t) starts; /* by depth */
	LIST(struct nested_call) waiting;
};

struct nesting {
	void (*put)(void *context, const struct nested_call *call);
	void *context;
	LIST(struct stack) lanes; /* by number */
};

struct nesting *nesting_new(void (*put)(void *context, const struct nested_call *call), void *context)
{
	struct nesting *nesting = calloc(1, sizeof *nesting);

	if (nesting) {
		nesting->put = put;
		nesting->context = context;
	}
	return nesting;
}

void nesting_free(struct nesting *nesting)
{
	if (!nesting)
		return;
	for (size_t i = 0; i < nesting->lanes.count; i++) {
		list_done(&nesting->lanes.items[i].starts);
		list_done(&nesting->lanes.items[i].waiting);
	}
	list_done(&nesting->lanes);
	free(nesting);
}

static struct stack *stack_of(struct nesting *nesting, uint32_t lane)
{
	while (lane >= nesting->lanes.count)
		if (!list_add(&nesting->lanes, LANES_LIMIT))
			return NULL;
	return &nesting->lanes.items[lane];
}

bool nesting_begin(struct nesting *nesting, const struct interval *call)
{
	struct stack *stack = stack_of(nesting, call->lane);

	while (stack && call->depth >= stack->starts.count)
		if (!list_add(&stack->starts, DEPTH_LIMIT))
			return false;
	if (stack)
		stack->starts.items[call->depth] = call->start_ns;
	return stack != NULL;
}

/* Callers before what they call; those that stand side by side as they came. */
static int by_depth(const void *a, const void *b)
{
	const struct nested_call *x = a, *y = b;

	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Those that waited for a call that began at START. */
static void put_waiting(struct nesting *nesting, struct stack *stack, uint64_t start_ns)
{
	struct nested_call *items = stack->waiting.items;
	size_t count = stack->waiting.count, from = count;

	while (from && items[from - 1].start_ns == start_ns)
		from--;
	if (count - from > 1)
		qsort(items + from, count - from, sizeof *items, by_depth);
	for (size_t i = from; i < count; i++)
		nesting->put(nesting->context, &items[i]);
	stack->waiting.count = from;
}

static bool began_with_caller(const struct stack *stack, const struct nested_call *call)
{
	return call->depth && call->depth <= stack->starts.count && stack->starts.items[call->depth - 1] == call->start_ns;
}

/* One of no length can be written at any time: it is in nobody's way. */
bool nesting_end(struct nesting *nesting, const struct interval *call)
{
	struct stack *stack = stack_of(nesting, call->lane);
	struct nested_call done = { .start_ns = call->start_ns, .end_ns = call->end_ns, .function = call->function, .thread = call->thread, .lane = call->lane, .depth = call->depth,
		.kind = call->kind, .open_start = call->open_start, .open_end = call->open_end, .exception = call->exception }, *slot;

	if (!stack)
		return false;
	if (!began_with_caller(stack, &done)) {
		nesting->put(nesting->context, &done);
		put_waiting(nesting, stack, call->start_ns);
		return true;
	}
	if (done.start_ns == done.end_ns && stack->waiting.count >= WAITING_LIMIT) {
		nesting->put(nesting->context, &done);
		return true;
	}
	slot = list_add(&stack->waiting, DEPTH_LIMIT);
	if (!slot)
		return false;
	done.order = (uint32_t)stack->waiting.count;
	*slot = done;
	return true;
}
