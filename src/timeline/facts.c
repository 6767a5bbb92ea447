/*
 * The first pass: everything but the calls themselves — processes, threads, windows, and for each lane when it has events and where it lost some;
 * names go to names.c, readings and samples to readings.c. Times stay absolute until segments.c knows where the measurement begins.
 */
#include "timeline/private.h"
#include "timeline/ticks.h"

uint32_t facts_string(struct timeline_private *p, const struct event_cursor *c, unsigned field)
{
	size_t length;
	const char *bytes = event_str(c, field, &length);
	uint32_t id = strings_add(p->strings, bytes, length);

	if (id != NONE)
		return id;
	p->failed = true;
	return 0;
}

static uint32_t process_of(struct timeline_private *p, uint32_t number)
{
	uint32_t index = map_get(&p->process_index, number);
	struct process_build *process;

	if (index != MAP_ABSENT)
		return index;
	process = list_add(&p->processes, PROCESSES_LIMIT);
	if (!process || !map_put(&p->process_index, number, (uint32_t)p->processes.count - 1))
		return NONE;
	process->number = number;
	return (uint32_t)p->processes.count - 1;
}

/* Tids are the attacher's, so that they tell threads of different processes apart. */
struct thread_build *facts_thread(struct timeline_private *p, uint32_t process, uint32_t tid)
{
	uint32_t index = map_get(&p->thread_index, tid);
	struct thread_build *thread;

	if (index != MAP_ABSENT)
		return &p->threads.items[index];
	thread = list_add(&p->threads, THREADS_LIMIT);
	if (!thread)
		return NULL;
	if (!map_put(&p->thread_index, tid, (uint32_t)p->threads.count - 1))
		p->failed = true;
	thread->out.tid = tid;
	thread->process = process;
	thread->first_event = thread->first_reading = NO_TIME;
	thread->last_stack = thread->root = thread->other = NONE;
	return thread;
}

static uint64_t lane_key(const struct timeline_private *p, const struct chunk *chunk)
{
	return (uint64_t)map_get(&p->process_index, chunk->process) << 32 | chunk->lane;
}

struct lane *facts_lane(const struct timeline_private *p, const struct chunk *chunk)
{
	uint32_t index = map_get(&p->lane_index, lane_key(p, chunk));

	return index == MAP_ABSENT ? NULL : &p->lanes.items[index];
}

static struct lane *lane_of(struct timeline_private *p, const struct chunk *chunk)
{
	struct lane *lane = facts_lane(p, chunk);
	uint32_t process = process_of(p, chunk->process);

	if (lane || process == NONE)
		return lane;
	lane = list_add(&p->lanes, LANES_LIMIT);
	if (!lane)
		return NULL;
	if (!map_put(&p->lane_index, lane_key(p, chunk), (uint32_t)p->lanes.count - 1))
		p->failed = true;
	lane->number = chunk->lane;
	lane->process = process;
	lane->kind = chunk->lane_kind;
	lane->first_ns = NO_TIME;
	lane->thread = NONE;
	lane->emptied_ns = NO_TIME;
	if (chunk->lane_kind == LANE_THREAD) {
		struct thread_build *thread = facts_thread(p, process, chunk->tid);

		lane->thread = thread ? (uint32_t)(thread - p->threads.items) : NONE;
	}
	return lane;
}

static void add_window(struct timeline_private *p, struct process_build *process, bool on, uint32_t reason, uint64_t at_ns)
{
	struct window_build *window = process->windows.count ? &process->windows.items[process->windows.count - 1] : NULL;

	if (on == process->window_open) /* said twice, or off before the first on */
		return;
	if (window && at_ns < (on ? window->end_ns : window->start_ns))
		at_ns = on ? window->end_ns : window->start_ns;
	if (on) {
		window = list_add(&process->windows, WINDOWS_LIMIT);
		if (!window)
			return;
		window->start_ns = at_ns;
		window->end_ns = NO_TIME;
		if (at_ns < p->first_window)
			p->first_window = at_ns;
	} else {
		window->end_ns = at_ns;
		window->reason = reason;
		if (reason == WINDOW_ARM && at_ns > p->last_disarm)
			p->last_disarm = at_ns;
	}
	if (at_ns > p->last_window)
		p->last_window = at_ns;
	process->window_open = on;
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
	struct throttle_build *throttle = list_add(&p->throttles, WINDOWS_LIMIT);

	if (!throttle)
		return;
	throttle->function = function;
	throttle->out = (struct throttle_change){ at_ns, event_u32(c, 0), NONE, (double)event_u32(c, 1) / 1000 };
	if (function != NONE && function != NAME_UNKNOWN)
		note_throttled(&p->names.list.items[function], event_u32(c, 0), at_ns);
}

