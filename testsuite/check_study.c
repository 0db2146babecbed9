/* check_study.c - the two bots on the embedded model and its documents. */
#include "base/json.h"
#include "study/conv_json.h"
#include "study_lab.h"

/* Another number of threads, another slicing of prompts, no company: the same conversations. */
static void alone_and_in_company(lab *many, lab *lone, size_t every, size_t at_least) {
  fl_conv all[N], one;
  bool ok[N], ok_one;
  ck_assert_uint_ge(make(many, all, ok, 0, N, NULL, NULL), at_least);
  for (size_t i = 0; i < N; i += every) {
    make(lone, &one, &ok_one, i, 1, NULL, NULL);
    ck_assert(ok_one == ok[i]);
    ck_assert(!ok_one || convs_equal(&one, &all[i]));
    fl_conv_release(&one);
  }
  release(all, N);
  lab_free(many);
  lab_free(lone);
}

START_TEST(a_plan_gives_the_same_alone_and_in_company) {
  alone_and_in_company(lab_new(2, 256), lab_new(1, 61), 1, N / 2);
}
END_TEST

/* Bit for bit: the generating pass's own rows are the teacher's. */
START_TEST(teacher_rows_equal_a_separate_pass) {
  lab *s = lab_new(2, 256);
  fl_conv all[N];
  bool ok[N];
  make(s, all, ok, 0, N, NULL, NULL);
  for (size_t i = 0; i < N; i++)
    if (ok[i]) check_teacher(s, i, &all[i], true);
  release(all, N);
  lab_free(s);
}
END_TEST

START_TEST(the_student_reads_the_same_user_turn) {
  lab *s = lab_new(2, 256);
  const fl_tokenizer *t = fl_model_tokenizer(s->r.m);
  fl_conv all[N];
  bool ok[N];
  make(s, all, ok, 0, N, NULL, NULL);
  for (size_t i = 0; i < N; i++) {
    const fl_conv *c = &all[i];
    fl_ids turn = { 0 };
    if (!ok[i]) continue;
    ck_assert_int_eq(fl_chat_user(&turn, fl_model_template(s->r.m), t, c->request,
                                  strlen(c->request), true, false, NULL),
                     FL_OK);
    ck_assert_uint_lt(turn.len, c->tokens.len);
    ck_assert(memcmp(turn.data, c->tokens.data, turn.len * sizeof(int32_t)) == 0);
    /* Supervised: from the row before the answer to the row before the end of turn. */
    ck_assert_uint_eq(c->sup[0], turn.len - 1);
    ck_assert_uint_eq(c->sup[c->targets.n_rows - 1], c->tokens.len - 2);
    ck_assert(fl_chat_stops(fl_model_template(s->r.m), t, c->tokens.data[c->tokens.len - 1]));
    size_t first, end;
    fl_study_chunk(&s->o, s->text[i], &s->plan[i], &first, &end);
    ck_assert(c->first == first && c->end == end);
    ck_assert_uint_eq(c->kind, fl_study_kind(&s->o, &s->plan[i]));
    ck_assert(c->request[0] && c->answer[0]);
    fl_ids_release(&turn);
  }
  release(all, N);
  lab_free(s);
}
END_TEST

START_TEST(different_conversations_ask_differently) {
  lab *s = lab_new(2, 256);
  fl_conv all[N];
  bool ok[N];
  size_t same = 0;
  for (uint32_t i = 0; i < N; i++) { /* one document, one chunk, one kind; only `conv` differs */
    s->plan[i] = (fl_conv_plan){ .doc = 0, .round = 0, .conv = i, .draw = 5 };
    s->text[i] = &s->doc[0];
  }
  ck_assert_uint_ge(make(s, all, ok, 0, N, NULL, NULL), 4);
  for (size_t i = 0; i < N; i++)
    for (size_t j = 0; j < i; j++)
      same += ok[i] && ok[j] && strcmp(all[i].request, all[j].request) == 0;
  ck_assert_uint_lt(same, N * (N - 1) / 2); /* not all pairs */
  release(all, N);
  lab_free(s);
}
END_TEST

/* --- several turns, reasoning first, other instructions --------------------------------------- */

