/* sse.c - see sse.h. */
#include "http/sse.h"

void fl_sse_begin(fl_buf *out, const char *event) {
  if (event != NULL) fl_buf_printf(out, "event: %s\n", event);
  fl_buf_puts(out, "data: ");
}

void fl_sse_end(fl_buf *out) { fl_buf_puts(out, "\n\n"); }

void fl_sse_done(fl_buf *out) { fl_buf_puts(out, "data: [DONE]\n\n"); }

void fl_sse_comment(fl_buf *out) { fl_buf_puts(out, ": waiting\n\n"); }
