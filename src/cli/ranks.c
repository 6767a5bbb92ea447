#include "cli/ranks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"

/* Each needs memory for a whole trace. */
enum { READERS_MOST = 4 };

struct reading { struct present_result result; struct error error; };

/* What the readers share; each takes the next trace. */
struct readers {
	char *const *paths;
	const struct options *options;
	const struct ruleset *rules;
	struct rank *ranks;
	struct rank_side *sides;
	struct reading *readings;
	size_t count, next;
	bool failed;
};

static int side_read(const struct capture *capture, struct rank_side *out, struct error *err)
{
	return clock_source_read(capture->timeline, capture->trace, &out->clock, err) < 0 ? -1 : spans_read(capture->timeline, capture->trace, &out->spans, err);
}

static int rank_read(const struct readers *readers, size_t index)
{
	struct capture capture = { .instead = readers->rules };
	struct reading *reading = &readers->readings[index];
	int status = capture_open(readers->paths[index], readers->options, &capture, &reading->error);

	if (status == 0) {
		rank_fill(capture.timeline, capture.analysis, readers->paths[index], &readers->ranks[index]);
		readers->ranks[index].source = index;
		present_judge(&capture, readers->options, &reading->result);
		status = readers->sides ? side_read(&capture, &readers->sides[index], &reading->error) : 0;
	}
	capture_close(&capture);
	return status;
}

static void *read_some(void *context)
{
	struct readers *readers = context;
	size_t index;

	while (!__atomic_load_n(&readers->failed, __ATOMIC_RELAXED) && (index = __atomic_fetch_add(&readers->next, 1, __ATOMIC_RELAXED)) < readers->count)
		if (rank_read(readers, index) < 0)
			__atomic_store_n(&readers->failed, true, __ATOMIC_RELAXED);
	return NULL;
}

/* The calling thread reads, too. */
static void read_all(struct readers *readers)
{
	pthread_t others[READERS_MOST - 1];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t most = cpus < READERS_MOST ? cpus > 1 ? (size_t)cpus : 1 : READERS_MOST, started = 0;

	most = most < readers->count ? most : readers->count;
	while (started + 1 < most && thread_start(&others[started], read_some, readers) == 0)
		started++;
	read_some(readers);
	for (size_t i = 0; i < started; i++)
		pthread_join(others[i], NULL);
}

static void result_add(struct present_result *all, const struct present_result *one)
{
	if (one->gate_failed && !all->gate_failed) {
		all->gate_failed = true;
		memcpy(all->gate, one->gate, sizeof all->gate);
	}
	if (one->partial && !all->partial) {
		all->partial = true;
		memcpy(all->partial_why, one->partial_why, sizeof all->partial_why);
	}
}

/* A file that is given twice would be two processes, and all sums too large. */
static int twice_check(char *const *paths, size_t count, struct error *err)
{
	struct stat *files = calloc(count, sizeof *files);
	int result = 0;

	if (!files)
		return fail(err, ERR_MEMORY, "reading %zu traces", count);
	for (size_t i = 0; i < count && result == 0; i++) {
		if (stat(paths[i], &files[i]) < 0 || !S_ISREG(files[i].st_mode))
			files[i].st_ino = 0;
		for (size_t j = 0; j < i && files[i].st_ino && result == 0; j++) {
			if (files[j].st_ino != files[i].st_ino || files[j].st_dev != files[i].st_dev)
				continue;
			if (strcmp(paths[i], paths[j]) == 0)
				fail(err, ERR_USAGE, "%.200s is given twice", paths[i]);
			else
				fail(err, ERR_USAGE, "%.200s and %.200s are one file", paths[j], paths[i]);
			result = fail_hint(err, "give each trace once: what is in it would be counted twice");
		}
	}
	free(files);
	return result;
}

int ranks_read(char *const *paths, size_t count, const struct options *options, struct rank *ranks, struct rank_side *sides, struct present_result *result, struct error *err)
{
	struct readers readers = { .paths = paths, .options = options, .ranks = ranks, .sides = sides, .count = count, .readings = calloc(count, sizeof *readers.readings) };
	struct ruleset *rules = NULL;
	int status = -1;

	if (!readers.readings)
		return fail(err, ERR_MEMORY, "reading %zu traces", count);
	if (twice_check(paths, count, err) < 0 || present_rules(options, &rules, err) < 0)
		goto out;
	readers.rules = rules;
	read_all(&readers);
	for (size_t i = 0; i < count; i++) {
		if (readers.readings[i].error.code) {
			*err = readers.readings[i].error;
			goto out;
		}
		result_add(result, &readers.readings[i].result);
	}
	status = 0;
out:
	ruleset_free(rules);
	free(readers.readings);
	return status;
}

void rank_sides_free(struct rank_side *sides, size_t count)
{
	for (size_t i = 0; sides && i < count; i++) {
		list_done(&sides[i].clock.collectives);
		list_done(&sides[i].spans);
	}
	free(sides);
}
