/* What the test driver and its payload say to each other. */
#ifndef INFERSCOPE_TESTS_PAYLOAD_H
#define INFERSCOPE_TESTS_PAYLOAD_H

#include <stdint.h>

struct payload_argument {
	uint64_t work_us, sleep_ms; /* driver's */
	uint64_t calls, bad, done;  /* payload's */
};

#endif
