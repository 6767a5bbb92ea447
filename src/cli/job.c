#include "cli/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/align.h"
#include "analyze/request_path.h"
#include "report/job.h"

static const struct job_format *format_choose(const struct options *options, struct error *err)
{
	const char *output = options_text(options, OPT_OUTPUT);
	const struct report_format *of_path = *output && strcmp(output, "-") != 0 ? report_format_of_path(output) : NULL;
	const struct job_format *format;
	char name[64] = "text";

	if (!options_list(options, OPT_FORMAT, 0, name, sizeof name) && of_path)
		snprintf(name, sizeof name, "%s", of_path->name);
	format = job_format_find(name);
	if (!format) {
		fail(err, ERR_OPTION_VALUE, "several traces cannot be reported as \"%.60s\"", name);
		fail_hint(err, "give text, md or json; analyze one trace alone for the other formats");
	}
	return format;
}

static int job_write(const struct options *options, const struct job_format *format, const struct job *job, struct error *err)
{
	const char *output = options_text(options, OPT_OUTPUT);
	struct sink *sink;

	if (sink_open_path(*output ? output : "-", options_flag(options, OPT_FORCE), &sink, err) < 0)
		return -1;
	if (format->write(job, sink, err) < 0) {
		sink_discard(sink);
		return -1;
	}
	return sink_commit(sink, err);
}

/* What is read of traces beside their ranks, to lay them side by side. */
struct side { struct clock_source clock; struct spans spans; };

static int side_read(const struct capture *capture, struct side *out, struct error *err)
{
	return clock_source_read(capture->timeline, capture->trace, &out->clock, err) < 0 ? -1 : spans_read(capture->timeline, capture->trace, &out->spans, err);
}

/* SIDE NULL: clocks are of no interest. */
static int rank_read(const char *path, const struct options *options, struct rank *out, struct side *side, struct present_result *result, struct error *err)
{
	struct capture capture = { 0 };
	int status = capture_open(path, options, &capture, err);

	if (status == 0) {
		rank_fill(capture.timeline, capture.analysis, path, out);
		present_judge(&capture, options, result);
		status = side ? side_read(&capture, side, err) : 0;
	}
	capture_close(&capture);
	return status;
}

/* Lays the ranks side by side: clocks, then requests. */
static int job_align(struct rank *ranks, size_t count, const struct side *sides, struct job *out, struct error *err)
{
	struct clock_source *clocks = calloc(count, sizeof *clocks);
	struct spans *spans = calloc(count, sizeof *spans);
	int result = -1;

	if (!clocks || !spans)
		fail(err, ERR_MEMORY, "laying %zu traces side by side", count);
	else {
		for (size_t i = 0; i < count; i++) {
			clocks[i] = sides[i].clock;
			spans[i] = sides[i].spans;
		}
		align_ranks(ranks, clocks, count);
		job_build(ranks, count, out);
		out->aligned = true;
		result = request_path_build(out, spans, err);
	}
	free(clocks);
	free(spans);
	return result;
}

int job_present(char *const *paths, size_t count, bool align, const struct options *options, struct present_result *result, struct error *err)
{
	const struct job_format *format = format_choose(options, err);
	struct rank *ranks = format ? calloc(count, sizeof *ranks) : NULL;
	struct side *sides = ranks && align ? calloc(count, sizeof *sides) : NULL;
	struct job job;
	int status = -1;

	memset(result, 0, sizeof *result);
	if (!format)
		return -1;
	if (!ranks || count > RANKS_MAX || (align && !sides)) {
		free(ranks);
		free(sides);
		return fail(err, ERR_MEMORY, "analyzing %zu traces: more than there can be", count);
	}
	for (size_t i = 0; i < count; i++) {
		if (rank_read(paths[i], options, &ranks[i], sides ? &sides[i] : NULL, result, err) < 0)
			goto out;
		ranks[i].source = i;
	}
	if (!sides)
		job_build(ranks, count, &job);
	else if (job_align(ranks, count, sides, &job, err) < 0)
		goto out;
	status = job_write(options, format, &job, err);
out:
	for (size_t i = 0; sides && i < count; i++) {
		list_done(&sides[i].clock.collectives);
		list_done(&sides[i].spans);
	}
	free(sides);
	free(ranks);
	return status;
}
