/*
 * Gathers samples of allocations while the trace is read, and adds them up by the lines that made them. A block may be released by another thread
 * than allocated it, whose chunk may come first: ends are matched by time, once all are read.
 */
#include "timeline/memory.h"

#include "base/search.h"
#include "timeline/private.h"

enum { MEMORY_SAMPLES_LIMIT = 1 << 22, MEMORY_MOMENTS_LIMIT = 2 * MEMORY_SAMPLES_LIMIT, MEMORY_STACKS_LIMIT = 1 << 16, MEMORY_MARKS_LIMIT = 1 << 20, PENDING_LANES = 4096 };

struct frame_ref { uint32_t ref /* as CODE has it; native: the name itself */, line; };
struct memory_stack { bool native; uint32_t site, count; uint64_t bytes, live_bytes; struct frame_ref frames[MEMORY_FRAMES_MAX]; };
struct memory_sample { uint64_t at_ns, end_ns /* 0 = alive; absolute */, bytes, weight; uint32_t stack; bool told; /* its end would be */ uint32_t process, asked; /* native: whose stack is still to be found */ bool native; };
/* One of an address: a sample, or (SAMPLE is NONE) the end of the one before. */
struct memory_moment { uint64_t key /* process and address */, at_ns; uint32_t sample; };
/* Allocations were sampled from here on, or no more; sorted by stream and time. FACTOR: for so many times itself each sample of the stream stands. */
struct memory_mark { uint64_t stream /* process, native */, at_ns, off_ns, cpu_ns; bool on; double factor; };
struct site_build { struct memory_site out; uint32_t process, heaviest; /* stack */ };
/* Frames of an allocation that is still to come, of one lane. */
struct pending { bool native; uint32_t count; struct frame_ref frames[MEMORY_FRAMES_MAX]; };

struct memory_build {
	struct memory_facts out;
	LIST(struct pending) pending;
	struct map by_lane;       /* lane's index → pending */
	LIST(struct memory_sample) samples;
	LIST(struct memory_moment) moments;
	LIST(struct memory_stack) stacks;
	LIST(struct memory_mark) marks;
	struct map by_frames;     /* hash → stack */
	LIST(struct site_build) sites;
	struct map by_place;      /* hash → site */
	bool moments_missing;
};

static const struct memory_facts nothing;

static struct memory_build *build_of(struct timeline_private *p)
{
	if (!p->memory)
		p->memory = calloc(1, sizeof *p->memory);
	p->failed |= !p->memory;
	return p->memory;
}

static struct pending *pending_of(struct timeline_private *p, struct memory_build *all, uint32_t lane)
{
	uint32_t at = map_get(&all->by_lane, lane);
	struct pending *pending;

	if (at != MAP_ABSENT)
		return &all->pending.items[at];
	pending = list_add_or_fail(&all->pending, PENDING_LANES, &p->failed);
	if (pending && !map_put(&all->by_lane, lane, (uint32_t)all->pending.count - 1))
		p->failed = true;
	return pending;
}

static uint64_t hash_frames(uint32_t process, bool native, const struct frame_ref *frames, uint32_t count)
{
	uint64_t hash = mix64(process + 1ull + ((uint64_t)native << 32));

	for (uint32_t i = 0; i < count; i++)
		hash = mix64(hash ^ ((uint64_t)frames[i].ref << 32 | frames[i].line));
	return hash;
}

static uint32_t site_of(struct timeline_private *p, struct memory_build *all, uint32_t process, const struct pending *pending)
{
	uint64_t key = hash_frames(process, pending->native, pending->frames, pending->count ? 1 : 0);
	uint32_t at = map_get(&all->by_place, key);
	struct site_build *site;

	if (at != MAP_ABSENT)
		return at;
	site = list_add_or_fail(&all->sites, MEMORY_SITES_LIMIT, &p->failed);
	if (!site)
		return NONE;
	*site = (struct site_build){ .out.native = pending->native, .process = process, .heaviest = NONE };
	at = (uint32_t)all->sites.count - 1;
	p->failed |= !map_put(&all->by_place, key, at);
	return at;
}

