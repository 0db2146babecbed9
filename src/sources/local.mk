noinst_LIBRARIES += src/libflsources.a
src_libflsources_a_CFLAGS = $(AM_CFLAGS) $(XML_CFLAGS) $(POPPLER_CFLAGS) $(GMIME_CFLAGS) \
	$(ARCHIVE_CFLAGS)
src_libflsources_a_SOURCES = \
	src/sources/decode.c \
	src/sources/folder.c src/sources/folder.h \
	src/sources/kind.h \
	src/sources/source.c src/sources/source.h \
	src/sources/source_csv.c \
	src/sources/source_html.c \
	src/sources/source_json.c \
	src/sources/source_latex.c \
	src/sources/source_mail.c \
	src/sources/source_pdf.c \
	src/sources/source_slack.c \
	src/sources/source_text.c
# What the kinds need besides the layer.
SOURCES_OTHER_LIBS = $(XML_LIBS) $(POPPLER_LIBS) $(GMIME_LIBS) $(ARCHIVE_LIBS)
SOURCES_LIBS = src/libflsources.a $(SOURCES_OTHER_LIBS)
