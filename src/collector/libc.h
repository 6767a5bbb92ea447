/*
 * Binds what we need of libc to its oldest version: built on glibc 2.36 the default is GLIBC_2.34, which 2.31 does not have
 * (there these symbols lie in libdl and libpthread, which every Python has mapped). tests/unit/collector_symbols holds the line.
 */
#ifndef INFERSCOPE_COLLECTOR_LIBC_H
#define INFERSCOPE_COLLECTOR_LIBC_H

#include <dlfcn.h>
#include <pthread.h>

#ifndef COLLECTOR_PLAIN_LIBC /* unit tests link normally */
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver pthread_create,pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_sigmask,pthread_sigmask@GLIBC_2.2.5");
__asm__(".symver pthread_detach,pthread_detach@GLIBC_2.2.5");
__asm__(".symver pthread_mutex_trylock,pthread_mutex_trylock@GLIBC_2.2.5");
__asm__(".symver pthread_join,pthread_join@GLIBC_2.2.5");
__asm__(".symver pthread_key_create,pthread_key_create@GLIBC_2.2.5");
__asm__(".symver pthread_setspecific,pthread_setspecific@GLIBC_2.2.5");
__asm__(".symver pthread_getattr_np,pthread_getattr_np@GLIBC_2.2.5");
__asm__(".symver pthread_attr_setstacksize,pthread_attr_setstacksize@GLIBC_2.2.5");
__asm__(".symver pthread_attr_getstack,pthread_attr_getstack@GLIBC_2.2.5");
#endif

#endif
