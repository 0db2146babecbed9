/* layer_model.c - the model layer's test program. */
#include "suite.h"

Suite *suite_generate(void);
Suite *suite_kv(void);
Suite *suite_model_file(void);
Suite *suite_pass(void);
Suite *suite_rope(void);
Suite *suite_sampler(void);
Suite *suite_output_rows(void);

int main(void) {
  static suite_fn *const fns[] = { suite_kv,   suite_model_file, suite_pass,    suite_output_rows,
                                   suite_rope, suite_sampler,    suite_generate };
  return suite_main(fns, sizeof fns / sizeof *fns);
}
