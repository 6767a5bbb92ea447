/* Names by id, stacks by id, and the time of samples given to functions and threads. */
#include "session/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/search.h"
#include "session/stacks.h"
#include "trace/reader.h"

enum { FUNCTIONS_MAX = 1 << 20, NODES_MAX = 1 << 21, THREADS_MAX = 1 << 16, FRAMES_MAX = 2048, KEPT_TURNS = 5, KEY_BYTES = 4 * EVENT_STRING_MAX };

enum gpu_part { GPU_NONE, GPU_LAUNCH, GPU_WAIT };

enum native_role { NATIVE_FOREIGN, NATIVE_RUNTIME, NATIVE_CALL, NATIVE_DISPATCH, NATIVE_WAITING };

struct known {
	uint64_t sample;   /* the last one that counted it in its total */
	enum gpu_part gpu;
	enum native_role role;
};

struct node { uint32_t parent, function; }; /* by place; TALLY_NONE = none */

struct tally {
	struct strings *strings; /* one for each function: "name\0file\0line" and kind; its id less one is the function's place */
	LIST(struct tally_function) functions;
	LIST(struct known) known;           /* what is not for others, by the same place */
	LIST(struct node) nodes;
	LIST(struct tally_thread) threads;  /* by tid */
	struct map code_of, native_of, node_of, module_of; /* ids of the sampler to places; module_of to ids of `paths` */
	struct strings *paths;
	uint64_t turn, samples;
	bool knows_gpu;
	uint32_t frames[FRAMES_MAX]; /* functions of the sample at hand, innermost first */
};

int tally_new(struct tally **out, struct error *err)
{
	struct tally *tally = calloc(1, sizeof *tally);

	if (tally) {
		tally->strings = strings_new();
		tally->paths = strings_new();
	}
	if (!tally || !tally->strings || !tally->paths) {
		tally_free(tally);
		return fail(err, ERR_MEMORY, "adding up samples");
	}
	*out = tally;
	return 0;
}

void tally_free(struct tally *tally)
{
	if (!tally)
		return;
	tally_forget_ids(tally);
	list_done(&tally->functions);
	list_done(&tally->known);
	list_done(&tally->threads);
	strings_free(tally->strings);
	strings_free(tally->paths);
	free(tally);
}

void tally_forget_ids(struct tally *tally)
{
	map_done(&tally->code_of);
	map_done(&tally->native_of);
	map_done(&tally->node_of);
	map_done(&tally->module_of);
	tally->code_of = tally->native_of = tally->node_of = tally->module_of = (struct map){ 0 };
	list_done(&tally->nodes);
}

/* ---- names ---- */

/* What a call of CUDA's is for the host. By the names of the runtime's and the driver's documented calls. */
static enum gpu_part gpu_part_of(const char *name)
{
	static const struct { const char *begin; enum gpu_part part; } rows[] = {
		{ "cudaLaunch", GPU_LAUNCH }, { "cuLaunch", GPU_LAUNCH }, { "cudaGraphLaunch", GPU_LAUNCH }, { "cuGraphLaunch", GPU_LAUNCH },
		{ "cudaStreamSynchronize", GPU_WAIT }, { "cuStreamSynchronize", GPU_WAIT }, { "cudaDeviceSynchronize", GPU_WAIT }, { "cuCtxSynchronize", GPU_WAIT },
		{ "cudaEventSynchronize", GPU_WAIT }, { "cuEventSynchronize", GPU_WAIT },
	};

	if (name[0] != 'c' || name[1] != 'u')
		return GPU_NONE;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strncmp(name, rows[i].begin, strlen(rows[i].begin)) == 0)
			return rows[i].part;
	return GPU_NONE;
}

static bool begins_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* As src/timeline/natives.c has it. */
static enum native_role native_role_of(const char *name, const char *module)
{
	static const char *const modules[] = {
#define NATIVE_MODULE(begin) begin,
#include "abi/native.def"
	};
	static const struct { const char *name; enum native_role role; } functions[] = {
#define NATIVE_FUNCTION(begin, role) { begin, NATIVE_##role },
#include "abi/native.def"
	};
	bool runtime = false;

	for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
		runtime |= begins_with(module, modules[i]);
	if (!runtime)
		return NATIVE_FOREIGN;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (begins_with(name, functions[i].name))
			return functions[i].role;
	return NATIVE_RUNTIME;
}

