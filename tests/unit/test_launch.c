/* Starting programs, without a Python: what is refused, what is followed, how ends are told. With Pythons: tests/live/launch/run. */
#include "inject/launch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int start(const char *first, const char *second, const char *third, struct launch **out, struct error *err)
{
	char *argv[] = { (char *)first, (char *)second, (char *)third, NULL };

	return launch_start(argv, NULL, out, err);
}

static int shell_status(const char *script)
{
	struct launch *launch = NULL;
	struct error err = { 0 };
	int status = -1;

	cr_assert_eq(start("sh", "-c", script, &launch, &err), 0, "%s", err.text);
	cr_assert(!launch_at_gate(launch));
	cr_assert_eq(launch_wait(launch, -1, &status, &err), 1);
	launch_close(launch);
	return status;
}

Test(launch, names_a_program_that_does_not_exist)
{
	struct launch *launch = NULL;
	struct error err = { 0 };

	cr_assert_eq(start("/nonexistent/python3", NULL, NULL, &launch, &err), -1);
	cr_assert_eq(err.code, ERR_LAUNCH);
	cr_assert_not_null(strstr(err.text, "/nonexistent/python3"));
	cr_assert_null(launch);
}

Test(launch, refuses_a_program_that_is_no_python_before_it_does_anything)
{
	struct launch *launch = NULL;
	struct error err = { 0 };
	char path[] = "/tmp/launch-unit-XXXXXX";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	cr_assert_eq(start("rm", path, NULL, &launch, &err), -1);
	cr_assert_eq(err.code, ERR_LAUNCH_REFUSED);
	cr_assert_eq(access(path, F_OK), 0, "rm has run");
	unlink(path);
	errno = 0;
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
}

Test(launch, tells_the_status_of_a_wrapper_that_never_becomes_python)
{
	int status = shell_status("exit 3");

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

Test(launch, tells_the_signal_that_ended_a_wrapper)
{
	int status = shell_status("kill -TERM $$");

	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

Test(launch, follows_exec_to_a_program_that_is_refused)
{
	struct launch *launch = NULL;
	struct error err = { 0 };

	cr_assert_eq(start("sh", "-c", "exec sleep 60", &launch, &err), -1);
	cr_assert_eq(err.code, ERR_LAUNCH_REFUSED);
	cr_assert_not_null(strstr(err.text, "sleep"), "%s", err.text);
}

Test(launch, passes_a_stop_signal_on_and_a_continue_too, .timeout = 20)
{
	int status = shell_status("(sleep 0.2; kill -CONT $$) & kill -STOP $$; exit 5");

	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static void count_tick(void *context, pid_t pid)
{
	int *ticks = context;

	cr_assert_gt(pid, 0);
	++*ticks;
}

Test(launch, gives_the_caller_time_while_a_wrapper_runs)
{
	char *argv[] = { "sh", "-c", "sleep 0.3", NULL };
	struct launch *launch = NULL;
	struct error err = { 0 };
	int ticks = 0;

	cr_assert_eq(launch_start_watched(argv, NULL, count_tick, &ticks, &launch, &err), 0, "%s", err.text);
	cr_assert_geq(ticks, 2); /* of 15, where nothing else runs */
	launch_close(launch);
}
