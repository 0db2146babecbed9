/* check_spans.c - a text taken apart: what was written by hand beside it is what must come out. */
#include "base/mem.h"
#include "base/rng.h"
#include "scratch.h"
#include "study/echo.h"
#include "study/mix.h"
#include "study/spans.h"
#include "study/terms.h"

/* Every span as "sort|path|text\n". */
static char *taken_apart(const char *text, const char *name, char *title, size_t room) {
  fl_text_spans s;
  fl_buf out = { 0 }, t = { 0 };
  ck_assert_int_eq(fl_text_spans_read(&s, text, strlen(text), NULL), FL_OK);
  for (size_t i = 0; i < s.n; i++) {
    fl_buf_printf(&out, "%c|", "src"[s.span[i].sort]);
    fl_text_path(&out, &s, text, &s.span[i]);
    fl_buf_putc(&out, '|');
    fl_buf_append(&out, text + s.span[i].from, s.span[i].to - s.span[i].from);
    fl_buf_putc(&out, '\n');
  }
  fl_text_title(&t, &s, text, name);
  snprintf(title, room, "%s", t.data ? t.data : "");
  fl_buf_release(&t);
  fl_text_spans_release(&s);
  return fl_buf_detach(&out);
}

static const struct sample {
  const char *text, *name, *title, *spans;
} samples[] = {
  { "# Tulby Mine\n\nThe mine is deep. At the mine the\nforeman is A. Dru, i.e. the boss.\n\n"
    "## The place\n\nIt lies by the river Harnor.\n",
    "docs/mine.md", "Tulby Mine",
    "s||The mine is deep. At the mine the\nforeman is A. Dru, i.e. the boss.\n"
    "s|The place|It lies by the river Harnor.\n" },
  /* Two headings of the highest level: the name is the title, both are paths. */
  { "# One\n\nA sentence that is long enough here. Another one that is as long!\n# Two #\n- an "
    "item "
    "of a list, first\n- the second item of the list\n  goes on here\n1. numbered item of a list\n",
    "a/b/two.parts.md", "two.parts",
    "s|One|A sentence that is long enough here.\ns|One|Another one that is as long!\n"
    "s|Two|an item of a list, first\ns|Two|the second item of the list\n  goes on here\n"
    "s|Two|numbered item of a list\n" },
  { "| code | fee |\n|---|---|\n| 3 | 14 crowns |\n\nText that follows behind the table.\n",
    "fees.txt", "fees",
    "r||| code | fee |\nr||| 3 | 14 crowns |\ns||Text that follows behind the table.\n" },
  { "Usage\n=====\n\n```sh\nshear -w 72 file\n# no heading\n```\n\nDone by then, at half past 3.5 "
    "of "
    "them.\n",
    NULL, "Usage",
    "c||shear -w 72 file\n# no heading\ns||Done by then, at half past 3.5 of them.\n" },
  /* A manual page as text. */
  { "SHEAR(1)\n\nNAME\n       shear - cut lines at a column\n\nOPTIONS\n       -w, --width N\n     "
    "   "
    "      Cut after N columns.\n\n2.1  Exit status\n\n   It is 0 unless something failed.\n",
    "shear", "shear",
    "s|NAME|shear - cut lines at a column\n"
    "s|OPTIONS|-w, --width N\n              Cut after N columns.\n"
    "s|OPTIONS > 2.1  Exit status|It is 0 unless something failed.\n" },
  { "", "void.txt", "void", "" },
  { "\n \n---\n\n", NULL, "", "" },
};

START_TEST(a_text_gives_what_was_written_beside_it) {
  const struct sample *s = &samples[_i];
  char title[64];
  char *got = taken_apart(s->text, s->name, title, sizeof title);
  ck_assert_str_eq(got, s->spans);
  ck_assert_str_eq(title, s->title);
  fl_free(got);
}
END_TEST

START_TEST(a_row_knows_the_first_one_of_its_table) {
  static const char text[] = "| code | fee |\n|---|---|\n| 3 | 14 crowns |\n| 4 | 9 crowns |\n";
  fl_text_spans s;
  ck_assert_int_eq(fl_text_spans_read(&s, text, sizeof text - 1, NULL), FL_OK);
  ck_assert_uint_eq(s.n, 3);
  ck_assert_uint_eq(s.span[0].head_to, 0);
  for (size_t i = 1; i < 3; i++) {
    ck_assert_uint_eq(s.span[i].head_from, 0);
    ck_assert_uint_eq(s.span[i].head_to, strlen("| code | fee |"));
  }
  fl_text_spans_release(&s);
}
END_TEST

/* Sentences of 10,000 bytes without a stop are cut, at characters. */
START_TEST(long_sentences_are_cut) {
  fl_buf b = { 0 };
  fl_text_spans s;
  for (size_t i = 0; i < 2500; i++) fl_buf_puts(&b, i % 50 ? "\xc3\xa9t\xc3\xa9" : "\xc3\xa9,  ");
  ck_assert_int_eq(fl_text_spans_read(&s, b.data, b.len, NULL), FL_OK);
  ck_assert_uint_ge(s.n, b.len / 400);
  for (size_t i = 0; i < s.n; i++) {
    ck_assert_uint_le(s.span[i].to - s.span[i].from, 424);
    ck_assert_uint_ne((uint8_t)b.data[s.span[i].from] & 0xC0, 0x80);
  }
  fl_text_spans_release(&s);
  fl_buf_release(&b);
}
END_TEST

