/* train_options.c - every training flag; limits: fleet/train_options.h; defaults:
 * fl_train_options_default(). */
#include "commands/train_options.h"

#include "fleet/train_options.h"

#define COUNT(flag, field, limits, help_)                                                          \
  {                                                                                                \
    .name = flag, .type = OPT_COUNT, .meta = "N", limits,                                          \
    .offset = offsetof(fl_train_options, field), .help = help_                                     \
  }
#define REAL(flag, field, limits, help_)                                                           \
  {                                                                                                \
    .name = flag, .type = OPT_REAL, .meta = "X", limits,                                           \
    .offset = offsetof(fl_train_options, field), .help = help_                                     \
  }

const opt_spec study_specs[] = {
  COUNT("chunk-min", chunk_min, FL_LIMITS_CHUNK_MIN, "tokens of a chunk at least"),
  COUNT("chunk-max", chunk_max, FL_LIMITS_CHUNK_MAX, "tokens of a chunk at most"),
  COUNT("top-k", top_k, FL_LIMITS_TOP_K, "teacher entries kept per token at most"),
  REAL("top-mass", top_mass, FL_LIMITS_TOP_MASS, "teacher probability at which they end"),
  COUNT("max-q", max_q, FL_LIMITS_MAX_Q, "tokens of a request at most"),
  COUNT("max-a", max_a, FL_LIMITS_MAX_A, "tokens of an answer at most"),
  COUNT("turns", turns, FL_LIMITS_TURNS, "requests and answers of a conversation at most"),
  REAL("think", think, FL_LIMITS_THINK, "probability that bot A reasons before its request"),
  { .name = "seed",
    .letter = 's',
    .type = OPT_U64,
    .meta = "N",
    FL_LIMITS_SEED,
    .offset = offsetof(fl_train_options, seed),
    .help = "of every random draw" },
  { .name = "gen-kv",
    .type = OPT_CHOICE,
    .meta = "TYPE",
    .choices = fl_kv_words,
    .offset = offsetof(fl_train_options, gen_kv),
    .help = "cache type of generation" },
  { 0 }
};

const opt_spec train_specs[] = {
  COUNT("p", p, FL_LIMITS_P, "rows of a cartridge"),
  COUNT("frozen", frozen, FL_LIMITS_FROZEN, "rows at its start that are never trained; below --p"),
  COUNT("budget", budget, FL_LIMITS_BUDGET, "cartridges in memory at a time"),
  { .name = "budget-bytes",
    .type = OPT_BYTES,
    .meta = "SIZE",
    FL_LIMITS_BUDGET_BYTES,
    .offset = offsetof(fl_train_options, budget_bytes),
    .help = "memory for resident cartridges; 0: no limit" },
  COUNT("rotate-every", rotate_every, FL_LIMITS_ROTATE_EVERY, "rounds between rotations; 0: never"),
  REAL("evict-frac", evict_frac, FL_LIMITS_EVICT_FRAC,
       "share of the residents that a rotation replaces"),
  COUNT("warmup", warmup, FL_LIMITS_WARMUP, "steps over which a cartridge's rate rises; 0: off"),
  COUNT("decay", decay, FL_LIMITS_DECAY, "steps over which a cartridge's rate falls; 0: never"),
  REAL("decay-to", decay_to, FL_LIMITS_DECAY_TO, "share of the rate that is left after --decay"),
  { .name = "positions",
    .type = OPT_CHOICE,
    .meta = "WHERE",
    .choices = fl_positions_words,
    .offset = offsetof(fl_train_options, positions),
    .help = "of cartridges composed: the same for all, or one after another" },
  REAL("p-iso", p_iso, FL_LIMITS_P_ISO, "probability that a conversation sees its cartridge alone"),
  COUNT("distract-max", distract_max, FL_LIMITS_DISTRACT_MAX, "other cartridges beside it at most"),
  { .name = "rounds",
    .letter = 'r',
    .type = OPT_COUNT,
    .meta = "N",
    FL_LIMITS_ROUNDS,
    .offset = offsetof(fl_train_options, rounds),
    .help = "rounds to run now; 0: births and the index only" },
  COUNT("accum", accum, FL_LIMITS_ACCUM, "conversations a round"),
  REAL("lr", lr, FL_LIMITS_LR, "learning rate"),
  REAL("clip", clip, FL_LIMITS_CLIP, "limit of the gradient norm; 0: none"),
  COUNT("embed-chunk", embed_chunk, FL_LIMITS_EMBED_CHUNK, "tokens of a piece of the index"),
  REAL("replay", replay, FL_LIMITS_REPLAY, "uses of a conversation on average"),
  COUNT("save-every", save_every, FL_LIMITS_SAVE_EVERY, "rounds between saves; 0: at the end only"),
  COUNT("eval-every", eval_every, FL_LIMITS_EVAL_EVERY,
        "rounds between held-out losses; 0: start and end only"),
  COUNT("heldout", heldout, FL_LIMITS_HELDOUT, "held-out conversations a document"),
  { .name = "checkpoint",
    .type = OPT_ON,
    .offset = offsetof(fl_train_options, checkpoint),
    .help = "keep layer inputs only and run each layer again: less memory" },
  { .name = "keep-moments",
    .type = OPT_ON,
    .offset = offsetof(fl_train_options, keep_moments),
    .help = "the optimizer's moments in memory, not in a file of the fleet's folder" },
  { .name = "no-pack",
    .type = OPT_OFF,
    .offset = offsetof(fl_train_options, pack),
    .help = "one pass per conversation: less memory, the same bits" },
  { 0 }
};
