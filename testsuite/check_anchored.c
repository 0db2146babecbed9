/* check_anchored.c - conversations about places of the embedded documents: their words are the
 * document's, their probabilities those of a plain forward pass. */
#include "base/json.h"
#include "study/anchored.h"
#include "study/conv_json.h"
#include "study_lab.h"

static lab *lab_of(const char *kinds, unsigned threads, size_t max_rows) {
  lab *s = lab_new(threads, max_rows);
  ck_assert_int_eq(fl_mix_parse(&s->o.mix, kinds, NULL), FL_OK);
  for (size_t i = 0; i < 4; i++) s->doc[i].name = files[i];
  for (uint32_t i = 0; i < N; i++) s->plan[i].draw = i / 4 + 10 * (i % 4);
  return s;
}

/* --- which place ----------------------------------------------------------------------------- */

/* A pass visits each span once; the next one does so in another order. */
START_TEST(every_span_is_visited_before_any_again) {
  enum { SPANS = 37 };
  size_t first[SPANS], moved = 0;
  for (uint32_t pass = 0; pass < 5; pass++) {
    bool seen[SPANS] = { false };
    for (uint32_t i = 0; i < SPANS; i++) {
      size_t at;
      ck_assert_int_eq(fl_anchored_span(&at, pass * SPANS + i, 3, 42, SPANS), FL_OK);
      ck_assert(at < SPANS && !seen[at]);
      seen[at] = true;
      if (pass == 0) first[i] = at;
      else moved += first[i] != at;
    }
  }
  ck_assert_uint_gt(moved, 2 * SPANS);
}
END_TEST

/* The text between two tokens of a document. */
static const char *between(const fl_doc_text *d, size_t first, size_t end, size_t *len) {
  const size_t from = first ? d->token_end[first - 1] : 0;
  *len = d->token_end[end - 1] - from;
  return d->text + from;
}

static void check_place(const fl_study_options *o, const fl_doc_text *d, const fl_anchored *a) {
  ck_assert(a->first <= a->at_first && a->at_first < a->at_end && a->at_end <= a->end);
  ck_assert(a->end <= d->n_tokens);
  ck_assert(a->end - a->first >= o->chunk_min && a->end - a->first <= o->chunk_max);
}

/* A quote's answer stands in the document once it is asked for by its first words. */
static void check_quote(const fl_doc_text *d, const fl_anchored *a) {
  const char *at = strstr(d->text, a->answer), *named;
  size_t len;
  ck_assert_ptr_nonnull(at);
  const char *chunk = between(d, a->first, a->end, &len);
  ck_assert(at >= chunk && at + strlen(a->answer) <= chunk + len);
  /* The last thing in quotation marks that begins as the answer does. */
  char words[16];
  snprintf(words, sizeof words, "%.12s", a->answer);
  named = strstr(a->request, words);
  ck_assert_ptr_nonnull(named);
  ck_assert(named > a->request && named[-1] == '"');
}

/* With the term in its gap the request holds the span. */
static void check_cloze(const fl_doc_text *d, const fl_text_span *span, const fl_anchored *a) {
  const char *gap = strstr(a->request, "____"), *text = d->text + span->from;
  const size_t len = span->to - span->from;
  ck_assert_ptr_nonnull(gap);
  const char *end = a->request + strlen(a->request);
  const size_t after = (size_t)(end - (gap + 4)), missing = len - after;
  ck_assert_uint_lt(after, len);
  ck_assert(memcmp(text + missing, gap + 4, after) == 0);
  if (strlen(a->answer) == len) {
    ck_assert(memcmp(a->answer, text, len) == 0);
    return;
  }
  const size_t term = strlen(a->answer), before = missing - term;
  ck_assert(memcmp(text + before, a->answer, term) == 0);
  ck_assert(memcmp(gap - before, text, before) == 0);
}

