# convert: models, cartridges and fleets in the forms of other programs and back.
noinst_LIBRARIES += src/libflconvert.a
src_libflconvert_a_SOURCES = \
	src/convert/archive_read.c \
	src/convert/archive_write.c \
	src/convert/convert.h \
	src/convert/model.c \
	src/convert/shape.c src/convert/shape.h \
	src/convert/state.c \
	src/convert/torch_read.c \
	src/convert/torch_write.c
src_libflconvert_a_CFLAGS = $(AM_CFLAGS) $(ARCHIVE_CFLAGS)
CONVERT_LIBS = src/libflconvert.a $(GATE_LIBS)
