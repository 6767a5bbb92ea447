#include "cli/ship.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "cli/http.h"
#include "cli/ship_body.h"

#define SECOND_NS 1000000000ull
#define PATIENCE_NS (10 * SECOND_NS)   /* for one POST */
#define WAIT_MOST_NS (300 * SECOND_NS)
#define QUEUE "ship"                   /* folder in --keep */
enum { TARGETS_MOST = 8, QUEUED_MOST = 1 << 16, NAME_BYTES = 96, PATH_BYTES = 4096, BODY_MOST = 64 << 20 };

struct target_queue {
	const struct ship_kind *kind;
	char url[1024];       /* as it was given, without the kind */
	uint64_t due_ns;      /* not before: CLOCK_MONOTONIC */
	unsigned failures;    /* in a row */
};

struct ship {
	char folder[PATH_BYTES], name[64], host[128];
	int fd;               /* of the folder */
	uint64_t most_bytes;
	struct http *http;
	struct target_queue targets[TARGETS_MOST];
	size_t target_count;
	uint32_t sequence;
	struct ship_counts counts;
};

/* FROM-UNTIL-PID-SEQUENCE.KIND: names sort by time. */
struct queued { char name[NAME_BYTES]; struct ship_profile profile; const struct ship_kind *kind; uint64_t bytes; };
struct queue { struct queued *items; size_t count, capacity; };

uint64_t ship_wait_ns(unsigned failures, uint64_t retry_after_s, uint64_t seed)
{
	uint64_t wait_ns = failures > 9 ? WAIT_MOST_NS : SECOND_NS << failures, asked_ns = retry_after_s > WAIT_MOST_NS / SECOND_NS ? WAIT_MOST_NS : retry_after_s * SECOND_NS;

	wait_ns = wait_ns > WAIT_MOST_NS ? WAIT_MOST_NS : wait_ns;
	wait_ns -= wait_ns / 4 * (seed % 1000) / 1000;
	return wait_ns > asked_ns ? wait_ns : asked_ns;
}

/* ---- words ---- */

/* pyroscope+http://host:4040 */
static int target_read(struct ship *ship, const char *text, struct error *err)
{
	const char *plus = strchr(text, '+');
	const struct ship_kind *kind = plus ? ship_kind_find(text, (size_t)(plus - text)) : NULL;
	struct target_queue *target = &ship->targets[ship->target_count];

	if (!kind || (strncmp(plus + 1, "http://", 7) != 0 && strncmp(plus + 1, "https://", 8) != 0)) {
		fail(err, ERR_OPTION_VALUE, "--ship: \"%.100s\" is no service", text);
		return fail_hint(err, "pyroscope+http://HOST:4040, otlp+http://HOST:4318, parca+http://HOST:7070; https, too");
	}
	for (size_t i = 0; i < ship->target_count; i++)
		if (ship->targets[i].kind == kind)
			return fail(err, ERR_OPTION_VALUE, "--ship: one service of each kind");
	if (ship->target_count == TARGETS_MOST || snprintf(target->url, sizeof target->url, "%s", plus + 1) >= (int)sizeof target->url)
		return fail(err, ERR_OPTION_VALUE, "--ship: the address is too long");
	for (size_t length = strlen(target->url); length && target->url[length - 1] == '/'; length--)
		target->url[length - 1] = '\0';
	target->kind = kind;
	ship->target_count++;
	return 0;
}

static int name_read(struct ship *ship, const char *name, struct error *err)
{
	for (const char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("._-/", *at))
			return fail(err, ERR_OPTION_VALUE, "--ship-as: \"%.60s\": a name is made of letters, digits and . _ - /", name);
	if (!*name || snprintf(ship->name, sizeof ship->name, "%s", name) >= (int)sizeof ship->name)
		return fail(err, ERR_OPTION_VALUE, "--ship-as: a name has 1 to %zu characters", sizeof ship->name - 1);
	return 0;
}

