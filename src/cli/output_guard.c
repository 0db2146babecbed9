/* output_guard.c - see output_guard.h. */
#include "cli/output_guard.h"

#include <libgen.h>
#include <stdbool.h>

#include "base/fs.h"
#include "base/mem.h"

int output_apart(const char *option, const char *out, const char *input, const char *what,
                 fl_err *err) {
  if (!out || !input || !fl_fs_same_file(out, input)) return FL_OK;
  return fl_fail(err, FL_EUSAGE, "%s %s: is %s itself; give another name", option, out, what);
}

int output_outside(const char *option, const char *out, const char *fleet, fl_err *err) {
  if (!out || !fleet || !fl_fs_exists(out)) return FL_OK;
  char *copy = fl_strdup(out);
  if (!copy) return fl_fail(err, FL_ENOMEM, "not enough memory");
  bool inside = fl_fs_same_file(dirname(copy), fleet);
  fl_free(copy);
  return inside ? fl_fail(err, FL_EUSAGE, "%s %s: is a file of the fleet; give another name",
                          option, out)
                : FL_OK;
}
