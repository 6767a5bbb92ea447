noinst_LIBRARIES += libtimeline.a
libtimeline_a_SOURCES = \
	src/timeline/calls.c \
	src/timeline/counted.c \
	src/timeline/counters.c \
	src/timeline/facts.c \
	src/timeline/functions.c \
	src/timeline/gil.c \
	src/timeline/gpu.c \
	src/timeline/gpu_calls.c \
	src/timeline/gpu_facts.c \
	src/timeline/gpu_idle.c \
	src/timeline/gpu_streams.c \
	src/timeline/intervals.c \
	src/timeline/lanes.c \
	src/timeline/lists.c \
	src/timeline/memory.c src/timeline/memory.h \
	src/timeline/moments.c \
	src/timeline/names.c \
	src/timeline/natives.c \
	src/timeline/open_scopes.c src/timeline/open_scopes.h \
	src/timeline/operations.c src/timeline/operations.h \
	src/timeline/partition.c \
	src/timeline/percentile.c \
	src/timeline/pieces.c src/timeline/pieces.h \
	src/timeline/private.h \
	src/timeline/replay.c src/timeline/replay.h \
	src/timeline/ratio.c src/timeline/ratio.h \
	src/timeline/readings.c \
	src/timeline/rests.c \
	src/timeline/samples.c \
	src/timeline/scopes.c \
	src/timeline/segments.c \
	src/timeline/syscalls.c \
	src/timeline/spread.c src/timeline/spread.h \
	src/timeline/stands.c src/timeline/stands.h \
	src/timeline/tasks.c src/timeline/tasks.h \
	src/timeline/ticks.h \
	src/timeline/timeline.c src/timeline/timeline.h \
	src/timeline/totals.c src/timeline/totals.h \
	src/timeline/tree.c \
	src/timeline/turns.c \
	src/timeline/waits.c \
	src/timeline/wall.c
