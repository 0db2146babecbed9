/* layer_tui.c - the tests of the dashboard. */
#include "suite.h"

Suite *suite_tui_text(void);
Suite *suite_scan(void);
Suite *suite_series(void);
Suite *suite_reader(void);
Suite *suite_snapshot(void);
Suite *suite_layout(void);
Suite *suite_control(void);
Suite *suite_headless(void);
Suite *suite_schema(void);
Suite *suite_pictures(void);
Suite *suite_views(void);

int main(void) {
  static suite_fn *const suites[] = { suite_tui_text, suite_scan,     suite_series,  suite_reader,
                                      suite_snapshot, suite_layout,   suite_control, suite_headless,
                                      suite_schema,   suite_pictures, suite_views };
  return suite_main(suites, sizeof suites / sizeof *suites);
}
