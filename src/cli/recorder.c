#include "cli/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cli/present.h"
#include "cli/signals.h"
#include "cli/value.h"
#include "report/quantity.h"

#define SECOND_NS 1000000000ull
enum { GIVE_WAY = 10 /* nice */, COST_SHARE = 20 /* judging takes a twentieth of a CPU at most */, WHY_BYTES = 256, NUMBERS_MOST = 1000000 };

enum job_kind { JOB_NONE = 0, JOB_JUDGE, JOB_WRITE };
enum holds { HOLDS_UNKNOWN = 0, HOLDS_NOT, HOLDS };

struct recorder {
	struct measure *measure;
	struct ruleset *condition; /* NULL: files are asked for */
	uint64_t keep_ns, window_ns;
	uint32_t files_most, number;
	char stem[OUTPUT_PATH];    /* of what is written: STEM-1.iscope */
	volatile int stop;
	/* The session's thread: */
	uint64_t begin_ns, mark_ns, judge_ns, quiet_until_ns; /* CLOCK_MONOTONIC: what is due when; no file by the condition before */
	int wanted_seen;
	bool held;                 /* when it was judged last */
	bool due;                  /* a file; why says why */
	char why[WHY_BYTES];
	/* Shared: */
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	bool running, ending;
	enum job_kind job;         /* what the thread works at; JOB_NONE: it waits, and the rest is the session's */
	struct spool_window *window;
	enum holds holds;
	char told[WHY_BYTES];      /* what the condition compared, or why it is not known */
	bool judged;               /* holds and told are new */
	uint64_t cost_ns;          /* CPU time of the last job */
	uint32_t files;
	bool failed;
	struct error failure;
	/* The thread that works: */
	pthread_t thread;
};

bool recorder_wanted(const struct options *options)
{
	return !options_duration_ns(options, OPT_EVERY) && (options_given(options, OPT_ON) || options_given(options, OPT_KEEP));
}

/* ---- the thread that works ---- */

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
	struct capture capture = { .instead = recorder->condition };
	struct error err = { 0 };
	char path[32];
	int fd = window_file(recorder->window, &err);

	recorder->holds = HOLDS_UNKNOWN;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (fd < 0 || capture_open(path, &recorder->measure->invocation->options, &capture, &err) < 0)
		snprintf(recorder->told, sizeof recorder->told, "%.*s", WHY_BYTES - 1, err.text);
	else if (capture.analysis->finding_count) {
		recorder->holds = HOLDS;
		compared_tell(&capture.analysis->findings[0], recorder->told, sizeof recorder->told);
	} else if (capture.analysis->not_evaluated_count)
		snprintf(recorder->told, sizeof recorder->told, "%.*s", WHY_BYTES - 1, capture.analysis->not_evaluated[0].reason);
	else
		recorder->holds = HOLDS_NOT;
	capture_close(&capture);
	if (fd >= 0)
		close(fd);
}

/* The next number that no file has: those of an earlier recorder stay. */
static int outputs_next(struct recorder *recorder, struct outputs *out, struct error *err)
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
	if (outputs_next(recorder, outputs, err) < 0 || trace_write(recorder->window, outputs, err) < 0)
		return -1;
	return outputs->count ? present_trace(outputs->trace, outputs->trace, &how, &ignored, err) : 0;
}

static void window_write(struct recorder *recorder)
{
	double seconds = (double)(clock_monotonic_ns() - spool_window_begin(recorder->window)) / 1e9;
	struct outputs *outputs = calloc(1, sizeof *outputs);
	struct error err = { 0 };
	int result = outputs ? files_write(recorder, outputs, &err) : fail(&err, ERR_MEMORY, "writing the trace");

	status_clear(recorder->measure->status);
	if (result == 0) {
		log_print(recorder->measure->level, LOG_INFO, "%s: wrote the last %.0f s", recorder->why, seconds);
		printf("%s\n", outputs->trace);
		fflush(stdout);
		recorder->files++;
	} else {
		log_print(recorder->measure->level, LOG_WARN, "%s, but it could not be written: %s", recorder->why, err.text);
		recorder->failed = true;
		recorder->failure = err;
	}
	free(outputs);
}

