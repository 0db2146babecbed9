/* layer_train.c - the train layer's test program. */
#include "suite.h"

Suite *suite_dist(void);
Suite *suite_step(void);
Suite *suite_step_grad(void);

int main(void) {
  static suite_fn *const fns[] = { suite_dist, suite_step, suite_step_grad };
  return suite_main(fns, sizeof fns / sizeof *fns);
}
