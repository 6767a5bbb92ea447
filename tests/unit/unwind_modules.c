/* Modules of this very process, compared with what the loader says, and of processes in a folder that plays /proc. */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/unit/folder.h"
#include "unwind/elf_file.h"
#include "unwind/modules.h"

enum { PID = 77 };

static char world[FOLDER_BYTES], proc_root[80], maps_text[4096];
static struct procfs played;

static char *path_of(const char *name)
{
	static char paths[8][256];
	static int next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof paths[0], "%s/%s", world, name);
	return path;
}

static void write_bytes(const char *path, const void *bytes, size_t size, off_t offset)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0700);

	cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
	cr_assert_eq(pwrite(fd, bytes, size, offset), (ssize_t)size);
	close(fd);
}

static void arrange(void)
{
	folder_make(world);
	snprintf(proc_root, sizeof proc_root, "%s/proc", world);
	played.root = proc_root;
	folder_way(world, "proc/77/map_files/");
	folder_way(world, "files/");
	folder_way(world, "view/lib/");
	cr_assert_eq(symlink("/", path_of("proc/77/root")), 0);
	maps_text[0] = '\0';
}

static void clean(void)
{
	folder_remove(world);
}

TestSuite(modules, .init = arrange, .fini = clean);

/* A library with a read-only first page, code whose address is not its offset, and data; build id 0123. */
struct library {
	Elf64_Ehdr head;
	Elf64_Phdr headers[4];
	struct {
		Elf64_Nhdr head;
		char name[4];
		unsigned char id[4];
	} note;
};

enum { TEXT_OFFSET = 0x1000, TEXT_VADDR = 0x3000, DATA_OFFSET = 0x2000, DATA_VADDR = 0x5000, LIBRARY_SIZE = 0x3000, LIBRARY_END = 0x7000 };

static struct library library(void)
{
	struct library library = {
		.head = { .e_type = ET_DYN, .e_machine = EM_X86_64, .e_phoff = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 4 },
		.headers = {
			{ .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x800, .p_memsz = 0x800 },
			{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = TEXT_OFFSET, .p_vaddr = TEXT_VADDR, .p_filesz = 0x900, .p_memsz = 0x900 },
			{ .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_offset = DATA_OFFSET, .p_vaddr = DATA_VADDR, .p_filesz = 0x100, .p_memsz = 0x1800 },
			{ .p_type = PT_NOTE, .p_offset = offsetof(struct library, note), .p_filesz = sizeof library.note, .p_align = 4 },
		},
		.note = { { 4, 4, NT_GNU_BUILD_ID }, "GNU", { 0x01, 0x23, 0xab, 0xff } },
	};

	memcpy(library.head.e_ident, ELFMAG, SELFMAG);
	library.head.e_ident[EI_CLASS] = ELFCLASS64;
	library.head.e_ident[EI_DATA] = ELFDATA2LSB;
	return library;
}

static void write_library(const char *path, const struct library *library)
{
	write_bytes(path, library, sizeof *library, 0);
	cr_assert_eq(truncate(path, LIBRARY_SIZE), 0);
}

/* One more line of maps, of the file at PATH as it is now, shown as SHOWN. */
static void map_file(uint64_t start, uint64_t end, const char *rights, uint64_t offset, const char *path, const char *shown)
{
	size_t length = strlen(maps_text);
	struct stat status;

	cr_assert_eq(stat(path, &status), 0);
	snprintf(maps_text + length, sizeof maps_text - length, "%lx-%lx %s %08lx %02x:%02x %lu   %s\n", start, end, rights, offset, major(status.st_dev),
	         minor(status.st_dev), (unsigned long)status.st_ino, shown);
}

static void map_library(uint64_t base, const char *path, const char *shown)
{
	map_file(base, base + 0x1000, "r--p", 0, path, shown);
	map_file(base + TEXT_VADDR, base + TEXT_VADDR + 0x1000, "r-xp", TEXT_OFFSET, path, shown);
	map_file(base + DATA_VADDR, base + DATA_VADDR + 0x1000, "rw-p", DATA_OFFSET, path, shown);
}

