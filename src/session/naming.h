/* What modules of the target know: names of its threads, as its threading module has them, remembered by the tid that the target knows them by; torch's profiler. */
#ifndef INFERSCOPE_SESSION_NAMING_H
#define INFERSCOPE_SESSION_NAMING_H

#include "inject/inject.h"

struct naming;

/* TARGET must outlive it; RUNTIME is where the interpreter's state lies. NULL: it cannot be read, or memory is short. */
struct naming *naming_open(const struct target *target, remote_addr runtime);
void naming_close(struct naming *naming); /* accepts NULL */
/* Reads all names anew if that was long ago; sooner with EARLY (a thread is new), but never so often that it takes more than a fiftieth of a CPU. */
void naming_refresh(struct naming *naming, bool early);
/* NULL: threading does not know the thread. Valid until the next reading. */
const char *naming_find(const struct naming *naming, pid_t inner_tid);
/* Is torch.profiler at work? Its module keeps a flag. */
bool naming_torch_profiles(const struct naming *naming);

#endif
