# answer: what stands before a question, and the answer behind it.
noinst_LIBRARIES += src/libflanswer.a
src_libflanswer_a_SOURCES = \
	src/answer/answer.h \
	src/answer/cartridge_cache.c src/answer/cartridge_cache.h \
	src/answer/chat.c \
	src/answer/control_protocol.c src/answer/control_protocol.h \
	src/answer/fetch_plan.c src/answer/fetch_plan.h \
	src/answer/prefix.c src/answer/prefix.h \
	src/answer/reload.c src/answer/reload.h \
	src/answer/session.c src/answer/session.h
ANSWER_LIBS = src/libflanswer.a $(RETRIEVAL_LIBS)
