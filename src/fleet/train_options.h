/* train_options.h - the training flags of train_flags.def as a struct, with defaults and ranges, by
 * name, and to and from JSON. The names are those of the command line without dashes.
 */
#ifndef FL_FLEET_TRAIN_OPTIONS_H
#define FL_FLEET_TRAIN_OPTIONS_H

#include "base/json.h"
#include "cartridge/adam.h"
#include "cartridge/cartridge.h"
#include "model/kv.h"
#include "study/study.h"

/* What the rows of a cartridge are before its first step: the model's own over the document's first
 * tokens, over random ones, over a summary that it writes; another cartridge's; or constructed to
 * answer as the whole document does (cartridge/match.h). */
typedef enum fl_init {
  FL_INIT_FIRST,
  FL_INIT_RANDOM,
  FL_INIT_SUMMARY,
  FL_INIT_FILE,
  FL_INIT_MATCH
} fl_init;

#define FL_FLAG_TYPE_COUNT size_t
#define FL_FLAG_TYPE_U64 uint64_t
#define FL_FLAG_TYPE_BYTES uint64_t
#define FL_FLAG_TYPE_REAL double
#define FL_FLAG_TYPE_ON bool
#define FL_FLAG_TYPE_OFF bool
#define FL_FLAG_TYPE_KV fl_kv_type
#define FL_FLAG_TYPE_POSITIONS fl_positions

typedef struct fl_train_options {
#define FL_FLAG(kind, member, ...) FL_FLAG_TYPE_##kind member;
#include "fleet/train_flags.def"
#undef FL_FLAG
  fl_mix kinds; /* of conversations, with their weights; in fleet.json where they are not the seeds
                   alone */
  const char *init_file; /* borrowed; of FL_INIT_FILE, not kept in the manifest */
} fl_train_options;

#define FL_FLAG_EXACT 9007199254740992.0 /* what JSON carries exactly */

void fl_train_options_default(fl_train_options *o);
fl_rate fl_train_rate(const fl_train_options *o);
/* FL_EUSAGE with a sentence that names the flag and its range. */
int fl_train_options_check(const fl_train_options *o, fl_err *err);

/* The words of the flags that are one of two, in the order of the enums, NULL at the end. */
extern const char *const fl_kv_words[], *const fl_positions_words[];

/* Sets one flag by name; FL_EUSAGE and *io unchanged when unknown or out of range. */
int fl_train_options_set(fl_train_options *io, const char *name, double v, fl_err *err);
/* Whether a trainer at work takes another value of the flag. */
bool fl_train_options_is_live(const char *name);
/* What was fixed when the fleet was made is as in `made` again. */
void fl_train_options_keep_birth(fl_train_options *io, const fl_train_options *made);

/* Sets a member of `obj` for every flag. Without `all` those of one run are left out. False on lack
 * of memory. */
bool fl_train_options_write(const fl_train_options *o, fl_json *obj, bool all);
/* Reads what is there, keeps the rest. FL_EINPUT on a wrong type or range, *io unchanged. */
int fl_train_options_read(fl_train_options *io, const fl_json *obj, fl_err *err);

#endif
