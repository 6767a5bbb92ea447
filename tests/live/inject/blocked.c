/*
 * Makes one kind of blocking call again and again and takes EINTR, an early return or a lost wake-up for an error, as many servers do. Nobody
 * sends signals that have a handler. A program (its only thread calls), and a library whose blocked_run() and blocked_thread() do the same.
 *
 *   blocked KIND SECONDS [LIMIT_MS]     200; with -1 (no limit) and limits of a second and more a child of ours wakes it every 0.1 to 0.4 s
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int blocked_run(const char *kind, double seconds, long limit_ms);
int blocked_thread(const char *kind, double seconds, long limit_ms);

/* Shared with the child that wakes. */
struct shared {
	int futex_word;
	long sent, taken; /* a wake-up is sent when the one before was taken */
	long lost;        /* not taken within LOST_MS */
};

struct blocked {
	struct shared *shared;
	struct timespec limit, *limit_or_null;
	const struct timespec *constant;
	long limit_ms;
	int epoll_fd, semaphore, sockets[2], pipes[2];
	bool byte_read;
	unsigned char *block;
	uint64_t at, drained; /* bytes so far: of the caller, of the child */
	pid_t caller; /* thread */
};

enum { LOST_MS = 10000, BLOCK_BYTES = 1000000 };

static long call_nanosleep(struct blocked *blocked) { return nanosleep(&blocked->limit, NULL); }
static long call_clock(struct blocked *blocked) { return clock_nanosleep(CLOCK_MONOTONIC, 0, &blocked->limit, NULL) == 0 ? 0 : -1; }

static long call_poll(struct blocked *blocked)
{
	struct pollfd wanted = { blocked->sockets[0], POLLIN, 0 };

	return poll(&wanted, 1, (int)blocked->limit_ms);
}

static long call_select(struct blocked *blocked)
{
	struct timeval time = { blocked->limit.tv_sec, blocked->limit.tv_nsec / 1000 };
	fd_set wanted;

	FD_ZERO(&wanted);
	FD_SET(blocked->sockets[0], &wanted);
	return select(blocked->sockets[0] + 1, &wanted, NULL, NULL, blocked->limit_or_null ? &time : NULL);
}

static long call_futex(struct blocked *blocked)
{
	long result = syscall(SYS_futex, &blocked->shared->futex_word, FUTEX_WAIT, (int)blocked->shared->taken, blocked->limit_or_null, NULL, 0);

	if (result == 0 || (result < 0 && errno == EAGAIN)) /* the other value was there already */
		return blocked->shared->futex_word != (int)blocked->shared->taken;
	return errno == ETIMEDOUT ? 0 : -1;
}

static long call_epoll(struct blocked *blocked)
{
	struct epoll_event event;

	return epoll_wait(blocked->epoll_fd, &event, 1, (int)blocked->limit_ms);
}

static long call_epoll_pwait(struct blocked *blocked)
{
	struct epoll_event event;

	return epoll_pwait(blocked->epoll_fd, &event, 1, (int)blocked->limit_ms, NULL);
}

static long call_sigtimedwait(struct blocked *blocked)
{
	sigset_t set;
	int result;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	result = blocked->limit_or_null ? sigtimedwait(&set, NULL, blocked->limit_or_null) : sigwaitinfo(&set, NULL);
	return result < 0 && errno == EAGAIN ? 0 : result;
}

static long call_semtimedop(struct blocked *blocked)
{
	struct sembuf operation = { 0, -1, 0 };

	if (semtimedop(blocked->semaphore, &operation, 1, blocked->limit_or_null) == 0)
		return 1;
	return errno == EAGAIN ? 0 : -1;
}

static long call_recv(struct blocked *blocked) /* with SO_RCVTIMEO */
{
	char byte;
	long result = recv(blocked->sockets[0], &byte, 1, MSG_PEEK);

	return result < 0 && errno == EAGAIN ? 0 : result;
}

/* With a limit in memory that the kernel cannot write to, so that it cannot restart the call. */
static long call_ppoll(struct blocked *blocked)
{
	struct pollfd wanted = { blocked->sockets[0], POLLIN, 0 };

	return syscall(SYS_ppoll, &wanted, 1, blocked->limit_or_null ? blocked->constant : NULL, NULL, 8);
}

static long call_pselect(struct blocked *blocked)
{
	fd_set wanted;

	FD_ZERO(&wanted);
	FD_SET(blocked->sockets[0], &wanted);
	return syscall(SYS_pselect6, blocked->sockets[0] + 1, &wanted, NULL, NULL, blocked->limit_or_null ? blocked->constant : NULL, NULL);
}

