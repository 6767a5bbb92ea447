/*
 * The GPU thread: waits until CUDA is in use, lets gpu_client.c begin, flushes and takes the clock every 250 ms, and ends: when it is told to, when
 * the attacher falls silent, when a bound is reached, or when somebody else takes over. It waits for no call of the program's.
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

#include "collector/thread.h"

#define MS 1000000ull
enum {
	TICK_MS = 250, WAIT_CUDA_MS = 500, STACK_BYTES = 1 << 20, BEATS_MISSING = 3, MEMORY_TICKS = 4, STOP_MS = 3000,
	CUDA_NOT_INITIALIZED = 3, INVALID_LEAST = 1000,
};
#define MEMORY_DROP_BYTES (256ull << 20)
#define MEMORY_LOW_BYTES (1024ull << 20)

struct gpu_status *gpu_status(void)
{
	return &the.page->gpu_status;
}

void gpu_pause_ms(unsigned ms)
{
	struct timespec pause = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&pause, NULL);
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

void gpu_set_state(enum gpu_state state)
{
	if (!gpu_begin())
		return;
	__atomic_store_n(&gpu_status()->state, state, __ATOMIC_RELEASE);
	gpu_end();
}

void gpu_set_end(enum gpu_state state, int result, const char *text)
{
	if (!gpu_begin())
		return;
	gpu_status()->result = result;
	text_set(gpu_status()->text, sizeof gpu_status()->text, text);
	__atomic_store_n(&gpu_status()->state, state, __ATOMIC_RELEASE);
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
	if (__atomic_load_n(&the.page->stop, __ATOMIC_ACQUIRE) || __atomic_load_n(&the.page->gpu_stop, __ATOMIC_ACQUIRE))
		wish = ASKED;
	else if (ticks_now() > __atomic_load_n(&the.page->deadline_ticks, __ATOMIC_ACQUIRE))
		wish = SILENT;
	gpu_end();
	return wish;
}

static enum wish wait_ms(unsigned ms)
{
	enum wish wish = wish_of_host();

	if (wish != GO_ON)
		return wish;
	futex_wait(&the.gpu.quit, 0, ms * MS);
	return wish_of_host();
}

/* ---- while it runs ---- */

/* A call of our own whose record must come back to us. */
static void beat(void)
{
	int version;

	if (!the.gpu.cuda.cudaDriverGetVersion || !gpu_begin())
		return;
	gpu_status()->beats++;
	gpu_end();
	the.gpu.cuda.cudaDriverGetVersion(&version);
}

void gpu_publish(void)
{
	struct gpu_status *told = gpu_status();

	told->discarded = __atomic_load_n(&the.gpu.discarded, __ATOMIC_RELAXED);
	told->skipped = __atomic_load_n(&the.gpu.skipped, __ATOMIC_RELAXED);
}

/* In how many ticks none of them came, after it once did. */
static void count_beats(void)
{
	uint64_t seen = gpu_status()->beats_seen, discarded = gpu_status()->discarded;

	/* Where buffers ran out their records may have been among what was lost. */
	the.gpu.beats_missing = seen && seen == the.gpu.beats_before && discarded == the.gpu.discarded_before ? the.gpu.beats_missing + 1 : 0;
	the.gpu.beats_before = seen;
	the.gpu.discarded_before = discarded;
}

static const char taken_over[] = "another tool took CUPTI's buffers over";

/* Why it must end by itself, or NULL. */
static const char *bound_reached(void)
{
	const struct gpu_status *told = gpu_status();
	uint64_t work = told->kernels + told->copies;

	if (the.settings.gpu_records_max && told->kernels >= the.settings.gpu_records_max)
		return "it has recorded as many kernels as it may (--gpu-max-kernels); measure for a shorter time, or with --gpu-graphs graph";
	if (told->invalid >= INVALID_LEAST / 100 && told->invalid * INVALID_LEAST > work)
		return "CUPTI gave impossible times for more than one record in a thousand";
	if (told->free_bytes_first && told->free_bytes_last + MEMORY_DROP_BYTES < told->free_bytes_first && told->free_bytes_last < MEMORY_LOW_BYTES)
		return "the device ran short of memory";
	if (the.gpu.graph_seen && the.gpu.cupti.is_11)
		return "CUPTI 11 and CUDA graphs do not go together: programs were seen to hang or fault";
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
	gpu_status()->free_bytes_last = bytes;
	if (!gpu_status()->free_bytes_first)
		gpu_status()->free_bytes_first = bytes;
	gpu_end();
}

/* Returns why it ends by itself, or NULL; *WISH is the host's. */
static const char *run(enum wish *wish)
{
	const char *why = NULL;

	for (uint32_t tick = 0; !why && (*wish = wait_ms(TICK_MS)) == GO_ON; tick++) {
		uint64_t begin = monotonic_ns();

		the.gpu.cupti.ActivityFlushAll(0);
		gpu_client_clock();
		look_at_memory(tick);
		if (!gpu_begin())
			return NULL;
		gpu_publish();
		count_beats();
		why = bound_reached();
		gpu_status()->work_ns += monotonic_ns() - begin;
		gpu_end();
		beat();
	}
	return why;
}

