check_PROGRAMS += testsuite/check_eval
eval_tests = testsuite/check_eval
testsuite_check_eval_SOURCES = testsuite/check_eval.c testsuite/suite.h testsuite/scratch.h \
	testsuite/model_util.h
testsuite_check_eval_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -Wno-missing-prototypes
testsuite_check_eval_LDADD = $(WHOLE) src/libfleval.a $(NO_WHOLE) $(EVAL_LIBS) $(CHECK_LIBS)
