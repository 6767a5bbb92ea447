/* What the double of CUPTI writes down: every call before and after, with the thread and whether it has all signals blocked. */
#include "cupti_api.h"
#include "settings.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int in_flight;
static __thread int depth;

static const char *signals_state(void)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, SIGTERM) && sigismember(&now, SIGINT) && sigismember(&now, SIGUSR1) && sigismember(&now, SIGPROF) ? "masked" : "open";
}

void journal_note(const char *text)
{
	file_line("FAKECUDA_JOURNAL", "%lu\t%d\t%d\t%s\t#\t%s\t0\t0", mono_ns() / 1000, getpid(), own_tid(), signals_state(), text);
}

int quiet_enter(void)
{
	__atomic_add_fetch(&in_flight, 1, __ATOMIC_ACQ_REL);
	return depth++;
}

int quiet_leave(int rc)
{
	depth--;
	__atomic_sub_fetch(&in_flight, 1, __ATOMIC_ACQ_REL);
	return rc;
}

void api_enter(const char *name, uint64_t argument)
{
	quiet_enter();
	file_line("FAKECUDA_JOURNAL", "%lu\t%d\t%d\t%s\t>\t%s\t%lu\t0", mono_ns() / 1000, getpid(), own_tid(), signals_state(), name, argument);
}

static int fails(const char *name, uint64_t argument)
{
	const char *wanted = setting_text("FAKECUDA_FAIL");
	unsigned long which;
	char function[64];
	int rc;

	return wanted && sscanf(wanted, "%63s %lu %d", function, &which, &rc) == 3 && strcmp(function, name) == 0 && which == argument ? rc : RC_OK;
}

int api_leave(const char *name, uint64_t argument, int rc)
{
	rc = rc ? rc : fails(name, argument);
	file_line("FAKECUDA_JOURNAL", "%lu\t%d\t%d\t%s\t<\t%s\t%lu\t%d", mono_ns() / 1000, getpid(), own_tid(), signals_state(), name, argument, rc);
	return quiet_leave(rc);
}

int calls_elsewhere(void)
{
	return __atomic_load_n(&in_flight, __ATOMIC_ACQUIRE) > depth;
}
