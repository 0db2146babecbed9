/* sse.h - frames of a text/event-stream: JSON on one line between begin and end. */
#ifndef FL_HTTP_SSE_H
#define FL_HTTP_SSE_H

#include "base/buf.h"

void fl_sse_begin(fl_buf *out, const char *event); /* event: NULL for none */
void fl_sse_end(fl_buf *out);
void fl_sse_done(fl_buf *out);    /* "data: [DONE]" */
void fl_sse_comment(fl_buf *out); /* keeps proxies and clients waiting */

#endif
