/* convert.h - models, cartridges and fleets in the forms of other programs and back; one file a
 * form. Each function writes job->out, which it replaces whole or not at all, and adds what it did
 * to `out` as members (flotilla-export(1), flotilla-import(1)).
 */
#ifndef FL_CONVERT_CONVERT_H
#define FL_CONVERT_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

typedef struct convert_job {
  const char *source; /* a cartridge's file, a fleet's folder or an archive; NULL: the model */
  const char *model;  /* a GGUF file, where one is needed */
  const char *out;
  int (*poll)(void *ctx); /* other than FL_OK stops; may be NULL */
} convert_job;

/* The model in another weight type, which is `type`. */
int convert_model(fl_json *out, const convert_job *a, const char *type, fl_err *err);

/* The fleet as one file; compressed as the name of job->out asks. */
int convert_archive_write(fl_json *out, const convert_job *a, fl_err *err);
/* Such a file as a fleet's folder. The archive is hostile. */
int convert_archive_read(fl_json *out, const convert_job *a, fl_err *err);

/* The cartridge as a sequence state of llama.cpp. */
typedef struct convert_state_options {
  bool half;        /* rows as f16, else f32 */
  uint32_t version; /* 3 or 4 */
} convert_state_options;
int convert_state(fl_json *out, const convert_job *a, const convert_state_options *o, fl_err *err);

/* The cartridge as torch.save writes it, in the layout of HazyResearch/cartridges; and back. */
int convert_torch_write(fl_json *out, const convert_job *a, fl_err *err);
int convert_torch_read(fl_json *out, const convert_job *a, fl_err *err);

#endif
