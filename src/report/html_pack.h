/* Numbers on their way into a page: varints, through gzip, as base64. Memory stays the same however many there are. */
#ifndef INFERSCOPE_REPORT_HTML_PACK_H
#define INFERSCOPE_REPORT_HTML_PACK_H

#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

#include "base/sink.h"

enum pack_record { PACK_END = 0, PACK_SLICES = 1, PACK_TREE = 2, PACK_DIFF = 3 };

struct pack {
	struct sink *sink;
	z_stream stream;
	unsigned char plain[8192], packed[12288], carry[3];
	unsigned plain_used, carried;
	uint64_t bytes; /* before compression */
	bool failed;
};

/* False when out of memory. The text between pack_begin() and pack_end() has no byte that means anything in HTML. */
bool pack_begin(struct pack *pack, struct sink *sink);
void pack_number(struct pack *pack, uint64_t number); /* 1 to 10 bytes, small ones short */
void pack_signed(struct pack *pack, int64_t number);
/* How an index that may be UINT32_MAX, for none, is written. */
static inline uint64_t pack_index(uint32_t index) { return index == UINT32_MAX ? 0 : index + 1ull; }
/* False when anything failed. Frees what pack_begin() took. */
bool pack_end(struct pack *pack);

#endif
