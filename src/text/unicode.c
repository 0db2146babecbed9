/* unicode.c - code point classes and NFC over libunistring; ASCII never gets that far. */
#include "base/mem.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <unicase.h>
#include <unictype.h>
#include <uninorm.h>

#include "base/err.h"
#include "base/utf8.h"

static fl_uc_class classify_ascii(uint32_t cp) {
  if ((cp >= 'a' && cp <= 'z') || (cp >= 'A' && cp <= 'Z')) return FL_UC_LETTER;
  if (cp >= '0' && cp <= '9') return FL_UC_NUMBER;
  if (cp == ' ' || (cp >= '\t' && cp <= '\r')) return FL_UC_SPACE;
  return FL_UC_OTHER;
}

fl_uc_class fl_uc_classify(uint32_t cp) {
  if (cp < 0x80) return classify_ascii(cp);
  if (uc_is_general_category_withtable(cp, UC_CATEGORY_MASK_L)) return FL_UC_LETTER;
  if (uc_is_general_category_withtable(cp, UC_CATEGORY_MASK_N)) return FL_UC_NUMBER;
  if (uc_is_property_white_space(cp)) return FL_UC_SPACE;
  return FL_UC_OTHER;
}

bool fl_uc_is_upper(uint32_t cp) { return cp < 0x80 ? cp >= 'A' && cp <= 'Z' : uc_is_upper(cp); }

uint32_t fl_uc_fold(uint32_t cp) {
  if (cp < 0x80) return cp >= 'A' && cp <= 'Z' ? cp + ('a' - 'A') : cp;
  ucs4_t parts[UC_DECOMPOSITION_MAX_LENGTH];
  /* A syllable of Hangul is not a letter with accents. */
  bool hangul = cp >= 0xAC00 && cp <= 0xD7A3;
  while (!hangul && uc_canonical_decomposition(cp, parts) > 0 && parts[0] != cp) cp = parts[0];
  return uc_tolower(cp);
}

static bool is_ascii(const char *s, size_t len) {
  for (size_t i = 0; i < len; i++)
    if ((unsigned char)s[i] >= 0x80) return false;
  return true;
}

/* s[0..len) is valid UTF-8. */
static int nfc_valid(fl_buf *out, const char *s, size_t len) {
  if (len == 0) return FL_OK;
  size_t n = 0;
  uint8_t *r = u8_normalize(UNINORM_NFC, (const uint8_t *)s, len, NULL, &n);
  if (r == NULL) return FL_ENOMEM;
  fl_buf_append(out, r, n);
  fl_free(r); /* libunistring's own malloc */
  return out->oom ? FL_ENOMEM : FL_OK;
}

int fl_uc_nfc(fl_buf *out, bool *changed, const char *s, size_t len) {
  *changed = !is_ascii(s, len);
  size_t at = 0;
  while (*changed && at < len) {
    size_t bad = len - at;
    bool whole = fl_utf8_valid(s + at, len - at, &bad);
    size_t good = whole ? len - at : bad;
    int rc = nfc_valid(out, s + at, good);
    if (rc != FL_OK) return rc;
    at += good;
    if (at < len) fl_buf_putc(out, s[at++]);
  }
  return out->oom ? FL_ENOMEM : FL_OK;
}

void fl_uc_trim(const char **s, size_t *len, bool leading_only) {
  uint32_t cp;
  size_t n;
  while ((n = fl_utf8_decode(&cp, NULL, *s, *len)) > 0 && fl_uc_classify(cp) == FL_UC_SPACE) {
    *s += n;
    *len -= n;
  }
  while (!leading_only && *len > 0) {
    size_t at = *len - 1;
    while (at > 0 && *len - at < 4 && ((unsigned char)(*s)[at] & 0xC0) == 0x80) at--;
    n = fl_utf8_decode(&cp, NULL, *s + at, *len - at);
    if (n != *len - at || fl_uc_classify(cp) != FL_UC_SPACE) break;
    *len = at;
  }
}