/* Whatever the bytes: spans lie in the text in order, disjoint, none of them blank, and headings
 * stand under earlier ones of a lower level. */
START_TEST(any_bytes_give_spans_in_order) {
  static const char alphabet[] = "aB .!?\n\n\n#|-*`=~1\t\"'\xc3\xa9\xe3\x80\x82\xff,;:";
  fl_rng rng = fl_rng_stream(5, FL_RNG_TEST, (uint32_t)_i, 0, 0);
  char text[600];
  const size_t n = (size_t)fl_rng_below(&rng, sizeof text);
  for (size_t i = 0; i < n; i++) text[i] = alphabet[fl_rng_below(&rng, sizeof alphabet - 1)];
  fl_text_spans s;
  ck_assert_int_eq(fl_text_spans_read(&s, text, n, NULL), FL_OK);
  size_t at = 0;
  for (size_t i = 0; i < s.n; i++) {
    const fl_text_span *v = &s.span[i];
    ck_assert(at <= v->from && v->from < v->to && v->to <= n);
    ck_assert(!strchr(" \t\n", text[v->from]) && !strchr(" \t\n", text[v->to - 1]));
    ck_assert(v->heading == FL_NO_HEADING || v->heading < s.n_headings);
    at = v->to;
  }
  for (size_t i = 0; i < s.n_headings; i++) {
    const fl_text_heading *h = &s.heading[i];
    ck_assert(h->from < h->to && h->to <= n);
    ck_assert(h->above == FL_NO_HEADING || (h->above < i && s.heading[h->above].level < h->level));
  }
  fl_text_spans_release(&s);
}
END_TEST

START_TEST(lack_of_memory_is_told) {
  const char *text = samples[1].text;
  int rc = FL_ENOMEM;
  for (size_t n = 1; rc != FL_OK && n < 100; n++) {
    fl_text_spans s = { 0 };
    fl_mem_fault_after(n);
    rc = fl_text_spans_read(&s, text, strlen(text), NULL);
    fl_mem_fault_after(0);
    ck_assert(rc == FL_OK || (rc == FL_ENOMEM && s.span == NULL));
    fl_text_spans_release(&s);
  }
  ck_assert_int_eq(rc, FL_OK);
}
END_TEST

/* --- terms ----------------------------------------------------------------------------------- */

START_TEST(terms_are_what_a_sentence_is_about) {
  static const char text[] =
      "The keeper of Hargate is Alma Var; use `-w` for 3.5 columns, seldom in "
      "the keeper's harbour; the keeper knows.";
  const fl_text_span span = { .from = 0, .to = sizeof text - 1 };
  static const struct {
    const char *word;
    fl_term_sort sort;
  } want[] = { { "Alma Var", FL_TERM_NAME }, { "-w", FL_TERM_QUOTED },
               { "3.5", FL_TERM_NUMBER },    { "columns", FL_TERM_RARE },
               { "seldom", FL_TERM_RARE },   { "keeper's", FL_TERM_RARE },
               { "harbour", FL_TERM_RARE },  { "knows", FL_TERM_RARE } };
  fl_term t[FL_MAX_TERMS], drawn;
  const size_t n = fl_terms_find(t, text, sizeof text - 1, &span, "Hargate\n");
  ck_assert_uint_eq(n, sizeof want / sizeof *want);
  for (size_t i = 0; i < n; i++) {
    ck_assert_uint_eq(t[i].to - t[i].from, strlen(want[i].word));
    ck_assert(memcmp(text + t[i].from, want[i].word, t[i].to - t[i].from) == 0);
    ck_assert_int_eq(t[i].sort, want[i].sort);
  }
  /* Each of the four sorts is drawn, whatever their numbers. */
  size_t seen[FL_N_TERM_SORTS] = { 0 };
  for (uint32_t i = 0; i < 400; i++) {
    fl_rng rng = fl_rng_stream(9, FL_RNG_TEST, i, 0, 0);
    ck_assert(fl_terms_draw(&drawn, t, n, &rng));
    seen[drawn.sort]++;
  }
  /* 400 draws of probability 1/4: 8.7 is one standard deviation. */
  for (size_t k = 0; k < FL_TERM_WORD; k++) ck_assert(seen[k] > 56 && seen[k] < 144);
  ck_assert_uint_eq(seen[FL_TERM_WORD], 0);
  fl_rng rng = fl_rng_stream(9, FL_RNG_TEST, 0, 0, 0);
  ck_assert(!fl_terms_draw(&drawn, t, 0, &rng));
}
END_TEST

/* --- kinds ----------------------------------------------------------------------------------- */

