/* headless.h - the facts without a screen: lines as they happen, or what is known now. */
#ifndef FL_TUI_HEADLESS_H
#define FL_TUI_HEADLESS_H

#include "base/buf.h"
#include "tui/feed.h"
#include "tui/tui.h"

/* As fl_tui_watch with opt->headless or opt->once. Ends when every log has ended, at a signal as
 * the caller's handlers decide, or when `out` cannot be written. */
int fl_headless(const fl_tui_options *opt, fl_err *err);

/* "live", "done", "gone", ... */
const char *fl_headless_state(const fl_feed *f);
/* Appends one line (with its newline) about an event; nothing for kinds that say nothing new. */
void fl_headless_line(fl_buf *out, fl_feed *f, size_t event);
/* Appends the state at the feed's cursor as one JSON object; unknown values are null. */
int fl_headless_json(fl_buf *out, fl_feed *f);
/* The same as a few lines of text. */
void fl_headless_text(fl_buf *out, fl_feed *f);

#endif
