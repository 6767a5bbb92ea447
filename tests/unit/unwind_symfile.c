/* Names in libraries made on the spot: with debug information, without, with it elsewhere, packed, damaged. nm says where things lie. */
#include "unwind/symfile.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/folder.h"

/* `here` marks a place in `inner`, inlined into `outer`; its line is that of the call. `hidden` and `lone` are functions of two places each. */
static const char source[] =
	"#include <stdio.h>\n"                                                                          /* 1 */
	"static inline __attribute__((always_inline)) void inner(void)\n"                               /* 2 */
	"{\n"
	"	__asm__ volatile(\".globl here\\nhere: nop\");\n"                                       /* 4 */
	"}\n"
	"__attribute__((noinline)) int outer(const char *text)\n"                                                               /* 6 */
	"{\n"
	"	inner();\n"                                                                             /* 8 */
	"	return puts(text) + 1;\n"
	"}\n"
	"static __attribute__((noinline)) int hidden(const char *text)\n"
	"{\n"
	"	__asm__ volatile(\".globl hidden_one\\nhidden_one: nop\");\n"
	"	int n = puts(text) * 3;\n"
	"	__asm__ volatile(\".globl hidden_two\\nhidden_two: nop\");\n"
	"	return n;\n"
	"}\n"
	"int shown(const char *text) { return hidden(text) + outer(text); }\n";

enum { INNER_LINE = 4, CALL_LINE = 8, COMMAND_MAX = 4096 };

static char folder[FOLDER_BYTES];
static struct debug_places places;
static struct strings *names;

static void setup(void)
{
	folder_make(folder);
	folder_write(folder, "lib.c", source);
	names = strings_new();
	places = (struct debug_places){ .process_root = -1, .own_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), .folder = "/nonexistent" };
}

/* Runs a command in the folder. */
static void run(const char *command)
{
	char line[COMMAND_MAX];

	snprintf(line, sizeof line, "cd %s && { %s; } >log 2>&1 || { cat log >&2; false; }", folder, command);
	cr_assert_eq(system(line), 0, "%s", command);
}

static void teardown(void)
{
	folder_remove(folder);
	close(places.own_root);
	strings_free(names);
}

TestSuite(symfile, .init = setup, .fini = teardown, .timeout = 60);

static void build(const char *flags)
{
	char line[COMMAND_MAX];

	snprintf(line, sizeof line, "${CC:-cc} -O2 -shared -fPIC -fno-lto %s -o lib.so lib.c && cp lib.so whole.so", flags);
	run(line);
}

/* The address of a symbol in whole.so, the library before anything was taken from it. */
static uint64_t address(const char *symbol)
{
	char line[COMMAND_MAX];
	unsigned long long addr = 0;
	FILE *pipe;

	snprintf(line, sizeof line, "nm %s/whole.so | awk '$3 == \"%s\" { print $1 }'", folder, symbol);
	pipe = popen(line, "r");
	cr_assert_eq(fscanf(pipe, "%llx", &addr), 1, "no %s", symbol);
	pclose(pipe);
	return addr;
}

static struct symfile *load(const char *name)
{
	char path[128];
	struct symfile *file;
	int fd;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	file = symfile_load(fd, path, &places, names);
	close(fd);
	cr_assert_not_null(file);
	return file;
}

static const char *outer_name(struct symfile *file, uint64_t addr)
{
	struct symbol found[SYMBOL_INLINES_MAX];
	size_t count = symfile_find(file, addr, found);

	return found[count - 1].name;
}

