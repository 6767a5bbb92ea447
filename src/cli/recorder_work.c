/* The thread of a flight recorder that judges the condition and writes files. It gives way, so that neither keeps the session from its work. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/present.h"
#include "cli/recorder_state.h"
#include "report/quantity.h"

enum { GIVE_WAY = 10 /* nice */, NUMBERS_MOST = 1000000 };

/* A file without a name, for the reader. */
static int window_file(const struct spool_window *window, struct error *err)
{
	int fd = memfd_create("inferscope-window", MFD_CLOEXEC);
	struct sink *sink;

	if (fd < 0)
		return fail(err, ERR_MEMORY, "judging the condition: %s", strerror(errno));
	if (sink_open_fd(fd, &sink, err) < 0) {
		close(fd);
		return -1;
	}
	if (spool_window_write(window, sink, err) < 0) {
		sink_discard(sink);
		close(fd);
		return -1;
	}
	if (sink_commit(sink, err) == 0)
		return fd;
	close(fd);
	return -1;
}

static void compared_tell(const struct finding_report *finding, char *out, size_t size)
{
	int used = 0;

	for (size_t i = 0; i < finding->evidence_count && used < (int)size; i++) {
		const struct evidence *evidence = &finding->evidence[i];

		used += snprintf(out + used, size - (size_t)used, "%s%s is %s (%s %s)", i ? ", " : "", evidence->metric, quantity_of(evidence->value, evidence->unit, 0).text, evidence->op,
		                 quantity_of(evidence->threshold, evidence->unit, 0).text);
	}
	if (!finding->evidence_count)
		snprintf(out, size, "the condition holds");
}

static void condition_judge(struct recorder *recorder)
{
	struct capture capture = { .instead = recorder->words.condition };
	struct error err = { 0 };
	char path[32];
	int fd = window_file(recorder->window, &err);

	recorder->holds = HOLDS_UNKNOWN;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (fd < 0 || capture_open(path, &recorder->measure->invocation->options, &capture, &err) < 0)
		snprintf(recorder->told, sizeof recorder->told, "%.*s", RECORDER_WHY - 1, err.text);
	else if (capture.analysis->finding_count) {
		recorder->holds = HOLDS;
		compared_tell(&capture.analysis->findings[0], recorder->told, sizeof recorder->told);
	} else if (capture.analysis->not_evaluated_count)
		snprintf(recorder->told, sizeof recorder->told, "%.*s", RECORDER_WHY - 1, capture.analysis->not_evaluated[0].reason);
	else
		recorder->holds = HOLDS_NOT;
	capture_close(&capture);
	if (fd >= 0)
		close(fd);
}

int recorder_outputs(struct recorder *recorder, struct outputs *out, struct error *err)
{
	char stem[OUTPUT_PATH];

	while (++recorder->number < NUMBERS_MOST) {
		if (snprintf(stem, sizeof stem, "%s-%u", recorder->stem, recorder->number) >= (int)sizeof stem)
			return fail(err, ERR_OPTION_VALUE, "the trace's path is too long");
		if (outputs_beside(&recorder->measure->outputs, stem, out, err) < 0)
			return -1;
		if (access(out->trace, F_OK) != 0)
			return 0;
	}
	return fail(err, ERR_OUTPUT, "%s-1.iscope to -%d.iscope are there already", recorder->stem, NUMBERS_MOST);
}

static int trace_write(const struct spool_window *window, const struct outputs *outputs, struct error *err)
{
	struct sink *sink;

	if (sink_open_path(outputs->trace, outputs->force, &sink, err) < 0)
		return -1;
	if (spool_window_write(window, sink, err) == 0)
		return sink_commit(sink, err);
	sink_discard(sink);
	return -1;
}

static int files_write(struct recorder *recorder, struct outputs *outputs, struct error *err)
{
	const struct measure *measure = recorder->measure;
	char root[32];
	const struct presentation how = { .options = &measure->invocation->options, .outputs = outputs, .summary_fd = -1, .level = measure->level, .source_root = root };
	struct present_result ignored;

	snprintf(root, sizeof root, "/proc/%d/root", (int)measure->pid);
	if (recorder_outputs(recorder, outputs, err) < 0 || trace_write(recorder->window, outputs, err) < 0)
		return -1;
	return outputs->count ? present_trace(outputs->trace, outputs->trace, &how, &ignored, err) : 0;
}

static void window_tell(const struct recorder *recorder, int result, double seconds)
{
	status_clear(recorder->measure->status);
	if (result == 0)
		log_print(recorder->measure->level, LOG_INFO, "%s: wrote the last %.0f s", recorder->why, seconds);
	else
		log_print(recorder->measure->level, LOG_WARN, "%s, but it could not be written: %s", recorder->why, recorder->failure.text);
}

/* Whoever measures them all says it. */
static void group_tell(const struct recorder *recorder, int result, double seconds)
{
	struct recorder_told *told = recorder->group->told;

	told->seconds = seconds;
	if (result < 0)
		snprintf(told->failure, sizeof told->failure, "%.*s", RECORDER_WHY - 1, recorder->failure.text);
	__atomic_add_fetch(result == 0 ? &told->files : &told->failures, 1, __ATOMIC_RELEASE);
}

static void window_write(struct recorder *recorder)
{
	double seconds = (double)(clock_monotonic_ns() - spool_window_begin(recorder->window)) / 1e9;
	struct outputs *outputs = calloc(1, sizeof *outputs);
	struct error err = { 0 };
	int result = outputs ? files_write(recorder, outputs, &err) : fail(&err, ERR_MEMORY, "writing the trace");

	if (result == 0) {
		printf("%s\n", outputs->trace);
		fflush(stdout);
		recorder->files++;
	} else {
		recorder->failed = true;
		recorder->failure = err;
	}
	if (recorder->group)
		group_tell(recorder, result, seconds);
	else
		window_tell(recorder, result, seconds);
	free(outputs);
}

void *recorder_work(void *context)
{
	struct recorder *recorder = context;

	setpriority(PRIO_PROCESS, (id_t)gettid(), GIVE_WAY); /* of this thread alone */
	pthread_mutex_lock(&recorder->mutex);
	while (!recorder->ending || recorder->job) {
		uint64_t begin_ns = clock_thread_ns();
		bool judge = recorder->job == JOB_JUDGE;

		if (!recorder->job) {
			pthread_cond_wait(&recorder->wake, &recorder->mutex);
			continue;
		}
		pthread_mutex_unlock(&recorder->mutex); /* until the job is done the rest is this thread's */
		if (judge)
			condition_judge(recorder);
		else
			window_write(recorder);
		spool_window_free(recorder->window);
		recorder->window = NULL;
		recorder->cost_ns = clock_thread_ns() - begin_ns;
		recorder->judged = judge;
		pthread_mutex_lock(&recorder->mutex);
		recorder->job = JOB_NONE;
	}
	pthread_mutex_unlock(&recorder->mutex);
	return NULL;
}
