/* generate.c - prompts first, packed into slices; then one batched pass a token. */
#include "model/generate.h"

#include <string.h>

#include "base/mem.h"
#include "text/chat.h"

typedef struct live {
  size_t stream; /* index of the caller's stream */
  size_t done;   /* prompt tokens that were run */
  int32_t next;  /* token to run next, once the prompt is through */
} live;

typedef struct gen {
  fl_pass *pass;
  fl_stream *streams;
  const fl_generate_hooks *hooks;
  fl_sampler *sampler;
  live *live;
  size_t n_live;
  fl_span *span;    /* [n] */
  size_t *out_row;  /* [n] rows that decide a token */
  size_t *out_live; /* [n] the live stream each belongs to */
  float *logits;    /* [n, n_vocab] */
  size_t n;
  fl_arena arena; /* of the lists */
} gen;

/* Spans of one pass: what is left of prompts, in order, up to max_rows; else one token each. */
static size_t gather_spans(gen *g, size_t *n_out) {
  size_t room = fl_pass_max_rows(g->pass), n = 0, row = 0;
  *n_out = 0;
  for (size_t i = 0; i < g->n_live && room > 0; i++) {
    live *l = &g->live[i];
    fl_stream *s = &g->streams[l->stream];
    size_t left = s->n_prompt - l->done, take = left < room ? left : room;
    if (left == 0) {
      take = 1;
      g->span[n] = (fl_span){ .seq = s->seq, .tokens = &l->next, .n_rows = 1 };
    } else {
      g->span[n] = (fl_span){ .seq = s->seq,
                              .tokens = s->prompt + l->done,
                              .n_rows = take,
                              .n_no_output = take - (take == left) };
      l->done += take;
    }
    row += take;
    room -= take;
    n++;
    if (left > take) break; /* its prompt goes on in the next pass */
    g->out_row[*n_out] = row - 1;
    g->out_live[*n_out] = i;
    (*n_out)++;
  }
  return n;
}

/* Takes the token that a row decided. */
static void take_token(gen *g, live *l, const float *logits) {
  fl_stream *s = &g->streams[l->stream];
  const fl_model *m = fl_pass_model(g->pass);
  const fl_generate_hooks *h = g->hooks;
  int32_t token =
      fl_sampler_pick(g->sampler, logits, &s->sampling, s->out.data, s->out.len, &s->rng);
  if (h != NULL && h->on_row != NULL) h->on_row(h->ctx, l->stream, s->out.len, logits, token);
  if (fl_chat_stops(fl_model_template(m), fl_model_tokenizer(m), token)) {
    s->stop = FL_STOP_END;
    s->stop_token = token;
    return;
  }
  fl_ids_push(&s->out, token);
  l->next = token;
  if (h != NULL && h->on_token != NULL && h->on_token(h->ctx, l->stream, token))
    s->stop = FL_STOP_CALLER;
  else if (s->out.len >= s->max_new || fl_seq_rows(s->seq) >= fl_model_hparams(m)->n_ctx)
    s->stop = FL_STOP_LENGTH;
}

static void drop_finished(gen *g) {
  size_t n = 0;
  for (size_t i = 0; i < g->n_live; i++)
    if (g->streams[g->live[i].stream].stop == FL_STOP_NONE) g->live[n++] = g->live[i];
  g->n_live = n;
}

static int step(gen *g, fl_err *err) {
  size_t n_vocab = fl_model_hparams(fl_pass_model(g->pass))->n_vocab;
  size_t n_out, n = gather_spans(g, &n_out);
  int rc = fl_pass_forward(g->pass, g->span, n, err);
  if (rc < 0) return rc;
  if (n_out == 0) return FL_OK;
  fl_pass_logits(g->pass, g->out_row, n_out, g->logits);
  for (size_t i = 0; i < n_out; i++)
    take_token(g, &g->live[g->out_live[i]], g->logits + i * n_vocab);
  drop_finished(g);
  return FL_OK;
}

static void carve_lists(fl_arena *a, void *ctx) {
  gen *g = ctx;
  g->live = fl_arena_take(a, g->n, sizeof *g->live);
  g->span = fl_arena_take(a, g->n, sizeof *g->span);
  g->out_row = fl_arena_take(a, g->n, sizeof *g->out_row);
  g->out_live = fl_arena_take(a, g->n, sizeof *g->out_live);
}

static int gen_init(gen *g, size_t n, fl_err *err) {
  const fl_model *m = fl_pass_model(g->pass);
  size_t n_vocab = fl_model_hparams(m)->n_vocab;
  int rc = fl_sampler_new(&g->sampler, fl_model_kernels(m), n_vocab, err);
  if (rc < 0) return rc;
  g->n = n;
  g->logits =
      fl_aligned_calloc(n * n_vocab, sizeof *g->logits); /* large: zeroed as it is touched */
  if (!g->logits || fl_arena_lay_out(&g->arena, carve_lists, g) != FL_OK)
    return fl_fail(err, FL_ENOMEM, "out of memory");
  for (size_t i = 0; i < n; i++) {
    fl_stream *s = &g->streams[i];
    fl_ids_reset(&s->out);
    s->stop = s->max_new == 0 ? FL_STOP_LENGTH : FL_STOP_NONE;
    if (s->stop == FL_STOP_NONE) g->live[g->n_live++] = (live){ .stream = i };
  }
  return FL_OK;
}

int fl_generate(fl_pass *p, fl_stream *streams, size_t n, const fl_generate_hooks *hooks,
                fl_err *err) {
  gen g = { .pass = p, .streams = streams, .hooks = hooks };
  int rc;
  if (n == 0) return FL_OK;
  if ((rc = gen_init(&g, n, err)) < 0) goto done;
  while (g.n_live > 0) {
    if (hooks != NULL && hooks->cancelled != NULL && hooks->cancelled(hooks->ctx)) {
      rc = fl_fail(err, FL_EINTR, "stopped");
      break;
    }
    if ((rc = step(&g, err)) < 0) break;
  }
  for (size_t i = 0; rc == FL_OK && i < n; i++)
    if (streams[i].out.oom) rc = fl_fail(err, FL_ENOMEM, "out of memory");
done:
  fl_sampler_free(g.sampler);
  fl_arena_release(&g.arena);
  fl_free(g.logits);
  return rc;
}

void fl_streams_release(fl_stream *streams, size_t n) {
  for (size_t i = 0; i < n; i++) fl_ids_release(&streams[i].out);
}
