/*
 * The first pass, event by event: what it tells but for the calls themselves — windows, budget, counters, processes and threads. Names go to names.c,
 * readings and samples to readings.c, devices to gpu.c. Times stay absolute until segments.c knows where the measurement begins.
 */
#include "timeline/private.h"
#include "timeline/ticks.h"

uint32_t facts_string(struct timeline_private *p, const struct event_cursor *c, unsigned field)
{
	size_t length;
	const char *bytes = event_str(c, field, &length);

	return names_string(p, bytes, length);
}

static void add_window(struct timeline_private *p, struct process_build *process, bool on, uint32_t reason, uint64_t at_ns)
{
	struct window_build *window = process->windows.count ? &process->windows.items[process->windows.count - 1] : NULL;

	if (on == process->window_open) /* said twice, or off before the first on */
		return;
	if (window && at_ns < (on ? window->end_ns : window->start_ns))
		at_ns = on ? window->end_ns : window->start_ns;
	if (on) {
		window = list_add_or_fail(&process->windows, WINDOWS_LIMIT, &p->failed);
		if (!window)
			return;
		window->start_ns = at_ns;
		window->end_ns = NO_TIME;
		if (at_ns < p->first_window)
			p->first_window = at_ns;
	} else {
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a window that is open is the last in the list */
		window->end_ns = at_ns;
		window->reason = reason;
		if (reason == WINDOW_ARM && at_ns > p->last_disarm)
			p->last_disarm = at_ns;
	}
	if (at_ns > p->last_window)
		p->last_window = at_ns;
	process->window_open = on;
}

static void add_plan(struct timeline_private *p, struct process_build *process, uint64_t from_ns, uint64_t duration_ns)
{
	struct window_build *window = process->windows.count ? &process->windows.items[process->windows.count - 1] : NULL;

	if (!process->window_open || !duration_ns || duration_ns > NO_TIME - from_ns)
		return;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a window that is open is the last in the list */
	window->stands_from_ns = from_ns;
	window->stands_to_ns = from_ns + duration_ns;
	p->planned = true;
}

static void note_throttled(struct name *name, uint32_t what, uint64_t at_ns)
{
	if ((what == THROTTLE_COUNTED || what == THROTTLE_LEFT_OUT) && !name->counted_from_ns)
		name->counted_from_ns = at_ns;
	name->left_out |= what == THROTTLE_LEFT_OUT;
}

static void add_throttle(struct timeline_private *p, uint32_t process, const struct event_cursor *c, uint64_t at_ns)
{
	uint32_t function = c->event.ref ? names_find(p, process, c->event.ref) : NONE;
	struct throttle_build *throttle = list_add_or_fail(&p->throttles, WINDOWS_LIMIT, &p->failed);

	if (!throttle)
		return;
	throttle->function = function;
	throttle->out = (struct throttle_change){ at_ns, event_u32(c, 0), NONE, (double)event_u32(c, 1) / 1000 };
	if (function != NONE && function != NAME_UNKNOWN)
		note_throttled(&p->names.list.items[function], event_u32(c, 0), at_ns);
}

const char *facts_capture(const struct timeline_private *p, const char *key)
{
	for (size_t i = 0; i < p->captures.count; i++)
		if (strcmp(strings_get(p->strings, p->captures.items[i].key), key) == 0)
			return strings_get(p->strings, p->captures.items[i].value);
	return NULL;
}

int64_t facts_counter(const struct timeline_private *p, const char *name)
{
	for (size_t i = 0; i < p->counters.count; i++)
		if (strcmp(strings_get(p->strings, p->counters.items[i].name), name) == 0)
			return p->counters.items[i].out.last;
	return 0;
}

static void add_counter(struct timeline_private *p, const struct event_cursor *c, uint64_t at_ns)
{
	uint32_t name = facts_string(p, c, 0), index = map_get(&p->counter_index, name);
	int64_t value = event_i64(c, 1);
	struct counter_build *counter;

	if (index == MAP_ABSENT) {
		counter = list_add_or_fail(&p->counters, FUNCTIONS_LIMIT, &p->failed);
		if (!counter)
			return;
		if (!map_put(&p->counter_index, name, (uint32_t)p->counters.count - 1))
			p->failed = true;
		counter->name = name;
		counter->out.first = counter->out.max = value;
		counter->out.first_ns = at_ns;
	} else {
		counter = &p->counters.items[index];
	}
	counter->out.last = value;
	counter->out.last_ns = at_ns;
	if (value > counter->out.max)
		counter->out.max = value;
	counter->out.count++;
	counter_point_add(p, &counter->points, at_ns, value);
	if (strcmp(strings_get(p->strings, name), "process_cpu_ns") == 0)
		turns_reading(p, at_ns, value);
}

static void add_capture(struct timeline_private *p, const struct event_cursor *c)
{
	uint32_t key = facts_string(p, c, 0), index = map_get(&p->capture_index, key);
	struct capture_build *capture;

	if (index == MAP_ABSENT) {
		capture = list_add_or_fail(&p->captures, FUNCTIONS_LIMIT, &p->failed);
		if (!capture)
			return;
		if (!map_put(&p->capture_index, key, (uint32_t)p->captures.count - 1))
			p->failed = true;
		capture->key = key;
	} else {
		capture = &p->captures.items[index];
	}
	capture->value = facts_string(p, c, 1); /* the last word counts */
}

