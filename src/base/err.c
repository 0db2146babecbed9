/* err.c - error codes with one sentence each, and the exit status they lead to. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fl_fail(fl_err *err, int code, const char *fmt, ...) {
  if (err == NULL || err->code != FL_OK) return code; /* the first failure wins */
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(err->text, sizeof err->text, fmt, ap);
  va_end(ap);
  err->code = code;
  return code;
}

void fl_err_prefix(fl_err *err, const char *fmt, ...) {
  if (err == NULL || err->text[0] == '\0') return;
  char head[FL_ERR_TEXT];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(head, sizeof head, fmt, ap);
  va_end(ap);
  size_t n = strlen(head);
  if (n > sizeof head - 3) n = sizeof head - 3;
  memcpy(head + n, ": ", 3);
  n += 2;
  size_t tail = strlen(err->text);
  if (tail > sizeof err->text - 1 - n) tail = sizeof err->text - 1 - n; /* the end is cut */
  memmove(err->text + n, err->text, tail);
  memcpy(err->text, head, n);
  err->text[n + tail] = '\0';
}

int fl_exit_status(int code) {
  switch (code) {
  case FL_OK: return 0;
  case FL_EUSAGE: return 2;
  case FL_EGATE: return 3;
  case FL_EINPUT: return 4;
  case FL_EINTR: return 130;
  default: return 1;
  }
}
