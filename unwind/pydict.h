/* Dictionaries, sets, attributes of instances and variables of modules, read from the target's memory. For the files of unwind/ alone. */
#ifndef INFERSCOPE_UNWIND_PYDICT_H
#define INFERSCOPE_UNWIND_PYDICT_H

#include "unwind/pyreader.h"

/* Calls EACH with the entries of the dict at DICT until it returns false. -1: it cannot be read. */
int reader_dict(const struct pyreader *reader, uint64_t dict, bool (*each)(void *context, uint64_t key, uint64_t value), void *context);
/* The same with the members of a set. */
int reader_set(const struct pyreader *reader, uint64_t set, bool (*each)(void *context, uint64_t member), void *context);

/* What stands under the ASCII str NAME; 0: nothing, or it cannot be read. */
uint64_t reader_dict_get(const struct pyreader *reader, uint64_t dict, const char *name);
/* The same of the instance OBJECT's own attributes; those of its class are not looked at. */
uint64_t reader_attribute(const struct pyreader *reader, uint64_t object, const char *name);
/* How many modules the main interpreter has imported. */
uint64_t reader_modules(const struct pyreader *reader);
/* The same of a module's variables, as the main interpreter has imported it. */
uint64_t reader_global(const struct pyreader *reader, const char *module, const char *name);

#endif
