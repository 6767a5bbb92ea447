/* Starts the window process, watches it from outside, and ends it when it does not end itself. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "inject/critical.h"

#define NS_PER_MS 1000000ull
#define EXTRA_MS 30 /* beyond the alarm inside */

/* Waits for CHILD's end, TIMEOUT_MS at most without progress; kills it then, which frees whatever it holds. */
static void watch_child(const struct window *window, pid_t child)
{
	uint32_t stop_ms = window->stop_timeout_ms > window->runnable_timeout_ms ? window->stop_timeout_ms : window->runnable_timeout_ms;
	uint64_t limit_ns = (stop_ms + ALARM_MS + EXTRA_MS) * NS_PER_MS, since_ns = clock_monotonic_ns();
	uint32_t tries = window->tries;
	long nap_ns = 20000;
	int status;

	while (waitpid(child, &status, WNOHANG) == 0) {
		if (window->tries != tries) {
			tries = window->tries;
			since_ns = clock_monotonic_ns();
		}
		if (clock_monotonic_ns() - since_ns > limit_ns) {
			kill(child, SIGKILL);
			while (waitpid(child, &status, 0) < 0 && errno == EINTR)
				;
			return;
		}
		nanosleep(&(struct timespec){ 0, nap_ns }, NULL);
		if (nap_ns < 500000)
			nap_ns += nap_ns / 4;
	}
}

struct window *window_new(void)
{
	struct window *window = mmap(NULL, sizeof *window, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return window == MAP_FAILED ? NULL : window;
}

void window_free(struct window *window)
{
	if (window)
		munmap(window, sizeof *window);
}

void window_run(struct window *window)
{
	sigset_t all, before;
	pid_t child;

	window->result = WINDOW_NOT_RUN;
	window->error = 0;
	window->tries = 0;
	window->held = window->entering = false;
	/* No handler of the attacher's may run in the child. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	child = fork();
	if (child == 0) {
		window_process(window);
		_exit(0);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (child < 0) {
		window->result = WINDOW_FAILED;
		window->error = errno;
		return;
	}
	watch_child(window, child);
	if (window->result != WINDOW_NOT_RUN)
		return;
	/* Killed at the one point where it may have entered: the slot is taken until the target says otherwise. */
	window->result = window->entering ? WINDOW_ENTERED : WINDOW_NO_STOP;
	if (window->held) {
		uint64_t held_ns = clock_monotonic_ns() - window->moving_ns;

		window->hold_total_ns += held_ns;
		if (held_ns > window->hold_ns)
			window->hold_ns = held_ns;
	}
}
