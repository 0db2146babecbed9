/* check_options.c - every option of every command: what it takes, what it refuses, and the sentence
 * that names it. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "commands/command.h"
#include "suite.h"

enum { WORDS = 8 };

/* One reading of a command line for `command`, whose arguments begin with their defaults. */
typedef struct reading {
  const command *command;
  void *args;
  opt_parsed parsed;
  fl_err err;
  char *argv[WORDS + 1];
} reading;

static int read_words(reading *r, const command *c, const char *const *words) {
  int argc = 1;
  *r = (reading){ .command = c, .args = fl_calloc(1, c->args_size) };
  ck_assert_ptr_nonnull(r->args);
  if (c->init) c->init(r->args);
  r->argv[0] = fl_strdup(c->name);
  for (; argc < WORDS && words[argc - 1]; argc++) r->argv[argc] = fl_strdup(words[argc - 1]);
  return options_parse(&r->parsed, c->groups, r->args, argc, r->argv, &r->err);
}

static void release(reading *r) {
  options_release(&r->parsed);
  fl_free(r->args);
  for (size_t i = 0; i < WORDS; i++) fl_free(r->argv[i]);
}

#define READ(r, c, ...) read_words(r, c, (const char *const[]){ __VA_ARGS__, NULL })

/* Refused with one sentence that has `part` in it. */
#define REFUSED(c, part, ...)                                                                      \
  do {                                                                                             \
    reading r_;                                                                                    \
    ck_assert_msg(READ(&r_, c, __VA_ARGS__) == FL_EUSAGE, "%s: taken: %s", (c)->name,              \
                  (const char *const[]){ __VA_ARGS__, NULL }[0]);                                  \
    ck_assert_msg(strstr(r_.err.text, part) != NULL, "%s instead of %s", r_.err.text, part);       \
    release(&r_);                                                                                  \
  } while (0)

/* Calls fn for every option of every command, with its name as it is written and its place. */
typedef void each_fn(const command *c, const opt_group *g, const opt_spec *s, const char *name);

static void each_option(each_fn *fn) {
  char name[64];
  size_t n = 0;
  for (const command *const *c = commands; *c; c++)
    for (const opt_group *g = (*c)->groups; g->title; g++)
      for (const opt_spec *s = g->specs; s->name; s++, n++) {
        snprintf(name, sizeof name, "--%s", s->name);
        fn(*c, g, s, name);
      }
  ck_assert_uint_gt(n, 200); /* all were seen */
}

static bool whole(const opt_spec *s) { return s->type == OPT_COUNT || s->type == OPT_U64; }

static bool numeric(const opt_spec *s) {
  return whole(s) || s->type == OPT_REAL || s->type == OPT_BYTES || s->type == OPT_SECONDS;
}

static double value_of(const opt_spec *s, const void *at) {
  switch (s->type) {
  case OPT_COUNT: return (double)*(const size_t *)at;
  case OPT_U64:
  case OPT_BYTES: return (double)*(const uint64_t *)at;
  default: return *(const double *)at;
  }
}

static const void *place(const reading *r, const opt_group *g, const opt_spec *s) {
  return (const char *)r->args + g->offset + s->offset;
}

/* What cannot be a number, or none of this option. */
static void numbers(const command *c, const opt_group *g, const opt_spec *s, const char *name) {
  static const char *const wrong[] = { "nan", "-2",  "1e300", "99999999999999999999",
                                       "x",   "1x",  " 1",    "0x10",
                                       "inf", "1,5", "" };
  char text[64], sentence[128];
  (void)g;
  if (!numeric(s)) return;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    snprintf(sentence, sizeof sentence, "%s %s: ", name, wrong[i]);
    REFUSED(c, sentence, name, wrong[i]);
  }
  if (whole(s)) REFUSED(c, name, name, "1.5");
  if (s->min > 0) {
    snprintf(text, sizeof text, "%.17g", s->min >= 1 ? s->min - 1 : s->min / 2);
    REFUSED(c, name, name, text);
  }
  if (s->max < 1e15) {
    snprintf(text, sizeof text, "%.17g", s->max >= 2 ? s->max + 1 : s->max * 1.5);
    REFUSED(c, "out of range; give a value from ", name, text);
  }
}

