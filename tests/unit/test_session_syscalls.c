/* System calls: records of the two tracepoints, calls that looks see, what descriptors are. */
#include <criterion/criterion.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "session/blocked_calls.h"
#include "session/systrace.h"
#include "trace/writer.h"
#include "tests/unit/folder.h"

/* ---- records ---- */

enum { RING = 4096, ENTER = 443, LEAVE = 442 };

struct ring { unsigned char bytes[RING]; uint64_t head; };
struct seen { struct systrace_call calls[16]; size_t count; };

static void put(struct ring *ring, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		ring->bytes[ring->head++ % RING] = ((const unsigned char *)bytes)[i];
}

static void put_record(struct ring *ring, uint32_t type, const void *body, size_t size)
{
	struct perf_event_header header = { .type = type, .size = (uint16_t)(sizeof header + size) };

	put(ring, &header, sizeof header);
	put(ring, body, size);
}

static void put_sample(struct ring *ring, uint16_t type, uint64_t at_ns, int64_t number, uint64_t value)
{
	unsigned char body[8 + 8 + 4 + 68] = { 0 };
	uint32_t tids[2] = { 7, 9 }, raw = type == ENTER ? 68 : 28;

	memcpy(body, tids, 8);
	memcpy(body + 8, &at_ns, 8);
	memcpy(body + 16, &raw, 4);
	memcpy(body + 20, &type, 2);
	memcpy(body + 28, &number, 8);
	memcpy(body + 36, &value, 8);
	put_record(ring, PERF_RECORD_SAMPLE, body, 20 + raw);
}

static void take(void *context, const struct systrace_call *call)
{
	struct seen *seen = context;

	if (seen->count < 16)
		seen->calls[seen->count++] = *call;
}

static struct systrace_counts parse(const struct ring *ring, uint64_t tail, struct seen *seen)
{
	static const struct systrace_ids ids = { ENTER, LEAVE };
	struct systrace_open_call open = { 0 };
	struct systrace_counts counts = { 0 };

	*seen = (struct seen){ 0 };
	cr_expect_eq(systrace_parse(ring->bytes, RING, tail, ring->head, ids, &open, take, seen, &counts), ring->head);
	return counts;
}

Test(systrace, pairs_each_call_with_its_return)
{
	struct ring ring = { .head = RING - 50 }; /* the first record goes round the end */
	struct systrace_counts counts;
	struct seen seen;

	put_sample(&ring, LEAVE, 90, 1, 0); /* of a call that began before */
	put_sample(&ring, ENTER, 100, 0, 5);
	put_sample(&ring, LEAVE, 130, 0, 4096);
	put_sample(&ring, ENTER, 200, 202, 0x7f00);
	put_sample(&ring, LEAVE, 250, 202, (uint64_t)-11);
	counts = parse(&ring, RING - 50, &seen);
	cr_assert_eq(seen.count, 2);
	cr_expect_eq(counts.calls, 2);
	cr_expect_eq(counts.damaged, 0);
	cr_expect_eq(seen.calls[0].tid, 9);
	cr_expect_eq(seen.calls[0].start_ns, 100);
	cr_expect_eq(seen.calls[0].duration_ns, 30);
	cr_expect_eq(seen.calls[0].first, 5);
	cr_expect_eq(seen.calls[0].result, 4096);
	cr_expect_eq(seen.calls[1].number, 202);
	cr_expect_eq(seen.calls[1].result, -11);
}

Test(systrace, makes_no_call_of_what_was_lost)
{
	uint64_t lost[2] = { 1, 3 };
	struct ring ring = { 0 };
	struct systrace_counts counts;
	struct seen seen;

	put_sample(&ring, ENTER, 100, 0, 5);
	put_record(&ring, PERF_RECORD_LOST, lost, sizeof lost);
	put_sample(&ring, LEAVE, 900, 0, 1); /* of a later call */
	put_sample(&ring, ENTER, 1000, 0, 5);
	put_sample(&ring, LEAVE, 1100, 1, 1); /* of another number */
	counts = parse(&ring, 0, &seen);
	cr_expect_eq(seen.count, 0);
	cr_expect_eq(counts.lost, 3);
}

