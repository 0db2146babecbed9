/* ranks.c - see ranks.h.
 *
 * What a rank brings to an exchange of conversations: the counts of its work, the length of its
 * event lines, these lines, and a line of conv_json.h for each conversation, whose index is its
 * place in the call. Such lines give back the same floats: they are what --replay is resumed from.
 */
#include "trainer/ranks.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"

typedef struct brief { /* in front of a rank's text */
  uint64_t gen_tokens, prefill_tokens, rejected, skipped, event_bytes;
} brief;

typedef struct call {
  fl_trainer *t;
  fl_conv *conv;
  bool *ok;
  const fl_conv_plan *plan;
  const fl_doc_text *const *text;
  size_t n, first, end; /* this rank's share */
  bool logged;          /* conversations of a round; others are held out */
  fl_study_stats stats;
  fl_err *err;
} call;

size_t fl_ranks_room(const fl_trainer *t) { return t->plan.max_convs * fl_dist_count(t->f->dist); }

static bool cancelled(void *ctx) { return fl_trainer_poll(ctx); }

/* --checkpoint is for those who are short of memory: half the streams take half the cache. */
static size_t at_once(const fl_trainer *t) {
  return t->f->opts.checkpoint ? (t->plan.max_convs + 1) / 2 : t->plan.max_convs;
}

static void add_stats(fl_study_stats *sum, const fl_study_stats *s) {
  sum->gen_tokens += s->gen_tokens;
  sum->prefill_tokens += s->prefill_tokens;
  sum->rejected += s->rejected;
  sum->skipped += s->skipped;
}

static int make_share(call *c, fl_events *log) {
  fl_trainer *t = c->t;
  fl_study_options o = fl_train_study(&t->f->opts);
  size_t made = c->first;
  int rc = FL_OK;
  if (!c->logged) o.mix = fl_train_heldout_mix(&t->f->opts);
  o.cancelled = cancelled;
  o.cancel_ctx = t;
  while (rc == FL_OK && made < c->end) {
    const size_t left = c->end - made, n = left < at_once(t) ? left : at_once(t);
    fl_study_stats s = { 0 };
    rc = fl_study_make(c->conv + made, c->ok + made, c->plan + made, c->text + made, n, &o, t->pass,
                       t->pool, log, &s, c->err);
    add_stats(&c->stats, &s);
    if (rc == FL_OK) made += n;
  }
  for (size_t i = c->first; i < made; i++) {
    c->ok[i] = rc == FL_OK && c->ok[i] && fl_conv_within(&c->conv[i], &t->plan.conv);
    if (rc != FL_OK) fl_conv_release(&c->conv[i]);
  }
  return rc;
}

static void put_share(fl_buf *out, const call *c, const fl_events *log) {
  const fl_buf *lines = log != NULL ? fl_events_lines(log) : NULL;
  const brief b = { c->stats.gen_tokens, c->stats.prefill_tokens, c->stats.rejected,
                    c->stats.skipped, lines != NULL ? lines->len : 0 };
  fl_buf_append(out, &b, sizeof b);
  if (lines != NULL && lines->len > 0) fl_buf_append(out, lines->data, lines->len);
  for (size_t i = c->first; i < c->end; i++) {
    const fl_conv_label label = {
      .doc = c->plan[i].doc, .name = "", .hash = "", .index = (uint32_t)i
    };
    fl_conv_print(out, c->ok[i] ? &c->conv[i] : NULL, &label);
  }
}

static int take_line(call *c, const char *line, size_t len) {
  fl_json *o = NULL;
  uint64_t at = 0;
  bool skipped = false;
  int rc = fl_json_parse(&o, line, len, NULL);
  if (rc == FL_OK && (!fl_json_get_u64(o, "index", &at) || at >= c->n)) rc = FL_EINPUT;
  if (rc == FL_OK && !(fl_json_get_bool(o, "skipped", &skipped) && skipped)) {
    rc = fl_conv_parse(&c->conv[at], o, &c->t->plan.conv);
    c->ok[at] = rc == FL_OK;
  }
  fl_json_free(o);
  return rc;
}

