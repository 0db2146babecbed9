/* layer_fleet.c - the tests of src/fleet. */
#include "suite.h"

Suite *suite_options(void);
Suite *suite_rotate(void);
Suite *suite_visibility(void);
Suite *suite_coverage(void);
Suite *suite_manifest(void);
Suite *suite_commit(void);

int main(void) {
  static suite_fn *const fns[] = { suite_options, suite_rotate, suite_visibility, suite_coverage,
                                   suite_manifest, suite_commit };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
