/* The device's part of a session: whether it is worth beginning, when it begins, what became of it and why. Records come through gpu_relay.h. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "session/capture.h"
#include "session/state.h"

#define MS 1000000ull
#define LOOK_NS (1000 * MS)
#define LEAVE_NS (12000 * MS)
#define AHEAD_NS (DEADLINE_AHEAD_MS * MS)
enum { BEGIN_TIMEOUT_MS = 1000, LEAVE_POLL_US = 5000, THREADS_ONE = 1, PYTHON_3_12 = 0x030c0000 };

static uint32_t lane_number(void *context)
{
	return drain_lane_number(((struct session *)context)->drain);
}

static uint32_t tid_outer(void *context, uint32_t inner_tid)
{
	return session_outer_tid(context, inner_tid);
}

static void chunk_keep(void *context, const struct chunk *chunk, uint64_t events)
{
	spool_add(((struct session *)context)->spool, chunk, events);
}

static const struct gpu_status *status_of(const struct session *session)
{
	return &session->pool.page->gpu_status;
}

static uint32_t state_of(const struct session *session)
{
	return __atomic_load_n(&status_of(session)->state, __ATOMIC_ACQUIRE);
}

/* A text of the page's, which the target may write over. */
static void text_of(const char *shared, char *out, size_t size)
{
	memcpy(out, shared, size);
	out[size - 1] = '\0';
}

void device_plan(struct session *session, struct page *settings)
{
	const struct gpu_relay_sink sink = { chunk_keep, lane_number, tid_outer, session };
	struct device_part *device = &session->device;

	if (!session->options->gpu || !gpu_look_read(session->procfs, session->facts->pid, &device->look))
		return;
	device->relay = gpu_relay_new(&sink);
	if (!device->relay)
		return;
	device->asked = device->look.driver && settings->may_start_thread;
	settings->gpu_ranges = device->look.ranges;
	settings->gpu = device->asked ? GPU_NOW : GPU_LATER;
	settings->gpu_records_max = session->options->gpu_max_kernels;
}

void device_chunk(struct session *session, const struct chunk *chunk, uint64_t events)
{
	struct gpu_relay *relay = session->device.relay;

	if (relay && chunk->lane_kind == LANE_META)
		gpu_relay_names(relay, chunk);
	if (chunk->lane_kind == LANE_MEMORY)
		heap_chunk(session, chunk, events);
	else if (chunk->lane_kind != LANE_GPU)
		spool_add(session->spool, chunk, events);
	else if (relay)
		gpu_relay_work(relay, chunk);
}

/* The driver may be loaded while we measure. The collector's own thread begins then, where there is one; else the process is entered. From Python 3.12 on os.fork() warns where there is a second thread: there ours waits for the program's own. */
static void begin_later(struct session *session, uint64_t now_ns)
{
	struct device_part *device = &session->device;
	struct proc_times times;
	struct error err = { 0 };

	if (device->asked || now_ns < device->look_ns)
		return;
	device->look_ns = now_ns + LOOK_NS;
	if (!device->look.driver && !gpu_look_read(session->procfs, session->facts->pid, &device->look))
		return;
	if (!device->look.driver || procfs_times(session->procfs, session->facts->pid, 0, &times) < 0 || (session->facts->python_hex >= PYTHON_3_12 && times.threads <= THREADS_ONE))
		return;
	if (__atomic_load_n(&session->pool.page->switch_tid, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&session->pool.page->gpu_begin, 1, __ATOMIC_RELEASE);
		device->asked = true;
		return;
	}
	session_push_deadline(session, 2 * AHEAD_NS);
	device->asked = handshake_try(&session->handshake, HANDOVER_GPU, BEGIN_TIMEOUT_MS, &err) == 0;
	snprintf(device->refused, sizeof device->refused, "%.255s", device->asked ? "" : err.text);
	session_hold(session, &session->handshake.receipt);
}

/* Who took over is known best right afterwards: by torch's own word, by a library that came meanwhile, or by the only profiler that is there. */
static void holder_note(struct session *session)
{
	struct device_part *device = &session->device;
	struct gpu_look look;
	const char *who = "a tool that gives no name";

	if (device->holder[0] || !__atomic_load_n(&status_of(session)->taken, __ATOMIC_ACQUIRE))
		return;
	if (naming_torch_profiles(session->observe.naming))
		who = "torch.profiler";
	else if (gpu_look_read(session->procfs, session->facts->pid, &look))
		who = look.tool[0] ? look.tool : look.torch ? "torch.profiler, by the look of it" : who;
	snprintf(device->holder, sizeof device->holder, "%s", who);
}

