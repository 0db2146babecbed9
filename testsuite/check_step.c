/* check_step.c - the training step: against torch, against differences, and against itself in every
 * way it can be cut up. */
#include "cart_util.h"
#include "dist_util.h"
#include "base/scratch.h"
#include "train/step.h"

/* --- conversations and cartridges without a teacher ------------------------------------------- */

/* n_tokens drawn ids, every row from `first_sup` on supervised with 1..4 made-up entries. */
static fl_conv some_conv(const rig *r, size_t n_tokens, size_t first_sup, uint32_t stream) {
  fl_rng rng = fl_rng_stream(13, FL_RNG_TEST, stream, 0, 0);
  fl_conv c = { 0 };
  for (size_t i = 0; i < n_tokens; i++)
    fl_ids_push(&c.tokens, (int32_t)fl_rng_below(&rng, r->hp->n_vocab));
  fl_targets *t = &c.targets;
  t->n_rows = n_tokens - 1 - first_sup;
  t->first = fl_calloc(t->n_rows + 1, sizeof *t->first);
  t->id = fl_calloc(4 * t->n_rows, sizeof *t->id);
  t->prob = fl_calloc(4 * t->n_rows, sizeof *t->prob);
  c.sup = fl_calloc(t->n_rows, sizeof *c.sup);
  for (size_t i = 0; i < t->n_rows; i++) {
    const uint32_t n = 1 + (uint32_t)(i % 4);
    c.sup[i] = (uint32_t)(first_sup + i);
    t->first[i + 1] = t->first[i] + n;
    for (uint32_t e = t->first[i]; e < t->first[i + 1]; e++) {
      t->id[e] = (int32_t)fl_rng_below(&rng, r->hp->n_vocab);
      t->prob[e] = (float)(0.9 * fl_rng_unit(&rng) / n);
    }
  }
  return c;
}

/* Rows as the model would make them: drawn ones give saturated attention. */
static fl_cartridge born(const rig *r, size_t n, size_t frozen, uint32_t stream) {
  int32_t ids[128];
  fl_cartridge c;
  size_t last;
  fl_kv_pool *pool = rig_pool(r, FL_KV_F32);
  fl_seq *seq = rig_seq(pool);
  fl_pass *p = rig_pass(r, (fl_pass_options){ .max_rows = 128, .max_spans = 1 });
  some_ids(ids, n, r->hp->n_vocab, stream);
  ck_assert_int_eq(fl_pass_prefill(p, seq, ids, n, &last, NULL), FL_OK);
  ck_assert_int_eq(fl_cartridge_capture(&c, r->hp, seq, 0, n, frozen, NULL), FL_OK);
  fl_pass_free(p);
  fl_seq_free(seq);
  fl_kv_pool_free(pool);
  return c;
}

enum { N_CARTS = 3, N_CONVS = 5 };

/* Three cartridges, five conversations: two share a prefix, two have theirs in another order. */
typedef struct scene {
  rig r;
  fl_cartridge cart[N_CARTS];
  fl_adam adam[N_CARTS];
  fl_rows grad[N_CARTS];
  fl_trainee trainee[N_CARTS];
  fl_conv conv[N_CONVS];
  fl_step_conv step_conv[N_CONVS];
} scene;

static const size_t only_0[] = { 0 }, two_0[] = { 2, 0 }, zero_2[] = { 0, 2 };
static const size_t all_three[] = { 1, 0, 2 };

