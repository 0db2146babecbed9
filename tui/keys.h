/* keys.h - what the user did: a character, a named key or the mouse. */
#ifndef TUI_KEYS_H
#define TUI_KEYS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tui_key_code {
  TUI_KEY_CHAR, /* `cp` is a printable character */
  TUI_KEY_CTRL, /* `cp` is the letter, lower case: Ctrl-C is 'c' */
  TUI_KEY_UP,
  TUI_KEY_DOWN,
  TUI_KEY_LEFT,
  TUI_KEY_RIGHT,
  TUI_KEY_PAGE_UP,
  TUI_KEY_PAGE_DOWN,
  TUI_KEY_HOME,
  TUI_KEY_END,
  TUI_KEY_ENTER,
  TUI_KEY_ESC,
  TUI_KEY_TAB,
  TUI_KEY_BACK_TAB,
  TUI_KEY_BACKSPACE,
  TUI_KEY_DELETE,
  TUI_KEY_F, /* `cp` is the number, 1 to 12 */
  TUI_KEY_MOUSE,
  TUI_KEY_RESIZE
} tui_key_code;

typedef enum tui_mouse {
  TUI_MOUSE_PRESS,
  TUI_MOUSE_DOUBLE,
  TUI_MOUSE_WHEEL_UP,
  TUI_MOUSE_WHEEL_DOWN
} tui_mouse;

typedef struct tui_key {
  tui_key_code code;
  uint32_t cp;
  tui_mouse mouse;
  int x, y;
} tui_key;

static inline bool tui_key_is(const tui_key *k, uint32_t cp) {
  return k->code == TUI_KEY_CHAR && k->cp == cp;
}

#endif
