/* sizes.h - what the parts of a run are given, of its flags, its model and the number of its
 * documents alone: the trainer, `study` and `bench` make the same of the same flags. */
#ifndef FL_TRAINER_SIZES_H
#define FL_TRAINER_SIZES_H

#include "study/conv_json.h"
#include "fleet/fleet.h"
#include "train/step.h"

typedef struct fl_train_sizes {
  size_t max_convs, max_parts; /* conversations of a step; cartridges that one of them sees */
  fl_conv_limits conv;         /* of each */
  fl_pass_options pass;        /* of generation */
  fl_stepper_limits step;      /* on this process alone: without ranks */
} fl_train_sizes;

/* p: rows of a cartridge. dir: the fleet's folder, borrowed. FL_EUSAGE, naming the flags to lower,
 * where chunks or conversations do not fit the model's context. */
int fl_train_sizes_make(fl_train_sizes *out, const fl_train_options *o, size_t p, size_t n_docs,
                        const fl_hparams *hp, const char *dir, fl_err *err);
/* What steps alone use of a resident goes into files without names of folder `dir`, as far as the
 * flags say so and its disk has room. */
void fl_train_to_files(const fl_train_options *o, const char *dir, fl_cartridge *c, fl_adam *a);

fl_step_options fl_train_step(const fl_train_options *o);
/* Not to be cancelled, without seeds of the user's. */
fl_study_options fl_train_study(const fl_train_options *o);
/* The kinds of held-out conversations: questions on sentences where these are trained on, since
 * that is how people ask; else what is trained on. */
fl_mix fl_train_heldout_mix(const fl_train_options *o);

#endif
