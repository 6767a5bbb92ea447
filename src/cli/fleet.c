#include "cli/fleet.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/at.h"
#include "cli/signals.h"
#include "report/job.h"

#define MS 1000000ull
#define SHARES_NS (200 * MS)
#define STEP_NS (50 * MS)
#define SCAN_NS (500 * MS)
#define SETTLE_NS (300 * MS)    /* a process that appears lives at least so long before it is begun: it may be about to exec */
#define TOGETHER_NS (10000 * MS) /* the clock of --duration waits for all of the first ones, as long as one is reached in so much time */
#define WORTH_NS (500 * MS)     /* with less time left nothing is begun */
enum { AT_ONCE_PER_CPU = 2, LOOKED_AT_PER_CPU = 4 /* so many sessions may each look for a twentieth of the time: a fifth of the machine */, TRIES_MOST = 4, SHARE_LEAST_MB = 4, MEMBERS_MOST = FOUND_MAX, TOLD_MOST = 8 };

struct fleet {
	struct measure measure;
	struct fleet_query query;
	struct members members;
	struct fleet_page *page;
	char folder[OUTPUT_PATH];     /* empty: nothing is kept of the single processes */
	uint64_t recording_ns, reached_ns, scan_ns; /* since when the first one records, and the latest; when to look for new ones */
	size_t reached;               /* that record, or have recorded */
	size_t at_once;
	bool full;                    /* there is no room for processes that come, and that was told */
	uint64_t at_ns;               /* since 1970, when to begin; 0 = now */
	struct watch watch;
};

static bool known(const struct fleet *fleet, const struct found *found)
{
	for (size_t i = 0; i < fleet->members.count; i++)
		if (fleet->members.items[i].process.pid == found->pid && fleet->members.items[i].process.start_ticks == found->start_ticks)
			return true;
	return false;
}

static int member_add(struct fleet *fleet, const struct found *found, bool first, uint64_t not_before_ns, struct error *err)
{
	bool failed = false;
	struct member *member = list_add_or_fail(&fleet->members, MEMBERS_MOST, &failed);
	unsigned before = 0;
	int length;

	if (!member)
		return failed ? fail(err, ERR_MEMORY, "measuring several processes") : fail(err, ERR_USAGE, "more than %d processes cannot be measured at once", MEMBERS_MOST);
	for (size_t i = 0; i + 1 < fleet->members.count; i++)
		before += fleet->members.items[i].process.pid == found->pid;
	member->process = *found;
	member->first = first;
	member->not_before_ns = not_before_ns;
	if (before)
		snprintf(member->name, sizeof member->name, "process %d (%u)", (int)found->pid, before + 1);
	else
		snprintf(member->name, sizeof member->name, "process %d", (int)found->pid);
	if (!*fleet->folder)
		return 0;
	length = before ? snprintf(member->stem, sizeof member->stem, "%s/process-%d-%u", fleet->folder, (int)found->pid, before + 1)
	                : snprintf(member->stem, sizeof member->stem, "%s/process-%d", fleet->folder, (int)found->pid);
	return length < (int)sizeof member->stem ? 0 : fail(err, ERR_OPTION_VALUE, "the trace's path is too long");
}

/* ---- the first look ---- */

static void found_tell(const struct fleet *fleet, const struct found_list *list)
{
	struct text shown;

	log_print(fleet->measure.level, LOG_INFO, "%zu process%s", list->count, list->count == 1 ? "" : "es");
	for (size_t i = 0; i < list->count && i < TOLD_MOST; i++) {
		text_init(&shown);
		text_add_visible(&shown, list->items[i].command, strlen(list->items[i].command));
		log_print(fleet->measure.level, LOG_INFO, "  %7d %4.0f %% of a CPU  %.100s", (int)list->items[i].pid, list->items[i].cpus * 100, text_string(&shown));
		text_done(&shown);
	}
	if (list->count > TOLD_MOST)
		log_print(fleet->measure.level, LOG_INFO, "  … and %zu more", list->count - TOLD_MOST);
}

