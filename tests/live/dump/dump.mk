# `inferscope dump` on real processes: tests/live/dump/run
dist_noinst_SCRIPTS += tests/live/dump/run
EXTRA_DIST += tests/live/dump/program.py tests/live/dump/states.py
