/* layer_formats.c - the test program of the formats layer. */
#include "suite.h"

Suite *suite_dtype(void);
Suite *suite_fza(void);
Suite *suite_gguf(void);
Suite *suite_safetensors(void);
Suite *suite_torch_file(void);
Suite *suite_transcode(void);

int main(void) {
  static suite_fn *const suites[] = { suite_dtype, suite_gguf,       suite_safetensors,
                                      suite_fza,   suite_torch_file, suite_transcode };
  return suite_main(suites, sizeof suites / sizeof *suites);
}
