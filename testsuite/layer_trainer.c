/* layer_trainer.c - the tests of src/retrieval, src/answer and src/trainer. */
#include "suite.h"

Suite *suite_sizes(void);
Suite *suite_rotate(void);
Suite *suite_distractors(void);
Suite *suite_replay(void);
Suite *suite_retrieval(void);
Suite *suite_reconcile(void);
Suite *suite_ask(void);
Suite *suite_fleet(void);
Suite *suite_dataset(void);
Suite *suite_resume(void);
Suite *suite_ranks(void);

#ifdef __SANITIZE_THREAD__
/* The children that are killed make threads of their own, which it refuses after a fork by
 * default. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "die_after_fork=0"; }
#endif

int main(void) {
  static suite_fn *const fns[] = { suite_sizes,  suite_rotate,    suite_distractors,
                                   suite_replay, suite_retrieval, suite_reconcile,
                                   suite_ask,    suite_fleet,     suite_dataset,
                                   suite_resume, suite_ranks };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
