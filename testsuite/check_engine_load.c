/* check_engine_load.c - the engine at its limits: full queues, little memory, clients that go away,
 * a stop, and rows that lie on disk meanwhile. */
#include <poll.h>

#include "serve_util.h"

/* --- limits --- */

START_TEST(test_queue_full) {
  enum { MANY = 6 };
  fl_engine_options o = small_options();
  o.n_slots = 1;
  o.queue = 2;
  served s = serve(&o, false);
  client *c[MANY];
  fl_message m = user_says(question[0]);
  query r = request_of(&m, 1);
  r.max_new = 400;
  size_t refused = 0;
  for (size_t i = 0; i < MANY; i++) {
    fl_err err = { 0 };
    c[i] = client_new();
    int rc = client_submit(c[i], s.e, &r, &err);
    ck_assert(rc == FL_OK || rc == FL_EFULL);
    if (rc == FL_EFULL) refused++;
  }
  ck_assert_uint_ge(refused, 1); /* 3 places; an answer takes far longer than a submission */
  ck_assert(fl_engine_retry_after_s(s.e) >= 1);
  for (size_t i = 0; i < MANY; i++)
    if (c[i]->job != NULL) fl_job_cancel(c[i]->job);
  for (size_t i = 0; i < MANY; i++) {
    if (c[i]->job != NULL) client_wait_end(c[i]);
    ck_assert_int_eq(c[i]->ends, c[i]->job != NULL);
    client_free(c[i]);
  }
  fl_engine_stats st;
  fl_engine_stats_get(s.e, &st);
  ck_assert_uint_eq(st.jobs_refused, refused);
  ck_assert_uint_eq(st.jobs_done + st.jobs_cancelled, MANY - refused);
  serve_end(&s, 0);
}
END_TEST

START_TEST(test_bad_requests) {
  fl_engine_options o = small_options();
  o.ctx = 200;
  served s = serve(&o, false);
  fl_buf b = words(400);
  fl_message m[2] = { user_says(b.data), model_said("no") };
  query r = request_of(m, 1);
  client *c = client_new();
  fl_err err = { 0 };
  ck_assert_int_eq(client_submit(c, s.e, &r, &err), FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(err.text, "context of 200"));
  m[0] = user_says("short");
  r.n_msgs = 2;
  ck_assert_int_eq(client_submit(c, s.e, &r, NULL), FL_EINPUT);
  r.n_msgs = 0;
  ck_assert_int_eq(client_submit(c, s.e, &r, NULL), FL_EINPUT);
  r.n_msgs = 1;
  r.max_new = 0;
  ck_assert_int_eq(client_submit(c, s.e, &r, NULL), FL_EINPUT);
  r.max_new = 5;
  r.top_logprobs = 21;
  ck_assert_int_eq(client_submit(c, s.e, &r, NULL), FL_EINPUT);
  client_free(c);
  r.top_logprobs = 0;
  r.max_new = 100000; /* as much as there is room */
  r.sampling = warm;
  c = converse(s.e, &r);
  ck_assert_uint_le(c->prompt + c->completion, 200);
  client_free(c);
  fl_buf_release(&b);
  serve_end(&s, 0);
}
END_TEST

/* Memory for one conversation only: all get their turn; one that never fits is told so. */
START_TEST(test_little_memory) {
  enum { MANY = 6 };
  fl_engine_options o = small_options();
  o.rag.docs = 1;
  o.n_slots = 4;
  o.max_bytes = (uint64_t)8 * 4 * 2 * 2 * 64 * 32 * 4; /* 8 pages of 4 layers, 2 heads of 64, f32 */
  served s = serve(&o, true);
  client *c[MANY];
  for (size_t i = 0; i < MANY; i++) {
    fl_message m = user_says(question[i]);
    query r = request_of(&m, 1);
    c[i] = client_begin(s.e, &r);
  }
  for (size_t i = 0; i < MANY; i++) {
    client_wait_ok(c[i]);
    client_free(c[i]);
  }
  fl_buf b = words(300);
  fl_message m = user_says(b.data);
  query r = request_of(&m, 1);
  client *big = client_begin(s.e, &r);
  client_wait_end(big);
  ck_assert_int_eq(big->finish, FL_FINISH_ERROR);
  ck_assert_int_eq(big->code, FL_EINPUT);
  ck_assert_ptr_nonnull(strstr(big->error, "memory"));
  ck_assert_int_eq(big->starts, 0);
  client_free(big);
  client_free(ask(s.e, question[0])); /* and it goes on */
  fl_engine_stats st;
  fl_engine_stats_get(s.e, &st);
  ck_assert_uint_le(st.kv_bytes, o.max_bytes);
  fl_buf_release(&b);
  serve_end(&s, 0);
}
END_TEST

