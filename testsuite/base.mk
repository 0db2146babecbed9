check_PROGRAMS += testsuite/check_base
base_tests = testsuite/check_base testsuite/cli/layers.sh testsuite/cli/suites.sh \
	testsuite/cli/format.sh
EXTRA_DIST += testsuite/cli/layers.sh testsuite/cli/suites.sh \
	testsuite/cli/format.sh
testsuite_check_base_SOURCES = testsuite/layer_base.c testsuite/suite.h testsuite/scratch.h \
	testsuite/check_buf.c testsuite/check_clock.c testsuite/check_cond.c \
	testsuite/check_err.c testsuite/check_events.c testsuite/check_events_file.c testsuite/check_fs.c \
	testsuite/check_hash.c testsuite/check_json.c testsuite/check_mem.c testsuite/check_rng.c \
	testsuite/check_sort.c testsuite/check_units.c testsuite/check_utf8.c \
	testsuite/check_worker.c
testsuite_check_base_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -Wno-missing-prototypes
testsuite_check_base_LDADD = $(WHOLE) src/libflbase.a $(NO_WHOLE) $(CJSON_LIBS) \
	$(XXHASH_LIBS) $(CHECK_LIBS)