static bool ends_with(const char *text, const char *end)
{
	return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

/* The names and places that debug information tells. */
static void expect_inlined(struct symfile *file)
{
	struct symbol found[SYMBOL_INLINES_MAX];
	size_t count = symfile_find(file, address("here"), found);

	cr_assert_eq(count, 2u, "%zu names, the first is %s, from %s", count, found[0].name, symfile_source(file));
	cr_expect_str_eq(found[0].name, "inner");
	cr_expect(found[0].inlined);
	cr_expect_eq(found[0].line, (uint32_t)INNER_LINE, "line %u", found[0].line);
	cr_expect(ends_with(found[0].file, "/lib.c"), "%s", found[0].file);
	cr_expect_str_eq(found[1].name, "outer");
	cr_expect_not(found[1].inlined);
	cr_expect_eq(found[1].line, (uint32_t)CALL_LINE, "line %u", found[1].line);
	cr_expect_str_eq(outer_name(file, address("hidden_two")), "hidden");
}

static void expect_source(struct symfile *file, const char *begin)
{
	cr_expect(strncmp(symfile_source(file), begin, strlen(begin)) == 0, "%s", symfile_source(file));
}

Test(symfile, inlined_functions_and_lines)
{
	struct symfile *file;

	build("-g");
	file = load("lib.so");
	expect_inlined(file);
	expect_source(file, "debug information");
	symfile_free(file);
}

Test(symfile, packed_debug_sections_and_old_dwarf)
{
	struct symfile *file;

	build("-gdwarf-4 -gz=zlib");
	file = load("lib.so");
	expect_inlined(file);
	symfile_free(file);
}

Test(symfile, debug_file_beside_the_library)
{
	struct symfile *file;

	build("-g -Wl,--build-id=none");
	run("objcopy --only-keep-debug lib.so lib.debug && strip lib.so && objcopy --add-gnu-debuglink=lib.debug lib.so");
	file = load("lib.so");
	expect_inlined(file);
	expect_source(file, "debug information of /tmp/");
	symfile_free(file);
}

Test(symfile, debug_file_of_another_build_is_not_taken)
{
	struct symfile *file;

	build("-g -Wl,--build-id=none");
	run("objcopy --only-keep-debug lib.so lib.debug && strip lib.so && objcopy --add-gnu-debuglink=lib.debug lib.so && printf x >>lib.debug");
	file = load("lib.so");
	cr_expect_str_neq(outer_name(file, address("hidden_two")), "hidden");
	expect_source(file, "dynamic symbols only");
	symfile_free(file);
}

Test(symfile, debug_file_by_build_id_in_a_root)
{
	struct symfile *file;

	build("-g -Wl,--build-id");
	/* Inside of that root, the way goes over a link that is absolute there. */
	run("id=$(readelf -n lib.so | sed -n 's/.*Build ID: //p') && rest=${id#??} && mkdir -p root/real/.build-id/${id%$rest} root/usr/lib && ln -s /real root/usr/lib/debug && "
	    "objcopy --only-keep-debug lib.so root/real/.build-id/${id%$rest}/$rest.debug && strip lib.so");
	close(places.own_root);
	places.own_root = -1;
	char root[128];

	snprintf(root, sizeof root, "%s/root", folder);
	places.process_root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	places.folder = "/usr/lib/debug";
	file = load("lib.so");
	expect_inlined(file);
	expect_source(file, "debug information of /usr/lib/debug/.build-id/");
	symfile_free(file);
	close(places.process_root);
}

Test(symfile, a_stripped_function_has_one_name_that_is_not_its_neighbours)
{
	struct symbol one[SYMBOL_INLINES_MAX], two[SYMBOL_INLINES_MAX];
	struct symfile *file;
	char expected[64];

	build("-fvisibility=default");
	/* The labels would be names. */
	run("strip lib.so -N hidden_one -N hidden_two -N here && sed -i 's/.globl [a-z_]*.n//' lib.c && ${CC:-cc} -O2 -shared -fPIC -o lib.so lib.c && cp lib.so whole.so && strip lib.so");
	file = load("lib.so");
	snprintf(expected, sizeof expected, "lib.so+0x%llx", (unsigned long long)address("hidden"));
	cr_assert_eq(symfile_find(file, address("hidden_one"), one), 1u);
	cr_assert_eq(symfile_find(file, address("hidden_two"), two), 1u);
	cr_expect_str_eq(one[0].name, expected);
	cr_expect_eq(one[0].name, two[0].name, "%s and %s", one[0].name, two[0].name);
	cr_expect_not(one[0].named);
	cr_expect_str_eq(outer_name(file, address("outer") + 1), "outer");
	expect_source(file, "dynamic symbols only: no debug file");
	symfile_free(file);
}

Test(symfile, files_are_called_without_path_and_tag)
{
	static const char *const rows[][2] = {
		{ "/usr/lib/libz.so.1.3", "libz.so.1.3" },
		{ "/x/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so", "onnxruntime_pybind11_state.so" },
		{ "/x/_native.abi3.so", "_native.abi3.so" },
		{ "/x/.cpython-311.so", ".cpython-311.so" },
		{ "/x/a.cpython-3.data", "a.cpython-3.data" },
		{ "[vdso]", "[vdso]" },
		{ "/x/", "/x/" },
	};
	char label[64];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		symfile_label(rows[i][0], label, sizeof label);
		cr_expect_str_eq(label, rows[i][1]);
	}
	symfile_label(rows[1][0], label, 8);
	cr_expect_str_eq(label, "onnxrun", "cut to its room");
}