static uint32_t stack_of(struct timeline_private *p, struct memory_build *all, uint32_t process, const struct pending *pending)
{
	uint64_t key = hash_frames(process, pending->native, pending->frames, pending->count);
	uint32_t at = map_get(&all->by_frames, key), site;
	struct memory_stack *stack;

	if (at != MAP_ABSENT)
		return at;
	site = site_of(p, all, process, pending);
	stack = site == NONE ? NULL : list_add_or_fail(&all->stacks, MEMORY_STACKS_LIMIT, &p->failed);
	if (!stack)
		return NONE;
	*stack = (struct memory_stack){ .native = pending->native, .site = site, .count = pending->count };
	memcpy(stack->frames, pending->frames, pending->count * sizeof *pending->frames);
	at = (uint32_t)all->stacks.count - 1;
	p->failed |= !map_put(&all->by_frames, key, at);
	return at;
}

static uint64_t address_key(uint32_t process, uint64_t address)
{
	return address ^ (uint64_t)process << 48;
}

static void add_moment(struct timeline_private *p, struct memory_build *all, uint32_t process, uint64_t address, uint64_t at_ns, uint32_t sample)
{
	struct memory_moment *moment = list_add_or_fail(&all->moments, MEMORY_MOMENTS_LIMIT, &p->failed);

	if (moment)
		*moment = (struct memory_moment){ address_key(process, address), at_ns, sample };
	else
		all->moments_missing = true;
}

static void add_sample(struct timeline_private *p, struct memory_build *all, uint32_t process, struct pending *pending, const struct event_cursor *event, uint64_t at_ns)
{
	struct memory_site *sum = &all->out.all;
	uint64_t address = event_u64(event, 0), bytes = event_u64(event, 1), weight = event_u64(event, 2);
	bool native = event_u32(event, 3) == MEMORY_NATIVE;
	uint32_t stack = pending && !native ? stack_of(p, all, process, pending) : NONE, asked = native ? syscalls_ask(p, process, event->event.ref, at_ns) : NONE;
	struct memory_sample *sample = stack == NONE && !native ? NULL : keep_event(p, &all->samples, MEMORY_SAMPLES_LIMIT);

	sum->samples++;
	sum->bytes += weight;
	sum->count += bytes ? weight / bytes : 0;
	if (pending)
		pending->count = 0;
	if (!sample) {
		all->out.left_out++;
		return;
	}
	*sample = (struct memory_sample){ .at_ns = at_ns, .bytes = bytes, .weight = weight, .stack = stack, .told = address != 0, .process = process, .asked = asked, .native = native };
	if (!native)
		all->stacks.items[stack].bytes += weight;
	if (address)
		add_moment(p, all, process, address, at_ns, (uint32_t)all->samples.count - 1);
}

static uint64_t stream_of(uint32_t process, bool native)
{
	return (uint64_t)process << 1 | native;
}

static void add_mark(struct timeline_private *p, struct memory_build *all, uint32_t process, const struct event_cursor *event, uint64_t at_ns)
{
	struct memory_mark *mark = list_add_or_fail(&all->marks, MEMORY_MARKS_LIMIT, &p->failed);

	if (mark)
		*mark = (struct memory_mark){ .stream = stream_of(process, event_u32(event, 3)), .at_ns = at_ns, .off_ns = event_u64(event, 0), .cpu_ns = event_u64(event, 1), .on = event_u32(event, 2) };
}

void memory_add(struct timeline_private *p, uint32_t lane, const struct event_cursor *event, uint64_t at_ns)
{
	struct memory_build *all = build_of(p);
	uint32_t process = p->lanes.items[lane].process;
	struct pending *pending;

	if (!all)
		return;
	if (event->event.kind == EVENT_MEMORY_FREE) {
		add_moment(p, all, process, event_u64(event, 0), at_ns, NONE);
		return;
	}
	if (event->event.kind == EVENT_MEMORY_SAMPLING) {
		add_mark(p, all, process, event, at_ns);
		return;
	}
	pending = pending_of(p, all, lane);
	if (event->event.kind == EVENT_MEMORY_ALLOC)
		add_sample(p, all, process, pending, event, at_ns);
	else if (pending && pending->count < MEMORY_FRAMES_MAX)
		pending->frames[pending->count++] = (struct frame_ref){ event->event.ref, event_u32(event, 0) };
}

