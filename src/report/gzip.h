/* Bytes of an export, packed by zlib as gzip. The head names InferScope, by which it knows its own files. */
#ifndef INFERSCOPE_REPORT_GZIP_H
#define INFERSCOPE_REPORT_GZIP_H

#include <zlib.h>

#include "base/sink.h"

struct gzip {
	struct sink *sink;
	z_stream packer;
	gz_header head;
	bool failed;
	unsigned char packed[16384];
};

/* False when out of memory. SINK stays the caller's. */
bool gzip_begin(struct gzip *gzip, struct sink *sink);
void gzip_add(struct gzip *gzip, const void *bytes, size_t length);
/* The last bytes. False where anything failed but the sink, which knows that itself. */
bool gzip_end(struct gzip *gzip);

#endif
