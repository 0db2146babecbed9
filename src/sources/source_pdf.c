/* source_pdf.c - the text of PDF files, page by page, by poppler. Scanned pages hold none: a file
 * without any is refused with what to do. */
#include <string.h>

#include "sources/kind.h"
#include "sources/source.h"

#ifdef HAVE_POPPLER
#include <poppler.h>

/* Poppler reports oddities through GLib's log, which would go to standard error. */
static void say_nothing(const char *domain, GLogLevelFlags level, const char *text, void *data) {
  (void)domain, (void)level, (void)text, (void)data;
}

static int open_failed(const char *path, const GError *e, fl_err *err) {
  if (g_error_matches(e, POPPLER_ERROR, POPPLER_ERROR_ENCRYPTED))
    return fl_fail(err, FL_EINPUT, "%s: locked with a password; save it without one", path);
  return fl_fail(err, FL_EINPUT, "%s: not a whole PDF file; mend it or leave it out", path);
}

static bool visible(const char *s) {
  for (; *s; s++)
    if ((unsigned char)*s > ' ') return true;
  return false;
}

static int read_pages(fl_buf *text, PopplerDocument *doc, const char *path, fl_err *err) {
  int pages = poppler_document_get_n_pages(doc), empty = 0;
  for (int i = 0; i < pages; i++) {
    PopplerPage *page = poppler_document_get_page(doc, i);
    char *s = page ? poppler_page_get_text(page) : NULL;
    if (s && visible(s)) {
      if (text->len > 0) fl_buf_puts(text, "\n\n");
      fl_source_put_clean(text, s, strlen(s));
    } else {
      empty++;
    }
    g_free(s);
    if (page) g_object_unref(page);
    if (text->len > FL_SOURCE_MAX_BYTES) return fl_source_too_much(path, err);
  }
  if (empty == pages)
    return fl_fail(err, FL_EINPUT,
                   "%s: no text in its %d page%s, so they are pictures; run it "
                   "through text recognition (ocrmypdf) first",
                   path, pages, pages == 1 ? "" : "s");
  fl_buf_putc(text, '\n');
  return FL_OK;
}

static int read_pdf(fl_buf *text, const fl_source_input *in, fl_err *err) {
  GError *e = NULL;
  if (in->len == 0) return FL_OK;
  guint handler =
      g_log_set_handler("Poppler", G_LOG_LEVEL_MASK | G_LOG_FLAG_RECURSION, say_nothing, NULL);
  GBytes *bytes = g_bytes_new_static(in->bytes, in->len);
  PopplerDocument *doc = poppler_document_new_from_bytes(bytes, NULL, &e);
  int rc = doc ? read_pages(text, doc, in->path, err) : open_failed(in->path, e, err);
  if (doc) g_object_unref(doc);
  g_bytes_unref(bytes);
  g_clear_error(&e);
  g_log_remove_handler("Poppler", handler);
  return rc;
}

#define NEEDS NULL
#define READ read_pdf
#else
#define NEEDS "libpoppler-glib-dev"
#define READ NULL
#endif

static const char *const suffixes[] = { ".pdf", NULL };

const fl_source_kind fl_source_kind_pdf = {
  .name = "PDF", .suffixes = suffixes, .needs = NEEDS, .max_bytes = FL_SOURCE_MAX_FILE, .read = READ
};
