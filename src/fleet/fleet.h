/* fleet.h - a folder of cartridges: created, trained, resumed, searched, asked.
 *
 * One writer at a time (lock file), which may be several processes that train together
 * (train/dist.h). Everything on disk belongs to a generation; the rename of fleet.json is the only
 * commit point: manifest.h. Who is in memory: residency.h. Retrieval: retrieval.h. This header is
 * what the commands and the server use.
 */
#ifndef FL_FLEET_FLEET_H
#define FL_FLEET_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/events.h"
#include "base/fs.h"
#include "base/json.h"
#include "cartridge/adam.h"
#include "cartridge/cartridge.h"
#include "model/generate.h"
#include "model/model.h"
#include "sources/source.h"
#include "study/study.h"
#include "train/dist.h"

/* What the rows of a cartridge are before its first step: the model's own over the document's first
 * tokens, over random ones, over a summary that it writes; or another cartridge's. */
typedef enum fl_init { FL_INIT_FIRST, FL_INIT_RANDOM, FL_INIT_SUMMARY, FL_INIT_FILE } fl_init;

/* Every training flag; defaults in fl_train_options_default(). Ranges: fl_train_options_check(). */
typedef struct fl_train_options {
  size_t p, frozen;      /* rows of a cartridge; never-trained rows at its start */
  size_t budget;         /* resident cartridges */
  uint64_t budget_bytes; /* 0: no limit beside `budget` */
  size_t rotate_every;   /* rounds; 0: never */
  double evict_frac;     /* of the residents, rounded up */
  size_t warmup, decay;  /* steps of a cartridge over which its rate rises, and falls */
  double decay_to;       /* share of the rate that is left then */
  double p_iso;
  size_t distract_max;
  size_t rounds; /* to run now (beyond those done) */
  size_t accum;  /* conversations a round */
  double lr, clip;
  size_t chunk_min, chunk_max;
  size_t top_k;
  double top_mass;
  size_t max_q, max_a;
  size_t turns;          /* requests and answers of a conversation at most */
  double think;          /* probability that bot A reasons first */
  size_t init;           /* fl_init */
  const char *init_file; /* borrowed; of FL_INIT_FILE, not kept in the manifest */
  uint64_t seed;
  size_t embed_chunk;
  double replay;     /* mean uses of a conversation, >= 1 */
  size_t save_every; /* rounds; 0: only at the end, at a signal and at rotation */
  size_t eval_every; /* rounds between held-out evaluations; 0: start and end only */
  size_t heldout;    /* conversations a document, fixed at birth; 0: none */
  bool checkpoint, pack;
  bool keep_moments;      /* in memory, not in a file */
  fl_kv_type gen_kv;      /* cache type of generation */
  fl_positions positions; /* of composed cartridges; of the fleet's birth, not changed */
} fl_train_options;

void fl_train_options_default(fl_train_options *o);
fl_rate fl_train_rate(const fl_train_options *o);
/* FL_EUSAGE with a sentence that names the flag and its range. */
int fl_train_options_check(const fl_train_options *o, fl_err *err);

typedef struct fl_fleet fl_fleet;

/* What a document is, for listings. Strings belong to the fleet. */
typedef struct fl_doc_info {
  uint32_t id;
  const char *name, *hash;
  size_t tokens, rows;
  uint64_t steps;
  bool resident;
} fl_doc_info;

/* How an existing folder and the documents given are reconciled. */
typedef struct fl_open_options {
  bool resume;               /* continue an existing fleet; without it an existing one is refused */
  bool update;               /* retrain documents whose text changed; else refused by name */
  bool allow_add;            /* documents not in the fleet join it (true for train) */
  const char *const *remove; /* names to take out */
  size_t n_remove;
  const char *const *redo; /* names whose files are damaged or missing: born again */
  size_t n_redo;
  const char *merge;  /* != NULL: one cartridge of this name for all documents together */
  bool read_only;     /* ask, eval, info: no lock, no writing, documents not needed */
  bool log_events;    /* with read_only: queries and answers still go to events.jsonl */
  uint64_t log_bytes; /* of a part of the event log; 0: the default */
  fl_dist *dist;      /* the ranks that open it for training together, each in the same folder;
                             rank 0 alone holds the lock and writes. NULL: this process alone */
} fl_open_options;

