/* The file: whole, on a pipe, cut anywhere, with any byte changed, and made by somebody who wishes us ill. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "tests/unit/trace_help.h"
#include "trace/codec.h"
#include "trace/format.h"

static const char three_chunks[] =
	"chunk process=0 lane=1 tid=10 kind=thread sequence=1 lost=0 depth=1 refs=4 clock=1000000000/0/0\n"
	"100 enter ref=1\n110 enter ref=2\n120 leave ref=2\n130 leave ref=1\n"
	"chunk process=0 lane=1 tid=10 kind=thread sequence=2 lost=0 depth=1 refs=4 clock=1000000000/0/0\n"
	"200 enter ref=1\n210 leave ref=1\n"
	"chunk process=0 lane=0 tid=0 kind=meta sequence=1 lost=0 depth=0 refs= clock=1000000000/0/0\n"
	"0 code ref=1 address=0x10 line=1 code_flags=0x0 name=\"f\" qualname=\"f\" file=\"app.py\"\n";

static unsigned chunks_of(const void *data, size_t size, struct trace_info *info)
{
	struct error err = { ERR_NONE };
	struct event_cursor cursor;
	struct chunk chunk;
	struct trace *trace;
	unsigned count = 0;
	int got;

	if (trace_open_memory(data, size, &trace, &err) < 0)
		return 0;
	while ((got = trace_next(trace, &chunk, &err)) > 0) {
		cursor = event_cursor(chunk.events, chunk.size);
		while (event_next(&cursor))
			;
		cr_assert_not(cursor.damaged);
		count++;
	}
	cr_assert_eq(got, 0);
	*info = trace_info(trace);
	trace_close(trace);
	return count;
}

Test(file, has_what_was_written)
{
	struct bytes file = trace_of_text(three_chunks, CODEC_DELTA_ZSTD);
	struct error err = { ERR_NONE };
	struct trace *trace;
	struct chunk chunk;

	cr_assert_eq(trace_open_memory(file.data, file.size, &trace, &err), 0);
	cr_assert_eq(trace_info(trace).created_unix_ns, 1700000000123456789u);
	cr_assert_eq(trace_next(trace, &chunk, &err), 1);
	cr_assert_eq(chunk.tid, 10u);
	cr_assert_eq(chunk.lane_kind, (uint32_t)LANE_THREAD);
	cr_assert_eq(chunk.depth, 1u);
	cr_assert_eq(chunk.ref_count, 1u);
	cr_assert_eq(chunk.refs[0], 4u);
	cr_assert_eq(chunk.size, 64u);
	cr_assert_eq(trace_next(trace, &chunk, &err), 1);
	cr_assert_eq(chunk.sequence, 2u);
	cr_assert_eq(trace_next(trace, &chunk, &err), 1);
	cr_assert_eq(trace_next(trace, &chunk, &err), 0);
	cr_assert_eq(trace_next(trace, &chunk, &err), 0);
	cr_assert_eq(trace_info(trace).chunks, 3u);
	cr_assert_eq(trace_info(trace).damaged_chunks, 0u);
	cr_assert_not(trace_info(trace).truncated);
	trace_close(trace);
	free(file.data);
}

Test(file, can_be_read_again_from_the_start)
{
	struct bytes file = trace_of_text(three_chunks, CODEC_RAW);
	char path[] = "/tmp/inferscope-trace.XXXXXX";
	struct error err = { ERR_NONE };
	struct chunk chunk;
	struct trace *trace;
	int fd = mkstemp(path), pass;

	cr_assert_eq(write(fd, file.data, file.size), (ssize_t)file.size);
	close(fd);
	cr_assert_eq(trace_open(path, &trace, &err), 0, "%s", err.text);
	for (pass = 0; pass < 3; pass++) {
		while (trace_next(trace, &chunk, &err) > 0)
			;
		cr_assert_eq(trace_info(trace).chunks, 3u);
		cr_assert_eq(trace_rewind(trace, &err), 0);
	}
	trace_close(trace);
	unlink(path);
	free(file.data);
}

struct drip {
	struct bytes file;
	int fd;
};

/* Byte by byte, as slowly as a pipe can be. */
static void *drip(void *argument)
{
	struct drip *job = argument;
	size_t i;

	for (i = 0; i < job->file.size; i++)
		if (write(job->fd, job->file.data + i, 1) != 1)
			break;
	close(job->fd);
	return NULL;
}