/* Puts the compressed symbol table into the library, as Fedora does. */
static void pack_symbols(void)
{
	unsigned char *plain = malloc(1 << 20), *packed = malloc(1 << 20);
	size_t size, packed_size = 0;
	char path[128];
	FILE *file;

	run("strip -g -o mini lib.so");
	snprintf(path, sizeof path, "%s/mini", folder);
	file = fopen(path, "r");
	size = fread(plain, 1, 1 << 20, file);
	fclose(file);
	cr_assert_eq(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, plain, size, packed, &packed_size, 1 << 20), LZMA_OK);
	folder_write_bytes(folder, "mini.xz", packed, packed_size);
	free(plain);
	free(packed);
	run("strip lib.so && objcopy --add-section .gnu_debugdata=mini.xz lib.so");
}

Test(symfile, symbols_packed_into_the_library)
{
	struct symfile *file;

	build("");
	pack_symbols();
	file = load("lib.so");
	cr_expect_str_eq(outer_name(file, address("hidden_two")), "hidden");
	expect_source(file, "packed symbol table");
	symfile_free(file);
}

Test(symfile, stubs_have_the_name_of_what_they_call)
{
	struct symfile *file;
	struct symbol found[SYMBOL_INLINES_MAX];
	unsigned long long start, size;
	bool seen = false;
	FILE *pipe;
	char line[COMMAND_MAX];

	build("-Wl,-z,lazy");
	run("strip lib.so");
	file = load("lib.so");
	snprintf(line, sizeof line, "readelf -SW %s/lib.so | sed 's/^ *\\[ *[0-9]*\\] *//' | awk '$1 ~ /^\\.plt(\\.sec)?$/ { print $3, $5 }'", folder);
	pipe = popen(line, "r");
	while (fscanf(pipe, "%llx %llx", &start, &size) == 2)
		for (unsigned long long at = start; at < start + size; at += 16) {
			symfile_find(file, at + 5, found);
			seen = seen || strcmp(found[0].name, "puts@plt") == 0;
		}
	pclose(pipe);
	cr_expect(seen, "no stub is called puts@plt");
	symfile_free(file);
}

Test(symfile, functions_that_are_chosen_at_load_have_the_name_of_what_chooses)
{
	static const char chosen[] =
		"static int state;\n"
		"static __attribute__((noinline)) int copy_small(int x) { return x * 3 + state; }\n"
		"static __attribute__((noinline)) int copy_large(int x) { return x * 5 + state; }\n"
		"static __attribute__((noinline)) int never(int x) { return x * 7 + state; }\n"
		"static int (*choose(void))(int) { return *(volatile int *)&state ? copy_small : copy_large; }\n"
		"int copy(int x) __attribute__((ifunc(\"choose\")));\n"
		"int shown(int x) { return never(x) + never(x + 1); }\n";
	struct symfile *file;
	char path[128], expected[64];
	FILE *out;

	snprintf(path, sizeof path, "%s/lib.c", folder);
	out = fopen(path, "w");
	fputs(chosen, out);
	fclose(out);
	build("");
	run("strip lib.so");
	file = load("lib.so");
	cr_expect_str_eq(outer_name(file, address("copy_small")), "copy");
	cr_expect_str_eq(outer_name(file, address("copy_large") + 1), "copy");
	snprintf(expected, sizeof expected, "lib.so+0x%llx", (unsigned long long)address("never"));
	cr_expect_str_eq(outer_name(file, address("never")), expected);
	symfile_free(file);
}

/* Kernels of BLAS and onnxruntime: a profile of one by instruction is none. */
Test(symfile, assembler_without_a_table_has_one_name)
{
	static const char bare[] = /* functions in assembler, too: compilers do not keep the order of others */
		"__asm__(\".text\\n.globl before\\n.type before,@function\\nbefore:\\n.cfi_startproc\\nlea (%rdi,%rdi,2),%eax\\nret\\n.cfi_endproc\\n.size before,.-before\\n\"\n"
		"\".balign 16\\nbare:\\n.fill 100, 1, 0x90\\nret\\n.fill 100, 1, 0x90\\nret\\n\"\n"
		"\".globl after\\n.type after,@function\\nafter:\\n.cfi_startproc\\nlea (%rdi,%rdi,4),%eax\\nret\\n.cfi_endproc\\n.size after,.-after\\n\");\n";
	struct symfile *file;
	char path[128];
	uint64_t start;
	FILE *out;

	snprintf(path, sizeof path, "%s/lib.c", folder);
	out = fopen(path, "w");
	fputs(bare, out);
	fclose(out);
	build("");
	run("strip lib.so");
	file = load("lib.so");
	start = address("bare");
	cr_expect(strncmp(outer_name(file, start + 7), "lib.so+0x", 9) == 0 && strstr(outer_name(file, start + 7), "..0x"), "%s", outer_name(file, start + 7));
	cr_expect_str_eq(outer_name(file, start + 7), outer_name(file, start + 150));
	cr_expect_str_eq(outer_name(file, address("after")), "after");
	symfile_free(file);
}

