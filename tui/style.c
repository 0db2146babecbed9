/* style.c - the theme. */
#include "tui/style.h"

/* fg256 bg256 fg16 fg8 attr mono rgb background */
static const tui_look looks[ST_COUNT] = {
  [ST_TEXT] = { -1, -1, -1, -1, 0, 0, 0xD0D0D0, 0 },
  [ST_DIM] = { 245, -1, 8, -1, 0, 0, 0x8A8A8A, 0 },
  [ST_BOLD] = { -1, -1, -1, -1, TUI_ATTR_BOLD, TUI_ATTR_BOLD, 0xFFFFFF, 0 },
  [ST_TITLE] = { 74, -1, 14, 6, TUI_ATTR_BOLD, TUI_ATTR_BOLD, 0x56B4E9, 0 },
  [ST_FRAME] = { 240, -1, 8, -1, 0, 0, 0x585858, 0 },
  [ST_KEY] = { -1, -1, -1, -1, TUI_ATTR_BOLD, TUI_ATTR_BOLD, 0xFFFFFF, 0 },
  [ST_KEYBAR] = { 16, 74, -1, -1, TUI_ATTR_REVERSE, TUI_ATTR_REVERSE, 0x000000, 0x56B4E9 },
  [ST_TAB] = { 16, 74, -1, -1, TUI_ATTR_REVERSE, TUI_ATTR_REVERSE, 0x000000, 0x56B4E9 },
  [ST_SELECT] = { 231, 24, -1, -1, TUI_ATTR_REVERSE, TUI_ATTR_REVERSE, 0xFFFFFF, 0x005F87 },
  [ST_INPUT] = { 231, 236, -1, -1, TUI_ATTR_UNDERLINE, TUI_ATTR_UNDERLINE, 0xFFFFFF, 0x303030 },
  [ST_GOOD] = { 36, -1, 10, 2, 0, 0, 0x009E73, 0 },
  [ST_WARN] = { 214, -1, 11, 3, 0, TUI_ATTR_BOLD, 0xE69F00, 0 },
  [ST_BAD] = { 166, -1, 9, 1, TUI_ATTR_BOLD, TUI_ATTR_BOLD, 0xD55E00, 0 },
  [ST_RESIDENT] = { 36, -1, 10, 2, 0, 0, 0x009E73, 0 },
  [ST_TRAINING] = { 214, -1, 11, 3, TUI_ATTR_BOLD, TUI_ATTR_BOLD, 0xE69F00, 0 },
  [ST_EVICTED] = { 175, -1, 13, 5, 0, 0, 0xCC79A7, 0 },
  [ST_DISK] = { 245, -1, 8, -1, 0, 0, 0x8A8A8A, 0 },
  [ST_BAR] = { 74, -1, 14, 6, 0, 0, 0x56B4E9, 0 },
  [ST_CURVE0] = { 214, -1, 11, 3, 0, TUI_ATTR_BOLD, 0xE69F00, 0 },
  [ST_CURVE1] = { 74, -1, 14, 6, 0, 0, 0x56B4E9, 0 },
  [ST_CURVE2] = { 36, -1, 10, 2, 0, 0, 0x009E73, 0 },
  [ST_CURVE3] = { 175, -1, 13, 5, 0, 0, 0xCC79A7, 0 },
  [ST_CURVE4] = { 227, -1, 3, 3, TUI_ATTR_BOLD, TUI_ATTR_BOLD, 0xF0E442, 0 },
  [ST_CURVE5] = { 32, -1, 12, 4, TUI_ATTR_BOLD, 0, 0x0072B2, 0 },
  [ST_CURVE6] = { 166, -1, 9, 1, 0, 0, 0xD55E00, 0 },
  [ST_CURVE7] = { 250, -1, 7, 7, 0, 0, 0xBCBCBC, 0 },
};

const tui_look *tui_style_look(unsigned s) { return &looks[s < ST_COUNT ? s : ST_TEXT]; }
