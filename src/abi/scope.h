/*
 * How the Python package's extension (contrib/python) and the collector find each other: a table in the extension, which the collector finds in
 * sys.modules when it is armed, and hears of from the extension where that is imported later. All of it is used with the GIL held.
 */
#ifndef INFERSCOPE_ABI_SCOPE_H
#define INFERSCOPE_ABI_SCOPE_H

#include <stdint.h>

#define SCOPE_MAGIC 0x3145504f43534953ull /* "SISCOPE1", little-endian */
#define SCOPE_MODULE "inferscope._native"
#define SCOPE_CAPSULE "_table" /* the name in the module's dict; that of the capsule is SCOPE_MODULE "." SCOPE_CAPSULE */
#define SCOPE_REGISTER "inferscope_collector_scopes" /* void inferscope_collector_scopes(struct scope_table *) */

/* One scope that is open: linked in from its enter to its exit, so that a late attach knows of it. */
struct scope_open {
	struct scope_open *next, *previous;
	uint64_t id;      /* never the same twice in a process */
	uint64_t pthread; /* pthread_self() of the thread that entered it */
	void *name;       /* a str object */
	void *metadata;   /* a str object with JSON, or NULL */
};

struct scope_table {
	uint64_t magic;
	struct scope_open open; /* head of the ring of those that are open */
	/* The collector's while it is armed, else NULL: then nothing is to be told. They allocate nothing and raise nothing. */
	void (*enter)(const struct scope_open *scope);
	void (*leave)(uint64_t id);
	void (*instant)(void *name, void *metadata);
};

#endif
