/* Filling an error and looking up its row of error.def. Printing is cli's. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const struct {
	const char *name;
	int status;
	const char *hint;
} rows[ERR_COUNT] = {
	[ERR_NONE] = { "E_NONE", 0, "" },
#define ERROR(id, name, status, hint) [ERR_##id] = { name, status, hint },
#include "base/error.def"
#undef ERROR
};

/* A message may quote bytes of the target: what is left must be one line, and whole UTF-8 characters. */
static void make_one_line(char *string, size_t size)
{
	size_t length = strlen(string), at = 0, step;

	while (at < length) {
		step = utf8_length(string + at, length - at);
		if (step == 0 && length == size - 1 && length - at < 4) {
			string[at] = '\0'; /* cut in the middle of its last character */
			return;
		}
		if (step == 0 || (unsigned char)string[at] < 0x20 || string[at] == 0x7f)
			string[at] = '?';
		at += step ? step : 1;
	}
}

int fail(struct error *err, enum error_code code, const char *format, ...)
{
	int saved = errno;
	va_list arguments;

	if (!err)
		return -1;
	err->code = code;
	err->sys_errno = saved;
	err->hint[0] = err->place[0] = '\0';
	va_start(arguments, format);
	vsnprintf(err->text, sizeof err->text, format, arguments);
	va_end(arguments);
	/* Most say what they were about to do, and there is nothing else to say. */
	if (code == ERR_MEMORY && !strpbrk(format, ":("))
		snprintf(err->text + strlen(err->text), sizeof err->text - strlen(err->text), ": out of memory");
	make_one_line(err->text, sizeof err->text);
	errno = saved;
	return -1;
}

enum error_code file_error_of(int error, enum error_code otherwise)
{
	if (error == EMFILE || error == ENFILE)
		return ERR_DESCRIPTORS;
	return error == ENOMEM ? ERR_MEMORY : otherwise;
}

enum error_code error_of(int error, enum error_code otherwise)
{
	return error == EIO ? ERR_INTERNAL : file_error_of(error, otherwise);
}

int fail_hint(struct error *err, const char *format, ...)
{
	int saved = errno;
	va_list arguments;

	if (!err)
		return -1;
	va_start(arguments, format);
	vsnprintf(err->hint, sizeof err->hint, format, arguments);
	va_end(arguments);
	make_one_line(err->hint, sizeof err->hint);
	errno = saved;
	return -1;
}

int fail_over(struct error *err, const struct error *over)
{
	const struct error first = *err;
	int room = (int)(sizeof err->text - 3 - strlen(over->text));

	*err = *over;
	err->sys_errno = first.sys_errno;
	snprintf(err->text, sizeof err->text, "%.*s; %s", room > 0 ? room : 0, first.text, over->text);
	make_one_line(err->text, sizeof err->text);
	return -1;
}

int fail_place(struct error *err, const char *line, size_t length, unsigned caret)
{
	if (!err)
		return -1;
	if (length > sizeof err->place - 1)
		length = sizeof err->place - 1;
	memcpy(err->place, line, length);
	err->place[length] = '\0';
	for (char *at = err->place; *at; at++)
		*at = *at == '\t' ? ' ' : *at;
	make_one_line(err->place, sizeof err->place);
	err->caret = caret;
	return -1;
}

const char *error_name(enum error_code code)
{
	return code < ERR_COUNT ? rows[code].name : "E_UNKNOWN";
}

int error_status(enum error_code code)
{
	return code < ERR_COUNT ? rows[code].status : rows[ERR_INTERNAL].status;
}

const char *error_hint(const struct error *err)
{
	if (err->hint[0])
		return err->hint;
	return err->code < ERR_COUNT ? rows[err->code].hint : "";
}
