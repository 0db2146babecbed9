check_PROGRAMS += testsuite/check_answer
answer_tests = testsuite/check_answer
testsuite_check_answer_SOURCES = testsuite/layer_answer.c testsuite/suite.h testsuite/scratch.h \
	testsuite/cart_util.h testsuite/model_util.h testsuite/answer_util.h \
	testsuite/check_cartridge_cache.c testsuite/check_fetch_plan.c
testsuite_check_answer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_answer_LDADD = $(WHOLE) src/libflanswer.a $(NO_WHOLE) $(ANSWER_LIBS) $(CHECK_LIBS)
