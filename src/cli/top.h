/* What `top` shows of a turn, as lines of a page or one line of JSON. Drawing them is top_screen.c's. */
#ifndef INFERSCOPE_CLI_TOP_H
#define INFERSCOPE_CLI_TOP_H

#include "base/text.h"
#include "session/live.h"

enum top_sort { TOP_SELF, TOP_TOTAL, TOP_GIL, TOP_LAUNCH, TOP_WAIT, TOP_TIME, TOP_SORTS };

struct top_view {
	pid_t pid;
	const char *command;
	enum top_sort sort;
	bool threads;        /* the table of threads, else that of functions */
	bool waits;          /* what is waited in counts, too */
	bool native, paused;
	bool help;
	bool unicode;
	char filter[64];     /* only functions (or threads) whose name or file holds it; "" = all */
	size_t first;        /* row of the table that stands on top */
};

enum top_style { TOP_PLAIN, TOP_TITLE, TOP_HEAD };

struct top_page {
	struct text text;    /* of all lines, each ends with NUL */
	struct { size_t at; enum top_style style; } lines[512];
	size_t count;
	size_t rows;         /* of the table, shown or not */
};

/* Fills PAGE (initialized, and cleared here) with at most HEIGHT lines of WIDTH columns. TURN NULL: nothing was looked at yet. False: no memory; it is empty. */
bool top_page(struct top_page *page, const struct top_view *view, const struct live_turn *turn, size_t width, size_t height);
/* All of a turn in one line, at most ROWS functions (0 = 50). */
void top_json(struct text *out, const struct top_view *view, const struct live_turn *turn, size_t rows);

/* The functions to show, in order. The caller's to free; NULL when there are none or no memory. */
const struct tally_function **top_functions(const struct top_view *view, const struct live_turn *turn, size_t *count);
/* Time of a function in this turn, ns, as the view counts it. */
uint64_t top_self_ns(const struct top_view *view, const struct tally_time *time);
uint64_t top_total_ns(const struct top_view *view, const struct tally_time *time);
/* GPU columns make sense: native frames are looked at and hold a call of CUDA's. */
bool top_knows_gpu(const struct top_view *view, const struct live_turn *turn);

#endif
