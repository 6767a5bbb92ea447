#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cli/present.h"
#include "cli/recorder_state.h"
#include "cli/signals.h"
#include "cli/value.h"

enum { COST_SHARE = 20 /* judging takes a twentieth of a CPU at most */ };

bool recorder_wanted(const struct options *options)
{
	return !options_duration_ns(options, OPT_EVERY) && (options_given(options, OPT_ON) || options_given(options, OPT_KEEP));
}

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

/* The condition has begun to hold. */
static void condition_met(struct recorder *recorder)
{
	struct recorder_told *told = recorder->group ? recorder->group->told : NULL;

	if (told) {
		snprintf(told->asked, sizeof told->asked, "%s", recorder->told);
		__atomic_add_fetch(&told->asks, 1, __ATOMIC_RELEASE);
		return;
	}
	recorder->due = true;
	snprintf(recorder->why, sizeof recorder->why, "%s", recorder->told);
}

/* A condition that goes on holding is one event. */
static void judged_take(struct recorder *recorder, uint64_t now_ns)
{
	bool holds = recorder->holds == HOLDS, begins = holds && !recorder->held && now_ns >= recorder->quiet_until_ns;

	if (begins)
		condition_met(recorder);
	if (!holds || begins)
		recorder->held = holds;
	recorder->judge_ns = now_ns + (recorder->cost_ns * COST_SHARE > SECOND_NS ? recorder->cost_ns * COST_SHARE : SECOND_NS);
}

static uint32_t wanted_count(const struct recorder *recorder)
{
	return recorder->group ? __atomic_load_n(&recorder->group->call->count, __ATOMIC_ACQUIRE) : (uint32_t)*signals_wanted();
}

static void wanted_take(struct recorder *recorder)
{
	uint32_t wanted = wanted_count(recorder);

	if (wanted == recorder->wanted_seen)
		return;
	recorder->wanted_seen = wanted;
	recorder->due = true;
	snprintf(recorder->why, sizeof recorder->why, "%s", recorder->group ? recorder->group->call->why : "SIGUSR1 came");
	if (recorder->group && recorder->number + 1 < wanted)
		recorder->number = wanted - 1; /* files of one call bear one number */
}

static bool recorder_full(const struct recorder *recorder)
{
	return recorder->group ? recorder->wanted_seen >= recorder->words.files_most && !recorder->due : recorder->files >= recorder->words.files_most;
}

/* While the thread waits. */
static void recorder_decide(struct recorder *recorder, uint64_t now_ns)
{
	const struct recorder_words *words = &recorder->words;

	if (recorder->judged)
		judged_take(recorder, now_ns);
	recorder->judged = false;
	wanted_take(recorder);
	if (recorder_full(recorder))
		recorder->stop = 1;
	else if (recorder->due) {
		recorder->due = false;
		recorder->quiet_until_ns = now_ns + words->keep_ns;
		job_give(recorder, JOB_WRITE, now_ns - words->keep_ns);
	} else if (words->condition && now_ns >= recorder->judge_ns && now_ns >= recorder->begin_ns + words->window_ns)
		job_give(recorder, JOB_JUDGE, now_ns - words->window_ns);
}

