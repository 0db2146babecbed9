/* heldout.c - see heldout.h. The file is read and copied line by line: with many documents it is
 * larger than what should be in memory. */
#include "trainer/heldout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

static int no_memory(fl_err *err) {
  return fl_fail(err, FL_ENOMEM, "not enough memory for held-out conversations");
}

void fl_heldout_plan(const fl_fleet *f, const fl_resident *s, size_t n, fl_conv_plan *plan) {
  for (size_t i = 0; i < n; i++)
    plan[i] = (fl_conv_plan){ .doc = f->m.doc[s->doc].id,
                              .round = 0,
                              .conv = (uint32_t)i,
                              .draw = FL_HELDOUT_DRAW + (uint32_t)i };
}

int fl_heldout_take(fl_resident *s, fl_conv *conv, const bool *ok, size_t n, fl_err *err) {
  fl_conv *list = fl_calloc(n + 1, sizeof *list);
  if (list == NULL) return no_memory(err);
  s->heldout = list;
  s->n_heldout = 0;
  for (size_t i = 0; i < n; i++) {
    if (!ok[i]) continue;
    list[s->n_heldout++] = conv[i];
    conv[i] = (fl_conv){ 0 };
  }
  s->heldout_known = true;
  return FL_OK;
}

/* The id at the start of a line, without parsing the rest of it. */
static bool line_doc(const char *line, size_t len, uint32_t *id) {
  static const char head[] = "{\"doc\":";
  char digits[16];
  if (len < sizeof head - 1 + sizeof digits) return false;
  if (memcmp(line, head, sizeof head - 1) != 0) return false;
  memcpy(digits, line + sizeof head - 1, sizeof digits - 1);
  digits[sizeof digits - 1] = '\0';
  char *end = NULL;
  unsigned long v = strtoul(digits, &end, 10);
  if (end == digits || *end != ',' || v >= UINT32_MAX) return false;
  *id = (uint32_t)v;
  return true;
}

static const fl_doc_entry *doc_by_id(const fl_fleet *f, uint32_t id, size_t *at) {
  for (size_t i = 0; i < f->m.n; i++)
    if (f->m.doc[i].id == id) {
      *at = i;
      return &f->m.doc[i];
    }
  return NULL;
}

/* Whether the line speaks of document d as it is now. */
static bool line_is_of(const fl_json *o, const fl_doc_entry *d) {
  const char *hash = NULL;
  return fl_json_get_str(o, "hash", &hash) && d->hash != NULL && strcmp(hash, d->hash) == 0;
}

/* What reading has to know of a slot. */
typedef struct reading {
  bool wanted; /* nothing was known of it before */
  bool broken; /* a line of it is damaged, or beyond the limits */
  uint64_t of; /* lines that there should be; 0: not said */
} reading;

static int add_line(fl_resident *s, reading *r, const fl_json *o, const fl_conv_limits *limits) {
  fl_conv c = { 0 };
  bool skipped = false;
  double of = 0;
  s->heldout_known = true;
  if (fl_json_get_num(o, "of", &of) && of >= 1 && of <= 64) r->of = (uint64_t)of;
  if (fl_json_get_bool(o, "skipped", &skipped) && skipped) return FL_OK;
  int rc = fl_conv_parse(&c, o, limits);
  if (rc != FL_OK) {
    r->broken = true;
    return rc == FL_ENOMEM ? rc : FL_OK;
  }
  fl_conv *list = fl_reallocarray(s->heldout, s->n_heldout + 1, sizeof *list);
  if (list == NULL) {
    fl_conv_release(&c);
    return FL_ENOMEM;
  }
  s->heldout = list;
  list[s->n_heldout++] = c;
  return FL_OK;
}

static int take_line(fl_residency *r, const fl_fleet *f, reading *slots, const char *line,
                     size_t len, const fl_conv_limits *limits) {
  uint32_t id = 0;
  size_t at = 0;
  if (!line_doc(line, len, &id)) return FL_OK;
  const fl_doc_entry *d = doc_by_id(f, id, &at);
  size_t slot = d != NULL ? fl_residency_slot(r, at) : r->n;
  if (slot == r->n || !slots[slot].wanted) return FL_OK;
  fl_json *o = NULL;
  int rc = line[len - 1] == '\n' ? fl_json_parse(&o, line, len, NULL) : FL_EINPUT;
  if (rc == FL_EINPUT) slots[slot].broken = true;
  if (rc == FL_OK && line_is_of(o, d)) rc = add_line(r->slot[slot], &slots[slot], o, limits);
  fl_json_free(o);
  return rc == FL_ENOMEM ? rc : FL_OK;
}

/* A document with fewer lines than it had gets them anew: they are a function of seed, document and
 * flags, so that no other value comes out unless the flags are other ones. */
