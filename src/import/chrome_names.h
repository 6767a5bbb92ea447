/* The functions that names in Chrome traces mean, each taken apart once: the same name comes thousands of times. For chrome.c alone. */
#ifndef INFERSCOPE_IMPORT_CHROME_NAMES_H
#define INFERSCOPE_IMPORT_CHROME_NAMES_H

#include "import/gather.h"

struct chrome_names;
/* NULL when out of memory. */
struct chrome_names *chrome_names_new(struct gather *gather);
void chrome_names_free(struct chrome_names *names);
/* For gather_call(). NAME is taken apart in its place. PYTHON: what it is where the name does not tell. */
uint32_t chrome_function(struct chrome_names *names, uint32_t thread, char *name, const char *category, bool python);

#endif
