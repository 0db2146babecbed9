noinst_LIBRARIES += src/libflformats.a
# Values of quantised weights are defined without fused multiply-add, whatever the machine offers.
src_libflformats_a_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
src_libflformats_a_SOURCES = \
	src/formats/dtype.c src/formats/dtype.h \
	src/formats/fza.c src/formats/fza.h \
	src/formats/gguf.c src/formats/gguf.h \
	src/formats/gguf_meta.c src/formats/gguf_private.h \
	src/formats/gguf_write.c src/formats/gguf_write.h \
	src/formats/quant.h \
	src/formats/quant_block.c \
	src/formats/quant_float.c \
	src/formats/quant_k.c \
	src/formats/safetensors.c src/formats/safetensors.h \
	src/formats/safetensors_write.c \
	src/formats/torch_file.c src/formats/torch_file.h \
	src/formats/torch_pickle.c src/formats/torch_pickle.h \
	src/formats/transcode.c src/formats/transcode.h
FORMATS_LIBS = src/libflformats.a $(BASE_LIBS)
