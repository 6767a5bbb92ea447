/* The inside of a sampler, shared by its parts: sampler.c begins, ends and hands over, sampler_work.c is what its two threads do. */
#ifndef INFERSCOPE_SESSION_SAMPLER_STATE_H
#define INFERSCOPE_SESSION_SAMPLER_STATE_H

#include "session/pace.h"
#include "session/perf_turns.h"
#include "session/sampler.h"

enum { PERF_STACK_LEAST = 8192 /* what a thread begins with: calls of numpy's and C++'s take more, and then it gets more; what lies further out is read later, when it may have changed */ };

struct worker {
	pthread_t thread;
	bool joined, ended; /* ended: under the lock */
};

struct sampler {
	struct sampler_settings settings;
	const struct target_facts *facts;
	struct census census;
	struct looker *looker;
	struct joiner *joiner;
	struct digest *digest;
	struct perf *perf;
	struct sights sights;
	struct watch watch;
	struct pace pace;
	struct event_builder building; /* of the sight at hand */
	uint64_t perf_least_ns, perf_most_ns; /* what a sample costs its thread with PERF_STACK_LEAST, and with PERF_STACK_MAX */
	bool switches_priced;
	uint32_t priced_bytes;         /* of stack; samples with so much are in the pace */
	uint64_t load_ns, lost_seen;   /* when the load is looked at again; what was lost until then */
	uint64_t perf_told_ns;         /* until then the totals know for how long perf_event was on */
	bool failed;                   /* the interpreter could not be read at the last census */
	int wake_fd; /* to be read when one of the flags below has changed */

	struct worker looking, telling;
	pthread_mutex_t lock;          /* of all below */
	pthread_cond_t changed;
	bool stop, paused, busy;       /* busy: a look is in progress */
	struct perf_turns turns;
	bool perf_on;                  /* its events are open */
	struct event_builder ready;
	struct sampler_totals totals;
};

/* The two threads, of a struct sampler. */
void *sampler_look_again(void *context);
void *sampler_tell_again(void *context);

#endif
