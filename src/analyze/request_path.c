#include "analyze/request_path.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"

enum { REQUEST_SPANS_MAX = 256 /* of one request: its first ones */ };

/* A span on the job's clock. */
struct placed { const struct span *span; size_t rank; int64_t start_ns, end_ns; };
struct placed_list { struct placed *items; size_t count, capacity; };

/* Behind "key":, or NULL. */
static const char *value_of(const char *metadata, const char *key)
{
	size_t length = strlen(key);

	for (const char *at = metadata; (at = strchr(at, '"')); at++) {
		const char *end = at + 1 + length;

		if (strncmp(at + 1, key, length) != 0 || *end != '"')
			continue;
		for (end++; isspace((unsigned char)*end); end++)
			;
		if (*end != ':')
			continue;
		for (end++; isspace((unsigned char)*end); end++)
			;
		return end;
	}
	return NULL;
}

static bool value_take(const char *value, char *out, size_t size)
{
	bool quoted = *value == '"';
	size_t length = quoted ? strcspn(++value, "\"\\") : strspn(value, "0123456789");

	if (!length || length >= size || (quoted && value[length] != '"'))
		return false;
	memcpy(out, value, length);
	out[length] = '\0';
	return true;
}

bool span_id(const char *metadata, char *out, size_t size)
{
	static const char *const keys[] = { "request_id", "trace_id", "id" };

	for (size_t i = 0; metadata && i < sizeof keys / sizeof *keys; i++) {
		const char *value = value_of(metadata, keys[i]);

		if (value)
			return value_take(value, out, size);
	}
	return false;
}

static bool span_take(void *context, const struct interval *interval)
{
	struct spans *spans = context;
	char id[REQUEST_ID_BYTES];
	struct span *span;

	if (interval->kind != EVENT_SCOPE_ENTER || interval->open_end || interval->start_ns > interval->end_ns || interval->end_ns > INT64_MAX / 4 || !span_id(interval->metadata, id, sizeof id))
		return true;
	span = list_add_or_fail(spans, SPANS_MAX, &spans->failed);
	if (!span)
		return false;
	memcpy(span->id, id, sizeof id);
	snprintf(span->scope, sizeof span->scope, "%s", interval->name ? interval->name : "");
	span->start_ns = interval->start_ns;
	span->end_ns = interval->end_ns;
	return true;
}

int spans_read(const struct timeline *timeline, struct trace *trace, struct spans *out, struct error *err)
{
	if (timeline->scope_count && timeline_intervals(timeline, trace, span_take, out, err) < 0)
		return -1;
	return out->failed ? fail(err, ERR_MEMORY, "reading requests: out of memory") : 0;
}

static int compare_placed(const void *left, const void *right)
{
	const struct placed *a = left, *b = right;
	int id = strcmp(a->span->id, b->span->id);

	if (id)
		return id;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int compare_moments(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return a < b ? -1 : a > b;
}

/* Each moment belongs to the span that began last of those that are open then; when none is, the request is between processes. */
static void share_out(const struct placed *spans, size_t count, uint64_t *self_ns, uint64_t *between_ns)
{
	int64_t moments[2 * REQUEST_SPANS_MAX];

	for (size_t i = 0; i < count; i++) {
		moments[2 * i] = spans[i].start_ns;
		moments[2 * i + 1] = spans[i].end_ns;
		self_ns[i] = 0;
	}
	/* cppcheck-suppress uninitvar ; 2 * count of them are set */
	qsort(moments, 2 * count, sizeof *moments, compare_moments);
	*between_ns = 0;
	for (size_t i = 1; i < 2 * count; i++) {
		uint64_t *owner = between_ns;

		for (size_t j = 0; j < count; j++)
			if (spans[j].start_ns <= moments[i - 1] && spans[j].end_ns >= moments[i])
				owner = &self_ns[j];
		*owner += (uint64_t)(moments[i] - moments[i - 1]);
	}
}

static void path_fill(const struct job *job, const struct placed *spans, size_t count, struct request_path *out)
{
	uint64_t self_ns[REQUEST_SPANS_MAX];

	snprintf(out->id, sizeof out->id, "%s", spans->span->id);
	share_out(spans, count, self_ns, &out->between_ns);
	out->step_count = count < PATH_STEPS ? count : PATH_STEPS;
	out->left_out = count - out->step_count;
	out->bound_ns = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t bound_ns = job->ranks[spans[i].rank].clock.bound_ns;

		out->bound_ns = bound_ns > out->bound_ns ? bound_ns : out->bound_ns;
		if (i >= PATH_STEPS)
			continue;
		out->steps[i] = (struct path_step){ .rank = spans[i].rank, .start_ns = (uint64_t)(spans[i].start_ns - spans->start_ns), .duration_ns = (uint64_t)(spans[i].end_ns - spans[i].start_ns), .self_ns = self_ns[i] };
		memcpy(out->steps[i].scope, spans[i].span->scope, sizeof out->steps[i].scope);
	}
}

/* COUNT spans of one id, by start. */
static void request_judge(struct job *job, const struct placed *spans, size_t count)
{
	int64_t end_ns = spans->end_ns;
	bool several = false;

	count = count < REQUEST_SPANS_MAX ? count : REQUEST_SPANS_MAX;
	for (size_t i = 0; i < count; i++) {
		several |= spans[i].rank != spans->rank;
		end_ns = spans[i].end_ns > end_ns ? spans[i].end_ns : end_ns;
	}
	if (!several)
		return;
	job->slowest.requests++;
	if ((uint64_t)(end_ns - spans->start_ns) <= job->slowest.duration_ns)
		return;
	job->slowest.duration_ns = (uint64_t)(end_ns - spans->start_ns);
	path_fill(job, spans, count, &job->slowest);
}

int request_path_build(struct job *job, const struct spans *spans, struct error *err)
{
	struct placed_list all = { 0 };
	int result = -1;

	for (size_t i = 0; i < job->count; i++) {
		const struct rank *rank = &job->ranks[i];
		const struct spans *own = &spans[rank->source];

		for (size_t j = 0; rank->clock.way && j < own->count; j++) {
			struct placed *placed = list_add(&all, SIZE_MAX);

			if (!placed) {
				fail(err, ERR_MEMORY, "following requests over %zu processes", job->count);
				goto out;
			}
			*placed = (struct placed){ &own->items[j], i, (int64_t)own->items[j].start_ns + rank->clock.zero_ns, (int64_t)own->items[j].end_ns + rank->clock.zero_ns };
		}
	}
	if (all.count)
		qsort(all.items, all.count, sizeof *all.items, compare_placed);
	for (size_t first = 0, last; first < all.count; first = last) {
		for (last = first + 1; last < all.count && strcmp(all.items[last].span->id, all.items[first].span->id) == 0; last++)
			;
		request_judge(job, &all.items[first], last - first);
	}
	result = 0;
out:
	list_done(&all);
	return result;
}
