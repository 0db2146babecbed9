/* init_match.h - a document's cartridge by attention matching, and the conversations whose rows are
 * its queries. Private to this folder. */
#ifndef FL_TRAINER_INIT_MATCH_H
#define FL_TRAINER_INIT_MATCH_H

#include "fleet/state.h"

/* *out = the matched rows of document i. Queries come from its text, had repeated in pieces
 * (study/retell.h), and from what a study file that the fleet is trained on has about it: the first
 * conversations of some 4000 rows. A function of the document, the
 * flags and that file. The workspace of f32 must be there. */
int fl_fleet_init_match(fl_cartridge *out, fl_fleet *f, size_t i, const char *text, size_t len,
                        fl_err *err);

#endif
