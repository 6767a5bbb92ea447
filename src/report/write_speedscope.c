/*
 * speedscope's JSON: a sampled profile for each thread, whose samples are the distinct stacks with their self time as weight. So its numbers are
 * those of the report, estimates included; in which order calls came is for the perfetto and chrome formats.
 */
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "report/export.h"

struct speedscope {
	const struct timeline *timeline;
	struct sink *sink;
	uint32_t *path;    /* functions of one stack */
	uint32_t *nodes;   /* with self time, thread by thread */
	size_t *starts;    /* where each thread's begin in it */
	struct text text, line;
};

static void add_string(struct text *line, const struct text *string)
{
	text_add(line, "\"", 1);
	if (string->data)
		text_add_json(line, string->data, string->length);
	text_add(line, "\"", 1);
}

static bool line_out(struct speedscope *all)
{
	if (!all->line.failed)
		sink_write(all->sink, all->line.data, all->line.length);
	return !all->line.failed && !all->text.failed && !sink_failed(all->sink);
}

static void write_frames(struct speedscope *all)
{
	for (uint32_t i = 0; i < all->timeline->function_count; i++) {
		text_clear(&all->line);
		text_add_string(&all->line, i ? ",\n{\"name\":" : "{\"name\":");
		export_name(all->timeline, i, &all->text);
		add_string(&all->line, &all->text);
		export_file(all->timeline, i, &all->text);
		if (all->text.length) {
			text_add_string(&all->line, ",\"file\":");
			add_string(&all->line, &all->text);
		}
		if (all->timeline->functions[i].line)
			text_printf(&all->line, ",\"line\":%u", all->timeline->functions[i].line);
		text_add_string(&all->line, "}");
		if (!line_out(all))
			return;
	}
}

/* Sorts the nodes that have self time by thread. */
static void sort_nodes(struct speedscope *all)
{
	const struct timeline *timeline = all->timeline;

	for (uint32_t i = 1; i < timeline->node_count; i++)
		if (timeline->nodes[i].estimated_self_ns && timeline->nodes[i].thread < timeline->thread_count)
			all->starts[timeline->nodes[i].thread + 1]++;
	for (size_t i = 1; i <= timeline->thread_count; i++)
		all->starts[i] += all->starts[i - 1];
	for (uint32_t i = 1; i < timeline->node_count; i++)
		if (timeline->nodes[i].estimated_self_ns && timeline->nodes[i].thread < timeline->thread_count)
			all->nodes[all->starts[timeline->nodes[i].thread]++] = i;
	for (size_t i = timeline->thread_count; i > 0; i--)
		all->starts[i] = all->starts[i - 1];
	all->starts[0] = 0;
}

static void write_stack(struct speedscope *all, uint32_t node, bool first)
{
	size_t depth = 0;

	text_clear(&all->line);
	text_add_string(&all->line, first ? "[" : ",\n[");
	for (; node; node = all->timeline->nodes[node].parent)
		all->path[depth++] = all->timeline->nodes[node].function;
	while (depth--)
		text_printf(&all->line, depth ? "%u," : "%u", all->path[depth]);
	text_add_string(&all->line, "]");
}

static bool write_thread(struct speedscope *all, uint32_t thread, bool first)
{
	uint64_t sum = 0;

	for (size_t i = all->starts[thread]; i < all->starts[thread + 1]; i++)
		sum += all->timeline->nodes[all->nodes[i]].estimated_self_ns;
	text_clear(&all->line);
	text_add_string(&all->line, first ? "{\"type\":\"sampled\",\"name\":" : ",\n{\"type\":\"sampled\",\"name\":");
	export_thread(all->timeline, thread, &all->text);
	add_string(&all->line, &all->text);
	text_printf(&all->line, ",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":%llu,\"samples\":[\n", (unsigned long long)sum);
	if (!line_out(all))
		return false;
	for (size_t i = all->starts[thread]; i < all->starts[thread + 1]; i++) {
		write_stack(all, all->nodes[i], i == all->starts[thread]);
		if (!line_out(all))
			return false;
	}
	sink_puts(all->sink, "],\"weights\":[\n");
	for (size_t i = all->starts[thread]; i < all->starts[thread + 1]; i++)
		sink_printf(all->sink, i == all->starts[thread] ? "%llu" : ",\n%llu", (unsigned long long)all->timeline->nodes[all->nodes[i]].estimated_self_ns);
	sink_puts(all->sink, "]}");
	return !sink_failed(all->sink);
}

static void write_head(struct speedscope *all, const struct report *report)
{
	text_clear(&all->line);
	text_add_string(&all->line, "{\"exporter\":\"inferscope@" PACKAGE_VERSION "\",\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":\"");
	export_process(report, 0, &all->text);
	text_add_json(&all->line, text_string(&all->text), all->text.length);
	export_quality(report, &all->text);
	text_add_string(&all->line, ": wall-clock self time; ");
	text_add_json(&all->line, text_string(&all->text), all->text.length);
	text_add_string(&all->line, "\",\"activeProfileIndex\":");
}

/* The thread with most self time is shown first. */
static size_t busiest_profile(const struct speedscope *all)
{
	uint64_t most = 0;
	size_t busiest = 0, profile = 0;

	for (size_t thread = 0; thread < all->timeline->thread_count; thread++) {
		uint64_t sum = 0;

		if (all->starts[thread] == all->starts[thread + 1])
			continue;
		for (size_t i = all->starts[thread]; i < all->starts[thread + 1]; i++)
			sum += all->timeline->nodes[all->nodes[i]].estimated_self_ns;
		if (sum > most) {
			most = sum;
			busiest = profile;
		}
		profile++;
	}
	return busiest;
}

static int write_all(struct speedscope *all, const struct report *report, struct error *err)
{
	bool first = true;

	sort_nodes(all);
	write_head(all, report);
	text_printf(&all->line, "%zu,\"shared\":{\"frames\":[\n", busiest_profile(all));
	line_out(all);
	write_frames(all);
	sink_puts(all->sink, "]},\"profiles\":[\n");
	for (uint32_t i = 0; i < all->timeline->thread_count; i++) {
		if (all->starts[i] == all->starts[i + 1])
			continue;
		if (!write_thread(all, i, first))
			break;
		first = false;
	}
	if (first) /* no profile at all is no valid file */
		sink_puts(all->sink, "{\"type\":\"sampled\",\"name\":\"no stacks were seen\",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":0,\"samples\":[],\"weights\":[]}");
	sink_puts(all->sink, "\n]}\n");
	return all->line.failed || all->text.failed ? fail(err, ERR_MEMORY, "writing the speedscope profile") : 0;
}

int write_speedscope(const struct report *report, struct sink *sink, struct error *err)
{
	const struct timeline *timeline = report->timeline;
	struct speedscope all = { .timeline = timeline, .sink = sink };
	int result = -1;

	all.path = calloc(timeline->node_count + 1, sizeof *all.path);
	all.nodes = calloc(timeline->node_count + 1, sizeof *all.nodes);
	all.starts = calloc(timeline->thread_count + 2, sizeof *all.starts);
	if (!all.path || !all.nodes || !all.starts)
		fail(err, ERR_MEMORY, "writing the speedscope profile");
	else
		result = write_all(&all, report, err);
	free(all.path);
	free(all.nodes);
	free(all.starts);
	text_done(&all.text);
	text_done(&all.line);
	return result;
}
