/* C++ and Rust names by libiberty. */
#include "unwind/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

static const char cut_mark[] = "...";

struct demangling {
	char *out;
	size_t length;
	jmp_buf full;
};

/* A few hundred bytes can stand for gigabytes of text (substitutions of substitutions), and the only way to stop libiberty is to leave it: its
 * callback forms keep everything on the stack, so that nothing leaks. */
static void add(const char *piece, size_t length, void *context)
{
	struct demangling *d = context;
	size_t room = DEMANGLED_MAX - sizeof cut_mark - d->length;

	if (!length) /* PIECE may be NULL then: an empty identifier of Rust's */
		return;
	if (length > room) {
		memcpy(d->out + d->length, piece, room);
		memcpy(d->out + d->length + room, cut_mark, sizeof cut_mark);
		d->length += room + sizeof cut_mark - 1;
		longjmp(d->full, 1);
	}
	memcpy(d->out + d->length, piece, length);
	d->length += length;
}

static bool by_library(const char *name, struct demangling *d)
{
	if (setjmp(d->full))
		return true;
	/* Rust first: its older names are valid C++ names with a hash at the end. */
	if (rust_demangle_callback(name, DMGL_NO_OPTS, add, d))
		return true;
	d->length = 0;
	return name[1] == 'Z' && cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI, add, d);
}

size_t demangle(const char *name, char out[DEMANGLED_MAX])
{
	struct demangling d = { .out = out };
	size_t length = strnlen(name, DEMANGLED_MAX);

	if (length < DEMANGLED_MAX && name[0] == '_' && (name[1] == 'Z' || name[1] == 'R') && by_library(name, &d) && d.length > 0) {
		out[d.length] = '\0';
		return d.length;
	}
	if (length < DEMANGLED_MAX) {
		memcpy(out, name, length + 1);
		return length;
	}
	memcpy(out, name, DEMANGLED_MAX - sizeof cut_mark);
	memcpy(out + DEMANGLED_MAX - sizeof cut_mark, cut_mark, sizeof cut_mark);
	return DEMANGLED_MAX - 1;
}
