/* bench.c - the table of parts, the figures so far, and the arithmetic of a model. */
#include "bench/bench.h"

#include <string.h>

const bench_part bench_parts[] = { { "peaks", bench_peaks },
                                   { "products", bench_products },
                                   { "prefill", bench_prefill },
                                   { "decode", bench_decode },
                                   { "study", bench_study },
                                   { "step", bench_step },
                                   { "memory", bench_memory },
                                   { "index", bench_index },
                                   { "contention", bench_contention },
                                   { "first-token", bench_first_token },
                                   { NULL, NULL } };
const char *const bench_peers[] = { "llama.cpp", "torch", "openblas", "blis", NULL };

const bench_part *bench_find(const char *name) {
  for (const bench_part *p = bench_parts; p->name; p++)
    if (strcmp(p->name, name) == 0) return p;
  return NULL;
}

bool bench_has_peer(const bench *b, const char *name) {
  for (size_t i = 0; i < b->opt->n_peers; i++)
    if (strcmp(b->opt->peers[i], name) == 0) return true;
  return false;
}

static double ratio_of(const bench_figure *f) {
  if (f->value <= 0 || f->peer_value <= 0) return 0;
  return f->unit[0] == 's' ? f->peer_value / f->value : f->value / f->peer_value;
}

void bench_add(bench *b, const bench_figure *f) {
  const double ratio = f->peer ? ratio_of(f) : 0;
  fl_json *row = fl_json_object();
  fl_json_set_str(row, "part", f->part);
  fl_json_set_str(row, "what", f->what);
  fl_json_set_num(row, "value", f->value);
  fl_json_set_str(row, "unit", f->unit);
  if (f->share > 0) fl_json_set_num(row, "of_peak", f->share);
  if (f->peer) {
    fl_json_set_str(row, "peer", f->peer);
    fl_json_set_num(row, "peer_value", f->peer_value);
    fl_json_set_num(row, "ratio", ratio);
  }
  fl_json_push(b->rows, row);
  b->told(b->ctx, f, ratio);
}

void bench_tokens(const bench *b, int32_t *out, size_t n) {
  uint32_t s = 1;
  for (size_t i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    out[i] = (int32_t)((s >> 8) % b->hp->n_vocab);
  }
}

/* q, then k and v, of layer i. */
static double q_macs(const fl_hparams *hp, size_t i) {
  return (double)hp->d_model * (double)(hp->layer[i].n_heads * hp->layer[i].head_dim);
}

static double kv_macs(const fl_hparams *hp, size_t i) {
  const fl_layer_hparams *l = &hp->layer[i];
  if (l->kv_from != (int32_t)i) return 0;
  return 2 * (double)hp->d_model * (double)(l->kv_heads * l->head_dim);
}

static double layer_macs(const fl_hparams *hp, size_t i) {
  const size_t ff = hp->layer[i].n_ff, expert = hp->n_experts_used * hp->n_ff_expert;
  return 2 * q_macs(hp, i) + kv_macs(hp, i) +
         3 * (double)hp->d_model * (double)(ff + (hp->n_experts > 0 ? expert : 0));
}

double bench_layer_macs(const bench *b) {
  double sum = 0;
  for (size_t i = 0; i < b->hp->n_layers; i++) sum += layer_macs(b->hp, i);
  return sum;
}

/* The last layer with K/V rows gives its K and V, and its backward takes q, k and v through one
 * product; the layers behind it are not run. */
double bench_spared_macs(const bench *b, bool backward) {
  const size_t cut = fl_last_kv_layer(b->hp);
  double sum = -kv_macs(b->hp, cut) - (backward ? q_macs(b->hp, cut) : 0);
  for (size_t i = cut; i < b->hp->n_layers; i++) sum += layer_macs(b->hp, i);
  return sum;
}

double bench_head_macs(const bench *b) { return (double)b->hp->d_model * (double)b->hp->n_vocab; }
