/* What libelf has read lies in memory of ours alone, and may be changed. */
#include "unwind/debug_sections.h"

#include "unwind/elf_bytes.h"

#include <stdlib.h>
#include <string.h>

Elf_Data *debug_section(Elf *elf, const char *name, const char *packed_name)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_bytes_section(elf, name, &header);
	Elf_Data *data;

	if (!section)
		section = elf_bytes_section(elf, packed_name, &header);
	data = section && header.sh_type != SHT_NOBITS ? elf_getdata(section, NULL) : NULL;
	return data && data->d_buf && data->d_size > 0 ? data : NULL;
}

void debug_end_strings(Elf *elf)
{
	static const char *const sections[][2] = { { ".debug_str", ".zdebug_str" }, { ".debug_line_str", ".zdebug_line_str" } };

	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		Elf_Data *data = debug_section(elf, sections[i][0], sections[i][1]);

		if (data)
			((char *)data->d_buf)[data->d_size - 1] = '\0';
	}
}

char *debug_end_lines(Elf_Data *lines)
{
	char *bytes = malloc(lines->d_size + 1);

	if (!bytes)
		return NULL;
	memcpy(bytes, lines->d_buf, lines->d_size);
	bytes[lines->d_size] = '\0';
	lines->d_buf = bytes; /* libelf frees by pointers of its own */
	return bytes;
}
