/* `join_driver PID ROUNDS` holds the running threads of a Python process again and again, joins both stacks of each, and prints how that went as JSON; the
 * first joins that failed are told on stderr. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "session/snapshot_native.h"
#include "unwind/pystack.h"

enum { THREADS_MAX = 256, HOLDS_MAX = 4096, TOLD_MAX = 3 };

static int read_memory(void *context, uint64_t addr, void *buffer, size_t size)
{
	return target_read(context, addr, buffer, size);
}

static void tell(struct pyreader *reader, struct snapshot_native *native, const struct snapshot_sight *sight, const struct joined_stack *joined)
{
	fprintf(stderr, "%s, native stack %s:\n", join_result_name(joined->result), walk_end_name(sight->native.end));
	for (uint32_t i = 0; i < joined->count; i++) {
		uint32_t index = joined->frames[i].index;
		struct snapshot_frame frame = { .function = "?" };
		struct pycode code = { .name = "?" };

		if (joined->frames[i].python) {
			pyreader_code(reader, sight->python->code[index], &code);
			fprintf(stderr, "  python %s, entry 0x%llx\n", code.name, (unsigned long long)sight->python->entry[index]);
		} else {
			snapshot_native_frames(native, &sight->native, index, &frame, 1);
			fprintf(stderr, "  0x%llx-0x%llx %s\n", (unsigned long long)sight->native.frames[index].sp, (unsigned long long)sight->native.frames[index].cfa, frame.function);
		}
	}
}

static int smaller_first(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

int main(int argc, char **argv)
{
	static uint64_t holds[HOLDS_MAX];
	const struct inject_options options = { .look_only = true };
	struct remote_memory memory = { .read = read_memory };
	unsigned results[JOIN_RESULTS] = { 0 }, ends[WALK_CUT_TABLES + 1] = { 0 }, held = 0, torn = 0, told = 0;
	static struct joined_stack joined;
	pid_t pid = argc > 2 ? (pid_t)atoi(argv[1]) : 0, tids[THREADS_MAX];
	struct snapshot_native *native;
	struct target *target = NULL;
	struct pyreader *reader;
	uint64_t total = 0;
	struct error err = { 0 };
	char why[256] = "";

	if (pid <= 0 || target_open(pid, &options, &target, &err) < 0) {
		fprintf(stderr, "join_driver: %s\n", err.text);
		return 2;
	}
	memory.context = target;
	if (pyreader_open(&memory, target_symbol(target, "_PyRuntime", NULL), target_facts(target)->python_hex, target_facts(target)->tid_offset, &reader, &err) < 0
	    || !(native = snapshot_native_open(target, &procfs_real, reader, why, sizeof why))) {
		fprintf(stderr, "join_driver: %s%s\n", err.text, why);
		return 2;
	}
	for (int round = atoi(argv[2]); round > 0; round--) {
		ssize_t count = procfs_threads(&procfs_real, pid, tids, THREADS_MAX);

		for (ssize_t i = 0; i < count && i < THREADS_MAX && held < HOLDS_MAX; i++) {
			uint64_t before = pyreader_torn(reader);
			const struct snapshot_sight *sight = snapshot_native_at(native, tids[i], false, NULL);

			if (!sight->held)
				continue;
			holds[held++] = sight->hold_ns;
			total += sight->hold_ns;
			if (pyreader_torn(reader) != before) {
				torn++;
				continue;
			}
			snapshot_native_join(native, sight, &joined);
			results[joined.result]++;
			ends[sight->native.end]++;
			if ((joined.result == JOIN_FAILED || joined.result == JOIN_PARTIAL) && told++ < TOLD_MAX)
				tell(reader, native, sight, &joined);
		}
		nanosleep(&(struct timespec){ 0, 200000 + rand() % 800000 }, NULL);
	}
	qsort(holds, held, sizeof *holds, smaller_first);
	printf("{\"held\":%u,\"torn\":%u,\"whole\":%u,\"partial\":%u,\"failed\":%u,\"native_only\":%u,\"complete\":%u,\"mean_us\":%.1f,\"median_us\":%.1f,\"longest_us\":%.1f}\n", held, torn, results[JOIN_WHOLE],
	       results[JOIN_PARTIAL], results[JOIN_FAILED], results[JOIN_NATIVE], ends[WALK_COMPLETE], held ? (double)total / held / 1e3 : 0, (double)holds[held / 2] / 1e3, held ? (double)holds[held - 1] / 1e3 : 0);
	snapshot_native_close(native);
	pyreader_close(reader);
	target_close(target);
	return 0;
}
