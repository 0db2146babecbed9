/* train.c - a group of conversations at the defaults of train: making them, and the student's
 * step. Both are given what a real group has on average, so that they take the same work whatever
 * the model writes: chunks of 384 tokens, requests of 64, answers of 192, four conversations of
 * which one sees two more cartridges. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "trainer/sizes.h"
#include "formats/gguf.h"
#include "study/conv.h"
#include "train/step.h"

enum {
  CONVS = 4,
  CARTS = 4,
  PARTS = 3,
  CHUNK = 384,
  SEED = 48,
  REQUEST = 64,
  ANSWER = 192,
  PROMPT = REQUEST + 16, /* the request as a turn */
  CONV_ROWS = PROMPT + ANSWER
};

/* Where a fleet would lie. */
static const char fleet_dir[] = "/var/tmp";

/* --- making conversations --- */

typedef struct maker {
  bench *b;
  fl_pass *pass;
  fl_kv_pool *pool;
  fl_seq *chunk[CONVS];
  fl_stream stream[CONVS];
  fl_target_room room[CONVS];
  int32_t ids[CONVS * CHUNK];
  fl_study_options study;
} maker;

static void maker_release(maker *m) {
  for (size_t i = 0; i < CONVS; i++) {
    if (m->stream[i].seq) fl_seq_free(m->stream[i].seq);
    if (m->chunk[i]) fl_seq_free(m->chunk[i]);
    fl_target_room_release(&m->room[i]);
  }
  fl_streams_release(m->stream, CONVS);
  if (m->pool) fl_kv_pool_free(m->pool);
  if (m->pass) fl_pass_free(m->pass);
}

static int maker_init(maker *m, bench *b, fl_err *err) {
  fl_train_options o;
  fl_train_sizes plan;
  fl_train_options_default(&o);
  *m = (maker){ .b = b, .study = fl_train_study(&o) };
  bench_tokens(b, m->ids, CONVS * CHUNK);
  int rc = fl_train_sizes_make(&plan, &o, o.p, CARTS, b->hp, fleet_dir, err);
  if (rc == FL_OK) rc = fl_pass_new(&m->pass, b->model, b->team, &plan.pass, err);
  if (rc == FL_OK)
    rc = fl_kv_pool_new(&m->pool, b->hp, fl_model_kernels(b->model), o.gen_kv, 0, err);
  for (size_t i = 0; i < CONVS && rc == FL_OK; i++) {
    rc = fl_seq_new(&m->chunk[i], m->pool, err);
    if (rc == FL_OK) rc = fl_target_room_init(&m->room[i], ANSWER, o.top_k, err);
  }
  return rc;
}

static void keep_row(void *ctx, size_t i, size_t index, const float *logits, int32_t token) {
  maker *m = ctx;
  (void)index;
  (void)token;
  fl_target_room_add(&m->room[i], fl_model_kernels(m->b->model), logits, m->b->hp->n_vocab,
                     m->study.top_mass);
}

/* One bot writes n_new tokens in every conversation, behind the chunk and a prompt. */
static int write_all(maker *m, size_t n_prompt, size_t n_new, bool teacher, fl_err *err) {
  const fl_generate_hooks hooks = { .ctx = m, .on_row = teacher ? keep_row : NULL };
  int rc = FL_OK;
  for (size_t i = 0; i < CONVS && rc == FL_OK; i++) {
    fl_stream *s = &m->stream[i];
    fl_ids_release(&s->out);
    if (s->seq) fl_seq_free(s->seq);
    *s = (fl_stream){ .prompt = m->ids + i * CHUNK,
                      .n_prompt = n_prompt,
                      .max_new = n_new,
                      .sampling = FL_SAMPLING_GREEDY };
    if (!teacher) s->sampling.temperature = m->study.temperature;
    rc = fl_seq_fork(&s->seq, m->chunk[i], CHUNK, err);
  }
  return rc == FL_OK ? fl_generate(m->pass, m->stream, CONVS, &hooks, err) : rc;
}

static void add_seconds(bench *b, const char *part, const char *what, double s) {
  bench_figure f = { .part = part, .unit = "s/conversation", .value = s / CONVS };
  snprintf(f.what, sizeof f.what, "%s", what);
  bench_add(b, &f);
}