START_TEST(requests_and_answers_are_the_documents) {
  lab *s = lab_of("quote,cloze,sentence", 1, 64);
  size_t kinds[FL_N_WAYS] = { 0 }, whole = 0, given = 0;
  for (size_t k = 0; k < 4; k++) {
    const fl_doc_text *d = &s->doc[k];
    fl_text_spans spans;
    ck_assert_int_eq(fl_text_spans_read(&spans, d->text, d->len, NULL), FL_OK);
    for (uint32_t i = 0; i < 3 * spans.n; i++) {
      fl_way way = (fl_way)(FL_WAY_QUOTE + i % 3);
      fl_anchored a;
      ck_assert_int_eq(fl_anchored_make(&a, &way, i, (uint32_t)k, &s->o, d, &spans, NULL), FL_OK);
      check_place(&s->o, d, &a);
      /* Who does not see the chunk is told the document's name. */
      ck_assert_ptr_nonnull(
          strstr(a.request ? a.request : a.shown, spans.n_headings ? "\"" : "doc"));
      if (way == FL_WAY_QUOTE) check_quote(d, &a);
      if (way == FL_WAY_CLOZE) check_cloze(d, &spans.span[a.span], &a);
      if (way == FL_WAY_SENTENCE) {
        ck_assert(a.shown && !a.request);
        given += a.answer != NULL;
      }
      whole += way == FL_WAY_CLOZE && strchr(a.answer, ' ') && strchr(a.answer, '.');
      kinds[way]++;
      fl_anchored_release(&a);
    }
    fl_text_spans_release(&spans);
  }
  for (fl_way w = FL_WAY_QUOTE; w < FL_N_WAYS; w++) ck_assert_uint_gt(kinds[w], 50);
  ck_assert(whole > 0 && given > 0);
  lab_free(s);
}
END_TEST

/* --- conversations --------------------------------------------------------------------------- */

static const char *const mixes[] = { "quote=1", "cloze=1", "sentence=1",
                                     "quote,cloze,sentence,seeds" };

/* Bit for bit, on the embedded model. */
START_TEST(given_answers_have_the_teachers_probabilities) {
  lab *s = lab_of(mixes[_i], 2, 96);
  fl_conv all[N];
  bool ok[N];
  size_t made = 0;
  if (_i == 1) s->o.max_a = 40; /* the embedded model believes few words of a cloze */
  make(s, all, ok, 0, N, NULL, NULL);
  for (size_t i = 0; i < N; i++) {
    if (!ok[i]) continue;
    check_teacher(s, i, &all[i], false);
    made++;
    if (all[i].kind != FL_N_SEED_KINDS) continue;
    ck_assert(all[i].at_end > all[i].at_first);
    ck_assert(all[i].first <= all[i].at_first && all[i].at_end <= all[i].end);
    /* Supervised from the row before the answer on, its end included. */
    ck_assert_uint_eq(all[i].sup[all[i].targets.n_rows - 1], all[i].tokens.len - 2);
    ck_assert_uint_eq(all[i].sup[0] + all[i].targets.n_rows, all[i].tokens.len - 1);
  }
  ck_assert_uint_ge(made, _i == 1 ? 1 : 3);
  release(all, N);
  lab_free(s);
}
END_TEST

START_TEST(alone_and_in_company_alike) {
  lab *many = lab_of(mixes[_i], 2, 256), *lone = lab_of(mixes[_i], 1, 61);
  fl_conv all[N], one;
  bool ok[N], ok_one;
  make(many, all, ok, 0, N, NULL, NULL);
  for (size_t i = 0; i < N; i += 3) {
    make(lone, &one, &ok_one, i, 1, NULL, NULL);
    ck_assert(ok_one == ok[i]);
    ck_assert(!ok_one || convs_equal(&one, &all[i]));
    ck_assert(!ok_one || (one.at_first == all[i].at_first && one.at_end == all[i].at_end));
    fl_conv_release(&one);
  }
  release(all, N);
  lab_free(many);
  lab_free(lone);
}
END_TEST

