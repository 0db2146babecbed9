/* options.c - the training flags: defaults, ranges, and their form in fleet.json.
 *
 * One table row a number: name, member, kind, range. It feeds the range check, the writing into the
 * manifest and the reading back, so that a flag cannot be in one and not in the others. */
#include "fleet/train_options.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum kind { SIZE, U64, REAL, SWITCH };

typedef struct flag {
  const char *name; /* without the dashes */
  size_t offset;
  enum kind kind;
  double min, max; /* inclusive */
  bool state;      /* kept in the manifest */
} flag;

#define AT(m) offsetof(fl_train_options, m)

static const flag flags[] = {
  { "p", AT(p), SIZE, FL_LIMITS_P, .state = true },
  { "frozen", AT(frozen), SIZE, FL_LIMITS_FROZEN, .state = true },
  { "budget", AT(budget), SIZE, FL_LIMITS_BUDGET, .state = true },
  { "budget-bytes", AT(budget_bytes), U64, FL_LIMITS_BUDGET_BYTES, .state = true },
  { "rotate-every", AT(rotate_every), SIZE, FL_LIMITS_ROTATE_EVERY, .state = true },
  { "evict-frac", AT(evict_frac), REAL, FL_LIMITS_EVICT_FRAC, .state = true },
  { "warmup", AT(warmup), SIZE, FL_LIMITS_WARMUP, .state = true },
  { "decay", AT(decay), SIZE, FL_LIMITS_DECAY, .state = true },
  { "decay-to", AT(decay_to), REAL, FL_LIMITS_DECAY_TO, .state = true },
  { "p-iso", AT(p_iso), REAL, FL_LIMITS_P_ISO, .state = true },
  { "distract-max", AT(distract_max), SIZE, FL_LIMITS_DISTRACT_MAX, .state = true },
  { "rounds", AT(rounds), SIZE, FL_LIMITS_ROUNDS },
  { "accum", AT(accum), SIZE, FL_LIMITS_ACCUM, .state = true },
  { "lr", AT(lr), REAL, FL_LIMITS_LR, .state = true },
  { "clip", AT(clip), REAL, FL_LIMITS_CLIP, .state = true },
  { "chunk-min", AT(chunk_min), SIZE, FL_LIMITS_CHUNK_MIN, .state = true },
  { "chunk-max", AT(chunk_max), SIZE, FL_LIMITS_CHUNK_MAX, .state = true },
  { "top-k", AT(top_k), SIZE, FL_LIMITS_TOP_K, .state = true },
  { "top-mass", AT(top_mass), REAL, FL_LIMITS_TOP_MASS, .state = true },
  { "max-q", AT(max_q), SIZE, FL_LIMITS_MAX_Q, .state = true },
  { "max-a", AT(max_a), SIZE, FL_LIMITS_MAX_A, .state = true },
  { "turns", AT(turns), SIZE, FL_LIMITS_TURNS, .state = true },
  { "think", AT(think), REAL, FL_LIMITS_THINK, .state = true },
  { "init", AT(init), SIZE, FL_LIMITS_INIT, .state = true },
  { "seed", AT(seed), U64, FL_LIMITS_SEED, .state = true },
  { "embed-chunk", AT(embed_chunk), SIZE, FL_LIMITS_EMBED_CHUNK, .state = true },
  { "replay", AT(replay), REAL, FL_LIMITS_REPLAY, .state = true },
  { "save-every", AT(save_every), SIZE, FL_LIMITS_SAVE_EVERY, .state = true },
  { "eval-every", AT(eval_every), SIZE, FL_LIMITS_EVAL_EVERY, .state = true },
  { "heldout", AT(heldout), SIZE, FL_LIMITS_HELDOUT, .state = true },
  { "checkpoint", AT(checkpoint), SWITCH, .max = 1, .state = true },
  { "pack", AT(pack), SWITCH, .max = 1, .state = true },
  { "keep-moments", AT(keep_moments), SWITCH, .max = 1, .state = true },
};
enum { N_FLAGS = sizeof flags / sizeof flags[0] };

void fl_train_options_default(fl_train_options *o) {
  *o = (fl_train_options){ .p = 256,
                           .frozen = 1,
                           .budget = 4,
                           .rotate_every = 10,
                           .evict_frac = 0.5,
                           .warmup = 8,
                           .decay_to = 0.1,
                           .p_iso = 0.5,
                           .distract_max = 3,
                           .rounds = 20,
                           .accum = 4,
                           .lr = 2e-3,
                           .chunk_min = 256,
                           .chunk_max = 512,
                           .top_k = 20,
                           .top_mass = 0.99,
                           .max_q = 64,
                           .max_a = 192,
                           .turns = 1,
                           .seed = 42,
                           .embed_chunk = 256,
                           .replay = 1,
                           .save_every = 5,
                           .eval_every = 10,
                           .heldout = 1,
                           .pack = true,
                           .gen_kv = FL_KV_F32,
                           .positions = FL_POS_SHARED };
}

fl_rate fl_train_rate(const fl_train_options *o) {
  return (fl_rate){ .lr = o->lr, .warmup = o->warmup, .decay = o->decay, .decay_to = o->decay_to };
}

static double value_of(const fl_train_options *o, const flag *f) {
  const char *at = (const char *)o + f->offset;
  switch (f->kind) {
  case SIZE: return (double)*(const size_t *)(const void *)at;
  case U64: return (double)*(const uint64_t *)(const void *)at;
  case REAL: return *(const double *)(const void *)at;
  case SWITCH: return *(const bool *)(const void *)at ? 1 : 0;
  }
  return 0;
}

