/* mix.c - see mix.h. */
#include "study/mix.h"

#include <string.h>

#include "base/rng.h"

static const char *const names[FL_N_WAYS] = { "seeds", "quote", "cloze", "sentence" };

const char *fl_way_name(fl_way w) { return names[w]; }

static bool way_by_name(fl_way *out, const char *name, size_t len) {
  for (fl_way w = 0; w < FL_N_WAYS; w++)
    if (strlen(names[w]) == len && memcmp(names[w], name, len) == 0) {
      *out = w;
      return true;
    }
  return false;
}

/* A number of one or two digits that is the whole of the text. */
static bool parse_weight(uint32_t *out, const char *text, size_t len) {
  uint32_t n = 0;
  if (len < 1 || len > 2) return false;
  for (size_t i = 0; i < len; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    n = 10 * n + (uint32_t)(text[i] - '0');
  }
  *out = n;
  return n <= FL_MAX_WEIGHT;
}

static uint32_t total(const fl_mix *m) {
  uint32_t n = 0;
  for (size_t i = 0; i < FL_N_WAYS; i++) n += m->weight[i];
  return n;
}

int fl_mix_parse(fl_mix *out, const char *text, fl_err *err) {
  fl_mix m = { 0 };
  uint32_t seen = 0;
  for (const char *at = text;; at++) {
    const size_t len = strcspn(at, ","), name = strcspn(at, "=,");
    fl_way w = FL_WAY_SEEDS;
    uint32_t n = 1;
    const bool known = way_by_name(&w, at, name);
    if (!known || (seen & 1u << w) ||
        (name < len && !parse_weight(&n, at + name + 1, len - name - 1)))
      return fl_fail(err, FL_EUSAGE,
                     "--kinds: \"%.*s\"; give seeds, quote, cloze and sentence, each once, with "
                     "weights from 0 to %d as in quote=3,seeds=1",
                     (int)(len < 40 ? len : 40), at, FL_MAX_WEIGHT);
    seen |= 1u << w;
    m.weight[w] = n;
    at += len;
    if (!*at) break;
  }
  if (total(&m) == 0) return fl_fail(err, FL_EUSAGE, "--kinds: no kind is left; give one a weight");
  *out = m;
  return FL_OK;
}

void fl_mix_print(fl_buf *out, const fl_mix *m) {
  const char *between = "";
  if (total(m) == 0) fl_buf_puts(out, "seeds=1");
  for (fl_way w = 0; w < FL_N_WAYS; w++) {
    if (m->weight[w] == 0) continue;
    fl_buf_printf(out, "%s%s=%lu", between, names[w], (unsigned long)m->weight[w]);
    between = ",";
  }
}

bool fl_mix_is_anchored(const fl_mix *m) { return total(m) > m->weight[FL_WAY_SEEDS]; }

fl_mix_draw fl_mix_at(const fl_mix *m, uint64_t seed, uint32_t doc, uint32_t draw) {
  uint32_t order[FL_N_WAYS * FL_MAX_WEIGHT], n = 0, before = 0;
  if (!fl_mix_is_anchored(m)) return (fl_mix_draw){ FL_WAY_SEEDS, draw };
  for (fl_way w = 0; w < FL_N_WAYS; w++)
    for (uint32_t i = 0; i < m->weight[w]; i++) order[n++] = w;
  const uint32_t block = draw / n, at = draw % n, seeds = m->weight[FL_WAY_SEEDS];
  fl_rng rng = fl_rng_stream(seed, FL_RNG_KIND, doc, block, 0);
  fl_rng_shuffle(&rng, order, n);
  const bool is_seed = order[at] == FL_WAY_SEEDS;
  for (uint32_t i = 0; i < at; i++) before += (order[i] == FL_WAY_SEEDS) == is_seed;
  return (fl_mix_draw){ (fl_way)order[at], block * (is_seed ? seeds : n - seeds) + before };
}
