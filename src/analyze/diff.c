#include "analyze/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/private.h"
#include "base/list.h"
#include "base/map.h"

enum { ROWS_LIMIT = 1 << 16, REQUESTS_LEAST = 10, P99_LEAST = 100 };

/* What one side has of a thing, by its key. */
struct amount { double ns, error_ns; bool there; };
struct pair { uint32_t name, file, line; struct amount of[2]; };

struct diff_private {
	struct diff diff;
	struct arena arena;
	struct strings *strings;
	struct diff_side sides[2];
	double relative, share;
	double count_error[2]; /* of the number of requests, as a part of it: where that is an estimate */
	LIST(struct diff_row) rows;
	LIST(struct pair) pairs;
	struct map index;
	bool failed;
};

/* ---- per what ---- */

static const struct scope_latency *scope_named(const struct timeline *timeline, const char *name)
{
	for (size_t i = 0; i < timeline->scope_count; i++)
		if (strcmp(timeline->scopes[i].name, name) == 0)
			return &timeline->scopes[i];
	return NULL;
}

/* Two standard errors of a number of which COUNT were seen, by chance, in a part of the time. */
static double count_error(const struct scope_latency *scope)
{
	return scope->estimated ? 2 * sqrt((1 - scope->coverage) / (double)scope->count) : 0;
}

/* Per request when both have enough of the same, so that a busier hour is no regression. */
static void choose_unit(struct diff_private *p)
{
	const struct timeline *before = p->sides[0].timeline, *after = p->sides[1].timeline;
	const struct scope_latency *main = before->scope_count ? &before->scopes[0] : NULL, *same = main ? scope_named(after, main->name) : NULL;

	p->diff.before_units = (double)before->duration_ns / 1e9;
	p->diff.after_units = (double)after->duration_ns / 1e9;
	p->diff.request = "";
	if (!same || main->count < REQUESTS_LEAST || same->count < REQUESTS_LEAST)
		return;
	p->diff.unit = DIFF_PER_REQUEST;
	p->diff.request = main->name;
	p->diff.before_units = (double)main->all_count;
	p->diff.after_units = (double)same->all_count;
	p->count_error[0] = count_error(main);
	p->count_error[1] = count_error(same);
}

static double units(const struct diff_private *p, int side)
{
	double count = side ? p->diff.after_units : p->diff.before_units;

	return count > 0 ? count : 1;
}

/* The time that one unit takes, before: what is small beside it does not matter. */
static double unit_ns(const struct diff_private *p)
{
	return (double)p->sides[0].timeline->duration_ns / units(p, 0);
}

/* ---- rows ---- */

static void add_row(struct diff_private *p, struct diff_row row, double error_ns)
{
	struct diff_row *slot;
	double before = isnan(row.before_ns) ? 0 : row.before_ns, after = isnan(row.after_ns) ? 0 : row.after_ns;

	row.noise_ns = fmax(fmax(p->relative / 100 * before, p->share / 100 * (row.kind == DIFF_LATENCY ? before : unit_ns(p))), error_ns);
	row.changed = fabs(after - before) > row.noise_ns;
	row.worse = row.changed && after > before;
	slot = list_add_or_fail(&p->rows, ROWS_LIMIT, &p->failed);
	if (slot)
		*slot = row;
}

static struct pair *pair_of(struct diff_private *p, const char *name, const char *file, uint32_t line)
{
	uint32_t name_id = strings_add(p->strings, name, strlen(name)), file_id = strings_add(p->strings, file, strlen(file)), at;
	uint64_t key = mix64((uint64_t)name_id << 32 | file_id);
	struct pair *pair;

	if (name_id == UINT32_MAX || file_id == UINT32_MAX) {
		p->failed = true;
		return NULL;
	}
	for (; (at = map_get(&p->index, key)) != MAP_ABSENT; key++)
		if (p->pairs.items[at].name == name_id && p->pairs.items[at].file == file_id)
			return &p->pairs.items[at];
	pair = list_add_or_fail(&p->pairs, ROWS_LIMIT, &p->failed);
	if (!pair)
		return NULL;
	*pair = (struct pair){ .name = name_id, .file = file_id, .line = line };
	p->failed |= !map_put(&p->index, key, (uint32_t)p->pairs.count - 1);
	return pair;
}

static void add_amount(struct diff_private *p, int side, const char *name, const char *file, uint32_t line, double ns, double error_ns)
{
	struct pair *pair = pair_of(p, name, file, line);

	if (!pair)
		return;
	pair->of[side].ns += ns;
	pair->of[side].error_ns += error_ns;
	pair->of[side].there = true;
}

