/* layer_base.c - the test program of the base layer. */
#include "suite.h"

Suite *suite_buf(void);
Suite *suite_err(void);
Suite *suite_events(void);
Suite *suite_events_file(void);
Suite *suite_fs(void);
Suite *suite_hash(void);
Suite *suite_json(void);
Suite *suite_mem(void);
Suite *suite_rng(void);
Suite *suite_sort(void);
Suite *suite_units(void);
Suite *suite_utf8(void);
Suite *suite_cond(void);
Suite *suite_worker(void);
Suite *suite_clock(void);

int main(void) {
  static suite_fn *const suites[] = { suite_mem,         suite_err,    suite_buf,  suite_utf8,
                                      suite_units,       suite_rng,    suite_hash, suite_json,
                                      suite_sort,        suite_fs,     suite_cond, suite_events,
                                      suite_events_file, suite_worker, suite_clock };
  return suite_main(suites, sizeof suites / sizeof *suites);
}
