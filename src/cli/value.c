/* Values as people type them: durations, per cents, counts, pids. */
#include "cli/value.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Digits with an optional fraction, as billionths; locale plays no part. */
static bool decimal_parse(const char **text, uint64_t *whole, uint64_t *billionths)
{
	const char *at = *text;
	uint64_t number = 0, fraction = 0, place = 100000000;
	bool digits = false;

	for (; *at >= '0' && *at <= '9'; at++, digits = true) {
		if (number > UINT64_MAX / 100)
			return false;
		number = number * 10 + (uint64_t)(*at - '0');
	}
	if (*at == '.') {
		for (at++; *at >= '0' && *at <= '9'; at++, digits = true) {
			fraction += (uint64_t)(*at - '0') * place;
			place /= 10;
		}
	}
	if (!digits)
		return false;
	*text = at;
	*whole = number;
	*billionths = fraction;
	return true;
}

bool value_duration(const char *text, uint64_t *out_ns)
{
	static const struct { const char *name; uint64_t ns; } units[] = {
		{ "", 1000000000 }, { "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "m", 60000000000 }, { "min", 60000000000 }, { "h", 3600000000000 },
	};
	const uint64_t most = 30ull * 24 * 3600 * 1000000000;
	uint64_t whole, billionths;

	if (!decimal_parse(&text, &whole, &billionths))
		return false;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		if (whole > most / units[i].ns)
			return false;
		*out_ns = whole * units[i].ns + (uint64_t)((unsigned __int128)billionths * units[i].ns / 1000000000);
		return true;
	}
	return false;
}

bool value_moment(const char *text, uint64_t now_unix_ns, uint64_t *out_unix_ns)
{
	uint64_t ns, second;

	if (*text == '@') {
		if (!value_count(text + 1, 1, UINT64_MAX / 1000000000, &second))
			return false;
		*out_unix_ns = second * 1000000000;
		return true;
	}
	if ((*text != '/' && *text != '+') || !value_duration(text + 1, &ns) || (*text == '/' && ns == 0))
		return false;
	*out_unix_ns = *text == '+' ? now_unix_ns + ns : (now_unix_ns / ns + 1) * ns;
	return true;
}

bool value_percent(const char *text, uint32_t *out_ppm)
{
	uint64_t whole, billionths, ppm;

	if (strcmp(text, "none") == 0) {
		*out_ppm = 0;
		return true;
	}
	if (!decimal_parse(&text, &whole, &billionths) || (*text && strcmp(text, "%") != 0) || whole > 100)
		return false;
	ppm = whole * 10000 + billionths / 100000;
	if (ppm == 0 || ppm > 1000000)
		return false;
	*out_ppm = (uint32_t)ppm;
	return true;
}

bool value_count(const char *text, uint64_t lowest, uint64_t highest, uint64_t *out)
{
	uint64_t number = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || number > UINT64_MAX / 100)
			return false;
		number = number * 10 + (uint64_t)(*text - '0');
	}
	if (number < lowest || number > highest)
		return false;
	*out = number;
	return true;
}

bool value_flag(const char *text, bool *out)
{
	static const char *const yes[] = { "yes", "true", "on", "1" }, *const no[] = { "no", "false", "off", "0" };

	for (size_t i = 0; i < 4; i++) {
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
			*out = strcasecmp(text, yes[i]) == 0;
			return true;
		}
	}
	return false;
}

bool value_pid(const char *text, int *out)
{
	uint64_t number;

	if (!value_count(text, 1, INT_MAX, &number))
		return false;
	*out = (int)number;
	return true;
}

bool value_choice(const char *text, const char *choices, unsigned *out)
{
	size_t length = strlen(text);
	unsigned position = 0;

	for (const char *at = choices; *at; position++) {
		size_t word = strcspn(at, "|");

		if (word == length && memcmp(at, text, length) == 0) {
			*out = position;
			return true;
		}
		at += word + (at[word] == '|');
	}
	return false;
}
