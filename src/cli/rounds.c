#include "cli/rounds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "cli/fleet.h"
#include "cli/ship.h"
#include "cli/signals.h"

#define SECOND_NS 1000000000ull
#define SHIP_MARGIN_NS 500000000ull /* sending ends so long before the next round … */
#define SHIP_LEAST_NS 1000000000ull /* … but it has so long after each, also where rounds take all the time there is */
#define ROUND_NAME "inferscope-" /* and the moment: 20260131T120000Z, so that names sort by time */
#define ROUND_FORMAT ROUND_NAME "%Y%m%dT%H%M%SZ"
enum { ROUND_NAME_LENGTH = 27, ROUNDS_MOST = 1 << 20 };

struct round { char name[ROUND_NAME_LENGTH + 1]; uint64_t bytes; };
struct rounds { struct round *items; size_t count, capacity; };

static bool is_round(const char *name)
{
	struct tm time;
	const char *end;

	if (strlen(name) != ROUND_NAME_LENGTH || strncmp(name, ROUND_NAME, sizeof ROUND_NAME - 1) != 0)
		return false;
	end = strptime(name, ROUND_FORMAT, &time);
	return end && !*end;
}

/* Calls EACH with every regular file of the round; links and folders in it are left alone. */
static void round_walk(int parent, const char *name, void (*each)(int folder, const char *name, const struct stat *status, void *context), void *context)
{
	int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = folder >= 0 ? fdopendir(folder) : NULL;
	const struct dirent *entry;
	struct stat status;

	if (!stream) {
		if (folder >= 0)
			close(folder);
		return;
	}
	while ((entry = readdir(stream)))
		if (fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
			each(dirfd(stream), entry->d_name, &status, context);
	closedir(stream);
}

static void file_count(int folder, const char *name, const struct stat *status, void *context)
{
	uint64_t *bytes = context;

	(void)folder;
	(void)name;
	*bytes += (uint64_t)status->st_blocks * 512;
}

static void file_remove(int folder, const char *name, const struct stat *status, void *context)
{
	(void)status;
	(void)context;
	unlinkat(folder, name, 0);
}

static int compare_rounds(const void *left, const void *right)
{
	return strcmp(((const struct round *)left)->name, ((const struct round *)right)->name);
}

static int rounds_list(DIR *stream, struct rounds *out, struct error *err)
{
	const struct dirent *entry;

	while ((entry = readdir(stream))) {
		struct round *round;

		if (!is_round(entry->d_name))
			continue;
		round = list_add(out, ROUNDS_MOST);
		if (!round)
			return fail(err, ERR_MEMORY, "looking at what was kept");
		memcpy(round->name, entry->d_name, ROUND_NAME_LENGTH + 1);
		round_walk(dirfd(stream), round->name, file_count, &round->bytes);
	}
	if (out->count)
		qsort(out->items, out->count, sizeof *out->items, compare_rounds);
	return 0;
}

int rounds_prune(const char *folder, uint64_t most_bytes, struct error *err)
{
	DIR *stream = opendir(folder);
	struct rounds rounds = { 0 };
	uint64_t bytes = 0;
	int gone = -1;

	if (!stream)
		return fail(err, file_error_of(errno, ERR_OUTPUT), "%s: %s", folder, strerror(errno));
	if (rounds_list(stream, &rounds, err) < 0)
		goto out;
	gone = 0;
	for (size_t i = 0; i < rounds.count; i++)
		bytes += rounds.items[i].bytes;
	for (size_t i = 0; i + 1 < rounds.count && bytes > most_bytes; i++) {
		round_walk(dirfd(stream), rounds.items[i].name, file_remove, NULL);
		if (unlinkat(dirfd(stream), rounds.items[i].name, AT_REMOVEDIR) == 0)
			gone++;
		bytes -= rounds.items[i].bytes;
	}
out:
	list_done(&rounds);
	closedir(stream);
	return gone;
}

/* ---- the rounds ---- */

static int keep_make(const struct options *options, struct error *err)
{
	const char *keep = options_text(options, OPT_KEEP);
	struct stat status;

	if (mkdir(keep, 0700) < 0 && !(errno == EEXIST && stat(keep, &status) == 0 && S_ISDIR(status.st_mode)))
		return fail(err, ERR_OUTPUT, "the folder %s cannot be made: %s", keep, strerror(errno));
	return 0;
}

static int words_check(const struct options *options, struct error *err)
{
	const char *keep = options_text(options, OPT_KEEP);

	if (!*keep) {
		fail(err, ERR_USAGE, "--every needs --keep FOLDER");
		return fail_hint(err, "inferscope attach PID --every 10m --duration 10s --keep /var/lib/inferscope");
	}
	if (options_duration_ns(options, OPT_DURATION) == 0 || options_duration_ns(options, OPT_DURATION) >= options_duration_ns(options, OPT_EVERY))
		return fail(err, ERR_USAGE, "--every %s: a round of --duration %s does not end before the next one begins", options_text(options, OPT_EVERY), options_text(options, OPT_DURATION));
	if (options_given(options, OPT_ON))
		return fail(err, ERR_USAGE, "--every measures at its own times: --on does not go with it");
	if (options_typed(options, OPT_TRACE) || options_typed(options, OPT_OUTPUT))
		return fail(err, ERR_USAGE, "--every keeps traces and reports in --keep: neither --trace nor --output goes with it");
	return 0;
}

/* Where this round's files go: NAME in --keep. */
static int round_name(struct options *options, const char *name, struct error *err)
{
	char folder[OUTPUT_PATH - 32], reports[OUTPUT_PATH];

	if (snprintf(folder, sizeof folder, "%s/%s", options_text(options, OPT_KEEP), name) >= (int)sizeof folder)
		return fail(err, ERR_OPTION_VALUE, "the path of --keep is too long");
	snprintf(reports, sizeof reports, "%s/", folder);
	return options_set(options, OPT_TRACE, folder, ORIGIN_COMMAND_LINE, "--keep", err) < 0 ? -1 : options_set(options, OPT_OUTPUT, reports, ORIGIN_COMMAND_LINE, "--keep", err);
}

/* --keep may have gone meanwhile, or its disk may be full: the next round is another try. */
static int round_open(struct options *options, struct error *err)
{
	char stamp[ROUND_NAME_LENGTH + 1];
	time_t now = clock_wall_seconds();
	struct tm utc;

	gmtime_r(&now, &utc);
	strftime(stamp, sizeof stamp, ROUND_FORMAT, &utc);
	if (round_name(options, stamp, err) < 0 || keep_make(options, err) < 0)
		return -1;
	if (mkdir(options_text(options, OPT_TRACE), 0700) < 0 && errno != EEXIST)
		return fail(err, ERR_OUTPUT, "the folder %s cannot be made: %s", options_text(options, OPT_TRACE), strerror(errno));
	return 0;
}

/* An empty folder stays of a round in which nothing could be measured. */
static void round_close(const struct options *options)
{
	rmdir(options_text(options, OPT_TRACE));
}

/* At most a second, so that a wall clock that is set meanwhile is noticed: sleeping until a moment of it would last as long as it was set back. */
static void sleep_for(uint64_t ns)
{
	const struct timespec part = { ns >= SECOND_NS, ns >= SECOND_NS ? 0 : (long)ns };

	nanosleep(&part, NULL); /* a signal ends it early */
}

/* Services take profiles: the rounds have them beside what was asked for. */
static int formats_add(const struct ship *ship, struct options *options, struct error *err)
{
	const char *format;

	if (ship && !options_given(options, OPT_FORMAT) && options_set(options, OPT_FORMAT, "md", ORIGIN_COMMAND_LINE, "--ship", err) < 0)
		return -1;
	for (size_t i = 0; ship && (format = ship_format(ship, i)); i++)
		if (options_set(options, OPT_FORMAT, format, ORIGIN_COMMAND_LINE, "--ship", err) < 0)
			return -1;
	return 0;
}

static void shipped_tell(struct ship *ship, enum log_level level)
{
	struct ship_counts counts = ship_counts(ship);

	if (*counts.why)
		log_print(level, LOG_WARN, "%s; %zu profiles wait to be sent", counts.why, counts.waiting);
	if (counts.refused)
		log_print(level, LOG_WARN, "%zu profiles were thrown away", counts.refused);
	if (counts.sent)
		log_print(level, LOG_DEBUG, "%zu profiles were sent", counts.sent);
}

static void round_ship(struct ship *ship, const struct options *options, uint64_t from_unix_ns, enum log_level level)
{
	struct error err = { 0 };
	int gone;

	if (!ship)
		return;
	gone = ship_queue(ship, options_text(options, OPT_TRACE), from_unix_ns, clock_realtime_ns(), &err);
	if (gone < 0)
		log_print(level, LOG_WARN, "%s; the round is not sent", err.text);
	else if (gone > 0)
		log_print(level, LOG_WARN, "the %d oldest profiles that waited to be sent were thrown away: --ship-mb", gone);
}

static void round_send(struct ship *ship, uint64_t patience_ns, const volatile int *stop, enum log_level level)
{
	if (!ship || ship_due_ns(ship) > clock_monotonic_ns())
		return;
	ship_send(ship, clock_monotonic_ns() + patience_ns, stop);
	shipped_tell(ship, level);
}

/* Until the next round, which is never further away than one was when this one began; meanwhile what is due is sent. */
static void round_wait(struct ship *ship, uint64_t next_unix_ns, uint64_t every_ns, const volatile int *stop, enum log_level level)
{
	uint64_t unix_ns;

	round_send(ship, SHIP_LEAST_NS, stop, level);
	while (!*stop && (unix_ns = clock_realtime_ns()) < next_unix_ns && next_unix_ns - unix_ns <= every_ns) {
		uint64_t left_ns = next_unix_ns - unix_ns, now_ns = clock_monotonic_ns(), due_ns = ship ? ship_due_ns(ship) : UINT64_MAX;

		if (left_ns <= SHIP_MARGIN_NS || due_ns >= now_ns + left_ns)
			sleep_for(left_ns);
		else if (due_ns > now_ns)
			sleep_for(due_ns - now_ns);
		else
			round_send(ship, left_ns - SHIP_MARGIN_NS, stop, level);
	}
}

static int round_run(struct invocation *invocation, struct ship *ship, uint64_t from_unix_ns, struct error *err)
{
	struct options *options = &invocation->options;
	int result;

	if (round_open(options, err) < 0)
		return -1;
	result = fleet_attach(invocation, err);
	if (result == 0 || error_status(err->code) != 2)
		round_ship(ship, options, from_unix_ns, (enum log_level)options_choice(options, OPT_LOG_LEVEL));
	round_close(options);
	return result;
}

/* What fails at first is wrong in the words; later it may pass, and ends nothing that is meant to go on for weeks. */
static int rounds_run(struct invocation *invocation, struct ship *ship, struct error *err)
{
	const struct options *options = &invocation->options;
	const enum log_level level = (enum log_level)options_choice(options, OPT_LOG_LEVEL);
	const uint64_t every_ns = options_duration_ns(options, OPT_EVERY), most_bytes = options_count(options, OPT_KEEP_MB) << 20;
	const volatile int *stop = signals_stop();

	for (bool first = true; !*stop; first = false) {
		uint64_t begin_ns = clock_realtime_ns(), next_ns = (begin_ns / every_ns + 1) * every_ns;
		struct error failure = { 0 };

		if (round_run(invocation, ship, begin_ns, &failure) < 0) {
			if (first && error_status(failure.code) == 2) {
				*err = failure;
				return -1;
			}
			log_print(level, LOG_WARN, "%s; the next round begins within %s", failure.text, options_text(options, OPT_EVERY));
		}
		/* After a failing round, too: it may have kept much (a gate), or failed for want of room. */
		if (rounds_prune(options_text(options, OPT_KEEP), most_bytes, &failure) < 0)
			log_print(level, LOG_WARN, "%s; nothing of what is kept was removed", failure.text);
		if (clock_realtime_ns() >= next_ns) /* it took too long (a machine that is busy): the next one begins with those of other machines, too */
			next_ns = (clock_realtime_ns() / every_ns + 1) * every_ns;
		round_wait(ship, next_ns, every_ns, stop, level);
	}
	return 0;
}

static int rounds_dry_run(struct invocation *invocation, struct error *err)
{
	struct options *options = &invocation->options;

	if (round_name(options, ROUND_NAME "UTC", err) < 0 || fleet_attach(invocation, err) < 0)
		return -1;
	printf("again at each multiple of %s of the wall clock, for %s, until Ctrl-C; %s keeps %s MB\n", options_text(options, OPT_EVERY), options_text(options, OPT_DURATION), options_text(options, OPT_KEEP),
	       options_text(options, OPT_KEEP_MB));
	return 0;
}

int rounds_attach(struct invocation *invocation, struct error *err)
{
	struct options *options = &invocation->options;
	struct ship *ship = NULL;
	int result;

	if (words_check(options, err) < 0)
		return -1;
	if (options_flag(options, OPT_DRY_RUN))
		return rounds_dry_run(invocation, err);
	if (keep_make(options, err) < 0 || ship_open(options, options_text(options, OPT_KEEP), &ship, err) < 0)
		return -1;
	signals_catch();
	result = formats_add(ship, options, err) < 0 ? -1 : rounds_run(invocation, ship, err);
	ship_close(ship);
	return result;
}
