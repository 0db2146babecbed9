/* source_text.c - plain text and Markdown: UTF-8, taken as it stands but for a byte order mark. */
#include <string.h>

#include "base/utf8.h"
#include "sources/kind.h"

static int read_text(fl_buf *text, const char *path, const char *bytes, size_t len, fl_err *err) {
  static const char bom[3] = { '\xEF', '\xBB', '\xBF' };
  size_t skip = len >= sizeof bom && memcmp(bytes, bom, sizeof bom) == 0 ? sizeof bom : 0;
  size_t bad = 0;
  if (!fl_utf8_valid(bytes + skip, len - skip, &bad))
    return fl_fail(err, FL_EINPUT, "%s: not valid UTF-8 at byte %zu; convert it to UTF-8", path,
                   bad + skip);
  const char *nul = len > skip ? memchr(bytes + skip, '\0', len - skip) : NULL;
  if (nul != NULL)
    return fl_fail(err, FL_EINPUT, "%s: a zero byte at byte %zu, so this is no text; leave it out",
                   path, (size_t)(nul - bytes));
  fl_buf_append(text, bytes + skip, len - skip);
  return text->oom ? fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", path) : FL_OK;
}

static const char *const suffixes[] = { ".md", ".txt", NULL };

const fl_source_kind fl_source_kind_text = {
  .name = "text", .suffixes = suffixes, .fallback = true, .read = read_text
};