Test(systrace, survives_records_that_make_no_sense)
{
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE, .size = 4 };
	unsigned char body[40] = { 0 };
	struct ring ring = { 0 };
	struct seen seen;

	put_record(&ring, PERF_RECORD_SAMPLE, body, 16); /* too short */
	memset(body + 16, 0xff, 4);                      /* a raw part longer than the record */
	put_record(&ring, PERF_RECORD_SAMPLE, body, sizeof body);
	cr_expect_eq(parse(&ring, 0, &seen).damaged, 2);
	put(&ring, &header, sizeof header); /* shorter than its own head */
	cr_expect_eq(parse(&ring, 0, &seen).damaged, 3);
	cr_expect_eq(seen.count, 0);
}

Test(systrace, says_why_it_cannot_see)
{
	struct systrace *systrace = NULL;
	struct error err = { 0 };

	cr_assert_eq(systrace_open("/nonexistent", 0, &systrace, &err), -1);
	cr_expect_eq(err.code, ERR_PERMISSION);
	cr_expect_not_null(strstr(err.text, "/nonexistent"));
	cr_expect_null(systrace);
	systrace_close(systrace);
}

/* Tracefs in a mount namespace of this test's own, and what is opened with it; NULL where that is not permitted. */
static struct systrace *open_in(const char *tracefs, uint32_t max_overhead_ppm)
{
	struct systrace *systrace = NULL;
	struct error err;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("tracefs", tracefs, "tracefs", 0, NULL) < 0)
		return NULL;
	/* It may happen that switches take no longer: when something else kept them waiting without, too. */
	for (int tries = 0; tries < 10 && (!systrace || !systrace_totals(systrace).switch_ns); tries++) {
		systrace_close(systrace);
		if (systrace_open(tracefs, max_overhead_ppm, &systrace, &err) < 0)
			return NULL;
	}
	return systrace;
}

Test(systrace, charges_the_switches_that_it_slows_and_gives_way_to_the_budget)
{
	char tracefs[FOLDER_BYTES];
	struct systrace *systrace;
	uint64_t price_ns;

	folder_make(tracefs);
	systrace = open_in(tracefs, 50000);
	if (!systrace) {
		folder_remove(tracefs);
		cr_skip_test("tracepoints are not permitted here");
	}
	price_ns = systrace_totals(systrace).switch_ns;
	cr_expect_gt(price_ns, 0, "switches are said to cost nothing");
	systrace_read(systrace, 1000000000000, 1000, take, NULL);
	cr_expect_eq(systrace_totals(systrace).spent_ns, 1000 * price_ns);
	systrace_read(systrace, 1000000000000, 1500, take, NULL);
	cr_expect_eq(systrace_totals(systrace).spent_ns, 1500 * price_ns, "of all switches so far, each once");
	systrace_read(systrace, 1000, 10000000, take, NULL); /* a thousandth of five seconds may be spent at once */
	usleep(1000);
	cr_expect_lt(systrace_totals(systrace).covered_ns, systrace_totals(systrace).open_ns, "it goes on over budget");
	systrace_read(systrace, 1000, 20000000, take, NULL);
	cr_expect_eq(systrace_totals(systrace).spent_ns, 10000000 * price_ns, "no tracepoint was open meanwhile");
	systrace_close(systrace);
	cr_assert_eq(umount2(tracefs, MNT_DETACH), 0);
	folder_remove(tracefs);
}

/* ---- descriptors ---- */

static char folder[FOLDER_BYTES];

static void setup(void)
{
	folder_make(folder);
	folder_way(folder, "7/fd/");
}

static void teardown(void)
{
	folder_remove(folder);
}

static void link_put(int fd, const char *target)
{
	char path[128];

	snprintf(path, sizeof path, "%s/7/fd/%d", folder, fd);
	unlink(path);
	cr_assert_eq(symlink(target, path), 0);
}