Test(file, comes_through_a_pipe_in_pieces)
{
	struct drip job = { .file = trace_of_text(three_chunks, CODEC_DELTA_ZSTD) };
	struct error err = { ERR_NONE };
	struct chunk chunk;
	struct trace *trace;
	pthread_t thread;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	dup2(ends[0], STDIN_FILENO);
	job.fd = ends[1];
	pthread_create(&thread, NULL, drip, &job);
	cr_assert_eq(trace_open("-", &trace, &err), 0, "%s", err.text);
	while (trace_next(trace, &chunk, &err) > 0)
		;
	cr_assert_eq(trace_info(trace).chunks, 3u);
	cr_assert_eq(trace_rewind(trace, &err), -1);
	pthread_join(thread, NULL);
	trace_close(trace);
	free(job.file.data);
}

Test(file, cut_anywhere_it_is_a_shorter_valid_file)
{
	struct bytes file = trace_of_text(three_chunks, CODEC_DELTA_ZSTD);
	unsigned chunks, before = 0;
	struct trace_info info;
	unsigned char *copy;
	size_t size;

	for (size = FILE_HEAD_BYTES; size <= file.size; size++) {
		copy = malloc(size); /* of its own, so that a sanitizer sees every byte read beyond it */
		memcpy(copy, file.data, size);
		chunks = chunks_of(copy, size, &info);
		cr_assert(chunks == before || chunks == before + 1, "%zu bytes give %u chunks", size, chunks);
		cr_assert_eq(info.damaged_chunks, 0u, "%zu", size);
		cr_assert_eq(info.damaged_bytes, 0u, "%zu", size);
		cr_assert_eq(info.truncated, chunks == before && size > FILE_HEAD_BYTES, "%zu", size);
		before = chunks;
		free(copy);
	}
	cr_assert_eq(before, 3u);
	free(file.data);
}

Test(file, any_changed_byte_costs_at_most_its_chunk)
{
	static const unsigned char flips[] = { 0x01, 0x80, 0xff };
	struct bytes file = trace_of_text(three_chunks, CODEC_DELTA_ZSTD);
	struct trace_info info;
	unsigned chunks;
	size_t at, i;

	for (at = 8; at < file.size; at++)
		for (i = 0; i < sizeof flips; i++) {
			file.data[at] ^= flips[i];
			chunks = chunks_of(file.data, file.size, &info);
			file.data[at] ^= flips[i];
			cr_assert_geq(chunks, 2u, "byte %zu", at);
			cr_assert(chunks == 3 || info.damaged_chunks == 1 || info.truncated, "byte %zu: %u", at, chunks);
			cr_assert(at < FILE_HEAD_BYTES || chunks == 2, "byte %zu is not guarded", at);
			cr_assert(info.damaged_bytes || info.truncated, "byte %zu", at);
		}
	free(file.data);
}

Test(file, missing_and_added_bytes_cost_one_chunk)
{
	struct bytes file = trace_of_text(three_chunks, CODEC_RAW);
	unsigned char *copy = malloc(file.size + 5);
	struct trace_info info;
	size_t at, length;

	for (at = FILE_HEAD_BYTES; at + 5 < file.size; at++) {
		memcpy(copy, file.data, at);
		memcpy(copy + at, file.data + at + 5, file.size - at - 5);
		cr_assert_geq(chunks_of(copy, file.size - 5, &info), 1u, "byte %zu", at);
		memset(copy + at, 0x8d, 5);
		length = file.size - at;
		memcpy(copy + at + 5, file.data + at, length);
		cr_assert_geq(chunks_of(copy, file.size + 5, &info), 2u, "byte %zu", at);
		cr_assert_gt(info.damaged_bytes, 0u);
	}
	free(copy);
	free(file.data);
}

Test(file, random_bytes_never_harm)
{
	struct bytes file = trace_of_text(three_chunks, CODEC_DELTA_ZSTD);
	uint64_t state = 42;
	struct trace_info info;
	unsigned char *copy = malloc(file.size);
	int round, change;

	for (round = 0; round < 3000; round++) {
		memcpy(copy, file.data, file.size);
		for (change = 0; change < 1 + round % 20; change++)
			copy[8 + next_random(&state) % (file.size - 8)] = (unsigned char)next_random(&state);
		chunks_of(copy, file.size, &info);
	}
	free(copy);
	free(file.data);
}

/* A chunk whose check sums are right and whose content is a lie. */
static size_t forge(unsigned char *out, struct chunk_store store, const void *payload)
{
	struct chunk chunk = { .lane_kind = LANE_THREAD, .sequence = 1 };
	size_t head;

	store.payload_crc = crc_of(payload, store.stored_bytes);
	head = chunk_head_write(&chunk, &store, out);
	memcpy(out + head, payload, store.stored_bytes);
	return head + store.stored_bytes;
}

