/*
 * What each thread did, so that the parts add up to the time it lived. Between two readings of its clocks the kernel tells how much
 * was CPU and how much waiting for a CPU; the rest was blocked, and samples or the call it was blocked in tell why. A thread that
 * nobody read is judged by its innermost calls.
 */
#include "timeline/private.h"

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { SLOTS_LIMIT = 64 }; /* filling thousands would be most of what a run does */
#else
enum { SLOTS_LIMIT = 4096 };
#endif
enum { SLOT_NS = 100000000, STRETCH_NS = 1000000000, FOREVER_NS = 2000000000 };

struct parts { double ns[THREAD_STATES]; };

struct partition {
	struct timeline_private *p;
	struct load_slot *slots;
	size_t slot_count;
	uint64_t slot_ns;
	struct parts *slot_parts;
};

/* What THREAD did in [from, to), to TOTAL and to the slots, so that both say the same: waiting for a device where its calls say, and beside that PARTS, evenly. */
static void add_parts(struct partition *partition, const struct thread_build *thread, struct parts *total, uint64_t from_ns, uint64_t to_ns, const struct parts *parts)
{
	uint64_t sync_ns = gpu_sync_within(partition->p, thread, from_ns, to_ns), beside_ns = to_ns - from_ns - sync_ns;

	for (int state = 0; state < THREAD_STATES; state++)
		total->ns[state] += parts->ns[state];
	total->ns[THREAD_GPU_WAIT] += (double)sync_ns;
	if (!partition->slot_count || to_ns <= from_ns)
		return;
	for (size_t i = from_ns / partition->slot_ns; i < partition->slot_count && partition->slots[i].start_ns < to_ns; i++) {
		const struct load_slot *slot = &partition->slots[i];
		uint64_t start = from_ns > slot->start_ns ? from_ns : slot->start_ns, end = to_ns < slot->end_ns ? to_ns : slot->end_ns, sync;

		if (end <= start)
			continue;
		sync = sync_ns ? gpu_sync_within(partition->p, thread, start, end) : 0;
		partition->slot_parts[i].ns[THREAD_GPU_WAIT] += (double)sync;
		for (int state = 0; state < THREAD_STATES && beside_ns; state++)
			partition->slot_parts[i].ns[state] += parts->ns[state] * ((double)(end - start - sync) / (double)beside_ns);
	}
}

static struct wait_frames point_frames(const struct timeline_private *p, const struct point *point)
{
	return point->node != NONE ? wait_frames_of_node(p, point->node) : wait_frames_of_stack(p, point->stack);
}

static enum thread_state point_wait(const struct timeline_private *p, const struct thread_build *thread, const struct point *point)
{
	struct wait_frames frames = point_frames(p, point);

	return wait_classify(p, strings_get(p->strings, point->out.wait), point->out.state, &frames, thread->out.python);
}

/* Time that samples of a thread that waits stand for; SYNC: calls told when it waited for a device. */
static double sampled_blocked(const struct point *point, int state, bool sync)
{
	if (state == THREAD_RUNNABLE || (state == THREAD_GPU_WAIT && sync))
		return 0;
	return (double)(point->sampled_ns[state] - (state == THREAD_GPU_WAIT ? point->spun_ns : 0));
}

static void split_blocked(const struct timeline_private *p, const struct thread_build *thread, size_t i, double blocked, bool sync, struct parts *parts)
{
	const struct point *point = &thread->points.items[i], *before = point - 1;
	enum thread_state first = point_wait(p, thread, before), last = point_wait(p, thread, point), io = THREAD_IO_WAIT;
	double seen = 0;

	for (int state = THREAD_GIL_WAIT; state < THREAD_STATES; state++)
		seen += sampled_blocked(point, state, sync);
	/* A sampler knows little of a system call; the readings beside it know its name: waiting in accept() is no I/O. */
	if (last == THREAD_IDLE || last == THREAD_SLEEP || (last == THREAD_UNKNOWN && (first == THREAD_IDLE || first == THREAD_SLEEP)))
		io = last == THREAD_UNKNOWN ? first : last;
	if (seen > 0) {
		for (int state = THREAD_GIL_WAIT; state < THREAD_STATES; state++)
			parts->ns[state == THREAD_IO_WAIT ? (int)io : state] += blocked * sampled_blocked(point, state, sync) / seen;
		return;
	}

	if (last == THREAD_UNKNOWN)
		last = first;
	if (first == THREAD_UNKNOWN)
		first = last;
	/* It wanted to run at both ends; a kernel without schedstat, or below another one (steal), does not say for how long it did not. */
	if (first == THREAD_UNKNOWN && point->out.state == 'R' && before->out.state == 'R')
		first = last = THREAD_RUNNABLE;
	parts->ns[first] += blocked / 2;
	parts->ns[last] += blocked / 2;
}

