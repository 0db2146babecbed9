check_PROGRAMS += testsuite/make_events
testsuite_make_events_SOURCES = testsuite/make_events.c
testsuite_make_events_LDADD = src/libflbase.a $(CJSON_LIBS) $(XXHASH_LIBS)
