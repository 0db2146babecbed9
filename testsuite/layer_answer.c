/* layer_answer.c - the tests of src/answer that need no trainer; check_ask.c has the others, in the
 * trainer's program. */
#include "suite.h"

Suite *suite_cartridge_cache(void);
Suite *suite_fetch_plan(void);

int main(void) {
  static suite_fn *const fns[] = { suite_cartridge_cache, suite_fetch_plan };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
