/* eval.h - questions with known answers, asked of a fleet in several ways.
 *
 * questions.c reads the file; prefix.c makes what stands before a question in each way (arm);
 * score.c weighs given answers; run.c asks; stats.c draws intervals; summary.c makes one JSON
 * object of it all, from which the table, the page (html.c) and the thresholds (threshold.c) are
 * made.
 */
#ifndef FL_EVAL_EVAL_H
#define FL_EVAL_EVAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "answer/answer.h"
#include "fleet/fleet.h"

typedef struct eval_texts {
  char **v;
  size_t n;
} eval_texts;

typedef struct eval_question {
  char *question, *doc; /* doc: its document's name */
  eval_texts value;     /* what a right answer contains: one of these */
  eval_texts option;    /* multiple choice; n is 0 without */
  size_t correct;       /* of the options */
  char *reference;      /* the answer whose perplexity is taken; the first value if none is given */
  size_t doc_index;     /* in the fleet, once resolved */
} eval_question;

typedef struct eval_questions {
  eval_question *q;
  size_t n;
  size_t n_options; /* questions that have some */
} eval_questions;

/* JSON: an array of objects, or one object a line; members: flotilla-eval(1). */
int eval_questions_read(eval_questions *out, const char *path, fl_err *err);
/* Keeps the first n. */
void eval_questions_limit(eval_questions *q, size_t n);
/* Finds every document in the fleet; FL_EINPUT names the first that is not there. */
int eval_questions_resolve(eval_questions *q, fl_fleet *f, const char *path, fl_err *err);
void eval_questions_release(eval_questions *q);

typedef enum eval_arm {
  EVAL_BARE,      /* nothing */
  EVAL_CONTEXT,   /* the whole document */
  EVAL_TEXT,      /* retrieved text, as many tokens as EVAL_RETRIEVED holds rows */
  EVAL_TEXT4,     /* four times as many */
  EVAL_ORACLE,    /* the document's cartridge */
  EVAL_RETRIEVED, /* the cartridges that retrieval chooses */
  EVAL_ALL        /* every cartridge of the fleet */
} eval_arm;
enum { EVAL_N_ARMS = 7 };
extern const char *const eval_arm_names[]; /* NULL-terminated */
typedef struct eval_arms {
  eval_arm arm[EVAL_N_ARMS];
  size_t n;
} eval_arms;
/* A list with commas, each arm at most once. `flag` names the option in the sentence. */
int eval_arms_parse(eval_arms *out, const char *flag, const char *list, fl_err *err);

typedef struct eval_answer {
  char *text;
  size_t rows, prompt_tokens; /* held before the question; read as text, question included */
  size_t tokens;
  bool contains, exact, choice;
  double nll; /* of the reference, nats */
  size_t nll_tokens;
} eval_answer;

typedef struct eval_result { /* of one arm */
  eval_answer *answer;       /* [n questions] */
  size_t n;
  double seconds; /* all questions together */
  size_t n_alone; /* questions asked once more, alone, for the next two (means) */
  double first_token_s, tokens_per_s;
} eval_result;

enum { EVAL_CONTAINS, EVAL_EXACT, EVAL_CHOICE }; /* --score */
extern const char *const eval_score_names[];     /* NULL-terminated */

typedef struct eval_options {
  fl_sampling sampling;
  size_t max_new; /* tokens of an answer */
  uint64_t seed;
  fl_kv_type kv;
  const fl_rag_options *rag;
  size_t batch; /* 1..EVAL_MAX_BATCH */
  size_t alone;
  bool (*stop)(void);
} eval_options;
enum { EVAL_MAX_BATCH = 64 };

/* What the arms share: texts, retrieval of every question, the pass and the pool. */
typedef struct eval_state eval_state;
int eval_state_new(eval_state **out, fl_fleet *f, fl_team *team, const eval_questions *q,
                   const eval_options *o, fl_err *err);
void eval_state_free(eval_state *b);
int eval_run(eval_result *out, eval_state *b, eval_arm arm, fl_err *err);
void eval_result_release(eval_result *r);

/* Everything that was found out, for printing: flotilla-eval(1) lists the members. */
typedef struct eval_summary {
  const eval_questions *q;
  const eval_arms *arms;
  const eval_result *result; /* [arms->n] */
  int score;
  size_t resamples;
  int against; /* index in arms of the arm that differences are taken against */
  bool answers;
} eval_summary;
bool eval_is_right(const eval_summary *s, size_t arm, size_t i);
int eval_summary_json(fl_json **out, const eval_summary *s, fl_fleet *f, eval_state *b,
                      fl_err *err);

/* A page that needs nothing else, well-formed XML too. */
void eval_html(fl_buf *out, const fl_json *summary, const char *title);

/* [MEMBER:]ARM>=X, or <=; X is a number, or ARM, ARM+X, ARM-X. FL_EUSAGE if it is none or names an
 * arm that was not asked; FL_EGATE when it is not met. */
int eval_threshold(const fl_json *summary, const char *text, fl_err *err);
/* FL_EUSAGE already before anything is asked. */
int eval_threshold_check(const eval_arms *arms, const char *text, fl_err *err);

#endif
