/* store.c - decoding by tables: for each kind, which member goes where. */
#include "tui/store.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tui/scan.h"

enum {
  POOL_MAX = 64 << 20, /* bytes of names; a log that needs more loses the further ones */
  NAME_MAX_BYTES = 4096,
  ARRAY_MAX = 1 << 16, /* elements read of one array */
  STUDY_HASH = 1 << 16,
  STEPS_HASH = 1 << 12
};

typedef enum field_type {
  F_U32,
  F_F32,
  F_BOOL,    /* uint32_t */
  F_WORD,    /* uint32_t index in `words` */
  F_STR,     /* tui_ref, bytes */
  F_NUMBERS, /* tui_ref, flattened whole numbers of an array (of arrays) */
  F_PAIRS    /* tui_ref, an object of number: number */
} field_type;

typedef struct field {
  const char *key;
  uint8_t len, type;
  uint16_t at;
  const char *const *words;
} field;

#define AT(kind, member) (uint16_t) offsetof(tui_rec_##kind, member)
#define FIELD(kind, member, t)                                                                     \
  { #member, sizeof #member - 1, t, AT(kind, member), NULL }
#define WORD(kind, member, w)                                                                      \
  { #member, sizeof #member - 1, F_WORD, AT(kind, member), w }
#define END                                                                                        \
  { NULL, 0, 0, 0, NULL }

static const field run_fields[] = { FIELD(run, cmd, F_STR),
                                    FIELD(run, version, F_STR),
                                    FIELD(run, pid, F_U32),
                                    FIELD(run, resumed, F_BOOL),
                                    FIELD(run, continued, F_BOOL),
                                    FIELD(run, model_name, F_STR),
                                    FIELD(run, threads, F_U32),
                                    FIELD(run, isa, F_STR),
                                    FIELD(run, kernel, F_STR),
                                    FIELD(run, host, F_STR),
                                    FIELD(run, cpus, F_U32),
                                    FIELD(run, mem_bytes, F_F32),
                                    FIELD(run, rounds, F_U32),
                                    FIELD(run, round0, F_U32),
                                    FIELD(run, docs, F_U32),
                                    FIELD(run, budget, F_U32),
                                    FIELD(run, peak_gflops, F_F32),
                                    FIELD(run, peak_gbs, F_F32),
                                    END };
static const field doc_fields[] = {
  FIELD(doc, doc, F_U32),     FIELD(doc, name, F_STR),          FIELD(doc, tokens, F_U32),
  FIELD(doc, rows, F_U32),    FIELD(doc, steps, F_U32),         FIELD(doc, resident, F_BOOL),
  FIELD(doc, marked, F_BOOL), WORD(doc, state, tui_doc_states), END
};
/* kind, rejected, replayed and conv share a word: see study_bits */
typedef struct tui_rec_study_wide {
  tui_rec_study study;
  uint32_t kind, rejected, replayed, conv;
} tui_rec_study_wide;
#define STUDY(member, t)                                                                           \
  { #member, sizeof #member - 1, t, AT(study, member), NULL }
#define WIDE(member, t, w)                                                                         \
  { #member, sizeof #member - 1, t, (uint16_t)offsetof(tui_rec_study_wide, member), w }
static const field study_fields[] = { STUDY(doc, F_U32),
                                      STUDY(round, F_U32),
                                      WIDE(conv, F_U32, NULL),
                                      WIDE(kind, F_WORD, tui_study_kinds),
                                      STUDY(first, F_U32),
                                      STUDY(end, F_U32),
                                      STUDY(tokens, F_U32),
                                      WIDE(replayed, F_BOOL, NULL),
                                      WIDE(rejected, F_WORD, tui_rejections),
                                      END };
static const field round_fields[] = {
  FIELD(round, round, F_U32),        FIELD(round, doc, F_U32),
  FIELD(round, loss, F_F32),         FIELD(round, lr, F_F32),
  FIELD(round, grad_norm, F_F32),    FIELD(round, tokens, F_U32),
  FIELD(round, steps, F_PAIRS),      FIELD(round, seconds, F_F32),
  FIELD(round, gen_s, F_F32),        FIELD(round, student_s, F_F32),
  FIELD(round, opt_s, F_F32),        FIELD(round, io_s, F_F32),
  FIELD(round, gen_tokens, F_U32),   FIELD(round, rss, F_F32),
  FIELD(round, peak_rss, F_F32),     FIELD(round, resident_bytes, F_F32),
  FIELD(round, resident, F_NUMBERS), FIELD(round, gflop, F_F32),
  FIELD(round, gbyte, F_F32),        END
};
static const field rotate_fields[] = { FIELD(rotate, round, F_U32), FIELD(rotate, out, F_NUMBERS),
                                       FIELD(rotate, in, F_NUMBERS), END };
static const field heldout_fields[] = { FIELD(heldout, round, F_U32),
                                        FIELD(heldout, doc, F_U32),
                                        FIELD(heldout, alone, F_F32),
                                        FIELD(heldout, composed, F_F32),
                                        FIELD(heldout, teacher, F_F32),
                                        FIELD(heldout, convs, F_U32),
                                        END };
static const field coverage_fields[] = { FIELD(coverage, doc, F_U32),
                                         FIELD(coverage, tokens, F_U32),
                                         FIELD(coverage, spans, F_NUMBERS), END };
static const field save_fields[] = {
  FIELD(save, round, F_U32),   FIELD(save, generation, F_U32),       FIELD(save, bytes, F_F32),
  FIELD(save, seconds, F_F32), WORD(save, reason, tui_save_reasons), END
};
static const field index_fields[] = { FIELD(index, chunks, F_U32), FIELD(index, dim, F_U32),
                                      FIELD(index, seconds, F_F32), END };
static const field answer_fields[] = { WORD(answer, arm, tui_answer_arms),
                                       FIELD(answer, rows, F_U32),
                                       FIELD(answer, tokens, F_U32),
                                       FIELD(answer, seconds, F_F32),
                                       FIELD(answer, tok_s, F_F32),
                                       FIELD(answer, ttft_s, F_F32),
                                       END };
static const field request_fields[] = { FIELD(request, status, F_U32),
                                        FIELD(request, prompt_tokens, F_U32),
                                        FIELD(request, cached_tokens, F_U32),
                                        FIELD(request, completion_tokens, F_U32),
                                        FIELD(request, rows, F_U32),
                                        FIELD(request, queue_s, F_F32),
                                        FIELD(request, ttft_s, F_F32),
                                        FIELD(request, seconds, F_F32),
                                        END };
static const field control_fields[] = { WORD(control, cmd, tui_control_cmds),
                                        WORD(control, key, tui_control_keys),
                                        FIELD(control, doc, F_U32), FIELD(control, value, F_F32),
                                        END };
static const field end_fields[] = { WORD(end, status, tui_end_states), FIELD(end, round, F_U32),
                                    FIELD(end, seconds, F_F32), END };
static const field no_fields[] = { END };

static const struct {
  const field *fields;
  size_t size;
} kinds[TUI_EV_KINDS] = {
  [TUI_EV_RUN] = { run_fields, sizeof(tui_rec_run) },
  [TUI_EV_DOC] = { doc_fields, sizeof(tui_rec_doc) },
  [TUI_EV_STUDY] = { study_fields, sizeof(tui_rec_study) },
  [TUI_EV_ROUND] = { round_fields, sizeof(tui_rec_round) },
  [TUI_EV_ROTATE] = { rotate_fields, sizeof(tui_rec_rotate) },
  [TUI_EV_HELDOUT] = { heldout_fields, sizeof(tui_rec_heldout) },
  [TUI_EV_COVERAGE] = { coverage_fields, sizeof(tui_rec_coverage) },
  [TUI_EV_SAVE] = { save_fields, sizeof(tui_rec_save) },
  [TUI_EV_INDEX] = { index_fields, sizeof(tui_rec_index) },
  [TUI_EV_RETRIEVE] = { no_fields, sizeof(tui_rec_text) },
  [TUI_EV_ANSWER] = { answer_fields, sizeof(tui_rec_answer) },
  [TUI_EV_REQUEST] = { request_fields, sizeof(tui_rec_request) },
  [TUI_EV_CONTROL] = { control_fields, sizeof(tui_rec_control) },
  [TUI_EV_ERROR] = { no_fields, sizeof(tui_rec_text) },
  [TUI_EV_END] = { end_fields, sizeof(tui_rec_end) },
};

typedef union any_rec {
  tui_rec rec;
  tui_rec_run run;
  tui_rec_doc doc;
  tui_rec_study_wide study;
  tui_rec_round round;
  tui_rec_rotate rotate;
  tui_rec_heldout heldout;
  tui_rec_coverage coverage;
  tui_rec_save save;
  tui_rec_index index;
  tui_rec_answer answer;
  tui_rec_request request;
  tui_rec_control control;
  tui_rec_end end;
} any_rec;

/* Room for `more` elements; the block grows by half, so that memory stays near what is used. */
static int reserve(void *pp, size_t *cap, size_t n, size_t more, size_t size) {
  size_t need, grown = *cap + *cap / 2;
  if (!fl_add_size(n, more, &need)) return FL_ENOMEM;
  if (need <= *cap) return FL_OK;
  if (grown < need) grown = need < 64 ? 64 : need;
  void *old;
  memcpy(&old, pp, sizeof old);
  void *p = fl_reallocarray(old, grown, size);
  if (!p) return FL_ENOMEM;
  memcpy(pp, &p, sizeof p);
  *cap = grown;
  return FL_OK;
}

static void blank(any_rec *r, const field *f) {
  static const float unknown = NAN;
  static const uint32_t none = TUI_NONE, word = 0;
  static const tui_ref empty = { 0, 0 };
  for (; f->key; f++) {
    void *p = (char *)r + f->at;
    if (f->type == F_F32) memcpy(p, &unknown, sizeof unknown);
    else if (f->type == F_U32 || f->type == F_BOOL) memcpy(p, &none, sizeof none);
    else if (f->type == F_WORD) memcpy(p, &word, sizeof word);
    else memcpy(p, &empty, sizeof empty);
  }
}

static int push_number(tui_store *s, uint32_t v, tui_ref *ref) {
  if (s->n_numbers >= TUI_NONE - 1 || ref->n >= ARRAY_MAX) return FL_OK;
  int rc = reserve(&s->number, &s->cap_numbers, s->n_numbers, 1, sizeof *s->number);
  if (rc != FL_OK) return rc;
  s->number[s->n_numbers++] = v;
  ref->n++;
  return FL_OK;
}

/* Whole numbers of an array, one level of arrays inside flattened. */
static int add_numbers(tui_store *s, tui_slice v, tui_ref *ref, int depth) {
  tui_scan sc;
  tui_member m;
  int more, rc = FL_OK;
  if (!tui_scan_begin_array(&sc, v)) return FL_OK;
  while (rc == FL_OK && (more = tui_scan_element(&sc, &m)) > 0) {
    uint32_t n;
    if (m.type == 'a' && depth == 0) rc = add_numbers(s, m.value, ref, 1);
    else if (m.type == 'n' && tui_scan_u32(&n, m.value)) rc = push_number(s, n, ref);
  }
  return rc;
}

static int add_pairs(tui_store *s, tui_slice v, tui_ref *ref) {
  tui_scan sc;
  tui_member m;
  int rc = FL_OK;
  if (!tui_scan_begin(&sc, v.p, v.n)) return FL_OK;
  while (rc == FL_OK && tui_scan_next(&sc, &m) > 0) {
    uint32_t key, value;
    if (m.type != 'n' || !tui_scan_u32(&key, m.key) || !tui_scan_u32(&value, m.value)) continue;
    if (ref->n + 2 > ARRAY_MAX || s->n_numbers >= TUI_NONE - 2) break;
    rc = push_number(s, key, ref);
    if (rc == FL_OK) rc = push_number(s, value, ref);
  }
  return rc;
}

static int add_string(tui_store *s, tui_slice v, tui_ref *ref) {
  fl_buf text = { 0 };
  tui_scan_unescape(&text, v, NAME_MAX_BYTES);
  int rc = text.oom ? FL_ENOMEM : FL_OK;
  if (rc == FL_OK && s->n_bytes + text.len <= POOL_MAX && text.len > 0) {
    rc = reserve(&s->bytes, &s->cap_bytes, s->n_bytes, text.len, 1);
    if (rc == FL_OK) {
      memcpy(s->bytes + s->n_bytes, text.data, text.len);
      *ref = (tui_ref){ (uint32_t)s->n_bytes, (uint32_t)text.len };
      s->n_bytes += text.len;
    }
  }
  fl_buf_release(&text);
  return rc;
}

static uint32_t word_index(const char *const *words, tui_slice v) {
  for (uint32_t i = 1; words[i]; i++)
    if (tui_slice_is(v, words[i], strlen(words[i]))) return i;
  return 0;
}

static int store_field(tui_store *s, any_rec *r, const field *f, const tui_member *m) {
  void *p = (char *)r + f->at;
  uint32_t u;
  double d;
  tui_ref ref = { (uint32_t)s->n_numbers, 0 };
  int rc = FL_OK;
  switch ((field_type)f->type) {
  case F_U32:
    if (m->type == 'n' && tui_scan_u32(&u, m->value)) memcpy(p, &u, sizeof u);
    break;
  case F_F32:
    if (m->type == 'n' && tui_scan_number(&d, m->value) && fabs(d) < 1e30) {
      float v = (float)d;
      memcpy(p, &v, sizeof v);
    } else if (m->type == 't' || m->type == 'f') {
      float v = m->type == 't'; /* the value of a "mark" is a truth */
      memcpy(p, &v, sizeof v);
    }
    break;
  case F_BOOL:
    u = m->type == 't' ? 1 : m->type == 'f' ? 0 : TUI_NONE;
    memcpy(p, &u, sizeof u);
    break;
  case F_WORD:
    if (m->type == 's') {
      u = word_index(f->words, m->value);
      /* an unknown reason of a rejection is still a rejection */
      if (u == 0 && f->words == tui_rejections) u = 5;
      memcpy(p, &u, sizeof u);
    }
    break;
  case F_STR:
    if (m->type != 's') break;
    ref = (tui_ref){ 0, 0 };
    rc = add_string(s, m->value, &ref);
    memcpy(p, &ref, sizeof ref);
    break;
  case F_NUMBERS:
  case F_PAIRS:
    if (f->type == F_NUMBERS) rc = add_numbers(s, m->value, &ref, 0);
    else rc = add_pairs(s, m->value, &ref);
    memcpy(p, &ref, sizeof ref);
    break;
  }
  return rc;
}

/* Members mostly come in the order of the table: the search goes on where it last found. */
static const field *find_field(const field *table, const field **hint, tui_slice key) {
  for (const field *f = *hint; f->key; f++)
    if (tui_slice_is(key, f->key, f->len)) {
      *hint = f + 1;
      return f;
    }
  for (const field *f = table; f != *hint; f++)
    if (tui_slice_is(key, f->key, f->len)) {
      *hint = f + 1;
      return f;
    }
  return NULL;
}

/* "t" and "ev", which stand first in every line. False: damaged or unknown, counted. */
static bool read_head(tui_store *s, tui_scan *sc, double *t, tui_kind *kind) {
  tui_member m;
  if (tui_scan_next(sc, &m) != 1 || !tui_slice_is(m.key, "t", 1) || m.type != 'n' ||
      !tui_scan_number(t, m.value) || !(*t >= 0 && *t < 1e11) || tui_scan_next(sc, &m) != 1 ||
      !tui_slice_is(m.key, "ev", 2) || m.type != 's') {
    s->n_damaged++;
    return false;
  }
  for (int k = 0; k < TUI_EV_KINDS; k++)
    if (tui_slice_is(m.value, tui_event_names[k], strlen(tui_event_names[k]))) {
      *kind = (tui_kind)k;
      return true;
    }
  int more;
  while ((more = tui_scan_next(sc, &m)) > 0) continue;
  if (more < 0) s->n_damaged++;
  else s->n_unknown++;
  return false;
}

static void narrow_study(tui_store *s, tui_rec_study_wide *w, size_t index) {
  tui_rec_study *st = &w->study;
  st->kind = w->kind & 15;
  st->rejected = w->rejected & 15;
  st->replayed = w->replayed == 1;
  st->conv = w->conv < 1 << 22 ? w->conv & ((1 << 22) - 1) : 0;
  /* A document with the same low bits as another one shares its chain; readers check `doc`. */
  uint32_t *last = &s->last_study[st->doc % STUDY_HASH];
  st->prev = *last;
  *last = (uint32_t)index;
}

static bool at_end(const tui_store *s, tui_ref ref) { return ref.at + ref.n == s->n_numbers; }

/* A trainer names everybody in memory and everybody's steps in every round; what has not changed
 * since the round before is kept once. */
static void narrow_round(tui_store *s, tui_rec_round *r) {
  if (r->round == TUI_NONE) return; /* says nothing to a snapshot */
  uint32_t *now = s->number + r->resident.at, *was = s->number + s->last_resident.at;
  size_t n = r->resident.n, kept = 0;
  if (n > 0 && n == s->last_resident.n && memcmp(now, was, n * sizeof *now) == 0) {
    if (at_end(s, r->resident)) s->n_numbers -= n;
    r->resident = s->last_resident;
  } else if (n > 0) {
    s->last_resident = r->resident;
  }
  uint32_t *pair = s->number + r->steps.at;
  bool last = at_end(s, r->steps);
  for (size_t i = 0; i + 1 < r->steps.n; i += 2) {
    tui_steps *known = &s->known_steps[pair[i] % STEPS_HASH];
    if (known->doc == pair[i] && known->steps == pair[i + 1]) continue;
    *known = (tui_steps){ pair[i], pair[i + 1] };
    memmove(pair + kept, pair + i, 2 * sizeof *pair);
    kept += 2;
  }
  r->steps.n = (uint32_t)kept;
  if (last) s->n_numbers = r->steps.at + kept;
}

/* Tables by document id, all bits set where nothing is known. */
static int need_known(tui_store *s) {
  const size_t study = STUDY_HASH * sizeof *s->last_study;
  const size_t steps = STEPS_HASH * sizeof *s->known_steps;
  if (!s->last_study && (s->last_study = fl_malloc(study))) memset(s->last_study, 0xFF, study);
  if (!s->known_steps && (s->known_steps = fl_malloc(steps))) memset(s->known_steps, 0xFF, steps);
  return s->last_study && s->known_steps ? FL_OK : FL_ENOMEM;
}

static void narrow(tui_store *s, tui_kind kind, any_rec *r, size_t index) {
  if (kind == TUI_EV_STUDY) narrow_study(s, &r->study, index);
  if (kind == TUI_EV_ROUND) narrow_round(s, &r->round);
  if (kind == TUI_EV_DOC && r->doc.steps != TUI_NONE)
    s->known_steps[r->doc.doc % STEPS_HASH] = (tui_steps){ r->doc.doc, r->doc.steps };
}

static int append(tui_store *s, tui_kind kind, any_rec *r, double t) {
  tui_table *table = &s->kind[kind];
  size_t size = kinds[kind].size, n = s->n_ticks, base = n / TUI_TICKS_A_BASE;
  if (n >= TUI_NONE - 1 || table->n >= (1u << 28) - 1) return FL_OK;
  int rc = need_known(s);
  if (rc == FL_OK) rc = reserve(&s->tick, &s->cap_ticks, n, 1, sizeof *s->tick);
  if (rc == FL_OK) rc = reserve(&s->base, &s->cap_base, base, 1, sizeof *s->base);
  if (rc == FL_OK) rc = reserve(&table->rec, &table->cap, table->n, 1, size);
  if (rc != FL_OK) return rc;
  if (n > 0 && tui_store_t(s, n - 1) > t) t = tui_store_t(s, n - 1);
  if (n % TUI_TICKS_A_BASE == 0) s->base[base] = t;
  r->rec.event = (uint32_t)n;
  narrow(s, kind, r, table->n);
  memcpy((char *)table->rec + table->n * size, r, size);
  s->tick[n] =
      (tui_tick){ (float)(t - s->base[base]), (uint32_t)kind & 15, (uint32_t)table->n & 0xFFFFFFF };
  s->n_ticks++;
  table->n++;
  return FL_OK;
}

int tui_store_add(tui_store *s, const char *line, size_t len, tui_line_ref where) {
  tui_scan sc;
  tui_member m;
  double t;
  tui_kind kind;
  any_rec r = { .rec = { .line = where } };
  int more, rc = FL_OK;
  s->n_lines++;
  if (!tui_scan_begin(&sc, line, len)) {
    s->n_damaged++;
    return FL_OK;
  }
  if (!read_head(s, &sc, &t, &kind)) return FL_OK;
  const field *table = kinds[kind].fields, *hint = table;
  size_t bytes0 = s->n_bytes, numbers0 = s->n_numbers;
  blank(&r, table);
  while (rc == FL_OK && (more = tui_scan_next(&sc, &m)) > 0) {
    const field *f = find_field(table, &hint, m.key);
    if (f) rc = store_field(s, &r, f, &m);
  }
  if (rc == FL_OK && more == 0) rc = append(s, kind, &r, t);
  else if (rc == FL_OK) s->n_damaged++;
  if (rc != FL_OK || more != 0) {
    s->n_bytes = bytes0;
    s->n_numbers = numbers0;
  }
  return rc;
}

void tui_store_reset(tui_store *s) {
  for (int k = 0; k < TUI_EV_KINDS; k++) s->kind[k].n = 0;
  s->n_ticks = s->n_bytes = s->n_numbers = s->n_damaged = s->n_unknown = s->n_lines = 0;
  s->last_resident = (tui_ref){ 0, 0 };
  if (s->last_study) memset(s->last_study, 0xFF, STUDY_HASH * sizeof *s->last_study);
  if (s->known_steps) memset(s->known_steps, 0xFF, STEPS_HASH * sizeof *s->known_steps);
}

void tui_store_release(tui_store *s) {
  for (int k = 0; k < TUI_EV_KINDS; k++) fl_free(s->kind[k].rec);
  fl_free(s->tick);
  fl_free(s->bytes);
  fl_free(s->number);
  fl_free(s->base);
  fl_free(s->last_study);
  fl_free(s->known_steps);
  *s = (tui_store){ 0 };
}

const void *tui_store_rec(const tui_store *s, tui_kind kind, size_t i) {
  return (const char *)s->kind[kind].rec + i * kinds[kind].size;
}

const char *tui_store_str(const tui_store *s, tui_ref ref, size_t *n) {
  *n = ref.n;
  return ref.n ? s->bytes + ref.at : "";
}

size_t tui_store_seek(const tui_store *s, double t) {
  size_t lo = 0, hi = s->n_ticks;
  while (lo < hi) {
    size_t mid = lo + (hi - lo) / 2;
    if (tui_store_t(s, mid) <= t) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}