static double amount_error(const struct diff_private *p, int side, const struct amount *amount)
{
	return hypot(amount->error_ns, p->count_error[side] * amount->ns) / units(p, side);
}

static void end_pairs(struct diff_private *p, enum diff_kind kind)
{
	for (size_t i = 0; i < p->pairs.count; i++) {
		const struct pair *pair = &p->pairs.items[i];
		const struct amount *before = &pair->of[0], *after = &pair->of[1];

		add_row(p, (struct diff_row){ .kind = kind, .name = strings_get(p->strings, pair->name), .file = strings_get(p->strings, pair->file), .line = pair->line,
		                              .before_ns = before->there ? before->ns / units(p, 0) : NAN, .after_ns = after->there ? after->ns / units(p, 1) : NAN },
		        hypot(amount_error(p, 0, before), amount_error(p, 1, after)));
	}
	list_done(&p->pairs);
	map_done(&p->index);
}

/* Two standard deviations of a time that HITS samples tell. */
static double sampling_error(const struct function *function)
{
	if (function->precision != PRECISION_SAMPLED && function->precision != PRECISION_ESTIMATED && !function->self_split)
		return 0;
	return function->samples_self ? 2 * (double)function->cpu_self_ns / sqrt((double)function->samples_self) : (double)function->cpu_self_ns;
}

/* Their CPU time: waiting is no cost of a function, it is what the load left. */
static void compare_functions(struct diff_private *p)
{
	for (int side = 0; side < 2; side++) {
		const struct timeline *timeline = p->sides[side].timeline;

		for (size_t i = 0; i < timeline->function_count; i++) {
			const struct function *function = &timeline->functions[i];

			if (!function->waiter && function->kind != FUNCTION_UNKNOWN)
				add_amount(p, side, function->name, function->file, function->line, (double)function->cpu_self_ns, sampling_error(function));
		}
	}
	end_pairs(p, DIFF_FUNCTION);
}

struct kernels { struct diff_private *p; int side; };

static bool take_kernel(void *context, const struct interval *interval)
{
	const struct kernels *kernels = context;

	if (interval->kind == EVENT_GPU_KERNEL)
		add_amount(kernels->p, kernels->side, interval->name, "", 0, (double)(interval->end_ns - interval->start_ns), 0);
	return true;
}

static int compare_kernels(struct diff_private *p, struct error *err)
{
	for (int side = 0; side < 2; side++) {
		struct kernels kernels = { p, side };

		if (p->sides[side].timeline->gpu.events && timeline_device_work(p->sides[side].timeline, p->sides[side].trace, take_kernel, &kernels, err) < 0)
			return -1;
	}
	end_pairs(p, DIFF_KERNEL);
	return 0;
}

static void compare_idle(struct diff_private *p)
{
	static const char *const causes[GPU_IDLE_CAUSES] = { "no demand", "host late", "caused by synchronisation", "device dependency", "unknown" };

	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < p->sides[side].timeline->device_count; i++)
			for (int cause = GPU_HOST_LATE; cause < GPU_IDLE_CAUSES; cause++)
				add_amount(p, side, causes[cause], "", 0, (double)p->sides[side].timeline->devices[i].idle_ns[cause], 0);
	end_pairs(p, DIFF_IDLE);
}

/* The median of N has a standard error of about 1.25 σ / √n, a far percentile more; p99 lies 2.3 σ beyond it, as if latencies were spread normally. */
static double latency_error(const struct scope_latency *scope, double factor)
{
	return factor * 2 * (double)(scope->p99_ns - scope->p50_ns) / 2.3 / sqrt((double)scope->count);
}

static void compare_latency(struct diff_private *p, const struct scope_latency *before, const struct scope_latency *after)
{
	const struct { const char *name; uint64_t before, after, before_most, after_most; uint64_t least; double factor; } numbers[] = {
		{ "p50", before->p50_ns, after->p50_ns, before->p50_most_ns, after->p50_most_ns, REQUESTS_LEAST, 1.25 },
		{ "p95", before->p95_ns, after->p95_ns, before->p95_most_ns, after->p95_most_ns, REQUESTS_LEAST * 4, 2.1 },
		{ "p99", before->p99_ns, after->p99_ns, before->p99_most_ns, after->p99_most_ns, P99_LEAST, 3.7 },
	};

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		char text[512];
		const char *name;

		if (before->count < numbers[i].least || after->count < numbers[i].least || numbers[i].before_most == UINT64_MAX || numbers[i].after_most == UINT64_MAX)
			continue;
		snprintf(text, sizeof text, "%.480s %s", before->name, numbers[i].name);
		name = arena_strndup(&p->arena, text, strlen(text));
		p->failed |= !name;
		add_row(p, (struct diff_row){ .kind = DIFF_LATENCY, .name = name ? name : "", .file = "", .before_ns = (double)numbers[i].before, .after_ns = (double)numbers[i].after },
		        hypot(latency_error(before, numbers[i].factor), latency_error(after, numbers[i].factor)) +
		                fmax((double)(numbers[i].before_most - numbers[i].before), (double)(numbers[i].after_most - numbers[i].after)));
	}
}

