/* Settings that are not on the command line: environment and .inferscope.yaml. */
#ifndef INFERSCOPE_CLI_SETTINGS_H
#define INFERSCOPE_CLI_SETTINGS_H

#include "cli/options.h"

/* Every INFERSCOPE_* variable that is a setting. LOOKUP is getenv, or a test's. */
int settings_environment(struct options *options, const char *(*lookup)(const char *name), struct error *err);
/* YAML of PATH: one mapping of settings; lists are sequences. A file that is not there is no failure (*found = false). A file
 * that others could have written is refused: settings name output files. */
int settings_file(struct options *options, const char *path, bool *found, struct error *err);
/* The same from text, for tests. */
int settings_text(struct options *options, const char *text, size_t length, const char *name, struct error *err);
/* .inferscope.yaml of the current folder, else of HOME. */
int settings_find(struct options *options, const char *home, struct error *err);
/* Forgets what is no setting for COMMAND, though it is one for others. */
int settings_fit(struct options *options, enum command_bit command, struct error *err);

#endif
