/* app.c - life of the dashboard, time, and where a key goes. */
#include "tui/app.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"

const char *const tui_view_names[] = {
  "fleet", "loss", "retrieval", "chat", "study", "cost", NULL
};

const tui_view *const tui_views[TUI_VIEWS] = { &tui_view_fleet,     &tui_view_loss,
                                               &tui_view_retrieval, &tui_view_chat,
                                               &tui_view_study,     &tui_view_cost };

static const double message_s = 6;
static const double speed_max = 65536;
static const double leave_s = 8; /* long enough to see the last figures and to press a key */

/* --- life ------------------------------------------------------------------------------------ */

static int check_path(const tui_options *opt, const char *path, fl_err *err) {
  if (fl_fs_exists(path) || opt->wait) return FL_OK;
  return fl_fail(err, FL_ENOENT, "%s: no such fleet folder; give one that `flotilla train` made",
                 path);
}

static int find_view(tui_app *a, const char *name, fl_err *err) {
  for (int v = 0; v < TUI_VIEWS; v++)
    if (strcmp(name, tui_view_names[v]) == 0) {
      a->view = (tui_view_id)v;
      return FL_OK;
    }
  return fl_fail(err, FL_EUSAGE,
                 "--view %s: there is no such view; give fleet, loss, retrieval, chat, study or "
                 "cost",
                 name);
}

int tui_app_init(tui_app *a, const tui_options *opt, fl_err *err) {
  *a = (tui_app){ .fleet.selected = TUI_NONE,
                  .loss = { .fit = true, .cursor = NAN },
                  .speed = 1,
                  .retrieval = { .selected = SIZE_MAX },
                  .now = NAN,
                  .leave = opt->leave };
  if (opt->n_fleets < 1 || opt->n_fleets > TUI_FEEDS_MAX)
    return fl_fail(err, FL_EUSAGE, "watch: give 1 to %d fleet folders", TUI_FEEDS_MAX);
  tui_settings_default(&a->settings);
  tui_settings_load(&a->settings);
  a->view = (tui_view_id)a->settings.view;
  int rc = opt->view ? find_view(a, opt->view, err) : FL_OK;
  for (size_t i = 0; rc == FL_OK && i < opt->n_fleets; i++) {
    rc = check_path(opt, opt->fleets[i], err);
    if (rc != FL_OK) break;
    rc = tui_feed_open(&a->feed[i], opt->fleets[i]);
    if (rc != FL_OK) return fl_fail(err, rc, "watch: no memory for %s", opt->fleets[i]);
    a->n_feeds++;
  }
  if (rc == FL_OK && tui_feed_tell_apart(a->feed, opt->fleets, a->n_feeds) != FL_OK)
    return fl_fail(err, FL_ENOMEM, "watch: no memory");
  if (opt->speed > 0) {
    a->speed = opt->speed;
    a->playing = true;
    a->play_t = NAN;
  }
  return rc;
}

void tui_app_release(tui_app *a) {
  for (size_t i = 0; i < a->n_feeds; i++) tui_feed_close(&a->feed[i]);
  tui_edit_release(&a->prompt_edit);
  tui_link_release(&a->command);
  fl_free(a->fleet.order);
  tui_edit_release(&a->retrieval.input);
  tui_link_release(&a->retrieval.link);
  fl_json_free(a->retrieval.result);
  tui_edit_release(&a->chat.input);
  tui_link_release(&a->chat.link);
  tui_link_release(&a->chat.bare_link);
  for (size_t i = 0; i < a->chat.n_turns; i++) {
    tui_turn *t = &a->chat.turn[i];
    fl_free(t->question);
    fl_buf_release(&t->answer);
    fl_buf_release(&t->bare);
    fl_json_free(t->source);
    fl_json_free(t->bare_source);
  }
  *a = (tui_app){ 0 };
}

void tui_app_say(tui_app *a, bool is_error, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(a->message, sizeof a->message, fmt, ap);
  va_end(ap);
  a->message_is_error = is_error;
  a->message_until = fl_now_s() + message_s;
}