/* ---- ends ---- */

/* At one moment, an end comes first: it belongs to the block that was there before. */
static int compare_moments(const void *left, const void *right)
{
	const struct memory_moment *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return a->sample == b->sample ? 0 : a->sample == NONE ? -1 : b->sample == NONE ? 1 : a->sample < b->sample ? -1 : 1;
}

/* A block at whose address another is allocated has ended by then, whoever saw it. */
static void find_ends(struct memory_build *all)
{
	const struct memory_moment *items = all->moments.items;

	if (all->moments.count)
		qsort(all->moments.items, all->moments.count, sizeof *all->moments.items, compare_moments);
	for (size_t i = 0; i + 1 < all->moments.count; i++)
		if (items[i].sample != NONE && items[i + 1].key == items[i].key)
			all->samples.items[items[i].sample].end_ns = items[i + 1].at_ns ? items[i + 1].at_ns : 1;
}

/* ---- sums ---- */

static void count_sample(struct memory_site *site, const struct memory_sample *sample, uint64_t middle_ns)
{
	site->samples++;
	site->bytes += sample->weight;
	site->count += sample->bytes ? sample->weight / sample->bytes : 0;
	if (sample->end_ns) {
		if (sample->end_ns < sample->at_ns + MEMORY_BRIEF_NS)
			site->brief_bytes += sample->weight;
	} else if (sample->told) {
		site->live_samples++;
		site->live_bytes += sample->weight;
		if (sample->at_ns < middle_ns) {
			site->early_samples++;
			site->early_bytes += sample->weight;
		}
	}
}

struct lifetime { uint32_t site; uint64_t ns; };

static int compare_lifetimes(const void *left, const void *right)
{
	const struct lifetime *a = left, *b = right;

	if (a->site != b->site)
		return a->site < b->site ? -1 : 1;
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/* The median of each site's. */
static void find_lifetimes(struct timeline_private *p, struct memory_build *all)
{
	struct lifetime *lifetimes = malloc((all->samples.count + 1) * sizeof *lifetimes);
	size_t count = 0;

	if (!lifetimes) {
		p->failed = true;
		return;
	}
	for (size_t i = 0; i < all->samples.count; i++) {
		const struct memory_sample *sample = &all->samples.items[i];

		if (sample->end_ns && sample->stack != NONE)
			lifetimes[count++] = (struct lifetime){ all->stacks.items[sample->stack].site, sample->end_ns > sample->at_ns ? sample->end_ns - sample->at_ns : 0 };
	}
	qsort(lifetimes, count, sizeof *lifetimes, compare_lifetimes);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i; end < count && lifetimes[end].site == lifetimes[i].site; end++)
			;
		all->sites.items[lifetimes[i].site].out.lifetime_p50_ns = lifetimes[i + (end - i) / 2].ns;
	}
	free(lifetimes);
}

static void add_up(struct memory_site *sum, const struct memory_site *site)
{
	sum->brief_bytes += site->brief_bytes;
	sum->live_samples += site->live_samples;
	sum->live_bytes += site->live_bytes;
	sum->early_samples += site->early_samples;
	sum->early_bytes += site->early_bytes;
}

static uint32_t name_of(const struct timeline_private *p, const struct memory_build *all, const struct memory_stack *stack, uint32_t frame)
{
	return stack->native ? stack->frames[frame].ref : names_find(p, all->sites.items[stack->site].process, stack->frames[frame].ref);
}

void memory_prepare(struct timeline_private *p)
{
	for (size_t i = 0; p->memory && i < p->memory->stacks.count; i++)
		for (uint32_t frame = 0; frame < p->memory->stacks.items[i].count; frame++) {
			uint32_t name = name_of(p, p->memory, &p->memory->stacks.items[i], frame);

			p->names.list.items[name].allocates |= name != NAME_UNKNOWN;
		}
}

