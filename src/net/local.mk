# net: requests to other servers (libcurl in fetch.c alone), ranks (MPI in mpi.c alone).
noinst_LIBRARIES += src/libflnet.a
src_libflnet_a_SOURCES = \
	src/net/fetch.c src/net/fetch.h \
	src/net/mpi.c src/net/mpi.h \
	src/net/remote.c src/net/remote.h src/net/remote_teacher.c \
	src/net/remote_reply.c src/net/remote_reply.h
src_libflnet_a_CFLAGS = $(AM_CFLAGS) $(CURL_CFLAGS) $(MPI_CFLAGS)
NET_LIBS = src/libflnet.a $(TRAINER_LIBS) $(CURL_LIBS) $(MPI_LIBS)
