/* layer_cartridge.c - the cartridge layer's test program. */
#include "suite.h"

Suite *suite_adam(void);
Suite *suite_cartridge(void);
Suite *suite_cartridge_io(void);
Suite *suite_match(void);
Suite *suite_match_head(void);

int main(void) {
  static suite_fn *const fns[] = { suite_adam, suite_cartridge, suite_cartridge_io, suite_match,
                                   suite_match_head };
  return suite_main(fns, sizeof fns / sizeof *fns);
}
