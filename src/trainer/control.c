/* control.c - what the control socket may ask of a training (answer/control_protocol.h).
 *
 * Commands arrive between two decoded tokens or two steps, never within a step: the counters and
 * rows they see are those of the last whole round. */
#include <string.h>

#include "answer/answer.h"
#include "base/json_writer.h"
#include "base/mem.h"
#include "fleet/train_options.h"
#include "retrieval/retrieval.h"
#include "trainer/state.h"

bool fl_trainer_poll(fl_trainer *t) {
  fl_control_poll(t->control, 0);
  if (fl_hooks_poll(t->hooks) != FL_OK) t->stop = true;
  while (t->paused && !t->stop) {
    fl_control_poll(t->control, 200);
    if (fl_hooks_poll(t->hooks) != FL_OK) t->stop = true;
  }
  return t->stop;
}

/* --- several ranks ------------------------------------------------------------------------- */

typedef struct directive { /* of rank 0, `stop` of every rank; then a byte for each document's mark
                            */
  uint64_t last_round, budget;
  double lr;
  bool stop;
} directive;

static void put_directive(fl_buf *out, const fl_trainer *t) {
  const fl_manifest *m = &t->f->m;
  directive s;
  memset(&s, 0, sizeof s);
  s.last_round = t->last_round;
  s.budget = t->f->opts.budget;
  s.lr = t->f->opts.lr;
  s.stop = t->stop;
  fl_buf_append(out, &s, sizeof s);
  for (size_t i = 0; fl_dist_leads(t->f->dist) && i < m->n; i++) fl_buf_putc(out, m->doc[i].marked);
}

/* False when it is not of the size that it must have. */
static bool take_directive(fl_trainer *t, size_t rank, const char *text, size_t len) {
  fl_fleet *f = t->f;
  directive s;
  if (len != sizeof s + (rank == 0 ? f->m.n : 0)) return false;
  memcpy(&s, text, sizeof s);
  t->stop = t->stop || s.stop;
  if (rank != 0 || fl_dist_leads(f->dist)) return true;
  t->last_round = s.last_round;
  f->opts.budget = (size_t)s.budget;
  f->opts.lr = s.lr;
  f->m.opts = f->opts;
  for (size_t i = 0; i < f->m.n; i++) f->m.doc[i].marked = text[sizeof s + i] != 0;
  return true;
}

int fl_trainer_share(fl_trainer *t, int rc, fl_err *err) {
  fl_dist *d = t->f->dist;
  const size_t count = fl_dist_count(d);
  fl_buf mine = { 0 }, all = { 0 };
  if (count == 1) return rc;
  size_t *end = fl_calloc(count, sizeof *end);
  if (rc == FL_OK && end == NULL) rc = fl_fail(err, FL_ENOMEM, "not enough memory for a round");
  put_directive(&mine, t);
  rc = fl_dist_exchange(d, "directive", rc, &mine, &all, end, err);
  for (size_t r = 0; rc == FL_OK && r < count; r++) {
    const size_t at = r > 0 ? end[r - 1] : 0;
    if (!take_directive(t, r, all.data + at, end[r] - at))
      rc = fl_fail(err, FL_EFAIL, "rank %zu has another number of documents", r);
  }
  fl_buf_release(&mine);
  fl_buf_release(&all);
  fl_free(end);
  return rc;
}

int fl_trainer_sync(fl_trainer *t, fl_err *err) {
  (void)fl_trainer_poll(t);
  const int rc = fl_trainer_share(t, FL_OK, err);
  return rc == FL_OK && t->stop ? FL_EINTR : rc;
}

/* --- commands ------------------------------------------------------------------------------ */

static int do_pause(void *ctx, const fl_json *o, fl_err *err) {
  fl_trainer *t = ctx;
  (void)o, (void)err;
  t->paused = true;
  return FL_OK;
}

static int do_resume(void *ctx, const fl_json *o, fl_err *err) {
  fl_trainer *t = ctx;
  (void)o, (void)err;
  t->paused = t->one_step = false;
  return FL_OK;
}

static int do_step(void *ctx, const fl_json *o, fl_err *err) {
  fl_trainer *t = ctx;
  (void)o, (void)err;
  t->paused = false;
  t->one_step = true;
  return FL_OK;
}

static int do_stop(void *ctx, const fl_json *o, fl_err *err) {
  fl_trainer *t = ctx;
  (void)o, (void)err;
  t->stop = true;
  return FL_OK;
}

static int do_save(void *ctx, const fl_json *o, fl_err *err) {
  (void)o;
  return fl_trainer_save(ctx, "request", err);
}

