/* layer_http.c - the tests of src/edge. */
#include "suite.h"

Suite *suite_auth(void);
Suite *suite_output_parser(void);
Suite *suite_request(void);
Suite *suite_response(void);
Suite *suite_server(void);

int main(void) {
  static suite_fn *const fns[] = { suite_auth, suite_output_parser, suite_request, suite_response,
                                   suite_server };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
