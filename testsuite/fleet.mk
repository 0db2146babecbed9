check_PROGRAMS += testsuite/check_fleet
fleet_tests = testsuite/check_fleet
testsuite_check_fleet_SOURCES = testsuite/layer_fleet.c testsuite/suite.h testsuite/fleet_util.h \
	testsuite/tree_util.h testsuite/fleet_dirs.c \
	testsuite/check_commit.c \
	testsuite/check_control_socket.c \
	testsuite/check_coverage.c \
	testsuite/check_manifest.c \
	testsuite/check_train_options.c
testsuite_check_fleet_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_fleet_LDADD = $(WHOLE) src/libflfleet.a $(NO_WHOLE) $(FLEET_LIBS) $(CHECK_LIBS)
