/* The parts of unwind/, put together for one process. */
#include "session/joiner.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "session/loops.h"
#include "session/reader.h"

#define MODULES_NS 1000000000ull /* the map of a large process takes milliseconds to read */
#define UNKNOWN_NS 100000000ull  /* but a stack that could not be walked to its end may have met a new library */
enum { ENTRY_BYTES = 64 /* of what the interpreter's loop keeps at an entry: the frame (3.12 and later) begins with its code and the frame outside of it */ };

struct joiner {
	const struct target *target;
	struct remote_memory memory;
	struct modules *modules;
	struct walker *walker;
	struct symbols *symbols;
	int python_minor;
	uint64_t modules_ns;           /* when the map is read again */
	struct map loop_of;            /* address << 1 | is a return address: 1 when it lies in the interpreter's loop, else 0 */
	struct loops loops;
	struct { const char *name; uint32_t which; } met[LOOPS_MAX]; /* in the join at hand: not known to be the loop, but seen to run Python frames */
	uint32_t met_count;
};

int joiner_open(const struct target *target, const struct procfs *procfs, bool debuginfod, struct joiner **out, struct error *err)
{
	const struct symbols_options names = { .debuginfod = debuginfod };
	struct joiner *joiner = calloc(1, sizeof *joiner);
	pid_t pid = target_facts(target)->pid;

	if (!joiner)
		return fail(err, ERR_MEMORY, "walking native stacks");
	joiner->target = target;
	joiner->memory = reader_memory(target);
	joiner->python_minor = target_facts(target)->python_minor;
	joiner->modules_ns = clock_monotonic_ns() + MODULES_NS;
	if (modules_open(procfs, pid, &joiner->modules, err) < 0 || walker_open(joiner->modules, &joiner->memory, &joiner->walker, err) < 0
	    || symbols_open(procfs, pid, joiner->modules, &names, &joiner->symbols, err) < 0) {
		joiner_close(joiner);
		return -1;
	}
	*out = joiner;
	return 0;
}

const char *joiner_debuginfod_problem(const struct joiner *joiner)
{
	return symbols_debuginfod_problem(joiner->symbols);
}

void joiner_close(struct joiner *joiner)
{
	if (!joiner)
		return;
	symbols_close(joiner->symbols);
	walker_close(joiner->walker);
	modules_close(joiner->modules);
	map_done(&joiner->loop_of);
	free(joiner);
}

/* Is anything in it another? */
static bool map_read(struct joiner *joiner)
{
	joiner->modules_ns = clock_monotonic_ns() + MODULES_NS;
	if (modules_refresh(joiner->modules) <= 0)
		return false;
	walker_forget(joiner->walker);
	return true;
}

void joiner_refresh(struct joiner *joiner)
{
	if (clock_monotonic_ns() >= joiner->modules_ns)
		map_read(joiner);
}

void joiner_walk(struct joiner *joiner, const struct thread_copy *copy, struct native_stack *out)
{
	walker_walk(joiner->walker, copy, out);
	if (out->end == WALK_CUT_TABLES && joiner->modules_ns > copy->at_ns + UNKNOWN_NS)
		joiner->modules_ns = copy->at_ns + UNKNOWN_NS;
}

void joiner_walk_newest(struct joiner *joiner, const struct thread_copy *copy, struct native_stack *out)
{
	joiner_walk(joiner, copy, out);
	if (out->end == WALK_CUT_TABLES && out->count > 0 && out->frames[out->count - 1].module == 0 && map_read(joiner))
		joiner_walk(joiner, copy, out);
}

/* ---- what the join asks ---- */

/* The outermost function at the frame's address: not one that is inlined there. */
static const char *name_of(struct joiner *joiner, const struct native_stack *native, uint32_t which)
{
	struct symbol found[SYMBOL_INLINES_MAX];
	size_t count = symbols_find(joiner->symbols, native->frames[which].ip, which > 0, found);

	return found[count - 1].name;
}

static bool rule_evaluator(void *context, const struct native_stack *native, uint32_t which)
{
	struct joiner *joiner = context;
	uint64_t key = native->frames[which].ip << 1 | (which > 0);
	uint32_t known = map_get(&joiner->loop_of, key);

	if (known == MAP_ABSENT) {
		known = loops_have(&joiner->loops, name_of(joiner, native, which));
		map_put(&joiner->loop_of, key, known);
	}
	return known;
}

static bool rule_hidden(void *context, const struct native_stack *native, uint32_t which)
{
	return joiner_hides(context, native, which);
}

static void rule_runs(void *context, const struct native_stack *native, uint32_t which)
{
	struct joiner *joiner = context;
	const char *name;

	if (joiner->met_count == LOOPS_MAX || rule_evaluator(joiner, native, which))
		return;
	name = name_of(joiner, native, which);
	if (*name == '[') /* "[jit]", "[unknown]": of anything */
		return;
	joiner->met[joiner->met_count].name = name;
	joiner->met[joiner->met_count++].which = which;
}

