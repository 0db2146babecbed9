/* term.c - curses: opening, painting, and giving the terminal back. */
#include "tui/term.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

/* A signal handler has no argument to carry this, hence the one file-scope variable. */
static struct {
  volatile sig_atomic_t active, signal;
  struct termios saved;
  char restore[512]; /* what brings the terminal back */
  size_t n_restore;
  int pipe[2];
  struct sigaction old[16];
} at_end = { .pipe = { -1, -1 } };

static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
static const int leaving[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT };
enum { FATAL = sizeof fatal / sizeof *fatal, LEAVING = sizeof leaving / sizeof *leaving };

static void on_fatal(int sig) {
  if (at_end.active) {
    at_end.active = 0;
    ssize_t n = write(STDOUT_FILENO, at_end.restore, at_end.n_restore);
    (void)n; /* nothing can be done about it here */
    tcsetattr(STDIN_FILENO, TCSANOW, &at_end.saved);
  }
  signal(sig, SIG_DFL);
  raise(sig);
}

static void on_leave(int sig) {
  int saved = errno;
  at_end.signal = sig;
  ssize_t n = write(at_end.pipe[1], "", 1);
  (void)n; /* a full pipe wakes the reader as well */
  errno = saved;
}

static void add_restore(const char *s) {
  if (!s || s == (const char *)-1) return;
  size_t n = strlen(s);
  if (at_end.n_restore + n > sizeof at_end.restore) return;
  memcpy(at_end.restore + at_end.n_restore, s, n);
  at_end.n_restore += n;
}

/* tigetstr wants char * for a string it only reads. */
static const char *capability(const char *name) {
  char copy[16];
  strncpy(copy, name, sizeof copy - 1);
  copy[sizeof copy - 1] = '\0';
  return tigetstr(copy);
}

static void make_restore(bool mouse) {
  at_end.n_restore = 0;
  if (mouse) add_restore("\033[?1006l\033[?1002l\033[?1000l");
  add_restore(capability("sgr0"));
  add_restore(capability("rmkx"));
  add_restore(capability("rmcup"));
  add_restore(capability("cnorm"));
  add_restore("\r\n");
}

static void install_signals(void) {
  struct sigaction crash = { .sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND };
  struct sigaction leave = { .sa_handler = on_leave };
  sigemptyset(&crash.sa_mask);
  sigemptyset(&leave.sa_mask);
  for (size_t i = 0; i < FATAL; i++) sigaction(fatal[i], &crash, &at_end.old[i]);
  for (size_t i = 0; i < LEAVING; i++) sigaction(leaving[i], &leave, &at_end.old[FATAL + i]);
}

static void remove_signals(void) {
  for (size_t i = 0; i < FATAL; i++) sigaction(fatal[i], &at_end.old[i], NULL);
  for (size_t i = 0; i < LEAVING; i++) sigaction(leaving[i], &at_end.old[FATAL + i], NULL);
}

static int open_screen(tui_term *t, fl_err *err) {
  const char *kind = getenv("TERM");
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
    return fl_fail(err, FL_EFAIL, "watch: this is no terminal; use --headless or --once");
  if (tcgetattr(STDIN_FILENO, &at_end.saved) != 0)
    return fl_fail(err, FL_EFAIL, "watch: the terminal cannot be asked: %s", strerror(errno));
  setlocale(LC_CTYPE, "");
  t->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  t->screen = newterm(NULL, stdout, stdin);
  if (!t->screen)
    return fl_fail(err, FL_EFAIL,
                   "watch: TERM=%s is not a terminal that curses knows; "
                   "set TERM or use --headless",
                   kind ? kind : "");
  return FL_OK;
}

int tui_term_open(tui_term *t, bool mouse, fl_err *err) {
  *t = (tui_term){ 0 };
  if (pipe2(at_end.pipe, O_CLOEXEC | O_NONBLOCK) != 0)
    return fl_fail(err, FL_EFAIL, "watch: no pipe: %s", strerror(errno));
  int rc = open_screen(t, err);
  if (rc != FL_OK) {
    close(at_end.pipe[0]);
    close(at_end.pipe[1]);
    return rc;
  }
  set_term(t->screen);
  cbreak();
  noecho();
  nonl();
  curs_set(0);
  if (has_colors()) { /* COLORS is not known before */
    start_color();
    use_default_colors();
  }
  tui_input_open(mouse);
  make_restore(mouse);
  at_end.signal = 0;
  at_end.active = 1;
  install_signals();
  return FL_OK;
}

