check_PROGRAMS += testsuite/check_fleet
TESTS += testsuite/check_fleet
testsuite_check_fleet_SOURCES = testsuite/layer_fleet.c testsuite/suite.h testsuite/fleet_util.h \
	testsuite/tree_util.h \
	testsuite/fleet_util.c \
	testsuite/check_ask.c \
	testsuite/check_commit.c \
	testsuite/check_control_socket.c \
	testsuite/check_coverage.c \
	testsuite/check_fleet.c \
	testsuite/check_given.c \
	testsuite/check_kept.c \
	testsuite/check_manifest.c \
	testsuite/check_options.c \
	testsuite/check_plan.c \
	testsuite/check_ranks.c testsuite/dist_util.h \
	testsuite/check_reconcile.c \
	testsuite/check_resume.c \
	testsuite/check_retrieval.c \
	testsuite/check_rotate.c \
	testsuite/check_visibility.c
testsuite_check_fleet_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_fleet_LDADD = $(WHOLE) src/libflfleet.a $(NO_WHOLE) $(FLEET_LIBS) $(CHECK_LIBS)
