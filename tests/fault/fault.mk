# Killing the attacher: tests/fault/run
dist_noinst_SCRIPTS += tests/fault/run
