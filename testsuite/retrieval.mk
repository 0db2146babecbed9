check_PROGRAMS += testsuite/check_retrieval
retrieval_tests = testsuite/check_retrieval
testsuite_check_retrieval_SOURCES = testsuite/layer_retrieval.c testsuite/suite.h \
	testsuite/scratch.h testsuite/check_fuse.c testsuite/check_index.c testsuite/check_lexical.c \
	testsuite/check_passage.c testsuite/check_words.c
testsuite_check_retrieval_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_retrieval_LDADD = $(WHOLE) src/libflretrieval.a $(NO_WHOLE) $(RETRIEVAL_LIBS) \
	$(CHECK_LIBS)
