/*
 * The GPU thread: waits until CUDA is in use, subscribes, flushes and takes the clock every 250 ms, and leaves: when it is told to, when
 * the attacher falls silent, when a bound is reached, or when somebody else takes over. It waits for no call of the program's.
 * The order of calls and what it avoids is in docs/GPU.md.
 */
#include "collector/collector.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/libc.h"

#define MS 1000000ull
#define SECOND 1000000000ull
enum {
	TICK_MS = 250, WAIT_CUDA_MS = 500, STACK_BYTES = 1 << 20, BRACKETS = 100, BEATS_MISSING = 3, MEMORY_TICKS = 4,
	STOP_MS = 3000, INSIDE_MS = 200, QUIET_MS = 50,
	CUDA_NOT_INITIALIZED = 3, INVALID_LEAST = 1000,
};
#define MEMORY_DROP_BYTES (256ull << 20)
#define MEMORY_LOW_BYTES (1024ull << 20)

static struct gpu_status *status(void)
{
	return &the.page->gpu_status;
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static uint64_t realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

bool gpu_begin(void)
{
	if (the.child)
		return false;
	pthread_mutex_lock(&the.gpu.lock);
	if (the.gpu.open)
		return true;
	pthread_mutex_unlock(&the.gpu.lock);
	return false;
}

void gpu_end(void)
{
	pthread_mutex_unlock(&the.gpu.lock);
}

/* ---- what is told ---- */

static void set_state(enum gpu_state state)
{
	if (!gpu_begin())
		return;
	__atomic_store_n(&status()->state, state, __ATOMIC_RELEASE);
	gpu_end();
}

static void set_end(enum gpu_state state, int result, const char *text)
{
	if (!gpu_begin())
		return;
	status()->result = result;
	text_set(status()->text, sizeof status()->text, text);
	__atomic_store_n(&status()->state, state, __ATOMIC_RELEASE);
	gpu_end();
}

/* ---- when to go on ---- */

enum wish { GO_ON, ASKED, SILENT, CLOSED };

/* Nobody sleeps long: the shared page has no wake-up for us, and the attacher may be dead. */
static enum wish wish_of_host(void)
{
	enum wish wish = GO_ON;

	if (__atomic_load_n(&the.gpu.quit, __ATOMIC_ACQUIRE))
		return ASKED;
	if (!gpu_begin())
		return CLOSED;
	if (the.page->stop || __atomic_load_n(&the.page->gpu_stop, __ATOMIC_ACQUIRE))
		wish = ASKED;
	else if (ticks_now() > __atomic_load_n(&the.page->deadline_ticks, __ATOMIC_ACQUIRE))
		wish = SILENT;
	gpu_end();
	return wish;
}

static enum wish wait_ms(unsigned ms)
{
	struct timespec timeout = { ms / 1000, (long)(ms % 1000) * 1000000 };
	enum wish wish = wish_of_host();