Test(descriptors, are_what_their_links_say_until_they_are_closed, .init = setup, .fini = teardown)
{
	struct procfs procfs = { folder };
	struct descriptors descriptors;

	cr_assert(descriptors_open(&procfs, 7, &descriptors));
	link_put(3, "socket:[123]");
	link_put(4, "/var/log/app.log");
	link_put(5, "anon_inode:[eventpoll]");
	link_put(6, "/dev/nvidia0");
	cr_expect_str_eq(descriptors_kind(&descriptors, 3), "socket");
	cr_expect_str_eq(descriptors_kind(&descriptors, 4), "file");
	cr_expect_str_eq(descriptors_kind(&descriptors, 5), "epoll");
	cr_expect_str_eq(descriptors_kind(&descriptors, 6), "gpu");
	cr_expect_str_eq(descriptors_kind(&descriptors, 8), "");
	cr_expect_str_eq(descriptors_kind(&descriptors, UINT64_MAX), "");
	link_put(3, "pipe:[5]");
	descriptors_seen(&descriptors, 3, 3, 0); /* close(3) */
	cr_expect_str_eq(descriptors_kind(&descriptors, 3), "pipe");
	descriptors_seen(&descriptors, 257, 0, 9); /* openat() = 9, closed again before anybody looked */
	cr_expect_str_eq(descriptors_kind(&descriptors, 9), "file");
	descriptors_seen(&descriptors, 33, 5, 9); /* dup2(5, 9) */
	cr_expect_str_eq(descriptors_kind(&descriptors, 9), "epoll");
	descriptors_seen(&descriptors, 257, 0, -2); /* openat() failed */
	descriptors_done(&descriptors);
}

/* ---- calls that looks see ---- */

struct told { uint32_t tid; uint64_t ticks, duration_ns; char name[64]; };

static size_t told_read(const struct event_builder *events, struct told *out)
{
	struct event_cursor c = event_cursor(events->bytes, events->size);
	size_t count = 0, length;

	while (event_next(&c) && count < 8) {
		const char *name = event_str(&c, 3, &length);

		cr_expect_eq(c.event.flags, EVENT_FLAG_SAMPLED);
		out[count] = (struct told){ c.event.ref, c.event.ticks, event_u64(&c, 0), "" };
		snprintf(out[count++].name, sizeof out->name, "%.*s", (int)length, name);
	}
	return count;
}

static void see(struct blocked_calls *calls, struct event_builder *events, pid_t tid, int64_t number, bool again, uint64_t ticks)
{
	struct sight sight = { .tid = tid, .call = number, .argument = 3, .again = again, .weight_ns = 10, .state = number == 202 ? THREAD_GIL_WAIT : THREAD_IO_WAIT };

	blocked_calls_see(calls, &sight, ticks, events);
}

Test(blocked_calls, last_from_the_first_look_to_the_last_one_that_finds_them, .init = setup, .fini = teardown)
{
	struct procfs procfs = { folder };
	struct blocked_calls *calls = blocked_calls_open(&procfs, 7);
	struct event_builder events;
	struct told told[8];

	link_put(3, "socket:[123]");
	event_builder_init(&events);
	see(calls, &events, 7, 45, false, 100);
	see(calls, &events, 7, 45, true, 110);
	see(calls, &events, 8, 202, false, 111);
	see(calls, &events, 7, 45, true, 120);
	cr_expect_eq(told_read(&events, told), 0, "all still go on");
	see(calls, &events, 7, -1, false, 130); /* it runs */
	see(calls, &events, 7, 45, false, 140);
	see(calls, &events, 7, 45, false, 150); /* the same call from another stack */
	cr_assert_eq(told_read(&events, told), 2);
	cr_expect_eq(told[0].tid, 7);
	cr_expect_eq(told[0].ticks, 100);
	cr_expect_eq(told[0].duration_ns, 30);
	cr_expect_str_eq(told[0].name, "recvfrom(socket)");
	cr_expect_eq(told[1].ticks, 140);
	cr_expect_eq(told[1].duration_ns, 10);
	event_builder_clear(&events);
	blocked_calls_end(calls, &events);
	cr_assert_eq(told_read(&events, told), 2);
	cr_expect_str_eq(told[1].name, "futex(gil)");
	event_builder_done(&events);
	blocked_calls_close(calls);
}
