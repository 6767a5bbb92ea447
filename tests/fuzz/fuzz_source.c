/* Any bytes as a program's source file beside a finding: the first byte is the line where its function begins, the text up to the first newline its name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/source.h"
#include "tests/fuzz/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size > 1 ? memchr(data + 1, '\n', size - 1) : NULL;
	struct location location = { .file = "/a.py", .kind = FUNCTION_PYTHON };
	const struct source *source;
	struct arena arena;
	char *name;

	if (!end || !(name = strndup((const char *)data + 1, (size_t)(end - data - 1))))
		return 0;
	location.line = data[0];
	location.function = name;
	tree_make(NULL, 0);
	tree_write("a.py", end + 1, (size_t)(data + size - end - 1));
	arena_init(&arena);
	source = source_read(&arena, tree_root, &location, UINT64_MAX);
	if (source && (source->count < 1 || source->count > SOURCE_LINES || source->first != data[0]))
		abort();
	for (size_t i = 0; source && i < source->count; i++)
		if (strpbrk(source->lines[i], "\t\n"))
			abort();
	arena_done(&arena);
	free(name);
	return 0;
}
