/* layer_kernels.c - the suites of the kernels. */
#include <stdlib.h>

#include "suite.h"

suite_fn suite_mapped, suite_team, suite_matmul, suite_matmul_routes, suite_pointwise,
    suite_attention, suite_attention_bwd, suite_loss, suite_cholesky;

int main(void) {
#ifdef __SANITIZE_ADDRESS__
  /* A thousand forks of such a process take ten minutes, and nothing here needs one. */
  setenv("CK_FORK", "no", 0);
#endif
  suite_fn *const suites[] = { suite_mapped,        suite_team,      suite_matmul,
                               suite_matmul_routes, suite_pointwise, suite_attention,
                               suite_attention_bwd, suite_loss,      suite_cholesky };
  return suite_main(suites, sizeof suites / sizeof *suites);
}