Test(symfile, debug_information_beyond_the_bound_is_left_aside)
{
	struct symfile *file;
	Elf64_Ehdr header;
	char path[128];
	bool patched = false;
	int fd;

	build("-g -gz=zlib");
	snprintf(path, sizeof path, "%s/lib.so", folder);
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert_eq(pread(fd, &header, sizeof header, 0), (ssize_t)sizeof header);
	for (int i = 0; i < header.e_shnum; i++) {
		Elf64_Shdr section;
		uint64_t huge = 1ull << 40;

		cr_assert_eq(pread(fd, &section, sizeof section, (off_t)(header.e_shoff + (uint64_t)i * sizeof section)), (ssize_t)sizeof section);
		if (!(section.sh_flags & SHF_COMPRESSED))
			continue;
		cr_assert_eq(pwrite(fd, &huge, sizeof huge, (off_t)(section.sh_offset + offsetof(Elf64_Chdr, ch_size))), (ssize_t)sizeof huge);
		patched = true;
	}
	close(fd);
	cr_assert(patched);
	file = load("lib.so");
	cr_expect_str_eq(outer_name(file, address("hidden_two")), "hidden");
	expect_source(file, "symbol table: its debug information is too large");
	symfile_free(file);
}

/* libdw would take the one or the other. */
Test(symfile, debug_information_with_two_sections_of_a_kind_is_left_aside)
{
	static const char *const others[] = { ".zdebug_str", ".debug_info.dwo", ".gnu.debuglto_.debug_line" };

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		char line[COMMAND_MAX];
		struct symfile *file;

		build("-g");
		snprintf(line, sizeof line, "objcopy --add-section %s=lib.c lib.so", others[i]);
		run(line);
		file = load("lib.so");
		cr_expect_str_eq(outer_name(file, address("hidden_two")), "hidden");
		expect_source(file, "symbol table: its debug information is damaged");
		symfile_free(file);
	}
}

Test(symfile, what_is_no_elf_file_says_so)
{
	struct symfile *file;

	run("echo text >lib.so");
	file = load("lib.so");
	cr_expect_str_eq(outer_name(file, 0x10), "lib.so+0x10");
	expect_source(file, "none: ");
	symfile_free(file);
}

/* Cut at every so many bytes, and with bytes changed at random: any answer will do. */
Test(symfile, damaged_files_do_no_harm)
{
	static unsigned char whole[1 << 20], damaged[1 << 20];
	struct symbol found[SYMBOL_INLINES_MAX];
	uint64_t here, random = 88172645463325252ull;
	char path[128];
	size_t size;
	FILE *in;

	build("-g");
	here = address("here");
	snprintf(path, sizeof path, "%s/lib.so", folder);
	in = fopen(path, "r");
	size = fread(whole, 1, sizeof whole, in);
	fclose(in);
	for (int round = 0; round < 300; round++) {
		size_t length = round < 60 ? size * (size_t)round / 60 : size;
		int fd = memfd_create("damaged", MFD_CLOEXEC);
		struct symfile *file;

		memcpy(damaged, whole, size);
		for (int i = 0; round >= 60 && i < round; i++) {
			random ^= random << 13; random ^= random >> 7; random ^= random << 17;
			damaged[random % size] = (unsigned char)(random >> 32);
		}
		cr_assert_eq(write(fd, damaged, length), (ssize_t)length);
		file = symfile_load(fd, "/tmp/damaged.so", &places, names);
		cr_assert_not_null(file);
		for (uint64_t addr = here; addr < here + 64; addr++)
			cr_assert_geq(symfile_find(file, addr, found), 1u);
		symfile_source(file);
		symfile_free(file);
		close(fd);
	}
}
