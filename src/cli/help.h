/* Text made from the tables: --help, the man page, completions, `config show`. */
#ifndef INFERSCOPE_CLI_HELP_H
#define INFERSCOPE_CLI_HELP_H

#include "base/text.h"
#include "cli/command.h"

void help_overview(struct text *out);
void help_command(struct text *out, const struct command_row *command);
void help_man(struct text *out);
/* SHELL is bash, zsh or fish; -1 for another. */
int help_completion(struct text *out, const char *shell);

#endif
