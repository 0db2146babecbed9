/* fleet_dir.c - see fleet_dir.h. */
#include "commands/fleet_dir.h"

#include <string.h>

#include "base/fs.h"
#include "base/mem.h"

bool fleet_dir_exists(const char *dir) {
  char *path = fl_fs_join(dir, FL_MANIFEST_FILE);
  bool there = path && fl_fs_exists(path);
  fl_free(path);
  return there;
}

static int refuse_missing(const char *dir, fl_err *err) {
  return fl_fail(err, FL_ENOENT, "%s: no fleet here (%s is missing); flotilla train makes one",
                 dir, FL_MANIFEST_FILE);
}

int fleet_dir_load(fl_manifest *out, const char *dir, fl_err *err) {
  if (!fleet_dir_exists(dir)) return refuse_missing(dir, err);
  return fl_manifest_load(out, dir, err);
}

/* A text of the last line of data[0..size) that is a run event and has it; allocated, or NULL. */
static char *text_of_last_run(const char *data, size_t size, const char *member) {
  static const char mark[] = "\"ev\":\"run\"";
  while (size > 0) {
    const char *newline = memrchr(data, '\n', size - 1);
    const char *line = newline ? newline + 1 : data;
    size_t len = (size_t)(data + size - line);
    fl_json *v = NULL;
    const char *text = NULL;
    char *copy = NULL;
    if (memmem(line, len, mark, sizeof mark - 1) && fl_json_parse(&v, line, len, NULL) == FL_OK &&
        fl_json_get_str(v, member, &text))
      copy = fl_strdup(text);
    fl_json_free(v);
    if (copy) return copy;
    size = (size_t)(line - data);
  }
  return NULL;
}

char *fleet_dir_last_run(const char *dir, const char *member) {
  char *log = fl_fs_join(dir, "events.jsonl");
  fl_map m = { 0 };
  char *text = NULL;
  if (log && fl_fs_exists(log) && fl_map_open(&m, log, NULL) == FL_OK) {
    text = text_of_last_run((const char *)m.data, m.size, member);
    fl_map_close(&m);
  }
  fl_free(log);
  return text;
}

int fleet_dir_model(char **out, const char *dir, fl_err *err) {
  if (!fleet_dir_exists(dir)) return refuse_missing(dir, err);
  char *path = fleet_dir_last_run(dir, "model");
  if (!path)
    return fl_fail(err, FL_EUSAGE, "%s: its model's path is not known; give --model FILE", dir);
  if (fl_fs_exists(path)) {
    *out = path;
    return FL_OK;
  }
  int rc =
      fl_fail(err, FL_EUSAGE, "%s: the fleet's model is no longer there; give --model FILE", path);
  fl_free(path);
  return rc;
}
