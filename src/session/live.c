/* Turns of a live look. */
#include "session/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "session/reader.h"
#include "trace/writer.h"

#define PATIENCE_NS 10000000000ull
enum { THREADS_MAX = 65536 };

struct counted_thread { pid_t tid; uint64_t cpu_ns; }; /* CPU time at the last turn */

struct live {
	struct target *target;
	struct live_options options;
	const struct procfs *procfs;
	struct sampler *sampler;
	struct tally *tally;
	struct nvml *nvml;
	char gpu_why[128];
	LIST(struct live_thread) threads;
	LIST(struct counted_thread) counted, counting;
	uint64_t counted_ticks;                   /* when those were counted, as starts of threads are told */
	struct live_turn turn;
	uint64_t begun_ns;                        /* of the turn */
	uint64_t cpu_ns, cost_ns, stolen_ns;      /* as counted at its begin */
	uint64_t looks, samples, answered_ns;        /* looks that came to something */
	bool paused;
};

static int sampler_begin(struct live *live, struct error *err)
{
	const struct target_facts *facts = target_facts(live->target);
	uint64_t size = 0;
	remote_addr runtime = reader_runtime(live->target, &size, err);
	const struct sampler_settings settings = {
		.target = live->target, .procfs = live->procfs, .runtime = block_runtime_at(runtime, size, facts->python_hex),
		.clock = clock_map_monotonic(), .rate_hz = live->options.rate_hz, .native = live->options.native ? NATIVE_BOTH : NATIVE_NONE,
	};

	if (!runtime)
		return -1;
	live->looks = live->samples = live->cost_ns = live->stolen_ns = 0;
	live->answered_ns = clock_monotonic_ns();
	return sampler_open(&settings, &live->sampler, err);
}

/* ---- clocks ---- */

/* CPU time of the thread since the last turn; one that began since is told all it has, but none that was only missed then. */
static uint64_t cpu_since(struct live *live, size_t *at, pid_t tid, uint64_t cpu_ns)
{
	struct counted_thread *now = list_add(&live->counting, THREADS_MAX);
	struct proc_times times;

	if (now)
		*now = (struct counted_thread){ tid, cpu_ns };
	while (*at < live->counted.count && live->counted.items[*at].tid < tid)
		++*at;
	if (*at < live->counted.count && live->counted.items[*at].tid == tid)
		return cpu_ns > live->counted.items[*at].cpu_ns ? cpu_ns - live->counted.items[*at].cpu_ns : 0;
	return procfs_times(live->procfs, target_facts(live->target)->pid, tid, &times) == 0 && times.start_ticks >= live->counted_ticks ? cpu_ns : 0;
}

static void thread_read(struct live *live, pid_t tid, size_t *at)
{
	pid_t pid = target_facts(live->target)->pid;
	struct live_thread *thread;
	struct proc_status status;
	uint64_t run_ns = 0, wait_ns;

	if (procfs_status(live->procfs, pid, tid, &status) < 0 || !(thread = list_add(&live->threads, THREADS_MAX)))
		return;
	if (procfs_schedstat(live->procfs, pid, tid, &run_ns, &wait_ns) < 0) {
		struct proc_times times;

		if (procfs_times(live->procfs, pid, tid, &times) == 0)
			run_ns = times.user_ns + times.system_ns;
	}
	thread->tid = tid;
	thread->letter = status.state;
	snprintf(thread->name, sizeof thread->name, "%.31s", status.name);
	thread->cpu_ns = cpu_since(live, at, tid, run_ns);
	thread->samples = tally_thread_find(live->tally, tid);
}

static void threads_read(struct live *live)
{
	pid_t *tids = NULL;
	size_t at = 0;
	uint64_t begin_ticks = procfs_now_ticks();
	ssize_t count = procfs_threads_all(live->procfs, target_facts(live->target)->pid, THREADS_MAX, &tids);

	live->threads.count = live->counting.count = 0;
	for (ssize_t i = 0; i < count; i++)
		thread_read(live, tids[i], &at);
	free(tids);
	/* What was counted now is what the next turn compares with. */
	list_done(&live->counted);
	live->counted = live->counting;
	live->counted_ticks = begin_ticks;
	live->counting.items = NULL;
	live->counting.count = live->counting.capacity = 0;
}

/* ---- begin and end ---- */

int live_open(struct target *target, const struct live_options *options, struct live **out, struct error *err)
{
	struct live *live = calloc(1, sizeof *live);
	struct proc_times times;

	if (!live)
		return fail(err, ERR_MEMORY, "looking at process %d", (int)target_facts(target)->pid);
	live->target = target;
	live->options = *options;
	live->procfs = &procfs_real;
	if (!live->options.patience_ns)
		live->options.patience_ns = PATIENCE_NS;
	if (tally_new(&live->tally, err) < 0 || sampler_begin(live, err) < 0) {
		live_close(live);
		return -1;
	}
	live->nvml = nvml_open(NULL, live->gpu_why, sizeof live->gpu_why);
	live->begun_ns = clock_monotonic_ns();
	if (procfs_times(live->procfs, target_facts(target)->pid, 0, &times) == 0)
		live->cpu_ns = times.user_ns + times.system_ns;
	threads_read(live);
	*out = live;
	return 0;
}

