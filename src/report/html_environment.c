/* The last sections: what was measured where and how, all metrics and counters, what the words mean. */
#include <math.h>

#include "report/html.h"

static void add_row(struct text *out, const char *key, const char *value)
{
	text_add_string(out, "<tr><td>");
	html_add(out, key, 60, 0);
	text_add_string(out, "</td><td><code>");
	html_add(out, value, 500, NAME_HEAD);
	text_add_string(out, "</code></td></tr>");
}

void html_add_environment(struct text *out, const struct report *report)
{
	const struct timeline *timeline = report->timeline;

	text_add_string(out, "<section id=\"environment\"><h2>Environment</h2><div class=\"scroll\"><table><tbody>");
	for (size_t i = 0; i < timeline->process_count && i < 20; i++) {
		const struct process *process = &timeline->processes[i];
		struct text line;

		text_init(&line);
		text_printf(&line, "%u", process->pid);
		add_row(out, "process", text_string(&line));
		add_row(out, "command", process->command ? process->command : "");
		add_row(out, "executable", process->executable ? process->executable : "");
		if (process->timed) {
			text_clear(&line);
			text_printf(&line, "%s user, %s system", quantity_ns(process->user_ns, 0).text, quantity_ns(process->system_ns, 0).text);
			add_row(out, "CPU time", text_string(&line));
			text_clear(&line);
			text_printf(&line, "%s, at most %s", quantity_bytes(process->rss_last_bytes, 0).text, quantity_bytes(process->rss_max_bytes, 0).text);
			add_row(out, "memory", text_string(&line));
		}
		text_end(&line, out);
	}
	if (*report->started)
		add_row(out, "captured from", report->started);
	for (size_t i = 0; i < timeline->capture_count && i < 100; i++)
		add_row(out, timeline->captures[i].key, timeline->captures[i].value);
	text_add_string(out, "</tbody></table></div>");
	if (report->analysis->metric_count) {
		text_printf(out, "<details class=\"more\"><summary>All %zu metrics</summary><div class=\"scroll\"><table><tbody>", report->analysis->metric_count);
		for (size_t i = 0; i < report->analysis->metric_count && i < 500; i++) {
			const struct metric *metric = &report->analysis->metrics[i];

			text_add_string(out, "<tr><td><code>");
			html_add(out, metric->name, 80, 0);
			text_printf(out, "</code></td><td class=\"n\">%s</td><td class=\"soft\">", quantity_of(metric->value, metric->unit, 0).text);
			if (!isfinite(metric->value) && metric->why)
				html_add(out, metric->why, 200, NAME_HEAD);
			text_add_string(out, "</td></tr>");
		}
		text_add_string(out, "</tbody></table></div></details>");
	}
	if (timeline->counter_count) {
		text_printf(out, "<details class=\"more\"><summary>All %zu counters</summary><div class=\"scroll\"><table><tbody>", timeline->counter_count);
		for (size_t i = 0; i < timeline->counter_count && i < 500; i++) {
			text_add_string(out, "<tr><td><code>");
			html_add(out, timeline->counters[i].name, 80, 0);
			text_printf(out, "</code></td><td class=\"n\">%lld</td></tr>", (long long)timeline->counters[i].last);
		}
		text_add_string(out, "</tbody></table></div></details>");
	}
	text_add_string(out, "<h3 class=\"sub\">Measure again</h3><code class=\"again\">");
	html_add(out, report->reproduce, 1000, NAME_HEAD);
	text_add_string(out, "</code></section>\n");
}

void html_add_glossary(struct text *out)
{
	text_add_string(out, "<section id=\"words\"><h2>Glossary</h2><dl class=\"words\">");
	for (size_t i = 0; i < TERM_COUNT; i++)
		text_printf(out, "<dt>%s</dt><dd>%s</dd>", TERMS[i].word, TERMS[i].meaning);
	for (size_t i = 0; i < PART_COUNT; i++)
		text_printf(out, "<dt>%s</dt><dd>%s</dd>", PARTS[i].label, PARTS[i].meaning);
	text_add_string(out, "</dl></section>\n");
}
