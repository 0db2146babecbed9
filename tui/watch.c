/* watch.c - the loop of the dashboard: time, keys, sockets and signals in one poll(2). */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "tui/app.h"
#include "tui/headless.h"
#include "tui/term.h"
#include "tui/tui.h"

static const double frame_s = 0.1; /* at most ten redraws a second, but a key shows at once */
static const double read_s = 0.05; /* of reading between two looks at the keys */
static const double clock_s = 1;   /* "ago" columns of a live run */

typedef struct loop {
  tui_app *app;
  tui_term term;
  tui_canvas canvas;
  bool dirty;
  double drawn; /* fl_now_s() of the last frame */
  double due;   /* when the next may be drawn */
  int color;    /* as the terminal was set up with */
  bool forced_ascii;
  bool hung_up;
} loop;

static void redraw(loop *l) {
  const double began = fl_now_s();
  int w, h;
  tui_term_size(&l->term, &w, &h);
  if (l->color != l->app->settings.color) {
    l->color = l->app->settings.color;
    tui_term_set_color(&l->term, (tui_color)l->color);
  }
  if ((w != l->canvas.w || h != l->canvas.h) && tui_canvas_resize(&l->canvas, w, h) != FL_OK)
    return;
  l->canvas.ascii = l->app->settings.ascii || l->forced_ascii;
  tui_app_draw(l->app, &l->canvas);
  tui_term_paint(&l->term, &l->canvas);
  l->dirty = false;
  l->drawn = fl_now_s();
  /* a frame after the last one was due, not after it was done */
  l->due = fmin(fmax(l->due, began - frame_s / 2), began) + frame_s;
}

static bool take_keys(loop *l) {
  tui_key k;
  bool any = false;
  while (!l->app->quit && tui_input_next(&l->term, &k)) {
    tui_app_key(l->app, &k);
    any = true;
  }
  return any;
}

static void wait_for(loop *l, double seconds) {
  struct pollfd fd[8] = { { .fd = STDIN_FILENO, .events = POLLIN },
                          { .fd = tui_term_signal_fd(), .events = POLLIN } };
  nfds_t n = 2;
  tui_app *a = l->app;
  const tui_link *const links[] = { &a->command, &a->retrieval.link, &a->chat.link,
                                    &a->chat.bare_link };
  for (size_t i = 0; i < sizeof links / sizeof *links; i++)
    if (links[i]->state == TUI_LINK_WAITING)
      fd[n++] = (struct pollfd){ .fd = links[i]->fd, .events = tui_link_events(links[i]) };
  int ready = poll(fd, n, (int)ceil(seconds * 1000));
  if (ready > 0 && (fd[0].revents & (POLLHUP | POLLERR | POLLNVAL))) l->hung_up = true;
}

static bool clock_moves(const tui_app *a) {
  tui_feed_state st = tui_feed_status(&a->feed[a->current]);
  return st == TUI_FEED_LIVE || st == TUI_FEED_PAUSED || st == TUI_FEED_QUIET ||
         st == TUI_FEED_DEAD;
}

static void run(loop *l) {
  redraw(l);
  while (!l->app->quit && !l->hung_up && !tui_term_signal()) {
    bool more;
    bool keys = take_keys(l);
    l->dirty |= tui_app_tick(l->app, read_s, &more) || keys;
    double now = fl_now_s();
    if (clock_moves(l->app) && now - l->drawn >= clock_s) l->dirty = true;
    if (l->dirty && (keys || now >= l->due)) redraw(l);
    const double until = l->due - fl_now_s();
    double patience = l->dirty ? fmax(0, until) : tui_app_patience(l->app);
    if (until > 0) patience = fmin(patience, until);
    wait_for(l, more ? 0 : patience);
  }
}

static int watch_screen(const tui_options *opt, tui_app *a, fl_err *err) {
  loop l = { .app = a, .color = -1 };
  int kept = a->settings.color;
  if (opt->color != TUI_COLOR_AUTO) a->settings.color = (int)opt->color;
  int rc = tui_term_open(&l.term, a->settings.mouse && !opt->no_mouse, err);
  if (rc != FL_OK) return rc;
  l.forced_ascii = opt->ascii || !l.term.utf8;
  run(&l);
  int sig = tui_term_signal();
  tui_term_close(&l.term);
  tui_canvas_release(&l.canvas);
  /* a flag holds for once, what was chosen on the screen is kept */
  if (a->settings.color == (int)opt->color) a->settings.color = kept;
  if (a->settings_changed) tui_settings_save(&a->settings, NULL);
  /* Ctrl-C is a way to leave like any other; the rest were asked from outside. */
  return (sig && sig != SIGINT) || l.hung_up ? FL_EINTR : FL_OK;
}

int tui_watch(const tui_options *opt, fl_err *err) {
  if (opt->once || opt->headless) return tui_headless(opt, err);
  tui_app *a = fl_calloc(1, sizeof *a);
  if (!a) return fl_fail(err, FL_ENOMEM, "watch: no memory");
  int rc = tui_app_init(a, opt, err);
  if (rc == FL_OK) rc = watch_screen(opt, a, err);
  tui_app_release(a);
  fl_free(a);
  return rc;
}