static int folder_open(struct ship *ship, const char *keep, struct error *err)
{
	if (snprintf(ship->folder, sizeof ship->folder, "%s/" QUEUE, keep) >= (int)sizeof ship->folder)
		return fail(err, ERR_OPTION_VALUE, "the path of --keep is too long");
	if (mkdir(ship->folder, 0700) < 0 && errno != EEXIST)
		return fail(err, ERR_OUTPUT, "the folder %s cannot be made: %s", ship->folder, strerror(errno));
	ship->fd = open(ship->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return ship->fd >= 0 ? 0 : fail(err, file_error_of(errno, ERR_OUTPUT), "%s: %s", ship->folder, strerror(errno));
}

int ship_open(const struct options *options, const char *keep, struct ship **out, struct error *err)
{
	char text[OPTION_PART_BYTES];
	struct ship *ship;

	*out = NULL;
	if (!options_given(options, OPT_SHIP))
		return 0;
	ship = calloc(1, sizeof *ship);
	if (!ship)
		return fail(err, ERR_MEMORY, "shipping profiles");
	ship->fd = -1;
	ship->most_bytes = options_count(options, OPT_SHIP_MB) << 20;
	if (gethostname(ship->host, sizeof ship->host - 1) < 0 || !*ship->host)
		snprintf(ship->host, sizeof ship->host, "localhost");
	for (char *at = ship->host; *at; at++)
		*at = isalnum((unsigned char)*at) || strchr(".-_", *at) ? *at : '-';
	for (size_t i = 0; options_list(options, OPT_SHIP, i, text); i++)
		if (target_read(ship, text, err) < 0)
			goto failed;
	if (name_read(ship, options_text(options, OPT_SHIP_AS), err) < 0 || folder_open(ship, keep, err) < 0 || http_open(&ship->http, err) < 0)
		goto failed;
	*out = ship;
	return 0;
failed:
	ship_close(ship);
	return -1;
}

void ship_close(struct ship *ship)
{
	if (!ship)
		return;
	http_close(ship->http);
	if (ship->fd >= 0)
		close(ship->fd);
	free(ship);
}

const char *ship_format(const struct ship *ship, size_t index)
{
	return index < ship->target_count ? ship->targets[index].kind->format : NULL;
}

/* ---- the queue ---- */

static bool queued_parse(const char *name, struct queued *out)
{
	unsigned long long from, until;
	unsigned sequence;
	int pid, length = 0;

	if (strlen(name) >= sizeof out->name || sscanf(name, "%20llu-%20llu-%9d-%9u.%n", &from, &until, &pid, &sequence, &length) != 4 || !length)
		return false;
	out->kind = ship_kind_find(name + length, strlen(name + length));
	snprintf(out->name, sizeof out->name, "%s", name);
	out->profile = (struct ship_profile){ .from_unix_ns = from, .until_unix_ns = until, .pid = pid };
	return out->kind != NULL;
}

static int compare_queued(const void *left, const void *right)
{
	return strcmp(((const struct queued *)left)->name, ((const struct queued *)right)->name);
}

/* Oldest first. What else lies there is left alone. */
static void queue_read(const struct ship *ship, struct queue *out)
{
	int fd = openat(ship->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	struct stat status;
	struct queued found = { .bytes = 0 };

	memset(out, 0, sizeof *out);
	while (stream && (entry = readdir(stream))) {
		struct queued *queued;

		if (!queued_parse(entry->d_name, &found) || fstatat(ship->fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(status.st_mode) || !(queued = list_add(out, QUEUED_MOST)))
			continue;
		*queued = found;
		queued->bytes = (uint64_t)status.st_blocks * 512;
	}
	if (stream)
		closedir(stream);
	else if (fd >= 0)
		close(fd);
	if (out->count)
		qsort(out->items, out->count, sizeof *out->items, compare_queued);
}

static int queue_bound(const struct ship *ship)
{
	struct queue queue;
	uint64_t bytes = 0;
	int gone = 0;

	queue_read(ship, &queue);
	for (size_t i = 0; i < queue.count; i++)
		bytes += queue.items[i].bytes;
	for (size_t i = 0; i < queue.count && bytes > ship->most_bytes; i++) {
		gone += unlinkat(ship->fd, queue.items[i].name, 0) == 0;
		bytes -= queue.items[i].bytes;
	}
	list_done(&queue);
	return gone;
}

/* process-4121.pb.gz, process-4121-2.otlp.pb.gz: whose, and for which kinds. */
static void file_queue(struct ship *ship, int folder, const char *file, uint64_t from_ns, uint64_t until_ns)
{
	int pid, length = 0;
	const char *dot = strchr(file, '.');
	char name[NAME_BYTES];

	if (sscanf(file, "process-%9d%n", &pid, &length) != 1 || !dot)
		return;
	for (size_t i = 0; i < ship->target_count; i++) {
		const struct ship_kind *kind = ship->targets[i].kind;

		if (strcmp(dot + 1, kind->extension) != 0)
			continue;
		snprintf(name, sizeof name, "%020llu-%020llu-%d-%u.%s", (unsigned long long)from_ns, (unsigned long long)until_ns, pid, ++ship->sequence % 1000000000, kind->name);
		if (linkat(folder, file, ship->fd, name, 0) < 0) {
			ship->counts.refused++;
			snprintf(ship->counts.why, sizeof ship->counts.why, "%.100s cannot be queued: %s", file, strerror(errno));
		}
	}
}

int ship_queue(struct ship *ship, const char *folder, uint64_t from_unix_ns, uint64_t until_unix_ns, struct error *err)
{
	DIR *stream = opendir(folder);
	const struct dirent *entry;

	if (!stream)
		return fail(err, file_error_of(errno, ERR_OUTPUT), "%s: %s", folder, strerror(errno));
	while ((entry = readdir(stream)))
		file_queue(ship, dirfd(stream), entry->d_name, from_unix_ns, until_unix_ns);
	closedir(stream);
	return queue_bound(ship);
}

/* ---- sending ---- */

static struct target_queue *target_of(struct ship *ship, const struct ship_kind *kind)
{
	for (size_t i = 0; i < ship->target_count; i++)
		if (ship->targets[i].kind == kind)
			return &ship->targets[i];
	return NULL;
}

static bool file_read(const struct ship *ship, const char *name, struct text *out)
{
	int fd = openat(ship->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char buffer[65536];
	ssize_t got = 0;

	text_init(out);
	while (fd >= 0 && (got = read(fd, buffer, sizeof buffer)) > 0 && out->length <= BODY_MOST)
		text_add(out, buffer, (size_t)got);
	if (fd >= 0)
		close(fd);
	return fd >= 0 && got == 0 && out->length && !out->failed;
}

static bool worth_again(long status)
{
	return status == 0 || status == 408 || status == 425 || status == 429 || status >= 500;
}

/* False: the target is to be left alone for now. */
static bool queued_send(struct ship *ship, struct target_queue *target, const struct queued *queued, uint64_t patience_ns, const volatile int *stop)
{
	struct ship_profile profile = queued->profile;
	struct ship_request request;
	struct http_answer answer;
	struct text file;

	profile.name = ship->name;
	profile.host = ship->host;
	if (!file_read(ship, queued->name, &file) || !ship_request_make(queued->kind, target->url, &profile, &file, &request)) {
		text_done(&file);
		snprintf(ship->counts.why, sizeof ship->counts.why, "%s/%.90s cannot be read", QUEUE, queued->name);
		ship->counts.refused++;
		return unlinkat(ship->fd, queued->name, 0) == 0;
	}
	http_post(ship->http, &(struct http_request){ request.url.data, request.headers, request.body.data, request.body.length, patience_ns, stop }, &answer);
	ship_request_done(&request);
	text_done(&file);
	if (*stop)
		return false;
	if (worth_again(answer.status)) {
		target->due_ns = clock_monotonic_ns() + ship_wait_ns(target->failures++, answer.retry_after_s, clock_realtime_ns());
		snprintf(ship->counts.why, sizeof ship->counts.why, "%s: %.200s", queued->kind->name, answer.why);
		return false;
	}
	target->failures = 0;
	unlinkat(ship->fd, queued->name, 0);
	if (answer.status >= 200 && answer.status < 300) {
		ship->counts.sent++;
		return true;
	}
	ship->counts.refused++;
	snprintf(ship->counts.why, sizeof ship->counts.why, "%s refused a profile: %.200s", queued->kind->name, answer.why);
	return true;
}

void ship_send(struct ship *ship, uint64_t until_ns, const volatile int *stop)
{
	struct queue queue;

	queue_read(ship, &queue);
	for (size_t i = 0; i < queue.count && !*stop; i++) {
		struct target_queue *target = target_of(ship, queue.items[i].kind);
		uint64_t now_ns = clock_monotonic_ns();

		if (!target || now_ns < target->due_ns)
			continue;
		if (now_ns >= until_ns)
			break;
		queued_send(ship, target, &queue.items[i], until_ns - now_ns < PATIENCE_NS ? until_ns - now_ns : PATIENCE_NS, stop);
	}
	list_done(&queue);
}

uint64_t ship_due_ns(const struct ship *ship)
{
	struct queue queue;
	uint64_t due_ns = UINT64_MAX;

	queue_read(ship, &queue);
	for (size_t i = 0; i < queue.count; i++)
		for (size_t j = 0; j < ship->target_count; j++)
			if (ship->targets[j].kind == queue.items[i].kind && ship->targets[j].due_ns < due_ns)
				due_ns = ship->targets[j].due_ns;
	list_done(&queue);
	return due_ns;
}

struct ship_counts ship_counts(struct ship *ship)
{
	struct ship_counts counts = ship->counts;
	struct queue queue;

	queue_read(ship, &queue);
	counts.waiting = queue.count;
	list_done(&queue);
	memset(&ship->counts, 0, sizeof ship->counts);
	return counts;
}
