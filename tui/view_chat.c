/* view_chat.c - talk to the fleet while it trains: the answer, where it comes from, and the bare
 * model's answer beside it. Without a trainer, the answers that the log holds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "tui/app.h"
#include "tui/format.h"

/* --- the transcript as lines ------------------------------------------------------------------ */

/* Lines are made twice: counted, and drawn from a first one on. */
typedef struct pen {
  tui_canvas *c; /* NULL: count */
  tui_rect r;
  long y; /* of the next line, relative to r.y; negative: above */
} pen;

static void put_text(pen *p, tui_style st, int indent, const char *s, size_t len) {
  size_t at = 0, n;
  const char *row;
  size_t cols = p->r.w > indent + 4 ? (size_t)(p->r.w - indent) : 4;
  while (tui_text_wrap(s, len, cols, &at, &row, &n)) {
    if (p->c && p->y >= 0 && p->y < p->r.h)
      tui_put_fit(p->c, p->r.x + indent, p->r.y + (int)p->y, (int)cols, st, row, n);
    p->y++;
  }
}

static void put_line(pen *p, tui_style st, int indent, const char *s) {
  put_text(p, st, indent, s, strlen(s));
}

/* "from a.md, b.md · 512 rows · 31 tok/s" of the last line of a reply or of an answer event. */
static void source_line(tui_app *a, const fl_json *j, char *out, size_t size) {
  const tui_feed *f = tui_app_feed(a);
  fl_buf b = { 0 };
  double v;
  char num[TUI_FMT];
  const fl_json *docs = fl_json_get(j, "docs");
  if (fl_json_is_arr(docs) && fl_json_len(docs)) {
    fl_buf_puts(&b, "from ");
    for (const fl_json *d = fl_json_first(docs); d; d = fl_json_next(d)) {
      const char *name = fl_json_as_str(d);
      char buf[32];
      size_t n = name ? strlen(name) : 0;
      if (!name) fl_json_get_str(d, "name", &name);
      if (name) n = strlen(name);
      if (!name && (fl_json_as_num(d, &v) || fl_json_get_num(d, "doc", &v)) && v >= 0 && v < 4e9) {
        const tui_doc *doc = tui_snapshot_doc(&f->snap, (uint32_t)v);
        name = doc ? tui_feed_doc_name(f, doc, buf, sizeof buf, &n) : NULL;
      }
      if (name) name = tui_text_base(name, &n);
      if (name) fl_buf_append(&b, name, tui_text_fit(name, n, 60));
      if (name && fl_json_next(d)) fl_buf_puts(&b, ", ");
    }
    fl_buf_puts(&b, " · ");
  }
  if (fl_json_get_num(j, "rows", &v)) fl_buf_printf(&b, "%.0f rows · ", v);
  if (fl_json_get_num(j, "tok_s", &v)) fl_buf_printf(&b, "%s tokens/s · ", tui_fmt_num(num, v, 1));
  if (fl_json_get_num(j, "seconds", &v)) fl_buf_printf(&b, "%s · ", tui_fmt_secs(num, v));
  size_t n = b.len > 4 ? b.len - 4 : 0; /* without the last " · " */
  if (n >= size) n = size - 1;
  n = tui_text_fit(b.data ? b.data : "", n, size);
  if (n) memcpy(out, b.data, n);
  out[n] = '\0';
  fl_buf_release(&b);
}

static void put_answer(tui_app *a, pen *p, const fl_buf *text, const fl_json *source,
                       const char *error, bool waiting) {
  char line[400];
  if (text->len) put_text(p, ST_TEXT, 2, text->data, text->len);
  if (source) {
    source_line(a, source, line, sizeof line);
    put_line(p, ST_DIM, 2, line);
  } else if (error[0]) {
    put_line(p, ST_BAD, 2, error);
  } else if (waiting) {
    put_line(p, ST_DIM, 2, text->len ? "…" : "thinking…");
  }
}

static void put_turns(tui_app *a, pen *p, bool bare) {
  tui_chat_state *st = &a->chat;
  for (size_t i = 0; i < st->n_turns; i++) {
    tui_turn *t = &st->turn[i];
    bool newest = i + 1 == st->n_turns;
    put_line(p, ST_BOLD, 0, t->question);
    if (bare) {
      bool waiting = newest && st->bare_link.state == TUI_LINK_WAITING;
      const char *none = t->bare.len || waiting ? "" : "not asked; F7 was off";
      put_answer(a, p, &t->bare, t->bare_source, none, waiting);
    } else {
      put_answer(a, p, &t->answer, t->source, t->error,
                 newest && st->link.state == TUI_LINK_WAITING);
    }
    p->y++;
  }
}

