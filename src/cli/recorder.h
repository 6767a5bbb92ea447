/*
 * attach as a flight recorder: of what is recorded only the last while is kept, and written when a condition holds or somebody asks for it. The condition is
 * judged, and files are written, by a thread of its own that gives way, so that neither keeps the session from its work.
 */
#ifndef INFERSCOPE_CLI_RECORDER_H
#define INFERSCOPE_CLI_RECORDER_H

#include "cli/measure.h"

struct recorder;

/* The options ask for one. */
bool recorder_wanted(const struct options *options);
/* Reads the options, and the condition; tests where files will go. MEASURE must outlive it. */
int recorder_open(struct measure *measure, struct recorder **out, struct error *err);
/* After measure_spool(). */
int recorder_start(struct recorder *recorder, struct error *err);
/* As session_record()'s stop and progress; CONTEXT is the recorder. */
const volatile int *recorder_stop(const struct recorder *recorder);
void recorder_progress(void *context, const struct session_progress *progress);
/* Waits for the file that is being written. -1 when one could not be. */
int recorder_finish(struct recorder *recorder, struct error *err);
/* Accepts NULL. */
void recorder_close(struct recorder *recorder);

#endif