START_TEST(numbers_out_of_range_are_refused) { each_option(numbers); }
END_TEST

/* Both ends are taken, and land in the member that the option stands for. */
static void ends(const command *c, const opt_group *g, const opt_spec *s, const char *name) {
  char text[64];
  if (!numeric(s)) return;
  const double end[] = { s->min, s->max };
  ck_assert_msg(s->min < s->max, "%s %s", c->name, name);
  for (size_t i = 0; i < 2; i++) {
    if (end[i] >= 0x1p63) continue;
    snprintf(text, sizeof text, whole(s) || s->type == OPT_BYTES ? "%.0f" : "%.17g", end[i]);
    reading r;
    ck_assert_msg(READ(&r, c, name, text) == FL_OK, "%s: %s", c->name, r.err.text);
    ck_assert_msg(value_of(s, place(&r, g, s)) == end[i], "%s %s %s", c->name, name, text);
    ck_assert(options_given(&r.parsed, s->name));
    ck_assert_uint_eq(r.parsed.n_given, 1);
    release(&r);
  }
}

START_TEST(the_ends_of_a_range_are_taken) { each_option(ends); }
END_TEST

/* A default is a value that could be given. */
static void defaults(const command *c, const opt_group *g, const opt_spec *s, const char *name) {
  reading r;
  ck_assert_int_eq(READ(&r, c, "--help"), FL_OK);
  const void *at = place(&r, g, s);
  if (numeric(s)) {
    const double v = value_of(s, at);
    ck_assert_msg(v >= s->min && v <= s->max, "%s %s: %g by default", c->name, name, v);
  } else if (s->type == OPT_CHOICE) {
    int n = 0;
    while (s->choices[n]) n++;
    ck_assert_msg(*(const int *)at >= -1 && *(const int *)at < n, "%s %s", c->name, name);
  }
  release(&r);
}

START_TEST(defaults_are_in_range) { each_option(defaults); }
END_TEST

static void values(const command *c, const opt_group *g, const opt_spec *s, const char *name) {
  char joined[80], letter[3] = { '-', s->letter, '\0' };
  const bool flag = s->type == OPT_ON || s->type == OPT_OFF;
  reading r;
  snprintf(joined, sizeof joined, "%s=1", name);
  if (flag) {
    REFUSED(c, "takes no value", joined);
    ck_assert_int_eq(READ(&r, c, s->letter ? letter : name), FL_OK);
    ck_assert(*(const bool *)place(&r, g, s) == (s->type == OPT_ON));
    release(&r);
    return;
  }
  snprintf(joined, sizeof joined, "%s needs a value", name);
  REFUSED(c, joined, name);
  ck_assert_ptr_nonnull(s->meta);
  if (s->letter) REFUSED(c, "needs a value", letter);
  if (s->type == OPT_TEXT || s->type == OPT_LIST) {
    ck_assert_int_eq(READ(&r, c, s->letter ? letter : name, "a", name, "b"), FL_OK);
    if (s->type == OPT_TEXT) {
      ck_assert_str_eq(*(const char *const *)place(&r, g, s), "b"); /* the last one counts */
    } else {
      const opt_list *l = place(&r, g, s);
      ck_assert(l->n == 2 && strcmp(l->v[0], "a") == 0 && opt_list_has(l, "b"));
    }
    release(&r);
  }
  if (s->type != OPT_CHOICE) return;
  REFUSED(c, "unknown; give one of", name, "nothing-like-it");
  REFUSED(c, "unknown; give one of", name, "");
  for (int i = 0; s->choices[i]; i++) {
    ck_assert_int_eq(READ(&r, c, name, s->choices[i]), FL_OK);
    ck_assert_int_eq(*(const int *)place(&r, g, s), i);
    release(&r);
  }
}

START_TEST(values_and_flags) { each_option(values); }
END_TEST

