# Profiling from within, for C programs: a shared library without libtool that needs libc only, beside the program that does the work.
profilerlibdir = $(libdir)
profilerlib_PROGRAMS = libinferscope-profiler.so
profilerincludedir = $(includedir)/inferscope
profilerinclude_HEADERS = src/profiler/profiler.h
libinferscope_profiler_so_SOURCES = src/profiler/profiler.h src/profiler/profiler.c src/profiler/child.h src/profiler/child.c
libinferscope_profiler_so_CPPFLAGS = -I$(top_srcdir)/src -D_GNU_SOURCE -include abi/strtol.h
libinferscope_profiler_so_CFLAGS = -std=gnu11 $(WARN_CFLAGS) -O2 -g -fPIC -fvisibility=hidden
libinferscope_profiler_so_LDFLAGS = -shared -Wl,-z,defs -Wl,--build-id=sha1 -Wl,-soname,libinferscope-profiler.so -Wl,--as-needed
libinferscope_profiler_so_LDADD = -lpthread -ldl
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = src/profiler/inferscope-profiler.pc
