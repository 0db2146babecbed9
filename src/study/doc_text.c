/* doc_text.c - a document's text with the byte offset after each of its tokens. */
#include <string.h>

#include "base/mem.h"
#include "study/study.h"

/* Back to the start of the UTF-8 sequence that `at` would cut; bytes that belong to none stay. */
static size_t whole_before(const char *text, size_t len, size_t at) {
  size_t back = 0;
  if (at >= len) return len;
  while (back < 3 && back < at && ((uint8_t)text[at - back] & 0xC0) == 0x80) back++;
  return ((uint8_t)text[at - back] & 0xC0) == 0x80 ? at : at - back;
}

/* ends[i] = bytes spelled by tokens 0..i; the spelling itself goes to *joined. */
static int spell(uint32_t *ends, fl_buf *joined, const fl_tokenizer *t, const fl_ids *ids,
                 fl_err *err) {
  for (size_t i = 0; i < ids->len; i++) {
    fl_detokenize_one(t, joined, ids->data[i], true);
    if (joined->len > UINT32_MAX)
      return fl_fail(err, FL_EINPUT, "a document spells more than 4 GiB; split it");
    ends[i] = (uint32_t)joined->len;
  }
  return joined->oom ? fl_fail(err, FL_ENOMEM, "out of memory for a document") : FL_OK;
}

/* A SentencePiece vocabulary may spell a space before the first word that the text has not. */
static bool is_led_by_space(const fl_buf *joined, const char *text, size_t len) {
  return joined->len == len + 1 && joined->data[0] == ' ' &&
         memcmp(joined->data + 1, text, len) == 0;
}

int fl_doc_text_init(fl_doc_text *out, const fl_tokenizer *t, const char *text, size_t len,
                     fl_err *err) {
  fl_ids ids = { 0 };
  fl_buf joined = { 0 };
  uint32_t *ends = NULL;
  int rc = fl_tokenize(t, &ids, text, len, 0, err);
  if (rc != FL_OK) goto done;
  ends = fl_calloc(ids.len + 1, sizeof *ends);
  rc = ids.oom || !ends ? fl_fail(err, FL_ENOMEM, "out of memory for a document") : FL_OK;
  if (rc == FL_OK) rc = spell(ends, &joined, t, &ids, err);
  if (rc != FL_OK) goto done;
  const size_t lead = is_led_by_space(&joined, text, len) ? 1 : 0;
  const size_t total = joined.len - lead;
  char *copy = fl_strndup(joined.len > 0 ? joined.data + lead : "", total);
  if (!copy) {
    rc = fl_fail(err, FL_ENOMEM, "out of memory for a document");
    goto done;
  }
  for (size_t i = 0; i < ids.len; i++)
    ends[i] = (uint32_t)whole_before(copy, total, ends[i] > lead ? ends[i] - lead : 0);
  *out = (fl_doc_text){ .text = copy, .len = total, .n_tokens = ids.len, .token_end = ends };
  ends = NULL;
done:
  fl_ids_release(&ids);
  fl_buf_release(&joined);
  fl_free(ends);
  return rc;
}

const char *fl_doc_text_span(const fl_doc_text *d, size_t first, size_t end, size_t *len) {
  const size_t from = first > 0 ? d->token_end[first - 1] : 0;
  const size_t to = end > 0 ? d->token_end[end - 1] : 0;
  *len = to - from;
  return d->text + from;
}

void fl_doc_text_release(fl_doc_text *d) {
  fl_free((char *)(uintptr_t)d->text); /* made by fl_doc_text_init, const for its users */
  fl_free((uint32_t *)(uintptr_t)d->token_end);
  *d = (fl_doc_text){ 0 };
}
