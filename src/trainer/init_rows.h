/* init_rows.h - what a cartridge is before its first step. Private to this folder. */
#ifndef FL_TRAINER_INIT_ROWS_H
#define FL_TRAINER_INIT_ROWS_H

#include "fleet/state.h"

/* *out = the first rows of document i, by f->opts.init. The workspace of f32 must be there. */
int fl_fleet_init_rows(fl_cartridge *out, fl_fleet *f, size_t i, const char *text, size_t len,
                       fl_err *err);

#endif
