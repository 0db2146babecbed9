/* check_detokenize.c - pieces are whole, never reach into a stop string, and add up to the text. */
#include "base/utf8.h"
#include "model_util.h"
#include "serve/detokenize.h"

static rig r;

static void open_model(void) { r = rig_open("embedded/model.gguf", 1); }
static void close_model(void) { rig_close(&r); }

/* Byte tokens of the vocabulary: text is cut at every byte. */
static void byte_ids(fl_ids *ids, const char *s, size_t n) {
  fl_buf b = { 0 };
  for (size_t i = 0; i < n; i++) {
    size_t had = ids->len;
    ck_assert_int_eq(fl_tokenize(fl_model_tokenizer(r.m), ids, s + i, 1, 0, NULL), FL_OK);
    ck_assert_uint_eq(ids->len, had + 1);
    fl_buf_reset(&b);
    fl_detokenize_one(fl_model_tokenizer(r.m), &b, ids->data[had], false);
    ck_assert(b.len == 1 && b.data[0] == s[i]);
  }
  fl_buf_release(&b);
}

/* Feeds all ids; returns what went out, and which stop string ended it (-1). */
static int feed(fl_detokenizer *d, const fl_ids *ids, fl_buf *out) {
  fl_job_event piece = { 0 };
  int stopped = -1;
  for (size_t i = 0; i < ids->len && stopped < 0; i++) {
    ck_assert_int_eq(fl_detokenizer_token(d, ids->data[i], NULL, 0, &stopped), FL_OK);
    ck_assert_int_eq(fl_detokenizer_piece(d, stopped >= 0, &piece), FL_OK);
    ck_assert(fl_utf8_valid(piece.text.data, piece.text.len, NULL));
    fl_buf_append(out, piece.text.data, piece.text.len);
    fl_job_event_reset(&piece);
  }
  ck_assert_int_eq(fl_detokenizer_piece(d, true, &piece), FL_OK);
  fl_buf_append(out, piece.text.data, piece.text.len);
  fl_job_event_release(&piece);
  return stopped;
}

static void expect(const char *text, size_t n, char **stops, size_t n_stop, const char *want,
                   int which) {
  fl_ids ids = { 0 };
  fl_buf out = { 0 };
  fl_detokenizer d;
  byte_ids(&ids, text, n);
  fl_detokenizer_init(&d, fl_model_tokenizer(r.m), false, stops, n_stop, false, 0);
  int stopped = feed(&d, &ids, &out);
  ck_assert_msg(strcmp(out.data != NULL ? out.data : "", want) == 0, "[%s] not [%s]", out.data,
                want);
  ck_assert_int_eq(stopped, which);
  fl_detokenizer_release(&d);
  fl_buf_release(&out);
  fl_ids_release(&ids);
}