static uint64_t own_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void *work(void *context)
{
	struct recorder *recorder = context;

	setpriority(PRIO_PROCESS, (id_t)gettid(), GIVE_WAY); /* of this thread alone */
	pthread_mutex_lock(&recorder->mutex);
	while (!recorder->ending || recorder->job) {
		uint64_t begin_ns = own_cpu_ns();
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
		recorder->cost_ns = own_cpu_ns() - begin_ns;
		recorder->judged = judge;
		pthread_mutex_lock(&recorder->mutex);
		recorder->job = JOB_NONE;
	}
	pthread_mutex_unlock(&recorder->mutex);
	return NULL;
}

/* ---- the session's thread ---- */

static void job_give(struct recorder *recorder, enum job_kind job, uint64_t since_ns)
{
	struct error err = { 0 };

	if (spool_window_take(recorder->measure->spool, since_ns, &recorder->window, &err) < 0) {
		if (job == JOB_WRITE)
			log_print(recorder->measure->level, LOG_WARN, "%s, but it could not be written: %s", recorder->why, err.text);
		return;
	}
	recorder->job = job;
	pthread_cond_signal(&recorder->wake);
}

/* A condition that goes on holding is one event. */
static void judged_take(struct recorder *recorder, uint64_t now_ns)
{
	bool holds = recorder->holds == HOLDS;

	if (holds && !recorder->held && now_ns >= recorder->quiet_until_ns) {
		recorder->due = true;
		snprintf(recorder->why, sizeof recorder->why, "%s", recorder->told);
	}
	if (!holds || recorder->due)
		recorder->held = holds;
	recorder->judge_ns = now_ns + (recorder->cost_ns * COST_SHARE > SECOND_NS ? recorder->cost_ns * COST_SHARE : SECOND_NS);
}

static void wanted_take(struct recorder *recorder)
{
	int wanted = *signals_wanted();

	if (wanted == recorder->wanted_seen)
		return;
	recorder->wanted_seen = wanted;
	recorder->due = true;
	snprintf(recorder->why, sizeof recorder->why, "SIGUSR1 came");
}

/* While the thread waits. */
static void recorder_decide(struct recorder *recorder, uint64_t now_ns)
{
	if (recorder->judged)
		judged_take(recorder, now_ns);
	recorder->judged = false;
	wanted_take(recorder);
	if (recorder->files >= recorder->files_most)
		recorder->stop = 1;
	else if (recorder->due) {
		recorder->due = false;
		recorder->quiet_until_ns = now_ns + recorder->keep_ns;
		job_give(recorder, JOB_WRITE, now_ns - recorder->keep_ns);
	} else if (recorder->condition && now_ns >= recorder->judge_ns && now_ns >= recorder->begin_ns + recorder->window_ns)
		job_give(recorder, JOB_JUDGE, now_ns - recorder->window_ns);
}

static void progress_say(const struct recorder *recorder, const struct session_progress *progress)
{
	char line[256];

	if (!status_due(recorder->measure->status))
		return;
	snprintf(line, sizeof line, "watching %.1f s  files %u of %u  events %.1fk  lost %llu  overhead %.1f %%%s%.100s", (double)progress->elapsed_ns / 1e9, recorder->files, recorder->files_most,
	         (double)progress->events / 1e3, (unsigned long long)progress->lost, progress->overhead_pct, *recorder->told ? "  " : "", recorder->told);
	status_say(recorder->measure->status, line, "Ctrl-C ends it");
}

void recorder_progress(void *context, const struct session_progress *progress)
{
	struct recorder *recorder = context;
	uint64_t now_ns = clock_monotonic_ns();

	recorder->begin_ns = recorder->begin_ns ? recorder->begin_ns : now_ns;
	if (now_ns >= recorder->mark_ns) {
		spool_mark(recorder->measure->spool, now_ns);
		recorder->mark_ns = now_ns + SECOND_NS;
	}
	measure_launcher(recorder->measure, progress->elapsed_ns);
	if (*signals_stop())
		recorder->stop = *signals_stop();
	if (pthread_mutex_trylock(&recorder->mutex) != 0)
		return;
	if (!recorder->job) {
		recorder_decide(recorder, now_ns);
		progress_say(recorder, progress);
	}
	pthread_mutex_unlock(&recorder->mutex);
}

const volatile int *recorder_stop(const struct recorder *recorder)
{
	return &recorder->stop;
}

/* ---- beginning and end ---- */