/* ---- the thread ---- */

static const char own_name[] = "inferscope-gpu";

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
			gpu_set_end(GPU_FAILED, 0, "the CUDA driver knows no device that the process may use");
			return false;
		}
		if (result != CUDA_NOT_INITIALIZED) {
			cuda_explain(&the.gpu.cuda, "cuDeviceGetCount", result, text, sizeof text);
			gpu_set_end(GPU_FAILED, result, text);
			return false;
		}
		gpu_set_state(GPU_WAITING);
		if (wait_ms(WAIT_CUDA_MS) != GO_ON) {
			gpu_set_end(GPU_FAILED, result, "the process loaded the CUDA driver, but did not use it while it was measured");
			return false;
		}
	}
}

static bool get_ready(void)
{
	if (cuda_find(&the.gpu.cuda))
		return wait_for_cuda() && gpu_client_find();
	gpu_set_end(GPU_FAILED, 0, "no CUDA driver in the target");
	return false;
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

/* After a takeover: false when nobody will come any more to say whether the other is still at work. */
static bool wait_for_quit(void)
{
	while (!__atomic_load_n(&the.gpu.quit, __ATOMIC_ACQUIRE)) {
		enum wish wish = wish_of_host();

		if (wish == SILENT || wish == CLOSED)
			return false;
		gpu_pause_ms(TICK_MS);
	}
	return true;
}

static void work(void)
{
	uint64_t begin = monotonic_ns();
	enum wish wish = GO_ON;
	const char *why;
	bool begun;

	if (!get_ready())
		return;
	the.gpu.beats_before = the.gpu.discarded_before = the.gpu.beats_missing = 0;
	the.gpu.discarded = the.gpu.skipped = 0;
	/* CUPTI's own threads are made in here, and stay where it is not taken down: they are not to have our name. */
	prctl(PR_SET_NAME, "cupti");
	begun = gpu_client_begin();
	prctl(PR_SET_NAME, own_name);
	if (!begun)
		return;
	if (gpu_begin()) {
		gpu_status()->attach_ns = monotonic_ns() - begin;
		__atomic_store_n(&gpu_status()->state, GPU_ON, __ATOMIC_RELEASE);
		gpu_end();
	}
	beat();
	why = run(&wish);
	__atomic_store_n(&the.gpu.taken, why == taken_over, __ATOMIC_RELEASE);
	if (why == taken_over && gpu_begin()) {
		gpu_status()->taken = 1;
		gpu_end();
	}
	gpu_client_leave(why == taken_over);
	gpu_set_end(GPU_ENDED, 0, why ? why : wish == SILENT ? "inferscope fell silent" : "");
	if (__atomic_load_n(&the.gpu.taken, __ATOMIC_ACQUIRE) && wait_for_quit() && !the.gpu.profiled)
		gpu_client_clear();
	release_memory();
}

static void *thread_run(void *nothing)
{
	(void)nothing;
	prctl(PR_SET_NAME, own_name);
	the.gpu.self = pthread_self();
	if (gpu_begin()) {
		gpu_status()->tid = (uint32_t)syscall(SYS_gettid);
		gpu_end();
	}
	work();
	if (gpu_begin()) {
		gpu_status()->tid = 0;
		gpu_end();
	}
	__atomic_store_n(&the.gpu.running, false, __ATOMIC_RELEASE);
	return NULL;
}

void gpu_start(void)
{
	if (!the.settings.gpu || the.gpu.made || !the.gpu.work_lane)
		return;
	pthread_mutex_lock(&the.gpu.lock);
	the.gpu.open = true;
	pthread_mutex_unlock(&the.gpu.lock);
	if (__atomic_load_n(&the.gpu.running, __ATOMIC_ACQUIRE)) {
		gpu_set_end(GPU_FAILED, 0, "a call into CUPTI of an earlier session has not returned");
		return;
	}
	gpu_set_state(GPU_STARTING);
	the.gpu.quit = 0;
	the.gpu.taken = false;
	__atomic_store_n(&the.gpu.running, true, __ATOMIC_RELEASE);
	the.gpu.made = thread_start(&the.gpu.thread, thread_run, STACK_BYTES);
	if (the.gpu.made)
		return;
	__atomic_store_n(&the.gpu.running, false, __ATOMIC_RELEASE);
	gpu_set_end(GPU_FAILED, 0, "no thread could be made for it");
}

/* A thread that hangs in CUPTI is left to itself: it finds everything closed when it comes back. */
void gpu_stop(void)
{
	uint64_t end = monotonic_ns() + STOP_MS * MS;

	if (the.gpu.made) {
		futex_tell(&the.gpu.quit, 1);
		while (__atomic_load_n(&the.gpu.running, __ATOMIC_ACQUIRE) && monotonic_ns() < end)
			gpu_pause_ms(1);
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