/* The answers of the log, as many of the newest as there is use for. */
static void put_logged(tui_app *a, pen *p) {
  tui_feed *f = tui_app_feed(a);
  size_t n = f->snap.n_answers, shown = n < TUI_DETAILS / 2 ? n : TUI_DETAILS / 2;
  char line[400];
  if (n == 0) {
    bool live = tui_action_live(a);
    put_line(p, ST_DIM, 0,
             live ? "Ask something about the documents; what was learnt so far "
                    "answers."
                  : "Nothing runs on this fleet now, and its log holds no answers. "
                    "`flotilla chat` or `flotilla serve` answers from it.");
    return;
  }
  put_line(p, ST_DIM, 0, "Answers in the log:");
  for (size_t i = n - shown; i < n; i++) {
    const tui_rec *r = tui_store_rec(&f->store, TUI_EV_ANSWER, i);
    const fl_json *j = tui_feed_detail(f, r->event);
    const char *query = NULL, *text = NULL;
    if (!j || !fl_json_get_str(j, "query", &query) || !fl_json_get_str(j, "text", &text)) continue;
    put_line(p, ST_BOLD, 0, query);
    put_line(p, ST_TEXT, 2, text);
    source_line(a, j, line, sizeof line);
    put_line(p, ST_DIM, 2, line);
    p->y++;
  }
}

static void put_all(tui_app *a, pen *p, bool bare) {
  if (a->chat.n_turns) put_turns(a, p, bare);
  else if (!bare) put_logged(a, p);
}

static void draw_transcript(tui_app *a, tui_canvas *c, tui_rect frame, const char *title,
                            bool bare) {
  tui_chat_state *st = &a->chat;
  tui_canvas_clip(c, frame);
  tui_rect in = tui_frame(c, frame, title);
  tui_canvas_clip(c, in);
  tui_rect r = { in.x + 1, in.y, in.w - 2, in.h };
  if (r.w < 4) return;
  pen count = { NULL, r, 0 };
  put_all(a, &count, bare);
  long above = count.y > r.h ? count.y - r.h : 0;
  if (st->scroll > (size_t)above && !bare) st->scroll = (size_t)above;
  long back = (long)st->scroll < above ? (long)st->scroll : above;
  pen p = { c, r, back - above };
  put_all(a, &p, bare);
}

static void draw(tui_app *a, tui_canvas *c) {
  const tui_rect *pane = a->layout.pane;
  tui_chat_state *st = &a->chat;
  bool split = pane[TUI_PANE_SIDE].w > 0;
  const char *title = split ? "With the fleet" : "Chat with the fleet";
  draw_transcript(a, c, pane[TUI_PANE_MAIN], title, false);
  if (split) draw_transcript(a, c, pane[TUI_PANE_SIDE], "The bare model", true);
  tui_canvas_clip(c, pane[TUI_PANE_LOWER]);
  title =
      st->focus ? "Enter asks, Esc leaves the field" : "i or Enter: ask    F7: bare answer beside";
  tui_rect r = tui_frame(c, pane[TUI_PANE_LOWER], title);
  tui_canvas_clip(c, r);
  tui_edit_draw(&st->input, c, r.x + 1, r.y, r.w - 2, st->focus);
}

/* --- asking ---------------------------------------------------------------------------------- */

static void take(fl_buf *text, fl_json **source, const fl_json *reply, bool last) {
  const char *token = NULL;
  bool ok = false;
  if (!last) {
    if (fl_json_get_str(reply, "token", &token)) fl_buf_puts(text, token);
    return;
  }
  if (!fl_json_get_bool(reply, "ok", &ok) || !ok) return;
  if (fl_json_get_str(reply, "text", &token)) {
    fl_buf_reset(text);
    fl_buf_puts(text, token);
  }
  fl_json_free(*source);
  *source = fl_json_dup(reply);
}

static void on_answer(void *ctx, const fl_json *reply, bool last) {
  tui_turn *t = ctx;
  take(&t->answer, &t->source, reply, last);
}

static void on_bare(void *ctx, const fl_json *reply, bool last) {
  tui_turn *t = ctx;
  take(&t->bare, &t->bare_source, reply, last);
}

bool tui_chat_poll(tui_app *a) {
  tui_chat_state *st = &a->chat;
  if (st->n_turns == 0) return false;
  tui_turn *t = &st->turn[st->n_turns - 1];
  bool changed = tui_link_poll(&st->link, on_answer, t);
  changed |= tui_link_poll(&st->bare_link, on_bare, t);
  if (st->link.state == TUI_LINK_FAILED && !t->error[0] && !t->source) {
    snprintf(t->error, sizeof t->error, "%s", st->link.error);
    changed = true;
  }
  return changed;
}