void device_step(struct session *session, uint64_t now_ns)
{
	struct device_part *device = &session->device;

	if (!device->relay)
		return;
	begin_later(session, now_ns);
	gpu_relay_run(device->relay, false);
	holder_note(session);
}

static bool is_at_work(uint32_t state)
{
	return state == GPU_STARTING || state == GPU_WAITING || state == GPU_ON || state == GPU_LEAVING;
}

void device_leave(struct session *session)
{
	uint64_t end_ns = clock_monotonic_ns() + LEAVE_NS;
	const struct timespec pause = { 0, LEAVE_POLL_US * 1000l };

	if (!session->device.relay || !session->drain)
		return;
	__atomic_store_n(&session->pool.page->gpu_stop, 1, __ATOMIC_RELEASE);
	while (is_at_work(state_of(session)) && clock_monotonic_ns() < end_ns && target_alive(session->target)) {
		session_push_deadline(session, AHEAD_NS);
		drain_round(session->drain, true);
		if (drain_totals(session->drain).used * 2 > session->pool.count)
			pool_grow(&session->pool, session->pool.count / 2);
		nanosleep(&pause, NULL);
	}
	gpu_relay_run(session->device.relay, false);
	holder_note(session);
}

/* CUPTI's own work as its records tell it, and ours on its thread. Numbers of the target's: two that cannot be are none. */
uint64_t device_cost_ns(const struct session *session)
{
	uint64_t theirs, ours, most = clock_monotonic_ns();

	if (!session->device.relay || !session->drain)
		return 0;
	theirs = __atomic_load_n(&status_of(session)->overhead_ns, __ATOMIC_RELAXED);
	ours = __atomic_load_n(&status_of(session)->work_ns, __ATOMIC_RELAXED);
	return theirs < most && ours < most ? theirs + ours : 0;
}

/* ---- what became of it ---- */

static void why_not(const struct session *session, const struct gpu_status *status, uint32_t state, char *out, size_t size)
{
	const struct gpu_relay_totals totals = gpu_relay_totals(session->device.relay);
	char text[PAGE_TEXT_BYTES], holder[GPU_HOLDER_BYTES];

	text_of(status->text, text, sizeof text);
	text_of(status->holder, holder, sizeof holder);
	if (state == GPU_BUSY)
		snprintf(out, size, "another tool holds CUPTI: %s%s%.300s", holder[0] ? holder : session->device.look.tool[0] ? session->device.look.tool : "it gives no name", text[0] ? "; " : "", text);
	else if (state == GPU_FAILED)
		snprintf(out, size, "%s", text);
	else if (!session->device.look.driver)
		snprintf(out, size, "no CUDA driver in the target");
	else if (!session->device.asked && session->device.refused[0])
		snprintf(out, size, "the CUDA driver came while it was measured, and the process could not be entered then: %.200s", session->device.refused);
	else if (!session->device.asked)
		snprintf(out, size, "the process has one thread, and from Python 3.12 on a second one of ours would make os.fork() warn");
	else if (state == GPU_OFF || state == GPU_STARTING || state == GPU_WAITING)
		snprintf(out, size, "the process did not use CUDA while it was measured");
	else if (!totals.kernels && status->kernels)
		snprintf(out, size, "CUPTI reported %llu kernels, none with times that could be used", (unsigned long long)status->kernels);
	else if (!totals.kernels && !totals.calls)
		snprintf(out, size, "the process made no CUDA call while it was measured");
	else if (!totals.kernels)
		snprintf(out, size, "the process made %llu CUDA calls while it was measured, and CUPTI reported no kernel of them", (unsigned long long)totals.calls);
	else
		*out = '\0';
}

static void counters_add(struct session *session, uint64_t ticks, const struct gpu_status *status)
{
	const struct gpu_clock *clock = gpu_relay_clock(session->device.relay);
	uint64_t margin_ns = session->options->sync_error_margin_us * 1000ull;
	const struct counter_row rows[] = {
		{ "gpu.records", status->records }, { "gpu.kernels", status->kernels }, { "gpu.copies", status->copies }, { "gpu.calls", status->calls }, { "gpu.dropped", status->dropped },
		{ "gpu.discarded", status->discarded }, { "gpu.invalid", status->invalid }, { "gpu.unfinished", status->unfinished }, { "gpu.unknown_kinds", status->unknown },
		{ "gpu.malformed", status->malformed }, { "gpu.calls_skipped", status->skipped }, { "gpu.buffer_bytes", status->buffer_bytes },
		{ "gpu.cupti_overhead_ns", status->overhead_ns }, { "gpu.work_ns", status->work_ns }, { "gpu.attach_ns", status->attach_ns }, { "gpu.detach_ns", status->detach_ns },
		{ "gpu.timeless", gpu_relay_totals(session->device.relay).timeless }, { "gpu.clock_brackets", clock->comparisons }, { "gpu.clock_outliers", clock->outliers },
		{ "gpu.clock_steps", clock->steps }, { "gpu.clock_bound_ns", gpu_clock_good(clock) ? clock->bound_ns : margin_ns },
	};

	session_counter_rows(session, ticks, rows, sizeof rows / sizeof *rows);
}

