/* layer_text.c - the tests of the text layer. */
#include "suite.h"
#include "text_util.h"

int main(void) {
  suite_fn *const fns[] = { suite_tokenizer, suite_chat };
  return suite_main(fns, sizeof fns / sizeof *fns);
}
