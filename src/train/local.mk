noinst_LIBRARIES += src/libfltrain.a
src_libfltrain_a_SOURCES = \
	src/train/dist.c src/train/dist.h \
	src/train/shard.c src/train/shard.h \
	src/train/step.c src/train/step.h
TRAIN_LIBS = src/libfltrain.a $(STUDY_LIBS)