/* --- going away --- */

START_TEST(test_cancel) {
  fl_engine_options o = small_options();
  o.n_slots = 1;
  served s = serve(&o, false);
  fl_buf b = words(150);
  fl_message m = user_says(b.data);
  query r = request_of(&m, 1);
  r.max_new = 600;
  client *running = client_begin(s.e, &r), *queued = client_begin(s.e, &r);
  fl_job_cancel(queued->job);
  client_wait_end(queued); /* while the other has the slot */
  ck_assert_int_eq(queued->finish, FL_FINISH_CANCELLED);
  ck_assert_int_eq(queued->starts, 0);
  if (_i == 0) client_wait_delta(running); /* else wherever it is, inside its prompt maybe */
  fl_job_cancel(running->job);
  client_wait_end(running);
  ck_assert_int_eq(running->finish, FL_FINISH_CANCELLED);
  ck_assert_int_eq(running->ends, 1);
  client *gone = client_new();
  gone->hang_up_after = 2;
  r.sampling = warm;
  m = user_says(question[0]);
  ck_assert_int_eq(client_submit(gone, s.e, &r, NULL), FL_OK);
  client_wait_end(gone);
  ck_assert(gone->finish == FL_FINISH_CANCELLED || gone->deltas < 2);
  ck_assert_uint_le(gone->deltas, 2);
  client_free(running);
  client_free(queued);
  client_free(gone);
  client_free(ask(s.e, question[0]));
  fl_buf_release(&b);
  serve_end(&s, 0);
}
END_TEST

/* Clients on threads of their own that come, wait, hang up and cancel as they like. */
typedef struct crowd {
  fl_engine *e;
  uint64_t seed;
  size_t submitted, refused, wrong;
} crowd;

static void *crowd_main(void *arg) {
  crowd *x = arg;
  fl_rng g = fl_rng_stream(x->seed, FL_RNG_TEST, 9, 0, 0);
  float *v = fl_calloc(1024, sizeof *v);
  for (int i = 0; i < 12; i++) {
    fl_message m = user_says(question[fl_rng_below(&g, QUESTIONS)]);
    query r = request_of(&m, 1);
    r.rag = fl_rng_below(&g, 3) == 0 ? FL_RAG_NONE : FL_RAG_AUTO;
    r.max_new = 1 + fl_rng_below(&g, 40);
    client *c = client_new();
    c->hang_up_after = fl_rng_below(&g, 4) == 0 ? 3 : 0;
    int rc = client_submit(c, x->e, &r, NULL);
    x->submitted += rc == FL_OK;
    x->refused += rc == FL_EFULL;
    x->wrong += rc != FL_OK && rc != FL_EFULL;
    if (rc == FL_OK && fl_rng_below(&g, 4) == 0) fl_job_cancel(c->job);
    if (fl_rng_below(&g, 5) == 0)
      x->wrong += fl_engine_embed(x->e, m.text, m.len, v, NULL, NULL) != FL_OK;
    if (rc == FL_OK) client_wait_end(c);
    x->wrong += rc == FL_OK && (c->ends != 1 || c->code != FL_OK || c->starts > 1);
    fl_engine_stats st;
    fl_engine_stats_get(x->e, &st);
    x->wrong += st.slots_busy > st.slots;
    client_free(c);
  }
  fl_free(v);
  return NULL;
}