/* No two options of a command share a name, a letter or a place. */
START_TEST(names_are_distinct) {
  for (const command *const *c = commands; *c; c++) {
    const opt_spec *seen[OPT_MAX];
    size_t at[OPT_MAX], n = 0;
    for (const opt_group *g = (*c)->groups; g->title; g++)
      for (const opt_spec *s = g->specs; s->name; s++) {
        ck_assert_uint_lt(n, OPT_MAX);
        ck_assert_uint_lt(g->offset + s->offset, (*c)->args_size);
        ck_assert_ptr_nonnull(s->help);
        for (size_t i = 0; i < n; i++) {
          ck_assert_str_ne(seen[i]->name, s->name);
          ck_assert(s->letter == 0 || seen[i]->letter != s->letter);
          /* a switch on and its opposite may share theirs */
          ck_assert_msg(at[i] != g->offset + s->offset ||
                            (seen[i]->type <= OPT_OFF && s->type <= OPT_OFF),
                        "%s: --%s, --%s", (*c)->name, seen[i]->name, s->name);
        }
        seen[n] = s;
        at[n++] = g->offset + s->offset;
      }
    for (const command *const *d = commands; d < c; d++) ck_assert_str_ne((*d)->name, (*c)->name);
    ck_assert_ptr_eq(command_find((*c)->name), *c);
  }
}
END_TEST

START_TEST(unknown_words) {
  const command *info = command_find("info"), *train = command_find("train");
  REFUSED(info, "--tokenise; did you mean --tokenize?", "--tokenise", "x");
  REFUSED(info, "unknown option --nothing-of-the-kind", "--nothing-of-the-kind");
  REFUSED(info, "unknown option -X", "-X");
  REFUSED(train, "--ro: ambiguous", "--ro", "3");
  ck_assert_str_eq(command_nearest("inof"), "info");
  ck_assert_str_eq(command_nearest("tran"), "train");
  ck_assert_ptr_null(command_nearest("nonsense"));
  ck_assert_ptr_null(command_find("inof"));
}
END_TEST

/* Operands may stand between options; behind "--" nothing is an option. */
START_TEST(operands_keep_their_order) {
  reading r;
  ck_assert_int_eq(READ(&r, command_find("ask"), "fleet", "-q", "who", "--", "-n"), FL_OK);
  ck_assert_uint_eq(r.parsed.n_operands, 3);
  ck_assert_str_eq(r.parsed.operand[0], "fleet");
  ck_assert_str_eq(r.parsed.operand[1], "who");
  ck_assert_str_eq(r.parsed.operand[2], "-n");
  ck_assert(((const common_args *)r.args)->quiet);
  release(&r);
}
END_TEST

/* The first wrong word is the one that is named, and what stands before it was read. */
START_TEST(the_first_fault_is_named) {
  REFUSED(command_find("train"), "--rounds x", "--rounds", "x", "--budget", "y");
  REFUSED(command_find("train"), "--budget y", "--rounds", "3", "--budget", "y");
}
END_TEST

static size_t sizes, times;

static void units(const command *c, const opt_group *g, const opt_spec *s, const char *name) {
  const bool size = s->type == OPT_BYTES && s->min <= 0x1p30 && s->max >= 0x1p30;
  const bool time = s->type == OPT_SECONDS && s->max >= 7200;
  reading r;
  if (!size && !time) return;
  ck_assert_int_eq(READ(&r, c, name, size ? "1G" : "2h"), FL_OK);
  ck_assert_double_eq(value_of(s, place(&r, g, s)), size ? 0x1p30 : 7200);
  release(&r);
  sizes += size;
  times += time;
}

START_TEST(units_of_sizes_and_times) {
  each_option(units);
  ck_assert(sizes > 0 && times > 0);
}
END_TEST

static Suite *suite_options(void) {
  Suite *s = suite_create("options");
  TCase *t = tcase_create("core"), *errors = tcase_create("errors");
  tcase_set_timeout(t, 60);
  tcase_set_timeout(errors, 60);
  tcase_add_test(t, the_ends_of_a_range_are_taken);
  tcase_add_test(t, defaults_are_in_range);
  tcase_add_test(t, values_and_flags);
  tcase_add_test(t, names_are_distinct);
  tcase_add_test(t, operands_keep_their_order);
  tcase_add_test(t, units_of_sizes_and_times);
  tcase_add_test(errors, numbers_out_of_range_are_refused);
  tcase_add_test(errors, unknown_words);
  tcase_add_test(errors, the_first_fault_is_named);
  suite_add_tcase(s, t);
  suite_add_tcase(s, errors);
  return s;
}

int main(void) { return suite_main((suite_fn *const[]){ suite_options }, 1); }