/* What is written about a conversation gives it back. */
START_TEST(lines_give_the_place_back) {
  lab *s = lab_of("quote=1", 1, 256);
  fl_conv all[N], back;
  bool ok[N];
  const fl_conv_limits limits = { .n_vocab = s->r.hp->n_vocab,
                                  .max_tokens = 4096,
                                  .max_sup = 4096 };
  const fl_conv_label label = { .name = "a", .hash = "b" };
  make(s, all, ok, 0, 2, NULL, NULL);
  for (size_t i = 0; i < 2; i++) {
    fl_buf line = { 0 };
    fl_json *o = NULL;
    ck_assert(ok[i]);
    fl_conv_print(&line, &all[i], &label);
    ck_assert_int_eq(fl_json_parse(&o, line.data, line.len, NULL), FL_OK);
    ck_assert_int_eq(fl_conv_parse(&back, o, &limits), FL_OK);
    ck_assert(convs_equal(&back, &all[i]) && strcmp(fl_conv_kind(&back), "quote") == 0);
    ck_assert(back.at_first == all[i].at_first && back.at_end == all[i].at_end);
    fl_conv_release(&back);
    fl_json_free(o);
    /* A place outside its chunk is refused. */
    char *at = strstr(line.data, "\"at\":[");
    ck_assert_ptr_nonnull(at);
    for (at += 6; *at != ','; at++) *at = '9';
    for (at++; *at != ']'; at++) *at = '9';
    ck_assert_int_eq(fl_json_parse(&o, line.data, line.len, NULL), FL_OK);
    ck_assert_int_eq(fl_conv_parse(&back, o, &limits), FL_EINPUT);
    fl_json_free(o);
    fl_buf_release(&line);
  }
  release(all, 2);
  lab_free(s);
}
END_TEST

START_TEST(lack_of_memory_leaves_nothing_behind) {
  lab *s = lab_of("quote,cloze,sentence", 1, 256);
  fl_conv out[3];
  bool ok[3];
  int rc = FL_ENOMEM;
  for (size_t n = 1; rc != FL_OK && n < 100000; n += 1 + n / 4) {
    fl_mem_fault_after(n);
    rc = fl_study_make(out, ok, s->plan, s->text, 3, &s->o, s->pass, s->pool, NULL, NULL, NULL);
    fl_mem_fault_after(0);
    ck_assert_msg(rc == FL_OK || rc == FL_ENOMEM || rc == FL_EFULL, "fault %zu: %d", n, rc);
    ck_assert_uint_eq(fl_kv_pool_bytes(s->pool), 0);
  }
  ck_assert_int_eq(rc, FL_OK);
  release(out, 3);
  lab_free(s);
}
END_TEST

/* Documents in which there is nothing to ask about, and answers that find no room. */
START_TEST(what_cannot_be_made_is_skipped) {
  lab *s = lab_of("quote,cloze,sentence", 1, 256);
  fl_doc_text blank;
  fl_conv out[3];
  bool ok[3];
  fl_study_stats stats;
  ck_assert_int_eq(fl_doc_text_init(&blank, fl_model_tokenizer(s->r.m), "\n---\n", 5, NULL), FL_OK);
  for (size_t i = 0; i < 3; i++) s->text[i] = &blank;
  ck_assert_uint_eq(make(s, out, ok, 0, 3, NULL, &stats), 0);
  ck_assert_uint_eq(stats.skipped, 3);
  for (size_t i = 0; i < 3; i++) s->text[i] = &s->doc[i];
  s->o.max_a = s->o.max_q = 1;
  ck_assert_uint_eq(make(s, out, ok, 0, 3, NULL, &stats), 0);
  ck_assert_uint_eq(stats.skipped, 3);
  fl_doc_text_release(&blank);
  lab_free(s);
}
END_TEST

Suite *suite_anchored(void);
Suite *suite_anchored(void) {
  Suite *s = suite_create("anchored");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, every_span_is_visited_before_any_again);
  tcase_add_test(t, requests_and_answers_are_the_documents);
  tcase_add_loop_test(t, given_answers_have_the_teachers_probabilities, 0, 4);
  tcase_add_loop_test(t, alone_and_in_company_alike, 0, 4);
  tcase_add_test(t, lines_give_the_place_back);
  tcase_add_test(t, lack_of_memory_leaves_nothing_behind);
  tcase_add_test(t, what_cannot_be_made_is_skipped);
  suite_add_tcase(s, t);
  return s;
}