/* Hooks: all may be NULL. `poll` is called between steps and decoded tokens; it returns FL_OK to go
 * on, FL_EINTR to finish the step, commit and stop. */
struct fl_progress;
typedef struct fl_train_hooks {
  void *ctx;
  int (*poll)(void *ctx);
  /* After each round; text lines are the command's business. */
  void (*progress)(void *ctx, const struct fl_progress *p);
  /* Where held-out losses are taken: at the start, every eval_every rounds and at the end. What it
   * returns other than FL_OK ends the run; FL_EINTR as a stop. */
  int (*evaluate)(void *ctx, fl_fleet *f, uint64_t round, fl_err *err);
} fl_train_hooks;

typedef struct fl_progress {
  uint64_t round, rounds_total; /* done, target */
  const char *doc;
  double loss, teacher, lr; /* teacher: the loss of a student that is the teacher */
  size_t tokens;
  double round_s, elapsed_s, left_s;
  const char *note; /* birth, index, rotation, saving: what is going on; or NULL */
} fl_progress;

/* Opens (creating, resuming, reconciling) the fleet in folder `dir` for `model`. docs and opts may
 * be NULL when read_only, the model too where only listings are wanted. model and team are borrowed
 * and must outlive the fleet; docs is needed during the call alone. opts: flags given; on resume
 * the manifest's p, frozen, embed_chunk, seed win and a different explicit value is refused by the
 * command. */
int fl_fleet_open(fl_fleet **out, const char *dir, fl_model *model, fl_team *team,
                  const fl_source_list *docs, const fl_train_options *opts,
                  const fl_open_options *how, fl_err *err);
/* A fleet that was to be made, and of which nothing was ever saved, leaves nothing behind: neither
 * log nor lock nor a folder that was not there before. */
void fl_fleet_close(fl_fleet *f);
/* What is left by a process that could not close it so. lock: of FL_LOCK_FILE, held, given away;
 * made: as of fl_fs_mkdir_made. Nothing where there is a fleet. */
void fl_fleet_leave_nothing(const char *dir, fl_lock *lock, const char *made);
#define FL_LOCK_FILE "lock"
#define FL_TRAIN_LOG_FILE "train.log" /* of a trainer that a dashboard has started */

/* Births missing cartridges, builds the index, trains opts->rounds rounds, commits. FL_EINTR when a
 * poll asked to stop (state saved). */
int fl_fleet_train(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err);
/* Trains on the conversations of a study file instead of making any; documents that it says nothing
 * about still make their own. Between opening for writing and training. FL_EINPUT when no line is
 * about a document of this fleet. */
int fl_fleet_use_study(fl_fleet *f, const char *path, fl_err *err);
/* Writes the `run` event: command, machine, model, flags. Done by fl_fleet_train for "train". */
void fl_fleet_log_run(fl_fleet *f, const char *cmd, uint64_t rounds_total);
/* Builds or rebuilds the index and commits it. */
int fl_fleet_index(fl_fleet *f, const fl_train_hooks *hooks, fl_err *err);

size_t fl_fleet_n_docs(const fl_fleet *f);
void fl_fleet_doc(const fl_fleet *f, size_t i, fl_doc_info *out);
int fl_fleet_find(const fl_fleet *f, const char *name, size_t *out); /* FL_ENOENT; exact name, or a
                                                                       unique base name or stem */
uint64_t fl_fleet_rounds(const fl_fleet *f);
uint64_t fl_fleet_generation(const fl_fleet *f);
const char *fl_fleet_dir(const fl_fleet *f);
fl_events *fl_fleet_events(fl_fleet *f);
fl_model *fl_fleet_model(const fl_fleet *f);
/* Read-only fleets: from now on the disk is touched by nobody but who reads for fl_fleet_follow and
 * a supply (supply.h). An index or a cartridge that is not in memory is FL_EBUSY. */
void fl_fleet_keep_off_disk(fl_fleet *f);
/* Read-only fleets: takes over what a trainer has committed since, its manifest in `now` and that
 * one's index, which are used up; *changed tells. Without an index (NULL) it is read when it is
 * first needed, unless the fleet keeps off the disk. Positions of documents may change then, their
 * ids do not. Strings from listings stay valid. */
struct fl_manifest;
struct fl_index;
int fl_fleet_follow(fl_fleet *f, struct fl_manifest *now, struct fl_index *index, bool *changed,
                    fl_err *err);
