/* Environment and .inferscope.yaml, by libyaml's events: a flat mapping, one key per setting. */
#include "cli/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

enum { FILE_BYTES_MAX = 1 << 20 };

/* Settings that would harm commands which have them as options: a name that is meant for reports is none for a trace's text, or for a comparison. */
static const struct { enum option_id id; unsigned commands; } only_for[] = { { OPT_OUTPUT, ATTACH | RUN | ANALYZE } };

int settings_environment(struct options *options, const char *(*lookup)(const char *name), struct error *err)
{
	for (int i = 0; i < OPT_COUNT; i++) {
		char name[64];
		const char *value;

		if (option_rows[i].reach != REACH_SETTING)
			continue;
		option_environment_name((enum option_id)i, name, sizeof name);
		value = lookup(name);
		if (value && *value && options_set(options, (enum option_id)i, value, ORIGIN_ENVIRONMENT, name, err) < 0)
			return -1;
	}
	return 0;
}

static int key_find(const yaml_event_t *event, const char *name, enum option_id *out, struct error *err)
{
	const char *key = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	enum option_id id = option_find(key, length, 0);
	const char *close;

	if (id != OPT_COUNT && option_rows[id].reach == REACH_SETTING) {
		*out = id;
		return 0;
	}
	fail(err, ERR_CONFIG, "%s line %zu: there is no setting \"%.60s\"", name, event->start_mark.line + 1, key);
	close = option_suggest(key, length, 0);
	if (close && option_rows[option_find(close, strlen(close), 0)].reach != REACH_SETTING)
		close = NULL;
	if (id != OPT_COUNT)
		return fail_hint(err, "--%s can only be given on the command line", option_rows[id].name);
	return close ? fail_hint(err, "did you mean %s?", close) : -1;
}

static int value_take(struct options *options, enum option_id id, const yaml_event_t *event, const char *name, struct error *err)
{
	const char *value = (const char *)event->data.scalar.value;
	char where[320];

	snprintf(where, sizeof where, "%s line %zu", name, event->start_mark.line + 1);
	if (strlen(value) != event->data.scalar.length)
		return fail(err, ERR_CONFIG, "%s: a value contains a NUL byte", where);
	if (options_set(options, id, value, ORIGIN_FILE, where, err) == 0)
		return 0;
	if (err && err->code == ERR_OPTION_VALUE)
		err->code = ERR_CONFIG;
	return -1;
}

/* key: scalar or key: [scalar, …]; what else YAML has is refused with its line. */
static int mapping_read(yaml_parser_t *parser, struct options *options, const char *name, struct error *err)
{
	enum option_id id = OPT_COUNT;
	bool in_mapping = false, in_list = false, begun = false, seen[OPT_COUNT] = { false };

	for (;;) {
		yaml_event_t event;
		int result = 0;
		bool end;

		if (!yaml_parser_parse(parser, &event))
			return fail(err, ERR_CONFIG, "%s line %zu: %s", name, parser->problem_mark.line + 1, parser->problem ? parser->problem : "not YAML");
		end = event.type == YAML_STREAM_END_EVENT;
		switch (event.type) {
		case YAML_DOCUMENT_START_EVENT:
			if (begun)
				result = fail(err, ERR_CONFIG, "%s line %zu: a second document begins, and settings are one", name, event.start_mark.line + 1);
			begun = true;
			break;
		case YAML_SCALAR_EVENT:
			if (!in_mapping && event.data.scalar.length == 0)
				break; /* an empty document */
			if (!in_mapping)
				result = fail(err, ERR_CONFIG, "%s line %zu: expected \"setting: value\"", name, event.start_mark.line + 1);
			else if (id == OPT_COUNT) {
				result = key_find(&event, name, &id, err);
				if (result == 0 && seen[id])
					result = fail(err, ERR_CONFIG, "%s line %zu: \"%s\" stands here twice", name, event.start_mark.line + 1, option_rows[id].name);
				else if (result == 0)
					seen[id] = true;
			} else {
				result = value_take(options, id, &event, name, err);
				id = in_list ? id : OPT_COUNT;
			}
			break;
		case YAML_MAPPING_START_EVENT:
			if (in_mapping)
				result = fail(err, ERR_CONFIG, "%s line %zu: a setting is one value or a list of them", name, event.start_mark.line + 1);
			in_mapping = true;
			break;
		case YAML_SEQUENCE_START_EVENT:
			if (id == OPT_COUNT || in_list || option_rows[id].kind != KIND_LIST)
				result = fail(err, ERR_CONFIG, "%s line %zu: no list is expected here", name, event.start_mark.line + 1);
			in_list = true;
			break;
		case YAML_SEQUENCE_END_EVENT:
			in_list = false;
			id = OPT_COUNT;
			break;
		case YAML_ALIAS_EVENT:
			result = fail(err, ERR_CONFIG, "%s line %zu: aliases are not used here", name, event.start_mark.line + 1);
			break;
		default:
			break;
		}
		yaml_event_delete(&event);
		if (result < 0 || end)
			return result;
	}
}

