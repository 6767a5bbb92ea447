/* See engine.h. One lock, held for no longer than a few stores; nobody is called under it. */
#include "engine.h"
#include "settings.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STREAMS_MAX = 1024, NULL_STREAM_ID = 7, FIRST_STREAM_ID = 13, NODE_GAP_NS = 500, GRAPH_NODES_MAX = 4096, VIRTUAL_START = 1000000000 };

struct stream {
	uint32_t id, device;
	uint64_t free_ns; /* when all that it was given is done */
	struct graph *capture;
	int used;
};

struct graph {
	uint32_t id;
	size_t count;
	struct op ops[GRAPH_NODES_MAX];
};

struct known_name {
	struct known_name *next;
	char text[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream defaults[DEVICES_MAX], streams[STREAMS_MAX];
static uint32_t next_stream = FIRST_STREAM_ID, next_graph = 1, correlation;
static uint64_t next_node = 1, virtual_now = VIRTUAL_START, taken_bytes;
static struct known_name *known_names;
static const struct hooks *hooks;
static int initialised, forked, contexts[DEVICES_MAX];
static uint64_t loaded_ns, realtime_offset;
static __thread int current_device;

static void fork_prepare(void) { pthread_mutex_lock(&lock); }
static void fork_parent(void) { pthread_mutex_unlock(&lock); }

/* A forked child has no CUDA: the driver says so, as the real one does. */
static void fork_child(void)
{
	pthread_mutex_unlock(&lock);
	forked = 1;
	__atomic_store_n(&hooks, NULL, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void loaded(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	loaded_ns = mono_ns();
	realtime_offset = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - loaded_ns;
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static int is_virtual(void)
{
	return setting(SET_CLOCK) != 0;
}

/* What looks random: a function of the seed and N alone (splitmix64's finish). */
static uint64_t random_of(uint64_t n)
{
	uint64_t x = n + (uint64_t)setting(SET_SEED) * 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t now_ns(void)
{
	return is_virtual() ? __atomic_load_n(&virtual_now, __ATOMIC_RELAXED) : mono_ns();
}

static uint64_t stamp_ns(uint64_t at_ns)
{
	int64_t since = (int64_t)(at_ns - loaded_ns), step = 0;

	if (is_virtual())
		return 1700000000000000000u + at_ns;
	if (setting(SET_STEP_NS) && since >= setting(SET_STEP_AFTER_MS) * 1000000)
		step = setting(SET_STEP_NS);
	return at_ns + realtime_offset + (uint64_t)(since / 1000 * setting(SET_SLOPE_PPM) / 1000) + (uint64_t)step;
}

static void sleep_until(uint64_t at_ns)
{
	struct timespec t = { (time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u) };

	if (is_virtual()) {
		uint64_t now = __atomic_load_n(&virtual_now, __ATOMIC_RELAXED);

		while (now < at_ns && !__atomic_compare_exchange_n(&virtual_now, &now, at_ns, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
		return;
	}
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

/* ---- devices, contexts, streams ---- */

static void *idle(void *unused)
{
	for (;;)
		pause();
	return NULL;
}

/* The real driver has threads of its own from here on: the process is never single-threaded again. */
static void start_thread(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (setting(SET_DRIVER_THREAD) && pthread_create(&thread, NULL, idle, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int engine_init(void)
{
	int first;

	if (forked)
		return CUDA_NOT_INITIALIZED;
	if (setting(SET_CUINIT_RC))
		return (int)setting(SET_CUINIT_RC);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < DEVICES_MAX; i++)
		defaults[i] = (struct stream){ NULL_STREAM_ID, (uint32_t)i, defaults[i].free_ns, defaults[i].capture, 1 };
	first = !initialised;
	__atomic_store_n(&initialised, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	if (first)
		start_thread();
	return CUDA_OK;
}

int engine_ready(void)
{
	return __atomic_load_n(&initialised, __ATOMIC_ACQUIRE) && !forked ? CUDA_OK : CUDA_NOT_INITIALIZED;
}

static int device_count(void)
{
	int64_t count = setting(SET_DEVICES);

	return count < 0 ? 0 : count > DEVICES_MAX ? DEVICES_MAX : (int)count;
}

static void *context_of(int device)
{
	__atomic_store_n(&contexts[device], 1, __ATOMIC_RELAXED);
	return &contexts[device];
}

int engine_context_active(int device)
{
	return __atomic_load_n(&contexts[device], __ATOMIC_RELAXED);
}

int engine_context_device(const void *context)
{
	const int *at = context;

	return at >= contexts && at < contexts + DEVICES_MAX ? (int)(at - contexts) : -1;
}

uint64_t engine_free_bytes(void)
{
	return (uint64_t)setting(SET_FREE_MB) * 1048576 - __atomic_load_n(&taken_bytes, __ATOMIC_RELAXED);
}

static int *device_of_thread(void)
{
	return &current_device;
}

static void took_memory(uint64_t bytes)
{
	__atomic_add_fetch(&taken_bytes, bytes, __ATOMIC_RELAXED);
}

static struct stream *stream_of(void *handle)
{
	return handle ? handle : &defaults[current_device];
}

static struct stream *stream_new(void)
{
	const struct hooks *seen = __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
	struct stream *stream = NULL;
	uint32_t id = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < STREAMS_MAX && !stream; i++)
		if (!streams[i].used) {
			stream = &streams[i];
			*stream = (struct stream){ id = next_stream++, (uint32_t)current_device, 0, NULL, 1 };
		}
	pthread_mutex_unlock(&lock);
	context_of(current_device);
	if (stream && seen)
		seen->stream((uint32_t)current_device, (uint32_t)current_device + 1, id);
	return stream;
}

static void stream_free(struct stream *stream)
{
	pthread_mutex_lock(&lock);
	stream->used = 0;
	pthread_mutex_unlock(&lock);
}

static void each_stream(void (*each)(uint32_t device, uint32_t context, uint32_t stream))
{
	for (int i = 0; i < device_count(); i++)
		if (engine_context_active(i))
			each((uint32_t)i, (uint32_t)i + 1, NULL_STREAM_ID);
	for (int i = 0; i < STREAMS_MAX; i++)
		if (streams[i].used)
			each(streams[i].device, streams[i].device + 1, streams[i].id);
}

/* ---- graphs ---- */

static int capture_begin(struct stream *stream)
{
	struct graph *graph = calloc(1, sizeof *graph);

	if (!graph)
		return CUDA_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	graph->id = next_graph++;
	stream->capture = graph;
	pthread_mutex_unlock(&lock);
	return CUDA_OK;
}

static struct graph *capture_end(struct stream *stream)
{
	struct graph *graph;

	pthread_mutex_lock(&lock);
	graph = stream->capture;
	stream->capture = NULL;
	pthread_mutex_unlock(&lock);
	return graph;
}

static struct graph *instantiate(const struct graph *source)
{
	struct graph *graph = malloc(sizeof *graph);

	if (!graph)
		return NULL;
	*graph = *source;
	pthread_mutex_lock(&lock);
	graph->id = next_graph++;
	for (size_t i = 0; i < graph->count; i++) {
		graph->ops[i].source_graph = source->id;
		graph->ops[i].source_node = source->ops[i].graph_node;
		graph->ops[i].graph = graph->id;
		graph->ops[i].graph_node = next_node++;
	}
	pthread_mutex_unlock(&lock);
	return graph;
}

static struct op *graph_ops(const struct graph *graph, size_t *count)
{
	struct op *ops = malloc(graph->count * sizeof *ops + 1);

	*count = ops ? graph->count : 0;
	if (ops)
		memcpy(ops, graph->ops, graph->count * sizeof *ops);
	return ops;
}

static void capture_add(struct graph *graph, const struct op *ops, size_t count)
{
	for (size_t i = 0; i < count && graph->count < GRAPH_NODES_MAX; i++) {
		graph->ops[graph->count] = ops[i];
		graph->ops[graph->count].graph = graph->id;
		graph->ops[graph->count++].graph_node = next_node++;
	}
}

/* ---- calls ---- */

static void call_begin(struct call *call, uint32_t domain, uint32_t cbid, const char *function, const char *symbol, const void *params)
{
	*call = (struct call){ .domain = domain, .cbid = cbid, .function = function, .symbol = symbol, .params = params, .tid = own_tid() };
	call->correlation = __atomic_add_fetch(&correlation, 1, __ATOMIC_RELAXED);
	call->hooks = __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
	call->start_ns = now_ns();
	if (call->hooks)
		call->hooks->enter(call);
}

/* A launch into a full queue waits, as a real one does. */
static void wait_for_room(const struct stream *stream)
{
	uint64_t full_ns = (uint64_t)setting(SET_QUEUE_MS) * 1000000, free_ns;

	pthread_mutex_lock(&lock);
	free_ns = stream->free_ns;
	pthread_mutex_unlock(&lock);
	if (!is_virtual() && free_ns > mono_ns() + full_ns)
		sleep_until(free_ns - full_ns);
}

static void end_call(struct call *call, int result)
{
	uint64_t least_ns = call->start_ns + (uint64_t)setting(SET_API_NS);

	if (is_virtual())
		sleep_until(call->start_ns + 1000 + random_of(call->correlation) % 4000);
	else
		while (mono_ns() < least_ns)
			;
	call->end_ns = now_ns();
	call->result = result;
	file_line("FAKECUDA_OPS", "%d\tapi\t%s\t%u\t%u\t%u\t%d\t%lu\t%lu\t%d", getpid(), call->function, call->domain, call->cbid, call->correlation, call->tid,
		call->start_ns, call->end_ns, result);
}

/* Gives the operations their times. Returns 0 when they went into a graph instead. */
static int schedule(struct stream *stream, const struct call *call, uint64_t from_ns, struct op *ops, size_t count)
{
	uint64_t at_ns = from_ns + (uint64_t)setting(SET_LAUNCH_NS);

	pthread_mutex_lock(&lock);
	if (stream->capture) {
		capture_add(stream->capture, ops, count);
		pthread_mutex_unlock(&lock);
		return 0;
	}
	if (at_ns < stream->free_ns)
		at_ns = stream->free_ns;
	for (size_t i = 0; i < count; i++) {
		if (ops[i].raw)
			continue;
		ops[i].device = stream->device;
		ops[i].context = stream->device + 1;
		ops[i].stream = stream->id;
		ops[i].correlation = call->correlation;
		if (ops[i].kind == OP_SYNC) {
			ops[i].start_ns = call->start_ns;
			ops[i].end_ns = call->end_ns;
			continue;
		}
		ops[i].start_ns = at_ns;
		ops[i].end_ns = at_ns + ops[i].duration_ns;
		at_ns = ops[i].end_ns + NODE_GAP_NS;
		stream->free_ns = ops[i].end_ns;
	}
	pthread_mutex_unlock(&lock);
	return 1;
}

static void log_op(const struct op *op)
{
	static const char *const kinds[] = { "kernel", "copy", "peer_copy", "memset", "sync" };

	file_line("FAKECUDA_OPS", "%d\t%s\t%s\t%u\t%u\t%u\t%u\t%lu\t%lu\t%lu\t%u\t%u\t%u\t%u\t%lu", getpid(), kinds[op->kind], op->name ? op->name : "", op->device,
		op->context, op->stream, op->correlation, op->start_ns, op->end_ns, op->bytes, op->copy, op->from, op->to, op->graph, op->graph_node);
}

static int call_end(struct call *call, int result, void *handle, struct op *ops, size_t count)
{
	struct stream *stream = stream_of(handle);
	int done = 0;

	if (count) {
		context_of((int)stream->device);
		wait_for_room(stream);
	}
	if (count && ops->blocking && (done = schedule(stream, call, now_ns(), ops, count)))
		sleep_until(ops[count - 1].end_ns);
	end_call(call, result);
	if (count && !ops->blocking)
		done = schedule(stream, call, call->end_ns, ops, count);
	if (call->hooks)
		call->hooks->leave(call);
	for (size_t i = 0; done && i < count; i++)
		log_op(&ops[i]);
	if (done && call->hooks)
		call->hooks->ops(ops, count, call);
	return result;
}

static void wait_for(void *handle, int all)
{
	struct stream *stream = stream_of(handle);
	uint64_t until;

	pthread_mutex_lock(&lock);
	until = stream->free_ns;
	for (int i = 0; all && i < STREAMS_MAX; i++)
		if (streams[i].used && streams[i].device == stream->device && streams[i].free_ns > until)
			until = streams[i].free_ns;
	pthread_mutex_unlock(&lock);
	sleep_until(until);
}

static const char *name_of(const char *text)
{
	struct known_name *name;

	pthread_mutex_lock(&lock);
	for (name = known_names; name && strcmp(name->text, text) != 0; name = name->next)
		;
	if (!name && (name = malloc(sizeof *name + strlen(text) + 1))) {
		memcpy(name->text, text, strlen(text) + 1);
		name->next = known_names;
		known_names = name;
	}
	pthread_mutex_unlock(&lock);
	return name ? name->text : "";
}

const struct hooks *engine_hooks(void)
{
	return __atomic_load_n(&hooks, __ATOMIC_ACQUIRE);
}

static void memory(const struct call *call, int operation, enum memory_kind kind, const void *address, uint64_t bytes)
{
	const struct memory_change change = { operation, kind, (uint32_t)current_device, address, bytes };

	if (call->hooks)
		call->hooks->memory(&change, call);
}

static void hook(const struct hooks *table)
{
	__atomic_store_n(&hooks, table, __ATOMIC_RELEASE);
}

const struct driver engine_driver = {
	.ready = engine_ready, .hook = hook, .now_ns = now_ns, .stamp_ns = stamp_ns, .devices = device_count, .streams = each_stream, .took_memory = took_memory,
	.memory = memory, .call_begin = call_begin, .call_end = call_end, .wait = wait_for, .name = name_of, .current_device = device_of_thread, .context = context_of,
	.stream_new = stream_new, .stream_free = stream_free, .capture_begin = capture_begin, .capture_end = capture_end, .instantiate = instantiate, .graph_ops = graph_ops,
};
