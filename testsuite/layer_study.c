/* layer_study.c - the study layer's test program. */
#include "suite.h"

Suite *suite_anchored(void);
Suite *suite_chunk(void);
Suite *suite_part(void);
Suite *suite_reject(void);
Suite *suite_retell(void);
Suite *suite_spans(void);
Suite *suite_study(void);

int main(void) {
  static suite_fn *const fns[] = { suite_anchored, suite_chunk, suite_part, suite_reject,
                                   suite_retell,   suite_spans, suite_study };
  return suite_main(fns, sizeof fns / sizeof *fns);
}
