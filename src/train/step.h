/* step.h - one optimizer step of a round: several conversations, each behind its visible
 * cartridges.
 *
 * The loss is the mean over the group's supervised positions. The gradient of a cartridge is the
 * sum of its conversations' gradients, in order (fixed, so packing, flat passes and ranks give the
 * same bits). Of several ranks each runs some of the conversations; all get the sum and step alike.
 * Every cartridge that was visible to any conversation takes one Adam step.
 */
#ifndef FL_TRAIN_STEP_H
#define FL_TRAIN_STEP_H

#include <stdbool.h>
#include <stddef.h>

#include "cartridge/adam.h"
#include "cartridge/cartridge.h"
#include "study/study.h"
#include "train/dist.h"

/* One resident cartridge as the trainer sees it; arrays belong to the fleet. */
typedef struct fl_trainable {
  fl_cartridge *cart;
  fl_adam *adam; /* may be NULL where no step is taken (fl_step_grad, fl_step_eval) */
  fl_rows *grad; /* of the trainable rows' shape; without a block: given one for the step,
                         where the cartridge is visible; NULL: a part that is not trained */
} fl_trainable;

typedef struct fl_step_conv {
  const fl_conv *conv;
  const size_t *parts; /* indices of trainables in the order they stand in the prefix */
  size_t n_parts;
} fl_step_conv;

typedef struct fl_step_options {
  fl_rate rate; /* of each cartridge by its own steps */
  double clip;  /* 0: off; global norm per cartridge */
  bool pack;    /* false: one pass per conversation */
} fl_step_options;

typedef struct fl_step_result {
  double loss;      /* nats per supervised position */
  double teacher;   /* what it would be if the student gave the teacher's very probabilities:
                           the entropy of those that were kept */
  double grad_norm; /* L2 over all visible cartridges */
  size_t n_sup, n_rows;
  double student_s, opt_s;
} fl_step_result;

/* Recording pass and scratch, sized at birth. A step whose conversations do not fit one pass goes
 * through several; what cannot fit alone is FL_EINPUT. Not shared between threads. */
typedef struct fl_stepper fl_stepper;
/* For max_pass_rows: what a pass keeps of each row is most of training's memory, and a product of
 * 320 rows is as quick as one of 512. */
enum { FL_STEP_PASS_ROWS = 320 };
typedef struct fl_stepper_limits {
  size_t max_convs;       /* conversations in one step */
  size_t max_conv_rows;   /* tokens of one conversation */
  size_t max_sup;         /* supervised rows of one pass */
  size_t max_prefix;      /* rows of one conversation's cartridges */
  size_t max_parts;       /* cartridges of one conversation */
  fl_positions positions; /* of the cartridges of a conversation that sees several */
  bool checkpoint, pack;  /* pack: a pass takes up to max_convs * max_conv_rows rows, otherwise one
                            conversation */
  size_t max_pass_rows;   /* with pack: a lower limit on a pass (memory); 0: none. Raised to
                            max_conv_rows */
  fl_dist *dist;          /* whose ranks share fl_step and fl_step_grad; NULL: this process alone */
  const char *grad_dir;   /* gradients that a step lends lie in nameless files of this folder;
                            NULL: in memory. Borrowed */
} fl_stepper_limits;

int fl_stepper_new(fl_stepper **out, const fl_model *m, fl_team *team, const fl_stepper_limits *l,
                   fl_err *err);
void fl_stepper_free(fl_stepper *s);

/* Without FL_OK nothing changed but the gradients; a loss or gradient that is not finite is
 * FL_EFAIL before any cartridge moved. */
int fl_step(fl_stepper *s, fl_trainable *trainables, size_t n_trainees, const fl_step_conv *convs,
            size_t n_convs, const fl_step_options *o, fl_step_result *r, fl_err *err);
/* [n_convs] of the last call that gave FL_OK: the loss of each conversation, summed over its
 * supervised positions. Until the next call. */
const double *fl_stepper_losses(const fl_stepper *s);
/* Losses only (held-out), nothing changes; by this rank alone. */
int fl_step_eval(fl_stepper *s, const fl_trainable *trainables, size_t n_trainees,
                 const fl_step_conv *convs, size_t n_convs, fl_step_result *r, fl_err *err);
/* Gradients only, for gates and tests: trainables' grad, which has a block, is filled; no optimizer
 * step. */
int fl_step_grad(fl_stepper *s, fl_trainable *trainables, size_t n_trainees,
                 const fl_step_conv *convs, size_t n_convs, fl_step_result *r, fl_err *err);

#endif
