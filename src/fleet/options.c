/* options.c - the training flags: defaults, ranges, and their form in fleet.json.
 *
 * One table row a number: name, member, kind, range. It feeds the range check, the writing into the
 * manifest and the reading back, so that a flag cannot be in one and not in the others. */
#include "fleet/options.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum kind { SIZE, U64, REAL, SWITCH };

typedef struct flag {
  const char *name; /* without the dashes */
  size_t offset;
  enum kind kind;
  double min, max;
  bool open_min;    /* min itself is excluded */
  bool state;       /* kept in the manifest */
} flag;

#define AT(m) offsetof(fl_train_options, m)
/* Whole numbers up to 2^53: what JSON carries exactly. */
#define EXACT 9007199254740992.0

static const flag flags[] = {
  { "p", AT(p), SIZE, 8, 65536, false, true },
  { "frozen", AT(frozen), SIZE, 0, 65535, false, true },
  { "budget", AT(budget), SIZE, 1, 4096, false, true },
  { "budget-bytes", AT(budget_bytes), U64, 0, EXACT, false, true },
  { "rotate-every", AT(rotate_every), SIZE, 0, 1e9, false, true },
  { "evict-frac", AT(evict_frac), REAL, 0, 1, true, true },
  { "warmup", AT(warmup), SIZE, 0, 1e9, false, true },
  { "decay", AT(decay), SIZE, 0, 1e9, false, true },
  { "decay-to", AT(decay_to), REAL, 0, 1, false, true },
  { "p-iso", AT(p_iso), REAL, 0, 1, false, true },
  { "distract-max", AT(distract_max), SIZE, 1, 63, false, true },
  { "rounds", AT(rounds), SIZE, 0, 1e9, false, false },
  { "accum", AT(accum), SIZE, 1, 256, false, true },
  { "lr", AT(lr), REAL, 0, 10, true, true },
  { "clip", AT(clip), REAL, 0, 1e9, false, true },
  { "chunk-min", AT(chunk_min), SIZE, 1, 65536, false, true },
  { "chunk-max", AT(chunk_max), SIZE, 1, 65536, false, true },
  { "top-k", AT(top_k), SIZE, 1, 256, false, true },
  { "top-mass", AT(top_mass), REAL, 0, 1, true, true },
  { "max-q", AT(max_q), SIZE, 1, 4096, false, true },
  { "max-a", AT(max_a), SIZE, 1, 4096, false, true },
  { "turns", AT(turns), SIZE, 1, FL_MAX_TURNS, false, true },
  { "think", AT(think), REAL, 0, 1, false, true },
  { "init", AT(init), SIZE, FL_INIT_FIRST, FL_INIT_FILE, false, true },
  { "seed", AT(seed), U64, 0, EXACT, false, true },
  { "embed-chunk", AT(embed_chunk), SIZE, 1, 8192, false, true },
  { "replay", AT(replay), REAL, 1, 1000, false, true },
  { "save-every", AT(save_every), SIZE, 0, 1e9, false, true },
  { "eval-every", AT(eval_every), SIZE, 0, 1e9, false, true },
  { "heldout", AT(heldout), SIZE, 0, 64, false, true },
  { "checkpoint", AT(checkpoint), SWITCH, 0, 1, false, true },
  { "pack", AT(pack), SWITCH, 0, 1, false, true },
  { "keep-moments", AT(keep_moments), SWITCH, 0, 1, false, true },
};
enum { N_FLAGS = sizeof flags / sizeof flags[0] };

void fl_train_options_default(fl_train_options *o) {
  *o = (fl_train_options){
    .p = 256, .frozen = 1, .budget = 4, .rotate_every = 10, .evict_frac = 0.5, .warmup = 8,
    .decay_to = 0.1,
    .p_iso = 0.5, .distract_max = 3, .rounds = 20, .accum = 4, .lr = 2e-3, .chunk_min = 256,
    .chunk_max = 512, .top_k = 20, .top_mass = 0.99, .max_q = 64, .max_a = 192, .turns = 1,
    .seed = 42,
    .embed_chunk = 256, .replay = 1, .save_every = 5, .eval_every = 10, .heldout = 1, .pack = true,
    .gen_kv = FL_KV_F32, .positions = FL_POS_SHARED
  };
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
  bool low = f->open_min ? v <= f->min : v < f->min;
  if (!isnan(v) && !low && v <= f->max) return FL_OK;
  return fl_fail(err, FL_EUSAGE,
                 "--%s: %.17g is out of range; give a number %s %g and at most %.16g", f->name, v,
                 f->open_min ? "above" : "of at least", f->min, f->max);
}

int fl_train_options_check(const fl_train_options *o, fl_err *err) {
  for (size_t i = 0; i < N_FLAGS; i++) {
    int rc = check_range(&flags[i], value_of(o, &flags[i]), err);
    if (rc != FL_OK) return rc;
  }
  if (o->frozen >= o->p)
    return fl_fail(err, FL_EUSAGE, "--frozen: %zu leaves none of the %zu rows to train; "
                   "give less than --p", o->frozen, o->p);
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
const char *const fl_positions_words[] = { [FL_POS_SEQUENTIAL] = "sequential",
                                           [FL_POS_SHARED] = "shared", NULL };

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
