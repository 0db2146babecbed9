/* suite.h - how a layer's test program is put together: layer_<layer>.c lists the suites of its
 * modules in FL_SUITES order and calls suite_main. */
#ifndef FL_TESTSUITE_SUITE_H
#define FL_TESTSUITE_SUITE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

typedef Suite *suite_fn(void);

static inline int suite_main(suite_fn *const *fns, size_t n) {
  SRunner *sr = srunner_create(NULL);
  for (size_t i = 0; i < n; i++) srunner_add_suite(sr, fns[i]());
  srunner_run_all(sr, CK_ENV);
  int failed = srunner_ntests_failed(sr);
  srunner_free(sr);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Path below the fixtures folder; valid until the next call. */
static inline const char *fixture(const char *rel) {
  static char path[4096];
  const char *dir = getenv("FIXTURES");
  snprintf(path, sizeof path, "%s/%s", dir ? dir : "fixtures", rel);
  return path;
}

#endif
