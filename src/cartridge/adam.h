/* adam.h - Adam (Kingma & Ba 2015, algorithm 1) on the trainable rows of one cartridge.
 * beta 0.9, 0.999, eps 1e-8, no decay; bias corrections in double; m in interpolation form;
 * denominator sqrt(v)/sqrt(1-b2^t) + eps. */
#ifndef FL_CARTRIDGE_ADAM_H
#define FL_CARTRIDGE_ADAM_H

#include "cartridge/cartridge.h"

typedef struct fl_adam {
  fl_rows m, v; /* of the trainable rows: n_rows - frozen */
  uint64_t step;
} fl_adam;

int fl_adam_init(fl_adam *a, const fl_hparams *hp, const fl_cartridge *c, fl_err *err);
void fl_adam_release(fl_adam *a);
/* As fl_rows_to_file and fl_rows_evict_pages, of both moments. */
void fl_adam_to_file(fl_adam *a, const char *dir);
void fl_adam_evict_pages(fl_adam *a);

/* Gradient of the trainable rows, with the part views that fl_pass_backward takes. */
int fl_cart_grad_init(fl_rows *g, const fl_hparams *hp, const fl_cartridge *c, fl_err *err);
void fl_rows_zero(fl_rows *g);
double fl_rows_norm(const fl_rows *g); /* L2 over everything, fixed order, double */
void fl_rows_scale(fl_rows *g, float s);

/* The learning rate over a cartridge's own steps, so that leaving memory and coming back changes
 * nothing: it rises over the first `warmup` (0: at once full) and falls in a line over the first
 * `decay` (0: never) to decay_to times lr, where it stays. */
typedef struct fl_rate {
  double lr;
  uint64_t warmup, decay;
  double decay_to;
} fl_rate;
/* lr * min(1, (steps + 1) / warmup) * (1 - (1 - decay_to) * min(1, steps / decay)) */
double fl_rate_at(const fl_rate *r, uint64_t steps);
/* One step on c with gradient g; c->steps and a->step rise by one. What lies in files rests. */
void fl_adam_step(const fl_kernels *k, fl_team *team, fl_cartridge *c, fl_adam *a, const fl_rows *g,
                  double lr);

#endif
