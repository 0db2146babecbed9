check_PROGRAMS += testsuite/check_sources
sources_tests = testsuite/check_sources
testsuite_check_sources_SOURCES = testsuite/layer_sources.c testsuite/suite.h \
	testsuite/source_util.h testsuite/tree_util.h testsuite/check_source.c testsuite/check_kinds.c \
	testsuite/check_documents.c
testsuite_check_sources_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(ARCHIVE_CFLAGS)
testsuite_check_sources_LDADD = $(WHOLE) src/libflsources.a src/libflbase.a $(NO_WHOLE) \
	$(SOURCES_OTHER_LIBS) $(CJSON_LIBS) $(XXHASH_LIBS) $(CHECK_LIBS)