static void forget_broken(const fl_fleet *f, fl_resident *s, const reading *r) {
  const bool whole =
      !r->broken && (r->of == 0 || r->of == s->n_heldout || (r->of == 1 && s->n_heldout == 0));
  if (!r->wanted || (whole || (!s->heldout_known && !r->broken))) return;
  fl_warn("%s: the held-out conversations of %s are damaged or longer than the flags allow; "
          "they are made again",
          FL_HELDOUT_FILE, f->m.doc[s->doc].name);
  fl_resident_drop_heldout(s);
}

static char *file_path(const fl_fleet *f) { return fl_fs_join(f->dir, FL_HELDOUT_FILE); }

int fl_heldout_read(fl_residency *r, const fl_fleet *f, const fl_conv_limits *limits, fl_err *err) {
  char *path = file_path(f), *line = NULL;
  reading *slots = fl_calloc(r->n + 1, sizeof *slots);
  size_t room = 0;
  int rc = path == NULL || slots == NULL ? FL_ENOMEM : FL_OK;
  FILE *in = rc == FL_OK ? fopen(path, "re") : NULL;
  for (size_t i = 0; rc == FL_OK && i < r->n; i++) slots[i].wanted = !r->slot[i]->heldout_known;
  for (ssize_t n; in != NULL && rc == FL_OK && (n = getline(&line, &room, in)) > 0;)
    rc = take_line(r, f, slots, line, (size_t)n, limits);
  for (size_t i = 0; rc == FL_OK && i < r->n; i++) forget_broken(f, r->slot[i], &slots[i]);
  if (in != NULL) fclose(in);
  fl_free(line); /* getline's own */
  fl_free(slots);
  fl_free(path);
  return rc == FL_OK ? rc : no_memory(err);
}

/* Those of a slot that does not have them are made anew. */
static bool is_missing(const fl_residency *r, size_t doc) {
  const fl_resident *s = fl_residency_find(r, doc);
  return s != NULL && !s->heldout_known;
}

static void copy_known(FILE *in, fl_sink *out, const fl_residency *r, const fl_fleet *f) {
  char *line = NULL;
  size_t room = 0, at = 0;
  uint32_t id = 0;
  for (ssize_t n; (n = getline(&line, &room, in)) > 0;) {
    fl_json *o = NULL;
    bool whole = line[n - 1] == '\n' && line_doc(line, (size_t)n, &id);
    const fl_doc_entry *d = whole ? doc_by_id(f, id, &at) : NULL;
    if (d != NULL && !is_missing(r, at) && fl_json_parse(&o, line, (size_t)n, NULL) == FL_OK &&
        line_is_of(o, d))
      (void)fl_sink_write(out, line, (size_t)n);
    fl_json_free(o);
  }
  fl_free(line);
}

int fl_heldout_clean(const fl_residency *r, const fl_fleet *f, fl_err *err) {
  char *path = file_path(f);
  fl_sink *out = NULL;
  if (path == NULL) return no_memory(err);
  FILE *in = fopen(path, "re");
  int rc = in != NULL ? fl_fs_open_temp(&out, path, err) : FL_OK;
  if (in != NULL && rc == FL_OK) {
    copy_known(in, out, r, f);
    rc = fl_fs_commit_temp(out, path, err);
  }
  if (in != NULL) fclose(in);
  fl_free(path);
  return rc;
}

static void print_slot(fl_buf *out, const fl_fleet *f, const fl_resident *s) {
  const fl_doc_entry *d = &f->m.doc[s->doc];
  size_t n = s->n_heldout > 0 ? s->n_heldout : 1;
  for (size_t i = 0; i < n; i++) {
    const fl_conv_label label = {
      .doc = d->id, .name = d->name, .hash = d->hash, .index = (uint32_t)i, .of = (uint32_t)n
    };
    /* A document none of whose conversations came out is noted too: it is not tried again. */
    fl_conv_print(out, s->n_heldout > 0 ? &s->heldout[i] : NULL, &label);
  }
}

/* 0 or an errno; *made: the file was not there. */
static int append(const char *path, const fl_buf *lines, bool *made) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return errno;
  const off_t size = lseek(fd, 0, SEEK_END);
  *made = size == 0;
  const int number = size >= 0 ? fl_fs_append(fd, (size_t)size, lines->data, lines->len) : errno;
  close(fd);
  return number;
}

int fl_heldout_add(const fl_residency *r, const fl_fleet *f, const size_t *slot, size_t n,
                   fl_err *err) {
  char *path = file_path(f);
  fl_buf lines = { 0 };
  bool made = false;
  for (size_t k = 0; k < n; k++) print_slot(&lines, f, r->slot[slot[k]]);
  int rc = path == NULL || lines.oom ? no_memory(err) : FL_OK;
  if (rc == FL_OK) {
    const int number = append(path, &lines, &made);
    if (number != 0) rc = fl_fs_fail_errno(err, path, "written", number);
  }
  if (rc == FL_OK && made) rc = fl_fs_sync_parent(path, err);
  fl_buf_release(&lines);
  fl_free(path);
  return rc;
}
