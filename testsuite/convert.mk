check_PROGRAMS += testsuite/check_convert
convert_tests = testsuite/check_convert testsuite/cli/archive.sh testsuite/cli/export.sh
EXTRA_DIST += testsuite/cli/archive.sh testsuite/cli/export.sh
testsuite_check_convert_SOURCES = testsuite/check_convert.c testsuite/cart_util.h testsuite/model_util.h \
	testsuite/suite.h testsuite/scratch.h
testsuite_check_convert_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -Wno-missing-prototypes
testsuite_check_convert_LDADD = $(WHOLE) src/libflconvert.a $(NO_WHOLE) $(CONVERT_LIBS) \
	$(CHECK_LIBS)
