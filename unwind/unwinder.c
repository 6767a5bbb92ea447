/*
 * libunwind's remote interface. It gets one FDE at a time, through a search table of one row, after tables.c has run that FDE's program:
 * libunwind (1.3 to 1.8) ends the program by assert() or reads out of bounds on a CIE without a rule for the CFA, on a return column or a
 * DW_CFA_register beyond the last register. Expressions it bounds itself; those that never end are ended by counting its reads.
 */
#include "unwind/unwinder.h"

#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

enum { READS_MAX = 1 << 19 /* of one walk: 60 frames that are new take some 15 000 */, CACHED_ROWS = 8192, WORD = 8 };

/* What its own lookup is called; exported for perf, declared in no header. */
#define search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
int search_unwind_table(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t *table, unw_proc_info_t *info, int need_unwind_info, void *context);

/* Where the search table of one row seems to lie: in the kernel's half, where no process has memory. */
#define SEARCH_TABLE 0xffffa5a500000000ull

struct unwinder {
	const struct modules *modules;
	struct tables *tables;
	int (*read)(void *context, uint64_t addr, void *buffer, size_t size);
	void *context;
	unw_addr_space_t space;
	/* The walk at hand. */
	const struct thread_copy *copy;
	uint32_t reads;
	bool searching;    /* it reads an entry's head: personality and the like do not matter, and need not be readable */
	struct table_entries entries; /* what find_proc_info() gave out last */
};

/* Tables are read a word at a time, which may hold the end of one entry and the beginning of the next. */
static bool read_entry(const struct cfi_entry *entry, uint64_t addr, unsigned char word[WORD])
{
	bool any = false;

	if (addr - entry->addr + WORD - 1 >= entry->size + WORD - 1)
		return false; /* nowhere near, which is usual */
	for (uint64_t i = 0; i < WORD; i++) {
		uint64_t at = addr + i - entry->addr;

		if (at >= entry->size)
			continue;
		word[i] = entry->bytes[at];
		any = true;
	}
	return any;
}

static int access_mem(unw_addr_space_t space, unw_word_t addr, unw_word_t *value, int write, void *context)
{
	/* start: below every address; where the FDE is, counted from where it is */
	static const int32_t search_row[2] = { INT32_MIN, 0 };
	struct unwinder *unwinder = context;
	unsigned char word[WORD] = { 0 };
	bool fde, cie;

	if (write || ++unwinder->reads > READS_MAX)
		return -UNW_EINVAL;
	/* A word may lie across both entries. */
	fde = read_entry(&unwinder->entries.fde, addr, word);
	cie = read_entry(&unwinder->entries.cie, addr, word);
	if (addr == SEARCH_TABLE)
		memcpy(word, search_row, sizeof word);
	else if (!fde && !cie && !unwinder->searching && unwinder->read(unwinder->context, addr, word, sizeof word) < 0)
		return -UNW_EINVAL;
	memcpy(value, word, sizeof word);
	return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int write, void *context)
{
	const struct unwinder *unwinder = context;

	/* Its numbers are DWARF's. */
	if (write || reg < 0 || reg >= DWARF_COUNT || !(unwinder->copy->known >> reg & 1))
		return -UNW_EBADREG;
	*value = unwinder->copy->regs[reg];
	return 0;
}

/* Never -UNW_ENOINFO: then it would guess. */
static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info, int need_unwind_info, void *context)
{
	struct unwinder *unwinder = context;
	const struct module *module = modules_find(unwinder->modules, ip);
	unw_dyn_info_t table = { 0 };
	int result;

	if (!module || !tables_entries(unwinder->tables, module, ip, &unwinder->entries)) {
		unwinder->entries = (struct table_entries){ 0 };
		return -UNW_EBADFRAME;
	}
	table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	table.start_ip = unwinder->entries.start;
	table.end_ip = unwinder->entries.end;
	table.u.rti.segbase = unwinder->entries.fde.addr;
	table.u.rti.table_data = SEARCH_TABLE;
	table.u.rti.table_len = 1; /* words */
	unwinder->searching = true;
	result = search_unwind_table(space, ip, &table, info, need_unwind_info, context);
	unwinder->searching = false;
	return result < 0 ? -UNW_EBADFRAME : 0;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *context)
{
}

