/*
 * What a process that measures itself and the program that it started for that say to each other, over a socket (AF_UNIX, SOCK_SEQPACKET), so that
 * no right to trace the process is needed:
 *
 *   process: HELLO, with a descriptor of its own /proc/self/mem, opened for reading
 *   program: ENTER, with the collector's library and a page for struct handover, each a memfd
 *            process: loads the library, once, and lets a thread call its entry with that page; the two go on as abi/handover.h says
 *   process: ENTERED, when that thread has ended; or FAILED, with a text
 *
 * The process answers while it waits for the program anyway: until measuring has begun, and from when it asks for the end. Messages have one size.
 */
#ifndef INFERSCOPE_ABI_INSIDE_H
#define INFERSCOPE_ABI_INSIDE_H

#include <stdint.h>

enum inside_kind { INSIDE_HELLO = 0x01455349 /* "ISE\1", little-endian */, INSIDE_ENTER, INSIDE_ENTERED, INSIDE_FAILED };
enum { INSIDE_TEXT_BYTES = 252, INSIDE_PAGE_BYTES = 4096 };

struct inside_message {
	uint32_t kind; /* enum inside_kind */
	char text[INSIDE_TEXT_BYTES];
};

#endif
