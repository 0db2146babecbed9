/* check_passage.c - passages cover the text without a gap, end at good places and know their
 * headings. */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "retrieval/passage.h"
#include "suite.h"

static fl_passages cut(const char *text, size_t len) {
  fl_passages p = { 0 };
  ck_assert_int_eq(fl_passages_cut(&p, text, len), FL_OK);
  return p;
}

START_TEST(headings_of_markdown) {
  fl_buf b = { 0 };
  fl_buf_puts(&b, "# Book\n\n## First\n\n");
  for (int i = 0; i < 20; i++) fl_buf_puts(&b, "A sentence of the first part. ");
  fl_buf_puts(&b, "\n\n```\n# no heading\n```\n\n## Second ##\n\nWords of the second part.\n\n");
  fl_buf_puts(&b, "Third\n=====\n\n");
  for (int i = 0; i < 30; i++) fl_buf_puts(&b, "A sentence of the third part. ");
  fl_buf_puts(&b, "\n\nSEE ALSO\n\nother things\n");
  fl_passages p = cut(b.data, b.len);
  ck_assert_uint_eq(p.n, 4);
  ck_assert_str_eq(fl_passage_heading(&p, 0), "Book > First");
  ck_assert_str_eq(fl_passage_heading(&p, 1), "Book > Second");
  ck_assert_str_eq(fl_passage_heading(&p, 2), "Third");
  ck_assert_str_eq(fl_passage_heading(&p, 3), "SEE ALSO");
  ck_assert(memcmp(b.data + p.v[1].first, "## Second", 9) == 0);
  ck_assert(memcmp(b.data + p.v[3].first, "SEE ALSO", 8) == 0);
  fl_passages_release(&p);
  fl_buf_release(&b);
}
END_TEST

/* Paragraphs of 200 bytes: a passage ends between two of them. */
START_TEST(paragraphs_stay_whole) {
  fl_buf b = { 0 };
  for (int i = 0; i < 20; i++) {
    for (int k = 0; k < 20; k++) fl_buf_puts(&b, "nine char ");
    fl_buf_puts(&b, "\n\n");
  }
  fl_passages p = cut(b.data, b.len);
  ck_assert_uint_ge(p.n, 4);
  for (size_t i = 0; i < p.n; i++) {
    ck_assert_uint_eq(p.v[i].first % 202, 0);
    ck_assert_uint_le(p.v[i].end - p.v[i].first, FL_PASSAGE_BYTES);
  }
  fl_passages_release(&p);
  fl_buf_release(&b);
}
END_TEST

START_TEST(a_line_without_end) {
  fl_buf b = { 0 };
  for (int i = 0; i < 2000; i++) fl_buf_puts(&b, "\xE6\x9D\xB1"); /* no space anywhere */
  fl_passages p = cut(b.data, b.len);
  for (size_t i = 0; i < p.n; i++)
    ck_assert(fl_utf8_valid(b.data + p.v[i].first, p.v[i].end - p.v[i].first, NULL));
  ck_assert_uint_ge(p.n, 4);
  fl_passages_release(&p);
  fl_buf_reset(&b);
  for (int i = 0; i < 200; i++) fl_buf_puts(&b, "This is a sentence. ");
  p = cut(b.data, b.len);
  for (size_t i = 0; i + 1 < p.n; i++) ck_assert(memcmp(b.data + p.v[i].end - 2, ". ", 2) == 0);
  fl_passages_release(&p);
  fl_buf_release(&b);
}
END_TEST

START_TEST(random_texts_are_covered) {
  static const char *const bits[] = { "word ",      "\n",    "\n\n",  "# Head\n",
                                      "A. ",        "===\n", "```\n", "\xC3\xA9\xC3\xA9",
                                      "CAPITALS\n", "x",     "\r\n" };
  for (uint32_t trial = 0; trial < 100; trial++) {
    fl_rng r = fl_rng_stream(12, FL_RNG_TEST, trial, 0, 0);
    fl_buf b = { 0 };
    size_t n = fl_rng_below(&r, 3000), at = 0;
    for (size_t i = 0; i < n; i++)
      fl_buf_puts(&b, bits[fl_rng_below(&r, sizeof bits / sizeof *bits)]);
    fl_passages p = cut(b.data != NULL ? b.data : "", b.len);
    for (size_t i = 0; i < p.n; i++) {
      /* What lies between is white space. */
      for (; at < p.v[i].first; at++) ck_assert_ptr_nonnull(strchr(" \r\n", b.data[at]));
      ck_assert_uint_eq(p.v[i].first, at);
      ck_assert_uint_le(p.v[i].end - p.v[i].first, FL_PASSAGE_BYTES + FL_PASSAGE_MIN);
      ck_assert_ptr_nonnull(fl_passage_heading(&p, i));
      at = p.v[i].end;
    }
    for (; at < b.len; at++) ck_assert_ptr_nonnull(strchr(" \r\n", b.data[at]));
    fl_passages_release(&p);
    fl_buf_release(&b);
  }
}
END_TEST

START_TEST(empty_texts) {
  fl_passages p = cut("", 0);
  ck_assert_uint_eq(p.n, 0);
  fl_passages_release(&p);
  p = cut(" \n\n\t ", 5);
  ck_assert_uint_eq(p.n, 0);
  fl_passages_release(&p);
}
END_TEST

START_TEST(without_memory) {
  for (size_t n = 1; n < 5; n++) {
    fl_passages p = { 0 };
    fl_mem_fault_after(n);
    int rc = fl_passages_cut(&p, "# A\n\ntext\n", 10);
    fl_mem_fault_after(0);
    ck_assert(rc == FL_OK || rc == FL_ENOMEM);
    ck_assert(n > 1 || rc == FL_ENOMEM);
    fl_passages_release(&p);
  }
}
END_TEST

Suite *suite_passage(void);
Suite *suite_passage(void) {
  Suite *s = suite_create("passage");
  TCase *core = tcase_create("Core"), *limits = tcase_create("Limits");
  tcase_add_test(core, headings_of_markdown);
  tcase_add_test(core, paragraphs_stay_whole);
  tcase_add_test(limits, a_line_without_end);
  tcase_add_test(limits, random_texts_are_covered);
  tcase_add_test(limits, empty_texts);
  tcase_add_test(limits, without_memory);
  suite_add_tcase(s, core);
  suite_add_tcase(s, limits);
  return s;
}
