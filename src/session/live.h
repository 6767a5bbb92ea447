/*
 * What a process does now, turn by turn: samples added up, clocks of its threads, who holds the GIL, how busy its GPUs are. From outside alone: nothing
 * is put into the process, and nothing of it is held unless native frames are asked for.
 */
#ifndef INFERSCOPE_SESSION_LIVE_H
#define INFERSCOPE_SESSION_LIVE_H

#include "inject/inject.h"
#include "session/nvml.h"
#include "session/sampler.h"
#include "session/tally.h"

struct live_options {
	uint32_t rate_hz;
	bool native;
	uint64_t patience_ns; /* how long no look may end before ERR_TIMEOUT; 0 = 10 s */
};

struct live_thread {
	pid_t tid;
	char name[32];    /* comm: foreign text */
	char letter;      /* of /proc/PID/task/TID/stat */
	uint64_t cpu_ns;  /* in this turn */
	const struct tally_thread *samples; /* NULL: none yet */
};

/* The turn that live_turn() ended. Valid until the next one. */
struct live_turn {
	uint64_t length_ns, elapsed_ns; /* of this turn; since live_open(), pauses left out */
	uint64_t cpu_ns, rss_bytes;
	uint64_t gil_ns, gil_wait_ns;   /* of all threads together */
	uint64_t samples;
	uint64_t cost_ns, stolen_ns;    /* CPU time of the sampler; how long threads stood still for it */
	double rate_hz;
	struct sampler_ways ways;
	const struct live_thread *threads; /* by tid */
	size_t thread_count;
	const struct tally *tally;
	struct nvml_use gpus[NVML_DEVICES_MAX];
	size_t gpu_count;
	const char *gpu_why; /* why there are none, "" = there are, or it uses none */
};

struct live;

/* TARGET stays the caller's and must outlive it. Fails as sampler_open() does; ERR_NOT_PYTHON. */
int live_open(struct target *target, const struct live_options *options, struct live **out, struct error *err);
void live_close(struct live *live); /* accepts NULL */
/* Ends the turn that began with the last call. ERR_EXITED: the process is gone; ERR_TIMEOUT: its memory could not be read for long. */
int live_turn(struct live *live, const struct live_turn **out, struct error *err);
/* While PAUSED nothing is looked at, and its time counts to no turn. */
void live_pause(struct live *live, bool paused);
/* Native frames from now on, or no longer. */
int live_native(struct live *live, bool native, struct error *err);

#endif
