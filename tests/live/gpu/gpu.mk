# The device's part of attach, with the doubles of tests/fakecuda: tests/live/gpu/run
dist_noinst_SCRIPTS += tests/live/gpu/run tests/gpu/accept tests/gpu/pack
EXTRA_DIST += tests/live/gpu/program.py tests/live/gpu/real.py tests/live/gpu/scene.py tests/live/gpu/trouble.py tests/live/gpu/whole.py tests/gpu/client.py tests/gpu/driver.py tests/gpu/records.py tests/gpu/stages.py tests/gpu/workload.py docs/gpu/README.md
