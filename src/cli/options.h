/* The options of options.def and their values: where each came from, and what it means. */
#ifndef INFERSCOPE_CLI_OPTIONS_H
#define INFERSCOPE_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Commands as bits, for the column of options.def. */
enum command_bit {
	ATTACH = 1, RUN = 2, ANALYZE = 4, DUMP = 8, ASSEMBLE = 16, DETACH = 32, DOCTOR = 64, CONFIG = 128, STACKS = 1 << 16,
	LIVE = 1 << 17, SCHEMA = 1 << 18, DIFF = 1 << 19, MERGE = 1 << 20,
	EVERY = 255 | STACKS | LIVE | SCHEMA | DIFF | MERGE,
};

enum option_id {
#define OPTION(id, name, letter, kind, constraint, shown, standard, commands, reach, help) OPT_##id,
#include "cli/options.def"
#undef OPTION
	OPT_COUNT
};

enum option_kind { KIND_FLAG, KIND_TEXT, KIND_LIST, KIND_DURATION, KIND_PERCENT, KIND_COUNT, KIND_CHOICE };
enum option_reach { REACH_ONCE, REACH_SETTING };

struct option_row {
	const char *name;
	char letter;
	enum option_kind kind;
	const char *constraint, *shown, *standard;
	unsigned commands;
	enum option_reach reach;
	const char *help;
};
extern const struct option_row option_rows[OPT_COUNT];

/* Later ones win. */
enum option_origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_COMMAND_LINE };

struct option_value {
	char *text; /* as given, checked; for lists the parts joined by commas */
	enum option_origin origin;
};

struct options {
	struct option_value values[OPT_COUNT];
	char *file; /* the configuration file that was read, or NULL */
};

/* Every option at its default. */
int options_init(struct options *options, struct error *err);
void options_done(struct options *options);
/* Checks TEXT and takes it, unless a stronger origin has spoken; lists grow within one origin. WHERE names the place for the message. */
int options_set(struct options *options, enum option_id id, const char *text, enum option_origin origin, const char *where, struct error *err);

/* By long name ("-" and "_" are the same; --report is --output), or OPT_COUNT. COMMANDS 0 = of any command. */
enum option_id option_find(const char *name, size_t length, unsigned commands);
enum option_id option_find_letter(char letter, unsigned commands);
/* The closest long name of COMMANDS for "did you mean", or NULL. */
const char *option_suggest(const char *name, size_t length, unsigned commands);
/* "INFERSCOPE_TRACE_SIZE_MB" */
void option_environment_name(enum option_id id, char *out, size_t size);

const char *options_text(const struct options *options, enum option_id id);
bool options_given(const struct options *options, enum option_id id); /* not the default */
bool options_typed(const struct options *options, enum option_id id); /* on the command line */
/* Back to the default, unless it was typed. */
int options_forget(struct options *options, enum option_id id, struct error *err);
bool options_flag(const struct options *options, enum option_id id);
uint64_t options_count(const struct options *options, enum option_id id);
uint64_t options_duration_ns(const struct options *options, enum option_id id);
uint32_t options_percent_ppm(const struct options *options, enum option_id id); /* none = 0 */
/* Position of a CHOICE's value in its constraint. */
unsigned options_choice(const struct options *options, enum option_id id);
enum { OPTION_PART_BYTES = 1024 }; /* of a list; options_set() refuses longer ones */
/* Part INDEX of a list into OUT; false after the last. */
bool options_list(const struct options *options, enum option_id id, size_t index, char out[OPTION_PART_BYTES]);
const char *option_origin_name(enum option_origin origin);

#endif
