/* Clocks and samples of threads and processes, as the first pass meets them. */
#include "timeline/private.h"

enum {
	SAMPLE_AGE_NS = 250000000, /* an older sampled stack says nothing about a reading */
	SAMPLE_WEIGHT_NS = 10000000,
	SAMPLE_WEIGHT_MAX_NS = 1000000000,
};

static void note_reading(struct timeline_private *p, uint64_t at_ns)
{
	if (at_ns < p->first_reading)
		p->first_reading = at_ns;
	if (at_ns > p->last_reading)
		p->last_reading = at_ns;
}

static uint64_t not_below(uint64_t value, uint64_t least)
{
	return value > least ? value : least;
}

/* Of all threads that had the number. Switches are counted up as long as a thread lives: fewer of them are those of another one. */
static struct thread_point clocks_of(struct thread_build *thread, const struct thread_point *last, const struct event_cursor *c)
{
	const struct thread_point *ended = &thread->ended;

	if (ended->voluntary + event_u64(c, 2) < last->voluntary || ended->involuntary + event_u64(c, 3) < last->involuntary)
		thread->ended = *last;
	return (struct thread_point){ .cpu_ns = not_below(ended->cpu_ns + event_u64(c, 0), last->cpu_ns), .run_wait_ns = not_below(ended->run_wait_ns + event_u64(c, 1), last->run_wait_ns),
		.voluntary = not_below(ended->voluntary + event_u64(c, 2), last->voluntary), .involuntary = not_below(ended->involuntary + event_u64(c, 3), last->involuntary) };
}

void readings_thread(struct timeline_private *p, uint32_t process, const struct event_cursor *c, uint64_t at_ns)
{
	struct thread_build *thread = lanes_thread(p, process, c->event.ref);
	struct point *point;
	struct thread_point last = { 0 };

	note_reading(p, at_ns);
	if (!thread)
		return;
	point = thread->points.count ? &thread->points.items[thread->points.count - 1] : NULL;
	if (point && at_ns <= point->out.at_ns)
		return; /* time went backwards, or said twice */
	if (point)
		last = point->out;
	/* Beyond the limit a thread's last reading moves on: less is told of what it did, and as much of how long it lived. */
	if (p->point_count < POINTS_LIMIT || thread->points.count < 2) {
		point = list_add_or_fail(&thread->points, POINTS_LIMIT, &p->failed);
		p->point_count++;
	}
	if (!point)
		return;
	point->out = clocks_of(thread, &last, c);
	point->out.at_ns = at_ns;
	point->out.state = event_u32(c, 4);
	point->out.wait = facts_string(p, c, 5);
	point->node = NONE;
	point->stack = thread->last_stack != NONE && at_ns - thread->last_stack_ns <= SAMPLE_AGE_NS ? thread->last_stack : NONE;
	for (int state = 0; state < THREAD_STATES; state++)
		point->sampled_ns[state] += thread->sampled_ns[state];
	point->spun_ns += thread->spun_ns;
	memset(thread->sampled_ns, 0, sizeof thread->sampled_ns);
	thread->spun_ns = 0;
	if (thread->first_reading == NO_TIME)
		thread->first_reading = at_ns;
	thread->last_reading = at_ns;
}

void readings_process(struct timeline_private *p, struct process_build *process, const struct event_cursor *c, uint64_t at_ns)
{
	uint64_t user = event_u64(c, 0), system = event_u64(c, 1), rss = event_u64(c, 2), minor = event_u64(c, 3), major = event_u64(c, 4);

	note_reading(p, at_ns);
	if (!process->has_times) {
		process->has_times = true;
		process->times_first = at_ns;
		process->user_first = user;
		process->system_first = system;
		process->minor_first = minor;
		process->major_first = major;
		process->out.rss_first_bytes = rss;
	}
	process->times_last = at_ns > process->times_last ? at_ns : process->times_last;
	process->out.timed = process->times_last > process->times_first;
	process->out.user_ns = user > process->user_first ? user - process->user_first : 0;
	process->out.system_ns = system > process->system_first ? system - process->system_first : 0;
	process->out.minor_faults = minor > process->minor_first ? minor - process->minor_first : 0;
	process->out.major_faults = major > process->major_first ? major - process->major_first : 0;
	process->out.rss_last_bytes = rss;
	counter_point_add(p, &process->rss, at_ns, rss > INT64_MAX ? INT64_MAX : (int64_t)rss);
	if (rss > process->out.rss_max_bytes)
		process->out.rss_max_bytes = rss;
	if (event_u32(c, 5) > process->out.threads_max)
		process->out.threads_max = event_u32(c, 5);
	if (!process->named)
		process->out.pid = c->event.ref;
}