static void map_line(const char *line)
{
	strcat(maps_text, line);
	strcat(maps_text, "\n");
}

static void save_maps(void)
{
	char *path = path_of("proc/77/maps");

	unlink(path);
	write_bytes(path, maps_text, strlen(maps_text), 0);
}

static struct modules *open_played(void)
{
	struct modules *modules = NULL;
	struct error err = { 0 };

	save_maps();
	cr_assert_eq(modules_open(&played, PID, &modules, &err), 0, "%s", err.text);
	return modules;
}

static char read_mark(const struct modules *modules, const struct module *module)
{
	int fd = modules_file(modules, module);
	char mark = 0;

	if (fd < 0)
		return 0;
	cr_assert_eq(pread(fd, &mark, 1, LIBRARY_SIZE - 1), 1);
	close(fd);
	return mark;
}

/* ---- this process ---- */

static int compare_with_loader(struct dl_phdr_info *info, size_t size, void *context)
{
	const struct modules *modules = context;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const struct module *module;
		uint64_t addr = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD)
			continue;
		module = modules_find(modules, addr);
		cr_assert_not_null(module, "%s", info->dlpi_name);
		cr_assert_eq(module->bias, info->dlpi_addr, "%s", info->dlpi_name);
		cr_assert_eq(modules_find(modules, addr + header->p_memsz - 1), module, "%s", info->dlpi_name);
		cr_assert(module->elf && !module->deleted && !module->why[0] && module->id, "%s: %s", info->dlpi_name, module->why);
		cr_assert_eq(module->kind, addr - getauxval(AT_SYSINFO_EHDR) < 4096 ? MODULE_VDSO : MODULE_FILE);
	}
	return 0;
}

Test(modules, are_those_that_the_loader_knows)
{
	struct modules *modules = NULL;
	struct error err;

	cr_assert_eq(modules_open(&procfs_real, getpid(), &modules, &err), 0);
	cr_assert_eq(dl_iterate_phdr(compare_with_loader, modules), 0);
	for (size_t i = 0; i + 1 < modules_count(modules); i++)
		cr_assert_leq(modules_at(modules, i)->end, modules_at(modules, i + 1)->start);
	modules_close(modules);
}

Test(modules, open_the_file_that_is_mapped_and_the_vdso)
{
	unsigned char magic[4], *code = (unsigned char *)(uintptr_t)strtol, byte;
	struct modules *modules = NULL;
	const struct module *module;
	struct error err;
	int fd;

	cr_assert_eq(modules_open(&procfs_real, getpid(), &modules, &err), 0);
	module = modules_find(modules, (uintptr_t)code);
	fd = modules_file(modules, module);
	for (uint32_t i = 0; i < module->elf->segment_count; i++)
		if (module->elf->segments[i].executable)
			cr_assert_eq(pread(fd, &byte, 1, (off_t)((uintptr_t)code - module->bias - module->elf->segments[i].vaddr + module->elf->segments[i].offset)), 1);
	cr_assert_eq(byte, *code);
	close(fd);
	module = modules_find(modules, getauxval(AT_SYSINFO_EHDR));
	cr_assert_eq(module->kind, MODULE_VDSO);
	cr_assert(module->build_id[0] && module->elf->eh_frame_hdr.size);
	fd = modules_file(modules, module);
	cr_assert_eq(pread(fd, magic, 4, 0), 4);
	cr_assert_arr_eq(magic, ELFMAG, 4);
	close(fd);
	modules_close(modules);
}

/* ---- a folder that plays /proc ---- */

