# Tasks of asyncio in samples: tests/live/tasks/run
dist_noinst_SCRIPTS += tests/live/tasks/run
EXTRA_DIST += tests/live/tasks/program.py
