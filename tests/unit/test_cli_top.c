/* What top shows, at every width. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top.h"
#include "report/name.h"
#include "trace/writer.h"

static struct tally *tally;
static struct live_turn turn;
static struct live_thread threads[2];
static struct top_view view;
static struct top_page page;
static const char hostile[] = "evil\x1b[31m\nname\xe2\x80\xae";

static void begin(void)
{
	struct event_builder events;
	struct error err;

	cr_assert_eq(tally_new(&tally, &err), 0);
	event_builder_init(&events);
	event_add(&events, 0, EVENT_CODE, 1, 0, (uint64_t)0, (uint32_t)7, (uint32_t)0, "main", "main", "/srv/app/main.py");
	event_add(&events, 0, EVENT_CODE, 2, 0, (uint64_t)0, (uint32_t)9, (uint32_t)0, "hot", "Model.forward.<locals>.hot", "/srv/app/model.py");
	event_add(&events, 0, EVENT_CODE, 3, 0, (uint64_t)0, (uint32_t)9, (uint32_t)0, hostile, hostile, "/srv/\xff\xfe.py");
	event_add(&events, 0, EVENT_STACK, 1, 0, (uint32_t)0, (uint32_t)1, (uint32_t)0);
	event_add(&events, 0, EVENT_STACK, 2, 0, (uint32_t)1, (uint32_t)2, (uint32_t)0);
	event_add(&events, 0, EVENT_STACK, 3, 0, (uint32_t)1, (uint32_t)3, (uint32_t)0);
	event_add(&events, 0, EVENT_SAMPLE, 2, 0, (uint32_t)10, (uint32_t)THREAD_PYTHON, (uint64_t)600000000);
	event_add(&events, 0, EVENT_SAMPLE, 3, 0, (uint32_t)10, (uint32_t)THREAD_NATIVE, (uint64_t)100000000);
	event_add(&events, 0, EVENT_SAMPLE, 1, 0, (uint32_t)11, (uint32_t)THREAD_SLEEP, (uint64_t)1000000000);
	tally_add(tally, events.bytes, events.size);
	event_builder_done(&events);
	threads[0] = (struct live_thread){ .tid = 10, .name = "MainThread", .letter = 'R', .cpu_ns = 700000000, .samples = tally_thread_find(tally, 10) };
	threads[1] = (struct live_thread){ .tid = 11, .name = "\x1b]0;x", .letter = 'S', .samples = tally_thread_find(tally, 11) };
	turn = (struct live_turn){ .length_ns = 1000000000, .elapsed_ns = 61000000000, .cpu_ns = 700000000, .gil_ns = 600000000, .rate_hz = 100, .threads = threads, .thread_count = 2, .tally = tally, .gpu_why = "none" };
	view = (struct top_view){ .pid = 42, .command = "python3", .unicode = true };
	text_init(&page.text);
}

static void end(void)
{
	text_done(&page.text);
	tally_free(tally);
}

TestSuite(top, .init = begin, .fini = end);

static const char *line(size_t index)
{
	return page.text.data + page.lines[index].at;
}

static const char *line_with(const char *word)
{
	for (size_t i = 0; i < page.count; i++)
		if (strstr(line(i), word))
			return line(i);
	return NULL;
}

Test(top, shows_functions_by_their_share_of_the_turn)
{
	top_page(&page, &view, &turn, 100, 24);
	cr_assert_eq(page.lines[4].style, TOP_HEAD);
	cr_assert(strstr(line(5), "  60.0 ") && strstr(line(5), "hot (/srv/app/model.py:9)"), "%s", line(5));
	cr_assert(strstr(line_with("main (/srv"), "  70.0 "), "total of main: %s", line_with("main (/srv"));
	cr_assert(line_with("CPU 70 %  GIL 60 % held"));
	cr_assert(line_with("1:01"));
}

Test(top, counts_waits_when_asked)
{
	view.waits = true;
	top_page(&page, &view, &turn, 100, 24);
	cr_assert(strstr(line(5), " 100.0 ") && strstr(line(5), "main ("), "%s", line(5));
}

Test(top, filters_by_name_and_file)
{
	strcpy(view.filter, "MODEL.py");
	top_page(&page, &view, &turn, 100, 24);
	cr_assert_eq(page.rows, 1);
	cr_assert(line_with("hot ("));
	strcpy(view.filter, "no such");
	top_page(&page, &view, &turn, 100, 24);
	cr_assert(line_with("nothing has this name"));
}

Test(top, shows_threads_with_their_states)
{
	view.threads = true;
	top_page(&page, &view, &turn, 100, 24);
	cr_assert(strstr(line_with("MainThread"), "runs native code"), "%s", line_with("MainThread"));
	cr_assert(strstr(line_with("MainThread"), "  70.0   60.0    0.0"), "%s", line_with("MainThread"));
	cr_assert(strstr(line_with("sleeps"), "main"));
}

/* The width is kept, no byte of a name reaches the terminal as a command. */
Test(top, fits_every_terminal)
{
	static const size_t widths[] = { 1, 2, 7, 20, 39, 40, 52, 64, 70, 80, 132, 400 };

	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
		for (unsigned mode = 0; mode < 32; mode++) {
			view.threads = mode & 1;
			view.unicode = mode & 2;
			view.help = mode & 4;
			view.native = mode & 8;
			top_page(&page, &view, mode & 16 ? NULL : &turn, widths[i], 7);
			cr_assert_leq(page.count, 7);
			for (size_t j = 0; j < page.count; j++) {
				cr_assert_leq(name_columns(line(j), strlen(line(j))), widths[i], "%zu columns: %s", widths[i], line(j));
				for (const unsigned char *at = (const unsigned char *)line(j); *at; at++)
					cr_assert(*at >= 0x20 && (view.unicode || *at < 0x7f), "byte %02x", *at);
			}
		}
	}
}

Test(top, sorts_by_what_is_asked_for)
{
	size_t count;
	const struct tally_function **rows;

	view.sort = TOP_TOTAL;
	rows = top_functions(&view, &turn, &count);
	cr_assert_eq(count, 3);
	cr_assert_str_eq(rows[0]->name, "main");
	free(rows);
	view.sort = TOP_GIL;
	rows = top_functions(&view, &turn, &count);
	cr_assert_str_eq(rows[0]->name, "Model.forward.<locals>.hot");
	free(rows);
}

Test(top, writes_one_line_of_json)
{
	struct text out;

	text_init(&out);
	top_json(&out, &view, &turn, 2);
	cr_assert_not(out.failed);
	cr_assert_eq(strchr(out.data, '\n'), out.data + out.length - 1);
	cr_assert(strstr(out.data, "\"function\":\"Model.forward.<locals>.hot\",\"file\":\"/srv/app/model.py\",\"line\":9,\"self_pct\":60.00,\"total_pct\":60.00,\"gil_pct\":60.00,\"gpu_launch_pct\":null"), "%s", out.data);
	cr_assert(strstr(out.data, "\"tid\":11,\"name\":\"\\u001b]0;x\",\"state\":\"sleep\""), "%s", out.data);
	text_done(&out);
}