static int nobody_found(const struct find_query *query, struct error *err)
{
	if (query->container) {
		fail(err, ERR_NO_PROCESS, "no process is in a container whose id begins with \"%.80s\"", query->container);
		return fail_hint(err, "docker ps and crictl ps print the ids of those that run");
	}
	if (query->cgroup) {
		fail(err, ERR_NO_PROCESS, "no process is in the control group \"%.200s\"", query->cgroup);
		return fail_hint(err, "/proc/PID/cgroup names that of a process");
	}
	return fail(err, ERR_NO_PROCESS, "there is no process whose command line fits");
}

static int fleet_find(struct fleet *fleet, struct found_list *list, struct error *err)
{
	if (find_processes(&procfs_real, &fleet->query.find, list, err) < 0)
		return -1;
	if (!list->count)
		return nobody_found(&fleet->query.find, err);
	find_shares(&procfs_real, list, SHARES_NS);
	found_tell(fleet, list);
	return 0;
}

static int folder_plan(struct fleet *fleet, const struct options *options, struct error *err)
{
	const char *given = options_text(options, OPT_TRACE);
	time_t now = clock_wall_seconds();
	struct tm utc;

	if (strcmp(given, "none") == 0)
		return 0;
	if (strcmp(given, "-") == 0)
		return fail(err, ERR_USAGE, "traces of several processes cannot go to stdout: --trace FOLDER");
	if (strlen(given) >= sizeof fleet->folder - 64)
		return fail(err, ERR_OPTION_VALUE, "the trace's path is too long");
	gmtime_r(&now, &utc);
	if (*given)
		snprintf(fleet->folder, sizeof fleet->folder, "%s", given);
	else
		strftime(fleet->folder, sizeof fleet->folder, "inferscope-%Y%m%dT%H%M%SZ", &utc);
	return 0;
}

static int folder_make(const struct fleet *fleet, struct error *err)
{
	struct stat status;

	if (!*fleet->folder || mkdir(fleet->folder, 0700) == 0 || (errno == EEXIST && stat(fleet->folder, &status) == 0 && S_ISDIR(status.st_mode)))
		return 0;
	return fail(err, ERR_OUTPUT, "the folder %s cannot be made: %s", fleet->folder, strerror(errno));
}

/* The first ones share the memory, and our own CPU time; those that come later get as much as each of them. */
static void means_share(struct fleet *fleet, size_t count)
{
	struct session_options *session = &fleet->measure.session;
	size_t easily = fleet->at_once / AT_ONCE_PER_CPU * LOOKED_AT_PER_CPU;

	session->share = (uint32_t)((count + easily - 1) / easily);

	if (session->trace_size_mb)
		session->trace_size_mb = session->trace_size_mb / count > SHARE_LEAST_MB ? session->trace_size_mb / (uint32_t)count : SHARE_LEAST_MB;
}

/* ---- while they are measured ---- */

static bool over_now(struct fleet *fleet, uint64_t now_ns)
{
	return fleet->page->stop || watch_full(&fleet->watch, fleet->page) || (fleet->page->until_ns && now_ns + WORTH_NS >= fleet->page->until_ns);
}

/* It came and went between two looks, or while one was taken. */
static bool was_brief(const struct member *member)
{
	enum error_code code = member->page->err.code;

	return !member->process.named && (code == ERR_ZOMBIE || code == ERR_NO_PROCESS || code == ERR_EXITED);
}

/* Nobody named it, and it is none of ours to measure. */
static bool is_stranger(const struct member *member)
{
	enum error_code code = member->page->err.code;

	return !member->process.named && (code == ERR_NOT_PYTHON || code == ERR_KERNEL_THREAD || was_brief(member));
}