Test(file, lies_with_good_check_sums_are_found_out)
{
	struct bytes file = trace_of_text(three_chunks, CODEC_DELTA_ZSTD);
	static const struct chunk_store lies[] = {
		{ .codec = CODEC_RAW, .stored_bytes = 16, .raw_bytes = 16, .event_count = 1 },          /* an event of size 0 */
		{ .codec = CODEC_RAW, .stored_bytes = 16, .raw_bytes = 32, .event_count = 1 },
		{ .codec = CODEC_RAW, .stored_bytes = 0, .raw_bytes = 0, .event_count = 1 },
		{ .codec = CODEC_DELTA_ZSTD, .stored_bytes = 32, .raw_bytes = 16 << 20, .event_count = 1 << 20 },
		{ .codec = CODEC_DELTA_ZSTD, .stored_bytes = 32, .raw_bytes = 16, .event_count = UINT32_MAX },
		{ .codec = CODEC_DELTA_ZSTD, .stored_bytes = 32, .raw_bytes = UINT32_MAX, .event_count = 1 },
		{ .codec = 77, .stored_bytes = 16, .raw_bytes = 16, .event_count = 1 },
	};
	unsigned char payload[32] = { 0 }, *copy = malloc(file.size + 1024);
	struct trace_info info;
	size_t i, length;

	for (i = 0; i < sizeof lies / sizeof *lies; i++) {
		memcpy(copy, file.data, FILE_HEAD_BYTES);
		length = FILE_HEAD_BYTES + forge(copy + FILE_HEAD_BYTES, lies[i], payload);
		memcpy(copy + length, file.data + FILE_HEAD_BYTES, file.size - FILE_HEAD_BYTES);
		cr_assert_eq(chunks_of(copy, length + file.size - FILE_HEAD_BYTES, &info), 3u, "lie %zu", i);
		cr_assert_eq(info.damaged_chunks, 1u, "lie %zu", i);
	}
	free(copy);
	free(file.data);
}

/* A file of one chunk whose columns say that its events have these sizes. */
static unsigned chunks_of_columns(const uint16_t *sizes, uint32_t count, uint32_t raw_bytes, struct trace_info *info)
{
	unsigned char *columns = calloc(1, raw_bytes), *file = calloc(1, 4096), packed[1024];
	struct chunk_store store = { .codec = CODEC_DELTA_ZSTD, .raw_bytes = raw_bytes, .event_count = count };
	unsigned chunks;
	size_t length;
	uint32_t i;

	for (i = 0; i < count; i++) {
		columns[2 * count + i] = (unsigned char)sizes[i];
		columns[3 * count + i] = (unsigned char)(sizes[i] >> 8);
	}
	store.stored_bytes = (uint32_t)ZSTD_compress(packed, sizeof packed, columns, raw_bytes, 1);
	file_head_write(&(struct file_head){ .version = 1, .must_know = FEATURE_DELTA_ZSTD }, file);
	length = FILE_HEAD_BYTES + forge(file + FILE_HEAD_BYTES, store, packed);
	chunks = chunks_of(file, length, info);
	free(columns);
	free(file);
	return chunks;
}

Test(file, columns_that_lie_about_sizes_are_found_out)
{
	static const struct { uint16_t sizes[3]; uint32_t count, raw_bytes, expected; } rows[] = {
		{ { 16, 24, 16 }, 3, 56, 1 },
		{ { 64 }, 1, 16, 0 },         /* beyond the events */
		{ { 48, 16 }, 2, 48, 0 },     /* its payload would reach beyond the columns */
		{ { 16, 16 }, 2, 48, 0 },     /* do not fill it */
		{ { 8, 24 }, 2, 32, 0 },
		{ { 20, 16 }, 2, 40, 0 },
		{ { 0, 0, 48 }, 3, 48, 0 },
		{ { 65528, 16 }, 2, 40, 0 },
	};
	struct trace_info info;
	size_t i;

	for (i = 0; i < sizeof rows / sizeof *rows; i++)
		cr_assert_eq(chunks_of_columns(rows[i].sizes, rows[i].count, rows[i].raw_bytes, &info), rows[i].expected, "row %zu", i);
}

