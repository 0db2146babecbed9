/* api_embeddings.c - OpenAI's embeddings: the retrieval embedding of each text. */
#include <string.h>

#include "base/mem.h"
#include "http/api_request.h"
#include "http/job_events.h"
#include "base/json_writer.h"
#include "http/route.h"

enum { MAX_TEXTS = 256 };

static void put_base64(fl_buf *b, const char *key, const float *v, size_t n) {
  static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t bytes = n * sizeof *v;
  fl_jsonw_open(b, key, '"');
  for (size_t i = 0; i < bytes; i += 3) {
    uint8_t in[3] = { 0 };
    for (size_t j = 0; j < 3 && i + j < bytes; j++) { /* little-endian, as clients read it */
      uint32_t word;
      memcpy(&word, &v[(i + j) / 4], sizeof word);
      in[j] = (uint8_t)(word >> (8 * ((i + j) % 4)));
    }
    const uint32_t all = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
    fl_buf_putc(b, digit[all >> 18]);
    fl_buf_putc(b, digit[(all >> 12) & 63]);
    fl_buf_putc(b, i + 1 < bytes ? digit[(all >> 6) & 63] : '=');
    fl_buf_putc(b, i + 2 < bytes ? digit[all & 63] : '=');
  }
  fl_buf_putc(b, '"');
}

static void put_floats(fl_buf *b, const char *key, const float *v, size_t n) {
  fl_jsonw_open(b, key, '[');
  for (size_t i = 0; i < n; i++) fl_jsonw_num(b, NULL, (double)v[i]);
  fl_jsonw_close(b, ']');
}

typedef struct embedder {
  fl_http *e;
  float *vector; /* [d_model] */
  bool base64;
  size_t index;
  uint64_t tokens;
} embedder;

static int one(embedder *m, const char *text, fl_buf *out, fl_api_error *f) {
  fl_err err = { 0 };
  size_t n = 0;
  if (text == NULL || text[0] == '\0')
    return fl_api_refuse(f, "invalid_value", "input",
                         "input has to be a string or an array of strings that are not empty; "
                         "arrays of tokens are not supported");
  if (fl_engine_embed(m->e->engine, text, strlen(text), m->vector, &n, &err) != FL_OK) {
    fl_api_error_from(f, &err);
    if (f->status == 429) f->retry_after_s = fl_engine_retry_after_s(m->e->engine);
    return FL_EINPUT;
  }
  fl_jsonw_open(out, NULL, '{');
  fl_jsonw_str(out, "object", "embedding");
  fl_jsonw_u64(out, "index", m->index++);
  if (m->base64) put_base64(out, "embedding", m->vector, m->e->d_model);
  else put_floats(out, "embedding", m->vector, m->e->d_model);
  fl_jsonw_close(out, '}');
  m->tokens += n;
  return FL_OK;
}

static int all(embedder *m, const fl_http_request *a, const fl_json *input, fl_buf *out,
               fl_api_error *f) {
  int rc = FL_OK;
  if (input == NULL)
    return fl_api_refuse(f, "missing_required_parameter", "input", "input is missing");
  if (!fl_json_is_arr(input)) return one(m, fl_json_as_str(input), out, f);
  if (fl_json_len(input) == 0 || fl_json_len(input) > MAX_TEXTS)
    return fl_api_refuse(f, "invalid_value", "input", "input has to hold 1 to %d texts", MAX_TEXTS);
  for (const fl_json *v = fl_json_first(input); rc == FL_OK && v != NULL; v = fl_json_next(v)) {
    if (fl_client_gone(a->client)) return fl_api_error_set(f, 499, NULL, NULL, "the client left");
    rc = one(m, fl_json_as_str(v), out, f);
  }
  return rc;
}

int fl_api_embeddings(fl_http *e, const fl_http_request *a, fl_buf *out, fl_api_error *f) {
  embedder m = { .e = e };
  fl_json *body = NULL;
  fl_err err = { 0 };
  const char *format = "float";
  size_t dimensions = e->d_model;
  if (fl_json_parse(&body, a->body, a->len, &err) != FL_OK) return fl_api_error_from(f, &err);
  int rc =
      fl_json_is_obj(body) ? FL_OK : fl_api_refuse(f, NULL, NULL, "the body has to be an object");
  if (rc == FL_OK) rc = fl_json_field_str(body, "encoding_format", &format, f);
  m.base64 = strcmp(format, "base64") == 0;
  if (rc == FL_OK && !m.base64 && strcmp(format, "float") != 0)
    rc = fl_api_refuse(f, "invalid_value", "encoding_format", "encoding_format is float or base64");
  if (rc == FL_OK) rc = fl_json_field_size(body, "dimensions", 1, 1u << 20, &dimensions, f);
  if (rc == FL_OK && dimensions != e->d_model)
    rc = fl_api_refuse(f, "unsupported_parameter", "dimensions",
                       "vectors of this model have %zu dimensions; leave dimensions out",
                       e->d_model);
  m.vector = rc == FL_OK ? fl_calloc(e->d_model, sizeof *m.vector) : NULL;
  if (rc == FL_OK && m.vector == NULL)
    rc = fl_api_error_set(f, 503, "unavailable", NULL, "not enough memory for an embedding");
  fl_jsonw_open(out, NULL, '{');
  fl_jsonw_str(out, "object", "list");
  fl_jsonw_open(out, "data", '[');
  if (rc == FL_OK) rc = all(&m, a, fl_json_field(body, "input"), out, f);
  fl_jsonw_close(out, ']');
  fl_jsonw_str(out, "model", e->o->model_name);
  fl_jsonw_open(out, "usage", '{');
  fl_jsonw_u64(out, "prompt_tokens", m.tokens);
  fl_jsonw_u64(out, "total_tokens", m.tokens);
  fl_jsonw_close(out, '}');
  fl_jsonw_close(out, '}');
  fl_free(m.vector);
  fl_json_free(body);
  return rc;
}
