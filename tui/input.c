/* input.c - keys and mouse from curses. */
#include <curses.h>
#include <stdlib.h>
#include <wchar.h>

#include "base/clock.h"
#include "tui/term.h"

static const double double_click_s = 0.4;

void tui_input_open(bool mouse) {
  set_escdelay(25);
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  if (!mouse) return;
  mouseinterval(0); /* a press counts at once; double clicks are told apart here */
  mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
}

static bool mouse_key(tui_term *t, tui_key *out) {
  MEVENT m;
  if (getmouse(&m) != OK) return false;
  *out = (tui_key){ .code = TUI_KEY_MOUSE, .x = m.x, .y = m.y };
  if (m.bstate & BUTTON4_PRESSED) out->mouse = TUI_MOUSE_WHEEL_UP;
  else if (m.bstate & BUTTON5_PRESSED) out->mouse = TUI_MOUSE_WHEEL_DOWN;
  else if (m.bstate & BUTTON1_PRESSED) {
    double now = fl_now_s();
    bool twice = m.x == t->press_x && m.y == t->press_y && now - t->press_t < double_click_s;
    out->mouse = twice ? TUI_MOUSE_DOUBLE : TUI_MOUSE_PRESS;
    t->press_x = m.x;
    t->press_y = m.y;
    t->press_t = twice ? 0 : now;
  } else {
    return false;
  }
  return true;
}

static bool function_key(tui_term *t, wint_t code, tui_key *out) {
  static const struct {
    int curses;
    tui_key_code code;
  } map[] = { { KEY_UP, TUI_KEY_UP },
              { KEY_DOWN, TUI_KEY_DOWN },
              { KEY_LEFT, TUI_KEY_LEFT },
              { KEY_RIGHT, TUI_KEY_RIGHT },
              { KEY_PPAGE, TUI_KEY_PAGE_UP },
              { KEY_NPAGE, TUI_KEY_PAGE_DOWN },
              { KEY_HOME, TUI_KEY_HOME },
              { KEY_END, TUI_KEY_END },
              { KEY_ENTER, TUI_KEY_ENTER },
              { KEY_BTAB, TUI_KEY_BACK_TAB },
              { KEY_BACKSPACE, TUI_KEY_BACKSPACE },
              { KEY_DC, TUI_KEY_DELETE },
              { KEY_RESIZE, TUI_KEY_RESIZE } };
  int key = (int)code;
  if (key == KEY_MOUSE) return mouse_key(t, out);
  for (size_t i = 0; i < sizeof map / sizeof *map; i++)
    if (map[i].curses == key) {
      *out = (tui_key){ .code = map[i].code };
      return true;
    }
  if (key > KEY_F0 && key <= KEY_F(12)) {
    *out = (tui_key){ .code = TUI_KEY_F, .cp = (uint32_t)(key - KEY_F0) };
    return true;
  }
  return false;
}

static bool character(wint_t ch, tui_key *out) {
  uint32_t cp = (uint32_t)ch;
  *out = (tui_key){ .code = TUI_KEY_CHAR, .cp = cp };
  if (cp == '\n' || cp == '\r') out->code = TUI_KEY_ENTER;
  else if (cp == '\t') out->code = TUI_KEY_TAB;
  else if (cp == 27) out->code = TUI_KEY_ESC;
  else if (cp == 127 || cp == 8) out->code = TUI_KEY_BACKSPACE;
  else if (cp > 0 && cp <= 26) *out = (tui_key){ .code = TUI_KEY_CTRL, .cp = cp + 'a' - 1 };
  else if (tui_text_width(cp) < 0) return false;
  return true;
}

bool tui_input_next(tui_term *t, tui_key *out) {
  for (;;) {
    wint_t ch;
    int kind = get_wch(&ch);
    if (kind == ERR) return false;
    if (kind == KEY_CODE_YES ? function_key(t, ch, out) : character(ch, out)) return true;
  }
}
