#include "import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/chrome.h"
#include "import/event_json.h"
#include "import/nsys.h"

static const struct {
	const char *format;
	const char *key;  /* of the array in the document; a document may also be the array alone */
	const char *mark; /* a key that each of its events has */
	bool (*events)(struct json *json, struct gather *gather);
} formats[] = {
	{ "Chrome trace", "traceEvents", "\"ph\"", chrome_events },
	{ "event JSON", "events", "\"event_type\"", event_json_events },
};
/* The first bytes tell what it is. */
struct head { unsigned char bytes[sizeof NSYS_MAGIC]; size_t length; };

enum { MAPPED_BYTES_MAX = 256 << 20, FORMATS = sizeof formats / sizeof *formats };

static int open_unnamed(struct error *err)
{
	const char *folder = getenv("TMPDIR");
	int fd = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		fd = memfd_create("inferscope-import", MFD_CLOEXEC);
	return fd < 0 ? fail(err, file_error_of(errno, ERR_OUTPUT), "cannot keep what is imported: %s", strerror(errno)) : fd;
}

/* Which format an array alone is, by the keys of its first event. */
static int format_of_array(struct json *json)
{
	size_t length;
	const char *window = json_ahead(json, &length);

	for (int i = 0; i < FORMATS; i++)
		if (memmem(window, length, formats[i].mark, strlen(formats[i].mark)))
			return i;
	return -1;
}

/* What is wanted of a device's description. */
static const struct { const char *word; size_t offset; } device_words[] = {
	{ "id", offsetof(struct described_device, id) }, { "totalGlobalMem", offsetof(struct described_device, memory_bytes) }, { "computeMajor", offsetof(struct described_device, compute_major) },
	{ "computeMinor", offsetof(struct described_device, compute_minor) }, { "numSms", offsetof(struct described_device, multiprocessors) },
};

/* Of the job, or of the device at hand. */
static struct number *number_of(const struct json *json, struct gather_about *about, struct described_device *device)
{
	for (size_t i = 0; i < sizeof device_words / sizeof *device_words; i++)
		if (json_is(json, device_words[i].word))
			return (struct number *)(void *)((char *)device + device_words[i].offset);
	for (size_t i = 0; i < ABOUT_ROWS; i++)
		if (json_is(json, about_rows[i].word))
			return &about->numbers[i];
	return NULL;
}

static void add_device(struct gather_about *about, const struct described_device *device)
{
	char number[32];

	if (device->id.known && about->device_count < DESCRIBED_MAX) {
		snprintf(number, sizeof number, "GPU %lld", (long long)device->id.value);
		about->devices[about->device_count] = *device;
		if (strcmp(device->name, number) == 0) /* it says no more, as our own exports of what has no name */
			about->devices[about->device_count].name[0] = '\0';
		about->device_count++;
	}
	for (size_t i = 0; i < ABOUT_ROWS; i++)
		if (strcmp(about_rows[i].word, "numSms") == 0 && !about->numbers[i].known)
			about->numbers[i] = device->multiprocessors;
}

/* What torch.profiler says of the job and the devices, each an object or an array of such: {"backend": "nccl", "rank": 3, "world_size": 8}, [{"id": 0, "name": "NVIDIA A100", "numSms": 108}]. Of several
 * devices the first one's numSms counts for all. Merged traces may have several devices of one number. False when the document broke. */
static bool read_about(struct json *json, enum json_token token, struct gather_about *about)
{
	struct described_device device = { .name = "" };
	unsigned outside = json->depth;

	if (token != JSON_OBJECT && token != JSON_ARRAY)
		return json_skip(json, token);
	while (json->depth >= outside && (token = json_next(json)) != JSON_BAD) {
		struct number *out;
		bool name;

		if (token == JSON_OBJECT)
			device = (struct described_device){ .name = "" };
		else if (token == JSON_OBJECT_END)
			add_device(about, &device);
		if (token != JSON_KEY)
			continue;
		out = number_of(json, about, &device);
		name = json_is(json, "name");
		token = json_next(json);
		if (out && token == JSON_NUMBER && !out->known)
			*out = json_number(json, false);
		else if (name && token == JSON_STRING)
			json_text(json, device.name, sizeof device.name);
	}
	return token != JSON_BAD;
}

