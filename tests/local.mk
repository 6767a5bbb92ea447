# Each layer's unit tests are one Criterion program, tests/unit/test_LAYER: add yours in tests/unit/LAYER.mk.
UNIT_CFLAGS = $(AM_CFLAGS) $(CRITERION_CFLAGS)
# Test scripts find the sources in $SRCDIR and what was built in $BUILD.
AM_TESTS_ENVIRONMENT = SRCDIR="$(abs_top_srcdir)" BUILD="$(abs_top_builddir)" CC="$(CC)"; export SRCDIR BUILD CC;
dist_noinst_SCRIPTS += tests/coverage
include tests/lint/local.mk
include tests/simulator/local.mk
include tests/unit/base.mk
include tests/unit/trace.mk
include tests/unit/import.mk
include tests/unit/timeline.mk
include tests/unit/analyze.mk
include tests/unit/report.mk
include tests/unit/cli.mk
include tests/unit/profiler.mk
include tests/fuzz/local.mk
include tests/golden/local.mk
include tests/checkers/local.mk
if ENTERING_TESTS
include tests/unit/inject.mk
include tests/unit/hold.mk
include tests/unit/perf.mk
include tests/unit/launch.mk
include tests/unit/unwind.mk
include tests/unit/collector.mk
include tests/unit/session.mk
include tests/live/local.mk
include tests/fakecuda/fakecuda.mk
include tests/live/gpu/gpu.mk
include tests/torture/local.mk
include tests/bench/local.mk
endif
# Here, as automake wants them in one condition.
.PHONY: check-fault check-threads check-hot check-live integration check-torture bench bench-holds
