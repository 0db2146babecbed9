/* check_step.c - the training step against itself, in every way it can be cut up: packing,
 * recomputing, files, threads, ranks; who steps how far; what is refused. Its gradient:
 * check_step_grad.c. */
#include "base/spillable.h"
#include "dist_util.h"
#include "step_util.h"

/* --- one result, many ways -------------------------------------------------------------------- */

/* Two steps under the given limits; the scene keeps what they did. */
static fl_step_result two_steps(scene *s, const fl_stepper_limits *l, bool pack) {
  const fl_step_options o = { .rate = { .lr = 2e-2, .warmup = 3 }, .pack = pack };
  fl_stepper *st = stepper(&s->r, l);
  fl_step_result r;
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(fl_step(st, s->trainee, N_CARTS, s->step_conv, N_CONVS, &o, &r, NULL), FL_OK);
  fl_stepper_free(st);
  return r;
}

typedef struct variant {
  const char *name;
  bool pack_pass, pack_step, checkpoint;
  unsigned threads;
  size_t max_pass_rows, max_sup;
  bool in_file; /* the moments; with checkpoint also rows, and gradients that the step lends */
} variant;

static const variant variants[] = {
  { "one by one", true, false, false, 2, 0, 120, false },
  { "a pass for one", false, true, false, 2, 0, 120, false },
  { "checkpoint", true, true, true, 2, 0, 120, false },
  { "checkpoint, one by one", false, false, true, 2, 0, 120, false },
  { "one thread", true, true, false, 1, 0, 120, false },
  { "three threads", true, true, false, 3, 0, 120, false },
  { "several passes by rows", true, true, false, 2, 45, 120, false },
  { "several passes by supervised rows", true, true, true, 2, 0, 30, false },
  { "moments in a file", true, true, false, 2, 0, 120, true },
  { "everything in files", true, true, true, 2, 45, 120, true },
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static void compare_scenes(const scene *a, const scene *b, const char *name) {
  for (size_t i = 0; i < N_CARTS; i++) {
    if (b->grad[i].block)
      ck_assert_msg(rows_equal(&a->grad[i], &b->grad[i]), "%s: gradient %zu", name, i);
    ck_assert_msg(rows_equal(&a->cart[i].rows, &b->cart[i].rows), "%s: rows %zu", name, i);
    ck_assert_msg(rows_equal(&a->adam[i].m, &b->adam[i].m), "%s: first moments %zu", name, i);
    ck_assert_msg(rows_equal(&a->adam[i].v, &b->adam[i].v), "%s: second moments %zu", name, i);
  }
}

/* Not on a file system in memory, nor on one that is nearly full. */
static bool has_scratch(void) {
  void *p = fl_spillable_new(".", 1 << 20);
  fl_spillable_free(p, 1 << 20);
  return p != NULL;
}

static void all_in_files(scene *s, size_t cart, fl_stepper_limits *l) {
  fl_rows_to_file(&s->cart[cart].rows, ".");
  ck_assert(s->cart[cart].rows.in_file);
  fl_rows_release(&s->grad[cart]);
  l->grad_dir = ".";
}

static void one_variant(const char *model, const variant *v) {
  if (v->in_file && !has_scratch()) return;
  scene *a = scene_new(model, 2), *b = scene_new(model, v->threads);
  fl_stepper_limits l = some_limits();
  const fl_step_result ra = two_steps(a, &l, true);
  l.pack = v->pack_pass;
  l.checkpoint = v->checkpoint;
  l.max_pass_rows = v->max_pass_rows;
  l.max_sup = v->max_sup;
  for (size_t i = 0; v->in_file && i < N_CARTS; i++) {
    fl_adam_to_file(&b->adam[i], ".");
    ck_assert(b->adam[i].m.in_file && b->adam[i].v.in_file);
    if (v->checkpoint) all_in_files(b, i, &l);
  }
  const fl_step_result rb = two_steps(b, &l, v->pack_step);
  ck_assert(ra.loss > 0 && ra.grad_norm > 0);
  ck_assert_double_eq(ra.loss, rb.loss);
  ck_assert_double_eq(ra.grad_norm, rb.grad_norm);
  ck_assert(ra.teacher > 0 && ra.teacher == rb.teacher);
  ck_assert_uint_eq(ra.n_sup, rb.n_sup);
  ck_assert_uint_eq(ra.n_rows, rb.n_rows);
  compare_scenes(a, b, v->name);
  scene_free(a);
  scene_free(b);
}

START_TEST(no_way_of_running_changes_a_bit) { one_variant("tiny/tiny-qwen3.gguf", &variants[_i]); }
END_TEST

START_TEST(no_way_of_running_changes_a_bit_embedded) {
  one_variant("embedded/model.gguf", &variants[_i]);
}
END_TEST

/* Windows that cut through the prefix, shared rows, layers of different width, experts. */
static const char *const families[] = { "tiny/tiny-gemma3.gguf", "tiny/tiny-gemma4-dense.gguf",
                                        "tiny/tiny-gemma4-moe.gguf", "tiny/tiny-qwen3moe.gguf",
                                        "tiny/tiny-qwen3-k256-q4_k.gguf" };
enum { N_FAMILIES = sizeof families / sizeof *families };

START_TEST(no_family_depends_on_packing_or_recomputing) {
  const variant v = { "checkpoint, one by one", false, false, true, 1, 0, 120, false };
  one_variant(families[_i], &v);
}
END_TEST

/* --- several ranks ---------------------------------------------------------------------------- */

typedef struct rank_steps {
  scene *s[RANKS_MAX];
  fl_step_result r[RANKS_MAX];
  int rc[RANKS_MAX];
  fl_err err[RANKS_MAX];
  bool checkpoint;
} rank_steps;

/* Three steps of all conversations, the first three, all. Nothing is asserted in a rank's
 * thread. */
static void steps_of_rank(void *ctx, fl_dist *d) {
  rank_steps *t = ctx;
  const size_t r = fl_dist_rank(d);
  scene *s = t->s[r];
  const fl_step_options o = { .rate = { .lr = 2e-2, .warmup = 3 }, .pack = true };
  fl_stepper_limits l = some_limits();
  fl_stepper *st = NULL;
  l.dist = d;
  l.checkpoint = t->checkpoint;
  t->rc[r] = fl_stepper_new(&st, s->r.m, s->r.team, &l, &t->err[r]);
  for (int i = 0; t->rc[r] == FL_OK && i < 3; i++)
    t->rc[r] = fl_step(st, s->trainee, N_CARTS, s->step_conv, i == 1 ? 3 : N_CONVS, &o, &t->r[r],
                       &t->err[r]);
  fl_stepper_free(st);
}

/* From two ranks, one of which has several conversations behind a cartridge, to more ranks than
 * conversations. A scene has its own model: threads of one process are to share nothing. */
static void compare_ranks(const char *model, size_t n, bool untrained) {
  rank_steps one = { 0 }, many = { .checkpoint = n == 3 };
  one.s[0] = scene_new(model, 2);
  for (size_t r = 0; r < n; r++) many.s[r] = scene_new(model, 1 + (unsigned)r % 2);
  if (untrained) one.s[0]->trainee[1].grad = NULL;
  for (size_t r = 0; untrained && r < n; r++) many.s[r]->trainee[1].grad = NULL;
  run_ranks(1, steps_of_rank, &one);
  run_ranks(n, steps_of_rank, &many);
  ck_assert_int_eq(one.rc[0], FL_OK);
  for (size_t r = 0; r < n; r++) {
    ck_assert_msg(many.rc[r] == FL_OK, "%s", many.err[r].text);
    ck_assert_double_eq(many.r[r].loss, one.r[0].loss);
    ck_assert_double_eq(many.r[r].grad_norm, one.r[0].grad_norm);
    ck_assert_uint_eq(many.r[r].n_sup, one.r[0].n_sup);
    compare_scenes(one.s[0], many.s[r], "ranks");
    scene_free(many.s[r]);
  }
  scene_free(one.s[0]);
}

START_TEST(ranks_give_the_bits_of_one) { compare_ranks("tiny/tiny-qwen3.gguf", (size_t)_i, false); }
END_TEST

START_TEST(ranks_and_a_part_without_gradient) { compare_ranks("tiny/tiny-qwen3.gguf", 2, true); }
END_TEST

START_TEST(no_family_depends_on_ranks) { compare_ranks(families[_i], 2, false); }
END_TEST

/* Rank 1 cannot run its share; nobody's cartridges move. */
START_TEST(an_error_of_one_rank_moves_nothing) {
  rank_steps t = { 0 };
  scene *twin = scene_new("tiny/tiny-qwen3.gguf", 1);
  for (size_t r = 0; r < 2; r++) t.s[r] = scene_new("tiny/tiny-qwen3.gguf", 1);
  for (size_t i = 0; i < N_CONVS; i++) t.s[1]->conv[i].tokens.data[0] = -1;
  run_ranks(2, steps_of_rank, &t);
  for (size_t r = 0; r < 2; r++) {
    ck_assert_int_eq(t.rc[r], FL_EINPUT);
    ck_assert_msg(strncmp(t.err[r].text, "rank 1: ", 8) == 0, "%s", t.err[r].text);
    for (size_t i = 0; i < N_CARTS; i++) {
      ck_assert(rows_equal(&t.s[r]->cart[i].rows, &twin->cart[i].rows));
      ck_assert_uint_eq(t.s[r]->cart[i].steps, 0);
    }
    scene_free(t.s[r]);
  }
  scene_free(twin);
}
END_TEST

/* --- who steps, how far ----------------------------------------------------------------------- */

START_TEST(only_visible_cartridges_step) {
  scene *s = scene_new("tiny/tiny-qwen3.gguf", 1);
  const fl_stepper_limits l = some_limits();
  fl_stepper *st = stepper(&s->r, &l);
  const fl_step_options o = { .rate.lr = 1e-2, .pack = true };
  fl_cartridge before = born(&s->r, 13, 0, 21);
  fl_step_result r;
  ck_assert(rows_equal(&before.rows, &s->cart[1].rows));
  ck_assert_int_eq(fl_step(st, s->trainee, N_CARTS, s->step_conv, 4, &o, &r, NULL), FL_OK);
  ck_assert_uint_eq(s->cart[0].steps, 1);
  ck_assert_uint_eq(s->cart[1].steps, 0); /* seen by the fifth conversation only */
  ck_assert_uint_eq(s->cart[2].steps, 1);
  ck_assert_uint_eq(s->adam[1].step, 0);
  ck_assert(rows_equal(&before.rows, &s->cart[1].rows));
  ck_assert_int_eq(fl_step(st, s->trainee, N_CARTS, s->step_conv, N_CONVS, &o, &r, NULL), FL_OK);
  ck_assert_uint_eq(s->cart[1].steps, 1);
  ck_assert(!rows_equal(&before.rows, &s->cart[1].rows));
  fl_cartridge_release(&before);
  fl_stepper_free(st);
  scene_free(s);
}
END_TEST

/* The norm over all is the root of the sum of squares; clipping bounds each cartridge's by itself
 * and leaves the direction. */
START_TEST(clipping_bounds_each_cartridge) {
  scene *s = scene_new("tiny/tiny-qwen3.gguf", 1);
  const fl_stepper_limits l = some_limits();
  fl_stepper *st = stepper(&s->r, &l);
  double norm[N_CARTS], sum = 0, clip;
  fl_step_result r;
  ck_assert_int_eq(fl_step_grad(st, s->trainee, N_CARTS, s->step_conv, N_CONVS, &r, NULL), FL_OK);
  for (size_t i = 0; i < N_CARTS; i++) {
    norm[i] = fl_rows_norm(&s->grad[i]);
    sum += norm[i] * norm[i];
  }
  ck_assert_double_eq_tol(r.grad_norm, sqrt(sum), 1e-12 * sqrt(sum));
  clip = 0.5 * fmin(norm[0], fmin(norm[1], norm[2])) + 0.5 * fmax(norm[0], fmax(norm[1], norm[2]));
  const fl_step_options o = { .rate.lr = 1e-2, .clip = clip, .pack = true };
  ck_assert_int_eq(fl_step(st, s->trainee, N_CARTS, s->step_conv, N_CONVS, &o, &r, NULL), FL_OK);
  ck_assert_double_eq_tol(r.grad_norm, sqrt(sum), 1e-12 * sqrt(sum)); /* as it was before */
  for (size_t i = 0; i < N_CARTS; i++) /* one f32 rounding of each value */
    ck_assert_double_eq_tol(fl_rows_norm(&s->grad[i]), fmin(norm[i], clip), 1e-6 * norm[i]);
  fl_stepper_free(st);
  scene_free(s);
}
END_TEST

START_TEST(a_part_without_gradient_is_context) {
  scene *s = scene_new("tiny/tiny-qwen3.gguf", 1), *whole = scene_new("tiny/tiny-qwen3.gguf", 1);
  const fl_stepper_limits l = some_limits();
  fl_stepper *st = stepper(&s->r, &l);
  fl_step_result r, w;
  s->trainee[1].grad = NULL;
  ck_assert_int_eq(fl_step_grad(st, s->trainee, N_CARTS, s->step_conv, N_CONVS, &r, NULL), FL_OK);
  fl_stepper_free(st);
  st = stepper(&whole->r, &l);
  ck_assert_int_eq(fl_step_grad(st, whole->trainee, N_CARTS, whole->step_conv, N_CONVS, &w, NULL),
                   FL_OK);
  ck_assert_double_eq(r.loss, w.loss);
  ck_assert(rows_equal(&s->grad[0], &whole->grad[0]));
  ck_assert(rows_equal(&s->grad[2], &whole->grad[2]));
  ck_assert_double_eq(fl_rows_norm(&s->grad[1]), 0);
  fl_stepper_free(st);
  scene_free(s);
  scene_free(whole);
}
END_TEST

/* --- refusals --------------------------------------------------------------------------------- */

static int one_step(scene *s, fl_stepper *st) {
  const fl_step_options o = { .rate.lr = 1e-2, .pack = true };
  fl_step_result r;
  fl_err err = { 0 };
  int rc = fl_step(st, s->trainee, N_CARTS, s->step_conv, N_CONVS, &o, &r, &err);
  ck_assert(rc == FL_OK || err.text[0]);
  return rc;
}

START_TEST(what_does_not_fit_is_refused) {
  scene *s = scene_new("tiny/tiny-qwen3.gguf", 1);
  const fl_stepper_limits good = some_limits();
  for (int i = 0; i < 5; i++) {
    fl_stepper_limits l = good;
    if (i == 0) l.max_convs = N_CONVS - 1;
    if (i == 1) l.max_conv_rows = 25;
    if (i == 2) l.max_sup = 15;
    if (i == 3) l.max_prefix = 80;
    if (i == 4) l.max_parts = 2;
    fl_stepper *st = stepper(&s->r, &l);
    ck_assert_int_eq(one_step(s, st), FL_EINPUT);
    ck_assert_uint_eq(s->cart[0].steps, 0);
    fl_stepper_free(st);
  }
  fl_stepper_limits l = good;
  fl_stepper *none = NULL;
  l.max_sup = 0;
  ck_assert_int_eq(fl_stepper_new(&none, s->r.m, s->r.team, &l, NULL), FL_EUSAGE);
  ck_assert_ptr_null(none);
  scene_free(s);
}
END_TEST

START_TEST(damaged_conversations_are_refused) {
  scene *s = scene_new("tiny/tiny-qwen3.gguf", 1);
  const fl_stepper_limits l = some_limits();
  fl_stepper *st = stepper(&s->r, &l);
  fl_conv *c = &s->conv[2];
  const uint32_t sup = c->sup[3], first = c->targets.first[2];
  const int32_t id = c->targets.id[5];
  c->sup[3] = (uint32_t)c->tokens.len;
  ck_assert_int_eq(one_step(s, st), FL_EINPUT);
  c->sup[3] = c->sup[2];
  ck_assert_int_eq(one_step(s, st), FL_EINPUT);
  c->sup[3] = sup;
  c->targets.id[5] = -1;
  ck_assert_int_eq(one_step(s, st), FL_EINPUT);
  c->targets.id[5] = (int32_t)s->r.hp->n_vocab;
  ck_assert_int_eq(one_step(s, st), FL_EINPUT);
  c->targets.id[5] = id;
  c->targets.first[2] = c->targets.first[1];
  ck_assert_int_eq(one_step(s, st), FL_EINPUT);
  c->targets.first[2] = first;
  ck_assert_int_eq(one_step(s, st), FL_OK);
  fl_stepper_free(st);
  scene_free(s);
}
END_TEST

START_TEST(a_loss_that_is_not_finite_changes_nothing) {
  scene *s = scene_new("tiny/tiny-qwen3.gguf", 1), *twin = scene_new("tiny/tiny-qwen3.gguf", 1);
  const fl_stepper_limits l = some_limits();
  fl_stepper *st = stepper(&s->r, &l);
  s->conv[1].targets.prob[3] = INFINITY;
  ck_assert_int_eq(one_step(s, st), FL_EFAIL);
  for (size_t i = 0; i < N_CARTS; i++) {
    ck_assert(rows_equal(&s->cart[i].rows, &twin->cart[i].rows));
    ck_assert_uint_eq(s->cart[i].steps, 0);
  }
  fl_stepper_free(st);
  scene_free(s);
  scene_free(twin);
}
END_TEST

Suite *suite_step(void);
Suite *suite_step(void) {
  Suite *s = suite_create("step");
  TCase *core = tcase_create("core"), *errors = tcase_create("errors");
  tcase_set_timeout(core, 120);
  tcase_set_timeout(errors, 60);
  tcase_add_loop_test(core, no_way_of_running_changes_a_bit, 0, N_VARIANTS);
  tcase_add_loop_test(core, no_way_of_running_changes_a_bit_embedded, 0, N_VARIANTS);
  tcase_add_loop_test(core, no_family_depends_on_packing_or_recomputing, 0, N_FAMILIES);
  tcase_add_loop_test(core, ranks_give_the_bits_of_one, 2, 7);
  tcase_add_loop_test(core, no_family_depends_on_ranks, 0, N_FAMILIES);
  tcase_add_test(core, ranks_and_a_part_without_gradient);
  tcase_add_test(core, only_visible_cartridges_step);
  tcase_add_test(core, clipping_bounds_each_cartridge);
  tcase_add_test(core, a_part_without_gradient_is_context);
  tcase_add_test(errors, what_does_not_fit_is_refused);
  tcase_add_test(errors, damaged_conversations_are_refused);
  tcase_add_test(errors, an_error_of_one_rank_moves_nothing);
  tcase_add_test(errors, a_loss_that_is_not_finite_changes_nothing);
  suite_add_tcase(s, core);
  suite_add_tcase(s, errors);
  return s;
}