static const fl_seed_kind own_seeds[2] = {
  { "names", "Write one question on a name in the document. Give the question alone.", false },
  { "numbers", "Write one question on a number in the document. Give the question alone.", false }
};

static lab *lab_of_turns(unsigned threads, size_t max_rows) {
  lab *s = lab_new(threads, max_rows);
  s->o.turns = 3;
  s->o.think = 0.5;
  s->o.seeds = own_seeds;
  s->o.n_seeds = 2;
  return s;
}

/* Every turn's rows are what a separate pass over chunk and conversation gives, and every later
 * turn stands behind the ones before. */
START_TEST(every_turn_is_supervised) {
  lab *s = lab_of_turns(2, 256);
  fl_conv all[N];
  bool ok[N];
  size_t longest = 0;
  make(s, all, ok, 0, N, NULL, NULL);
  const fl_tokenizer *t = fl_model_tokenizer(s->r.m);
  for (size_t i = 0; i < N; i++) {
    size_t ends = 0, stops = 0;
    if (!ok[i]) continue;
    check_teacher(s, i, &all[i], true);
    for (size_t r = 0; r < all[i].targets.n_rows; r++)
      stops += fl_chat_stops(fl_model_template(s->r.m), t, all[i].tokens.data[all[i].sup[r] + 1]);
    for (const char *a = all[i].answer; (a = strstr(a, "\n\n")) != NULL; a += 2) ends++;
    ck_assert_uint_ge(ends + 1, stops); /* an answer may hold an empty line of its own */
    if (stops > longest) longest = stops;
    ck_assert_int_eq(all[i].kind, FL_N_SEED_KINDS);
    ck_assert(strcmp(fl_conv_kind(&all[i]), "names") == 0 ||
              strcmp(fl_conv_kind(&all[i]), "numbers") == 0);
  }
  ck_assert_uint_ge(longest, 2);
  ck_assert_uint_le(longest, 3);
  release(all, N);
  lab_free(s);
}
END_TEST

START_TEST(turns_alone_and_in_company) {
  alone_and_in_company(lab_of_turns(2, 256), lab_of_turns(1, 61), 3, 0);
}
END_TEST

/* The first turn of several is the only turn of one. */
START_TEST(further_turns_change_nothing_before) {
  lab *one = lab_new(2, 256), *three = lab_new(2, 256);
  three->o.turns = 3;
  fl_conv a[N], b[N];
  bool ok_a[N], ok_b[N];
  make(one, a, ok_a, 0, N, NULL, NULL);
  make(three, b, ok_b, 0, N, NULL, NULL);
  for (size_t i = 0; i < N; i++) {
    ck_assert(ok_a[i] == ok_b[i]);
    if (!ok_a[i]) continue;
    ck_assert_uint_ge(b[i].targets.n_rows, a[i].targets.n_rows);
    ck_assert(memcmp(a[i].sup, b[i].sup, a[i].targets.n_rows * sizeof *a[i].sup) == 0);
    ck_assert(memcmp(a[i].tokens.data, b[i].tokens.data, a[i].tokens.len * sizeof(int32_t)) == 0);
    ck_assert(strncmp(a[i].request, b[i].request, strlen(a[i].request)) == 0);
  }
  release(a, N);
  release(b, N);
  lab_free(one);
  lab_free(three);
}
END_TEST

/* --- what fails, and what it leaves behind --------------------------------------------------- */

/* One token is never a whole request: every attempt is cut, all are skipped, nothing ends. */
START_TEST(hopeless_conversations_are_skipped_and_counted) {
  lab *s = lab_new(1, 256);
  fl_conv out[4];
  bool ok[4];
  fl_study_stats stats;
  s->o.max_q = 1;
  ck_assert_uint_eq(make(s, out, ok, 0, 4, NULL, &stats), 0);
  ck_assert_uint_eq(stats.skipped, 4);
  ck_assert_uint_eq(stats.rejected, 16);
  ck_assert_uint_eq(stats.gen_tokens, 16);
  lab_free(s);
}
END_TEST

typedef struct event_count {
  size_t accepted, rejected, redrawn; /* redrawn: later attempts with another request */
  char request[N][512];               /* the latest of each plan */
} event_count;