static scene *scene_new(const char *model, unsigned threads) {
  static const size_t rows[N_CARTS] = { 40, 13, 33 }, frozen[N_CARTS] = { 1, 0, 2 };
  static const size_t *const parts[N_CONVS] = { only_0, two_0, only_0, zero_2, all_three };
  static const size_t n_parts[N_CONVS] = { 1, 2, 1, 2, 3 };
  scene *s = fl_calloc(1, sizeof *s);
  s->r = rig_open(model, threads);
  for (size_t i = 0; i < N_CARTS; i++) {
    s->cart[i] = born(&s->r, rows[i], frozen[i], 20 + (uint32_t)i);
    ck_assert_int_eq(fl_adam_init(&s->adam[i], s->r.hp, &s->cart[i], NULL), FL_OK);
    ck_assert_int_eq(fl_cart_grad_init(&s->grad[i], s->r.hp, &s->cart[i], NULL), FL_OK);
    s->trainee[i] = (fl_trainee){ &s->cart[i], &s->adam[i], &s->grad[i] };
  }
  for (size_t i = 0; i < N_CONVS; i++) {
    s->conv[i] = some_conv(&s->r, 12 + 4 * i, 4, (uint32_t)i);
    s->step_conv[i] = (fl_step_conv){ &s->conv[i], parts[i], n_parts[i] };
  }
  return s;
}

static void scene_free(scene *s) {
  for (size_t i = 0; i < N_CARTS; i++) {
    fl_cartridge_release(&s->cart[i]);
    fl_adam_release(&s->adam[i]);
    fl_rows_release(&s->grad[i]);
  }
  for (size_t i = 0; i < N_CONVS; i++) fl_conv_release(&s->conv[i]);
  rig_close(&s->r);
  fl_free(s);
}

static fl_stepper_limits some_limits(void) {
  return (fl_stepper_limits){ .max_convs = N_CONVS, .max_conv_rows = 40, .max_sup = 120,
                              .max_prefix = 100, .max_parts = N_CARTS, .pack = true };
}

static fl_stepper *stepper(const rig *r, const fl_stepper_limits *l) {
  fl_stepper *s;
  fl_err err = { 0 };
  ck_assert_msg(fl_stepper_new(&s, r->m, r->team, l, &err) == FL_OK, "%s", err.text);
  return s;
}

/* --- golden: torch ---------------------------------------------------------------------------- */

typedef struct golden {
  rig r;
  fl_safetensors *st;
  fl_cartridge cart;
  fl_rows grad;
  fl_conv conv;
  size_t per_layer, all;
} golden;

static void golden_rows(const golden *g, fl_rows *to, const char *k, const char *v) {
  const float *gk = golden_f32(g->st, k, g->all), *gv = golden_f32(g->st, v, g->all);
  for (size_t l = 0; l < to->n_layers; l++) {
    memcpy(to->k[l], gk + l * g->per_layer, g->per_layer * sizeof *gk);
    memcpy(to->v[l], gv + l * g->per_layer, g->per_layer * sizeof *gv);
  }
}

static fl_conv golden_conv(const fl_safetensors *st) {
  fl_conv c = { 0 };
  size_t n, n_sup, n_top;
  const int32_t *ids = golden_i32(st, "conv_ids", &n);
  fl_ids_append(&c.tokens, ids, n);
  const int32_t *sup = golden_i32(st, "conv_sup", &n_sup);
  const int32_t *top = golden_i32(st, "top_ids", &n_top);
  const float *prob = golden_f32(st, "top_prob", n_top);
  const size_t k = n_top / n_sup;
  fl_targets *t = &c.targets;
  t->n_rows = n_sup;
  t->first = fl_calloc(n_sup + 1, sizeof *t->first);
  t->id = fl_calloc(n_top, sizeof *t->id);
  t->prob = fl_calloc(n_top, sizeof *t->prob);
  c.sup = fl_calloc(n_sup, sizeof *c.sup);
  uint32_t at = 0;
  for (size_t i = 0; i < n_sup; i++) {
    c.sup[i] = (uint32_t)sup[i];
    for (size_t e = i * k; e < (i + 1) * k; e++) {
      if (prob[e] == 0) continue; /* past the mass */
      t->id[at] = top[e];
      t->prob[at++] = prob[e];
    }
    t->first[i + 1] = at;
  }
  return c;
}

