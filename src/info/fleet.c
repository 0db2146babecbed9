/* fleet.c - a fleet folder: its manifest, and every file that the manifest names read and
 * checked. */
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cartridge/cartridge_io.h"
#include "fleet/fleet_dir.h"
#include "info/info.h"
#include "fleet/train_options.h"

/* "ok", "missing", or the reason why a file can't be used. */
static const char *verdict(int rc, const fl_err *why) {
  return rc == FL_OK ? "ok" : rc == FL_ENOENT ? "missing" : why->text;
}

static bool check_cartridge(fl_json *row, const char *path) {
  fl_err why = { 0 };
  fl_cartridge c = { 0 };
  int rc = fl_cartridge_read(&c, NULL, path, NULL, &why);
  if (rc == FL_OK) {
    fl_json_set_u64(row, "rows", c.rows.n_rows);
    fl_cartridge_release(&c);
  }
  fl_json_set_str(row, "cartridge", verdict(rc, &why));
  return rc == FL_OK;
}

/* Missing moments are allowed: the cartridge goes on with fresh ones. */
static bool check_moments(fl_json *row, const char *path) {
  fl_err why = { 0 };
  fl_json *scratch = fl_json_object();
  int rc = fl_info_fza(scratch, path, false, &why);
  fl_json_free(scratch);
  fl_json_set_str(row, "moments", verdict(rc, &why));
  return rc == FL_OK || rc == FL_ENOENT;
}

static size_t describe_doc(fl_json *rows, const fl_doc_entry *d, const char *dir, bool detail) {
  fl_json *row = fl_json_object();
  char *cart = fl_fs_join(dir, d->cart_file), *moments = fl_fs_join(dir, d->opt_file);
  size_t bad = 0;
  fl_json_set_str(row, "name", d->name);
  fl_json_set_u64(row, "tokens", d->tokens);
  fl_json_set_u64(row, "rows", d->rows);
  fl_json_set_u64(row, "steps", d->steps);
  if (d->tokens > 0)
    fl_json_set_num(row, "covered", (double)fl_coverage_tokens(&d->coverage) / (double)d->tokens);
  if (cart) bad += !check_cartridge(row, cart);
  if (moments) bad += !check_moments(row, moments);
  if (detail) {
    fl_json_set_str(row, "file", d->cart_file);
    fl_json_set_str(row, "hash", d->hash ? d->hash : "");
  }
  fl_json_push(rows, row);
  fl_free(cart);
  fl_free(moments);
  return bad;
}

static size_t describe_index(fl_json *out, const fl_manifest *m, const char *dir) {
  if (!m->index_file) {
    fl_json_set_str(out, "index", "none");
    return 0;
  }
  fl_err why = { 0 };
  fl_json *index = fl_json_object();
  char *path = fl_fs_join(dir, m->index_file);
  int rc = path ? fl_info_safetensors(index, path, false, &why) : FL_ENOMEM;
  fl_json_set_str(out, "index", verdict(rc, &why));
  double chunks;
  if (fl_json_get_num(index, "chunks", &chunks)) fl_json_set_num(out, "index_chunks", chunks);
  fl_json_free(index);
  fl_free(path);
  return rc != FL_OK;
}

int fl_info_fleet(fl_json *out, const char *dir, bool detail, fl_err *err) {
  fl_manifest m = { 0 };
  int rc = fl_fleet_dir_load(&m, dir, err);
  if (rc != FL_OK) return rc;
  fl_json_set_str(out, "kind", "fleet");
  fl_json_set_str(out, "path", dir);
  fl_json_set_str(out, "model", m.model_name ? m.model_name : "unknown");
  fl_json_set_str(out, "model_hash", m.model_hash ? m.model_hash : "unknown");
  fl_json_set_u64(out, "p", m.p);
  fl_json_set_u64(out, "frozen", m.frozen);
  fl_json_set_u64(out, "embed_chunk", m.embed_chunk);
  fl_json_set_u64(out, "rounds", m.rounds);
  fl_json_set_u64(out, "generation", fl_manifest_generation(&m));
  size_t bad = describe_index(out, &m, dir);
  if (detail) {
    fl_json *flags = fl_json_object();
    fl_train_options_write(&m.opts, flags, false);
    fl_json_set(out, "flags", flags);
  }
  fl_json *rows = fl_json_array();
  for (size_t i = 0; rows && i < m.n; i++) bad += describe_doc(rows, &m.doc[i], dir, detail);
  fl_json_set(out, "docs", rows);
  fl_manifest_release(&m);
  if (bad == 0) return FL_OK;
  return fl_fail(err, FL_EINPUT,
                 "%s: %zu of its files are damaged or missing; restore them or train with --redo "
                 "NAME",
                 dir, bad);
}
