/* units.h - numbers as people type and read them. */
#ifndef FL_BASE_UNITS_H
#define FL_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Plain decimal integers and numbers; the whole string must be used. FL_EUSAGE otherwise. */
int fl_parse_u64(uint64_t *out, const char *s);
int fl_parse_double(double *out, const char *s); /* finite only */
/* 512, 4K, 1.5M, 2G (powers of 1024, optional B or iB). */
int fl_parse_bytes(uint64_t *out, const char *s);
/* 90, 90s, 1.5m, 2h: seconds. */
int fl_parse_seconds(double *out, const char *s);
/* "1.5 GiB", "830 KiB", "12 B"; "1h 02m", "3m 05s", "4.2s". `buf` has at least 32 bytes and is
 * returned. */
char *fl_format_bytes(char *buf, uint64_t n);
char *fl_format_seconds(char *buf, double s);

#endif
