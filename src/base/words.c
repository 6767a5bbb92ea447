/* The distance of Damerau and Levenshtein, for short words. */
#include "base/words.h"

#include <string.h>

unsigned words_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	enum { LONGEST = 40 };
	unsigned rows[LONGEST + 1][LONGEST + 1];

	if (a_length > LONGEST || b_length > LONGEST)
		return 99;
	for (size_t i = 0; i <= a_length; i++) {
		for (size_t j = 0; j <= b_length; j++) {
			unsigned best;

			if (!i || !j) {
				rows[i][j] = (unsigned)(i + j);
				continue;
			}
			best = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			if (rows[i - 1][j] + 1 < best)
				best = rows[i - 1][j] + 1;
			if (rows[i][j - 1] + 1 < best)
				best = rows[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && rows[i - 2][j - 2] + 1 < best)
				best = rows[i - 2][j - 2] + 1;
			rows[i][j] = best;
		}
	}
	return rows[a_length][b_length];
}

bool words_nearer(const char *name, size_t length, const char *candidate, unsigned *closest)
{
	size_t size = strlen(candidate);
	unsigned distance = words_distance(name, length, candidate, size);

	if (length >= 3 && size > length && memcmp(name, candidate, length) == 0)
		distance = 0; /* the beginning of a name is meant to be it */
	if (distance >= *closest || distance > (size + 2) / 4)
		return false;
	*closest = distance;
	return true;
}
