# cli: the program as people meet it
cli_scripts = \
	testsuite/cli/help.sh \
	testsuite/cli/usage.sh \
	testsuite/cli/context.sh \
	testsuite/cli/experts.sh \
	testsuite/cli/info.sh \
	testsuite/cli/models.sh \
	testsuite/cli/mpi.sh \
	testsuite/cli/train.sh \
	testsuite/cli/match.sh \
	testsuite/cli/eval.sh \
	testsuite/cli/refuse.sh testsuite/cli/retrieval.sh \
	testsuite/cli/remote.sh \
	testsuite/cli/study.sh \
	testsuite/cli/detached.sh
cli_tests = $(cli_scripts)
EXTRA_DIST += testsuite/cli/lib.sh $(cli_scripts) testsuite/peers/remote_llama.sh \
	testsuite/peers/study_diff.py

# The tables of options, and how they are read
check_PROGRAMS += testsuite/check_options
cli_tests += testsuite/check_options
testsuite_check_options_SOURCES = testsuite/check_options.c testsuite/suite.h
testsuite_check_options_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
testsuite_check_options_LDADD = $(COMMANDS_LIBS) $(CHECK_LIBS)

# A server for the remote generator to meet.
check_PROGRAMS += testsuite/fake_openai
testsuite_fake_openai_SOURCES = testsuite/fake_openai.c
testsuite_fake_openai_LDADD =

# Models of every family and type, for the table in flotilla-models(7)
check_PROGRAMS += testsuite/make_model
testsuite_make_model_SOURCES = testsuite/make_model.c testsuite/random_weights.h
testsuite_make_model_LDADD = $(FORMATS_LIBS)

cli_tests += testsuite/peers/llama_state.sh
EXTRA_DIST += testsuite/peers/llama_state.sh testsuite/peers/llama_state.py