static void add_counter(struct timeline_private *p, const struct event_cursor *c, uint64_t at_ns)
{
	uint32_t name = facts_string(p, c, 0), index = map_get(&p->counter_index, name);
	int64_t value = event_i64(c, 1);
	struct counter_build *counter;

	if (index == MAP_ABSENT) {
		counter = list_add(&p->counters, FUNCTIONS_LIMIT);
		if (!counter)
			return;
		if (!map_put(&p->counter_index, name, (uint32_t)p->counters.count - 1))
			p->failed = true;
		counter->name = name;
		counter->out.first = counter->out.max = value;
	} else {
		counter = &p->counters.items[index];
	}
	counter->out.last = value;
	if (value > counter->out.max)
		counter->out.max = value;
	counter->out.count++;
	counter_point_add(&counter->points, at_ns, value);
	if (strcmp(strings_get(p->strings, name), "process_cpu_ns") == 0)
		turns_reading(p, at_ns, value);
}

static void add_capture(struct timeline_private *p, const struct event_cursor *c)
{
	uint32_t key = facts_string(p, c, 0), index = map_get(&p->capture_index, key);
	struct capture_build *capture;

	if (index == MAP_ABSENT) {
		capture = list_add(&p->captures, FUNCTIONS_LIMIT);
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
	thread = facts_thread(p, lane->process, c->event.ref);
	if (!thread)
		return;
	name = facts_string(p, c, 1);
	if (name)
		thread->name = name;
	if (event_u64(c, 0))
		thread->start_ns = ticks_to_ns(ticks, event_u64(c, 0));
}

static void take_fact(struct timeline_private *p, struct lane *lane, const struct event_cursor *c, const struct ticks *ticks)
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
	case EVENT_COUNT:
		function = names_find(p, lane->process, c->event.ref);
		if (function != NAME_UNKNOWN)
			p->names.list.items[function].counted += event_u64(c, 0);
		break;
	case EVENT_THROTTLE:
		add_throttle(p, lane->process, c, at_ns);
		break;
	case EVENT_UNHOOKED:
		thread = facts_thread(p, lane->process, c->event.ref);
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
		thread = facts_thread(p, lane->process, c->event.ref);
		if (thread)
			gil_told(p, thread, event_u32(c, 0), at_ns);
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
		operations_add(p, c);
		gpu_add(p, c, at_ns);
		break;
	case EVENT_CPU_SYSCALL:
		syscalls_add(p, lane, c, at_ns);
		operations_add(p, c);
		break;
	case EVENT_GPU_SYNC:
	case EVENT_GPU_OVERHEAD:
	case EVENT_GC:
		operations_add(p, c);
		break;
	case EVENT_MEMORY_ALLOC:
		operations_add(p, c);
		/* fall through */
	case EVENT_MEMORY_FRAME:
	case EVENT_MEMORY_FREE:
		memory_add(p, (uint32_t)(lane - p->lanes.items), c, at_ns);
		break;
	default:
		break;
	}
}

static void note_lane_event(struct timeline_private *p, struct lane *lane, uint64_t at_ns)
{
	struct thread_build *thread = lane->thread == NONE ? NULL : &p->threads.items[lane->thread];

	if (at_ns < lane->first_ns)
		lane->first_ns = at_ns;
	if (at_ns > lane->last_ns)
		lane->last_ns = at_ns;
	if (at_ns < p->first_event)
		p->first_event = at_ns;
	if (at_ns > p->last_event)
		p->last_event = at_ns;
	if (!thread)
		return;
	if (at_ns < thread->first_event)
		thread->first_event = at_ns;
	if (at_ns > thread->last_event)
		thread->last_event = at_ns;
}

static void add_gap(struct lane *lane, uint64_t start_ns, uint64_t end_ns)
{
	pieces_add(&lane->gaps, start_ns, end_ns, WINDOWS_LIMIT);
}

