/* check_retell.c - what is had repeated of a document, and how it is asked for. */
#include "cart_util.h"
#include "study/retell.h"

static fl_doc_text read_doc(const rig *r, fl_buf *text) {
  fl_doc_text d = { 0 };
  ck_assert_int_eq(fl_fs_read(text, fixture("embedded/docs/mine.md"), 1 << 20, NULL), FL_OK);
  ck_assert_int_eq(fl_doc_text_init(&d, fl_model_tokenizer(r->m), text->data, text->len, NULL),
                   FL_OK);
  return d;
}

static fl_retold retell(const rig *r, const fl_doc_text *d, size_t piece, size_t max_pieces) {
  const fl_retell_options o = { .piece = piece, .max_pieces = max_pieces };
  fl_retold out = { 0 };
  fl_err err = { 0 };
  ck_assert_msg(fl_retell(&out, d, fl_model_tokenizer(r->m), fl_model_template(r->m), &o, &err) ==
                    FL_OK,
                "%s", err.text);
  return out;
}

/* The text of a conversation, markers included. */
static fl_buf said(const rig *r, const fl_ids *ids) {
  fl_buf b = { 0 };
  fl_detokenize(fl_model_tokenizer(r->m), &b, ids->data, ids->len, true);
  fl_buf_append(&b, "", 1);
  return b;
}

/* The answer: what stands behind the assistant's opener, without the end of its turn. */
static const char *answer_of(fl_buf *b) {
  static const char end[] = "<|im_end|>";
  char *at = strstr(b->data, "<|im_start|>assistant\n");
  ck_assert_ptr_nonnull(at);
  char *think = strstr(at, "</think>\n\n");
  at = think ? think + strlen("</think>\n\n") : at + strlen("<|im_start|>assistant\n");
  char *stop = strstr(at, end);
  ck_assert_ptr_nonnull(stop);
  *stop = '\0';
  return at;
}

START_TEST(pieces_make_the_whole_text_in_order) {
  rig r = rig_open("embedded/model.gguf", 1);
  fl_buf text = { 0 }, all = { 0 };
  fl_doc_text d = read_doc(&r, &text);
  for (size_t piece = 7; piece < 2 * d.n_tokens; piece *= 3) {
    fl_retold got = retell(&r, &d, piece, SIZE_MAX);
    ck_assert_uint_eq(got.n, (d.n_tokens + piece - 1) / piece);
    all.len = 0;
    for (size_t i = 0; i < got.n; i++) {
      fl_buf b = said(&r, &got.conv[i]);
      fl_buf_puts(&all, answer_of(&b));
      fl_buf_release(&b);
    }
    ck_assert_uint_eq(all.len, d.len);
    ck_assert(memcmp(all.data, d.text, d.len) == 0);
    fl_retold_release(&got);
  }
  fl_buf_release(&all);
  fl_buf_release(&text);
  fl_doc_text_release(&d);
  rig_close(&r);
}
END_TEST

/* All but the first are asked for by the words before them. */
START_TEST(requests_quote_what_stands_before) {
  rig r = rig_open("embedded/model.gguf", 1);
  fl_buf text = { 0 };
  fl_doc_text d = read_doc(&r, &text);
  fl_retold got = retell(&r, &d, 32, 5);
  ck_assert_uint_eq(got.n, 5);
  for (size_t i = 0; i < got.n; i++) {
    fl_buf b = said(&r, &got.conv[i]);
    char *quote = strchr(b.data, '"');
    ck_assert((quote == NULL) == (i == 0));
    const char *answer = answer_of(&b);
    const char *at = strstr(d.text, answer);
    ck_assert_ptr_nonnull(at);
    if (i > 0) {
      char *close = strstr(quote + 1, "\"<|im_end|>");
      ck_assert_ptr_nonnull(close);
      const size_t n = (size_t)(close - quote - 1);
      ck_assert(n > 0 && at - d.text >= (ptrdiff_t)n && memcmp(at - n, quote + 1, n) == 0);
    }
    fl_buf_release(&b);
  }
  fl_retold_release(&got);
  fl_buf_release(&text);
  fl_doc_text_release(&d);
  rig_close(&r);
}
END_TEST

START_TEST(a_document_without_tokens_is_asked_for) {
  rig r = rig_open("embedded/model.gguf", 1);
  fl_doc_text d = { 0 };
  ck_assert_int_eq(fl_doc_text_init(&d, fl_model_tokenizer(r.m), "", 0, NULL), FL_OK);
  fl_retold got = retell(&r, &d, 32, 8);
  ck_assert_uint_eq(got.n, 1);
  fl_buf b = said(&r, &got.conv[0]);
  ck_assert_str_eq(answer_of(&b), "");
  fl_buf_release(&b);
  fl_retold_release(&got);
  fl_doc_text_release(&d);
  rig_close(&r);
}
END_TEST

Suite *suite_retell(void);
Suite *suite_retell(void) {
  Suite *s = suite_create("retell");
  TCase *core = tcase_create("Core"), *limits = tcase_create("Limits");
  tcase_add_test(core, pieces_make_the_whole_text_in_order);
  tcase_add_test(core, requests_quote_what_stands_before);
  tcase_add_test(limits, a_document_without_tokens_is_asked_for);
  suite_add_tcase(s, core);
  suite_add_tcase(s, limits);
  return s;
}
