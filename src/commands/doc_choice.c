/* ask.c - see doc_choice.h. */
#include "commands/doc_choice.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/signals.h"

static int selection_room(selection *s, size_t n, fl_err *err) {
  s->docs = fl_calloc(n + 1, sizeof *s->docs);
  return s->docs ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
}

int selection_retrieve(selection *out, fl_fleet *f, const char *query, const fl_rag_options *o,
                       fl_err *err) {
  selection s = { 0 };
  fl_err why = { 0 };
  int rc = fl_fleet_retrieve(f, query, strlen(query), o, &s.hits, &why);
  if (rc == FL_ENOENT)
    return fl_fail(err, FL_EFAIL,
                   "the fleet has no index; make it with flotilla index, or name a document with "
                   "--oracle");
  if (rc != FL_OK) return fl_fail(err, rc, "%s", why.text);
  rc = selection_room(&s, s.hits.n_docs, err);
  if (rc != FL_OK) {
    selection_release(&s);
    return rc;
  }
  for (size_t i = 0; i < s.hits.n_docs; i++) s.docs[s.n_docs++] = s.hits.doc[i].doc;
  *out = s;
  return FL_OK;
}

static int refuse_name(const fl_fleet *f, const char *name, fl_err *err) {
  enum { SHOWN = 8 };
  fl_buf names = { 0 };
  size_t n = fl_fleet_n_docs(f);
  for (size_t i = 0; i < n && i < SHOWN; i++) {
    fl_doc_info d;
    fl_fleet_doc(f, i, &d);
    fl_buf_printf(&names, "%s%s", i ? ", " : "", d.name);
  }
  if (n > SHOWN) fl_buf_printf(&names, " and %zu more", n - SHOWN);
  int rc = fl_fail(err, FL_EUSAGE, "%s: no such document in the fleet; it has %s", name,
                   names.data ? names.data : "none");
  fl_buf_release(&names);
  return rc;
}

int selection_named(selection *out, fl_fleet *f, const opt_list *names, fl_err *err) {
  selection s = { .named = true };
  int rc = selection_room(&s, names->n, err);
  for (size_t i = 0; i < names->n && rc == FL_OK; i++) {
    size_t at;
    if (fl_fleet_find(f, names->v[i], &at) != FL_OK) {
      rc = refuse_name(f, names->v[i], err);
    } else {
      s.docs[s.n_docs++] = at;
    }
  }
  if (rc == FL_OK) {
    *out = s;
  } else {
    selection_release(&s);
  }
  return rc;
}

void selection_release(selection *s) {
  fl_hits_release(&s->hits);
  fl_free(s->docs);
  *s = (selection){ 0 };
}

void hit_json(fl_json *row, const fl_hits *h, const fl_hit *hit) {
  fl_evidence why;
  fl_hits_evidence(h, hit, &why);
  fl_json_set_num(row, "score", why.score);
  if (why.cosine_rank > 0) {
    fl_json_set_num(row, "cosine", why.cosine);
    fl_json_set_u64(row, "cosine_rank", why.cosine_rank);
  }
  if (hit->gain < 0 || hit->gain > 0) fl_json_set_num(row, "gain", why.gain);
  if (why.words_rank > 0) {
    fl_json_set_num(row, "words", why.words);
    fl_json_set_u64(row, "words_rank", why.words_rank);
    fl_json_set_str(row, "matched", why.matched);
  }
}

fl_json *selection_json(const selection *s, const fl_fleet *f) {
  fl_json *rows = fl_json_array();
  for (size_t i = 0; rows && i < s->n_docs; i++) {
    fl_doc_info d;
    fl_json *row = fl_json_object();
    fl_fleet_doc(f, s->docs[i], &d);
    fl_json_set_str(row, "name", d.name);
    if (!s->named && i < s->hits.n_docs) hit_json(row, &s->hits, &s->hits.doc[i]);
    fl_json_set_u64(row, "rows", d.rows);
    fl_json_set_u64(row, "tokens", d.tokens);
    fl_json_push(rows, row);
  }
  return rows;
}

void selection_print(const selection *s, const fl_fleet *f) {
  if (s->n_docs == 0) puts("no document: none scored above the floor");
  for (size_t i = 0; i < s->n_docs; i++) {
    fl_doc_info d;
    fl_fleet_doc(f, s->docs[i], &d);
    if (!s->named && i < s->hits.n_docs) {
      printf("%6.3f  %s (%zu rows for %zu tokens)\n", s->hits.doc[i].score, d.name, d.rows,
             d.tokens);
    } else {
      printf(" named  %s (%zu rows for %zu tokens)\n", d.name, d.rows, d.tokens);
    }
  }
}

bool stream_token(void *ctx, const char *piece, size_t len) {
  (void)ctx;
  fwrite(piece, 1, len, stdout);
  fflush(stdout);
  return signals_stop();
}

fl_json *reply_json(const fl_reply *r, fl_arm arm) {
  static const char *const stops[] = { "none", "end", "length", "caller" };
  fl_json *o = fl_json_object();
  fl_json_set_str(o, "arm", fl_arm_name(arm));
  fl_json_set_u64(o, "rows", r->rows);
  fl_json_set_u64(o, "prompt_tokens", r->prompt_tokens);
  fl_json_set_u64(o, "tokens", r->tokens);
  fl_json_set_num(o, "first_token_s", r->ttft_s);
  fl_json_set_num(o, "total_s", r->seconds);
  fl_json_set_str(o, "stop", stops[r->stop]);
  fl_json_set_str(o, "text", r->text);
  return o;
}
