/* archive_write.c - a fleet as one file, to hand on or to put on a hub: a tar archive, compressed
 * as its name asks (.gz, .zst, .xz, .bz2), of the manifest, the files it refers to and a README.md
 * that says what they are. Logs, moments and the lock stay behind. archive_read.c takes it apart.
 */
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "convert/convert.h"
#include "fleet/fleet_dir.h"

#ifdef HAVE_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>

static int put_entry(struct archive *a, const char *name, const void *data, size_t n,
                     const char *out, fl_err *err) {
  struct archive_entry *e = archive_entry_new();
  if (e == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory");
  archive_entry_set_pathname(e, name);
  archive_entry_set_size(e, (la_int64_t)n);
  archive_entry_set_filetype(e, AE_IFREG);
  archive_entry_set_perm(e, 0644);
  archive_entry_set_mtime(e, 0, 0); /* equal fleets give equal archives */
  int rc = FL_OK;
  if (archive_write_header(a, e) != ARCHIVE_OK || archive_write_data(a, data, n) != (la_ssize_t)n) {
    const char *why = archive_error_string(a);
    rc = fl_fail(err, FL_EFAIL, "%s: cannot be written: %s", out, why ? why : "no reason given");
  }
  archive_entry_free(e);
  return rc;
}

static int put_file(struct archive *a, const char *dir, const char *name, const char *out,
                    fl_err *err) {
  char *path = fl_fs_join(dir, name), *inside = fl_asprintf("fleet/%s", name);
  fl_map m = { 0 };
  int rc =
      path && inside ? fl_map_open(&m, path, err) : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) rc = put_entry(a, inside, m.data, m.size, out, err);
  fl_map_close(&m);
  fl_free(path);
  fl_free(inside);
  return rc;
}

/* A model card as hubs show it. */
static int put_readme(struct archive *a, const fl_manifest *m, const char *out, fl_err *err) {
  fl_buf b = { 0 };
  fl_buf_puts(&b, "---\ntags:\n- flotilla\n- cartridges\n- kv-cache\n---\n\n"
                  "# A fleet of cartridges\n\n");
  fl_buf_printf(&b,
                "%zu documents, each a trained prefix of key/value rows, for the model **%s**\n"
                "(identity `%s`, tokenizer `%s`).\n\n",
                m->n, m->model_name ? m->model_name : "unknown",
                m->model_hash ? m->model_hash : "unknown",
                m->tokenizer_hash ? m->tokenizer_hash : "unknown");
  fl_buf_puts(&b, "| document | tokens | rows | steps | file |\n|---|---|---|---|---|\n");
  for (size_t i = 0; i < m->n; i++)
    fl_buf_printf(&b, "| %s | %llu | %llu | %llu | `%s` |\n", m->doc[i].name,
                  (unsigned long long)m->doc[i].tokens, (unsigned long long)m->doc[i].rows,
                  (unsigned long long)m->doc[i].steps, m->doc[i].cart_file);
  fl_buf_puts(&b,
              "\nTensors `layers.i.k` and `layers.i.v` are `[rows, kv_heads, head_dim]`, f32,\n"
              "keys rotated at positions from 0; `_sink` rows come first and were not trained.\n"
              "The format is described in flotilla-formats(5).\n\n```sh\n"
              "flotilla import --out FLEET THIS-FILE\n"
              "flotilla ask -m MODEL.gguf FLEET 'a question'\n```\n");
  int rc = b.oom ? fl_fail(err, FL_ENOMEM, "not enough memory")
                 : put_entry(a, "fleet/README.md", b.data, b.len, out, err);
  fl_buf_release(&b);
  return rc;
}

/* The manifest without the index of words, which stays: it holds the documents' texts. */
static int put_manifest(struct archive *a, fl_manifest *m, const char *out, fl_err *err) {
  fl_buf text = { 0 };
  (void)fl_set_string(&m->lexical_file, NULL);
  int rc = fl_manifest_print(m, &text);
  if (rc == FL_OK) rc = put_entry(a, "fleet/" FL_MANIFEST_FILE, text.data, text.len, out, err);
  else rc = fl_fail(err, FL_ENOMEM, "not enough memory");
  fl_buf_release(&text);
  return rc;
}

