/* `pystack_driver PID HEX [ROUNDS [PAUSE_US]]` reads the Python stacks of a process and prints one JSON line per thread of the last round:
 * {"tid":1,"gil":true,"cut":false,"frames":[["name","qualname","file",1],…]}, and a last one {"rounds":…,"torn":…,"median_us":…}. */
#include "base/mappings.h"
#include "base/text.h"
#include "inject/image.h"
#include "inject/memory.h"
#include "unwind/pystack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TID_OFFSET = 0x2d0, ROUNDS_MAX = 1000000 };

struct told {
	struct pyreader *reader;
	bool print;
	uint64_t stacks, frames;
	struct text text;
};

static int read_memory(void *context, uint64_t addr, void *buffer, size_t size)
{
	return memory_read(&(struct memory){ .pid = *(pid_t *)context }, addr, buffer, size);
}

static size_t read_many(void *context, const struct iovec *here, const struct iovec *there, size_t count)
{
	return memory_read_many(&(struct memory){ .pid = *(pid_t *)context }, here, there, count);
}

static uint64_t find_runtime(pid_t pid)
{
	struct maps maps;
	uint64_t found = 0;

	if (maps_read(&procfs_real, pid, &maps) < 0)
		return 0;
	for (size_t i = 0; i < maps.count && !found; i++) {
		struct image image;

		if (maps.list[i].offset == 0 && maps.list[i].path[0] == '/' && image_open(&(struct memory){ .pid = pid }, &maps, &maps.list[i], &image))
			found = image_symbol(&image, "_PyRuntime", NULL);
	}
	maps_done(&maps);
	return found;
}

static void add_string(struct text *text, const char *string)
{
	text_add_string(text, "\"");
	text_add_json(text, string, strlen(string));
	text_add_string(text, "\"");
}

static void add_frame(struct told *told, uint64_t code, bool first)
{
	struct pycode names;

	text_add_string(&told->text, first ? "" : ",");
	if (pyreader_code(told->reader, code, &names) < 0) {
		text_add_string(&told->text, "null");
		return;
	}
	text_add_string(&told->text, "[");
	add_string(&told->text, names.name);
	text_add_string(&told->text, ",");
	add_string(&told->text, names.qualname);
	text_add_string(&told->text, ",");
	add_string(&told->text, names.file);
	text_printf(&told->text, ",%u]", names.line);
}

static void tell(void *context, const struct pystack *stack)
{
	struct told *told = context;

	told->stacks++;
	told->frames += stack->count;
	if (!told->print)
		return;
	text_printf(&told->text, "{\"tid\":%d,\"gil\":%s,\"cut\":%s,\"frames\":[", (int)stack->tid, stack->holds_gil ? "true" : "false", stack->cut ? "true" : "false");
	for (uint32_t i = 0; i < stack->count; i++)
		add_frame(told, stack->code[i], i == 0);
	text_add_string(&told->text, "]}\n");
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 2 ? (pid_t)atoi(argv[1]) : 0;
	uint32_t hex = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 0;
	long rounds = argc > 3 ? atol(argv[3]) : 1, failed = 0;
	struct remote_memory memory = { read_memory, &pid, read_many };
	struct told told = { 0 };
	struct error err;
	uint64_t *costs;

	if (pid <= 0 || rounds < 1 || rounds > ROUNDS_MAX || !(costs = calloc((size_t)rounds, sizeof *costs))) {
		fprintf(stderr, "usage: pystack_driver PID HEX [ROUNDS [PAUSE_US]]\n");
		return 2;
	}
	if (pyreader_open(&memory, find_runtime(pid), hex, TID_OFFSET, &told.reader, &err) < 0) {
		fprintf(stderr, "pystack_driver: %s: %s\n", error_name(err.code), err.text);
		free(costs);
		return error_status(err.code);
	}
	for (long i = 0; i < rounds; i++) {
		uint64_t start = now_ns();

		failed += pyreader_stacks(told.reader, tell, &told) < 0;
		costs[i] = now_ns() - start;
		if (argc > 4)
			usleep((useconds_t)atoi(argv[4]));
	}
	qsort(costs, (size_t)rounds, sizeof *costs, compare);
	told.print = true;
	pyreader_stacks(told.reader, tell, &told);
	fputs(text_string(&told.text), stdout);
	printf("{\"rounds\":%ld,\"failed\":%ld,\"stacks\":%llu,\"frames\":%llu,\"torn\":%llu,\"median_us\":%.1f,\"p99_us\":%.1f}\n", rounds, failed,
	       (unsigned long long)told.stacks, (unsigned long long)told.frames, (unsigned long long)pyreader_torn(told.reader),
	       (double)costs[rounds / 2] / 1000, (double)costs[rounds * 99 / 100] / 1000);
	pyreader_close(told.reader);
	text_done(&told.text);
	free(costs);
	return 0;
}
