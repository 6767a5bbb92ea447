/* A small fixed capture, by hand: an inference server with three threads, one function of each precision, two findings. Plain data, so that a test can bend it. */
#ifndef INFERSCOPE_TESTS_REPORT_FIXTURE_H
#define INFERSCOPE_TESTS_REPORT_FIXTURE_H

#include "report/report.h"

enum { FIXTURE_FUNCTIONS = 9, FIXTURE_NODES = 16, FIXTURE_THREADS = 4 };

struct fixture {
	struct timeline timeline;
	struct analysis analysis;
	struct function functions[FIXTURE_FUNCTIONS];
	struct tree_node nodes[FIXTURE_NODES];
	struct thread threads[FIXTURE_THREADS];
	struct process process;
	struct finding_report findings[2];
	struct report_options options;
};

void fixture_init(struct fixture *fixture);
/* Every name becomes one of d14's: quotes, markup, control bytes, bidirectional overrides, invalid UTF-8, a megabyte. */
void fixture_make_hostile(struct fixture *fixture);
extern const char *const HOSTILE_NAMES[];
extern const unsigned HOSTILE_COUNT;

#endif
