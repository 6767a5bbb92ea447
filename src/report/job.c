#include "report/job.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "report/name.h"
#include "report/quantity.h"
#include "report/report.h"

enum { NAME_SHOWN = 200, COLUMNS_MOST = 8 };

static void add_foreign(struct text *out, const char *name, bool markdown)
{
	name_add_prose(out, name, NAME_SHOWN, 0, markdown);
}

static struct quantity distance(int64_t ns)
{
	return quantity_ns(ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns, 0);
}

double job_share_pct(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : NAN;
}

/* The columns of ranks that used devices; of processes that did not, what their threads did. A share is of two times of the rank, in ns. */
enum column_form { COLUMN_NAME, COLUMN_VERDICT, COLUMN_SHARE, COLUMN_CPU /* the same where the clocks were read */, COLUMN_OVERHEAD, COLUMN_HOTTEST, COLUMN_DURATION };
struct column { const char *title; enum column_form form; uint16_t part, whole; };
#define SHARE(part, whole) COLUMN_SHARE, offsetof(struct rank, part), offsetof(struct rank, whole)
static const struct column RANK_COLUMNS[] = {
	{ "rank", COLUMN_NAME, 0, 0 }, { "verdict", COLUMN_VERDICT, 0, 0 }, { "busy", SHARE(busy_ns, duration_ns) }, { "computes", SHARE(computation_ns, duration_ns) },
	{ "communicates", SHARE(communication_ns, duration_ns) }, { "of it hidden", SHARE(overlap_ns, communication_ns) }, { "captured", COLUMN_DURATION, 0, 0 }, { NULL, COLUMN_NAME, 0, 0 },
};
static const struct column PROCESS_COLUMNS[] = {
	{ "process", COLUMN_NAME, 0, 0 }, { "verdict", COLUMN_VERDICT, 0, 0 }, { "CPU", COLUMN_CPU, offsetof(struct rank, cpu_ns), offsetof(struct rank, duration_ns) }, { "Python", SHARE(python_ns, duration_ns) }, { "native", SHARE(native_ns, duration_ns) },
	{ "waits for the GIL", SHARE(gil_wait_ns, duration_ns) }, { "caused by measuring", COLUMN_OVERHEAD, 0, 0 }, { "most CPU time of its own", COLUMN_HOTTEST, 0, 0 }, { NULL, COLUMN_NAME, 0, 0 },
};
#undef SHARE

static void add_pct(struct text *out, double value)
{
	if (isnan(value))
		text_add_string(out, "–");
	else
		text_printf(out, "%.1f %%", value);
}

static void add_cell(struct text *out, const struct rank *rank, const struct column *column, bool markdown)
{
	switch (column->form) {
	case COLUMN_NAME:
		add_foreign(out, rank->name, markdown);
		break;
	case COLUMN_VERDICT:
		text_add_string(out, verdict_label(rank->class_));
		break;
	case COLUMN_CPU:
		if (!rank->clocked) {
			add_pct(out, NAN);
			break;
		}
		/* fall through */
	case COLUMN_SHARE:
		add_pct(out, job_share_pct(*(const uint64_t *)((const char *)rank + column->part), *(const uint64_t *)((const char *)rank + column->whole)));
		break;
	case COLUMN_OVERHEAD:
		add_pct(out, rank->overhead_pct);
		break;
	case COLUMN_HOTTEST:
		if (*rank->hottest) {
			add_foreign(out, rank->hottest, markdown);
			text_printf(out, " %s", quantity_pct(rank->hottest_pct, 0).text);
		} else {
			text_add_string(out, "–");
		}
		break;
	case COLUMN_DURATION:
		text_add_string(out, quantity_ns(rank->duration_ns, 0).text);
	}
}

static bool uses_devices(const struct job *job)
{
	for (size_t i = 0; i < job->count; i++)
		if (job->ranks[i].busy_ns)
			return true;
	return false;
}