/* Where many begin at once, or the machine is busy, one may not answer in time; and an interpreter that begins is none yet. */
static bool may_try_again(const struct member *member)
{
	static const enum error_code passing[] = { ERR_NO_THREAD, ERR_NO_SLOT, ERR_INJECT, ERR_GIL, ERR_COLLECTOR, ERR_TIMEOUT };
	enum error_code code = member->page->err.code;

	if (member->page->result == 0 || member->page->watched || *member->page->rank.name || member->tries >= TRIES_MOST)
		return false;
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		if (code == passing[i])
			return true;
	return !member->first && code != ERR_PERMISSION;
}

static void member_ended(struct fleet *fleet, size_t index, uint64_t now_ns)
{
	struct member *member = &fleet->members.items[index];
	struct error err;

	if (may_try_again(member) && !over_now(fleet, now_ns)) {
		member->not_before_ns = now_ns + SETTLE_NS * member->tries;
		return;
	}
	member->over = true;
	member->skipped = member->page->result < 0 && is_stranger(member);
	member->brief = member->skipped && was_brief(member);
	fleet->members.brief += member->brief;
	if (member->page->result == 0 && member->page->receipt.end == END_TARGET_EXECED && !over_now(fleet, now_ns)) {
		struct found found = member->process;

		member_add(fleet, &found, false, now_ns + SETTLE_NS, &err); /* where there is no room the first part is all */
	}
}

/* Where workers come and go for weeks there is room for those that come. (A zombie stays: it would be found anew.) */
static void brief_ones_leave(struct members *members)
{
	size_t kept = 0;

	for (size_t i = 0; i < members->count; i++) {
		struct member *member = &members->items[i];

		if (member->brief && kill(member->process.pid, 0) < 0 && errno == ESRCH)
			member_done(member);
		else if (kept++ != i)
			members->items[kept - 1] = *member;
	}
	members->count = kept;
}

static void members_step(struct fleet *fleet, uint64_t now_ns)
{
	size_t attaching = 0, reached = 0;
	struct error err;

	for (size_t i = 0; i < fleet->members.count; i++) {
		struct member *member = &fleet->members.items[i];

		if (member->child && member_reap(member))
			member_ended(fleet, i, now_ns);
		member = &fleet->members.items[i];
		if (!member->page)
			continue;
		reached += member->page->phase >= MEMBER_RECORDING;
		attaching += member->child && member->page->phase == MEMBER_ATTACHING;
	}
	brief_ones_leave(&fleet->members);
	if (reached && !fleet->recording_ns)
		fleet->recording_ns = now_ns;
	fleet->reached_ns = reached != fleet->reached ? now_ns : fleet->reached_ns;
	fleet->reached = reached;
	for (size_t i = 0; i < fleet->members.count && attaching < fleet->at_once; i++) {
		struct member *member = &fleet->members.items[i];

		if (member->child || member->over || now_ns < member->not_before_ns)
			continue;
		if (over_now(fleet, now_ns)) {
			if (member->first)
				member_miss(member);
			else
				member->over = member->skipped = true; /* it came too late */
			continue;
		}
		if (member_begin(member, &fleet->measure, fleet->page, &err) == 0)
			attaching++;
		else if (member->page) {
			member->page->result = -1;
			member->page->err = err;
			member->over = true;
		}
	}
}

static bool first_ones_begun(const struct fleet *fleet)
{
	for (size_t i = 0; i < fleet->members.count; i++) {
		const struct member *member = &fleet->members.items[i];

		if (member->first && !member->over && (!member->child || member->page->phase == MEMBER_ATTACHING))
			return false;
	}
	return true;
}

static void until_set(struct fleet *fleet, uint64_t now_ns)
{
	uint64_t duration_ns = fleet->measure.session.duration_ns;

	if (duration_ns && !fleet->page->until_ns && fleet->recording_ns && (first_ones_begun(fleet) || now_ns > fleet->reached_ns + TOGETHER_NS))
		fleet->page->until_ns = now_ns + duration_ns;
}

