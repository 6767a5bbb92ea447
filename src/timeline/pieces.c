#include "base/search.h"
#include "timeline/pieces.h"

bool pieces_add(struct pieces *pieces, uint64_t start_ns, uint64_t end_ns, size_t limit)
{
	struct piece *piece;
	bool failed = false;

	if (end_ns <= start_ns)
		return true;
	/* Most come in order and go on where the last one ended. */
	if (pieces->count && pieces->items[pieces->count - 1].end_ns == start_ns) {
		pieces->items[pieces->count - 1].end_ns = end_ns;
		return true;
	}
	piece = list_add_or_fail(pieces, limit, &failed);
	if (piece)
		*piece = (struct piece){ start_ns, end_ns, 0 };
	return !failed;
}

static uint64_t length_of(const struct piece *piece)
{
	return piece->end_ns - piece->start_ns;
}

static int compare_pieces(const void *left, const void *right)
{
	const struct piece *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

static bool is_sorted(const struct pieces *pieces)
{
	for (size_t i = 1; i < pieces->count; i++)
		if (compare_pieces(&pieces->items[i - 1], &pieces->items[i]) > 0)
			return false;
	return true;
}

void pieces_melt(struct pieces *pieces)
{
	size_t kept = 0;

	if (!pieces->count)
		return;
	if (!is_sorted(pieces))
		qsort(pieces->items, pieces->count, sizeof *pieces->items, compare_pieces);
	for (size_t i = 1; i < pieces->count; i++) {
		if (pieces->items[i].start_ns > pieces->items[kept].end_ns)
			pieces->items[++kept] = pieces->items[i];
		else if (pieces->items[i].end_ns > pieces->items[kept].end_ns)
			pieces->items[kept].end_ns = pieces->items[i].end_ns;
	}
	pieces->count = kept + 1;
	pieces->items[0].before_ns = 0;
	for (size_t i = 1; i < pieces->count; i++)
		pieces->items[i].before_ns = pieces->items[i - 1].before_ns + length_of(&pieces->items[i - 1]);
}

/* Of those from FIRST to before LAST. */
static uint64_t length_between(const struct pieces *pieces, size_t first, size_t last)
{
	return first < last ? pieces->items[last - 1].before_ns + length_of(&pieces->items[last - 1]) - pieces->items[first].before_ns : 0;
}

uint64_t pieces_length(const struct pieces *pieces)
{
	return length_between(pieces, 0, pieces->count);
}

size_t pieces_after(const struct pieces *pieces, uint64_t at_ns)
{
	return search_first(pieces->count, i, pieces->items[i].end_ns <= at_ns);
}

static uint64_t common(const struct piece *piece, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t start = piece->start_ns > start_ns ? piece->start_ns : start_ns, end = piece->end_ns < end_ns ? piece->end_ns : end_ns;

	return end > start ? end - start : 0;
}

uint64_t pieces_touching(const struct pieces *pieces, uint64_t start_ns, uint64_t end_ns)
{
	return length_between(pieces, pieces_after(pieces, start_ns), search_first(pieces->count, i, pieces->items[i].start_ns < end_ns));
}

uint64_t pieces_within(const struct pieces *pieces, uint64_t start_ns, uint64_t end_ns)
{
	size_t first = pieces_after(pieces, start_ns), last = search_first(pieces->count, i, pieces->items[i].start_ns < end_ns);

	if (first >= last)
		return 0;
	if (first + 1 == last)
		return common(&pieces->items[first], start_ns, end_ns);
	return common(&pieces->items[first], start_ns, end_ns) + length_between(pieces, first + 1, last - 1) + common(&pieces->items[last - 1], start_ns, end_ns);
}

bool pieces_intersect(const struct pieces *a, const struct pieces *b, struct pieces *out)
{
	bool room = true;

	for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
		const struct piece *x = &a->items[i], *y = &b->items[j];

		room &= pieces_add(out, x->start_ns > y->start_ns ? x->start_ns : y->start_ns, x->end_ns < y->end_ns ? x->end_ns : y->end_ns, SIZE_MAX);
		if (x->end_ns < y->end_ns)
			i++;
		else
			j++;
	}
	return room;
}

bool pieces_subtract(const struct pieces *from, const struct pieces *less, struct pieces *out)
{
	size_t j = 0;
	bool room = true;

	for (size_t i = 0; i < from->count; i++) {
		uint64_t start = from->items[i].start_ns, end = from->items[i].end_ns;

		while (j < less->count && less->items[j].end_ns <= start)
			j++;
		for (size_t k = j; k < less->count && less->items[k].start_ns < end; k++) {
			room &= pieces_add(out, start, less->items[k].start_ns, SIZE_MAX);
			start = less->items[k].end_ns > start ? less->items[k].end_ns : start;
		}
		room &= pieces_add(out, start, end, SIZE_MAX);
	}
	pieces_melt(out);
	return room;
}
