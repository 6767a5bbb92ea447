/*
 * We as a client of CUPTI: the calls it makes to us, its clock beside ours, what is switched on in which order, and how all of it is taken back:
 * whole, or but for what another tool needs that has taken over. The order of calls and what it avoids is in docs/GPU.md.
 */
#include "collector/collector.h"

#include <string.h>
#include <unistd.h>

#include "collector/libc.h"

#define MS 1000000ull
#define SECOND 1000000000ull
enum { BRACKETS = 100, INSIDE_MS = 200, QUIET_MS = 50 };

static uint64_t realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* ---- calls that CUPTI makes to us ---- */

/* Within the end of a call of our own no thread of the program can be between two halves of one: the place where CUPTI may be taken down. */
static void finalize_here(void)
{
	if (the.gpu.cupti.family->number == 1)
		the.gpu.cupti.Unsubscribe(the.gpu.cupti.subscriber);
	the.gpu.finalized = the.gpu.cupti.Finalize();
}

static void call_seen(int domain, uint32_t cbid, const struct cupti_callback *call)
{
	uint64_t now = 0;

	if (the.gpu.cupti.family->timestamp(&the.gpu.cupti, &now) != CUPTI_OK || !call->data)
		return;
	if (call->site == CUPTI_SITE_ENTER)
		*call->data = now;
	else if (*call->data && !gpu_record_call(domain, cbid, *call->data, now, call->correlation))
		__atomic_fetch_add(&the.gpu.skipped, 1, __ATOMIC_RELAXED);
}

static void callback(void *user, int domain, uint32_t cbid, const void *data)
{
	const struct cupti_callback *call = data;

	(void)user;
	if (the.child)
		return;
	__atomic_fetch_add(&the.gpu.callbacks, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&the.gpu.inside, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&the.gpu.finalizing, __ATOMIC_SEQ_CST)) {
		if (pthread_self() == the.gpu.self && call->site == CUPTI_SITE_EXIT && the.gpu.finalized < 0) {
			the.gpu.finalized = 0;
			finalize_here();
		}
	} else if (__atomic_load_n(&the.gpu.listening, __ATOMIC_SEQ_CST)) {
		call_seen(domain, cbid, call);
	}
	__atomic_fetch_sub(&the.gpu.inside, 1, __ATOMIC_SEQ_CST);
}

/* ---- the clock ---- */

/* The narrowest of a hundred: CUPTI's clock before and after ours. */
bool gpu_client_clock(void)
{
	struct cupti *cupti = &the.gpu.cupti;
	uint64_t best = UINT64_MAX, before = 0, after = 0, best_before = 0, best_ticks = 0, best_real = 0;

	for (int i = 0; i < BRACKETS; i++) {
		uint64_t ticks;

		if (cupti->family->timestamp(cupti, &before) != CUPTI_OK)
			return false;
		ticks = ticks_now();
		if (cupti->family->timestamp(cupti, &after) != CUPTI_OK)
			return false;
		if (after < before || after - before >= best)
			continue;
		best = after - before;
		best_before = before;
		best_ticks = ticks;
		best_real = realtime_ns();
	}
	if (best == UINT64_MAX || !gpu_begin())
		return false;
	gpu_record_bracket(best_ticks, best_before, best_real, best_before + best);
	__atomic_store_n(&the.gpu.not_after, best_before + 4 * SECOND, __ATOMIC_RELAXED);
	if (!the.gpu.not_before)
		the.gpu.not_before = best_before > SECOND ? best_before - SECOND : 1;
	gpu_end();
	return true;
}

/* ---- beginning ---- */

