/* slots.c - choosing a slot for a prompt, and making room for it. */
#include "serve/slots.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum {
  DISK_GAIN = 32, /* tokens that a file must have over the best slot to be read */
  ROW_SPARE = 1   /* pages: the last page of a fork is copied before it is written */
};

static size_t pages_of(size_t rows) { return (rows + FL_KV_ROWS - 1) / FL_KV_ROWS; }

int fl_slots_init(fl_slots *s, size_t n, fl_kv_pool *pool, size_t max_bytes, fl_prefixes *prefixes,
                  fl_spill *spill, fl_err *err) {
  *s = (fl_slots){
    .n = n, .pool = pool, .prefixes = prefixes, .spill = spill, .page_bytes = fl_kv_page_bytes(pool)
  };
  s->max_pages = max_bytes / s->page_bytes;
  s->slot = fl_calloc(n, sizeof *s->slot);
  return s->slot != NULL ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory for %zu slots", n);
}

/* --- leaving --- */

/* Saves the slot's rows, or a fork of them; *seq is NULL afterwards if they were taken over. */
static void spill_slot(fl_slots *s, const fl_slot *slot, fl_seq **seq) {
  const fl_spill_item it = { .prefix = slot->prefix,
                             .ids = slot->ids.data,
                             .n = slot->ids.len,
                             .key = slot->key,
                             .owner = slot->owner };
  if (s->spill != NULL && slot->state == FL_SLOT_IDLE) fl_spill_save(s->spill, &it, seq);
}

static void free_slot(fl_slots *s, fl_slot *slot) {
  spill_slot(s, slot, &slot->seq);
  fl_seq_free(slot->seq);
  fl_prefix_drop(slot->prefix);
  fl_ids_release(&slot->ids);
  *slot = (fl_slot){ 0 };
}

void fl_slots_release(fl_slots *s) {
  for (size_t i = 0; s->slot != NULL && i < s->n; i++) {
    if (s->slot[i].state == FL_SLOT_FREE) continue;
    if (s->spill != NULL && !fl_spill_wait(s->spill)) s->spill = NULL; /* nor will it write more */
    free_slot(s, &s->slot[i]);
  }
  fl_free(s->slot);
  *s = (fl_slots){ 0 };
}

static void give_reading_up(fl_slots *s, fl_slot *slot) {
  fl_spill_read_drop(s->spill, slot->reading);
  slot->reading = NULL;
  slot->reading_rows = 0;
}

void fl_slots_close(fl_slots *s, fl_slot *slot) {
  if (slot->state == FL_SLOT_READING) give_reading_up(s, slot);
  slot->state = FL_SLOT_IDLE;
  slot->reserved_rows = 0;
  slot->used = ++s->clock;
  if (slot->ids.len == 0) free_slot(s, slot);
}

/* --- room --- */

static bool has_job(const fl_slot *slot) {
  return slot->state == FL_SLOT_BUSY || slot->state == FL_SLOT_READING;
}

/* Pages that a slot may still need, the copy of a shared last page included. */
static size_t pages_to_come(const fl_slot *slot) {
  size_t have = (fl_seq_rows(slot->seq) + slot->reading_rows) / FL_KV_ROWS;
  size_t most = pages_of(slot->reserved_rows);
  return most > have ? most - have : 0;
}

static bool fits(const fl_slots *s, size_t pages) {
  size_t used = (fl_kv_pool_bytes(s->pool) + s->loading_bytes + s->page_bytes - 1) / s->page_bytes;
  for (size_t i = 0; i < s->n; i++)
    if (has_job(&s->slot[i])) used += pages_to_come(&s->slot[i]);
  return used <= s->max_pages && pages <= s->max_pages - used;
}

bool fl_slots_too_large(const fl_slots *s, size_t rows) {
  return pages_of(rows) + ROW_SPARE > s->max_pages;
}

static fl_slot *oldest_idle(fl_slots *s, const fl_slot *keep) {
  fl_slot *best = NULL;
  for (size_t i = 0; i < s->n; i++) {
    fl_slot *x = &s->slot[i];
    if (x->state == FL_SLOT_IDLE && x != keep && (best == NULL || x->used < best->used)) best = x;
  }
  return best;
}

/* FL_EBUSY: there will be room once the disk has written what is spilled. FL_EFULL: there is none.
 */
static int evict_until(fl_slots *s, size_t pages, const fl_slot *keep_slot, const fl_prefix *keep) {
  while (!fits(s, pages)) {
    const fl_spill_room room = s->spill != NULL ? fl_spill_make_room(s->spill) : FL_SPILL_EMPTY;
    if (room == FL_SPILL_FREED) continue;
    if (room == FL_SPILL_LATER) return FL_EBUSY;
    fl_slot *old = oldest_idle(s, keep_slot);
    if (old != NULL) free_slot(s, old);
    else if (!fl_prefix_evict(s->prefixes, keep)) return FL_EFULL;
  }
  return FL_OK;
}