Test(file, a_chunk_beyond_16_mib_is_refused)
{
	uint32_t count = (CHUNK_RAW_MAX >> 4) + 1, i;
	struct chunk_store store = { .codec = CODEC_DELTA_ZSTD, .raw_bytes = count * 16, .event_count = count };
	struct event *events = calloc(count, sizeof *events);
	unsigned char *file = calloc(1, 1 << 20);
	struct codec *codec = codec_new();
	struct error err = { ERR_NONE };
	struct trace_writer *writer;
	struct trace_info info;
	const void *packed;
	struct sink *sink;
	struct text text;
	size_t size;

	for (i = 0; i < count; i++)
		events[i].size = 16;
	packed = codec_pack(codec, events, count * sizeof *events, count, &size);
	store.stored_bytes = (uint32_t)size;
	file_head_write(&(struct file_head){ .version = 1 }, file);
	cr_assert_eq(chunks_of(file, FILE_HEAD_BYTES + forge(file + FILE_HEAD_BYTES, store, packed), &info), 0u);
	cr_assert_eq(info.damaged_chunks, 1u);

	text_init(&text);
	cr_assert_eq(sink_open_text(&text, &sink, &err), 0);
	cr_assert_eq(trace_writer_open(sink, CODEC_DELTA_ZSTD, 0, &writer, &err), 0);
	cr_assert_eq(trace_writer_add(writer, &(struct chunk){ .events = events, .size = count * sizeof *events }, &err), -1);
	cr_assert_eq(trace_writer_add(writer, &(struct chunk){ .events = events, .size = (count - 1) * sizeof *events }, &err), 0);
	trace_writer_close(writer);
	cr_assert_eq(sink_commit(sink, &err), 0);
	cr_assert_eq(chunks_of(text.data, text.length, &info), 1u);
	text_done(&text);
	codec_free(codec);
	free(events);
	free(file);
}

Test(file, a_head_with_more_refs_than_there_may_be_is_refused)
{
	struct chunk chunk = { .lane_kind = LANE_THREAD, .sequence = 1, .ref_count = LANE_DEPTH_REFS };
	unsigned char file[FILE_HEAD_BYTES + CHUNK_HEAD_MAX] = { 0 }, *head = file + FILE_HEAD_BYTES;
	uint32_t length = (uint32_t)chunk_head_write(&chunk, &(struct chunk_store){ .codec = CODEC_RAW }, head), longer = length + 160, crc;
	struct trace_info info;

	file_head_write(&(struct file_head){ .version = 1 }, file);
	cr_assert_eq(chunks_of(file, FILE_HEAD_BYTES + length, &info), 1u);
	head[22] = LANE_DEPTH_REFS + 40;
	memcpy(head + 4, &longer, 4);
	crc = crc_of(head, longer - 4);
	memcpy(head + longer - 4, &crc, 4);
	cr_assert_eq(chunks_of(file, FILE_HEAD_BYTES + longer, &info), 0u);
}

Test(file, a_crafted_file_costs_bounded_work, .timeout = 60)
{
	enum { HEADS = 60000, STORED = 5000000 };
	struct chunk_store store = { .codec = CODEC_RAW, .stored_bytes = STORED, .raw_bytes = STORED, .payload_crc = 1 };
	struct bytes file = trace_of_text("chunk\n", CODEC_RAW);
	struct chunk chunk = { .sequence = 1 };
	unsigned char head[CHUNK_HEAD_MAX], *copy;
	size_t length = chunk_head_write(&chunk, &store, head), i;
	struct trace_info info;

	/* Each head promises 5 MB with a wrong check sum: tried one by one they would be 300 GB of check sums. */
	copy = malloc(FILE_HEAD_BYTES + HEADS * length + STORED);
	memcpy(copy, file.data, FILE_HEAD_BYTES);
	for (i = 0; i < HEADS; i++)
		memcpy(copy + FILE_HEAD_BYTES + i * length, head, length);
	memset(copy + FILE_HEAD_BYTES + HEADS * length, 0, STORED);
	cr_assert_eq(chunks_of(copy, FILE_HEAD_BYTES + HEADS * length + STORED, &info), 0u);
	free(copy);
	free(file.data);
}

struct foreign {
	const char *bytes;
	size_t size;
	enum error_code code;
};

Test(file, what_is_no_trace_is_refused_by_name)
{
	static const struct foreign rows[] = {
		{ "", 0, ERR_TRACE_FOREIGN },
		{ "INFSCOP", 7, ERR_TRACE_FOREIGN },
		{ "{\"traceEvents\": []}", 19, ERR_TRACE_FOREIGN },
		{ "INFSCOPE", 8, ERR_TRACE_DAMAGED },
	};
	struct error err = { ERR_NONE };
	struct trace *trace;
	size_t i;

	for (i = 0; i < sizeof rows / sizeof *rows; i++) {
		cr_assert_eq(trace_open_memory(rows[i].bytes, rows[i].size, &trace, &err), -1);
		cr_assert_eq(err.code, rows[i].code, "row %zu: %s", i, err.text);
	}
	cr_assert_eq(trace_open("/absent/trace.iscope", &trace, &err), -1);
	cr_assert_eq(err.code, ERR_TRACE_OPEN);
	cr_assert_str_eq(err.text, "cannot read /absent/trace.iscope: No such file or directory");
	cr_assert_eq(trace_open("/tmp", &trace, &err), -1);
	cr_assert_eq(err.code, ERR_TRACE_OPEN);
	cr_assert_str_eq(err.text, "cannot read /tmp: Is a directory");
}

