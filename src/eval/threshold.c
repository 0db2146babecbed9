/* threshold.c - --threshold: what an evaluation has to reach. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/eval.h"

static int malformed(const char *text, fl_err *err) {
  return fl_fail(err, FL_EUSAGE,
                 "--threshold %s: give ARM>=X or ARM<=X, X a number or "
                 "ARM+NUMBER or ARM-NUMBER, and before it the member that is meant, as in "
                 "perplexity:ARM<=3",
                 text);
}

/* A number member of an arm's row; perplexities stand in a table of their own. */
static bool member_of(const fl_json *summary, const char *member, const char *arm, size_t len,
                      double *out) {
  bool ppl = strcmp(member, "perplexity") == 0;
  const fl_json *rows = fl_json_get(summary, ppl ? "perplexity" : "arms");
  for (const fl_json *row = rows ? fl_json_first(rows) : NULL; row; row = fl_json_next(row)) {
    const char *name;
    if (!fl_json_get_str(row, "arm", &name) || strlen(name) != len || memcmp(name, arm, len) != 0)
      continue;
    return fl_json_get_num(row, member, out);
  }
  return false;
}

/* NUMBER, or ARM with +NUMBER or -NUMBER behind it or nothing. */
static bool right_side(const fl_json *summary, const char *member, const char *text, double *out) {
  char *end;
  double v = 0, offset = 0;
  size_t len = strcspn(text, "+-");
  if (*text >= '0' && *text <= '9') {
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
  }
  if (!member_of(summary, member, text, len, &v)) return false;
  if (text[len]) {
    if (text[len + 1] < '0' || text[len + 1] > '9') return false;
    offset = strtod(text + len, &end);
    if (*end != '\0' || !isfinite(offset)) return false;
  }
  *out = v + offset;
  return true;
}

int eval_threshold(const fl_json *summary, const char *text, fl_err *err) {
  char member[32] = "share";
  const char *arm = text, *colon = strchr(text, ':'), *op = strpbrk(text, "<>");
  double is, wanted;
  if (!op || op[1] != '=') return malformed(text, err);
  if (colon && colon < op) {
    size_t len = (size_t)(colon - text);
    if (len == 0 || len >= sizeof member) return malformed(text, err);
    memcpy(member, text, len);
    member[len] = '\0';
    arm = colon + 1;
  }
  if (!member_of(summary, member, arm, (size_t)(op - arm), &is) ||
      !right_side(summary, member, op + 2, &wanted))
    return malformed(text, err);
  /* Shares are rounded to four decimals; a limit that is met exactly must pass. */
  if (*op == '>' ? is >= wanted - 5e-5 : is <= wanted + 5e-5) return FL_OK;
  return fl_fail(err, FL_EGATE, "--threshold %s: not met, %.*s has a %s of %.4g", text,
                 (int)(op - arm), arm, member, is);
}

int eval_threshold_check(const eval_arms *arms, const char *text, fl_err *err) {
  static const char *const members[] = {
    "right", "of",     "share", "low",           "high",          "contains",
    "exact", "choice", "rows",  "prompt_tokens", "first_token_s", "tokens_a_second",
    "all_s"
  };
  fl_json *probe = fl_json_object(), *rows = fl_json_array(), *ppl = fl_json_array();
  for (size_t i = 0; i < arms->n && rows && ppl; i++) {
    fl_json *row = fl_json_object(), *p = fl_json_object();
    fl_json_set_str(row, "arm", eval_arm_names[arms->arm[i]]);
    fl_json_set_str(p, "arm", eval_arm_names[arms->arm[i]]);
    fl_json_set_num(p, "perplexity", 0);
    for (size_t m = 0; m < sizeof members / sizeof *members; m++)
      fl_json_set_num(row, members[m], 0);
    fl_json_push(rows, row);
    fl_json_push(ppl, p);
  }
  fl_json_set(probe, "arms", rows);
  fl_json_set(probe, "perplexity", ppl);
  fl_err why = { 0 };
  int rc = eval_threshold(probe, text, &why);
  fl_json_free(probe);
  return rc == FL_EUSAGE ? fl_fail(err, rc, "%s", why.text) : FL_OK;
}
