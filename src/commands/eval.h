/* eval.h - questions with known answers, asked of a fleet in several ways. */
#ifndef FL_COMMANDS_EVAL_H
#define FL_COMMANDS_EVAL_H

#include <stdbool.h>
#include <stddef.h>

#include "commands/sampling.h"
#include "fleet/fleet.h"

typedef struct eval_question {
  char *question, *value, *doc; /* value: what a right answer contains; doc: its document's name */
  size_t doc_index;             /* in the fleet, once resolved */
} eval_question;

typedef struct eval_questions {
  eval_question *q;
  size_t n;
} eval_questions;

/* JSON: an array of objects, or one object a line, with question, value, and document or doc. */
int eval_questions_read(eval_questions *out, const char *path, fl_err *err);
/* Finds every document in the fleet; FL_EINPUT names the first that is not there. */
int eval_questions_resolve(eval_questions *q, fl_fleet *f, const char *path, fl_err *err);
void eval_questions_release(eval_questions *q);

typedef enum eval_arm { EVAL_BARE, EVAL_CONTEXT, EVAL_ORACLE, EVAL_RETRIEVED, EVAL_TEXT } eval_arm;
enum { EVAL_N_ARMS = 5 };
extern const char *const eval_arm_names[]; /* NULL-terminated */

typedef struct eval_answer {
  char *text;
  size_t rows, tokens;
  bool right;
} eval_answer;

typedef struct eval_result { /* of one arm */
  eval_answer *answer;       /* [n questions] */
  size_t n, right;
  double rows, tokens;       /* means */
  double seconds;            /* all questions together */
  size_t first, among;       /* retrieval: right document first, among the chosen */
} eval_result;

typedef struct eval_options {
  const sampling_args *sampling;
  const fl_rag_options *rag;
  size_t batch;
  bool (*stop)(void);
} eval_options;

int eval_run(eval_result *out, fl_fleet *f, fl_team *team, const eval_questions *q, eval_arm arm,
             const eval_options *o, fl_err *err);
void eval_result_release(eval_result *r);
/* [*low, *high]: 95 % of the shares of right answers over resampled questions. */
void eval_interval(const eval_result *r, double *low, double *high);

#endif