void readings_stack(struct timeline_private *p, uint32_t process, const struct event_cursor *c)
{
	uint64_t key = (uint64_t)process << 32 | c->event.ref;
	uint32_t parent = event_u32(c, 0);
	struct stack_entry *entry;

	if (!c->event.ref || map_get(&p->stack_index, key) != MAP_ABSENT)
		return;
	/* A parent must have come before: so there can be no circle, whatever the file says. */
	parent = parent ? map_get(&p->stack_index, (uint64_t)process << 32 | parent) : MAP_ABSENT;
	entry = keep_event(p, &p->stacks, STACKS_LIMIT);
	if (!entry)
		return;
	*entry = (struct stack_entry){ .parent = parent, .process = process, .ref = event_u32(c, 1), .kind = event_u32(c, 2) == 1 };
	entry->has_python = !entry->kind || (parent != MAP_ABSENT && p->stacks.items[parent].has_python);
	entry->has_native = entry->kind || (parent != MAP_ABSENT && p->stacks.items[parent].has_native);
	if (!map_put(&p->stack_index, key, (uint32_t)p->stacks.count - 1))
		p->failed = true;
}

static bool is_running(uint32_t state)
{
	return state == THREAD_PYTHON || state == THREAD_NATIVE || state == THREAD_RUNNABLE || state == THREAD_UNKNOWN;
}

void readings_sample(struct timeline_private *p, uint32_t process, const struct event_cursor *c, uint64_t at_ns)
{
	struct thread_build *thread = lanes_thread(p, process, event_u32(c, 0));
	uint32_t state = event_u32(c, 1), stack = map_get(&p->stack_index, (uint64_t)process << 32 | c->event.ref);
	uint64_t weight_ns = event_u64(c, 2);
	bool ran = state == THREAD_PYTHON || state == THREAD_NATIVE;
	struct sample *sample;

	note_reading(p, at_ns);
	p->timeline.quality.samples++;
	if (!thread)
		return;
	if (state >= THREAD_STATES)
		state = THREAD_UNKNOWN;
	/* A sampler that does not say for how long its sample stands takes them evenly. */
	weight_ns = !weight_ns ? SAMPLE_WEIGHT_NS : weight_ns < SAMPLE_WEIGHT_MAX_NS ? weight_ns : SAMPLE_WEIGHT_MAX_NS;
	if (stack != MAP_ABSENT) {
		struct wait_frames frames = wait_frames_of_stack(p, stack);

		state = wait_refine(p, natives_refine(p, (enum thread_state)state, stack), &frames);
		thread->last_stack = stack;
		thread->last_stack_ns = at_ns;
		thread->python_sampled |= p->stacks.items[stack].has_python;
		thread->native_known |= p->stacks.items[stack].has_native;
	}
	if (state == THREAD_GIL_WAIT)
		gil_sample(p, thread, at_ns, weight_ns);
	tasks_sample(p, thread, at_ns, (enum thread_state)state, weight_ns);
	thread->sampled_ns[state] += weight_ns;
	thread->sampled_all_ns[state] += weight_ns;
	if (ran && state == THREAD_GPU_WAIT) {
		thread->spun_ns += weight_ns;
		thread->spun_all_ns += weight_ns;
	}
	thread->samples++;
	sample = keep_event(p, &p->samples, SAMPLES_LIMIT);
	if (sample)
		*sample = (struct sample){ at_ns, (uint32_t)(thread - p->threads.items), stack, (uint32_t)weight_ns, NONE, is_running(state), c->event.flags & EVENT_FLAG_LATER, (uint8_t)state,
			thread->gil_told_ns == at_ns ? thread->gil_holder : 0 };
}
