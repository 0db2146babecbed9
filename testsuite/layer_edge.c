/* layer_edge.c - the tests of src/edge. */
#include "suite.h"

Suite *suite_auth(void);
Suite *suite_split(void);
Suite *suite_request(void);
Suite *suite_turn(void);
Suite *suite_server(void);

int main(void) {
  static suite_fn *const fns[] = { suite_auth, suite_split, suite_request, suite_turn,
                                   suite_server };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
