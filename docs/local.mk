# Docs travel with the sources; errors.md and the event table of trace-format.md are made by docs/generate.
EXTRA_DIST += docs/report.png docs/timeline.png docs/fleet.md docs/performance.md docs/GLOSSARY.md docs/GPU.md docs/SAFETY.md docs/SECURITY.md docs/ARCHITECTURE.md docs/HACKING.md docs/errors.md docs/troubleshooting.md docs/trace-format.md NEWS
dist_noinst_SCRIPTS += docs/generate
