#include "import/chrome_names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"

enum { NAMES_MAX = 1 << 22 };

struct known { uint32_t name, category, process, function; };

struct chrome_names {
	struct gather *gather;
	struct strings *strings; /* as they stand in the file */
	struct map index;        /* hash to the number in the list; of two with one hash the first is kept */
	LIST(struct known) list;
};

struct chrome_names *chrome_names_new(struct gather *gather)
{
	struct chrome_names *names = calloc(1, sizeof *names);

	if (!names)
		return NULL;
	names->gather = gather;
	names->strings = strings_new();
	if (names->strings)
		return names;
	free(names);
	return NULL;
}

void chrome_names_free(struct chrome_names *names)
{
	if (!names)
		return;
	strings_free(names->strings);
	map_done(&names->index);
	list_done(&names->list);
	free(names);
}

/* "file.py(12): function" of Kineto, "function (file.py:12)" of viztracer. False when it is neither. NAME is cut into its parts. */
static bool split_python(char *name, const char **function, const char **file, uint32_t *line)
{
	char *colon = strstr(name, "): "), *open, *end;

	if (colon) {
		*colon = '\0';
		open = strrchr(name, '(');
		if (open && isdigit((unsigned char)open[1])) {
			*open = '\0';
			*line = (uint32_t)strtoul(open + 1, NULL, 10);
			*file = name;
			*function = colon + 3;
			return **function != '\0';
		}
		*colon = ')';
	}
	open = strrchr(name, '(');
	if (!open || open == name || open[-1] != ' ' || !(colon = strrchr(open, ':')) || !isdigit((unsigned char)colon[1]))
		return false;
	*line = (uint32_t)strtoul(colon + 1, &end, 10);
	if (strcmp(end, ")") != 0)
		return false;
	open[-1] = *colon = '\0';
	*function = name;
	*file = open + 1;
	return true;
}

/* "<built-in method acquire of _thread.lock object at 0x7f…>" is a C function. False when it is none. NAME is cut into its parts. */
static bool split_builtin(char *name, const char **function, const char **module)
{
	static const char *const starts[] = { "<built-in method ", "<built-in function " };

	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
		char *of, *end;

		if (strncmp(name, starts[i], strlen(starts[i])) != 0)
			continue;
		*function = name + strlen(starts[i]);
		*module = "";
		of = strstr(*function, " of ");
		end = of ? strstr(of + 4, " object at ") : strrchr(*function, '>');
		if (of) {
			*of = '\0';
			*module = of + 4;
		}
		if (end)
			*end = '\0';
		return **function != '\0';
	}
	return false;
}

static uint32_t take_apart(struct gather *gather, uint32_t thread, char *name, const char *category, bool python)
{
	const char *function, *file;
	uint32_t line;

	if (split_builtin(name, &function, &file))
		return gather_function(gather, thread, false, function, file, 0);
	if (split_python(name, &function, &file, &line))
		return gather_function(gather, thread, true, function, file, line);
	return gather_function(gather, thread, python, name, category, 0);
}

uint32_t chrome_function(struct chrome_names *names, uint32_t thread, char *name, const char *category, bool python)
{
	struct known wanted = { strings_add(names->strings, name, strlen(name)), strings_add(names->strings, category, strlen(category)), gather_process_of(names->gather, thread), 0 }, *known;
	uint64_t key = mix64((uint64_t)wanted.name << 32 | wanted.category) + wanted.process;
	uint32_t index = map_get(&names->index, key);

	known = index == MAP_ABSENT ? NULL : &names->list.items[index];
	if (known && known->name == wanted.name && known->category == wanted.category && known->process == wanted.process)
		return known->function;
	wanted.function = take_apart(names->gather, thread, name, category, python);
	if (known || wanted.name == UINT32_MAX || wanted.category == UINT32_MAX)
		return wanted.function;
	known = list_add(&names->list, NAMES_MAX);
	if (!known || !map_put(&names->index, key, (uint32_t)names->list.count - 1))
		return wanted.function; /* the next one is taken apart again */
	*known = wanted;
	return wanted.function;
}
