/*
 * Native frames of sampled stacks: which of them are worth telling, and what they say of the time around them. What the interpreter
 * and libc do to run a Python function is that function's own time; what remains is C functions and libraries. Rows, not branches.
 */
#include "timeline/private.h"

enum { REFINE_FRAMES = 24, MATCH_SAMPLES = 3 };
#define MATCH_SHARE 0.8

/* Files, by the beginning of their names, whose functions are the interpreter's own machinery. */
static const char *const runtime_modules[] = {
#define NATIVE_MODULE(begin) begin,
#include "abi/native.def"
};

/* Functions of the interpreter, by the beginning of their names, that mean more than that. */
static const struct { const char *name; enum native_role role; } runtime_functions[] = {
#define NATIVE_FUNCTION(begin, role) { begin, NATIVE_##role },
#include "abi/native.def"
};

/* What a thread does in a function, wherever that lies; BLOCKED: only when it does not run. */
static const struct { const char *name; enum thread_state state; bool blocked; } function_states[] = {
	{ "PyThread_acquire_lock", THREAD_LOCK_WAIT, true }, { "PyThread_acquire_lock_timed", THREAD_LOCK_WAIT, true },
	{ "_PyMutex_LockTimed", THREAD_LOCK_WAIT, true }, { "_PySemaphore_Wait", THREAD_LOCK_WAIT, true },
	{ "cudaStreamSynchronize", THREAD_GPU_WAIT, false }, { "cudaDeviceSynchronize", THREAD_GPU_WAIT, false }, { "cudaEventSynchronize", THREAD_GPU_WAIT, false },
	{ "cuStreamSynchronize", THREAD_GPU_WAIT, false }, { "cuCtxSynchronize", THREAD_GPU_WAIT, false }, { "cuEventSynchronize", THREAD_GPU_WAIT, false },
};

static bool begins_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

static enum native_role find_role(const struct timeline_private *p, const struct name *function)
{
	const char *module = path_base(strings_get(p->strings, function->module)), *name = strings_get(p->strings, function->name);
	bool runtime = begins_with(name, "py::"); /* perf's trampolines and CPython's JIT */

	for (size_t i = 0; i < sizeof runtime_modules / sizeof *runtime_modules; i++)
		runtime |= begins_with(module, runtime_modules[i]);
	if (!runtime)
		return NATIVE_FOREIGN;
	for (size_t i = 0; i < sizeof runtime_functions / sizeof *runtime_functions; i++)
		if (begins_with(name, runtime_functions[i].name))
			return runtime_functions[i].role;
	return NATIVE_RUNTIME;
}

enum native_role native_role(struct timeline_private *p, uint32_t function)
{
	struct name *name = &p->names.list.items[function];

	if (!name->role)
		name->role = (uint8_t)(1 + find_role(p, name));
	return (enum native_role)(name->role - 1);
}

/* Without symbols a function is called after its address. */
static bool has_name(const struct timeline_private *p, uint32_t function)
{
	return !strstr(strings_get(p->strings, p->names.list.items[function].name), "+0x");
}

/* Not a module of Python's: no C function is in it. */
static bool is_library(const struct timeline_private *p, uint32_t function)
{
	return begins_with(path_base(strings_get(p->strings, p->names.list.items[function].module)), "lib");
}

/* How many of the outermost functions are left out. An interpreter without symbols shows its way into a C function by the function of its API that begins it. */
static size_t skipped(struct timeline_private *p, const uint32_t *functions, size_t count, enum native_base base, bool running)
{
	bool dispatched = false, calls = false, guessed = false; /* guessed: that what was last calls the C function, and is not that itself */

	for (size_t i = 0; i < count; i++) {
		enum native_role role = native_role(p, functions[i]);

		if (dispatched && role == NATIVE_RUNTIME)
			return i;
		if (role == NATIVE_FOREIGN && guessed && is_library(p, functions[i]))
			return i - 1;
		if (role == NATIVE_FOREIGN)
			return base == BASE_C_CALL && !dispatched && !calls ? 0 : i;
		dispatched |= role == NATIVE_DISPATCH && (running || base == BASE_C_CALL) && base != BASE_THREAD;
		guessed = role == NATIVE_RUNTIME && calls && !has_name(p, functions[i]);
		dispatched |= guessed;
		calls = role == NATIVE_CALL && base == BASE_C_CALL;
	}
	return base == BASE_PYTHON ? count : 0;
}

