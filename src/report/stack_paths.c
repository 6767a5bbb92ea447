/* A stack is interned as its bytes. */
#include "report/stack_paths.h"

#include <stddef.h>
#include <string.h>

uint32_t stack_path_add(struct strings *paths, const struct timeline *timeline, const struct tree_node *node)
{
	struct stack_path path = { 0 };

	for (; node->parent != UINT32_MAX && path.count < STACK_PATH_MAX; node = &timeline->nodes[node->parent])
		path.functions[path.count++] = node->function;
	path.cut = node->parent != UINT32_MAX;
	return strings_add(paths, (const char *)&path, offsetof(struct stack_path, functions) + path.count * sizeof *path.functions);
}

void stack_path_get(const struct strings *paths, uint32_t number, struct stack_path *out)
{
	const char *kept = strings_get(paths, number);

	memcpy(out, kept, offsetof(struct stack_path, functions));
	memcpy(out->functions, kept + offsetof(struct stack_path, functions), out->count * sizeof *out->functions);
}