Test(modules, take_their_bias_from_program_headers)
{
	struct library bytes = library();
	const struct module *module;
	struct modules *modules;

	write_library(path_of("files/a.so"), &bytes);
	map_library(0x7f0000010000, path_of("files/a.so"), path_of("files/a.so"));
	map_line("7f0000016000-7f0000017000 rw-p 00000000 00:00 0 ");
	modules = open_played();
	cr_assert_eq(modules_count(modules), 1);
	module = modules_find(modules, 0x7f0000010000 + TEXT_VADDR + 5);
	cr_assert_eq(module->kind, MODULE_FILE);
	cr_assert_eq(module->bias, 0x7f0000010000);
	cr_assert_eq(module->start, 0x7f0000010000);
	cr_assert_eq(module->end, 0x7f0000010000 + LIBRARY_END);
	cr_assert_str_eq(module->build_id, "0123abff");
	cr_assert_str_eq(module->path, path_of("files/a.so"));
	cr_assert(!module->deleted);
	cr_assert_eq(modules_find(modules, 0x7f0000010000 + LIBRARY_END), NULL);
	modules_close(modules);
}

Test(modules, know_one_file_that_is_loaded_twice)
{
	struct library bytes = library();
	struct modules *modules;

	write_library(path_of("files/a.so"), &bytes);
	map_library(0x10000, path_of("files/a.so"), path_of("files/a.so"));
	map_library(0x20000, path_of("files/a.so"), path_of("files/a.so"));
	modules = open_played();
	cr_assert_eq(modules_count(modules), 2);
	cr_assert_eq(modules_find(modules, 0x10000)->bias, 0x10000);
	cr_assert_eq(modules_find(modules, 0x23000)->bias, 0x20000);
	modules_close(modules);
}

/* libffi's trampolines: a page of its own text once more, right behind it or before. */
Test(modules, leave_to_a_file_what_a_lone_page_of_it_would_claim)
{
	struct library bytes = library();
	struct modules *modules;

	write_library(path_of("files/a.so"), &bytes);
	map_file(0xf000, 0x10000, "r-xp", TEXT_OFFSET, path_of("files/a.so"), path_of("files/a.so"));
	map_library(0x10000, path_of("files/a.so"), path_of("files/a.so"));
	map_file(0x16000, 0x17000, "r-xp", TEXT_OFFSET, path_of("files/a.so"), path_of("files/a.so"));
	modules = open_played();
	cr_assert_eq(modules_count(modules), 3);
	cr_assert_eq(modules_find(modules, 0xf010)->bias, 0xf000 - TEXT_VADDR);
	for (uint64_t addr = 0x10000; addr < 0x16000; addr += 0x1000)
		cr_assert_eq(modules_find(modules, addr)->bias, 0x10000, "at %lx", (unsigned long)addr);
	cr_assert_eq(modules_find(modules, 0x16010)->bias, 0x16000 - TEXT_VADDR);
	cr_assert_eq(modules_find(modules, 0x16010)->start, 0x16000);
	modules_close(modules);
}

Test(modules, find_a_replaced_file_by_map_files_only)
{
	struct library bytes = library();
	struct modules *modules;

	write_library(path_of("files/a.so"), &bytes);
	write_bytes(path_of("files/a.so"), "O", 1, LIBRARY_SIZE - 1);
	map_library(0x10000, path_of("files/a.so"), path_of("files/a.so"));
	cr_assert_eq(rename(path_of("files/a.so"), path_of("files/old")), 0);
	write_library(path_of("files/a.so"), &bytes);
	modules = open_played();
	cr_assert(modules_at(modules, 0)->deleted);
	cr_assert_eq(read_mark(modules, modules_at(modules, 0)), 0);
	cr_assert_eq(symlink(path_of("files/old"), path_of("proc/77/map_files/10000-11000")), 0);
	cr_assert_eq(read_mark(modules, modules_at(modules, 0)), 'O');
	modules_close(modules);
}

