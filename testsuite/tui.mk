# The dashboard: its own tests, and helpers of the tests in a terminal.
check_PROGRAMS += testsuite/check_tui testsuite/make_events testsuite/fake_trainer
testsuite_check_tui_SOURCES = testsuite/layer_tui.c testsuite/suite.h \
	testsuite/check_control.c testsuite/check_headless.c testsuite/check_layout.c \
	testsuite/check_pictures.c testsuite/views_util.h \
	testsuite/check_reader.c testsuite/check_scan.c testsuite/check_schema.c testsuite/check_series.c \
	testsuite/check_snapshot.c testsuite/check_tui_text.c testsuite/check_views.c
testsuite_check_tui_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)
testsuite_check_tui_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_tui_LDADD = $(WHOLE) tui/libfltui.a src/libflbase.a $(NO_WHOLE) \
	$(NCURSES_LIBS) $(CJSON_LIBS) $(XXHASH_LIBS) $(CHECK_LIBS)
testsuite_make_events_SOURCES = testsuite/make_events.c
testsuite_make_events_LDADD = $(BASE_LIBS)
testsuite_fake_trainer_SOURCES = testsuite/fake_trainer.c
testsuite_fake_trainer_LDADD = $(BASE_LIBS)

# In a real terminal (skipped without tmux).
tui_scripts = \
	testsuite/tui/views.sh \
	testsuite/tui/keys.sh \
	testsuite/tui/live.sh \
	testsuite/tui/restore.sh \
	testsuite/tui/compare.sh \
	testsuite/tui/hostile.sh \
	testsuite/tui/demo.sh \
	testsuite/tui/disturb.sh \
	testsuite/tui/schema.sh \
	testsuite/tui/server.sh
tui_tests = testsuite/check_tui $(tui_scripts)
EXTRA_DIST += testsuite/tui/lib.sh testsuite/tui/measure.sh testsuite/tui/golden \
	fixtures/events $(tui_scripts)
