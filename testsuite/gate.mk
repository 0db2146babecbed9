check_PROGRAMS += testsuite/check_gate
gate_tests = testsuite/check_gate testsuite/cli/gates.sh
EXTRA_DIST += testsuite/cli/gates.sh
testsuite_check_gate_SOURCES = testsuite/check_gate.c testsuite/suite.h testsuite/scratch.h
testsuite_check_gate_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -Wno-missing-prototypes
testsuite_check_gate_LDADD = $(WHOLE) src/libflgate.a $(NO_WHOLE) $(GATE_LIBS) $(CHECK_LIBS)
