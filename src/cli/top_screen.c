/* ncurses, for `top` alone. Only bold and reverse are used, so that NO_COLOR has nothing to take away. */
#include "cli/top_screen.h"

#include <curses.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct screen {
	SCREEN *curses;
	FILE *input; /* the terminal, where stdin is none; else NULL */
};

struct screen *screen_open(void)
{
	const char *term = getenv("TERM");
	struct screen *screen;

	if (!isatty(STDOUT_FILENO) || !term || !*term || strcmp(term, "dumb") == 0)
		return NULL;
	screen = calloc(1, sizeof *screen);
	if (!screen)
		return NULL;
	if (!isatty(STDIN_FILENO))
		screen->input = fopen("/dev/tty", "re");
	if (isatty(STDIN_FILENO) || screen->input)
		screen->curses = newterm(NULL, stdout, screen->input ? screen->input : stdin);
	if (!screen->curses || !tigetstr("cup") || tigetstr("cup") == (char *)-1) {
		screen_close(screen);
		return NULL;
	}
	set_escdelay(50);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	curs_set(0);
	return screen;
}

void screen_close(struct screen *screen)
{
	if (!screen)
		return;
	if (screen->curses) {
		endwin();
		delscreen(screen->curses);
	}
	if (screen->input)
		fclose(screen->input);
	free(screen);
}

void screen_size(const struct screen *screen, size_t *width, size_t *height)
{
	*width = COLS > 0 ? (size_t)COLS : 1;
	*height = LINES > 0 ? (size_t)LINES : 1;
}

void screen_draw(struct screen *screen, const struct top_page *page, const char *prompt)
{
	static const attr_t attributes[] = { [TOP_PLAIN] = A_NORMAL, [TOP_TITLE] = A_BOLD, [TOP_HEAD] = A_REVERSE };

	erase();
	for (size_t i = 0; i < page->count && i < (size_t)LINES; i++) {
		attrset((int)attributes[page->lines[i].style]);
		mvaddstr((int)i, 0, page->text.data + page->lines[i].at);
	}
	attrset(A_NORMAL);
	if (prompt) {
		move(LINES - 1, 0);
		clrtoeol();
		mvaddnstr(LINES - 1, 0, prompt, COLS - 1);
	}
	curs_set(prompt ? 1 : 0);
	refresh();
}

int screen_key(struct screen *screen, int milliseconds)
{
	static const struct { int curses, ours; } keys[] = {
		{ ERR, SCREEN_NONE }, { KEY_UP, SCREEN_UP }, { KEY_DOWN, SCREEN_DOWN }, { KEY_PPAGE, SCREEN_PAGE_UP }, { KEY_NPAGE, SCREEN_PAGE_DOWN }, { KEY_HOME, SCREEN_HOME }, { KEY_END, SCREEN_END },
		{ KEY_BACKSPACE, SCREEN_ERASE }, { 0x7f, SCREEN_ERASE }, { '\b', SCREEN_ERASE }, { KEY_ENTER, SCREEN_ENTER }, { '\r', SCREEN_ENTER }, { '\n', SCREEN_ENTER },
		{ 0x1b, SCREEN_ESCAPE }, { KEY_RESIZE, SCREEN_RESIZED },
	};
	int key;

	timeout(milliseconds);
	key = getch();
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i].curses == key)
			return keys[i].ours;
	return key < 0x100 ? key : SCREEN_NONE;
}

void screen_suspend(struct screen *screen)
{
	struct sigaction standard = { .sa_handler = SIG_DFL }, before;
	sigset_t set;

	endwin();
	sigaction(SIGTSTP, &standard, &before);
	raise(SIGTSTP);
	/* cppcheck-suppress unreachableCode ; raise returns when SIGCONT has come */
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL); /* it may have come from a handler that blocks it */
	sigaction(SIGTSTP, &before, NULL);
	screen_repaint(screen);
}

void screen_repaint(struct screen *screen)
{
	clearok(curscr, TRUE);
	refresh();
}
