/* shard.h - which rank runs which conversation of a step, and how their gradients become one sum.
 * Private to this folder.
 *
 * The gradient of a cartridge is the sum of what its conversations give, added one after the other
 * in the order of the step. A process that is alone lets the pass add them up in place. Of several
 * ranks each keeps the contributions of its own conversations apart: that order is kept only where
 * nothing was added before. The first one a rank has for a cartridge takes the place of the
 * gradient itself, so with as many ranks as conversations no memory is needed beside it.
 */
#ifndef FL_TRAIN_SHARD_H
#define FL_TRAIN_SHARD_H

#include "train/step.h"

typedef struct fl_shard {
  fl_dist *dist;
  size_t max_convs, max_parts;
  size_t *owner; /* [max_convs] rank of each conversation */
  size_t *local; /* [max_convs] this rank's, ascending */
  size_t n_local;
  double *loss; /* [max_convs] sum of a conversation's losses */
  /* What follows is empty for a process that is alone. */
  double *all_loss;    /* [ranks, max_convs] */
  size_t *load;        /* [ranks] */
  fl_rows *own_grad;   /* [max_convs, max_parts] contributions beside the gradients */
  bool *in_place;      /* [trainables] the gradient holds a contribution */
  const float **block; /* [max_convs] */
  size_t *block_owner; /* [max_convs] */
  float *scratch;      /* [FL_DIST_PIECE] */
} fl_shard;

int fl_shard_init(fl_shard *s, fl_dist *dist, size_t max_convs, size_t max_parts, fl_err *err);
void fl_shard_release(fl_shard *s);

/* Sets owner and local: the long ones first, each to the rank with the least to do. Without
 * `spread` all are this rank's. */
void fl_shard_plan(fl_shard *s, const fl_step_conv *convs, size_t n, bool spread);
/* Makes room for what this rank's conversations give; FL_ENOMEM. fl_shard_drop gives it back. */
int fl_shard_room(fl_shard *s, const fl_trainable *trainables, size_t n_trainees,
                  const fl_step_conv *convs, fl_err *err);
void fl_shard_drop(fl_shard *s);
/* Where conversation conv's contribution to its k-th part is added (zeroed); NULL: not trained. */
fl_rows *fl_shard_grad(const fl_shard *s, const fl_trainable *trainables, const fl_step_conv *convs,
                       size_t conv, size_t k);
/* After the ranks' own passes, rc telling how they went: loss [n] of all, and the gradients summed.
 * Without FL_OK nothing is to be done with either. */
int fl_shard_collect(fl_shard *s, const fl_kernels *kern, int rc, const fl_trainable *trainables,
                     size_t n_trainees, const fl_step_conv *convs, size_t n, fl_err *err);

#endif
