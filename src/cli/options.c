/* options.c - parsing by getopt_long, checks and listings from the option tables. */
#include "cli/options.h"

#include <getopt.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"

enum { FIRST_CODE = 256, NEAREST_MAX_LEN = 48 };

/* The specs of all groups in one row, with the place of each value. */
typedef struct flat {
  const opt_spec *spec[OPT_MAX];
  size_t base[OPT_MAX];
  size_t n;
} flat;

static void flatten(flat *f, const opt_group *groups) {
  f->n = 0;
  for (const opt_group *g = groups; g->title; g++)
    for (const opt_spec *s = g->specs; s->name && f->n < OPT_MAX; s++) {
      f->spec[f->n] = s;
      f->base[f->n++] = g->offset;
    }
}

static bool takes_value(const opt_spec *s) { return s->type != OPT_ON && s->type != OPT_OFF; }

static bool is_numeric(const opt_spec *s) {
  return s->type == OPT_COUNT || s->type == OPT_U64 || s->type == OPT_REAL ||
         s->type == OPT_BYTES || s->type == OPT_SECONDS;
}

static void format_value(char *buf, size_t size, const opt_spec *s, double v) {
  char tmp[64];
  if (s->type == OPT_SECONDS) {
    snprintf(buf, size, "%gs", v);
  } else if (s->type == OPT_BYTES && v >= 1024) {
    snprintf(buf, size, "%s", fl_format_bytes(tmp, (uint64_t)v));
  } else if (s->type == OPT_REAL) {
    snprintf(buf, size, "%g", v);
  } else {
    snprintf(buf, size, "%.0f", v);
  }
}

static int refuse_range(const opt_spec *s, const char *text, fl_err *err) {
  char lo[64], hi[64];
  format_value(lo, sizeof lo, s, s->min);
  format_value(hi, sizeof hi, s, s->max);
  return fl_fail(err, FL_EUSAGE, "--%s %s: out of range; give a value from %s to %s", s->name, text,
                 lo, hi);
}

static int refuse_number(const opt_spec *s, const char *text, fl_err *err) {
  const char *what = s->type == OPT_REAL      ? "a number such as 0.5 or 2e-3"
                     : s->type == OPT_BYTES   ? "a size such as 512M or 2G"
                     : s->type == OPT_SECONDS ? "a time such as 90s, 5m or 2h"
                                              : "a whole number";
  return fl_fail(err, FL_EUSAGE, "--%s %s: not understood; give %s", s->name, text, what);
}

static int store_number(const opt_spec *s, void *at, const char *text, fl_err *err) {
  uint64_t u = 0;
  double d = 0;
  int rc = s->type == OPT_REAL      ? fl_parse_double(&d, text)
           : s->type == OPT_SECONDS ? fl_parse_seconds(&d, text)
           : s->type == OPT_BYTES   ? fl_parse_bytes(&u, text)
                                    : fl_parse_u64(&u, text);
  if (rc != FL_OK) return refuse_number(s, text, err);
  bool real = s->type == OPT_REAL || s->type == OPT_SECONDS;
  double v = real ? d : (double)u;
  if (!(v >= s->min && v <= s->max)) return refuse_range(s, text, err);
  if (real) {
    *(double *)at = d;
  } else if (s->type == OPT_COUNT) {
    *(size_t *)at = (size_t)u;
  } else {
    *(uint64_t *)at = u;
  }
  return FL_OK;
}

static int store_choice(const opt_spec *s, void *at, const char *text, fl_err *err) {
  char names[256];
  size_t len = 0;
  for (int i = 0; s->choices[i]; i++) {
    if (strcmp(text, s->choices[i]) == 0) {
      *(int *)at = i;
      return FL_OK;
    }
    int w = snprintf(names + len, sizeof names - len, "%s%s", i ? ", " : "", s->choices[i]);
    if (w > 0 && (size_t)w < sizeof names - len) len += (size_t)w;
  }
  return fl_fail(err, FL_EUSAGE, "--%s %s: unknown; give one of %s", s->name, text, names);
}

int opt_list_add(opt_list *l, const char *text, fl_err *err) {
  const char **grown = fl_reallocarray(l->v, l->n + 1, sizeof *grown);
  if (!grown) return fl_fail(err, FL_ENOMEM, "not enough memory");
  l->v = grown;
  l->v[l->n++] = text;
  return FL_OK;
}

bool opt_list_has(const opt_list *l, const char *text) {
  for (size_t i = 0; i < l->n; i++)
    if (strcmp(l->v[i], text) == 0) return true;
  return false;
}

