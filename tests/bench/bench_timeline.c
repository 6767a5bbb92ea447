/*
 * How fast a trace becomes an analysis: bench_timeline [EVENTS [FILE]]. Writes a trace of EVENTS calls' events (10 000 000 unless
 * given) of 8 threads to FILE (kept only when given), then builds and analyzes it. Ratios, not absolute values, are worth comparing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyze/analysis.h"
#include "trace/writer.h"

enum { THREADS = 8, FUNCTIONS = 400, CHUNK_EVENTS = 4000, DEEPEST = 16 };

struct thread_state_ { uint32_t stack[DEEPEST]; uint32_t depth; uint64_t now, random; };

static uint64_t next_random(struct thread_state_ *state)
{
	state->random = state->random * 6364136223846793005ull + 1442695040888963407ull;
	return state->random >> 33;
}

static void add(struct trace_writer *writer, struct chunk chunk, struct event_builder *builder)
{
	struct error err;

	chunk.clock = (struct clock_map){ 0, 0, 2100000000ull };
	chunk.events = builder->bytes;
	chunk.size = builder->size;
	if (trace_writer_add(writer, &chunk, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	event_builder_clear(builder);
}

static void write_names(struct trace_writer *writer, struct event_builder *builder, uint64_t end)
{
	char name[32], file[32];

	event_add(builder, 1, EVENT_WINDOW_ON, 0, 0, WINDOW_ARM);
	for (uint32_t i = 1; i <= FUNCTIONS; i++) {
		snprintf(name, sizeof name, "function_%u", i);
		snprintf(file, sizeof file, "/srv/module_%u.py", i % 40);
		event_add(builder, 1, EVENT_CODE, i, 0, (uint64_t)i * 64, i, 0, name, name, file);
	}
	event_add(builder, end, EVENT_WINDOW_OFF, 0, 0, WINDOW_ARM);
	add(writer, (struct chunk){ .lane = 1, .lane_kind = LANE_META, .sequence = 1 }, builder);
}

static void write_calls(struct event_builder *builder, struct thread_state_ *state)
{
	for (int i = 0; i < CHUNK_EVENTS; i++) {
		state->now += 100 + next_random(state) % 800;
		if (state->depth && (state->depth == DEEPEST || next_random(state) % 2)) {
			event_add(builder, state->now, EVENT_PY_LEAVE, state->stack[--state->depth], 0);
		} else {
			/* Each function calls a few others, as programs do: the tree has some ten thousand nodes. */
			uint32_t caller = state->depth ? state->stack[state->depth - 1] : 0, ref = (caller * 7 + (next_random(state) % 64 == 0)) % FUNCTIONS + 1;

			state->stack[state->depth++] = ref;
			event_add(builder, state->now, EVENT_PY_ENTER, ref, 0);
		}
	}
}

static void write_trace(const char *path, uint64_t events)
{
	struct thread_state_ states[THREADS] = { 0 };
	struct event_builder builder;
	struct trace_writer *writer;
	struct sink *sink;
	struct error err;
	uint64_t written = 0;

	event_builder_init(&builder);
	if (sink_open_path(path, true, &sink, &err) < 0 || trace_writer_open(sink, CODEC_DELTA_ZSTD, 1, &writer, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	for (uint32_t sequence = 1; written < events; sequence++)
		for (uint32_t i = 0; i < THREADS; i++, written += CHUNK_EVENTS) {
			struct chunk chunk = { .lane = i + 2, .tid = i + 100, .lane_kind = LANE_THREAD, .sequence = sequence, .depth = states[i].depth };

			states[i].random += !states[i].now * (i + 1);
			write_calls(&builder, &states[i]);
			add(writer, chunk, &builder);
		}
	write_names(writer, &builder, states[0].now + 1000000);
	trace_writer_close(writer);
	event_builder_done(&builder);
	if (sink_commit(sink, &err) < 0)
		exit(1);
}

/* CPU time: the machine may be busy with other things. */
static double cpu_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
	char path[64];
	const char *file = argc > 2 ? argv[2] : path;
	struct timeline *timeline;
	struct analysis *analysis;
	struct rusage usage;
	struct trace *trace;
	struct stat status;
	struct chunk chunk;
	struct error err;
	double start, read, build, analyze;

	snprintf(path, sizeof path, "/tmp/bench_timeline.%d.iscope", (int)getpid());
	write_trace(file, events);
	if (stat(file, &status) < 0 || trace_open(file, &trace, &err) < 0)
		return 1;
	start = cpu_now();
	while (trace_next(trace, &chunk, &err) > 0)
		;
	read = cpu_now() - start;
	start = cpu_now();
	if (trace_rewind(trace, &err) < 0 || timeline_build(trace, &timeline, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	build = cpu_now() - start;
	start = cpu_now();
	if (analysis_build(timeline, NULL, 0, &analysis, &err) < 0)
		return 1;
	analyze = cpu_now() - start;
	getrusage(RUSAGE_SELF, &usage);
	printf("events %llu  bytes/event %.2f  CPU: read once %.2f s  build %.2f s (%.1f M events/s)  analyze %.3f s  nodes %zu  functions %zu  unmatched %llu  peak %ld MiB\n",
		(unsigned long long)timeline->quality.events, (double)status.st_size / (double)timeline->quality.events, read, build,
		(double)timeline->quality.events / build / 1e6, analyze, timeline->node_count, timeline->function_count, (unsigned long long)timeline->quality.unmatched, usage.ru_maxrss / 1024);
	analysis_free(analysis);
	timeline_free(timeline);
	trace_close(trace);
	if (file == path)
		unlink(path);
	return 0;
}
