/* dataset.c - see dataset.h. */
#include "trainer/dataset.h"

#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/rng.h"
#include "fleet/state.h"
#include "trainer/trainer.h"

typedef struct place {
  size_t offset, len, doc, number; /* number: of the line, from 1 */
} place;

struct fl_dataset {
  char *path;
  fl_map map;
  place *line;
  size_t n, cap;
};

void fl_dataset_close(fl_dataset *g) {
  if (g == NULL) return;
  fl_map_close(&g->map);
  fl_free(g->path);
  fl_free(g->line);
  fl_free(g);
}

/* Names and hashes stand at the head of a line; the long rest is not parsed to find them. */
static fl_json *parse_head(const char *line, size_t len) {
  static const char mark[] = ",\"index\":";
  fl_json *o = NULL;
  fl_buf head = { 0 };
  const char *end = memmem(line, len, mark, sizeof mark - 1);
  fl_buf_append(&head, line, end != NULL ? (size_t)(end - line) : len);
  if (end != NULL) fl_buf_putc(&head, '}');
  if (!head.oom) (void)fl_json_parse(&o, head.data, head.len, NULL);
  fl_buf_release(&head);
  return o;
}

static bool find_document(const fl_manifest *m, const char *name, const char *hash, size_t *doc) {
  for (size_t i = 0; i < m->n_members; i++) {
    *doc = 0;
    if (strcmp(m->member[i].name, name) == 0) return strcmp(m->member[i].hash, hash) == 0;
  }
  return fl_manifest_find(m, name, doc) && m->doc[*doc].hash != NULL &&
         strcmp(m->doc[*doc].hash, hash) == 0;
}

static int note_line(fl_dataset *g, const fl_manifest *m, size_t offset, size_t len, size_t number,
                     fl_err *err) {
  const char *name = NULL, *hash = NULL, *tokenizer = NULL;
  size_t doc = 0;
  fl_json *o = parse_head((const char *)g->map.data + offset, len);
  bool ours = o != NULL && fl_json_get_str(o, "name", &name) && fl_json_get_str(o, "hash", &hash) &&
              find_document(m, name, hash, &doc);
  const bool other = ours && fl_json_get_str(o, "tokenizer", &tokenizer) &&
                     m->tokenizer_hash != NULL && strcmp(tokenizer, m->tokenizer_hash) != 0;
  fl_json_free(o);
  if (other)
    return fl_fail(err, FL_EINPUT,
                   "%s: line %zu was made with a model of another tokenizer; make "
                   "the file with this fleet's",
                   g->path, number);
  if (!ours) return FL_OK;
  if (g->n == g->cap) {
    size_t cap = g->cap ? g->cap * 2 : 64;
    place *p = fl_reallocarray(g->line, cap, sizeof *p);
    if (p == NULL) return fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", g->path);
    g->line = p;
    g->cap = cap;
  }
  g->line[g->n++] = (place){ offset, len, doc, number };
  return FL_OK;
}

static int note_lines(fl_dataset *g, const fl_manifest *m, fl_err *err) {
  const char *data = (const char *)g->map.data;
  size_t number = 1;
  for (size_t at = 0; at < g->map.size; number++) {
    const char *end = memchr(data + at, '\n', g->map.size - at);
    size_t len = end != NULL ? (size_t)(end - (data + at)) : g->map.size - at;
    const int rc = len > 0 ? note_line(g, m, at, len, number, err) : FL_OK;
    if (rc != FL_OK) return rc;
    at += len + 1;
  }
  if (g->n > 0) return FL_OK;
  return fl_fail(err, FL_EINPUT,
                 "%s: no conversation about a document of this fleet as it is now; "
                 "make some with flotilla study",
                 g->path);
}

int fl_dataset_open(fl_dataset **out, const char *path, const fl_manifest *m, fl_err *err) {
  fl_dataset *g = fl_calloc(1, sizeof *g);
  if (g != NULL) g->path = fl_strdup(path);
  int rc = g != NULL && g->path != NULL
               ? FL_OK
               : fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", path);
  if (rc == FL_OK) rc = fl_map_open(&g->map, path, err);
  if (rc == FL_OK) rc = note_lines(g, m, err);
  if (rc != FL_OK) {
    fl_dataset_close(g);
    return rc;
  }
  *out = g;
  return FL_OK;
}

size_t fl_dataset_count(const fl_dataset *g, size_t doc) {
  size_t n = 0;
  for (size_t i = 0; g != NULL && i < g->n; i++) n += g->line[i].doc == doc;
  return n;
}

static int read_line(const fl_dataset *g, const place *p, const fl_conv_limits *limits,
                     fl_conv *out, fl_err *err) {
  fl_json *o = NULL;
  int rc = fl_json_parse(&o, (const char *)g->map.data + p->offset, p->len, NULL);
  if (rc == FL_OK) rc = fl_conv_parse(out, o, limits);
  fl_json_free(o);
  if (rc == FL_EINPUT)
    fl_fail(err, rc,
            "%s: line %zu is no conversation for this model, or longer than --max-q and "
            "--max-a allow; make the file again",
            g->path, p->number);
  if (rc == FL_ENOMEM) fl_fail(err, rc, "%s: not enough memory to read it", g->path);
  return rc;
}

int fl_dataset_read(const fl_dataset *g, size_t doc, const fl_conv_limits *limits, fl_conv **out,
                    size_t *n, fl_err *err) {
  size_t count = fl_dataset_count(g, doc), held = 0;
  if (count == 0) {
    *out = NULL;
    *n = 0;
    return FL_OK;
  }
  fl_conv *list = fl_calloc(count, sizeof *list);
  int rc =
      list != NULL ? FL_OK : fl_fail(err, FL_ENOMEM, "%s: not enough memory to read it", g->path);
  for (size_t i = 0; rc == FL_OK && i < g->n; i++)
    if (g->line[i].doc == doc) {
      rc = read_line(g, &g->line[i], limits, &list[held], err);
      held += rc == FL_OK;
    }
  if (rc != FL_OK) {
    for (size_t i = 0; i < held; i++) fl_conv_release(&list[i]);
    fl_free(list);
    return rc;
  }
  *out = list;
  *n = count;
  return FL_OK;
}

size_t fl_dataset_pick(uint64_t seed, uint32_t doc, uint64_t k, size_t n, uint32_t *scratch) {
  fl_rng r = fl_rng_stream(seed, FL_RNG_REPLAY, doc, (uint32_t)(k / n), UINT32_MAX);
  for (size_t i = 0; i < n; i++) scratch[i] = (uint32_t)i;
  fl_rng_shuffle(&r, scratch, n);
  return scratch[k % n];
}

static void close_dataset(void *p) { fl_dataset_close(p); }

int fl_fleet_use_study(fl_fleet *f, const char *path, fl_err *err) {
  fl_dataset *g = NULL;
  if (f->read_only) return fl_fail(err, FL_EUSAGE, "%s: opened for reading only", f->dir);
  int rc = fl_dataset_open(&g, path, &f->m, err);
  if (rc != FL_OK) return rc;
  fl_fleet_attach(f, FL_WITH_DATASET, g, close_dataset);
  return FL_OK;
}