int bench_study(bench *b, fl_err *err) {
  maker m;
  int rc = maker_init(&m, b, err);
  double t0 = fl_now_s();
  for (size_t i = 0; i < CONVS && rc == FL_OK; i++)
    rc = fl_pass_prefill(m.pass, m.chunk[i], m.ids + i * CHUNK, CHUNK, NULL, err);
  double t1 = fl_now_s();
  if (rc == FL_OK) rc = write_all(&m, SEED, REQUEST, false, err);
  double t2 = fl_now_s();
  if (rc == FL_OK) rc = write_all(&m, PROMPT, ANSWER, true, err);
  double t3 = fl_now_s();
  maker_release(&m);
  if (rc != FL_OK) return rc;
  add_seconds(b, "study", "chunks of 384 tokens", t1 - t0);
  add_seconds(b, "study", "requests of 64 tokens", t2 - t1);
  add_seconds(b, "study", "answers of 192, teacher too", t3 - t2);
  add_seconds(b, "study", "making a conversation", t3 - t0);
  return FL_OK;
}

/* --- the student's step --- */

typedef struct student {
  bench *b;
  fl_stepper *stepper;
  fl_cartridge cart[CARTS];
  fl_adam adam[CARTS];
  fl_rows grad[CARTS];
  fl_trainable trainee[CARTS];
  fl_conv conv[CONVS];
  fl_step_conv step[CONVS];
  fl_train_options o;
} student;

static const size_t part_lists[CONVS][PARTS] = { { 0 }, { 0 }, { 0 }, { 2, 0, 1 } };
static const size_t part_counts[CONVS] = { 1, 1, 1, PARTS };

static void student_release(student *s) {
  for (size_t i = 0; i < CONVS; i++) fl_conv_release(&s->conv[i]);
  for (size_t i = 0; i < CARTS; i++) {
    fl_rows_release(&s->grad[i]);
    fl_adam_release(&s->adam[i]);
    fl_cartridge_release(&s->cart[i]);
  }
  fl_stepper_free(s->stepper);
  fl_free(s);
}

/* A conversation of pseudo-random tokens with a full set of teacher entries. */
static int make_conv(student *s, size_t i, fl_err *err) {
  const size_t top_k = s->o.top_k, n_vocab = s->b->hp->n_vocab;
  fl_conv c = { 0 };
  c.targets.n_rows = ANSWER;
  c.sup = fl_calloc(ANSWER, sizeof *c.sup);
  c.targets.first = fl_calloc(ANSWER + 1, sizeof *c.targets.first);
  c.targets.id = fl_calloc(ANSWER * top_k, sizeof *c.targets.id);
  c.targets.prob = fl_calloc(ANSWER * top_k, sizeof *c.targets.prob);
  int32_t ids[CONV_ROWS];
  bench_tokens(s->b, ids, CONV_ROWS);
  for (size_t k = 0; k < CONV_ROWS; k++) fl_ids_push(&c.tokens, ids[(k + i) % CONV_ROWS]);
  s->conv[i] = c;
  if (!c.sup || !c.targets.first || !c.targets.id || !c.targets.prob || c.tokens.oom)
    return fl_fail(err, FL_ENOMEM, "not enough memory");
  for (size_t r = 0; r < ANSWER; r++) {
    c.sup[r] = (uint32_t)(PROMPT + r);
    c.targets.first[r + 1] = (uint32_t)((r + 1) * top_k);
    for (size_t e = 0; e < top_k; e++) {
      c.targets.id[r * top_k + e] = (int32_t)((r * 131 + e * 7919) % n_vocab);
      c.targets.prob[r * top_k + e] = 0.95f / (float)top_k;
    }
  }
  s->step[i] =
      (fl_step_conv){ .conv = &s->conv[i], .parts = part_lists[i], .n_parts = part_counts[i] };
  return FL_OK;
}

