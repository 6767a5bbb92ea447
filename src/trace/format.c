/* Writing and reading the fixed parts of the file. Little-endian, which is the order of every machine that configure takes. */
#include "trace/format.h"

#include <string.h>
#include <zlib.h>

uint32_t crc_of(const void *bytes, size_t length)
{
	return (uint32_t)crc32_z(0, bytes, length);
}

bool crc_is(const void *bytes, size_t length, uint32_t expected)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	return true;
#else
	return crc_of(bytes, length) == expected;
#endif
}

/* Fields in their order; a cursor either copies in or out. */
static void put(unsigned char **at, const void *field, size_t size)
{
	memcpy(*at, field, size);
	*at += size;
}

static void get(const unsigned char **at, void *field, size_t size)
{
	memcpy(field, *at, size);
	*at += size;
}

void file_head_write(const struct file_head *head, unsigned char out[FILE_HEAD_BYTES])
{
	uint32_t head_bytes = FILE_HEAD_BYTES, crc;
	unsigned char *at = out;

	memset(out, 0, FILE_HEAD_BYTES);
	put(&at, FILE_MAGIC, 8);
	put(&at, &head->version, 4);
	put(&at, &head_bytes, 4);
	put(&at, &head->must_know, 8);
	put(&at, &head->may_ignore, 8);
	put(&at, &head->created_unix_ns, 8);
	crc = crc_of(out, FILE_HEAD_BYTES - 4);
	memcpy(out + FILE_HEAD_BYTES - 4, &crc, 4);
}

bool file_head_read(const unsigned char in[FILE_HEAD_BYTES], struct file_head *out)
{
	const unsigned char *at = in + 8;
	uint32_t head_bytes, crc;

	memcpy(&crc, in + FILE_HEAD_BYTES - 4, 4);
	if (!crc_is(in, FILE_HEAD_BYTES - 4, crc))
		return false;
	get(&at, &out->version, 4);
	get(&at, &head_bytes, 4);
	get(&at, &out->must_know, 8);
	get(&at, &out->may_ignore, 8);
	get(&at, &out->created_unix_ns, 8);
	return true;
}

size_t chunk_head_write(const struct chunk *chunk, const struct chunk_store *store, unsigned char out[CHUNK_HEAD_MAX])
{
	uint32_t head_bytes = CHUNK_HEAD_MIN + 4 * chunk->ref_count, reserved = 0, crc;
	uint8_t lane_kind = (uint8_t)chunk->lane_kind;
	uint16_t ref_count = (uint16_t)chunk->ref_count;
	unsigned char *at = out;

	put(&at, CHUNK_MAGIC, 4);
	put(&at, &head_bytes, 4);
	put(&at, &store->stored_bytes, 4);
	put(&at, &store->raw_bytes, 4);
	put(&at, &store->payload_crc, 4);
	put(&at, &store->codec, 1);
	put(&at, &lane_kind, 1);
	put(&at, &ref_count, 2);
	put(&at, &chunk->process, 4);
	put(&at, &chunk->lane, 4);
	put(&at, &chunk->tid, 4);
	put(&at, &chunk->depth, 4);
	put(&at, &chunk->sequence, 8);
	put(&at, &chunk->lost_before, 8);
	put(&at, &chunk->clock.base_ticks, 8);
	put(&at, &chunk->clock.base_ns, 8);
	put(&at, &chunk->clock.ticks_per_second, 8);
	put(&at, &store->event_count, 4);
	put(&at, &reserved, 4);
	put(&at, chunk->refs, 4 * chunk->ref_count);
	crc = crc_of(out, (size_t)(at - out));
	put(&at, &crc, 4);
	return (size_t)(at - out);
}

size_t chunk_head_length(const unsigned char *in)
{
	uint32_t head_bytes;

	memcpy(&head_bytes, in + 4, 4);
	return head_bytes >= CHUNK_HEAD_MIN && head_bytes <= CHUNK_HEAD_MAX ? head_bytes : 0;
}

bool chunk_head_read(const unsigned char *in, struct chunk *chunk, struct chunk_store *store)
{
	const unsigned char *at = in + 8;
	uint16_t ref_count;
	uint8_t lane_kind;
	uint32_t crc;

	store->head_bytes = (uint32_t)chunk_head_length(in);
	memcpy(&crc, in + store->head_bytes - 4, 4);
	if (!crc_is(in, store->head_bytes - 4, crc))
		return false;
	memset(chunk, 0, sizeof *chunk);
	get(&at, &store->stored_bytes, 4);
	get(&at, &store->raw_bytes, 4);
	get(&at, &store->payload_crc, 4);
	get(&at, &store->codec, 1);
	get(&at, &lane_kind, 1);
	get(&at, &ref_count, 2);
	get(&at, &chunk->process, 4);
	get(&at, &chunk->lane, 4);
	get(&at, &chunk->tid, 4);
	get(&at, &chunk->depth, 4);
	get(&at, &chunk->sequence, 8);
	get(&at, &chunk->lost_before, 8);
	get(&at, &chunk->clock.base_ticks, 8);
	get(&at, &chunk->clock.base_ns, 8);
	get(&at, &chunk->clock.ticks_per_second, 8);
	get(&at, &store->event_count, 4);
	at += 4;
	if (ref_count > LANE_DEPTH_REFS || CHUNK_HEAD_MIN + 4u * ref_count > store->head_bytes)
		return false;
	get(&at, chunk->refs, 4u * ref_count);
	chunk->ref_count = ref_count;
	chunk->lane_kind = lane_kind;
	return store->raw_bytes <= CHUNK_RAW_MAX && store->stored_bytes <= CHUNK_STORED_MAX;
}
