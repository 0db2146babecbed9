/* layer_retrieval.c - the tests of src/retrieval that need no trainer; check_retrieval.c has the
 * others, in the trainer's program. */
#include "suite.h"

Suite *suite_fuse(void);
Suite *suite_index(void);
Suite *suite_lexical(void);
Suite *suite_passage(void);
Suite *suite_words(void);

int main(void) {
  static suite_fn *const fns[] = { suite_words, suite_passage, suite_lexical, suite_fuse,
                                   suite_index };
  return suite_main(fns, sizeof fns / sizeof fns[0]);
}
