#include "cli/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ranks.h"
#include "report/job.h"

static bool job_takes(const char *format)
{
	return job_format_find(format) != NULL;
}

static const struct job_format *format_choose(const struct options *options, struct error *err)
{
	char name[OPTION_PART_BYTES];
	const struct job_format *format;

	format_wanted(options, job_takes, name);
	format = job_format_find(name);
	if (!format) {
		fail(err, ERR_OPTION_VALUE, "several traces cannot be reported as \"%.60s\"", name);
		fail_hint(err, "give text, md or json; analyze one trace alone for the other formats");
	}
	return format;
}

static int job_write(const struct options *options, const struct job_format *format, const struct job *job, struct error *err)
{
	const char *output = output_wanted(options, job_takes);
	struct sink *sink;

	if (sink_open_path(*output ? output : "-", options_flag(options, OPT_FORCE), &sink, err) < 0)
		return -1;
	if (format->write(job, sink, err) < 0) {
		sink_discard(sink);
		return -1;
	}
	return sink_commit(sink, err);
}

/* Lays the ranks side by side: clocks, then requests. */
static int job_align(struct rank *ranks, size_t count, const struct rank_side *sides, struct job *out, struct error *err)
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
	struct rank_side *sides = ranks && align ? calloc(count, sizeof *sides) : NULL;
	struct job job;
	int status = -1;

	memset(result, 0, sizeof *result);
	if (!format || output_apart(output_wanted(options, job_takes), paths, count, err) < 0)
		goto out;
	if (!ranks || count > RANKS_MAX || (align && !sides)) {
		fail(err, ERR_MEMORY, "analyzing %zu traces: more than there can be", count);
		goto out;
	}
	if (ranks_read(paths, count, options, ranks, sides, result, err) < 0)
		goto out;
	if (!sides)
		job_build(ranks, count, &job);
	else if (job_align(ranks, count, sides, &job, err) < 0)
		goto out;
	status = job_write(options, format, &job, err);
out:
	rank_sides_free(sides, count);
	free(ranks);
	return status;
}
