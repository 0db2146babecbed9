/* check_fleet.c - a training as a whole: it learns, it logs, it obeys, it keeps to its budget, and
 * others can read beside it. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer/answer.h"
#include "base/fs.h"
#include "base/mem.h"
#include "fleet/manifest.h"
#include "trainer/trainer.h"
#include "fleet_util.h"
#include "suite.h"

/* --- the event log --- */

typedef struct event_list {
  fl_json **v;
  size_t n;
} event_list;

static event_list read_part(const char *name) {
  event_list l = { 0 };
  fl_buf text = { 0 };
  char *path = fl_fs_join(fleet_dir, name);
  ck_assert_int_eq(fl_fs_read(&text, path, 1 << 26, NULL), FL_OK);
  for (size_t at = 0; at < text.len;) {
    const char *end = memchr(text.data + at, '\n', text.len - at);
    ck_assert_ptr_nonnull(end);
    size_t len = (size_t)(end - text.data) - at;
    l.v = fl_reallocarray(l.v, l.n + 1, sizeof *l.v);
    fl_err err = { 0 };
    int rc = fl_json_parse(&l.v[l.n], text.data + at, len, &err);
    ck_assert_msg(rc == FL_OK, "%s: %.*s", err.text, (int)len, text.data + at);
    l.n++;
    at += len + 1;
  }
  fl_buf_release(&text);
  fl_free(path);
  return l;
}

static event_list read_events(void) { return read_part(FL_EVENTS_FILE); }

static void events_release(event_list *l) {
  for (size_t i = 0; i < l->n; i++) fl_json_free(l->v[i]);
  fl_free(l->v);
}

static bool is_kind(const fl_json *e, const char *kind) {
  const char *s = NULL;
  return fl_json_get_str(e, "ev", &s) && strcmp(s, kind) == 0;
}

static size_t count_kind(const event_list *l, const char *kind) {
  size_t n = 0;
  for (size_t i = 0; i < l->n; i++) n += is_kind(l->v[i], kind);
  return n;
}

static const struct {
  const char *kind;
  const char *members[24];
} schema[] = {
  { "run", { "cmd",        "version",     "pid",      "resumed", "model",  "model_name",
             "model_hash", "fleet",       "threads",  "isa",     "kernel", "host",
             "cpus",       "mem_bytes",   "seed",     "rounds",  "round0", "docs",
             "budget",     "peak_gflops", "peak_gbs", "flags" } },
  { "doc", { "doc", "name", "tokens", "rows", "steps", "resident", "state", "hash" } },
  { "round", { "round",     "doc",      "loss",           "teacher", "lr",      "grad_norm",
               "tokens",    "rows",     "parts",          "steps",   "seconds", "gen_s",
               "student_s", "opt_s",    "io_s",           "gflop",   "gbyte",   "gen_tokens",
               "rss",       "peak_rss", "resident_bytes", "resident" } },
  { "study", { "doc", "round", "conv", "kind", "first", "end", "request" } },
  { "rotate", { "round", "out", "in" } },
  { "heldout", { "round", "doc", "alone", "composed", "teacher", "convs" } },
  { "coverage", { "doc", "tokens", "spans" } },
  { "save", { "round", "generation", "bytes", "seconds", "reason" } },
  { "index", { "chunks", "dim", "seconds" } },
  { "end", { "status", "round", "seconds" } },
};

START_TEST(everything_is_logged) {
  put_docs();
  fl_train_options o = small_options();
  o.eval_every = 2;
  o.replay = 2;
  train_rounds(6, o);
  event_list l = read_events();
  for (size_t k = 0; k < sizeof schema / sizeof schema[0]; k++) {
    ck_assert_msg(count_kind(&l, schema[k].kind) > 0, "no %s", schema[k].kind);
    for (size_t i = 0; i < l.n; i++)
      for (size_t m = 0; is_kind(l.v[i], schema[k].kind) && schema[k].members[m] != NULL; m++)
        ck_assert_msg(fl_json_get(l.v[i], schema[k].members[m]) != NULL, "%s lacks %s",
                      schema[k].kind, schema[k].members[m]);
  }
  ck_assert_uint_eq(count_kind(&l, "round"), 6);
  ck_assert_uint_eq(count_kind(&l, "doc"), 3);
  ck_assert(is_kind(l.v[l.n - 1], "end"));
  double gflops = 0, gbs = 0; /* of any machine of these days */
  ck_assert(is_kind(l.v[0], "run"));
  fl_json_get_num(l.v[0], "peak_gflops", &gflops);
  fl_json_get_num(l.v[0], "peak_gbs", &gbs);
  ck_assert_msg(gflops > 0.01 && gflops < 1e6 && gbs > 0.01 && gbs < 1e5, "%g, %g", gflops, gbs);
  events_release(&l);
}
END_TEST