/* v is whole and in range for the integer kinds: the callers check. */
static void set_value(fl_train_options *o, const flag *f, double v) {
  char *at = (char *)o + f->offset;
  switch (f->kind) {
  case SIZE: *(size_t *)(void *)at = (size_t)v; break;
  case U64: *(uint64_t *)(void *)at = (uint64_t)v; break;
  case REAL: *(double *)(void *)at = v; break;
  case SWITCH: *(bool *)(void *)at = v != 0; break;
  }
}

static int check_range(const flag *f, double v, fl_err *err) {
  if (v >= f->min && v <= f->max) return FL_OK; /* NaN is not */
  return fl_fail(err, FL_EUSAGE,
                 "--%s: %.17g is out of range; give a number of at least %g and at most %.16g",
                 f->name, v, f->min, f->max);
}

int fl_train_options_check(const fl_train_options *o, fl_err *err) {
  for (size_t i = 0; i < N_FLAGS; i++) {
    int rc = check_range(&flags[i], value_of(o, &flags[i]), err);
    if (rc != FL_OK) return rc;
  }
  if (o->frozen >= o->p)
    return fl_fail(err, FL_EUSAGE,
                   "--frozen: %zu leaves none of the %zu rows to train; "
                   "give less than --p",
                   o->frozen, o->p);
  if (o->chunk_min > o->chunk_max)
    return fl_fail(err, FL_EUSAGE, "--chunk-min: %zu is more than --chunk-max %zu; lower it",
                   o->chunk_min, o->chunk_max);
  return FL_OK;
}

static const flag *flag_by_name(const char *name) {
  for (size_t i = 0; i < N_FLAGS; i++)
    if (strcmp(flags[i].name, name) == 0) return &flags[i];
  return NULL;
}

int fl_train_options_set(fl_train_options *io, const char *name, double v, fl_err *err) {
  const flag *f = flag_by_name(name);
  if (f == NULL) return fl_fail(err, FL_EUSAGE, "%s: no such flag", name);
  int rc = check_range(f, v, err);
  if (rc != FL_OK) return rc;
  if (f->kind != REAL && v != floor(v))
    return fl_fail(err, FL_EUSAGE, "--%s: %.17g is not a whole number", name, v);
  fl_train_options o = *io;
  set_value(&o, f, v);
  rc = fl_train_options_check(&o, err);
  if (rc == FL_OK) *io = o;
  return rc;
}

const char *const fl_kv_words[] = { [FL_KV_F32] = "f32", [FL_KV_F16] = "f16", NULL };
const char *const fl_positions_words[] = {
  [FL_POS_SEQUENTIAL] = "sequential", [FL_POS_SHARED] = "shared", NULL
};

bool fl_train_options_write(const fl_train_options *o, fl_json *obj, bool all) {
  for (size_t i = 0; i < N_FLAGS; i++) {
    const flag *f = &flags[i];
    if (!f->state && !all) continue;
    double v = value_of(o, f);
    bool ok = f->kind == SWITCH ? fl_json_set_bool(obj, f->name, v != 0)
                                : fl_json_set_num(obj, f->name, v);
    if (!ok) return false;
  }
  return fl_json_set_str(obj, "gen-kv", fl_kv_words[o->gen_kv == FL_KV_F16]) &&
         fl_json_set_str(obj, "positions", fl_positions_words[o->positions == FL_POS_SHARED]);
}

/* *io = the index of the word; kept when the flag is not there. */
static int read_word(const fl_json *obj, const char *name, const char *const *words, int *io,
                     fl_err *err) {
  const char *s = NULL;
  if (!fl_json_get_str(obj, name, &s)) return FL_OK;
  for (int i = 0; i < 2; i++)
    if (strcmp(s, words[i]) == 0) {
      *io = i;
      return FL_OK;
    }
  return fl_fail(err, FL_EINPUT, "flag \"%s\" is neither %s nor %s", name, words[0], words[1]);
}

static int read_flag(fl_train_options *o, const flag *f, const fl_json *obj, fl_err *err) {
  if (fl_json_get(obj, f->name) == NULL) return FL_OK;
  double v = 0;
  bool b = false, ok;
  if (f->kind == SWITCH) {
    ok = fl_json_get_bool(obj, f->name, &b);
    v = b;
  } else {
    ok = fl_json_get_num(obj, f->name, &v) && (f->kind == REAL || v == floor(v));
  }
  if (!ok) return fl_fail(err, FL_EINPUT, "flag \"%s\" is of the wrong type", f->name);
  if (check_range(f, v, err) != FL_OK) {
    if (err != NULL) err->code = FL_EINPUT;
    return FL_EINPUT;
  }
  set_value(o, f, v);
  return FL_OK;
}

int fl_train_options_read(fl_train_options *io, const fl_json *obj, fl_err *err) {
  fl_train_options o = *io;
  for (size_t i = 0; i < N_FLAGS; i++) {
    if (!flags[i].state) continue;
    int rc = read_flag(&o, &flags[i], obj, err);
    if (rc != FL_OK) return rc;
  }
  int kv = o.gen_kv, positions = o.positions;
  int rc = read_word(obj, "gen-kv", fl_kv_words, &kv, err);
  if (rc == FL_OK) rc = read_word(obj, "positions", fl_positions_words, &positions, err);
  if (rc != FL_OK) return rc;
  o.gen_kv = (fl_kv_type)kv;
  o.positions = (fl_positions)positions;
  *io = o;
  return FL_OK;
}