static void progress_say(const struct recorder *recorder, const struct session_progress *progress)
{
	char line[256];

	if (!status_due(recorder->measure->status))
		return;
	snprintf(line, sizeof line, "watching %.1f s  files %u of %u  events %.1fk  lost %llu  overhead %.1f %%%s%.100s", (double)progress->elapsed_ns / 1e9, recorder->files, recorder->words.files_most,
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
	if (*recorder->measure->session.stop)
		recorder->stop = *recorder->measure->session.stop;
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

int recorder_words_read(const struct options *options, struct recorder_words *out, struct error *err)
{
	const char *keep = options_text(options, OPT_KEEP), *condition = options_text(options, OPT_ON);

	*out = (struct recorder_words){ .keep_ns = 60 * SECOND_NS, .window_ns = options_duration_ns(options, OPT_WINDOW), .files_most = (uint32_t)options_count(options, OPT_KEEP_FILES) };
	if (*keep && (!value_duration(keep, &out->keep_ns) || out->keep_ns < SECOND_NS)) {
		fail(err, ERR_USAGE, "--keep \"%.100s\" is no time of 1 s or more", keep);
		return fail_hint(err, "a folder goes with --every; a flight recorder keeps a time: --keep 60s");
	}
	if (!options_given(options, OPT_WINDOW) && out->window_ns > out->keep_ns)
		out->window_ns = out->keep_ns;
	if (out->window_ns < SECOND_NS || out->window_ns > out->keep_ns) {
		fail(err, ERR_USAGE, "--window %s: the condition is about 1 s or more of what is kept, which is %s", options_text(options, OPT_WINDOW), *keep ? keep : "60s");
		return fail_hint(err, "give a shorter --window, or a longer --keep");
	}
	return *condition ? ruleset_condition(condition, &out->condition, err) : 0;
}

void recorder_words_done(struct recorder_words *words)
{
	ruleset_free(words->condition);
	words->condition = NULL;
}

static int stem_read(struct recorder *recorder, struct error *err)
{
	const char *trace = recorder->measure->outputs.trace;
	size_t length = strlen(trace), extension = strlen(".iscope");

	if (!*trace || strcmp(trace, "-") == 0)
		return fail(err, ERR_USAGE, "a flight recorder writes files: --trace FILE becomes FILE-1, FILE-2 …");
	if (length > extension && strcmp(trace + length - extension, ".iscope") == 0)
		length -= extension;
	snprintf(recorder->stem, sizeof recorder->stem, "%.*s", (int)length, trace);
	return 0;
}

void recorder_session(const struct options *options, struct session_options *session)
{
	if (!options_given(options, OPT_DURATION))
		session->duration_ns = 0;
	if (!session->trace_size_mb)
		session->trace_size_mb = (uint32_t)strtoul(option_rows[OPT_TRACE_SIZE_MB].standard, NULL, 10); /* what is kept is always bounded */
}

int recorder_outputs_next(struct recorder *recorder, struct outputs *out, struct error *err)
{
	int result = recorder_outputs(recorder, out, err);

	recorder->number--;
	return result;
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
	result = recorder_outputs_next(recorder, outputs, err) < 0 || outputs_test(outputs, err) < 0 ? -1 : 0;
	free(outputs);
	return result;
}

int recorder_open(struct measure *measure, const struct recorder_group *group, struct recorder **out, struct error *err)
{
	const struct options *options = &measure->invocation->options;
	struct recorder *recorder = calloc(1, sizeof *recorder);

	if (!recorder)
		return fail(err, ERR_MEMORY, "starting the flight recorder");
	recorder->measure = measure;
	recorder->group = group;
	pthread_mutex_init(&recorder->mutex, NULL);
	pthread_cond_init(&recorder->wake, NULL);
	if (recorder_words_read(options, &recorder->words, err) < 0 || stem_read(recorder, err) < 0 || outputs_probe(recorder, err) < 0) {
		recorder_close(recorder);
		return -1;
	}
	recorder_session(options, &measure->session);
	*out = recorder;
	return 0;
}

int recorder_start(struct recorder *recorder, struct error *err)
{
	int failed;

	spool_keep_window(recorder->measure->spool, recorder->words.keep_ns);
	if (!recorder->group)
		signals_catch_wanted();
	recorder->wanted_seen = wanted_count(recorder);
	failed = thread_start(&recorder->thread, recorder_work, recorder);
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
		if (!recorder->group && recorder->begin_ns) /* else it has never begun */
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
	recorder_words_done(&recorder->words);
	pthread_cond_destroy(&recorder->wake);
	pthread_mutex_destroy(&recorder->mutex);
	free(recorder);
}
