# http: the server and its protocols; libmicrohttpd in http.c alone.
noinst_LIBRARIES += src/libflhttp.a
src_libflhttp_a_SOURCES = \
	src/http/api_chat.c \
	src/http/api_embeddings.c \
	src/http/api_error.c src/http/api_error.h \
	src/http/api_messages.c \
	src/http/api_models.c \
	src/http/api_request.c src/http/api_request.h \
	src/http/api_responses.c \
	src/http/auth.c src/http/auth.h \
	src/http/conns.c src/http/conns.h \
	src/http/http.c \
	src/http/job_events.c src/http/job_events.h \
	src/http/listen.c src/http/listen.h \
	src/http/output_parser.c src/http/output_parser.h \
	src/http/prometheus.c \
	src/http/response.c src/http/response.h \
	src/http/route.c src/http/route.h \
	src/http/server.h \
	src/http/tool_calls.c
src_libflhttp_a_CFLAGS = $(AM_CFLAGS) $(MICROHTTPD_CFLAGS)
HTTP_LIBS = src/libflhttp.a $(SERVE_LIBS) $(MICROHTTPD_LIBS)
EXTRA_DIST += contrib/flotilla.service contrib/flotilla.default