static bool was_met(const struct joiner *joiner, uint32_t which)
{
	for (uint32_t i = 0; i < joiner->met_count; i++)
		if (joiner->met[i].which == which)
			return true;
	return false;
}

/* Only from stacks that fit together: a name learned wrongly would spoil others. */
static void learn(struct joiner *joiner, const struct native_stack *native)
{
	bool fresh = false, alone = true;

	if (!joiner->met_count)
		return;
	for (uint32_t i = 0; i < native->count; i++)
		alone &= !rule_evaluator(joiner, native, i);
	for (uint32_t i = 0; i < joiner->met_count; i++)
		fresh |= loops_met(&joiner->loops, joiner->met[i].name, alone);
	if (fresh)
		map_done(&joiner->loop_of);
}

/* The native frame with the outermost entry; count when there is none. */
static uint32_t outermost_loop(const struct pystack *python, const struct native_stack *native, uint64_t *entry)
{
	uint32_t i = 0;

	*entry = python->cut || !python->count ? 0 : python->entry[python->count - 1];
	while (i < native->count && (*entry < native->frames[i].sp || *entry >= native->frames[i].cfa))
		i++;
	return *entry ? i : native->count;
}

/* Do the bytes at ADDR still say what they said in COPY? */
static bool stands(struct joiner *joiner, const struct thread_copy *copy, uint64_t addr)
{
	unsigned char now[ENTRY_BYTES];
	uint64_t offset = addr - copy->regs[DWARF_SP];

	return offset <= copy->stack_size && copy->stack_size - offset >= sizeof now && joiner->memory.read(joiner->memory.context, addr, now, sizeof now) == 0
		&& memcmp(now, copy->stack + offset, sizeof now) == 0;
}

static void learn_misses(struct joiner *joiner, const struct native_stack *native)
{
	for (uint32_t i = 0; i < native->count && joiner->loops.candidate_count; i++)
		if (!was_met(joiner, i))
			loops_missed(&joiner->loops, name_of(joiner, native, i));
}

void joiner_meet(struct joiner *joiner, const struct thread_copy *copy, const struct pystack *python, const struct native_stack *native)
{
	uint64_t entry;
	uint32_t which = outermost_loop(python, native, &entry);

	if (which == native->count || native->end != WALK_COMPLETE || rule_evaluator(joiner, native, which) || !stands(joiner, copy, entry))
		return;
	joiner->met_count = 0;
	rule_runs(joiner, native, which);
	learn(joiner, native);
}

static struct join_rules rules_of(struct joiner *joiner, uint64_t still_above)
{
	return (struct join_rules){ joiner->python_minor, still_above, rule_evaluator, rule_hidden, rule_runs, joiner };
}

static void join(struct joiner *joiner, const struct pystack *python, const struct native_stack *native, uint64_t still_above, struct joined_stack *out)
{
	const struct join_rules rules = rules_of(joiner, still_above);

	joiner->met_count = 0;
	join_stacks(python, native, &rules, out);
}

void joiner_join(struct joiner *joiner, const struct pystack *python, const struct native_stack *native, uint64_t still_above, struct joined_stack *out)
{
	join(joiner, python, native, still_above, out);
	if (out->result != JOIN_WHOLE || still_above || !native)
		return;
	learn(joiner, native);
	learn_misses(joiner, native);
}

void joiner_join_recalled(struct joiner *joiner, const struct pystack *python, const struct native_stack *native, struct joined_stack *out)
{
	join(joiner, python, native, 0, out);
}

bool joiner_recall(struct joiner *joiner, struct pymoment *moment, const struct thread_copy *copy, const struct native_stack *native, uint64_t still_above, const struct pystack *later, struct pystack *out)
{
	const struct join_rules rules = rules_of(joiner, still_above);

	return pymoment_stack(moment, copy, native, &rules, later, out);
}

const char *joiner_source(struct joiner *joiner, const struct module *module)
{
	return symbols_source(joiner->symbols, module);
}

size_t joiner_names(struct joiner *joiner, const struct native_stack *native, uint32_t which, struct symbol out[SYMBOL_INLINES_MAX], const struct module **module)
{
	uint64_t ip = native->frames[which].ip;

	*module = modules_find(joiner->modules, which > 0 ? ip - 1 : ip);
	return symbols_find(joiner->symbols, ip, which > 0, out);
}

bool joiner_hides(struct joiner *joiner, const struct native_stack *native, uint32_t which)
{
	uint64_t ip = native->frames[which].ip;
	const struct module *module = modules_find(joiner->modules, which > 0 ? ip - 1 : ip);

	return module && strstr(module->path, "inferscope-collector");
}
