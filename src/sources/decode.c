/* decode.c - text encodings. UTF-8 is taken as it stands; everything else goes through iconv(3). */
#include <errno.h>
#include <iconv.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "sources/kind.h"
#include "sources/source.h"

static const struct {
  const char *mark;
  size_t len;
  const char *name;
} marks[] = { { "\xEF\xBB\xBF", 3, "UTF-8" },
              { "\xFF\xFE\0\0", 4, "UTF-32LE" },
              { "\0\0\xFE\xFF", 4, "UTF-32BE" },
              { "\xFF\xFE", 2, "UTF-16LE" },
              { "\xFE\xFF", 2, "UTF-16BE" } };

/* Which of the two UTF-16 a text without a mark is: in Western text nearly all of its zero bytes
 * are the high ones, and there are many. NULL: neither. */
static const char *utf16_by_zeros(const char *s, size_t len) {
  size_t zero[2] = { 0, 0 };
  for (size_t i = 0; i < len; i++)
    if (s[i] == '\0') zero[i % 2]++;
  if (len < 2 || len % 2 || zero[0] + zero[1] < len / 4) return NULL;
  if (zero[1] > 20 * zero[0]) return "UTF-16LE";
  if (zero[0] > 20 * zero[1]) return "UTF-16BE";
  return NULL;
}

/* Text of one byte a character: no sequence of several bytes is good UTF-8 (then it would be
 * damaged UTF-8), and no byte is one that Windows-1252 leaves open or a control character. */
static bool looks_like_cp1252(const char *s, size_t len) {
  static const char open[] = "\x81\x8D\x8F\x90\x9D";
  for (size_t i = 0; i < len;) {
    unsigned char b = (unsigned char)s[i];
    uint32_t cp;
    bool valid;
    if (b < 0x80) {
      if (b < 0x20 && !(b >= '\t' && b <= '\r')) return false;
      i++;
      continue;
    }
    if (strchr(open, (char)b)) return false;
    size_t n = fl_utf8_decode(&cp, &valid, s + i, len - i);
    if (valid && n > 1) return false;
    i++;
  }
  return true;
}

static int convert(fl_buf *out, const fl_source_input *in, size_t skip, const char *name,
                   fl_err *err) {
  iconv_t cd = iconv_open("UTF-8", name);
  if (cd == (iconv_t)-1)
    return fl_fail(err, FL_EINPUT,
                   "%s: it is %s, which this system cannot convert; convert it to "
                   "UTF-8",
                   in->path, name);
  char block[4096];
  char *from = (char *)(uintptr_t)(in->bytes + skip); /* iconv(3) takes no const */
  size_t left = in->len - skip;
  int rc = FL_OK;
  while (rc == FL_OK && left > 0) {
    char *to = block;
    size_t room = sizeof block;
    bool stuck = iconv(cd, &from, &left, &to, &room) == (size_t)-1 && errno != E2BIG;
    fl_buf_append(out, block, sizeof block - room);
    if (stuck)
      rc = fl_fail(err, FL_EINPUT, "%s: damaged %s at byte %zu; mend it or convert it to UTF-8",
                   in->path, name, (size_t)(from - in->bytes));
    else if (out->len > FL_SOURCE_MAX_BYTES) rc = fl_source_too_much(in->path, err);
  }
  iconv_close(cd);
  return rc;
}

/* Any of it, with UTF-8 and its zero bytes judged last. */
static int decode(fl_buf *out, const fl_source_input *in, fl_err *err) {
  size_t skip = 0, bad = 0;
  const char *name = NULL;
  for (size_t i = 0; name == NULL && i < sizeof marks / sizeof *marks; i++)
    if (in->len >= marks[i].len && memcmp(in->bytes, marks[i].mark, marks[i].len) == 0) {
      name = marks[i].name;
      skip = marks[i].len;
    }
  if (name != NULL && strcmp(name, "UTF-8") != 0) return convert(out, in, skip, name, err);
  const char *s = in->bytes + skip;
  size_t len = in->len - skip;
  bool utf8 = fl_utf8_valid(s, len, &bad);
  bool zeros = len > 0 && memchr(s, '\0', len) != NULL;
  if (utf8 && !zeros) {
    fl_buf_append(out, s, len);
    return FL_OK;
  }
  if (name == NULL && zeros) name = utf16_by_zeros(s, len);
  else if (name == NULL && looks_like_cp1252(s, len)) name = "CP1252";
  else name = NULL;
  if (name != NULL) return convert(out, in, 0, name, err);
  if (!utf8 && !zeros)
    return fl_fail(err, FL_EINPUT, "%s: not valid UTF-8 at byte %zu; convert it to UTF-8", in->path,
                   bad + skip);
  return fl_fail(err, FL_EINPUT, "%s: a zero byte at byte %zu, so this is no text; leave it out",
                 in->path, (size_t)((const char *)memchr(s, '\0', len) - in->bytes));
}

int fl_source_decode(fl_buf *out, const fl_source_input *in, fl_err *err) {
  int rc = decode(out, in, err);
  if (rc != FL_OK) return rc;
  if (out->oom) return fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", in->path);
  const char *nul = out->len > 0 ? memchr(out->data, '\0', out->len) : NULL;
  if (nul != NULL)
    return fl_fail(err, FL_EINPUT, "%s: a zero character in the text; leave it out", in->path);
  return FL_OK;
}

void fl_source_put_clean(fl_buf *out, const char *s, size_t len) {
  for (size_t i = 0; i < len;) {
    uint32_t cp;
    bool valid;
    char utf8[4];
    size_t n = fl_utf8_decode(&cp, &valid, s + i, len - i);
    i += n;
    if (cp == '\r') {
      if (i >= len || s[i] != '\n') fl_buf_putc(out, '\n');
    } else if (cp >= 0x20 || cp == '\n' || cp == '\t') {
      if (cp != 0x7F) fl_buf_append(out, utf8, fl_utf8_encode(utf8, cp));
    }
  }
}
