/* train_options.c - every training flag with its range; defaults: fl_train_options_default(). */
#include "commands/train_options.h"

#include "fleet/options.h"

#define COUNT(flag, meta_, field, lo, hi, help_)                                                   \
  { .name = flag, .type = OPT_COUNT, .meta = meta_, .min = lo, .max = hi,                          \
    .offset = offsetof(fl_train_options, field), .help = help_ }
#define REAL(flag, field, lo, hi, help_)                                                           \
  { .name = flag, .type = OPT_REAL, .meta = "X", .min = lo, .max = hi,                             \
    .offset = offsetof(fl_train_options, field), .help = help_ }

const opt_spec study_specs[] = {
  COUNT("chunk-min", "N", chunk_min, 1, 65536, "tokens of a chunk at least"),
  COUNT("chunk-max", "N", chunk_max, 1, 65536, "tokens of a chunk at most"),
  COUNT("top-k", "N", top_k, 1, 256, "teacher entries kept per token at most"),
  REAL("top-mass", top_mass, 1e-9, 1, "teacher probability at which they end"),
  COUNT("max-q", "N", max_q, 1, 4096, "tokens of a request at most"),
  COUNT("max-a", "N", max_a, 1, 4096, "tokens of an answer at most"),
  COUNT("turns", "N", turns, 1, FL_MAX_TURNS, "requests and answers of a conversation at most"),
  REAL("think", think, 0, 1, "probability that bot A reasons before its request"),
  { .name = "seed", .letter = 's', .type = OPT_U64, .meta = "N", .min = 0,
    .max = 9007199254740992.0, .offset = offsetof(fl_train_options, seed),
    .help = "of every random draw" },
  { .name = "gen-kv", .type = OPT_CHOICE, .meta = "TYPE", .choices = fl_kv_words,
    .offset = offsetof(fl_train_options, gen_kv), .help = "cache type of generation" },
  { 0 }
};

const opt_spec train_specs[] = {
  COUNT("p", "N", p, 8, 65536, "rows of a cartridge"),
  COUNT("frozen", "N", frozen, 0, 65535, "rows at its start that are never trained; below --p"),
  COUNT("budget", "N", budget, 1, 4096, "cartridges in memory at a time"),
  { .name = "budget-bytes", .type = OPT_BYTES, .meta = "SIZE", .min = 0, .max = 9007199254740992.0,
    .offset = offsetof(fl_train_options, budget_bytes),
    .help = "memory for resident cartridges; 0: no limit" },
  COUNT("rotate-every", "N", rotate_every, 0, 1e9, "rounds between rotations; 0: never"),
  REAL("evict-frac", evict_frac, 1e-9, 1, "share of the residents that a rotation replaces"),
  COUNT("warmup", "N", warmup, 0, 1e9, "steps over which a cartridge's rate rises; 0: off"),
  COUNT("decay", "N", decay, 0, 1e9, "steps over which a cartridge's rate falls; 0: never"),
  REAL("decay-to", decay_to, 0, 1, "share of the rate that is left after --decay"),
  { .name = "positions", .type = OPT_CHOICE, .meta = "WHERE", .choices = fl_positions_words,
    .offset = offsetof(fl_train_options, positions),
    .help = "of cartridges composed: the same for all, or one after another" },
  REAL("p-iso", p_iso, 0, 1, "probability that a conversation sees its cartridge alone"),
  COUNT("distract-max", "N", distract_max, 1, 63, "other cartridges beside it at most"),
  { .name = "rounds", .letter = 'r', .type = OPT_COUNT, .meta = "N", .min = 0, .max = 1e9,
    .offset = offsetof(fl_train_options, rounds),
    .help = "rounds to run now; 0: births and the index only" },
  COUNT("accum", "N", accum, 1, 256, "conversations a round"),
  REAL("lr", lr, 1e-12, 10, "learning rate"),
  REAL("clip", clip, 0, 1e9, "limit of the gradient norm; 0: none"),
  COUNT("embed-chunk", "N", embed_chunk, 1, 8192, "tokens of a piece of the index"),
  REAL("replay", replay, 1, 1000, "uses of a conversation on average"),
  COUNT("save-every", "N", save_every, 0, 1e9, "rounds between saves; 0: at the end only"),
  COUNT("eval-every", "N", eval_every, 0, 1e9,
        "rounds between held-out losses; 0: start and end only"),
  COUNT("heldout", "N", heldout, 0, 64, "held-out conversations a document"),
  { .name = "checkpoint", .type = OPT_ON, .offset = offsetof(fl_train_options, checkpoint),
    .help = "keep layer inputs only and run each layer again: less memory" },
  { .name = "keep-moments", .type = OPT_ON, .offset = offsetof(fl_train_options, keep_moments),
    .help = "the optimizer's moments in memory, not in a file of the fleet's folder" },
  { .name = "no-pack", .type = OPT_OFF, .offset = offsetof(fl_train_options, pack),
    .help = "one pass per conversation: less memory, the same bits" },
  { 0 }
};
