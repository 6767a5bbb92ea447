/* Which call an address may be where it returns to, by the bytes in front of it. */
#ifndef INFERSCOPE_UNWIND_CALL_SITE_H
#define INFERSCOPE_UNWIND_CALL_SITE_H

#include <stdbool.h>
#include <stdint.h>

enum { CALL_BYTES_MAX = 7 };

/* The same bytes may be read as both. */
struct call_site {
	bool direct, indirect;
	uint64_t target; /* of the direct one */
};

/* CODE is what stands before IP. */
struct call_site call_site_before(const unsigned char code[CALL_BYTES_MAX], uint64_t ip);

#endif
