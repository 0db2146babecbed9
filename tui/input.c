/* input.c - keys and mouse from curses. */
#include <curses.h>
#include <stdlib.h>
#include <wchar.h>

#include "base/fs.h"
#include "tui/term.h"

static const double double_click_s = 0.4;

void fl_input_open(bool mouse) {
  set_escdelay(25);
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  if (!mouse) return;
  mouseinterval(0); /* a press counts at once; double clicks are told apart here */
  mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
}

static bool mouse_key(fl_term *t, fl_key *out) {
  MEVENT m;
  if (getmouse(&m) != OK) return false;
  *out = (fl_key){ .code = FL_KEY_MOUSE, .x = m.x, .y = m.y };
  if (m.bstate & BUTTON4_PRESSED) out->mouse = FL_MOUSE_WHEEL_UP;
  else if (m.bstate & BUTTON5_PRESSED) out->mouse = FL_MOUSE_WHEEL_DOWN;
  else if (m.bstate & BUTTON1_PRESSED) {
    double now = fl_now_s();
    bool twice = m.x == t->press_x && m.y == t->press_y && now - t->press_t < double_click_s;
    out->mouse = twice ? FL_MOUSE_DOUBLE : FL_MOUSE_PRESS;
    t->press_x = m.x;
    t->press_y = m.y;
    t->press_t = twice ? 0 : now;
  } else {
    return false;
  }
  return true;
}

static bool function_key(fl_term *t, wint_t code, fl_key *out) {
  static const struct {
    int curses;
    fl_key_code code;
  } map[] = { { KEY_UP, FL_KEY_UP },
              { KEY_DOWN, FL_KEY_DOWN },
              { KEY_LEFT, FL_KEY_LEFT },
              { KEY_RIGHT, FL_KEY_RIGHT },
              { KEY_PPAGE, FL_KEY_PAGE_UP },
              { KEY_NPAGE, FL_KEY_PAGE_DOWN },
              { KEY_HOME, FL_KEY_HOME },
              { KEY_END, FL_KEY_END },
              { KEY_ENTER, FL_KEY_ENTER },
              { KEY_BTAB, FL_KEY_BACK_TAB },
              { KEY_BACKSPACE, FL_KEY_BACKSPACE },
              { KEY_DC, FL_KEY_DELETE },
              { KEY_RESIZE, FL_KEY_RESIZE } };
  int key = (int)code;
  if (key == KEY_MOUSE) return mouse_key(t, out);
  for (size_t i = 0; i < sizeof map / sizeof *map; i++)
    if (map[i].curses == key) {
      *out = (fl_key){ .code = map[i].code };
      return true;
    }
  if (key > KEY_F0 && key <= KEY_F(12)) {
    *out = (fl_key){ .code = FL_KEY_F, .cp = (uint32_t)(key - KEY_F0) };
    return true;
  }
  return false;
}

static bool character(wint_t ch, fl_key *out) {
  uint32_t cp = (uint32_t)ch;
  *out = (fl_key){ .code = FL_KEY_CHAR, .cp = cp };
  if (cp == '\n' || cp == '\r') out->code = FL_KEY_ENTER;
  else if (cp == '\t') out->code = FL_KEY_TAB;
  else if (cp == 27) out->code = FL_KEY_ESC;
  else if (cp == 127 || cp == 8) out->code = FL_KEY_BACKSPACE;
  else if (cp > 0 && cp <= 26) *out = (fl_key){ .code = FL_KEY_CTRL, .cp = cp + 'a' - 1 };
  else if (fl_text_width(cp) < 0) return false;
  return true;
}

bool fl_input_next(fl_term *t, fl_key *out) {
  for (;;) {
    wint_t ch;
    int kind = get_wch(&ch);
    if (kind == ERR) return false;
    if (kind == KEY_CODE_YES ? function_key(t, ch, out) : character(ch, out)) return true;
  }
}
