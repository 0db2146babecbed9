/* sampling.h - the options of generation that ask, chat and eval share. */
#ifndef FL_COMMANDS_SAMPLING_H
#define FL_COMMANDS_SAMPLING_H

#include "answer/answer.h"
#include "cli/options.h"
#include "eval/eval.h"
#include "fleet/fleet.h"

typedef struct sampling_args {
  fl_sampling sampling;
  size_t max_new;
  uint64_t seed;
  int kv; /* fl_kv_type */
} sampling_args;

typedef struct retrieval_args {
  fl_rag_options rag;
} retrieval_args;

extern const opt_spec sampling_specs[], retrieval_specs[];
void sampling_default(sampling_args *a);
void retrieval_default(retrieval_args *a);
/* The generation part of an ask, and of an evaluation. */
void sampling_apply(fl_ask_options *o, const sampling_args *a);
void sampling_apply_eval(eval_options *o, const sampling_args *a);

#endif
