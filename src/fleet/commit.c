/* commit.c - see commit.h for the protocol. */
#include "fleet/commit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sort.h"

static const char index_link[] = "index.safetensors";

static void empty(fl_commit *c) {
  for (size_t i = 0; i < c->n; i++) fl_free(c->written[i]);
  fl_free(c->written);
  c->written = NULL;
  c->n = c->cap = 0;
}

static void step(const fl_commit *c, int number) {
  if (c->step != NULL) c->step(c->ctx, number);
}

static int note(fl_commit *c, const char *name) {
  if (c->n == c->cap) {
    size_t cap = c->cap ? c->cap * 2 : 8;
    char **p = fl_reallocarray(c->written, cap, sizeof *p);
    if (p == NULL) return FL_ENOMEM;
    c->written = p;
    c->cap = cap;
  }
  char *copy = fl_strdup(name);
  if (copy == NULL) return FL_ENOMEM;
  c->written[c->n++] = copy;
  return FL_OK;
}

int fl_commit_path(char **path, fl_commit *c, const char *name, fl_err *err) {
  char *p = fl_fs_join(c->dir, name);
  if (p == NULL || note(c, name) != FL_OK) {
    fl_free(p);
    return fl_fail(err, FL_ENOMEM, "%s: not enough memory to save the fleet", c->dir);
  }
  step(c, 1);
  (void)fl_fs_remove(p);
  *path = p;
  return FL_OK;
}

static void remove_in(const char *dir, const char *name) {
  char *path = fl_fs_join(dir, name);
  if (path == NULL) return;
  if (fl_fs_remove(path) != FL_OK)
    fl_warn("%s: cannot be removed though nothing names it any more", path);
  fl_free(path);
}

void fl_commit_abandon(fl_commit *c) {
  for (size_t i = 0; i < c->n; i++) remove_in(c->dir, c->written[i]);
  empty(c);
}

/* --- which files a manifest names --- */

typedef struct names {
  const char **v;
  size_t n;
} names;

static bool named(const names *l, const char *name) { return fl_sorted_has(l->v, l->n, name); }

/* Sorted; the texts belong to m. False on lack of memory. */
static bool names_of(names *out, const fl_manifest *m) {
  const char **v = fl_calloc(m->n * 3 + 2, sizeof *v);
  size_t n = 0;
  if (v == NULL) return false;
  for (size_t i = 0; i < m->n; i++) {
    v[n++] = m->doc[i].cart_file;
    v[n++] = m->doc[i].opt_file;
    if (m->doc[i].study_file != NULL) v[n++] = m->doc[i].study_file;
  }
  if (m->index_file != NULL) v[n++] = m->index_file;
  if (m->lexical_file != NULL) v[n++] = m->lexical_file;
  (void)fl_sort_names(v, n);
  *out = (names){ v, n };
  return true;
}

static bool is_temp(const char *name) {
  return (strncmp(name, FL_MANIFEST_FILE ".tmp-", sizeof FL_MANIFEST_FILE + 4) == 0) ||
         strncmp(name, FL_FS_NAMELESS, sizeof FL_FS_NAMELESS - 1) == 0 ||
         (strncmp(name, "heldout.jsonl.tmp-", 18) == 0) || strcmp(name, ".index.link") == 0;
}

void fl_commit_sweep(const char *dir, const fl_manifest *m) {
  names l = { 0 };
  char **entry = NULL;
  size_t n = 0;
  if (!names_of(&l, m)) return;
  if (fl_fs_list(&entry, &n, dir, NULL) == FL_OK) {
    for (size_t i = 0; i < n; i++)
      if (is_temp(entry[i]) || (fl_is_generation_file(entry[i]) && !named(&l, entry[i])))
        remove_in(dir, entry[i]);
    fl_fs_list_free(entry, n);
  }
  fl_free(l.v);
}

/* Deletes what the manifest on disk named before and does not now. */
static void remove_replaced(const char *dir, const fl_buf *saved, const names *now) {
  for (size_t at = 0; at < saved->len; at += strlen(saved->data + at) + 1)
    if (!named(now, saved->data + at)) remove_in(dir, saved->data + at);
}

/* --- the link for other programs --- */

static void link_index(const char *dir, const fl_manifest *m) {
  if (m->index_file != NULL && strcmp(m->index_file, index_link) == 0) return;
  char *target = m->index_file != NULL ? fl_fs_join(dir, m->index_file) : NULL;
  char *name = fl_fs_join(dir, index_link), *temp = fl_fs_join(dir, ".index.link");
  if (name == NULL || temp == NULL) goto done;
  if (target == NULL) {
    (void)fl_fs_remove(name);
  } else if (!fl_fs_same_file(target, name)) {
    (void)fl_fs_remove(temp);
    if (link(target, temp) != 0 || rename(temp, name) != 0) {
      (void)fl_fs_remove(temp);
      (void)fl_fs_remove(name); /* an old one would be worse than none */
    }
  }
done:
  fl_free(target);
  fl_free(name);
  fl_free(temp);
}

/* --- the commit --- */

/* True when the manifest on disk is `text`: a replacement can fail after its rename, when the
 * folder cannot be synced, and then the new files are in use. */
static bool is_current(const char *path, const fl_buf *text) {
  fl_buf have = { 0 };
  bool same = fl_fs_read(&have, path, text->len, NULL) == FL_OK && have.len == text->len &&
              memcmp(have.data, text->data, text->len) == 0;
  fl_buf_release(&have);
  return same;
}

static int replace_manifest(fl_commit *c, const fl_buf *text, fl_err *err) {
  char *path = fl_fs_join(c->dir, FL_MANIFEST_FILE);
  if (path == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory to save", c->dir);
  step(c, 3);
  int rc = fl_fs_replace(path, text->data, text->len, err);
  c->in_place = rc != FL_OK && is_current(path, text);
  if (c->in_place) empty(c); /* keep both generations' files */
  fl_free(path);
  return rc;
}

static void count_bytes(fl_commit *c, size_t manifest_bytes) {
  c->bytes = manifest_bytes;
  for (size_t i = 0; i < c->n; i++) {
    char *path = fl_fs_join(c->dir, c->written[i]);
    uint64_t size = 0;
    if (path != NULL && fl_fs_size(&size, path, NULL) == FL_OK) c->bytes += size;
    fl_free(path);
  }
}

int fl_commit_finish(fl_commit *c, fl_manifest *m, fl_err *err) {
  fl_buf text = { 0 };
  names now = { 0 };
  int rc = FL_ENOMEM;
  if (!names_of(&now, m) || fl_manifest_print(m, &text) != FL_OK) {
    fl_fail(err, rc, "%s: not enough memory to save the fleet", c->dir);
    goto done;
  }
  step(c, 2);
  rc = fl_fs_sync_dir(c->dir, err);
  if (rc == FL_OK) rc = replace_manifest(c, &text, err);
  if (rc != FL_OK) goto done;
  count_bytes(c, text.len);
  empty(c);
  step(c, 4);
  remove_replaced(c->dir, &m->saved, &now);
  fl_manifest_note_saved(m); /* without memory some are forgotten, and swept at the next opening */
  step(c, 5);
  link_index(c->dir, m);
done:
  if (rc != FL_OK) fl_commit_abandon(c);
  fl_free(now.v);
  fl_buf_release(&text);
  return rc;
}
