/* step_util.h - what the tests of the training step take a step on: cartridges and conversations
 * without a teacher. */
#ifndef FL_TESTSUITE_STEP_UTIL_H
#define FL_TESTSUITE_STEP_UTIL_H

#include "cart_util.h"
#include "train/step.h"

/* n_tokens drawn ids, every row from `first_sup` on supervised with 1..4 made-up entries. */
static inline fl_conv some_conv(const rig *r, size_t n_tokens, size_t first_sup, uint32_t stream) {
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
static inline fl_cartridge born(const rig *r, size_t n, size_t frozen, uint32_t stream) {
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
  fl_trainable trainee[N_CARTS];
  fl_conv conv[N_CONVS];
  fl_step_conv step_conv[N_CONVS];
} scene;

static inline scene *scene_new(const char *model, unsigned threads) {
  static const size_t only_0[] = { 0 }, two_0[] = { 2, 0 }, zero_2[] = { 0, 2 };
  static const size_t all_three[] = { 1, 0, 2 };
  static const size_t rows[N_CARTS] = { 40, 13, 33 }, frozen[N_CARTS] = { 1, 0, 2 };
  static const size_t *const parts[N_CONVS] = { only_0, two_0, only_0, zero_2, all_three };
  static const size_t n_parts[N_CONVS] = { 1, 2, 1, 2, 3 };
  scene *s = fl_calloc(1, sizeof *s);
  s->r = rig_open(model, threads);
  for (size_t i = 0; i < N_CARTS; i++) {
    s->cart[i] = born(&s->r, rows[i], frozen[i], 20 + (uint32_t)i);
    ck_assert_int_eq(fl_adam_init(&s->adam[i], s->r.hp, &s->cart[i], NULL), FL_OK);
    ck_assert_int_eq(fl_cart_grad_init(&s->grad[i], s->r.hp, &s->cart[i], NULL), FL_OK);
    s->trainee[i] = (fl_trainable){ &s->cart[i], &s->adam[i], &s->grad[i] };
  }
  for (size_t i = 0; i < N_CONVS; i++) {
    s->conv[i] = some_conv(&s->r, 12 + 4 * i, 4, (uint32_t)i);
    s->step_conv[i] = (fl_step_conv){ &s->conv[i], parts[i], n_parts[i] };
  }
  return s;
}

static inline void scene_free(scene *s) {
  for (size_t i = 0; i < N_CARTS; i++) {
    fl_cartridge_release(&s->cart[i]);
    fl_adam_release(&s->adam[i]);
    fl_rows_release(&s->grad[i]);
  }
  for (size_t i = 0; i < N_CONVS; i++) fl_conv_release(&s->conv[i]);
  rig_close(&s->r);
  fl_free(s);
}

static inline fl_stepper_limits some_limits(void) {
  return (fl_stepper_limits){ .max_convs = N_CONVS,
                              .max_conv_rows = 40,
                              .max_sup = 120,
                              .max_prefix = 100,
                              .max_parts = N_CARTS,
                              .pack = true };
}

static inline fl_stepper *stepper(const rig *r, const fl_stepper_limits *l) {
  fl_stepper *s;
  fl_err err = { 0 };
  ck_assert_msg(fl_stepper_new(&s, r->m, r->team, l, &err) == FL_OK, "%s", err.text);
  return s;
}

#endif
