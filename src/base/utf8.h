/* utf8.h - decoding and checks. */
#ifndef FL_BASE_UTF8_H
#define FL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes one code point of s[0..len); returns its length in bytes, 0 at the end of input, and for
 * an invalid or cut sequence 1 with *cp = 0xFFFD and *valid = false. `valid` may be NULL. */
size_t fl_utf8_decode(uint32_t *cp, bool *valid, const char *s, size_t len);
/* Writes up to 4 bytes; returns their number. Surrogates and values over 0x10FFFF become U+FFFD. */
size_t fl_utf8_encode(char out[4], uint32_t cp);
bool fl_utf8_valid(const char *s, size_t len, size_t *bad_offset);
/* The largest n <= len such that s[0..n) does not end inside a (so far valid) sequence. */
size_t fl_utf8_whole_prefix(const char *s, size_t len);

#endif
