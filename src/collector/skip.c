/* Which functions are left out: decided once per function, when it is first seen. */
#include "collector/collector.h"

#include <string.h>

enum { PRESET_DUNDER = 1, PRESET_INTERNALS = 2 };

/* Modules and packages of the standard library that say little about a program. */
static const char *const internals[] = {
	"threading.py", "asyncio/", "contextlib.py", "functools.py", "abc.py", "_py_abc.py", "typing.py", "collections/", "_collections_abc.py",
	"concurrent/", "queue.py", "selectors.py", "weakref.py", "_weakrefset.py", "enum.py", "types.py", "logging/", "re.py", "re/", "sre_compile.py",
	"sre_parse.py", "os.py", "posixpath.py", "genericpath.py", "codecs.py", "encodings/", "copyreg.py", "inspect.py", "warnings.py", "contextvars.py",
	"importlib/",
};

/* * matches anything, ? one byte. Never goes back further than the last star. */
static bool glob(const char *pattern, const char *text)
{
	const char *star = NULL, *from = text;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* The part of FILE below a pythonX.Y folder of a standard library, or NULL. */
static const char *in_library(const char *file)
{
	for (const char *p = file; (p = strstr(p, "/python3.")); p++) {
		const char *rest = strchr(p + 1, '/');

		if (rest && !starts(rest, "/site-packages/") && !starts(rest, "/dist-packages/"))
			return rest + 1;
	}
	return NULL;
}

static bool is_internal(const char *file)
{
	const char *rest = in_library(file);

	if (starts(file, "<frozen "))
		return true;
	for (size_t i = 0; rest && i < sizeof internals / sizeof *internals; i++) {
		const char *row = internals[i];

		if (row[strlen(row) - 1] == '/' ? starts(rest, row) : !strcmp(rest, row))
			return true;
	}
	return false;
}

/* The import machinery, frozen or not, and the Python package of InferScope itself. */
static bool is_default(const char *file)
{
	return starts(file, "<frozen importlib") || starts(file, "<frozen zipimport") || strstr(file, "/importlib/_bootstrap") ||
	       strstr(file, "/site-packages/inferscope/");
}

bool skip_matches(const struct page *page, const char *name, const char *qualname, const char *file)
{
	size_t length = strlen(name);

	if (page->skip_default && is_default(file))
		return true;
	if ((page->skip_presets & PRESET_DUNDER) && length > 4 && starts(name, "__") && !strcmp(name + length - 2, "__"))
		return true;
	if ((page->skip_presets & PRESET_INTERNALS) && is_internal(file))
		return true;
	for (size_t at = 0; at < PAGE_SKIP_BYTES && page->skip_patterns[at];) {
		size_t bytes = strnlen(page->skip_patterns + at, PAGE_SKIP_BYTES - at);

		if (at + bytes == PAGE_SKIP_BYTES)
			break;
		if (glob(page->skip_patterns + at, *qualname ? qualname : name) || glob(page->skip_patterns + at, file))
			return true;
		at += bytes + 1;
	}
	return false;
}
