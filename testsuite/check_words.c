/* check_words.c - words of texts: identifiers whole and in parts, numbers, accents, hostile bytes.
 */
#include <string.h>

#include "base/buf.h"
#include "base/rng.h"
#include "retrieval/words.h"
#include "suite.h"

static int join(void *ctx, const fl_word *w) {
  fl_buf *b = ctx;
  if (b->len > 0) fl_buf_putc(b, w->is_part ? '+' : ' ');
  fl_buf_append(b, w->text, w->len);
  ck_assert_uint_eq(strlen(w->text), w->len);
  return 0;
}

static void gives(const char *text, const char *wanted) {
  fl_buf b = { 0 };
  ck_assert_int_eq(fl_words_each(text, strlen(text), join, &b), 0);
  ck_assert_str_eq(b.data != NULL ? b.data : "", wanted);
  fl_buf_release(&b);
}

START_TEST(plain_words) {
  gives("", "");
  gives(" .,;- \n", "");
  gives("The Keeper's lamp, at 9 o'clock", "the keeper lamp at 9 o clock");
  gives("it\xE2\x80\x99s James' dogs'", "it james dogs");
  gives("(well) [done]", "well done");
}
END_TEST

START_TEST(identifiers_stay_whole) {
  gives("fl_embed", "fl_embed+fl+embed");
  gives("set --rag-floor 0.2", "set --rag-floor+rag+floor 0.2+0+2");
  gives("-q is short; 3-4 and a - b", "-q+q is short 3-4+3+4 and a b");
  gives("src/index.c, std::vector", "src/index.c+src+index+c std::vector+std+vector");
  gives("me@host.org: 3.14.", "me@host.org+me+host+org 3.14+3+14");
  gives("getElementById HTMLPage SHA256 QUERIES",
        "getelementbyid+get+element+by+id htmlpage+html+page sha256 queries");
  gives("C++ and C#, a+b", "c+++c and c#+c a b");
  gives("__init__ x_", "init x");
}
END_TEST

START_TEST(letters_of_other_languages) {
  gives("\xC3\x9C"
        "ber CAF\xC3\x89 cafe\xCC\x81",
        "uber cafe cafe");
  gives("\xCE\x91\xCE\xB8\xCE\xAE\xCE\xBD\xCE\xB1", "\xCE\xB1\xCE\xB8\xCE\xB7\xCE\xBD\xCE\xB1");
  gives("\xE6\x9D\xB1\xE4\xBA\xAC tower", "\xE6\x9D\xB1 \xE4\xBA\xAC tower");
  gives("\xED\x95\x9C\xEA\xB5\xAD", "\xED\x95\x9C\xEA\xB5\xAD"); /* Hangul is written in words */
}
END_TEST

static int check_place(void *ctx, const fl_word *w) {
  size_t *last = ctx;
  ck_assert_uint_lt(w->first, w->end);
  ck_assert_uint_ge(w->end, *last);
  ck_assert_uint_gt(w->len, 0);
  ck_assert_uint_le(w->len, FL_WORD_BYTES);
  if (!w->is_whole) *last = w->first;
  return 0;
}

START_TEST(any_bytes_at_all) {
  static const char pool[] = "ab Z9_-.:/@+#'\n\xC3\xA9\xE6\x9D\xB1\xFF\x80\xCC\x81";
  char text[300];
  for (uint32_t trial = 0; trial < 300; trial++) {
    fl_rng r = fl_rng_stream(11, FL_RNG_TEST, trial, 0, 0);
    size_t n = fl_rng_below(&r, sizeof text), last = 0;
    for (size_t i = 0; i < n; i++) text[i] = pool[fl_rng_below(&r, sizeof pool)];
    ck_assert_int_eq(fl_words_each(text, n, check_place, &last), 0);
  }
}
END_TEST

static int stop_at_two(void *ctx, const fl_word *w) {
  (void)w;
  return ++*(int *)ctx == 2 ? 7 : 0;
}

START_TEST(the_caller_may_stop) {
  int n = 0;
  ck_assert_int_eq(fl_words_each("a b c d", 7, stop_at_two, &n), 7);
  ck_assert_int_eq(n, 2);
}
END_TEST

START_TEST(stop_words) {
  ck_assert(fl_word_is_stop("the"));
  ck_assert(fl_word_is_stop("yours"));
  ck_assert(fl_word_is_stop("a"));
  ck_assert(!fl_word_is_stop("th"));
  ck_assert(!fl_word_is_stop("lamp"));
  ck_assert(!fl_word_is_stop(""));
  ck_assert(!fl_word_is_stop("the lamp"));
}
END_TEST

Suite *suite_words(void);
Suite *suite_words(void) {
  Suite *s = suite_create("words");
  TCase *core = tcase_create("Core"), *limits = tcase_create("Limits");
  tcase_add_test(core, plain_words);
  tcase_add_test(core, identifiers_stay_whole);
  tcase_add_test(core, letters_of_other_languages);
  tcase_add_test(core, stop_words);
  tcase_add_test(limits, any_bytes_at_all);
  tcase_add_test(limits, the_caller_may_stop);
  suite_add_tcase(s, core);
  suite_add_tcase(s, limits);
  return s;
}