/* Moves on to the array of events. The format's number, or -1. */
static int find_events(struct json *json, struct gather_about *about)
{
	enum json_token token = json_next(json);

	if (token == JSON_ARRAY)
		return format_of_array(json);
	if (token != JSON_OBJECT)
		return -1;
	while (json_next(json) == JSON_KEY) {
		bool is_about = json_is(json, "distributedInfo") || json_is(json, "deviceProperties");
		int format = -1;

		for (int i = 0; i < FORMATS; i++)
			if (json_is(json, formats[i].key))
				format = i;
		token = json_next(json);
		if (format >= 0 && token == JSON_ARRAY)
			return format;
		if (!(is_about ? read_about(json, token, about) : json_skip(json, token)))
			return -1;
	}
	return -1;
}

/* To the document's end: what follows the events is only looked at to see that it is whole. */
static bool read_rest(struct json *json)
{
	enum json_token token;

	do
		token = json_next(json);
	while (token != JSON_END && token != JSON_BAD);
	return token == JSON_END;
}

static int convert(struct json *json, const char *name, int fd, struct error *err)
{
	struct gather_about about = { 0 };
	int format = find_events(json, &about), result;
	struct gather *gather;
	char broken[200];
	bool whole;

	if (format < 0 && input_out_of_memory(json->input))
		return fail(err, ERR_MEMORY, "importing %s", name);
	if (format < 0)
		return fail(err, ERR_TRACE_FOREIGN, "%s is neither an InferScope trace nor one that can be imported", name);
	if (gather_open(fd, formats[format].format, &gather, err) < 0)
		return -1;
	gather_set_about(gather, &about);
	whole = formats[format].events(json, gather) && read_rest(json);
	if (!whole)
		snprintf(broken, sizeof broken, "%s, at byte %llu of its text", json_failure(json) ? json_failure(json) : "an event is no object", (unsigned long long)json_offset(json));
	if (input_out_of_memory(json->input))
		gather_fail(gather);
	result = gather_finish(gather, whole ? NULL : broken, err);
	gather_close(gather);
	return result;
}

static void skip_byte_order_mark(struct input *input)
{
	size_t length;

	input_more(input);
	const unsigned char *window = input_window(input, &length);

	if (length >= 3 && memcmp(window, "\xef\xbb\xbf", 3) == 0)
		input_skip(input, 3);
}

/* What was written to FD, as a trace. Small ones are mapped: they are read several times. */
static int open_converted(int fd, struct trace **out, struct error *err)
{
	char path[64];
	struct stat status;
	void *bytes = MAP_FAILED;

	if (fstat(fd, &status) == 0 && status.st_size > 0 && status.st_size <= MAPPED_BYTES_MAX)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (bytes != MAP_FAILED)
		return trace_open_mapping(bytes, (size_t)status.st_size, out, err);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return trace_open(path, out, err);
}

/* INPUT is closed here. */
static int import_document(struct input *input, const char *name, struct trace **out, struct error *err)
{
	struct json json;
	int to, result = -1;

	if (input)
		skip_byte_order_mark(input);
	if (!input || json_open(&json, input) < 0) {
		input_close(input);
		return fail(err, ERR_MEMORY, "importing %s", name);
	}
	to = open_unnamed(err);
	if (to >= 0 && convert(&json, name, to, err) == 0)
		result = open_converted(to, out, err);
	if (to >= 0)
		close(to);
	json_close(&json);
	input_close(input);
	return result;
}

