/* edit.c - the line editor of prompts, queries and chat. */
#include "tui/edit.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

void tui_edit_set(tui_edit *e, const char *text) {
  size_t n = strlen(text);
  if (n > TUI_EDIT_MAX) n = fl_utf8_whole_prefix(text, TUI_EDIT_MAX);
  memcpy(e->text, text, n);
  e->text[n] = '\0';
  e->len = e->cursor = n;
  e->browsing = e->n_history;
}

void tui_edit_release(tui_edit *e) {
  for (size_t i = 0; i < e->n_history; i++) fl_free(e->history[i]);
  *e = (tui_edit){ 0 };
}

void tui_edit_accept(tui_edit *e) {
  bool repeated = e->n_history && strcmp(e->history[e->n_history - 1], e->text) == 0;
  char *copy = e->len && !repeated ? fl_strdup(e->text) : NULL;
  if (copy) {
    if (e->n_history == TUI_EDIT_HISTORY) {
      fl_free(e->history[0]);
      memmove(e->history, e->history + 1, (TUI_EDIT_HISTORY - 1) * sizeof *e->history);
      e->n_history--;
    }
    e->history[e->n_history++] = copy;
  }
  tui_edit_set(e, "");
}

static size_t before(const tui_edit *e, size_t at) {
  while (at > 0) {
    at--;
    if (((unsigned char)e->text[at] & 0xC0) != 0x80) break;
  }
  return at;
}

static size_t after(const tui_edit *e, size_t at) {
  if (at < e->len) at++;
  while (at < e->len && ((unsigned char)e->text[at] & 0xC0) == 0x80) at++;
  return at;
}

static void cut(tui_edit *e, size_t from, size_t to) {
  memmove(e->text + from, e->text + to, e->len - to + 1);
  e->len -= to - from;
  e->cursor = from;
}

static void insert(tui_edit *e, uint32_t cp) {
  char utf8[4];
  size_t n = fl_utf8_encode(utf8, cp);
  if (e->len + n > TUI_EDIT_MAX) return;
  memmove(e->text + e->cursor + n, e->text + e->cursor, e->len - e->cursor + 1);
  memcpy(e->text + e->cursor, utf8, n);
  e->len += n;
  e->cursor += n;
}

static void browse(tui_edit *e, int direction) {
  size_t to = e->browsing;
  if (direction < 0 && to > 0) to--;
  else if (direction > 0 && to < e->n_history) to++;
  if (to == e->browsing) return;
  tui_edit_set(e, to < e->n_history ? e->history[to] : "");
  e->browsing = to;
}

static size_t word_start(const tui_edit *e) {
  size_t at = e->cursor;
  while (at > 0 && e->text[at - 1] == ' ') at--;
  while (at > 0 && e->text[at - 1] != ' ') at--;
  return at;
}

static bool control_key(tui_edit *e, uint32_t letter) {
  switch (letter) {
  case 'a': e->cursor = 0; return true;
  case 'e': e->cursor = e->len; return true;
  case 'u': cut(e, 0, e->cursor); return true;
  case 'k': cut(e, e->cursor, e->len); return true;
  case 'w': cut(e, word_start(e), e->cursor); return true;
  default: return false;
  }
}

bool tui_edit_key(tui_edit *e, const tui_key *k) {
  switch (k->code) {
  case TUI_KEY_CHAR: insert(e, k->cp); return true;
  case TUI_KEY_CTRL: return control_key(e, k->cp);
  case TUI_KEY_LEFT: e->cursor = before(e, e->cursor); return true;
  case TUI_KEY_RIGHT: e->cursor = after(e, e->cursor); return true;
  case TUI_KEY_HOME: e->cursor = 0; return true;
  case TUI_KEY_END: e->cursor = e->len; return true;
  case TUI_KEY_UP: browse(e, -1); return true;
  case TUI_KEY_DOWN: browse(e, 1); return true;
  case TUI_KEY_BACKSPACE:
    if (e->cursor > 0) cut(e, before(e, e->cursor), e->cursor);
    return true;
  case TUI_KEY_DELETE:
    if (e->cursor < e->len) cut(e, e->cursor, after(e, e->cursor));
    return true;
  default: return false;
  }
}

void tui_edit_draw(const tui_edit *e, tui_canvas *c, int x, int y, int cols, bool focus) {
  if (cols < 2) return;
  tui_fill(c, (tui_rect){ x, y, cols, 1 }, ST_INPUT, ' ');
  size_t start = 0;
  while (tui_text_columns(e->text + start, e->cursor - start) > (size_t)cols - 1)
    start = after(e, start);
  size_t fit = tui_text_fit(e->text + start, e->len - start, (size_t)cols - 1);
  tui_put_fit(c, x, y, cols, ST_INPUT, e->text + start, fit);
  if (!focus) return;
  c->cursor_x = x + (int)tui_text_columns(e->text + start, e->cursor - start);
  c->cursor_y = y;
}
