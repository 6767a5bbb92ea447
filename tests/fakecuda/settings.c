/* See settings.h. */
#include "settings.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *const names[] = {
#define SETTING(id, value, doc) #id,
#define TEXT(id, doc)
#include "settings.def"
#undef SETTING
#undef TEXT
};

static int64_t values[] = {
#define SETTING(id, value, doc) value,
#define TEXT(id, doc)
#include "settings.def"
#undef SETTING
#undef TEXT
};

static struct {
	const char *variable;
	int fd;
} files[] = { { "FAKECUDA_JOURNAL", -1 }, { "FAKECUDA_OPS", -1 } };

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
	char variable[64];

	for (int i = 0; i < SETTING_COUNT; i++) {
		snprintf(variable, sizeof variable, "FAKECUDA_%s", names[i]);
		if (getenv(variable))
			values[i] = strtoll(getenv(variable), NULL, 0);
	}
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (getenv(files[i].variable))
			files[i].fd = open(getenv(files[i].variable), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

int64_t setting(enum setting id)
{
	pthread_once(&once, load);
	return __atomic_load_n(&values[id], __ATOMIC_RELAXED);
}

const char *setting_text(const char *variable)
{
	return getenv(variable);
}

int fakecuda_set(const char *name, int64_t value)
{
	pthread_once(&once, load);
	for (int i = 0; i < SETTING_COUNT; i++)
		if (strcmp(names[i], name) == 0) {
			__atomic_store_n(&values[i], value, __ATOMIC_RELAXED);
			return 0;
		}
	return -1;
}

void file_line(const char *variable, const char *format, ...)
{
	char line[1024];
	va_list arguments;
	int length;

	pthread_once(&once, load);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (files[i].fd < 0 || strcmp(files[i].variable, variable) != 0)
			continue;
		va_start(arguments, format);
		length = vsnprintf(line, sizeof line - 1, format, arguments);
		va_end(arguments);
		if (length > (int)sizeof line - 2)
			length = (int)sizeof line - 2;
		line[length++] = '\n';
		if (write(files[i].fd, line, (size_t)length) != length)
			abort(); /* a test that lost a line would say nonsense */
	}
}

uint64_t mono_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int own_tid(void)
{
	return (int)syscall(SYS_gettid);
}
