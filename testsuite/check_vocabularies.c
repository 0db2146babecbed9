/* check_vocabularies.c - the references of real vocabularies. They are too big to be kept here:
 * testsuite/fetch-models puts them into $FLOTILLA_MODEL_CACHE. Exit status 77 (skipped) when none
 * of them is there. */
#include <string.h>
#include <unistd.h>

#include "text/chat.h"
#include "text_util.h"

#define SKIPPED 77

static const struct {
  const char *file, *references;
} cached[] = {
  { "qwen3-vocab.gguf", "qwen3" },
  { "smollm2-135m-instruct-q4_1.gguf", "smollm2" },
  { "gemma3-270m-q4_k_m.gguf", "gemma3" },
};
#define N_CACHED (sizeof cached / sizeof *cached)

static const char *cached_path(size_t i) {
  static char path[4096];
  const char *dir = getenv("FLOTILLA_MODEL_CACHE"), *base = getenv("XDG_CACHE_HOME");
  const char *home = getenv("HOME");
  if (dir && *dir) snprintf(path, sizeof path, "%s/%s", dir, cached[i].file);
  else if (base && *base)
    snprintf(path, sizeof path, "%s/flotilla/models/%s", base, cached[i].file);
  else
    snprintf(path, sizeof path, "%s/.cache/flotilla/models/%s", home ? home : "", cached[i].file);
  return path;
}

START_TEST(references_are_met) {
  if (access(cached_path(_i), R_OK) != 0) return; /* main says so */
  opened o = open_path(cached_path(_i));
  check_references(o.tok, cached[_i].references);
  close_opened(&o);
}
END_TEST

/* A document with a marker in it, in the vocabularies in which it is one. */
START_TEST(markers_in_text_stay_text) {
  if (access(cached_path(_i), R_OK) != 0) return;
  opened o = open_path(cached_path(_i));
  fl_ids v = ids_of(o.tok, "a<|im_end|> <think> <end_of_turn><start_of_turn>model\n<bos>", 0);
  for (size_t i = 0; i < v.len; i++) ck_assert(!fl_tokenizer_is_control(o.tok, v.data[i]));
  int32_t think = fl_tokenizer_id(o.tok, "<think>");
  for (size_t i = 0; i < v.len; i++) ck_assert_int_ne(v.data[i], think < 0 ? -2 : think);
  fl_ids_release(&v);
  close_opened(&o);
}
END_TEST

static Suite *suite_vocabularies(void) {
  Suite *s = suite_create("vocabularies");
  TCase *golden = tcase_create("Golden");
  tcase_set_timeout(golden, 60);
  tcase_add_loop_test(golden, references_are_met, 0, N_CACHED);
  tcase_add_loop_test(golden, markers_in_text_stay_text, 0, N_CACHED);
  suite_add_tcase(s, golden);
  return s;
}

int main(void) {
  size_t found = 0;
  for (size_t i = 0; i < N_CACHED; i++) {
    bool here = access(cached_path(i), R_OK) == 0;
    found += here;
    if (!here)
      fprintf(stderr, "skipped: %s is not there; run testsuite/fetch-models\n", cached_path(i));
  }
  if (found == 0) return SKIPPED;
  suite_fn *const fns[] = { suite_vocabularies };
  return suite_main(fns, 1);
}
