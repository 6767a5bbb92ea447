/*
 * What samples saw, for programs that profile themselves: each distinct stack once, whichever thread had it, innermost frame first, with how often it was
 * seen and in which threads. Made of the same call tree as all else.
 */
#include <stdlib.h>
#include <string.h>

#include "report/stack_paths.h"

/* One stack of one thread. */
struct seen { uint32_t stack, thread /* UINT32_MAX: of whichever, that allocated */; uint64_t samples; };
struct sum { uint64_t samples, self_ns, instructions, memory_bytes; };

struct profile {
	const struct timeline *timeline;
	struct sink *sink;
	struct strings *stacks;
	struct seen *seen;      /* by stack, most samples first */
	struct sum *sums;       /* of each stack */
	size_t seen_count;
	const char *no_instructions, *no_memory; /* why they are not told, NULL: they are */
	struct text line, scratch;
};

static void add_memory(void *context, uint32_t stack, uint64_t live_bytes)
{
	struct profile *profile = context;

	profile->sums[stack].memory_bytes += live_bytes;
	profile->seen[profile->seen_count++] = (struct seen){ stack, UINT32_MAX, 0 };
}

static int collect(struct profile *profile, struct error *err)
{
	const struct timeline *timeline = profile->timeline;

	for (size_t i = 1; i < timeline->node_count; i++) {
		const struct tree_node *node = &timeline->nodes[i];
		uint32_t stack;

		if (!node->samples || node->thread >= timeline->thread_count)
			continue;
		stack = stack_path_add(profile->stacks, timeline, node);
		if (stack == UINT32_MAX)
			return fail(err, ERR_MEMORY, "writing samples");
		profile->sums[stack].samples += node->samples;
		profile->sums[stack].self_ns += node->estimated_self_ns;
		profile->sums[stack].instructions += node->instructions;
		profile->seen[profile->seen_count++] = (struct seen){ stack, node->thread, node->samples };
	}
	if (!profile->no_memory && !stack_paths_add_memory(profile->stacks, timeline, add_memory, profile))
		return fail(err, ERR_MEMORY, "writing samples");
	return 0;
}

static int most_first(const void *left, const void *right, void *context)
{
	const struct seen *a = left, *b = right;
	const struct sum *sums = context;

	if (sums[a->stack].samples != sums[b->stack].samples)
		return sums[a->stack].samples < sums[b->stack].samples ? 1 : -1;
	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	return a->thread < b->thread ? -1 : a->thread > b->thread;
}

static void add_string(struct text *line, const struct text *string)
{
	text_add_string(line, "\"");
	if (string->data)
		text_add_json(line, string->data, string->length);
	text_add_string(line, "\"");
}

static void add_frame(struct profile *profile, uint32_t function)
{
	struct text *line = &profile->line;

	text_add_string(line, "{\"symbol\":");
	export_name(profile->timeline, function, &profile->scratch);
	add_string(line, &profile->scratch);
	export_file(profile->timeline, function, &profile->scratch);
	if (profile->scratch.length) {
		text_add_string(line, ",\"file\":");
		add_string(line, &profile->scratch);
		if (profile->timeline->functions[function].line)
			text_printf(line, ",\"line\":%u", profile->timeline->functions[function].line);
	}
	text_add_string(line, "}");
}

static void add_number(struct text *line, const char *key, const char *why_not, uint64_t value)
{
	text_printf(line, "\"%s\":", key);
	if (why_not)
		text_add_string(line, "null,");
	else
		text_printf(line, "%llu,", (unsigned long long)value);
}

static void put_why(struct sink *sink, const char *key, const char *why)
{
	if (why)
		sink_printf(sink, "\"%s\":\"%s\",", key, why);
	else
		sink_printf(sink, "\"%s\":null,", key);
}