static int keep_bytes(int to, const char *bytes, size_t length, struct error *err)
{
	for (size_t at = 0; at < length;) {
		ssize_t put = write(to, bytes + at, length - at);

		if (put < 0)
			return fail(err, ERR_OUTPUT, "cannot keep what comes from a pipe: %s", strerror(errno));
		at += (size_t)put;
	}
	return 0;
}

/* HEAD and the rest of a pipe in a file that can be read again. */
static int keep_pipe(int from, const struct head *head, const char *name, struct error *err)
{
	char buffer[65536];
	int to = open_unnamed(err), kept = to < 0 ? -1 : keep_bytes(to, (const char *)head->bytes, head->length, err);
	ssize_t got = 0;

	while (kept == 0 && ((got = read(from, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR)))
		kept = got > 0 ? keep_bytes(to, buffer, (size_t)got, err) : 0;
	if (kept == 0 && (got < 0 || lseek(to, 0, SEEK_SET) < 0))
		kept = fail(err, ERR_TRACE_OPEN, "%s: %s", name, strerror(errno));
	if (kept == 0)
		return to;
	if (to >= 0)
		close(to);
	return -1;
}

/* SQLite wants a name: what came through a pipe has none. */
static int import_nsys(const char *path, bool piped, struct trace **out, struct error *err)
{
	int to, result = -1;

	if (piped)
		return fail(err, ERR_TRACE_FOREIGN, "%s: a database can only be read from a file", path);
	to = open_unnamed(err);
	if (to >= 0 && nsys_convert(path, to, err) == 0)
		result = open_converted(to, out, err);
	if (to >= 0)
		close(to);
	return result;
}

/* JSON, a byte order mark before it, or gzip. */
static bool is_document(const struct head *head)
{
	return head->length >= 2 && ((head->bytes[0] && strchr("{[ \t\r\n", head->bytes[0])) || memcmp(head->bytes, "\x1f\x8b", 2) == 0 || memcmp(head->bytes, "\xef\xbb", 2) == 0);
}

/* A trace of ours that comes through a pipe: it is read more than once. */
static int open_kept(int fd, const struct head *head, const char *name, struct trace **out, struct error *err)
{
	char path[64];
	int kept = keep_pipe(fd, head, name, err), result;

	if (kept < 0)
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", kept);
	result = trace_open_as(path, name, out, err);
	close(kept);
	return result;
}

static struct head read_head(int fd)
{
	struct head head = { .length = 0 };
	ssize_t got;

	while (head.length < sizeof head.bytes && ((got = read(fd, head.bytes + head.length, sizeof head.bytes - head.length)) > 0 || (got < 0 && errno == EINTR)))
		head.length += got > 0 ? (size_t)got : 0;
	return head;
}

static int import_from(int fd, const char *path, struct trace **out, struct error *err)
{
	bool piped = strcmp(path, "-") == 0 || lseek(fd, 0, SEEK_CUR) < 0;
	const char *name = strcmp(path, "-") == 0 ? "stdin" : path;
	struct head head = read_head(fd);

	if (head.length == sizeof head.bytes && memcmp(head.bytes, NSYS_MAGIC, sizeof head.bytes) == 0)
		return import_nsys(name, piped, out, err);
	if (is_document(&head)) /* whatever else it is, the trace reader tells */
		return import_document(input_open(fd, head.bytes, head.length), name, out, err);
	return piped ? open_kept(fd, &head, name, out, err) : trace_open(path, out, err);
}

int import_open(const char *path, struct trace **out, struct error *err)
{
	bool standard_in = strcmp(path, "-") == 0;
	int fd = standard_in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), result;

	if (fd < 0)
		return fail(err, file_error_of(errno, ERR_TRACE_OPEN), "cannot read %s: %s", path, strerror(errno));
	result = import_from(fd, path, out, err);
	if (!standard_in)
		close(fd);
	return result;
}

int import_open_memory(const void *bytes, size_t size, struct trace **out, struct error *err)
{
	return import_document(input_open_memory(bytes, size), "the document", out, err);
}