/* Neither ran nor woke between reading I-1 and reading I: one and the same block. */
static bool slept_through(const struct thread_build *thread, size_t i)
{
	const struct thread_point *point = &thread->points.items[i].out, *before = &thread->points.items[i - 1].out;

	return point->cpu_ns == before->cpu_ns && point->voluntary == before->voluntary && point->involuntary == before->involuntary && point->wait;
}

/* A read that nothing has answered for seconds, or for nearly all of a short capture, waits for somebody to want something: no I/O
 * that holds up work. */
static void mark_forever(struct thread_build *thread)
{
	struct point *points = thread->points.items;
	uint64_t most = (points[thread->points.count - 1].out.at_ns - points[0].out.at_ns) / 5 * 4, enough = most < FOREVER_NS ? most : FOREVER_NS;

	for (size_t i = 1, first; i < thread->points.count; i++) {
		for (first = i; i < thread->points.count && slept_through(thread, i); i++)
			;
		if (i == first || points[i - 1].out.at_ns - points[first - 1].out.at_ns < enough)
			continue;
		for (size_t j = first; j < i; j++)
			points[j].forever = true;
	}
}

static void charge_owner(struct timeline_private *p, const struct point *point, double ns)
{
	struct wait_frames frames = point_frames(p, point);
	struct name *owner = wait_owner(p, &frames);

	if (owner)
		owner->lock_wait += ns;
}

/* Who stood there and waited for a lock: by the reading, or readings, that saw it wait. */
static void charge_lock(struct timeline_private *p, const struct thread_build *thread, size_t i, double ns)
{
	const struct point *point = &thread->points.items[i], *before = point - 1;
	bool now = point_wait(p, thread, point) == THREAD_LOCK_WAIT, then = point_wait(p, thread, before) == THREAD_LOCK_WAIT;

	if (now)
		charge_owner(p, point, then ? ns / 2 : ns);
	if (then)
		charge_owner(p, before, now ? ns / 2 : ns);
}

static double native_share(const struct thread_build *thread, const struct point *point)
{
	uint64_t python = point->sampled_ns[THREAD_PYTHON], native = point->sampled_ns[THREAD_NATIVE];
	double running = thread->leaf_ns[THREAD_PYTHON] + thread->leaf_ns[THREAD_NATIVE];

	if (!thread->out.python)
		return 1;
	if (thread->native_known && !(native + python)) {
		python = thread->sampled_all_ns[THREAD_PYTHON];
		native = thread->sampled_all_ns[THREAD_NATIVE];
	}
	if (thread->cpu_c > 0 && !(thread->native_known && native + python)) /* calls of C functions say it better than a sampler that only knows who holds the GIL */
		return thread->cpu_c / (thread->cpu_c + thread->cpu_python);
	if (native + python)
		return (double)native / (double)(native + python);
	return running > 0 ? thread->leaf_ns[THREAD_NATIVE] / running : 0;
}

/* What part of its CPU time a driver spun away, as native samples say. */
static double spun_share(const struct thread_build *thread, const struct point *point)
{
	double spun = (double)point->spun_ns, ran = (double)(point->sampled_ns[THREAD_PYTHON] + point->sampled_ns[THREAD_NATIVE]);

	if (!thread->spun_all_ns || thread->syncs.count) /* of the latter its calls say when */
		return 0;
	if (spun + ran <= 0) {
		spun = (double)thread->spun_all_ns;
		ran = (double)(thread->sampled_all_ns[THREAD_PYTHON] + thread->sampled_all_ns[THREAD_NATIVE]);
	}
	return spun / (spun + ran);
}

/* Beside the SYNC_NS in which its calls say that it waited for a device: spinning is CPU time, sleeping is time without. */
static struct parts between_points(struct timeline_private *p, const struct thread_build *thread, size_t i, uint64_t sync_ns)
{
	const struct point *point = &thread->points.items[i], *before = point - 1;
	struct parts parts = { 0 };
	uint64_t wall_ns = point->out.at_ns - before->out.at_ns, cpu_ns = point->out.cpu_ns - before->out.cpu_ns;
	double wall = (double)(wall_ns - sync_ns), cpu, blocked, waited = (double)(point->out.run_wait_ns - before->out.run_wait_ns);
	double native = native_share(thread, point), spun = sync_ns ? 0 : spun_share(thread, point);

