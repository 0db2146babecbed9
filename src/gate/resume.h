/* resume.h - the pure parts of the gate `resume`: when a child is killed, what is compared. */
#ifndef FL_GATE_RESUME_H
#define FL_GATE_RESUME_H

#include "base/err.h"
#include "base/rng.h"

typedef struct gate_doom { /* what a child is killed at, whichever comes first */
  double age_s;
  size_t changes;  /* of the folder; 0: none counts */
  double after_s;  /* since the last of these */
  uint64_t rounds; /* committed */
} gate_doom;

/* The next kill of a training of `rounds`, of which `done` are committed, that takes whole_s
 * seconds undisturbed; to_come: kills still to be made, this one included. */
gate_doom gate_doom_draw(uint64_t rounds, uint64_t done, double whole_s, size_t to_come,
                         fl_rng *rng);

/* *files += the files of folder `a` that are compared, *same += those that `b` has with the same
 * bytes. *first_other: allocated, the first that it has not; left alone when set already. What
 * differs by nature is passed over: the log of events, locks and sockets. */
int gate_compare_folders(const char *a, const char *b, size_t *files, size_t *same,
                         char **first_other, fl_err *err);

#endif
