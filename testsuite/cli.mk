# cli: the program as people meet it
cli_tests = \
	testsuite/cli/help.sh \
	testsuite/cli/usage.sh \
	testsuite/cli/bench.sh \
	testsuite/cli/archive.sh \
	testsuite/cli/context.sh \
	testsuite/cli/experts.sh \
	testsuite/cli/export.sh \
	testsuite/cli/info.sh \
	testsuite/cli/models.sh \
	testsuite/cli/mpi.sh \
	testsuite/cli/gates.sh \
	testsuite/cli/train.sh \
	testsuite/cli/eval.sh \
	testsuite/cli/refuse.sh testsuite/cli/retrieval.sh \
	testsuite/cli/remote.sh \
	testsuite/cli/study.sh \
	testsuite/cli/detached.sh
TESTS += $(cli_tests)
EXTRA_DIST += testsuite/cli/lib.sh $(cli_tests) testsuite/peers/remote_llama.sh \
	testsuite/peers/study_diff.py

# A server for the remote generator to meet.
check_PROGRAMS += testsuite/fake_openai
testsuite_fake_openai_SOURCES = testsuite/fake_openai.c
testsuite_fake_openai_LDADD =

# eval's parts, without a fleet
check_PROGRAMS += testsuite/check_eval
TESTS += testsuite/check_eval
testsuite_check_eval_SOURCES = testsuite/check_eval.c testsuite/suite.h testsuite/scratch.h \
	testsuite/model_util.h \
	src/commands/eval_html.c src/commands/eval_questions.c src/commands/eval_score.c \
	src/commands/eval_stats.c src/commands/eval_threshold.c
testsuite_check_eval_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -Wno-missing-prototypes
testsuite_check_eval_LDADD = $(TRAINER_LIBS) $(CHECK_LIBS)

# Models of every family and type, for the table in flotilla-models(7)
check_PROGRAMS += testsuite/make_model
testsuite_make_model_SOURCES = testsuite/make_model.c testsuite/random_weights.h
testsuite_make_model_LDADD = $(FORMATS_LIBS)

TESTS += testsuite/peers/llama_state.sh
EXTRA_DIST += testsuite/peers/llama_state.sh testsuite/peers/llama_state.py
