/* layer_retrieval.c - the tests of src/retrieval that need no fleet; the others are in
 * layer_trainer.c. */
#include "suite.h"

Suite *suite_words(void);
Suite *suite_passage(void);
Suite *suite_lexical(void);
Suite *suite_fuse(void);

int main(void) {
  static suite_fn *const fns[] = { suite_words, suite_passage, suite_lexical, suite_fuse };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