double tui_app_now(const tui_app *a, const tui_feed *f) {
  tui_feed_state st = tui_feed_status(f);
  bool open =
      st == TUI_FEED_LIVE || st == TUI_FEED_PAUSED || st == TUI_FEED_QUIET || st == TUI_FEED_DEAD;
  return open && f->follow && !isnan(a->now) ? a->now : f->snap.t;
}

/* --- time ------------------------------------------------------------------------------------ */

/* Moves the shown moment on by `dt` seconds at the chosen speed. A pause in the log of more than
 * two seconds on the screen is jumped over. */
static bool play(tui_app *a, double dt) {
  tui_feed *f = tui_app_feed(a);
  const tui_store *st = &f->store;
  if (!f->caught_up || st->n_ticks == 0) return false;
  if (isnan(a->play_t)) { /* from the beginning */
    a->play_t = tui_store_t(st, 0);
    tui_feed_seek(f, 1);
    return true;
  }
  size_t before = f->cursor;
  a->play_t += dt * a->speed;
  size_t to = tui_store_seek(st, a->play_t);
  if (to < before) to = before;
  if (to == before && to < st->n_ticks && tui_store_t(st, to) - a->play_t > 2 * a->speed)
    a->play_t = tui_store_t(st, to);
  if (to != before) tui_feed_seek(f, to);
  if (f->cursor >= st->n_ticks) a->playing = false;
  return f->cursor != before || !a->playing;
}

/* Leaves when its time has come; true when the count of seconds changes. */
static bool leave_by_itself(tui_app *a, double mono) {
  tui_feed_state st = tui_feed_status(tui_app_feed(a));
  bool ended =
      st == TUI_FEED_DONE || st == TUI_FEED_STOPPED || st == TUI_FEED_FAILED || st == TUI_FEED_DEAD;
  if (!a->leave || !ended) {
    a->leave_at = 0;
    return false;
  }
  if (a->leave_at <= 0) a->leave_at = mono + leave_s;
  if (mono >= a->leave_at) a->quit = true;
  return true;
}

int tui_app_leaves_in(const tui_app *a) {
  double left = a->leave_at - fl_now_s();
  return a->leave_at <= 0 ? 0 : left > 1 ? (int)ceil(left) : 1;
}

bool tui_app_tick(tui_app *a, double seconds, bool *more) {
  double mono = fl_now_s();
  bool changed = false;
  *more = false;
  a->now = fl_wall_s();
  for (size_t i = 0; i < a->n_feeds; i++) {
    bool again = false;
    changed |= tui_feed_poll(&a->feed[i], seconds / (double)a->n_feeds, &again);
    *more |= again;
  }
  if (a->playing && a->last_tick > 0) changed |= play(a, mono - a->last_tick);
  a->last_tick = mono;
  changed |= tui_action_poll(a);
  changed |= tui_retrieval_poll(a);
  changed |= tui_chat_poll(a);
  changed |= leave_by_itself(a, mono);
  if (a->message[0] && mono > a->message_until) {
    a->message[0] = '\0';
    changed = true;
  }
  return changed;
}

double tui_app_patience(const tui_app *a) {
  if (a->playing) return 0.1;
  if (a->retrieval.due > 0) return 0.1;
  const tui_link *const links[] = { &a->command, &a->retrieval.link, &a->chat.link,
                                    &a->chat.bare_link };
  for (size_t i = 0; i < sizeof links / sizeof *links; i++)
    if (links[i]->state == TUI_LINK_WAITING) return 0.1;
  for (size_t i = 0; i < a->n_feeds; i++) {
    tui_feed_state st = tui_feed_status(&a->feed[i]);
    if (st == TUI_FEED_LIVE && fl_now_s() - a->feed[i].heard < 1) return 0.1; /* events stream in */
    if (st == TUI_FEED_LIVE || st == TUI_FEED_READING || st == TUI_FEED_WAITING) return 0.2;
  }
  return 0.5;
}