static int no_room(const fl_slots *s, size_t rows, fl_err *err) {
  return fl_fail(err, FL_EFULL,
                 "%zu rows do not fit into the memory for keys and values (%zu MiB); shorten the "
                 "conversation or the answer, or give the server more",
                 rows, s->max_pages * s->page_bytes >> 20);
}

int fl_slots_make_room(fl_slots *s, size_t rows, const fl_prefix *keep, fl_err *err) {
  const int rc = evict_until(s, pages_of(rows) + ROW_SPARE, NULL, keep);
  return rc == FL_OK ? rc : no_room(s, rows, err);
}

/* --- choosing --- */

/* Where the rows of a new job come from. */
typedef struct source {
  fl_slot *donor; /* shares the most; NULL: none */
  size_t common;  /* tokens shared with it, at most n - 1 */
  bool adopt;     /* the job goes on in the donor itself */
} source;

static source find_source(fl_slots *s, const fl_slot_wish *w) {
  source best = { 0 };
  for (size_t i = 0; i < s->n; i++) {
    fl_slot *x = &s->slot[i];
    if (x->state == FL_SLOT_FREE || x->state == FL_SLOT_READING) continue;
    if (x->prefix != w->prefix || x->owner != w->owner) continue;
    size_t n = fl_common_ids(x->ids.data, x->ids.len, w->ids, w->n - 1);
    bool better = best.donor == NULL || n > best.common ||
                  (n == best.common && best.donor->state == FL_SLOT_BUSY);
    if (!better) continue;
    best.donor = x;
    best.common = n;
  }
  if (best.common == 0) best.donor = NULL;
  return best;
}

/* A job that goes on in the donor drops its rows beyond the common part. That is fine when there
 * are none, or few and of the same conversation (an answer that is asked for again). */
static bool may_adopt(const source *src, const fl_slot_wish *w) {
  const fl_slot *d = src->donor;
  if (d == NULL || d->state != FL_SLOT_IDLE) return false;
  size_t lost = d->ids.len - src->common;
  return lost == 0 || (strcmp(d->key, w->key) == 0 && 2 * lost <= d->ids.len);
}

static fl_slot *free_place(fl_slots *s) {
  for (size_t i = 0; i < s->n; i++)
    if (s->slot[i].state == FL_SLOT_FREE) return &s->slot[i];
  return NULL;
}

/* The slot to use: the donor, a free one, or the longest unused. NULL: all are busy. */
static fl_slot *choose_host(fl_slots *s, source *src, const fl_slot_wish *w) {
  src->adopt = may_adopt(src, w);
  if (src->adopt) return src->donor;
  fl_slot *host = free_place(s);
  if (host == NULL) host = oldest_idle(s, src->donor);
  if (host == NULL && src->donor != NULL && src->donor->state == FL_SLOT_IDLE) {
    src->adopt = true; /* there is no other */
    host = src->donor;
  }
  return host;
}

static size_t pages_needed(const source *src, const fl_slot_wish *w) {
  size_t shared = (w->prefix->rows + src->common) / FL_KV_ROWS;
  size_t most = pages_of(w->rows) + ROW_SPARE;
  return most > shared ? most - shared : 0;
}

static void cut_to(fl_slots *s, fl_slot *slot, size_t n) {
  fl_seq *copy = NULL; /* without room for one the rows are lost */
  if (s->spill != NULL && slot->ids.len - n > n &&
      fl_seq_fork(&copy, slot->seq, fl_seq_rows(slot->seq), NULL) == FL_OK)
    spill_slot(s, slot, &copy);
  fl_seq_free(copy);
  fl_seq_truncate(slot->seq, slot->prefix->rows + n);
  slot->ids.len = n;
}

/* Rows of the prefix, or of the donor, in a sequence of their own. */
static int fork_rows(fl_slots *s, const source *src, const fl_slot_wish *w, fl_seq **out,
                     fl_err *err) {
  if (src->donor != NULL)
    return fl_seq_fork(out, src->donor->seq, w->prefix->rows + src->common, err);
  return w->prefix->seq != NULL ? fl_seq_fork(out, w->prefix->seq, w->prefix->rows, err)
                                : fl_seq_new(out, s->pool, err);
}

