/* runtime.c - see runtime.h. */
#include "commands/runtime.h"

#include "base/fs.h"
#include "fleet/fleet_dir.h"

static const char *const template_names[] = { "auto",  "chatml", "llama3", "gemma4",
                                              "gemma", "plain",  NULL };
static const char *const expert_names[] = { "borrow", "pack", NULL };

const opt_spec engine_options[] = {
  { .name = "model",
    .letter = 'm',
    .type = OPT_TEXT,
    .meta = "FILE",
    .offset = offsetof(engine_args, model),
    .help = "the model, a GGUF file" },
  { .name = "threads",
    .letter = 't',
    .type = OPT_COUNT,
    .meta = "N",
    .min = 0,
    .max = 1024,
    .offset = offsetof(engine_args, threads),
    .help = "threads; 0: the cores available" },
  { .name = "template",
    .type = OPT_CHOICE,
    .meta = "NAME",
    .choices = template_names,
    .offset = offsetof(engine_args, chat_template),
    .help = "chat template" },
  { .name = "experts",
    .type = OPT_CHOICE,
    .meta = "HOW",
    .choices = expert_names,
    .offset = offsetof(engine_args, experts),
    .help = "experts: borrow, where they lie in the file, or pack, a faster copy" },
  { 0 }
};

int engine_model_options(fl_model_options *out, const engine_args *a, const char *chat_template,
                         fl_err *err) {
  fl_model_options o = { .pack_experts = a->experts == 1 };
  fl_template was;
  if (a->chat_template > 0) {
    const char *name = template_names[a->chat_template];
    if (!fl_template_by_name(&o.force_template, name))
      return fl_fail(err, FL_EUSAGE, "--template %s: unknown", name);
  } else if (chat_template && fl_template_by_name(&was, chat_template)) {
    o.force_template = was;
  }
  *out = o;
  return FL_OK;
}

/* The model as asked for, else as the fleet was trained with. */
static int choose_model(const char **out, const engine_args *a, const fl_fleet_origin *o,
                        const char *fleet, fl_err *err) {
  *out = a->model ? a->model : o->model;
  if (*out == NULL && fleet)
    return fl_fail(err, FL_EUSAGE, "%s: its model's path is not known; give --model FILE", fleet);
  if (*out == NULL) return fl_fail(err, FL_EUSAGE, "--model FILE is needed");
  if (!a->model && !fl_fs_exists(*out))
    return fl_fail(err, FL_EUSAGE, "%s: the fleet's model is no longer there; give --model FILE",
                   *out);
  return FL_OK;
}

int engine_open(engine *out, const engine_args *a, const char *fleet, fl_err *err) {
  const char *path = NULL;
  engine e = { 0 };
  fl_fleet_origin o = { 0 };
  fl_model_options opt = { 0 };
  int rc = fleet ? fl_fleet_dir_origin(&o, fleet, err) : FL_OK;
  if (rc == FL_OK) rc = choose_model(&path, a, &o, fleet, err);
  if (rc == FL_OK) rc = engine_model_options(&opt, a, o.chat_template, err);
  if (rc == FL_OK) rc = fl_team_new(&e.team, (unsigned)a->threads, err);
  if (rc == FL_OK) rc = fl_model_open(&e.model, path, &opt, e.team, err);
  fl_fleet_origin_release(&o);
  if (rc != FL_OK) {
    engine_close(&e);
    return rc;
  }
  *out = e;
  return FL_OK;
}

void engine_close(engine *e) {
  if (e->model) fl_model_close(e->model);
  if (e->team) fl_team_free(e->team);
  *e = (engine){ 0 };
}
