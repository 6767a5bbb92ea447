/* The two formats, and one sorted table of what they say. JIT dump: tools/perf/Documentation/jitdump-specification.txt of Linux. */
#include "base/search.h"
#include "unwind/jitnames.h"

#include "unwind/machine.h"

#include <elf.h>
#include <string.h>

enum {
	DUMP_MAGIC = 0x4a695444, DUMP_HEADER_BYTES = 40,
	RECORD_BYTES = 16, RECORD_LOAD = 0, RECORD_MOVE = 1, RECORD_LINES = 2,
	LOAD_BYTES = RECORD_BYTES + 40, MOVE_BYTES = RECORD_BYTES + 48, LINES_BYTES = RECORD_BYTES + 16, LINE_BYTES = 16,
	CODE_SIZE_MAX = 1 << 30, RECORD_READ_MAX = 1 << 20, BACK_MAX = 16,
};

void jitnames_done(struct jitnames *names)
{
	list_done(&names->entries);
	list_done(&names->lines);
	map_done(&names->moving);
}

static uint32_t keep(struct jitnames *names, const char *name, size_t length)
{
	if (length > JIT_NAME_MAX)
		length = JIT_NAME_MAX;
	if (names->name_bytes + length > JIT_NAMES_BYTES_MAX)
		return UINT32_MAX;
	names->name_bytes += length + 1;
	return strings_add(names->names, name, length);
}

static void add(struct jitnames *names, uint64_t start, uint64_t size, const char *name, size_t length)
{
	uint32_t id = size > 0 && size <= CODE_SIZE_MAX && start <= UINT64_MAX - size && length > 0 ? keep(names, name, length) : UINT32_MAX;
	struct jit_entry *entry = id != UINT32_MAX ? list_add(&names->entries, JIT_ENTRIES_MAX) : NULL;

	if (!entry) {
		names->rejected++;
		return;
	}
	*entry = (struct jit_entry){ start, (uint32_t)size, id, names->order++ };
	names->sorted = false;
}

/* A hexadecimal number and the blanks behind it; false when there is none. */
static bool hex(const char **at, const char *end, uint64_t *out)
{
	uint64_t value = 0;
	int digits = 0;

	if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] == 'x' || (*at)[1] == 'X'))
		*at += 2;
	for (; *at < end && digits <= 16; (*at)++, digits++) {
		char c = **at;

		if (c >= '0' && c <= '9')
			value = value << 4 | (uint64_t)(c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			value = value << 4 | (uint64_t)((c | 0x20) - 'a' + 10);
		else
			break;
	}
	if (digits == 0 || digits > 16 || *at == end || **at != ' ')
		return false;
	while (*at < end && **at == ' ')
		(*at)++;
	*out = value;
	return true;
}

size_t jitnames_add_map(struct jitnames *names, const char *bytes, size_t size)
{
	const char *at = bytes, *end = bytes + size;

	while (at < end) {
		const char *row = at, *stop = memchr(at, '\n', (size_t)(end - at));
		uint64_t start, length;

		if (!stop)
			break;
		at = stop + 1;
		if (stop > row && stop[-1] == '\r')
			stop--;
		if (hex(&row, stop, &start) && hex(&row, stop, &length))
			add(names, start, length, row, strnlen(row, (size_t)(stop - row)));
		else
			names->rejected++;
	}
	return (size_t)(at - bytes);
}

static uint32_t u32(const unsigned char *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof value);
	return value;
}

static uint64_t u64(const unsigned char *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof value);
	return value;
}

size_t jitdump_header(const unsigned char *bytes, size_t size)
{
	uint32_t length;

	if (size < DUMP_HEADER_BYTES || u32(bytes) != DUMP_MAGIC || u32(bytes + 4) != 1 || u32(bytes + 12) != MACHINE_FILE)
		return 0;
	length = u32(bytes + 8);
	return length >= DUMP_HEADER_BYTES && length <= RECORD_READ_MAX ? length : 0;
}

static void load(struct jitnames *names, const unsigned char *record, size_t size)
{
	const char *name = (const char *)record + LOAD_BYTES;
	uint64_t start = u64(record + 32);
	size_t before = names->entries.count;

	add(names, start, u64(record + 40), name, strnlen(name, size - LOAD_BYTES));
	if (names->entries.count > before)
		map_put(&names->moving, start, names->entries.items[before].name);
}

/* Code that moved keeps its name. */
static void move(struct jitnames *names, const unsigned char *record)
{
	uint32_t name = map_get(&names->moving, u64(record + 32));
	uint64_t start = u64(record + 40);
	const char *text = name != MAP_ABSENT ? strings_get(names->names, name) : "";

	add(names, start, u64(record + 48), text, strlen(text));
	if (name != MAP_ABSENT)
		map_put(&names->moving, start, name);
}

