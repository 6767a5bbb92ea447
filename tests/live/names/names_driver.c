/*
 * `names_driver [--debuginfod] [--debug-folder DIR] PID` names addresses of a process. Reads lines: "a HEX" an address, "r HEX" a return address, "s HEX"
 * the source of the module's names there, "t HEX" the time of a repeated look-up in ns, "n" looks at the map anew. Answers each with a line of JSON.
 */
#include "base/text.h"
#include "unwind/symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOKUPS = 100000 };

static void add_string(struct text *text, const char *name, const char *string)
{
	text_printf(text, "\"%s\":\"", name);
	text_add_json(text, string, strlen(string));
	text_add_string(text, "\"");
}

static void print_names(struct symbols *symbols, uint64_t addr, bool call)
{
	struct symbol found[SYMBOL_INLINES_MAX];
	size_t count = symbols_find(symbols, addr, call, found);
	struct text text = { 0 };

	text_init(&text);
	for (size_t i = 0; i < count; i++) {
		text_add_string(&text, i ? ",{" : "[{");
		add_string(&text, "name", found[i].name);
		text_add_string(&text, ",");
		add_string(&text, "file", found[i].file);
		text_printf(&text, ",\"line\":%u,\"inlined\":%s,\"named\":%s}", found[i].line, found[i].inlined ? "true" : "false", found[i].named ? "true" : "false");
	}
	printf("%s]\n", text.data);
	text_done(&text);
}

static void print_source(struct symbols *symbols, const struct modules *modules, uint64_t addr)
{
	const struct module *module = modules_find(modules, addr);
	struct text text = { 0 };

	text_init(&text);
	text_add_string(&text, "{");
	add_string(&text, "source", module ? symbols_source(symbols, module) : "no module");
	text_add_string(&text, ",");
	add_string(&text, "path", module ? module->path : "");
	text_printf(&text, ",\"bias\":%" PRIu64 "}", module ? module->bias : 0);
	puts(text.data);
	text_done(&text);
}

static void print_time(struct symbols *symbols, uint64_t addr)
{
	struct symbol found[SYMBOL_INLINES_MAX];
	struct timespec begin, end;

	symbols_find(symbols, addr, false, found);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < LOOKUPS; i++)
		symbols_find(symbols, addr, false, found);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.1f\n", ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / LOOKUPS);
}

static void answer(struct symbols *symbols, struct modules *modules, const char *line)
{
	uint64_t addr = strtoull(line + 1, NULL, 16);

	switch (line[0]) {
	case 'a': print_names(symbols, addr, false); break;
	case 'r': print_names(symbols, addr, true); break;
	case 's': print_source(symbols, modules, addr); break;
	case 't': print_time(symbols, addr); break;
	case 'n': printf("%d\n", modules_refresh(modules)); break;
	default: printf("null\n"); break;
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct symbols_options options = { 0 };
	struct modules *modules = NULL;
	struct symbols *symbols = NULL;
	struct error err = { 0 };
	char line[64];
	pid_t pid = 0;
	int status = 1;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--debuginfod") == 0)
			options.debuginfod = true;
		else if (strcmp(argv[i], "--debug-folder") == 0 && i + 1 < argc)
			options.debug_folder = argv[++i];
		else
			pid = (pid_t)atoi(argv[i]);
	}
	if (modules_open(&procfs_real, pid, &modules, &err) == 0 && symbols_open(&procfs_real, pid, modules, &options, &symbols, &err) == 0) {
		while (fgets(line, sizeof line, stdin))
			answer(symbols, modules, line);
		status = 0;
	} else {
		fprintf(stderr, "names_driver: %s\n", err.text);
	}
	symbols_close(symbols);
	modules_close(modules);
	return status;
}