static void build_paths(struct timeline_private *p, struct memory_build *all)
{
	struct memory_path *paths = timeline_keep(p, all->stacks.count, sizeof *paths);

	for (size_t i = 0; paths && i < all->stacks.count; i++) {
		const struct memory_stack *stack = &all->stacks.items[i];

		paths[i] = (struct memory_path){ .bytes = stack->bytes, .live_bytes = stack->live_bytes, .cut = stack->count == MEMORY_FRAMES_MAX, .count = stack->count };
		for (uint32_t frame = 0; frame < stack->count; frame++)
			paths[i].functions[frame] = p->export_function[name_of(p, all, stack, frame)];
	}
	all->out.paths = paths;
	all->out.path_count = paths ? all->stacks.count : 0;
}

static void name_frames(struct timeline_private *p, const struct memory_build *all, struct site_build *site, const struct memory_stack *stack)
{
	site->out.frame_count = stack->count;
	for (uint32_t i = 0; i < stack->count; i++) {
		uint32_t name = name_of(p, all, stack, i);
		const struct name *from = &p->names.list.items[name];

		site->out.frames[i] = (struct memory_place){ strings_get(p->strings, from->name), strings_get(p->strings, from->file), stack->frames[i].line, p->export_function[name] };
	}
}

/* Of native allocations: by thread and moment, from the calls that were open then. */
static void find_stacks(struct timeline_private *p, struct memory_build *all)
{
	for (size_t i = 0; i < all->samples.count; i++) {
		struct memory_sample *sample = &all->samples.items[i];
		struct pending stack = { .native = true };

		if (!sample->native)
			continue;
		for (uint32_t node = syscalls_answer(p, sample->asked); node != NONE && p->nodes.items[node].function != NONE && stack.count < MEMORY_FRAMES_MAX; node = p->nodes.items[node].parent)
			if (p->names.list.items[p->nodes.items[node].function].kind == FUNCTION_PYTHON)
				stack.frames[stack.count++].ref = p->nodes.items[node].function;
		sample->stack = stack_of(p, all, sample->process, &stack);
		if (sample->stack == NONE)
			all->out.left_out++;
		else
			all->stacks.items[sample->stack].bytes += sample->weight;
	}
}

static uint32_t part_at(const struct memory_facts *facts, uint64_t start_ns, uint64_t at_ns)
{
	uint64_t part = at_ns > start_ns ? (at_ns - start_ns) / facts->part_ns : 0;

	return part < facts->part_count ? (uint32_t)part : facts->part_count - 1;
}

/* What was released is taken off where it was; whose end is not told is live in no part. */
static void find_parts(struct timeline_private *p, struct memory_build *all)
{
	struct memory_facts *out = &all->out;
	uint64_t start_ns = p->timeline.start_ns, count = p->timeline.duration_ns / MEMORY_PART_NS, live = 0;
	struct memory_part *parts;

	out->part_count = count > MEMORY_PARTS ? MEMORY_PARTS : count ? (uint32_t)count : 1;
	out->part_ns = (p->timeline.duration_ns + out->part_count - 1) / out->part_count + !p->timeline.duration_ns;
	parts = timeline_keep(p, out->part_count, sizeof *parts);
	if (!parts) {
		out->part_count = 0;
		return;
	}
	for (size_t i = 0; i < all->samples.count; i++) {
		const struct memory_sample *sample = &all->samples.items[i];
		uint32_t part = part_at(out, start_ns, sample->at_ns);

		parts[part].bytes += sample->weight;
		if (!sample->told)
			continue;
		parts[part].live_bytes += sample->weight;
		if (sample->end_ns)
			parts[part_at(out, start_ns, sample->end_ns)].live_bytes -= sample->weight; /* may go below zero until all is added up */
	}
	for (uint32_t i = 0; i < out->part_count; i++)
		parts[i].live_bytes = live += parts[i].live_bytes;
	out->parts = parts;
}

static int compare_sites(const void *left, const void *right)
{
	const struct memory_site *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	if (a->frame_count && b->frame_count && strcmp(a->frames[0].name, b->frames[0].name) != 0)
		return strcmp(a->frames[0].name, b->frames[0].name);
	return a->frames[0].line < b->frames[0].line ? -1 : a->frames[0].line > b->frames[0].line;
}

#define NOT_KNOWN "what was released is not known: "