/* Cartridges from a prefill of as many rows as the default p. */
static int make_carts(student *s, const fl_pass_options *opt, fl_err *err) {
  bench *b = s->b;
  int32_t *ids = fl_calloc(s->o.p, sizeof *ids);
  fl_pass *pass = NULL;
  fl_kv_pool *pool = NULL;
  fl_seq *seq = NULL;
  int rc = ids ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) rc = fl_pass_new(&pass, b->model, b->team, opt, err);
  if (rc == FL_OK) rc = fl_kv_pool_new(&pool, b->hp, fl_model_kernels(b->model), FL_KV_F32, 0, err);
  if (rc == FL_OK) rc = fl_seq_new(&seq, pool, err);
  if (rc == FL_OK) {
    bench_tokens(b, ids, s->o.p);
    rc = fl_pass_prefill(pass, seq, ids, s->o.p, NULL, err);
  }
  for (size_t i = 0; i < CARTS && rc == FL_OK; i++) {
    rc = fl_cartridge_capture(&s->cart[i], b->hp, seq, 0, s->o.p, s->o.frozen, err);
    if (rc == FL_OK) rc = fl_adam_init(&s->adam[i], b->hp, &s->cart[i], err);
    if (rc == FL_OK) fl_train_to_files(&s->o, fleet_dir, &s->cart[i], &s->adam[i]);
    s->trainee[i] = (fl_trainable){ &s->cart[i], &s->adam[i], &s->grad[i] };
  }
  if (seq) fl_seq_free(seq);
  if (pool) fl_kv_pool_free(pool);
  if (pass) fl_pass_free(pass);
  fl_free(ids);
  return rc;
}

static int student_new(student **out, bench *b, fl_err *err) {
  student *s = fl_calloc(1, sizeof *s);
  if (!s) return fl_fail(err, FL_ENOMEM, "not enough memory");
  s->b = b;
  fl_train_options_default(&s->o);
  s->o.checkpoint = b->opt->checkpoint;
  fl_train_sizes plan;
  int rc = fl_train_sizes_make(&plan, &s->o, s->o.p, CARTS, b->hp, fleet_dir, err);
  if (rc == FL_OK) rc = make_carts(s, &plan.pass, err);
  for (size_t i = 0; i < CONVS && rc == FL_OK; i++) rc = make_conv(s, i, err);
  if (rc == FL_OK) rc = fl_stepper_new(&s->stepper, b->model, b->team, &plan.step, err);
  if (rc != FL_OK) student_release(s);
  else *out = s;
  return rc;
}

static int one_step(student *s, fl_step_result *r, fl_err *err) {
  const fl_step_options o = fl_train_step(&s->o);
  return fl_step(s->stepper, s->trainee, CARTS, s->step, CONVS, &o, r, err);
}

/* Operations, in 1e9, of the forward attention of conversation i; the backward has 2.5 times as
 * many: scores and probabilities again, then dV, dP, dK and dQ. The rows of the request are no
 * queries from the last layer with K/V rows on. */
static double attention_ops(const student *s, size_t i) {
  const fl_hparams *hp = s->b->hp;
  const double prefix = (double)(part_counts[i] * s->o.p);
  const double all = CONV_ROWS * (prefix + CONV_ROWS / 2.0);
  const double silent = PROMPT * (prefix + PROMPT / 2.0);
  double sum = 0;
  for (size_t l = 0; l < hp->n_layers; l++)
    sum += (double)(hp->layer[l].n_heads * hp->layer[l].head_dim) *
           (l < fl_last_kv_layer(hp) ? all : all - silent);
  return 4e-9 * sum;
}

/* Seconds that the operations of conversation i take at the products' pace. */
static double floor_seconds(const student *s, size_t i, bench_pace pace) {
  const double runs = s->b->opt->checkpoint ? 2 : 1;
  const double layers = 2e-9 * bench_layer_macs(s->b) * CONV_ROWS;
  const double spared = 2e-9 * bench_spared_macs(s->b, false) * PROMPT;
  const double spared_dx = 2e-9 * bench_spared_macs(s->b, true) * PROMPT;
  const double head = 2e-9 * bench_head_macs(s->b) * ANSWER;
  const double attention = attention_ops(s, i);
  return (runs * (layers - spared + attention) + head) * pace.y +
         (layers - spared_dx + 2.5 * attention + head) * pace.dx;
}