static long call_read(struct blocked *blocked) /* of a socket with SO_RCVTIMEO */
{
	char byte;
	long result = read(blocked->sockets[0], &byte, 1);

	if (result > 0)
		blocked->byte_read = true;
	return result < 0 && errno == EAGAIN ? 0 : result;
}

/* All of it, or it is an error, as for most programs. */
static long all(long result)
{
	if (result >= 0 && result != BLOCK_BYTES)
		errno = EMSGSIZE;
	return result == BLOCK_BYTES ? 1 : -1;
}

static unsigned char pattern(uint64_t at) { return (unsigned char)(at * 131 + (at >> 12)); }

static void block_fill(struct blocked *blocked)
{
	for (long i = 0; i < BLOCK_BYTES; i++)
		blocked->block[i] = pattern(blocked->at + (uint64_t)i);
	blocked->at += BLOCK_BYTES;
}

static long call_write(struct blocked *blocked)
{
	block_fill(blocked);
	return all(write(blocked->pipes[1], blocked->block, BLOCK_BYTES));
}

static long call_send(struct blocked *blocked)
{
	block_fill(blocked);
	return all(send(blocked->sockets[0], blocked->block, BLOCK_BYTES, 0));
}

static long call_recv_all(struct blocked *blocked)
{
	long result = recv(blocked->sockets[0], blocked->block, BLOCK_BYTES, MSG_WAITALL);

	for (long i = 0; i < result; i++)
		blocked->shared->lost += blocked->block[i] != pattern(blocked->at++);
	return all(result);
}

static long call_open(struct blocked *blocked) /* of a FIFO that nobody writes to: a call that is in no table of ours */
{
	(void)blocked;
	return open(getenv("FIFO"), O_RDONLY);
}

static void wake_socket(struct blocked *blocked)
{
	if (write(blocked->sockets[1], "x", 1) != 1)
		_exit(1);
}