static bool begins_with(const char *text, const char *beginning)
{
	return text && strncmp(text, beginning, strlen(beginning)) == 0;
}

/* The trace says how sampling ended; and where anything was lost, so may ends have been. */
static const char *ends_missing(const struct timeline *timeline)
{
	const struct timeline_quality *quality = &timeline->quality;
	const char *told = timeline_capture(timeline, "memory");

	if (quality->truncated || quality->damaged_chunks)
		return NOT_KNOWN "the trace is cut off, or damaged";
	if (quality->lost_events)
		return NOT_KNOWN "events were lost";
	if (begins_with(told, "cut"))
		return NOT_KNOWN "another tool changed the allocators";
	if ((told && !begins_with(told, "sampled")) || begins_with(timeline_capture(timeline, "memory.native"), "given up"))
		return NOT_KNOWN "allocations were not sampled to the end";
	if (timeline_counter(timeline, "memory_pauses", 0))
		return NOT_KNOWN "allocations were sampled for a part of the time (--max-overhead, --alternate)";
	return timeline_counter(timeline, "heap_ends_missed", 0) ? NOT_KNOWN "more threads released at the same moment than can be told" : NULL;
}

/* ---- what was allocated while nothing was sampled ---- */

static int compare_marks(const void *left, const void *right)
{
	const struct memory_mark *a = left, *b = right;

	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return (int)a->on - (int)b->on;
}

static bool tell_cpu(const struct memory_mark *marks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!marks[i].cpu_ns || (i && marks[i].cpu_ns < marks[i - 1].cpu_ns))
			return false;
	return true;
}

struct time_seen { double on_ns, all_ns; };

/*
 * The CPU time in which a process was sampled, and all of it, by the marks of one stream: a program that sleeps allocates nothing. By time where they don't tell that. Before
 * the first and after the last of them it ran as between, and what was before the first was sampled, unless that says otherwise.
 */
static struct time_seen time_seen(const struct memory_mark *marks, size_t count, uint64_t start_ns, uint64_t end_ns)
{
	const struct memory_mark *last = &marks[count - 1];
	bool by_cpu = tell_cpu(marks, count);
	double rate = by_cpu && last->at_ns > marks->at_ns ? (double)(last->cpu_ns - marks->cpu_ns) / (double)(last->at_ns - marks->at_ns) : 1;
	double before = (marks->on && !marks->off_ns) || marks->at_ns < start_ns ? 0 : (double)(marks->at_ns - start_ns) * rate, after = end_ns > last->at_ns ? (double)(end_ns - last->at_ns) * rate : 0;
	double on = marks->on ? 0 : before, whole = before + after;

	for (size_t i = 0; i < count; i++) {
		double passed = i + 1 < count ? (double)(marks[i + 1].at_ns - marks[i].at_ns) : 0, ran = i + 1 == count ? after : by_cpu ? (double)(marks[i + 1].cpu_ns - marks[i].cpu_ns) : passed;

		whole += i + 1 < count ? ran : 0;
		if (!marks[i].on)
			continue;
		if (i + 1 < count && marks[i + 1].on) /* its end was lost */
			ran *= passed > (double)marks[i + 1].off_ns ? 1 - (double)marks[i + 1].off_ns / passed : 0;
		on += ran;
	}
	return (struct time_seen){ on, whole > on ? whole : on };
}

/* All that was sampled stands for all since that began: of each process by itself. */
static void weigh(struct timeline_private *p, struct memory_build *all)
{
	uint64_t start_ns = p->timeline.start_ns, end_ns = start_ns + p->timeline.duration_ns;
	struct time_seen sums[2] = { 0 };

	if (all->marks.count)
		qsort(all->marks.items, all->marks.count, sizeof *all->marks.items, compare_marks);
	for (size_t i = 0, end; i < all->marks.count; i = end) {
		struct memory_mark *first = &all->marks.items[i];
		struct time_seen seen, *sum = &sums[first->stream & 1];

		for (end = i; end < all->marks.count && all->marks.items[end].stream == first->stream; end++)
			;
		seen = time_seen(first, end - i, start_ns, end_ns);
		first->factor = seen.on_ns > 0 ? seen.all_ns / seen.on_ns : 1;
		sum->on_ns += seen.on_ns;
		sum->all_ns += seen.all_ns;
	}
	for (int native = 0; native < 2; native++)
		all->out.seen_pct[native] = sums[native].on_ns > 0 ? 100 * sums[native].on_ns / sums[native].all_ns : 0;
}

