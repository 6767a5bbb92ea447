/*
 * From copies of threads to whole stacks: what is mapped in the process, the walk, the names, the join. Needs no look at the threads themselves, so that
 * it may happen any time later.
 */
#ifndef INFERSCOPE_SESSION_JOINER_H
#define INFERSCOPE_SESSION_JOINER_H

#include "inject/inject.h"
#include "unwind/join.h"
#include "unwind/pymoment.h"
#include "unwind/symbols.h"

struct joiner;

/* TARGET and PROCFS must outlive it. As modules_open(), walker_open(), symbols_open(). */
int joiner_open(const struct target *target, const struct procfs *procfs, bool debuginfod, struct joiner **out, struct error *err);
void joiner_close(struct joiner *joiner); /* accepts NULL */
/* Why debuginfod is not asked although it was to be; "" = it is, or need not be. */
const char *joiner_debuginfod_problem(const struct joiner *joiner);
/* Reads what is mapped, if that was long ago; sooner after a walk that met unknown code. */
void joiner_refresh(struct joiner *joiner);
/* Walks COPY. */
void joiner_walk(struct joiner *joiner, const struct thread_copy *copy, struct native_stack *out);
/* The same; where it ends in code of no module the map is read again at once, as a JIT or a library that was just loaded may have come since. */
void joiner_walk_newest(struct joiner *joiner, const struct thread_copy *copy, struct native_stack *out);
/* Before a join of frames that were read later than COPY, which NATIVE was walked from: learns which function is the interpreter's loop, where no symbol tells, from
 * the outermost Python frame, if what its evaluator call keeps on the C stack is the same then and now. */
void joiner_meet(struct joiner *joiner, const struct thread_copy *copy, const struct pystack *python, const struct native_stack *native);
/* Joins the two (either may be NULL). STILL_ABOVE: 0 when they are of one moment, else PYTHON was read later, as join_rules says. */
void joiner_join(struct joiner *joiner, const struct pystack *python, const struct native_stack *native, uint64_t still_above, struct joined_stack *out);
/* … where PYTHON was recalled: nothing is learned of it. */
void joiner_join_recalled(struct joiner *joiner, const struct pystack *python, const struct native_stack *native, struct joined_stack *out);
/* As pymoment_stack(): the Python stack of the moment of COPY, which was walked to NATIVE. */
bool joiner_recall(struct joiner *joiner, struct pymoment *moment, const struct thread_copy *copy, const struct native_stack *native, uint64_t still_above, const struct pystack *later, struct pystack *out);
/* Functions of a native frame, innermost first, as symbols_find(); *MODULE (may be NULL inside) is where it lies. */
size_t joiner_names(struct joiner *joiner, const struct native_stack *native, uint32_t which, struct symbol out[SYMBOL_INLINES_MAX], const struct module **module);
/* What names of MODULE come from, as symbols_source(). */
const char *joiner_source(struct joiner *joiner, const struct module *module);
/* Is it a frame of the collector's, no part of the program? */
bool joiner_hides(struct joiner *joiner, const struct native_stack *native, uint32_t which);

#endif
