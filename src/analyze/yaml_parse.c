/* libyaml's events, one after the other; nothing is built from what is refused. */
#include "analyze/yaml_tree.h"

#include <string.h>
#include <yaml.h>

struct builder {
	struct yaml_tree *tree;
	struct arena *arena;
	struct error *err;
	struct { struct yaml_tree_node *node, *last; unsigned count; } open[YAML_DEPTH_MAX];
	unsigned depth, nodes;
	bool seen; /* a document */
};

static int refuse(struct builder *builder, yaml_mark_t mark, const char *message)
{
	return yaml_tree_fail(builder->tree, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1, NULL, builder->err, "%s", message);
}

static struct yaml_tree_node *add_node(struct builder *builder, enum yaml_kind kind, yaml_mark_t mark)
{
	struct yaml_tree_node *node, **link;

	if (++builder->nodes > YAML_NODES_MAX) {
		refuse(builder, mark, "too many entries");
		return NULL;
	}
	node = arena_alloc(builder->arena, sizeof *node);
	if (!node) {
		fail(builder->err, ERR_MEMORY, "reading %s", builder->tree->name);
		return NULL;
	}
	*node = (struct yaml_tree_node){ .kind = kind, .line = (uint32_t)mark.line + 1, .column = (uint32_t)mark.column + 1 };
	if (!builder->depth) {
		builder->tree->root = node;
		return node;
	}
	link = builder->open[builder->depth - 1].last ? &builder->open[builder->depth - 1].last->next : &builder->open[builder->depth - 1].node->child;
	*link = node;
	builder->open[builder->depth - 1].last = node;
	builder->open[builder->depth - 1].count++;
	return node;
}

static bool is_key(const struct builder *builder)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): libyaml ends no more maps and lists than it begins */
	return builder->depth && builder->open[builder->depth - 1].node->kind == YAML_MAP && builder->open[builder->depth - 1].count % 2 == 0;
}

static int take_scalar(struct builder *builder, const yaml_event_t *event)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length, width = event->end_mark.column - event->start_mark.column;
	bool key = is_key(builder), quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	struct yaml_tree_node *node;

	if (event->data.scalar.anchor || event->data.scalar.tag)
		return refuse(builder, event->start_mark, event->data.scalar.anchor ? "anchors are not used here" : "tags are not used here");
	if (strlen(value) != length)
		return refuse(builder, event->start_mark, "a value holds a NUL byte");
	if (key && strcmp(value, "<<") == 0)
		return refuse(builder, event->start_mark, "merges are not used here");
	node = add_node(builder, YAML_SCALAR, event->start_mark);
	if (!node)
		return -1;
	node->text = arena_strndup(builder->arena, value, length);
	if (!node->text)
		return fail(builder->err, ERR_MEMORY, "reading %s", builder->tree->name);
	node->quoted = quoted;
	node->literal = event->data.scalar.style == YAML_LITERAL_SCALAR_STYLE;
	node->exact = event->start_mark.line == event->end_mark.line && event->end_mark.index - event->start_mark.index == width && width == length + (quoted ? 2 : 0);
	if (quoted && node->exact)
		node->column++;
	return 0;
}

static int open_node(struct builder *builder, enum yaml_kind kind, const yaml_event_t *event, bool marked)
{
	struct yaml_tree_node *node;

	if (marked)
		return refuse(builder, event->start_mark, "anchors and tags are not used here");
	if (is_key(builder))
		return refuse(builder, event->start_mark, "a key is a word");
	if (builder->depth == YAML_DEPTH_MAX)
		return refuse(builder, event->start_mark, "nested too deeply");
	node = add_node(builder, kind, event->start_mark);
	if (!node)
		return -1;
	builder->open[builder->depth].node = node;
	builder->open[builder->depth].last = NULL;
	builder->open[builder->depth].count = 0;
	builder->depth++;
	return 0;
}

static int take_event(struct builder *builder, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (builder->seen)
			return refuse(builder, event->start_mark, "one document is expected");
		builder->seen = true;
		return 0;
	case YAML_SCALAR_EVENT:
		return take_scalar(builder, event);
	case YAML_SEQUENCE_START_EVENT:
		return open_node(builder, YAML_LIST, event, event->data.sequence_start.anchor || event->data.sequence_start.tag);
	case YAML_MAPPING_START_EVENT:
		return open_node(builder, YAML_MAP, event, event->data.mapping_start.anchor || event->data.mapping_start.tag);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		builder->depth--;
		return 0;
	case YAML_ALIAS_EVENT:
		return refuse(builder, event->start_mark, "aliases are not used here");
	default:
		return 0;
	}
}

static int read_events(struct builder *builder, yaml_parser_t *parser)
{
	for (;;) {
		yaml_event_t event;
		int result;
		bool end;

		if (!yaml_parser_parse(parser, &event))
			return refuse(builder, parser->problem_mark, parser->problem ? parser->problem : "not YAML");
		end = event.type == YAML_STREAM_END_EVENT;
		result = take_event(builder, &event);
		yaml_event_delete(&event);
		if (result < 0 || end)
			return result;
	}
}

int yaml_tree_parse(const char *source, size_t length, const char *name, struct arena *arena, struct yaml_tree *out, struct error *err)
{
	struct builder builder = { .tree = out, .arena = arena, .err = err };
	yaml_parser_t parser;
	int result;

	*out = (struct yaml_tree){ .name = name, .source = source, .length = length };
	if (length > YAML_BYTES_MAX)
		return fail(err, ERR_RULES, "%s: a rules file has at most %d KiB", name, YAML_BYTES_MAX >> 10);
	if (!yaml_parser_initialize(&parser))
		return fail(err, ERR_MEMORY, "reading %s", name);
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)source, length);
	result = read_events(&builder, &parser);
	yaml_parser_delete(&parser);
	return result;
}
