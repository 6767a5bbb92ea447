#include "cli/member.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/signals.h"

struct sharing { struct member_page *page; struct recorder *recorder; };

static void progress_share(void *context, const struct session_progress *progress)
{
	const struct sharing *sharing = context;

	sharing->page->events = progress->events;
	sharing->page->lost = progress->lost;
	sharing->page->samples = progress->samples;
	if (sharing->recorder)
		recorder_progress(sharing->recorder, progress);
}

/* From an open target to the files; the joint report's part is left in the page. */
static int member_session(struct measure *measure, struct member_page *page, struct target *target, const volatile int *stop, struct error *err)
{
	const struct sharing sharing = { page, measure->recorder };
	struct error left = { 0 };
	struct session *session;
	int result;

	if (measure_spool(measure, err) < 0 || (measure->recorder && recorder_start(measure->recorder, err) < 0) || session_start(target, &measure->session, measure->spool, &session, err) < 0)
		return -1;
	measure_begun(measure);
	page->phase = MEMBER_RECORDING;
	page->watched = measure->recorder != NULL;
	session_record(session, measure->recorder ? recorder_stop(measure->recorder) : stop, progress_share, (void *)&sharing);
	page->phase = MEMBER_ENDING;
	session_leave(session, &page->receipt, &left);
	session_free(session);
	if (page->receipt.end == END_ABANDONED || *stop >= 2)
		result = fail(err, ERR_INTERRUPTED, "left at once; nothing was written");
	else
		result = measure->recorder ? recorder_finish(measure->recorder, err) : measure_present(measure, -1, err);
	return measure_outcome(result, &left, err);
}

static int member_measure(struct measure *measure, struct member *member, struct fleet_page *fleet, struct error *err)
{
	struct member_page *page = member->page;
	const struct recorder_group group = { &fleet->call, &page->told };
	struct outputs outputs;
	struct target *target = NULL;
	int result = -1;

	if (outputs_beside(&measure->outputs, member->stem, &outputs, err) < 0)
		return -1;
	measure->outputs = outputs;
	measure->pid = member->process.pid;
	measure->status = NULL;
	measure->nvml = NULL;
	measure->rank = &page->rank;
	measure->rank_name = member->name;
	measure->session.stop = &fleet->stop;
	measure->session.inject.stop = &fleet->stop;
	measure->session.until_ns = &fleet->until_ns;
	if ((recorder_wanted(&measure->invocation->options) && recorder_open(measure, &group, &measure->recorder, err) < 0) ||
	    target_open(measure->pid, &measure->session.inject, &target, err) < 0)
		;
	else if (member->process.start_ticks && target_facts(target)->start_ticks != member->process.start_ticks)
		fail(err, ERR_EXITED, "process %d ended before measuring began", (int)measure->pid);
	else
		result = member_session(measure, page, target, &fleet->stop, err);
	recorder_close(measure->recorder);
	target_close(target);
	return result;
}

/* In a process group of its own: what a terminal sends to the parent's group, the parent passes on as a number. TELLS: of its files, on stdout. */
static void member_settle(pid_t parent, struct fleet_page *fleet, bool quiet, bool tells)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setpgid(0, 0);
	signals_stop_once(&fleet->stop);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		if (!tells)
			dup2(null, STDOUT_FILENO);
		if (quiet)
			dup2(null, STDERR_FILENO);
	}
}

static bool page_map(struct member *member)
{
	void *page = member->page ? member->page : mmap(NULL, sizeof *member->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED)
		member->page = page;
	return page != MAP_FAILED;
}

void member_miss(struct member *member)
{
	member->over = true;
	member->skipped = !page_map(member);
	if (member->skipped)
		return;
	member->page->result = -1;
	fail(&member->page->err, ERR_INTERRUPTED, "measuring ended before process %d was reached", (int)member->process.pid);
}

int member_begin(struct member *member, const struct measure *measure, struct fleet_page *fleet, struct error *err)
{
	pid_t parent = getpid();

	if (!page_map(member))
		return fail(err, ERR_MEMORY, "measuring process %d", (int)member->process.pid);
	memset(member->page, 0, sizeof *member->page);
	memset(&member->seen, 0, sizeof member->seen);
	member->tries++;
	member->child = fork();
	if (member->child < 0) {
		member->child = 0;
		return fail(err, ERR_MEMORY, "measuring process %d: %s", (int)member->process.pid, strerror(errno));
	}
	if (member->child == 0) {
		struct measure own = *measure;

		member_settle(parent, fleet, measure->level > LOG_DEBUG, recorder_wanted(&measure->invocation->options));
		member->page->result = member_measure(&own, member, fleet, &member->page->err);
		member->page->phase = MEMBER_DONE;
		_exit(0);
	}
	return 0;
}

bool member_reap(struct member *member)
{
	int status = 0;

	if (waitpid(member->child, &status, WNOHANG) == 0)
		return false;
	member->child = 0;
	if (member->page->phase == MEMBER_DONE)
		return true;
	member->page->result = -1;
	if (WIFSIGNALED(status))
		fail(&member->page->err, ERR_INTERNAL, "the process of ours that measured it died by signal %d", WTERMSIG(status));
	else
		fail(&member->page->err, ERR_INTERNAL, "the process of ours that measured it ended early");
	return true;
}

void member_done(struct member *member)
{
	if (member->page)
		munmap(member->page, sizeof *member->page);
	member->page = NULL;
}
