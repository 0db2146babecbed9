/* check_chunk.c - which chunks and kinds are drawn, and where a document's tokens end. */
#include "base/utf8.h"
#include "cart_util.h"
#include "study/study.h"

static fl_study_options range(size_t lo, size_t hi) {
  return (fl_study_options){ .chunk_min = lo, .chunk_max = hi, .seed = 42 };
}

static void draw(const fl_study_options *o, size_t n_tokens, uint32_t d, size_t *first,
                 size_t *end) {
  const fl_doc_text doc = { .n_tokens = n_tokens };
  const fl_conv_plan plan = { .doc = 3, .round = d / 4, .conv = d % 4, .draw = d };
  fl_study_chunk(o, &doc, &plan, first, end);
}

/* The most and the least often drawn token, and the bounds of the lengths, after n draws. */
typedef struct tally {
  size_t most, least, shortest, longest;
} tally;

static tally count(const fl_study_options *o, size_t n_tokens, uint32_t from, uint32_t n) {
  uint32_t *seen = fl_calloc(n_tokens, sizeof *seen);
  tally t = { .least = SIZE_MAX, .shortest = SIZE_MAX };
  for (uint32_t d = from; d < from + n; d++) {
    size_t first, end;
    draw(o, n_tokens, d, &first, &end);
    ck_assert(first < end && end <= n_tokens);
    for (size_t i = first; i < end; i++) seen[i]++;
    if (end - first < t.shortest) t.shortest = end - first;
    if (end - first > t.longest) t.longest = end - first;
  }
  for (size_t i = 0; i < n_tokens; i++) {
    if (seen[i] > t.most) t.most = seen[i];
    if (seen[i] < t.least) t.least = seen[i];
  }
  fl_free(seen);
  return t;
}

typedef struct cover_case {
  size_t n_tokens, lo, hi;
} cover_case;
static const cover_case exact[] = {
  { 430, 64, 160 },  { 5000, 256, 512 }, { 100003, 256, 512 }, { 513, 256, 512 },
  { 511, 256, 512 }, { 1000, 10, 1000 }, { 77, 7, 7 },         { 1, 1, 1 },
  { 9, 1, 1 },       { 640, 100, 130 },  { 2000, 1, 2 },
};
enum { N_EXACT = sizeof exact / sizeof *exact };

/* However many draws are made, no token was drawn more than once more than any other: the
 * document's ends too. (A uniformly drawn start misses the first token in all but 1 of N - length
 * draws.) */
START_TEST(coverage_is_even_at_any_time) {
  const cover_case *c = &exact[_i];
  const fl_study_options o = range(c->lo, c->hi);
  const uint32_t some[] = { 1, 2, 3, 5, 12, 29, 64, 150 };
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    const tally t = count(&o, c->n_tokens, 0, some[i]);
    ck_assert_msg(t.most - t.least <= 1, "%u draws: %zu to %zu times", some[i], t.least, t.most);
    ck_assert_uint_ge(t.shortest, c->lo);
    ck_assert_uint_le(t.longest, c->hi);
  }
}
END_TEST

/* No number of tiles of 100 makes 250: three that overlap, spread evenly. */
START_TEST(narrow_ranges_overlap_without_gaps) {
  static const cover_case cases[] = { { 250, 100, 100 }, { 1234, 100, 105 }, { 150, 100, 110 } };
  static const uint32_t tiles[] = { 3, 12, 2 };
  const cover_case *c = &cases[_i];
  const fl_study_options o = range(c->lo, c->hi);
  for (uint32_t pass = 0; pass < 20; pass++) {
    const tally t = count(&o, c->n_tokens, pass * tiles[_i], tiles[_i]);
    ck_assert_uint_eq(t.least, 1);
    ck_assert_uint_le(t.most, 2);
    ck_assert_uint_ge(t.shortest, c->lo);
    ck_assert_uint_le(t.longest, c->hi);
  }
}
END_TEST

START_TEST(short_documents_are_taken_whole) {
  const fl_study_options o = range(256, 512);
  for (size_t n = 1; n <= 400; n += 57)
    for (uint32_t d = 0; d < 5; d++) {
      size_t first, end;
      draw(&o, n, d, &first, &end);
      ck_assert_uint_eq(first, 0);
      ck_assert_uint_eq(end, n);
    }
  size_t first = 1, end = 1;
  draw(&o, 0, 0, &first, &end);
  ck_assert_uint_eq(first + end, 0);
}
END_TEST