static void add_launcher(struct text *out, const struct job *job, bool markdown)
{
	const struct rank *launcher = &job->ranks[job->launcher];
	size_t told = 0;

	add_foreign(out, launcher->name, markdown);
	text_add_string(out, " only waits; the work is done by the processes that it started:");
	for (size_t i = 0; i < job->count && told < 5; i++) {
		const struct rank *rank = &job->ranks[i];

		if (rank->parent != launcher->pid || strcmp(rank->host, launcher->host) != 0)
			continue;
		text_add_string(out, told++ ? ", " : " ");
		add_foreign(out, rank->name, markdown);
		text_printf(out, " (%s of a CPU)", quantity_pct(job_share_pct(rank->cpu_ns, rank->duration_ns), 0).text);
	}
	text_add_string(out, ".\n");
}

static void add_straggler(struct text *out, const struct job *job, bool markdown)
{
	add_foreign(out, job->ranks[job->straggler].name, markdown);
	text_printf(out, " is a straggler: it computes for %.1f %% longer than the median rank%s.\n", job->straggler_pct,
	            job->ranks[job->straggler].communication_ns ? ", and the others wait for it where they communicate" : "");
}

static void add_head(struct text *out, const struct job *job, bool markdown)
{
	bool devices = uses_devices(job);

	text_printf(out, "%zu %s%s%s", job->count, devices ? "rank" : "process", job->count == 1 ? "" : devices ? "s" : "es", isnan(job->cpus) ? ". " : "");
	if (!isnan(job->cpus))
		text_printf(out, ", which used %.2f CPUs together. ", job->cpus);
	if (!devices)
		text_add_string(out, "None of them used a device.\n");
	else if (!job->computing)
		text_add_string(out, "None of them computes on a device.\n");
	else if (job->computing == 1)
		text_add_string(out, "1 computes on a device.\n");
	else if (job->computing == job->count)
		text_printf(out, "The rank that computes least computes %.1f %% less than the one that computes most.\n", job->imbalance_pct);
	else
		text_printf(out, "Of the %zu that work on a device, the one that computes least computes %.1f %% less than the one that computes most.\n", job->computing, job->imbalance_pct);
	if (job->launcher != SIZE_MAX)
		add_launcher(out, job, markdown);
	if (job->straggler != SIZE_MAX)
		add_straggler(out, job, markdown);
	if (!isnan(job->communication_pct))
		text_printf(out, "Communication takes %.1f %% of the devices' busy time; %.1f %% of it is hidden behind computation.\n", job->communication_pct, job->overlap_pct);
}

/* ---- the table ---- */

/* Numbers stand at the right of their column. */
static bool is_number(const struct column *column)
{
	return column->form == COLUMN_SHARE || column->form == COLUMN_OVERHEAD || column->form == COLUMN_DURATION;
}

/* One cell of a line; a text's is as WIDE as its column, but for the last one's. */
static void put_cell(struct text *out, const struct column *column, const char *cell, size_t wide, bool markdown)
{
	size_t used = name_columns(cell, strlen(cell)), gap = wide > used ? wide - used : 0;
	bool last = !column[1].title;

	if (markdown)
		text_printf(out, "| %s %s", cell, last ? "|\n" : "");
	else
		text_printf(out, "  %*s%s%*s", is_number(column) ? (int)gap : 0, "", cell, is_number(column) || last ? 0 : (int)gap, "");
}

static void put_titles(struct text *out, const struct column *columns, const size_t *wide, bool markdown)
{
	text_add_string(out, "\n");
	for (size_t i = 0; columns[i].title; i++)
		put_cell(out, &columns[i], columns[i].title, wide[i], markdown);
	text_add_string(out, markdown ? "" : "\n");
	for (size_t i = 0; columns[i].title && markdown; i++)
		text_add_string(out, columns[i + 1].title ? "|---" : "|---|\n");
}

static void widen(size_t *wide, const char *cell)
{
	size_t used = name_columns(cell, strlen(cell));

	*wide = used > *wide ? used : *wide;
}

