# eval: questions with known answers, asked of a fleet in several ways.
noinst_LIBRARIES += src/libfleval.a
src_libfleval_a_SOURCES = \
	src/eval/eval.h \
	src/eval/html.c \
	src/eval/prefix.c \
	src/eval/questions.c \
	src/eval/run.c \
	src/eval/score.c src/eval/score.h \
	src/eval/state.h \
	src/eval/stats.c src/eval/stats.h \
	src/eval/summary.c \
	src/eval/threshold.c
EVAL_LIBS = src/libfleval.a $(HTTP_LIBS)
