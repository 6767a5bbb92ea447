# Tools that read the sources (cppcheck, gcc -fanalyzer, clang-tidy) and valgrind's memcheck. Slower than `make check` may be.
dist_noinst_SCRIPTS += tests/checkers/run
EXTRA_DIST += tests/checkers/analyzer.txt tests/checkers/cppcheck.txt .clang-tidy

check-static:
	BUILD="$(abs_top_builddir)" $(srcdir)/tests/checkers/run cppcheck analyzer tidy
check-memory: all
	BUILD="$(abs_top_builddir)" $(srcdir)/tests/checkers/run memcheck
.PHONY: check-static check-memory
