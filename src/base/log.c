/* log.c - diagnostics on stderr. A line is put together first and written at once, so that lines
 * of several threads stay whole. Control characters are shown as '?': texts carry names that come
 * from files, and a name must not be able to drive the terminal. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_int current_level = 0;

void fl_log_set_level(int level) { atomic_store(&current_level, level); }

int fl_log_level(void) { return atomic_load(&current_level); }

__attribute__((format(printf, 1, 0))) static void put_line(const char *fmt, va_list ap) {
  char line[4096] = "flotilla: ";
  const size_t head = strlen(line);
  vsnprintf(line + head, sizeof line - head - 1, fmt, ap);
  size_t len = strlen(line);
  for (size_t i = head; i < len; i++) {
    unsigned char c = (unsigned char)line[i];
    if ((c < 0x20 && c != '\t') || c == 0x7F) line[i] = '?';
  }
  line[len++] = '\n';
  fwrite(line, 1, len, stderr);
}

#define PUT_FROM(level)                                                                            \
  do {                                                                                             \
    if (fl_log_level() < (level)) return;                                                          \
    va_list ap;                                                                                    \
    va_start(ap, fmt);                                                                             \
    put_line(fmt, ap);                                                                             \
    va_end(ap);                                                                                    \
  } while (0)

void fl_error(const char *fmt, ...) { PUT_FROM(-1); }

void fl_warn(const char *fmt, ...) { PUT_FROM(0); }

void fl_info(const char *fmt, ...) { PUT_FROM(0); }

void fl_debug(const char *fmt, ...) { PUT_FROM(1); }
