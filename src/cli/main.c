/* inferscope: words of the user to a command, a command's result to an exit status. */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/parse.h"
#include "cli/settings.h"
#include "config.h"

enum { OUR_FAILURE = 125, STACK_LEAST = 512 << 10 };

static const char *environment(const char *name)
{
	return getenv(name);
}

static int text_print(struct text *text, struct error *err)
{
	int result = text->failed ? fail(err, ERR_MEMORY, "printing") : stdout_put(text_string(text), text->length, err);

	text_done(text);
	return result;
}

/* --version, --help, and what the build asks for to make the man page and completions. */
static int word_of_our_own(char **arguments, bool *done, struct error *err)
{
	const char *word = arguments[0], *about = strcmp(word, "help") == 0 ? arguments[1] : NULL;
	const struct command_row *command = about ? command_find(strcmp(about, "config") == 0 ? "config show" : about) : NULL;
	struct text text;

	text_init(&text);
	*done = true;
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		text_printf(&text, "inferscope %s\n", PACKAGE_VERSION);
	else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || (strcmp(word, "help") == 0 && !about))
		help_overview(&text);
	else if (command)
		help_command(&text, command);
	else if (about && strcmp(about, "--man") == 0)
		help_man(&text);
	else if (about && strncmp(about, "--completion=", 13) == 0) {
		if (help_completion(&text, about + 13) < 0)
			return fail(err, ERR_USAGE, "there is no completion for %.40s: bash, zsh, fish", about + 13);
	} else {
		*done = false;
		return 0;
	}
	return text_print(&text, err);
}

/* The command that WORDS begin with; *TAKEN how many words its name has. */
static const struct command_row *command_of(char **words, int *taken, struct error *err)
{
	const struct command_row *command = command_find(words[0]);
	struct text shown;
	const char *close;

	if (strcmp(words[0], "help") == 0)
		words++; /* its own cases are done: this is no command's name */
	*taken = 1;
	if (command)
		return command;
	if (strcmp(words[0], "config") == 0) {
		*taken = 2;
		if (words[1] && strcmp(words[1], "show") == 0)
			return command_find("config show");
		if (words[1] && strcmp(words[1], "--help") == 0) {
			*taken = 1;
			return command_find("config show");
		}
		fail(err, ERR_USAGE, "config needs \"show\"");
		fail_hint(err, "inferscope config show");
		return NULL;
	}
	text_init(&shown);
	text_add_visible(&shown, words[0], strlen(words[0]));
	fail(err, ERR_USAGE, "there is no command \"%.80s\"", text_string(&shown));
	text_done(&shown);
	close = command_suggest(words[0]);
	if (*words[0] == '-')
		fail_hint(err, "options stand behind the command: inferscope attach --help");
	else if (close)
		fail_hint(err, "did you mean `inferscope %s`?", close);
	return NULL;
}

/* Also where the command line could not be read to its end. */
static bool errors_as_json(char **arguments)
{
	const char *value = getenv("INFERSCOPE_ERROR_FORMAT");

	for (; *arguments; arguments++) {
		if (strncmp(*arguments, "--error-format=", 15) == 0)
			value = *arguments + 15;
		else if (strcmp(*arguments, "--error-format") == 0 && arguments[1])
			value = arguments[1];
	}
	return value && strcmp(value, "json") == 0;
}

static int command_execute(struct invocation *invocation, char **arguments, struct error *err)
{
	struct text text;

	if (options_init(&invocation->options, err) < 0)
		return -1;
	if (parse_arguments(arguments, invocation, err) < 0)
		return -1;
	if (options_flag(&invocation->options, OPT_HELP)) {
		text_init(&text);
		help_command(&text, invocation->command);
		return text_print(&text, err);
	}
	if (settings_environment(&invocation->options, environment, err) < 0 || settings_find(&invocation->options, getenv("HOME"), err) < 0 ||
	    settings_fit(&invocation->options, (enum command_bit)invocation->command->bit, err) < 0)
		return -1;
	return invocation->command->run(invocation, err);
}

/* An administrator's mistake that would let everybody measure everything. */
static bool rights_are_own(struct error *err)
{
	if (getuid() == geteuid() && getgid() == getegid())
		return true;
	fail(err, ERR_PERMISSION, "it was started with rights of user %u that user %u does not have (setuid)", (unsigned)geteuid(), (unsigned)getuid());
	fail_hint(err, "take the setuid and setgid bits off its file: who may measure what is ptrace's to say");
	return false;
}

/* Less than this, and it would end with SIGSEGV, perhaps while a process is entered. (Not raised here: a program that is run would inherit that.) */
static bool stack_suffices(struct error *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur >= STACK_LEAST)
		return true;
	fail(err, ERR_MEMORY, "the stack may have %llu KiB only (ulimit -s), and %d KiB are needed", (unsigned long long)limit.rlim_cur >> 10, STACK_LEAST >> 10);
	fail_hint(err, "ulimit -s %d", STACK_LEAST >> 10);
	return false;
}

int main(int argc, char **argv)
{
	struct invocation invocation = { 0 };
	struct error err = { 0 };
	int status = -1, taken;
	bool done = false, json = false;

	setlocale(LC_CTYPE, "");
	if (!rights_are_own(&err) || !stack_suffices(&err))
		goto out;
	if (argc < 2) {
		fail(&err, ERR_USAGE, "a command is needed");
		goto out;
	}
	status = word_of_our_own(argv + 1, &done, &err);
	if (done)
		goto out;
	status = -1;
	invocation.command = command_of(argv + 1, &taken, &err);
	if (!invocation.command)
		goto out;
	if (invocation.command->bit != RUN) { /* a program that is run would inherit it */
		signal(SIGPIPE, SIG_IGN);
		signal(SIGXFSZ, SIG_IGN);
		signal(SIGCHLD, SIG_DFL); /* inherited, that it is ignored would let pids of our children be free while we still mean these; inject/launch.c sees to it for run */
	}
	invocation.words = argv + 1;
	json = errors_as_json(argv + 1);
	status = command_execute(&invocation, argv + 1 + taken, &err);
	json = json || (invocation.options.file && options_choice(&invocation.options, OPT_ERROR_FORMAT) == 1);
out:
	if (status < 0) {
		if (invocation.command)
			failure_of_command(&err, invocation.command->name);
		status = failure_print(&err, json);
		if (invocation.command && invocation.command->bit == RUN)
			status = OUR_FAILURE; /* nobody shall take it for the program's */
	}
	if (stdout_flush(&err) < 0 && status == 0)
		status = failure_print(&err, json);
	options_done(&invocation.options);
	return status;
}