static void wake_futex(struct blocked *blocked)
{
	__atomic_add_fetch(&blocked->shared->futex_word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &blocked->shared->futex_word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void wake_signal(struct blocked *blocked) { syscall(SYS_tgkill, getppid(), blocked->caller, SIGUSR2); }

static void wake_semaphore(struct blocked *blocked)
{
	struct sembuf operation = { 0, 1, 0 };

	semop(blocked->semaphore, &operation, 1);
}

/* Reads some of it: what was written must come, each byte once. */
static void drain(struct blocked *blocked, int fd)
{
	unsigned char bytes[20000];
	long got = read(fd, bytes, sizeof bytes);

	for (long i = 0; i < got; i++)
		blocked->shared->lost += bytes[i] != pattern(blocked->drained++);
}

static void drain_pipe(struct blocked *blocked) { drain(blocked, blocked->pipes[0]); }
static void drain_socket(struct blocked *blocked) { drain(blocked, blocked->sockets[1]); }

static void feed_socket(struct blocked *blocked)
{
	unsigned char bytes[20000];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = pattern(blocked->drained++);
	if (write(blocked->sockets[1], bytes, sizeof bytes) != sizeof bytes)
		_exit(1);
}

static const struct kind {
	const char *name;
	long (*call)(struct blocked *blocked); /* > 0 woken, 0 its time was over, < 0 errno */
	void (*wake)(struct blocked *blocked);
	bool parts; /* many wake-ups for one call, which has no limit */
} kinds[] = {
	{ "write", call_write, drain_pipe, true },
	{ "send", call_send, drain_socket, true },
	{ "recv_all", call_recv_all, feed_socket, true },
	{ "ppoll", call_ppoll, wake_socket, false },
	{ "pselect6", call_pselect, wake_socket, false },
	{ "read", call_read, wake_socket, false },
	{ "nanosleep", call_nanosleep, NULL, false },
	{ "clock_nanosleep", call_clock, NULL, false },
	{ "poll", call_poll, wake_socket, false },
	{ "select", call_select, wake_socket, false },
	{ "futex", call_futex, wake_futex, false },
	{ "epoll_wait", call_epoll, wake_socket, false },
	{ "epoll_pwait", call_epoll_pwait, wake_socket, false },
	{ "rt_sigtimedwait", call_sigtimedwait, wake_signal, false },
	{ "semtimedop", call_semtimedop, wake_semaphore, false },
	{ "recv", call_recv, wake_socket, false },
	{ "open", call_open, NULL, false },
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool make_things(struct blocked *blocked)
{
	struct epoll_event event = { EPOLLIN, { 0 } };
	sigset_t set;

	blocked->shared = mmap(NULL, sizeof *blocked->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	blocked->constant = mmap(NULL, sizeof blocked->limit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	blocked->block = malloc(BLOCK_BYTES);
	if (blocked->constant == MAP_FAILED || !blocked->block || pipe2(blocked->pipes, O_CLOEXEC) < 0)
		return false;
	memcpy((void *)(uintptr_t)blocked->constant, &blocked->limit, sizeof blocked->limit);
	mprotect((void *)(uintptr_t)blocked->constant, sizeof blocked->limit, PROT_READ);
	blocked->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	blocked->semaphore = semget(IPC_PRIVATE, 1, 0600);
	if (blocked->shared == MAP_FAILED || blocked->semaphore < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, blocked->sockets) < 0)
		return false;
	epoll_ctl(blocked->epoll_fd, EPOLL_CTL_ADD, blocked->sockets[0], &event);
	if (blocked->limit_or_null) {
		struct timeval time = { blocked->limit.tv_sec, blocked->limit.tv_nsec / 1000 };

		setsockopt(blocked->sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
	}
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	blocked->caller = (pid_t)syscall(SYS_gettid);
	return true;
}

/* The child. Wakes, and waits for the wake-up to be taken. */
static void wake_again_and_again(struct blocked *blocked, const struct kind *kind)
{
	unsigned seed = (unsigned)getpid();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (; kind->parts; usleep((useconds_t)rand_r(&seed) % 20000))
		kind->wake(blocked);
	for (;;) {
		usleep(100000 + (useconds_t)rand_r(&seed) % 300000);
		__atomic_add_fetch(&blocked->shared->sent, 1, __ATOMIC_SEQ_CST);
		kind->wake(blocked);
		for (long waited_ms = 0; __atomic_load_n(&blocked->shared->taken, __ATOMIC_SEQ_CST) < blocked->shared->sent; waited_ms += 2) {
			if (waited_ms == LOST_MS)
				blocked->shared->lost++;
			usleep(2000);
		}
	}
}

static void take(struct blocked *blocked, const struct kind *kind)
{
	char byte;

	if (kind->wake == wake_socket && !blocked->byte_read)
		(void)!recv(blocked->sockets[0], &byte, 1, MSG_DONTWAIT);
	__atomic_add_fetch(&blocked->shared->taken, 1, __ATOMIC_SEQ_CST);
}

/* Prints what came of it. Returns 0 when nothing went wrong. */
int blocked_run(const char *name, double seconds, long limit_ms)
{
	struct blocked blocked = { .limit_ms = limit_ms, .limit = { limit_ms / 1000, limit_ms % 1000 * 1000000 } };
	double until = now() + seconds, longest = 0;
	long eintr = 0, early = 0, failed = 0, calls = 0;
	const struct kind *kind = kinds;
	pid_t waker = 0;
	bool bad;

	while (kind < kinds + sizeof kinds / sizeof *kinds && strcmp(kind->name, name) != 0)
		kind++;
	blocked.limit_or_null = limit_ms < 0 ? NULL : &blocked.limit;
	if (kind == kinds + sizeof kinds / sizeof *kinds || !make_things(&blocked))
		return 2;
	if (kind->wake && (limit_ms < 0 || limit_ms >= 1000)) {
		waker = fork();
		if (waker == 0)
			wake_again_and_again(&blocked, kind);
	}
	for (; now() < until; calls++) {
		double before = now(), took;
		long result = kind->call(&blocked);

		took = (now() - before) * 1e3;
		eintr += result < 0 && errno == EINTR;
		failed += result < 0 && errno != EINTR;
		early += result == 0 && took < (double)limit_ms - (kind->call == call_recv ? 10 : 1); /* recv counts in jiffies */
		if (result > 0)
			take(&blocked, kind);
		longest = took > longest ? took : longest;
	}
	if (waker > 0) {
		kill(waker, SIGKILL);
		waitpid(waker, NULL, 0);
	}
	semctl(blocked.semaphore, 0, IPC_RMID);
	bad = eintr || early || failed || !calls || blocked.shared->lost;
	printf("%s %s limit %ld calls %ld eintr %ld early %ld failed %ld woken %ld lost %ld longest %.0f ms\n", bad ? "FAIL" : "OK", name, limit_ms, calls, eintr, early, failed,
	       blocked.shared->taken, blocked.shared->lost, longest);
	fflush(stdout);
	return bad;
}

struct request {
	const char *kind;
	double seconds;
	long limit_ms;
	int result;
};

static void *thread_body(void *argument)
{
	struct request *request = argument;

	request->result = blocked_run(request->kind, request->seconds, request->limit_ms);
	return NULL;
}

/* The same, on a thread that no interpreter knows; the caller waits for its end. */
int blocked_thread(const char *kind, double seconds, long limit_ms)
{
	struct request request = { kind, seconds, limit_ms, 2 };
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_body, &request) != 0)
		return 2;
	pthread_join(thread, NULL);
	return request.result;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	return blocked_run(argv[1], argc > 2 ? atof(argv[2]) : 1, argc > 3 ? atol(argv[3]) : 200);
}