/* Losses before a chunk: told by its sequence number and by the total it carries. */
static void note_loss(struct lane *lane, const struct chunk *chunk, uint64_t first_ns)
{
	bool gap = lane->sequence && chunk->sequence > lane->sequence + 1;

	if (chunk->lost_before > lane->lost) {
		lane->lost = chunk->lost_before;
		gap = true;
	}
	if (gap)
		add_gap(lane, lane->last_ns ? lane->last_ns : 0, first_ns);
	if (chunk->sequence > lane->sequence)
		lane->sequence = chunk->sequence;
}

/* Calls are the bulk: of them only the count and the times at both ends are taken here. */
static void scan_calls(struct timeline_private *p, struct lane *lane, const struct chunk *chunk, const struct ticks *ticks)
{
	struct event_cursor c = event_cursor(chunk->events, chunk->size);
	struct process_build *process = &p->processes.items[lane->process];
	uint64_t events = 0, last_ticks = 0, lost_ticks = 0, last_call = 0;
	bool first = true;

	while (event_next(&c)) {
		if (first) {
			uint64_t first_ns = ticks_to_ns(ticks, c.event.ticks);

			if (lane->first_ns == NO_TIME)
				lane->seeded = chunk->depth > 0 || c.event.kind == EVENT_STACK_BEGIN || c.event.kind == EVENT_SEED;
			note_loss(lane, chunk, first_ns);
			note_lane_event(p, lane, first_ns);
			first = false;
			lost_ticks = c.event.ticks;
		}
		if (c.event.kind == EVENT_LOST) {
			lane->lost += event_u64(&c, 0);
			add_gap(lane, ticks_to_ns(ticks, lost_ticks), ticks_to_ns(ticks, c.event.ticks));
		} else if (c.event.kind > EVENT_SEED) {
			take_fact(p, lane, &c, ticks);
		}
		if (c.event.kind <= EVENT_C_LEAVE)
			last_call = c.event.ticks;
		events++;
		last_ticks = lost_ticks = c.event.ticks;
	}
	if (c.damaged)
		p->timeline.quality.damaged_chunks++;
	if (!events)
		return;
	note_lane_event(p, lane, ticks_to_ns(ticks, last_ticks));
	if (last_call)
		lane->last_call_ns = ticks_to_ns(ticks, last_call);
	lane->events += events;
	process->has_calls = true;
	if (lane->thread != NONE) {
		p->threads.items[lane->thread].has_lane = true;
		p->threads.items[lane->thread].seeded |= lane->seeded;
	}
}

static void scan_facts(struct timeline_private *p, struct lane *lane, const struct chunk *chunk, const struct ticks *ticks)
{
	struct event_cursor c = event_cursor(chunk->events, chunk->size);

	while (event_next(&c)) {
		if (lane->kind == LANE_GPU)
			note_lane_event(p, lane, ticks_to_ns(ticks, c.event.ticks));
		if (c.event.flags & EVENT_FLAG_CUT)
			p->timeline.quality.cut_strings++;
		if (c.event.kind == EVENT_LOST)
			lane->lost += event_u64(&c, 0);
		take_fact(p, lane, &c, ticks);
		lane->events++;
	}
	if (chunk->lost_before > lane->lost)
		lane->lost = chunk->lost_before;
	if (c.damaged)
		p->timeline.quality.damaged_chunks++;
}

int facts_read(struct timeline_private *p, struct trace *trace, struct error *err)
{
	struct chunk chunk;
	int status;

	p->first_window = p->first_reading = p->first_event = NO_TIME;
	while ((status = trace_next(trace, &chunk, err)) > 0) {
		struct ticks ticks = ticks_of(&chunk.clock);
		struct lane *lane = lane_of(p, &chunk);

		if (!lane) {
			p->timeline.quality.damaged_chunks++; /* more processes or lanes than any machine has */
			continue;
		}
		if (lane->kind == LANE_THREAD)
			scan_calls(p, lane, &chunk, &ticks);
		else
			scan_facts(p, lane, &chunk, &ticks);
		if (p->failed)
			return fail(err, ERR_MEMORY, "reading the trace: out of memory");
	}
	return status;
}
