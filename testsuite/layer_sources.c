/* layer_sources.c - the tests of src/sources. */
#include "suite.h"

Suite *suite_source(void);

int main(void) {
  static suite_fn *const fns[] = { suite_source };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
