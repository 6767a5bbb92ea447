#include "import/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PACKED_BYTES = 1 << 16, WINDOW_LEAST = 1 << 18 };

struct input {
	int fd;                        /* -1: memory */
	const unsigned char *memory;
	size_t memory_left;
	bool looked, gzip, inflating, end;
	const char *failure;
	z_stream stream;
	unsigned char packed[PACKED_BYTES];
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
	input->fd = -1;
	input->capacity = WINDOW_LEAST;
	return input;
}

struct input *input_open(int fd)
{
	struct input *input = input_new();

	if (input)
		input->fd = fd;
	return input;
}

struct input *input_open_memory(const void *bytes, size_t size)
{
	struct input *input = input_new();

	if (input) {
		input->memory = bytes;
		input->memory_left = size;
	}
	return input;
}

void input_close(struct input *input)
{
	if (!input)
		return;
	if (input->gzip)
		inflateEnd(&input->stream);
	free(input->window);
	free(input);
}

/* Bytes as they lie in the file. 0 at the end or after a failure. */
static size_t read_raw(struct input *input, unsigned char *out, size_t size)
{
	ssize_t got;

	if (input->fd < 0) {
		got = (ssize_t)(size < input->memory_left ? size : input->memory_left);
		if (got)
			memcpy(out, input->memory, (size_t)got);
		input->memory += got;
		input->memory_left -= (size_t)got;
		return (size_t)got;
	}
	do
		got = read(input->fd, out, size);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		input->failure = "it cannot be read";
	return got > 0 ? (size_t)got : 0;
}

static bool inflate_begin(struct input *input)
{
	memset(&input->stream, 0, sizeof input->stream);
	if (inflateInit2(&input->stream, 16 + MAX_WBITS) != Z_OK) {
		input->failure = "out of memory";
		return false;
	}
	return input->inflating = true;
}

/* Unpacks into OUT; several gzip members may follow each other. */
static size_t read_gzip(struct input *input, unsigned char *out, size_t size)
{
	z_stream *stream = &input->stream;
	int result;

	stream->next_out = out;
	stream->avail_out = (uInt)size;
	while (stream->avail_out == size) {
		if (stream->avail_in == 0) {
			stream->next_in = input->packed;
			stream->avail_in = (uInt)read_raw(input, input->packed, sizeof input->packed);
		}
		if (stream->avail_in == 0) {
			if (!input->failure && input->inflating)
				input->failure = "its gzip data end in the middle";
			break;
		}
		if (!input->inflating && (*stream->next_in != 0x1f || inflateReset(stream) != Z_OK))
			break; /* padding after the last member */
		input->inflating = true;
		result = inflate(stream, Z_NO_FLUSH);
		if (result == Z_STREAM_END) {
			input->inflating = false;
		} else if (result != Z_OK && result != Z_BUF_ERROR) {
			input->failure = "its gzip data are damaged";
			break;
		}
	}
	return size - stream->avail_out;
}

/* Is it gzip? Looked at once, at the first bytes. */
static bool look(struct input *input)
{
	size_t got = read_raw(input, input->packed, sizeof input->packed);

	input->looked = true;
	input->gzip = got >= 2 && input->packed[0] == 0x1f && input->packed[1] == 0x8b;
	if (input->gzip) {
		if (!inflate_begin(input))
			return false;
		input->stream.next_in = input->packed;
		input->stream.avail_in = (uInt)got;
		return true;
	}
	memcpy(input->window, input->packed, got);
	input->length = got;
	return got > 0;
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
		input->failure = "out of memory";
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
		if (!input->gzip || input->end)
			return !input->end;
	}
	if (!make_room(input))
		return false;
	got = input->gzip ? read_gzip(input, input->window + input->length, input->capacity - input->length)
	                  : read_raw(input, input->window + input->length, input->capacity - input->length);
	input->length += got;
	input->end = got == 0;
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