Test(modules, read_the_headers_of_a_deleted_file_from_memory)
{
	struct library bytes = library();
	struct modules *modules;

	write_library(path_of("files/a.so"), &bytes);
	write_bytes(path_of("proc/77/mem"), &bytes, sizeof bytes, 0x10000);
	map_library(0x10000, path_of("files/a.so"), strcat(path_of("files/a.so"), " (deleted)"));
	cr_assert_eq(unlink(path_of("files/a.so")), 0);
	modules = open_played();
	cr_assert_eq(modules_at(modules, 0)->kind, MODULE_FILE);
	cr_assert_str_eq(modules_at(modules, 0)->build_id, "0123abff");
	cr_assert_str_eq(modules_at(modules, 0)->path, path_of("files/a.so"));
	cr_assert(modules_at(modules, 0)->deleted);
	cr_assert_not_null(strstr(modules_at(modules, 0)->why, "memory"));
	cr_assert_eq(modules_file(modules, modules_at(modules, 0)), -1);
	modules_close(modules);
}

Test(modules, find_files_below_the_root_of_the_process)
{
	struct library bytes = library();
	struct modules *modules;

	write_library(path_of("view/lib/a.so"), &bytes);
	write_bytes(path_of("view/lib/a.so"), "V", 1, LIBRARY_SIZE - 1);
	cr_assert_eq(unlink(path_of("proc/77/root")), 0);
	cr_assert_eq(symlink(path_of("view"), path_of("proc/77/root")), 0);
	map_library(0x10000, path_of("view/lib/a.so"), "/lib/a.so");            /* mounts of its own */
	map_library(0x20000, path_of("view/lib/a.so"), path_of("view/lib/a.so")); /* chrooted */
	modules = open_played();
	cr_assert_eq(modules_count(modules), 2);
	for (size_t i = 0; i < 2; i++) {
		cr_assert_str_eq(modules_at(modules, i)->path, "/lib/a.so");
		cr_assert_eq(read_mark(modules, modules_at(modules, i)), 'V');
		cr_assert(!modules_at(modules, i)->deleted);
	}
	modules_close(modules);
}

Test(modules, never_open_a_pipe_that_took_the_place_of_a_file)
{
	struct library bytes = library();
	struct modules *modules;

	write_library(path_of("files/a.so"), &bytes);
	map_library(0x10000, path_of("files/a.so"), path_of("files/a.so"));
	cr_assert_eq(unlink(path_of("files/a.so")), 0);
	cr_assert_eq(mkfifo(path_of("files/a.so"), 0600), 0);
	modules = open_played();
	cr_assert_eq(modules_at(modules, 0)->kind, MODULE_OTHER);
	cr_assert_eq(modules_file(modules, modules_at(modules, 0)), -1);
	modules_close(modules);
}

Test(modules, put_neighbouring_code_of_no_file_together)
{
	struct modules *modules;

	write_bytes(path_of("files/blob"), "#!/bin/sh", 9, 0);
	map_line("10000-11000 r-xp 00000000 00:00 0 ");
	map_line("11000-12000 rwxp 00000000 00:00 0                          [anon:jit]");
	map_line("14000-15000 r-xp 00000000 00:00 0 ");
	map_file(0x20000, 0x21000, "r-xp", 0, path_of("files/blob"), path_of("files/blob"));
	map_file(0x30000, 0x31000, "r-xp", 0, path_of("files/blob"), "/memfd:code (deleted)");
	map_line("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]");
	modules = open_played();
	cr_assert_eq(modules_find(modules, 0x11fff), modules_find(modules, 0x10000));
	cr_assert_eq(modules_find(modules, 0x10000)->kind, MODULE_JIT);
	cr_assert_neq(modules_find(modules, 0x14000), modules_find(modules, 0x10000));
	cr_assert_null(modules_find(modules, 0x13000));
	cr_assert_eq(modules_find(modules, 0x20000)->kind, MODULE_OTHER);
	cr_assert_str_eq(modules_find(modules, 0x20000)->why, "not an ELF file");
	cr_assert_eq(modules_find(modules, 0xffffffffff600000)->kind, MODULE_OTHER);
	modules_close(modules);
}

