/* layer_serve.c - the tests of src/serve. */
#include "suite.h"

Suite *suite_engine(void);

int main(void) {
  static suite_fn *const fns[] = { suite_engine };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