/* At most MOST rows. */
static void add_rows(struct text *out, const struct job *job, bool markdown, size_t most)
{
	const struct column *columns = uses_devices(job) ? RANK_COLUMNS : PROCESS_COLUMNS;
	size_t wide[COLUMNS_MOST] = { 0 }, shown = job->count < most ? job->count : most;
	struct text cell;

	text_init(&cell);
	for (size_t i = 0; columns[i].title; i++) {
		widen(&wide[i], columns[i].title);
		for (size_t row = 0; row < shown; row++) {
			text_clear(&cell);
			add_cell(&cell, &job->ranks[row], &columns[i], markdown);
			widen(&wide[i], text_string(&cell));
		}
	}
	put_titles(out, columns, wide, markdown);
	for (size_t row = 0; row < shown; row++) {
		for (size_t i = 0; columns[i].title; i++) {
			text_clear(&cell);
			add_cell(&cell, &job->ranks[row], &columns[i], markdown);
			put_cell(out, &columns[i], text_string(&cell), wide[i], markdown);
		}
		text_add_string(out, markdown ? "" : row == job->straggler ? "  straggler\n" : "\n");
	}
	if (job->count > most)
		text_printf(out, "  … and %zu more\n", job->count - most);
	text_end(&cell, out);
}

static void add_absent(struct text *out, const struct job *job, bool markdown)
{
	for (size_t i = 0; i < job->absent_count; i++) {
		const struct absent *absent = &job->absent[i];

		text_printf(out, "%s%s", i ? "" : "\n", markdown ? "- " : "  ");
		add_foreign(out, absent->name, markdown);
		text_add_string(out, " was not measured: ");
		name_add_prose(out, absent->why, NAME_SHOWN, NAME_HEAD, markdown);
		text_add_string(out, "\n");
	}
	if (job->brief)
		text_printf(out, "%s%s%zu more process%s ended before measuring could begin\n", job->absent_count ? "" : "\n", markdown ? "- " : "  ", job->brief, job->brief == 1 ? "" : "es");
}

static void add_name(struct text *out, const struct rank *rank, bool markdown)
{
	add_foreign(out, rank->name, markdown);
	if (*rank->host) {
		text_add_string(out, " on ");
		add_foreign(out, rank->host, markdown);
	}
}

static void add_clock(struct text *out, const struct rank_clock *clock)
{
	const char *sign = clock->zero_ns < 0 ? "-" : "+", *ahead_sign = clock->ahead_ns < 0 ? "-" : "";
	struct quantity zero = distance(clock->zero_ns), ahead = distance(clock->ahead_ns), bound = quantity_ns(clock->bound_ns, 0);

	if (clock->way == CLOCK_BY_COLLECTIVES)
		text_printf(out, ": begins at %s%s; its clock is %s%s ahead, ± %s by %u collectives\n", sign, zero.text, ahead_sign, ahead.text, bound.text, clock->collectives);
	else if (clock->way == CLOCK_BY_BOOT && clock->ahead_ns)
		text_printf(out, ": begins at %s%s, ± %s by the clock of the machine, though the wall clock was %s%s ahead\n", sign, zero.text, bound.text, ahead_sign, ahead.text);
	else
		text_printf(out, ": begins at %s%s, ± %s by the %s\n", sign, zero.text, bound.text, clock->way == CLOCK_BY_BOOT ? "clock of the machine" : "wall clocks");
}

