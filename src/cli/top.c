/* top: turns of a live look, on a terminal, as text, or as lines of JSON. */
#include "cli/top.h"

#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/process.h"
#include "cli/signals.h"
#include "cli/top_screen.h"

#define REFRESH_LEAST_NS 100000000ull
enum { KEY_WAIT_MS = 100, PLAIN_ROWS = 20, HEAD_LINES = 5 };

struct top {
	struct live *live;
	const struct live_turn *turn; /* NULL = none yet */
	struct top_view view;
	struct top_page page;
	struct screen *screen;
	const volatile int *stop;
	uint64_t refresh_ns, end_ns, due_ns;
	size_t rows;
	bool once, json, quit, typing;
};

/* ---- turns ---- */

static bool over(const struct top *top)
{
	return top->quit || *top->stop || (top->end_ns && clock_monotonic_ns() >= top->end_ns);
}

/* 0; 1: the process has ended, or is another program now, which ends us too; -1. */
static int turn_take(struct top *top, struct error *err)
{
	const struct live_turn *turn;

	if (live_turn(top->live, &turn, err) == 0) {
		top->turn = turn;
		top->due_ns = clock_monotonic_ns() + top->refresh_ns;
		return 0;
	}
	return err->code == ERR_EXITED && top->turn ? 1 : -1;
}

static void sleep_until(const struct top *top, uint64_t due_ns)
{
	for (uint64_t now_ns = clock_monotonic_ns(); now_ns < due_ns && !over(top); now_ns = clock_monotonic_ns()) {
		uint64_t left_ns = due_ns - now_ns < KEY_WAIT_MS * 1000000ull ? due_ns - now_ns : KEY_WAIT_MS * 1000000ull;

		nanosleep(&(struct timespec){ 0, (long)left_ns }, NULL);
	}
}

/* ---- without a screen ---- */

static size_t plain_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static int page_failed(struct error *err)
{
	return fail(err, ERR_MEMORY, "telling what the process does");
}

static int put_failed(struct error *err)
{
	return errno == EPIPE ? 1 : fail(err, ERR_OUTPUT, "cannot write stdout: %s", strerror(errno));
}

/* 0; 1: nobody reads it any more; -1 with ERR. */
static int plain_print(struct top *top, struct error *err)
{
	bool both = top->once && !top->json;

	if (top->json) {
		text_clear(&top->page.text);
		top_json(&top->page.text, &top->view, top->turn, top->rows);
		if (top->page.text.failed)
			return page_failed(err);
		return fwrite(top->page.text.data, 1, top->page.text.length, stdout) == top->page.text.length && fflush(stdout) == 0 ? 0 : put_failed(err);
	}
	for (int table = 0; table < (both ? 2 : 1); table++) {
		top->view.threads = table;
		if (!top_page(&top->page, &top->view, top->turn, plain_width(), (top->rows ? top->rows : PLAIN_ROWS) + HEAD_LINES))
			return page_failed(err);
		for (size_t i = table ? HEAD_LINES - 1 : 0; i < top->page.count; i++)
			if (i != HEAD_LINES - 2) /* the keys */
				printf("%s%s\n", i == HEAD_LINES - 1 ? "\n" : "", top->page.text.data + top->page.lines[i].at);
	}
	if (!top->once)
		putchar('\n');
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : put_failed(err);
}

static int plain_run(struct top *top, struct error *err)
{
	/* Native frames need the tables of all modules first, which takes long on a busy machine: the one turn is the first whole one with samples. */
	enum { TURNS_UNTIL_SAMPLES = 10 };
	bool whole = !top->view.native, wait;
	int result = 0, turns = 0, printed;

	do {
		sleep_until(top, clock_monotonic_ns() + top->refresh_ns);
		if (*top->stop && top->turn)
			break;
		result = turn_take(top, err);
		wait = result == 0 && top->once && !whole && ++turns < TURNS_UNTIL_SAMPLES && !over(top);
		whole |= result == 0 && top->turn->samples;
		printed = result == 0 && !wait ? plain_print(top, err) : 0;
		if (printed)
			return printed > 0 ? 0 : -1;
	} while (result == 0 && (!top->once || wait) && !over(top));
	return result;
}

/* ---- keys ---- */

static void sort_step(struct top *top, int step)
{
	do
		top->view.sort = (enum top_sort)((top->view.sort + TOP_SORTS + step) % TOP_SORTS);
	while ((top->view.sort == TOP_LAUNCH || top->view.sort == TOP_WAIT) && !(top->turn && top_knows_gpu(&top->view, top->turn)));
}

static void type_key(struct top *top, int key)
{
	char *filter = top->view.filter;
	size_t length = strlen(filter);

	top->view.first = 0;
	if (key == SCREEN_ENTER || key == SCREEN_ESCAPE) {
		top->typing = false;
		if (key == SCREEN_ESCAPE)
			*filter = '\0';
	} else if (key == SCREEN_ERASE) {
		while (length && ((unsigned char)filter[length - 1] & 0xc0) == 0x80)
			length--;
		filter[length ? length - 1 : 0] = '\0';
	} else if (key >= ' ' && key < 0x100 && length + 1 < sizeof top->view.filter) {
		filter[length] = (char)key;
		filter[length + 1] = '\0';
	}
}

static void move_rows(struct top *top, int key)
{
	size_t width, height, page, last;

	screen_size(top->screen, &width, &height);
	page = height > HEAD_LINES + 1 ? height - HEAD_LINES : 1;
	last = top->page.rows > page ? top->page.rows - page : 0;
	if (key == SCREEN_UP)
		top->view.first -= top->view.first > 0;
	else if (key == SCREEN_DOWN)
		top->view.first++;
	else if (key == SCREEN_PAGE_UP)
		top->view.first = top->view.first > page ? top->view.first - page : 0;
	else if (key == SCREEN_PAGE_DOWN)
		top->view.first += page;
	else
		top->view.first = key == SCREEN_HOME ? 0 : last;
	if (top->view.first > last)
		top->view.first = last;
}