static int store(const opt_spec *s, void *at, const char *text, fl_err *err) {
  switch (s->type) {
  case OPT_ON: *(bool *)at = true; return FL_OK;
  case OPT_OFF: *(bool *)at = false; return FL_OK;
  case OPT_TEXT: *(const char **)at = text; return FL_OK;
  case OPT_LIST: return opt_list_add(at, text, err);
  case OPT_CHOICE: return store_choice(s, at, text, err);
  case OPT_FORM: return s->form->read(at, text, err);
  case OPT_COUNT:
  case OPT_U64:
  case OPT_REAL:
  case OPT_BYTES:
  case OPT_SECONDS: break;
  }
  return store_number(s, at, text, err);
}

/* --- suggestions --------------------------------------------------------------------------- */

static size_t min3(size_t a, size_t b, size_t c) {
  size_t m = a < b ? a : b;
  return m < c ? m : c;
}

/* Levenshtein distance by two rows. */
static size_t distance(const char *a, const char *b) {
  size_t la = strlen(a), lb = strlen(b);
  size_t row[NEAREST_MAX_LEN + 1];
  if (la > NEAREST_MAX_LEN || lb > NEAREST_MAX_LEN) return SIZE_MAX;
  for (size_t j = 0; j <= lb; j++) row[j] = j;
  for (size_t i = 1; i <= la; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= lb; j++) {
      size_t above = row[j];
      row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
      diagonal = above;
    }
  }
  return row[lb];
}

const char *options_nearest(const char *word, const char *const *names, size_t n) {
  const char *best = NULL;
  size_t best_d = strlen(word) / 3 + 2; /* first distance that is too far */
  for (size_t i = 0; i < n; i++) {
    size_t d = distance(word, names[i]);
    if (d < best_d && d < strlen(names[i])) {
      best_d = d;
      best = names[i];
    }
  }
  return best;
}

/* --- parsing ------------------------------------------------------------------------------- */

/* getopt stopped at a word that it does not know or whose value is missing or one too many. */
static int refuse_word(const flat *f, int code, char **argv, fl_err *err) {
  const char *text = argv[optind - 1];
  if (optopt > 0 && optopt < FIRST_CODE && (optopt != '?' || strncmp(text, "--", 2) != 0)) {
    for (size_t i = 0; i < f->n; i++)
      if (f->spec[i]->letter == optopt)
        return fl_fail(err, FL_EUSAGE, "-%c needs a value (%s)", optopt, f->spec[i]->meta);
    return fl_fail(err, FL_EUSAGE, "unknown option -%c", optopt);
  }
  if (optopt >= FIRST_CODE) {
    const opt_spec *s = f->spec[optopt - FIRST_CODE];
    if (code == ':') return fl_fail(err, FL_EUSAGE, "--%s needs a value (%s)", s->name, s->meta);
    return fl_fail(err, FL_EUSAGE, "--%s takes no value", s->name);
  }
  char word[NEAREST_MAX_LEN + 1];
  snprintf(word, sizeof word, "%.*s", (int)strcspn(text + 2, "="), text + 2);
  const char *names[OPT_MAX];
  size_t n_prefix = 0;
  for (size_t i = 0; i < f->n; i++) {
    names[i] = f->spec[i]->name;
    n_prefix += strncmp(names[i], word, strlen(word)) == 0;
  }
  if (n_prefix > 1) return fl_fail(err, FL_EUSAGE, "--%s: ambiguous; write it out", word);
  const char *near = options_nearest(word, names, f->n);
  if (near) return fl_fail(err, FL_EUSAGE, "unknown option --%s; did you mean --%s?", word, near);
  return fl_fail(err, FL_EUSAGE, "unknown option --%s", word);
}

static void getopt_tables(const flat *f, struct option *longs, char *shorts) {
  *shorts++ = ':';
  for (size_t i = 0; i < f->n; i++) {
    const opt_spec *s = f->spec[i];
    longs[i] = (struct option){ .name = s->name,
                                .has_arg = takes_value(s) ? required_argument : no_argument,
                                .val = FIRST_CODE + (int)i };
    if (!s->letter) continue;
    *shorts++ = s->letter;
    if (takes_value(s)) *shorts++ = ':';
  }
  *shorts = '\0';
}

static size_t spec_of_code(const flat *f, int code) {
  if (code >= FIRST_CODE) return (size_t)(code - FIRST_CODE);
  for (size_t i = 0; i < f->n; i++)
    if (f->spec[i]->letter == code) return i;
  return f->n;
}

