/* What every reader of an ELF file here needs. */
#include "unwind/elf_bytes.h"

#include "unwind/machine.h"

#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

unsigned char *elf_bytes_read(int fd, uint64_t offset, size_t *size)
{
	struct stat st;
	unsigned char *bytes;
	size_t have = 0;

	if (fstat(fd, &st) != 0 || st.st_size < 0 || offset >= (uint64_t)st.st_size)
		return NULL;
	if (*size > (uint64_t)st.st_size - offset)
		*size = (uint64_t)st.st_size - offset;
	bytes = malloc(*size + 1);
	if (!bytes)
		return NULL;
	while (have < *size) {
		ssize_t got = pread(fd, bytes + have, *size - have, (off_t)(offset + have));

		if (got <= 0)
			break;
		have += (size_t)got;
	}
	if (have == 0) {
		free(bytes);
		return NULL;
	}
	bytes[have] = '\0';
	*size = have;
	return bytes;
}

Elf *elf_bytes_open(int fd)
{
	GElf_Ehdr header;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getclass(elf) == ELFCLASS64 && gelf_getehdr(elf, &header) && header.e_machine == MACHINE_FILE
	    && header.e_ident[EI_DATA] == ELFDATA2LSB)
		return elf;
	elf_end(elf);
	return NULL;
}

Elf_Scn *elf_bytes_section(Elf *elf, const char *name, GElf_Shdr *out)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *found = gelf_getshdr(section, out) ? elf_strptr(elf, names, out->sh_name) : NULL;

		if (found && strcmp(found, name) == 0)
			return section;
	}
	return NULL;
}

void elf_bytes_build_id(Elf *elf, char *hex, size_t size)
{
	const void *id = NULL;
	ssize_t length = dwelf_elf_gnu_build_id(elf, &id);

	hex[0] = '\0';
	for (ssize_t i = 0; i < length && (size_t)i * 2 + 2 < size; i++)
		snprintf(hex + i * 2, 3, "%02x", ((const unsigned char *)id)[i]);
}