static void add_clocks(struct text *out, const struct job *job, bool markdown)
{
	const char *before = markdown ? "- " : "  ";

	if (!job->aligned)
		return;
	text_add_string(out, markdown ? "\n## Clocks\n\n" : "\nClocks\n");
	for (size_t i = 0; i < job->count; i++) {
		const struct rank *rank = &job->ranks[i];

		text_add_string(out, before);
		add_name(out, rank, markdown);
		if (!rank->clock.way)
			text_add_string(out, ": not known against the first trace's: nobody vouches for the wall clocks, and no collectives tell\n");
		else
			add_clock(out, &rank->clock);
	}
	for (size_t i = 0; i < job->count; i++) {
		const struct rank *rank = &job->ranks[i];

		if (!rank->late.count)
			continue;
		text_add_string(out, before);
		add_name(out, rank, markdown);
		text_printf(out, " comes last to %llu of %llu collectives; the others wait %s for it\n", (unsigned long long)rank->late.count, (unsigned long long)rank->late.collectives,
		            quantity_ns(rank->late.time_ns, 0).text);
	}
}

static void add_request(struct text *out, const struct job *job, bool markdown)
{
	const struct request_path *path = &job->slowest;

	if (!path->requests)
		return;
	text_add_string(out, markdown ? "\n## Slowest request over processes\n\n" : "\nSlowest request over processes\n  ");
	add_foreign(out, path->id, markdown);
	text_printf(out, " took %s, the longest of %zu that more than one process worked on; clocks ± %s\n%s", quantity_ns(path->duration_ns, 0).text, path->requests, quantity_ns(path->bound_ns, 0).text, markdown ? "\n" : "");
	for (size_t i = 0; i < path->step_count; i++) {
		const struct path_step *step = &path->steps[i];

		text_printf(out, "%s+%s ", markdown ? "- " : "    ", quantity_ns(step->start_ns, 0).text);
		add_foreign(out, step->scope, markdown);
		text_add_string(out, " in ");
		add_name(out, &job->ranks[step->rank], markdown);
		text_printf(out, ": %s, of it %s its own\n", quantity_ns(step->duration_ns, 0).text, quantity_ns(step->self_ns, 0).text);
	}
	if (path->left_out)
		text_printf(out, "%s… and %zu more\n", markdown ? "- " : "    ", path->left_out);
	text_printf(out, "%sbetween processes: %s\n", markdown ? "- " : "    ", quantity_ns(path->between_ns, 0).text);
}

static int write_words(const struct job *job, bool markdown, struct sink *sink, struct error *err)
{
	struct text out;
	bool failed;

	text_init(&out);
	text_add_string(&out, markdown ? "# InferScope report: one job\n\n" : "InferScope report: one job\n\n");
	add_head(&out, job, markdown);
	add_rows(&out, job, markdown, SIZE_MAX);
	add_absent(&out, job, markdown);
	add_clocks(&out, job, markdown);
	add_request(&out, job, markdown);
	for (size_t i = 0; i < job->count; i++)
		for (size_t j = 0; j < job->ranks[i].finding_count; j++) {
			text_printf(&out, "%s%s", j || i ? "" : "\n", markdown ? "- " : "  ");
			add_foreign(&out, job->ranks[i].name, markdown);
			text_printf(&out, ": %s: ", severity_name(job->ranks[i].findings[j].severity));
			name_add_prose(&out, job->ranks[i].findings[j].title, NAME_SHOWN, NAME_HEAD, markdown);
			text_printf(&out, " (%s)\n", job->ranks[i].findings[j].rule);
		}
	failed = out.failed;
	sink_write(sink, text_string(&out), out.length);
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

int job_summary(const struct job *job, size_t most, struct sink *sink, struct error *err)
{
	struct text out;
	bool failed;

	text_init(&out);
	add_head(&out, job, false);
	add_rows(&out, job, false, most);
	failed = out.failed;
	sink_write(sink, text_string(&out), out.length);
	text_done(&out);
	return failed ? fail(err, ERR_MEMORY, "writing the report of a job") : 0;
}

const struct job_format *job_format_find(const char *name)
{
	static const struct job_format formats[] = { { "text", write_text_job }, { "md", write_md_job }, { "json", job_write_json } };
	const struct report_format *report = report_format_find(name);

	for (size_t i = 0; report && i < sizeof formats / sizeof *formats; i++)
		if (strcmp(formats[i].name, report->name) == 0)
			return &formats[i];
	return NULL;
}
