/* Which of several names is given, and where a name ends: symbol tables made by hand. Names as people write them. */
#include "unwind/demangle.h"
#include "unwind/symtab.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One table, whose strings are those added. */
struct made {
	struct symtab symtab;
	struct function_extent extents[8];
	struct functions functions;
};

static void make(struct made *made)
{
	memset(made, 0, sizeof *made);
	made->functions.extents = made->extents;
	made->symtab.strings[0].bytes = calloc(1, 4096);
	made->symtab.strings[0].size = 1;
	made->symtab.tables = 1;
}

static void add(struct made *made, uint64_t addr, uint32_t size, unsigned flags, const char *name)
{
	struct symtab_entry entry = { .addr = addr, .size = size, .flags = (uint8_t)flags, .name = (uint32_t)made->symtab.strings[0].size };

	strcpy(made->symtab.strings[0].bytes + entry.name, name);
	made->symtab.strings[0].size += strlen(name) + 1;
	cr_assert_eq(symtab_push(&made->symtab, &entry), 0);
}

static void add_function(struct made *made, uint64_t start, uint32_t size)
{
	made->extents[made->functions.count++] = (struct function_extent){ start, size };
}

/* The name at ADDR, "" when there is none. Valid until the next call. */
static const char *name_at(struct made *made, uint64_t addr)
{
	static char name[SYMTAB_NAME_MAX];
	const struct symtab_entry *entry = symtab_find(&made->symtab, addr);

	if (!entry)
		return "";
	symtab_name(&made->symtab, entry, name);
	return name;
}

Test(symtab, a_symbol_ends_where_its_size_does)
{
	struct made made;

	make(&made);
	add(&made, 0x100, 0x20, 0, "first");
	add(&made, 0x200, 0x20, 0, "second");
	symtab_finish(&made.symtab, &made.functions);
	cr_expect_str_eq(name_at(&made, 0x11f), "first");
	cr_expect_str_eq(name_at(&made, 0x120), "");
	cr_expect_str_eq(name_at(&made, 0xff), "");
	cr_expect_str_eq(name_at(&made, 0x220), "");
	symtab_done(&made.symtab);
}

Test(symtab, a_symbol_without_size_ends_at_the_next_symbol_or_function)
{
	struct made made;

	make(&made);
	add(&made, 0x100, 0xf00, SYMTAB_SIZELESS, "to_next_symbol");
	add(&made, 0x140, 0xec0, SYMTAB_SIZELESS, "to_next_function");
	add(&made, 0x200, 0xe00, SYMTAB_SIZELESS, "to_its_own_end");
	add_function(&made, 0x180, 0x20);
	add_function(&made, 0x200, 0x10);
	symtab_finish(&made.symtab, &made.functions);
	cr_expect_str_eq(name_at(&made, 0x13f), "to_next_symbol");
	cr_expect_str_eq(name_at(&made, 0x17f), "to_next_function");
	cr_expect_str_eq(name_at(&made, 0x180), "", "an unnamed function begins here");
	cr_expect_str_eq(name_at(&made, 0x20f), "to_its_own_end");
	cr_expect_str_eq(name_at(&made, 0x210), "");
	symtab_done(&made.symtab);
}

Test(symtab, a_label_inside_a_function_is_not_its_name)
{
	struct made made;

	make(&made);
	add(&made, 0x100, 0x100, 0, "function");
	add(&made, 0x140, 0x80, SYMTAB_SIZELESS | SYMTAB_LABEL, "label");
	add(&made, 0x180, 0x10, 0, "nested");
	symtab_finish(&made.symtab, &made.functions);
	cr_expect_str_eq(name_at(&made, 0x150), "function");
	cr_expect_str_eq(name_at(&made, 0x188), "nested");
	cr_expect_str_eq(name_at(&made, 0x1a0), "function");
	symtab_done(&made.symtab);
}

struct alias {
	char one[40], other[40], shown[40];
	unsigned one_flags, other_flags;
};

