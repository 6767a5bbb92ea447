noinst_LIBRARIES += libsession.a
libsession_a_SOURCES = \
	src/session/around.c src/session/around.h \
	src/session/block.c src/session/block.h \
	src/session/blocked_calls.c src/session/blocked_calls.h \
	src/session/capture.c src/session/capture.h \
	src/session/census.c src/session/census.h \
	src/session/cgroup.c src/session/cgroup.h \
	src/session/closing.c src/session/counters.c src/session/counting.c src/session/state.h \
	src/session/descriptors.c src/session/descriptors.h \
	src/session/digest.c src/session/digest.h \
	src/session/drain.c src/session/drain.h \
	src/session/device.c src/session/heap.c src/session/gpu_clock.c src/session/gpu_clock.h src/session/gpu_look.c src/session/gpu_look.h \
	src/session/environment.c src/session/environment.h \
	src/session/redact.c src/session/redact.h \
	src/session/find.c src/session/find.h src/session/gpu_relay.c src/session/gpu_relay.h src/session/handshake.c src/session/handshake.h \
	src/session/inside.c src/session/inside.h \
	src/session/joiner.c src/session/joiner.h \
	src/session/kernel_calls.c \
	src/session/live.c src/session/live.h \
	src/session/loops.c src/session/loops.h \
	src/session/look.c src/session/look.h \
	src/session/naming.c src/session/naming.h \
	src/session/numa.c src/session/numa.h src/session/numa_sample.c \
	src/session/nvml.c src/session/nvml.h \
	src/session/observe.c src/session/observe.h src/session/reader.c src/session/reader.h \
	src/session/pace.c src/session/pace.h \
	src/session/perf_turns.c src/session/perf_turns.h \
	src/session/pool.c src/session/pool.h \
	src/session/pools.c src/session/pools.h \
	src/session/rearm.c src/session/rearm.h \
	src/session/record.c \
	src/session/residue.c src/session/residue.h \
	src/session/sampled.c \
	src/session/sampler.c src/session/sampler.h src/session/sampler_state.h src/session/sampler_work.c \
	src/session/session.c src/session/session.h \
	src/session/shadow.c src/session/shadow.h \
	src/session/sight.c src/session/sight.h \
	src/session/snapshot.c src/session/snapshot.h \
	src/session/snapshot_native.c src/session/snapshot_native.h \
	src/session/spool.c src/session/spool.h src/session/spool_state.h src/session/spool_keep.c src/session/spool_window.c \
	src/session/stacks.c src/session/stacks.h \
	src/session/syscalls.c src/session/syscalls.h \
	src/session/cold.c src/session/cold.h \
	src/session/switching.c src/session/switching.h \
	src/session/systrace.c src/session/systrace.h src/session/systrace_parse.c \
	src/session/tally.c src/session/tally.h \
	src/session/tasks.c src/session/tasks.h \
	src/session/thread_counts.c src/session/thread_counts.h \
	src/session/wall.c \
	src/session/watch.c src/session/watch.h

# The collector goes into the attacher as bytes, without the debug information that the target has no use for.
libsession_a_SOURCES += src/session/payload.S src/session/payload.h
libsession_a_CPPFLAGS = $(AM_CPPFLAGS) -DCOLLECTOR_FILE='"collector-payload.so"'
libsession_a_CCASFLAGS = -Wa,-I.
src/session/libsession_a-payload.$(OBJEXT): collector-payload.so
collector-payload.so: libinferscope-collector.so
	$(AM_V_GEN)$(OBJCOPY) --strip-debug libinferscope-collector.so $@
CLEANFILES += collector-payload.so
