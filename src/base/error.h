/* What went wrong, in words for the user. The layer that knows the cause fills it; only cli prints it. */
#ifndef INFERSCOPE_BASE_ERROR_H
#define INFERSCOPE_BASE_ERROR_H

#include <stddef.h>

enum error_code {
	ERR_NONE = 0,
#define ERROR(id, name, status, hint) ERR_##id,
#include "base/error.def"
#undef ERROR
	ERR_COUNT
};

struct error {
	enum error_code code;
	int sys_errno;   /* errno when it was filled: of a call that failed, or older */
	char text[1024]; /* one line: who, what, why; lower case, no full stop */
	char hint[512];  /* what to do about it; empty = the general one of error.def */
	char place[128]; /* the line of the user's file that is meant, or empty */
	unsigned caret;  /* where in it, in characters from 0 */
};

/* Fills ERR (which may be NULL) and returns -1; ERR_MEMORY says ": out of memory" behind a FORMAT that tells no cause after a colon or in brackets. Formats after it has saved errno, which it leaves as found. */
int fail(struct error *err, enum error_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Replaces the hint of a filled ERR. Returns -1, so that `return fail_hint(err, …)` reads well. */
int fail_hint(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What outranks the failure that a filled ERR tells of: its code and hint become OVER's, its text both, the first one cut if need be. Returns -1. */
int fail_over(struct error *err, const struct error *over);

/* The line of a file that a filled ERR is about, and the character in it. Returns -1. */
int fail_place(struct error *err, const char *line, size_t length, unsigned caret);

/* Why a look at a process failed with ERROR: ERR_MEMORY and ERR_DESCRIPTORS for what we lack ourselves, ERR_INTERNAL for what /proc never says (EIO), else OTHERWISE. */
enum error_code error_of(int error, enum error_code otherwise);
/* The same for a file, where EIO is its disk's. */
enum error_code file_error_of(int error, enum error_code otherwise);

const char *error_name(enum error_code code);   /* "E_USAGE" */
int error_status(enum error_code code);         /* exit status */
const char *error_hint(const struct error *err); /* its own hint, else the general one */

#endif
