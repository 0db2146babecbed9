/* text.h - the one sanitiser. Whatever comes from a log, a document or a socket reaches the screen,
 * a file or a pipe only as glyphs made here: no control character, no escape sequence, no
 * bidirectional override, and a width that is known. Columns are terminal cells.
 */
#ifndef TUI_TEXT_H
#define TUI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { TUI_COMBINING_MAX = 2 }; /* marks kept on one glyph; further ones are dropped */

typedef struct tui_glyph {
  uint32_t cp;
  uint32_t comb[TUI_COMBINING_MAX]; /* 0: none */
  int width;                        /* 1 or 2 */
} tui_glyph;

/* 0 for a combining mark, 1 or 2 for what has a glyph, -1 for controls, format characters,
 * surrogates, private use and values above U+10FFFF. */
int tui_text_width(uint32_t cp);

/* The glyph at s[*at], *at moved past it and its marks; false at the end. White space of any kind
 * is a space, everything without a glyph and invalid bytes are U+FFFD, stray marks are dropped. */
bool tui_text_next(tui_glyph *out, const char *s, size_t len, size_t *at);

/* Columns that s[0..len) takes. */
size_t tui_text_columns(const char *s, size_t len);
/* The longest prefix, in bytes, that takes at most `cols` columns. */
size_t tui_text_fit(const char *s, size_t len, size_t cols);

/* One line of s[*at..len) broken at spaces and newlines to at most `cols` > 0 columns: returns its
 * length in bytes from *at and moves *at to where the next line begins. False at the end. */
bool tui_text_wrap(const char *s, size_t len, size_t cols, size_t *at, const char **line,
                   size_t *line_len);

/* Appends the sanitised UTF-8 of s; with `ascii`, every glyph outside ASCII becomes '?'. */
void tui_text_clean(fl_buf *out, const char *s, size_t len, bool ascii);

/* The last component of a path and its length; a path that ends in '/' as it is. */
const char *tui_text_base(const char *path, size_t *len);

/* The ASCII stand-in of a drawing character (frames, blocks, arrows, braille), '?' for others. */
char tui_text_ascii(uint32_t cp);

#endif