Test(modules, take_text_on_huge_pages_for_the_files)
{
	struct library bytes = library();
	struct modules *modules;

	bytes.headers[1].p_filesz = bytes.headers[1].p_memsz = 0x1900;
	write_library(path_of("files/a.so"), &bytes);
	map_file(0x10000, 0x11000, "r--p", 0, path_of("files/a.so"), path_of("files/a.so"));
	map_file(0x13000, 0x14000, "r-xp", TEXT_OFFSET, path_of("files/a.so"), path_of("files/a.so"));
	map_line("14000-15000 r-xp 00000000 00:00 0 ");
	modules = open_played();
	cr_assert_eq(modules_count(modules), 1);
	cr_assert_eq(modules_find(modules, 0x14800)->kind, MODULE_FILE);
	modules_close(modules);
}

Test(modules, leave_code_in_a_hole_between_their_segments_to_whoever_made_it)
{
	struct library bytes = library();
	struct modules *modules;

	write_library(path_of("files/a.so"), &bytes);
	map_file(0x10000, 0x11000, "r--p", 0, path_of("files/a.so"), path_of("files/a.so"));
	map_line("11000-11800 rwxp 00000000 00:00 0 ");
	map_line("11800-12000 r-xp 00000000 00:00 0 ");
	map_file(0x13000, 0x14000, "r-xp", TEXT_OFFSET, path_of("files/a.so"), path_of("files/a.so"));
	map_line("14000-15000 r-xp 00000000 00:00 0 ");
	map_file(0x15000, 0x16000, "rw-p", DATA_OFFSET, path_of("files/a.so"), path_of("files/a.so"));
	modules = open_played();
	cr_assert_eq(modules_find(modules, 0x11000)->kind, MODULE_JIT);
	cr_assert_eq(modules_find(modules, 0x11000), modules_find(modules, 0x11fff));
	cr_assert_eq(modules_find(modules, 0x13800)->kind, MODULE_FILE);
	cr_assert_eq(modules_find(modules, 0x13800)->bias, 0x10000);
	cr_assert_str_eq(modules_find(modules, 0x13800)->path, path_of("files/a.so"));
	cr_assert_eq(read_mark(modules, modules_find(modules, 0x13800)), 0);
	cr_assert_eq(modules_find(modules, 0x14800)->kind, MODULE_JIT);
	cr_assert_eq(modules_find(modules, 0x15800)->kind, MODULE_FILE);
	cr_assert_eq(modules_refresh(modules), 0);
	modules_close(modules);
}

Test(modules, keep_their_ids_until_their_place_is_taken)
{
	struct library bytes = library();
	struct modules *modules;
	uint32_t a, b;

	write_library(path_of("files/a.so"), &bytes);
	write_library(path_of("files/b.so"), &bytes);
	map_library(0x10000, path_of("files/a.so"), path_of("files/a.so"));
	map_library(0x20000, path_of("files/b.so"), path_of("files/b.so"));
	modules = open_played();
	a = modules_find(modules, 0x10000)->id;
	b = modules_find(modules, 0x20000)->id;
	cr_assert_neq(a, b);
	cr_assert_eq(modules_refresh(modules), 0);
	cr_assert_eq(modules_find(modules, 0x10000)->id, a);
	maps_text[0] = '\0';
	map_library(0x20000, path_of("files/b.so"), path_of("files/b.so"));
	save_maps();
	cr_assert_eq(modules_refresh(modules), 1);
	cr_assert_eq(modules_find(modules, 0x10000)->id, a);
	cr_assert_eq(read_mark(modules, modules_find(modules, 0x10000)), 0);
	cr_assert_eq(modules_refresh(modules), 0);
	maps_text[0] = '\0';
	map_line("12000-13000 r-xp 00000000 00:00 0 ");
	map_library(0x20000, path_of("files/b.so"), path_of("files/b.so"));
	save_maps();
	cr_assert_eq(modules_refresh(modules), 1);
	cr_assert_null(modules_find(modules, 0x10000));
	cr_assert_eq(modules_find(modules, 0x20000)->id, b);
	cr_assert_gt(modules_find(modules, 0x12000)->id, b);
	modules_close(modules);
}