static void captures_add(struct session *session, uint64_t ticks, const struct gpu_status *status)
{
	static const char *const detach[] = { "none", "hard", "soft" };
	const struct gpu_clock *clock = gpu_relay_clock(session->device.relay);
	char library[GPU_PATH_BYTES];

	text_of(status->library, library, sizeof library);
	capture_add(&session->events, ticks, "gpu.cupti", "%u", status->version);
	capture_add(&session->events, ticks, "gpu.library", "%s", library);
	capture_add(&session->events, ticks, "gpu.driver", "%u.%u", status->driver / 1000, status->driver % 1000 / 10);
	capture_add(&session->events, ticks, "gpu.api", "%u", status->api);
	capture_add(&session->events, ticks, "gpu.detach", "%s", status->detach < 3 ? detach[status->detach] : "unknown");
	capture_add(&session->events, ticks, "gpu.ranges", "%s", session->device.look.ranges ? "NVTX, by CUPTI" : "none: NVTX tells its ranges to CUPTI only where NVTX_INJECTION64_PATH named libcupti when the program began");
	if (!gpu_clock_good(clock))
		capture_add(&session->events, ticks, "gpu.clock", "not synchronised: an error of %u us is assumed", session->options->sync_error_margin_us);
	else if (clock->foreign)
		capture_add(&session->events, ticks, "gpu.clock", "another tool's, fitted");
	else
		capture_add(&session->events, ticks, "gpu.clock", "CLOCK_REALTIME");
}

static void warnings_add(struct session *session, const struct gpu_status *status, uint32_t state)
{
	const struct gpu_clock *clock = gpu_relay_clock(session->device.relay);
	char text[PAGE_TEXT_BYTES];

	text_of(status->text, text, sizeof text);
	if (state == GPU_ENDED && text[0])
		session_warn(session, "the GPU part ended early: %.200s%s%.80s", text, session->device.holder[0] ? ": " : "", session->device.holder);
	if (is_at_work(state) && session->end != END_TARGET_EXITED && session->end != END_TARGET_EXECED)
		session_warn(session, "a call into CUPTI did not return in time; its thread is left behind and does nothing more");
	if (status->dropped || status->discarded)
		session_warn(session, "CUPTI lost %llu records and %llu buffers; the GPU's work is not complete", (unsigned long long)status->dropped, (unsigned long long)status->discarded);
	if (clock->steps)
		session_warn(session, "the clock of the GPU's records was set %llu times; times around that are uncertain", (unsigned long long)clock->steps);
	if (status->kernels && !gpu_clock_good(clock))
		session_warn(session, "the GPU's clock could not be compared with ours; its times may be wrong by %u us", session->options->sync_error_margin_us);
}

void device_rows(struct session *session, uint64_t ticks)
{
	struct gpu_status status;
	uint32_t state;
	char why[PAGE_TEXT_BYTES + 128];

	if (!session->options->gpu) {
		capture_add(&session->events, ticks, "gpu", "not asked for (--gpu none)");
		return;
	}
	if (!session->device.relay || !session->drain) {
		if (!gpu_look_read(session->procfs, session->facts->pid, &session->device.look))
			snprintf(why, sizeof why, "the process was gone before its devices could be asked for");
		else
			gpu_look_text(&session->device.look, why, sizeof why);
		capture_add(&session->events, ticks, "gpu", "%s", session->device.look.driver ? "the GPU is followed from within the process, and it was not entered" : why);
		return;
	}
	gpu_relay_run(session->device.relay, true);
	status = *status_of(session);
	state = state_of(session);
	why_not(session, &status, state, why, sizeof why);
	capture_add(&session->events, ticks, "gpu", "%s", why);
	if (!status.version)
		return;
	captures_add(session, ticks, &status);
	counters_add(session, ticks, &status);
	warnings_add(session, &status, state);
}

void device_done(struct session *session)
{
	gpu_relay_free(session->device.relay);
	session->device.relay = NULL;
}