static golden *golden_new(size_t frozen) {
  enum { P = 48 };
  golden *g = fl_calloc(1, sizeof *g);
  g->r = rig_open("embedded/model.gguf", 2);
  ck_assert_int_eq(fl_safetensors_open(&g->st, fixture("embedded/goldens.safetensors"), NULL),
                   FL_OK);
  g->cart.frozen = frozen;
  ck_assert_int_eq(fl_rows_init(&g->cart.rows, g->r.hp, P, NULL), FL_OK);
  g->per_layer = P * g->cart.rows.width[0];
  g->all = g->cart.rows.n_layers * g->per_layer;
  golden_rows(g, &g->cart.rows, "K0", "V0");
  ck_assert_int_eq(fl_cart_grad_init(&g->grad, g->r.hp, &g->cart, NULL), FL_OK);
  g->conv = golden_conv(g->st);
  return g;
}

static void golden_free(golden *g) {
  fl_cartridge_release(&g->cart);
  fl_rows_release(&g->grad);
  fl_conv_release(&g->conv);
  fl_safetensors_close(g->st);
  rig_close(&g->r);
  fl_free(g);
}

static fl_stepper *golden_stepper(const golden *g) {
  const fl_stepper_limits l = { .max_convs = 1, .max_conv_rows = 64, .max_sup = 16,
                                .max_prefix = 48, .max_parts = 1, .pack = true };
  return stepper(&g->r, &l);
}

/* The whole way through four layers and back in f32 with other orders of summation: about 1e-5 of
 * the largest gradient of a layer (torch differs from itself by that much between thread counts);
 * 1e-4 is asked for. The loss is a mean of 12 rows of about 20 terms: 1e-5 relative. */
static void compare_layer(const char *name, size_t l, const float *got, const float *want,
                          size_t n) {
  float most = 0, off = 0;
  for (size_t i = 0; i < n; i++) most = fmaxf(most, fabsf(want[i]));
  for (size_t i = 0; i < n; i++) off = fmaxf(off, fabsf(got[i] - want[i]));
  ck_assert_msg(off <= 1e-4f * most, "%s layer %zu: off by %g of %g", name, l, (double)off,
                (double)most);
}

START_TEST(first_gradient_agrees_with_torch) {
  golden *g = golden_new(0); /* the golden gradient includes row 0 */
  fl_stepper *s = golden_stepper(g);
  const size_t part = 0;
  fl_trainee t = { .cart = &g->cart, .grad = &g->grad };
  const fl_step_conv c = { &g->conv, &part, 1 };
  fl_step_result r;
  fl_err err = { 0 };
  ck_assert_msg(fl_step_grad(s, &t, 1, &c, 1, &r, &err) == FL_OK, "%s", err.text);
  const float *losses = golden_f32(g->st, "losses", 4);
  ck_assert_double_eq_tol(r.loss, losses[0], 1e-5 * losses[0]);
  ck_assert_uint_eq(r.n_sup, 12);
  ck_assert_uint_eq(r.n_rows, 32); /* the end of turn itself decides nothing */
  const float *gk = golden_f32(g->st, "gradK", g->all), *gv = golden_f32(g->st, "gradV", g->all);
  for (size_t l = 0; l < g->grad.n_layers; l++) {
    compare_layer("dK", l, g->grad.k[l], gk + l * g->per_layer, g->per_layer);
    compare_layer("dV", l, g->grad.v[l], gv + l * g->per_layer, g->per_layer);
  }
  fl_stepper_free(s);
  golden_free(g);
}
END_TEST

/* Adam's first step is lr * g / (|g| + 1e-8): where |g| is not large against the gradient's own
 * error e (1e-5 of the largest, see above) the step is known only within lr * e / |g|. Each value
 * may be off by 1e-4 of lr, plus that, at most by the whole way 2 lr a step; a wrong beta, bias or
 * eps moves all of them by more than 1e-2 lr. Over three steps of like gradients the errors add. */