START_TEST(test_crowd) {
  enum { THREADS = 6 };
  fl_engine_options o = small_options();
  o.n_slots = 3;
  o.queue = 2;
  o.reload_s = 0.01;
  served s = serve(&o, true);
  pthread_t t[THREADS];
  crowd x[THREADS];
  size_t submitted = 0;
  for (size_t i = 0; i < THREADS; i++) {
    x[i] = (crowd){ .e = s.e, .seed = i };
    ck_assert_int_eq(pthread_create(&t[i], NULL, crowd_main, &x[i]), 0);
  }
  for (size_t i = 0; i < THREADS; i++) {
    pthread_join(t[i], NULL);
    ck_assert_uint_eq(x[i].wrong, 0);
    submitted += x[i].submitted;
  }
  fl_engine_stats st;
  fl_engine_stats_get(s.e, &st);
  ck_assert_uint_eq(st.jobs_done + st.jobs_cancelled + st.jobs_failed, submitted);
  ck_assert_uint_eq(st.jobs_failed, 0);
  ck_assert_uint_eq(st.slots_busy, 0);
  ck_assert_uint_eq(st.queued, 0);
  serve_end(&s, 0);
}
END_TEST

/* Stopping ends every job exactly once; with time to spare those in slots finish. */
START_TEST(test_stop) {
  enum { MANY = 6 };
  fl_engine_options o = small_options();
  o.n_slots = 2;
  served s = serve(&o, false);
  client *c[MANY];
  fl_message m = user_says(question[0]);
  query r = request_of(&m, 1);
  r.max_new = 200;
  for (size_t i = 0; i < MANY; i++) { c[i] = client_begin(s.e, &r); }
  client_wait_delta(c[0]);
  fl_engine_stop(s.e, _i == 0 ? 0 : 60);
  for (size_t i = 0; i < MANY; i++) {
    ck_assert_int_eq(c[i]->ends, 1);
    fl_job_cancel(c[i]->job); /* harmless now */
    client_free(c[i]);
  }
  rig_close(&s.r);
}
END_TEST

/* --- disk --- */

/* One slot, two conversations in turn: each finds its rows again, after a restart too. */
START_TEST(test_spill) {
  fl_engine_options o = small_options();
  o.n_slots = 1;
  o.kv = _i == 0 ? FL_KV_F32 : FL_KV_F16;
  char *dir = fl_strdup(spill_dir());
  o.spill_dir = dir;
  fl_message a[3] = { user_says("Who keeps the lighthouse, and for how long has it been so?"),
                      model_said(""), user_says("And what is the lamp's oil made of?") };
  fl_message b = user_says("What does the bakery sell on the day of the market?");
  query ra = request_of(a, 1), rb = request_of(&b, 1);
  ra.conversation = "one";
  ra.sampling = warm; /* hot enough for answers that the tokenizer would cut otherwise */
  ra.sampling.temperature = 2;
  ra.sampling.top_k = 0;
  served s = serve(&o, true);
  client *first = converse(s.e, &ra);
  client_free(converse(s.e, &rb));
  a[1] = model_said(client_text(first));
  ra.n_msgs = 3;
  client *second = converse(s.e, &ra);
  ck_assert_uint_ge(second->cached, first->prompt);
  fl_engine_stats st;
  do { /* the second file may still be on its way; an idle engine looks once a second */
    fl_engine_stats_get(s.e, &st);
    poll(NULL, 0, 10);
  } while (st.spills < 2);
  ck_assert_uint_eq(st.restores, 1);
  serve_end(&s, 0);
  s = serve(&o, true);
  client *third = converse(s.e, &ra);
  ck_assert_uint_eq(third->cached, third->prompt - 1);
  ck_assert_str_eq(client_text(third), client_text(second));
  ck_assert_str_eq(third->docs, second->docs);
  serve_end(&s, 0);
  o.spill_dir = NULL;
  s = serve(&o, true);
  client *without = converse(s.e, &ra);
  ck_assert_uint_eq(without->cached, 0);
  if (strcmp(without->docs, second->docs) == 0)
    ck_assert_str_eq(client_text(without), client_text(second));
  serve_end(&s, 0);
  client_free(first);
  client_free(second);
  client_free(third);
  client_free(without);
  fl_free(dir);
}
END_TEST