START_TEST(test_characters) {
  static const char text[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";
  expect(text, strlen(text), NULL, 0, text, -1);
  expect("a\xC3", 2, NULL, 0, "a\xEF\xBF\xBD", -1); /* cut */
  expect("\xFF"
         "b\x80",
         3, NULL, 0,
         "\xEF\xBF\xBD"
         "b\xEF\xBF\xBD",
         -1);
  expect("", 0, NULL, 0, "", -1);
}
END_TEST

START_TEST(test_stops) {
  char *one[] = { (char[]){ "END" } };
  char *two[] = { (char[]){ "aab" }, (char[]){ "ab" } };
  char *euro[] = { (char[]){ "\xE2\x82\xAC" } };
  expect("xyzENDabc", 9, one, 1, "xyz", 0);
  expect("xEyENzEN", 8, one, 1, "xEyENzEN", -1); /* only beginnings: all comes out in the end */
  expect("END", 3, one, 1, "", 0);
  expect("EENDD", 5, one, 1, "E", 0);
  expect("caaab", 5, two, 2, "ca", 0); /* the one that begins first */
  expect("cab", 3, two, 2, "c", 1);
  expect("5 \xE2\x82\xAC!", 6, euro, 1, "5 ", 0);
}
END_TEST

/* Nothing that may become a stop string is shown, at any moment. */
START_TEST(test_held_back) {
  char *stops[] = { (char[]){ "stop now" } };
  const char *text = "we stop no more, stop now";
  fl_ids ids = { 0 };
  fl_detokenizer d;
  fl_buf out = { 0 };
  int stopped = -1;
  byte_ids(&ids, text, strlen(text));
  fl_detokenizer_init(&d, fl_model_tokenizer(r.m), false, stops, 1, false, 0);
  for (size_t i = 0; i < ids.len; i++) {
    fl_job_event piece = { 0 };
    ck_assert_int_eq(fl_detokenizer_token(&d, ids.data[i], NULL, 0, &stopped), FL_OK);
    ck_assert_int_eq(fl_detokenizer_piece(&d, false, &piece), FL_OK);
    fl_buf_append(&out, piece.text.data, piece.text.len);
    fl_job_event_release(&piece);
    /* What is out is all but the longest end that is a beginning of the stop string. */
    size_t held = 0;
    for (size_t n = 1; n < strlen(stops[0]) && n <= i + 1; n++)
      if (memcmp(text + i + 1 - n, stops[0], n) == 0) held = n;
    if (stopped < 0) ck_assert_uint_eq(out.len, i + 1 - held);
  }
  ck_assert_int_eq(stopped, 0);
  ck_assert_str_eq(out.data, "we stop no more, ");
  fl_detokenizer_release(&d);
  fl_buf_release(&out);
  fl_ids_release(&ids);
}
END_TEST

/* Log probabilities go with the piece that has the token's last byte; those in a stop string
 * don't. */
START_TEST(test_logprobs) {
  enum { V = 2048 };
  static float logits[V];
  char *stops[] = { (char[]){ "cd" } };
  const char *text = "a\xC3\xA9"
                     "bcd";
  static const size_t tokens[] = { 1, 0, 2, 1, 0, 0 };
  fl_ids ids = { 0 };
  fl_detokenizer d;
  int stopped = -1;
  byte_ids(&ids, text, strlen(text));
  for (size_t i = 0; i < V; i++) logits[i] = (float)(i % 7) - 3;
  logits[100] = 20;
  logits[200] = 20;
  fl_detokenizer_init(&d, fl_model_tokenizer(r.m), false, stops, 1, true, 3);
  double sum = 0;
  for (size_t i = 0; i < V; i++) sum += exp((double)logits[i]);
  for (size_t i = 0; i < ids.len; i++) {
    fl_job_event p = { 0 };
    ck_assert_int_eq(fl_detokenizer_token(&d, ids.data[i], logits, V, &stopped), FL_OK);
    ck_assert_int_eq(fl_detokenizer_piece(&d, stopped >= 0, &p), FL_OK);
    ck_assert_uint_eq(p.n_tokens, tokens[i]);
    for (size_t k = 0; k < p.n_tokens; k++) {
      double want = (double)logits[p.token[k].id] - log(sum);
      ck_assert_double_eq_tol((double)p.token[k].logprob, want, 1e-5); /* f32 at 24: 2^-20 */
      ck_assert_uint_eq(p.token[k].len, 1);
      ck_assert_uint_eq(p.n_top, 3);
      ck_assert_int_eq(p.top[k * 3].id, 100); /* ties: lower id first */
      ck_assert_int_eq(p.top[k * 3 + 1].id, 200);
      ck_assert_int_eq(p.top[k * 3 + 2].id, 6);
      ck_assert_uint_le(p.top[k * 3].at + p.top[k * 3].len, p.bytes.len);
    }
    fl_job_event_release(&p);
  }
  ck_assert_int_eq(stopped, 0);
  fl_detokenizer_release(&d);
  fl_ids_release(&ids);
}
END_TEST

START_TEST(test_no_memory) {
  static float logits[2048];
  int failed = 0;
  for (size_t n = 1; n < 14; n++) {
    fl_detokenizer d;
    fl_job_event p = { 0 };
    int stopped;
    fl_detokenizer_init(&d, fl_model_tokenizer(r.m), false, NULL, 0, true, 2);
    fl_mem_fault_after(n);
    int rc = fl_detokenizer_token(&d, 65, logits, 2048, &stopped);
    if (rc == FL_OK) rc = fl_detokenizer_piece(&d, true, &p);
    fl_mem_fault_after(0);
    ck_assert(rc == FL_OK || rc == FL_ENOMEM);
    failed += rc == FL_ENOMEM;
    fl_job_event_release(&p);
    fl_detokenizer_release(&d);
  }
  ck_assert_int_ge(failed, 5);
}
END_TEST

Suite *suite_detokenize(void) {
  Suite *s = suite_create("detokenize");
  TCase *t = tcase_create("core");
  tcase_add_checked_fixture(t, open_model, close_model);
  tcase_add_test(t, test_characters);
  tcase_add_test(t, test_stops);
  tcase_add_test(t, test_held_back);
  tcase_add_test(t, test_logprobs);
  tcase_add_test(t, test_no_memory);
  suite_add_tcase(s, t);
  return s;
}
