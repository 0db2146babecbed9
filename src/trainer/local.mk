# trainer: the training of a fleet, round by round.
noinst_LIBRARIES += src/libfltrainer.a
src_libfltrainer_a_SOURCES = \
	src/trainer/control.c \
	src/trainer/dataset.c src/trainer/dataset.h \
	src/trainer/distractors.c src/trainer/distractors.h \
	src/trainer/heldout_eval.c \
	src/trainer/events.c \
	src/trainer/heldout.c src/trainer/heldout.h \
	src/trainer/init.c \
	src/trainer/init_match.c src/trainer/init_match.h \
	src/trainer/init_rows.c src/trainer/init_rows.h \
	src/trainer/lookahead.c src/trainer/lookahead.h \
	src/trainer/loop.c \
	src/trainer/ranks.c src/trainer/ranks.h \
	src/trainer/replay.c src/trainer/replay.h \
	src/trainer/residency.c src/trainer/residency.h \
	src/trainer/rotate.c src/trainer/rotate.h \
	src/trainer/round.c \
	src/trainer/sizes.c src/trainer/sizes.h \
	src/trainer/state.h \
	src/trainer/trainer.h
TRAINER_LIBS = src/libfltrainer.a $(ANSWER_LIBS)