/* Rows that are not written yet and hold more of the prompt than any slot does. */
static void take_unwritten(fl_slots *s, fl_slot *host, const fl_slot_wish *w, size_t *common) {
  size_t n = 0;
  fl_seq *fork = NULL;
  const fl_seq *seq = fl_spill_unwritten(s->spill, w->prefix, w->owner, w->ids, w->n - 1, &n);
  if (seq == NULL || n <= *common) return;
  if (fl_seq_fork(&fork, seq, w->prefix->rows + n, NULL) != FL_OK) return;
  fl_seq_free(host->seq);
  host->seq = fork;
  *common = n;
}

/* A file that holds more of the prompt than memory does; the rows in memory are dropped for it. */
static void read_back(fl_slots *s, fl_slot *host, const fl_slot_wish *w, size_t *common) {
  size_t n = 0;
  const fl_spill_file *file = fl_spill_find(s->spill, w->prefix, w->owner, w->ids, w->n - 1, &n);
  if (file == NULL || n < *common + DISK_GAIN) return;
  fl_seq_truncate(host->seq, w->prefix->rows);
  *common = 0;
  if (fl_seq_reserve(host->seq, w->prefix->rows + n, NULL) == FL_OK &&
      fl_spill_read(&host->reading, s->spill, file, host->seq, n) == FL_OK)
    host->reading_rows = n;
}

/* The host has the rows of the prefix and of `common` tokens. Adds what is known outside the slots
 * and sets `ids` to match. */
static int bring_back(fl_slots *s, fl_slot *host, const fl_slot_wish *w, size_t common,
                      fl_err *err) {
  if (s->spill != NULL) {
    take_unwritten(s, host, w, &common);
    read_back(s, host, w, &common);
  }
  fl_ids_reset(&host->ids);
  fl_ids_append(&host->ids, w->ids, common);
  return host->ids.oom
             ? fl_fail(err, FL_ENOMEM, "not enough memory for a conversation of %zu tokens", w->n)
             : FL_OK;
}

static int fill_host(fl_slots *s, fl_slot *host, const source *src, const fl_slot_wish *w,
                     fl_err *err) {
  int rc = FL_OK;
  if (!src->adopt) {
    rc = fork_rows(s, src, w, &host->seq, err);
    if (rc != FL_OK) return rc;
    host->prefix = w->prefix;
    fl_prefix_hold(s->prefixes, w->prefix);
  }
  rc = bring_back(s, host, w, src->common, err);
  if (rc == FL_OK) return rc;
  host->state = FL_SLOT_BUSY; /* so that nothing is spilled */
  free_slot(s, host);
  return rc;
}

int fl_slots_open(fl_slot **out, fl_slots *s, const fl_slot_wish *w, fl_err *err) {
  source src = find_source(s, w);
  fl_slot *host = choose_host(s, &src, w);
  if (host == NULL) return fl_fail(err, FL_EBUSY, "all %zu slots are busy", s->n);
  if (src.adopt) cut_to(s, host, src.common);
  else if (host->state == FL_SLOT_IDLE) free_slot(s, host);
  int rc = evict_until(s, pages_needed(&src, w), src.donor, w->prefix);
  if (rc == FL_EFULL && src.donor != NULL && src.donor->state == FL_SLOT_IDLE) {
    /* The donor is all that is left: its rows are worth less than the job. */
    if (!src.adopt) host = src.donor;
    free_slot(s, host);
    src = (source){ 0 };
    rc = evict_until(s, pages_needed(&src, w), NULL, w->prefix);
  }
  if (rc != FL_OK) return no_room(s, w->rows, err);
  rc = fill_host(s, host, &src, w, err);
  if (rc != FL_OK) return rc;
  host->state = host->reading_rows > 0 ? FL_SLOT_READING : FL_SLOT_BUSY;
  host->reserved_rows = w->rows;
  snprintf(host->key, sizeof host->key, "%s", w->key);
  host->owner = w->owner;
  host->used = ++s->clock;
  *out = host;
  return FL_OK;
}

bool fl_slots_ready(fl_slots *s, fl_slot *slot, const int32_t *ids) {
  if (slot->state != FL_SLOT_READING) return true;
  if (!fl_spill_read_done(s->spill, slot->reading)) {
    if (!fl_spill_stalled(s->spill)) return false;
    give_reading_up(s, slot);
  } else if (fl_spill_read_end(s->spill, slot->reading) == FL_OK) {
    fl_ids_append(&slot->ids, ids, slot->reading_rows);
  }
  if (slot->ids.oom) {
    fl_ids_release(&slot->ids);
    fl_seq_truncate(slot->seq, slot->prefix->rows);
  }
  slot->reading = NULL;
  slot->reading_rows = 0;
  slot->state = FL_SLOT_BUSY;
  return true;
}