static void count_redraw(event_count *n, const fl_json *j, double attempt) {
  double doc, round;
  const char *request = "";
  ck_assert(fl_json_get_num(j, "doc", &doc) && fl_json_get_num(j, "round", &round));
  fl_json_get_str(j, "request", &request);
  char *last = n->request[(size_t)(4 * (round - 1) + doc)];
  n->redrawn += attempt > 0 && strcmp(last, request) != 0;
  snprintf(last, sizeof n->request[0], "%s", request);
}

static void count_line(event_count *n, const char *line, size_t len) {
  fl_json *j;
  const char *ev, *why, *of;
  double first, end, attempt;
  ck_assert_int_eq(fl_json_parse(&j, line, len, NULL), FL_OK);
  ck_assert(fl_json_get_str(j, "ev", &ev) && strcmp(ev, "study") == 0);
  ck_assert(fl_json_get_num(j, "first", &first) && fl_json_get_num(j, "end", &end));
  ck_assert(fl_json_get_num(j, "attempt", &attempt) && attempt >= 0 && attempt < 4);
  ck_assert(first < end);
  count_redraw(n, j, attempt);
  if (fl_json_get_str(j, "rejected", &why)) {
    ck_assert(fl_json_get_str(j, "of", &of));
    n->rejected++;
  } else {
    ck_assert(fl_json_get_str(j, "request", &why) && fl_json_get_str(j, "answer", &of));
    n->accepted++;
  }
  fl_json_free(j);
}

START_TEST(every_attempt_is_in_the_log) {
  const char *path = temp_path("study.jsonl");
  lab *s = lab_new(2, 256);
  fl_conv all[N];
  bool ok[N];
  fl_study_stats stats;
  fl_events *log;
  fl_buf text = { 0 };
  event_count n = { 0 };
  s->o.max_a = 20; /* some answers are cut */
  ck_assert_int_eq(fl_events_open(&log, path, 0, NULL), FL_OK);
  const size_t made = make(s, all, ok, 0, N, log, &stats);
  fl_events_close(log);
  ck_assert_int_eq(fl_fs_read(&text, path, 1 << 20, NULL), FL_OK);
  for (char *at = text.data, *nl; (nl = strchr(at, '\n')); at = nl + 1)
    count_line(&n, at, (size_t)(nl - at));
  ck_assert_uint_eq(n.accepted, made);
  ck_assert_uint_eq(n.rejected, stats.rejected);
  ck_assert_uint_eq(stats.skipped, N - made);
  ck_assert_uint_gt(stats.rejected, 0);
  ck_assert_uint_gt(n.redrawn, 0);
  for (size_t i = 0; i < N; i++) ck_assert(!ok[i] || all[i].targets.n_rows <= 21);
  fl_buf_release(&text);
  release(all, N);
  lab_free(s);
  unlink(path);
}
END_TEST

static bool count_down(void *ctx) { return (*(int *)ctx)-- <= 0; }

/* Before the first pass, in the chunks, between two tokens. */
START_TEST(a_stop_leaves_nothing) {
  static const int at[] = { 0, 5, 30 };
  lab *s = lab_new(1, 61);
  fl_conv all[N];
  bool ok[N];
  int left = at[_i];
  const fl_work before = fl_team_work(s->r.team);
  s->o.cancelled = count_down;
  s->o.cancel_ctx = &left;
  ck_assert_int_eq(
      fl_study_make(all, ok, s->plan, s->text, N, &s->o, s->pass, s->pool, NULL, NULL, NULL),
      FL_EINTR);
  ck_assert_int_eq(left, -1);
  if (_i == 0) ck_assert_double_eq(fl_team_work(s->r.team).flop, before.flop);
  ck_assert_uint_eq(fl_kv_pool_bytes(s->pool), 0);
  for (size_t i = 0; i < N; i++) ck_assert(!ok[i] && !all[i].tokens.data);
  lab_free(s);
}
END_TEST

START_TEST(a_full_pool_is_an_error) {
  lab *s = lab_new(1, 256);
  fl_conv all[N];
  bool ok[N];
  fl_kv_pool *small;
  ck_assert_int_eq(fl_kv_pool_new(&small, s->r.hp, fl_model_kernels(s->r.m), FL_KV_F32,
                                  9 * fl_kv_page_bytes(s->pool), NULL),
                   FL_OK);
  ck_assert_int_eq(
      fl_study_make(all, ok, s->plan, s->text, N, &s->o, s->pass, small, NULL, NULL, NULL),
      FL_EFULL);
  ck_assert_uint_eq(fl_kv_pool_bytes(small), 0);
  fl_kv_pool_free(small);
  lab_free(s);
}
END_TEST

