/* buf.c - growing byte strings and token arrays. Room doubles; a failed growth sticks as `oom`. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* Makes room for `extra` more bytes and the NUL. */
static bool reserve(fl_buf *b, size_t extra) {
  size_t need;
  if (b->oom) return false;
  if (!fl_add_size(b->len, extra, &need) || !fl_add_size(need, 1, &need)) {
    b->oom = true;
    return false;
  }
  if (need <= b->cap) return true;
  size_t cap = b->cap < 32 ? 64 : b->cap;
  while (cap < need && cap <= SIZE_MAX / 2) cap *= 2;
  if (cap < need) cap = need;
  char *data = fl_reallocarray(b->data, cap, 1);
  if (data == NULL) {
    b->oom = true;
    return false;
  }
  b->data = data;
  b->cap = cap;
  return true;
}

void fl_buf_append(fl_buf *b, const void *data, size_t len) {
  if (!reserve(b, len)) return;
  if (len > 0) memcpy(b->data + b->len, data, len);
  b->len += len;
  b->data[b->len] = '\0';
}

void fl_buf_puts(fl_buf *b, const char *s) { fl_buf_append(b, s, strlen(s)); }

void fl_buf_putc(fl_buf *b, char c) { fl_buf_append(b, &c, 1); }

void fl_buf_printf(fl_buf *b, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int len = vsnprintf(NULL, 0, fmt, ap);
  if (len >= 0 && reserve(b, (size_t)len)) {
    vsnprintf(b->data + b->len, (size_t)len + 1, fmt, again);
    b->len += (size_t)len;
  }
  va_end(again);
  va_end(ap);
}

void fl_buf_reset(fl_buf *b) {
  b->len = 0;
  b->oom = false;
  if (b->data != NULL) b->data[0] = '\0';
}

void fl_buf_release(fl_buf *b) {
  fl_free(b->data);
  *b = (fl_buf){ 0 };
}

char *fl_buf_detach(fl_buf *b) {
  fl_buf_append(b, "", 0); /* so that an empty one has its NUL */
  if (b->oom) {
    fl_buf_release(b);
    return NULL;
  }
  char *s = b->data;
  *b = (fl_buf){ 0 };
  return s;
}

void fl_ids_append(fl_ids *v, const int32_t *ids, size_t n) {
  size_t need;
  if (v->oom || n == 0) return;
  if (!fl_add_size(v->len, n, &need)) {
    v->oom = true;
    return;
  }
  if (need > v->cap) {
    size_t cap = v->cap < 16 ? 32 : v->cap;
    while (cap < need && cap <= SIZE_MAX / 2) cap *= 2;
    if (cap < need) cap = need;
    int32_t *data = fl_reallocarray(v->data, cap, sizeof *data);
    if (data == NULL) {
      v->oom = true;
      return;
    }
    v->data = data;
    v->cap = cap;
  }
  memcpy(v->data + v->len, ids, n * sizeof *ids);
  v->len = need;
}

void fl_ids_push(fl_ids *v, int32_t id) { fl_ids_append(v, &id, 1); }

void fl_ids_reset(fl_ids *v) {
  v->len = 0;
  v->oom = false;
}

void fl_ids_release(fl_ids *v) {
  fl_free(v->data);
  *v = (fl_ids){ 0 };
}
