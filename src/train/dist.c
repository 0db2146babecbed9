/* dist.c - see dist.h.
 *
 * A call begins with a head of fixed size from every rank: where it is, how it fares, how much it
 * brings. Ranks at different places therefore understand each other so far, and an error that one
 * brings to its last call reaches those who wait in the middle of a round. What such a call needs
 * is there from the start: a rank that had no memory for speaking would leave the others waiting.
 */
#include "train/dist.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/pointwise.h"

typedef struct head {
  char what[24];
  int32_t code;
  uint64_t n_bytes;
  char text[FL_ERR_TEXT];
} head;

struct fl_dist {
  size_t rank, count;
  const fl_dist_ops *ops;
  void *ctx;
  bool diverged; /* an error or a stop was agreed on: nobody is to be waited for */
  fl_err end;    /* which */
  head *head;    /* [count] of the running call */
  size_t *bytes; /* [count] */
};

int fl_dist_new(fl_dist **out, size_t rank, size_t count, const fl_dist_ops *ops, void *ctx,
                fl_err *err) {
  fl_dist *d = fl_calloc(1, sizeof *d);
  if (d != NULL) {
    *d = (fl_dist){ .rank = rank, .count = count, .ops = ops, .ctx = ctx };
    d->head = fl_calloc(count, sizeof *d->head);
    d->bytes = fl_calloc(count, sizeof *d->bytes);
  }
  if (d == NULL || d->head == NULL || d->bytes == NULL) {
    fl_dist_free(d);
    return fl_fail(err, FL_ENOMEM, "not enough memory to speak to the other ranks");
  }
  *out = d;
  return FL_OK;
}

void fl_dist_free(fl_dist *d) {
  if (d == NULL) return;
  fl_free(d->head);
  fl_free(d->bytes);
  fl_free(d);
}

size_t fl_dist_rank(const fl_dist *d) { return d != NULL ? d->rank : 0; }
size_t fl_dist_count(const fl_dist *d) { return d != NULL ? d->count : 1; }
bool fl_dist_leads(const fl_dist *d) { return fl_dist_rank(d) == 0; }

/* --- agreeing ------------------------------------------------------------------------------ */

/* The end that d->end tells of. */
static int ended(fl_dist *d, fl_err *err) {
  d->diverged = true;
  if (err != NULL && err->text[0] == '\0') *err = d->end;
  return d->end.code;
}

static int broken(fl_dist *d, fl_err *err) {
  fl_fail(&d->end, FL_EFAIL,
          "the connection between the ranks broke; the last saved generation is "
          "whole, train again with --resume");
  return ended(d, err);
}

/* The worst of the heads: an error before a stop, the lowest rank first; NULL: all is well. */
static const head *worst(const fl_dist *d) {
  const head *found = NULL;
  for (size_t i = 0; i < d->count; i++) {
    const head *h = &d->head[i];
    if (h->code == FL_OK) continue;
    if (found == NULL || (found->code == FL_EINTR && h->code != FL_EINTR)) found = h;
  }
  return found;
}

static int end_of(fl_dist *d, const head *w, fl_err *err) {
  const size_t rank = (size_t)(w - d->head);
  const char *text = w->text;
  if (text[0] == '\0') d->end.code = w->code;
  else if (rank > 0) fl_fail(&d->end, w->code, "rank %zu: %s", rank, text);
  else fl_fail(&d->end, w->code, "%s", text);
  /* Every rank is to say the same. */
  if (err != NULL) *err = (fl_err){ 0 };
  return ended(d, err);
}

/* d->head = everybody's. */
static int meet(fl_dist *d, const char *what, int rc, size_t n_bytes, fl_err *err) {
  head own;
  if (d->diverged) return rc != FL_OK ? rc : ended(d, err);
  memset(&own, 0, sizeof own);
  snprintf(own.what, sizeof own.what, "%s", what);
  own.code = rc;
  own.n_bytes = n_bytes;
  if (rc != FL_OK && err != NULL) memcpy(own.text, err->text, sizeof own.text);
  if (d->ops->gather(d->ctx, d->head, &own, sizeof own) != FL_OK) return broken(d, err);
  for (size_t i = 0; i < d->count; i++) d->head[i].text[FL_ERR_TEXT - 1] = '\0';
  const head *w = worst(d);
  if (w != NULL) return end_of(d, w, err);
  for (size_t i = 1; i < d->count; i++) {
    if (memcmp(d->head[i].what, d->head[0].what, sizeof own.what) == 0) continue;
    fl_fail(&d->end, FL_EFAIL,
            "rank %zu is at \"%.23s\" where rank 0 is at \"%.23s\"; the ranks "
            "have diverged, train again with --resume",
            i, d->head[i].what, d->head[0].what);
    return ended(d, err);
  }
  return FL_OK;
}