size_t natives_of_stack(struct timeline_private *p, uint32_t stack, enum native_base base, bool running, uint32_t out[NATIVES_MAX])
{
	size_t count = 0, skip;

	for (; stack != NONE && p->stacks.items[stack].kind && count < NATIVES_MAX; stack = p->stacks.items[stack].parent)
		out[count++] = names_find_native(p, p->stacks.items[stack].process, p->stacks.items[stack].ref);
	for (size_t i = 0; i < count / 2; i++) {
		uint32_t swapped = out[i];

		out[i] = out[count - 1 - i];
		out[count - 1 - i] = swapped;
	}
	skip = skipped(p, out, count, stack == NONE ? BASE_THREAD : base, running);
	memmove(out, out + skip, (count - skip) * sizeof *out);
	return count - skip;
}

/* THREAD_UNKNOWN: the functions say nothing. */
static enum thread_state state_of_functions(struct timeline_private *p, uint32_t stack, bool running)
{
	for (size_t frames = 0; stack != NONE && p->stacks.items[stack].kind && frames < REFINE_FRAMES; stack = p->stacks.items[stack].parent, frames++) {
		uint32_t function = names_find_native(p, p->stacks.items[stack].process, p->stacks.items[stack].ref);
		const char *name = strings_get(p->strings, p->names.list.items[function].name);

		if (native_role(p, function) == NATIVE_WAITING)
			return THREAD_GIL_WAIT;
		for (size_t i = 0; i < sizeof function_states / sizeof *function_states; i++)
			if (strcmp(function_states[i].name, name) == 0 && !(running && function_states[i].blocked))
				return function_states[i].state;
	}
	return THREAD_UNKNOWN;
}

static enum thread_state state_of_stack(struct timeline_private *p, uint32_t stack, bool running)
{
	enum thread_state state = state_of_functions(p, stack, running);
	uint32_t functions[NATIVES_MAX];

	if (state != THREAD_UNKNOWN || !running)
		return state;
	return natives_of_stack(p, stack, BASE_PYTHON, true, functions) ? THREAD_NATIVE : THREAD_PYTHON;
}

enum thread_state natives_refine(struct timeline_private *p, enum thread_state state, uint32_t stack)
{
	struct stack_entry *entry = &p->stacks.items[stack];
	bool running = state == THREAD_PYTHON || state == THREAD_NATIVE;
	enum thread_state told;

	if (!entry->has_native)
		return state;
	if (!entry->state[running])
		entry->state[running] = (uint8_t)(1 + state_of_stack(p, stack, running));
	told = (enum thread_state)(entry->state[running] - 1);
	if (told != THREAD_UNKNOWN)
		return told;
	/* A thread that has no Python and waits belongs to some library's pool. */
	return state == THREAD_LOCK_WAIT && !entry->has_python ? THREAD_IDLE : state;
}

static bool is_native(const struct timeline_private *p, uint32_t node)
{
	uint32_t function = p->nodes.items[node].function;

	return function != NONE && p->names.list.items[function].kind == FUNCTION_NATIVE;
}

struct split { double running, all; uint64_t self_ns; double estimated_self, cpu_self, cpu_seen; };

static void give(struct timeline_private *p, struct node *to, struct node *from, const struct split *split)
{
	double weight = to->covered_running_ns + to->covered_blocked_ns, share = split->all > 0 ? weight / split->all : 0;
	double running = split->running > 0 ? to->covered_running_ns / split->running : share;
	uint64_t self_ns = (uint64_t)((double)split->self_ns * share);

	if (self_ns > from->self_ns)
		self_ns = from->self_ns;
	to->self_ns += self_ns;
	from->self_ns -= self_ns;
	to->estimated_self += split->estimated_self * share;
	from->estimated_self -= split->estimated_self * share;
	to->cpu_self += split->cpu_self * running;
	from->cpu_self -= split->cpu_self * running;
	to->cpu_seen += split->cpu_seen * running;
	from->cpu_seen -= split->cpu_seen * running;
	p->names.list.items[from->function].split = true;
}