static void compare_moved(const golden *g, const fl_rows *got, const char *name, const float *start,
                          const float *grad, const float *want, bool keys, double lr,
                          double steps) {
  size_t n_tight = 0;
  for (size_t l = 0; l < got->n_layers; l++) {
    const float *x = keys ? got->k[l] : got->v[l];
    const size_t at = l * g->per_layer, row = got->width[l];
    float most = 0;
    for (size_t i = 0; i < g->per_layer; i++) most = fmaxf(most, fabsf(grad[at + i]));
    for (size_t i = 0; i < g->per_layer; i++) {
      if (i < row) { /* the frozen row */
        ck_assert(x[i] == start[at + i]);
        continue;
      }
      const double unsure = 1e-5 * (double)most / fmax(fabs((double)grad[at + i]), 1e-30);
      const double tol =
          steps * lr * fmin(1e-4 + 3 * unsure, 2) + 1e-6 * fabs((double)start[at + i]);
      n_tight += unsure < 1e-3;
      ck_assert_msg(fabs((double)x[i] - (double)want[at + i]) <= tol, "%s layer %zu value %zu: %g, "
                    "torch %g, from %g by gradient %g", name, l, i, (double)x[i],
                    (double)want[at + i], (double)start[at + i], (double)grad[at + i]);
    }
  }
  ck_assert_uint_gt(n_tight, g->all / 4); /* the tolerance says something for many */
}

START_TEST(three_steps_agree_with_torch) {
  golden *g = golden_new(1);
  fl_stepper *s = golden_stepper(g);
  fl_adam adam;
  const size_t part = 0;
  ck_assert_int_eq(fl_adam_init(&adam, g->r.hp, &g->cart, NULL), FL_OK);
  fl_trainee t = { &g->cart, &adam, &g->grad };
  const fl_step_conv c = { &g->conv, &part, 1 };
  const double lr = golden_f32(g->st, "lr", 1)[0];
  const fl_step_options o = { .rate.lr = lr, .pack = true };
  const float *losses = golden_f32(g->st, "losses", 4);
  const float *k0 = golden_f32(g->st, "K0", g->all), *v0 = golden_f32(g->st, "V0", g->all);
  const float *gk = golden_f32(g->st, "gradK", g->all), *gv = golden_f32(g->st, "gradV", g->all);
  fl_step_result r;
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(fl_step(s, &t, 1, &c, 1, &o, &r, NULL), FL_OK);
    /* The movement of uncertain values is of the order of their share of the loss: 1e-4. */
    ck_assert_double_eq_tol(r.loss, losses[i], 1e-4 * losses[i]);
    if (i == 1) continue;
    compare_moved(g, &g->cart.rows, i ? "K3" : "K1", k0, gk,
                  golden_f32(g->st, i ? "K3" : "K1", g->all), true, lr, i + 1);
    compare_moved(g, &g->cart.rows, i ? "V3" : "V1", v0, gv,
                  golden_f32(g->st, i ? "V3" : "V1", g->all), false, lr, i + 1);
  }
  ck_assert_int_eq(fl_step_eval(s, &t, 1, &c, 1, &r, NULL), FL_OK);
  ck_assert_double_eq_tol(r.loss, losses[3], 1e-4 * losses[3]);
  ck_assert_uint_eq(g->cart.steps, 3);
  fl_adam_release(&adam);
  fl_stepper_free(s);
  golden_free(g);
}
END_TEST

/* --- differences ------------------------------------------------------------------------------ */

static double loss_at(fl_stepper *st, scene *s, float *x, float value) {
  const float kept = *x;
  fl_step_result r;
  *x = value;
  ck_assert_int_eq(fl_step_eval(st, s->trainee, N_CARTS, s->step_conv, N_CONVS, &r, NULL), FL_OK);
  *x = kept;
  return r.loss;
}

static size_t largest(const float *g, size_t n) {
  size_t at = 0;
  for (size_t i = 1; i < n; i++)
    if (fabsf(g[i]) > fabsf(g[at])) at = i;
  return at;
}