START_TEST(lack_of_memory_leaves_nothing) {
  lab *s = lab_new(1, 256);
  fl_conv out[2];
  bool ok[2];
  int rc = FL_ENOMEM;
  for (size_t n = 1; rc != FL_OK && n < 100000; n += 1 + n / 4) {
    fl_mem_fault_after(n);
    rc = fl_study_make(out, ok, s->plan, s->text, 2, &s->o, s->pass, s->pool, NULL, NULL, NULL);
    fl_mem_fault_after(0);
    /* A page that cannot be had is a full pool. */
    ck_assert_msg(rc == FL_OK || rc == FL_ENOMEM || rc == FL_EFULL, "fault %zu: %d", n, rc);
    ck_assert_uint_eq(fl_kv_pool_bytes(s->pool), 0);
  }
  ck_assert_int_eq(rc, FL_OK);
  release(out, 2);
  lab_free(s);
}
END_TEST

/* Each limit may be reached and not passed; what has no row to learn from is within none. */
START_TEST(limits_of_a_conversation) {
  const fl_conv_limits l = { .n_vocab = 100, .max_tokens = 8, .max_sup = 3 };
  fl_conv c = { .tokens = { .len = 8 }, .targets = { .n_rows = 3 } };
  ck_assert(fl_conv_within(&c, &l));
  c.tokens.len = 9;
  ck_assert(!fl_conv_within(&c, &l));
  c.tokens.len = 0;
  ck_assert(!fl_conv_within(&c, &l));
  c.tokens.len = 8;
  c.targets.n_rows = 4;
  ck_assert(!fl_conv_within(&c, &l));
  c.targets.n_rows = 0;
  ck_assert(!fl_conv_within(&c, &l));
}
END_TEST

START_TEST(senseless_options_are_refused) {
  lab *s = lab_new(1, 256);
  const fl_study_options good = s->o;
  for (int i = 0; i < 6; i++) {
    fl_conv out;
    bool ok;
    fl_err err = { 0 };
    s->o = good;
    if (i == 0) s->o.chunk_min = 0;
    if (i == 1) s->o.chunk_min = 161;
    if (i == 2) s->o.top_k = 0;
    if (i == 3) s->o.max_q = 0;
    if (i == 4) s->o.max_a = 0;
    if (i == 5) s->o.chunk_max = s->r.hp->n_ctx;
    ck_assert_int_eq(
        fl_study_make(&out, &ok, s->plan, s->text, 1, &s->o, s->pass, s->pool, NULL, NULL, &err),
        FL_EUSAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "--"));
  }
  lab_free(s);
}
END_TEST

Suite *suite_study(void);
Suite *suite_study(void) {
  Suite *s = suite_create("study");
  TCase *core = tcase_create("core"), *errors = tcase_create("errors");
  tcase_set_timeout(core, 120);
  tcase_set_timeout(errors, 120);
  tcase_add_test(core, a_plan_gives_the_same_alone_and_in_company);
  tcase_add_test(core, teacher_rows_equal_a_separate_pass);
  tcase_add_test(core, the_student_reads_the_same_user_turn);
  tcase_add_test(core, every_turn_is_supervised);
  tcase_add_test(core, turns_alone_and_in_company);
  tcase_add_test(core, further_turns_change_nothing_before);
  tcase_add_test(core, different_conversations_ask_differently);
  tcase_add_test(core, every_attempt_is_in_the_log);
  tcase_add_test(errors, hopeless_conversations_are_skipped_and_counted);
  tcase_add_loop_test(errors, a_stop_leaves_nothing, 0, 3);
  tcase_add_test(errors, a_full_pool_is_an_error);
  tcase_add_test(errors, lack_of_memory_leaves_nothing);
  tcase_add_test(errors, senseless_options_are_refused);
  tcase_add_test(errors, limits_of_a_conversation);
  suite_add_tcase(s, core);
  suite_add_tcase(s, errors);
  return s;
}
