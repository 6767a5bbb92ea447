/* Perf maps as text and JIT dumps made by hand: what they name, and what is damaged in them. */
#include "unwind/jitnames.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { DUMP_MAX = 65536 };

/* A JIT dump while it is written. */
struct dump {
	unsigned char bytes[DUMP_MAX];
	size_t size, record;
};

static void put(struct dump *dump, const void *bytes, size_t size)
{
	memcpy(dump->bytes + dump->size, bytes, size);
	dump->size += size;
}

static void put32(struct dump *dump, uint32_t value)
{
	put(dump, &value, sizeof value);
}

static void put64(struct dump *dump, uint64_t value)
{
	put(dump, &value, sizeof value);
}

static void begin(struct dump *dump, uint32_t id)
{
	dump->record = dump->size;
	put32(dump, id);
	put32(dump, 0);
	put64(dump, 0);
}

static void end(struct dump *dump)
{
	uint32_t length = (uint32_t)(dump->size - dump->record);

	memcpy(dump->bytes + dump->record + 4, &length, sizeof length);
}

static void put_load(struct dump *dump, uint64_t start, uint64_t size, const char *name)
{
	begin(dump, 0);
	put32(dump, 1); put32(dump, 1); put64(dump, start); put64(dump, start); put64(dump, size); put64(dump, 7);
	put(dump, name, strlen(name) + 1);
	put(dump, "\x90\xc3", 2);
	end(dump);
}

static void put_move(struct dump *dump, uint64_t from, uint64_t to, uint64_t size)
{
	begin(dump, 1);
	put32(dump, 1); put32(dump, 1); put64(dump, from); put64(dump, from); put64(dump, to); put64(dump, size); put64(dump, 7);
	end(dump);
}

static void put_line(struct dump *dump, uint64_t addr, uint32_t line, const char *file)
{
	put64(dump, addr); put32(dump, line); put32(dump, 0);
	put(dump, file, strlen(file) + 1);
}

static struct jitnames *names_new(void)
{
	struct jitnames *names = calloc(1, sizeof *names);

	names->names = strings_new();
	return names;
}

static void names_free(struct jitnames *names)
{
	jitnames_done(names);
	strings_free(names->names);
	free(names);
}

/* The name at ADDR, "" when there is none. */
static const char *name_at(struct jitnames *names, uint64_t addr)
{
	const char *name, *file;
	uint32_t line;

	return jitnames_find(names, addr, &name, &file, &line) ? name : "";
}

static size_t add_map(struct jitnames *names, const char *text)
{
	return jitnames_add_map(names, text, strlen(text));
}

Test(perf_map, rows_in_any_order)
{
	struct jitnames *names = names_new();

	cr_expect_eq(add_map(names, "2000 10 py::later:/srv/app.py\n0x1000 20 with blanks in it\n1800 8 C\r\n"), 68u);
	cr_expect_str_eq(name_at(names, 0x2000), "py::later:/srv/app.py");
	cr_expect_str_eq(name_at(names, 0x101f), "with blanks in it");
	cr_expect_str_eq(name_at(names, 0x1800), "C");
	cr_expect_str_eq(name_at(names, 0x1020), "");
	cr_expect_str_eq(name_at(names, 0xfff), "");
	cr_expect_eq(names->rejected, 0u);
	names_free(names);
}

Test(perf_map, memory_that_is_used_again_has_the_later_name)
{
	struct jitnames *names = names_new();

	add_map(names, "1000 100 old\n");
	cr_expect_str_eq(name_at(names, 0x1050), "old");
	add_map(names, "1040 20 new\n3000 10 other\n");
	cr_expect_str_eq(name_at(names, 0x1050), "new");
	cr_expect_str_eq(name_at(names, 0x1010), "", "the old function is gone, not cut");
	names_free(names);
}

Test(perf_map, an_unfinished_row_waits)
{
	struct jitnames *names = names_new();

	cr_expect_eq(add_map(names, "1000 10 whole\n2000 10 hal"), 14u);
	cr_expect_str_eq(name_at(names, 0x2000), "");
	cr_expect_eq(add_map(names, "2000 10 half\n"), 13u);
	cr_expect_str_eq(name_at(names, 0x2000), "half");
	names_free(names);
}