static int do_set(void *ctx, const fl_json *o, fl_err *err) {
  fl_trainer *t = ctx;
  fl_fleet *f = t->f;
  const char *key = NULL;
  double v = 0;
  if (!fl_json_get_str(o, "key", &key) || !fl_json_get_num(o, "value", &v))
    return fl_fail(err, FL_EUSAGE, "\"set\" needs a \"key\" and a number \"value\"");
  const bool count = v >= (double)f->m.rounds && v <= 4e9 && v == (double)(uint64_t)v;
  if (strcmp(key, "rounds") == 0 && count) {
    t->last_round = (uint64_t)v;
    return FL_OK;
  }
  if (!fl_train_options_is_live(key))
    return fl_fail(err, FL_EUSAGE,
                   "only lr, budget and rounds (of at least those done) can be set");
  const int rc = fl_train_options_set(&f->opts, key, v, err);
  f->m.opts = f->opts;
  return rc;
}

static int do_mark(void *ctx, const fl_json *o, fl_err *err) {
  fl_fleet *f = ((fl_trainer *)ctx)->f;
  uint64_t id = 0;
  bool on = true;
  if (!fl_json_get_u64(o, "doc", &id) || !fl_json_get_bool(o, "value", &on))
    return fl_fail(err, FL_EUSAGE, "\"mark\" needs a number \"doc\" and a true or false \"value\"");
  for (size_t i = 0; i < f->m.n; i++) {
    if (f->m.doc[i].id != id) continue;
    f->m.doc[i].marked = on;
    f->unsaved = true;
    fl_log_doc(f, i, "kept");
    return FL_OK;
  }
  return fl_fail(err, FL_ENOENT, "no document of that number in the fleet");
}

static const fl_control_command commands[] = {
  { "pause", do_pause }, { "resume", do_resume }, { "step", do_step }, { "save", do_save },
  { "stop", do_stop },   { "set", do_set },       { "mark", do_mark },
};

/* --- questions ----------------------------------------------------------------------------- */

static void status(void *ctx, fl_buf *out) {
  const fl_trainer *t = ctx;
  fl_jsonw_u64(out, "round", t->f->m.rounds);
  fl_jsonw_u64(out, "rounds", t->last_round);
  fl_jsonw_bool(out, "paused", t->paused);
}

static const fl_rag_options live_rag = { .docs = 2, .chunks = 8, .floor = -1 };
enum { ASK_DOCS = 8 };

static int retrieve(void *ctx, const char *query, size_t len, fl_buf *out, fl_err *err) {
  fl_fleet *f = ((fl_trainer *)ctx)->f;
  fl_hits h = { 0 };
  const int rc = fl_fleet_retrieve(f, query, len, &live_rag, &h, err);
  if (rc == FL_OK) fl_hits_print(out, f, query, len, &live_rag, &h);
  fl_hits_release(&h);
  return rc;
}

static bool send_piece(void *ctx, const char *piece, size_t len) {
  fl_control_token(ctx, piece, len);
  return !fl_control_alive(ctx);
}

static void send_reply(fl_control_client *c, const fl_fleet *f, const fl_ask_options *o,
                       const fl_reply *r) {
  uint32_t docs[ASK_DOCS];
  for (size_t i = 0; i < o->n_docs; i++) docs[i] = f->m.doc[o->docs[i]].id;
  const fl_control_reply reply = { .text = r->text,
                                   .len = strlen(r->text),
                                   .docs = docs,
                                   .n_docs = o->n_docs,
                                   .rows = r->rows,
                                   .tokens = r->tokens,
                                   .ttft_s = r->ttft_s,
                                   .seconds = r->seconds };
  fl_control_answer(c, &reply);
}

static int ask(void *ctx, fl_control_client *c, const char *query, size_t len, bool bare,
               fl_err *err) {
  fl_fleet *f = ((fl_trainer *)ctx)->f;
  fl_hits h = { 0 };
  fl_reply r = { 0 };
  size_t docs[ASK_DOCS];
  fl_ask_options a = { .arm = bare ? FL_ARM_BARE : FL_ARM_CARTRIDGE,
                       .docs = docs,
                       .sampling = FL_SAMPLING_GREEDY,
                       .max_new = f->opts.max_a,
                       .kv = FL_KV_F32,
                       .on_token = send_piece,
                       .ctx = c };
  int rc = bare ? FL_OK : fl_fleet_retrieve(f, query, len, &live_rag, &h, err);
  for (size_t i = 0; i < h.n_docs && i < ASK_DOCS; i++) docs[a.n_docs++] = h.doc[i].doc;
  if (rc == FL_OK) rc = fl_fleet_ask(f, query, len, &a, &r, err);
  if (rc == FL_OK) send_reply(c, f, &a, &r);
  fl_hits_release(&h);
  fl_reply_release(&r);
  return rc;
}

fl_control_protocol fl_trainer_protocol(fl_trainer *t) {
  return (fl_control_protocol){ .ctx = t,
                                .log = t->f->log,
                                .all = "unknown command; there are",
                                .own = commands,
                                .n_own = sizeof commands / sizeof *commands,
                                .status = status,
                                .retrieve = retrieve,
                                .ask = ask };
}
