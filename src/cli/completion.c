/* Completions of three shells, from the tables. */
#include "cli/help.h"

#include <string.h>

#include "report/report.h"

static void words(struct text *out, const char *alternatives)
{
	for (; *alternatives; alternatives++)
		text_add(out, *alternatives == '|' ? " " : alternatives, 1);
}

/* What its argument is. */
static bool names_process(const struct command_row *command)
{
	return strstr(command->arguments, "PID") != NULL;
}

static bool names_file(const struct command_row *command)
{
	return !names_process(command) && command->bit != CONFIG && command->bit != SCHEMA;
}

static const char *first_word(const char *name, char *out, size_t size)
{
	size_t length = strcspn(name, " ");

	if (length >= size)
		length = size - 1;
	memcpy(out, name, length);
	out[length] = '\0';
	return out;
}

static void bash(struct text *out)
{
	char word[32];

	text_add_string(out, "# bash completion for inferscope; made from its option table\n_inferscope()\n{\n\tlocal word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\" command=\"${COMP_WORDS[1]}\"\n");
	text_add_string(out, "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n\t\tCOMPREPLY=($(compgen -W \"");
	for (size_t i = 0; i < command_count; i++)
		text_printf(out, "%s ", first_word(command_rows[i].name, word, sizeof word));
	text_add_string(out, "--help --version\" -- \"$word\"))\n\t\treturn\n\tfi\n\tcase \"$before\" in\n");
	for (int i = 0; i < OPT_COUNT; i++) {
		if (option_rows[i].kind != KIND_CHOICE)
			continue;
		text_printf(out, "\t--%s) COMPREPLY=($(compgen -W \"", option_rows[i].name);
		words(out, option_rows[i].constraint);
		text_add_string(out, "\" -- \"$word\")); return ;;\n");
	}
	text_add_string(out, "\t-f|--format) COMPREPLY=($(compgen -W \"");
	for (size_t i = 0, count = 0; report_formats(&count) && i < count; i++)
		text_printf(out, "%s ", report_formats(&count)[i].name);
	text_add_string(out, "\" -- \"$word\")); return ;;\n\tesac\n\tcase \"$command\" in\n");
	for (size_t i = 0; i < command_count; i++) {
		text_printf(out, "\t%s) COMPREPLY=($(compgen %s-W \"", first_word(command_rows[i].name, word, sizeof word), names_file(&command_rows[i]) ? "-f " : "");
		if (names_process(&command_rows[i]))
			text_add_string(out, "$(pgrep python 2>/dev/null) ");
		if (command_rows[i].bit == CONFIG)
			text_add_string(out, "show ");
		for (int j = 0; j < OPT_COUNT; j++)
			if (option_rows[j].commands & command_rows[i].bit)
				text_printf(out, "--%s ", option_rows[j].name);
		text_add_string(out, "\" -- \"$word\")) ;;\n");
	}
	text_add_string(out, "\tesac\n}\ncomplete -o default -F _inferscope inferscope\n");
}

/* Help texts inside single quotes and brackets. */
static void quoted(struct text *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			text_add_string(out, "'\\''");
		else if (*text == '[' || *text == ']' || *text == ':')
			text_printf(out, "\\%c", *text);
		else
			text_add(out, text, 1);
	}
}

static void zsh(struct text *out)
{
	char word[32];

	text_add_string(out, "#compdef inferscope\n# made from inferscope's option table\n_inferscope() {\n\tlocal -a commands\n\tcommands=(\n");
	for (size_t i = 0; i < command_count; i++) {
		text_printf(out, "\t\t'%s:", first_word(command_rows[i].name, word, sizeof word));
		quoted(out, command_rows[i].about);
		text_add_string(out, "'\n");
	}
	text_add_string(out, "\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tcase \"$words[2]\" in\n");
	for (size_t i = 0; i < command_count; i++) {
		text_printf(out, "\t%s) _arguments", first_word(command_rows[i].name, word, sizeof word));
		for (int j = 0; j < OPT_COUNT; j++) {
			const struct option_row *row = &option_rows[j];

			if (!(row->commands & command_rows[i].bit))
				continue;
			text_printf(out, " \\\n\t\t'--%s[", row->name);
			quoted(out, row->help);
			text_add_string(out, "]");
			if (row->kind == KIND_CHOICE) {
				text_printf(out, ":%s:(", row->name);
				words(out, row->constraint);
				text_add_string(out, ")");
			} else if (row->kind != KIND_FLAG)
				text_printf(out, ":%s:_files", row->name);
			text_add_string(out, "'");
		}
		if (names_process(&command_rows[i]))
			text_add_string(out, " \\\n\t\t'*:process:_pids'");
		else if (command_rows[i].bit == CONFIG)
			text_add_string(out, " \\\n\t\t'*:what:(show)'");
		else if (names_file(&command_rows[i]))
			text_add_string(out, " \\\n\t\t'*:file:_files'");
		text_add_string(out, " ;;\n");
	}
	text_add_string(out, "\tesac\n}\n_inferscope \"$@\"\n");
}

static void fish(struct text *out)
{
	char word[32];

	text_add_string(out, "# fish completion for inferscope; made from its option table\n");
	for (size_t i = 0; i < command_count; i++) {
		text_printf(out, "complete -c inferscope -n __fish_use_subcommand -f -a %s -d '", first_word(command_rows[i].name, word, sizeof word));
		quoted(out, command_rows[i].about);
		text_add_string(out, "'\n");
	}
	text_add_string(out, "complete -c inferscope -n '__fish_seen_subcommand_from");
	for (size_t i = 0; i < command_count; i++)
		if (names_process(&command_rows[i]))
			text_printf(out, " %s", command_rows[i].name);
	text_add_string(out, "' -f -a '(__fish_complete_pids)'\n"
	                     "complete -c inferscope -n '__fish_seen_subcommand_from config' -f -a show\n");
	for (int j = 0; j < OPT_COUNT; j++) {
		const struct option_row *row = &option_rows[j];

		text_add_string(out, "complete -c inferscope -n '__fish_seen_subcommand_from");
		for (size_t i = 0; i < command_count; i++)
			if (row->commands & command_rows[i].bit)
				text_printf(out, " %s", first_word(command_rows[i].name, word, sizeof word));
		text_printf(out, "' -l %s", row->name);
		if (row->letter)
			text_printf(out, " -s %c", row->letter);
		if (row->kind != KIND_FLAG)
			text_add_string(out, " -r");
		if (row->kind == KIND_CHOICE) {
			text_add_string(out, " -f -a '");
			words(out, row->constraint);
			text_add_string(out, "'");
		}
		text_add_string(out, " -d '");
		for (const char *at = row->help; *at; at++)
			text_add_string(out, *at == '\'' ? "\\'" : (char[]){ *at, '\0' });
		text_add_string(out, "'\n");
	}
}

int help_completion(struct text *out, const char *shell)
{
	static const struct { const char *name; void (*make)(struct text *out); } rows[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (strcmp(rows[i].name, shell) == 0) {
			rows[i].make(out);
			return 0;
		}
	}
	return -1;
}
