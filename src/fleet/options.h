/* options.h - the training flags beyond fleet.h: by name, and to and from JSON. The names are those
 * of the command line without dashes. */
#ifndef FL_FLEET_OPTIONS_H
#define FL_FLEET_OPTIONS_H

#include "base/json.h"
#include "fleet/fleet.h"

/* The limits of the flags, as members of a row: of the table in options.c, and of the one that the
 * command line is read by (commands/train_options.c). FL_FLAG_EXACT: what JSON carries exactly. */
#define FL_FLAG_EXACT 9007199254740992.0
#define FL_LIMITS_P .min = 8, .max = 65536
#define FL_LIMITS_FROZEN .min = 0, .max = 65535
#define FL_LIMITS_BUDGET .min = 1, .max = 4096
#define FL_LIMITS_BUDGET_BYTES .min = 0, .max = FL_FLAG_EXACT
#define FL_LIMITS_ROTATE_EVERY .min = 0, .max = 1e9
#define FL_LIMITS_EVICT_FRAC .min = 1e-9, .max = 1
#define FL_LIMITS_WARMUP .min = 0, .max = 1e9
#define FL_LIMITS_DECAY .min = 0, .max = 1e9
#define FL_LIMITS_DECAY_TO .min = 0, .max = 1
#define FL_LIMITS_P_ISO .min = 0, .max = 1
#define FL_LIMITS_DISTRACT_MAX .min = 1, .max = 63
#define FL_LIMITS_ROUNDS .min = 0, .max = 1e9
#define FL_LIMITS_ACCUM .min = 1, .max = 256
#define FL_LIMITS_LR .min = 1e-12, .max = 10
#define FL_LIMITS_CLIP .min = 0, .max = 1e9
#define FL_LIMITS_CHUNK_MIN .min = 1, .max = 65536
#define FL_LIMITS_CHUNK_MAX .min = 1, .max = 65536
#define FL_LIMITS_TOP_K .min = 1, .max = 256
#define FL_LIMITS_TOP_MASS .min = 1e-9, .max = 1
#define FL_LIMITS_MAX_Q .min = 1, .max = 4096
#define FL_LIMITS_MAX_A .min = 1, .max = 4096
#define FL_LIMITS_TURNS .min = 1, .max = FL_MAX_TURNS
#define FL_LIMITS_THINK .min = 0, .max = 1
#define FL_LIMITS_INIT .min = FL_INIT_FIRST, .max = FL_INIT_FILE
#define FL_LIMITS_SEED .min = 0, .max = FL_FLAG_EXACT
#define FL_LIMITS_EMBED_CHUNK .min = 1, .max = 8192
#define FL_LIMITS_REPLAY .min = 1, .max = 1000
#define FL_LIMITS_SAVE_EVERY .min = 0, .max = 1e9
#define FL_LIMITS_EVAL_EVERY .min = 0, .max = 1e9
#define FL_LIMITS_HELDOUT .min = 0, .max = 64

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
