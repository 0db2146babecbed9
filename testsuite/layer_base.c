/* layer_base.c - the test program of the base layer. */
#include "suite.h"

Suite *suite_mem(void);

int main(void) {
  static suite_fn *const suites[] = {suite_mem};
  return suite_main(suites, sizeof suites / sizeof *suites);
}