/* Processes that have come since. */
static void scan_step(struct fleet *fleet, uint64_t now_ns)
{
	struct found_list list = { 0 };
	struct error err;

	if (now_ns < fleet->scan_ns || !fleet_query_follows(&fleet->query) || over_now(fleet, now_ns))
		return;
	fleet->scan_ns = now_ns + SCAN_NS;
	if (find_processes(&procfs_real, &fleet->query.find, &list, &err) == 0)
		for (size_t i = 0; i < list.count; i++) {
			if (!list.items[i].start_ticks || known(fleet, &list.items[i]))
				continue;
			if (member_add(fleet, &list.items[i], false, now_ns + SETTLE_NS, &err) == 0) {
				log_print(fleet->measure.level, LOG_DEBUG, "process %d appeared", (int)list.items[i].pid);
			} else if (!fleet->full) {
				fleet->full = true;
				log_print(fleet->measure.level, LOG_WARN, "process %d and those that come after it are not measured: %s", (int)list.items[i].pid, err.text);
			}
		}
	list_done(&list);
}

static bool all_over(const struct fleet *fleet)
{
	for (size_t i = 0; i < fleet->members.count; i++)
		if (!fleet->members.items[i].over)
			return false;
	return true;
}

static void progress_say(const struct fleet *fleet, uint64_t now_ns)
{
	uint64_t events = 0, lost = 0, samples = 0;
	size_t recording = 0;
	char line[256];
	double seconds = fleet->recording_ns ? (double)(now_ns - fleet->recording_ns) / 1e9 : 0;

	if (!status_due(fleet->measure.status))
		return;
	for (size_t i = 0; i < fleet->members.count; i++) {
		const struct member *member = &fleet->members.items[i];

		if (!member->page)
			continue;
		recording += member->child && member->page->phase == MEMBER_RECORDING;
		events += member->page->events;
		lost += member->page->lost;
		samples += member->page->samples;
	}
	snprintf(line, sizeof line, "%s %.1f s  processes %zu  events %.1fk  lost %llu  samples %llu", fleet->watch.wanted ? "watching" : "recording", seconds, recording, (double)events / 1e3, (unsigned long long)lost, (unsigned long long)samples);
	status_say(fleet->measure.status, line, fleet->watch.wanted ? "Ctrl-C ends it" : "Ctrl-C stops and writes");
}

static void fleet_record(struct fleet *fleet)
{
	const volatile int *stop = signals_stop();

	status_phase(fleet->measure.status, "attaching");
	while (!all_over(fleet)) {
		uint64_t now_ns = clock_monotonic_ns();

		fleet->page->stop = *stop;
		members_step(fleet, now_ns);
		watch_step(&fleet->watch, &fleet->members, fleet->page, &fleet->measure, now_ns);
		until_set(fleet, now_ns);
		scan_step(fleet, now_ns);
		progress_say(fleet, now_ns);
		nanosleep(&(struct timespec){ 0, STEP_NS }, NULL); /* a signal ends it early */
	}
	status_phase(fleet->measure.status, NULL);
}

/* ---- all of it ---- */

/* Of all formats that are asked for none is one of a report of several processes. */
static int joint_missing(const struct fleet *fleet, struct error *err)
{
	const char *format = fleet->measure.outputs.reports[0].format->name;

	if (*fleet->folder) {
		log_print(fleet->measure.level, LOG_INFO, "there is no report of all in %s (text, md, json): it is written of each process, in %s", format, fleet->folder);
		return 0;
	}
	fail(err, ERR_OPTION_VALUE, "there is no report of several processes in %s, and --trace none keeps none of each", format);
	return fail_hint(err, "-f text, md or json; or a folder for what is of each: --trace FOLDER");
}

