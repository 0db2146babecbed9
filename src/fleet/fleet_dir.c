/* fleet_dir.c - see fleet_dir.h. */
#include "fleet/fleet_dir.h"

#include <string.h>

#include "base/events.h"
#include "base/fs.h"
#include "base/mem.h"

bool fl_fleet_dir_exists(const char *dir) {
  char *path = fl_fs_join(dir, FL_MANIFEST_FILE);
  bool there = path && fl_fs_exists(path);
  fl_free(path);
  return there;
}

int fl_fleet_dir_check(bool *exists, const char *dir, bool resume, fl_err *err) {
  *exists = fl_fleet_dir_exists(dir);
  if (*exists && !resume)
    return fl_fail(err, FL_EUSAGE,
                   "%s: holds a fleet already; add --resume to continue it, or name another folder",
                   dir);
  if (!*exists && resume)
    return fl_fail(err, FL_EUSAGE, "%s: no fleet to resume here; leave --resume out to make one",
                   dir);
  return FL_OK;
}

static int refuse_missing(const char *dir, fl_err *err) {
  return fl_fail(err, FL_ENOENT, "%s: no fleet here (%s is missing); flotilla train makes one", dir,
                 FL_MANIFEST_FILE);
}

int fl_fleet_dir_load(fl_manifest *out, const char *dir, fl_err *err) {
  if (!fl_fleet_dir_exists(dir)) return refuse_missing(dir, err);
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

/* A text of the last run event in the log, the older part after the current one; allocated. */
static char *last_run(const char *dir, const char *member) {
  char *log = fl_fs_join(dir, FL_EVENTS_FILE), *older = log ? fl_events_older(log) : NULL;
  const char *const part[] = { log, older };
  char *text = NULL;
  for (size_t i = 0; i < 2 && !text; i++) {
    fl_map m = { 0 };
    if (!part[i] || !fl_fs_exists(part[i]) || fl_map_open(&m, part[i], NULL) != FL_OK) continue;
    text = text_of_last_run((const char *)m.data, m.size, member);
    fl_map_close(&m);
  }
  fl_free(older);
  fl_free(log);
  return text;
}

/* What there is of it; nothing where it cannot be read, which the opening will say. */
static void take_manifest(fl_fleet_origin *o, const char *dir) {
  fl_manifest m = { 0 };
  if (fl_manifest_load(&m, dir, NULL) != FL_OK) return;
  o->model = m.model_path;
  o->chat_template = m.template_name;
  m.model_path = m.template_name = NULL;
  fl_manifest_release(&m);
}

int fl_fleet_dir_origin(fl_fleet_origin *out, const char *dir, fl_err *err) {
  fl_fleet_origin o = { 0 };
  if (!fl_fleet_dir_exists(dir)) return refuse_missing(dir, err);
  take_manifest(&o, dir);
  if (!o.model || !fl_fs_exists(o.model)) { /* of before these were kept, or a model that moved */
    char *path = last_run(dir, "model");
    if (path) {
      fl_free(o.model);
      o.model = path;
    }
  }
  if (!o.chat_template) o.chat_template = last_run(dir, "template");
  *out = o;
  return FL_OK;
}

void fl_fleet_origin_release(fl_fleet_origin *o) {
  fl_free(o->model);
  fl_free(o->chat_template);
  *o = (fl_fleet_origin){ 0 };
}
