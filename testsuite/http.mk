check_PROGRAMS += testsuite/check_http testsuite/fuzz_request
http_tests = testsuite/check_http testsuite/fuzz_request testsuite/cli/serve.sh testsuite/cli/curl.sh \
	testsuite/peers/clients.sh testsuite/peers/stress.sh
EXTRA_DIST += testsuite/cli/serve.sh testsuite/cli/curl.sh testsuite/peers/clients.sh \
	testsuite/corpus \
	testsuite/peers/stress.sh testsuite/peers/stress.py testsuite/peers/load.py \
	testsuite/peers/hostile.py testsuite/peers/speculate.py \
	testsuite/peers/openai_client.py testsuite/peers/anthropic_client.py \
	testsuite/peers/control_client.py
testsuite_check_http_SOURCES = testsuite/layer_http.c testsuite/suite.h testsuite/scratch.h \
	testsuite/http_util.h \
	testsuite/check_auth.c testsuite/check_request.c testsuite/check_server.c \
	testsuite/check_output_parser.c testsuite/check_response.c
testsuite_check_http_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) -Wno-missing-prototypes
testsuite_check_http_LDADD = $(WHOLE) src/libflhttp.a $(NO_WHOLE) $(HTTP_LIBS) $(CHECK_LIBS)
testsuite_fuzz_request_SOURCES = testsuite/fuzz_request.c
testsuite_fuzz_request_CFLAGS = $(AM_CFLAGS) -Wno-missing-prototypes
testsuite_fuzz_request_LDADD = $(HTTP_LIBS)

# The same target for libFuzzer, in a tree configured with CC=clang and
# CFLAGS="-g -O1 -fsanitize=fuzzer-no-link,address".
EXTRA_PROGRAMS += testsuite/libfuzz_request
testsuite_libfuzz_request_SOURCES = testsuite/fuzz_request.c
testsuite_libfuzz_request_CPPFLAGS = $(AM_CPPFLAGS) -DFL_LIBFUZZER
testsuite_libfuzz_request_CFLAGS = $(AM_CFLAGS) -Wno-missing-prototypes
testsuite_libfuzz_request_LDADD = $(HTTP_LIBS)
testsuite_libfuzz_request_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz-request: testsuite/libfuzz_request
	mkdir -p fuzz-corpus
	testsuite/libfuzz_request -max_total_time=$${FUZZ_SECONDS:-60} fuzz-corpus \
	  $(srcdir)/testsuite/corpus/request
.PHONY: fuzz-request
