check_PROGRAMS += testsuite/check_trainer
trainer_short_suites = testsuite/trainer/fleet.suite testsuite/trainer/reconcile.suite \
	testsuite/trainer/dataset.suite testsuite/trainer/ask.suite testsuite/trainer/retrieval.suite \
	testsuite/trainer/distractors.suite testsuite/trainer/replay.suite \
	testsuite/trainer/rotate.suite testsuite/trainer/sizes.suite
trainer_suites = testsuite/trainer/resume.suite testsuite/trainer/ranks.suite $(trainer_short_suites)
$(trainer_suites): testsuite/check_trainer$(EXEEXT)
trainer_tests = $(trainer_suites)
testsuite_check_trainer_SOURCES = testsuite/layer_trainer.c testsuite/suite.h testsuite/fleet_util.h \
	testsuite/tree_util.h \
	testsuite/fleet_util.c testsuite/fleet_dirs.c testsuite/dist_util.h \
	testsuite/check_ask.c \
	testsuite/check_dataset.c \
	testsuite/check_distractors.c \
	testsuite/check_fleet.c \
	testsuite/check_ranks.c \
	testsuite/check_reconcile.c \
	testsuite/check_replay.c \
	testsuite/check_resume.c \
	testsuite/check_retrieval.c \
	testsuite/check_rotate.c \
	testsuite/check_sizes.c
testsuite_check_trainer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_trainer_LDADD = $(WHOLE) src/libfltrainer.a $(NO_WHOLE) $(TRAINER_LIBS) $(CHECK_LIBS)
