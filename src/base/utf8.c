/* utf8.c - strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
#include "base/utf8.h"

/* Length of the sequence that lead byte `b` announces, 0 when it cannot lead; lo and hi bound the
 * second byte, which is where overlong forms, surrogates and too large values show (Unicode 15,
 * table 3-7). */
static size_t lead(uint8_t b, uint8_t *lo, uint8_t *hi) {
  *lo = 0x80;
  *hi = 0xBF;
  if (b < 0x80) return 1;
  if (b < 0xC2) return 0;
  if (b < 0xE0) return 2;
  if (b < 0xF0) {
    if (b == 0xE0) *lo = 0xA0;
    if (b == 0xED) *hi = 0x9F;
    return 3;
  }
  if (b > 0xF4) return 0;
  if (b == 0xF0) *lo = 0x90;
  if (b == 0xF4) *hi = 0x8F;
  return 4;
}

/* Number of bytes at s that agree with one sequence; *want is its full length (0: no sequence). */
static size_t match(const uint8_t *s, size_t len, size_t *want) {
  uint8_t lo, hi;
  *want = lead(s[0], &lo, &hi);
  if (*want == 0) return 0;
  size_t n = 1;
  while (n < *want && n < len && s[n] >= lo && s[n] <= hi) {
    lo = 0x80;
    hi = 0xBF;
    n++;
  }
  return n;
}

size_t fl_utf8_decode(uint32_t *cp, bool *valid, const char *s, size_t len) {
  if (len == 0) return 0;
  const uint8_t *p = (const uint8_t *)s;
  size_t want;
  bool good = match(p, len, &want) == want && want > 0;
  if (valid != NULL) *valid = good;
  if (!good) {
    *cp = 0xFFFD;
    return 1;
  }
  static const uint8_t mask[5] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
  uint32_t v = (uint32_t)(p[0] & mask[want]);
  for (size_t i = 1; i < want; i++) v = (v << 6) | (p[i] & 0x3F);
  *cp = v;
  return want;
}

size_t fl_utf8_encode(char out[4], uint32_t cp) {
  if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) cp = 0xFFFD;
  if (cp < 0x80) {
    out[0] = (char)cp;
    return 1;
  }
  size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
  static const uint8_t head[5] = { 0, 0, 0xC0, 0xE0, 0xF0 };
  for (size_t i = n - 1; i > 0; i--) {
    out[i] = (char)(0x80 | (cp & 0x3F));
    cp >>= 6;
  }
  out[0] = (char)(head[n] | cp);
  return n;
}

bool fl_utf8_valid(const char *s, size_t len, size_t *bad_offset) {
  const uint8_t *p = (const uint8_t *)s;
  for (size_t at = 0; at < len;) {
    size_t want;
    if (match(p + at, len - at, &want) != want || want == 0) {
      if (bad_offset != NULL) *bad_offset = at;
      return false;
    }
    at += want;
  }
  return true;
}

size_t fl_utf8_whole_prefix(const char *s, size_t len) {
  const uint8_t *p = (const uint8_t *)s;
  for (size_t back = 1; back <= 3 && back <= len; back++) {
    size_t want;
    if ((p[len - back] & 0xC0) == 0x80) continue; /* inside a sequence: look for its lead */
    if (match(p + len - back, back, &want) == back && back < want) return len - back;
    break;
  }
  return len;
}