static int fleet_open(struct fleet *fleet, struct invocation *invocation, struct outputs *plan, struct error *err)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	void *page = mmap(NULL, sizeof *fleet->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return fail(err, ERR_MEMORY, "measuring several processes");
	fleet->page = page;
	fleet->at_once = AT_ONCE_PER_CPU * (size_t)(cpus > 0 ? cpus : 1);
	if (measure_init(&fleet->measure, invocation, 0, "attach", err) < 0 || fleet_query_read(invocation, &fleet->query, err) < 0 || folder_plan(fleet, &invocation->options, err) < 0 ||
	    watch_read(&invocation->options, fleet->folder, &fleet->measure.session, &fleet->watch, err) < 0 || at_read(&invocation->options, &fleet->at_ns, err) < 0)
		return -1;
	*plan = fleet->measure.outputs;
	plan->count = 0;
	for (size_t i = 0; i < fleet->measure.outputs.count && !fleet->watch.wanted; i++)
		if (job_format_find(fleet->measure.outputs.reports[i].format->name))
			plan->reports[plan->count++] = fleet->measure.outputs.reports[i];
	if (fleet->measure.outputs.count && !plan->count && !fleet->watch.wanted && joint_missing(fleet, err) < 0)
		return -1;
	if (options_flag(&invocation->options, OPT_DRY_RUN) && options_duration_ns(&invocation->options, OPT_EVERY))
		return 0; /* the folders are made by the rounds */
	return outputs_test(plan, err);
}

static int dry_run(const struct fleet *fleet, const struct outputs *plan, const struct found_list *list)
{
	struct text shown;

	for (size_t i = 0; i < list->count; i++) {
		text_init(&shown);
		text_add_visible(&shown, list->items[i].command, strlen(list->items[i].command));
		printf("%d  %.0f %% of a CPU  %s\n", (int)list->items[i].pid, list->items[i].cpus * 100, text_string(&shown));
		text_done(&shown);
	}
	printf("attaching would measure those of them that run Python; they were not touched\n");
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): the plan is made */
	for (size_t i = 0; i < plan->count; i++)
		printf("  would write %s\n", plan->reports[i].path);
	if (fleet->watch.wanted)
		printf("  would watch them until Ctrl-C%s, and write what it keeps of each to %s when one is to be written\n", fleet->measure.session.duration_ns ? ", or the end of --duration" : "", fleet->folder);
	else if (*fleet->folder)
		printf("  would write a trace and a report of each to %s\n", fleet->folder);
	return 0;
}

int fleet_attach(struct invocation *invocation, struct error *err)
{
	struct fleet fleet = { 0 };
	struct found_list list = { 0 };
	struct outputs plan;
	int result = -1;

	if (fleet_open(&fleet, invocation, &plan, err) < 0 || fleet_find(&fleet, &list, err) < 0)
		goto out;
	if (options_flag(&invocation->options, OPT_DRY_RUN)) {
		result = dry_run(&fleet, &plan, &list);
		goto out;
	}
	signals_catch();
	fleet.measure.status = status_open(fleet.measure.level > LOG_INFO);
	if (folder_make(&fleet, err) < 0 || (fleet.at_ns && at_wait(fleet.at_ns, &fleet.measure, signals_stop(), err) < 0))
		goto out;
	means_share(&fleet, list.count);
	for (size_t i = 0; i < list.count; i++)
		if (member_add(&fleet, &list.items[i], true, 0, err) < 0)
			goto out;
	fleet_record(&fleet);
	result = fleet.watch.wanted ? watch_report(&fleet.members, &fleet.measure, err) : fleet_report(&fleet.members, &fleet.measure, &plan, fleet.folder, err);
out:
	for (size_t i = 0; i < fleet.members.count; i++)
		member_done(&fleet.members.items[i]);
	list_done(&fleet.members);
	list_done(&list);
	fleet_query_done(&fleet.query);
	measure_done(&fleet.measure);
	if (fleet.page)
		munmap(fleet.page, sizeof *fleet.page);
	return result;
}
