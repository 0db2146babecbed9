/* snapshot.h - the state of a run at one moment: plain numbers with units, folded from the first
 * `applied` events of a store. Unknown stays unknown (FL_NONE, NaN) and is drawn as such.
 *
 * A document is found by its id through fl_snapshot_doc(); its place in `doc` never changes while
 * the snapshot lives. Numbers that sum up (seconds, tokens) cover this log from its beginning.
 */
#ifndef FL_TUI_SNAPSHOT_H
#define FL_TUI_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/series.h"
#include "tui/store.h"

enum { FL_HEAT = 128, FL_DOCS_MAX = 1 << 16, FL_KINDS_OF_STUDY = 8, FL_REJECTIONS = 6 };

typedef enum fl_residency {
  FL_ON_DISK,
  FL_RESIDENT,
  FL_TRAINING, /* resident and the target of the last round */
  FL_EVICTED   /* left memory in the last rotation */
} fl_residency;

typedef struct fl_span {
  uint32_t first, end; /* tokens, half open */
} fl_span;

/* Losses by round, nats per token: of training, and held out alone, together, the teacher's own. */
typedef struct fl_curves {
  fl_series loss, alone, composed, teacher;
} fl_curves;

typedef struct fl_doc {
  uint32_t id;
  fl_ref name;           /* in the store */
  uint32_t tokens, rows; /* FL_NONE: unknown */
  uint32_t steps;        /* optimizer steps so far */
  uint32_t state;        /* fl_doc_states */
  fl_residency residency;
  double loss;            /* last round that had it as target, nats per token */
  double alone, composed; /* held out, nats per token */
  double teacher;         /* the teacher's own there */
  uint32_t held_round;    /* when they were measured; FL_NONE: never */
  uint32_t last_round;    /* as target; FL_NONE: never */
  double last_t;
  uint32_t rounds; /* as target */
  uint32_t convs, rejected;
  bool marked;
  uint32_t last_study; /* record, FL_NONE: none */
  fl_span *span;       /* sorted, disjoint */
  size_t n_spans, cap_spans;
  uint16_t heat[FL_HEAT]; /* conversations by place in the document */
  fl_curves curves;
} fl_doc;

typedef enum fl_run_state {
  FL_RUN_NONE,   /* no run event yet */
  FL_RUN_ACTIVE, /* the last run has no end event: it goes on, or it was killed */
  FL_RUN_DONE,
  FL_RUN_STOPPED, /* by a signal, state saved */
  FL_RUN_FAILED
} fl_run_state;

/* What wrote a run event: `ask` and `chat` come and go beside a run and change nothing here. */
typedef enum fl_run_kind { FL_RUN_IS_TRAINER, FL_RUN_IS_SERVER, FL_RUN_IS_PASSING } fl_run_kind;

typedef struct fl_cost {
  double seconds, gen_s, teacher_s, student_s, opt_s, io_s; /* sums */
  double gen_tokens, tokens, rounds;
  double gflop, gbyte; /* work done: 1e9 operations, 1e9 bytes read */
} fl_cost;

typedef struct fl_mean {
  double sum;
  size_t n;
} fl_mean;

typedef struct fl_snapshot {
  size_t applied; /* events folded */
  double t, t0;   /* of the last and the first event; NaN: none */
  fl_doc *doc;
  size_t n_docs, cap_docs;
  uint32_t *doc_hash; /* open addressing, place + 1; 0: empty */
  size_t hash_size;

  fl_run_state state;
  bool is_server, paused;
  const fl_rec_run *run;   /* of the store; refreshed by fl_snapshot_fold */
  uint32_t run_at;         /* its record, FL_NONE: none */
  double run_t;            /* when the run began */
  uint32_t round;          /* last one done; FL_NONE */
  uint32_t rounds, budget; /* targets; FL_NONE: unknown */
  fl_ref resident;         /* as the last round told, in the store's numbers */
  fl_mean mean_alone, mean_composed, mean_teacher;
  uint32_t target;        /* document of the last round */
  double loss, loss_mean; /* last round; running mean over about 20 rounds */
  double lr, grad_norm;
  double round_s;                       /* running mean of a round's seconds */
  double rss, peak_rss, resident_bytes; /* bytes */
  double tok_s, gen_tok_s; /* of the last round, supervised and generated tokens a second */
  fl_cost cost, last;      /* since the beginning; the last round alone */
  fl_curves curves;        /* held out: the mean of what the documents last had */
  fl_thin rate, memory;
  uint32_t round_at; /* record of the last round, FL_NONE */

  uint32_t saved_round, generation, save_reason;
  double saved_t, saved_bytes, save_s;
  double bytes_written;
  uint32_t chunks, dim;

  size_t n_study, n_rejected, n_replayed;
  size_t by_kind[FL_KINDS_OF_STUDY], by_rejection[FL_REJECTIONS];
  size_t n_rotations, n_errors, n_controls;
  uint32_t last_rotate; /* record */
  uint32_t last_error;  /* record */
  size_t n_retrieves, n_answers;
  size_t n_requests, n_refused, n_failed;
  double prompt_tokens, cached_tokens, completion_tokens;
  double request_s, ttft_s, queue_s; /* running means */
} fl_snapshot;

void fl_snapshot_init(fl_snapshot *s);
void fl_snapshot_release(fl_snapshot *s);

/* Brings the snapshot to the first `upto` events of the store: forward from where it stands, or
 * from the beginning where it must go back. FL_OK or FL_ENOMEM (then the state is that of
 * `applied` events). */
int fl_snapshot_fold(fl_snapshot *s, const fl_store *store, size_t upto);

/* The run event that was added as `at` of its kind says again what an earlier one has said: a later
 * part of the log begins so. */
bool fl_snapshot_run_again(const fl_store *st, uint32_t at);
fl_run_kind fl_snapshot_run_kind(const fl_store *store, const fl_rec_run *run);
fl_run_state fl_snapshot_end_state(const fl_rec_end *end);

/* NULL if the document is not known. Valid until the next fold. */
fl_doc *fl_snapshot_doc(const fl_snapshot *s, uint32_t id);
/* Tokens that its spans cover. */
uint32_t fl_doc_covered(const fl_doc *d);
/* 0..1, NaN when its length is unknown. */
double fl_doc_coverage(const fl_doc *d);
/* Rounds still to do and the seconds they will take at the present pace; NaN if unknown. */
double fl_snapshot_seconds_left(const fl_snapshot *s);
/* Number of documents with this residency (FL_RESIDENT counts the training one too). */
size_t fl_snapshot_count(const fl_snapshot *s, fl_residency r);
/* What "worst" goes by, one figure for all documents, so that they can be compared. */
typedef enum fl_worst_by {
  FL_WORST_BY_HELD, /* held-out loss, the higher of alone and together, measured in the later half
                       of the run; where any document has one */
  FL_WORST_BY_LOSS  /* of the last training */
} fl_worst_by;
fl_worst_by fl_snapshot_worst_by(const fl_snapshot *s);
/* Place of the worst document; SIZE_MAX: fewer than two are known. */
size_t fl_snapshot_worst(const fl_snapshot *s);
/* That figure of one document; NaN: not known. */
double fl_doc_badness(const fl_snapshot *s, const fl_doc *d, fl_worst_by by);
/* The held-out loss was measured before the document was last trained. */
bool fl_doc_held_is_old(const fl_doc *d);

#endif
