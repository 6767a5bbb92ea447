# `inferscope top` on real processes and terminals: tests/live/top/run
dist_noinst_SCRIPTS += tests/live/top/run
EXTRA_DIST += tests/live/top/program.py tests/live/top/terminal.py tests/live/top/cuda.c
noinst_DATA += tests/live/top/cuda.so
CLEANFILES += tests/live/top/cuda.so
tests/live/top/cuda.so: $(srcdir)/tests/live/top/cuda.c
	@$(MKDIR_P) tests/live/top
	$(AM_V_CCLD)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN_CFLAGS) -g -O2 -fno-omit-frame-pointer -fPIC -shared -o $@ $(srcdir)/tests/live/top/cuda.c
