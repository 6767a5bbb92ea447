/* The terminal while `top` runs: a page on it, keys from it, and the terminal as it was before, whichever way it ends. */
#ifndef INFERSCOPE_CLI_TOP_SCREEN_H
#define INFERSCOPE_CLI_TOP_SCREEN_H

#include "cli/top.h"

struct screen;

enum screen_key { SCREEN_NONE = -1, SCREEN_UP = 0x1000, SCREEN_DOWN, SCREEN_PAGE_UP, SCREEN_PAGE_DOWN, SCREEN_HOME, SCREEN_END, SCREEN_ERASE, SCREEN_ENTER, SCREEN_ESCAPE, SCREEN_RESIZED };

/* NULL: this is no terminal that can be drawn on. */
struct screen *screen_open(void);
/* Restores the terminal. Accepts NULL. */
void screen_close(struct screen *screen);
void screen_size(const struct screen *screen, size_t *width, size_t *height);
/* PROMPT NULL, or the text that is being typed on the last line. */
void screen_draw(struct screen *screen, const struct top_page *page, const char *prompt);
/* Waits at most so long for a key: a byte as typed, or one of the above. */
int screen_key(struct screen *screen, int milliseconds);
/* Restores the terminal, stops this process as ^Z does, and takes the terminal again when it goes on. */
void screen_suspend(struct screen *screen);
/* Draws all anew with the next page. */
void screen_repaint(struct screen *screen);

#endif
