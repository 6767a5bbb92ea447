/* Any bytes as a buffer of CUPTI's records, stepped through by a library that may lie about where the next one begins: the first byte says how many steps there are, two more each say where. */
#include <stdlib.h>
#include <string.h>

#include "collector/collector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EVENT_MOST = 8192 };

struct collector the;
static struct page page;
static char long_name[3 * GPU_NAME_BYTES];

/* What plays CUPTI. */
static struct { const uint8_t *steps; size_t count, at; } library;
/* What plays the lanes. */
static struct { unsigned char *event; size_t size; uint64_t events; } lane;

bool gpu_begin(void)
{
	return true;
}

void gpu_end(void)
{
}

struct gpu_status *gpu_status(void)
{
	return &page.gpu_status;
}

struct event *lane_reserve(struct lane *into, size_t size, uint64_t now)
{
	(void)into, (void)now;
	if (size % 8 || size < sizeof(struct event) || size > EVENT_MOST || lane.event)
		abort();
	lane.size = size;
	lane.event = malloc(size); /* exactly as large, for the sanitizer */
	return (struct event *)lane.event;
}

static void check_string(size_t at)
{
	uint16_t length;

	memcpy(&length, lane.event + at, sizeof length);
	if (at + sizeof length + length > lane.size)
		abort();
}

void lane_commit(struct lane *into, size_t size)
{
	const struct event *event = (const struct event *)lane.event;

	(void)into;
	if (!event || size != lane.size || event->size != size || !event->kind)
		abort();
	if (event->kind == EVENT_GPU_NAME)
		check_string(sizeof *event);
	if (event->kind == EVENT_GPU_DEVICE)
		check_string(sizeof *event + 24);
	lane.events++;
	free(lane.event);
	lane.event = NULL;
}

/* Names are pointers into CUPTI's own memory: these at least it does not make up. */
static void put_name(uint8_t *record, const uint8_t *end)
{
	static const char *const names[] = { NULL, "", "void gemm<float, 4>(float*)", long_name };
	size_t offset;
	uint32_t kind;

	if (end - record < 8)
		return;
	memcpy(&kind, record, sizeof kind);
	offset = kind == CUPTI_KIND_KERNEL ? CUPTI_KERNEL_NAME : kind == CUPTI_KIND_MARKER ? CUPTI_MARKER_NAME : CUPTI_DEVICE_NAME;
	if ((kind == CUPTI_KIND_KERNEL || kind == CUPTI_KIND_DEVICE || kind == CUPTI_KIND_MARKER) && (size_t)(end - record) >= offset + sizeof *names)
		memcpy(record + offset, &names[record[offset] % 4], sizeof *names);
}

static int step(struct cupti *cupti, uint8_t *buffer, size_t valid, uint8_t **record)
{
	int16_t words;

	(void)cupti;
	if (library.at == library.count)
		return CUPTI_MAX_LIMIT_REACHED;
	memcpy(&words, library.steps + 2 * library.at++, sizeof words);
	*record = (uint8_t *)((uintptr_t)buffer + (uintptr_t)(intptr_t)(words * 8)); /* perhaps outside */
	if (words >= 0 && (size_t)words * 8 < valid)
		put_name(*record, buffer + valid);
	return CUPTI_OK;
}

static int dropped(struct cupti *cupti, size_t *count)
{
	(void)cupti;
	*count = 3;
	return CUPTI_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cupti_family family = { .number = 1, .step = step, .dropped = dropped };
	struct gpu_status *told = &page.gpu_status;
	uint8_t *buffer;
	size_t valid;

	if (size < 1 || size < 1 + 2 * (size_t)data[0])
		return 0;
	memset(long_name, 'n', sizeof long_name - 1);
	memset(told, 0, sizeof *told);
	the.page = &page;
	the.gpu.cupti.family = &family;
	the.gpu.not_before = 1;
	the.gpu.not_after = UINT64_MAX;
	if (!gpu_names_open())
		return 0;
	gpu_records_begin();
	library.steps = data + 1;
	library.count = data[0];
	library.at = 0;
	lane.events = 0;
	valid = size - 1 - 2 * (size_t)data[0];
	buffer = malloc(valid ? valid : 1);
	if (!buffer)
		return 0;
	memcpy(buffer, data + 1 + 2 * (size_t)data[0], valid);
	gpu_records_decode(buffer, valid);
	if (told->records > library.count || told->kernels + told->copies + told->calls > told->records || told->dropped != 3 || told->buffer_bytes != valid)
		abort();
	free(buffer);
	return 0;
}