	cpu_ns = cpu_ns < wall_ns ? cpu_ns : wall_ns;
	cpu = (double)(cpu_ns - gpu_sync_cpu(thread, sync_ns, wall_ns, cpu_ns));
	waited = waited < wall - cpu ? waited : wall - cpu;
	blocked = wall - cpu - waited;
	parts.ns[THREAD_GPU_WAIT] = cpu * spun;
	cpu -= parts.ns[THREAD_GPU_WAIT];
	parts.ns[THREAD_NATIVE] = cpu * native;
	parts.ns[THREAD_PYTHON] = cpu - parts.ns[THREAD_NATIVE];
	parts.ns[THREAD_RUNNABLE] = waited;
	split_blocked(p, thread, i, blocked, sync_ns, &parts);
	if (point->forever) {
		parts.ns[THREAD_IDLE] += parts.ns[THREAD_IO_WAIT];
		parts.ns[THREAD_IO_WAIT] = 0;
	}
	if (parts.ns[THREAD_LOCK_WAIT] > 0)
		charge_lock(p, thread, i, parts.ns[THREAD_LOCK_WAIT]);
	return parts;
}

/* Before the first and after the last reading the thread goes on as beside them, in the time that is known to be like PARTS, LENGTH_NS, if that is not far. */
static void stretch(struct partition *partition, const struct thread_build *thread, struct parts *total, uint64_t from_ns, uint64_t to_ns, const struct parts *parts, uint64_t length_ns)
{
	struct parts longer = { 0 };
	double wanted;

	if (to_ns <= from_ns)
		return;
	wanted = (double)(to_ns - from_ns - gpu_sync_within(partition->p, thread, from_ns, to_ns));
	if (!length_ns || to_ns - from_ns > STRETCH_NS)
		longer.ns[THREAD_UNKNOWN] = wanted;
	else
		for (int state = 0; state < THREAD_STATES; state++)
			longer.ns[state] = parts->ns[state] * wanted / (double)length_ns;
	add_parts(partition, thread, total, from_ns, to_ns, &longer);
}

static struct parts by_readings(struct partition *partition, struct thread_build *thread)
{
	const struct point *points = thread->points.items;
	size_t count = thread->points.count;
	struct parts total = { 0 }, parts = { 0 };
	uint64_t beside_ns = 0;

	mark_forever(thread);
	for (size_t i = 1; i < count; i++) {
		uint64_t from_ns = points[i - 1].out.at_ns, to_ns = points[i].out.at_ns, sync_ns = gpu_sync_within(partition->p, thread, from_ns, to_ns);

		parts = between_points(partition->p, thread, i, sync_ns);
		beside_ns = to_ns - from_ns - sync_ns;
		if (i == 1)
			stretch(partition, thread, &total, thread->out.first_ns, from_ns, &parts, beside_ns);
		add_parts(partition, thread, &total, from_ns, to_ns, &parts);
	}
	stretch(partition, thread, &total, points[count - 1].out.at_ns, thread->out.last_ns, &parts, beside_ns);
	thread->out.cpu_ns = points[count - 1].out.cpu_ns - points[0].out.cpu_ns;
	thread->out.run_wait_ns = points[count - 1].out.run_wait_ns - points[0].out.run_wait_ns;
	thread->out.voluntary = points[count - 1].out.voluntary - points[0].out.voluntary;
	thread->out.involuntary = points[count - 1].out.involuntary - points[0].out.involuntary;
	return total;
}

/* Nobody read its clocks: samples if there are, else the innermost calls; what is left it was not in any call. One that shows nothing but scopes, marks and calls of a device's runtime may do anything. */
static struct parts by_calls(struct partition *partition, struct thread_build *thread)
{
	struct parts parts = { 0 }, total = { 0 };
	uint64_t sync_ns = gpu_sync_within(partition->p, thread, thread->out.first_ns, thread->out.last_ns);
	double wall = (double)(thread->out.wall_ns - sync_ns), known = 0, sampled = 0;

	for (int state = 0; state < THREAD_STATES; state++)
		sampled += state == THREAD_GPU_WAIT && sync_ns ? 0 : (double)thread->sampled_all_ns[state];
	for (int state = 0; state < THREAD_STATES; state++) {
		if (state == THREAD_GPU_WAIT && sync_ns)
			continue;
		parts.ns[state] = sampled > 0 ? (double)thread->sampled_all_ns[state] * wall / sampled : thread->leaf_ns[state];
		known += parts.ns[state];
	}
	thread->out.device_calls_alone = thread->has_lane && !thread->other_calls && sampled <= 0 && known + (double)sync_ns > 0;
	if (known > wall)
		for (int state = 0; state < THREAD_STATES; state++)
			parts.ns[state] *= wall / known;
	else
		parts.ns[thread->has_lane && thread->other_calls && known > 0 ? THREAD_IDLE : THREAD_UNKNOWN] += wall - known;
	add_parts(partition, thread, &total, thread->out.first_ns, thread->out.last_ns, &parts);
	return total;
}

