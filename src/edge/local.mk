# edge: what reaches out of the process. libmicrohttpd in http.c alone, libcurl in fetch.c, MPI in
# mpi.c.
noinst_LIBRARIES += src/libfledge.a
src_libfledge_a_SOURCES = \
	src/edge/api_chat.c \
	src/edge/api_embeddings.c \
	src/edge/api_messages.c \
	src/edge/api_models.c \
	src/edge/api_responses.c src/edge/api_responses.h \
	src/edge/api_responses_stream.c \
	src/edge/auth.c src/edge/auth.h \
	src/edge/call.c src/edge/call.h \
	src/edge/conns.c src/edge/conns.h \
	src/edge/fault.c src/edge/fault.h \
	src/edge/fetch.c src/edge/fetch.h \
	src/edge/fields.c src/edge/fields.h \
	src/edge/http.c src/edge/server.h \
	src/edge/inbox.c src/edge/inbox.h \
	src/edge/jsonw.c src/edge/jsonw.h \
	src/edge/listen.c src/edge/listen.h \
	src/edge/mpi.c src/edge/mpi.h \
	src/edge/prometheus.c \
	src/edge/route.c src/edge/route.h \
	src/edge/split.c src/edge/split.h \
	src/edge/sse.c src/edge/sse.h \
	src/edge/tools.c \
	src/edge/turn.c src/edge/turn.h
src_libfledge_a_CFLAGS = $(AM_CFLAGS) $(MICROHTTPD_CFLAGS) $(CURL_CFLAGS) $(MPI_CFLAGS)
EDGE_LIBS = src/libfledge.a $(SERVE_LIBS) $(MICROHTTPD_LIBS) $(CURL_LIBS) $(MPI_LIBS)
EXTRA_DIST += contrib/flotilla.service contrib/flotilla.default
