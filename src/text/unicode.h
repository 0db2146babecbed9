/* unicode.h - what tokenisers ask of Unicode: four classes of code points, and NFC;
 * and what a search by words asks. The only file
 * of the program whose twin includes libunistring. */
#ifndef FL_TEXT_UNICODE_H
#define FL_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* A partition of all code points: general categories L*, N*, White_Space, the rest. */
typedef enum fl_uc_class { FL_UC_OTHER, FL_UC_LETTER, FL_UC_NUMBER, FL_UC_SPACE } fl_uc_class;

fl_uc_class fl_uc_classify(uint32_t cp);

/* The small letter without accents that a letter is compared as; others as they are. */
uint32_t fl_uc_fold(uint32_t cp);
bool fl_uc_is_upper(uint32_t cp);

/* Appends the NFC form of s[0..len); stretches that are not UTF-8 go through as they are. *changed
 * false and nothing appended when the text is ASCII (then it is its own NFC form). FL_OK or
 * FL_ENOMEM. */
int fl_uc_nfc(fl_buf *out, bool *changed, const char *s, size_t len);

/* Narrows [*s, *s + *len) by the white space at its ends (`leading_only`: at its beginning). */
void fl_uc_trim(const char **s, size_t *len, bool leading_only);

#endif
