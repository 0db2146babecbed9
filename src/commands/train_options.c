/* train_options.c - the training flags of fleet/train_flags.def as options of the command line. */
#include "commands/train_options.h"

#include "fleet/train_options.h"

/* By kind: the option's type, its value in help, its name and words. */
#define TYPE_COUNT OPT_COUNT, .meta = "N"
#define TYPE_U64 OPT_U64, .meta = "N"
#define TYPE_BYTES OPT_BYTES, .meta = "SIZE"
#define TYPE_REAL OPT_REAL, .meta = "X"
#define TYPE_ON OPT_ON
#define TYPE_OFF OPT_OFF
#define TYPE_KV OPT_CHOICE, .meta = "TYPE", .choices = fl_kv_words
#define TYPE_POSITIONS OPT_CHOICE, .meta = "WHERE", .choices = fl_positions_words

#define NO_COUNT
#define NO_U64
#define NO_BYTES
#define NO_REAL
#define NO_ON
#define NO_OFF "no-"
#define NO_KV
#define NO_POSITIONS

#define ROW(kind, member, name_, letter_, min_, max_, help_)                                       \
  { .name = NO_##kind name_,                                                                       \
    .letter = letter_,                                                                             \
    .type = TYPE_##kind,                                                                           \
    .min = min_,                                                                                   \
    .max = max_,                                                                                   \
    .offset = offsetof(fl_train_options, member),                                                  \
    .help = help_ },
#define NOTHING(...)

static int read_kinds(void *at, const char *text, fl_err *err) {
  return fl_mix_parse(at, text, err);
}
static void print_kinds(fl_buf *out, const void *at) { fl_mix_print(out, at); }
static const opt_form kinds_form = { sizeof(fl_mix), read_kinds, print_kinds };

const opt_spec study_specs[] = { { .name = "kinds",
                                   .letter = 'k',
                                   .type = OPT_FORM,
                                   .meta = "LIST",
                                   .form = &kinds_form,
                                   .offset = offsetof(fl_train_options, kinds),
                                   .help = "kinds of conversations with their weights" },
#define ROW_STUDY ROW
#define ROW_TRAIN NOTHING
#define ROW_NONE NOTHING
#define FL_FLAG(kind, member, name, letter, min, max, default_, group, when, help)                 \
  ROW_##group(kind, member, name, letter, min, max, help)
#include "fleet/train_flags.def"
#undef ROW_STUDY
#undef ROW_TRAIN
                                 { 0 } };

const opt_spec train_specs[] = {
#define ROW_STUDY NOTHING
#define ROW_TRAIN ROW
#include "fleet/train_flags.def"
  { 0 }
};
