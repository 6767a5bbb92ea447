#include "report/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "report/document.h"
#include "report/quantity.h"

static double share(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : NAN;
}

static void add_pct(struct text *out, double value, const char *after)
{
	if (isnan(value))
		text_printf(out, "–%s", after);
	else
		text_printf(out, "%.1f %%%s", value, after);
}

static void add_rank(struct text *out, const struct job *job, size_t index, bool markdown)
{
	const struct rank *rank = &job->ranks[index];
	const char *between = markdown ? " | " : "  ";

	text_add_string(out, markdown ? "| " : "  ");
	(markdown ? text_add_markdown : text_add_visible)(out, rank->name, strlen(rank->name));
	text_printf(out, "%s%s%s", between, verdict_name(rank->class_), between);
	add_pct(out, share(rank->busy_ns, rank->duration_ns), between);
	add_pct(out, share(rank->computation_ns, rank->duration_ns), between);
	add_pct(out, share(rank->communication_ns, rank->duration_ns), between);
	add_pct(out, share(rank->overlap_ns, rank->communication_ns), between);
	text_printf(out, "%s%s\n", quantity_ns(rank->duration_ns, 0).text, markdown ? " |" : index == job->straggler ? "  straggler" : "");
}

static void add_head(struct text *out, const struct job *job)
{
	text_printf(out, "%zu ranks. ", job->count);
	if (isnan(job->imbalance_pct))
		text_add_string(out, "None of them used a device.\n");
	else
		text_printf(out, "The rank that computes least computes %.1f %% less than the one that computes most.\n", job->imbalance_pct);
	if (job->straggler != SIZE_MAX)
		text_printf(out, "%s is a straggler: it computes for %.1f %% longer than the median rank, and the others wait for it where they communicate.\n", job->ranks[job->straggler].name, job->straggler_pct);
	if (!isnan(job->communication_pct))
		text_printf(out, "Communication takes %.1f %% of the devices' busy time; %.1f %% of it is hidden behind computation.\n", job->communication_pct, job->overlap_pct);
}

static int write_words(const struct job *job, bool markdown, struct sink *sink, struct error *err)
{
	struct text out;
	bool failed;

	text_init(&out);
	text_add_string(&out, markdown ? "# InferScope report: one job\n\n" : "InferScope report: one job\n\n");
	add_head(&out, job);
	text_add_string(&out, markdown ? "\n| rank | verdict | busy | computes | communicates | of it hidden | captured |\n|---|---|---|---|---|---|---|\n" :
	                                 "\n  rank  verdict  busy  computes  communicates  of it hidden  captured\n");
	for (size_t i = 0; i < job->count; i++)
		add_rank(&out, job, i, markdown);
	for (size_t i = 0; i < job->count; i++)
		for (size_t j = 0; j < job->ranks[i].finding_count; j++) {
			text_printf(&out, "%s%s%s: %s: ", j || i ? "" : "\n", markdown ? "- " : "  ", job->ranks[i].name, severity_name(job->ranks[i].findings[j].severity));
			(markdown ? text_add_markdown : text_add_visible)(&out, job->ranks[i].findings[j].title, strlen(job->ranks[i].findings[j].title));
			text_printf(&out, " (%s)\n", job->ranks[i].findings[j].rule);
		}
	failed = out.failed;
	sink_write(sink, out.data ? out.data : "", out.length);
	text_done(&out);
	return failed ? fail(err, ERR_MEMORY, "writing the report of a job") : 0;
}

static int write_text_job(const struct job *job, struct sink *sink, struct error *err)
{
	return write_words(job, false, sink, err);
}

static int write_md_job(const struct job *job, struct sink *sink, struct error *err)
{
	return write_words(job, true, sink, err);
}

static void put_rank(struct json *json, cJSON *ranks, const struct rank *rank)
{
	cJSON *object = append_object(json, ranks), *findings;

	put_string(json, object, "name", rank->name);
	if (rank->number >= 0)
		put_i64(json, object, "rank", rank->number);
	else
		put(json, object, "rank", cJSON_CreateNull());
	put_string(json, object, "class", verdict_name(rank->class_));
	put_number(json, object, "confidence", rank->confidence, 3);
	put_us(json, object, "duration_us", rank->duration_ns);
	put_us(json, object, "busy_us", rank->busy_ns);
	put_us(json, object, "computation_us", rank->computation_ns);
	put_us(json, object, "communication_us", rank->communication_ns);
	put_us(json, object, "memory_us", rank->memory_ns);
	put_number(json, object, "comm_comp_overlap_pct", share(rank->overlap_ns, rank->communication_ns), 3);
	put_u64(json, object, "kernels_count", rank->kernels);
	put_idle_causes(json, put_object(json, object, "idle"), rank->idle_ns);
	findings = put_array(json, object, "findings");
	for (size_t i = 0; i < rank->finding_count; i++) {
		cJSON *row = append_object(json, findings);

		put_string(json, row, "rule", rank->findings[i].rule);
		put_string(json, row, "severity", severity_name(rank->findings[i].severity));
		put_string(json, row, "title", rank->findings[i].title);
	}
}

static int write_json_job(const struct job *job, struct sink *sink, struct error *err)
{
	struct json json = { .failed = false };
	cJSON *root = cJSON_CreateObject(), *ranks;

	put_string(&json, root, "schema", "inferscope.job/1");
	put_number(&json, root, "imbalance_pct", job->imbalance_pct, 3);
	put_string(&json, root, "straggler", job->straggler == SIZE_MAX ? NULL : job->ranks[job->straggler].name);
	put_number(&json, root, "straggler_pct", job->straggler_pct, 3);
	put_number(&json, root, "communication_pct", job->communication_pct, 3);
	put_number(&json, root, "comm_comp_overlap_pct", job->overlap_pct, 3);
	ranks = put_array(&json, root, "ranks");
	for (size_t i = 0; i < job->count && !json.failed; i++)
		put_rank(&json, ranks, &job->ranks[i]);
	return document_write(&json, root, sink, err);
}

const struct job_format *job_format_find(const char *name)
{
	static const struct job_format formats[] = { { "text", write_text_job }, { "md", write_md_job }, { "json", write_json_job } };
	const struct report_format *report = report_format_find(name);

	for (size_t i = 0; report && i < sizeof formats / sizeof *formats; i++)
		if (strcmp(formats[i].name, report->name) == 0)
			return &formats[i];
	return NULL;
}
