/*
 * Put before every file by the compiler. From glibc 2.38 on _GNU_SOURCE makes strtol, sscanf and their kin other functions (__isoc23_…, which know "0b1"), so that what is
 * built on Debian 13 would not load where the libc is older: the collector in a container, above all. glibc calls the switch C2X up to 2.39 and C23 from 2.40 on.
 */
#include <features.h>
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0