/* The rows of SEEN that are of one stack, a line. */
static size_t add_stack(struct profile *profile, size_t at)
{
	struct text *line = &profile->line;
	uint32_t stack = profile->seen[at].stack;
	struct stack_path path;

	stack_path_get(profile->stacks, stack, &path);
	text_clear(line);
	text_add_string(line, at ? ",\n{\"frames\":[" : "\n{\"frames\":[");
	for (uint32_t i = 0; i < path.count; i++) {
		text_add_string(line, i ? "," : "");
		add_frame(profile, path.functions[i]);
	}
	text_printf(line, "],\"cut\":%s,\"count\":%llu,\"time_ns\":%llu,", path.cut ? "true" : "false", (unsigned long long)profile->sums[stack].samples, (unsigned long long)profile->sums[stack].self_ns);
	add_number(line, "instructions", profile->no_instructions, profile->sums[stack].instructions);
	add_number(line, "memory_delta", profile->no_memory, profile->sums[stack].memory_bytes);
	text_add_string(line, "\"threads\":{");
	for (size_t first = at; at < profile->seen_count && profile->seen[at].stack == stack;) {
		uint32_t thread = profile->seen[at].thread;
		uint64_t samples = 0;

		if (thread == UINT32_MAX) { /* the last ones */
			at++;
			continue;
		}
		/* Stacks that were cut may be the same one from here on. */
		text_add_string(line, at == first ? "" : ",");
		for (; at < profile->seen_count && profile->seen[at].stack == stack && profile->seen[at].thread == thread; at++)
			samples += profile->seen[at].samples;
		text_printf(line, "\"%u\":%llu", profile->timeline->threads[thread].tid, (unsigned long long)samples);
	}
	text_add_string(line, "}}");
	sink_write(profile->sink, line->data, line->length);
	return at;
}

/* Which frames there are, and why no others. */
static void how_put(struct profile *profile)
{
	const char *how = timeline_capture(profile->timeline, "sampler");

	text_clear(&profile->line);
	text_add_string(&profile->line, "\"sampler\":\"");
	text_add_json(&profile->line, how ? how : "", how ? strlen(how) : 0);
	text_add_string(&profile->line, "\",\n");
	sink_write(profile->sink, profile->line.data, profile->line.length);
}

static int write_rows(struct profile *profile, struct error *err)
{
	uint64_t total = 0;

	if (collect(profile, err) < 0)
		return -1;
	qsort_r(profile->seen, profile->seen_count, sizeof *profile->seen, most_first, profile->sums);
	for (size_t i = 0; i < profile->seen_count; i++)
		total += profile->seen[i].samples;
	sink_printf(profile->sink, "{\"schema\":\"inferscope.profile/1\",\"elapsed_ns\":%llu,\"samples\":%llu,\"stacks_count\":%zu,\n", (unsigned long long)profile->timeline->duration_ns,
	            (unsigned long long)total, strings_count(profile->stacks) - 1);
	how_put(profile);
	put_why(profile->sink, "instructions_why", profile->no_instructions);
	put_why(profile->sink, "memory_why", profile->no_memory);
	sink_puts(profile->sink, "\"stacks\":[");
	for (size_t at = 0; at < profile->seen_count && !sink_failed(profile->sink) && !profile->line.failed && !profile->scratch.failed;)
		at = add_stack(profile, at);
	sink_puts(profile->sink, "\n]}\n");
	return profile->line.failed || profile->scratch.failed ? fail(err, ERR_MEMORY, "writing samples") : 0;
}

int write_profile(const struct report *report, struct sink *sink, struct error *err)
{
	size_t room = report->timeline->node_count + timeline_memory(report->timeline)->path_count + 1;
	struct profile profile = { .timeline = report->timeline, .sink = sink, .stacks = strings_new(), .seen = calloc(room, sizeof *profile.seen), .sums = calloc(room + 1, sizeof *profile.sums),
		.no_instructions = stacks_no_instructions(report->timeline), .no_memory = stacks_no_memory(report->timeline) };
	int result = -1;

	text_init(&profile.line);
	text_init(&profile.scratch);
	if (!profile.stacks || !profile.seen || !profile.sums)
		fail(err, ERR_MEMORY, "writing samples");
	else
		result = write_rows(&profile, err);
	strings_free(profile.stacks);
	free(profile.seen);
	free(profile.sums);
	text_done(&profile.line);
	text_done(&profile.scratch);
	return result;
}
