/* info.h - the kinds of things that `info` describes; one file a kind. Each adds members to the
 * result object. FL_EINPUT when the file is damaged. */
#ifndef FL_INFO_INFO_H
#define FL_INFO_INFO_H

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"

int fl_info_gguf(fl_json *out, const char *path, bool detail, fl_err *err);
int fl_info_safetensors(fl_json *out, const char *path, bool detail, fl_err *err);
int fl_info_fza(fl_json *out, const char *path, bool detail, fl_err *err);
int fl_info_fleet(fl_json *out, const char *dir, bool detail, fl_err *err);

#endif
