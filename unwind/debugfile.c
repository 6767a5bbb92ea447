/* Candidates for a debug file, and whether they belong to the file at hand. */
#include "unwind/debugfile.h"

#include "unwind/elf_bytes.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

/* Newer than glibc 2.31 knows (Linux 5.6). */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

enum { CHECKED_MAX = 1 << 30 /* bytes summed up for a check sum */, CHUNK_BYTES = 1 << 16, UNPACKED_MAX = 128 << 20, UNPACK_MEMORY_MAX = 128 << 20, PACKED_MAX = 64 << 20 };

int debugfile_open_in(int root, const char *path)
{
	/* A pipe or device that waits must not hold us. */
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	struct stat st;
	int fd;

	if (root < 0)
		return -1;
	while (*path == '/')
		path++;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
	if (fd < 0 && (errno == ENOSYS || errno == EPERM)) /* before Linux 5.6: links are only followed where they cannot lead out unnoticed: nowhere */
		fd = openat(root, path, (int)how.flags | O_NOFOLLOW);
	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* What a debug file must have in common with its file. */
struct wanted {
	char id[BUILD_ID_HEX_MAX];
	uint32_t crc;
	bool by_crc;
	struct stat main;
};

static bool crc_fits(int fd, const struct stat *st, uint32_t wanted)
{
	unsigned char chunk[CHUNK_BYTES];
	uLong crc = crc32(0, NULL, 0);
	ssize_t got;
	off_t at = 0;

	if (st->st_size > CHECKED_MAX)
		return false;
	while ((got = pread(fd, chunk, sizeof chunk, at)) > 0) {
		crc = crc32(crc, chunk, (uInt)got);
		at += got;
	}
	return got == 0 && crc == wanted;
}

static bool fits(int fd, const struct wanted *wanted)
{
	char id[BUILD_ID_HEX_MAX];
	struct stat st;
	Elf *elf;

	if (fstat(fd, &st) != 0 || (st.st_dev == wanted->main.st_dev && st.st_ino == wanted->main.st_ino))
		return false;
	elf = elf_bytes_open(fd);
	if (!elf)
		return false;
	elf_bytes_build_id(elf, id, sizeof id);
	elf_end(elf);
	if (wanted->id[0] && id[0])
		return strcmp(id, wanted->id) == 0;
	return wanted->by_crc && crc_fits(fd, &st, wanted->crc);
}

static int try(const struct debug_places *places, const struct wanted *wanted, char found[DEBUGFILE_PATH_MAX])
{
	const int roots[] = { places->process_root, places->own_root };

	for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
		int fd = debugfile_open_in(roots[i], found);

		if (fd >= 0 && fits(fd, wanted))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

static bool id_path(char *out, const char *folder, const char *id)
{
	return strlen(id) > 2 && snprintf(out, DEBUGFILE_PATH_MAX, "%s/.build-id/%.2s/%s.debug", folder, id, id + 2) < DEBUGFILE_PATH_MAX;
}

static int find_by_link(const struct debug_places *places, const char *link, const char *path, const struct wanted *wanted, char found[DEBUGFILE_PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash + 1 - path) : 0, fd = -1;

	if (strchr(link, '/') || !link[0])
		return -1;
	for (int form = 0; form < 3 && fd < 0; form++) {
		int length = form == 0 ? snprintf(found, DEBUGFILE_PATH_MAX, "%.*s%s", folder, path, link)
			: form == 1 ? snprintf(found, DEBUGFILE_PATH_MAX, "%.*s.debug/%s", folder, path, link)
			: snprintf(found, DEBUGFILE_PATH_MAX, "%s%.*s%s", places->folder, folder, path, link);

		if (length < DEBUGFILE_PATH_MAX)
			fd = try(places, wanted, found);
	}
	return fd;
}

int debugfile_find(const struct debug_places *places, Elf *main, int main_fd, const char *path, char found[DEBUGFILE_PATH_MAX])
{
	struct wanted wanted = { .by_crc = false };
	GElf_Word crc = 0;
	const char *link = dwelf_elf_gnu_debuglink(main, &crc);
	int fd = -1;

	if (fstat(main_fd, &wanted.main) != 0)
		return -1;
	elf_bytes_build_id(main, wanted.id, sizeof wanted.id);
	if (id_path(found, places->folder, wanted.id))
		fd = try(places, &wanted, found);
	wanted.by_crc = true;
	wanted.crc = crc;
	if (fd < 0 && link)
		fd = find_by_link(places, link, path, &wanted, found);
	if (fd < 0 && places->debuginfod && wanted.id[0]) {
		fd = debuginfod_fetch(places->debuginfod, wanted.id);
		snprintf(found, DEBUGFILE_PATH_MAX, "debuginfod");
		if (fd >= 0 && !fits(fd, &wanted)) {
			close(fd);
			fd = -1;
		}
	}
	return fd;
}

int debugfile_find_shared(const struct debug_places *places, const char *found, const char *name, const char *id_hex)
{
	struct wanted wanted = { .by_crc = false };
	char path[DEBUGFILE_PATH_MAX];
	const char *slash = strrchr(found, '/');
	int fd = -1;

	snprintf(wanted.id, sizeof wanted.id, "%s", id_hex);
	if (id_path(path, places->folder, id_hex))
		fd = try(places, &wanted, path);
	if (fd < 0 && snprintf(path, sizeof path, "%.*s%s", name[0] == '/' || !slash ? 0 : (int)(slash + 1 - found), found, name) < (int)sizeof path)
		fd = try(places, &wanted, path);
	return fd;
}

unsigned char *debugfile_unpack(Elf *main, size_t *size)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_bytes_section(main, ".gnu_debugdata", &header);
	Elf_Data *data = section && header.sh_type != SHT_NOBITS && header.sh_size <= PACKED_MAX ? elf_rawdata(section, NULL) : NULL;
	lzma_stream stream = LZMA_STREAM_INIT;
	unsigned char *bytes = NULL;
	size_t capacity = 0;
	lzma_ret result = LZMA_OK;

	if (!data || !data->d_buf || lzma_stream_decoder(&stream, UNPACK_MEMORY_MAX, 0) != LZMA_OK)
		return NULL;
	stream.next_in = data->d_buf;
	stream.avail_in = data->d_size;
	while (result == LZMA_OK && capacity < UNPACKED_MAX) {
		unsigned char *grown = realloc(bytes, capacity = capacity ? capacity * 2 : CHUNK_BYTES);

		if (!grown)
			break;
		bytes = grown;
		stream.next_out = bytes + stream.total_out;
		stream.avail_out = capacity - stream.total_out;
		result = lzma_code(&stream, LZMA_FINISH);
	}
	*size = stream.total_out;
	lzma_end(&stream);
	if (result == LZMA_STREAM_END)
		return bytes;
	free(bytes);
	return NULL;
}
