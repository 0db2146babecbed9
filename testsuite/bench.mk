check_PROGRAMS += testsuite/check_bench
bench_tests = testsuite/check_bench testsuite/cli/bench.sh
EXTRA_DIST += testsuite/cli/bench.sh
testsuite_check_bench_SOURCES = testsuite/check_bench.c testsuite/suite.h testsuite/scratch.h
testsuite_check_bench_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -Wno-missing-prototypes
testsuite_check_bench_LDADD = $(WHOLE) src/libflbench.a $(NO_WHOLE) $(BENCH_LIBS) $(CHECK_LIBS)
