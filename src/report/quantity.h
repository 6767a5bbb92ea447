/* Numbers as people read them: three significant digits and a unit, from integers, the same in every locale. */
#ifndef INFERSCOPE_REPORT_QUANTITY_H
#define INFERSCOPE_REPORT_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

enum quantity_flag {
	QUANTITY_ABOUT = 1, /* an estimate: begins with ~ */
	QUANTITY_ASCII = 2, /* us, not µs; - for unknown */
};

struct quantity { char text[40]; };

struct quantity quantity_ns(uint64_t ns, unsigned flags);      /* "45.6 ms" */
struct quantity quantity_count(uint64_t count, unsigned flags); /* "1,234,567"; "~1.23 M" when about */
struct quantity quantity_short(uint64_t count, unsigned flags); /* "1.23 M" */
struct quantity quantity_bytes(uint64_t bytes, unsigned flags); /* "1.50 GiB" */
struct quantity quantity_pct(double pct, unsigned flags);       /* "12.3 %", "<0.1 %" */
struct quantity quantity_error(double pct);                     /* of what is not below zero: likewise, and ">100 %" beyond */
struct quantity quantity_confidence(double share);               /* 0–1 as "60 %" */
/* A value with the unit of a metric: ns, count, ratio, pct, bytes, per_second, or a word that follows it (cores). NAN is "–". */
struct quantity quantity_of(double value, const char *unit, unsigned flags);
/* For CSS and JSON: plain digits, at most DECIMALS after the point, no trailing zeros; VALUE must be finite. */
struct quantity quantity_plain(double value, unsigned decimals);

#endif
