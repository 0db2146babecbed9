/* study.h - self-study: conversations about chunks of a document, made by the model itself.
 *
 * Bot A sees the system message with the chunk and a seed instruction and writes one request; bot B
 * sees the same system message and the request and answers. The teacher's probabilities come from
 * bot B's own pass. arXiv 2506.06266, section 4; rejection and redraw: flotilla-concepts(7).
 */
#ifndef FL_STUDY_STUDY_H
#define FL_STUDY_STUDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/events.h"
#include "model/generate.h"
#include "model/pass.h"
#include "study/mix.h"

typedef struct fl_study_options {
  size_t chunk_min, chunk_max; /* tokens */
  size_t top_k;
  double top_mass;
  size_t max_q, max_a;              /* tokens */
  double temperature;               /* bot A; 0.6 */
  size_t turns;                     /* requests and answers of a conversation at most; 0 is 1 */
  double think;                     /* probability that bot A reasons before its request */
  const struct fl_seed_kind *seeds; /* NULL: fl_seed_kinds */
  size_t n_seeds;
  fl_mix mix; /* of kinds; zeroed: the seeds alone */
  uint64_t seed;
  bool (*cancelled)(void *ctx); /* polled before every pass of the model; true ends the call with
                                   FL_EINTR. May be NULL */
  void *cancel_ctx;
} fl_study_options;

enum { FL_N_SEED_KINDS = 7, FL_MAX_TURNS = 8, FL_MAX_SEEDS = 64 };
typedef struct fl_seed_kind {
  const char *kind, *text;
  bool is_request; /* the text is what bot B is asked, in one turn and without bot A */
} fl_seed_kind;
extern const fl_seed_kind fl_seed_kinds[FL_N_SEED_KINDS];

/* A document as study sees it. Token offsets map to byte offsets: a chunk is a byte range. */
typedef struct fl_doc_text {
  const char *text;
  size_t len;
  size_t n_tokens;
  const uint32_t *token_end; /* [n_tokens] byte offset after token i, at a UTF-8 boundary */
  const char *name;          /* of the document, for requests; borrowed, NULL: not known */
} fl_doc_text;

/* Tokenises a document and notes where its tokens end. Copies the text; where the tokenizer changes
 * it (Unicode normalisation), the copy is what the tokens spell, so that offsets stay exact. */
int fl_doc_text_init(fl_doc_text *out, const fl_tokenizer *t, const char *text, size_t len,
                     fl_err *err);
/* The bytes of tokens [first, end). */
const char *fl_doc_text_span(const fl_doc_text *d, size_t first, size_t end, size_t *len);
void fl_doc_text_release(fl_doc_text *d); /* only what fl_doc_text_init made */

/* Teacher targets of a conversation, ragged. */
typedef struct fl_targets {
  size_t n_rows;
  uint32_t *first; /* [n_rows + 1] */
  int32_t *id;     /* [first[n_rows]] */
  float *prob;
} fl_targets;

/* The loss of a student that gives these very probabilities, summed over the rows. */
double fl_targets_entropy(const fl_targets *t);

/* One conversation, ready for the student. Owned by the caller (fl_conv_release). */
typedef struct fl_conv {
  fl_ids tokens; /* user turn, opener, answer (and end of turn if B stopped by itself) */
  uint32_t *sup; /* [targets.n_rows] index in tokens whose output predicts the target */
  fl_targets targets;
  uint32_t kind;           /* index in fl_seed_kinds; FL_N_SEED_KINDS: another, by name */
  char *kind_name;         /* of another; owned */
  size_t first, end;       /* chunk span in document tokens */
  size_t at_first, at_end; /* what of it the conversation is about; 0, 0: all */
  char *request, *answer;  /* of several turns with an empty line between */
} fl_conv;
/* The name of its kind; never NULL. */
const char *fl_conv_kind(const fl_conv *c);
void fl_conv_release(fl_conv *c);

/* What to make: pure function of (seed, document, round, conversation). */
typedef struct fl_conv_plan {
  uint32_t doc, round, conv; /* keys of the random streams; doc also labels events */
  uint32_t draw;             /* how many conversations of this document were made before: kind and
                                  chunk follow from it and the document alone */
} fl_conv_plan;

/* Counts over a call, for logging. */
typedef struct fl_study_stats {
  size_t gen_tokens, prefill_tokens, rejected, skipped;
  double gen_s;
} fl_study_stats;

/* The chunk of a plan of the seeds alone: half-open token span. Draws 0..S-1, S..2S-1, ... of a
 * document cover it exactly once each, S being about n_tokens / mean chunk length (chunk.c says
 * how). */
void fl_study_chunk(const fl_study_options *o, const fl_doc_text *doc, const fl_conv_plan *plan,
                    size_t *first, size_t *end);

/* The seed instruction of a plan: index in the seeds. Every n_seeds draws hold each one once. */
uint32_t fl_study_kind(const fl_study_options *o, const fl_conv_plan *plan);

/* Makes n conversations in lockstep batches. docs[i] is the text of plan i. ok[i] tells whether
 * conversation i came out (up to three redraws each, then skipped; out[i] is zeroed): a bad request
 * or answer never ends a run. What does is an error of the caller's options (FL_EUSAGE), memory, or
 * a full pool; then nothing is handed out. stats may be NULL.
 * pass: not recording, max_spans >= n, any max_rows >= n. It rests afterwards, the pool is
 * trimmed. */
int fl_study_make(fl_conv *out, bool *ok, const fl_conv_plan *plans, const fl_doc_text *const *docs,
                  size_t n, const fl_study_options *o, fl_pass *pass, fl_kv_pool *pool,
                  fl_events *log, fl_study_stats *stats, fl_err *err);

/* Rows the generation of one conversation may take at most (for sizing a pool). */
size_t fl_study_max_rows(const fl_study_options *o);

#endif
