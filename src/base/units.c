/* units.c - reading and writing sizes and times. Reading is strict: no white space, no sign where
 * none makes sense, no hexadecimal, nothing left over. */
#include "base/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int fl_parse_u64(uint64_t *out, const char *s) {
  uint64_t v = 0;
  if (*s == '\0') return FL_EUSAGE;
  for (; *s != '\0'; s++) {
    if (*s < '0' || *s > '9') return FL_EUSAGE;
    if (__builtin_mul_overflow(v, 10, &v)) return FL_EUSAGE;
    if (__builtin_add_overflow(v, (uint64_t)(*s - '0'), &v)) return FL_EUSAGE;
  }
  *out = v;
  return FL_OK;
}

/* Parses the decimal number at s; *end is what follows. */
static bool number(double *out, const char *s, const char **end) {
  const char *first = *s == '-' ? s + 1 : s;
  bool digit = *first >= '0' && *first <= '9';
  bool point = *first == '.' && first[1] >= '0' && first[1] <= '9';
  bool hexadecimal = first[0] == '0' && (first[1] == 'x' || first[1] == 'X');
  if ((!digit && !point) || hexadecimal) return false;
  char *stop;
  double v = strtod(s, &stop);
  if (!isfinite(v)) return false;
  *out = v;
  *end = stop;
  return true;
}

int fl_parse_double(double *out, const char *s) {
  double v;
  const char *end;
  if (!number(&v, s, &end) || *end != '\0') return FL_EUSAGE;
  *out = v;
  return FL_OK;
}

/* log2 of the factor that a size's suffix stands for, -1 when it is none. */
static int size_shift(const char *suffix) {
  static const char letters[] = "KMGT";
  if (*suffix == '\0' || strcasecmp(suffix, "B") == 0) return 0;
  char up = (char)(*suffix >= 'a' && *suffix <= 'z' ? *suffix - 'a' + 'A' : *suffix);
  const char *at = strchr(letters, up);
  if (at == NULL) return -1;
  const char *rest = suffix + 1;
  if (*rest != '\0' && strcasecmp(rest, "B") != 0 && strcasecmp(rest, "iB") != 0) return -1;
  return (int)(at - letters + 1) * 10;
}

int fl_parse_bytes(uint64_t *out, const char *s) {
  size_t digits = strspn(s, "0123456789.");
  char head[40];
  if (digits == 0 || digits >= sizeof head) return FL_EUSAGE;
  memcpy(head, s, digits);
  head[digits] = '\0';
  int shift = size_shift(s + digits);
  if (shift < 0) return FL_EUSAGE;
  uint64_t whole;
  if (fl_parse_u64(&whole, head) == FL_OK) { /* exact beyond 2^53 too */
    if (whole > UINT64_MAX >> shift) return FL_EUSAGE;
    *out = whole << shift;
    return FL_OK;
  }
  double v;
  if (fl_parse_double(&v, head) != FL_OK) return FL_EUSAGE;
  v = nearbyint(ldexp(v, shift));
  if (!(v < 0x1p64)) return FL_EUSAGE;
  *out = (uint64_t)v;
  return FL_OK;
}

int fl_parse_seconds(double *out, const char *s) {
  double v;
  const char *end;
  if (!number(&v, s, &end) || v < 0 || signbit(v)) return FL_EUSAGE;
  double factor = 1;
  if (strcmp(end, "m") == 0) factor = 60;
  else if (strcmp(end, "h") == 0) factor = 3600;
  else if (*end != '\0' && strcmp(end, "s") != 0) return FL_EUSAGE;
  v *= factor;
  if (!isfinite(v)) return FL_EUSAGE;
  *out = v;
  return FL_OK;
}

#define FORMAT_ROOM 32

char *fl_format_bytes(char *buf, uint64_t n) {
  static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
  if (n < 1024) {
    snprintf(buf, FORMAT_ROOM, "%d B", (int)n);
    return buf;
  }
  double v = (double)n;
  size_t u = 0;
  while (v >= 1023.5 && u + 1 < sizeof unit / sizeof *unit) { /* 1023.5 would show as 1024 */
    v /= 1024;
    u++;
  }
  long tenths = lround(v * 10);
  if (tenths >= 1000) snprintf(buf, FORMAT_ROOM, "%ld %s", lround(v), unit[u]);
  else snprintf(buf, FORMAT_ROOM, "%ld.%ld %s", tenths / 10, tenths % 10, unit[u]);
  return buf;
}

char *fl_format_seconds(char *buf, double s) {
  if (!(s >= 0) || s > 1e15) {
    snprintf(buf, FORMAT_ROOM, "-");
    return buf;
  }
  long long tenths = llround(s * 10), whole = llround(s);
  if (tenths < 600) snprintf(buf, FORMAT_ROOM, "%lld.%llds", tenths / 10, tenths % 10);
  else if (whole < 3600) snprintf(buf, FORMAT_ROOM, "%lldm %02llds", whole / 60, whole % 60);
  else snprintf(buf, FORMAT_ROOM, "%lldh %02lldm", whole / 3600, whole % 3600 / 60);
  return buf;
}