/* The student over its operations: conversations one by one, each between two looks at the
 * products' pace. */
static int over_operations(student *s, double *out, fl_err *err) {
  bench *b = s->b;
  const fl_tensor_info *t = fl_gguf_tensor(fl_model_gguf(b->model), "blk.0.ffn_up.weight");
  const fl_step_options o = fl_train_step(&s->o);
  bench_speed *speed = NULL;
  fl_step_result r = { 0 };
  double took = 0, least = 0;
  int rc = bench_speed_open(&speed, b, t ? fl_dtype_get(t->ggml_type)->name : "f32", err);
  if (rc != FL_OK) return rc;
  bench_pace before = bench_speed_now(speed);
  for (size_t i = 0; i < b->opt->reps * CONVS && rc == FL_OK; i++) {
    rc = fl_step(s->stepper, s->trainee, CARTS, &s->step[i % CONVS], 1, &o, &r, err);
    const bench_pace after = bench_speed_now(speed);
    const bench_pace mean = { (before.y + after.y) / 2, (before.dx + after.dx) / 2 };
    took += r.student_s;
    least += floor_seconds(s, i % CONVS, mean);
    before = after;
  }
  bench_speed_close(speed);
  *out = took / least;
  return rc;
}

static int with_torch(bench *b, double best, fl_err *err) {
  const char *types[] = { "f32", "bf16" };
  const bench_shape shape = { CONV_ROWS, 256, ANSWER, CONVS };
  int rc = FL_OK;
  for (size_t i = 0; i < 2 && rc == FL_OK; i++) {
    bench_figure f = { .part = "step", .unit = "s", .value = best, .peer = "torch" };
    snprintf(f.what, sizeof f.what, "forward and backward, torch in %s", types[i]);
    rc = bench_torch(b, &shape, types[i], &f.peer_value, err);
    if (rc == FL_OK) bench_add(b, &f);
  }
  return rc;
}

int bench_step(bench *b, fl_err *err) {
  student *s = NULL;
  fl_step_result r = { 0 }, best = { 0 };
  double over = 0;
  int rc = student_new(&s, b, err);
  if (rc != FL_OK) return rc;
  for (size_t i = 0; i < b->opt->reps && rc == FL_OK; i++) {
    rc = one_step(s, &r, err);
    if (i == 0 || r.student_s < best.student_s) best = r;
  }
  if (rc == FL_OK) rc = over_operations(s, &over, err);
  student_release(s);
  if (rc != FL_OK) return rc;
  add_seconds(b, "step", b->opt->checkpoint ? "student, --checkpoint" : "student", best.student_s);
  add_seconds(b, "step", "optimizer", best.opt_s);
  bench_figure f = {
    .part = "step", .unit = "times", .value = over, .what = "student over its operations"
  };
  bench_add(b, &f);
  if (bench_has_peer(b, "torch")) rc = with_torch(b, best.student_s, err);
  return rc;
}

/* A process that computes and never waits; ends with us. */
static pid_t burn(void) {
  pid_t parent = getpid(), pid = fork();
  if (pid != 0) return pid;
  for (volatile unsigned i = 0;; i++)
    if (i % (1u << 20) == 0 && getppid() != parent) _exit(0);
}

int bench_contention(bench *b, fl_err *err) {
  student *s = NULL;
  fl_step_result alone = { 0 }, beside = { 0 };
  int rc = student_new(&s, b, err);
  if (rc != FL_OK) return rc;
  rc = one_step(s, &alone, err); /* the first also warms up */
  if (rc == FL_OK) rc = one_step(s, &alone, err);
  pid_t pid = rc == FL_OK ? burn() : -1;
  if (rc == FL_OK && pid < 0) rc = fl_fail(err, FL_EFAIL, "no second process");
  if (rc == FL_OK) rc = one_step(s, &beside, err);
  if (pid > 0) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
  }
  student_release(s);
  bench_figure f = { .part = "contention",
                     .unit = "times",
                     .value = beside.student_s,
                     .what = "step beside a busy process" };
  f.value /= alone.student_s > 0 ? alone.student_s : 1;
  if (rc == FL_OK) bench_add(b, &f);
  return rc;
}