static int words_read(struct recorder *recorder, const struct options *options, struct error *err)
{
	const char *keep = options_text(options, OPT_KEEP), *condition = options_text(options, OPT_ON), *trace = recorder->measure->outputs.trace;
	size_t length = strlen(trace), extension = strlen(".iscope");

	recorder->keep_ns = 60 * SECOND_NS;
	if (*keep && (!value_duration(keep, &recorder->keep_ns) || recorder->keep_ns < SECOND_NS)) {
		fail(err, ERR_USAGE, "--keep \"%.100s\" is no time of 1 s or more", keep);
		return fail_hint(err, "a folder goes with --every; a flight recorder keeps a time: --keep 60s");
	}
	recorder->window_ns = options_duration_ns(options, OPT_WINDOW);
	if (recorder->window_ns < SECOND_NS || recorder->window_ns > recorder->keep_ns)
		return fail(err, ERR_USAGE, "--window %s: the condition is about 1 s or more of what is kept", options_text(options, OPT_WINDOW));
	if (!*trace || strcmp(trace, "-") == 0)
		return fail(err, ERR_USAGE, "a flight recorder writes files: --trace FILE becomes FILE-1, FILE-2 …");
	if (length > extension && strcmp(trace + length - extension, ".iscope") == 0)
		length -= extension;
	snprintf(recorder->stem, sizeof recorder->stem, "%.*s", (int)length, trace);
	recorder->files_most = (uint32_t)options_count(options, OPT_KEEP_FILES);
	return *condition ? ruleset_condition(condition, &recorder->condition, err) : 0;
}

/* Reports lie beside traces; where none was asked for, there is none. */
static int outputs_probe(struct recorder *recorder, struct error *err)
{
	const struct options *options = &recorder->measure->invocation->options;
	struct outputs *outputs = calloc(1, sizeof *outputs);
	int result;

	if (!outputs)
		return fail(err, ERR_MEMORY, "starting the flight recorder");
	if (!options_given(options, OPT_OUTPUT) && !options_given(options, OPT_FORMAT))
		recorder->measure->outputs.count = 0;
	result = outputs_next(recorder, outputs, err) < 0 || outputs_test(outputs, err) < 0 ? -1 : 0;
	recorder->number--;
	free(outputs);
	return result;
}

int recorder_open(struct measure *measure, struct recorder **out, struct error *err)
{
	const struct options *options = &measure->invocation->options;
	struct recorder *recorder = calloc(1, sizeof *recorder);

	if (!recorder)
		return fail(err, ERR_MEMORY, "starting the flight recorder");
	recorder->measure = measure;
	pthread_mutex_init(&recorder->mutex, NULL);
	pthread_cond_init(&recorder->wake, NULL);
	if (words_read(recorder, options, err) < 0 || outputs_probe(recorder, err) < 0) {
		recorder_close(recorder);
		return -1;
	}
	if (!options_given(options, OPT_DURATION))
		measure->session.duration_ns = 0;
	if (!measure->session.trace_size_mb)
		measure->session.trace_size_mb = (uint32_t)strtoul(option_rows[OPT_TRACE_SIZE_MB].standard, NULL, 10); /* what is kept is always bounded */
	*out = recorder;
	return 0;
}

int recorder_start(struct recorder *recorder, struct error *err)
{
	int failed;

	spool_keep_window(recorder->measure->spool, recorder->keep_ns);
	signals_catch_wanted();
	failed = thread_start(&recorder->thread, work, recorder);
	if (failed)
		return fail(err, ERR_MEMORY, "starting the flight recorder: %s", strerror(failed));
	recorder->running = true;
	return 0;
}

int recorder_finish(struct recorder *recorder, struct error *err)
{
	if (recorder->running) {
		pthread_mutex_lock(&recorder->mutex);
		recorder->ending = true;
		pthread_cond_signal(&recorder->wake);
		pthread_mutex_unlock(&recorder->mutex);
		pthread_join(recorder->thread, NULL);
		recorder->running = false;
		status_clear(recorder->measure->status);
		log_print(recorder->measure->level, LOG_INFO, "watched %.0f s, wrote %u file%s", (double)(clock_monotonic_ns() - recorder->begin_ns) / 1e9, recorder->files, recorder->files == 1 ? "" : "s");
	}
	if (!recorder->failed)
		return 0;
	if (err)
		*err = recorder->failure;
	return -1;
}

void recorder_close(struct recorder *recorder)
{
	if (!recorder)
		return;
	recorder_finish(recorder, NULL);
	spool_window_free(recorder->window);
	ruleset_free(recorder->condition);
	pthread_cond_destroy(&recorder->wake);
	pthread_mutex_destroy(&recorder->mutex);
	free(recorder);
}