/* A log that goes on in a new part tells there again whose events it holds and how the documents
 * stand; no round is missing. */
START_TEST(a_log_in_parts) {
  enum { PART = 12000, ROUNDS = 12 };
  fl_err err = { 0 };
  fl_open_options how = { .allow_add = true, .log_bytes = PART };
  fl_train_options o = small_options();
  put_docs();
  o.rounds = ROUNDS;
  fl_fleet *f = must_open(&o, &how);
  ck_assert_int_eq(fl_fleet_train(f, NULL, &err), FL_OK);
  fl_fleet_close(f);
  ck_assert(in_fleet(FL_EVENTS_OLDER_FILE));
  event_list old = read_part(FL_EVENTS_OLDER_FILE), now = read_events();
  ck_assert(is_kind(now.v[0], "run"));
  bool continued = false;
  ck_assert(fl_json_get_bool(now.v[0], "continued", &continued) && continued);
  for (size_t i = 1; i <= 3; i++) ck_assert(is_kind(now.v[i], "doc"));
  double round = 0, last = 0;
  for (size_t i = 0; i < old.n + now.n; i++) {
    const fl_json *e = i < old.n ? old.v[i] : now.v[i - old.n];
    if (!is_kind(e, "round")) continue;
    ck_assert(fl_json_get_num(e, "round", &round));
    ck_assert(last == 0 || round == last + 1);
    last = round;
  }
  ck_assert(last == ROUNDS);
  events_release(&old);
  events_release(&now);
}
END_TEST

static bool has_id(const fl_json *arr, double id) {
  double v = 0;
  for (const fl_json *e = fl_json_first(arr); e != NULL; e = fl_json_next(e))
    if (fl_json_as_num(e, &v) && v == id) return true;
  return false;
}

/* The target is seen by each of its conversations, everybody seen is resident, and nobody beyond
 * the budget is. */
START_TEST(what_is_seen_is_resident_and_within_the_budget) {
  put_docs();
  fl_train_options o = small_options();
  o.p_iso = 0;
  train_rounds(8, o);
  event_list l = read_events();
  size_t mixed = 0;
  for (size_t i = 0; i < l.n; i++) {
    double doc = -1, part = -1;
    if (!is_kind(l.v[i], "round")) continue;
    const fl_json *resident = fl_json_get(l.v[i], "resident");
    ck_assert_uint_eq(fl_json_len(resident), 2);
    ck_assert(fl_json_get_num(l.v[i], "doc", &doc));
    const fl_json *parts = fl_json_get(l.v[i], "parts");
    for (const fl_json *p = fl_json_first(parts); p != NULL; p = fl_json_next(p)) {
      ck_assert(has_id(p, doc));
      mixed += fl_json_len(p) == 2;
      for (const fl_json *e = fl_json_first(p); e != NULL; e = fl_json_next(e))
        ck_assert(fl_json_as_num(e, &part) && has_id(resident, part));
    }
  }
  ck_assert_uint_gt(mixed, 8);
  events_release(&l);
}
END_TEST

/* Trained again and again on few conversations of one document the loss falls well below its start;
 * means of ROUNDS / 5 rounds either side, since rounds differ in their conversations, and by a
 * fifth only, since the teacher's own entropy stays. */
START_TEST(a_document_is_learnt) {
  enum { ROUNDS = 40, SIDE = ROUNDS / 5 };
  put_doc("a.md", "Hargate Lighthouse stands on a rock of Sollum. Its keeper is Vera Lun. The lamp "
                  "oil of Hargate Lighthouse comes from Lorbry.");
  fl_train_options o = small_options();
  o.replay = 8;
  o.p_iso = 1;
  o.lr = 5e-2;
  o.heldout = 0;
  train_rounds(ROUNDS, o);
  event_list l = read_events();
  double loss[ROUNDS], first = 0, last = 0;
  size_t n = 0;
  for (size_t i = 0; i < l.n; i++)
    if (is_kind(l.v[i], "round") && fl_json_get_num(l.v[i], "loss", &loss[n])) n++;
  ck_assert_uint_ge(n, ROUNDS - SIDE);
  for (size_t k = 0; k < SIDE; k++) {
    first += loss[k] / SIDE;
    last += loss[n - 1 - k] / SIDE;
  }
  ck_assert_msg(last < 0.8 * first, "%g to %g", first, last);
  events_release(&l);
}
END_TEST

