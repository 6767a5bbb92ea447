/* A signal handler that forks, in the way that POSIX permits one to: whatever it interrupts, the fork of the program itself or the code of who attaches. For forker.py. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD = 7, GRANDCHILD = 8 };

volatile long forker_children, forker_wrong;
static pid_t (*bare_fork)(void); /* glibc's _Fork: from 2.34 on */
static volatile sig_atomic_t inside;

int forker_begin(long every_us);
void forker_end(void);

static void wait_for(pid_t child, int wanted)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted)
		forker_wrong++;
	forker_children++;
}

/* In the child the handler comes upon itself once more. */
static void on_signal(int number)
{
	int before = errno, depth = inside++;
	pid_t child = bare_fork();

	if (child == 0) {
		if (depth == 0)
			raise(number);
		_exit(depth == 0 && forker_wrong == 0 ? CHILD : GRANDCHILD);
	}
	if (child > 0)
		wait_for(child, depth == 0 ? CHILD : GRANDCHILD);
	inside = depth;
	errno = before;
}

int forker_begin(long every_us)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART | SA_NODEFER };
	struct itimerval timer = { { 0, every_us }, { 0, every_us } };

	*(void **)&bare_fork = dlsym(RTLD_DEFAULT, "_Fork");
	return bare_fork && sigaction(SIGALRM, &action, NULL) == 0 ? setitimer(ITIMER_REAL, &timer, NULL) : -1;
}

void forker_end(void)
{
	struct itimerval none = { { 0, 0 }, { 0, 0 } };

	setitimer(ITIMER_REAL, &none, NULL);
}