/* COMMON: what torch.profiler has on by default as well. */
static const struct { int kind; bool dump, memory, graphs, ranges, common; } kinds[] = {
	/* The calls before the work, so that all work has its call. Never CUPTI_KIND_SERIAL_KERNEL, which makes kernels wait for each other. */
	{ CUPTI_KIND_DEVICE, .dump = true }, { CUPTI_KIND_CONTEXT, .dump = true }, { CUPTI_KIND_STREAM, .dump = true },
	{ CUPTI_KIND_API, .common = true }, { CUPTI_KIND_OVERHEAD, .common = true }, { CUPTI_KIND_SYNC, .common = true },
	{ CUPTI_KIND_MEMORY2, .memory = true }, { CUPTI_KIND_MARKER, .ranges = true },
	{ CUPTI_KIND_MEMCPY2, .common = false }, { CUPTI_KIND_MEMSET, .common = true }, { CUPTI_KIND_MEMCPY, .common = true },
	{ CUPTI_KIND_GRAPH_TRACE, .graphs = true },
	{ CUPTI_KIND_KERNEL, .common = true },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Calls that ask and do nothing; programs make them by the million. Numbers are the same from 11.8 to 13.5. */
static const uint32_t idle_calls[] = { 10 /* cudaGetLastError */, 11 /* cudaPeekAtLastError */, 17 /* cudaGetDevice */, 317, 318 /* cudaStreamIsCapturing */ };
/* What launches without the runtime: cuLaunchKernel, cuLaunchKernelEx, cuGraphLaunch, each also for per-thread streams. */
static const uint32_t driver_launches[] = { 307, 442, 652, 653, 514, 515 };

static bool kind_wanted(size_t i)
{
	return (!kinds[i].memory || the.settings.gpu_memory) && (!kinds[i].ranges || the.settings.gpu_ranges) && (!kinds[i].graphs || the.settings.gpu_graphs == GPU_GRAPHS_GRAPH);
}

static int begin_subscribe(void)
{
	return the.gpu.cupti.family->subscribe(&the.gpu.cupti, callback);
}

static int begin_thread_ids(void)
{
	return the.gpu.cupti.family->thread_ids_begin(&the.gpu.cupti);
}

static int begin_zeroed(void)
{
	the.gpu.cupti.family->attribute(&the.gpu.cupti, CUPTI_ATTRIBUTE_ZEROED_BUFFER, 1); /* only saves work */
	return CUPTI_OK;
}

static int begin_buffers(void)
{
	the.gpu.cupti.request = gpu_buffer_request;
	the.gpu.cupti.complete = gpu_buffer_complete;
	the.gpu.cupti.request2 = gpu_buffer_request2;
	the.gpu.cupti.complete2 = gpu_buffer_complete2;
	return the.gpu.cupti.family->buffers(&the.gpu.cupti);
}

static int begin_clock(void)
{
	uint64_t now;
	int result = the.gpu.cupti.family->timestamp(&the.gpu.cupti, &now);

	if (result == CUPTI_OK)
		gpu_client_clock();
	return result;
}

static int begin_kinds(void)
{
	const struct cupti_family *family = the.gpu.cupti.family;

	for (; the.gpu.kinds_on < KINDS; the.gpu.kinds_on++) {
		size_t i = the.gpu.kinds_on;
		int result = CUPTI_OK;

		if (kind_wanted(i))
			result = kinds[i].dump ? family->dump(&the.gpu.cupti, kinds[i].kind) : family->enable(&the.gpu.cupti, kinds[i].kind);
		if (result != CUPTI_OK)
			return result;
	}
	return CUPTI_OK;
}

/* Where single calls cannot be chosen, launches of the driver are seen by callbacks. */
static int begin_calls(void)
{
	struct cupti *cupti = &the.gpu.cupti;

	for (size_t i = 0; i < sizeof idle_calls / sizeof *idle_calls; i++)
		cupti->family->runtime_call(cupti, idle_calls[i], false);
	for (size_t i = 0; i < sizeof driver_launches / sizeof *driver_launches; i++)
		if (cupti->family->driver_call(cupti, driver_launches[i], true) == CUPTI_MISSING)
			cupti->EnableCallback(1, cupti->subscriber, CUPTI_DOMAIN_DRIVER, driver_launches[i]);
	return CUPTI_OK;
}

/* In this order, up to the first that fails. */
static const struct { const char *call; int (*begin)(void); } beginning[] = {
	{ "cuptiSubscribe", begin_subscribe }, { "cuptiSetThreadIdType", begin_thread_ids }, { "cuptiActivitySetAttribute", begin_zeroed },
	{ "cuptiActivityRegisterCallbacks", begin_buffers }, { "cuptiGetTimestamp", begin_clock }, { "cuptiActivityEnable", begin_kinds },
	{ "cuptiActivityEnableDriverApi", begin_calls },
};

/* Names of calls are asked for beforehand: later we are in callbacks. */
static void ask_names(void)
{
	for (int domain = 0; domain < 2 && the.gpu.cupti.GetCallbackName; domain++)
		for (uint32_t cbid = 1; cbid < GPU_CBIDS; cbid++) {
			const char *name = NULL;

			if (the.gpu.cupti.GetCallbackName(CUPTI_DOMAIN_DRIVER + domain, cbid, &name) == CUPTI_OK)
				the.gpu.call_names[(size_t)domain * GPU_CBIDS + cbid] = name;
		}
}

static void tell_versions(uint32_t driver)
{
	if (!gpu_begin())
		return;
	gpu_status()->version = the.gpu.cupti.version;
	gpu_status()->driver = driver;
	gpu_status()->api = the.gpu.cupti.family ? the.gpu.cupti.family->number : 0;
	text_set(gpu_status()->library, sizeof gpu_status()->library, the.gpu.cupti.path);
	gpu_end();
}

/* Somebody else's work is left alone: it would lose its records to us. */
static bool begin_profiled(void)
{
	if (!the.gpu.profiled || the.gpu.cupti.family->number != 1)
		return false;
	if (gpu_begin()) {
		text_set(gpu_status()->holder, sizeof gpu_status()->holder, "torch.profiler");
		gpu_end();
	}
	gpu_set_end(GPU_BUSY, 0, "torch.profiler is at work in the process");
	return true;
}

static void begin_failed(const char *call, int result)
{
	char text[PAGE_TEXT_BYTES];

	cupti_explain(&the.gpu.cupti, call, result, text, sizeof text);
	if (result == CUPTI_BUSY && gpu_begin()) {
		memcpy(gpu_status()->holder, the.gpu.cupti.holder, sizeof gpu_status()->holder);
		gpu_status()->holder[sizeof gpu_status()->holder - 1] = '\0';
		gpu_end();
	}
	gpu_set_end(result == CUPTI_BUSY ? GPU_BUSY : GPU_FAILED, result, text);
}

bool gpu_client_find(void)
{
	char text[PAGE_TEXT_BYTES];
	int result;

	memset(&the.gpu.cupti, 0, sizeof the.gpu.cupti);
	if (cupti_find(&the.gpu.cupti, text, sizeof text)) {
		gpu_set_end(GPU_FAILED, 0, text);
		return false;
	}
	result = the.gpu.cupti.GetVersion(&the.gpu.cupti.version);
	if (result != CUPTI_OK) {
		tell_versions(the.gpu.driver);
		begin_failed("cuptiGetVersion", result);
		return false;
	}
	cupti_choose(&the.gpu.cupti, the.gpu.driver);
	tell_versions(the.gpu.driver);
	if (!gpu_buffers_open() || !gpu_names_open()) {
		gpu_set_end(GPU_FAILED, 0, "the process has no memory for CUPTI's records");
		return false;
	}
	gpu_records_begin();
	ask_names();
	return !begin_profiled();
}

/* Takes back what was done before the failure. Without a subscription nothing was, and no further call is made. */
static void unwind_beginning(size_t done)
{
	struct cupti *cupti = &the.gpu.cupti;

	if (!done)
		return;
	while (the.gpu.kinds_on > 0)
		if (kind_wanted(--the.gpu.kinds_on))
			cupti->family->disable(cupti, kinds[the.gpu.kinds_on].kind);
	cupti->family->thread_ids_end(cupti);
	cupti->Unsubscribe(cupti->subscriber);
}

bool gpu_client_begin(void)
{
	the.gpu.not_before = 0;
	the.gpu.not_after = UINT64_MAX;
	the.gpu.kinds_on = 0;
	the.gpu.finalized = -1;
	__atomic_store_n(&the.gpu.listening, true, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < sizeof beginning / sizeof *beginning; i++) {
		int result = beginning[i].begin();

		if (result == CUPTI_OK)
			continue;
		the.gpu.listening = false;
		begin_failed(beginning[i].call, result);
		unwind_beginning(i);
		return false;
	}
	return true;
}

/* ---- leaving ---- */

static void disable_calls(void)
{
	struct cupti *cupti = &the.gpu.cupti;

	for (size_t i = 0; i < sizeof driver_launches / sizeof *driver_launches; i++)
		if (cupti->family->driver_call(cupti, driver_launches[i], false) == CUPTI_MISSING)
			cupti->EnableCallback(0, cupti->subscriber, CUPTI_DOMAIN_DRIVER, driver_launches[i]);
	for (size_t i = 0; i < sizeof idle_calls / sizeof *idle_calls; i++)
		cupti->family->runtime_call(cupti, idle_calls[i], true);
}

static void wait_inside(void)
{
	uint64_t end = monotonic_ns() + INSIDE_MS * MS;

	while (__atomic_load_n(&the.gpu.inside, __ATOMIC_SEQ_CST) && monotonic_ns() < end)
		gpu_pause_ms(1);
}

/* Graphs and taking CUPTI down do not go together before 12.6; and never where somebody else may be its client. */
static bool may_finalize(void)
{
	const struct cupti *cupti = &the.gpu.cupti;

	return cupti->Finalize && cupti->family->number == 1 && (cupti->version >= CUPTI_12_6 || !the.gpu.graph_seen);
}

static bool detach_hard(void)
{
	struct cupti *cupti = &the.gpu.cupti;
	uint32_t seen;
	int version;

	if (cupti->EnableCallback(1, cupti->subscriber, CUPTI_DOMAIN_DRIVER, 2 /* cuDriverGetVersion */) != CUPTI_OK)
		return false;
	the.gpu.finalized = -1;
	__atomic_store_n(&the.gpu.finalizing, true, __ATOMIC_SEQ_CST);
	the.gpu.cuda.cuDriverGetVersion(&version);
	__atomic_store_n(&the.gpu.finalizing, false, __ATOMIC_SEQ_CST);
	if (the.gpu.finalized < 0)
		return false;
	seen = __atomic_load_n(&the.gpu.callbacks, __ATOMIC_SEQ_CST);
	gpu_pause_ms(QUIET_MS);
	return the.gpu.finalized == CUPTI_OK && seen == __atomic_load_n(&the.gpu.callbacks, __ATOMIC_SEQ_CST);
}

/* Kinds belong to the process: those that the other tool has on as well are left to it, for as long as it may be at work. */
static void disable_kinds(bool common_too)
{
	const struct cupti_family *family = the.gpu.cupti.family;

	for (size_t i = KINDS; i-- > 0;)
		if (kind_wanted(i) && (common_too || !kinds[i].common))
			family->disable(&the.gpu.cupti, kinds[i].kind);
}

/* Ours alone to take down: calls, all kinds, the thread's ids. */
static enum gpu_detach leave_alone(void)
{
	struct cupti *cupti = &the.gpu.cupti;

	disable_calls();
	disable_kinds(true);
	cupti->ActivityFlushAll(CUPTI_FLUSH_FORCED);
	gpu_client_clock();
	cupti->family->thread_ids_end(cupti);
	if (may_finalize() && detach_hard())
		return GPU_DETACH_HARD;
	if (the.gpu.finalized < 0)
		cupti->Unsubscribe(cupti->subscriber);
	return GPU_DETACH_SOFT;
}

/* Another tool is the client now: nothing that it may rely on is touched. */
static enum gpu_detach leave_to_other(void)
{
	disable_kinds(false);
	gpu_client_clock();
	the.gpu.cupti.Unsubscribe(the.gpu.cupti.subscriber);
	return GPU_DETACH_SOFT;
}

void gpu_client_leave(bool taken)
{
	uint64_t begin = monotonic_ns();
	enum gpu_detach detach;

	gpu_set_state(GPU_LEAVING);
	__atomic_store_n(&the.gpu.listening, false, __ATOMIC_SEQ_CST);
	wait_inside();
	detach = taken && the.gpu.cupti.family->number == 1 ? leave_to_other() : leave_alone();
	the.gpu.kinds_on = 0;
	if (!gpu_begin())
		return;
	gpu_publish();
	gpu_status()->detach = detach;
	gpu_status()->detach_ns = monotonic_ns() - begin;
	gpu_end();
}

void gpu_client_clear(void)
{
	if (the.gpu.cupti.family->number != 1)
		return;
	disable_calls();
	disable_kinds(true);
	the.gpu.cupti.family->thread_ids_end(&the.gpu.cupti);
}