/* --- the control socket, from within the poll hook --- */

struct talk {
  int fd;
  size_t at;        /* next line of the script */
  char heard[8192]; /* since the last line was said */
  size_t n;
  uint64_t polls;
};

static const struct {
  const char *say, *want;
} script[] = {
  { "{\"cmd\":\"ping\"}", "\"round\":0" },
  { "{\"cmd\":\"retrieve\",\"query\":\"founding year of Calcove Bakery\"}", "\"chosen\":[0" },
  { "{\"cmd\":\"set\",\"key\":\"lr\",\"value\":0.001}", "\"ok\":true" },
  { "{\"cmd\":\"set\",\"key\":\"lr\",\"value\":-1}", "\"ok\":false" },
  { "{\"cmd\":\"set\",\"key\":\"seed\",\"value\":1}", "\"ok\":false" },
  { "{\"cmd\":\"mark\",\"doc\":2,\"value\":true}", "\"ok\":true" },
  { "{\"cmd\":\"mark\",\"doc\":9,\"value\":true}", "\"ok\":false" },
  { "{\"cmd\":\"nonsense\"}",
    "there are ping, pause, resume, step, save, stop, set, mark, retrieve and ask\"}" },
  { "{\"cmd\":\"save\"}", "\"ok\":true" },
  { "{\"cmd\":\"pause\"}", "\"ok\":true" },
  { "{\"cmd\":\"ping\"}", "\"paused\":true" },
  { "{\"cmd\":\"ask\",\"query\":\"Who is the baker?\"}", "\"ok\":true,\"text\":" },
  { "{\"cmd\":\"ask\",\"query\":\"Who is the baker?\",\"bare\":true}", "\"rows\":0" },
  { "{\"cmd\":\"step\"}", "\"ok\":true" },
  { "{\"cmd\":\"resume\"}", "\"ok\":true" },
  { "{\"cmd\":\"set\",\"key\":\"rounds\",\"value\":30}", "\"ok\":true" },
  { "{\"cmd\":\"stop\"}", "\"ok\":true" },
};
enum { N_SCRIPT = sizeof script / sizeof script[0] };

static int converse(void *ctx) {
  struct talk *t = ctx;
  ck_assert_uint_lt(t->polls++, 100000);
  if (t->fd < 0) t->fd = dial_trainer();
  for (ssize_t k; (k = recv(t->fd, t->heard + t->n, sizeof t->heard - 1 - t->n, MSG_DONTWAIT)) > 0;)
    t->n += (size_t)k;
  t->heard[t->n] = '\0';
  if (t->at > 0) {
    if (strstr(t->heard, "\"ok\"") == NULL) return FL_OK; /* no reply yet */
    ck_assert_msg(strstr(t->heard, script[t->at - 1].want) != NULL, "%s: %s", script[t->at - 1].say,
                  t->heard);
  }
  if (t->at == N_SCRIPT) return FL_OK;
  t->n = 0;
  t->heard[0] = '\0';
  char line[256];
  int n = snprintf(line, sizeof line, "%s\n", script[t->at++].say);
  ck_assert_int_eq(send(t->fd, line, (size_t)n, MSG_NOSIGNAL), n);
  return FL_OK;
}

START_TEST(the_control_socket_is_obeyed) {
  struct talk t = { .fd = -1 };
  fl_train_hooks hooks = { .ctx = &t, .poll = converse };
  fl_train_options o = small_options();
  fl_err err = { 0 };
  put_docs();
  train_rounds(0, o); /* births and index are done: an ask finds cartridges */
  o.rounds = 20;
  fl_fleet *f = must_open(&o, &(fl_open_options){ .resume = true });
  ck_assert_int_eq(fl_fleet_train(f, &hooks, &err), FL_EINTR);
  ck_assert_uint_eq(t.at, N_SCRIPT);
  ck_assert_uint_lt(fl_fleet_rounds(f), 20);
  fl_fleet_close(f);
  close(t.fd);
  ck_assert(!in_fleet("control"));
  fl_manifest m = { 0 };
  ck_assert_int_eq(fl_manifest_load(&m, fleet_dir, NULL), FL_OK);
  ck_assert_double_eq(m.opts.lr, 0.001);
  ck_assert(m.doc[2].marked);
  fl_manifest_release(&m);
  event_list l = read_events();
  ck_assert_uint_eq(count_kind(&l, "control"), 8); /* what was refused is not taken */
  size_t marks = 0;
  for (size_t i = 0; i < l.n; i++) {
    const char *cmd = "";
    uint64_t doc = 99;
    bool on = false;
    if (!is_kind(l.v[i], "control") || !fl_json_get_str(l.v[i], "cmd", &cmd) ||
        strcmp(cmd, "mark") != 0)
      continue;
    ck_assert(fl_json_get_u64(l.v[i], "doc", &doc) && fl_json_get_bool(l.v[i], "value", &on));
    ck_assert(doc == 2 && on);
    marks++;
  }
  ck_assert_uint_eq(marks, 1);
  ck_assert_uint_ge(count_kind(&l, "answer"), 2);
  ck_assert_uint_ge(count_kind(&l, "retrieve"), 2);
  events_release(&l);
}
END_TEST

