/* chunk.c - which part of a document a conversation is about, and what kind of request it holds.
 *
 * The scheme. A document of N tokens is cut into S tiles, S chosen so that N / S lies as near as
 * possible to the middle of chunk_min..chunk_max. Pass q over the document (draws qS .. qS + S - 1)
 * uses the cuts
 *     c_0 = 0,   c_j = floor(j N / S) + e_j,   c_S = N
 * with e_j uniform in -J..J, drawn anew for every pass; J is the largest that keeps every length
 * within chunk_min..chunk_max. So each pass covers every token exactly once, the beginning and the
 * end included, no cut is the same for long, and lengths spread (triangularly) over the range.
 * Within a pass the tiles come in the order of van der Corput's sequence (bits reversed), rotated
 * by an offset drawn per pass: a pass that is broken off has been spread over the whole document.
 *
 * Where no S fits (a narrow range, N between two multiples) the tiles are chunk_min long and
 * overlap evenly. A document of at most chunk_min tokens is always taken whole.
 *
 * Seed kinds: a permutation of the seven for every block of seven draws.
 */
#include <string.h>

#include "base/rng.h"
#include "study/study.h"

const fl_seed_kind fl_seed_kinds[FL_N_SEED_KINDS] = {
  { "structuring",
    "Write one request that asks for some of the document's facts in a fixed layout, such as a "
    "list or a small table. Give the request alone.",
    false },
  { "summarisation",
    "Write one request that asks for a short summary of one part of the document. Give the request "
    "alone.",
    false },
  { "question",
    "Write one question that the document answers. Name who or what it is about. Give the question "
    "alone.",
    false },
  { "use-case",
    "Write one request from somebody who has a practical task to do with what the document says. "
    "Give the request alone.",
    false },
  { "creative",
    "Write one request for something inventive built on the document's facts. Give the request "
    "alone.",
    false },
  { "mechanism",
    "Write one question on how or why something in the document happens. Give the question "
    "alone.",
    false },
  { "verbatim",
    "Write one request to repeat a sentence of the document word for word. Give the request "
    "alone.",
    false },
};

typedef struct tiling {
  uint64_t n_tokens, n_tiles;
  uint64_t overlap_len; /* 0: the tiles meet exactly; else the length of overlapping ones */
  uint64_t jitter;      /* J */
} tiling;

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* How far lengths of n tiles may move within lo..hi; -1 when n tiles cannot make up N. */
static int64_t slack(uint64_t n_tokens, uint64_t n, uint64_t lo, uint64_t hi) {
  if (n == 0 || n_tokens / n < lo) return -1;
  const uint64_t short_len = n_tokens / n, long_len = (n_tokens + n - 1) / n;
  if (long_len > hi) return -1;
  return (int64_t)min_u64(short_len - lo, hi - long_len);
}

static void spread_overlapping(tiling *t, uint64_t lo, uint64_t hi) {
  t->n_tiles = (t->n_tokens + hi - 1) / hi;
  t->overlap_len = lo;
  const uint64_t gaps = t->n_tiles - 1, spare = t->n_tokens - lo;
  t->jitter = gaps > 1 ? (lo - (spare + gaps - 1) / gaps) / 2 : 0;
}

static tiling tile(const fl_study_options *o, size_t n_tokens) {
  const uint64_t lo = min_u64(o->chunk_min, n_tokens), hi = min_u64(o->chunk_max, n_tokens);
  const uint64_t near = (2 * (uint64_t)n_tokens + (lo + hi) / 2) / (lo + hi);
  tiling t = { .n_tokens = n_tokens };
  int64_t best = -1;
  for (uint64_t n = near > 1 ? near - 1 : 1; n <= near + 1; n++) {
    const int64_t s = slack(n_tokens, n, lo, hi);
    if (s <= best) continue;
    best = s;
    t.n_tiles = n;
    t.jitter = (uint64_t)s / 2;
  }
  if (best < 0) spread_overlapping(&t, lo, hi);
  return t;
}

static uint64_t reversed(uint64_t v, unsigned bits) {
  uint64_t out = 0;
  for (unsigned i = 0; i < bits; i++) out |= (v >> i & 1) << (bits - 1 - i);
  return out;
}

/* The tile that the i-th draw of a pass takes. Walks the sequence, which has a place for every
 * number below the next power of two, over the numbers that are tiles: at most 2 S places. */
static uint64_t pick_tile(const tiling *t, uint64_t i, fl_rng *pass_rng) {
  const uint64_t shift = fl_rng_below(pass_rng, t->n_tiles);
  unsigned bits = 0;
  uint64_t at = 0;
  while ((uint64_t)1 << bits < t->n_tiles) bits++;
  for (uint64_t left = i + 1; left > 0; at++)
    if (reversed(at, bits) < t->n_tiles) left--;
  return (reversed(at - 1, bits) + shift) % t->n_tiles;
}

/* A place on the grid moved by the pass's jitter; `edge` keeps it. */
static uint64_t jittered(const tiling *t, uint64_t at, bool edge, fl_rng rng) {
  if (edge || t->jitter == 0) return at;
  return at + fl_rng_below(&rng, 2 * t->jitter + 1) - t->jitter;
}

void fl_study_chunk(const fl_study_options *o, const fl_doc_text *doc, const fl_conv_plan *plan,
                    size_t *first, size_t *end) {
  *first = *end = 0;
  if (doc->n_tokens == 0) return;
  const tiling t = tile(o, doc->n_tokens);
  const uint32_t pass = (uint32_t)(plan->draw / t.n_tiles);
  fl_rng rng = fl_rng_stream(o->seed, FL_RNG_CHUNK, plan->doc, pass, UINT32_MAX);
  const uint64_t i = pick_tile(&t, plan->draw % t.n_tiles, &rng);
  const fl_rng left = fl_rng_stream(o->seed, FL_RNG_CHUNK, plan->doc, pass, (uint32_t)i);
  const fl_rng right = fl_rng_stream(o->seed, FL_RNG_CHUNK, plan->doc, pass, (uint32_t)i + 1);
  const bool is_first = i == 0, is_last = i + 1 == t.n_tiles;
  if (t.overlap_len > 0) {
    const uint64_t gaps = t.n_tiles > 1 ? t.n_tiles - 1 : 1;
    const uint64_t at = i * (t.n_tokens - t.overlap_len) / gaps;
    *first = (size_t)jittered(&t, at, is_first || is_last, left);
    *end = *first + (size_t)t.overlap_len;
    return;
  }
  *first = (size_t)jittered(&t, i * t.n_tokens / t.n_tiles, is_first, left);
  *end = (size_t)jittered(&t, (i + 1) * t.n_tokens / t.n_tiles, is_last, right);
}

uint32_t fl_study_kind(const fl_study_options *o, const fl_conv_plan *plan) {
  const uint32_t n = o->seeds ? (uint32_t)o->n_seeds : FL_N_SEED_KINDS;
  uint32_t order[FL_MAX_SEEDS];
  fl_rng rng = fl_rng_stream(o->seed, FL_RNG_SEED, plan->doc, plan->draw / n, 0);
  for (uint32_t i = 0; i < n; i++) order[i] = i;
  fl_rng_shuffle(&rng, order, n);
  return order[plan->draw % n];
}
