/* layer_sources.c - the tests of src/sources. */
#include "suite.h"

Suite *suite_source(void);
Suite *suite_kinds(void);
Suite *suite_documents(void);

int main(void) {
  static suite_fn *const fns[] = { suite_source, suite_kinds, suite_documents };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
