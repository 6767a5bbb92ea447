/* Functions, inlined calls and lines by libdw. Units are found by their ranges, functions by an index of their unit made at its first use. */
#include "unwind/debuginfo.h"

#include "base/list.h"
#include "base/search.h"
#include "unwind/debug_sections.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	UNITS_MAX = 1 << 20, RANGES_MAX = 8 << 20, ENTRY_SECTIONS = 2, NEST_MAX = 16 /* namespaces and classes */, CHAIN_MAX = 64 /* blocks and inlined calls */,
	LOOKUP_STEPS_MAX = 1 << 20, STEPS_PER_LOOK = 1024 /* at the clock */,
	LINE_PROGRAM_MAX = 8 << 20, LINES_MAX = 64 << 20 /* bytes of line programs: each becomes a hundred in memory */,
};
static const uint64_t TIME_MAX_NS = 10000000000ull; /* CPU time on one file */

struct extent {
	uint64_t start, end;
	uint64_t die; /* a unit's index, or a function's offset */
};

struct extents {
	LIST(struct extent) list;
};

struct unit {
	Dwarf_Off die;
	struct extents functions;
	bool indexed, skeleton;
	bool lines_known, lines_good;
};

struct debuginfo {
	Elf *elf, *shared_elf;
	Dwarf *dwarf, *shared;
	Elf_Data *lines; /* .debug_line */
	const Elf_Data *entries[2 * ENTRY_SECTIONS]; /* .debug_info and .debug_types, of its own and shared; NULL: absent */
	char *line_bytes_copy;
	LIST(struct unit) units;
	struct extents ranges; /* of units */
	uint64_t line_bytes;   /* of programs that were run */
	uint64_t spent_ns, begun_ns;
	uint32_t steps;
	bool limited;
};

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* False when no more may be done for this file. */
static bool step(struct debuginfo *d)
{
	if (++d->steps % STEPS_PER_LOOK == 0 && d->spent_ns + (cpu_ns() - d->begun_ns) > TIME_MAX_NS)
		d->limited = true;
	return !d->limited;
}

static bool add_extent(struct extents *extents, uint64_t start, uint64_t end, uint64_t die)
{
	struct extent *room = start < end ? list_add(&extents->list, RANGES_MAX) : NULL;

	if (room)
		*room = (struct extent){ start, end, die };
	return room || start >= end;
}

static int by_start(const void *a, const void *b)
{
	const struct extent *one = a, *two = b;

	if (one->start != two->start)
		return one->start < two->start ? -1 : 1;
	return (one->die > two->die) - (one->die < two->die);
}

static void sort_extents(struct extents *extents)
{
	if (extents->list.count)
		qsort(extents->list.items, extents->list.count, sizeof *extents->list.items, by_start);
}

static const struct extent *find_extent(const struct extents *extents, uint64_t addr)
{
	size_t next = search_first(extents->list.count, i, extents->list.items[i].start <= addr);

	/* Ranges of one file do not overlap but at dead code that linkers moved to address 0. */
	return next > 0 && addr < extents->list.items[next - 1].end ? &extents->list.items[next - 1] : NULL;
}

/* Adds the address ranges of DIE. */
static void add_ranges(struct debuginfo *d, Dwarf_Die *die, struct extents *extents, uint64_t mark)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t offset = 0;

	while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0 && step(d))
		if (start != 0 && !add_extent(extents, start, end, mark)) {
			d->limited = true;
			return;
		}
}

static bool is_skeleton(Dwarf_Die *unit, uint8_t type)
{
	return type == DW_UT_skeleton || dwarf_hasattr(unit, DW_AT_GNU_dwo_name) || dwarf_hasattr(unit, DW_AT_dwo_name);
}

static void find_units(struct debuginfo *d)
{
	struct unit *unit;
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die die;

	while (dwarf_get_units(d->dwarf, cu, &cu, &version, &type, &die, NULL) == 0 && step(d)) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		unit = list_add(&d->units, UNITS_MAX);
		if (!unit) {
			d->limited = true;
			break;
		}
		unit->die = dwarf_dieoffset(&die);
		unit->skeleton = is_skeleton(&die, type);
		add_ranges(d, &die, &d->ranges, d->units.count - 1);
	}
	sort_extents(&d->ranges);
}

/* Indexes the functions among the children of PARENT. */
static void index_children(struct debuginfo *d, Dwarf_Die *parent, struct extents *functions, int nest)
{
	Dwarf_Die die;

	if (dwarf_child(parent, &die) != 0)
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			add_ranges(d, &die, functions, dwarf_dieoffset(&die));
			break;
		case DW_TAG_namespace: case DW_TAG_class_type: case DW_TAG_structure_type: case DW_TAG_union_type: case DW_TAG_module:
			if (nest < NEST_MAX)
				index_children(d, &die, functions, nest + 1);
			break;
		default:
			break;
		}
	} while (step(d) && dwarf_siblingof(&die, &die) == 0);
}

