/* The inside of a flight recorder, shared by its parts: recorder.c decides, in the session's thread; recorder_work.c judges and writes, in one of its own. */
#ifndef INFERSCOPE_CLI_RECORDER_STATE_H
#define INFERSCOPE_CLI_RECORDER_STATE_H

#include <pthread.h>

#include "cli/recorder.h"
#include "session/spool.h"

struct ruleset;

#define SECOND_NS 1000000000ull

enum job_kind { JOB_NONE = 0, JOB_JUDGE, JOB_WRITE };
enum holds { HOLDS_UNKNOWN = 0, HOLDS_NOT, HOLDS };

struct recorder {
	struct measure *measure;
	const struct recorder_group *group; /* NULL: it is alone */
	struct recorder_words words;
	uint32_t number;           /* of the last file */
	char stem[OUTPUT_PATH];    /* of what is written: STEM-1.iscope */
	volatile int stop;
	/* The session's thread: */
	uint64_t begin_ns, mark_ns, judge_ns, quiet_until_ns; /* CLOCK_MONOTONIC: what is due when; no file by the condition before */
	uint32_t wanted_seen;
	bool held;                 /* when it was judged last */
	bool due;                  /* a file; why says why */
	char why[CALL_WHY];
	/* Shared: */
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	bool running, ending;
	enum job_kind job;         /* what the thread works at; JOB_NONE: it waits, and the rest is the session's */
	struct spool_window *window;
	enum holds holds;
	char told[RECORDER_WHY];   /* what the condition compared, or why it is not known */
	bool judged;               /* holds and told are new */
	uint64_t cost_ns;          /* CPU time of the last job */
	uint32_t files;
	bool failed;
	struct error failure;
	/* The thread that works: */
	pthread_t thread;
};

/* The thread's function; CONTEXT is the recorder. Ends once `ending` is set and no job is left. */
void *recorder_work(void *context);
/* The next number that no file has: those of an earlier recorder stay. */
int recorder_outputs(struct recorder *recorder, struct outputs *out, struct error *err);

#endif
