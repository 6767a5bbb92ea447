# A shared library without libtool: it is loaded into any Python 3.8-3.15 on glibc 2.31 or later, so it needs libc only, keeps
# everything hidden but its entry, is never unloaded, and is built without sanitizers whatever the rest is built with.
noinst_PROGRAMS += libinferscope-collector.so
libinferscope_collector_so_SOURCES = \
	src/collector/allocators.c src/collector/budget.c src/collector/code.c src/collector/code.h src/collector/collector.h src/collector/counted.c src/collector/entry.c \
	src/collector/evaluator.c src/collector/evaluator.h src/collector/fork.c src/collector/garbage.c src/collector/gil.c src/collector/cupti.c src/collector/cupti.h \
	src/collector/gpu.c src/collector/gpu.h src/collector/gpu_buffers.c src/collector/gpu_client.c src/collector/gpu_cuda.c src/collector/gpu_names.c src/collector/gpu_records.c src/collector/gpu_torch.c src/collector/greenlets.c src/collector/greenlets.h src/collector/heap.c src/collector/heap.h src/collector/lane.c src/collector/lane.h src/collector/libc.h src/collector/machine.h src/collector/mapping.h \
	src/collector/monitored.c src/collector/monitoring.c src/collector/monitoring.h src/collector/memory.c src/collector/memory.h src/collector/page.c src/collector/page.h src/collector/python.c src/collector/python.h src/collector/sampled.c src/collector/sampled.h src/collector/scopes.c src/collector/seed.c src/collector/setprofile.c \
	src/collector/settrace.c src/collector/skip.c src/collector/switcher.c src/collector/traced.c src/collector/traced.h \
	src/collector/slots.c src/collector/spending.c src/collector/spending.h src/collector/stack.c src/collector/stack.h src/collector/text.c src/collector/text.h src/collector/thread.h
libinferscope_collector_so_CPPFLAGS = -I$(top_srcdir)/src -D_GNU_SOURCE -include abi/strtol.h
libinferscope_collector_so_CFLAGS = -std=gnu11 $(WARN_CFLAGS) -O2 -g -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-semantic-interposition \
	-U_FORTIFY_SOURCE -fno-stack-protector -fno-plt
libinferscope_collector_so_LDFLAGS = -shared -Wl,-z,nodelete -Wl,-z,now -Wl,-z,defs -Wl,--build-id=sha1 -Wl,-soname,libinferscope-collector.so -Wl,--as-needed
libinferscope_collector_so_LDADD =
