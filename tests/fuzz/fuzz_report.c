/*
 * Any text as the dump of a trace, told in every form: as reports, compared with a second one, as two ranks of one job. A form feed parts the two
 * traces. libFuzzer gets one of the forms, by the text's length, or it would be slow. What programs read must be JSON, and no form may hold what is not UTF-8 or would steer a terminal.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "analyze/align.h"
#include "analyze/request_path.h"
#include "base/text.h"
#include "report/diff.h"
#include "report/job.h"
#include "report/report.h"
#include "tests/fuzz/rules.h"
#include "trace/dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct side { void *bytes; struct trace *trace; struct timeline *timeline; struct analysis *analysis; };

static bool is_json(const char *name)
{
	static const char *const names[] = { "json", "events", "chrome", "speedscope", "profile" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static bool is_binary(const char *name)
{
	return !strcmp(name, "perfetto") || !strcmp(name, "pprof") || !strcmp(name, "otlp");
}

/* The length of the character at AT, 0: it is none. */
static size_t character(const unsigned char *at, size_t left)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length = *at < 0x80 ? 1 : *at >= 0xc2 && *at < 0xe0 ? 2 : *at >= 0xe0 && *at < 0xf0 ? 3 : *at >= 0xf0 && *at < 0xf5 ? 4 : 0;
	uint32_t code = length < 2 ? *at : *at & (0x7fu >> length);

	if (!length || length > left)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3f);
	}
	return code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || (code < 32 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0) ? 0 : length;
}

static void check(const char *name, const struct text *text)
{
	const unsigned char *bytes = (const unsigned char *)text->data;
	size_t length;
	cJSON *json;

	for (size_t at = 0; at < text->length && !is_binary(name); at += length) {
		length = character(bytes + at, text->length - at);
		if (!length)
			abort();
	}
	if (!is_json(name))
		return;
	json = cJSON_ParseWithLength(text->data, text->length);
	if (!json)
		abort();
	cJSON_Delete(json);
}

static struct sink *begin(struct text *text)
{
	struct sink *sink;
	struct error err;

	text_init(text);
	if (sink_open_text(text, &sink, &err) < 0)
		abort();
	return sink;
}

static void end(const char *name, struct sink *sink, struct text *text)
{
	struct error err;

	if (sink_commit(sink, &err) < 0)
		abort();
	check(name, text);
	text_done(text);
}

static void write_report(const struct side *side, const struct report_format *format)
{
	const struct report_options options = { .unicode = true, .max_report_mb = 1 };
	struct report *report;
	struct sink *sink;
	struct error err;
	struct text text;

	if (trace_rewind(side->trace, &err) < 0 || report_build(side->timeline, side->analysis, side->trace, &options, &report, &err) < 0)
		abort();
	sink = begin(&text);
	if (format->write(report, sink, &err) < 0)
		abort();
	end(format->name, sink, &text);
	sink = begin(&text);
	if (report_summary(report, sink, &err) < 0)
		abort();
	end("text", sink, &text);
	report_free(report);
}

static void write_diff(const struct side *sides, const char *name)
{
	struct diff_view view = { .before = { sides[0].timeline, sides[0].analysis, sides[0].trace, "before" }, .after = { sides[1].timeline, sides[1].analysis, sides[1].trace, "after" } };
	struct diff *diff;
	struct sink *sink;
	struct error err;
	struct text text;

	if (trace_rewind(sides[0].trace, &err) < 0 || trace_rewind(sides[1].trace, &err) < 0 || diff_build(&view.before, &view.after, &diff, &err) < 0)
		abort();
	view.diff = diff;
	sink = begin(&text);
	if (diff_format_find(name)->write(&view, sink, &err) < 0)
		abort();
	end(name, sink, &text);
	diff_free(diff);
}

static void write_job(const struct side *sides, const char *name)
{
	struct clock_source clocks[2] = { 0 };
	struct spans spans[2] = { 0 };
	struct rank ranks[2] = { 0 };
	struct sink *sink;
	struct error err;
	struct text text;
	struct job job;

	for (size_t i = 0; i < 2; i++) {
		rank_fill(sides[i].timeline, sides[i].analysis, "fuzz", &ranks[i]);
		ranks[i].source = i;
		if (trace_rewind(sides[i].trace, &err) < 0 || clock_source_read(sides[i].timeline, sides[i].trace, &clocks[i], &err) < 0
		    || trace_rewind(sides[i].trace, &err) < 0 || spans_read(sides[i].timeline, sides[i].trace, &spans[i], &err) < 0)
			abort();
	}
	align_ranks(ranks, clocks, 2);
	job_build(ranks, 2, &job);
	job.aligned = true;
	if (request_path_build(&job, spans, &err) < 0)
		abort();
	sink = begin(&text);
	if (job_format_find(name)->write(&job, sink, &err) < 0)
		abort();
	end(name, sink, &text);
	for (size_t i = 0; i < 2; i++) {
		list_done(&clocks[i].collectives);
		list_done(&spans[i]);
	}
}

static void write_forms(const struct side *sides, size_t size)
{
	static const char *const diffs[] = { "text", "md", "html", "json" }, *const jobs[] = { "text", "md", "json" };
	enum { DIFFS = sizeof diffs / sizeof *diffs, JOBS = sizeof jobs / sizeof *jobs };
	const struct report_format *formats;
	size_t count, first = 0, last;

	formats = report_formats(&count);
	last = count + DIFFS + JOBS;
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	first = size % last;
	last = first + 1;
#else
	(void)size;
#endif
	for (size_t form = first; form < last; form++) {
		if (form < count)
			write_report(sides, &formats[form]);
		else if (form < count + DIFFS)
			write_diff(sides, diffs[form - count]);
		else
			write_job(sides, jobs[form - count - DIFFS]);
	}
}

static bool side_open(const char *text, struct side *out)
{
	struct error err;
	size_t length;

	if (trace_assemble_memory(text, &out->bytes, &length, &err) < 0)
		return false;
	if (trace_open_memory(out->bytes, length, &out->trace, &err) < 0 || timeline_build(out->trace, &out->timeline, &err) < 0 || analysis_build_with(out->timeline, fuzz_rules(), NULL, 0, &out->analysis, &err) < 0)
		abort();
	return true;
}

static void side_close(struct side *side)
{
	analysis_free(side->analysis);
	timeline_free(side->timeline);
	trace_close(side->trace);
	free(side->bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct side sides[2] = { 0 };
	char *text, *second;

	text = strndup((const char *)data, size);
	if (!text)
		return 0;
	second = strchr(text, '\f');
	if (second)
		*second++ = '\0';
	if (side_open(text, &sides[0]) && (!second || side_open(second, &sides[1])))
		write_forms(second ? sides : (struct side[2]){ sides[0], sides[0] }, size);
	side_close(&sides[1]);
	side_close(&sides[0]);
	free(text);
	return 0;
}