static void index_unit(struct debuginfo *d, struct unit *unit, Dwarf_Die *die)
{
	unit->indexed = true;
	index_children(d, die, &unit->functions, 0);
	sort_extents(&unit->functions);
}

/* The call inlined at ADDR, or the block around it, among the children of DIE, which becomes it. */
static bool descend(struct debuginfo *d, Dwarf_Die *die, uint64_t addr, uint32_t *steps)
{
	Dwarf_Die child;

	if (dwarf_child(die, &child) != 0)
		return false;
	do {
		int tag = dwarf_tag(&child);

		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) && dwarf_haspc(&child, addr) > 0) {
			*die = child;
			return true;
		}
	} while (step(d) && ++*steps < LOOKUP_STEPS_MAX && dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* May the line program of UNIT be run? Its length is the first number at the unit's place in .debug_line. */
static bool lines_allowed(struct debuginfo *d, struct unit *unit, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Word at;
	uint64_t length = 0;

	if (unit->lines_known)
		return unit->lines_good;
	unit->lines_known = true;
	if (!d->lines || !d->lines->d_buf || !dwarf_attr(die, DW_AT_stmt_list, &attribute) || dwarf_formudata(&attribute, &at) != 0 || d->lines->d_size < 12
	    || at > d->lines->d_size - 12)
		return false;
	memcpy(&length, (const char *)d->lines->d_buf + at, 4);
	if (length == UINT32_MAX)
		memcpy(&length, (const char *)d->lines->d_buf + at + 4, 8);
	if (length > LINE_PROGRAM_MAX || d->line_bytes + length > LINES_MAX) {
		d->limited = true;
		return false;
	}
	d->line_bytes += length;
	return unit->lines_good = true;
}

/* A string that lies among the entries themselves may lack its end there, which libdw (0.188) does not look for. */
static const char *whole_string(const struct debuginfo *d, const char *string)
{
	for (size_t i = 0; string && i < sizeof d->entries / sizeof *d->entries; i++) {
		const char *bytes = d->entries[i] ? d->entries[i]->d_buf : NULL;

		if (bytes && string >= bytes && string < bytes + d->entries[i]->d_size)
			return memchr(string, '\0', d->entries[i]->d_size - (size_t)(string - bytes)) ? string : NULL;
	}
	return string;
}

static void name_frame(const struct debuginfo *d, Dwarf_Die *die, struct debuginfo_frame *frame)
{
	Dwarf_Attribute attribute;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) || dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute)) {
		frame->name = whole_string(d, dwarf_formstring(&attribute));
		frame->linkage = frame->name;
	}
	if (!frame->name)
		frame->name = whole_string(d, dwarf_diename(die));
	if (frame->name && !frame->name[0])
		frame->name = NULL;
}

static uint32_t number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, &value) == 0 && value < UINT32_MAX ? (uint32_t)value : 0;
}

/* Where ADDR stands in the source, for the innermost frame. */
static void place_by_address(Dwarf_Die *unit, uint64_t addr, struct debuginfo_frame *frame)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, addr);
	int number;

	if (!line)
		return;
	frame->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		frame->line = (uint32_t)number;
}

/* Where CALLED was inlined, for the frame around it. */
static void place_by_call(Dwarf_Die *unit, Dwarf_Die *called, struct debuginfo_frame *frame)
{
	Dwarf_Files *files;
	size_t count;
	uint32_t file = number_of(called, DW_AT_call_file);

	frame->line = number_of(called, DW_AT_call_line);
	if (dwarf_getsrcfiles(unit, &files, &count) == 0 && file < count)
		frame->file = dwarf_filesrc(files, file, NULL, NULL);
}

/* The function at ADDR in UNIT and what is inlined there, outermost first. Returns how many. */
static size_t find_chain(struct debuginfo *d, struct unit *unit, Dwarf_Die *unit_die, uint64_t addr, Dwarf_Die chain[CHAIN_MAX], uint64_t *start)
{
	const struct extent *function;
	uint32_t steps = 0;
	size_t count = 1;
	Dwarf_Die die;

	if (!unit->indexed)
		index_unit(d, unit, unit_die);
	function = find_extent(&unit->functions, addr);
	if (!function || !dwarf_offdie(d->dwarf, function->die, &die))
		return 0;
	*start = function->start;
	chain[0] = die;
	for (int depth = 0; depth < CHAIN_MAX && descend(d, &die, addr, &steps); depth++)
		if (dwarf_tag(&die) == DW_TAG_inlined_subroutine && count < CHAIN_MAX)
			chain[count++] = die;
	return count;
}