/* Appends the text of document i, read from its name again: FL_ENOENT when the file is gone,
 * FL_EINPUT when it changed since the training. */
int fl_fleet_doc_text(fl_fleet *f, size_t i, fl_buf *out, fl_err *err);

/* Retrieval. Scores are cosines after centring. The index is read when it is first needed, or now:
 * FL_ENOENT when the fleet has none. */
int fl_fleet_load_index(fl_fleet *f, fl_err *err);
typedef struct fl_rag_options {
  size_t docs, chunks; /* documents at most; pieces considered */
  double floor;        /* documents whose best piece scores under it are dropped; -1: none */
} fl_rag_options;
typedef struct fl_hit {
  size_t doc;
  size_t chunk;
  double score;
} fl_hit; /* doc: index in fleet */
enum { FL_RANKED_DOCS = 32 };
typedef struct fl_hits {
  fl_hit *chunk; /* best pieces, descending */
  size_t n_chunks;
  fl_hit *doc; /* chosen documents with their best piece, in best-piece order */
  size_t n_docs;
  fl_hit *ranked; /* the best documents, chosen or not, at most FL_RANKED_DOCS */
  size_t n_ranked;
  double margin; /* best document's score minus the next one's (0 if only one) */
} fl_hits;
void fl_hits_release(fl_hits *h);
/* FL_ENOENT when the fleet has no index. */
int fl_fleet_retrieve(fl_fleet *f, const char *query, size_t len, const fl_rag_options *o,
                      fl_hits *out, fl_err *err);
/* The same with the query's vector [d_model], made by the index's recipe elsewhere; changes it. */
int fl_fleet_retrieve_by(fl_fleet *f, float *vector, const fl_rag_options *o, fl_hits *out,
                         fl_err *err);
/* Appends the members of a retrieve event from "query" on, without braces. */
void fl_hits_print(fl_buf *b, const fl_fleet *f, const char *query, size_t len,
                   const fl_rag_options *o, const fl_hits *h);

/* [*first, *end) = the tokens of a document's text of n_tokens that a piece stands for. FL_EINPUT
 * when the text has no such piece. */
int fl_fleet_piece_span(const fl_fleet *f, const fl_hit *piece, size_t n_tokens, size_t *first,
                        size_t *end, fl_err *err);

/* Answers. */
typedef enum fl_arm { FL_ARM_CARTRIDGE, FL_ARM_BARE, FL_ARM_CONTEXT, FL_ARM_TEXT } fl_arm;
const char *fl_arm_name(fl_arm a);
typedef struct fl_ask_options {
  fl_arm arm;
  const size_t *docs; /* documents (indices) to use; cartridge and context arms */
  size_t n_docs;
  const fl_hits *hits; /* text arm: pieces whose text is read */
  fl_sampling sampling;
  uint64_t seed;
  size_t max_new;
  fl_kv_type kv;
  const fl_source_list *sources; /* texts of the context and text arms; NULL: by the names */
  /* Streaming, whole characters only; may be NULL; true stops. */
  bool (*on_token)(void *ctx, const char *piece, size_t len);
  void *ctx;
} fl_ask_options;
typedef struct fl_reply {
  char *text;
  size_t rows; /* key/value rows held before the question */
  size_t prompt_tokens, tokens;
  double ttft_s, seconds;
  fl_stop stop;
} fl_reply;
void fl_reply_release(fl_reply *r);
int fl_fleet_ask(fl_fleet *f, const char *question, size_t len, const fl_ask_options *o,
                 fl_reply *out, fl_err *err);

/* Appends the cartridges of the documents to seq, in order: what the cartridge arm stands behind.
 * Cartridges are read from disk once and kept in a small cache. */
int fl_fleet_compose(fl_fleet *f, fl_seq *seq, const size_t *docs, size_t n, fl_err *err);

/* A conversation with a fixed selection of documents: its sequence keeps its rows between turns. */
typedef struct fl_chat fl_chat;
int fl_chat_new(fl_chat **out, fl_fleet *f, const fl_ask_options *o, fl_err *err);
int fl_chat_turn(fl_chat *c, const char *user, size_t len, fl_reply *out, fl_err *err);
void fl_chat_free(fl_chat *c);

#endif
