/* The table of formats. */
#include <string.h>
#include <strings.h>

#include "report/model.h"

static const struct report_format FORMATS[] = {
	{ "text", "txt", "for a terminal or a log", write_text },
	{ "md", "md", "Markdown, small enough for a comment on a pull request", write_md },
	{ "html", "html", "one self-contained page with time line and flame graph, no network", write_html },
	{ "json", "json", "everything, for programs: docs/schema/inferscope-report-1.schema.json", write_json },
	{ "events", "events.json", "every call and event with its times, as JSON", write_events },
	{ "perfetto", "pftrace", "every call on a time line, for ui.perfetto.dev", write_perfetto },
	{ "chrome", "chrome.json", "the same as JSON, for Perfetto, TensorBoard and tools that read PyTorch's traces", write_chrome },
	{ "speedscope", "speedscope.json", "flame graphs in speedscope", write_speedscope },
	{ "collapsed", "collapsed", "folded stacks, for flamegraph.pl and gprof2dot", write_collapsed },
	{ "pprof", "pb.gz", "for google/pprof and what reads its profiles", write_pprof },
	{ "otlp", "otlp.pb.gz", "profiles for OpenTelemetry's collectors (v1development)", write_otlp },
	{ "profile", "profile.json", "stacks with how often samples saw them, innermost frame first, as JSON", write_profile },
	{ "stacks", "stacks.csv", "stacks with their time, calls and samples, each once, as a table", write_stacks },
	{ "csv", "csv", "a table with the column names of nsys stats", write_csv },
};

static const struct { const char *alias, *name; } ALIASES[] = {
	{ "markdown", "md" }, { "txt", "text" }, { "log", "text" }, { "htm", "html" }, { "folded", "collapsed" }, { "perfetto-trace", "perfetto" },
};

const struct report_format *report_formats(size_t *count)
{
	*count = sizeof FORMATS / sizeof *FORMATS;
	return FORMATS;
}

const struct report_format *report_format_find(const char *name)
{
	for (size_t i = 0; i < sizeof ALIASES / sizeof *ALIASES; i++)
		if (!strcasecmp(name, ALIASES[i].alias))
			name = ALIASES[i].name;
	for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
		if (!strcasecmp(name, FORMATS[i].name) || !strcasecmp(name, FORMATS[i].extension))
			return &FORMATS[i];
	return NULL;
}

const struct report_format *report_format_of_path(const char *path)
{
	const char *name = strrchr(path, '/'), *dot;
	const struct report_format *found = NULL;
	size_t length, longest = 0;

	name = name ? name + 1 : path;
	length = strlen(name);
	/* "events.json" has two dots: the longest extension that fits. */
	for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++) {
		size_t extension = strlen(FORMATS[i].extension);

		if (extension <= longest || length <= extension + 1 || name[length - extension - 1] != '.' || strcasecmp(name + length - extension, FORMATS[i].extension) != 0)
			continue;
		found = &FORMATS[i];
		longest = extension;
	}
	if (found)
		return found;
	dot = strrchr(name, '.');
	return dot && dot[1] ? report_format_find(dot + 1) : NULL;
}