	if (wish != GO_ON)
		return wish;
	syscall(SYS_futex, &the.gpu.quit, FUTEX_WAIT, 0, &timeout, NULL, 0);
	return wish_of_host();
}

static void pause_ms(unsigned ms)
{
	struct timespec pause = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&pause, NULL);
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
static bool take_clock(void)
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

static const struct { int kind; bool dump, memory, graphs; } kinds[] = {
	/* The calls before the work, so that all work has its call. Never CUPTI_KIND_SERIAL_KERNEL, which makes kernels wait for each other. */
	{ CUPTI_KIND_DEVICE, true, false, false }, { CUPTI_KIND_CONTEXT, true, false, false }, { CUPTI_KIND_STREAM, true, false, false },
	{ CUPTI_KIND_API, false, false, false }, { CUPTI_KIND_OVERHEAD, false, false, false }, { CUPTI_KIND_SYNC, false, false, false },
	{ CUPTI_KIND_MEMORY2, false, true, false },
	{ CUPTI_KIND_MEMCPY2, false, false, false }, { CUPTI_KIND_MEMSET, false, false, false }, { CUPTI_KIND_MEMCPY, false, false, false },
	{ CUPTI_KIND_GRAPH_TRACE, false, false, true },
	{ CUPTI_KIND_KERNEL, false, false, false },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Calls that ask and do nothing; programs make them by the million. Numbers are the same from 11.8 to 13.5. */
static const uint32_t idle_calls[] = { 10 /* cudaGetLastError */, 11 /* cudaPeekAtLastError */, 17 /* cudaGetDevice */, 317, 318 /* cudaStreamIsCapturing */ };
/* What launches without the runtime: cuLaunchKernel, cuLaunchKernelEx, cuGraphLaunch, each also for per-thread streams. */
static const uint32_t driver_launches[] = { 307, 442, 652, 653, 514, 515 };

static bool kind_wanted(size_t i)
{
	return (!kinds[i].memory || the.settings.gpu_memory) && (!kinds[i].graphs || the.settings.gpu_graphs == GPU_GRAPHS_GRAPH);
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
		take_clock();
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
	status()->version = the.gpu.cupti.version;
	status()->driver = driver;
	status()->api = the.gpu.cupti.family ? the.gpu.cupti.family->number : 0;
	text_set(status()->library, sizeof status()->library, the.gpu.cupti.path);
	gpu_end();
}

/* Somebody else's work is left alone: it would lose its records to us. */
static bool begin_profiled(void)
{
	if (!the.gpu.profiled || the.gpu.cupti.family->number != 1)
		return false;
	if (gpu_begin()) {
		text_set(status()->holder, sizeof status()->holder, "torch.profiler");
		gpu_end();
	}
	set_end(GPU_BUSY, 0, "torch.profiler is at work in the process");
	return true;
}

static void begin_failed(const char *call, int result)
{
	char text[PAGE_TEXT_BYTES];

	cupti_explain(&the.gpu.cupti, call, result, text, sizeof text);
	if (result == CUPTI_BUSY && gpu_begin()) {
		memcpy(status()->holder, the.gpu.cupti.holder, sizeof status()->holder);
		status()->holder[sizeof status()->holder - 1] = '\0';
		gpu_end();
	}
	set_end(result == CUPTI_BUSY ? GPU_BUSY : GPU_FAILED, result, text);
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

static bool begin_all(void)
{
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

/* ---- while it runs ---- */

/* A call of our own whose record must come back to us. */
static void beat(void)
{
	int version;

	if (!the.gpu.cuda.cudaDriverGetVersion || !gpu_begin())
		return;
	status()->beats++;
	gpu_end();
	the.gpu.cuda.cudaDriverGetVersion(&version);
}

static void publish(void)
{
	struct gpu_status *told = status();

	told->discarded = __atomic_load_n(&the.gpu.discarded, __ATOMIC_RELAXED);
	told->skipped = __atomic_load_n(&the.gpu.skipped, __ATOMIC_RELAXED);
}

/* In how many ticks none of them came, after it once did. */
static void count_beats(void)
{
	uint64_t seen = status()->beats_seen;

	the.gpu.beats_missing = seen && seen == the.gpu.beats_before ? the.gpu.beats_missing + 1 : 0;
	the.gpu.beats_before = seen;
}

static const char taken_over[] = "another tool took CUPTI's buffers over";

/* Why it must end by itself, or NULL. */
static const char *bound_reached(void)
{
	const struct gpu_status *told = status();
	uint64_t work = told->kernels + told->copies;

	if (the.settings.gpu_records_max && told->kernels >= the.settings.gpu_records_max)
		return "its bound of kernel records was reached; measure for a shorter time, or with --gpu-graphs graph";
	if (told->invalid >= INVALID_LEAST / 100 && told->invalid * INVALID_LEAST > work)
		return "CUPTI gave impossible times for more than one record in a thousand";
	if (told->free_bytes_first && told->free_bytes_last + MEMORY_DROP_BYTES < told->free_bytes_first && told->free_bytes_last < MEMORY_LOW_BYTES)
		return "the device ran short of memory";
	if (the.gpu.beats_missing >= BEATS_MISSING)
		return taken_over;
	return NULL;
}

static void look_at_memory(uint32_t tick)
{
	uint64_t bytes;

	if (tick % MEMORY_TICKS)
		return;
	bytes = cuda_free_bytes(&the.gpu.cuda, the.gpu.devices);
	if (!gpu_begin())
		return;
	status()->free_bytes_last = bytes;
	if (!status()->free_bytes_first)
		status()->free_bytes_first = bytes;
	gpu_end();
}

/* Returns why it ends by itself, or NULL; *WISH is the host's. */
static const char *run(enum wish *wish)
{
	const char *why = NULL;

	for (uint32_t tick = 0; !why && (*wish = wait_ms(TICK_MS)) == GO_ON; tick++) {
		uint64_t begin = monotonic_ns();

		the.gpu.cupti.ActivityFlushAll(0);
		take_clock();
		look_at_memory(tick);
		if (!gpu_begin())
			return NULL;
		publish();
		count_beats();
		why = bound_reached();
		status()->work_ns += monotonic_ns() - begin;
		gpu_end();
		beat();
	}
	return why;
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
		pause_ms(1);
}

/* Graphs and taking CUPTI down do not go together before 12.6; and never where somebody else may be its client. */
static bool may_finalize(bool taken)
{
	const struct cupti *cupti = &the.gpu.cupti;

	return !taken && cupti->Finalize && cupti->family->number == 1 && (cupti->version >= CUPTI_12_6 || !the.gpu.graph_seen);
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
	pause_ms(QUIET_MS);
	return the.gpu.finalized == CUPTI_OK && seen == __atomic_load_n(&the.gpu.callbacks, __ATOMIC_SEQ_CST);
}

/* TAKEN: the buffers are another tool's by now, and its session must not suffer. */
static void leave(bool taken)
{
	struct cupti *cupti = &the.gpu.cupti;
	uint64_t begin = monotonic_ns();
	enum gpu_detach detach = GPU_DETACH_SOFT;

	set_state(GPU_LEAVING);
	__atomic_store_n(&the.gpu.listening, false, __ATOMIC_SEQ_CST);
	wait_inside();
	disable_calls();
	for (size_t i = KINDS; i-- > 0;)
		if (kind_wanted(i))
			cupti->family->disable(cupti, kinds[i].kind);
	the.gpu.kinds_on = 0;
	if (!taken)
		cupti->ActivityFlushAll(CUPTI_FLUSH_FORCED);
	take_clock();
	cupti->family->thread_ids_end(cupti);
	if (may_finalize(taken) && detach_hard())
		detach = GPU_DETACH_HARD;
	else if (the.gpu.finalized < 0)
		cupti->Unsubscribe(cupti->subscriber);
	if (!gpu_begin())
		return;
	publish();
	status()->detach = detach;
	status()->detach_ns = monotonic_ns() - begin;
	gpu_end();
}

/* ---- the thread ---- */

/* Until the program has initialised CUDA there is nothing to see, and we must not do it for it. */
static bool wait_for_cuda(void)
{
	for (;;) {
		char text[PAGE_TEXT_BYTES];
		int result, version = 0;

		the.gpu.devices = 0;
		result = the.gpu.cuda.cuDeviceGetCount(&the.gpu.devices);
		if (result == 0 && the.gpu.devices > 0) {
			the.gpu.cuda.cuDriverGetVersion(&version);
			the.gpu.driver = version > 0 ? (uint32_t)version : 0;
			return true;
		}
		if (result == 0) {
			set_end(GPU_FAILED, 0, "the CUDA driver knows no device that the process may use");
			return false;
		}
		if (result != CUDA_NOT_INITIALIZED) {
			cuda_explain(&the.gpu.cuda, "cuDeviceGetCount", result, text, sizeof text);
			set_end(GPU_FAILED, result, text);
			return false;
		}
		set_state(GPU_WAITING);
		if (wait_ms(WAIT_CUDA_MS) != GO_ON) {
			set_end(GPU_FAILED, result, "the process loaded the CUDA driver, but did not use it while it was measured");
			return false;
		}
	}
}

static bool get_ready(void)
{
	char text[PAGE_TEXT_BYTES];
	int result;

	if (!cuda_find(&the.gpu.cuda)) {
		set_end(GPU_FAILED, 0, "no CUDA driver in the target");
		return false;
	}
	if (!wait_for_cuda())
		return false;
	memset(&the.gpu.cupti, 0, sizeof the.gpu.cupti);
	if (cupti_find(&the.gpu.cupti, text, sizeof text)) {
		set_end(GPU_FAILED, 0, text);
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
	if (!gpu_buffers_open() || !gpu_records_open()) {
		set_end(GPU_FAILED, 0, "the process has no memory for CUPTI's records");
		return false;
	}
	ask_names();
	return !begin_profiled();
}

/* Memory that CUPTI has given back goes back to the system; what it still keeps stays. */
static void release_memory(void)
{
	uint64_t all = UINT64_MAX;

	if (!the.gpu.buffers || !__atomic_compare_exchange_n(&the.gpu.free_buffers, &all, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	madvise(the.gpu.buffers, (size_t)GPU_BUFFERS * GPU_BUFFER_BYTES, MADV_DONTNEED);
	__atomic_store_n(&the.gpu.free_buffers, UINT64_MAX, __ATOMIC_RELEASE);
}

static void work(void)
{
	uint64_t begin = monotonic_ns();
	enum wish wish = GO_ON;
	const char *why;

	if (!get_ready())
		return;
	the.gpu.not_before = 0;
	the.gpu.not_after = UINT64_MAX;
	the.gpu.kinds_on = 0;
	the.gpu.finalized = -1;
	the.gpu.beats_before = the.gpu.beats_missing = 0;
	the.gpu.discarded = the.gpu.skipped = 0;
	__atomic_store_n(&the.gpu.listening, true, __ATOMIC_SEQ_CST);
	if (!begin_all())
		return;
	if (gpu_begin()) {
		status()->attach_ns = monotonic_ns() - begin;
		__atomic_store_n(&status()->state, GPU_ON, __ATOMIC_RELEASE);
		gpu_end();
	}
	beat();
	why = run(&wish);
	leave(why == taken_over);
	set_end(GPU_ENDED, 0, why ? why : wish == SILENT ? "inferscope fell silent" : "");
	release_memory();
}

static void *thread_run(void *nothing)
{
	(void)nothing;
	prctl(PR_SET_NAME, "inferscope-gpu");
	the.gpu.self = pthread_self();
	if (gpu_begin()) {
		status()->tid = (uint32_t)syscall(SYS_gettid);
		gpu_end();
	}
	work();
	if (gpu_begin()) {
		status()->tid = 0;
		gpu_end();
	}
	__atomic_store_n(&the.gpu.running, false, __ATOMIC_RELEASE);
	return NULL;
}

void gpu_start(void)
{
	pthread_attr_t attributes;
	sigset_t all, before;

	if (!the.settings.gpu || the.gpu.made || !the.gpu.work_lane)
		return;
	pthread_mutex_lock(&the.gpu.lock);
	the.gpu.open = true;
	pthread_mutex_unlock(&the.gpu.lock);
	if (__atomic_load_n(&the.gpu.running, __ATOMIC_ACQUIRE)) {
		set_end(GPU_FAILED, 0, "a call into CUPTI of an earlier session has not returned");
		return;
	}
	set_state(GPU_STARTING);
	the.gpu.quit = 0;
	if (pthread_attr_init(&attributes))
		return;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	__atomic_store_n(&the.gpu.running, true, __ATOMIC_RELEASE);
	the.gpu.made = !pthread_create(&the.gpu.thread, &attributes, thread_run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (the.gpu.made)
		return;
	__atomic_store_n(&the.gpu.running, false, __ATOMIC_RELEASE);
	set_end(GPU_FAILED, 0, "no thread could be made for it");
}

/* A thread that hangs in CUPTI is left to itself: it finds everything closed when it comes back. */
void gpu_stop(void)
{
	uint64_t end = monotonic_ns() + STOP_MS * MS;

	if (the.gpu.made) {
		__atomic_store_n(&the.gpu.quit, 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &the.gpu.quit, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
		while (__atomic_load_n(&the.gpu.running, __ATOMIC_ACQUIRE) && monotonic_ns() < end)
			pause_ms(1);
		if (!__atomic_load_n(&the.gpu.running, __ATOMIC_ACQUIRE))
			pthread_join(the.gpu.thread, NULL);
		else
			pthread_detach(the.gpu.thread);
		the.gpu.made = false;
	}
	pthread_mutex_lock(&the.gpu.lock);
	the.gpu.open = false;
	the.gpu.names_lane = the.gpu.work_lane = NULL;
	pthread_mutex_unlock(&the.gpu.lock);
}

void gpu_forked(void)
{
	memset(&the.gpu.lock, 0, sizeof the.gpu.lock);
	the.gpu.open = the.gpu.made = the.gpu.running = the.gpu.listening = the.gpu.finalizing = false;
	the.gpu.inside = 0;
	the.gpu.names_lane = the.gpu.work_lane = NULL;
}