ParameterizedTestParameters(symtab, aliases_have_one_name)
{
	static struct alias rows[] = {
		{ "write", "__write", "write", 0, 0 },
		{ "__write", "write_impl", "__write", 0, SYMTAB_LOCAL },
		{ "_IO_puts", "puts", "puts", 0, 0 },
		{ "zeta", "beta", "beta", 0, 0 },
		{ "memcpy@@GLIBC_2.14", "memcpy@GLIBC_2.2.5", "memcpy", 0, 0 },
		{ "label", "a_function", "a_function", SYMTAB_LABEL, 0 },
		{ "_ZN3FooC1Ev", "__foo", "_ZN3FooC1Ev", 0, 0 },
		{ "puts", "puts", "puts@plt", SYMTAB_PLT, 0 },
	};

	return cr_make_param_array(struct alias, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct alias *row, symtab, aliases_have_one_name)
{
	struct made one, other;

	make(&one);
	add(&one, 0x100, 0x10, row->one_flags, row->one);
	add(&one, 0x100, 0x10, row->other_flags, row->other);
	symtab_finish(&one.symtab, &one.functions);
	cr_expect_str_eq(name_at(&one, 0x108), row->shown);
	make(&other);
	add(&other, 0x100, 0x10, row->other_flags, row->other);
	add(&other, 0x100, 0x10, row->one_flags, row->one);
	symtab_finish(&other.symtab, &other.functions);
	cr_expect_str_eq(name_at(&other, 0x108), row->shown, "the order in the file must not matter");
	symtab_done(&one.symtab);
	symtab_done(&other.symtab);
}

Test(symtab, pieces_of_a_function_have_its_name)
{
	struct made made;

	make(&made);
	add(&made, 0x100, 0x10, SYMTAB_LOCAL, "work.cold");
	add(&made, 0x200, 0x10, SYMTAB_LOCAL, "work.lto_priv.0.cold");
	add(&made, 0x300, 0x10, SYMTAB_LOCAL, "work.constprop.0");
	add(&made, 0x400, 0x10, SYMTAB_LOCAL, ".cold");
	symtab_finish(&made.symtab, &made.functions);
	cr_expect_str_eq(name_at(&made, 0x100), "work");
	cr_expect_str_eq(name_at(&made, 0x200), "work");
	cr_expect_str_eq(name_at(&made, 0x300), "work.constprop.0");
	cr_expect_str_eq(name_at(&made, 0x400), ".cold");
	symtab_done(&made.symtab);
}

struct mangled {
	char name[96], shown[96];
};

ParameterizedTestParameters(demangle, names_as_people_write_them)
{
	static struct mangled rows[] = {
		{ "deflate", "deflate" },
		{ "_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault" },
		{ "_Z3addii", "add(int, int)" },
		{ "_ZN2at6native3addERKNS_6TensorES3_", "at::native::add(at::Tensor const&, at::Tensor const&)" },
		{ "_Z3maxIdET_S0_S0_", "double max<double>(double, double)" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt" },
		{ "_ZN60_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$4drop17h00112233445566aaE", "<alloc::vec::Vec<T> as core::ops::Drop>::drop" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
		{ "_RNvNtNtCs1234_7mycrate3bar3baz3foo", "mycrate::bar::baz::foo" },
		{ "_Znot_a_name", "_Znot_a_name" },
		{ "_Z", "_Z" },
		{ "_", "_" },
		{ "", "" },
	};

	return cr_make_param_array(struct mangled, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct mangled *row, demangle, names_as_people_write_them)
{
	char text[DEMANGLED_MAX];

	cr_expect_eq(demangle(row->name, text), strlen(text));
	cr_expect_str_eq(text, row->shown);
}

/* Each argument is a pair of the one before: 2^40 words from a few hundred bytes. */
Test(demangle, a_name_that_explodes_is_cut, .timeout = 20)
{
	char name[1024] = "_Z1fSt4pairIiiE", text[DEMANGLED_MAX];

	for (int i = 0; i < 40; i++) {
		static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
		char last[8];

		snprintf(last, sizeof last, i < 36 ? "S%c_" : "S1%c_", digits[i % 36]);
		strcat(strcat(strcat(strcat(name, "S_I"), last), last), "E");
	}
	cr_expect_eq(demangle(name, text), (size_t)DEMANGLED_MAX - 1);
	cr_expect(strncmp(text, "f(std::pair<int, int>, std::pair<std::pair<int, int>, std::pair<int, int> >, ", 70) == 0, "%.100s", text);
	cr_expect_str_eq(text + DEMANGLED_MAX - 4, "...");
}

Test(demangle, a_long_name_is_cut_with_a_mark)
{
	char *name = malloc(3 * DEMANGLED_MAX), text[DEMANGLED_MAX];

	memset(name, 'x', 3 * DEMANGLED_MAX);
	name[3 * DEMANGLED_MAX - 1] = '\0';
	cr_expect_eq(demangle(name, text), (size_t)DEMANGLED_MAX - 1);
	cr_expect_str_eq(text + DEMANGLED_MAX - 5, "x...");
	free(name);
}
