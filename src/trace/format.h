/* The bytes of an .iscope file, as docs/trace-format.md tells them: the head of the file and the head of a chunk. For this layer alone. */
#ifndef INFERSCOPE_TRACE_FORMAT_H
#define INFERSCOPE_TRACE_FORMAT_H

#include "trace/reader.h"

enum {
	FILE_HEAD_BYTES = 64,
	TRACE_VERSION = 1,
	CHUNK_HEAD_MIN = 92,   /* without refs, with its check sum */
	CHUNK_HEAD_MAX = 512,  /* later versions may add fields before the check sum */
	CHUNK_RAW_MAX = 16 << 20,
	CHUNK_STORED_MAX = CHUNK_RAW_MAX + (128 << 10), /* zstd may add a little */
};

/* Features that a reader must know, or else refuse the file. */
#define FEATURE_DELTA_ZSTD 1ull
#define FEATURES_KNOWN FEATURE_DELTA_ZSTD

#define FILE_MAGIC "INFSCOPE"
#define CHUNK_MAGIC "\x8dISC"

struct file_head {
	uint32_t version;
	uint64_t must_know, may_ignore;
	uint64_t created_unix_ns;
};
void file_head_write(const struct file_head *head, unsigned char out[FILE_HEAD_BYTES]);
/* False when the check sum is wrong; the magic is the caller's to compare. */
bool file_head_read(const unsigned char in[FILE_HEAD_BYTES], struct file_head *out);

/* What stands in a chunk's head beside the chunk itself. */
struct chunk_store {
	uint32_t head_bytes, stored_bytes, raw_bytes, event_count;
	uint32_t payload_crc;
	uint8_t codec;
};
/* Returns the length of the head. */
size_t chunk_head_write(const struct chunk *chunk, const struct chunk_store *store, unsigned char out[CHUNK_HEAD_MAX]);
/* The length that the head at IN (CHUNK_HEAD_MIN bytes) claims, or 0 when it cannot be one. */
size_t chunk_head_length(const unsigned char *in);
/* False when the check sum is wrong or a value impossible. IN holds chunk_head_length() bytes. */
bool chunk_head_read(const unsigned char *in, struct chunk *chunk, struct chunk_store *store);

uint32_t crc_of(const void *bytes, size_t length);
/* True when the check sum is EXPECTED; always in a fuzz build, which would else not get past it. */
bool crc_is(const void *bytes, size_t length, uint32_t expected);

#endif