Test(perf_map, garbage_is_counted_and_names_nothing)
{
	static const char garbage[] = "\nhello\n10\n10 \n10 20\n10 20 \nzz 10 name\n10 0 empty\nffffffffffffffff 10 wraps\n11112222333344445 10 long\n-5 10 minus\n"
		"10 ffffffffff huge\n \n";
	struct jitnames *names = names_new();

	cr_expect_eq(jitnames_add_map(names, garbage, sizeof garbage - 1), sizeof garbage - 1);
	cr_expect_eq(names->entries.count, 0u);
	cr_expect_eq(names->rejected, 13u);
	names_free(names);
}

Test(jit_dump, names_and_lines)
{
	struct dump *dump = calloc(1, sizeof *dump);
	struct jitnames *names = names_new();
	const char *name, *file;
	uint32_t line;

	begin(dump, 2);
	put64(dump, 0x5000); put64(dump, 3);
	put_line(dump, 0x5000, 11, "/srv/a.js");
	put_line(dump, 0x5008, 12, "\xff");
	put_line(dump, 0x5010, 90, "/srv/b.js");
	end(dump);
	put_load(dump, 0x5000, 0x20, "work");
	put_load(dump, 0x6000, 0x20, "plain");
	cr_expect_eq(jitnames_add_dump(names, dump->bytes, dump->size), dump->size);
	cr_assert(jitnames_find(names, 0x500c, &name, &file, &line));
	cr_expect_str_eq(name, "work");
	cr_expect_str_eq(file, "/srv/a.js");
	cr_expect_eq(line, 12u);
	cr_assert(jitnames_find(names, 0x501f, &name, &file, &line));
	cr_expect_str_eq(file, "/srv/b.js");
	cr_assert(jitnames_find(names, 0x6000, &name, &file, &line));
	cr_expect_str_eq(file, "");
	names_free(names);
	free(dump);
}

Test(jit_dump, code_that_moves_keeps_its_name)
{
	struct dump *dump = calloc(1, sizeof *dump);
	struct jitnames *names = names_new();

	put_load(dump, 0x5000, 0x20, "wanders");
	put_move(dump, 0x5000, 0x7000, 0x20);
	put_move(dump, 0x7000, 0x9000, 0x20);
	put_move(dump, 0xdead, 0xa000, 0x20);
	jitnames_add_dump(names, dump->bytes, dump->size);
	cr_expect_str_eq(name_at(names, 0x7010), "wanders");
	cr_expect_str_eq(name_at(names, 0x9010), "wanders");
	cr_expect_str_eq(name_at(names, 0xa000), "");
	cr_expect_eq(names->rejected, 1u);
	names_free(names);
	free(dump);
}

Test(jit_dump, a_cut_record_waits_and_a_wrong_one_ends_it)
{
	struct dump *dump = calloc(1, sizeof *dump);
	struct jitnames *names = names_new();
	size_t first;

	put_load(dump, 0x5000, 0x20, "first");
	first = dump->size;
	put_load(dump, 0x6000, 0x20, "second");
	for (size_t size = first; size < dump->size; size++)
		cr_assert_eq(jitnames_add_dump(names, dump->bytes, size), first);
	cr_expect_str_eq(name_at(names, 0x6000), "");
	memset(dump->bytes + first + 4, 0, 4); /* a record of no length would be read for ever */
	cr_expect_eq(jitnames_add_dump(names, dump->bytes, dump->size), dump->size);
	cr_expect_eq(names->rejected, 1u);
	names_free(names);
	free(dump);
}

Test(jit_dump, is_known_by_its_header)
{
	struct dump *dump = calloc(1, sizeof *dump);

	put32(dump, 0x4a695444); put32(dump, 1); put32(dump, 40); put32(dump, 62);
	put32(dump, 0); put32(dump, 1); put64(dump, 0); put64(dump, 0);
	cr_expect_eq(jitdump_header(dump->bytes, dump->size), 40u);
	cr_expect_eq(jitdump_header(dump->bytes, dump->size - 1), 0u);
	dump->bytes[12] = 183; /* another machine */
	cr_expect_eq(jitdump_header(dump->bytes, dump->size), 0u);
	free(dump);
}
