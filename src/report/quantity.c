/* Numbers as people read them. Integers to the last step; no printf of floating point, because that follows the locale. */
#include "report/quantity.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct unit { uint64_t size; const char *name, *ascii; };

static const struct unit TIME_UNITS[] = { { 1, "ns", "ns" }, { 1000, "µs", "us" }, { 1000000, "ms", "ms" }, { 1000000000, "s", "s" } };
static const struct unit COUNT_UNITS[] = { { 1, "", "" }, { 1000, "k", "k" }, { 1000000, "M", "M" }, { 1000000000, "G", "G" }, { 1000000000000, "T", "T" } };
static const struct unit BYTE_UNITS[] = { { 1, "B", "B" }, { 1ull << 10, "KiB", "KiB" }, { 1ull << 20, "MiB", "MiB" }, { 1ull << 30, "GiB", "GiB" }, { 1ull << 40, "TiB", "TiB" } };

static uint64_t divide_rounded(uint64_t value, uint64_t scale, uint64_t by)
{
	return (uint64_t)(((unsigned __int128)value * scale + by / 2) / by);
}

/* VALUE in the largest of the UNITS that leaves at least one digit, with three significant digits. */
static struct quantity three_digits(uint64_t value, const struct unit *units, size_t unit_count, unsigned flags)
{
	struct quantity out;
	const char *about = flags & QUANTITY_ABOUT ? "~" : "";
	size_t at = 0;
	const char *name;
	uint64_t size;

	while (at + 1 < unit_count && divide_rounded(value, 1, units[at].size) >= (units == BYTE_UNITS ? 1024 : 1000))
		at++;
	size = units[at].size;
	name = flags & QUANTITY_ASCII ? units[at].ascii : units[at].name;
	if (size == 1)
		snprintf(out.text, sizeof out.text, "%s%llu", about, (unsigned long long)value);
	else if (divide_rounded(value, 100, size) < 1000)
		snprintf(out.text, sizeof out.text, "%s%llu.%02llu", about, (unsigned long long)(divide_rounded(value, 100, size) / 100), (unsigned long long)(divide_rounded(value, 100, size) % 100));
	else if (divide_rounded(value, 10, size) < 1000)
		snprintf(out.text, sizeof out.text, "%s%llu.%llu", about, (unsigned long long)(divide_rounded(value, 10, size) / 10), (unsigned long long)(divide_rounded(value, 10, size) % 10));
	else
		snprintf(out.text, sizeof out.text, "%s%llu", about, (unsigned long long)divide_rounded(value, 1, size));
	if (*name) {
		size_t length = strlen(out.text);

		snprintf(out.text + length, sizeof out.text - length, " %s", name);
	}
	return out;
}

struct quantity quantity_ns(uint64_t ns, unsigned flags)
{
	static const struct unit minutes[] = { { 60000000000, "min", "min" }, { 3600000000000, "h", "h" } };
	const uint64_t second = 1000000000;

	if (ns < 600 * second)
		return three_digits(ns, TIME_UNITS, 4, flags);
	return three_digits(ns, ns < 6000 * second ? minutes : minutes + 1, 1, flags);
}

struct quantity quantity_short(uint64_t count, unsigned flags)
{
	return three_digits(count, COUNT_UNITS, 5, flags);
}

struct quantity quantity_count(uint64_t count, unsigned flags)
{
	struct quantity out;
	char digits[24];
	size_t length, at = 0;

	if (flags & QUANTITY_ABOUT)
		return quantity_short(count, flags);
	length = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			out.text[at++] = ',';
		out.text[at++] = digits[i];
	}
	out.text[at] = 0;
	return out;
}

struct quantity quantity_bytes(uint64_t bytes, unsigned flags)
{
	return three_digits(bytes, BYTE_UNITS, 5, flags);
}

static struct quantity unknown(unsigned flags)
{
	struct quantity out;

	snprintf(out.text, sizeof out.text, "%s", flags & QUANTITY_ASCII ? "-" : "–");
	return out;
}

struct quantity quantity_pct(double pct, unsigned flags)
{
	struct quantity out;
	const char *about = flags & QUANTITY_ABOUT ? "~" : "";
	long long tenths;

	if (!isfinite(pct) || fabs(pct) > 1e9)
		return unknown(flags);
	tenths = llround(fabs(pct) * 10);
	if (pct != 0 && tenths == 0)
		snprintf(out.text, sizeof out.text, "<0.1 %%");
	else
		snprintf(out.text, sizeof out.text, "%s%s%lld.%lld %%", about, pct < 0 ? "-" : "", tenths / 10, tenths % 10);
	return out;
}

struct quantity quantity_error(double pct)
{
	static const struct quantity beyond = { .text = ">100 %" };

	return isfinite(pct) && pct > 100 ? beyond : quantity_pct(pct, 0);
}

struct quantity quantity_plain(double value, unsigned decimals)
{
	struct quantity out;
	unsigned long long scale = 1, digits;
	size_t length;

	for (unsigned i = 0; i < decimals; i++)
		scale *= 10;
	if (!isfinite(value))
		value = 0;
	if (fabs(value) >= 1e15 || decimals == 0) { /* no fraction left to print; the longest double would not fit */
		snprintf(out.text, sizeof out.text, "%lld", value >= 9.2e18 ? LLONG_MAX : value <= -9.2e18 ? LLONG_MIN : llround(value));
		return out;
	}
	while (fabs(value) * (double)scale >= 1.8e19)
		scale /= 10;
	digits = (unsigned long long)(fabs(value) * (double)scale + 0.5);
	/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): below 10^15 the loop ends before it is 0 */
	length = (size_t)snprintf(out.text, sizeof out.text, "%s%llu", value < 0 && digits ? "-" : "", digits / scale);
	if (digits % scale == 0)
		return out;
	out.text[length++] = '.';
	for (digits %= scale; digits; digits %= scale) {
		scale /= 10;
		out.text[length++] = (char)('0' + digits / scale);
	}
	out.text[length] = 0;
	return out;
}

struct quantity quantity_confidence(double share)
{
	struct quantity out;

	snprintf(out.text, sizeof out.text, "%.8s %%", quantity_plain(share < 0 ? 0 : share > 1 ? 100 : 100 * share, 0).text);
	return out;
}

struct quantity quantity_of(double value, const char *unit, unsigned flags)
{
	struct quantity out, plain;
	bool whole;

	if (!isfinite(value))
		return unknown(flags);
	whole = value >= 0 && value < 1.8e19;
	if (whole && !strcmp(unit, "ns"))
		return quantity_ns((uint64_t)(value + 0.5), flags);
	if (whole && !strcmp(unit, "bytes"))
		return quantity_bytes((uint64_t)(value + 0.5), flags);
	if (!strcmp(unit, "pct"))
		return quantity_pct(value, flags);
	if (whole && value >= 1000 && !strcmp(unit, "count"))
		return quantity_count((uint64_t)(value + 0.5), flags);
	plain = whole && value >= 1000 ? quantity_short((uint64_t)(value + 0.5), 0) : quantity_plain(value, 2);
	if (!strcmp(unit, "per_second"))
		unit = "/s";
	else if (!strcmp(unit, "count") || !strcmp(unit, "ratio"))
		unit = "";
	snprintf(out.text, sizeof out.text, "%s%.24s%s%.10s", flags & QUANTITY_ABOUT ? "~" : "", plain.text, *unit ? " " : "", unit);
	return out;
}