/* --- keys ------------------------------------------------------------------------------------ */

void tui_app_show(tui_app *a, tui_view_id view) {
  a->view = view;
  a->settings_changed |= a->settings.view != (int)a->view;
  a->settings.view = (int)a->view;
  if (a->view == TUI_VIEW_RETRIEVAL) a->retrieval.focus = tui_action_live(a);
  if (a->view == TUI_VIEW_CHAT) a->chat.focus = tui_action_live(a);
}

static void ask(tui_app *a, tui_prompt what, const char *text) {
  a->prompt = what;
  tui_edit_set(&a->prompt_edit, text);
}

static void prompt_done(tui_app *a) {
  tui_prompt what = a->prompt;
  a->prompt = TUI_ASK_NOTHING;
  if (what == TUI_ASK_SEARCH) {
    snprintf(a->search, sizeof a->search, "%.*s", (int)sizeof a->search - 1, a->prompt_edit.text);
    tui_fleet_search(a, 1);
  } else if (what == TUI_ASK_COMMAND) {
    tui_action_command(a, a->prompt_edit.text);
  }
  tui_edit_accept(&a->prompt_edit);
}

static void prompt_key(tui_app *a, const tui_key *k) {
  if (k->code == TUI_KEY_ENTER) {
    prompt_done(a);
  } else if (k->code == TUI_KEY_ESC) {
    if (a->prompt == TUI_ASK_FILTER) a->fleet.filter[0] = '\0';
    a->prompt = TUI_ASK_NOTHING;
    tui_edit_set(&a->prompt_edit, "");
  } else if (tui_edit_key(&a->prompt_edit, k) && a->prompt == TUI_ASK_FILTER) {
    snprintf(a->fleet.filter, sizeof a->fleet.filter, "%.*s", (int)sizeof a->fleet.filter - 1,
             a->prompt_edit.text);
  }
}

static void toggle_pause(tui_app *a) {
  const tui_feed *f = tui_app_feed(a);
  tui_action_send(a, tui_feed_status(f) == TUI_FEED_PAUSED ? "resume" : "pause", NULL, NAN);
}

static bool function_key(tui_app *a, uint32_t n) {
  switch (n) {
  case 1:
    a->overlay = TUI_OVER_HELP;
    a->help_scroll = 0;
    return true;
  case 2:
    a->overlay = TUI_OVER_SETUP;
    a->overlay_row = 0;
    return true;
  case 3: ask(a, TUI_ASK_SEARCH, ""); return true;
  case 4: ask(a, TUI_ASK_FILTER, a->fleet.filter); return true;
  case 5: toggle_pause(a); return true;
  case 8: tui_action_send(a, "save", NULL, NAN); return true;
  case 9:
    a->overlay = TUI_OVER_MENU;
    a->overlay_row = 0;
    return true;
  case 10: a->quit = true; return true;
  default: return false;
  }
}

static void jump(tui_app *a, int direction) {
  tui_feed *f = tui_app_feed(a);
  size_t step = f->store.n_ticks / 20 + 1;
  size_t at = direction > 0 ? f->cursor + step : f->cursor > step ? f->cursor - step : 1;
  tui_feed_seek(f, at);
  a->play_t = f->snap.t;
}

static void toggle_play(tui_app *a) {
  tui_feed *f = tui_app_feed(a);
  a->playing = !a->playing;
  if (!a->playing) return;
  a->play_t = f->cursor >= f->store.n_ticks ? (double)NAN : f->snap.t;
}

static void change_speed(tui_app *a, bool up) {
  a->speed = up ? fmin(a->speed * 2, speed_max) : fmax(a->speed / 2, 1);
  tui_app_say(a, false, "playback at %g times the speed of the run", a->speed);
}

