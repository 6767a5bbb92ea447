/* What devices did. Kernels of several streams overlap, so busy time is the union of intervals, per device. */
#include "base/sort.h"
#include "timeline/private.h"

enum { GPU_SPANS_LIMIT = 1 << 23, DEVICES_LIMIT = 1024 };

static struct device_build *device_of(struct timeline_private *p, uint32_t id)
{
	struct device_build *device;

	for (size_t i = 0; i < p->devices.count; i++)
		if (p->devices.items[i].out.id == id)
			return &p->devices.items[i];
	device = list_add_or_fail(&p->devices, DEVICES_LIMIT, &p->failed);
	if (device)
		device->out.id = id;
	return device;
}

/* Processes that see different cards may give them one number: then it has no name. */
void gpu_about(struct timeline_private *p, const struct event_cursor *c)
{
	struct device_about about = { c->event.ref, facts_string(p, c, 4), facts_string(p, c, 5), facts_string(p, c, 6), event_u32(c, 2), event_u32(c, 3), event_u64(c, 0) }, *slot;

	for (size_t i = 0; i < p->device_abouts.count; i++) {
		slot = &p->device_abouts.items[i];
		if (slot->id != about.id)
			continue;
		if (slot->uuid != about.uuid || slot->instance != about.instance)
			*slot = (struct device_about){ about.id, NONE, NONE, NONE, 0, 0, 0 };
		return;
	}
	slot = list_add_or_fail(&p->device_abouts, DEVICES_LIMIT, &p->failed);
	if (slot)
		*slot = about;
}

static void tell_about(struct timeline_private *p, struct device *out)
{
	out->name = out->uuid = out->instance = "";
	for (size_t i = 0; i < p->device_abouts.count; i++) {
		const struct device_about *about = &p->device_abouts.items[i];

		if (about->id != out->id || about->name == NONE || about->uuid == NONE || about->instance == NONE)
			continue;
		out->name = strings_get(p->strings, about->name);
		out->uuid = strings_get(p->strings, about->uuid);
		out->instance = strings_get(p->strings, about->instance);
		out->memory_bytes = about->memory_bytes;
		out->multiprocessors = about->multiprocessors;
		out->compute = about->compute;
	}
}

static enum gpu_class class_of(const struct event_cursor *c)
{
	size_t length;
	const char *name;

	if (c->event.kind != EVENT_GPU_KERNEL)
		return GPU_MEMORY;
	name = event_str(c, 10, &length);
	return length >= 4 && (strncasecmp(name, "nccl", 4) == 0 || strncasecmp(name, "rccl", 4) == 0) ? GPU_COMMUNICATION : GPU_COMPUTATION;
}

void gpu_add(struct timeline_private *p, uint32_t process, const struct event_cursor *c, uint64_t at_ns)
{
	uint64_t duration = event_u64(c, 0), end;
	struct device_build *device;
	struct gpu_span *span;
	enum gpu_class class_;

	if (c->event.kind == EVENT_GPU_API) {
		gpu_calls_add(p, process, c, at_ns);
		return;
	}
	if (!at_ns || __builtin_add_overflow(at_ns, duration, &end) || !(device = device_of(p, event_u32(c, 2)))) {
		p->timeline.quality.unmatched++; /* a record without a time, or of a device that cannot be */
		return;
	}
	if (end > p->last_event)
		p->last_event = end;
	class_ = class_of(c);
	if (class_ != GPU_MEMORY)
		device->out.kernels++;
	else
		device->out.copies++;
	if (c->event.kind == EVENT_H2D_COPY)
		device->out.h2d_bytes += event_u64(c, 4);
	else if (c->event.kind == EVENT_D2H_COPY)
		device->out.d2h_bytes += event_u64(c, 4);
	else if (c->event.kind == EVENT_D2D_COPY)
		device->out.d2d_bytes += event_u64(c, 4);
	span = keep_event(p, &device->spans, GPU_SPANS_LIMIT);
	if (span)
		*span = (struct gpu_span){ at_ns, end, class_ == GPU_MEMORY ? event_u64(c, 4) : 0, process, event_u32(c, 3), event_u32(c, 1), class_ == GPU_MEMORY ? event_u32(c, 5) : 0, NONE, c->event.kind, class_ };
	else
		device->out.cut = true;
}

static int compare_spans(const void *left, const void *right, const void *context)
{
	const struct gpu_span *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns < b->end_ns ? -1 : 1;
	return (int)a->class_ - (int)b->class_;
}

enum which { ALL, KERNELS, COPIES };

static uint64_t union_ns(const struct device_build *device, enum which which)
{
	uint64_t total = 0, reached = 0;

	for (size_t i = 0; i < device->spans.count; i++) {
		const struct gpu_span *span = &device->spans.items[i];
		uint64_t start = span->start_ns > reached ? span->start_ns : reached;

		if ((which == KERNELS && span->class_ == GPU_MEMORY) || (which == COPIES && span->class_ != GPU_MEMORY) || span->end_ns <= start)
			continue;
		total += span->end_ns - start;
		reached = span->end_ns;
	}
	return total;
}

static uint64_t clip(uint64_t at_ns, uint64_t start_ns, uint64_t end_ns)
{
	return at_ns < start_ns ? start_ns : at_ns > end_ns ? end_ns : at_ns;
}

/* What ended before the measurement began, or began after its end, is of no length then. */
static void clip_spans(const struct timeline_private *p, struct device_build *device)
{
	uint64_t start = p->timeline.start_ns, end = start + p->timeline.duration_ns;

	for (size_t i = 0; i < device->spans.count; i++) {
		struct gpu_span *span = &device->spans.items[i];

		span->start_ns = clip(span->start_ns, start, end);
		span->end_ns = clip(span->end_ns, start, end);
	}
}

void gpu_prepare(struct timeline_private *p)
{
	for (size_t i = 0; i < p->devices.count; i++) {
		struct device_build *device = &p->devices.items[i];

		clip_spans(p, device);
		p->failed |= !sort_runs(device->spans.items, device->spans.count, sizeof *device->spans.items, compare_spans, NULL);
	}
	gpu_calls_prepare(p);
	gpu_gaps_find(p);
}

void gpu_build(struct timeline_private *p)
{
	uint64_t start = p->timeline.start_ns;

	for (size_t i = 0; i < p->devices.count; i++) {
		struct device_build *device = &p->devices.items[i];
		struct device *out = &device->out;

		tell_about(p, out);
		if (!device->spans.count)
			continue;
		out->busy_ns = union_ns(device, ALL);
		out->kernel_ns = union_ns(device, KERNELS);
		out->copy_ns = union_ns(device, COPIES);
		out->copy_exposed_ns = out->busy_ns - out->kernel_ns;
		out->first_ns = device->spans.items[0].start_ns - start;
		for (size_t j = 0; j < device->spans.count; j++)
			if (device->spans.items[j].end_ns > start + out->last_ns)
				out->last_ns = device->spans.items[j].end_ns - start;
	}
	gpu_idle_build(p);
	gpu_facts_build(p);
	gpu_streams_build(p);
	for (size_t i = 0; i < p->devices.count; i++)
		list_done(&p->devices.items[i].spans);
}
