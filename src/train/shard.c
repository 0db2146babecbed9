/* shard.c - see shard.h. */
#include "train/shard.h"

#include <string.h>

#include "base/mem.h"

static bool alone(const fl_shard *s) { return fl_dist_count(s->dist) == 1; }

int fl_shard_init(fl_shard *s, fl_dist *dist, size_t max_convs, size_t max_parts, fl_err *err) {
  const size_t ranks = fl_dist_count(dist);
  size_t n_losses, n_own_grads;
  if (!fl_mul_size(ranks, max_convs, &n_losses) || !fl_mul_size(max_convs, max_parts, &n_own_grads))
    return fl_fail(err, FL_ENOMEM, "too many conversations in a step; lower --accum");
  *s = (fl_shard){ .dist = dist, .max_convs = max_convs, .max_parts = max_parts };
  s->owner = fl_calloc(max_convs, sizeof *s->owner);
  s->local = fl_calloc(max_convs, sizeof *s->local);
  s->loss = fl_calloc(max_convs, sizeof *s->loss);
  bool ok = s->owner && s->local && s->loss;
  if (ranks > 1) {
    s->all_loss = fl_calloc(n_losses, sizeof *s->all_loss);
    s->load = fl_calloc(ranks, sizeof *s->load);
    s->own_grad = fl_calloc(n_own_grads, sizeof *s->own_grad);
    s->block = fl_calloc(max_convs, sizeof *s->block);
    s->block_owner = fl_calloc(max_convs, sizeof *s->block_owner);
    s->scratch = fl_aligned_calloc(FL_DIST_PIECE, sizeof *s->scratch);
    ok = ok && s->all_loss && s->load && s->own_grad && s->block && s->block_owner && s->scratch;
  }
  return ok ? FL_OK : fl_fail(err, FL_ENOMEM, "out of memory for a training step; lower --accum");
}

void fl_shard_release(fl_shard *s) {
  fl_shard_drop(s);
  fl_free(s->owner);
  fl_free(s->local);
  fl_free(s->loss);
  fl_free(s->all_loss);
  fl_free(s->load);
  fl_free(s->own_grad);
  fl_free(s->in_place);
  fl_free(s->block);
  fl_free(s->block_owner);
  fl_free(s->scratch);
  *s = (fl_shard){ 0 };
}

/* --- who runs what ------------------------------------------------------------------------- */

/* In rows: a supervised one goes through the head as well. */
static size_t cost_of(const fl_step_conv *c) {
  return c->conv->tokens.len + c->conv->targets.n_rows;
}

static size_t least_loaded(const fl_shard *s) {
  size_t best = 0;
  for (size_t r = 1; r < fl_dist_count(s->dist); r++)
    if (s->load[r] < s->load[best]) best = r;
  return best;
}

static void share_out(fl_shard *s, const fl_step_conv *convs, size_t n) {
  const size_t ranks = fl_dist_count(s->dist);
  memset(s->load, 0, ranks * sizeof *s->load);
  for (size_t i = 0; i < n; i++) s->owner[i] = ranks; /* nobody's yet */
  for (size_t k = 0; k < n; k++) {
    size_t next = n;
    for (size_t i = 0; i < n; i++)
      if (s->owner[i] == ranks && (next == n || cost_of(&convs[i]) > cost_of(&convs[next])))
        next = i;
    s->owner[next] = least_loaded(s);
    s->load[s->owner[next]] += cost_of(&convs[next]);
  }
}

void fl_shard_plan(fl_shard *s, const fl_step_conv *convs, size_t n, bool spread) {
  const size_t rank = fl_dist_rank(s->dist);
  for (size_t i = 0; i < n; i++) s->owner[i] = rank;
  if (spread && !alone(s)) share_out(s, convs, n);
  s->n_local = 0;
  for (size_t i = 0; i < n; i++)
    if (s->owner[i] == rank) s->local[s->n_local++] = i;
}

/* --- where contributions go ---------------------------------------------------------------- */

int fl_shard_room(fl_shard *s, const fl_trainable *trainables, size_t n_trainees,
                  const fl_step_conv *convs, fl_err *err) {
  int rc = FL_OK;
  if (alone(s)) return FL_OK;
  bool *taken = fl_reallocarray(s->in_place, n_trainees + 1, sizeof *taken);
  if (!taken) return fl_fail(err, FL_ENOMEM, "out of memory for a training step; lower --accum");
  s->in_place = taken;
  memset(taken, 0, n_trainees * sizeof *taken);
  for (size_t m = 0; rc == FL_OK && m < s->n_local; m++) {
    const size_t i = s->local[m];
    for (size_t k = 0; rc == FL_OK && k < convs[i].n_parts; k++) {
      const size_t t = convs[i].parts[k];
      const fl_rows *g = trainables[t].grad;
      if (g && taken[t]) rc = fl_rows_like(&s->own_grad[i * s->max_parts + k], g, g->n_rows, err);
      taken[t] = true;
    }
  }
  return rc;
}

void fl_shard_drop(fl_shard *s) {
  for (size_t i = 0; s->own_grad && i < s->max_convs * s->max_parts; i++)
    fl_rows_release(&s->own_grad[i]);
}

fl_rows *fl_shard_grad(const fl_shard *s, const fl_trainable *trainables, const fl_step_conv *convs,
                       size_t conv, size_t k) {
  fl_rows *own = s->own_grad ? &s->own_grad[conv * s->max_parts + k] : NULL;
  return own && own->block ? own : trainables[convs[conv].parts[k]].grad;
}

/* --- one sum ------------------------------------------------------------------------------- */

static int sum_one(fl_shard *s, const fl_kernels *kern, const fl_trainable *trainables, size_t t,
                   const fl_step_conv *convs, size_t n, fl_err *err) {
  const fl_rows *sum = trainables[t].grad;
  size_t n_blocks = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < convs[i].n_parts; k++) {
      if (convs[i].parts[k] != t) continue;
      s->block[n_blocks] = fl_shard_grad(s, trainables, convs, i, k)->block;
      s->block_owner[n_blocks++] = s->owner[i];
      break;
    }
  if (n_blocks == 0) return FL_OK;
  return fl_dist_sum(s->dist, kern, sum->block, s->block, s->block_owner, n_blocks, sum->n_values,
                     s->scratch, err);
}

int fl_shard_collect(fl_shard *s, const fl_kernels *kern, int rc, const fl_trainable *trainables,
                     size_t n_trainees, const fl_step_conv *convs, size_t n, fl_err *err) {
  if (alone(s)) return rc;
  rc = fl_dist_gather(s->dist, "step", rc, s->all_loss, s->loss, n * sizeof *s->loss, err);
  for (size_t i = 0; rc == FL_OK && i < n; i++) s->loss[i] = s->all_loss[s->owner[i] * n + i];
  for (size_t t = 0; rc == FL_OK && t < n_trainees; t++)
    if (trainables[t].grad) rc = sum_one(s, kern, trainables, t, convs, n, err);
  return rc;
}
