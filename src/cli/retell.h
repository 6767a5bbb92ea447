/* Our own command line, for the trace. */
#ifndef INFERSCOPE_CLI_RETELL_H
#define INFERSCOPE_CLI_RETELL_H

#include <stdbool.h>

/* WORDS (NULL at the end) behind "inferscope", as a shell would need them to do the same again; unless WHOLE, without what looks like secrets. The caller's to
 * free; NULL when out of memory. */
char *command_line_retell(char *const *words, bool whole);

#endif
