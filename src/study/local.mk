noinst_LIBRARIES += src/libflstudy.a
src_libflstudy_a_SOURCES = \
	src/study/anchored.c src/study/anchored.h \
	src/study/bots.c src/study/maker.h \
	src/study/chunk.c \
	src/study/conv.c src/study/conv.h \
	src/study/conv_json.c src/study/conv_json.h \
	src/study/doc_text.c \
	src/study/echo.c src/study/echo.h \
	src/study/examples.c src/study/examples.h \
	src/study/forced.c src/study/forced.h \
	src/study/mix.c src/study/mix.h \
	src/study/note.c src/study/note.h \
	src/study/part.c src/study/part.h \
	src/study/reject.c src/study/reject.h \
	src/study/retell.c src/study/retell.h \
	src/study/seeds_file.c \
	src/study/sentence.c src/study/sentence.h \
	src/study/spans.c src/study/spans.h \
	src/study/study.c src/study/study.h \
	src/study/study_file.c src/study/study_file.h \
	src/study/terms.c src/study/terms.h
STUDY_LIBS = src/libflstudy.a $(CARTRIDGE_LIBS)
