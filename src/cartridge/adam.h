/* adam.h - Adam (Kingma & Ba 2015, algorithm 1) on the trainable rows of one cartridge.
 * beta 0.9, 0.999, eps 1e-8, no decay; bias corrections in double; m in interpolation form;
 * denominator sqrt(v)/sqrt(1-b2^t) + eps. */
#ifndef FL_CARTRIDGE_ADAM_H
#define FL_CARTRIDGE_ADAM_H

#include "cartridge/cartridge.h"

typedef struct fl_adam {
  fl_rows m, v;      /* of the trainable rows: n_rows - frozen */
  uint64_t step;
} fl_adam;

int fl_adam_init(fl_adam *a, const fl_hparams *hp, const fl_cartridge *c, fl_err *err);
void fl_adam_release(fl_adam *a);

/* Gradient of the trainable rows, with the part views that fl_pass_backward takes. */
int fl_cart_grad_init(fl_rows *g, const fl_hparams *hp, const fl_cartridge *c, fl_err *err);
void fl_rows_zero(fl_rows *g);
double fl_rows_norm(const fl_rows *g); /* L2 over everything, fixed order, double */
void fl_rows_scale(fl_rows *g, float s);

/* The learning rate of a cartridge at its own step count: lr * min(1, (steps + 1) / warmup). */
double fl_warmup_lr(double lr, uint64_t steps, uint64_t warmup);
/* One step on c with gradient g; c->steps and a->step rise by one. */
void fl_adam_step(const fl_kernels *k, fl_team *team, fl_cartridge *c, fl_adam *a, const fl_rows *g,
                  double lr);

#endif
