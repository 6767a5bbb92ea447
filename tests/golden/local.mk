# Whole ways through the program on traces that are text. Each layer's own golden files are named in tests/unit/LAYER.mk.
TESTS += tests/golden/pipeline.test
dist_noinst_SCRIPTS += tests/golden/pipeline.test
TESTS += tests/golden/outputs.test
dist_noinst_SCRIPTS += tests/golden/outputs.test
TESTS += tests/golden/settings.test
dist_noinst_SCRIPTS += tests/golden/settings.test
TESTS += tests/golden/slurm.test
dist_noinst_SCRIPTS += tests/golden/slurm.test
TESTS += tests/golden/schema_command.test
dist_noinst_SCRIPTS += tests/golden/schema_command.test
TESTS += tests/golden/import.test
dist_noinst_SCRIPTS += tests/golden/import.test
EXTRA_DIST += tests/golden/import
TESTS += tests/golden/diff.test
dist_noinst_SCRIPTS += tests/golden/diff.test
TESTS += tests/golden/nsys.test
dist_noinst_SCRIPTS += tests/golden/nsys.test
TESTS += tests/golden/merge.test
dist_noinst_SCRIPTS += tests/golden/merge.test
TESTS += tests/golden/gpu_tables.test
TESTS += tests/golden/bombs.test
dist_noinst_SCRIPTS += tests/golden/bombs.test
TESTS += tests/golden/hostile.test
dist_noinst_SCRIPTS += tests/golden/hostile.test
EXTRA_DIST += tests/golden/hostile/waits.trace
dist_noinst_SCRIPTS += tests/golden/gpu_tables.test
if ENTERING_TESTS
TESTS += tests/golden/nsys_run.test
endif
dist_noinst_SCRIPTS += tests/golden/nsys_run.test