int fl_dist_agree(fl_dist *d, const char *what, int rc, fl_err *err) {
  return fl_dist_count(d) == 1 ? rc : meet(d, what, rc, 0, err);
}

int fl_dist_gather(fl_dist *d, const char *what, int rc, void *all, const void *own, size_t n_bytes,
                   fl_err *err) {
  if (fl_dist_count(d) == 1) {
    if (rc == FL_OK) memcpy(all, own, n_bytes);
    return rc;
  }
  rc = meet(d, what, rc, n_bytes, err);
  if (rc != FL_OK) return rc;
  return d->ops->gather(d->ctx, all, own, n_bytes) == FL_OK ? FL_OK : broken(d, err);
}

/* d->bytes, end from the heads; returns the sum. */
static size_t place_texts(fl_dist *d, size_t *end) {
  size_t total = 0;
  for (size_t i = 0; i < d->count; i++) {
    d->bytes[i] = (size_t)d->head[i].n_bytes;
    total += d->bytes[i];
    end[i] = total;
  }
  return total;
}

static int exchange_alone(int rc, const fl_buf *own, fl_buf *all, size_t *end, fl_err *err) {
  if (rc != FL_OK) return rc;
  fl_buf_append(all, own->data, own->len);
  end[0] = all->len;
  return all->oom ? fl_fail(err, FL_ENOMEM, "not enough memory") : FL_OK;
}

int fl_dist_exchange(fl_dist *d, const char *what, int rc, const fl_buf *own, fl_buf *all,
                     size_t *end, fl_err *err) {
  fl_buf_reset(all);
  if (rc == FL_OK && own->oom)
    rc = fl_fail(err, FL_ENOMEM, "not enough memory for what the ranks are to get");
  if (fl_dist_count(d) == 1) return exchange_alone(rc, own, all, end, err);
  rc = meet(d, what, rc, own->len, err);
  if (rc != FL_OK) return rc;
  const size_t total = place_texts(d, end);
  char *text = fl_malloc(total + 1);
  if (text == NULL)
    rc = fl_fail(err, FL_ENOMEM, "not enough memory for what the other ranks bring");
  rc = meet(d, "room", rc, 0, err); /* before anybody begins to send */
  if (rc == FL_OK && d->ops->gather_each(d->ctx, text, own->data, d->bytes) != FL_OK)
    rc = broken(d, err);
  if (rc != FL_OK) {
    fl_free(text);
    return rc;
  }
  text[total] = '\0';
  fl_buf_release(all);
  *all = (fl_buf){ .data = text, .len = total, .cap = total + 1 };
  return FL_OK;
}

/* --- sums ---------------------------------------------------------------------------------- */

/* d->bytes = everybody's share of n values; returns this rank's, in values. */
static size_t cut(const fl_dist *d, size_t n) {
  for (size_t r = 0; r < d->count; r++) {
    size_t first, end;
    fl_thread_range(n, (unsigned)r, (unsigned)d->count, &first, &end);
    d->bytes[r] = (end - first) * sizeof(float);
  }
  return d->bytes[d->rank] / sizeof(float);
}

int fl_dist_sum(fl_dist *d, const fl_kernels *k, float *sum, const float *const *block,
                const size_t *owner, size_t n_blocks, size_t n, float *scratch, fl_err *err) {
  float *own = scratch, *add = scratch + FL_DIST_PIECE / 2;
  int rc = FL_OK;
  for (size_t at = 0; rc == FL_OK && at < n; at += FL_DIST_PIECE) {
    const size_t share = cut(d, n - at < FL_DIST_PIECE ? n - at : FL_DIST_PIECE);
    for (size_t i = 0; rc == FL_OK && i < n_blocks; i++) {
      const float *from = owner[i] == d->rank ? block[i] + at : NULL;
      rc = d->ops->scatter(d->ctx, i == 0 ? own : add, from, d->bytes, owner[i]);
      if (rc == FL_OK && i > 0) fl_add(k, own, add, share);
    }
    if (rc == FL_OK) rc = d->ops->gather_each(d->ctx, sum + at, own, d->bytes);
  }
  return rc == FL_OK ? FL_OK : broken(d, err);
}