static bool time_key(tui_app *a, uint32_t cp) {
  tui_feed *f = tui_app_feed(a);
  switch (cp) {
  case ' ': toggle_play(a); return true;
  case '[': change_speed(a, false); return true;
  case ']': change_speed(a, true); return true;
  case '<': jump(a, -1); return true;
  case '>': jump(a, 1); return true;
  case ',':
  case '.':
    tui_feed_step(f, cp == ',' ? -1 : 1);
    a->play_t = f->snap.t;
    return true;
  case 'f':
    a->playing = false;
    tui_feed_seek(f, f->store.n_ticks);
    return true;
  default: return false;
  }
}

static void next_run(tui_app *a) {
  a->current = (a->current + 1) % a->n_feeds;
  a->fleet.selected = TUI_NONE;
  a->fleet.top = 0;
  a->loss.fit = true;
  a->loss.cursor = NAN;
  a->study = (tui_study_state){ 0 };
  a->playing = false;
}

static bool character(tui_app *a, uint32_t cp) {
  if (cp >= '1' && cp < '1' + TUI_VIEWS) {
    tui_app_show(a, (tui_view_id)(cp - '1'));
    return true;
  }
  if (time_key(a, cp)) return true;
  switch (cp) {
  case '?': return function_key(a, 1);
  case '/': return function_key(a, 3);
  case '\\': return function_key(a, 4);
  case 'q': a->quit = true; return true;
  case 'n': tui_fleet_search(a, 1); return true;
  case 'N': tui_fleet_search(a, -1); return true;
  case ':': ask(a, TUI_ASK_COMMAND, ""); return true;
  case 'e': tui_action_export(a, false); return true;
  case 'E': tui_action_export(a, true); return true;
  case 'p': toggle_pause(a); return true;
  case 't': tui_action_send(a, "step", NULL, NAN); return true;
  case 'S': tui_action_send(a, "save", NULL, NAN); return true;
  case 'X': a->overlay = TUI_OVER_STOP; return true;
  case 'r': next_run(a); return true;
  default: return false;
  }
}

bool tui_app_field_takes(const tui_edit *field, bool focus, uint32_t cp) {
  bool command = cp == '?' || (cp >= '1' && cp < '1' + TUI_VIEWS);
  return focus && !(command && field->len == 0);
}

void tui_app_key(tui_app *a, const tui_key *k) {
  if (k->code == TUI_KEY_RESIZE) return;
  if (a->leave_at > 0) a->leave = false; /* somebody looks at it */
  if (tui_overlay_key(a, k)) return;
  if (a->prompt != TUI_ASK_NOTHING && k->code != TUI_KEY_MOUSE) {
    prompt_key(a, k);
    return;
  }
  if (k->code == TUI_KEY_MOUSE && tui_chrome_mouse(a, k)) return;
  const tui_view *v = tui_views[a->view];
  if (k->code == TUI_KEY_TAB) tui_app_show(a, (tui_view_id)((a->view + 1) % TUI_VIEWS));
  else if (k->code == TUI_KEY_BACK_TAB)
    tui_app_show(a, (tui_view_id)((a->view + TUI_VIEWS - 1) % TUI_VIEWS));
  else if (v->key(a, k)) return;
  else if (k->code == TUI_KEY_F) function_key(a, k->cp);
  else if (k->code == TUI_KEY_CHAR && !(v->typing && v->typing(a, k->cp))) character(a, k->cp);
}

/* --- drawing --------------------------------------------------------------------------------- */

tui_wish tui_app_wish(const tui_app *a) {
  tui_wish w = { .n_docs = a->feed[a->current].snap.n_docs };
  w.split = a->view == TUI_VIEW_CHAT ? a->chat.split : a->fleet.open;
  return w;
}

void tui_app_draw(tui_app *a, tui_canvas *c) {
  tui_canvas_clear(c);
  tui_layout_make(&a->layout, a->view, c->w, c->h, tui_app_wish(a));
  if (a->layout.too_small) {
    tui_chrome_too_small(c);
    return;
  }
  tui_chrome_draw(a, c);
  tui_views[a->view]->draw(a, c);
  tui_canvas_clip(c, (tui_rect){ 0, 0, c->w, c->h });
  tui_overlay_draw(a, c);
}
