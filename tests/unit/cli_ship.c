/* What waits to be sent is bounded and for its owner alone; what is sent is what services ask for. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/ship.h"
#include "cli/ship_body.h"
#include "tests/unit/folder.h"

static char folder[FOLDER_BYTES];
static struct options options;

static void arrange(void)
{
	folder_make(folder);
	folder_way(folder, "round/");
	cr_assert_eq(options_init(&options, NULL), 0);
}

static void clean(void)
{
	folder_remove(folder);
	options_done(&options);
}

static void set(enum option_id id, const char *text)
{
	cr_assert_eq(options_set(&options, id, text, ORIGIN_COMMAND_LINE, "a test", NULL), 0, "%s", text);
}

static struct ship *opened(void)
{
	struct ship *ship = NULL;
	struct error err = { 0 };

	if (ship_open(&options, folder, &ship, &err) < 0 && strstr(err.text, "libcurl"))
		cr_skip_test("libcurl is not installed here");
	cr_assert_not_null(ship, "%s", err.text);
	return ship;
}

static void put(const char *name, size_t bytes)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof path, "%s/round/%s", folder, name);
	file = fopen(path, "w");
	cr_assert_not_null(file);
	for (size_t i = 0; i < bytes; i++)
		fputc('x', file);
	fclose(file);
}

/* How many files wait; the first one's name. */
static size_t waiting(char *first)
{
	struct dirent **entries;
	char path[96];
	size_t files = 0;
	int count;

	snprintf(path, sizeof path, "%s/ship", folder);
	count = scandir(path, &entries, NULL, alphasort);
	cr_assert_geq(count, 0);
	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] != '.' && files++ == 0)
			strcpy(first, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return files;
}

Test(ship, queues_what_services_take_and_no_more_than_it_may, .init = arrange, .fini = clean)
{
	struct ship *ship;
	struct stat status;
	char first[256], path[96];

	set(OPT_SHIP, "pyroscope+http://127.0.0.1:1");
	set(OPT_SHIP_MB, "1");
	ship = opened();
	put("process-7.pb.gz", 300000);
	put("process-8-2.pb.gz", 300000);
	put("process-7.otlp.pb.gz", 300000);
	put("process-7.iscope", 300000);
	put("report.md", 1000);
	snprintf(path, sizeof path, "%s/round", folder);
	cr_assert_eq(ship_queue(ship, path, 1000, 2000, NULL), 0);
	cr_assert_eq(waiting(first), 2, "one for each process");
	cr_expect_eq(ship_queue(ship, path, 3000, 4000, NULL), 1, "the oldest made room");
	cr_expect_eq(waiting(first), 3);
	cr_expect_eq(ship_queue(ship, path, 5000, 6000, NULL), 2);
	cr_expect_eq(strncmp(first, "00000000000000001000-00000000000000002000-", 42), 0, "%s", first);
	snprintf(path, sizeof path, "%s/ship", folder);
	cr_assert_eq(stat(path, &status), 0);
	cr_expect_eq(status.st_mode & 0777, 0700);
	ship_close(ship);
}

Test(ship, leaves_a_service_alone_that_is_down_for_longer_and_longer, .init = arrange, .fini = clean)
{
	const volatile int stop = 0;
	struct ship_counts counts;
	struct ship *ship;
	char path[96];

	set(OPT_SHIP, "pyroscope+http://127.0.0.1:1,otlp+http://127.0.0.1:1");
	ship = opened();
	cr_expect_eq(ship_due_ns(ship), UINT64_MAX);
	put("process-7.pb.gz", 100);
	put("process-7.otlp.pb.gz", 100);
	snprintf(path, sizeof path, "%s/round", folder);
	cr_assert_eq(ship_queue(ship, path, 1000, 2000, NULL), 0);
	cr_assert_eq(ship_due_ns(ship), 0);
	ship_send(ship, UINT64_MAX, &stop);
	counts = ship_counts(ship);
	cr_expect_eq(counts.waiting, 2);
	cr_expect_eq(counts.sent + counts.refused, 0);
	cr_expect(*counts.why);
	cr_expect_gt(ship_due_ns(ship), 0, "it is not tried at once");
	ship_close(ship);
}

Test(ship, waits_longer_each_time_within_bounds)
{
	for (unsigned failures = 0; failures < 40; failures++) {
		uint64_t most = ship_wait_ns(failures, 0, 0), least = ship_wait_ns(failures, 0, 999);

		cr_assert_leq(least, most);
		cr_assert_geq(least, most / 4 * 3);
		cr_assert_leq(most, 300000000000ull);
		cr_assert(failures == 0 || most >= ship_wait_ns(failures - 1, 0, 0));
	}
	cr_expect_eq(ship_wait_ns(0, 30, 0), 30000000000ull, "a server's word is heeded");
	cr_expect_eq(ship_wait_ns(0, 1000000, 0), 300000000000ull, "but not for ever");
}

Test(ship, refuses_what_is_no_service, .init = arrange, .fini = clean)
{
	static const char *const wrong[] = { "http://host:4040", "pyroscope+ftp://host", "graphite+http://host", "pyroscope+", "+http://host", "pyroscope+http://a,pyroscope+http://b" };
	struct ship *ship;
	struct error err = { 0 };

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		options_done(&options);
		cr_assert_eq(options_init(&options, NULL), 0);
		set(OPT_SHIP, wrong[i]);
		cr_expect_eq(ship_open(&options, folder, &ship, &err), -1, "%s", wrong[i]);
		cr_expect_eq(err.code, ERR_OPTION_VALUE);
	}
	options_done(&options);
	cr_assert_eq(options_init(&options, NULL), 0);
	set(OPT_SHIP, "otlp+http://host");
	set(OPT_SHIP_AS, "a{b=c}");
	cr_expect_eq(ship_open(&options, folder, &ship, &err), -1, "a name that would say more than a name");
}

static void request_check(const char *kind, const char *url, const char *body)
{
	const struct ship_profile profile = { "shop/web", "node-1", 1700000000500000000ull, 1700000010000000001ull, 7 };
	struct ship_request request;
	struct text file;

	text_init(&file);
	text_add_string(&file, "abcd");
	cr_assert(ship_request_make(ship_kind_find(kind, strlen(kind)), "http://h:1/base", &profile, &file, &request));
	cr_expect_str_eq(request.url.data, url);
	cr_expect_str_eq(request.body.data, body);
	ship_request_done(&request);
	text_done(&file);
}

Test(ship, makes_the_request_of_each_service)
{
	request_check("pyroscope", "http://h:1/base/ingest?name=shop%2Fweb%7Bhost%3Dnode-1%2Cpid%3D7%7D&from=1700000000&until=1700000011&format=pprof&spyName=inferscope", "abcd");
	request_check("otlp", "http://h:1/base/v1development/profiles", "abcd");
	request_check("parca", "http://h:1/base/profiles/writeraw", "{\"normalized\":true,\"series\":[{\"labels\":{\"labels\":[{\"name\":\"__name__\",\"value\":\"inferscope\"},{\"name\":\"job\",\"value\":\"shop/web\"},"
	              "{\"name\":\"instance\",\"value\":\"node-1\"},{\"name\":\"pid\",\"value\":\"7\"}]},\"samples\":[{\"rawProfile\":\"YWJjZA==\"}]}]}");
}