static size_t find(struct debuginfo *d, uint64_t addr, struct debuginfo_frame out[DEBUGINFO_FRAMES_MAX], uint64_t *start)
{
	const struct extent *range = find_extent(&d->ranges, addr);
	struct unit *unit = range ? &d->units.items[range->die] : NULL;
	Dwarf_Die unit_die, chain[CHAIN_MAX];
	Dwarf_Attribute attribute;
	const char *folder;
	size_t count, kept = 0;
	bool lines;

	if (!unit || unit->skeleton || !dwarf_offdie(d->dwarf, unit->die, &unit_die))
		return 0;
	count = find_chain(d, unit, &unit_die, addr, chain, start);
	lines = lines_allowed(d, unit, &unit_die);
	folder = dwarf_attr(&unit_die, DW_AT_comp_dir, &attribute) ? whole_string(d, dwarf_formstring(&attribute)) : NULL;
	for (size_t i = count; i-- > 0;) {
		struct debuginfo_frame frame = { .folder = folder, .inlined = i > 0 };

		if (kept == DEBUGINFO_FRAMES_MAX - 1 && i > 0) /* the function itself must be the last */
			continue;
		name_frame(d, &chain[i], &frame);
		if (lines && i + 1 == count)
			place_by_address(&unit_die, addr, &frame);
		else if (lines)
			place_by_call(&unit_die, &chain[i + 1], &frame);
		out[kept++] = frame;
	}
	/* Assembler: lines without functions. Where not all functions are known, the line may be that of one that is inlined into what a symbol names. */
	if (count == 0 && lines && !d->limited) {
		out[0] = (struct debuginfo_frame){ .folder = folder };
		place_by_address(&unit_die, addr, &out[0]);
		kept = out[0].file != NULL;
	}
	return kept;
}

size_t debuginfo_find(struct debuginfo *d, uint64_t addr, struct debuginfo_frame out[DEBUGINFO_FRAMES_MAX], uint64_t *start)
{
	size_t count;

	*start = 0;
	if (d->spent_ns > TIME_MAX_NS)
		return 0;
	d->begun_ns = cpu_ns();
	count = find(d, addr, out, start);
	d->spent_ns += cpu_ns() - d->begun_ns;
	return count;
}

static void entries_find(Elf *elf, const Elf_Data *entries[ENTRY_SECTIONS])
{
	entries[0] = debug_section(elf, ".debug_info", ".zdebug_info");
	entries[1] = debug_section(elf, ".debug_types", ".zdebug_types");
}

struct debuginfo *debuginfo_open(Elf *elf)
{
	struct debuginfo *d = calloc(1, sizeof *d);

	if (!d || !(d->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL))) {
		free(d);
		elf_end(elf);
		return NULL;
	}
	d->elf = elf;
	entries_find(elf, d->entries);
	d->lines = debug_section(elf, ".debug_line", ".zdebug_line");
	debug_end_strings(elf);
	if (d->lines && !(d->line_bytes_copy = debug_end_lines(d->lines))) {
		debuginfo_close(d);
		return NULL;
	}
	elf_cntl(elf, ELF_C_FDDONE);
	d->begun_ns = cpu_ns();
	find_units(d);
	d->spent_ns = cpu_ns() - d->begun_ns;
	return d;
}

bool debuginfo_needs_shared(struct debuginfo *d, const char **name, const void **id, size_t *id_size)
{
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(d->dwarf, name, id);

	*id_size = size > 0 ? (size_t)size : 0;
	return size > 0;
}

void debuginfo_set_shared(struct debuginfo *d, Elf *elf)
{
	d->shared = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (!d->shared) {
		elf_end(elf);
		return;
	}
	d->shared_elf = elf;
	entries_find(elf, d->entries + ENTRY_SECTIONS);
	debug_end_strings(elf);
	elf_cntl(elf, ELF_C_FDDONE);
	dwarf_setalt(d->dwarf, d->shared);
}

void debuginfo_close(struct debuginfo *d)
{
	if (!d)
		return;
	dwarf_end(d->dwarf);
	elf_end(d->elf);
	dwarf_end(d->shared);
	elf_end(d->shared_elf);
	for (size_t i = 0; i < d->units.count; i++)
		list_done(&d->units.items[i].functions.list);
	list_done(&d->units);
	list_done(&d->ranges.list);
	free(d->line_bytes_copy);
	free(d);
}

bool debuginfo_limited(const struct debuginfo *d)
{
	return d->limited;
}
