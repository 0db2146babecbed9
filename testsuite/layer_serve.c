/* layer_serve.c - the tests of src/serve. */
#include "suite.h"

Suite *suite_detokenize(void);
Suite *suite_engine(void);
Suite *suite_engine_disk(void);
Suite *suite_engine_docs(void);
Suite *suite_engine_load(void);
Suite *suite_prompt(void);
Suite *suite_slots(void);
Suite *suite_speculate(void);
Suite *suite_spill(void);

int main(void) {
  static suite_fn *const fns[] = { suite_speculate,   suite_detokenize,  suite_prompt,
                                   suite_spill,       suite_slots,       suite_engine,
                                   suite_engine_docs, suite_engine_load, suite_engine_disk };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
