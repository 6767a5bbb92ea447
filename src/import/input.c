#include "import/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "import/ahead.h"

static const char OUT_OF_MEMORY[] = "out of memory";

enum { PACKED_BYTES = 1 << 16, WINDOW_LEAST = 1 << 18 };

/* The file as it lies there, and unpacked. */
struct source {
	int fd;                        /* -1: none */
	const unsigned char *memory;   /* what comes before it */
	size_t memory_left;
	bool gzip, inflating;
	const char *failure;
	z_stream stream;
	unsigned char packed[PACKED_BYTES];
};

struct input {
	struct source source;
	struct ahead *ahead;           /* unpacks what is large; the source is its own until its end */
	const unsigned char *ready;    /* READY_LENGTH bytes of it */
	size_t ready_length;
	bool looked, end;
	const char *failure;
	unsigned char *window;
	size_t start, length, capacity; /* of the window: bytes START to LENGTH are unread */
	uint64_t offset;                /* of START */
};

static struct input *input_new(void)
{
	struct input *input = calloc(1, sizeof *input);

	if (!input || !(input->window = malloc(WINDOW_LEAST))) {
		free(input);
		return NULL;
	}
	input->capacity = WINDOW_LEAST;
	return input;
}

struct input *input_open(int fd, const void *head, size_t head_length)
{
	struct input *input = input_new();

	if (input) {
		input->source.fd = fd;
		input->source.memory = head;
		input->source.memory_left = head_length;
	}
	return input;
}

struct input *input_open_memory(const void *bytes, size_t size)
{
	return input_open(-1, bytes, size);
}

void input_close(struct input *input)
{
	if (!input)
		return;
	ahead_stop(input->ahead);
	if (input->source.gzip)
		inflateEnd(&input->source.stream);
	free(input->window);
	free(input);
}

/* Bytes as they lie in the file. 0 at the end or after a failure. */
static size_t read_raw(struct source *source, unsigned char *out, size_t size)
{
	ssize_t got;

	if (source->memory_left || source->fd < 0) {
		got = (ssize_t)(size < source->memory_left ? size : source->memory_left);
		if (got)
			memcpy(out, source->memory, (size_t)got);
		source->memory += got;
		source->memory_left -= (size_t)got;
		return (size_t)got;
	}
	do
		got = read(source->fd, out, size);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		source->failure = "it cannot be read";
	return got > 0 ? (size_t)got : 0;
}

static bool inflate_begin(struct source *source)
{
	memset(&source->stream, 0, sizeof source->stream);
	if (inflateInit2(&source->stream, 16 + MAX_WBITS) != Z_OK) {
		source->failure = OUT_OF_MEMORY;
		return false;
	}
	return source->inflating = true;
}

/* Unpacks into OUT; several gzip members may follow each other. */
static size_t read_gzip(void *context, unsigned char *out, size_t size)
{
	struct source *source = context;
	z_stream *stream = &source->stream;
	int result;

	stream->next_out = out;
	stream->avail_out = (uInt)size;
	while (stream->avail_out == size) {
		if (stream->avail_in == 0) {
			stream->next_in = source->packed;
			stream->avail_in = (uInt)read_raw(source, source->packed, sizeof source->packed);
		}
		if (stream->avail_in == 0) {
			if (!source->failure && source->inflating)
				source->failure = "its gzip data end in the middle";
			break;
		}
		if (!source->inflating && (*stream->next_in != 0x1f || inflateReset(stream) != Z_OK))
			break; /* padding after the last member */
		source->inflating = true;
		result = inflate(stream, Z_NO_FLUSH);
		if (result == Z_STREAM_END) {
			source->inflating = false;
		} else if (result != Z_OK && result != Z_BUF_ERROR) {
			source->failure = result == Z_MEM_ERROR ? OUT_OF_MEMORY : "its gzip data are damaged";
			break;
		}
	}
	return size - stream->avail_out;
}

/* Is it gzip? Looked at once, at the first bytes. What is more than they are is unpacked in a thread of its own. */
static bool look(struct input *input)
{
	struct source *source = &input->source;
	size_t got = 0, more;

	while (got < sizeof source->packed && (more = read_raw(source, source->packed + got, sizeof source->packed - got)))
		got += more;
	input->looked = true;
	source->gzip = got >= 2 && source->packed[0] == 0x1f && source->packed[1] == 0x8b;
	if (source->gzip) {
		if (!inflate_begin(source))
			return false;
		source->stream.next_in = source->packed;
		source->stream.avail_in = (uInt)got;
		input->ahead = got == sizeof source->packed ? ahead_start(read_gzip, source) : NULL;
		return true;
	}
	memcpy(input->window, source->packed, got);
	input->length = got;
	return got > 0;
}

static size_t take_ready(struct input *input, unsigned char *out, size_t size)
{
	if (!input->ready_length)
		input->ready = ahead_take(input->ahead, &input->ready_length);
	size = size < input->ready_length ? size : input->ready_length;
	memcpy(out, input->ready, size);
	input->ready += size;
	input->ready_length -= size;
	return size;
}

static size_t read_source(struct input *input, unsigned char *out, size_t size)
{
	return input->ahead ? take_ready(input, out, size) : input->source.gzip ? read_gzip(&input->source, out, size) : read_raw(&input->source, out, size);
}

static bool make_room(struct input *input)
{
	unsigned char *larger;

	if (input->start) {
		memmove(input->window, input->window + input->start, input->length - input->start);
		input->length -= input->start;
		input->start = 0;
	}
	if (input->length < input->capacity)
		return true;
	if (input->capacity >= INPUT_WINDOW_MAX)
		return false;
	larger = realloc(input->window, input->capacity * 2);
	if (!larger) {
		input->failure = OUT_OF_MEMORY;
		return false;
	}
	input->window = larger;
	input->capacity *= 2;
	return true;
}

bool input_more(struct input *input)
{
	size_t got;

	if (input->end || input->failure)
		return false;
	if (!input->looked) {
		if (!look(input))
			input->end = true;
		if (!input->source.gzip || input->end) {
			input->failure = input->source.failure;
			return !input->end;
		}
	}
	if (!make_room(input))
		return false;
	got = read_source(input, input->window + input->length, input->capacity - input->length);
	input->length += got;
	input->end = got == 0;
	if (input->end)
		input->failure = input->source.failure;
	return got > 0;
}

unsigned char *input_window(const struct input *input, size_t *length)
{
	*length = input->length - input->start;
	return input->window + input->start;
}

void input_skip(struct input *input, size_t count)
{
	input->start += count;
	input->offset += count;
}

uint64_t input_offset(const struct input *input)
{
	return input->offset;
}

const char *input_failure(const struct input *input)
{
	return input->failure;
}

bool input_out_of_memory(const struct input *input)
{
	return input->failure == OUT_OF_MEMORY;
}
