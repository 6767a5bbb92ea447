/* Appending chunks to a sink. */
#include "trace/writer.h"

#include <stdlib.h>

#include "trace/codec.h"
#include "trace/format.h"

struct trace_writer {
	struct sink *sink;
	enum trace_codec codec;
	struct codec *packer;
	uint64_t bytes;
};

static void put(struct trace_writer *writer, const void *bytes, size_t length)
{
	sink_write(writer->sink, bytes, length);
	writer->bytes += length;
}

int trace_writer_open(struct sink *sink, enum trace_codec codec, uint64_t created_unix_ns, struct trace_writer **out, struct error *err)
{
	const struct file_head head = {
		.version = TRACE_VERSION,
		.must_know = codec == CODEC_DELTA_ZSTD ? FEATURE_DELTA_ZSTD : 0,
		.created_unix_ns = created_unix_ns,
	};
	struct trace_writer *writer = calloc(1, sizeof *writer);
	unsigned char bytes[FILE_HEAD_BYTES];

	if (!writer)
		return fail(err, ERR_MEMORY, "starting the trace");
	writer->sink = sink;
	writer->codec = codec;
	writer->packer = codec_new();
	if (!writer->packer) {
		free(writer);
		return fail(err, ERR_MEMORY, "starting the trace");
	}
	file_head_write(&head, bytes);
	put(writer, bytes, sizeof bytes);
	*out = writer;
	return 0;
}

int trace_writer_add(struct trace_writer *writer, const struct chunk *chunk, struct error *err)
{
	struct chunk_store store = { .codec = CODEC_RAW, .raw_bytes = (uint32_t)chunk->size, .stored_bytes = (uint32_t)chunk->size };
	unsigned char head[CHUNK_HEAD_MAX];
	const void *payload = chunk->events, *packed;
	size_t packed_size;

	if (chunk->size > CHUNK_RAW_MAX || chunk->ref_count > LANE_DEPTH_REFS)
		return fail(err, ERR_INTERNAL, "a chunk of %zu bytes with %u refs is too large", chunk->size, chunk->ref_count);
	if (!events_count(chunk->events, chunk->size, &store.event_count))
		return fail(err, ERR_TRACE_DAMAGED, "lane %u holds a malformed event", chunk->lane);
	if (writer->codec == CODEC_DELTA_ZSTD && chunk->size) {
		packed = codec_pack(writer->packer, chunk->events, chunk->size, store.event_count, &packed_size);
		if (!packed)
			return fail(err, ERR_MEMORY, "packing a chunk of the trace");
		if (packed_size < chunk->size) {
			payload = packed;
			store.codec = CODEC_DELTA_ZSTD;
			store.stored_bytes = (uint32_t)packed_size;
		}
	}
	store.payload_crc = crc_of(payload, store.stored_bytes);
	put(writer, head, chunk_head_write(chunk, &store, head));
	put(writer, payload, store.stored_bytes);
	return 0;
}

void trace_writer_pack(struct trace_writer *writer, bool pack)
{
	writer->codec = pack ? CODEC_DELTA_ZSTD : CODEC_RAW;
}

void trace_writer_count(struct trace_writer *writer, uint64_t bytes)
{
	writer->bytes += bytes;
}

uint64_t trace_writer_bytes(const struct trace_writer *writer)
{
	return writer->bytes;
}

void trace_writer_close(struct trace_writer *writer)
{
	if (!writer)
		return;
	codec_free(writer->packer);
	free(writer);
}
