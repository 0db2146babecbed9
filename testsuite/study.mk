check_PROGRAMS += testsuite/check_study
study_tests = testsuite/check_study
testsuite_check_study_SOURCES = testsuite/layer_study.c testsuite/suite.h \
	testsuite/cart_util.h testsuite/model_util.h \
	testsuite/check_anchored.c testsuite/check_chunk.c testsuite/check_part.c \
	testsuite/scratch.h testsuite/study_lab.h \
	testsuite/check_reject.c testsuite/check_retell.c testsuite/check_spans.c \
	testsuite/check_study.c
testsuite_check_study_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_study_LDADD = $(WHOLE) src/libflstudy.a src/libflcartridge.a src/libflmodel.a \
	src/libflkernels.a src/libfltext.a src/libflformats.a src/libflbase.a $(NO_WHOLE) \
	$(STUDY_LIBS) $(CHECK_LIBS)
