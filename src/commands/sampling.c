/* sampling.c - see sampling.h. */
#include "commands/sampling.h"

#include "fleet/train_options.h"

const opt_spec sampling_specs[] = { { .name = "max-tokens",
                                      .letter = 'n',
                                      .type = OPT_COUNT,
                                      .meta = "N",
                                      .min = 1,
                                      .max = 1e6,
                                      .offset = offsetof(sampling_args, max_new),
                                      .help = "tokens of an answer at most" },
                                    { .name = "temperature",
                                      .type = OPT_REAL,
                                      .meta = "X",
                                      .min = 0,
                                      .max = 10,
                                      .offset = offsetof(sampling_args, sampling.temperature),
                                      .help = "0 is greedy" },
                                    { .name = "top-k",
                                      .type = OPT_COUNT,
                                      .meta = "N",
                                      .min = 0,
                                      .max = 1e6,
                                      .offset = offsetof(sampling_args, sampling.top_k),
                                      .help = "likeliest tokens only; 0: all" },
                                    { .name = "top-p",
                                      .type = OPT_REAL,
                                      .meta = "X",
                                      .min = 1e-6,
                                      .max = 1,
                                      .offset = offsetof(sampling_args, sampling.top_p),
                                      .help = "up to this mass; 1: all" },
                                    { .name = "min-p",
                                      .type = OPT_REAL,
                                      .meta = "X",
                                      .min = 0,
                                      .max = 1,
                                      .offset = offsetof(sampling_args, sampling.min_p),
                                      .help = "at least this share of the likeliest; 0: all" },
                                    { .name = "repeat-penalty",
                                      .type = OPT_REAL,
                                      .meta = "X",
                                      .min = 0.1,
                                      .max = 10,
                                      .offset = offsetof(sampling_args, sampling.repeat_penalty),
                                      .help = "1: none" },
                                    { .name = "repeat-last",
                                      .type = OPT_COUNT,
                                      .meta = "N",
                                      .min = 0,
                                      .max = 1e6,
                                      .offset = offsetof(sampling_args, sampling.repeat_last),
                                      .help = "tokens that the penalty looks back" },
                                    { .name = "seed",
                                      .letter = 's',
                                      .type = OPT_U64,
                                      .meta = "N",
                                      .min = 0,
                                      .max = 9007199254740992.0,
                                      .offset = offsetof(sampling_args, seed),
                                      .help = "of the random draws" },
                                    { .name = "kv",
                                      .type = OPT_CHOICE,
                                      .meta = "TYPE",
                                      .choices = fl_kv_words,
                                      .offset = offsetof(sampling_args, kv),
                                      .help = "cache type" },
                                    { 0 } };

const opt_spec retrieval_specs[] = { { .name = "rag",
                                       .type = OPT_CHOICE,
                                       .meta = "BY",
                                       .choices = fl_rag_by_words,
                                       .offset = offsetof(retrieval_args, rag.by),
                                       .help = "what ranks documents: words, vectors or both" },
                                     { .name = "rerank",
                                       .type = OPT_COUNT,
                                       .meta = "N",
                                       .min = 0,
                                       .max = 64,
                                       .offset = offsetof(retrieval_args, rag.rerank),
                                       .help = "best documents whose passages the model weighs" },
                                     { .name = "rag-docs",
                                       .type = OPT_COUNT,
                                       .meta = "N",
                                       .min = 1,
                                       .max = 64,
                                       .offset = offsetof(retrieval_args, rag.docs),
                                       .help = "documents to answer from at most" },
                                     { .name = "rag-chunks",
                                       .type = OPT_COUNT,
                                       .meta = "N",
                                       .min = 1,
                                       .max = 4096,
                                       .offset = offsetof(retrieval_args, rag.chunks),
                                       .help = "pieces that are considered" },
                                     { .name = "rag-floor",
                                       .type = OPT_REAL,
                                       .meta = "X",
                                       .min = -1,
                                       .max = 1,
                                       .offset = offsetof(retrieval_args, rag.floor),
                                       .help =
                                           "documents that score below are left out; -1: none" },
                                     { 0 } };

void sampling_default(sampling_args *a) {
  *a = (sampling_args){
    .sampling = FL_SAMPLING_GREEDY, .max_new = 256, .seed = 42, .kv = FL_KV_F16
  };
  a->sampling.repeat_last = 64;
}

void retrieval_default(retrieval_args *a) {
  a->rag = (fl_rag_options){ .docs = 2, .chunks = 8, .floor = -1 };
}

void sampling_apply(fl_ask_options *o, const sampling_args *a) {
  o->sampling = a->sampling;
  o->max_new = a->max_new;
  o->seed = a->seed;
  o->kv = (fl_kv_type)a->kv;
}

void sampling_apply_eval(eval_options *o, const sampling_args *a) {
  o->sampling = a->sampling;
  o->max_new = a->max_new;
  o->seed = a->seed;
  o->kv = (fl_kv_type)a->kv;
}
