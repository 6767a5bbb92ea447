/* Sections of the device: why it had nothing to do and in which stacks, who asked for its work; and the latencies of requests. */
#include <string.h>

#include "report/html.h"

enum { IDLE_SHOWN = 20, SITES_SHOWN = 20, SCOPES_SHOWN = 50, FRAMES_SHOWN = 12, NAME_SHOWN = 56 };

const struct idle_cause HTML_IDLE_CAUSES[GPU_IDLE_CAUSES] = {
	[GPU_NO_DEMAND] = { "no demand", "#c3cad2", "", "nobody wanted anything: no request was open and the threads that drive the device had nothing to do" },
	[GPU_HOST_LATE] = { "host late", "#0072b2", "", "the program asked for the next work only after the device had finished what it had" },
	[GPU_SYNC_CAUSED] = { "sync caused", "#d55e00", "hatch", "the program waited for the device first, so that it could ask for the next work only afterwards" },
	[GPU_DEVICE_DEPENDENCY] = { "device dependency", "#cc79a7", "hatch", "the next work was asked for in time, but waited on the device for an event, another stream or its start" },
	[GPU_IDLE_UNKNOWN] = { "unknown", "#e4e4e4", "dots", "nobody knows who asked for the work that came next" },
};

static double share_pct(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_part(struct text *out, const char *colour, const char *pattern, const char *label, double pct)
{
	if (pct >= 0.05)
		text_printf(out, "<span class=\"%s\" style=\"width:%s%%;background-color:%s\" title=\"%s %s\">%s</span>", pattern, quantity_plain(pct, 2).text, colour, label, quantity_pct(pct, 0).text, pct >= 9 ? label : "");
}

static void add_device(struct text *out, const struct device *device, uint64_t duration_ns)
{
	text_printf(out, "<h3 class=\"sub\">GPU %u", device->id);
	if (device->name[0]) {
		text_add_string(out, " (");
		html_add_name(out, device->name, NAME_SHOWN);
		if (device->instance[0]) {
			text_add_string(out, ", MIG ");
			html_add_name(out, device->instance, NAME_SHOWN);
		}
		text_add_string(out, ")");
	}
	text_printf(out, ": busy %s%s</h3><div class=\"stack\" role=\"img\" aria-label=\"busy %s", device->cut ? "at least " : "", quantity_pct(share_pct(device->busy_ns, duration_ns), 0).text, quantity_pct(share_pct(device->busy_ns, duration_ns), 0).text);
	for (size_t cause = 0; cause < GPU_IDLE_CAUSES; cause++)
		text_printf(out, ", idle, %s %s", HTML_IDLE_CAUSES[cause].label, quantity_pct(share_pct(device->idle_ns[cause], duration_ns), 0).text);
	text_add_string(out, "\">");
	add_part(out, "#009e73", "", "busy", share_pct(device->busy_ns, duration_ns));
	for (size_t cause = 0; cause < GPU_IDLE_CAUSES; cause++)
		add_part(out, HTML_IDLE_CAUSES[cause].colour, HTML_IDLE_CAUSES[cause].pattern, HTML_IDLE_CAUSES[cause].label, share_pct(device->idle_ns[cause], duration_ns));
	text_add_string(out, "</div><ul class=\"legend\">");
	for (size_t cause = 0; cause < GPU_IDLE_CAUSES; cause++)
		if (device->idle_ns[cause])
			text_printf(out, "<li title=\"%s\"><span class=\"key %s\" style=\"background-color:%s\"></span>%s<b>%s</b></li>", HTML_IDLE_CAUSES[cause].meaning, HTML_IDLE_CAUSES[cause].pattern, HTML_IDLE_CAUSES[cause].colour, HTML_IDLE_CAUSES[cause].label,
				    quantity_ns(device->idle_ns[cause], 0).text);
	text_add_string(out, "</ul>\n");
}

/* The stack, outermost first, one frame a line; its innermost function is what the cell shows. */
static void add_stack(struct text *out, const struct timeline *timeline, uint32_t node)
{
	uint32_t path[FRAMES_SHOWN], depth = 0;
	const struct function *function;

	if (node >= timeline->node_count || timeline->nodes[node].function >= timeline->function_count) {
		text_add_string(out, "<span class=\"soft\">no call was seen</span>");
		return;
	}
	function = &timeline->functions[timeline->nodes[node].function];
	html_add_name(out, function->name, NAME_SHOWN);
	html_add_place(out, function->file, function->line, NAME_SHOWN);
	for (uint32_t at = timeline->nodes[node].parent; at && at < timeline->node_count && depth < FRAMES_SHOWN; at = timeline->nodes[at].parent)
		path[depth++] = at;
	if (!depth)
		return;
	text_add_string(out, "<details class=\"callers\"><summary>called by</summary>");
	for (uint32_t i = 0; i < depth; i++) {
		uint32_t caller = timeline->nodes[path[i]].function;

		if (caller < timeline->function_count)
			html_add_name(out, timeline->functions[caller].name, NAME_SHOWN);
		text_add_string(out, "<br>");
	}
	text_add_string(out, depth == FRAMES_SHOWN ? "…</details>" : "</details>");
}

static void add_idle_stack(struct text *out, const struct timeline *timeline, const struct gpu_idle_stack *stack, uint64_t idle_ns)
{
	text_printf(out, "<tr><td class=\"nb\" title=\"%s\"><span class=\"key %s\" style=\"background-color:%s\"></span> %s</td><td class=\"fn\">", HTML_IDLE_CAUSES[stack->cause].meaning, HTML_IDLE_CAUSES[stack->cause].pattern, HTML_IDLE_CAUSES[stack->cause].colour, HTML_IDLE_CAUSES[stack->cause].label);
	add_stack(out, timeline, stack->node);
	text_add_string(out, "</td>");
	html_add_number(out, (double)stack->time_ns, quantity_ns(stack->time_ns, 0), true);
	html_add_number(out, share_pct(stack->time_ns, idle_ns), quantity_pct(share_pct(stack->time_ns, idle_ns), 0), false);
	html_add_number(out, (double)stack->count, quantity_count(stack->count, 0), false);
	html_add_number(out, (double)stack->p50_ns, quantity_ns(stack->p50_ns, 0), false);
	text_printf(out, "<td class=\"n\" data-v=\"%llu\">", (unsigned long long)stack->longest_ns);
	html_add_range(out, stack->longest_at_ns, stack->longest_ns);
	text_add_string(out, "</td></tr>\n");
}

void html_add_idle(struct text *out, const struct report *report)
{
	const struct timeline *timeline = report->timeline;
	uint64_t idle_ns = 0;

	if (!timeline->device_count)
		return;
	text_add_string(out, "<section id=\"idle\"><h2>Why the GPU had nothing to do<small>gaps between its work, and where the thread that asked for the next work stood meanwhile</small></h2>");
	text_add_string(out, "<div class=\"whole\">");
	for (size_t i = 0; i < timeline->device_count && i < 16; i++)
		add_device(out, &timeline->devices[i], timeline->duration_ns);
	text_add_string(out, "</div>");
	for (size_t i = 0; i < timeline->device_count; i++)
		for (size_t cause = 0; cause < GPU_IDLE_CAUSES; cause++)
			idle_ns += timeline->devices[i].idle_ns[cause];
	if (timeline->gpu.idle_stack_count) {
		html_begin_table(out, "Why the GPU had nothing to do", "<th scope=\"col\">Cause</th><th scope=\"col\">The thread stood in</th><th scope=\"col\" class=\"n\">Idle</th><th scope=\"col\" class=\"n\">Of all idle</th><th scope=\"col\" class=\"n\">Gaps</th>"
				 "<th scope=\"col\" class=\"n\">p50</th><th scope=\"col\" class=\"n\">Longest</th>");
		for (size_t i = 0; i < timeline->gpu.idle_stack_count && i < IDLE_SHOWN; i++)
			add_idle_stack(out, timeline, &timeline->gpu.idle_stacks[i], idle_ns);
		html_end_table(out, timeline->gpu.idle_stack_count, IDLE_SHOWN);
	}
	text_add_string(out, "</section>\n");
}

static void add_site(struct text *out, const struct timeline *timeline, const struct gpu_site *site)
{
	const struct function *function = site->function < timeline->function_count ? &timeline->functions[site->function] : NULL;

	text_printf(out, "<tr><td class=\"nb\">%s</td><td class=\"fn\">", GPU_CALL_LABELS[site->class_]);
	if (function) {
		html_add_name(out, function->name, NAME_SHOWN);
		html_add_place(out, function->file, function->line, NAME_SHOWN);
	} else {
		text_add_string(out, "<span class=\"soft\">no call was seen</span>");
	}
	text_add_string(out, "</td>");
	html_add_number(out, (double)site->count, quantity_count(site->count, 0), false);
	html_add_number(out, (double)site->time_ns, quantity_ns(site->time_ns, 0), true);
	html_add_number(out, (double)site->blocked_ns, quantity_ns(site->blocked_ns, 0), false);
	html_add_number(out, (double)site->gpu_ns, quantity_ns(site->gpu_ns, 0), false);
	html_add_number(out, (double)site->bytes, quantity_bytes(site->bytes, 0), false);
	text_add_string(out, "</tr>\n");
}

void html_add_sites(struct text *out, const struct report *report)
{
	const struct gpu_facts *gpu = &report->timeline->gpu;

	if (!gpu->site_count)
		return;
	text_printf(out, "<section id=\"sites\"><h2>Who calls the GPU<small>%s kernels, by the Python function that made the call</small></h2>", quantity_count(gpu->count[GPU_COMPUTATION] + gpu->count[GPU_COMMUNICATION], 0).text);
	html_begin_table(out, "Who calls the GPU", "<th scope=\"col\">Call</th><th scope=\"col\">In</th><th scope=\"col\" class=\"n\">Calls</th><th scope=\"col\" class=\"n\">Host time</th><th scope=\"col\" class=\"n\">Blocked</th><th scope=\"col\" class=\"n\">GPU time</th>"
			 "<th scope=\"col\" class=\"n\">Copied</th>");
	for (size_t i = 0; i < gpu->site_count && i < SITES_SHOWN; i++)
		add_site(out, report->timeline, &gpu->sites[i]);
	html_end_table(out, gpu->site_count, SITES_SHOWN);
	text_add_string(out, "</section>\n");
}

void html_add_requests(struct text *out, const struct report *report)
{
	const struct timeline *timeline = report->timeline;

	bool estimated = false;

	if (!timeline->scope_count)
		return;
	text_add_string(out, "<section id=\"requests\"><h2>Requests<small>what the program marks with scope(), and calls of --scope</small></h2>");
	html_begin_table(out, "Requests", "<th scope=\"col\">Scope</th><th scope=\"col\" class=\"n\">n</th><th scope=\"col\" class=\"n\">p50</th><th scope=\"col\" class=\"n\">p95</th><th scope=\"col\" class=\"n\">p99</th><th scope=\"col\" class=\"n\">Longest</th>"
			 "<th scope=\"col\" class=\"n\">Open</th>");
	for (size_t i = 0; i < timeline->scope_count && i < SCOPES_SHOWN; i++) {
		const struct scope_latency *scope = &timeline->scopes[i];

		text_add_string(out, "<tr><td class=\"fn\">");
		html_add_name(out, scope->name, NAME_SHOWN);
		text_add_string(out, "</td>");
		html_add_number(out, (double)scope->all_count, quantity_count(scope->all_count, scope->estimated ? QUANTITY_ABOUT : 0), false);
		html_add_number(out, (double)scope->p50_ns, quantity_ns(scope->p50_ns, 0), true);
		html_add_number(out, (double)scope->p95_ns, quantity_ns(scope->p95_ns, 0), false);
		html_add_number(out, (double)scope->p99_ns, quantity_ns(scope->p99_ns, scope->count < 100 ? QUANTITY_ABOUT : 0), false);
		html_add_number(out, (double)scope->max_ns, quantity_ns(scope->max_ns, 0), false);
		html_add_number(out, share_pct(scope->open_ns, timeline->duration_ns), quantity_pct(share_pct(scope->open_ns, timeline->duration_ns), scope->estimated ? QUANTITY_ABOUT : 0), false);
		estimated |= scope->estimated;
		text_add_string(out, "</tr>\n");
	}
	html_end_table(out, timeline->scope_count, SCOPES_SHOWN);
	text_add_string(out, "<p class=\"soft small\">A p99 with ~ is of fewer than 100: one slow request decides it.");
	text_add_string(out, estimated ? " An n with ~ is an estimate: hooks were off for a part of the time. Latencies are of calls that were seen from beginning to end, and long ones are seen more seldom." : "");
	text_add_string(out, "</p><div id=\"latency\"></div></section>\n");
}
