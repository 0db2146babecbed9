/* hooks.h - what long work on a fleet tells its caller, and where it may be stopped. */
#ifndef FL_FLEET_HOOKS_H
#define FL_FLEET_HOOKS_H

#include "fleet/fleet.h"

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
  size_t at, of;    /* with a note: which of how many; of 0: not said. left_s 0: not known yet */
} fl_progress;

/* Calls the hook; FL_OK or FL_EINTR. */
static inline int fl_hooks_poll(const fl_train_hooks *h) {
  return h != NULL && h->poll != NULL ? h->poll(h->ctx) : FL_OK;
}
void fl_hooks_note(const fl_fleet *f, const fl_train_hooks *h, const char *doc, const char *note);

#endif
