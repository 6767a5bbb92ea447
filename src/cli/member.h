/*
 * One process of several, measured by a process of ours of its own: sessions share nothing but a page, and what goes wrong with one process, or in
 * reading it, goes wrong there alone.
 */
#ifndef INFERSCOPE_CLI_MEMBER_H
#define INFERSCOPE_CLI_MEMBER_H

#include "analyze/job.h"
#include "cli/measure.h"
#include "cli/recorder.h"
#include "session/find.h"

/* Shared by all: the parent writes, the others read. */
struct fleet_page {
	volatile int stop;          /* as session_record()'s */
	volatile uint64_t until_ns; /* as session_options.until_ns */
	struct recorder_call call;
};

enum member_phase { MEMBER_ATTACHING = 0, MEMBER_RECORDING, MEMBER_ENDING, MEMBER_DONE };

/* Shared by the parent and the one that measures: this one writes, the parent reads the rest once it has ended. */
struct member_page {
	volatile int phase;
	volatile uint64_t events, lost, samples;
	int result;                 /* 0, or -1 with err */
	struct error err;
	struct session_receipt receipt;
	struct rank rank;           /* name empty: there is none */
	bool watched;               /* a flight recorder has begun */
	struct recorder_told told;
};

struct member {
	struct found process;
	char name[32];              /* "process 4711", with a number where the pid was measured before */
	char stem[OUTPUT_PATH];     /* where its files lie, less the extension; empty: it keeps none */
	bool first;                 /* was there from the beginning */
	bool over, skipped;         /* skipped: it is no Python process, and nobody named it */
	bool brief;                 /* skipped, because it had ended before it could be looked at */
	unsigned tries;
	uint64_t not_before_ns;     /* CLOCK_MONOTONIC; when it may be begun */
	pid_t child;                /* 0 = none at the moment */
	struct member_page *page;
	struct { uint32_t asks, files, failures; } seen; /* of what the flight recorder told */
};

/* It is not begun any more, and that is told. */
void member_miss(struct member *member);
/* Begins to measure: as MEASURE says, but what concerns the one process. PLAN's formats are written beside its trace. */
int member_begin(struct member *member, const struct measure *measure, struct fleet_page *fleet, struct error *err);
/* True once it has ended; then page is whole, also where it died. */
bool member_reap(struct member *member);
void member_done(struct member *member);

#endif
