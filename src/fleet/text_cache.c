/* text_cache.c - see text_cache.h. */
#include "fleet/text_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

struct fl_text_cache {
  int fd;
  size_t n;
  uint64_t *end; /* [n] offset after each text */
};

void fl_text_cache_free(fl_text_cache *t) {
  if (t == NULL) return;
  if (t->fd >= 0) close(t->fd);
  fl_free(t->end);
  fl_free(t);
}

int fl_text_cache_new(fl_text_cache **out, const char *dir, const fl_source_list *docs,
                      fl_err *err) {
  fl_text_cache *t = fl_calloc(1, sizeof *t);
  if (t == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory to open the fleet", dir);
  t->fd = fl_fs_nameless(dir);
  t->end = fl_calloc(docs->n + 1, sizeof *t->end);
  int failed = t->fd < 0 ? errno : t->end == NULL ? ENOMEM : 0;
  for (uint64_t at = 0; failed == 0 && t->n < docs->n; t->n++) {
    failed = fl_fs_write(t->fd, docs->doc[t->n].text, docs->doc[t->n].len);
    at += docs->doc[t->n].len;
    t->end[t->n] = at;
  }
  if (failed != 0) {
    fl_text_cache_free(t);
    return fl_fail(err, failed == ENOMEM ? FL_ENOMEM : FL_EFAIL,
                   "%s: the documents' texts cannot "
                   "be kept there (%s); nothing was changed, %s",
                   dir, failed == ENOSPC ? "no space left" : strerror(failed),
                   failed == ENOSPC || failed == EDQUOT || failed == EFBIG
                       ? "make room"
                       : "mend that and repeat");
  }
  *out = t;
  return FL_OK;
}

int fl_text_cache_read(const fl_text_cache *t, size_t i, fl_buf *out, fl_err *err) {
  uint64_t at = i > 0 ? t->end[i - 1] : 0;
  char piece[1 << 14];
  while (at < t->end[i]) {
    size_t want = t->end[i] - at < sizeof piece ? (size_t)(t->end[i] - at) : sizeof piece;
    ssize_t n = pread(t->fd, piece, want, (off_t)at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return fl_fail(err, FL_EFAIL, "a document's text cannot be read back: %s",
                     n < 0 ? strerror(errno) : "its file is cut short");
    fl_buf_append(out, piece, (size_t)n);
    at += (uint64_t)n;
  }
  return out->oom ? fl_fail(err, FL_ENOMEM, "not enough memory for a document's text") : FL_OK;
}