static void compare_latencies(struct diff_private *p)
{
	for (size_t i = 0; i < p->sides[0].timeline->scope_count; i++) {
		const struct scope_latency *before = &p->sides[0].timeline->scopes[i], *after = scope_named(p->sides[1].timeline, before->name);

		if (after)
			compare_latency(p, before, after);
	}
}

/* ---- findings ---- */

static bool has_finding(const struct analysis *analysis, const struct finding_report *finding)
{
	for (size_t i = 0; i < analysis->finding_count; i++)
		if (strcmp(analysis->findings[i].id, finding->id) == 0)
			return true;
	return false;
}

static const struct finding_report *const *only_in(struct diff_private *p, int side, size_t *count)
{
	const struct analysis *analysis = p->sides[side].analysis;
	const struct finding_report **out = arena_alloc(&p->arena, (analysis->finding_count + 1) * sizeof *out);

	*count = 0;
	p->failed |= !out;
	for (size_t i = 0; out && i < analysis->finding_count; i++)
		if (!has_finding(p->sides[!side].analysis, &analysis->findings[i]))
			out[(*count)++] = &analysis->findings[i];
	return out;
}

/* ---- all ---- */

static double change(const struct diff_row *row)
{
	return (isnan(row->after_ns) ? 0 : row->after_ns) - (isnan(row->before_ns) ? 0 : row->before_ns);
}

static int compare_rows(const void *left, const void *right)
{
	const struct diff_row *a = left, *b = right;
	double x = fabs(change(a)), y = fabs(change(b));
	int order;

	if (a->kind != b->kind)
		return (int)a->kind - (int)b->kind;
	if (a->changed != b->changed)
		return a->changed ? -1 : 1;
	if (x != y)
		return x > y ? -1 : 1;
	order = strcmp(a->name, b->name);
	return order ? order : strcmp(a->file, b->file);
}

int diff_build(const struct diff_side *before, const struct diff_side *after, struct diff **out, struct error *err)
{
	struct diff_private *p = calloc(1, sizeof *p);

	if (!p || !(p->strings = strings_new())) {
		free(p);
		return fail(err, ERR_MEMORY, "comparing two traces");
	}
	arena_init(&p->arena);
	p->diff.private_ = p;
	p->sides[0] = *before;
	p->sides[1] = *after;
	p->relative = before->analysis->private_->parameters[PARAMETER_DIFF_RELATIVE];
	p->share = before->analysis->private_->parameters[PARAMETER_DIFF_SHARE];
	choose_unit(p);
	compare_latencies(p);
	compare_functions(p);
	if (compare_kernels(p, err) < 0) {
		diff_free(&p->diff);
		return -1;
	}
	compare_idle(p);
	p->diff.appeared = only_in(p, 1, &p->diff.appeared_count);
	p->diff.vanished = only_in(p, 0, &p->diff.vanished_count);
	p->diff.class_changed = before->analysis->verdict.class_ != after->analysis->verdict.class_;
	if (p->failed) {
		diff_free(&p->diff);
		return fail(err, ERR_MEMORY, "comparing two traces");
	}
	if (p->rows.count)
		qsort(p->rows.items, p->rows.count, sizeof *p->rows.items, compare_rows);
	p->diff.rows = p->rows.items;
	p->diff.row_count = p->rows.count;
	*out = &p->diff;
	return 0;
}

void diff_free(struct diff *diff)
{
	struct diff_private *p = diff ? diff->private_ : NULL;

	if (!p)
		return;
	list_done(&p->rows);
	list_done(&p->pairs);
	map_done(&p->index);
	strings_free(p->strings);
	arena_done(&p->arena);
	free(p);
}

const char *diff_kind_name(enum diff_kind kind)
{
	static const char *const names[DIFF_KINDS] = { "latency", "function", "kernel", "idle" };

	return (unsigned)kind < DIFF_KINDS ? names[kind] : "unknown";
}
