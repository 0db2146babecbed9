/* style.h - what a cell means; the theme (style.c) says how that looks on each kind of terminal and
 * in an SVG. The palette is Okabe and Ito's, which people with any of the usual colour deficiencies
 * can tell apart, and no fact is shown by colour alone. */
#ifndef TUI_STYLE_H
#define TUI_STYLE_H

#include <stdint.h>

typedef enum tui_style {
  ST_TEXT,
  ST_DIM,
  ST_BOLD,
  ST_TITLE,
  ST_FRAME,
  ST_KEY,    /* the key in a hint */
  ST_KEYBAR, /* its label */
  ST_TAB,    /* the view that is shown */
  ST_SELECT, /* the selected row */
  ST_INPUT,
  ST_GOOD,
  ST_WARN,
  ST_BAD,
  ST_RESIDENT,
  ST_TRAINING,
  ST_EVICTED,
  ST_DISK,
  ST_BAR,
  ST_CURVE0, /* eight curves */
  ST_CURVE1,
  ST_CURVE2,
  ST_CURVE3,
  ST_CURVE4,
  ST_CURVE5,
  ST_CURVE6,
  ST_CURVE7,
  ST_COUNT
} tui_style;

enum { TUI_ATTR_BOLD = 1, TUI_ATTR_DIM = 2, TUI_ATTR_REVERSE = 4, TUI_ATTR_UNDERLINE = 8 };
enum { TUI_CURVES = 8 };

typedef struct tui_look {
  int16_t fg256, bg256; /* -1: the terminal's own */
  int16_t fg16, fg8;    /* 16 and 8 colours; background stays the terminal's own */
  uint8_t attr;         /* with colours */
  uint8_t mono;         /* without */
  uint32_t rgb, bg_rgb; /* SVG; bg_rgb 0: none */
} tui_look;

/* `s` outside the enumeration gives ST_TEXT's. */
const tui_look *tui_style_look(unsigned s);

#endif
