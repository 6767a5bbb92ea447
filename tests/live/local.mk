# The live tests: real processes. `make check-live` (= integration) runs all of them, QUICK=1 what CI runs.
dist_noinst_SCRIPTS += tests/live/run tests/live/clean tests/live/collector/run tests/live/exports/run tests/live/native/run
EXTRA_DIST += tests/live/collector/allocations.py tests/live/collector/backends.py tests/live/collector/budget.py tests/live/collector/calls.py tests/live/collector/cases.py tests/live/collector/foreign.c tests/live/collector/greenlets.py tests/live/collector/layout.c tests/live/collector/natives.py tests/live/collector/programs.py tests/live/collector/session.py tests/live/collector/slots.py tests/live/collector/stacks.py tests/live/collector/troubles.py tests/live/exports/trace_processor.js
dist_noinst_SCRIPTS += tests/live/fleet/run
EXTRA_DIST += tests/live/fleet/program.py tests/live/fleet/ray_cluster.py
dist_noinst_SCRIPTS += tests/live/docs/run
EXTRA_DIST += tests/live/docs/documented.py tests/live/docs/program.py
dist_noinst_SCRIPTS += tests/live/outside/run
EXTRA_DIST += tests/live/outside/program.py
dist_noinst_SCRIPTS += tests/live/memory/run
EXTRA_DIST += tests/live/memory/program.py tests/live/memory/partly.c tests/live/memory/storm.c
dist_noinst_SCRIPTS += tests/live/html/run tests/live/html/bench
EXTRA_DIST += tests/live/html/browser.py tests/live/html/firefox.py tests/live/html/units.js
EXTRA_DIST += tests/live/programs/idlers.py
EXTRA_DIST += tests/live/native/burn.c tests/live/native/program.py
EXTRA_DIST += tests/live/harness.py tests/live/pypi.py tests/live/pypi.txt tests/live/matrix.py tests/live/cases.py tests/live/endings.py tests/live/healthy.py tests/live/launching.py tests/live/overhead.py tests/live/pairs.py tests/live/sampling.py tests/live/troubles.py tests/live/ways.py
EXTRA_DIST += tests/live/programs/crowd.py tests/live/programs/even.py tests/live/programs/forker.c tests/live/programs/forker.py tests/live/programs/gil_keeper.py tests/live/programs/lets_go.py tests/live/programs/green.py \
	tests/live/programs/healthy.py tests/live/programs/known.py tests/live/programs/manyfold.py tests/live/programs/mortal.py tests/live/programs/planted.py tests/live/programs/scribbler.py tests/live/programs/slow_fork.c tests/live/programs/slow_fork.py tests/live/programs/still.py tests/live/programs/work.py tests/live/programs/embed.c

check-live integration: all
	BUILD="$(abs_top_builddir)" $(srcdir)/tests/live/run $${QUICK:+--quick} $$LIVE
EXTRA_DIST += tests/live/aarch64/patched.c tests/live/aarch64/proof.py tests/live/aarch64/waits.py