/* For how many times itself a sample of it stands. */
static double factor_of(const struct memory_build *all, uint64_t stream)
{
	size_t first = search_first(all->marks.count, i, all->marks.items[i].stream < stream);

	return first < all->marks.count && all->marks.items[first].stream == stream ? all->marks.items[first].factor : 1;
}

static uint64_t scaled(uint64_t value, double factor)
{
	double product = (double)value * factor + 0.5;

	return product < (double)UINT64_MAX ? (uint64_t)product : UINT64_MAX;
}

/* What each sample stands for, and all sums so far. */
static void scale(struct timeline_private *p, struct memory_build *all)
{
	struct memory_site *sum = &all->out.all;

	weigh(p, all);
	for (size_t i = 0; i < all->samples.count && all->marks.count; i++) {
		struct memory_sample *sample = &all->samples.items[i];
		uint64_t before = sample->weight;

		sample->weight = scaled(before, factor_of(all, stream_of(sample->process, sample->native)));
		sum->bytes += sample->weight - before;
		sum->count += sample->bytes ? sample->weight / sample->bytes - before / sample->bytes : 0;
		if (!sample->native)
			all->stacks.items[sample->stack].bytes += sample->weight - before;
	}
}

void memory_build(struct timeline_private *p)
{
	struct memory_build *all = p->memory;
	uint64_t middle_ns = p->timeline.start_ns + p->timeline.duration_ns / 2;
	struct memory_site *sites;

	if (!all)
		return;
	scale(p, all);
	find_stacks(p, all);
	find_ends(all);
	for (size_t i = 0; i < all->samples.count; i++)
		if (all->samples.items[i].stack != NONE) {
			const struct memory_sample *sample = &all->samples.items[i];
			struct memory_stack *stack = &all->stacks.items[sample->stack];

			count_sample(&all->sites.items[stack->site].out, sample, middle_ns);
			stack->live_bytes += sample->told && !sample->end_ns ? sample->weight : 0;
		}
	for (size_t i = 0; i < all->stacks.count; i++) {
		struct site_build *site = &all->sites.items[all->stacks.items[i].site];

		if (site->heaviest == NONE || all->stacks.items[i].bytes > all->stacks.items[site->heaviest].bytes)
			site->heaviest = (uint32_t)i;
	}
	find_lifetimes(p, all);
	find_parts(p, all);
	sites = timeline_keep(p, all->sites.count, sizeof *sites);
	if (p->failed)
		return;
	for (size_t i = 0; i < all->sites.count; i++) {
		if (all->sites.items[i].heaviest != NONE)
			name_frames(p, all, &all->sites.items[i], &all->stacks.items[all->sites.items[i].heaviest]);
		sites[i] = all->sites.items[i].out;
		add_up(&all->out.all, &sites[i]);
	}
	qsort(sites, all->sites.count, sizeof *sites, compare_sites);
	build_paths(p, all);
	all->out.sites = sites;
	all->out.site_count = all->sites.count;
	all->out.ends_missing = all->moments_missing ? NOT_KNOWN "there are more allocations than are kept" : ends_missing(&p->timeline);
}

void memory_done_building(struct timeline_private *p)
{
	struct memory_build *all = p->memory;

	if (!all)
		return;
	list_done(&all->pending);
	list_done(&all->samples);
	list_done(&all->stacks);
	list_done(&all->marks);
	list_done(&all->sites);
	map_done(&all->by_lane);
	list_done(&all->moments);
	map_done(&all->by_frames);
	map_done(&all->by_place);
}

void memory_done(struct timeline_private *p)
{
	memory_done_building(p);
	free(p->memory);
}

const struct memory_facts *timeline_memory(const struct timeline *timeline)
{
	const struct memory_build *all = timeline->private_ ? timeline->private_->memory : NULL;

	return all ? &all->out : &nothing;
}