int settings_text(struct options *options, const char *text, size_t length, const char *name, struct error *err)
{
	yaml_parser_t parser;
	int result;

	if (!yaml_parser_initialize(&parser))
		return fail(err, ERR_MEMORY, "reading %s", name);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	result = mapping_read(&parser, options, name, err);
	yaml_parser_delete(&parser);
	return result;
}

static int file_trusted(int fd, const char *path, struct error *err)
{
	struct stat status;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return fail(err, ERR_CONFIG, "%s: not a regular file", path);
	if (status.st_uid == geteuid() || status.st_uid == 0) {
		if (!(status.st_mode & S_IWOTH))
			return 0;
		fail(err, ERR_CONFIG, "%s: everybody may write to it, and settings name output files", path);
		return fail_hint(err, "chmod o-w %s", path);
	}
	fail(err, ERR_CONFIG, "%s: belongs to uid %u, and settings name output files", path, (unsigned)status.st_uid);
	return fail_hint(err, "work in a folder of your own, or remove the file");
}

int settings_file(struct options *options, const char *path, bool *found, struct error *err)
{
	int result = -1, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text = NULL;
	ssize_t length = 0, got;

	*found = fd >= 0;
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : fail(err, file_error_of(errno, ERR_CONFIG), "%s: %s", path, strerror(errno));
	if (file_trusted(fd, path, err) < 0)
		goto out;
	text = malloc(FILE_BYTES_MAX);
	if (!text) {
		fail(err, ERR_MEMORY, "reading %s", path);
		goto out;
	}
	while ((got = read(fd, text + length, FILE_BYTES_MAX - (size_t)length)) > 0)
		length += got;
	if (got < 0 || length == FILE_BYTES_MAX) {
		fail(err, ERR_CONFIG, "%s: %s", path, got < 0 ? strerror(errno) : "too long for a configuration");
		goto out;
	}
	result = settings_text(options, text, (size_t)length, path, err);
out:
	free(text);
	close(fd);
	return result;
}

int settings_find(struct options *options, const char *home, struct error *err)
{
	char path[4096];
	bool found;

	snprintf(path, sizeof path, ".inferscope.yaml");
	if (settings_file(options, path, &found, err) < 0)
		return -1;
	if (!found && home && *home == '/') {
		if (snprintf(path, sizeof path, "%s/.inferscope.yaml", home) >= (int)sizeof path)
			return 0;
		/* A home that we may not look into is not ours: sudo -u, containers. */
		if (access(path, R_OK) == 0 && settings_file(options, path, &found, err) < 0)
			return -1;
	}
	if (found) {
		options->file = strdup(path);
		if (!options->file)
			return fail(err, ERR_MEMORY, "reading the settings");
	}
	return 0;
}

int settings_fit(struct options *options, enum command_bit command, struct error *err)
{
	for (size_t i = 0; i < sizeof only_for / sizeof *only_for; i++) {
		enum option_id id = only_for[i].id;

		if ((option_rows[id].commands & command) && !(only_for[i].commands & command) && options_forget(options, id, err) < 0)
			return -1;
	}
	return 0;
}
