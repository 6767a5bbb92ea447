/* LEB128 into deflate into base64 into the sink. */
#include "report/html_pack.h"

#include <string.h>

enum { LEVEL = 5, GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8 };

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(struct pack *pack, const unsigned char *bytes, size_t length)
{
	char text[4 * (sizeof pack->packed / 3 + 2)];
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		pack->carry[pack->carried++] = bytes[i];
		if (pack->carried < 3)
			continue;
		uint32_t three = (uint32_t)pack->carry[0] << 16 | (uint32_t)pack->carry[1] << 8 | pack->carry[2];

		for (int shift = 18; shift >= 0; shift -= 6)
			text[used++] = DIGITS[three >> shift & 63];
		pack->carried = 0;
	}
	sink_write(pack->sink, text, used);
}

static void end_base64(struct pack *pack)
{
	uint32_t rest = (uint32_t)pack->carry[0] << 16 | (pack->carried > 1 ? (uint32_t)pack->carry[1] << 8 : 0);
	char text[4] = { DIGITS[rest >> 18 & 63], DIGITS[rest >> 12 & 63], pack->carried > 1 ? DIGITS[rest >> 6 & 63] : '=', '=' };

	if (pack->carried)
		sink_write(pack->sink, text, sizeof text);
}

static void deflate_plain(struct pack *pack, int flush)
{
	int status;

	pack->stream.next_in = pack->plain;
	pack->stream.avail_in = pack->plain_used;
	do {
		pack->stream.next_out = pack->packed;
		pack->stream.avail_out = sizeof pack->packed;
		status = deflate(&pack->stream, flush);
		if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
			pack->failed = true;
		put_base64(pack, pack->packed, sizeof pack->packed - pack->stream.avail_out);
	} while (!pack->failed && !pack->stream.avail_out);
	pack->plain_used = 0;
}

bool pack_begin(struct pack *pack, struct sink *sink)
{
	memset(pack, 0, sizeof *pack);
	pack->sink = sink;
	return deflateInit2(&pack->stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK;
}

void pack_number(struct pack *pack, uint64_t number)
{
	if (pack->plain_used + 10 > sizeof pack->plain)
		deflate_plain(pack, Z_NO_FLUSH);
	for (; number >= 128; number >>= 7) {
		pack->plain[pack->plain_used++] = (unsigned char)(number | 128);
		pack->bytes++;
	}
	pack->plain[pack->plain_used++] = (unsigned char)number;
	pack->bytes++;
}

void pack_signed(struct pack *pack, int64_t number)
{
	pack_number(pack, (uint64_t)number << 1 ^ (uint64_t)(number >> 63));
}

bool pack_end(struct pack *pack)
{
	pack_number(pack, PACK_END);
	deflate_plain(pack, Z_FINISH);
	end_base64(pack);
	deflateEnd(&pack->stream);
	return !pack->failed;
}
