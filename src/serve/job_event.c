/* job_event.c - see job_event.h. */
#include "serve/job_event.h"

#include <string.h>

#include "base/mem.h"

static void free_rest(fl_job_event *e) {
  for (size_t i = 0; i < e->n_docs; i++) fl_free(e->docs[i].name);
  fl_free(e->docs);
  fl_free(e->stop_string);
  fl_free(e->error);
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
  if (!fl_job_event_reserve(to, n, n_top)) return false;
  fl_buf_append(&to->bytes, later->bytes.data, later->bytes.len);
  if (to->bytes.oom) return false;
  copy_tokens(to->token + to->n_tokens, later->token, n, shift);
  if (n_top > 0) copy_tokens(to->top + to->n_tokens * n_top, later->top, n * n_top, shift);
  to->n_tokens += n;
  return true;
}

static void move_start(fl_job_event *to, fl_job_event *later) {
  to->started = true;
  to->docs = later->docs;
  to->n_docs = later->n_docs;
  to->rows = later->rows;
  to->prompt_tokens = later->prompt_tokens;
  to->cached_tokens = later->cached_tokens;
  to->queue_s = later->queue_s;
  later->docs = NULL;
  later->n_docs = 0;
}

static void move_end(fl_job_event *to, fl_job_event *later) {
  to->ended = true;
  to->finish = later->finish;
  to->stop_string = later->stop_string;
  to->completion_tokens = later->completion_tokens;
  to->drafted = later->drafted;
  to->accepted = later->accepted;
  to->ttft_s = later->ttft_s;
  to->seconds = later->seconds;
  to->code = later->code;
  to->error = later->error;
  later->stop_string = later->error = NULL;
}

void fl_job_event_merge(fl_job_event *to, fl_job_event *later) {
  if (later->started) move_start(to, later);
  fl_buf_append(&to->text, later->text.data, later->text.len);
  to->lost = to->lost || later->lost || !merge_tokens(to, later) || to->text.oom;
  if (later->ended) move_end(to, later);
  fl_job_event_reset(later);
}
