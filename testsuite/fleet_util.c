/* fleet_util.c - see fleet_util.h. */
#include "fleet_util.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "fleet/manifest.h"
#include "trainer/trainer.h"
#include "suite.h"

fl_model *fleet_model;
fl_team *fleet_team;
static fl_source_list sources;

void copy_tree(const char *from, const char *to) {
  char **names = NULL;
  size_t n = 0;
  ck_assert_int_eq(fl_fs_mkdir(to, NULL), FL_OK);
  ck_assert_int_eq(fl_fs_list(&names, &n, from, NULL), FL_OK);
  for (size_t i = 0; i < n; i++) {
    char *a = fl_fs_join(from, names[i]), *b = fl_fs_join(to, names[i]);
    fl_buf text = { 0 };
    if (fl_fs_read(&text, a, (size_t)1 << 30, NULL) == FL_OK)
      ck_assert_int_eq(fl_fs_replace(b, text.data, text.len, NULL), FL_OK);
    fl_buf_release(&text);
    fl_free(a);
    fl_free(b);
  }
  fl_fs_list_free(names, n);
}

void fleet_open_model(void) {
  fl_err err = { 0 };
  ck_assert_int_eq(fl_team_new(&fleet_team, 2, &err), FL_OK);
  int rc = fl_model_open(&fleet_model, fixture("embedded/model.gguf"), NULL, fleet_team, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
}

void fleet_close_model(void) {
  fl_model_close(fleet_model);
  fl_team_free(fleet_team);
  fl_source_release(&sources);
  fleet_model = NULL;
  fleet_team = NULL;
}

void fleet_setup_model(void) {
  fleet_setup();
  fleet_open_model();
}

void fleet_teardown_model(void) {
  fleet_close_model();
  fleet_teardown();
}

static char straight_dir[80];

void straight_begin(size_t rounds, fl_train_options o) {
  fleet_setup_model();
  put_docs();
  train_rounds(rounds, o);
  snprintf(straight_dir, sizeof straight_dir, "%s.straight", fleet_dir);
  ck_assert_int_eq(rename(fleet_dir, straight_dir), 0);
  fleet_close_model();
}

void straight_end(void) {
  remove_tree(straight_dir);
  fleet_teardown();
}

void straight_setup(void) {
  remove_tree(fleet_dir); /* of a case that failed */
  put_docs();
  fleet_open_model();
}

void straight_teardown(void) {
  fleet_close_model();
  remove_tree(fleet_dir);
}

const char *straight_fleet(void) { return straight_dir; }

void put_docs(void) {
  static const struct {
    const char *from, *to;
    size_t len;
  } docs[] = {
    { "embedded/docs/bakery.md", "a.md", 420 },
    { "embedded/docs/library.md", "b.md", 300 },
    { "embedded/docs/mine.md", "c.md", 520 },
  };
  for (size_t i = 0; i < 3; i++) {
    fl_buf text = { 0 };
    ck_assert_int_eq(fl_fs_read(&text, fixture(docs[i].from), 1 << 20, NULL), FL_OK);
    text.data[docs[i].len] = '\0';
    put_doc(docs[i].to, text.data);
    fl_buf_release(&text);
  }
}

fl_source_list read_docs(void) {
  fl_source_list l = { 0 };
  fl_err err = { 0 };
  const char *path = docs_dir;
  int rc = fl_source_read(&l, &path, 1, false, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  return l;
}

fl_train_options small_options(void) {
  fl_train_options o;
  fl_train_options_default(&o);
  o.p = 24;
  o.budget = 2;
  o.rotate_every = 3;
  o.save_every = 2;
  o.eval_every = 0;
  o.p_iso = 0.5;
  o.accum = 2;
  o.rounds = 0;
  o.lr = 2e-2;
  o.chunk_min = 40;
  o.chunk_max = 80;
  o.max_q = 24;
  o.max_a = 32;
  o.embed_chunk = 40;
  return o;
}

int try_open(fl_fleet **out, const fl_train_options *o, const fl_open_options *how, fl_err *err) {
  fl_source_release(&sources);
  sources = read_docs();
  return fl_fleet_open(out, fleet_dir, fleet_model, fleet_team, &sources, o, how, err);
}

fl_fleet *must_open(const fl_train_options *o, const fl_open_options *how) {
  fl_fleet *f = NULL;
  fl_err err = { 0 };
  int rc = try_open(&f, o, how, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  return f;
}

bool in_fleet(const char *name) {
  char *path = fl_fs_join(fleet_dir, name);
  bool there = fl_fs_exists(path);
  fl_free(path);
  return there;
}

void train_rounds(size_t rounds, fl_train_options o) {
  fl_err err = { 0 };
  fl_open_options how = { .resume = in_fleet("fleet.json"), .allow_add = true };
  o.rounds = rounds;
  fl_fleet *f = must_open(&o, &how);
  int rc = fl_fleet_train(f, NULL, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  fl_fleet_close(f);
}

fl_fleet *open_reader(void) {
  fl_fleet *f = NULL;
  fl_err err = { 0 };
  fl_open_options how = { .read_only = true };
  int rc = fl_fleet_open(&f, fleet_dir, fleet_model, fleet_team, NULL, NULL, &how, &err);
  ck_assert_msg(rc == FL_OK, "%s", err.text);
  return f;
}

static bool counts(const char *name) {
  return strcmp(name, FL_EVENTS_FILE) != 0 && strcmp(name, FL_EVENTS_OLDER_FILE) != 0 &&
         strcmp(name, "lock") != 0 && strncmp(name, "control", 7) != 0;
}

static size_t files_of(const char *dir, char ***names, size_t *n) {
  size_t kept = 0;
  ck_assert_int_eq(fl_fs_list(names, n, dir, NULL), FL_OK);
  for (size_t i = 0; i < *n; i++) kept += counts((*names)[i]);
  return kept;
}

void assert_same_fleet(const char *a, const char *b) {
  char **in_a = NULL, **in_b = NULL;
  size_t n_a = 0, n_b = 0;
  size_t kept_a = files_of(a, &in_a, &n_a), kept_b = files_of(b, &in_b, &n_b);
  for (size_t i = 0; i < n_a; i++) {
    if (!counts(in_a[i])) continue;
    fl_buf x = { 0 }, y = { 0 };
    char *pa = fl_fs_join(a, in_a[i]), *pb = fl_fs_join(b, in_a[i]);
    ck_assert_int_eq(fl_fs_read(&x, pa, (size_t)1 << 30, NULL), FL_OK);
    ck_assert_msg(fl_fs_read(&y, pb, (size_t)1 << 30, NULL) == FL_OK, "%s: missing", pb);
    ck_assert_msg(x.len == y.len && memcmp(x.data, y.data, x.len) == 0, "%s differs", in_a[i]);
    fl_buf_release(&x);
    fl_buf_release(&y);
    fl_free(pa);
    fl_free(pb);
  }
  ck_assert_uint_eq(kept_a, kept_b);
  fl_fs_list_free(in_a, n_a);
  fl_fs_list_free(in_b, n_b);
}

int dial_trainer(void) {
  struct sockaddr_un a = { .sun_family = AF_UNIX };
  snprintf(a.sun_path, sizeof a.sun_path, "%s/control", fleet_dir);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_eq(connect(fd, (const struct sockaddr *)&a, sizeof a), 0);
  return fd;
}

uint64_t committed_rounds(void) {
  fl_manifest m = { 0 };
  if (fl_manifest_load(&m, fleet_dir, NULL) != FL_OK) return 0;
  uint64_t rounds = m.rounds;
  fl_manifest_release(&m);
  return rounds;
}