/* Sets the number of rounds to the one that is done, while the trainer rests behind the first round
 * or, without a rest, while the second one runs. */
struct early_end {
  fl_fleet *f;
  struct talk t;
  bool rests;
  double left_s; /* of the last round, by the trainer's progress */
};

static void say(const struct talk *t, const char *line) {
  ck_assert_int_eq(send(t->fd, line, strlen(line), MSG_NOSIGNAL), (ssize_t)strlen(line));
}

static int end_early(void *ctx) {
  struct early_end *e = ctx;
  if (e->t.fd < 0) {
    e->t.fd = dial_trainer();
    if (e->rests) say(&e->t, "{\"cmd\":\"step\"}\n");
  } else if (fl_fleet_rounds(e->f) == 1 && e->t.at++ == 0) {
    say(&e->t, "{\"cmd\":\"set\",\"key\":\"rounds\",\"value\":1}\n{\"cmd\":\"resume\"}\n");
  }
  return FL_OK;
}

static void note_left(void *ctx, const fl_progress *p) {
  struct early_end *e = ctx;
  if (p->note == NULL) e->left_s = p->left_s;
}

START_TEST(the_end_may_come_nearer) {
  struct early_end e = { .t = { .fd = -1 }, .rests = _i == 0 };
  const fl_train_hooks hooks = { .ctx = &e, .poll = end_early, .progress = note_left };
  fl_train_options o = small_options();
  fl_err err = { 0 };
  put_docs();
  o.rounds = 20;
  o.heldout = 0;
  e.f = must_open(&o, &(fl_open_options){ 0 });
  ck_assert_msg(fl_fleet_train(e.f, &hooks, &err) == FL_OK, "%s", err.text);
  ck_assert_uint_eq(fl_fleet_rounds(e.f), e.rests ? 1 : 2);
  if (!e.rests) ck_assert_double_eq(e.left_s, 0);
  fl_fleet_close(e.f);
  close(e.t.fd);
}
END_TEST

/* --- readers beside a writer --- */

struct reading {
  fl_fleet *early; /* opened at the first poll, its files go one by one */
  uint64_t polls;
};

static void read_all(fl_fleet *f) {
  fl_rag_options rag = { .docs = 3, .chunks = 8, .floor = -1 };
  for (size_t i = 0; i < fl_fleet_n_docs(f); i++) {
    fl_ask_options o = {
      .arm = FL_ARM_CARTRIDGE, .docs = &i, .n_docs = 1, .max_new = 1, .sampling = FL_SAMPLING_GREEDY
    };
    fl_reply r = { 0 };
    fl_hits h = { 0 };
    fl_err err = { 0 };
    int rc = fl_fleet_ask(f, "Who?", 4, &o, &r, &err);
    ck_assert_msg(rc == FL_OK, "%s", err.text);
    rc = fl_fleet_retrieve(f, "Who?", 4, &rag, &h, &err);
    ck_assert_msg(rc == FL_OK, "%s", err.text);
    fl_hits_release(&h);
    fl_reply_release(&r);
  }
}

static int read_beside(void *ctx) {
  struct reading *r = ctx;
  if (r->early == NULL) r->early = open_reader();
  if (r->polls++ % 40 != 0) return FL_OK;
  fl_fleet *f = open_reader();
  read_all(f);
  fl_fleet_close(f);
  return FL_OK;
}

