#include "report/gzip.h"

#include <string.h>

enum { GZIP_WINDOW = 15 + 16, GZIP_MEMORY = 8, GZIP_UNIX = 3 };

bool gzip_begin(struct gzip *gzip, struct sink *sink)
{
	static unsigned char comment[] = "InferScope";

	memset(gzip, 0, offsetof(struct gzip, packed));
	gzip->sink = sink;
	gzip->head = (gz_header){ .comment = comment, .os = GZIP_UNIX };
	if (deflateInit2(&gzip->packer, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	deflateSetHeader(&gzip->packer, &gzip->head);
	return true;
}

static void pack(struct gzip *gzip, const void *bytes, size_t length, int flush)
{
	gzip->packer.next_in = (unsigned char *)(uintptr_t)bytes;
	gzip->packer.avail_in = (unsigned)length;
	do {
		gzip->packer.next_out = gzip->packed;
		gzip->packer.avail_out = sizeof gzip->packed;
		gzip->failed |= deflate(&gzip->packer, flush) == Z_STREAM_ERROR;
		sink_write(gzip->sink, gzip->packed, sizeof gzip->packed - gzip->packer.avail_out);
	} while (!gzip->failed && gzip->packer.avail_out == 0);
}

void gzip_add(struct gzip *gzip, const void *bytes, size_t length)
{
	pack(gzip, bytes, length, Z_NO_FLUSH);
}

bool gzip_end(struct gzip *gzip)
{
	pack(gzip, "", 0, Z_FINISH);
	deflateEnd(&gzip->packer);
	return !gzip->failed;
}
