/*
 * What the process had to do and what it did then. In each slot of the timeline the threads with something to do (running, or
 * waiting for a CPU, the GIL, a lock, I/O, a device) share the slot's time in proportion; if together they have less than the slot
 * is long, the rest of it is idle. So that one busy thread among a hundred sleeping ones is a fully busy process.
 */
#include "analyze/private.h"
#include "timeline/operations.h"

static bool is_demand(int state)
{
	return state != THREAD_UNKNOWN && state != THREAD_SLEEP && state != THREAD_IDLE;
}

static void add_slot(struct load *load, const struct load_slot *slot)
{
	double length = (double)(slot->end_ns - slot->start_ns), wanted = 0, resting = 0, used;

	for (int state = 0; state < THREAD_STATES; state++) {
		load->state_ns[state] += (double)slot->state_ns[state];
		*(is_demand(state) ? &wanted : &resting) += (double)slot->state_ns[state];
	}
	used = wanted < length ? wanted : length;
	load->wanted_ns += wanted;
	load->demand_ns += used;
	for (int state = 0; state < THREAD_STATES; state++) {
		if (is_demand(state))
			load->share_ns[state] += wanted > 0 ? (double)slot->state_ns[state] * used / wanted : 0;
		else if (state == THREAD_SLEEP)
			load->share_ns[state] += resting > 0 ? (double)slot->state_ns[state] * (length - used) / resting : 0;
	}
	load->share_ns[THREAD_IDLE] += (length - used) * (resting > 0 ? 1 - (double)slot->state_ns[THREAD_SLEEP] / resting : 1);
}

static void add_thread(struct load *load, const struct timeline *timeline, uint32_t index)
{
	const struct thread *thread = &timeline->threads[index];
	double cpu = (double)(thread->python_ns + thread->native_ns);

	if (thread->ours)
		return;
	load->threads++;
	load->cpu_ns += cpu;
	load->voluntary += thread->voluntary;
	load->involuntary += thread->involuntary;
	load->active += cpu > 0.01 * (double)timeline->duration_ns;
	load->python += thread->python;
	load->unhooked += thread->unhooked != NULL;
	load->read |= thread->point_count >= 2;
	if (cpu > load->busiest_ns) {
		load->busiest_ns = cpu;
		load->busiest = index;
	}
}

/* The thread that is longest in calls of a device's runtime shows nothing else: it may do anything between them, and nobody knows whether there was something to do. */
static bool driver_is_unknown(const struct timeline *timeline)
{
	uint32_t driver;

	operations_busiest(timeline_operations(timeline), NULL, &driver);
	for (size_t i = 0; i < timeline->thread_count; i++)
		if (timeline->threads[i].device_calls_alone && timeline->threads[i].tid == driver)
			return true;
	return false;
}

void load_build(struct analysis_private *p)
{
	const struct timeline *timeline = p->timeline;

	p->load.busiest = UINT32_MAX;
	for (size_t i = 0; i < timeline->slot_count; i++)
		add_slot(&p->load, &timeline->slots[i]);
	for (size_t i = 0; i < timeline->thread_count; i++)
		add_thread(&p->load, timeline, (uint32_t)i);
	for (int state = 0; state < THREAD_STATES; state++)
		p->load.seen |= state != THREAD_UNKNOWN && p->load.state_ns[state] > 0;
	if (driver_is_unknown(timeline))
		p->load.seen = false;
	if (!p->load.seen)
		p->load.demand_ns = (double)timeline->duration_ns;
	if (timeline->duration_ns)
		p->load.wanted_cores = (p->load.state_ns[THREAD_PYTHON] + p->load.state_ns[THREAD_NATIVE] + p->load.state_ns[THREAD_RUNNABLE]) / (double)timeline->duration_ns;
	for (size_t i = 0; i < timeline->device_count; i++)
		if (!p->device || timeline->devices[i].busy_ns > p->device->busy_ns)
			p->device = &timeline->devices[i];
}