static void add_process(struct timeline_private *p, struct process_build *process, const struct event_cursor *c)
{
	process->named = true;
	process->out.pid = c->event.ref;
	process->out.parent = event_u32(c, 0);
	process->out.start_unix_ns = event_u64(c, 1);
	process->command = facts_string(p, c, 2);
	process->executable = facts_string(p, c, 3);
	process->python = facts_string(p, c, 4);
}

/* Only the attacher's word makes a thread: the collector may speak of tids of another pid namespace. */
static void add_thread(struct timeline_private *p, const struct lane *lane, const struct event_cursor *c, const struct ticks *ticks)
{
	uint32_t index = map_get(&p->thread_index, c->event.ref), name;
	struct thread_build *thread;

	if (index == MAP_ABSENT && lane->kind != LANE_SESSION)
		return;
	thread = lanes_thread(p, lane->process, c->event.ref);
	if (!thread)
		return;
	name = facts_string(p, c, 1);
	if (name)
		thread->name = name;
	if (event_u64(c, 0))
		thread->start_ns = ticks_to_ns(ticks, event_u64(c, 0));
}

void facts_take(struct timeline_private *p, struct lane *lane, const struct event_cursor *c, const struct ticks *ticks)
{
	struct process_build *process = &p->processes.items[lane->process];
	struct thread_build *thread;
	uint64_t at_ns = ticks_to_ns(ticks, c->event.ticks);
	uint32_t function;

	switch (c->event.kind) {
	case EVENT_CODE:
		names_code(p, lane->process, c);
		break;
	case EVENT_C_FUNCTION:
		names_c_function(p, lane->process, c);
		break;
	case EVENT_NATIVE:
		names_native(p, lane->process, c);
		break;
	case EVENT_MODULE:
		if (!map_put(&p->names.modules, (uint64_t)lane->process << 32 | c->event.ref, facts_string(p, c, 3)))
			p->failed = true;
		break;
	case EVENT_WINDOW_ON:
	case EVENT_WINDOW_OFF:
		add_window(p, process, c->event.kind == EVENT_WINDOW_ON, event_u32(c, 0), at_ns);
		break;
	case EVENT_WINDOW_PLAN:
		add_plan(p, process, at_ns, event_u64(c, 0));
		break;
	case EVENT_COUNT:
		function = names_find(p, lane->process, c->event.ref);
		if (function != NAME_UNKNOWN)
			p->names.list.items[function].counted += event_u64(c, 0);
		break;
	case EVENT_THROTTLE:
		add_throttle(p, lane->process, c, at_ns);
		break;
	case EVENT_UNHOOKED:
		thread = lanes_thread(p, lane->process, c->event.ref);
		if (thread) {
			thread->unhooked = facts_string(p, c, 0);
			thread->unhooked_ns = at_ns;
		}
		break;
	case EVENT_PROCESS:
		add_process(p, process, c);
		break;
	case EVENT_THREAD:
		add_thread(p, lane, c, ticks);
		break;
	case EVENT_STACK:
		readings_stack(p, lane->process, c);
		break;
	case EVENT_CAPTURE:
		add_capture(p, c);
		break;
	case EVENT_THREAD_TIME:
		readings_thread(p, lane->process, c, at_ns);
		break;
	case EVENT_PROCESS_TIME:
		readings_process(p, process, c, at_ns);
		break;
	case EVENT_SAMPLE:
		readings_sample(p, lane->process, c, at_ns);
		break;
	case EVENT_COUNTER:
		add_counter(p, c, at_ns);
		break;
	case EVENT_THREAD_COUNTER:
		counters_thread(p, lane->process, c);
		break;
	case EVENT_SAMPLE_COUNTER:
		counters_sample(p, lane->process, c);
		break;
	case EVENT_WALL_CLOCK:
		wall_add(p, c, at_ns);
		break;
	case EVENT_GIL:
		thread = lanes_thread(p, lane->process, c->event.ref);
		if (thread)
			gil_told(p, thread, event_u32(c, 0), at_ns);
		break;
	case EVENT_TASK:
		tasks_name(p, lane->process, c);
		break;
	case EVENT_TASK_RUN:
		tasks_run(p, lane->process, c, at_ns);
		break;
	case EVENT_TASK_WAIT:
		tasks_wait(p, lane->process, c);
		break;
	case EVENT_SCOPE_ENTER:
		scopes_begin(p, (uint32_t)(lane - p->lanes.items), c, at_ns);
		break;
	case EVENT_SCOPE_EXIT:
		scopes_end(p, (uint32_t)(lane - p->lanes.items), c, at_ns);
		break;
	case EVENT_GPU_KERNEL:
	case EVENT_H2D_COPY:
	case EVENT_D2H_COPY:
	case EVENT_D2D_COPY:
	case EVENT_GPU_MEMSET:
	case EVENT_GPU_API:
		lane->of_devices = true;
		operations_add(p, c);
		gpu_add(p, lane->process, c, at_ns);
		break;
	case EVENT_GPU_DEVICE:
		gpu_about(p, c);
		break;
	case EVENT_CPU_SYSCALL:
		syscalls_add(p, lane, c, at_ns);
		operations_add(p, c);
		break;
	case EVENT_GPU_SYNC:
		lane->of_devices = true;
		/* fall through */
	case EVENT_GPU_OVERHEAD:
	case EVENT_GC:
		operations_add(p, c);
		break;
	case EVENT_MEMORY_ALLOC:
		operations_add(p, c);
		/* fall through */
	case EVENT_MEMORY_FRAME:
	case EVENT_MEMORY_FREE:
	case EVENT_MEMORY_SAMPLING:
		memory_add(p, (uint32_t)(lane - p->lanes.items), c, at_ns);
		break;
	default:
		break;
	}
}