static void add_lines(struct jitnames *names, const unsigned char *record, size_t size)
{
	uint64_t rows = u64(record + 24);
	uint32_t file = 0;

	for (size_t at = LINES_BYTES; rows > 0 && at + LINE_BYTES < size; rows--) {
		const char *name = (const char *)record + at + LINE_BYTES;
		size_t length = strnlen(name, size - at - LINE_BYTES);
		struct jit_line *line;

		if (length == size - at - LINE_BYTES)
			break;
		if (strcmp(name, "\xff") != 0) /* that is: as before */
			file = keep(names, name, length);
		line = file != UINT32_MAX ? list_add(&names->lines, JIT_LINES_MAX) : NULL;
		if (!line)
			break;
		*line = (struct jit_line){ u64(record + at), file, u32(record + at + 8), names->order };
		at += LINE_BYTES + length + 1;
	}
	if (rows > 0)
		names->rejected++;
	names->sorted = false;
}

uint64_t jitnames_add_dump(struct jitnames *names, const unsigned char *bytes, size_t size)
{
	size_t at = 0;

	while (size - at >= RECORD_BYTES) {
		const unsigned char *record = bytes + at;
		uint32_t id = u32(record), length = u32(record + 4);
		size_t have = length <= size - at ? length : size - at;

		if (length < RECORD_BYTES) { /* nothing says where the next one begins */
			names->rejected++;
			return size;
		}
		/* Of a large record the machine code is not needed, and may not be there yet. */
		if (have < length && have < RECORD_READ_MAX)
			break;
		if (id == RECORD_LOAD && have > LOAD_BYTES)
			load(names, record, have);
		else if (id == RECORD_MOVE && have >= MOVE_BYTES)
			move(names, record);
		else if (id == RECORD_LINES && have > LINES_BYTES)
			add_lines(names, record, have);
		if (have < length)
			return (uint64_t)at + length;
		at += length;
	}
	return at;
}

static int by_start(const void *a, const void *b)
{
	const struct jit_entry *one = a, *two = b;

	if (one->start != two->start)
		return one->start < two->start ? -1 : 1;
	return (one->order > two->order) - (one->order < two->order);
}

static int by_addr(const void *a, const void *b)
{
	const struct jit_line *one = a, *two = b;

	if (one->addr != two->addr)
		return one->addr < two->addr ? -1 : 1;
	return (one->order > two->order) - (one->order < two->order);
}

/* Sorts; of entries that overlap the latest stays: memory is used again for other code. */
static void sort(struct jitnames *names)
{
	struct jit_entry *all = names->entries.items;
	size_t kept = 0;

	names->sorted = true;
	if (names->lines.count)
		qsort(names->lines.items, names->lines.count, sizeof *names->lines.items, by_addr);
	if (names->entries.count)
		qsort(all, names->entries.count, sizeof *all, by_start);
	for (size_t i = 0; i < names->entries.count; i++) {
		while (kept > 0 && all[kept - 1].start + all[kept - 1].size > all[i].start && all[kept - 1].order < all[i].order)
			kept--;
		if (kept == 0 || all[kept - 1].start + all[kept - 1].size <= all[i].start)
			all[kept++] = all[i];
	}
	names->entries.count = kept;
}

/* The row that ADDR belongs to: the last one of the code of ENTRY at or before it. */
static const struct jit_line *find_line(const struct jitnames *names, const struct jit_entry *entry, uint64_t addr)
{
	size_t next = search_first(names->lines.count, i, names->lines.items[i].addr <= addr);

	for (size_t back = 0; next > 0 && back < BACK_MAX && names->lines.items[next - 1].addr >= entry->start; next--, back++)
		if (names->lines.items[next - 1].order == entry->order) /* lines are told right before their code */
			return &names->lines.items[next - 1];
	return NULL;
}

bool jitnames_find(struct jitnames *names, uint64_t addr, const char **name, const char **file, uint32_t *line)
{
	const struct jit_line *row;
	size_t next;

	if (!names->sorted)
		sort(names);
	next = search_first(names->entries.count, i, names->entries.items[i].start <= addr);
	if (next == 0 || addr - names->entries.items[next - 1].start >= names->entries.items[next - 1].size)
		return false;
	row = find_line(names, &names->entries.items[next - 1], addr);
	*name = strings_get(names->names, names->entries.items[next - 1].name);
	*file = row ? strings_get(names->names, row->file) : "";
	*line = row ? row->line : 0;
	return true;
}
