/* layer_train.c - the train layer's test program. */
#include "suite.h"

Suite *suite_dist(void);
Suite *suite_step(void);

int main(void) {
  static suite_fn *const fns[] = { suite_dist, suite_step };
  return suite_main(fns, sizeof fns / sizeof *fns);
}
