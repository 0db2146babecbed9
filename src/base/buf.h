/* buf.h - a growing byte string. Zeroed is empty and valid; data is always NUL-terminated once
 * anything was appended. After a failed append `oom` stays true and the content is unchanged, so a
 * caller may append freely and check once. */
#ifndef FL_BASE_BUF_H
#define FL_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_buf {
  char *data;
  size_t len, cap;
  bool oom;
} fl_buf;

void fl_buf_append(fl_buf *b, const void *data, size_t len);
void fl_buf_puts(fl_buf *b, const char *s);
void fl_buf_putc(fl_buf *b, char c);
void fl_buf_printf(fl_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fl_buf_reset(fl_buf *b);   /* len = 0, keeps memory */
void fl_buf_release(fl_buf *b); /* frees and zeroes */
/* Gives the string away (fl_free), "" allocated if empty, NULL on oom. */
char *fl_buf_detach(fl_buf *b);

/* A growing array of int32 token ids; same rules. */
typedef struct fl_ids {
  int32_t *data;
  size_t len, cap;
  bool oom;
} fl_ids;

void fl_ids_push(fl_ids *v, int32_t id);
void fl_ids_append(fl_ids *v, const int32_t *ids, size_t n);
void fl_ids_reset(fl_ids *v);
void fl_ids_release(fl_ids *v);

#endif