Test(modules, say_that_a_process_is_gone)
{
	struct modules *modules = NULL;
	struct error err;

	cr_assert_eq(modules_open(&played, PID, &modules, &err), -1);
	cr_assert_eq(err.code, ERR_EXITED);
	save_maps(); /* empty: a zombie's */
	cr_assert_eq(modules_open(&played, PID, &modules, &err), -1);
	cr_assert_eq(err.code, ERR_EXITED);
}

Test(modules, read_30000_mappings)
{
	enum { COUNT = 30000 };
	FILE *file = fopen(path_of("proc/77/maps"), "w");
	struct modules *modules = NULL;
	struct error err;

	cr_assert_not_null(file);
	for (uint64_t i = 0; i < COUNT; i++)
		fprintf(file, "%lx-%lx %s 00000000 00:00 0 \n", 0x100000 + i * 0x2000, 0x101000 + i * 0x2000, i % 2 ? "r-xp" : "rw-p");
	fclose(file);
	cr_assert_eq(modules_open(&played, PID, &modules, &err), 0);
	cr_assert_eq(modules_count(modules), COUNT / 2);
	cr_assert_not_null(modules_find(modules, 0x100000 + 29999 * 0x2000));
	cr_assert_eq(modules_refresh(modules), 0);
	modules_close(modules);
}

/* ---- headers that lie ---- */

struct memory_file {
	const unsigned char *bytes;
	size_t size;
};

static int read_bytes(void *context, uint64_t offset, void *buffer, size_t size)
{
	const struct memory_file *file = context;

	if (offset > file->size || size > file->size - offset)
		return -1;
	memcpy(buffer, file->bytes + offset, size);
	return 0;
}

static const char *read_library(const struct library *library, struct elf_file *out)
{
	struct memory_file file = { (const unsigned char *)library, sizeof *library };
	struct elf_source source = { read_bytes, &file };

	return elf_file_read(&source, out);
}

Test(elf_file, refuses_what_cannot_be_mapped_here)
{
	struct library bytes = library();
	struct elf_file file;

	cr_assert_null(read_library(&bytes, &file));
	bytes.head.e_machine = EM_AARCH64;
	cr_assert_str_eq(read_library(&bytes, &file), "not a file for this machine");
	bytes = library();
	bytes.head.e_type = ET_CORE;
	cr_assert_not_null(read_library(&bytes, &file));
	bytes = library();
	bytes.head.e_phnum = 5000;
	cr_assert_not_null(read_library(&bytes, &file));
	bytes = library();
	bytes.head.e_phoff = UINT64_MAX - 8;
	cr_assert_not_null(read_library(&bytes, &file));
	memset(&bytes.head, 0, sizeof bytes.head);
	cr_assert_str_eq(read_library(&bytes, &file), "not an ELF file");
}

Test(elf_file, leaves_out_segments_that_make_no_sense)
{
	struct library bytes = library();
	struct elf_file file;
	uint64_t low, high;

	bytes.headers[0].p_vaddr = UINT64_MAX - 0x400;
	bytes.headers[2].p_memsz = 1ull << 60;
	bytes.headers[3].p_filesz = UINT64_MAX;
	cr_assert_null(read_library(&bytes, &file));
	cr_assert_eq(file.segment_count, 1);
	cr_assert_str_eq(file.build_id, "");
	elf_file_extent(&file, &low, &high);
	cr_assert_eq(low, TEXT_VADDR);
	cr_assert_eq(high, TEXT_VADDR + 0x1000);
	bytes.headers[1].p_type = PT_NULL;
	cr_assert_str_eq(read_library(&bytes, &file), "it has nothing to load");
}

Test(elf_file, stops_at_a_note_that_is_longer_than_its_segment)
{
	struct library bytes = library();
	struct elf_file file;

	bytes.note.head.n_descsz = 5;
	cr_assert_null(read_library(&bytes, &file));
	cr_assert_str_eq(file.build_id, "");
	bytes.note.head.n_namesz = UINT32_MAX;
	cr_assert_null(read_library(&bytes, &file));
	cr_assert_str_eq(file.build_id, "");
}
