noinst_LIBRARIES += src/libflmodel.a
src_libflmodel_a_SOURCES = \
	src/model/block_attention.c \
	src/model/block_ffn.c \
	src/model/block_moe.c \
	src/model/block_ple.c \
	src/model/family.c src/model/family.h \
	src/model/family_gemma3.c \
	src/model/family_gemma4.c \
	src/model/generate.c src/model/generate.h \
	src/model/head.c \
	src/model/hparams.c src/model/hparams.h \
	src/model/internal.h \
	src/model/kv.c src/model/kv.h \
	src/model/layerwise.c src/model/layerwise.h \
	src/model/loader.h \
	src/model/model.c src/model/model.h \
	src/model/output_rows.c \
	src/model/pages.c \
	src/model/pass.c src/model/pass.h \
	src/model/sampler.c src/model/sampler.h \
	src/model/stages.h \
	src/model/tape.h \
	src/model/weights.c src/model/weights.h \
	src/model/weights_moe.c
MODEL_LIBS = src/libflmodel.a $(KERNELS_LIBS)