/* Four tiles of 430 tokens, J = 20: 41 places for each of three cuts. In 40 passes a fixed cut
 * would show up 40 times; a uniform one more than 8 times with a chance under 1e-4. */
START_TEST(cuts_move_from_pass_to_pass) {
  const fl_study_options o = range(64, 160);
  size_t at[431] = { 0 };
  for (uint32_t d = 0; d < 160; d++) {
    size_t first, end;
    draw(&o, 430, d, &first, &end);
    at[first]++;
  }
  size_t places = 0;
  for (size_t i = 1; i < 430; i++) {
    ck_assert_uint_le(at[i], 8);
    places += at[i] > 0;
  }
  ck_assert_uint_eq(at[0], 40);
  ck_assert_uint_gt(places, 60);
}
END_TEST

/* 130 of 260 tiles: the first 256 places of van der Corput's sequence over 512 are the even
 * numbers, so that no two neighbours are missing but where the rotation meets the end: two tiles at
 * most. */
START_TEST(half_a_pass_is_spread_over_the_document) {
  const fl_study_options o = range(256, 512);
  const size_t n = 100000;
  uint8_t *seen = fl_calloc(n, 1);
  size_t hole = 0, longest = 0;
  for (uint32_t d = 0; d < 130; d++) {
    size_t first, end;
    draw(&o, n, d, &first, &end);
    memset(seen + first, 1, end - first);
  }
  for (size_t i = 0; i < n; i++) {
    hole = seen[i] ? 0 : hole + 1;
    if (hole > longest) longest = hole;
  }
  ck_assert_uint_gt(longest, 0);
  ck_assert_uint_le(longest, 2 * 512);
  fl_free(seen);
}
END_TEST

START_TEST(chunks_follow_from_draw_document_and_seed) {
  fl_study_options o = range(256, 512);
  const fl_doc_text doc = { .n_tokens = 20000 };
  fl_conv_plan a = { .doc = 1, .round = 2, .conv = 3, .draw = 17 }, b = a;
  size_t first, end, first2, end2, moved = 0;
  b.round = 9;
  b.conv = 0;
  fl_study_chunk(&o, &doc, &a, &first, &end);
  fl_study_chunk(&o, &doc, &b, &first2, &end2);
  ck_assert(first == first2 && end == end2);
  for (uint32_t d = 0; d < 20; d++) {
    a.draw = b.draw = d;
    b.doc = 2;
    fl_study_chunk(&o, &doc, &a, &first, &end);
    fl_study_chunk(&o, &doc, &b, &first2, &end2);
    moved += first != first2;
    o.seed++;
    fl_study_chunk(&o, &doc, &a, &first2, &end2);
    moved += first != first2;
    o.seed--;
  }
  ck_assert_uint_ge(moved, 36);
}
END_TEST

START_TEST(every_seven_draws_hold_each_kind) {
  const fl_study_options o = range(256, 512);
  uint32_t as_first[FL_N_SEED_KINDS] = { 0 };
  for (uint32_t block = 0; block < 70; block++) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < FL_N_SEED_KINDS; i++) {
      const fl_conv_plan p = { .doc = 5, .draw = block * FL_N_SEED_KINDS + i };
      const uint32_t kind = fl_study_kind(&o, &p);
      ck_assert_uint_lt(kind, FL_N_SEED_KINDS);
      seen |= 1u << kind;
      if (i == 0) as_first[kind]++;
    }
    ck_assert_uint_eq(seen, 127);
  }
  /* 70 draws of 7: ten each, deviation 2.9; five deviations either way. */
  for (size_t k = 0; k < FL_N_SEED_KINDS; k++) ck_assert(as_first[k] > 0 && as_first[k] < 25);
}
END_TEST

/* --- where tokens end ------------------------------------------------------------------------- */

static void check_ends(const fl_doc_text *d) {
  uint32_t before = 0;
  for (size_t i = 0; i < d->n_tokens; i++) {
    const uint32_t at = d->token_end[i];
    ck_assert(at >= before && at <= d->len);
    ck_assert(at == d->len || ((uint8_t)d->text[at] & 0xC0) != 0x80);
    before = at;
  }
  ck_assert_uint_eq(before, d->len);
}

