/*
 * Which thread to borrow: one whose stop nobody notices. Looks at /proc/PID/task/TID/syscall without stopping anything, for up to
 * two seconds when all threads sit in calls that a stop would end early.
 */
#ifndef INFERSCOPE_INJECT_THREADS_H
#define INFERSCOPE_INJECT_THREADS_H

#include "inject/resume.h"
#include "inject/target.h"

#define MAX_TRIED 64

struct candidate {
	pid_t tid, inner_tid;
	enum thread_kind kind;
	long nr; /* of its system call, -1 = none */
	uint64_t args[6], sp, pc;
	uint64_t switches;      /* voluntary context switches: unchanged = still in the same block */
	uint64_t first_seen_ns; /* in this very call */
	int64_t timeout_ms;
	int seccomp;
	int unread; /* errno, when what it does could not be read though it lives */
};

struct choice {
	const volatile int *stop; /* NULL, or: given up once it is not 0 */
	pid_t tried[MAX_TRIED]; /* not again, or not soon: the first `odd_count` are no threads of glibc's, the rest did not stop in time */
	size_t tried_count, odd_count;
	int unread; /* errno of the last look at a thread that could not be read */
	unsigned unread_count;
	bool any; /* tests: a random one of those that can be borrowed */
};

/* Notes that TID did not stop in time, or (ODD) never can be borrowed. */
void choice_exclude(struct choice *choice, pid_t tid, bool odd);

/* From one line of /proc/PID/task/TID/syscall. */
void thread_classify(const char *line, struct candidate *out);

/* What has no path of its own (pipes, sockets, eventfds), and terminals. NAME: its link in /proc/PID/fd. */
static inline bool descriptor_is_stream(const char *name)
{
	static const char *const terminals[] = { "/dev/pts/", "/dev/tty" };

	for (unsigned i = 0; i < 2; i++) {
		unsigned same = 0;

		while (terminals[i][same] && name[same] == terminals[i][same])
			same++;
		if (!terminals[i][same])
			return true;
	}
	return name[0] != '/';
}

/* What TID does now. False when it cannot be borrowed at all: it has ended, is stopped or traced, waits without being interruptible, or cannot be read (out->unread). */
bool thread_look(const struct target *target, pid_t tid, struct candidate *out);

/* Still as fit as when it was chosen? Brings what is known of it up to date, and counts in CHOICE when that could not be read. */
bool thread_still_fit(const struct target *target, struct choice *choice, struct candidate *thread);

/* -1 with err: the choice has led to nobody until DEADLINE_NS, or what threads do could not be read so often that it will not be. Else 0: choose again. */
int threads_choose_again(const struct target *target, const struct choice *choice, uint64_t deadline_ns, struct error *err);

/* The best thread now; waits for a better one until DEADLINE_NS while only poor ones are there. 0, or -1 with err. */
int threads_choose(const struct target *target, struct choice *choice, uint64_t deadline_ns, struct candidate *out, struct error *err);

#endif
