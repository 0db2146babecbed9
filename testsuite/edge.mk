check_PROGRAMS += testsuite/check_edge
TESTS += testsuite/check_edge testsuite/cli/serve.sh testsuite/peers/clients.sh
EXTRA_DIST += testsuite/cli/serve.sh testsuite/peers/clients.sh \
	testsuite/peers/openai_client.py testsuite/peers/anthropic_client.py
testsuite_check_edge_SOURCES = testsuite/layer_edge.c testsuite/suite.h testsuite/scratch.h \
	testsuite/edge_util.h \
	testsuite/check_auth.c testsuite/check_request.c testsuite/check_server.c \
	testsuite/check_split.c testsuite/check_turn.c
testsuite_check_edge_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -Wno-missing-prototypes
testsuite_check_edge_LDADD = $(WHOLE) src/libfledge.a $(NO_WHOLE) $(EDGE_LIBS) $(CHECK_LIBS)