static int put_fleet(struct archive *a, fl_manifest *m, const convert_job *x, const char *out,
                     fl_err *err) {
  int rc = put_readme(a, m, out, err);
  if (rc == FL_OK && m->lexical_file != NULL) rc = put_manifest(a, m, out, err);
  else if (rc == FL_OK) rc = put_file(a, x->source, FL_MANIFEST_FILE, out, err);
  for (size_t i = 0; i < m->n && rc == FL_OK; i++)
    rc = put_file(a, x->source, m->doc[i].cart_file, out, err);
  if (rc == FL_OK && m->index_file) rc = put_file(a, x->source, m->index_file, out, err);
  return rc;
}

/* What libarchive writes goes through the sink, which keeps its first failure. */
static la_ssize_t to_sink(struct archive *a, void *sink, const void *data, size_t n) {
  (void)a;
  return fl_sink_write(sink, data, n) == FL_OK ? (la_ssize_t)n : -1;
}

static int no_archive(struct archive *w, const char *out, fl_err *err) {
  const char *why = archive_error_string(w);
  return fl_fail(err, FL_EFAIL, "--out %s: cannot be written: %s", out, why ? why : "unknown kind");
}

/* Compression by the end of the name; libarchive's own table does not know all of these. */
static int set_filter(struct archive *w, const char *out) {
  static const struct {
    const char *end;
    int (*add)(struct archive *w);
  } filters[] = { { ".gz", archive_write_add_filter_gzip },
                  { ".tgz", archive_write_add_filter_gzip },
                  { ".zst", archive_write_add_filter_zstd },
                  { ".xz", archive_write_add_filter_xz },
                  { ".bz2", archive_write_add_filter_bzip2 } };
  const size_t n = strlen(out);
  for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
    const size_t len = strlen(filters[i].end);
    if (n > len && strcmp(out + n - len, filters[i].end) == 0) return filters[i].add(w);
  }
  return ARCHIVE_OK;
}

static int write_archive(fl_manifest *m, const convert_job *a, fl_err *err) {
  fl_sink *s = NULL;
  struct archive *w = archive_write_new();
  int rc = w ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc != FL_OK) return rc;
  archive_write_set_format_pax_restricted(w);
  if (set_filter(w, a->out) != ARCHIVE_OK) rc = no_archive(w, a->out, err);
  archive_write_set_filter_option(w, "gzip", "timestamp", NULL); /* only gzip knows it */
  archive_write_set_bytes_in_last_block(w, 1);
  if (rc == FL_OK) rc = fl_fs_open_temp(&s, a->out, err);
  if (rc == FL_OK) {
    fl_err why = { 0 };
    if (archive_write_open(w, s, NULL, to_sink, NULL) != ARCHIVE_OK)
      rc = no_archive(w, a->out, &why);
    if (rc == FL_OK) rc = put_fleet(w, m, a, a->out, &why);
    if (archive_write_close(w) != ARCHIVE_OK && rc == FL_OK) rc = no_archive(w, a->out, &why);
    if (rc != FL_OK && err) *err = why;
  }
  archive_write_free(w);
  if (rc == FL_OK) return fl_fs_commit_temp(s, a->out, err);
  fl_sink_abandon(s);
  return rc;
}

int convert_archive_write(fl_json *out, const convert_job *a, fl_err *err) {
  fl_manifest m = { 0 };
  uint64_t size = 0;
  int rc = fl_fleet_dir_load(&m, a->source, err);
  if (rc == FL_OK) rc = write_archive(&m, a, err);
  if (rc == FL_OK) rc = fl_fs_size(&size, a->out, err);
  if (rc == FL_OK) {
    fl_json_set_str(out, "out", a->out);
    fl_json_set_str(out, "type", "archive");
    fl_json_set_u64(out, "docs", m.n);
    fl_json_set_num(out, "file_bytes", (double)size);
  }
  fl_manifest_release(&m);
  return rc;
}
#else
int convert_archive_write(fl_json *out, const convert_job *a, fl_err *err) {
  (void)out;
  return fl_fail(err, FL_EFAIL,
                 "--to archive: this program was built without libarchive; give %s "
                 "as a folder",
                 a->source);
}
#endif