/* One bit in the middle of every other file: its head stays whole. Returns how many files there
 * are. */
static size_t damage_some(const char *dir) {
  size_t n = 0, files = 0;
  char **names = NULL;
  ck_assert_int_eq(fl_fs_list(&names, &n, dir, NULL), FL_OK);
  for (size_t i = 0; i < n; i++) {
    if (strstr(names[i], ".flslot") == NULL || files++ % 2 == 0) continue;
    char *path = fl_fs_join(dir, names[i]);
    FILE *f = fopen(path, "r+");
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    long at = ftell(f) / 2;
    ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
    int byte = getc(f);
    ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
    putc(byte ^ 1, f);
    fclose(f);
    fl_free(path);
  }
  fl_fs_list_free(names, n);
  return files;
}

/* All conversations are back at once after a restart, in fewer slots: rows come from files while
 * others go on, and every other file is damaged. Nobody's answer changes; one that leaves
 * meanwhile, and a stop, harm nothing. */
START_TEST(test_spill_crowd) {
  fl_engine_options o = small_options();
  fl_message m[QUESTIONS][3];
  query q[QUESTIONS];
  client *first[QUESTIONS], *want[QUESTIONS], *got[QUESTIONS];
  char *dir = fl_strdup(spill_dir()), text[QUESTIONS][200];
  spill_drop();
  o.n_slots = 1;
  o.spill_dir = dir;
  served s = serve(&o, false);
  for (int i = 0; i < QUESTIONS; i++) {
    snprintf(text[i], sizeof text[i],
             "%s Tell me all that you know of it, one thing after another, "
             "and leave nothing out that somebody might want to hear.",
             question[i]);
    m[i][0] = user_says(text[i]);
    q[i] = request_of(m[i], 1);
    first[i] = converse(s.e, &q[i]);
    m[i][1] = model_said(client_text(first[i]));
    m[i][2] = user_says("And what else?");
    q[i].n_msgs = 3;
  }
  serve_end(&s, 0);
  ck_assert_uint_eq(damage_some(dir), QUESTIONS);
  o.spill_dir = NULL;
  s = serve(&o, false);
  for (int i = 0; i < QUESTIONS; i++) want[i] = converse(s.e, &q[i]);
  serve_end(&s, 0);
  o.spill_dir = dir;
  o.n_slots = 3;
  s = serve(&o, false);
  for (int i = 0; i < QUESTIONS; i++) { got[i] = client_begin(s.e, &q[i]); }
  fl_job_cancel(got[1]->job);
  for (int i = 0; i < QUESTIONS; i++) {
    client_wait_end(got[i]);
    ck_assert_int_eq(got[i]->code, FL_OK);
    if (i != 1) ck_assert_str_eq(client_text(got[i]), client_text(want[i]));
  }
  fl_engine_stats st;
  fl_engine_stats_get(s.e, &st);
  ck_assert_uint_eq(st.restores, QUESTIONS / 2); /* the others were thrown away */
  for (int i = 0; i < QUESTIONS; i++) {
    client_free(got[i]);
    got[i] = client_begin(s.e, &q[i]);
  }
  serve_end(&s, 0);
  for (int i = 0; i < QUESTIONS; i++) {
    ck_assert_int_eq(got[i]->ends, 1);
    client_free(first[i]);
    client_free(want[i]);
    client_free(got[i]);
  }
  fl_free(dir);
}
END_TEST

Suite *suite_engine_load(void) {
  Suite *s = suite_create("engine_load");
  TCase *t = tcase_create("engine_load");
  tcase_set_timeout(t, 240);
  tcase_add_unchecked_fixture(t, fleet_make, fleet_drop);
  tcase_add_test(t, test_queue_full);
  tcase_add_test(t, test_bad_requests);
  tcase_add_test(t, test_little_memory);
  tcase_add_loop_test(t, test_cancel, 0, 2);
  tcase_add_test(t, test_crowd);
  tcase_add_loop_test(t, test_stop, 0, 2);
  tcase_add_loop_test(t, test_spill, 0, 2);
  tcase_add_test(t, test_spill_crowd);
  suite_add_tcase(s, t);
  return s;
}
