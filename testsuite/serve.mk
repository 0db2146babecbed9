check_PROGRAMS += testsuite/check_serve
serve_suites = testsuite/serve/engine_load.suite testsuite/serve/engine.suite \
	testsuite/serve/engine_docs.suite testsuite/serve/engine_disk.suite \
	testsuite/serve/speculate.suite testsuite/serve/spill.suite testsuite/serve/slots.suite \
	testsuite/serve/detokenize.suite testsuite/serve/prompt.suite
$(serve_suites): testsuite/check_serve$(EXEEXT)
serve_tests = $(serve_suites)
testsuite_check_serve_SOURCES = testsuite/layer_serve.c testsuite/suite.h testsuite/scratch.h testsuite/gate.h \
	testsuite/serve_util.c testsuite/serve_util.h \
	testsuite/check_detokenize.c testsuite/check_engine.c testsuite/check_engine_disk.c \
	testsuite/check_engine_docs.c \
	testsuite/check_engine_load.c testsuite/check_prompt.c \
	testsuite/check_slots.c testsuite/check_speculate.c testsuite/check_spill.c
testsuite_check_serve_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -Wno-missing-prototypes
testsuite_check_serve_LDADD = $(WHOLE) src/libflserve.a $(NO_WHOLE) $(SERVE_LIBS) $(CHECK_LIBS)