START_TEST(token_ends_lie_between_characters) {
  static const char *const texts[] = {
    "plain words", "žluťoučký kůň", "漢字かな交じり文", "a🦊b👩‍🚀c", "", "x"
  };
  rig r = rig_open("embedded/model.gguf", 1);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    fl_doc_text d;
    const fl_tokenizer *t = fl_model_tokenizer(r.m);
    ck_assert_int_eq(fl_doc_text_init(&d, t, texts[i], strlen(texts[i]), NULL), FL_OK);
    ck_assert_str_eq(d.text, texts[i]);
    check_ends(&d);
    fl_doc_text_release(&d);
  }
  rig_close(&r);
}
END_TEST

/* Tokenizers of three kinds; some normalise, some lead with a space. The text is what the tokens
 * spell, whatever was given, and the offsets belong to it. */
START_TEST(text_is_what_the_tokens_spell) {
  static const char *const models[] = { "embedded/model.gguf", "tiny/tiny-gemma3.gguf",
                                        "tiny/tiny-gemma4-dense.gguf" };
  static const char given[] = "cafe\xCC\x81 ole\xCC\x81, and more";
  fl_gguf *g;
  fl_tokenizer *t;
  fl_doc_text d;
  fl_ids ids = { 0 };
  fl_buf spelled = { 0 };
  ck_assert_int_eq(fl_gguf_open(&g, fixture(models[_i]), NULL), FL_OK);
  ck_assert_int_eq(fl_tokenizer_open(&t, g, NULL), FL_OK);
  ck_assert_int_eq(fl_doc_text_init(&d, t, given, sizeof given - 1, NULL), FL_OK);
  ck_assert_int_eq(fl_tokenize(t, &ids, d.text, d.len, 0, NULL), FL_OK);
  fl_detokenize(t, &spelled, ids.data, ids.len, false);
  const char *text = spelled.data[0] == ' ' ? spelled.data + 1 : spelled.data;
  ck_assert_uint_eq(d.n_tokens, ids.len);
  ck_assert_str_eq(d.text, text);
  check_ends(&d);
  fl_buf_release(&spelled);
  fl_ids_release(&ids);
  fl_doc_text_release(&d);
  fl_tokenizer_close(t);
  fl_gguf_close(g);
}
END_TEST

START_TEST(bytes_that_are_no_text_are_kept) {
  rig r = rig_open("embedded/model.gguf", 1);
  const char bad[] = "a\xFF\x80\x80\x80\x80 b\xE6\xBC";
  fl_doc_text d;
  ck_assert_int_eq(fl_doc_text_init(&d, fl_model_tokenizer(r.m), bad, sizeof bad - 1, NULL), FL_OK);
  ck_assert_uint_gt(d.n_tokens, 0);
  ck_assert_uint_eq(d.token_end[d.n_tokens - 1], d.len);
  for (size_t i = 0; i < d.n_tokens; i++) ck_assert_uint_le(d.token_end[i], d.len);
  fl_doc_text_release(&d);
  rig_close(&r);
}
END_TEST

Suite *suite_chunk(void);
Suite *suite_chunk(void) {
  Suite *s = suite_create("chunk");
  TCase *core = tcase_create("core"), *text = tcase_create("text");
  tcase_add_loop_test(core, coverage_is_even_at_any_time, 0, N_EXACT);
  tcase_add_loop_test(core, narrow_ranges_overlap_without_gaps, 0, 3);
  tcase_add_test(core, short_documents_are_taken_whole);
  tcase_add_test(core, cuts_move_from_pass_to_pass);
  tcase_add_test(core, half_a_pass_is_spread_over_the_document);
  tcase_add_test(core, chunks_follow_from_draw_document_and_seed);
  tcase_add_test(core, every_seven_draws_hold_each_kind);
  tcase_add_test(text, token_ends_lie_between_characters);
  tcase_add_loop_test(text, text_is_what_the_tokens_spell, 0, 3);
  tcase_add_test(text, bytes_that_are_no_text_are_kept);
  suite_add_tcase(s, core);
  suite_add_tcase(s, text);
  return s;
}