static void pause_switch(struct top *top)
{
	top->view.paused = !top->view.paused;
	live_pause(top->live, top->view.paused);
	top->due_ns = clock_monotonic_ns() + top->refresh_ns;
}

static int native_switch(struct top *top, struct error *err)
{
	top->view.native = !top->view.native;
	if (top->view.sort == TOP_LAUNCH || top->view.sort == TOP_WAIT)
		top->view.sort = TOP_SELF;
	return live_native(top->live, top->view.native, err);
}

static int command_key(struct top *top, int key, struct error *err)
{
	if (top->view.help && key != 'q') {
		top->view.help = false;
		return 0;
	}
	switch (key) {
	case 'q':
	case 'Q':
		top->quit = true;
		break;
	case '?':
	case 'h':
		top->view.help = true;
		break;
	case 'p':
	case ' ':
		pause_switch(top);
		break;
	case 's':
		sort_step(top, 1);
		break;
	case 'S':
		sort_step(top, -1);
		break;
	case 't':
		top->view.threads = !top->view.threads;
		top->view.first = 0;
		break;
	case 'i':
		top->view.waits = !top->view.waits;
		break;
	case 'n':
		return native_switch(top, err);
	case '/':
		top->typing = true;
		break;
	default:
		if (key >= SCREEN_UP && key <= SCREEN_END)
			move_rows(top, key);
	}
	return 0;
}

/* ---- with a screen ---- */

static int draw(struct top *top, struct error *err)
{
	size_t width, height;
	char prompt[80];

	screen_size(top->screen, &width, &height);
	if (!top_page(&top->page, &top->view, top->turn, width, height))
		return page_failed(err);
	if (top->view.first >= top->page.rows)
		top->view.first = 0;
	snprintf(prompt, sizeof prompt, "/%s", top->view.filter);
	screen_draw(top->screen, &top->page, top->typing ? prompt : NULL);
	return 0;
}

/* Nothing of the target is looked at, and nothing of it held, while this process stands still. */
static void suspend(struct top *top)
{
	live_pause(top->live, true);
	screen_suspend(top->screen);
	signals_continued();
	live_pause(top->live, top->view.paused);
	top->due_ns = clock_monotonic_ns() + top->refresh_ns;
}

static int screen_run(struct top *top, struct error *err)
{
	int result = draw(top, err);

	top->due_ns = clock_monotonic_ns() + top->refresh_ns;
	while (result == 0 && !over(top)) {
		int key = screen_key(top->screen, KEY_WAIT_MS);

		if (signals_suspended())
			suspend(top);
		else if (signals_continued())
			screen_repaint(top->screen);
		if (key != SCREEN_NONE && key != SCREEN_RESIZED && top->typing)
			type_key(top, key);
		else if (key != SCREEN_NONE && key != SCREEN_RESIZED)
			result = command_key(top, key, err);
		if (result == 0 && clock_monotonic_ns() >= top->due_ns && !top->view.paused)
			result = turn_take(top, err);
		else if (key == SCREEN_NONE)
			continue;
		if (result == 0)
			result = draw(top, err);
	}
	return result;
}

/* ---- the command ---- */

static int top_begin(struct top *top, const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;

	top->once = options_flag(options, OPT_ONCE);
	top->json = options_flag(options, OPT_JSON);
	top->rows = options_count(options, OPT_TOP);
	top->refresh_ns = options_duration_ns(options, OPT_REFRESH);
	top->view.native = options_flag(options, OPT_NATIVE_FRAMES);
	top->view.unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	if (top->refresh_ns < REFRESH_LEAST_NS)
		return fail(err, ERR_OPTION_VALUE, "--refresh: less than 100ms is more often than samples tell anything");
	if (options_count(options, OPT_RATE) == 0)
		return fail(err, ERR_USAGE, "--rate 0 would show nothing");
	if (options->values[OPT_DURATION].origin == ORIGIN_COMMAND_LINE && options_duration_ns(options, OPT_DURATION))
		top->end_ns = clock_monotonic_ns() + options_duration_ns(options, OPT_DURATION);
	return 0;
}

int top_command(struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	const struct inject_options inject = { .unverified = options_flag(options, OPT_UNVERIFIED), .look_only = true };
	const struct live_options live = { .rate_hz = (uint32_t)options_count(options, OPT_RATE), .native = options_flag(options, OPT_NATIVE_FRAMES) };
	struct top top = { .stop = signals_stop() };
	struct target *target = NULL;
	int result = -1;

	text_init(&top.page.text);
	if (top_begin(&top, invocation, err) < 0 || process_named(invocation, true, &top.view.pid, err) < 0 || target_open(top.view.pid, &inject, &target, err) < 0)
		goto out;
	top.view.command = target_facts(target)->command;
	signals_catch();
	if (live_open(target, &live, &top.live, err) < 0)
		goto out;
	if (!top.once && !top.json)
		top.screen = screen_open();
	if (top.screen)
		signals_catch_suspend();
	else if (!isatty(STDOUT_FILENO) && !top.json)
		top.once = true;
	result = top.screen ? screen_run(&top, err) : plain_run(&top, err);
	screen_close(top.screen);
	if (result == 1) {
		log_print((enum log_level)options_choice(options, OPT_LOG_LEVEL), LOG_INFO, "%s", err->text);
		result = 0;
	}
out:
	live_close(top.live);
	target_close(target);
	text_done(&top.page.text);
	return result;
}
