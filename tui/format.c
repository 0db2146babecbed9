/* format.c - numbers as the dashboard shows them. */
#include "tui/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "tui/store.h"

static char *dash(char *buf) { return strcpy(buf, "\xE2\x80\x93"); }

char *tui_fmt_num(char *buf, double v, int decimals) {
  if (!isfinite(v)) return dash(buf);
  snprintf(buf, TUI_FMT, fabs(v) >= 1e6 ? "%.*e" : "%.*f", decimals, v);
  return buf;
}

char *tui_fmt_sci(char *buf, double v) {
  if (!isfinite(v)) return dash(buf);
  snprintf(buf, TUI_FMT, "%.2g", v);
  return buf;
}

char *tui_fmt_u32(char *buf, uint32_t v) {
  if (v == TUI_NONE) return dash(buf);
  snprintf(buf, TUI_FMT, "%u", v);
  return buf;
}

char *tui_fmt_count(char *buf, double v) {
  if (!isfinite(v)) return dash(buf);
  if (fabs(v) < 9999.5) snprintf(buf, TUI_FMT, "%.0f", v);
  else if (fabs(v) < 9.995e5) snprintf(buf, TUI_FMT, "%.1fk", v / 1e3);
  else if (fabs(v) < 9.995e8) snprintf(buf, TUI_FMT, "%.1fM", v / 1e6);
  else snprintf(buf, TUI_FMT, "%.1fG", v / 1e9);
  return buf;
}

char *tui_fmt_bytes(char *buf, double v) {
  if (!isfinite(v) || v < 0 || v > 1e18) return dash(buf);
  return fl_format_bytes(buf, (uint64_t)v);
}

char *tui_fmt_secs(char *buf, double v) {
  if (!isfinite(v) || v < 0 || v > 1e9) return dash(buf);
  double days = floor(v / 86400);
  if (days < 1) return fl_format_seconds(buf, v);
  snprintf(buf, TUI_FMT, "%.0fd %02.0fh", days, floor((v - days * 86400) / 3600));
  return buf;
}

char *tui_fmt_part(char *buf, double v) {
  if (!isfinite(v)) return dash(buf);
  snprintf(buf, TUI_FMT, "%.0f%%", v * 100);
  return buf;
}

static char *format_time(char *buf, double t, bool date) {
  struct tm tm;
  if (!isfinite(t) || fabs(t) > 1e11) return dash(buf);
  time_t seconds = (time_t)t;
  if (!localtime_r(&seconds, &tm)) return dash(buf);
  size_t n = date ? strftime(buf, TUI_FMT, "%Y-%m-%d %H:%M", &tm)
                  : strftime(buf, TUI_FMT, "%H:%M:%S", &tm);
  return n ? buf : dash(buf);
}

char *tui_fmt_clock(char *buf, double t) { return format_time(buf, t, false); }
char *tui_fmt_date(char *buf, double t) { return format_time(buf, t, true); }

char *tui_fmt_ago(char *buf, double t, double now) {
  if (!isfinite(t) || !isfinite(now)) return dash(buf);
  double s = now - t;
  if (s < 0) s = 0;
  if (s < 100) snprintf(buf, TUI_FMT, "%.0fs ago", floor(s));
  else if (s < 5400) snprintf(buf, TUI_FMT, "%.0fm ago", floor(s / 60));
  else if (s < 172800) snprintf(buf, TUI_FMT, "%.0fh ago", floor(s / 3600));
  else snprintf(buf, TUI_FMT, "%.0fd ago", floor(s / 86400));
  return buf;
}
