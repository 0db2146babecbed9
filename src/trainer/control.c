/* control.c - what the control socket may ask of a training: a table of commands.
 *
 * Commands arrive between two decoded tokens or two steps, never within a step: the counters and
 * rows they see are those of the last whole round. */
#include <string.h>
#include <unistd.h>

#include "answer/answer.h"
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

typedef struct steer { /* of rank 0, `stop` of every rank; then a byte for each document's mark */
  uint64_t last_round, budget;
  double lr;
  bool stop;
} steer;

static void put_steer(fl_buf *out, const fl_trainer *t) {
  const fl_manifest *m = &t->f->m;
  steer s;
  memset(&s, 0, sizeof s);
  s.last_round = t->last_round;
  s.budget = t->f->opts.budget;
  s.lr = t->f->opts.lr;
  s.stop = t->stop;
  fl_buf_append(out, &s, sizeof s);
  for (size_t i = 0; fl_dist_leads(t->f->dist) && i < m->n; i++) fl_buf_putc(out, m->doc[i].marked);
}

/* False when it is not of the size that it must have. */
static bool take_steer(fl_trainer *t, size_t rank, const char *text, size_t len) {
  fl_fleet *f = t->f;
  steer s;
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
  put_steer(&mine, t);
  rc = fl_dist_exchange(d, "steer", rc, &mine, &all, end, err);
  for (size_t r = 0; rc == FL_OK && r < count; r++) {
    const size_t at = r > 0 ? end[r - 1] : 0;
    if (!take_steer(t, r, all.data + at, end[r] - at))
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

/* A command tells whether it was obeyed. */
static bool accept(fl_control_client *c) {
  fl_control_ok(c);
  return true;
}

static bool refuse(fl_control_client *c, const char *sentence) {
  fl_control_fail(c, sentence);
  return false;
}

static bool do_ping(fl_trainer *t, fl_control_client *c, const fl_json *o) {
  fl_buf b = { 0 };
  (void)o;
  fl_buf_printf(&b, "{\"ok\":true,\"pid\":%ld,\"round\":%llu,\"rounds\":%llu,\"paused\":%s}",
                (long)getpid(), (unsigned long long)t->f->m.rounds,
                (unsigned long long)t->last_round, t->paused ? "true" : "false");
  fl_control_send_buf(c, &b);
  return true;
}

static bool do_pause(fl_trainer *t, fl_control_client *c, const fl_json *o) {
  (void)o;
  t->paused = true;
  return accept(c);
}

static bool do_resume(fl_trainer *t, fl_control_client *c, const fl_json *o) {
  (void)o;
  t->paused = t->one_step = false;
  return accept(c);
}

static bool do_step(fl_trainer *t, fl_control_client *c, const fl_json *o) {
  (void)o;
  t->paused = false;
  t->one_step = true;
  return accept(c);
}

static bool do_stop(fl_trainer *t, fl_control_client *c, const fl_json *o) {
  (void)o;
  t->stop = true;
  return accept(c);
}

static bool do_save(fl_trainer *t, fl_control_client *c, const fl_json *o) {
  fl_err err = { 0 };
  (void)o;
  return fl_trainer_save(t, "request", &err) == FL_OK ? accept(c) : refuse(c, err.text);
}

static bool do_set(fl_trainer *t, fl_control_client *c, const fl_json *o) {
  fl_fleet *f = t->f;
  const char *key = NULL;
  double v = 0;
  fl_err err = { 0 };
  int rc = FL_EUSAGE;
  if (!fl_json_get_str(o, "key", &key) || !fl_json_get_num(o, "value", &v))
    return refuse(c, "\"set\" needs a \"key\" and a number \"value\"");
  bool count = v >= (double)f->m.rounds && v <= 4e9 && v == (double)(uint64_t)v;
  if (strcmp(key, "rounds") == 0 && count) {
    t->last_round = (uint64_t)v;
    rc = FL_OK;
  } else if (strcmp(key, "lr") == 0 || strcmp(key, "budget") == 0) {
    rc = fl_train_options_set(&f->opts, key, v, &err);
    f->m.opts = f->opts;
  } else {
    fl_fail(&err, FL_EUSAGE, "only lr, budget and rounds (of at least those done) can be set");
  }
  return rc == FL_OK ? accept(c) : refuse(c, err.text);
}

static bool do_mark(fl_trainer *t, fl_control_client *c, const fl_json *o) {
  uint64_t id = 0;
  bool on = true;
  if (!fl_json_get_u64(o, "doc", &id) || !fl_json_get_bool(o, "value", &on))
    return refuse(c, "\"mark\" needs a number \"doc\" and a true or false \"value\"");
  for (size_t i = 0; i < t->f->m.n; i++) {
    if (t->f->m.doc[i].id != id) continue;
    t->f->m.doc[i].marked = on;
    t->f->unsaved = true;
    fl_log_doc(t->f, i, "kept");
    return accept(c);
  }
  return refuse(c, "no document of that number in the fleet");
}

static bool get_query(fl_control_client *c, const fl_json *o, const char **query) {
  if (fl_json_get_str(o, "query", query) && (*query)[0] != '\0') return true;
  return refuse(c, "the request needs a text \"query\"");
}

static const fl_rag_options live_rag = { .docs = 2, .chunks = 8, .floor = -1 };

static bool do_retrieve(fl_trainer *t, fl_control_client *c, const fl_json *o) {
  fl_fleet *f = t->f;
  const char *query = NULL;
  fl_hits h = { 0 };
  fl_err err = { 0 };
  if (!get_query(c, o, &query)) return false;
  int rc = fl_fleet_retrieve(f, query, strlen(query), &live_rag, &h, &err);
  if (rc != FL_OK) return refuse(c, err.text);
  fl_buf b = { 0 };
  fl_buf_puts(&b, "{\"ok\":true,");
  fl_hits_print(&b, f, query, strlen(query), &live_rag, &h);
  fl_buf_putc(&b, '}');
  fl_control_send_buf(c, &b);
  fl_hits_release(&h);
  return true;
}

static bool send_piece(void *ctx, const char *piece, size_t len) {
  fl_control_client *c = ctx;
  fl_buf b = { 0 };
  fl_buf_puts(&b, "{\"token\":");
  fl_json_escape(&b, piece, len);
  fl_buf_putc(&b, '}');
  fl_control_send_buf(c, &b);
  return !fl_control_alive(c);
}

static void send_reply(fl_control_client *c, const fl_fleet *f, const fl_ask_options *o,
                       const fl_reply *r) {
  fl_buf b = { 0 };
  double seconds = r->seconds - r->ttft_s;
  fl_buf_puts(&b, "{\"ok\":true,\"text\":");
  fl_json_escape(&b, r->text, strlen(r->text));
  fl_buf_puts(&b, ",\"docs\":[");
  for (size_t i = 0; i < o->n_docs; i++)
    fl_buf_printf(&b, "%s%lu", i ? "," : "", (unsigned long)f->m.doc[o->docs[i]].id);
  fl_buf_printf(&b, "],\"rows\":%zu,\"tok_s\":%.3f}", r->rows,
                seconds > 0 && r->tokens > 1 ? (double)(r->tokens - 1) / seconds : 0.0);
  fl_control_send_buf(c, &b);
}

static bool do_ask(fl_trainer *t, fl_control_client *c, const fl_json *o) {
  fl_fleet *f = t->f;
  const char *query = NULL;
  bool bare = false;
  fl_hits h = { 0 };
  fl_reply r = { 0 };
  fl_err err = { 0 };
  size_t docs[8];
  if (!get_query(c, o, &query)) return false;
  (void)fl_json_get_bool(o, "bare", &bare);
  fl_ask_options a = { .arm = bare ? FL_ARM_BARE : FL_ARM_CARTRIDGE,
                       .docs = docs,
                       .sampling = FL_SAMPLING_GREEDY,
                       .max_new = f->opts.max_a,
                       .kv = FL_KV_F32,
                       .on_token = send_piece,
                       .ctx = c };
  int rc = bare ? FL_OK : fl_fleet_retrieve(f, query, strlen(query), &live_rag, &h, &err);
  for (size_t i = 0; i < h.n_docs && i < 8; i++) docs[a.n_docs++] = h.doc[i].doc;
  if (rc == FL_OK) rc = fl_fleet_ask(f, query, strlen(query), &a, &r, &err);
  if (rc == FL_OK) send_reply(c, f, &a, &r);
  else fl_control_fail(c, err.text);
  fl_hits_release(&h);
  fl_reply_release(&r);
  return rc == FL_OK;
}

static const struct command {
  const char *name;
  bool (*run)(fl_trainer *t, fl_control_client *c, const fl_json *o);
  bool logged; /* when it was obeyed */
} commands[] = {
  { "ping", do_ping, false }, { "pause", do_pause, true }, { "resume", do_resume, true },
  { "step", do_step, true },  { "save", do_save, true },   { "stop", do_stop, true },
  { "set", do_set, true },    { "mark", do_mark, true },   { "retrieve", do_retrieve, false },
  { "ask", do_ask, false },
};

static void log_command(const fl_trainer *t, const char *cmd, const fl_json *o) {
  fl_event e;
  const char *key = NULL;
  uint64_t doc = 0;
  double v = 0;
  bool on = false;
  fl_event_begin(&e, "control");
  fl_event_str(&e, "cmd", cmd);
  if (fl_json_get_str(o, "key", &key)) fl_event_str(&e, "key", key);
  if (fl_json_get_u64(o, "doc", &doc)) fl_event_int(&e, "doc", (int64_t)doc);
  if (fl_json_get_num(o, "value", &v)) fl_event_num(&e, "value", v);
  else if (fl_json_get_bool(o, "value", &on)) fl_event_bool(&e, "value", on);
  fl_event_str(&e, "by", "socket");
  fl_event_emit(t->f->log, &e);
}

void fl_trainer_control(void *ctx, fl_control_client *client, const char *cmd,
                        const fl_json *request) {
  fl_trainer *t = ctx;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    if (strcmp(commands[i].name, cmd) != 0) continue;
    if (commands[i].run(t, client, request) && commands[i].logged) log_command(t, cmd, request);
    return;
  }
  fl_control_fail(client, "unknown command; there are ping, pause, resume, step, save, stop, set, "
                          "mark, retrieve and ask");
}