/* Gradients here are 1e-4 to 1e-2. The loss is computed in f32 through the model: a row's is off by
 * about 1e-6 at a value of 6, the mean of 75 by 1.2e-7, a difference over 2h = 2e-2 by 1e-5 or so;
 * its truncation is of the order of h^2 = 1e-4 of the gradient. Twice the first is asked for, and
 * 5e-3 of the gradient. A gradient of the wrong row, part or layer is off by its own size. */
static void check_difference(fl_stepper *st, scene *s, size_t cart, size_t l, bool keys, size_t i) {
  fl_rows *rows = &s->cart[cart].rows;
  const size_t skip = s->cart[cart].frozen * rows->width[l];
  float *x = (keys ? rows->k : rows->v)[l] + skip + i;
  const double got = (double)(keys ? s->grad[cart].k : s->grad[cart].v)[l][i];
  const float up = *x + 1e-2f, down = *x - 1e-2f;
  const double want =
      (loss_at(st, s, x, up) - loss_at(st, s, x, down)) / ((double)up - (double)down);
  ck_assert_msg(fabs(got - want) <= 2e-5 + 5e-3 * fabs(got),
                "cartridge %zu layer %zu %s %zu: %g, difference %g", cart, l, keys ? "k" : "v", i,
                got, want);
}

static void check_layer(fl_stepper *st, scene *s, size_t cart, size_t l, fl_rng *rng) {
  const fl_rows *g = &s->grad[cart];
  const size_t width = g->width[l], n = g->n_rows * width;
  for (int keys = 0; keys < 2; keys++) {
    const float *x = keys ? g->k[l] : g->v[l];
    const size_t top = largest(x, n), last = n - width;
    ck_assert_float_gt(fabsf(x[top]), 1e-3f); /* far above the tolerance */
    check_difference(st, s, cart, l, keys, top);
    check_difference(st, s, cart, l, keys, largest(x, width)); /* the first trained row */
    check_difference(st, s, cart, l, keys, last + largest(x + last, width));
    check_difference(st, s, cart, l, keys, (size_t)fl_rng_below(rng, n));
  }
}

START_TEST(composed_gradient_agrees_with_differences) {
  scene *s = scene_new("tiny/tiny-qwen3.gguf", 2);
  const fl_stepper_limits lim = some_limits();
  fl_stepper *st = stepper(&s->r, &lim);
  fl_rng rng = fl_rng_stream(17, FL_RNG_TEST, 0, 0, 0);
  fl_step_result r;
  ck_assert_int_eq(fl_step_grad(st, s->trainee, N_CARTS, s->step_conv, N_CONVS, &r, NULL), FL_OK);
  for (size_t cart = 0; cart < N_CARTS; cart++)
    for (size_t l = 0; l < s->r.hp->n_layers; l++) check_layer(st, s, cart, l, &rng);
  fl_stepper_free(st);
  scene_free(s);
}
END_TEST

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
  void *p = fl_scratch_new(".", 1 << 20);
  fl_scratch_free(p, 1 << 20);
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

START_TEST(no_way_of_running_changes_a_bit) {
  one_variant("tiny/tiny-qwen3.gguf", &variants[_i]);
}
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
  ck_assert_int_eq(
      fl_step_grad(st, whole->trainee, N_CARTS, whole->step_conv, N_CONVS, &w, NULL), FL_OK);
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
  TCase *gold = tcase_create("golden"), *core = tcase_create("core");
  TCase *errors = tcase_create("errors");
  tcase_set_timeout(gold, 60);
  tcase_set_timeout(core, 120);
  tcase_set_timeout(errors, 60);
  tcase_add_test(gold, first_gradient_agrees_with_torch);
  tcase_add_test(gold, three_steps_agree_with_torch);
  tcase_add_test(core, composed_gradient_agrees_with_differences);
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
  suite_add_tcase(s, gold);
  suite_add_tcase(s, core);
  suite_add_tcase(s, errors);
  return s;
}
