/* state.h - a running training: what one run holds beside the fleet. Private to this folder.
 *
 * Modules: loop.c (the run, rotation, saves), init.c (births, index), round.c (one round),
 * lookahead.c (its fresh conversations), ranks.c (making them on several ranks), heldout_eval.c
 * (held-out), control.c (commands), events.c (what is logged).
 *
 * Exactness. The state after round r is a function of the state after round r - 1, of r and of the
 * flags alone: draws are keyed by (seed, purpose, document, round, conversation), counters that
 * decide anything stand in the manifest, kept conversations are files of the generation. A round
 * that is given up half way changes nothing. So a run that is killed at any instant continues from
 * the last commit and makes the same files, byte for byte and name for name.
 */
#ifndef FL_TRAINER_STATE_H
#define FL_TRAINER_STATE_H

#include "trainer/lookahead.h"
#include "answer/control_protocol.h"
#include "trainer/heldout.h"
#include "trainer/sizes.h"
#include "trainer/residency.h"
#include "fleet/state.h"
#include "trainer/trainer.h"
#include "kernels/team.h"

struct fl_trainer {
  fl_fleet *f;
  const fl_train_hooks *hooks;
  fl_control *control;
  fl_control_protocol protocol; /* of it */
  fl_residency res;
  fl_pass *pass; /* of generation; answers use the fleet's own */
  fl_kv_pool *pool;
  fl_stepper *stepper;
  fl_lookahead ahead;
  fl_train_sizes plan;
  uint64_t first_round, last_round;
  size_t budget;               /* that residents and plan follow; others may be set */
  double began_s, io_s;        /* io_s: reading and writing since the last round event */
  bool stop, paused, one_step; /* one_step: pause again after the next round */
  bool diverged;               /* the ranks hold other rows than each other: nothing is saved */
};

/* --- init.c --- */
int fl_trainer_births(fl_trainer *t, fl_err *err);
int fl_trainer_index(fl_trainer *t, fl_err *err);

/* --- round.c --- */
/* One round; FL_EINTR with nothing changed when a stop was asked for before its step. */
int fl_trainer_round(fl_trainer *t, fl_err *err);

/* --- heldout_eval.c --- */
/* Reads or makes the held-out conversations of the residents that lack them. */
int fl_trainer_heldout(fl_trainer *t, fl_err *err);
int fl_trainer_evaluate(fl_trainer *t, fl_err *err);

/* --- control.c --- */
fl_control_protocol fl_trainer_protocol(fl_trainer *t);
/* Takes commands and asks the hook, waits while paused; true when the run is to stop. */
bool fl_trainer_poll(fl_trainer *t);
/* Ends what polled on its own on every rank, rc telling how it went: all ranks take over what rank
 * 0 was told, and a stop of any. Collective. */
int fl_trainer_share(fl_trainer *t, int rc, fl_err *err);
/* Polls and shares; FL_EINTR when the run is to stop. */
int fl_trainer_sync(fl_trainer *t, fl_err *err);

/* --- loop.c --- */
int fl_trainer_save(fl_trainer *t, const char *reason, fl_err *err);
/* A resident's rows, or NULL; ctx is a trainer. */
const fl_cartridge *fl_trainer_cartridge(const void *ctx, size_t doc);
fl_rot_limits fl_trainer_limits(const fl_trainer *t);

/* --- events.c --- */
typedef struct fl_round_report {
  size_t doc; /* target, position in the manifest */
  const fl_step_conv *conv;
  size_t n_convs, n_fresh;
  fl_step_result step;
  fl_study_stats study;
  fl_buf gain; /* as fl_round_gain prints it */
  double lr, seconds;
  fl_work work; /* of the matrix products */
} fl_round_report;
void fl_log_docs(const fl_trainer *t);
/* Appends an object: by kind of conversation, by how much the students did worse than their
 * teacher, in nats a supervised token. loss [n]: fl_stepper_losses. */
void fl_round_gain(fl_buf *out, const fl_step_conv *conv, const double *loss, size_t n);
void fl_log_round(fl_trainer *t, const fl_round_report *r);
/* A fresh conversation that is dropped for its request. */
void fl_log_same(const fl_trainer *t, const fl_conv_plan *plan, const fl_conv *c);
void fl_log_replayed(const fl_trainer *t, size_t doc, uint32_t conv, const fl_conv *c);
void fl_log_rotation(const fl_trainer *t, const size_t *out, size_t n_out, const size_t *in,
                     size_t n_in);
void fl_log_coverage(const fl_trainer *t);
void fl_log_heldout(const fl_trainer *t, size_t doc, double alone, double composed, double teacher,
                    size_t n);
void fl_log_end(const fl_fleet *f, const char *status, double seconds);

#endif
