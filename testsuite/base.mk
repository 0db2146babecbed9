check_PROGRAMS += testsuite/check_base
TESTS += testsuite/check_base
testsuite_check_base_SOURCES = testsuite/layer_base.c testsuite/suite.h \
	testsuite/check_mem.c
testsuite_check_base_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_base_LDADD = $(WHOLE) src/libflbase.a $(NO_WHOLE) $(CJSON_LIBS) $(XXHASH_LIBS) $(CHECK_LIBS)
