/* archive_read.c - an archive of a fleet as a fleet's folder.
 *
 * The archive is hostile: only plain files are taken, by plain names, each once; the folder is made
 * under a temporary name, read as a fleet, and renamed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cartridge/cartridge_io.h"
#include "convert/convert.h"
#include "fleet/fleet_dir.h"

#ifdef HAVE_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>
#endif

/* Every cartridge that the manifest names can be read. */
static int check_fleet(fl_manifest *m, const char *dir, fl_err *err) {
  int rc = fl_fleet_dir_load(m, dir, err);
  for (size_t i = 0; rc == FL_OK && i < m->n; i++) {
    char *path = fl_fs_join(dir, m->doc[i].cart_file);
    fl_cartridge c = { 0 };
    rc = path ? fl_cartridge_read(&c, NULL, path, NULL, err)
              : fl_fail(err, FL_ENOMEM, "not enough memory");
    fl_cartridge_release(&c);
    fl_free(path);
  }
  return rc;
}

#ifdef HAVE_LIBARCHIVE
enum { MAX_FILES = 1 << 20 };

static int poll_of(const convert_job *job) { return job->poll ? job->poll(NULL) : FL_OK; }

static int damaged(struct archive *a, const char *path, fl_err *err) {
  const char *why = archive_error_string(a);
  return fl_fail(err, FL_EINPUT, "%s: not a whole archive (%s); fetch it again", path,
                 why ? why : "no reason given");
}

static int take_data(struct archive *a, const convert_job *job, const char *path, fl_err *err) {
  char block[65536];
  fl_sink *s = NULL;
  int rc = fl_sink_open(&s, path, err);
  while (rc == FL_OK) {
    la_ssize_t n = archive_read_data(a, block, sizeof block);
    if (n == 0) return fl_sink_close(s, err);
    if (n < 0) rc = damaged(a, job->source, err);
    else rc = fl_sink_write(s, block, (size_t)n) == FL_OK ? poll_of(job) : FL_EFAIL;
    if (rc == FL_EFAIL) return fl_sink_close(s, err); /* says why */
  }
  fl_sink_abandon(s);
  return rc;
}

/* One entry "FOLDER/NAME", into dir. */
static int take_entry(struct archive *a, struct archive_entry *e, const convert_job *job,
                      const char *dir, fl_err *err) {
  const char *name = archive_entry_pathname(e), *slash = name ? strrchr(name, '/') : NULL;
  if (archive_entry_filetype(e) == AE_IFDIR) return FL_OK;
  if (slash) name = slash + 1;
  if (!name || !fl_fs_is_plain_name(name) || archive_entry_filetype(e) != AE_IFREG)
    return fl_fail(err, FL_EINPUT,
                   "%s: holds something else than the files of a fleet; give what "
                   "flotilla export --to archive wrote",
                   job->source);
  char *path = fl_fs_join(dir, name);
  int rc = path ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK && fl_fs_exists(path))
    rc = fl_fail(err, FL_EINPUT, "%s: holds the file %s twice; fetch it again", job->source, name);
  if (rc == FL_OK) rc = take_data(a, job, path, err);
  fl_free(path);
  return rc;
}

static int unpack(const convert_job *job, const char *dir, fl_err *err) {
  struct archive *a = archive_read_new();
  struct archive_entry *e;
  int rc = a ? FL_OK : fl_fail(err, FL_ENOMEM, "not enough memory"), got = ARCHIVE_OK;
  if (rc != FL_OK) return rc;
  archive_read_support_filter_all(a);
  archive_read_support_format_tar(a);
  if (archive_read_open_filename(a, job->source, 65536) != ARCHIVE_OK)
    rc = damaged(a, job->source, err);
  for (size_t n = 0; rc == FL_OK && n < MAX_FILES; n++) {
    got = archive_read_next_header(a, &e);
    if (got == ARCHIVE_EOF) break;
    rc = got < ARCHIVE_WARN ? damaged(a, job->source, err) : take_entry(a, e, job, dir, err);
  }
  archive_read_free(a);
  return rc;
}
#else
static int unpack(const convert_job *job, const char *dir, fl_err *err) {
  (void)dir;
  return fl_fail(err, FL_EFAIL, "%s: this program was built without libarchive; unpack it by hand",
                 job->source);
}
#endif

static void remove_folder(const char *dir) {
  char **names = NULL;
  size_t n = 0;
  if (fl_fs_list(&names, &n, dir, NULL) != FL_OK) return;
  for (size_t i = 0; i < n; i++) {
    char *path = fl_fs_join(dir, names[i]);
    if (path) fl_fs_remove(path);
    fl_free(path);
  }
  fl_fs_list_free(names, n);
  rmdir(dir);
}

int convert_archive_read(fl_json *out, const convert_job *a, fl_err *err) {
  fl_manifest m = { 0 };
  char *temp = fl_asprintf("%s.part-%ld", a->out, (long)getpid());
  int rc = temp ? fl_fs_mkdir(temp, err) : fl_fail(err, FL_ENOMEM, "not enough memory");
  if (rc == FL_OK) {
    rc = unpack(a, temp, err);
    if (rc == FL_OK) rc = check_fleet(&m, temp, err);
    if (rc == FL_OK) rc = fl_fs_sync_dir(temp, err);
    if (rc == FL_OK && rename(temp, a->out) != 0) rc = fl_fs_fail_errno(err, a->out, "made", errno);
    if (rc != FL_OK) remove_folder(temp);
    else rc = fl_fs_sync_parent(a->out, err);
  }
  if (rc == FL_OK) {
    fl_json_set_str(out, "fleet", a->out);
    fl_json_set_u64(out, "docs", m.n);
    fl_json_set_str(out, "model", m.model_name ? m.model_name : "");
  }
  fl_manifest_release(&m);
  fl_free(temp);
  return rc;
}
