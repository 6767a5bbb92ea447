/* Failures and log lines on stderr. */
#include "cli/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* What errno was when ERR was filled may be older than the failure: it is its cause where the message says so. */
static int cause_of(const struct error *err)
{
	return err->sys_errno && strstr(err->text, strerror(err->sys_errno)) ? err->sys_errno : 0;
}

/* Where there is no memory for escapes: what needs one is a question mark. */
static const char *without_escapes(char *text)
{
	for (char *at = text; *at; at++)
		if (*at < ' ' || *at > '~' || *at == '"' || *at == '\\')
			*at = '?';
	return text;
}

static void json_print_plain(const struct error *err)
{
	char message[sizeof err->text];

	snprintf(message, sizeof message, "%s", err->text);
	fprintf(stderr, "{\"schema\":\"inferscope.error/1\",\"code\":\"%s\",\"exit\":%d,\"message\":\"%s\",\"hint\":\"\",\"errno\":%d,\"target_safe\":%s,\"docs\":\"errors#%s\"}\n", error_name(err->code),
	        error_status(err->code), without_escapes(message), cause_of(err), err->code == ERR_NOT_CLEAN ? "false" : "true", error_name(err->code));
}

static void json_print(const struct error *err)
{
	const char *hint = error_hint(err);
	struct text line;

	text_init(&line);
	text_printf(&line, "{\"schema\":\"inferscope.error/1\",\"code\":\"%s\",\"exit\":%d,\"message\":\"", error_name(err->code), error_status(err->code));
	text_add_json(&line, err->text, strlen(err->text));
	text_add_string(&line, "\",\"hint\":\"");
	text_add_json(&line, hint, strlen(hint));
	text_printf(&line, "\",\"errno\":%d,\"target_safe\":%s,\"docs\":\"errors#%s\"}\n", cause_of(err), err->code == ERR_NOT_CLEAN ? "false" : "true", error_name(err->code));
	if (line.failed)
		json_print_plain(err);
	else
		fputs(line.data, stderr);
	text_done(&line);
}

void failure_of_command(struct error *err, const char *command)
{
	if (!*err->hint && (err->code == ERR_OPTION_UNKNOWN || err->code == ERR_OPTION_VALUE))
		fail_hint(err, "see `inferscope %s --help`", command);
}

int failure_print(const struct error *err, bool json)
{
	const char *hint = error_hint(err);

	if (json)
		json_print(err);
	else {
		fprintf(stderr, "inferscope: %s\n", err->text);
		if (*err->place)
			fprintf(stderr, "  %s\n  %*s^\n", err->place, (int)err->caret, "");
		if (hint && *hint)
			fprintf(stderr, "  %s\n", hint);
	}
	return error_status(err->code);
}

static int stdout_failed(struct error *err)
{
	return errno == EPIPE ? 0 : fail(err, ERR_OUTPUT, "cannot write stdout: %s", strerror(errno));
}

int stdout_put(const char *bytes, size_t length, struct error *err)
{
	return fwrite(bytes, 1, length, stdout) == length ? 0 : stdout_failed(err);
}

int stdout_flush(struct error *err)
{
	return fflush(stdout) == 0 ? 0 : stdout_failed(err);
}

void log_print(enum log_level wanted, enum log_level level, const char *format, ...)
{
	va_list list;
	struct text line;
	char raw[2048];

	if (level < wanted)
		return;
	va_start(list, format);
	vsnprintf(raw, sizeof raw, format, list);
	va_end(list);
	text_init(&line);
	text_add_visible(&line, raw, strlen(raw));
	fprintf(stderr, "inferscope: %s%s\n", level == LOG_WARN ? "warning: " : "", line.failed ? without_escapes(raw) : text_string(&line));
	text_done(&line);
}