void tui_term_close(tui_term *t) {
  if (!t->screen) return;
  curs_set(1);
  endwin();
  at_end.active = 0;
  remove_signals();
  tcsetattr(STDIN_FILENO, TCSANOW, &at_end.saved);
  delscreen(t->screen);
  close(at_end.pipe[0]);
  close(at_end.pipe[1]);
  tui_canvas_release(&t->painted);
  *t = (tui_term){ 0 };
}

int tui_term_signal(void) { return at_end.signal; }
int tui_term_signal_fd(void) { return at_end.pipe[0]; }

static int available(void) {
  if (!has_colors()) return 0;
  return COLORS >= 256 ? 256 : COLORS >= 16 ? 16 : 8;
}

void tui_term_set_color(tui_term *t, tui_color color) {
  static const int wanted[] = { 0, 0, 8, 16, 256 };
  const char *no_color = getenv("NO_COLOR");
  int can = available();
  if (color == TUI_COLOR_AUTO) t->colors = no_color && no_color[0] ? 0 : can;
  else t->colors = wanted[color] < can ? wanted[color] : can;
  tui_canvas_release(&t->painted);
  if (t->colors == 0) return;
  for (int s = 0; s < ST_COUNT; s++) {
    const tui_look *l = tui_style_look((unsigned)s);
    if (t->colors == 256) init_pair((short)(s + 1), l->fg256, l->bg256);
    else init_pair((short)(s + 1), t->colors == 16 ? l->fg16 : l->fg8, -1);
  }
}

void tui_term_size(const tui_term *t, int *w, int *h) {
  (void)t;
  getmaxyx(stdscr, *h, *w);
  if (*w < 1) *w = 1;
  if (*h < 1) *h = 1;
}

static attr_t attributes(const tui_term *t, const tui_look *l) {
  /* reversal stands for a background that 8 and 16 colours do not set */
  unsigned bits = t->colors == 0 ? l->mono : l->attr;
  if (t->colors == 256 && l->bg256 >= 0) bits &= ~(unsigned)(TUI_ATTR_REVERSE | TUI_ATTR_UNDERLINE);
  attr_t a = A_NORMAL;
  if (bits & TUI_ATTR_BOLD) a |= A_BOLD;
  if (bits & TUI_ATTR_DIM) a |= A_DIM;
  if (bits & TUI_ATTR_REVERSE) a |= A_REVERSE;
  if (bits & TUI_ATTR_UNDERLINE) a |= A_UNDERLINE;
  return a;
}

static void put_cell(const tui_term *t, int x, int y, const tui_cell *cell) {
  wchar_t text[2 + TUI_COMBINING_MAX] = { 0 };
  size_t n = 0;
  text[n++] = (wchar_t)cell->cp;
  /* Where the C library disagrees on the width, the glyph would shift its line. */
  if (cell->cp >= 0x80 && (!t->utf8 || wcwidth(text[0]) != cell->width)) text[0] = L'?';
  for (size_t i = 0; i < TUI_COMBINING_MAX && cell->comb[i] && text[0] != L'?'; i++)
    if (wcwidth((wchar_t)cell->comb[i]) == 0) text[n++] = (wchar_t)cell->comb[i];
  cchar_t cc;
  short pair = t->colors ? (short)(cell->style + 1) : 0;
  if (setcchar(&cc, text, attributes(t, tui_style_look(cell->style)), pair, NULL) == OK)
    mvadd_wch(y, x, &cc);
  if (text[0] == L'?' && cell->width == 2) mvaddch(y, x + 1, ' ');
}

static bool same(const tui_cell *a, const tui_cell *b) {
  return a->cp == b->cp && a->style == b->style && a->width == b->width &&
         memcmp(a->comb, b->comb, sizeof a->comb) == 0;
}

void tui_term_paint(tui_term *t, const tui_canvas *c) {
  bool all = t->painted.w != c->w || t->painted.h != c->h;
  if (all) {
    if (tui_canvas_resize(&t->painted, c->w, c->h) != FL_OK) return;
    clear();
  }
  for (int y = 0; y < c->h; y++)
    for (int x = 0; x < c->w; x++) {
      const tui_cell *cell = tui_canvas_at(c, x, y);
      tui_cell *old = tui_canvas_at(&t->painted, x, y);
      if (!all && same(cell, old)) continue;
      if (cell->cp) put_cell(t, x, y, cell);
      /* a wide glyph that went leaves its right half to its successor */
      *old = *cell;
    }
  curs_set(c->cursor_x >= 0);
  if (c->cursor_x >= 0) move(c->cursor_y, c->cursor_x);
  refresh();
}
