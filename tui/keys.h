/* keys.h - what the user did: a character, a named key or the mouse. */
#ifndef FL_TUI_KEYS_H
#define FL_TUI_KEYS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fl_key_code {
  FL_KEY_CHAR, /* `cp` is a printable character */
  FL_KEY_CTRL, /* `cp` is the letter, lower case: Ctrl-C is 'c' */
  FL_KEY_UP,
  FL_KEY_DOWN,
  FL_KEY_LEFT,
  FL_KEY_RIGHT,
  FL_KEY_PAGE_UP,
  FL_KEY_PAGE_DOWN,
  FL_KEY_HOME,
  FL_KEY_END,
  FL_KEY_ENTER,
  FL_KEY_ESC,
  FL_KEY_TAB,
  FL_KEY_BACK_TAB,
  FL_KEY_BACKSPACE,
  FL_KEY_DELETE,
  FL_KEY_F, /* `cp` is the number, 1 to 12 */
  FL_KEY_MOUSE,
  FL_KEY_RESIZE
} fl_key_code;

typedef enum fl_mouse {
  FL_MOUSE_PRESS,
  FL_MOUSE_DOUBLE,
  FL_MOUSE_WHEEL_UP,
  FL_MOUSE_WHEEL_DOWN
} fl_mouse;

typedef struct fl_key {
  fl_key_code code;
  uint32_t cp;
  fl_mouse mouse;
  int x, y;
} fl_key;

static inline bool fl_key_is(const fl_key *k, uint32_t cp) {
  return k->code == FL_KEY_CHAR && k->cp == cp;
}

#endif