/* Another rank's share. */
static int take_share(call *c, const char *text, size_t len, fl_events *log) {
  brief b;
  int rc = FL_EINPUT;
  if (len < sizeof b) goto done;
  memcpy(&b, text, sizeof b);
  if (b.event_bytes > len - sizeof b) goto done;
  fl_events_append(log, text + sizeof b, (size_t)b.event_bytes);
  const fl_study_stats s = { .gen_tokens = (size_t)b.gen_tokens,
                             .prefill_tokens = (size_t)b.prefill_tokens,
                             .rejected = (size_t)b.rejected,
                             .skipped = (size_t)b.skipped };
  add_stats(&c->stats, &s);
  rc = FL_OK;
  for (size_t at = sizeof b + (size_t)b.event_bytes; rc == FL_OK && at < len;) {
    const char *end = memchr(text + at, '\n', len - at);
    const size_t n = end != NULL ? (size_t)(end - (text + at)) : len - at;
    rc = take_line(c, text + at, n);
    at += n + 1;
  }
done:
  if (rc == FL_OK) return rc;
  return fl_fail(c->err, rc == FL_ENOMEM ? rc : FL_EFAIL,
                 "what another rank made cannot be read "
                 "(%s)",
                 rc == FL_ENOMEM ? "not enough memory" : "damaged on its way");
}

static int exchange(call *c, int rc, const fl_events *own, fl_events *log) {
  fl_dist *d = c->t->f->dist;
  const size_t count = fl_dist_count(d), rank = fl_dist_rank(d);
  fl_buf mine = { 0 }, all = { 0 };
  size_t *end = fl_calloc(count, sizeof *end);
  if (rc == FL_OK && end == NULL) rc = fl_fail(c->err, FL_ENOMEM, "not enough memory for a round");
  if (rc == FL_OK) put_share(&mine, c, own);
  rc = fl_dist_exchange(d, "study", rc, &mine, &all, end, c->err);
  for (size_t r = 0; rc == FL_OK && r < count; r++) {
    const size_t at = r > 0 ? end[r - 1] : 0;
    if (r != rank) rc = take_share(c, all.data + at, end[r] - at, log);
  }
  fl_buf_release(&mine);
  fl_buf_release(&all);
  fl_free(end);
  return rc;
}

int fl_ranks_make(fl_trainer *t, int rc, fl_conv *conv, bool *ok, const fl_conv_plan *plan,
                  const fl_doc_text *const *text, size_t n, bool logged, fl_study_stats *stats,
                  fl_err *err) {
  fl_dist *d = t->f->dist;
  call c = {
    .t = t, .conv = conv, .ok = ok, .plan = plan, .text = text, .n = n, .logged = logged, .err = err
  };
  fl_events *kept = NULL; /* events of a rank that has no file */
  const double began = fl_now_s();
  fl_thread_range(n, (unsigned)fl_dist_rank(d), (unsigned)fl_dist_count(d), &c.first, &c.end);
  if (rc == FL_OK && logged && !fl_dist_leads(d)) rc = fl_events_memory(&kept, err);
  if (rc == FL_OK) rc = make_share(&c, kept != NULL ? kept : logged ? t->f->log : NULL);
  if (fl_dist_count(d) > 1) rc = exchange(&c, rc, kept, t->f->log);
  c.stats.gen_s = fl_now_s() - began;
  if (rc == FL_OK && stats != NULL) *stats = c.stats;
  fl_events_close(kept);
  return rc;
}

static void add_rows(fl_hasher *h, const fl_rows *r) {
  fl_hasher_add(h, r->block, r->n_values * sizeof *r->block);
}

int fl_ranks_compare(fl_trainer *t, fl_err *err) {
  fl_dist *d = t->f->dist;
  const size_t count = fl_dist_count(d);
  char own[FL_HASH_TEXT] = "";
  if (count < 2) return FL_OK;
  fl_hasher *h = fl_hasher_new();
  char(*all)[FL_HASH_TEXT] = fl_calloc(count, sizeof *all);
  int rc = h && all ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory to compare ranks");
  for (size_t i = 0; rc == FL_OK && i < t->res.n; i++) {
    add_rows(h, &t->res.slot[i]->cart.rows);
    add_rows(h, &t->res.slot[i]->adam.m);
    add_rows(h, &t->res.slot[i]->adam.v);
    fl_adam_evict_pages(&t->res.slot[i]->adam);
    fl_rows_evict_pages(&t->res.slot[i]->cart.rows);
  }
  if (rc == FL_OK) fl_hasher_text(h, own);
  rc = fl_dist_gather(d, "compare", rc, all, own, sizeof own, err);
  for (size_t r = 1; rc == FL_OK && r < count; r++)
    if (strcmp(all[r], all[0]) != 0)
      rc = fl_fail(err, FL_EFAIL,
                   "rank %zu holds other rows than rank 0 after round %llu, so the "
                   "ranks do not compute alike and nothing more was saved; run the same program on "
                   "machines of one kind, or look for faulty memory, and train with --resume",
                   r, (unsigned long long)t->f->m.rounds);
  fl_free(all);
  fl_hasher_free(h);
  return rc;
}