Test(file, newer_versions_and_features_are_refused)
{
	unsigned char bytes[FILE_HEAD_BYTES];
	struct error err = { ERR_NONE };
	struct trace *trace;

	file_head_write(&(struct file_head){ .version = 2 }, bytes);
	cr_assert_eq(trace_open_memory(bytes, sizeof bytes, &trace, &err), -1);
	cr_assert_eq(err.code, ERR_TRACE_VERSION);
	file_head_write(&(struct file_head){ .version = 1, .must_know = 1ull << 63 }, bytes);
	cr_assert_eq(trace_open_memory(bytes, sizeof bytes, &trace, &err), -1);
	cr_assert_eq(err.code, ERR_TRACE_VERSION);
	file_head_write(&(struct file_head){ .version = 1, .may_ignore = UINT64_MAX }, bytes);
	cr_assert_eq(trace_open_memory(bytes, sizeof bytes, &trace, &err), 0);
	trace_close(trace);
}

Test(writer, refuses_malformed_events_and_goes_on)
{
	struct error err = { ERR_NONE };
	unsigned char bad[16] = { 0 };
	struct chunk chunk = { .lane = 9, .events = bad, .size = sizeof bad };
	struct trace_writer *writer;
	struct sink *sink;
	struct text text;

	text_init(&text);
	cr_assert_eq(sink_open_text(&text, &sink, &err), 0);
	cr_assert_eq(trace_writer_open(sink, CODEC_DELTA_ZSTD, 0, &writer, &err), 0);
	cr_assert_eq(trace_writer_add(writer, &chunk, &err), -1);
	cr_assert_eq(err.code, ERR_TRACE_DAMAGED);
	chunk.ref_count = LANE_DEPTH_REFS + 1;
	cr_assert_eq(trace_writer_add(writer, &chunk, &err), -1);
	chunk = (struct chunk){ .lane = 9, .events = "", .size = 0 };
	cr_assert_eq(trace_writer_add(writer, &chunk, &err), 0);
	trace_writer_close(writer);
	sink_discard(sink);
	text_done(&text);
}

Test(writer, a_call_takes_less_than_eight_bytes)
{
	enum { EVENTS = 4000 };
	struct event *events = calloc(EVENTS, sizeof *events);
	uint64_t state = 7, ticks = 1ull << 50;
	struct error err = { ERR_NONE };
	struct chunk chunk = { .lane_kind = LANE_THREAD, .sequence = 1, .events = events, .size = EVENTS * sizeof *events };
	struct trace_writer *writer;
	struct sink *sink;
	struct text text;
	uint32_t stack[64], caller;
	int depth = 0, i;

	/* Calls as programs make them: a tree of 200 functions, ticks with the noise of a real counter. */
	for (i = 0; i < EVENTS; i++) {
		ticks += 150 + next_random(&state) % 128 + (next_random(&state) % 50 ? 0 : next_random(&state) % 20000);
		if (depth == 0 || (depth < 20 && next_random(&state) % 2)) {
			caller = depth ? stack[depth - 1] : 1;
			stack[depth] = (caller * 7 + (uint32_t)(next_random(&state) % 4)) % 200;
			events[i] = (struct event){ ticks, stack[depth++], 16, EVENT_PY_ENTER, 0 };
		} else {
			events[i] = (struct event){ ticks, stack[--depth], 16, EVENT_PY_LEAVE, 0 };
		}
	}
	text_init(&text);
	cr_assert_eq(sink_open_text(&text, &sink, &err), 0);
	cr_assert_eq(trace_writer_open(sink, CODEC_DELTA_ZSTD, 0, &writer, &err), 0);
	cr_assert_eq(trace_writer_add(writer, &chunk, &err), 0);
	cr_assert_lt(trace_writer_bytes(writer), EVENTS / 2 * 8u, "%.2f bytes per call", trace_writer_bytes(writer) * 2.0 / EVENTS);
	trace_writer_close(writer);
	sink_discard(sink);
	text_done(&text);
	free(events);
}
