/* options.h - the training flags beyond fleet.h: by name, and to and from JSON. The names are those
 * of the command line without dashes. */
#ifndef FL_FLEET_OPTIONS_H
#define FL_FLEET_OPTIONS_H

#include "base/json.h"
#include "fleet/fleet.h"

/* The words of the flags that are one of two, in the order of the enums, NULL at the end. */
extern const char *const fl_kv_words[], *const fl_positions_words[];

/* Sets one flag by name; FL_EUSAGE and *io unchanged when unknown or out of range. */
int fl_train_options_set(fl_train_options *io, const char *name, double v, fl_err *err);

/* Sets a member of `obj` for every flag. Without `all` those that only say how long to run now
 * (rounds) are left out: a fleet's files must not depend on how often its training was
 * interrupted. False on lack of memory. */
bool fl_train_options_write(const fl_train_options *o, fl_json *obj, bool all);
/* Reads what is there, keeps the rest. FL_EINPUT on a wrong type or range, *io unchanged. */
int fl_train_options_read(fl_train_options *io, const fl_json *obj, fl_err *err);

#endif
