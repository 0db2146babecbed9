/* gguf.c - a model file: geometry, weight types, tokenizer, identity. */
#include "info/info.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "formats/dtype.h"
#include "formats/gguf.h"
#include "text/chat.h"
#include "text/tokenizer.h"

static bool set_str(fl_json *out, const char *key, fl_str s) {
  char *copy = fl_strndup(s.data, s.len);
  bool ok = copy && fl_json_set_str(out, key, copy);
  fl_free(copy);
  return ok;
}

static void set_meta_str(fl_json *out, const char *key, const fl_gguf *g, const char *meta) {
  fl_str s;
  if (fl_gguf_get_str(g, meta, &s)) set_str(out, key, s);
}

/* "<arch>.<suffix>" as a number, or as an array that differs by layer. */
static void set_hparam(fl_json *out, const char *key, const fl_gguf *g, const char *suffix) {
  fl_str arch;
  uint64_t u;
  double d;
  fl_gguf_arr arr;
  if (!fl_gguf_get_str(g, "general.architecture", &arch)) return;
  char *meta = fl_asprintf("%.*s.%s", (int)(arch.len < 64 ? arch.len : 64), arch.data, suffix);
  if (!meta) return;
  if (fl_gguf_get_u64(g, meta, &u)) {
    fl_json_set_u64(out, key, u);
  } else if (fl_gguf_get_f64(g, meta, &d)) {
    fl_json_set_num(out, key, d);
  } else if (fl_gguf_get_arr(g, meta, &arr) && arr.type != FL_GGUF_STR) {
    fl_json *list = fl_json_array();
    for (size_t i = 0; list && i < arr.n; i++)
      fl_json_push(list, fl_json_number(fl_gguf_arr_f64(&arr, i)));
    fl_json_set(out, key, list);
  }
  fl_free(meta);
}

static double tensor_values(const fl_tensor_info *t) {
  double n = 1;
  for (uint32_t d = 0; d < t->n_dims && d < 4; d++) n *= (double)t->dim[d];
  return n;
}

/* One row a weight type: how many tensors, values, bytes. */
static void set_types(fl_json *out, const fl_gguf *g) {
  enum { MAX_TYPE = 64 };
  double values[MAX_TYPE] = { 0 }, bytes[MAX_TYPE] = { 0 }, all = 0;
  size_t count[MAX_TYPE] = { 0 };
  for (size_t i = 0; i < fl_gguf_n_tensors(g); i++) {
    const fl_tensor_info *t = fl_gguf_tensor_at(g, i);
    all += tensor_values(t);
    if (t->ggml_type >= MAX_TYPE) continue;
    count[t->ggml_type]++;
    values[t->ggml_type] += tensor_values(t);
    bytes[t->ggml_type] += (double)t->n_bytes;
  }
  fl_json_set_num(out, "parameters", all);
  fl_json_set_u64(out, "tensors", fl_gguf_n_tensors(g));
  fl_json *rows = fl_json_array();
  for (uint32_t ty = 0; rows && ty < MAX_TYPE; ty++) {
    fl_json *row = count[ty] ? fl_json_object() : NULL;
    if (!row) continue;
    fl_json_set_str(row, "type", fl_dtype_any_name(ty));
    fl_json_set_u64(row, "tensors", count[ty]);
    fl_json_set_num(row, "values", values[ty]);
    fl_json_set_num(row, "data_bytes", bytes[ty]);
    fl_json_set_bool(row, "supported", fl_dtype_get(ty) != NULL);
    fl_json_push(rows, row);
  }
  fl_json_set(out, "types", rows);
}

static void set_tensor_list(fl_json *out, const fl_gguf *g) {
  fl_json *rows = fl_json_array();
  for (size_t i = 0; rows && i < fl_gguf_n_tensors(g); i++) {
    const fl_tensor_info *t = fl_gguf_tensor_at(g, i);
    fl_json *row = fl_json_object(), *shape = fl_json_array();
    for (uint32_t d = 0; shape && d < t->n_dims && d < 4; d++)
      fl_json_push(shape, fl_json_number((double)t->dim[d]));
    set_str(row, "name", t->name);
    fl_json_set_str(row, "type", fl_dtype_any_name(t->ggml_type));
    fl_json_set_num(row, "data_bytes", (double)t->n_bytes);
    fl_json_set_num(row, "offset", (double)t->file_offset);
    fl_json_set(row, "shape", shape);
    fl_json_push(rows, row);
  }
  fl_json_set(out, "tensor_list", rows);
}

static void set_tokenizer(fl_json *out, const fl_gguf *g) {
  fl_err why = { 0 };
  fl_tokenizer *t = NULL;
  if (fl_tokenizer_open(&t, g, &why) != FL_OK) {
    fl_json_set_str(out, "tokenizer", why.text);
    return;
  }
  char hash[FL_HASH_TEXT];
  fl_tokenizer_hash(t, hash);
  fl_json_set_str(out, "tokenizer", fl_tokenizer_kind(t));
  fl_json_set_u64(out, "vocabulary", fl_tokenizer_n_vocab(t));
  fl_json_set_num(out, "bos", fl_tokenizer_bos(t));
  fl_json_set_num(out, "eos", fl_tokenizer_eos(t));
  fl_json_set_str(out, "chat_template", fl_template_name(fl_template_detect(g, t)));
  fl_json_set_str(out, "tokenizer_hash", hash);
  fl_tokenizer_close(t);
}

int fl_info_gguf(fl_json *out, const char *path, bool detail, fl_err *err) {
  fl_gguf *g = NULL;
  int rc = fl_gguf_open(&g, path, err);
  if (rc != FL_OK) return rc;
  char hash[FL_HASH_TEXT];
  fl_gguf_fingerprint(g, hash);
  fl_json_set_str(out, "kind", "gguf");
  fl_json_set_str(out, "path", path);
  set_meta_str(out, "name", g, "general.name");
  set_meta_str(out, "architecture", g, "general.architecture");
  fl_json_set_u64(out, "version", fl_gguf_version(g));
  fl_json_set_num(out, "file_bytes", (double)fl_gguf_file_size(g));
  fl_json_set_str(out, "hash", hash);
  set_hparam(out, "layers", g, "block_count");
  set_hparam(out, "width", g, "embedding_length");
  set_hparam(out, "feed_forward", g, "feed_forward_length");
  set_hparam(out, "heads", g, "attention.head_count");
  set_hparam(out, "kv_heads", g, "attention.head_count_kv");
  set_hparam(out, "head_dim", g, "attention.key_length");
  set_hparam(out, "window", g, "attention.sliding_window");
  set_hparam(out, "experts", g, "expert_count");
  set_hparam(out, "experts_used", g, "expert_used_count");
  set_hparam(out, "context", g, "context_length");
  set_hparam(out, "rope_base", g, "rope.freq_base");
  set_tokenizer(out, g);
  set_types(out, g);
  if (detail) set_tensor_list(out, g);
  fl_gguf_close(g);
  return FL_OK;
}
