/*
 * Binds what we need of libc to its oldest version: built on glibc 2.36 the default is GLIBC_2.34, which 2.31 does not have
 * (there these symbols lie in libdl and libpthread, which every Python has mapped). tests/unit/collector_symbols holds the line.
 */
#ifndef INFERSCOPE_COLLECTOR_LIBC_H
#define INFERSCOPE_COLLECTOR_LIBC_H

#include <dlfcn.h>
#include <pthread.h>

#include "collector/machine.h"

#ifndef COLLECTOR_PLAIN_LIBC /* unit tests link normally */
__asm__(".symver dlsym,dlsym@" MACHINE_LIBC);
__asm__(".symver dlopen,dlopen@" MACHINE_LIBC);
__asm__(".symver pthread_create,pthread_create@" MACHINE_LIBC);
__asm__(".symver pthread_sigmask,pthread_sigmask@" MACHINE_LIBC);
__asm__(".symver pthread_detach,pthread_detach@" MACHINE_LIBC);
__asm__(".symver pthread_mutex_trylock,pthread_mutex_trylock@" MACHINE_LIBC);
__asm__(".symver pthread_join,pthread_join@" MACHINE_LIBC);
__asm__(".symver pthread_key_create,pthread_key_create@" MACHINE_LIBC);
__asm__(".symver pthread_setspecific,pthread_setspecific@" MACHINE_LIBC);
__asm__(".symver pthread_getattr_np,pthread_getattr_np@" MACHINE_LIBC);
__asm__(".symver pthread_attr_setstacksize,pthread_attr_setstacksize@" MACHINE_LIBC);
__asm__(".symver pthread_attr_getstack,pthread_attr_getstack@" MACHINE_LIBC);
#endif

#endif
