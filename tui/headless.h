/* headless.h - the facts without a screen: lines as they happen, or what is known now. */
#ifndef TUI_HEADLESS_H
#define TUI_HEADLESS_H

#include "base/buf.h"
#include "tui/feed.h"
#include "tui/tui.h"

/* As tui_watch with opt->headless or opt->once. Ends when every log has ended, at a signal as
 * the caller's handlers decide, or when `out` cannot be written. */
int tui_headless(const tui_options *opt, fl_err *err);

/* "live", "done", "gone", ... */
const char *tui_headless_state(const tui_feed *f);
/* Appends one line (with its newline) about an event; nothing for kinds that say nothing new. */
void tui_headless_line(fl_buf *out, tui_feed *f, size_t event);
/* Appends the state at the feed's cursor as one JSON object; unknown values are null. */
int tui_headless_json(fl_buf *out, tui_feed *f);
/* The same as a few lines of text. */
void tui_headless_text(fl_buf *out, tui_feed *f);

#endif
