/* Is there debug information, and may it be read? Told from section headers, before libdw reads all of it into memory. */
#include "unwind/debuginfo.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <string.h>

#include "base/text.h"

/* DWARF's own sections, packed or not. */
static bool is_debug(const char *name)
{
	return name && (strncmp(name, ".debug_", 7) == 0 || strncmp(name, ".zdebug_", 8) == 0);
}

static const char *section_name(Elf *elf, const GElf_Shdr *header)
{
	size_t names;

	return elf_getshdrstrndx(elf, &names) == 0 ? elf_strptr(elf, names, header->sh_name) : NULL;
}

/*
 * Of several sections of one kind libdw (0.188) takes the first that is not empty, packed or not, and with them those of split DWARF and of link-time optimisation, which linked files have
 * none of. Where it would have a choice, nobody knows whose strings are to be given an end.
 */
static bool is_unclear(const char *name, unsigned *seen)
{
	static const char *const kinds[] = { "info", "types", "line", "str", "line_str" };

	if (strncmp(name, ".gnu.debuglto_", 14) == 0)
		return true;
	if (!is_debug(name))
		return false;
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(strchr(name, '_') + 1, kinds[i]) == 0) {
			if (*seen & 1u << i)
				return true;
			*seen |= 1u << i;
		}
	return text_ends_with(name, ".dwo");
}

enum debuginfo_state debuginfo_look(Elf *elf, uint64_t *bytes)
{
	Elf_Scn *section = NULL;
	uint64_t unpacked = 0;
	unsigned seen = 0;
	bool found = false;
	GElf_Shdr header;
	GElf_Chdr packed;

	*bytes = 0;
	while ((section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header) ? section_name(elf, &header) : NULL;
		ssize_t old;

		if (name && is_unclear(name, &seen))
			return DEBUGINFO_DAMAGED;
		if (!is_debug(name) || header.sh_type == SHT_NOBITS)
			continue;
		found = found || strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0;
		if (gelf_getchdr(section, &packed)) {
			unpacked += packed.ch_size;
			*bytes += packed.ch_size;
			if (packed.ch_size > DEBUGINFO_UNPACKED_MAX)
				return DEBUGINFO_TOO_LARGE;
		} else if ((old = dwelf_scn_gnu_compressed_size(section)) > 0) {
			unpacked += (uint64_t)old;
			*bytes += (uint64_t)old;
		} else {
			*bytes += header.sh_size;
		}
		if (unpacked > DEBUGINFO_UNPACKED_MAX || *bytes > DEBUGINFO_READ_MAX || header.sh_size > DEBUGINFO_READ_MAX)
			return DEBUGINFO_TOO_LARGE;
	}
	return found ? DEBUGINFO_GOOD : DEBUGINFO_NONE;
}