void live_close(struct live *live)
{
	if (!live)
		return;
	sampler_close(live->sampler);
	tally_free(live->tally);
	nvml_close(live->nvml);
	list_done(&live->threads);
	list_done(&live->counted);
	list_done(&live->counting);
	free(live);
}

/* ---- turns ---- */

static void samples_take(struct live *live)
{
	struct event_builder events;

	event_builder_init(&events);
	sampler_take(live->sampler, &events);
	tally_turn(live->tally);
	tally_add(live->tally, events.bytes, events.size);
	event_builder_done(&events);
}

static void sampler_count(struct live *live, uint64_t now_ns)
{
	struct sampler_totals totals = sampler_totals(live->sampler);
	uint64_t stolen_ns = sampler_stolen_ns(live->sampler);
	struct live_turn *turn = &live->turn;

	if (totals.looks - totals.failed != live->looks || live->paused)
		live->answered_ns = now_ns;
	turn->samples = totals.digest.samples - live->samples;
	turn->cost_ns = totals.cost_ns > live->cost_ns ? totals.cost_ns - live->cost_ns : 0;
	turn->stolen_ns = stolen_ns - live->stolen_ns;
	turn->rate_hz = totals.ways.perf ? (double)totals.perf_rate_hz : totals.every_ns ? 1e9 / (double)totals.every_ns : 0;
	turn->ways = totals.ways;
	live->looks = totals.looks - totals.failed;
	live->samples = totals.digest.samples;
	live->cost_ns = totals.cost_ns;
	live->stolen_ns = stolen_ns;
}

static void process_count(struct live *live, const struct proc_times *times)
{
	struct live_turn *turn = &live->turn;
	uint64_t cpu_ns = times->user_ns + times->system_ns;

	turn->cpu_ns = cpu_ns > live->cpu_ns ? cpu_ns - live->cpu_ns : 0;
	turn->rss_bytes = times->rss_bytes;
	live->cpu_ns = cpu_ns;
}

static void gil_count(struct live *live)
{
	const struct tally_thread *threads;
	struct live_turn *turn = &live->turn;
	size_t count;

	turn->gil_ns = turn->gil_wait_ns = 0;
	threads = tally_threads(live->tally, &count);
	for (size_t i = 0; i < count; i++) {
		turn->gil_ns += threads[i].gil_ns;
		turn->gil_wait_ns += threads[i].gil_wait_ns;
	}
}

int live_turn(struct live *live, const struct live_turn **out, struct error *err)
{
	const struct target_facts *facts = target_facts(live->target);
	uint64_t now_ns = clock_monotonic_ns();
	struct live_turn *turn = &live->turn;
	struct proc_times times;

	if (!target_alive(live->target))
		return target_gone(live->target, err);
	if (procfs_times(live->procfs, facts->pid, 0, &times) < 0)
		return errno == ENOENT || errno == ESRCH ? fail(err, ERR_EXITED, "process %d has ended", (int)facts->pid)
		                                         : fail(err, error_of(errno, ERR_PERMISSION), "the clocks of process %d cannot be read (%s)", (int)facts->pid, strerror(errno));
	samples_take(live);
	sampler_count(live, now_ns);
	if (now_ns - live->answered_ns > live->options.patience_ns)
		return fail(err, ERR_TIMEOUT, "process %d could not be read for %.0f s: its interpreter is gone, or its memory is out of reach", (int)facts->pid, (double)(now_ns - live->answered_ns) / 1e9);
	turn->length_ns = now_ns - live->begun_ns;
	turn->elapsed_ns += turn->length_ns;
	live->begun_ns = now_ns;
	process_count(live, &times);
	threads_read(live);
	gil_count(live);
	turn->threads = live->threads.items;
	turn->thread_count = live->threads.count;
	turn->tally = live->tally;
	turn->gpu_count = live->nvml ? nvml_read(live->nvml, live->procfs, facts->pid, turn->gpus) : 0;
	turn->gpu_why = live->gpu_why;
	*out = turn;
	return 0;
}

void live_pause(struct live *live, bool paused)
{
	if (paused == live->paused)
		return;
	live->paused = paused;
	sampler_pause(live->sampler, paused);
	if (paused)
		return;
	/* The turn begins anew. */
	live->begun_ns = live->answered_ns = clock_monotonic_ns();
}

int live_native(struct live *live, bool native, struct error *err)
{
	if (native == live->options.native)
		return 0;
	samples_take(live);
	sampler_close(live->sampler);
	live->sampler = NULL;
	tally_forget_ids(live->tally);
	live->options.native = native;
	live->begun_ns = clock_monotonic_ns();
	if (sampler_begin(live, err) < 0)
		return -1;
	sampler_pause(live->sampler, live->paused);
	return 0;
}
