/* snapshot.h - the state of a run at one moment: plain numbers with units, folded from the first
 * `applied` events of a store. Unknown stays unknown (TUI_NONE, NaN) and is drawn as such.
 *
 * A document is found by its id through tui_snapshot_doc(); its place in `doc` never changes while
 * the snapshot lives. Numbers that sum up (seconds, tokens) cover this log from its beginning.
 */
#ifndef TUI_SNAPSHOT_H
#define TUI_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/doc.h"
#include "tui/store.h"

enum {
  TUI_DOCS_MAX = 1 << 16,
  TUI_SEED_KINDS = 7, /* of conversations, from 1 on; the others follow them */
  TUI_KINDS_OF_STUDY = 11,
  TUI_REJECTIONS = 10
};

typedef enum tui_run_state {
  TUI_RUN_NONE,   /* no run event yet */
  TUI_RUN_ACTIVE, /* the last run has no end event: it goes on, or it was killed */
  TUI_RUN_DONE,
  TUI_RUN_STOPPED, /* by a signal, state saved */
  TUI_RUN_FAILED
} tui_run_state;

/* What wrote a run event: `ask` and `chat` come and go beside a run and change nothing here. */
typedef enum tui_run_kind {
  TUI_RUN_IS_TRAINER,
  TUI_RUN_IS_SERVER,
  TUI_RUN_IS_PASSING
} tui_run_kind;

typedef struct tui_cost {
  double seconds, gen_s, student_s, opt_s, io_s; /* sums */
  double gen_tokens, tokens, rounds;
  double gflop, gbyte; /* work done: 1e9 operations, 1e9 bytes read */
} tui_cost;

typedef struct tui_mean {
  double sum;
  size_t n;
} tui_mean;

typedef struct tui_snapshot {
  size_t applied; /* events folded */
  double t, t0;   /* of the last and the first event; NaN: none */
  tui_doc *doc;
  size_t n_docs, cap_docs;
  uint32_t *doc_hash; /* open addressing, place + 1; 0: empty */
  size_t hash_size;

  tui_run_state state;
  bool is_server, paused;
  const tui_rec_run *run;  /* of the store; refreshed by tui_snapshot_fold */
  uint32_t run_at;         /* its record, TUI_NONE: none */
  double run_t;            /* when the run began */
  uint32_t round;          /* last one done; TUI_NONE */
  uint32_t rounds, budget; /* targets; TUI_NONE: unknown */
  tui_ref resident;        /* as the last round told, in the store's numbers */
  tui_mean mean_alone, mean_composed, mean_teacher;
  uint32_t target;        /* document of the last round */
  double loss, loss_mean; /* last round; running mean over about 20 rounds */
  double lr, grad_norm;
  double round_s;                       /* running mean of a round's seconds */
  double rss, peak_rss, resident_bytes; /* bytes */
  double tok_s, gen_tok_s; /* of the last round, supervised and generated tokens a second */
  tui_cost cost, last;     /* since the beginning; the last round alone */
  tui_curves curves;       /* held out: the mean of what the documents last had */
  tui_thin rate, memory;
  uint32_t round_at; /* record of the last round, TUI_NONE */

  uint32_t saved_round, generation, save_reason;
  double saved_t, saved_bytes, save_s;
  double bytes_written;
  uint32_t chunks, dim;

  size_t n_study, n_rejected, n_replayed;
  size_t by_kind[TUI_KINDS_OF_STUDY], by_rejection[TUI_REJECTIONS];
  size_t n_rotations, n_errors, n_controls;
  uint32_t last_rotate; /* record */
  uint32_t last_error;  /* record */
  size_t n_retrieves, n_answers;
  size_t n_requests, n_refused, n_failed;
  double prompt_tokens, cached_tokens, completion_tokens;
  double request_s, ttft_s, queue_s; /* running means */
} tui_snapshot;

void tui_snapshot_init(tui_snapshot *s);
void tui_snapshot_release(tui_snapshot *s);

/* Brings the snapshot to the first `upto` events of the store: forward from where it stands, or
 * from the beginning where it must go back. FL_OK or FL_ENOMEM (then the state is that of
 * `applied` events). */
int tui_snapshot_fold(tui_snapshot *s, const tui_store *store, size_t upto);

/* The run event that was added as `at` of its kind says again what an earlier one has said: a later
 * part of the log begins so. */
bool tui_snapshot_run_again(const tui_store *st, uint32_t at);
tui_run_kind tui_snapshot_run_kind(const tui_store *store, const tui_rec_run *run);
tui_run_state tui_snapshot_end_state(const tui_rec_end *end);

/* NULL if the document is not known. Valid until the next fold. */
tui_doc *tui_snapshot_doc(const tui_snapshot *s, uint32_t id);
/* Rounds still to do and the seconds they will take at the present pace; NaN if unknown. */
double tui_snapshot_seconds_left(const tui_snapshot *s);
/* Number of documents with this residency (TUI_RESIDENT counts the training one too). */
size_t tui_snapshot_count(const tui_snapshot *s, tui_residency r);
/* What "worst" goes by, one figure for all documents, so that they can be compared. */
typedef enum tui_worst_by {
  TUI_WORST_BY_HELD, /* held-out loss, the higher of alone and together, measured in the later half
                       of the run; where any document has one */
  TUI_WORST_BY_LOSS  /* of the last training */
} tui_worst_by;
tui_worst_by tui_snapshot_worst_by(const tui_snapshot *s);
/* Place of the worst document; SIZE_MAX: fewer than two are known. */
size_t tui_snapshot_worst(const tui_snapshot *s);
/* That figure of one document; NaN: not known. */
double tui_doc_badness(const tui_snapshot *s, const tui_doc *d, tui_worst_by by);

#endif
