/* The switches of the doubles (settings.def) and the files they write. Compiled into each library; fakecuda_set() tells one of them. */
#ifndef FAKECUDA_SETTINGS_H
#define FAKECUDA_SETTINGS_H

#include <stdint.h>

enum setting {
#define SETTING(id, value, doc) SET_##id,
#define TEXT(id, doc)
#include "settings.def"
#undef SETTING
#undef TEXT
	SETTING_COUNT
};

int64_t setting(enum setting id);
/* The value of a TEXT, or NULL. */
const char *setting_text(const char *variable);
/* Returns -1 when there is no such setting. */
int fakecuda_set(const char *name, int64_t value);

/* One line in one write, whole also when threads and processes write at once. VARIABLE names the file: "FAKECUDA_JOURNAL" or "FAKECUDA_OPS". */
void file_line(const char *variable, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint64_t mono_ns(void);
int own_tid(void);

#endif
