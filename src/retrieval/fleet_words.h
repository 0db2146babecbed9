/* fleet_words.h - a fleet's index of words: written with a generation, or made in memory where a
 * fleet has none that can be used. */
#ifndef FL_RETRIEVAL_FLEET_WORDS_H
#define FL_RETRIEVAL_FLEET_WORDS_H

#include "fleet/commit.h"
#include "fleet/hooks.h"
#include "fleet/state.h"
#include "retrieval/lexical.h"

/* Writes the index of the fleet's documents as they are now for the commit `c`; *name = its file
 * (fl_free). whole: from all texts, else what the one before has is taken over. FL_EINTR when the
 * poll hook asked to stop. */
int fl_fleet_words_write(fl_lexical **out, char **name, fl_fleet *f, fl_commit *c, bool whole,
                         const fl_train_hooks *hooks, fl_err *err);
/* Opens the one that the manifest names. FL_ENOENT: it names none, or a file that is missing. */
int fl_manifest_open_words(fl_lexical **out, const fl_manifest *m, const char *dir, fl_err *err);
/* In memory, from the texts at the documents' names. */
int fl_fleet_words_make(fl_lexical **out, fl_fleet *f, fl_err *err);

#endif
