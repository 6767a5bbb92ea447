/*
 * attach as a flight recorder: of what is recorded only the last while is kept, and written when a condition holds or somebody asks for it. The condition is
 * judged, and files are written, by a thread of its own that gives way, so that neither keeps the session from its work.
 */
#ifndef INFERSCOPE_CLI_RECORDER_H
#define INFERSCOPE_CLI_RECORDER_H

#include "cli/measure.h"

struct recorder;
struct ruleset;

enum { RECORDER_WHY = 256, CALL_WHY = RECORDER_WHY + 40 /* and who asks */ };

/* Recorders of several processes, each in a process of ours of its own: when the condition holds in one, all write. Each asks, and tells, in memory of its own that whoever
 * measures them all reads; that one calls. */
struct recorder_call { uint32_t count; char why[CALL_WHY]; /* stored before count */ };
struct recorder_told {
	uint32_t asks, files, failures; /* each stored after its text */
	char asked[RECORDER_WHY], failure[RECORDER_WHY];
	double seconds;                 /* in the latest file */
};
struct recorder_group { const struct recorder_call *call; struct recorder_told *told; };

/* What the options say. recorder_words_done() frees. */
struct recorder_words {
	uint64_t keep_ns, window_ns;
	uint32_t files_most;
	struct ruleset *condition; /* NULL: files are asked for */
};
int recorder_words_read(const struct options *options, struct recorder_words *out, struct error *err);
void recorder_words_done(struct recorder_words *words);

/* The options ask for one. */
bool recorder_wanted(const struct options *options);
/* It records until it is ended, and within a bound. */
void recorder_session(const struct options *options, struct session_options *session);
/* Reads the options, and the condition; tests where files will go. MEASURE and GROUP must outlive it; GROUP NULL: it is alone, and SIGUSR1 its own. */
int recorder_open(struct measure *measure, const struct recorder_group *group, struct recorder **out, struct error *err);
/* After measure_spool(). */
int recorder_start(struct recorder *recorder, struct error *err);
/* As session_record()'s stop and progress; CONTEXT is the recorder. */
const volatile int *recorder_stop(const struct recorder *recorder);
void recorder_progress(void *context, const struct session_progress *progress);
/* Waits for the file that is being written. -1 when one could not be. */
int recorder_finish(struct recorder *recorder, struct error *err);
/* Accepts NULL. */
void recorder_close(struct recorder *recorder);

/* What would be written next. */
int recorder_outputs_next(struct recorder *recorder, struct outputs *out, struct error *err);

#endif
