/* format.h - numbers as the dashboard shows them. What is not known is a dash, never a zero. Each
 * writes into `buf` of TUI_FMT bytes and returns it. */
#ifndef TUI_FORMAT_H
#define TUI_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TUI_FMT = 40 };

char *tui_fmt_num(char *buf, double v, int decimals);
char *tui_fmt_sci(char *buf, double v);   /* 2.0e-03 style, for rates of learning */
char *tui_fmt_u32(char *buf, uint32_t v); /* TUI_NONE: dash */
char *tui_fmt_count(char *buf, double v); /* 950, 12.3k, 4.5M */
char *tui_fmt_bytes(char *buf, double v);
char *tui_fmt_secs(char *buf, double v);  /* 4.2s, 3m 05s, 1h 02m, 2d 03h */
char *tui_fmt_part(char *buf, double v);  /* 0..1 as 41% */
char *tui_fmt_clock(char *buf, double t); /* 14:03:22, local time */
char *tui_fmt_date(char *buf, double t);  /* 2026-03-01 14:03 */
char *tui_fmt_ago(char *buf, double t, double now);

#endif
