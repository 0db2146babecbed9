/* maker.h - conversations on their way through the stages of study.c. Private to the layer. */
#ifndef FL_STUDY_MAKER_H
#define FL_STUDY_MAKER_H

#include "study/anchored.h"
#include "study/conv.h"
#include "study/reject.h"
#include "study/study.h"

enum {
  MAX_ATTEMPTS = 4,
  ATTEMPT_STRIDE = 1 << 24,
  THINK_ROOM = 256 /* tokens of reasoning before a request */
};

typedef struct base { /* the system rows of one chunk */
  const fl_doc_text *doc;
  size_t first, end;
  fl_seq *seq;
} base;

typedef struct item { /* one conversation on its way */
  const fl_conv_plan *plan;
  const base *base;
  fl_way way;
  uint32_t kind;       /* of the seeds */
  fl_anchored anchor;  /* of the other ways */
  bool thinks;         /* bot A reasons before its requests */
  bool closed;         /* no further turn */
  size_t turns;        /* that came out */
  fl_conv conv;        /* of these turns */
  char *last_answer;   /* of the turn before; NULL in the first */
  fl_ids dialogue;     /* as bot A has it: instruction, request, instruction, request ... */
  fl_ids history;      /* as bot B has it: request, answer, request, answer ... */
  fl_bot_text request; /* text NULL: none yet */
  fl_bot_text answer;
  fl_ids prompt; /* of the stage that runs */
  fl_ids given;  /* the tokens of an answer that is given */
  double loss;   /* of the teacher on them, in nats */
  fl_target_room room;
} item;

typedef struct doc_spans {
  const fl_doc_text *doc;
  fl_text_spans spans;
} doc_spans;

typedef struct maker {
  const fl_study_options *o;
  const fl_model *model;
  fl_pass *pass;
  fl_kv_pool *pool;
  fl_events *log;
  fl_err *err;
  size_t n, n_base, n_live, n_forced, n_docs;
  item *item;           /* [n] */
  base *base;           /* [n] */
  fl_ids examples;      /* what bots A that see a sentence alone begin with */
  fl_seq *examples_seq; /* their rows; NULL: no conversation needs them */
  doc_spans *docs;      /* [n] of the documents of anchored conversations */
  fl_stream *stream;    /* [n], the first n_live in use */
  item **live;          /* [n] whose stream it is */
  item **forced;        /* [n], the first n_forced in use: whose answer is given */
  uint32_t attempt;
  size_t turn;
  fl_study_stats stats;
} maker;

size_t fl_maker_turns(const maker *mk);
bool fl_maker_cancelled(void *mk);
/* Whether a conversation still lacks the turn that is being made. */
bool fl_maker_waits(const maker *mk, const item *it);
/* Stage A and stage B: everything that waits gets a request, then an answer, or is refused. */
int fl_maker_ask(maker *mk);
int fl_maker_answer(maker *mk);

#endif