/* Whether a thread was in any other call than those of a device's runtime, which profilers of devices tell alone. */
static void mark_other_calls(struct timeline_private *p)
{
	for (size_t i = 1; i < p->nodes.count; i++) {
		const struct node *node = &p->nodes.items[i];
		const struct name *function = node->function == NONE ? NULL : &p->names.list.items[node->function];

		if (function && node->thread < p->threads.count && (function->kind != FUNCTION_C || map_get(&p->call_classes, function->name) == MAP_ABSENT))
			p->threads.items[node->thread].other_calls = true;
	}
}

/* To whole ns that add up to WALL; the largest part takes what rounding leaves. */
static void round_parts(const struct parts *parts, uint64_t wall_ns, uint64_t rounded[THREAD_STATES])
{
	uint64_t sum = 0;
	int largest = 0;

	for (int state = 0; state < THREAD_STATES; state++) {
		rounded[state] = parts->ns[state] > 0 ? (uint64_t)parts->ns[state] : 0;
		sum += rounded[state];
		if (rounded[state] > rounded[largest])
			largest = state;
	}
	if (sum <= wall_ns)
		rounded[largest] += wall_ns - sum;
	else
		rounded[largest] -= rounded[largest] < sum - wall_ns ? rounded[largest] : sum - wall_ns;
}

static void partition_thread(struct partition *partition, struct thread_build *thread)
{
	uint64_t ns[THREAD_STATES];
	struct parts parts = thread->points.count >= 2 ? by_readings(partition, thread) : by_calls(partition, thread);

	round_parts(&parts, thread->out.wall_ns, ns);
	thread->out.unknown_ns = ns[THREAD_UNKNOWN];
	thread->out.python_ns = ns[THREAD_PYTHON];
	thread->out.native_ns = ns[THREAD_NATIVE];
	thread->out.gil_wait_ns = ns[THREAD_GIL_WAIT];
	thread->out.lock_wait_ns = ns[THREAD_LOCK_WAIT];
	thread->out.io_wait_ns = ns[THREAD_IO_WAIT];
	thread->out.gpu_wait_ns = ns[THREAD_GPU_WAIT];
	thread->out.sleep_ns = ns[THREAD_SLEEP];
	thread->out.runnable_ns = ns[THREAD_RUNNABLE];
	thread->out.idle_ns = ns[THREAD_IDLE];
	if ((thread->out.native_ns || thread->native_known) && thread->out.python)
		partition->p->timeline.native_split = true;
}

static bool make_slots(struct partition *partition)
{
	struct timeline_private *p = partition->p;
	uint64_t duration = p->timeline.duration_ns;

	partition->slot_ns = duration / SLOTS_LIMIT > SLOT_NS ? duration / SLOTS_LIMIT + 1 : SLOT_NS;
	partition->slot_count = (size_t)((duration + partition->slot_ns - 1) / partition->slot_ns);
	if (!partition->slot_count)
		return true;
	partition->slots = arena_alloc(&p->arena, partition->slot_count * sizeof *partition->slots);
	partition->slot_parts = calloc(partition->slot_count, sizeof *partition->slot_parts);
	if (!partition->slots || !partition->slot_parts)
		return false;
	for (size_t i = 0; i < partition->slot_count; i++) {
		partition->slots[i].start_ns = i * partition->slot_ns;
		partition->slots[i].end_ns = i + 1 < partition->slot_count ? (i + 1) * partition->slot_ns : duration;
	}
	return true;
}

void partition_build(struct timeline_private *p)
{
	struct partition partition = { .p = p };

	if (!make_slots(&partition)) {
		p->failed = true;
		free(partition.slot_parts);
		return;
	}
	mark_other_calls(p);
	for (size_t i = 0; i < p->threads.count; i++)
		partition_thread(&partition, &p->threads.items[i]);
	for (size_t i = 0; i < partition.slot_count; i++)
		for (int state = 0; state < THREAD_STATES; state++)
			partition.slots[i].state_ns[state] = (uint64_t)(partition.slot_parts[i].ns[state] + 0.5);
	p->timeline.slots = partition.slots;
	p->timeline.slot_count = p->threads.count ? partition.slot_count : 0;
	free(partition.slot_parts);
}
