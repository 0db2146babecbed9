/* train_options.c - see train_options.h: one table, train_flags.def, feeds all that is here. */
#include "fleet/train_options.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum kind { COUNT, U64, BYTES, REAL, ON, OFF, KV, POSITIONS };
enum when { BIRTH, KEPT, LIVE, RUN };

typedef struct flag {
  const char *name; /* without the dashes */
  size_t offset, size;
  enum kind kind;
  enum when when;
  double min, max; /* inclusive */
} flag;

#define AT(m) offsetof(fl_train_options, m)

static const flag flags[] = {
#define FL_FLAG(kind_, member, name_, letter, min_, max_, default_, group, when_, help)            \
  { name_, AT(member), sizeof(FL_FLAG_TYPE_##kind_), kind_, when_, min_, max_ },
#include "fleet/train_flags.def"
#undef FL_FLAG
};
enum { N_FLAGS = sizeof flags / sizeof flags[0] };

const char *const fl_kv_words[] = { [FL_KV_F32] = "f32", [FL_KV_F16] = "f16", NULL };
const char *const fl_positions_words[] = {
  [FL_POS_SEQUENTIAL] = "sequential", [FL_POS_SHARED] = "shared", NULL
};

/* Of a flag that is one of two words, else NULL. */
static const char *const *words_of(const flag *f) {
  return f->kind == KV ? fl_kv_words : f->kind == POSITIONS ? fl_positions_words : NULL;
}

static bool is_switch(const flag *f) { return f->kind == ON || f->kind == OFF; }

void fl_train_options_default(fl_train_options *o) {
  *o = (fl_train_options){
#define FL_FLAG(kind, member, name, letter, min, max, default_, ...) .member = default_,
#include "fleet/train_flags.def"
#undef FL_FLAG
  };
}

fl_rate fl_train_rate(const fl_train_options *o) {
  return (fl_rate){ .lr = o->lr, .warmup = o->warmup, .decay = o->decay, .decay_to = o->decay_to };
}

static double value_of(const fl_train_options *o, const flag *f) {
  const void *at = (const char *)o + f->offset;
  switch (f->kind) {
  case COUNT: return (double)*(const size_t *)at;
  case U64:
  case BYTES: return (double)*(const uint64_t *)at;
  case REAL: return *(const double *)at;
  case ON:
  case OFF: return *(const bool *)at ? 1 : 0;
  case KV: return *(const fl_kv_type *)at;
  case POSITIONS: return *(const fl_positions *)at;
  }
  return 0;
}

/* v is whole and in range for all kinds but REAL: the callers check. */
static void set_value(fl_train_options *o, const flag *f, double v) {
  void *at = (char *)o + f->offset;
  switch (f->kind) {
  case COUNT: *(size_t *)at = (size_t)v; break;
  case U64:
  case BYTES: *(uint64_t *)at = (uint64_t)v; break;
  case REAL: *(double *)at = v; break;
  case ON:
  case OFF: *(bool *)at = v != 0; break;
  case KV: *(fl_kv_type *)at = (fl_kv_type)v; break;
  case POSITIONS: *(fl_positions *)at = (fl_positions)v; break;
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

bool fl_train_options_is_live(const char *name) {
  const flag *f = flag_by_name(name);
  return f != NULL && f->when == LIVE;
}

void fl_train_options_keep_birth(fl_train_options *io, const fl_train_options *made) {
  for (size_t i = 0; i < N_FLAGS; i++)
    if (flags[i].when == BIRTH)
      memcpy((char *)io + flags[i].offset, (const char *)made + flags[i].offset, flags[i].size);
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

/* --- JSON --- */

static bool write_flag(fl_json *obj, const flag *f, double v) {
  const char *const *words = words_of(f);
  if (words != NULL) return fl_json_set_str(obj, f->name, words[v != 0]);
  return is_switch(f) ? fl_json_set_bool(obj, f->name, v != 0) : fl_json_set_num(obj, f->name, v);
}

static bool write_kinds(const fl_train_options *o, fl_json *obj) {
  fl_buf text = { 0 };
  fl_mix_print(&text, &o->kinds);
  const bool ok = !text.oom && fl_json_set_str(obj, "kinds", text.data);
  fl_buf_release(&text);
  return ok;
}

bool fl_train_options_write(const fl_train_options *o, fl_json *obj, bool all) {
  for (size_t i = 0; i < N_FLAGS; i++)
    if ((flags[i].when != RUN || all) && !write_flag(obj, &flags[i], value_of(o, &flags[i])))
      return false;
  return !fl_mix_is_anchored(&o->kinds) || write_kinds(o, obj);
}

/* What is no text is passed over. */
static int read_word(double *v, const fl_json *obj, const flag *f, fl_err *err) {
  const char *const *words = words_of(f), *s = words[(int)*v];
  (void)fl_json_get_str(obj, f->name, &s);
  for (int i = 0; i < 2; i++)
    if (strcmp(s, words[i]) == 0) {
      *v = i;
      return FL_OK;
    }
  return fl_fail(err, FL_EINPUT, "flag \"%s\" is neither %s nor %s", f->name, words[0], words[1]);
}

static int read_number(double *v, const fl_json *obj, const flag *f, fl_err *err) {
  bool b = false, ok;
  if (is_switch(f)) {
    ok = fl_json_get_bool(obj, f->name, &b);
    *v = b;
  } else {
    ok = fl_json_get_num(obj, f->name, v) && (f->kind == REAL || *v == floor(*v));
  }
  if (!ok) return fl_fail(err, FL_EINPUT, "flag \"%s\" is of the wrong type", f->name);
  if (check_range(f, *v, err) == FL_OK) return FL_OK;
  if (err != NULL) err->code = FL_EINPUT;
  return FL_EINPUT;
}

/* Fleets that say nothing are of the seeds alone. */
static int read_kinds(const fl_json *obj, fl_mix *out, fl_err *err) {
  const char *s = NULL;
  *out = (fl_mix){ 0 };
  if (!fl_json_get_str(obj, "kinds", &s) || fl_mix_parse(out, s, NULL) == FL_OK) return FL_OK;
  return fl_fail(err, FL_EINPUT, "flag \"kinds\" is no list of kinds");
}

int fl_train_options_read(fl_train_options *io, const fl_json *obj, fl_err *err) {
  fl_train_options o = *io;
  for (size_t i = 0; i < N_FLAGS; i++) {
    const flag *f = &flags[i];
    double v = value_of(&o, f);
    if (f->when == RUN || fl_json_get(obj, f->name) == NULL) continue;
    int rc = words_of(f) != NULL ? read_word(&v, obj, f, err) : read_number(&v, obj, f, err);
    if (rc != FL_OK) return rc;
    set_value(&o, f, v);
  }
  const int rc = read_kinds(obj, &o.kinds, err);
  if (rc != FL_OK) return rc;
  *io = o;
  return FL_OK;
}