void natives_split(struct timeline_private *p)
{
	size_t count = p->nodes.count;
	uint32_t *call = malloc(count * sizeof *call); /* of a native node: the call that it is a part of */
	struct split *splits = calloc(count, sizeof *splits);

	if (!call || !splits) {
		p->failed = true;
		goto out;
	}
	for (size_t i = 1; i < count; i++) {
		const struct node *node = &p->nodes.items[i];

		call[i] = is_native(p, (uint32_t)i) && node->parent ? call[node->parent] : (uint32_t)i;
		splits[call[i]].running += node->covered_running_ns;
		splits[call[i]].all += node->covered_running_ns + node->covered_blocked_ns;
	}
	for (size_t i = 1; i < count; i++) {
		const struct node *node = &p->nodes.items[i];

		splits[i].self_ns = node->self_ns;
		splits[i].estimated_self = node->estimated_self;
		splits[i].cpu_self = node->cpu_self;
		splits[i].cpu_seen = node->cpu_seen;
	}
	for (size_t i = 1; i < count; i++)
		if (call[i] != i && p->nodes.items[call[i]].function != NONE && p->nodes.items[i].covered_running_ns + p->nodes.items[i].covered_blocked_ns > 0)
			give(p, &p->nodes.items[i], &p->nodes.items[call[i]], &splits[call[i]]);
out:
	free(call);
	free(splits);
}

/* Samples in each native child of a C function, by (C function, native function). */
struct match { uint32_t c, native; uint64_t samples; };

static int compare_matches(const void *left, const void *right)
{
	const struct match *a = left, *b = right;

	if (a->c != b->c)
		return a->c < b->c ? -1 : 1;
	return a->native < b->native ? -1 : a->native > b->native;
}

/* The native function that nearly all samples in one C function have gone through. */
static void choose_match(struct timeline_private *p, const struct match *matches, size_t count)
{
	uint64_t all = 0, best = 0, sum = 0;
	uint32_t native = 0;

	for (size_t i = 0; i < count; i++) {
		sum = i && matches[i].native == matches[i - 1].native ? sum + matches[i].samples : matches[i].samples;
		all += matches[i].samples;
		if (sum > best) {
			best = sum;
			native = matches[i].native;
		}
	}
	if (native_role(p, native) != NATIVE_CALL && best >= MATCH_SAMPLES && (double)best >= MATCH_SHARE * (double)all)
		p->names.list.items[matches[0].c].native = native + 1;
}

/* What has no name and is said to be several C functions calls them all. */
static void withdraw_shared(struct timeline_private *p)
{
	size_t names = p->names.list.count;
	uint32_t *chosen = calloc(names + 1, sizeof *chosen);

	for (size_t i = 0; chosen && i < names; i++)
		chosen[p->names.list.items[i].native]++;
	for (size_t i = 0; chosen && i < names; i++) {
		struct name *name = &p->names.list.items[i];

		if (name->native && chosen[name->native] > 1 && !has_name(p, name->native - 1))
			name->native = 0;
	}
	p->failed |= !chosen;
	free(chosen);
}

void natives_match(struct timeline_private *p)
{
	uint64_t *below = calloc(p->nodes.count, sizeof *below);
	struct match *matches = malloc(p->nodes.count * sizeof *matches);
	size_t count = 0;

	if (!below || !matches) {
		p->failed = true;
		goto out;
	}
	for (size_t i = p->nodes.count; i-- > 1;) {
		const struct node *node = &p->nodes.items[i];
		uint32_t above = p->nodes.items[node->parent].function;

		below[i] += node->samples;
		if (!is_native(p, (uint32_t)i))
			continue;
		if (is_native(p, node->parent))
			below[node->parent] += below[i];
		else if (above != NONE && p->names.list.items[above].kind == FUNCTION_C)
			matches[count++] = (struct match){ above, node->function, below[i] };
	}
	if (count)
		qsort(matches, count, sizeof *matches, compare_matches);
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && matches[next].c == matches[i].c; next++)
			;
		choose_match(p, matches + i, next - i);
	}
	withdraw_shared(p);
out:
	free(below);
	free(matches);
}