int options_parse(opt_parsed *out, const opt_group *groups, void *args, int argc, char **argv,
                  fl_err *err) {
  flat f;
  struct option longs[OPT_MAX + 1] = { 0 };
  char shorts[2 * OPT_MAX + 2];
  *out = (opt_parsed){ .groups = groups, .args = args };
  flatten(&f, groups);
  getopt_tables(&f, longs, shorts);
  opterr = 0;
  optind = 0; /* GNU: forget an earlier scan */
  for (int code; (code = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
    if (code == '?' || code == ':') return refuse_word(&f, code, argv, err);
    size_t i = spec_of_code(&f, code);
    const opt_spec *s = f.spec[i];
    int rc = store(s, (char *)args + f.base[i] + s->offset, optarg, err);
    if (rc != FL_OK) return rc;
    if (!options_given(out, s->name)) out->given[out->n_given++] = s->name;
  }
  out->operand = argv + optind;
  out->n_operands = (size_t)(argc - optind);
  return FL_OK;
}

void options_release(opt_parsed *p) {
  if (!p->groups) return;
  flat f;
  flatten(&f, p->groups);
  for (size_t i = 0; i < f.n; i++) {
    if (f.spec[i]->type != OPT_LIST) continue;
    opt_list *l = (opt_list *)((char *)p->args + f.base[i] + f.spec[i]->offset);
    fl_free(l->v);
    *l = (opt_list){ 0 };
  }
}

bool options_given(const opt_parsed *p, const char *name) {
  for (size_t i = 0; i < p->n_given; i++)
    if (strcmp(p->given[i], name) == 0) return true;
  return false;
}

/* --- listings ------------------------------------------------------------------------------ */

/* False where there is no default worth printing. */
static bool default_text(char *buf, size_t size, const opt_spec *s, const void *at) {
  switch (s->type) {
  case OPT_ON:
  case OPT_OFF:
  case OPT_LIST: return false;
  case OPT_TEXT: {
    const char *t = *(const char *const *)at;
    if (t) snprintf(buf, size, "%s", t);
    return t != NULL;
  }
  case OPT_CHOICE: {
    int i = *(const int *)at;
    if (i >= 0) snprintf(buf, size, "%s", s->choices[i]);
    return i >= 0;
  }
  case OPT_FORM: {
    fl_buf text = { 0 };
    s->form->print(&text, at);
    snprintf(buf, size, "%s", text.data ? text.data : "");
    fl_buf_release(&text);
    return true;
  }
  case OPT_REAL:
  case OPT_SECONDS: format_value(buf, size, s, *(const double *)at); return true;
  case OPT_COUNT: format_value(buf, size, s, (double)*(const size_t *)at); return true;
  case OPT_U64:
  case OPT_BYTES: format_value(buf, size, s, (double)*(const uint64_t *)at);
  }
  return true;
}

static void print_one(FILE *f, const opt_spec *s, const void *at) {
  enum { COLUMN = 28 };
  char head[128], def[128], lo[64], hi[64], letter[8] = "    ";
  if (s->letter) snprintf(letter, sizeof letter, "-%c, ", s->letter);
  snprintf(head, sizeof head, "  %s--%s%s%s", letter, s->name, s->meta ? " " : "",
           s->meta ? s->meta : "");
  fprintf(f, "%-*s", COLUMN, head);
  if (strlen(head) >= COLUMN) fprintf(f, "\n%*s", COLUMN, "");
  fprintf(f, "%s", s->help);
  bool has_default = default_text(def, sizeof def, s, at);
  const char *sep = " (";
  if (is_numeric(s)) {
    format_value(lo, sizeof lo, s, s->min);
    format_value(hi, sizeof hi, s, s->max);
    fprintf(f, "%s%s to %s", sep, lo, hi);
    sep = "; ";
  }
  for (int i = 0; s->type == OPT_CHOICE && s->choices[i]; i++, sep = ", ")
    fprintf(f, "%s%s", sep, s->choices[i]);
  if (s->type == OPT_CHOICE) sep = "; ";
  if (has_default) fprintf(f, "%s%s by default", sep, def);
  fputs(has_default || is_numeric(s) || s->type == OPT_CHOICE ? ")\n" : "\n", f);
}

void options_print(FILE *f, const opt_group *groups, const void *args) {
  for (const opt_group *g = groups; g->title; g++) {
    fprintf(f, "\n%s:\n", g->title);
    for (const opt_spec *s = g->specs; s->name; s++)
      print_one(f, s, (const char *)args + g->offset + s->offset);
  }
}

void options_list(FILE *f, const opt_group *groups, const void *args) {
  static const char *const type_name[] = { "on",      "off",  "count", "u64",    "real", "bytes",
                                           "seconds", "text", "list",  "choice", "form" };
  for (const opt_group *g = groups; g->title; g++)
    for (const opt_spec *s = g->specs; s->name; s++) {
      char def[128] = "-";
      default_text(def, sizeof def, s, (const char *)args + g->offset + s->offset);
      fprintf(f, "--%s\t", s->name);
      char letter[3] = { '-', s->letter, '\0' };
      fprintf(f, "%s\t%s\t%s", letter, type_name[s->type], def);
      if (is_numeric(s)) {
        fprintf(f, "\t%.17g\t%.17g\n", s->min, s->max);
      } else {
        fputs("\t-\t-\n", f);
      }
    }
}