static size_t part_add(char *key, size_t at, const char *bytes, size_t length)
{
	length = strnlen(bytes, length);
	if (length > EVENT_STRING_MAX)
		length = EVENT_STRING_MAX;
	memcpy(key + at, bytes, length);
	key[at + length] = '\0';
	return at + length + 1;
}

/* The place of a function, TALLY_NONE when there can be no more. */
static uint32_t function_place(struct tally *tally, const char *name, size_t name_length, const char *file, size_t file_length, uint32_t line, bool native)
{
	char key[KEY_BYTES];
	size_t file_at = part_add(key, 0, name, name_length), at = part_add(key, file_at, file, file_length);
	struct tally_function *function;
	struct known *known;
	uint32_t id;

	memcpy(key + at, &line, sizeof line);
	key[at + sizeof line] = native ? 'n' : 'p';
	id = strings_count(tally->strings) > FUNCTIONS_MAX ? UINT32_MAX : strings_add(tally->strings, key, at + sizeof line + 1);
	if (id == UINT32_MAX || id - 1 > tally->functions.count)
		return TALLY_NONE;
	if (id - 1 < tally->functions.count)
		return id - 1;
	function = list_add(&tally->functions, FUNCTIONS_MAX);
	known = function ? list_add(&tally->known, FUNCTIONS_MAX) : NULL;
	if (!known)
		return TALLY_NONE;
	function->name = strings_get(tally->strings, id);
	function->file = function->name + file_at;
	function->line = line;
	function->native = native;
	known->gpu = native ? gpu_part_of(function->name) : GPU_NONE;
	return id - 1;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void place_keep(struct map *map, uint32_t id, uint32_t place)
{
	if (place != TALLY_NONE)
		map_put(map, id, place);
}

static void code_add(struct tally *tally, const struct event_cursor *cursor)
{
	size_t name_length, file_length;
	const char *name = event_str(cursor, 4, &name_length), *file = event_str(cursor, 5, &file_length);

	place_keep(&tally->code_of, cursor->event.ref, function_place(tally, name, name_length, file, file_length, event_u32(cursor, 1), false));
}

static void native_add(struct tally *tally, const struct event_cursor *cursor)
{
	size_t name_length, file_length;
	const char *name = event_str(cursor, 3, &name_length), *file = event_str(cursor, 4, &file_length);
	uint32_t path = map_get(&tally->module_of, event_u32(cursor, 1));

	const char *module = path == MAP_ABSENT ? "" : base_name(strings_get(tally->paths, path));
	uint32_t place;

	if (!file_length) {
		file = module;
		file_length = strlen(file);
	}
	place = function_place(tally, name, name_length, file, file_length, event_u32(cursor, 2), true);
	place_keep(&tally->native_of, cursor->event.ref, place);
	if (place != TALLY_NONE)
		tally->known.items[place].role = native_role_of(tally->functions.items[place].name, module);
}

static void module_add(struct tally *tally, const struct event_cursor *cursor)
{
	size_t length;
	const char *path = event_str(cursor, 3, &length);
	uint32_t id = strings_add(tally->paths, path, strnlen(path, length));

	if (id != UINT32_MAX)
		map_put(&tally->module_of, cursor->event.ref, id);
}

/* A parent that is not known yet is none: so there are no circles. */
static void node_add(struct tally *tally, const struct event_cursor *cursor)
{
	const struct map *of = event_u32(cursor, 2) ? &tally->native_of : &tally->code_of;
	struct node *node = list_add(&tally->nodes, NODES_MAX);

	if (!node)
		return;
	node->parent = map_get(&tally->node_of, event_u32(cursor, 0));
	node->function = map_get(of, event_u32(cursor, 1));
	map_put(&tally->node_of, cursor->event.ref, (uint32_t)tally->nodes.count - 1);
}

/* ---- threads ---- */

static size_t thread_place(const struct tally *tally, pid_t tid)
{
	return search_first(tally->threads.count, i, tally->threads.items[i].tid < tid);
}

const struct tally_thread *tally_thread_find(const struct tally *tally, pid_t tid)
{
	size_t at = thread_place(tally, tid);

	return at < tally->threads.count && tally->threads.items[at].tid == tid ? &tally->threads.items[at] : NULL;
}

static struct tally_thread *thread_of(struct tally *tally, pid_t tid)
{
	size_t at = thread_place(tally, tid);
	struct tally_thread *threads = tally->threads.items;

	if (at < tally->threads.count && threads[at].tid == tid)
		return &threads[at];
	if (!list_add(&tally->threads, THREADS_MAX))
		return NULL;
	threads = tally->threads.items;
	memmove(threads + at + 1, threads + at, (tally->threads.count - 1 - at) * sizeof *threads);
	threads[at] = (struct tally_thread){ .tid = tid, .function = TALLY_NONE };
	return &threads[at];
}

void tally_turn(struct tally *tally)
{
	size_t kept = 0;

	tally->turn++;
	for (size_t i = 0; i < tally->functions.count; i++)
		tally->functions.items[i].now = (struct tally_time){ 0 };
	for (size_t i = 0; i < tally->threads.count; i++) {
		struct tally_thread *thread = &tally->threads.items[i];

		thread->gil_ns = thread->gil_wait_ns = thread->gpu_wait_ns = 0;
		if (thread->seen_turn + KEPT_TURNS >= tally->turn)
			tally->threads.items[kept++] = *thread;
	}
	tally->threads.count = kept;
}

/* ---- samples ---- */

static bool is_running(enum thread_state state)
{
	return state == THREAD_PYTHON || state == THREAD_NATIVE || state == THREAD_RUNNABLE;
}

static void both(struct tally *tally, uint32_t function, size_t offset, uint64_t ns)
{
	struct tally_function *row = &tally->functions.items[function];

	*(uint64_t *)((char *)&row->now + offset) += ns;
	*(uint64_t *)((char *)&row->all + offset) += ns;
}
#define ADD(tally, function, field, ns) both(tally, function, offsetof(struct tally_time, field), ns)

/*
 * The functions of a stack into tally->frames, without the interpreter's machinery around them: the calls of its own that are below its first
 * dispatch to a C function, or below another library, tell something; so do all where no Python runs.
 */
static size_t frames_of(struct tally *tally, uint32_t node)
{
	bool told, python = false;
	size_t count = 0, kept = FRAMES_MAX;

	for (; node != MAP_ABSENT && count < FRAMES_MAX; node = tally->nodes.items[node].parent)
		if (tally->nodes.items[node].function != TALLY_NONE)
			tally->frames[count++] = tally->nodes.items[node].function;
	for (size_t i = 0; i < count; i++)
		python |= !tally->functions.items[tally->frames[i]].native;
	told = !python;
	for (size_t i = count; i-- > 0;) {
		uint32_t function = tally->frames[i];
		enum native_role role = tally->known.items[function].role;

		if (!tally->functions.items[function].native)
			told = false;
		else if (!told && (role == NATIVE_RUNTIME || role == NATIVE_CALL || role == NATIVE_WAITING))
			continue;
		else if (!told && role == NATIVE_DISPATCH) {
			told = true;
			continue;
		} else
			told = true;
		tally->frames[--kept] = function;
	}
	memmove(tally->frames, tally->frames + kept, (FRAMES_MAX - kept) * sizeof *tally->frames);
	return FRAMES_MAX - kept;
}

/* What is found on the way from the innermost call outwards. */
struct walked {
	uint32_t innermost, python, cuda;
	enum gpu_part gpu;
};

static struct walked stack_walk(struct tally *tally, uint32_t node, bool running, uint64_t ns)
{
	struct walked walked = { TALLY_NONE, TALLY_NONE, TALLY_NONE, GPU_NONE };
	size_t count = frames_of(tally, node);

	for (size_t i = 0; i < count; i++) {
		uint32_t function = tally->frames[i];
		struct known *known = &tally->known.items[function];

		if (walked.innermost == TALLY_NONE)
			walked.innermost = function;
		if (walked.python == TALLY_NONE && !tally->functions.items[function].native)
			walked.python = function;
		if (known->gpu) {
			walked.gpu = known->gpu; /* the outermost one: the runtime's call rather than the driver's within */
			walked.cuda = function;
		}
		if (known->sample == tally->samples)
			continue; /* it recurs */
		known->sample = tally->samples;
		if (running)
			ADD(tally, function, total_run_ns, ns);
		else
			ADD(tally, function, total_wait_ns, ns);
	}
	return walked;
}

static void gpu_add(struct tally *tally, const struct walked *walked, uint64_t ns)
{
	const uint32_t places[] = { walked->cuda, walked->python };

	tally->knows_gpu = true;
	for (size_t i = 0; i < 2; i++) {
		if (places[i] == TALLY_NONE)
			continue;
		if (walked->gpu == GPU_LAUNCH)
			ADD(tally, places[i], launch_ns, ns);
		else
			ADD(tally, places[i], gpu_wait_ns, ns);
	}
}

static void sample_add(struct tally *tally, const struct event_cursor *cursor)
{
	enum thread_state state = (enum thread_state)event_u32(cursor, 1);
	uint64_t ns = event_u64(cursor, 2);
	struct tally_thread *thread = thread_of(tally, (pid_t)event_u32(cursor, 0));
	struct walked walked;
	bool running = is_running(state);

	tally->samples++;
	walked = stack_walk(tally, map_get(&tally->node_of, cursor->event.ref), running, ns);
	if (walked.innermost != TALLY_NONE && running)
		ADD(tally, walked.innermost, self_run_ns, ns);
	else if (walked.innermost != TALLY_NONE)
		ADD(tally, walked.innermost, self_wait_ns, ns);
	if (walked.innermost != TALLY_NONE && state == THREAD_PYTHON)
		ADD(tally, walked.innermost, gil_ns, ns);
	if (walked.gpu)
		gpu_add(tally, &walked, ns);
	if (!thread)
		return;
	thread->state = walked.gpu == GPU_WAIT ? THREAD_GPU_WAIT : state;
	thread->function = walked.innermost;
	thread->seen_turn = tally->turn;
	thread->gil_ns += state == THREAD_PYTHON ? ns : 0;
	thread->gil_wait_ns += state == THREAD_GIL_WAIT ? ns : 0;
	thread->gpu_wait_ns += walked.gpu == GPU_WAIT ? ns : 0;
}

void tally_add(struct tally *tally, const void *events, size_t size)
{
	static const struct { enum event_kind kind; void (*add)(struct tally *tally, const struct event_cursor *cursor); } rows[] = {
		{ EVENT_SAMPLE, sample_add }, { EVENT_STACK, node_add }, { EVENT_CODE, code_add }, { EVENT_NATIVE, native_add }, { EVENT_MODULE, module_add },
	};

	for (struct event_cursor cursor = event_cursor(events, size); event_next(&cursor);)
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
			if (rows[i].kind == cursor.event.kind)
				rows[i].add(tally, &cursor);
}

const struct tally_function *tally_functions(const struct tally *tally, size_t *count)
{
	*count = tally->functions.count;
	return tally->functions.items;
}

const struct tally_thread *tally_threads(const struct tally *tally, size_t *count)
{
	*count = tally->threads.count;
	return tally->threads.items;
}

bool tally_knows_gpu(const struct tally *tally)
{
	return tally->knows_gpu;
}

uint64_t tally_samples(const struct tally *tally)
{
	return tally->samples;
}

static const struct { const char *name, *words; } states[] = {
	[THREAD_UNKNOWN] = { "unknown", "not known" }, [THREAD_PYTHON] = { "python", "runs Python" }, [THREAD_NATIVE] = { "native", "runs native code" },
	[THREAD_GIL_WAIT] = { "gil_wait", "waits for the GIL" }, [THREAD_LOCK_WAIT] = { "lock_wait", "waits for a lock" }, [THREAD_IO_WAIT] = { "io_wait", "waits for I/O" },
	[THREAD_GPU_WAIT] = { "gpu_wait", "waits for the GPU" }, [THREAD_SLEEP] = { "sleep", "sleeps" }, [THREAD_RUNNABLE] = { "runnable", "wants a CPU" },
	[THREAD_IDLE] = { "idle", "waits for work" },
};

const char *thread_state_words(enum thread_state state)
{
	return (size_t)state < sizeof states / sizeof *states ? states[state].words : states[0].words;
}

const char *thread_state_name(enum thread_state state)
{
	return (size_t)state < sizeof states / sizeof *states ? states[state].name : states[0].name;
}
