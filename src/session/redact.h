/* Arguments of programs without the secrets that people put there. */
#ifndef INFERSCOPE_SESSION_REDACT_H
#define INFERSCOPE_SESSION_REDACT_H

#include <stddef.h>

struct text;

/*
 * ARGUMENTS, LENGTH bytes, each ended by a NUL, parted by blanks into OUT; with *** for values of options and variables whose names say that they are secret
 * (--api-key X, --token=X, HF_TOKEN=X), and for user and password in URLs. A guess by names: what hides better must not stand on a command line.
 */
void redact_arguments(const char *arguments, size_t length, struct text *out);
/* The same, but each one ended by a NUL, as it was. */
void redact_words(const char *arguments, size_t length, struct text *out);

#endif