static int no_dynamic_info(unw_addr_space_t space, unw_word_t *addr, void *context)
{
	return -UNW_ENOINFO;
}

static int no_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int write, void *context)
{
	return -UNW_EBADREG;
}

static int no_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *context)
{
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t space, unw_word_t ip, char *buffer, size_t size, unw_word_t *offset, void *context)
{
	return -UNW_ENOINFO;
}

struct unwinder *unwinder_new(const struct modules *modules, struct tables *tables, int (*read)(void *context, uint64_t addr, void *buffer, size_t size), void *context)
{
	unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = no_dynamic_info,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = no_fpreg,
		.resume = no_resume,
		.get_proc_name = no_name,
	};
	struct unwinder *unwinder = calloc(1, sizeof *unwinder);

	if (!unwinder)
		return NULL;
	*unwinder = (struct unwinder){ .modules = modules, .tables = tables, .read = read, .context = context };
	unwinder->space = unw_create_addr_space(&accessors, 0);
	if (!unwinder->space) {
		free(unwinder);
		return NULL;
	}
	unw_set_caching_policy(unwinder->space, UNW_CACHE_GLOBAL);
	unw_set_cache_size(unwinder->space, CACHED_ROWS, 0);
	return unwinder;
}

void unwinder_free(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	unw_destroy_addr_space(unwinder->space);
	free(unwinder);
}

void unwinder_forget(struct unwinder *unwinder)
{
	unw_flush_cache(unwinder->space, 0, 0);
	unwinder->entries = (struct table_entries){ 0 };
}

static void fill_preserved(unw_cursor_t *cursor, struct native_frame *frame)
{
	static const unw_regnum_t registers[PRESERVED_COUNT] = PRESERVED_REGISTERS;
	unw_word_t value;

	for (int i = 0; i < PRESERVED_COUNT; i++)
		if (unw_get_reg(cursor, registers[i], &value) == 0)
			frame->preserved[i] = value;
}

static void fill_frame(const struct unwinder *unwinder, unw_cursor_t *cursor, bool exact, struct native_frame *frame)
{
	const struct module *module;
	unw_word_t ip = 0, sp = 0;

	unw_get_reg(cursor, UNW_REG_IP, &ip);
	unw_get_reg(cursor, UNW_REG_SP, &sp);
	module = modules_find(unwinder->modules, exact ? ip : ip - 1);
	*frame = (struct native_frame){ .ip = ip, .sp = sp, .cfa = sp, .module = module ? module->id : 0 };
	fill_preserved(cursor, frame);
}

bool unwinder_walk(struct unwinder *unwinder, const struct thread_copy *copy, struct native_stack *out)
{
	bool exact = true;
	unw_cursor_t cursor;
	unw_word_t sp;
	int stepped;

	unwinder->copy = copy;
	unwinder->reads = 0;
	unwinder->entries = (struct table_entries){ 0 };
	out->count = 0;
	if (unw_init_remote(&cursor, unwinder->space, unwinder) < 0)
		return false;
	do {
		struct native_frame *frame = &out->frames[out->count];

		fill_frame(unwinder, &cursor, exact, frame);
		out->count++;
		stepped = unw_step(&cursor);
		if (stepped < 0 || unw_get_reg(&cursor, UNW_REG_SP, &sp) < 0)
			return false;
		exact = unw_is_signal_frame(&cursor) > 0; /* of the frame that was left */
		frame->cfa = sp;
		if (sp <= frame->sp && !exact)
			return false;
	} while (stepped > 0 && out->count < WALK_FRAMES_MAX);
	out->end = stepped > 0 ? WALK_CUT_DEPTH : WALK_COMPLETE;
	return true;
}
