/*
 * The main thread makes one kind of blocking call again and again; each has 200 ms. EINTR, an early return, or one that is later than
 * MAX_LATE_MS (default 400) is an error. Nobody sends signals. usage: blocked KIND SECONDS
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <linux/futex.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 200

static int epoll_fd, semaphore, sockets[2], futex_word;
static const struct timespec limit = { 0, LIMIT_MS * 1000000l };

static long call_nanosleep(void) { return nanosleep(&limit, NULL); }
static long call_clock(void) { return clock_nanosleep(CLOCK_MONOTONIC, 0, &limit, NULL) == 0 ? 0 : -1; }
static long call_poll(void) { return poll(NULL, 0, LIMIT_MS); }
static long call_futex(void) { return syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0); }

static long call_select(void)
{
	struct timeval time = { 0, LIMIT_MS * 1000 };

	return select(0, NULL, NULL, NULL, &time);
}

static long call_epoll(void)
{
	struct epoll_event event;

	return epoll_wait(epoll_fd, &event, 1, LIMIT_MS);
}

static long call_epoll_pwait(void)
{
	struct epoll_event event;

	return epoll_pwait(epoll_fd, &event, 1, LIMIT_MS, NULL);
}

static long call_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &limit);
}

static long call_semtimedop(void)
{
	struct sembuf operation = { 0, -1, 0 };

	return semtimedop(semaphore, &operation, 1, &limit);
}

static long call_recv(void) /* with SO_RCVTIMEO */
{
	char byte;

	return recv(sockets[0], &byte, 1, 0);
}

static long call_open(void) /* of a FIFO that nobody writes to: a call that is in no table of ours */
{
	return open(getenv("FIFO"), O_RDONLY);
}

static const struct {
	const char *name;
	long (*call)(void);
} kinds[] = {
	{ "nanosleep", call_nanosleep }, { "clock_nanosleep", call_clock }, { "poll", call_poll }, { "select", call_select },
	{ "futex", call_futex }, { "epoll_wait", call_epoll }, { "epoll_pwait", call_epoll_pwait }, { "rt_sigtimedwait", call_sigtimedwait },
	{ "semtimedop", call_semtimedop }, { "recv", call_recv }, { "open", call_open },
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void make_things(void)
{
	struct timeval time = { 0, LIMIT_MS * 1000 };
	sigset_t set;

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	semaphore = semget(IPC_PRIVATE, 1, 0600);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0)
		setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char **argv)
{
	double until = now() + (argc > 2 ? atof(argv[2]) : 1), longest = 0;
	double late = getenv("MAX_LATE_MS") ? atof(getenv("MAX_LATE_MS")) : 400;
	long eintr = 0, early = 0, calls = 0;
	size_t kind = 0;

	while (kind < sizeof kinds / sizeof *kinds && argc > 1 && strcmp(kinds[kind].name, argv[1]) != 0)
		kind++;
	if (argc < 2 || kind == sizeof kinds / sizeof *kinds)
		return 2;
	make_things();
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	for (; now() < until; calls++) {
		double before = now(), took;
		long result = kinds[kind].call();

		took = (now() - before) * 1e3;
		eintr += result < 0 && errno == EINTR;
		early += took < LIMIT_MS - 1;
		longest = took > longest ? took : longest;
	}
	semctl(semaphore, 0, IPC_RMID);
	printf("%s %s calls %ld eintr %ld early %ld longest %.0f ms\n", eintr || early || !calls || longest > late ? "FAIL" : "OK", argv[1],
	       calls, eintr, early, longest);
	return eintr || early || longest > late;
}
