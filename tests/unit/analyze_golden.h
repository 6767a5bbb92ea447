/*
 * Traces of rules, two in a file (tests/golden/rules/RULE.trace): what stands before "== fire" belongs to both, then what makes the rule fire, and
 * after "== quiet" what is just below. Lines are those of docs/trace-format.md, ticks are microseconds, and
 *   base cpu=98 [seconds=10]  a process of four CPUs with thread 7, which uses that much of one, hooks on all along, functions 1 main, 2 App.handle
 *   lane meta|session|thread|gpu  the events below are of that lane; thread 7 begins in main
 *   repeat COUNT STEP … end   the lines between, COUNT times, each time STEP later; # counts from 1
 *   scope PATTERN             as --scope
 */
#ifndef TESTS_ANALYZE_GOLDEN_H
#define TESTS_ANALYZE_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>

enum { GOLDEN_SCOPES = 4 };
struct golden_trace { char *text; const char *scopes[GOLDEN_SCOPES]; size_t scope_count; char scope_room[GOLDEN_SCOPES][64]; };

/* PART is "fire" or "quiet". NULL text when there is no such part. The text is the caller's to free. */
struct golden_trace golden_expand(const char *file, const char *part);

#endif
