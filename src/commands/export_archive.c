/* export_archive.c - a fleet as one file, to hand on or to put on a hub: a tar archive, compressed
 * as its name asks (.gz, .zst, .xz), of the manifest, the files it refers to and a README.md that
 * says what they are. Logs, moments and the lock stay behind. cmd_import.c takes it apart. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "commands/export.h"
#include "commands/fleet_dir.h"

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
  int rc = path && inside ? fl_map_open(&m, path, err)
                          : fl_fail(err, FL_ENOMEM, "not enough memory");
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
  fl_buf_printf(&b, "%zu documents, each a trained prefix of key/value rows, for the model **%s**\n"
                "(identity `%s`, tokenizer `%s`).\n\n", m->n,
                m->model_name ? m->model_name : "unknown",
                m->model_hash ? m->model_hash : "unknown",
                m->tokenizer_hash ? m->tokenizer_hash : "unknown");
  fl_buf_puts(&b, "| document | tokens | rows | steps | file |\n|---|---|---|---|---|\n");
  for (size_t i = 0; i < m->n; i++)
    fl_buf_printf(&b, "| %s | %llu | %llu | %llu | `%s` |\n", m->doc[i].name,
                  (unsigned long long)m->doc[i].tokens, (unsigned long long)m->doc[i].rows,
                  (unsigned long long)m->doc[i].steps, m->doc[i].cart_file);
  fl_buf_puts(&b, "\nTensors `layers.i.k` and `layers.i.v` are `[rows, kv_heads, head_dim]`, f32,\n"
              "keys rotated at positions from 0; `_sink` rows come first and were not trained.\n"
              "The format is described in flotilla-formats(5).\n\n```sh\n"
              "flotilla import --out FLEET THIS-FILE\n"
              "flotilla ask -m MODEL.gguf FLEET 'a question'\n```\n");
  int rc = b.oom ? fl_fail(err, FL_ENOMEM, "not enough memory")
                 : put_entry(a, "fleet/README.md", b.data, b.len, out, err);
  fl_buf_release(&b);
  return rc;
}

static int put_fleet(struct archive *a, const fl_manifest *m, const export_args *x, const char *out,
                     fl_err *err) {
  int rc = put_readme(a, m, out, err);
  if (rc == FL_OK) rc = put_file(a, x->source, FL_MANIFEST_FILE, out, err);
  for (size_t i = 0; i < m->n && rc == FL_OK; i++)
    rc = put_file(a, x->source, m->doc[i].cart_file, out, err);
  if (rc == FL_OK && m->index_file) rc = put_file(a, x->source, m->index_file, out, err);
  return rc;
}

int export_archive(fl_json *out, const export_args *a, fl_err *err) {
  fl_manifest m = { 0 };
  uint64_t size = 0;
  char *temp = fl_asprintf("%s.tmp-%ld", a->out, (long)getpid());
  struct archive *w = archive_write_new();
  int rc = temp && w ? fleet_dir_load(&m, a->source, err)
                     : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) {
    archive_write_set_format_pax_restricted(w);
    if (archive_write_set_format_filter_by_ext_def(w, a->out, ".tar") != ARCHIVE_OK ||
        (archive_write_set_filter_option(w, "gzip", "timestamp", NULL), /* only gzip knows it */
         archive_write_open_filename(w, temp) != ARCHIVE_OK)) {
      const char *why = archive_error_string(w);
      rc = fl_fail(err, FL_EFAIL, "--out %s: cannot be written: %s", a->out,
                   why ? why : "unknown kind");
    } else {
      rc = put_fleet(w, &m, a, a->out, err);
      if (archive_write_close(w) != ARCHIVE_OK && rc == FL_OK)
        rc = fl_fail(err, FL_EFAIL, "%s: cannot be written: %s", a->out, archive_error_string(w));
    }
    if (rc == FL_OK && rename(temp, a->out) != 0)
      rc = fl_fail(err, FL_EFAIL, "%s: cannot be replaced", a->out);
    if (rc != FL_OK) fl_fs_remove(temp);
  }
  if (rc == FL_OK) rc = fl_fs_size(&size, a->out, err);
  if (rc == FL_OK) {
    fl_json_set_str(out, "out", a->out);
    fl_json_set_str(out, "type", "archive");
    fl_json_set_u64(out, "docs", m.n);
    fl_json_set_num(out, "file_bytes", (double)size);
  }
  if (w) archive_write_free(w);
  fl_manifest_release(&m);
  fl_free(temp);
  return rc;
}
#else
int export_archive(fl_json *out, const export_args *a, fl_err *err) {
  (void)out;
  return fl_fail(err, FL_EFAIL, "--to archive: this program was built without libarchive; give %s "
                 "as a folder", a->source);
}
#endif
