/* layer_fleet.c - the tests of src/fleet. */
#include "suite.h"

Suite *suite_options(void);
Suite *suite_plan(void);
Suite *suite_rotate(void);
Suite *suite_visibility(void);
Suite *suite_coverage(void);
Suite *suite_manifest(void);
Suite *suite_commit(void);
Suite *suite_given(void);
Suite *suite_kept(void);
Suite *suite_control_socket(void);
Suite *suite_retrieval(void);
Suite *suite_reconcile(void);
Suite *suite_ask(void);
Suite *suite_fleet(void);
Suite *suite_resume(void);
Suite *suite_ranks(void);

#ifdef __SANITIZE_THREAD__
/* The children that are killed make threads of their own, which it refuses after a fork by
 * default. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "die_after_fork=0"; }
#endif

int main(void) {
  static suite_fn *const fns[] = { suite_options,    suite_plan,      suite_rotate,
                                   suite_visibility, suite_coverage,  suite_manifest,
                                   suite_commit,     suite_kept,      suite_control_socket,
                                   suite_retrieval,  suite_reconcile, suite_ask,
                                   suite_fleet,      suite_given,     suite_resume,
                                   suite_ranks };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
