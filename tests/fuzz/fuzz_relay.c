/* Anything that a target may write into its lanes of the device: names, comparisons of clocks, work with any times, ids and numbers, in any order, read in between. */
#include <stdlib.h>
#include <string.h>

#include "session/gpu_relay.h"
#include "trace/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input { const uint8_t *at; size_t left; };
struct output { uint64_t events; uint32_t lanes; };

static uint64_t number(struct input *input, size_t bytes)
{
	uint64_t value = 0;

	bytes = bytes < input->left ? bytes : input->left;
	memcpy(&value, input->at, bytes);
	input->at += bytes;
	input->left -= bytes;
	return value;
}

static uint32_t small(struct input *input)
{
	return (uint32_t)number(input, 4);
}

static void count(void *context, const struct chunk *chunk, uint64_t events)
{
	struct output *out = context;

	for (struct event_cursor c = event_cursor(chunk->events, chunk->size); event_next(&c); events--) {
		if (c.event.kind == EVENT_GPU_RANGE || c.event.kind == EVENT_GPU_NAME)
			abort(); /* they are of lanes alone */
		out->events++;
	}
	if (events || !chunk->lane)
		abort();
}

static uint32_t lane_next(void *context)
{
	return ++((struct output *)context)->lanes;
}

static uint32_t tid_same(void *context, uint32_t tid)
{
	(void)context;
	return tid;
}

static void name(struct input *input, struct event_builder *names)
{
	char text[16] = "";
	uint32_t ref = (uint32_t)number(input, 3);

	for (size_t i = 0; i + 1 < sizeof text; i++)
		text[i] = (char)number(input, 1);
	event_add(names, 0, EVENT_GPU_NAME, ref, 0, text);
}

/* What the collector writes of each kind of record. */
static void work(struct input *input, unsigned kind, struct event_builder *events)
{
	uint64_t at = number(input, 8);
	uint32_t ref = (uint32_t)number(input, 2), a = small(input), b = small(input), c = small(input);

	switch (kind) {
	case EVENT_GPU_KERNEL:
		event_add(events, at, kind, ref, 0, number(input, 8), a, b, c, 1u, 1u, 1u, 1u, 1u, 1u, "");
		break;
	case EVENT_H2D_COPY:
	case EVENT_D2H_COPY:
	case EVENT_D2D_COPY:
		event_add(events, at, kind, 0, 0, number(input, 8), a, b, c, number(input, 8), small(input));
		break;
	case EVENT_GPU_MEMSET:
		event_add(events, at, kind, 0, 0, number(input, 8), a, b, c, number(input, 8));
		break;
	case EVENT_GPU_SYNC:
		event_add(events, at, kind, 0, 0, number(input, 8), a, b, c, 3u);
		break;
	case EVENT_GPU_API:
		event_add(events, at, kind, ref, 0, number(input, 8), a, b, "");
		break;
	case EVENT_GPU_OVERHEAD:
		event_add(events, at, kind, 0, 0, number(input, 8), a);
		break;
	case EVENT_GPU_MEMORY:
		event_add(events, at, kind, 0, 0, number(input, 8), number(input, 8), a, b, c, 3u);
		break;
	default:
		event_add(events, at, EVENT_GPU_RANGE, ref, 0, a, b, c);
		break;
	}
}

static const unsigned kinds[] = { EVENT_GPU_KERNEL, EVENT_H2D_COPY, EVENT_D2H_COPY, EVENT_D2D_COPY, EVENT_GPU_MEMSET, EVENT_GPU_SYNC, EVENT_GPU_API, EVENT_GPU_OVERHEAD, EVENT_GPU_MEMORY, EVENT_GPU_RANGE };
enum { KINDS = sizeof kinds / sizeof *kinds, NAME = KINDS, CLOCK, READ, STEPS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	struct output out = { 0 };
	const struct gpu_relay_sink sink = { count, lane_next, tid_same, &out };
	struct gpu_relay *relay = gpu_relay_new(&sink);
	struct event_builder events;
	uint64_t given = 0;

	event_builder_init(&events);
	while (relay && input.left) {
		unsigned step = (unsigned)(number(&input, 1) % STEPS);
		struct chunk chunk = { .lane_kind = LANE_GPU, .clock = clock_map_monotonic() };

		event_builder_clear(&events);
		if (step == NAME) {
			name(&input, &events);
		} else if (step == CLOCK) {
			uint64_t ticks = number(&input, 8), before = number(&input, 8), real = number(&input, 8);

			event_add(&events, ticks, EVENT_GPU_CLOCK, 0, 0, before, real, before + number(&input, 2));
		} else if (step == READ) {
			gpu_relay_run(relay, false);
			continue;
		} else {
			work(&input, kinds[step], &events);
			given++;
		}
		chunk.events = events.bytes;
		chunk.size = events.size;
		if (step < KINDS)
			gpu_relay_work(relay, &chunk);
		else
			gpu_relay_names(relay, &chunk);
	}
	if (relay)
		gpu_relay_run(relay, true);
	if (relay && out.events + gpu_relay_totals(relay).timeless != given)
		abort(); /* what goes in comes out, or is counted */
	gpu_relay_free(relay);
	event_builder_done(&events);
	return 0;
}
