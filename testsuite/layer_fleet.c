/* layer_fleet.c - the tests of src/fleet. */
#include "suite.h"

Suite *suite_train_options(void);
Suite *suite_coverage(void);
Suite *suite_manifest(void);
Suite *suite_commit(void);
Suite *suite_control_socket(void);

int main(void) {
  static suite_fn *const fns[] = { suite_train_options, suite_coverage, suite_manifest,
                                   suite_commit, suite_control_socket };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
