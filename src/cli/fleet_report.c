/* What came of all of them together: joint reports, the summary, the exit status. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/fleet.h"
#include "report/job.h"

enum { SUMMARY_MOST = 12, WARNINGS_MOST = 8 };

/* A warning of each process that says it, once: also where its numbers differ. */
struct warning { char text[256]; const struct member *first; size_t count; };
struct warnings { struct warning *items; size_t count, capacity; };

static bool alike(const char *a, const char *b)
{
	while (*a && *b) {
		size_t a_digits = strspn(a, "0123456789."), b_digits = strspn(b, "0123456789.");

		if (!a_digits != !b_digits || (!a_digits && *a != *b))
			return false;
		a += a_digits ? a_digits : 1;
		b += b_digits ? b_digits : 1;
	}
	return *a == *b;
}

static void warning_add(struct warnings *warnings, const struct member *member, const char *text)
{
	struct warning *warning;

	for (size_t i = 0; i < warnings->count; i++) {
		if (alike(warnings->items[i].text, text)) {
			warnings->items[i].count++;
			return;
		}
	}
	warning = list_add(warnings, WARNINGS_MOST);
	if (!warning)
		return;
	snprintf(warning->text, sizeof warning->text, "%s", text);
	warning->first = member;
	warning->count = 1;
}

static void warnings_tell(const struct members *members, enum log_level level)
{
	struct warnings warnings = { 0 };

	for (size_t i = 0; i < members->count; i++) {
		const struct member *member = &members->items[i];

		for (uint32_t j = 0; member->page && j < member->page->receipt.warning_count; j++)
			warning_add(&warnings, member, member->page->receipt.warnings[j]);
	}
	for (size_t i = 0; i < warnings.count; i++) {
		const struct warning *warning = &warnings.items[i];

		if (warning->count > 1)
			log_print(level, LOG_WARN, "%zu processes, such as %s: %s", warning->count, warning->first->name, warning->text);
		else
			log_print(level, LOG_WARN, "%s: %s", warning->first->name, warning->text);
	}
	list_done(&warnings);
}

/* Measured, and nothing but a gate or a promise of the user's is amiss. */
static bool was_measured(const struct member *member)
{
	return member->page && (*member->page->rank.name || member->page->watched);
}

void fleet_tell(const struct members *members, enum log_level level)
{
	warnings_tell(members, level);
	for (size_t i = 0; i < members->count; i++) {
		const struct member *member = &members->items[i];

		if (member->page && !was_measured(member) && !member->skipped)
			log_print(level, LOG_WARN, "%s was not measured: %s", member->name, member->page->err.text);
	}
	if (members->brief)
		log_print(level, LOG_WARN, "%zu more process%s ended before measuring could begin: what %s is not in the report", members->brief, members->brief == 1 ? "" : "es", members->brief == 1 ? "it did" : "they did");
}

static void job_gather(const struct members *members, struct rank *ranks, struct absent *absents, struct job *out)
{
	size_t rank_count = 0, absent_count = 0;

	for (size_t i = 0; i < members->count; i++) {
		const struct member *member = &members->items[i];

		if (was_measured(member))
			ranks[rank_count++] = member->page->rank;
		else if (!member->skipped && member->page) {
			struct absent *absent = &absents[absent_count++];

			snprintf(absent->name, sizeof absent->name, "%s", member->name);
			snprintf(absent->why, sizeof absent->why, "%.*s", (int)sizeof absent->why - 1, member->page->err.text);
		}
	}
	job_build(ranks, rank_count, out);
	out->absent = absents;
	out->absent_count = absent_count;
	out->brief = members->brief;
}

static int job_write_to(const struct job *job, const struct output *output, bool force, struct error *err)
{
	const struct job_format *format = job_format_find(output->format->name);
	struct sink *sink;

	if (sink_open_path(output->path, force, &sink, err) < 0)
		return -1;
	if (format->write(job, sink, err) < 0) {
		sink_discard(sink);
		return -1;
	}
	return sink_commit(sink, err);
}

static int summary_write(const struct job *job, const struct outputs *plan, const char *folder, struct error *err)
{
	struct sink *sink;

	if (sink_open_fd(outputs_use_stdout(plan) ? STDERR_FILENO : STDOUT_FILENO, &sink, err) < 0)
		return -1;
	if (job_summary(job, SUMMARY_MOST, sink, err) < 0) {
		sink_discard(sink);
		return -1;
	}
	sink_puts(sink, "\n");
	for (size_t i = 0; i < plan->count; i++)
		if (strcmp(plan->reports[i].path, "-") != 0)
			sink_printf(sink, "  report of all   %s\n", plan->reports[i].path);
	if (*folder)
		sink_printf(sink, "  of each         %s/\n", folder);
	return sink_commit(sink, err);
}

/* The worst that is to be told: what stayed in a process outranks a gate, that outranks partial data. */
const struct error *fleet_worst(const struct members *members)
{
	static const enum error_code rank[] = { ERR_NOT_CLEAN, ERR_GATE, ERR_PARTIAL, ERR_OUTPUT };

	for (size_t i = 0; i < sizeof rank / sizeof *rank; i++)
		for (size_t j = 0; j < members->count; j++)
			if (members->items[j].page && members->items[j].page->result < 0 && members->items[j].page->err.code == rank[i])
				return &members->items[j].page->err;
	return NULL;
}

/* None was measured: as the one that was named, or the first, says. */
int fleet_none(const struct members *members, struct error *err)
{
	for (size_t i = 0; i < members->count; i++) {
		const struct member *member = &members->items[i];

		if (member->skipped || !member->page || member->page->result == 0)
			continue;
		*err = member->page->err;
		return -1;
	}
	if (members->brief)
		return fail(err, ERR_EXITED, "%zu process%s ended before measuring could begin, and no other one runs Python", members->brief, members->brief == 1 ? "" : "es");
	fail(err, ERR_NO_PROCESS, "none of these processes runs Python");
	return fail_hint(err, "`pgrep -af python` lists the running Python processes");
}

int fleet_report(const struct members *members, const struct measure *measure, const struct outputs *plan, const char *folder, struct error *err)
{
	struct rank *ranks = calloc(members->count + 1, sizeof *ranks);
	struct absent *absents = calloc(members->count + 1, sizeof *absents);
	const struct error *worst = fleet_worst(members);
	struct job job;
	int result = -1;

	if (!ranks || !absents) {
		fail(err, ERR_MEMORY, "reporting %zu processes", members->count);
		goto out;
	}
	job_gather(members, ranks, absents, &job);
	fleet_tell(members, measure->level);
	if (!job.count) {
		fleet_none(members, err);
		goto out;
	}
	for (size_t i = 0; i < plan->count; i++)
		if (job_write_to(&job, &plan->reports[i], plan->force, err) < 0)
			goto out;
	if (summary_write(&job, plan, folder, err) < 0)
		goto out;
	result = 0;
	if (worst) {
		*err = *worst;
		result = -1;
	} else if (job.absent_count && options_flag(&measure->invocation->options, OPT_STRICT))
		result = fail(err, ERR_PARTIAL, "partial data: %s was not measured: %.200s", absents[0].name, absents[0].why);
out:
	free(ranks);
	free(absents);
	return result;
}
