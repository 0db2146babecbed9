/* train_options.h - the training flags: the struct, defaults and ranges, by name, and to and from
 * JSON. The names are those of the command line without dashes. */
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

/* Every training flag; defaults in fl_train_options_default(). Ranges: fl_train_options_check(). */
typedef struct fl_train_options {
  size_t p, frozen;      /* rows of a cartridge; never-trained rows at its start */
  size_t budget;         /* resident cartridges */
  uint64_t budget_bytes; /* 0: no limit beside `budget` */
  size_t rotate_every;   /* rounds; 0: never */
  double evict_frac;     /* of the residents, rounded up */
  size_t warmup, decay;  /* steps of a cartridge over which its rate rises, and falls */
  double decay_to;       /* share of the rate that is left then */
  double p_iso;
  size_t distract_max;
  size_t rounds; /* to run now (beyond those done) */
  size_t accum;  /* conversations a round */
  double lr, clip;
  size_t chunk_min, chunk_max;
  size_t top_k;
  double top_mass;
  size_t max_q, max_a;
  size_t turns;          /* requests and answers of a conversation at most */
  double think;          /* probability that bot A reasons first */
  size_t init;           /* fl_init */
  const char *init_file; /* borrowed; of FL_INIT_FILE, not kept in the manifest */
  uint64_t seed;
  size_t embed_chunk;
  double replay;     /* mean uses of a conversation, >= 1 */
  size_t save_every; /* rounds; 0: only at the end, at a signal and at rotation */
  size_t eval_every; /* rounds between held-out evaluations; 0: start and end only */
  size_t heldout;    /* conversations a document, fixed at birth; 0: none */
  bool checkpoint, pack;
  bool keep_moments;      /* in memory, not in a file */
  fl_kv_type gen_kv;      /* cache type of generation */
  fl_positions positions; /* of composed cartridges; of the fleet's birth, not changed */
} fl_train_options;

void fl_train_options_default(fl_train_options *o);
fl_rate fl_train_rate(const fl_train_options *o);
/* FL_EUSAGE with a sentence that names the flag and its range. */
int fl_train_options_check(const fl_train_options *o, fl_err *err);

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
#define FL_LIMITS_INIT .min = FL_INIT_FIRST, .max = FL_INIT_MATCH
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
