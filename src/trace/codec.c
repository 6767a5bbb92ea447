/* Columns and zstd. Unpacking trusts nothing: a chunk is someone else's file. */
#include "trace/codec.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "trace/reader.h"

enum { LEVEL = 1 }; /* level 3 saves 2 % more; the attacher runs beside its target and is to be light */

struct codec {
	ZSTD_CCtx *compressor;
	ZSTD_DCtx *decompressor;
	unsigned char *columns, *result;
	size_t columns_size, result_size;
	bool failed; /* out of memory */
};

/* One column per byte of struct event, each COUNT long, then the payloads one after the other. */
enum column { COLUMN_KIND, COLUMN_FLAGS, COLUMN_SIZE, COLUMN_REF = COLUMN_SIZE + 2, COLUMN_TICKS = COLUMN_REF + 4, COLUMNS = COLUMN_TICKS + 8 };

struct codec *codec_new(void)
{
	return calloc(1, sizeof(struct codec));
}

void codec_free(struct codec *codec)
{
	if (!codec)
		return;
	ZSTD_freeCCtx(codec->compressor);
	ZSTD_freeDCtx(codec->decompressor);
	free(codec->columns);
	free(codec->result);
	free(codec);
}

static bool make_room(unsigned char **buffer, size_t *size, size_t wanted)
{
	unsigned char *larger;

	if (*buffer && wanted <= *size)
		return true;
	larger = realloc(*buffer, wanted ? wanted : 1);
	if (!larger)
		return false;
	*buffer = larger;
	*size = wanted;
	return true;
}

bool codec_failed(const struct codec *codec)
{
	return codec->failed;
}

bool events_count(const void *bytes, size_t size, uint32_t *count)
{
	struct event_cursor cursor = event_cursor(bytes, size);
	uint32_t found = 0;

	while (event_next(&cursor))
		found++;
	if (cursor.damaged)
		return false;
	*count = found;
	return true;
}

static void split(const unsigned char *events, uint32_t count, unsigned char *columns)
{
	unsigned char *payload = columns + (size_t)count * COLUMNS;
	uint64_t ticks = 0, difference;
	struct event event;
	uint32_t i;
	int byte;

	for (i = 0; i < count; i++) {
		memcpy(&event, events, sizeof event);
		difference = event.ticks - ticks;
		ticks = event.ticks;
		columns[(size_t)count * COLUMN_KIND + i] = event.kind;
		columns[(size_t)count * COLUMN_FLAGS + i] = event.flags;
		for (byte = 0; byte < 2; byte++)
			columns[(size_t)count * (COLUMN_SIZE + byte) + i] = (unsigned char)(event.size >> 8 * byte);
		for (byte = 0; byte < 4; byte++)
			columns[(size_t)count * (COLUMN_REF + byte) + i] = (unsigned char)(event.ref >> 8 * byte);
		for (byte = 0; byte < 8; byte++)
			columns[(size_t)count * (COLUMN_TICKS + byte) + i] = (unsigned char)(difference >> 8 * byte);
		memcpy(payload, events + sizeof event, event.size - sizeof event);
		payload += event.size - sizeof event;
		events += event.size;
	}
}

static uint64_t gather(const unsigned char *column, uint32_t count, uint32_t row, int bytes)
{
	uint64_t value = 0;
	int byte;

	for (byte = 0; byte < bytes; byte++)
		value |= (uint64_t)column[(size_t)count * byte + row] << 8 * byte;
	return value;
}

/* Puts the events together again in SIZE bytes at OUT; false when their sizes do not add up to it. */
static bool join(const unsigned char *columns, uint32_t count, unsigned char *out, size_t size)
{
	const unsigned char *payload = columns + (size_t)count * COLUMNS;
	size_t left = size;
	uint64_t ticks = 0;
	struct event event;
	uint32_t i;

	for (i = 0; i < count; i++) {
		ticks += gather(columns + (size_t)count * COLUMN_TICKS, count, i, 8);
		event = (struct event){
			.ticks = ticks,
			.ref = (uint32_t)gather(columns + (size_t)count * COLUMN_REF, count, i, 4),
			.size = (uint16_t)gather(columns + (size_t)count * COLUMN_SIZE, count, i, 2),
			.kind = columns[(size_t)count * COLUMN_KIND + i],
			.flags = columns[(size_t)count * COLUMN_FLAGS + i],
		};
		if (event.size < sizeof event || event.size % 8 || event.size > left)
			return false;
		/* The heads of the events to come need room too: else this payload would reach beyond the columns. */
		if (left - event.size < (size_t)(count - i - 1) * sizeof event)
			return false;
		memcpy(out, &event, sizeof event);
		memcpy(out + sizeof event, payload, event.size - sizeof event);
		payload += event.size - sizeof event;
		out += event.size;
		left -= event.size;
	}
	return left == 0;
}

const void *codec_pack(struct codec *codec, const void *events, size_t events_size, uint32_t count, size_t *size)
{
	size_t bound = ZSTD_compressBound(events_size), packed;

	if (!codec->compressor)
		codec->compressor = ZSTD_createCCtx();
	if (!codec->compressor || !make_room(&codec->columns, &codec->columns_size, events_size) ||
	    !make_room(&codec->result, &codec->result_size, bound))
		return NULL;
	split(events, count, codec->columns);
	packed = ZSTD_compressCCtx(codec->compressor, codec->result, bound, codec->columns, events_size, LEVEL);
	if (ZSTD_isError(packed))
		return NULL;
	*size = packed;
	return codec->result;
}

const void *codec_unpack(struct codec *codec, const void *packed, size_t packed_size, size_t raw_size, uint32_t count)
{
	size_t unpacked;

	if ((uint64_t)count * sizeof(struct event) > raw_size)
		return NULL;
	if (!codec->decompressor)
		codec->decompressor = ZSTD_createDCtx();
	if (!codec->decompressor || !make_room(&codec->columns, &codec->columns_size, raw_size) ||
	    !make_room(&codec->result, &codec->result_size, raw_size)) {
		codec->failed = true;
		return NULL;
	}
	unpacked = ZSTD_decompressDCtx(codec->decompressor, codec->columns, raw_size, packed, packed_size);
	if (ZSTD_isError(unpacked) || unpacked != raw_size)
		return NULL;
	return join(codec->columns, count, codec->result, raw_size) ? codec->result : NULL;
}
