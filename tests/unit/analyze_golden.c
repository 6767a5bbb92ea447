/* From the short form to a trace's text. */
#include "analyze_golden.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct writer { FILE *out; struct golden_trace *trace; unsigned sequence[4]; };

static const char *const lanes[] = { "meta", "session", "thread", "gpu" };

static void write_lane(struct writer *w, const char *name)
{
	for (unsigned i = 0; i < 4; i++) {
		if (strcmp(lanes[i], name) != 0)
			continue;
		fprintf(w->out, "chunk process=0 lane=%u tid=%d kind=%s sequence=%u lost=0 depth=0 refs= clock=1000000/0/0\n", i + 1, i == 2 ? 7 : 0, name, ++w->sequence[i]);
		if (i == 2 && w->sequence[i] == 1)
			fprintf(w->out, "0 enter ref=1\n");
	}
}

static void write_base(struct writer *w, const char *words)
{
	const char *cpu = strstr(words, "cpu="), *seconds = strstr(words, "seconds=");
	unsigned percent = cpu ? (unsigned)strtoul(cpu + 4, NULL, 10) : 50, length = seconds ? (unsigned)strtoul(seconds + 8, NULL, 10) : 10;

	write_lane(w, "meta");
	fprintf(w->out, "0 code ref=1 line=1 name=\"main\" qualname=\"main\" file=\"/srv/app.py\"\n0 code ref=2 line=10 name=\"handle\" qualname=\"App.handle\" file=\"/srv/app.py\"\n");
	fprintf(w->out, "0 window_on reason=1\n%u window_off reason=1\n", length * 1000000);
	write_lane(w, "session");
	fprintf(w->out, "0 capture key=\"cpus\" value=\"4\"\n");
	for (unsigned i = 0; i <= length; i++)
		fprintf(w->out, "%u thread_time ref=7 cpu_ns=%u0000000 run_wait_ns=0 voluntary=%u involuntary=%u state=82\n", i * 1000000, i * percent, i * 10, i);
}

/* "TICKS rest" with the ticks moved on by SHIFT and # replaced. */
static void write_event(struct writer *w, const char *line, uint64_t shift, unsigned number)
{
	char *rest;
	uint64_t at = strtoull(line, &rest, 10) + shift;

	fprintf(w->out, "%" PRIu64, at);
	for (; *rest; rest++) {
		if (*rest == '#')
			fprintf(w->out, "%u", number);
		else
			fputc(*rest, w->out);
	}
	fputc('\n', w->out);
}

static void write_repeat(struct writer *w, char *const *lines, size_t count, unsigned times, uint64_t step)
{
	for (unsigned i = 0; i < times; i++)
		for (size_t j = 0; j < count; j++)
			write_event(w, lines[j], i * step, i + 1);
}

static void write_lines(struct writer *w, char *const *lines, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *line = lines[i];
		unsigned times;
		uint64_t step;
		size_t end;

		if (!*line || *line == '#')
			continue;
		if (strncmp(line, "base", 4) == 0)
			write_base(w, line);
		else if (strncmp(line, "lane ", 5) == 0)
			write_lane(w, line + 5);
		else if (strncmp(line, "scope ", 6) == 0 && w->trace->scope_count < GOLDEN_SCOPES)
			snprintf(w->trace->scope_room[w->trace->scope_count++], sizeof w->trace->scope_room[0], "%s", line + 6);
		else if (sscanf(line, "repeat %u %" SCNu64, &times, &step) == 2) {
			for (end = i + 1; end < count && strcmp(lines[end], "end") != 0; end++)
				;
			write_repeat(w, lines + i + 1, end - i - 1, times, step);
			i = end;
		} else {
			write_event(w, line, 0, 1);
		}
	}
}

struct golden_trace golden_expand(const char *file, const char *part)
{
	struct golden_trace trace = { 0 };
	struct writer w = { .trace = &trace };
	char *copy = strdup(file), *lines[2048], *state = NULL;
	size_t size, count = 0;
	bool common = true, wanted = true, found = false;

	for (char *line = strtok_r(copy, "\n", &state); line && count < 2048; line = strtok_r(NULL, "\n", &state)) {
		if (strncmp(line, "== ", 3) == 0) {
			common = false;
			wanted = strcmp(line + 3, part) == 0;
			found |= wanted;
		} else if (common || wanted) {
			lines[count++] = line;
		}
	}
	w.out = found ? open_memstream(&trace.text, &size) : NULL;
	if (w.out) {
		write_lines(&w, lines, count);
		fclose(w.out);
	}
	free(copy);
	return trace;
}
