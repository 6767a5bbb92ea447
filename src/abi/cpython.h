/* The layouts of cpython.def as a struct per CPython minor version. Include from one file of a layer: the table is static. */
#ifndef INFERSCOPE_ABI_CPYTHON_H
#define INFERSCOPE_ABI_CPYTHON_H

#include <stddef.h>

enum { CPYTHON_MINOR_MIN = 8, CPYTHON_MINOR_MAX = 15 };

/* Owners of an interpreter frame, 3.11 and later. Above the last real one are shims: never read a name from these. */
enum { FRAME_OWNER_THREAD = 0, FRAME_OWNER_GENERATOR = 1, FRAME_OWNER_FRAME_OBJECT = 2, FRAME_OWNER_SHIM = 3 };

struct cpython_layout {
#define FIELD(name, m8, m9, m10, m11, m12, m13, m14, m15, doc) int name;
#include "abi/cpython.def"
#undef FIELD
};

static const struct cpython_layout cpython_layouts[] = {
#define FIELD(name, m8, m9, m10, m11, m12, m13, m14, m15, doc) .name = m8,
	{
#include "abi/cpython.def"
	},
#undef FIELD
#define FIELD(name, m8, m9, m10, m11, m12, m13, m14, m15, doc) .name = m9,
	{
#include "abi/cpython.def"
	},
#undef FIELD
#define FIELD(name, m8, m9, m10, m11, m12, m13, m14, m15, doc) .name = m10,
	{
#include "abi/cpython.def"
	},
#undef FIELD
#define FIELD(name, m8, m9, m10, m11, m12, m13, m14, m15, doc) .name = m11,
	{
#include "abi/cpython.def"
	},
#undef FIELD
#define FIELD(name, m8, m9, m10, m11, m12, m13, m14, m15, doc) .name = m12,
	{
#include "abi/cpython.def"
	},
#undef FIELD
#define FIELD(name, m8, m9, m10, m11, m12, m13, m14, m15, doc) .name = m13,
	{
#include "abi/cpython.def"
	},
#undef FIELD
#define FIELD(name, m8, m9, m10, m11, m12, m13, m14, m15, doc) .name = m14,
	{
#include "abi/cpython.def"
	},
#undef FIELD
#define FIELD(name, m8, m9, m10, m11, m12, m13, m14, m15, doc) .name = m15,
	{
#include "abi/cpython.def"
	},
#undef FIELD
};

/* The layout of 3.MINOR, or NULL. */
static inline const struct cpython_layout *cpython_layout(int minor)
{
	return minor < CPYTHON_MINOR_MIN || minor > CPYTHON_MINOR_MAX ? NULL : &cpython_layouts[minor - CPYTHON_MINOR_MIN];
}

#endif