static void release_turn(tui_turn *t) {
  fl_free(t->question);
  fl_buf_release(&t->answer);
  fl_buf_release(&t->bare);
  fl_json_free(t->source);
  fl_json_free(t->bare_source);
  *t = (tui_turn){ 0 };
}

static void start(tui_app *a, tui_link *link, const char *question, bool bare) {
  fl_json *request = fl_json_object();
  if (request &&
      (!fl_json_set_str(request, "cmd", "ask") || !fl_json_set_str(request, "query", question) ||
       !fl_json_set_bool(request, "bare", bare))) {
    fl_json_free(request);
    request = NULL;
  }
  tui_link_start(link, tui_app_feed(a)->dir, request);
}

static void ask(tui_app *a) {
  tui_chat_state *st = &a->chat;
  if (st->input.len == 0) return;
  if (st->link.state == TUI_LINK_WAITING || st->bare_link.state == TUI_LINK_WAITING) {
    tui_app_say(a, true, "an answer is still coming; Ctrl-X gives it up");
    return;
  }
  char *question = fl_strdup(st->input.text);
  if (!question) return;
  if (st->n_turns == TUI_TURNS_MAX) {
    release_turn(&st->turn[0]);
    memmove(st->turn, st->turn + 1, (TUI_TURNS_MAX - 1) * sizeof *st->turn);
    st->n_turns--;
  }
  st->turn[st->n_turns++] = (tui_turn){ .question = question };
  st->scroll = 0;
  start(a, &st->link, question, false);
  if (st->split) start(a, &st->bare_link, question, true);
  tui_edit_accept(&st->input);
}

static void give_up(tui_app *a) {
  tui_chat_state *st = &a->chat;
  if (st->link.state == TUI_LINK_WAITING)
    snprintf(st->turn[st->n_turns - 1].error, sizeof st->turn[0].error, "given up");
  tui_link_close(&st->link);
  tui_link_close(&st->bare_link);
}

static void scroll(tui_app *a, long lines) {
  tui_chat_state *st = &a->chat;
  long to = (long)st->scroll + lines;
  st->scroll = to > 0 ? (size_t)to : 0;
}

static bool typing_key(tui_app *a, const tui_key *k) {
  tui_chat_state *st = &a->chat;
  if (k->code == TUI_KEY_ESC) st->focus = false;
  else if (k->code == TUI_KEY_ENTER) ask(a);
  else if (k->code == TUI_KEY_CHAR && !tui_app_field_takes(&st->input, true, k->cp)) return false;
  else return tui_edit_key(&st->input, k);
  return true;
}

static bool key(tui_app *a, const tui_key *k) {
  tui_chat_state *st = &a->chat;
  if (k->code == TUI_KEY_CTRL && k->cp == 'x') {
    give_up(a);
    return true;
  }
  if (k->code == TUI_KEY_F && k->cp == 7) {
    st->split = !st->split;
    tui_app_say(a, false,
                st->split ? "the bare model answers the next questions too"
                          : "the bare model is not asked any more");
    return true;
  }
  if (st->focus && typing_key(a, k)) return true;
  switch (k->code) {
  case TUI_KEY_PAGE_UP: scroll(a, 10); return true;
  case TUI_KEY_PAGE_DOWN: scroll(a, -10); return true;
  case TUI_KEY_UP: scroll(a, 1); return true;
  case TUI_KEY_DOWN: scroll(a, -1); return true;
  case TUI_KEY_END: st->scroll = 0; return true;
  case TUI_KEY_ENTER: st->focus = true; return true;
  case TUI_KEY_MOUSE:
    if (k->mouse == TUI_MOUSE_WHEEL_UP) scroll(a, 3);
    else if (k->mouse == TUI_MOUSE_WHEEL_DOWN) scroll(a, -3);
    else st->focus = k->y >= a->layout.pane[TUI_PANE_LOWER].y;
    return true;
  case TUI_KEY_CHAR:
    if (k->cp == 'i') st->focus = true;
    else if (k->cp == 'k') scroll(a, 1);
    else if (k->cp == 'j') scroll(a, -1);
    else return false;
    return true;
  default: return false;
  }
}

static bool typing(const tui_app *a, uint32_t cp) {
  return tui_app_field_takes(&a->chat.input, a->chat.focus, cp);
}

static const char *const help[][2] = {
  { "i Enter", "write a question; Enter asks, Esc leaves the field" },
  { "F7", "ask the bare model too, and show its answer beside" },
  { "Ctrl-X", "give up the answer that is coming" },
  { "up down", "in the field: earlier questions; outside: scroll" },
  { "PgUp PgDn", "scroll" },
  { NULL, NULL }
};

const tui_view tui_view_chat = { "chat", "Chat", draw, key, typing, help };
