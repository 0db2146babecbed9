/* sizes.c - from the flags of a run to the sizes and options of its parts. */
#include "trainer/sizes.h"

fl_step_options fl_train_step(const fl_train_options *o) {
  return (fl_step_options){ .rate = fl_train_rate(o), .clip = o->clip, .pack = o->pack };
}

fl_study_options fl_train_study(const fl_train_options *o) {
  return (fl_study_options){ .chunk_min = o->chunk_min,
                             .chunk_max = o->chunk_max,
                             .top_k = o->top_k,
                             .top_mass = o->top_mass,
                             .max_q = o->max_q,
                             .max_a = o->max_a,
                             .turns = o->turns,
                             .think = o->think,
                             .temperature = 0.6,
                             .mix = o->kinds,
                             .seed = o->seed };
}

fl_mix fl_train_heldout_mix(const fl_train_options *o) {
  if (o->kinds.weight[FL_WAY_SENTENCE] == 0) return o->kinds;
  return (fl_mix){ .weight = { [FL_WAY_SENTENCE] = 1 } };
}

/* Places that a step needs beside the prefix: user turn, opener, answer. */
static size_t conversation_rows(const fl_train_options *o) {
  return o->turns * (o->max_q + o->max_a + 64);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

int fl_train_sizes_make(fl_train_sizes *out, const fl_train_options *o, size_t p, size_t n_docs,
                        const fl_hparams *hp, const char *dir, fl_err *err) {
  const fl_study_options so = fl_train_study(o);
  const size_t rows = conversation_rows(o);
  if (fl_study_max_rows(&so) > hp->n_ctx)
    return fl_fail(err, FL_EUSAGE,
                   "--chunk-max: %zu tokens with --max-q %zu and --max-a %zu do "
                   "not fit the model's context of %zu; lower them",
                   o->chunk_max, o->max_q, o->max_a, hp->n_ctx);
  if (p + rows > hp->n_ctx)
    return fl_fail(err, FL_EUSAGE,
                   "--p: %zu rows and a conversation of %zu do not fit the model's "
                   "context of %zu; lower it, --max-q or --max-a",
                   p, rows, hp->n_ctx);
  const size_t fit = (hp->n_ctx - rows) / p;
  fl_train_sizes t = { .max_convs = o->accum > o->heldout ? o->accum : o->heldout };
  t.max_parts = least(least(o->distract_max + 1, o->budget), least(n_docs, fit));
  t.conv = (fl_conv_limits){ .n_vocab = hp->n_vocab,
                             .max_tokens = rows,
                             .max_sup = o->turns * (o->max_a + 1) };
  t.pass = (fl_pass_options){ .max_rows = FL_PASS_ROWS, .max_spans = t.max_convs };
  t.step = (fl_stepper_limits){ .max_convs = t.max_convs,
                                .max_conv_rows = rows,
                                .max_sup = t.conv.max_sup * t.max_convs,
                                .max_prefix = p * t.max_parts,
                                .max_parts = t.max_parts,
                                .checkpoint = o->checkpoint,
                                .pack = o->pack,
                                .max_pass_rows = FL_STEP_PASS_ROWS,
                                .positions = o->positions,
                                .grad_dir = o->checkpoint && !o->keep_moments ? dir : NULL };
  *out = t;
  return FL_OK;
}

void fl_train_to_files(const fl_train_options *o, const char *dir, fl_cartridge *c, fl_adam *a) {
  if (o->keep_moments) return;
  fl_adam_to_file(a, dir);
  if (o->checkpoint) fl_rows_to_file(&c->rows, dir);
}
