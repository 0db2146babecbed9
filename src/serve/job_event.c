/* job_event.c - see job_event.h. */
#include "serve/job_event.h"

#include <string.h>

#include "base/mem.h"

static void free_rest(fl_job_event *e) {
  for (size_t i = 0; i < e->start.n_docs; i++) fl_free(e->start.docs[i].name);
  fl_free(e->start.docs);
  fl_free(e->end.stop_string);
  fl_free(e->end.error);
}

void fl_job_event_release(fl_job_event *e) {
  free_rest(e);
  fl_buf_release(&e->text);
  fl_buf_release(&e->bytes);
  fl_free(e->token);
  fl_free(e->top);
  *e = (fl_job_event){ 0 };
}

void fl_job_event_reset(fl_job_event *e) {
  free_rest(e);
  fl_buf_reset(&e->text);
  fl_buf_reset(&e->bytes);
  *e = (fl_job_event){ .text = e->text,
                       .bytes = e->bytes,
                       .token = e->token,
                       .top = e->top,
                       .cap = e->cap,
                       .n_top = e->n_top };
}

void fl_job_event_forget_tokens(fl_job_event *e) {
  e->n_tokens = 0;
  fl_buf_reset(&e->bytes);
}

/* n_top is the same for all tokens of a job. */
bool fl_job_event_reserve(fl_job_event *e, size_t n_tokens, size_t n_top) {
  size_t cap = e->cap > 0 ? e->cap : 16;
  e->n_top = n_top;
  if (e->n_tokens + n_tokens <= e->cap) return true;
  while (cap < e->n_tokens + n_tokens) cap *= 2;
  fl_job_token *token = fl_reallocarray(e->token, cap, sizeof *token);
  if (token == NULL) return false;
  e->token = token;
  if (n_top > 0) {
    fl_job_token *top = fl_reallocarray(e->top, cap, n_top * sizeof *top);
    if (top == NULL) return false;
    e->top = top;
  }
  e->cap = cap;
  return true;
}

static void copy_tokens(fl_job_token *to, const fl_job_token *from, size_t n, size_t shift) {
  for (size_t i = 0; i < n; i++) {
    to[i] = from[i];
    to[i].at += shift;
  }
}

static bool merge_tokens(fl_job_event *to, const fl_job_event *later) {
  const size_t n = later->n_tokens, n_top = later->n_top, shift = to->bytes.len;
  if (n == 0) return true;
  fl_buf_append(&to->bytes, later->bytes.data, later->bytes.len);
  if (to->bytes.oom || !fl_job_event_reserve(to, n, n_top)) return false;
  copy_tokens(to->token + to->n_tokens, later->token, n, shift);
  if (n_top > 0) copy_tokens(to->top + to->n_tokens * n_top, later->top, n * n_top, shift);
  to->n_tokens += n;
  return true;
}

void fl_job_event_merge(fl_job_event *to, fl_job_event *later) {
  if (later->started) to->start = later->start;
  if (later->ended) to->end = later->end;
  to->started = to->started || later->started;
  to->ended = to->ended || later->ended;
  later->start = (fl_job_start){ 0 }; /* moved */
  later->end = (fl_job_end){ 0 };
  fl_buf_append(&to->text, later->text.data, later->text.len);
  to->lost = to->lost || later->lost || !merge_tokens(to, later) || to->text.oom;
  fl_job_event_reset(later);
}