START_TEST(readers_are_not_disturbed) {
  struct reading r = { 0 };
  fl_train_hooks hooks = { .ctx = &r, .poll = read_beside };
  fl_train_options o = small_options();
  fl_err err = { 0 };
  put_docs();
  train_rounds(0, o);
  o.save_every = 1;
  o.rounds = 4;
  fl_fleet *f = must_open(&o, &(fl_open_options){ .resume = true });
  int rc = fl_fleet_train(f, &hooks, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  fl_fleet_close(f);
  read_all(r.early); /* the files of its manifest are gone; it takes the new one */
  ck_assert_uint_eq(fl_fleet_rounds(r.early), 4);
  fl_fleet_close(r.early);
}
END_TEST

/* --- damage --- */

START_TEST(a_damaged_cartridge_is_named_with_its_remedy) {
  fl_manifest m = { 0 };
  fl_err err = { 0 };
  fl_train_options o = small_options();
  put_docs();
  train_rounds(2, o);
  ck_assert_int_eq(fl_manifest_load(&m, fleet_dir, NULL), FL_OK);
  for (size_t i = 0; i < m.n; i++) {
    char *path = fl_fs_join(fleet_dir, m.doc[i].cart_file);
    ck_assert_int_eq(truncate(path, 4096), 0);
    fl_free(path);
  }
  o.rounds = 1;
  fl_fleet *f = must_open(&o, &(fl_open_options){ .resume = true });
  ck_assert_int_eq(fl_fleet_train(f, NULL, &err), FL_EINPUT);
  fl_fleet_close(f);
  ck_assert_msg(strstr(err.text, ".safetensors") && strstr(err.text, "--redo"), "%s", err.text);
  const char *names[] = { m.doc[0].name, m.doc[1].name, m.doc[2].name };
  fl_open_options redo = { .resume = true, .redo = names, .n_redo = 3 };
  f = must_open(&o, &redo);
  int rc = fl_fleet_train(f, NULL, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  ck_assert_uint_eq(fl_fleet_rounds(f), 3);
  fl_fleet_close(f);
  fl_manifest_release(&m);
}
END_TEST

/* The files of one document under the name of another: shapes fit, the document does not. */
START_TEST(a_swapped_cartridge_is_noticed) {
  fl_err err = { 0 };
  put_docs();
  train_rounds(0, small_options());
  char *a = fl_fs_join(fleet_dir, "doc-000.g000000.safetensors");
  char *b = fl_fs_join(fleet_dir, "doc-001.g000000.safetensors");
  ck_assert_int_eq(rename(a, b), 0);
  fl_fleet *f = open_reader();
  const size_t doc = 1;
  fl_ask_options o = { .docs = &doc, .n_docs = 1, .max_new = 1, .sampling = FL_SAMPLING_GREEDY };
  fl_reply r = { 0 };
  ck_assert_int_eq(fl_fleet_ask(f, "x", 1, &o, &r, &err), FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(err.text, "another text"));
  fl_fleet_close(f);
  fl_free(a);
  fl_free(b);
}
END_TEST

/* What cannot fit the model's context is refused before anything is made. */
START_TEST(sizes_beyond_the_context_are_refused) {
  fl_err err = { 0 };
  fl_train_options o = small_options();
  put_docs();
  o.rounds = 1;
  o.p = 60000;
  fl_fleet *f = must_open(&o, &(fl_open_options){ .allow_add = true });
  ck_assert_int_eq(fl_fleet_train(f, NULL, &err), FL_EUSAGE);
  ck_assert_ptr_nonnull(strstr(err.text, "--p"));
  fl_fleet_close(f);
  ck_assert(!in_fleet("fleet.json"));
}
END_TEST

Suite *suite_fleet(void);
Suite *suite_fleet(void) {
  Suite *s = suite_create("fleet");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 240);
  tcase_add_checked_fixture(t, fleet_setup_model, fleet_teardown_model);
  tcase_add_test(t, everything_is_logged);
  tcase_add_test(t, a_log_in_parts);
  tcase_add_test(t, what_is_seen_is_resident_and_within_the_budget);
  tcase_add_test(t, a_document_is_learnt);
  tcase_add_test(t, the_control_socket_is_obeyed);
  tcase_add_loop_test(t, the_end_may_come_nearer, 0, 2);
  tcase_add_test(t, readers_are_not_disturbed);
  tcase_add_test(t, a_damaged_cartridge_is_named_with_its_remedy);
  tcase_add_test(t, a_swapped_cartridge_is_noticed);
  tcase_add_test(t, sizes_beyond_the_context_are_refused);
  suite_add_tcase(s, t);
  return s;
}