START_TEST(kinds_are_read_and_written) {
  static const char *const good[] = { "quote=3,cloze=3,sentence=2,seeds=1", "quote",
                                      "seeds,cloze=20", "sentence=0,quote=1" };
  static const char *const back[] = { "seeds=1,quote=3,cloze=3,sentence=2", "quote=1",
                                      "seeds=1,cloze=20", "quote=1" };
  static const char *const bad[] = { "",         "quotes",   "quote=",      "quote=21",
                                     "quote=-1", "quote=1,", "quote,quote", "seeds=0",
                                     "quote=1x", ",quote",   "quote=999" };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    fl_mix m;
    fl_buf b = { 0 };
    ck_assert_int_eq(fl_mix_parse(&m, good[i], NULL), FL_OK);
    fl_mix_print(&b, &m);
    ck_assert_str_eq(b.data, back[i]);
    fl_buf_release(&b);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    fl_mix m;
    fl_err err = { 0 };
    ck_assert_msg(fl_mix_parse(&m, bad[i], &err) == FL_EUSAGE, "%s", bad[i]);
    ck_assert_ptr_nonnull(strstr(err.text, "--kinds"));
  }
}
END_TEST

/* Every block holds each kind by its weight, and of each the draws are counted on. */
START_TEST(kinds_come_by_their_weights) {
  fl_mix m;
  uint32_t next_seed = 0, next_anchored = 0;
  bool differs = false;
  ck_assert_int_eq(fl_mix_parse(&m, "quote=3,cloze=2,sentence=2,seeds=1", NULL), FL_OK);
  for (uint32_t block = 0; block < 50; block++) {
    uint32_t seen[FL_N_WAYS] = { 0 };
    for (uint32_t i = 0; i < 8; i++) {
      const fl_mix_draw d = fl_mix_at(&m, 42, 7, block * 8 + i);
      const fl_mix_draw again = fl_mix_at(&m, 42, 7, block * 8 + i);
      ck_assert(d.way == again.way && d.nth == again.nth);
      ck_assert_uint_eq(d.nth, d.way == FL_WAY_SEEDS ? next_seed++ : next_anchored++);
      seen[d.way]++;
      differs |= d.way != fl_mix_at(&m, 42, 7, i).way;
    }
    for (size_t w = 0; w < FL_N_WAYS; w++) ck_assert_uint_eq(seen[w], m.weight[w]);
  }
  ck_assert(differs);
  /* The seeds alone are as they were before there were other kinds. */
  const fl_mix seeds = { .weight = { [FL_WAY_SEEDS] = 3 } };
  for (uint32_t d = 0; d < 30; d++) {
    const fl_mix_draw x = fl_mix_at(&seeds, 42, 7, d), y = fl_mix_at(&(fl_mix){ 0 }, 42, 7, d);
    ck_assert(x.way == FL_WAY_SEEDS && x.nth == d && y.way == FL_WAY_SEEDS && y.nth == d);
  }
}
END_TEST

/* --- words ----------------------------------------------------------------------------------- */

START_TEST(words_are_compared) {
  ck_assert(fl_echo_shares("Who keeps HARGATE?", "\"Hargate Light\": the keeper"));
  ck_assert(!fl_echo_shares("Who is it?", "Who it is")); /* short words say nothing */
  ck_assert(fl_echo_shares("What of 7?", "some 7 of them"));
  ck_assert(fl_echo_tells("Who keeps it?", "Alma Var keeps it.", "The keeper is Alma Var."));
  ck_assert(!fl_echo_tells("Who keeps Alma?", "Alma.", "The keeper is Alma Var."));
  ck_assert(fl_echo_asks("Why?") && fl_echo_asks("\xe4\xbd\xa0\xef\xbc\x9f") &&
            !fl_echo_asks("So."));
  ck_assert(fl_echo_repeats("Is the lamp, then, lit?", "The lamp is LIT"));
  ck_assert(!fl_echo_repeats("Is the lamp lit?", "The lamp is out"));
  ck_assert(
      fl_echo_same("When does the ferry to Skell sail?", "when does the ferry to skell sail"));
  /* Nine of ten words: the tenth makes 9 common of 11 different ones. */
  ck_assert(!fl_echo_same("a b c d e f g h i j", "a b c d e f g h i k"));
  ck_assert(fl_echo_same("a b c d e f g h i j", "a b c d e f g h i"));
  ck_assert(!fl_echo_same("", ""));
}
END_TEST

Suite *suite_spans(void);
Suite *suite_spans(void) {
  Suite *s = suite_create("spans");
  TCase *t = tcase_create("core");
  tcase_add_loop_test(t, a_text_gives_what_was_written_beside_it, 0,
                      (int)(sizeof samples / sizeof *samples));
  tcase_add_test(t, a_row_knows_the_first_one_of_its_table);
  tcase_add_test(t, long_sentences_are_cut);
  tcase_add_loop_test(t, any_bytes_give_spans_in_order, 0, 200);
  tcase_add_test(t, lack_of_memory_is_told);
  tcase_add_test(t, terms_are_what_a_sentence_is_about);
  tcase_add_test(t, kinds_are_read_and_written);
  tcase_add_test(t, kinds_come_by_their_weights);
  tcase_add_test(t, words_are_compared);
  suite_add_tcase(s, t);
  return s;
}
