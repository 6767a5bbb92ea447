# The device's part of attach, with the doubles of tests/fakecuda: tests/live/gpu/run
dist_noinst_SCRIPTS += tests/live/gpu/run tests/gpu/accept
EXTRA_DIST += tests/live/gpu/program.py tests/live/gpu/real.py tests/gpu/workload.py docs/gpu/README.md
